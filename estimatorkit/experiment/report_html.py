"""A report on a trained model as one HTML file: `write_report` (the command: `report MODEL_DIR`).

The model's folder provides learning curves, the checkpoint's content and the configuration;
evaluation data adds metrics, confusion matrix, ROC, calibration or residuals, feature importance
and a linear model's weights. The file is self-contained, without scripts, and all text is escaped:
it can be mailed, and opened offline.
"""

from __future__ import annotations

import base64
import itertools
import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import value_error
from estimatorkit.core.nest import map_structure
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.description import describe, description_html
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.evaluation.evaluation_records import EVENT_FILES, LINES, events, lines
from estimatorkit.experiment import (
    build,
    examples,
    folds,
    held_out,
    inferred,
    report_plots as plots,
    report_rows,
    report_search as searched,
    row_sets,
    scores,
    tables,
    thresholds,
)
from estimatorkit.experiment.date_parts import NUMBERS, PARTS
from estimatorkit.experiment.epochs import SHOWN
from estimatorkit.experiment.predicting import of_heads
from estimatorkit.experiment.schema import Experiment
from estimatorkit.html import html_table
from estimatorkit.inspection import (
    label_ids,
    linear_columns,
    linear_weights,
    names_of_classes,
    permutation_importance,
    predict_table,
)
from estimatorkit.premade.folds import FOLD
from estimatorkit.storage.atomic_files import write_durably
from estimatorkit.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_ROWS = 20_000
"""Rows of the evaluation data to plot; metrics use all."""

_MAX_IMPORTANCE_ROWS = 4_000
_MAX_BARS = 30
_MAX_SLICES = 12
_MAX_SLICE_VALUES = 20
_MIN_SLICE = 20
_SPEED = "global_step/sec"
_OWN = "report"  # the report's own evaluation; earlier versions kept it, as no point of a curve
_MAX_PLOTS = 18

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem;
 margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.7rem; margin-bottom: 0; }}
