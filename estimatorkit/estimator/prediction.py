"""Predictions: selecting keys, splitting batches, and `LivePredictor`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import value_error
from estimatorkit.core.nest import flatten, map_structure
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.built_model import BuiltModel
from estimatorkit.estimator.model_input import ModelInput
from estimatorkit.estimator.spec import ModeKeys


def chosen(predictions: Any, keys: str | Sequence[str] | None) -> Any:
    """Selects predictions by key; None selects all.

    Raises:
        ValueError: there are none, or the predictions are not a dict.
    """
    if keys is None:
        return predictions
    if not isinstance(predictions, Mapping):
        raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
    wanted = [keys] if isinstance(keys, str) else list(keys)
    found = {key: value for key, value in predictions.items() if key in wanted}
    if not found:
        raise ValueError(
            f"Expected to run at least one output from {predictions.keys()}, provided {wanted}."
        )
    return found


def single_examples(batch: Any) -> Iterator[Any]:
    """Splits the predictions of a batch into those of its examples.

    Raises:
        ValueError: they do not all have one row per example.
    """
    if not isinstance(batch, Mapping):
        yield from batch
        return
    length = None
    for key, value in batch.items():
        if np.ndim(value) == 0 or (length is not None and len(value) != length):
            raise ValueError(
                f"Batch length of predictions should be same. {key} has different batch length "
                "than others."
            )
        length = len(value)
    for index in range(length or 0):
        yield {key: value[index] for key, value in batch.items()}


class LivePredictor:
    """A trained model as a function from an example to its predictions.

    Created by `Estimator.as_predictor`. The model is built and compiled for the first example;
    later calls take well under a millisecond for small models. It is thread-safe, and uses the same
    checkpoint until `refresh`.

    Example:
        ```python
        with classifier.as_predictor() as predictor:
            print(predictor({"length": 5.1, "width": 3.5})["class_ids"])
        ```

    Args:
        build: builds a model for an input.
        checkpoint: finds the latest checkpoint.
        path: the checkpoint to use.
        keys: the keys of the predictions; None for all.
    """

    def __init__(
        self,
        build: Callable[[ModelInput], BuiltModel],
        checkpoint: Callable[[], str],
        path: str,
        keys: str | Sequence[str] | None,
    ) -> None:
        self._build = build
        self._checkpoint = checkpoint
        self._path = path
        self._keys = keys
        self._models: dict[Any, tuple[BuiltModel, Any, list[Any]]] = {}
        self._lock = threading.Lock()

    @property
    def checkpoint(self) -> str:
        """The checkpoint in use."""
        return self._path

    def __call__(self, features: Any) -> Any:
        """The predictions of one example.

        Args:
            features: values by key, or one value, without the batch dimension.

        Returns:
            Arrays by key (or one array), without the batch dimension.

        Raises:
            ValueError: required features are missing, or have the wrong shape or dtype.
        """
        one = map_structure(lambda value: _array(value)[None], features, lists_are_leaves=True)
        batch = self.batch(one)
        return map_structure(lambda value: value[0], batch)

    def batch(self, features: Any) -> Any:
        """The predictions of a batch.

        Args:
            features: values by key, `(batch, ...)`; or one array.

        Returns:
            Arrays by key (or one array), `(batch, ...)`.
        """
        arrays = map_structure(_array, features, lists_are_leaves=True)
        leaves = flatten(arrays)
        if not leaves or any(each.ndim == 0 for each in leaves):
            raise value_error(
                "features have no batch dimension",
                expected="values of shape (batch, ...)",
                received=[each.shape for each in leaves],
            )
        names = tuple(arrays) if isinstance(arrays, Mapping) else None
        key = names, tuple((each.dtype, each.shape[1:]) for each in leaves)
        found = self._models.get(key)
        if found is None:
            with self._lock:
                found = self._models.get(key) or self._made(arrays, key)
        model, fetches, tensors = found
        return model.session.run(fetches, dict(zip(tensors, leaves, strict=True)))

    def _made(self, arrays: Any, key: Any) -> tuple[BuiltModel, Any, list[Any]]:
        # An element of unknown batch size, whose tensors are then fed.
        dataset = Dataset.from_tensor_slices(arrays).batch(1)
        model = self._build(ModelInput.of(lambda: dataset, ModeKeys.PREDICT, None))
        model.load(self._path)
        entry = (model, chosen(model.spec.predictions, self._keys), flatten(model.features))
        self._models[key] = entry
        return entry

    def refresh(self) -> bool:
        """Switches to the latest checkpoint; returns whether it is a new one."""
        path = self._checkpoint()
        with self._lock:
            for model, _, _ in self._models.values():
                model.load(path)
            changed = path != self._path
            self._path = path
        return changed

    def close(self) -> None:
        """Releases the model; a later call rebuilds it."""
        with self._lock:
            models, self._models = list(self._models.values()), {}
        for model, _, _ in models:
            model.close()

    def __enter__(self) -> LivePredictor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _array(value: Any) -> NDArray[Any]:
    array = np.asarray(value)
    if array.dtype.kind == "U":
        array = np.array([each.encode() for each in array.reshape(-1)], object).reshape(array.shape)
    elif array.dtype.kind == "S":
        array = array.astype(object)
    elif array.dtype == np.float64 and not isinstance(value, np.ndarray):
        array = array.astype(np.float32)  # a Python number
    return array


__all__ = ["LivePredictor", "chosen", "single_examples"]
