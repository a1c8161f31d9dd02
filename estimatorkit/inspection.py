"""What a trained model has learnt, as DataFrames of pandas.

`permutation_importance` asks how much worse a model gets when a feature's values are shuffled among
the rows; `linear_weights` lists the weights of linear models, and of the linear part of wide and
deep ones, with readable names; `explain` says what each feature adds to the prediction of a row.
`predict_table` predicts a table. (TensorFlow has no such module.)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import string
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.graph import Graph
from estimatorkit.data.readers.frames import as_columns
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.explanations import explained, score_of
from estimatorkit.estimator.integrated_gradients import integrated_gradients
from estimatorkit.estimator.prediction import LivePredictor
from estimatorkit.estimator.serving.predictor import Predictor
from estimatorkit.layers.feature_column import CategoricalColumn
from estimatorkit.layers.feature_column.categorical import IdentityColumn
from estimatorkit.layers.feature_column.crossed import CrossedColumn
from estimatorkit.layers.feature_column.features import Features
from estimatorkit.layers.feature_column.layers import as_scope
from estimatorkit.layers.feature_column.numeric import BucketizedColumn
from estimatorkit.layers.feature_column.vocabulary import VocabularyListColumn
from estimatorkit.lazy import listing
from estimatorkit.runtime.session import Session
from estimatorkit.storage.checkpoint import read_checkpoint

if TYPE_CHECKING:
    import pandas as pd

__dir__ = listing(__name__)
__all__ = [
    "METRICS",
    "explain",
    "label_ids",
    "linear_weights",
    "permutation_importance",
    "predict_table",
]

_ROWS = 8192
"""Rows of a call, about; all calls have the same shape, so that there is one compilation."""

_MAX_CROSSES = 200_000
"""Combinations of a cross that are hashed to name its buckets."""

Model = Estimator | LivePredictor
Score = Callable[[NDArray[Any], Mapping[str, NDArray[Any]]], float]


# -- predictions and metrics


class _Caller:
    """Predicts blocks of rows, all of one shape.

    A row's prediction depends in its last bits on its place in the block, so that whoever compares
    two predictions makes both at the same place.
    """

    def __init__(self, model: Model, checkpoint_path: str | None) -> None:
        if isinstance(model, Estimator):
            model = model.as_predictor(checkpoint_path)
        self._predictor = model

    def __call__(
        self, features: Any, places: Mapping[str, NDArray[Any]], rows: int
    ) -> dict[str, NDArray[Any]]:
        """The predictions of some rows.

        Args:
            features: arrays by key.
            places: the rows, by key, `(calls * rows,)`.
            rows: of a call.
        """
        count = len(next(iter(places.values())))
        parts = []
        for start in range(0, count, rows):
            here = slice(start, start + rows)
            parts.append(
                self._predictor.batch(
                    {key: each[places[key][here]] for key, each in features.items()}
                )
            )
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def predict_table(
    estimator: Model, features: Any, checkpoint_path: str | None = None
) -> dict[str, NDArray[Any]]:
    """Predicts a table.

    Args:
        estimator: a trained estimator whose predictions are a dict, or its `as_predictor()`.
        features: arrays by key, `(rows, ...)`, or a DataFrame.
        checkpoint_path: the checkpoint; the newest by default.

    Returns:
        Predictions by key, `(rows, ...)`.

    Raises:
        ValueError: there is no trained model, or the features do not fit it.
    """
    table, count = _opened(features)
    rows = min(count, _ROWS)
    places = np.minimum(np.arange(math.ceil(count / rows) * rows), count - 1)
    found = _Caller(estimator, checkpoint_path)(table, dict.fromkeys(table, places), rows)
    return {key: each[:count] for key, each in found.items()}


def _opened(features: Any) -> tuple[dict[str, NDArray[Any]], int]:
    columns = as_columns(features)
    if not isinstance(columns, Mapping):
        raise value_error(
            "features are not a table",
            expected="a dict of arrays, or a DataFrame",
            received=type(features).__name__,
        )
    table = {str(key): np.asarray(value) for key, value in columns.items()}
    counts = {key: len(value) for key, value in table.items()}
    if len(set(counts.values())) != 1 or not next(iter(counts.values())):
        raise value_error(
            "features have different numbers of rows, or no rows",
            expected="the same number of rows, at least 1",
            received=counts,
        )
    return table, next(iter(counts.values()))


def label_ids(labels: Any, predictions: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """The class of each label as a number, int64 `(rows,)`.

    Args:
        labels: class ids, or words of the model's vocabulary.
        predictions: the predictions of a classifier, by key.

    Raises:
        ValueError: a label is not a class.
    """
    given = np.asarray(labels).reshape(-1)
    if given.dtype.kind in "iubf":
        return given.astype(np.int64)
    names = names_of_classes(predictions)
    places = {name: place for place, name in enumerate(names)}
    texts = [each.decode() if isinstance(each, bytes) else str(each) for each in given]
    unknown = sorted(set(texts) - set(places))
    if unknown:
        raise value_error(
            "labels are not classes of the model", expected=names, received=unknown[:5]
        )
    return np.array([places[text] for text in texts], np.int64)


def names_of_classes(predictions: Mapping[str, NDArray[Any]]) -> list[str]:
    """The names of a classifier's classes."""
    known = predictions.get("all_classes")
    if known is None:
        return [str(number) for number in range(predictions["probabilities"].shape[-1])]
    return [each.decode() if isinstance(each, bytes) else str(each) for each in known[0]]