h2 {{ font-size: 1.2rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid #ddd; }}
p.note, figcaption {{ color: #666; font-size: .85rem; margin: .3rem 0; }}
nav a {{ margin-right: 1rem; display: inline-block; }}
figure {{ margin: 0 0 1rem; }}
img {{ max-width: 100%; height: auto; }}
table {{ border-collapse: collapse; font-size: .87rem; margin: .5rem 0 1rem; }}
caption {{ text-align: left; color: #666; }}
th, td {{ padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top;
 border-bottom: 1px solid #eee; overflow-wrap: break-word; }}
th {{ hyphens: none; }}
section {{ overflow-x: auto; }}
pre {{ background: #f6f6f6; padding: .8rem; overflow-x: auto; font-size: .8rem; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="note">{subtitle}</p>
<nav>{links}</nav>
{sections}
</body>
</html>
"""


_ROWS = (
    '<p class="note">What each column adds to the prediction (Shapley values by permutation '
    "sampling, from the mean prediction of 32 training rows); orange bars take away.</p>"
)


@dataclass(frozen=True)
class Section:
    """A section of the report.

    Attributes:
        content: HTML.
    """

    title: str
    content: str


class ReportFile(str):
    """The path of a report. Notebooks show the report itself."""

    def _repr_html_(self) -> str:
        page = escape(Path(self).read_text("utf-8"))
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'


def write_report(
    estimator: Estimator | str | os.PathLike[str],
    input_fn: Callable[..., Any] | None,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    class_names: Sequence[str] = (),
    importance: bool = True,
    seed: int = 0,
    notes: Sequence[str] = (),
    dated: Collection[str] = (),
    rows: Iterable[tuple[Figure, str]] = (),
) -> ReportFile:
    """Writes an HTML report on a trained model. Not in TensorFlow.

    Args:
        estimator: a trained estimator, or a model folder.
        input_fn: the evaluation data, a finite dataset of batches of (features by key, labels);
            None for learning curves and the model only.
        path: the HTML file.
        title: the title; the name of the model folder by default.
        class_names: the names of a classifier's classes; those in its predictions by default.
        importance: whether to compute permutation feature importance, which predicts up to 4,000
            rows 3 times per feature.
        seed: the seed of the permutations.
        notes: lines to be shown below the metrics.
        dated: features that are parts of dates, whose -1 means that there is none.
        rows: figures on single rows and their captions, shown after the evaluation.

    Returns:
        The path, which notebooks show as the report itself.

    Raises:
        ValueError: there is data but no estimator, or the data is not such a dataset.
        NotFoundError: there is no such folder.
        ImportError: matplotlib is not installed.
    """
    model_dir = estimator.model_dir if isinstance(estimator, Estimator) else os.fspath(estimator)
    if not os.path.isdir(model_dir):
        raise value_error(f"{model_dir}: there is no such model folder")
    sections: list[Section] = []
    if input_fn is not None:
        if not isinstance(estimator, Estimator):
            raise value_error(
                "evaluation data requires an estimator",
                expected="an Estimator",
                received=repr(estimator),
                hint="make it with the model_dir, as for training",
            )
        sections += _evaluation_sections(estimator, input_fn, class_names, importance, seed, dated)
        told = "".join(f'<p class="note">{escape(each)}</p>' for each in notes)
        sections[0] = replace(sections[0], content=sections[0].content + told)
        pictures = [picture(figure, text) for figure, text in rows]
        if pictures:
            sections.append(Section("Single rows", _ROWS + "\n".join(pictures)))
    members = [
        _curve_section(str(folder), f"Learning curves: {folder.name}")
        for folder in sorted(Path(model_dir).glob("members/*/"))  # of an ensemble
    ]
    own = _curve_section(model_dir, "Learning curves")
    drawn = [each for each in (own, *members) if "<img" in each.content]
    sections[1:1] = drawn or [own]
    sections[:0] = _fold_sections(model_dir)
    if isinstance(estimator, Estimator) and estimator.latest_checkpoint() is not None:
        sections += _weight_sections(estimator)
    sections += _search_sections(model_dir)
    description = describe(model_dir)
    sections.append(Section("Model", description_html(description)))
    columns = inferred.notes_of(model_dir)
    if columns:
        head = ("column", "what became of it")
        sections.append(Section("Columns", html_table(head, columns.items())))
    sections += _config_sections(model_dir)
    subtitle = (
        f"{escape(os.path.abspath(model_dir))}, "
        f"{'no checkpoint' if description.step is None else f'global step {description.step:,}'}; "
        f"estimatorkit {__version__}, {time.strftime('%Y-%m-%d %H:%M')}"
    )
    name = title or os.path.basename(os.path.abspath(model_dir))
    write_durably(Path(path), page(name, subtitle, sections).encode())
    return ReportFile(os.fspath(path))


def write_experiment_report(
    experiment: Experiment,
    path: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
) -> ReportFile:
    """Writes a report on the model of an experiment, and returns its path.

    Args:
        experiment: specifies the model and its evaluation data.
        path: the HTML file.
        data: a CSV file to evaluate on instead.

    Raises:
        DataError: the data does not fit the experiment.
        ValueError: there is no trained model.
    """
    if data is None:
        table, origin = row_sets.evaluation_table(experiment)
    else:
        table, origin = (
            tables.read_file(data, experiment.data.as_read(experiment.data.train)),
            os.fspath(data),
        )
    experiment = inferred.resolve(experiment)
    arrays = examples.examples_of(experiment, table, origin)
    estimator, notes = build.estimator(experiment), list[str]()
    if experiment.predict.threshold is not None and estimator.latest_checkpoint() is not None:
        notes = thresholds.of_model(experiment, estimator).lines
        estimator = thresholds.deciding(experiment, estimator)
    ids = {key for key, each in experiment.derived.items() if each.kind in PARTS.keys() - NUMBERS}
    size = experiment.evaluate.batch_size
    trained_on = "" if data or experiment.data.measures_apart else " (the training rows)"
    title = f"{experiment.name}: {origin}{trained_on}"
    return write_report(
        estimator,
        lambda: Dataset.from_tensor_slices(arrays).batch(size),
        path,
        title=title,
        class_names=examples.class_names(experiment),
        notes=notes,
        dated=ids,
        rows=report_rows.explained_rows(experiment, table.take(slice(MAX_ROWS)), origin),
    )


def page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """A page of HTML.

    Args:
        title: as text.
        subtitle: as HTML.
        sections: in order.
    """
    links = "".join(
        f'<a href="#part{number}">{escape(each.title)}</a>' for number, each in enumerate(sections)
    )
    bodies = "\n".join(
        f'<section id="part{number}">\n<h2>{escape(each.title)}</h2>\n{each.content}\n</section>'
        for number, each in enumerate(sections)
    )
    return _PAGE.format(title=escape(title), subtitle=subtitle, links=links, sections=bodies)


def picture(figure: Figure, text: str) -> str:
    """A figure as HTML.

    Args:
        text: the caption and alternative text.
    """
    data = base64.b64encode(plots.png(figure)).decode()
    width = round(float(figure.get_figwidth()) * 96)
    caption = escape(text)
    return (
        f'<figure><img width="{width}" alt="{caption}" src="data:image/png;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def number_text(value: Any) -> str:
    """A metric for display; values other than scalars unchanged."""
    if isinstance(value, (int, np.integer)):
        return f"{int(value):,}"
    return f"{float(value):.5g}" if isinstance(value, (float, np.floating)) else str(value)


# -- content of the folder


def _curve_section(model_dir: str, title: str) -> Section:
    shown: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    folders = {"train": model_dir}
    for folder in sorted(Path(model_dir).glob("eval*")):
        if folder.is_dir() and folder.name != f"eval_{_OWN}":
            folders[folder.name] = str(folder)
    for name, folder_path in folders.items():
        for metric, points in read_scalars(folder_path).items():
            if metric == _SPEED:
                continue
            shown.setdefault(metric, {})[name] = (
                [step for step, _ in points],
                [value for _, value in points],
            )
    if not shown:
        return Section(title, '<p class="note">No metrics were recorded.</p>')
    order = sorted(shown, key=lambda metric: ("loss" not in metric, metric))
    changing = [metric for metric in order if any(map(_changes, shown[metric].values()))]
    drawn = {metric: shown[metric] for metric in changing[:_MAX_PLOTS]}
    left_out = ", ".join(metric for metric in order if metric not in drawn)
    note = f'<p class="note">Not drawn: {escape(left_out)}.</p>' if left_out else ""
    if not drawn:
        return Section(title, note)
    figure = picture(plots.curves(drawn), f"By global step: {', '.join(drawn)}.")
    return Section(title, figure + note)


def _changes(points: tuple[list[float], list[float]]) -> bool:
    return len(set(points[1])) > 1


def read_scalars(folder: str | os.PathLike[str]) -> dict[str, list[tuple[int, float]]]:
    """The finite scalars of a run by name, as (step, value) in the order of steps.

    Read from `metrics.jsonl` if present, otherwise from event files.
    """
    records = Path(folder) / LINES
    files = sorted(Path(folder).glob(EVENT_FILES))
    found: dict[str, dict[int, float]] = {}
    for step, metrics in lines(records) if records.is_file() else events(files):
        for name, value in metrics.items():
            if math.isfinite(value) and name != "global_step":
                found.setdefault(name, {})[step] = value  # the last one of a repeated step
    return {name: sorted(points.items()) for name, points in found.items()}


def _fold_sections(model_dir: str) -> list[Section]:
    """The cross-validation of the model's settings."""
    found = folds.read(model_dir)
    if found is None:
        return []
    means, deviations = found.means, found.deviations
    rows = [
        (name, *map(number_text, (means[name], deviations[name], *found.metrics[name])))
        for name in sorted(found.metrics)
    ]
    count = len(next(iter(found.metrics.values()), ()))
    head = ("metric", "mean", "standard deviation", *(f"fold {each + 1}" for each in range(count)))
    content = html_table(head, rows, "Each fold measures a model that was trained on the others.")
    scalars = {
        f"fold {each}": read_scalars(Path(model_dir) / held_out.FOLDS / str(each) / "eval")
        for each in range(1, count + 1)
    }
    content += curves_by_run(scalars, ("loss", *SHOWN))
    return [Section("Cross-validation", content)]


def curves_by_run(
    scalars: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    metrics: Iterable[str],
    over: str = "step",
) -> str:
    """Curves of several runs, in one plot for each metric, as HTML; '' if there are no curves.

    Args:
        scalars: (step, value) by run and metric.
        metrics: those to draw.
        over: what stands below the plots.
    """
    drawn = {}
    for metric in dict.fromkeys(metrics):
        found = {run: each[metric] for run, each in scalars.items() if each.get(metric)}
        if any(len(points) > 1 for points in found.values()):
            drawn[metric] = {
                run: ([at for at, _ in points], [value for _, value in points])
                for run, points in found.items()
            }
    if not drawn:
        return ""
    return picture(plots.curves(drawn, over), f"By {over} of the training: {', '.join(drawn)}.")


def _search_sections(model_dir: str) -> list[Section]:
    """The search for the model's settings."""
    found = searched.search_of(model_dir)
    if found is None or found[0].best() is None:
        return []
    search, figures = found
    metric = search.monitor.metric
    content = f"<p>{escape(figures)}</p>" if figures else ""
    content += picture(searched.history(search), f"Trials by number: {searched.counts(search)}.")
    content += searched.trials_table(search)
    text = f"Completed trials; the darker, the better their {metric}."
    content += picture(searched.coordinates(search), text)
    weights = searched.importance(search)
    if weights is not None:
        text = f"How much of the differences in {metric} each setting explains."
        content += picture(weights, text)
    return [Section("Search", content)]


def _config_sections(model_dir: str) -> list[Section]:
    path = Path(model_dir) / "config.yaml"
    if not path.is_file():
        return []
    return [Section("Configuration", f"<pre>{escape(path.read_text('utf-8', 'replace'))}</pre>")]


def _weight_sections(estimator: Estimator) -> list[Section]:
    if not linear_columns(estimator):
        return []
    frame = linear_weights(estimator)
    frame = frame[frame["weight"] != 0]
    if frame.empty:
        return []
    order = frame["weight"].abs().sort_values(ascending=False, kind="stable").index[:_MAX_BARS]
    largest = frame.loc[order]
    names = [" ".join(_label_parts(row)) for row in largest.to_dict("records")]
    figure = plots.bars(names, largest["weight"].tolist(), None, "weight")
    more = f" (of {len(frame):,} that are not 0)" if len(frame) > len(largest) else ""
    text = f"The largest weights of the linear model{more}; orange ones are negative."
    return [Section("Linear weights", picture(figure, text))]


def _label_parts(row: Mapping[Any, Any]) -> Iterator[str]:
    yield str(row["column"])
    if row["value"]:
        yield f"= {row['value']}"
    if "class" in row:
        yield f"(class {row['class']})"


# -- results on evaluation data


def _evaluation_sections(
    estimator: Estimator,
    input_fn: Callable[..., Any],
    names: Sequence[str],
    importance: bool,
    seed: int,
    dated: Collection[str],
) -> list[Section]:
    metrics = scores.unrecorded(estimator, input_fn)
    rows = [(name, number_text(value)) for name, value in sorted(metrics.items())]
    sections = [Section("Metrics", html_table(("metric", "value"), rows))]
    features, labels = collect(input_fn, MAX_ROWS)
    if labels is None or not isinstance(features, dict):
        return sections
    predictor = estimator.as_predictor()
    predictions = of_heads(predict_table(predictor, features))
    if isinstance(labels, dict):
        return sections + _task_sections(labels, predictions, metrics)
    if {"probabilities", "class_ids"} <= set(predictions) and np.ndim(labels) <= 2:
        shown = names or names_of_classes(predictions)
        sections += _class_sections(labels, predictions, shown, metrics)
    elif "predictions" in predictions:
        sections += _number_sections(labels, predictions["predictions"])
    else:
        return sections
    sections += _slice_sections(features, labels, predictions, dated)
    if importance:
        some = slice(None, _MAX_IMPORTANCE_ROWS)
        table = {key: value[some] for key, value in features.items()}
        classes = "probabilities" in predictions
        metric = "log_loss" if classes else "rmse"
        frame = permutation_importance(predictor, table, labels[some], metric, 3, seed)
        frame = frame.drop(index=FOLD, errors="ignore").iloc[:_MAX_BARS]
        figure = plots.bars(
            [str(name) for name in frame.index],
            frame["importance"].tolist(),
            frame["deviation"].tolist(),
            f"increase of {metric.replace('_', ' ')}",
        )
        text = (
            f"How much {metric.replace('_', ' ')} grows when a feature's values are shuffled "
            f"among {len(labels[some]):,} rows (mean and deviation of 3 shuffles)."
        )
        sections.append(Section("Importance of features", picture(figure, text)))
    return sections


def collect(input_fn: Callable[..., Any], limit: int) -> tuple[Any, Any]:
    """The first `limit` rows of a dataset of batches: features by key, and labels (of several
    heads by name) or None.

    Raises:
        ValueError: `input_fn` does not return a dataset of dicts of arrays.
    """
    parts: list[Any] = []
    count = 0
    dataset = input_fn()
    if not hasattr(dataset, "as_numpy_iterator"):
        raise value_error(
            "input_fn does not return a dataset",
            expected="a Dataset of batches of (features by key, labels)",
            received=type(dataset).__name__,
        )
    for element in dataset.as_numpy_iterator():
        features, labels = element if isinstance(element, tuple) else (element, None)
        if not isinstance(features, dict):
            return None, None  # unnamed tensors: no plots
        parts.append((features, labels))
        count += len(next(iter(features.values())))
        if count >= limit:
            break
    if not parts:
        raise ValueError("input_fn yields no examples")
    table = {
        key: np.concatenate([features[key] for features, _ in parts])[:limit] for key in parts[0][0]
    }
    if parts[0][1] is None:
        return table, None
    return table, map_structure(
        lambda *columns: np.concatenate(columns)[:limit], *(labels for _, labels in parts)
    )


def _task_sections(
    labels: Mapping[str, NDArray[Any]],
    predictions: Mapping[str, NDArray[Any]],
    metrics: Mapping[str, float],
) -> list[Section]:
    """The plots of each of several heads that classify; of others there are only metrics."""
    sections = []
    for task, truth in labels.items():
        start = f"{task}/"
        own = {
            k.removeprefix(start): each for k, each in predictions.items() if k.startswith(start)
        }
        if {"probabilities", "class_ids"} <= set(own) and np.ndim(truth) <= 2:
            ending = f"/{task}"
            areas = {k.removesuffix(ending): v for k, v in metrics.items() if k.endswith(ending)}
            found = _class_sections(truth, own, names_of_classes(own), areas)
            sections += [Section(f"{each.title}: {task}", each.content) for each in found]
    return sections


def _class_sections(
    labels: NDArray[Any],
    predictions: Mapping[str, NDArray[Any]],
    names: Sequence[str],
    metrics: Mapping[str, float],
) -> list[Section]:
    truth = label_ids(labels, predictions)
    shares = np.asarray(predictions["probabilities"], np.float64)
    chosen = predictions["class_ids"].reshape(-1).astype(np.int64)
    sections = []
    if len(names) <= plots.MAX_CLASSES:
        counts = np.zeros((len(names), len(names)), np.int64)
        np.add.at(counts, (truth, chosen), 1)
        text = f"Labels and predictions of {len(truth):,} examples."
        sections.append(Section("Confusion matrix", picture(plots.confusion(counts, names), text)))
    hits, decided = (np.eye(len(names), dtype=bool)[each] for each in (truth, chosen))
    if len(names) == 2:
        curve = plots.roc_and_precision(
            hits[:, 1:], shares[:, 1:], names[1:], decided[:, 1:], metrics
        )
        what = f"class {names[1]}"
        groups = {f"label {name}": hits[:, number] for number, name in enumerate(names)}
        calibrated = plots.calibration(hits[:, 1], shares[:, 1], groups, what)
    else:
        some = np.argsort(-hits.sum(axis=0), kind="stable")[: len(plots.COLORS)]
        some.sort()
        some_names = [names[each] for each in some]
        curve = plots.roc_and_precision(
            hits[:, some], shares[:, some], some_names, decided[:, some]
        )
        right = chosen == truth
        groups = {"right": right, "wrong": ~right}
        calibrated = plots.calibration(right, shares.max(axis=1), groups, "the predicted class")
    about = "Each class against the others" if len(names) > 2 else f"Of class {names[1]}"
    about += "; dots are the classes as they are predicted."
    text = "Bars at the points are intervals of 95 %; the broken line is perfect calibration."
    return [
        *sections,
        Section("ROC, precision and recall", picture(curve, about)),
        Section("Calibration and scores", picture(calibrated, text)),
    ]


def _slice_sections(
    features: Mapping[str, NDArray[Any]],
    labels: NDArray[Any],
    predictions: Mapping[str, NDArray[Any]],
    dated: Collection[str],
) -> list[Section]:
    """The parts of the rows, by the values of a column, that are predicted worst."""
    if "class_ids" in predictions:
        chosen = predictions["class_ids"].reshape(-1)
        losses = (label_ids(labels, predictions) != chosen).astype(np.float64)
        name, square = "error rate", False
    else:
        found = np.asarray(predictions["predictions"], np.float64)
        losses = ((np.asarray(labels, np.float64).reshape(found.shape) - found) ** 2).mean(1)
        name, square = "rmse", True

    def shown(mean: float) -> str:
        return f"{math.sqrt(mean):.5g}" if square else f"{mean:.1%}"

    worst = sorted(slices(features, losses, dated), key=lambda each: -each[3])[:_MAX_SLICES]
    if not worst:
        return []
    rows = [(key, text, f"{count:,}", shown(mean)) for key, text, count, mean in worst]
    rows.append(("all rows", "", f"{len(losses):,}", shown(losses.mean())))
    note = '<p class="note">The worst slices of the rows, by one column each.</p>'
    table = html_table(("column", "values", "examples", name), rows)
    return [Section("Slices", note + table)]


_MISSING = "missing"


def slices(
    features: Mapping[str, NDArray[Any]], losses: NDArray[Any], dated: Collection[str] = ()
) -> Iterator[tuple[str, str, int, float]]:
    """Yields the column, values, number of rows and mean loss of each part that is large enough:
    rows of one value, without one, or of a quarter of a column of many numbers.

    Args:
        features: columns by name.
        losses: of the rows.
        dated: the columns in which -1 means that there is none.
    """
    least = max(_MIN_SLICE, len(losses) // 100)
    for key, column in features.items():
        values = np.asarray(column).reshape(len(losses), -1)
        if values.shape[1] > 1:
            continue
        values, texts = values[:, 0], None
        if values.dtype.kind in "iuf" and len(np.unique(values)) > _MAX_SLICE_VALUES:
            edges = np.unique(np.nanquantile(values, [0, 0.25, 0.5, 0.75, 1]))
            texts = [f"{low:g} to {high:g}" for low, high in itertools.pairwise(edges)]
            absent = np.isnan(values)
            values = np.clip(np.searchsorted(edges, values, "right") - 1, 0, len(texts) - 1)
            values, texts = np.where(absent, len(texts), values), [*texts, _MISSING]
        kinds, places = np.unique(values, return_inverse=True)
        counts = np.bincount(places)
        means = np.bincount(places, losses) / counts
        for kind, count, mean in zip(kinds, counts, means, strict=True):
            if least <= count < len(losses):
                if texts is not None:
                    text = texts[int(kind)]
                elif isinstance(kind, bytes):
                    text = kind.decode(errors="replace") or _MISSING
                elif np.isnan(kind) or (kind == -1 and key in dated):
                    text = _MISSING
                else:
                    text = f"{kind:.6g}"
                yield key, text, int(count), float(mean)


def _number_sections(labels: NDArray[Any], predictions: NDArray[Any]) -> list[Section]:
    found = np.asarray(predictions, np.float64)
    truth = np.asarray(labels, np.float64).reshape(found.shape)
    pictures = []
    for number in range(found.shape[1]):
        which = f"Label {number}: " if found.shape[1] > 1 else ""
        text = f"{which}{len(truth):,} examples; broken lines are perfect predictions."
        pictures.append(picture(plots.residuals(truth[:, number], found[:, number]), text))
    return [Section("Residuals", "\n".join(pictures))]


__all__ = [
    "MAX_ROWS",
    "ReportFile",
    "Section",
    "collect",
    "number_text",
    "page",
    "picture",
    "read_scalars",
    "write_experiment_report",
    "write_report",
]
