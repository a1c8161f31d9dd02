"""The plots of the HTML report, drawn by matplotlib (the extra [plot]).

Each function takes numbers and returns a `Figure`; `png` encodes it. matplotlib's global state is
not used: no pyplot, no backend; styles apply inside `style()` only.
"""

from __future__ import annotations

import functools
import io
import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import explain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_P = ParamSpec("_P")
Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]
"""Steps and values by name."""

# Okabe and Ito's colours, distinguishable with colour blindness.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#b8a900")
MAX_CLASSES = 20
"""The maximum to draw: more would be unreadable."""

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "figure.constrained_layout.h_pad": 0.1,
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "text.parse_math": False,  # column names may contain dollar signs
}


def styled(draw: Callable[_P, Figure]) -> Callable[_P, Figure]:
    """Decorator: draws in the report's style."""

    @functools.wraps(draw)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> Figure:
        try:
            from matplotlib import rc_context
        except ImportError as error:
            raise ImportError(
                explain(
                    "reports need matplotlib",
                    received=str(error),
                    hint="pip install 'estimatorkit[plot]'",
                )
            ) from error
        with rc_context(_STYLE):
            return draw(*args, **kwargs)

    return drawn


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def axes(figure: Figure, rows: int = 1, columns: int = 1) -> list[Axes]:
    """The axes of a figure, row by row."""
    return list(figure.subplots(rows, columns, squeeze=False).reshape(-1))


def png(figure: Figure) -> bytes:
    """A figure as a PNG file at twice the standard density."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=144, metadata={"Software": None})
    return stream.getvalue()


@styled
def curves(plots: Mapping[str, Series], over: str = "step") -> Figure:
    """Learning curves: the series of each metric; `over` labels the horizontal axis."""
    columns = min(3, len(plots))
    rows = -(-len(plots) // columns)
    figure = new_figure(3.4 * columns if columns > 1 else 6.0, 2.5 * rows)
    places = axes(figure, rows, columns)
    names = dict.fromkeys(name for series in plots.values() for name in series)
    colors = dict(zip(names, itertools.cycle(COLORS), strict=False))
    for place, (metric, series) in zip(places, plots.items(), strict=False):
        place.set_title(metric)
        for name, (steps, values) in series.items():
            mark, color = "o" if len(steps) < 40 else "", colors[name]
            place.plot(steps, values, color=color, marker=mark, markersize=3, label=name, lw=1.3)
        place.set_xlabel(over)
        place.xaxis.set_major_locator(_few_integers())
    if len(names) > 1:  # one for all, beside the curves
        lines = {line.get_label(): line for place in places for line in place.get_lines()}
        shown = list(lines.values())[:12]
        figure.legend(handles=shown, loc="outside lower center", ncols=min(6, len(shown)))
    for place in places[len(plots) :]:
        place.set_axis_off()
    return figure


def _few_integers() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=5, integer=True)


@styled
def confusion(counts: NDArray[Any], names: Sequence[str]) -> Figure:
    """A confusion matrix: rows are labels, columns predictions, normalized colours per row."""
    size = len(names)
    side = min(9.0, 2.6 + 0.5 * size)
    figure = new_figure(side + 0.8, side)
    (place,) = axes(figure)
    place.grid(visible=False)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = place.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=place, label="share of the label", shrink=0.8)
    shown = [_short(name) for name in names]
    turned = max(map(len, shown)) * size > 24
    place.set_xticks(
        range(size), shown, rotation=45 if turned else 0, ha="right" if turned else "center"
    )
    place.set_yticks(range(size), shown)
    place.set_xlabel("prediction")
    place.set_ylabel("label")
    for row in range(size):
        for column in range(size):
            color = "white" if shares[row, column] > 0.55 else "black"
            text = f"{counts[row, column]:,}"
            place.text(column, row, text, ha="center", va="center", color=color, fontsize=8)
    return figure


def _short(name: str) -> str:
    return name if len(name) <= 18 else name[:17] + "…"


@styled
def roc_and_precision(
    hits: NDArray[Any],
    scores: NDArray[Any],
    names: Sequence[str],
    decided: NDArray[Any],
    areas: Mapping[str, float] = MappingProxyType({}),
) -> Figure:
    """ROC and precision-recall curves, one per class, and where on them the predicted classes are.

    Args:
        hits: bool `(rows, classes)`: whether the row is of the class.
        scores: float `(rows, classes)`.
        names: of the classes.
        decided: bool `(rows, classes)`: whether the row is predicted to be of the class.
        areas: the metrics of a model of two classes: its 'auc' and 'average_precision' are shown,
            if they are there, in place of those of these rows.
    """
    from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_curve

    figure = new_figure(9.4, 4.2)
    left, right = axes(figure, 1, 2)
    left.plot([0, 1], [0, 1], color="0.7", lw=1, ls="--")
    for number, name in enumerate(names):
        truth, score = hits[:, number], scores[:, number]
        if truth.all() or not truth.any():
            continue  # a class with no or all examples has no curve
        color = COLORS[number % len(COLORS)]
        false, true, _ = roc_curve(truth, score)
        area = areas.get("auc", auc(false, true))
        left.plot(false, true, color=color, label=f"{_short(name)}: area {area:.4f}")
        precision, recall, _ = precision_recall_curve(truth, score)
        average = areas.get("average_precision", average_precision_score(truth, score))
        right.plot(recall, precision, color=color, label=f"{_short(name)}: average {average:.4f}")
        chosen = decided[:, number]
        dot: dict[str, Any] = {"color": color, "marker": "o", "markersize": 6}
        left.plot([chosen[~truth].mean()], [chosen[truth].mean()], **dot)
        if chosen.any():
            right.plot([chosen[truth].mean()], [truth[chosen].mean()], **dot)
    if len(names) == 1:
        right.axhline(float(hits.mean()), color="0.7", lw=1, ls="--")
    for place, title, across, up in (
        (left, "ROC", "false positives", "true positives"),
        (right, "Precision and recall", "recall", "precision"),
    ):
        place.set_title(title)
        place.set_xlabel(across)
        place.set_ylabel(up)
        place.set_xlim(-0.02, 1.02)
        place.set_ylim(-0.02, 1.04)
        if place.get_legend_handles_labels()[1]:
            place.legend(loc="lower right" if place is left else "lower left", fontsize=8)
    return figure


@styled
def calibration(
    hits: NDArray[Any], scores: NDArray[Any], groups: Mapping[str, NDArray[Any]], what: str
) -> Figure:
    """A calibration curve (observed frequency per predicted probability), and a histogram.

    Args:
        hits: bool `(rows,)`: the outcomes.
        scores: float `(rows,)`: the predicted probabilities.
        groups: masks of rows by name, each with its own colour in the histogram.
        what: the event predicted.
    """
    figure = new_figure(9.4, 3.8)
    left, right = axes(figure, 1, 2)
    edges = np.linspace(0, 1, 11)
    bins = np.clip(np.digitize(scores, edges) - 1, 0, 9)
    counts = np.bincount(bins, minlength=10)
    filled = counts > 0
    said = np.bincount(bins, scores, minlength=10)[filled] / counts[filled]
    found = np.bincount(bins, hits, minlength=10)[filled] / counts[filled]
    low, high = _interval(found, counts[filled])
    left.plot([0, 1], [0, 1], color="0.7", lw=1, ls="--")
    left.errorbar(
        said,
        found,
        [found - low, high - found],
        color=COLORS[0],
        marker="o",
        markersize=4,
        capsize=2,
    )
    left.set_title("Calibration")
    left.set_xlabel(f"mean probability of {what}")
    left.set_ylabel("share that was so")
    left.set_xlim(-0.02, 1.02)
    left.set_ylim(-0.04, 1.04)
    right.set_title("Scores")
    right.hist(
        [scores[rows] for rows in groups.values()],
        np.linspace(0, 1, 21).tolist(),
        stacked=True,
        color=list(COLORS[: len(groups)]),
        label=[_short(name) for name in groups],
    )
    right.set_xlabel(f"probability of {what}")
    right.set_ylabel("examples")
    right.legend(loc="best")
    return figure


def _interval(shares: NDArray[Any], counts: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Wilson's 95 % confidence interval of shares of `counts` examples each."""
    z = 1.96
    center = (shares + z**2 / (2 * counts)) / (1 + z**2 / counts)
    half = z / (1 + z**2 / counts) * np.sqrt(shares * (1 - shares) / counts + (z / counts) ** 2 / 4)
    return np.minimum(center - half, shares), np.maximum(center + half, shares)