def _accuracy(labels: NDArray[Any], predictions: Mapping[str, NDArray[Any]]) -> float:
    found = predictions["class_ids"].reshape(-1)
    return float(np.mean(found == label_ids(labels, predictions)))


def _auc(labels: NDArray[Any], predictions: Mapping[str, NDArray[Any]]) -> float:
    from sklearn.metrics import roc_auc_score

    shares, ids = predictions["probabilities"], label_ids(labels, predictions)
    if shares.shape[-1] == 2:
        return float(roc_auc_score(ids, shares[:, 1]))
    one_hot = np.eye(shares.shape[-1])[ids]
    return float(roc_auc_score(one_hot, shares, average="macro"))


def _average_precision(labels: NDArray[Any], predictions: Mapping[str, NDArray[Any]]) -> float:
    from sklearn.metrics import average_precision_score

    shares, ids = predictions["probabilities"], label_ids(labels, predictions)
    one_hot = np.eye(shares.shape[-1])[ids]
    first = 1 if shares.shape[-1] == 2 else 0  # of two classes, the second
    return float(average_precision_score(one_hot[:, first:], shares[:, first:], average="macro"))


def _log_loss(labels: NDArray[Any], predictions: Mapping[str, NDArray[Any]]) -> float:
    shares = np.asarray(predictions["probabilities"], np.float64)
    chosen = shares[np.arange(len(shares)), label_ids(labels, predictions)]
    return -float(np.mean(np.log(np.maximum(chosen, 1e-12))))


