"""scikit-learn estimators around Keras-style models (`tf.keras.wrappers.scikit_learn`, TensorFlow
2.11).

A wrapper takes a function that creates a compiled model, and calls it in `fit`. Unlike in Keras,
`fit` returns the wrapper, as scikit-learn requires; `model.fit(x, y).history["loss"]` returns the
losses in both.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from estimatorkit._sklearn_base import Parameters, probabilities as exact
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.keras.engine.model import Model
from estimatorkit.lazy import listing

__dir__ = listing(__name__)

_CATEGORICAL = ("categorical_crossentropy", "CategoricalCrossentropy")


class BaseWrapper(Parameters):
    """Base class of `KerasClassifier` and `KerasRegressor`.

    Args:
        build_fn: a function that returns a compiled model; None if the subclass does this in
            `__call__`.
        sk_params: arguments of `build_fn`, and of the model's `fit`, `predict` and `evaluate`, such
            as `epochs` and `batch_size`; all are hyperparameters for scikit-learn's searches.

    Raises:
        ValueError: a parameter in `sk_params` is unknown.
    """

    def __init__(self, build_fn: Callable[..., Any] | None = None, **sk_params: Any) -> None:
        self.build_fn = build_fn
        for name, value in sk_params.items():
            setattr(self, name, value)
        self._check(sk_params)

    def _more_parameters(self) -> set[str]:
        functions = (self._builder(), Model.fit, Model.predict, Model.evaluate)
        return {name for each in functions for name in inspect.signature(each).parameters} - {
            "self",
            "x",
            "y",
            "kwargs",
        }

    def _builder(self) -> Callable[..., Any]:
        if self.build_fn is None:
            made: Callable[..., Any] = self.__call__
            return made
        return self.build_fn

    def _check(self, names: Mapping[str, Any]) -> None:
        known = self._more_parameters()
        builder = inspect.signature(self._builder()).parameters.values()
        if any(each.kind is each.VAR_KEYWORD for each in builder):
            return
        for name in names:
            if name not in known:
                raise value_error(
                    f"{name} is not a legal parameter",
                    expected=f"one of {sorted(known)}",
                    received=repr(name),
                    hint=did_you_mean(name, known),
                )

    def _arguments(self, function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that `function` accepts, updated by `given`."""
        taken = inspect.signature(function).parameters
        chosen = {name: value for name, value in self.get_params().items() if name in taken}
        chosen.pop("build_fn", None)
        return {**chosen, **given}

    def _fit(self, x: Any, y: NDArray[Any], given: Mapping[str, Any]) -> Self:
        graph = Graph()
        graph.seed = get_default_graph().seed
        with graph.as_default():
            self.model_ = self._builder()(**self._arguments(self._builder(), {}))
            if _is_categorical(self.model_) and y.ndim == 1:
                y = np.eye(int(y.max()) + 1, dtype=np.float32)[y]
            made = self.model_.fit(x, y, **self._arguments(Model.fit, given))
        self._history = dict(made.history)
        return self

    @property
    def model(self) -> Any:
        """The trained model."""
        check_is_fitted(self)
        return self.model_

    @property
    def history(self) -> dict[str, list[float]]:
        """The loss and the metrics of each epoch, by name."""
        check_is_fitted(self)
        return self._history

    def _outputs(self, x: Any, given: Mapping[str, Any]) -> NDArray[Any]:
        return np.asarray(self.model.predict(x, **self._arguments(Model.predict, given)))


def _is_categorical(model: Any) -> bool:
    loss = model.loss
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
    return name in _CATEGORICAL


class KerasClassifier(BaseWrapper):
    """A scikit-learn classifier that trains a Keras model.

    The model returns one probability (of the second class) or one per class. Labels may be of any
    sortable type, or one-hot; 'categorical_crossentropy' converts them to one-hot.

    Args:
        build_fn, sk_params: see `BaseWrapper`.

    Attributes:
        classes_: the labels, sorted.
        model_: the model.
    """

    _estimator_type = "classifier"

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's estimator tags."""
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags()
        tags.target_tags.required = True
        return tags

    def fit(self, x: Any, y: Any, **kwargs: Any) -> Self:
        """Creates and trains a model.

        Args:
            x: the model's inputs.
            y: labels `(rows,)` or `(rows, 1)`, or one-hot `(rows, classes)`.
            kwargs: arguments of the model's `fit`.

        Returns:
            The wrapper, whose `history` holds the losses.
        """
        labels = np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] > 1:
            self.classes_ = np.arange(labels.shape[1])
            return self._fit(x, labels, kwargs)
        self.classes_, places = np.unique(labels.reshape(-1), return_inverse=True)
        return self._fit(x, places, kwargs)

    def predict_proba(self, x: Any, **kwargs: Any) -> NDArray[Any]:
        """Returns class probabilities, float64 `(rows, classes)`."""
        outputs = self._outputs(x, kwargs)
        if outputs.shape[1] == 1:
            outputs = np.hstack([1 - outputs, outputs])
        return exact(outputs)

    def predict(self, x: Any, **kwargs: Any) -> NDArray[Any]:
        """Returns the most probable class of each row."""
        check_is_fitted(self)
        found: NDArray[Any] = self.classes_[self.predict_proba(x, **kwargs).argmax(axis=1)]
        return found

    def score(self, x: Any, y: Any, sample_weight: Any = None, **kwargs: Any) -> float:
        """Returns the accuracy.

        Args:
            x, y: as for `fit`.
            sample_weight: `(rows,)`; 1 by default.
            kwargs: arguments of the model's `predict`.
        """
        labels = np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] > 1:
            labels = self.classes_[labels.argmax(axis=1)]
        right = self.predict(x, **kwargs) == labels.reshape(-1)
        return float(np.average(right, weights=sample_weight))


class KerasRegressor(BaseWrapper):
    """A scikit-learn regressor that trains a Keras model.

    Args:
        build_fn, sk_params: see `BaseWrapper`.
    """

    _estimator_type = "regressor"

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's estimator tags."""
        from sklearn.utils import RegressorTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor"
        tags.regressor_tags = RegressorTags()
        tags.target_tags.required = True
        return tags

    def fit(self, x: Any, y: Any, **kwargs: Any) -> Self:
        """Creates and trains a model.

        Args:
            x, y: the model's inputs and targets.
            kwargs: arguments of the model's `fit`.

        Returns:
            The wrapper, whose `history` holds the losses.
        """
        return self._fit(x, np.asarray(y), kwargs)

    def predict(self, x: Any, **kwargs: Any) -> NDArray[Any]:
        """Returns predictions, `(rows,)` for a single output."""
        outputs = self._outputs(x, kwargs)
        return outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs

    def score(self, x: Any, y: Any, **kwargs: Any) -> float:
        """Returns the negative loss, so that larger is better.

        Args:
            x, y: as for `fit`.
            kwargs: arguments of the model's `evaluate`.
        """
        given = self._arguments(Model.evaluate, kwargs)
        loss = self.model.evaluate(x, np.asarray(y), **given)
        return -float(np.reshape(loss, -1)[0])


__all__ = ["BaseWrapper", "KerasClassifier", "KerasRegressor"]