@styled
def residuals(labels: NDArray[Any], predictions: NDArray[Any]) -> Figure:
    """Predictions against labels, residuals against predictions, and the residuals' histogram."""
    figure = new_figure(9.8, 3.4)
    first, second, third = axes(figure, 1, 3)
    # 3000 points show the shape; more would only overplot.
    step = max(1, len(labels) // 3000)
    some = slice(None, None, step)
    errors = labels - predictions
    dots: dict[str, Any] = {"s": 9, "alpha": 0.5, "color": COLORS[0], "linewidths": 0}
    low, high = (
        float(min(labels.min(), predictions.min())),
        float(max(labels.max(), predictions.max())),
    )
    first.plot([low, high], [low, high], color="0.7", lw=1, ls="--")
    first.scatter(labels[some], predictions[some], **dots)
    first.set(title="Predictions", xlabel="label", ylabel="prediction")
    second.axhline(0, color="0.7", lw=1, ls="--")
    second.scatter(predictions[some], errors[some], **dots)
    second.set(title="Residuals", xlabel="prediction", ylabel="label minus prediction")
    third.hist(errors, _edges(errors).tolist(), color=COLORS[0])
    third.set(title="Residuals' distribution", xlabel="label minus prediction", ylabel="examples")
    for place in (first, second, third):
        place.xaxis.set_major_locator(_few_numbers())
    return figure


def _edges(values: NDArray[Any]) -> NDArray[Any]:
    """The edges of 30 bins; if all values are equal up to rounding, around them."""
    low, high = float(values.min()), float(values.max())
    least = 1e-6 * max(1.0, abs(low), abs(high))
    if high - low < least:
        low, high = low - least, high + least
    return np.linspace(low, high, 31)


def _few_numbers() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=5)


@styled
def bars(
    names: Sequence[str],
    values: Sequence[float],
    errors: Sequence[float] | None,
    across: str,
    title: str = "",
) -> Figure:
    """Horizontal bars, the first on top; negative ones in another colour."""
    figure = new_figure(8.0, 0.9 + 0.27 * len(names))
    (place,) = axes(figure)
    place.grid(visible=False, axis="y")
    places = range(len(names))
    colors = [COLORS[0] if value >= 0 else COLORS[1] for value in values]
    place.barh(places, values, xerr=errors, color=colors, error_kw={"lw": 1, "ecolor": "0.35"})
    place.set_yticks(places, [name if len(name) <= 48 else name[:47] + "…" for name in names])
    place.set_ylim(len(names) - 0.4, -0.6)
    place.axvline(0, color="0.5", lw=0.8)
    place.set_xlabel(across)
    place.set_title(title, loc="left")
    return figure
