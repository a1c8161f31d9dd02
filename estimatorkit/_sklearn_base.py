"""What the wrappers for scikit-learn share: parameters, tables, classes.

`Parameters` is the base: the arguments of a constructor are public attributes, also those that came
as keywords for something else, so that `get_params`, `set_params` and `clone` see them all.
`Classes` and `Numbers` say what becomes of labels.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, column_or_1d, validate_data

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.logger import logger

_quiet: contextvars.ContextVar[bool] = contextvars.ContextVar("quiet", default=False)


class _Unheard(logging.Filter):
    """Drops what is no warning while `quiet` is on, in this thread only."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the message is passed on."""
        return record.levelno >= logging.WARNING or not _quiet.get()


logger.addFilter(_Unheard())


@contextlib.contextmanager
def quiet(on: bool = True) -> Iterator[None]:
    """Nothing but warnings is logged inside: a grid search fits hundreds of times."""
    token = _quiet.set(on)
    try:
        yield
    finally:
        _quiet.reset(token)


class Parameters(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Parameters are the public attributes that do not end in '_'."""

    def _more_parameters(self) -> set[str]:
        """Names that `set_params` takes besides those that are set."""
        return set()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments by name.

        Args:
            deep: scikit-learn's; there are no estimators inside.
        """
        names = (name for name in vars(self) if not (name.startswith("_") or name.endswith("_")))
        return {name: getattr(self, name) for name in sorted(names)}

    def set_params(self, **params: Any) -> Self:
        """Sets parameters by name.

        Raises:
            ValueError: there is no such parameter.
        """
        known = {*self.get_params(), *self._more_parameters()}
        for name in params:
            if name not in known:
                raise value_error(
                    f"Invalid parameter {name!r} for estimator {type(self).__name__}",
                    expected=f"one of {sorted(known)}",
                    received=repr(name),
                    hint=did_you_mean(name, known),
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def _table(self, X: Any, *, reset: bool, as_array: bool = True) -> Any:
        """`X` as a float64 array `(rows, features)`.

        Args:
            X: an array, or a table with named columns.
            reset: whether it is what all others must fit.
            as_array: False: a table with named columns stays what it is.

        Raises:
            ValueError: it does not fit what `fit` saw.
            TypeError: it is sparse.
        """
        if is_frame(X) and not as_array:
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        return validate_data(self, X, reset=reset, dtype=np.float64)

    def _weights(self, sample_weight: Any, rows: NDArray[Any]) -> NDArray[Any]:
        """Weights, float32 `(rows,)`.

        Raises:
            ValueError: they are negative, all 0, or not one per row.
        """
        weights = _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("sample_weight: all weights are zero; at least one must be positive.")
        return np.asarray(weights, np.float32)


class Classes(ClassifierMixin):  # type: ignore[misc]
    """Labels are classes; `classes_` has them sorted."""

    classes_: NDArray[Any]

    def _labels(self, y: Any, *, reset: bool, classes: Any = None) -> NDArray[Any]:
        """The places of labels in `classes_`, int64 `(rows,)`.

        Args:
            y: `(rows,)`, of any type that sorts.
            reset: whether `classes_` is new.
            classes: what `classes_` will be; by default what is in `y`.

        Raises:
            ValueError: there are fewer than 2 classes, or a label is none of `classes_`.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        y = column_or_1d(y, warn=True)
        _check_y(y, y_numeric=False)
        check_classification_targets(y)
        if reset:
            self.classes_ = np.unique(y if classes is None else np.asarray(classes))
            if len(self.classes_) < 2:
                raise value_error(
                    f"{type(self).__name__} cannot be trained on labels of 1 class",
                    expected="at least 2 classes in y",
                    received=f"{self.classes_[0]!r} only",
                )
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise value_error(
                "y has labels that are not among the classes",
                expected=f"one of {self.classes_.tolist()}",
                received=unknown[:5].tolist(),
                hint="list all classes: partial_fit(X, y, classes=...)",
            )
        places: NDArray[Any] = np.searchsorted(self.classes_, y).astype(np.int64)
        return places

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row, as in `classes_`.

        Args:
            X: as for `fit`.
        """
        places = self.predict_proba(X).argmax(axis=1)
        found: NDArray[Any] = self.classes_[places]
        return found

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Probabilities, float64 `(rows, classes)`."""
        raise NotImplementedError


class Numbers(RegressorMixin):  # type: ignore[misc]
    """Labels are numbers: `(rows,)` or `(rows, labels)`."""

    _label_shape: tuple[int, ...]

    def _labels(self, y: Any, *, reset: bool, classes: Any = None) -> NDArray[Any]:
        """Labels, float32 `(rows, labels)`.

        Raises:
            ValueError: they are not numbers, or not as many a row as before.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        y = np.asarray(_check_y(y, multi_output=True, y_numeric=True, estimator=self), np.float32)
        if reset:
            self._label_shape = y.shape[1:]
        if y.shape[1:] != self._label_shape:
            raise value_error(
                "y has a different number of labels per row than before",
                expected=f"(rows, {', '.join(map(str, self._label_shape))})",
                received=y.shape,
            )
        return np.reshape(y, (len(y), -1))

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's description of what it can do."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def is_frame(table: Any) -> bool:
    """Whether it is a table with named columns (pandas, polars)."""
    return hasattr(table, "columns") and not isinstance(table, np.ndarray)


def as_frame(array: NDArray[Any], names: Any) -> Any:
    """Converts an array to a DataFrame with these column names."""
    import pandas as pd

    return pd.DataFrame(array, columns=names)


def probabilities(values: NDArray[Any]) -> NDArray[Any]:
    """float32 probabilities as float64 ones with the sum 1."""
    exact = np.asarray(values, np.float64)
    return np.asarray(exact / exact.sum(axis=1, keepdims=True))
