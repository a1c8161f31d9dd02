"""Converts the result of an `input_fn` to tensors and hooks (TensorFlow's `estimator.util`)."""

from __future__ import annotations

from typing import Any

from estimatorkit.data.dataset import Dataset
from estimatorkit.data.iterator_ops import make_initializable_iterator
from estimatorkit.estimator.model_input import features_and_labels
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.lazy import listing
from estimatorkit.train.hooks.hooks import SessionRunHook

__dir__ = listing(__name__)


class DatasetInitializerHook(SessionRunHook):
    """Initializes an iterator in each new session.

    Args:
        iterator: an iterator with an `initializer`.
    """

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator
        self._initializer: Any = None

    def begin(self) -> None:
        """Creates the initializer before the graph is finalized."""
        self._initializer = self._iterator.initializer

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs the initializer."""
        session.run(self._initializer)


def parse_input_fn_result(result: Any) -> tuple[Any, Any, list[SessionRunHook]]:
    """Splits the result of an `input_fn` into features, labels and hooks.

    Args:
        result: a `Dataset` of features or of (features, labels), or one of these themselves.

    Returns:
        The features, the labels or None, and a list of hooks: one that initializes the dataset's
        iterator, or none.

    Raises:
        ValueError: a tuple does not have two parts.
    """
    hooks: list[SessionRunHook] = []
    if isinstance(result, Dataset):
        iterator = make_initializable_iterator(result)
        hooks.append(DatasetInitializerHook(iterator))
        result = iterator.get_next()
    return (*parse_iterator_result(result), hooks)


def parse_iterator_result(result: Any) -> tuple[Any, Any]:
    """Features and labels of an iterator's element; labels are None if it is not a pair.

    Raises:
        ValueError: a tuple does not have two parts.
    """
    return features_and_labels(result, ModeKeys.TRAIN)