def _errors(labels: NDArray[Any], predictions: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    found = np.asarray(predictions["predictions"], np.float64)
    return found - np.asarray(labels, np.float64).reshape(found.shape)


def _rmse(labels: NDArray[Any], predictions: Mapping[str, NDArray[Any]]) -> float:
    return math.sqrt(np.mean(_errors(labels, predictions) ** 2))


def _mae(labels: NDArray[Any], predictions: Mapping[str, NDArray[Any]]) -> float:
    return float(np.mean(np.abs(_errors(labels, predictions))))


def _r2(labels: NDArray[Any], predictions: Mapping[str, NDArray[Any]]) -> float:
    errors = _errors(labels, predictions)
    numbers = np.asarray(labels, np.float64).reshape(errors.shape)
    spread = np.sum((numbers - numbers.mean(axis=0)) ** 2)
    return float(1 - np.sum(errors**2) / spread) if spread else math.nan


METRICS: dict[str, tuple[Score, bool]] = {
    "accuracy": (_accuracy, True),
    "auc": (_auc, True),
    "average_precision": (_average_precision, True),
    "log_loss": (_log_loss, False),
    "mae": (_mae, False),
    "r2": (_r2, True),
    "rmse": (_rmse, False),
}
"""By name: the function of (labels, predictions by key), and whether more is better."""


# -- permutation importance


def permutation_importance(
    estimator: Model,
    features: Any,
    labels: Any,
    metric: str | Score | None = None,
    repeats: int = 5,
    seed: int = 0,
    keys: Sequence[str] | None = None,
    checkpoint_path: str | None = None,
) -> pd.DataFrame:
    """Measures how much a model's metric degrades when the values of one feature are shuffled.

    A feature that does not change predictions has importance 0, exactly. Breiman 2001, "Random
    Forests"; as `sklearn.inspection.permutation_importance`.

    Args:
        estimator: a trained classifier or regressor, or its `as_predictor()`.
        features: arrays by key, `(rows, ...)`, or a DataFrame; preferably of rows that the model
            was not trained on.
        labels: `(rows,)`, as returned by the model's `input_fn`.
        metric: one of `METRICS`, or a function of the labels and the predictions by key for which
            higher is better. By default 'log_loss' for classifiers, of which the accuracy may not
            change at all where a class is rare; 'r2' for others.
        repeats: the number of shuffles of each feature.
        seed: the seed of the shuffles; the same seed yields the same result.
        keys: the features; all by default.
        checkpoint_path: the checkpoint; the newest by default.

    Returns:
        One row per feature, the most important first: `importance` (mean over the repeats),
        `deviation`, and `repeat_0`, ...

    Raises:
        ValueError: an argument is invalid.
    """
    import pandas as pd

    table, count = _opened(features)
    truth = np.asarray(as_columns(labels))
    chosen = list(table) if keys is None else list(keys)
    for key in chosen:
        if key not in table:
            raise value_error(
                f"there is no feature {key!r}",
                expected=f"one of {sorted(table)}",
                received=repr(key),
                hint=did_you_mean(key, table),
            )
    if repeats < 1 or len(truth) != count:
        raise value_error(
            "repeats is too small, or the number of labels is wrong",
            expected=f"repeats >= 1, {count} labels",
            received=f"repeats={repeats}, {len(truth)} labels",
        )
    random = np.random.default_rng(seed)
    orders = [random.permutation(count) for _ in range(repeats)]
    tasks = list(itertools.product(chosen, range(repeats)))
    # A block is several copies of the table; the unchanged copies at the same places come first.
    copies = max(1, min(_ROWS // count, len(tasks)))
    rows = min(copies * count, _ROWS)
    padded = math.ceil(copies * count / rows) * rows
    straight = np.resize(np.tile(np.arange(count), copies), padded)
    call = _Caller(estimator, checkpoint_path)
    base = call(table, dict.fromkeys(table, straight), rows)
    score, better = _score(metric, base)

    def scores(found: Mapping[str, NDArray[Any]]) -> list[float]:
        parts = (slice(start, start + count) for start in range(0, copies * count, count))
        return [score(truth, {key: each[part] for key, each in found.items()}) for part in parts]

    before = scores(base)
    losses = np.zeros((len(chosen), repeats))
    for start in range(0, len(tasks), copies):
        block = tasks[start : start + copies]
        places = dict.fromkeys(table, straight)
        for copy, (key, repeat) in enumerate(block):
            if places[key] is straight:
                places[key] = straight.copy()
            places[key][copy * count : (copy + 1) * count] = orders[repeat]
        after = scores(call(table, places, rows))
        for copy, (key, repeat) in enumerate(block):
            loss = before[copy] - after[copy]
            losses[chosen.index(key), repeat] = loss if better or loss == 0 else -loss
    frame = pd.DataFrame(
        {
            "importance": losses.mean(axis=1),
            "deviation": losses.std(axis=1),
            **{f"repeat_{number}": losses[:, number] for number in range(repeats)},
        },
        index=pd.Index(chosen, name="feature"),
    )
    return frame.sort_values("importance", ascending=False, kind="stable")


def _score(
    metric: str | Score | None, predictions: Mapping[str, NDArray[Any]]
) -> tuple[Score, bool]:
    if callable(metric):
        return metric, True
    name = metric or ("log_loss" if "probabilities" in predictions else "r2")
    if name not in METRICS:
        raise value_error(
            f"there is no metric {name!r}",
            expected=f"one of {sorted(METRICS)}, or a function",
            received=repr(name),
            hint=did_you_mean(name, METRICS),
        )
    return METRICS[name]


# -- rows


def explain(
    estimator: Model | Predictor,
    features: Any,
    background: Any,
    output: str | None = None,
    method: Literal["permutation", "integrated_gradients"] = "permutation",
    seed: int = 0,
    checkpoint_path: str | None = None,
) -> pd.DataFrame:
    """What each feature adds to the predictions of rows: Shapley values, or integrated gradients.

    A feature's Shapley value is the mean change of the prediction when the feature takes the row's
    value in place of a background row's, over random orders of the features and their reverses
    (Castro et al. 2009; Mitchell et al. 2022): of every model, from predictions alone. Rows cost
    about 2 * background rows * features predictions each. Integrated gradients (Sundararajan et al.
    2017) are those of a network along the lines from the background rows, by the columns' tensors:
    without randomness, and words are their embeddings. Contributions and baseline sum to the
    prediction, and of a linear model they are w (x - mean of the background), with both methods.

    Args:
        estimator: a trained classifier or regressor, its `as_predictor()`, or an exported model
            (`load_predictor`).
        features: the rows to explain: arrays by key, `(rows, ...)`, or a DataFrame.
        background: what features are when they are unknown: some 32 training rows, for example; or
            one row that the others are compared with.
        output: the key of the prediction to explain. By default the number that a regressor
            predicts, or a probability: of class 1 of two classes, of more of the one that is
            predicted for the row.
        method: 'permutation', or 'integrated_gradients' of an `Estimator` that is a network or a
            linear model, and of rows without missing numbers; contributions are then those of
            columns: under the key that one reads, or the name of a cross.
        seed: the seed of the orders.
        checkpoint_path: the checkpoint; the newest by default.

    Returns:
        One row per row: `baseline`, the mean prediction of the background, and a contribution for
        each feature. The sum of a row is its prediction.

    Raises:
        ValueError: an argument is invalid, or several numbers are predicted for a row.
    """
    import pandas as pd

    rows, _ = _opened(features)
    others, _ = _opened(background)
    if method == "integrated_gradients":
        if not isinstance(estimator, Estimator):
            raise value_error(
                "integrated gradients are of an estimator",
                expected="an Estimator",
                received=type(estimator).__name__,
                hint="method='permutation' explains every model",
            )
        found = integrated_gradients(estimator, rows, others, output, checkpoint_path)
        return pd.DataFrame({"baseline": found.baseline, **found.contributions})
    if isinstance(estimator, Predictor):
        predict: Callable[[Any], Any] = estimator
    else:
        live = (
            estimator.as_predictor(checkpoint_path)
            if isinstance(estimator, Estimator)
            else estimator
        )
        predict = live.batch
    found = explained(score_of(predict, rows, output), rows, others, seed)
    return pd.DataFrame({"baseline": found.baseline, **found.contributions})


# -- linear weights


def linear_weights(
    estimator: Estimator,
    class_names: Sequence[str] | None = None,
    checkpoint_path: str | None = None,
) -> pd.DataFrame:
    """The weights of a linear model, or of the linear part of a wide and deep one.

    Args:
        estimator: a trained premade estimator with a linear part.
        class_names: the names of the classes, for a model of more than two; numbers by default.
        checkpoint_path: the checkpoint; the newest by default.

    Returns:
        One row per weight, in the order of the model's columns, with: `column`; `value`: the word,
        number, range, or combination of these that the weight is for ('' for a numeric column with
        a single number, and for the bias; several, joined by ' | ', if they share a bucket of a
        cross); `class`, if there are several; `weight`.

    Raises:
        ValueError: the model has no linear part, or there is no trained model.
    """
    import pandas as pd

    columns = linear_columns(estimator)
    if not columns:
        raise value_error(
            "the model has no linear part",
            expected="a LinearClassifier, a LinearRegressor, or a DNNLinearCombined model with "
            "linear_feature_columns",
            received=repr(estimator),
        )
    path = estimator._checkpoint_or_error(checkpoint_path)
    prefix = "linear/linear_model/"
    tensors = read_checkpoint(path).tensors
    parts = []
    for column in sorted(columns, key=lambda column: column.name):
        weights = tensors[f"{prefix}{as_scope(column.scope_name)}/weights"]
        parts.append((column.name, value_names(column, len(weights)), weights))
    parts.append(("bias", [""], tensors[f"{prefix}bias_weights"][None]))
    frames = []
    for name, values, weights in parts:
        units = weights.shape[1]
        names = list(class_names or range(units))
        frame = {"column": name, "value": np.repeat(np.array(values, object), units)}
        if units > 1:
            frame["class"] = np.tile(np.array(names, object), len(values))
        frames.append(pd.DataFrame({**frame, "weight": weights.reshape(-1)}))
    return pd.concat(frames, ignore_index=True)


def linear_columns(estimator: Estimator) -> Sequence[Any]:
    """The columns of a model's linear part; none where it has no such part."""
    parts = getattr(estimator, "parts", ())
    return next((part.columns for part in parts if part.scope == "linear"), ())


def value_names(column: Any, count: int) -> list[str]:
    """What the weights of a column are for.

    Args:
        column: a feature column.
        count: how many weights it has.
    """
    if isinstance(column, CrossedColumn):
        return _crossed_names(column)
    known = _known_values(column)
    if known is not None:
        names = [name for name, _ in known]
        return names + [f"other {number}" for number in range(count - len(names))]
    if isinstance(column, BucketizedColumn):
        numbers = column.source_column.shape[0]
        return [f"[{place}] {text}" for place in range(numbers) for text in _ranges(column)]
    if isinstance(column, CategoricalColumn):
        return [f"bucket {number}" for number in range(count)]
    return [""] if count == 1 else [f"[{number}]" for number in range(count)]


def _ranges(column: BucketizedColumn) -> list[str]:
    ends = [f"{each:.6g}" for each in column.boundaries]
    inner = [f"{low} to {high}" for low, high in itertools.pairwise(ends)]
    return [f"below {ends[0]}", *inner, f"from {ends[-1]}"]


def _known_values(column: Any) -> list[tuple[str, Any]] | None:
    """The names of a column's ids in their order, each with a raw value that has this id."""
    if isinstance(column, VocabularyListColumn):
        texts = [
            each.decode() if isinstance(each, bytes) else str(each)
            for each in column.vocabulary_list
        ]
        return list(zip(texts, column.vocabulary_list, strict=True))
    if isinstance(column, IdentityColumn):
        return [(str(number), number) for number in range(column.num_buckets)]
    if isinstance(column, BucketizedColumn) and column.source_column.shape == (1,):
        low = math.nextafter(column.boundaries[0], -math.inf) - 1.0
        return list(zip(_ranges(column), (low, *column.boundaries), strict=True))
    return None


def _crossed_names(column: CrossedColumn) -> list[str]:
    """The combinations of each bucket, where all values are known."""
    found: list[list[str]] = [[] for _ in range(column.hash_bucket_size)]
    known = [_known_values(leaf) for leaf in column.leaves]
    raw_keys = [_raw_key(leaf) for leaf in column.leaves]
    size = math.prod(len(values) for values in known if values is not None)
    clear = all(values is not None for values in known) and len(set(raw_keys)) == len(raw_keys)
    if clear and size <= _MAX_CROSSES:
        combinations = list(itertools.product(*(values for values in known if values is not None)))
        for number, id_ in enumerate(_ids(column, raw_keys, combinations)):
            found[id_].append(" & ".join(name for name, _ in combinations[number]))
    return [
        " | ".join(names[:3]) + (f" | {len(names) - 3} more" if len(names) > 3 else "")
        if names
        else f"bucket {bucket}" + (" (never met)" if clear and size <= _MAX_CROSSES else "")
        for bucket, names in enumerate(found)
    ]


def _raw_key(leaf: Any) -> str:
    if isinstance(leaf, str):
        return leaf
    return str(leaf.source_column.key if isinstance(leaf, BucketizedColumn) else leaf.key)


def _ids(column: CrossedColumn, keys: Sequence[str], combinations: Sequence[Any]) -> NDArray[Any]:
    """The buckets of combinations of raw values."""
    features = {}
    with Graph().as_default() as graph:
        for place, (key, leaf) in enumerate(zip(keys, column.leaves, strict=True)):
            values = [[combination[place][1]] for combination in combinations]
            dtype = getattr(leaf, "dtype", None)
            if isinstance(leaf, BucketizedColumn):
                features[key] = constant(np.array(values, np.float32))
            elif dtype is string:
                features[key] = constant(np.array(values, object), string)
            else:
                features[key] = constant(np.array(values, np.int64))
        ids = column.transform(Features(features)).ids
        with Session(graph=graph) as session:
            return np.asarray(session.run(ids)).reshape(-1)
