"""The report's pages of a search: trials, parallel coordinates, importance of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from estimatorkit.estimator.evaluation.completion import read_completion, recorded_result
from estimatorkit.experiment import document, report_plots as plots, row_sets
from estimatorkit.experiment.report import number
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.tuning import trials as searches
from estimatorkit.experiment.tuning.search import Search, Trial
from estimatorkit.html import html_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_ROWS = 20
_MIN_FOR_IMPORTANCE = 4


def search_of(model_dir: str) -> tuple[Search, str] | None:
    """The search of a model's folder, or the one that the model comes from, and a text on its
    best trial; None without any.
    """
    found = searches.searched(Path(model_dir))
    if found is None:
        return None
    folder, experiment = found
    search, done = searches.opened(folder, experiment), read_completion(str(folder / "best"))
    results = {} if done is None or done.results is None else done.results
    metrics = {name: recorded_result(each, "")[0] for name, each in results.items()}
    return search, ". ".join(two_figures(search, experiment, metrics))


def trials_table(search: Search) -> str:
    """The best trials as HTML, the best first."""
    done = [each for each in search.trials() if each.state == "complete"]
    sign = 1 if search.monitor.mode == "min" else -1
    done.sort(key=lambda trial: sign * (trial.value or 0.0))
    rows = [
        (
            str(each.number),
            number(each.value or 0.0),
            *(_text(each.settings.get(name)) for name in search.space),
        )
        for each in done[:_MAX_ROWS]
    ]
    return html_table(("trial", search.monitor.metric, *search.space), rows)


def two_figures(
    search: Search, experiment: Experiment, metrics: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """Lines with the metric that chose the settings, and that of rows which no trial saw.

    Args:
        search: which has a best trial.
        experiment: that is searched.
        metrics: of the model that was trained with the best settings, by evaluation.
    """
    best, metric = search.best(), search.monitor.metric
    if best is None or best.value is None or metric not in metrics.get(row_sets.MAIN, {}):
        return []
    ranking, test = searches.ranking_rows(experiment), row_sets.evaluation_source(experiment)
    chose = f"{metric} {number(best.value)} on the selection rows ({ranking}), which chose the"
    if not experiment.data.measures_apart:
        return [f"{chose} settings: too good. data.holdout keeps rows that measure the model."]
    return [
        f"{chose} settings",
        f"{metric} {number(metrics[row_sets.MAIN][metric])} on the test rows ({test}), which no"
        " trial saw: expect this of new rows",
    ]


def counts(search: Search) -> str:
    """How many trials ended in which way."""
    found = [each.state for each in search.trials()]
    kinds = ("complete", "pruned", "failed", "running")
    return ", ".join(f"{found.count(kind)} {kind}" for kind in kinds if kind in found)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else document.dump(value, flow=True)


@plots.styled
def history(search: Search) -> Figure:
    """The value of each trial, and the best so far."""
    figure = plots.new_figure(8.0, 3.0)
    (place,) = plots.axes(figure)
    done = [each for each in search.trials() if each.state == "complete"]
    pruned = [each for each in search.trials() if each.state == "pruned" and each.evaluations]
    place.scatter(
        [each.number for each in pruned],
        [_best(search, each) for each in pruned],
        color="0.7",
        s=14,
        label="pruned",
    )
    values = [each.value or 0.0 for each in done]
    place.scatter([each.number for each in done], values, color=plots.COLORS[0], s=18)
    best = np.minimum if search.monitor.mode == "min" else np.maximum
    if done:
        numbers = [each.number for each in done]
        line = best.accumulate(np.asarray(values))
        place.step(numbers, line, where="post", color=plots.COLORS[1], lw=1.2, label="best")
    place.set(xlabel="trial", ylabel=search.monitor.metric)
    place.legend()
    return figure


def _best(search: Search, trial: Trial) -> float:
    choose = min if search.monitor.mode == "min" else max
    return choose(trial.evaluations)


@plots.styled
def coordinates(search: Search) -> Figure:
    """Parallel coordinates: a line for each trial across the settings, darker if better."""
    from matplotlib import colormaps

    names = list(search.space)
    figure = plots.new_figure(max(6.0, 1.9 * (len(names) + 1)), 4.0)
    (place,) = plots.axes(figure)
    done = [each for each in search.trials() if each.state == "complete"]
    values = np.array([each.value or 0.0 for each in done])
    low, high = values.min(), values.max()
    shares = (values - low) / ((high - low) or 1.0)
    good = 1 - shares if search.monitor.mode == "min" else shares
    columns = [[_position(search, name, each) for each in done] for name in names]
    columns.append(list(shares))
    colors = colormaps["viridis_r"]
    for row in np.argsort(good):
        heights = [column[row] for column in columns]
        place.plot(range(len(columns)), heights, color=colors(good[row]), lw=1.3, alpha=0.8)
    place.grid(visible=False)
    for x, name in enumerate(names):
        place.axvline(x, color="0.4", lw=0.8)
        for height, label in _ticks(search, name):
            place.text(x + 0.03, height, label, fontsize=7, va="center")
    place.axvline(len(names), color="0.4", lw=0.8)
    for height, value in ((0.0, low), (1.0, high)):
        place.text(len(names) + 0.03, height, number(float(value)), fontsize=7, va="center")
    shown = [name.rpartition(".")[2] for name in names]
    place.set_xticks(range(len(columns)), [*shown, search.monitor.metric])
    place.set_yticks([])
    place.set_xlim(-0.1, len(names) + 0.4)
    for side in ("left", "bottom"):
        place.spines[side].set_visible(False)
    return figure


def _position(search: Search, name: str, trial: Trial) -> float:
    """The height of a trial's setting, from 0 to 1."""
    dimension, value = search.space[name], trial.settings.get(name)
    if dimension.kind == "choice":
        texts = [_text(each) for each in dimension.value]
        return texts.index(_text(value)) / max(1, len(texts) - 1) if _text(value) in texts else 0.0
    scaled = np.array([*dimension.value, value], float)
    if dimension.kind == "log_uniform":
        scaled = np.log(scaled)
    low, high, here = scaled
    return float((here - low) / ((high - low) or 1.0))


def _ticks(search: Search, name: str) -> Sequence[tuple[float, str]]:
    dimension = search.space[name]
    if dimension.kind == "choice":
        last = max(1, len(dimension.value) - 1)
        return [(place / last, _text(each)) for place, each in enumerate(dimension.value)]
    return [(float(place), f"{each:g}") for place, each in enumerate(dimension.value)]


def importance(search: Search) -> Figure | None:
    """How much of the differences between trials each setting explains (functional ANOVA)."""
    from optuna.importance import get_param_importances

    done = [each for each in search.trials() if each.state == "complete"]
    if len(done) < _MIN_FOR_IMPORTANCE or len({each.value for each in done}) == 1:
        return None
    shares = get_param_importances(search.study)
    return plots.bars(list(shares), list(shares.values()), None, "share of the variance")
