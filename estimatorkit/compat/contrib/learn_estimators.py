"""`tf.contrib.learn`'s estimators: `fit`, `evaluate` and `predict` on top of `tf.estimator`'s.

Each wraps an estimator (`core`). Arrays may be given instead of an `input_fn`.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.errors import value_error
from estimatorkit.core.nest import map_structure
from estimatorkit.core.tensor import Tensor
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.arguments import arguments_of
from estimatorkit.estimator.estimator import Estimator as CoreEstimator
from estimatorkit.estimator.extenders import add_metrics
from estimatorkit.estimator.serving.serving_inputs import ServingInputReceiver
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys as _ModeKeys


class ModelFnOps(NamedTuple):
    """The result of a `model_fn` of `contrib.learn.Estimator`; see `tf.estimator.EstimatorSpec`.

    `output_alternatives` is accepted for compatibility only: the predictions are exported.
    """

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metric_ops: Any = None
    output_alternatives: Any = None
    training_chief_hooks: Any = None
    training_hooks: Any = None
    scaffold: Any = None

    def estimator_spec(self, default_serving_output_alternative_key: Any = None) -> EstimatorSpec:
        """The equivalent `EstimatorSpec`."""
        parts = self._asdict()
        del parts["output_alternatives"]
        return EstimatorSpec(**parts)


class InputFnOps(NamedTuple):
    """The result of a `serving_input_fn`: features, labels (None) and the fed tensors."""

    features: Any
    labels: Any
    default_inputs: Any


def as_receiver_fn(serving_input_fn: Callable[[], Any]) -> Callable[[], Any]:
    """Converts a function that may return `InputFnOps` to a `serving_input_receiver_fn`."""

    def receiver() -> Any:
        made = serving_input_fn()
        if isinstance(made, InputFnOps):
            return ServingInputReceiver(made.features, made.default_inputs)
        return made

    return receiver


class MetricSpec:
    """A metric of an evaluation.

    Args:
        metric_fn: takes predictions, labels and, with a `weight_key`, weights; returns a (value,
            update) pair.
        prediction_key: selects a prediction; None if there is only one.
        label_key: selects a label; None if there is only one.
        weight_key: the feature with the weights.
    """

    def __init__(
        self,
        metric_fn: Callable[..., Any],
        prediction_key: str | None = None,
        label_key: str | None = None,
        weight_key: str | None = None,
    ) -> None:
        self.metric_fn = metric_fn
        self.prediction_key = prediction_key
        self.label_key = label_key
        self.weight_key = weight_key

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """The (value, update) pair for given tensors.

        Raises:
            ValueError: there are several predictions or labels, and no key selects one.
        """
        chosen = self._chosen("prediction", predictions, self.prediction_key)
        wanted = self._chosen("label", labels, self.label_key)
        weights = {} if self.weight_key is None else {"weights": inputs[self.weight_key]}
        names = list(inspect.signature(self.metric_fn).parameters)
        if "labels" in names and "predictions" in names:
            return self.metric_fn(labels=wanted, predictions=chosen, **weights)
        return self.metric_fn(chosen, wanted, **weights)

    @staticmethod
    def _chosen(what: str, values: Any, key: str | None) -> Any:
        if not isinstance(values, Mapping):
            return values
        if key is None and len(values) == 1:
            return next(iter(values.values()))
        if key is None or key not in values:
            raise value_error(
                f"MetricSpec without a {what}_key that exists",
                expected=f"one of {', '.join(values)}",
                received=repr(key),
            )
        return values[key]


class Learner:
    """`fit`, `evaluate` and `predict` of an estimator.

    Args:
        core: the `tf.estimator.Estimator`.
    """

    _array_key: str | None = None  # models with columns take features by name

    def __init__(self, core: CoreEstimator) -> None:
        self.core = core

    @property
    def model_dir(self) -> str:
        """The directory of checkpoints and logs."""
        return self.core.model_dir

    @property
    def config(self) -> Any:
        """The `RunConfig`."""
        return self.core.config

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[..., Any] | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Any = None,
        max_steps: int | None = None,
    ) -> Self:
        """Trains.

        Args:
            x: features: an array `(rows, ...)`, or a dict of them; shuffled and repeated.
            y: labels, `(rows, ...)`.
            input_fn: instead of `x` and `y`; as for `tf.estimator`.
            steps: the number of additional steps.
            batch_size: rows per batch; all by default.
            monitors: hooks.
            max_steps: the final global step.

        Raises:
            ValueError: both or neither of `x` and `input_fn` are given.
        """
        given = self._input(x, y, input_fn, batch_size, training=True)
        self.core.train(given, monitors, steps, max_steps)
        return self

    partial_fit = fit

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[..., Any] | None = None,
        feed_fn: Any = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Mapping[str, MetricSpec] | None = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: Any = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:
        """Evaluates the latest checkpoint, or the given one; see `fit`.

        Args:
            metrics: additional metrics by name: `MetricSpec`s, or functions of predictions and
                labels.
            feed_fn, log_progress: accepted for compatibility only.
        """
        given = self._input(x, y, input_fn, batch_size, training=False)
        return with_metrics(self.core, metrics).evaluate(given, steps, hooks, checkpoint_path, name)

    def predict(
        self,
        x: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """Predicts; see `fit`.

        Args:
            outputs: the names of the predictions to return.
            as_iterable: iterate over examples; otherwise return arrays of all.
            iterate_batches: accepted for compatibility only.
        """
        given = self._input(x, None, input_fn, batch_size, training=False)
        rows = self.core.predict(given, outputs)
        return rows if as_iterable else _stacked(list(rows))

    def get_variable_names(self) -> list[str]:
        """The names of the variables in the latest checkpoint."""
        return self.core.get_variable_names()

    def get_variable_value(self, name: str) -> NDArray[Any]:
        """The value of a variable in the latest checkpoint."""
        return self.core.get_variable_value(name)

    def export_savedmodel(
        self,
        export_dir_base: str | os.PathLike[str],
        serving_input_fn: Callable[[], Any],
        default_output_alternative_key: str | None = None,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
    ) -> Any:
        """Exports the model; see `tf.estimator.Estimator.export_savedmodel`."""
        return self.core.export_savedmodel(
            export_dir_base,
            as_receiver_fn(serving_input_fn),
            assets_extra,
            as_text,
            checkpoint_path,
        )

    def _input(
        self,
        x: Any,
        y: Any,
        input_fn: Callable[..., Any] | None,
        batch_size: int | None,
        training: bool,
    ) -> Callable[..., Any]:
        if (x is None) == (input_fn is None):
            raise ValueError("Either x or input_fn must be provided, and not both.")
        if input_fn is not None:
            return input_fn
        if isinstance(x, Mapping):
            features: Any = {name: _array(value) for name, value in x.items()}
            rows = len(next(iter(features.values())))
        else:
            features = _array(x)
            rows = len(features)
            if self._array_key is not None:
                features = {self._array_key: features}
        everything = features if y is None else (features, _array(y))

        def dataset() -> Dataset:
            data = Dataset.from_tensor_slices(everything)
            if training:
                data = data.shuffle(rows).repeat()
            return data.batch(batch_size or rows)

        return dataset


def _array(values: Any) -> NDArray[Any]:
    found = np.asarray(values)
    return found.astype(np.float32) if found.dtype == np.float64 else found


def _stacked(rows: list[Any]) -> Any:
    if rows and isinstance(rows[0], Mapping):
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    return np.stack(rows)


def with_metrics(core: CoreEstimator, metrics: Mapping[str, Any] | None) -> CoreEstimator:
    """An estimator with additional evaluation metrics (`MetricSpec`s by name)."""
    if not metrics:
        return core

    def metric_fn(features: Any, labels: Any, predictions: Any) -> dict[str, Any]:
        return {
            name: (each if isinstance(each, MetricSpec) else MetricSpec(each)).create_metric_ops(
                features, labels, predictions
            )
            for name, each in metrics.items()
        }

    return add_metrics(core, metric_fn)


class Estimator(Learner):
    """An estimator of a model function of `contrib.learn`.

    Args:
        model_fn: takes features and labels, and `mode`, `params`, `config` and `model_dir` if it
            has such arguments. It returns `ModelFnOps`, an `EstimatorSpec`, or a tuple of
            predictions, loss and train operation. In a prediction after a training or an evaluation
            the labels are placeholders like those; before, None.
        model_dir, config, params: as for `tf.estimator.Estimator`.
        feature_engineering_fn: maps features and labels to new ones.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | os.PathLike[str] | None = None,
        config: Any = None,
        params: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
    ) -> None:
        names = arguments_of(model_fn)[2:]
        stand_in: Callable[[], Any] = type(None)

        def adapted(
            features: Any, labels: Any, mode: str, params: Any, config: Any
        ) -> EstimatorSpec:
            nonlocal stand_in
            if labels is None and mode == _ModeKeys.PREDICT:
                labels = stand_in()
            elif mode != _ModeKeys.PREDICT:
                stand_in = _placeholders_like(labels)
            if feature_engineering_fn is not None:
                features, labels = feature_engineering_fn(features, labels)
            known = {"mode": mode, "params": params, "config": config}
            known["model_dir"] = config.model_dir
            made = model_fn(features, labels, **{name: known[name] for name in names})
            if isinstance(made, EstimatorSpec):
                return made
            if isinstance(made, ModelFnOps):
                return made.estimator_spec()
            if isinstance(made, tuple) and len(made) == 3:
                predictions, loss, train_op = made
                return ModelFnOps(mode, predictions, loss, train_op).estimator_spec()
            raise ValueError("Unrecognized value returned by model_fn, please return ModelFnOps.")

        given = params.values() if hasattr(params, "parse_json") else params
        super().__init__(CoreEstimator(adapted, model_dir, config, given))


def _placeholders_like(labels: Any) -> Callable[[], Any]:
    """A function that makes a placeholder for each dense tensor of some labels."""

    def maker(label: Any) -> Callable[[], Any]:
        if not isinstance(label, Tensor):
            return type(None)
        return functools.partial(placeholder, label.dtype, label.shape)

    makers = map_structure(maker, labels)
    return lambda: map_structure(lambda make: make(), makers)


__all__ = ["Estimator", "InputFnOps", "Learner", "MetricSpec", "ModelFnOps"]
