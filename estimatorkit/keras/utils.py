"""Small helpers for Keras programs (`tf.keras.utils`): one-hot labels, norms, batches by index,
seeds, files, and custom objects by name.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import explain, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.keras.engine.model_config import made
from estimatorkit.keras.engine.model_utils import get_source_inputs, multi_gpu_model
from estimatorkit.keras.feature_space import FeatureSpace
from estimatorkit.keras.file_utils import get_file
from estimatorkit.keras.progress_bar import Progbar
from estimatorkit.layers.serialization import (
    Registry,
    custom_object_scope,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
)
from estimatorkit.lazy import listing

CustomObjectScope = custom_object_scope
_LARGEST_SEED = 2**32 - 1


def to_categorical(y: Any, num_classes: int | None = None, dtype: Any = "float32") -> NDArray[Any]:
    """Converts class numbers to one-hot rows.

    Args:
        y: integers from 0, `(...)` or `(..., 1)`.
        num_classes: the number of classes; by default, one more than the largest number.
        dtype: the dtype of the result.

    Returns:
        An array `(..., num_classes)`.

    Raises:
        IndexError: a number is out of range.
    """
    numbers = np.array(y, dtype="int64")
    if numbers.ndim > 1 and numbers.shape[-1] == 1:
        numbers = numbers[..., 0]
    classes = int(num_classes or numbers.max() + 1)
    if numbers.size and (numbers.min() < -classes or numbers.max() >= classes):
        raise IndexError(
            explain(
                f"index {numbers.max()} is out of bounds: there are {classes} classes",
                expected=f"numbers from 0 to {classes - 1}",
                received=f"numbers from {numbers.min()} to {numbers.max()}",
            )
        )
    rows: NDArray[Any] = np.eye(classes, dtype=dtype)[numbers]
    return rows


def normalize(x: Any, axis: int = -1, order: int = 2) -> NDArray[Any]:
    """Divides an array by its norms along an axis; zero vectors stay zero.

    Args:
        x: an array of at least one dimension.
        axis: the axis.
        order: the order of the norm; 2 is the Euclidean norm.
    """
    norms = np.atleast_1d(np.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    result: NDArray[Any] = np.asarray(x) / np.expand_dims(norms, axis)
    return result


class Sequence:
    """Base class of data sets of batches by index (`tf.keras.utils.Sequence`).

    Subclasses define `__getitem__` and `__len__`. `fit`, `evaluate` and `predict` read the batches
    in order, and call `on_epoch_end` between epochs.
    """

    def __getitem__(self, index: int) -> Any:
        """Returns the batch at an index."""
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__(index)")

    def __len__(self) -> int:
        """The number of batches."""
        raise NotImplementedError(f"{type(self).__name__} must define __len__()")

    def on_epoch_end(self) -> None:
        """Called after each epoch."""

    def __iter__(self) -> Iterator[Any]:
        """Iterates over the batches in order."""
        for index in range(len(self)):
            yield self[index]


def set_random_seed(seed: int) -> None:
    """Sets the random seeds of Python, NumPy and the default graph.

    Raises:
        ValueError: the seed is not an integer in [0, 2**32).
    """
    if not isinstance(seed, (int, np.integer)) or not 0 <= seed <= _LARGEST_SEED:
        raise value_error(
            "Expected `seed` argument to be an integer",
            expected=f"an integer from 0 to {_LARGEST_SEED}",
            received=repr(seed),
        )
    random.seed(int(seed))
    np.random.seed(int(seed))
    get_default_graph().seed = int(seed)


def serialize_keras_object(instance: Any) -> Any:
    """Returns {'class_name': ..., 'config': ...} for an object with `get_config`, or a name.

    Raises:
        ValueError: the object has neither `get_config` nor a name.
    """
    if instance is None:
        return None
    if hasattr(instance, "get_config"):
        name = get_registered_name(type(instance))
        return {"class_name": name, "config": instance.get_config()}
    if hasattr(instance, "__name__"):
        return get_registered_name(instance)
    raise ValueError(f"Cannot serialize {instance}")


def deserialize_keras_object(
    config: Any,
    module_objects: Mapping[str, Any] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    printable_module_name: str = "object",
) -> Any:
    """Creates an object from the result of `serialize_keras_object`.

    Args:
        config: a name, or {'class_name': ..., 'config': ...}; None is returned unchanged.
        module_objects: the classes and functions that may be named, besides the registered ones
            and those of `custom_objects`; the layers and models by default.
        custom_objects: a dict from names to your own classes and functions.
        printable_module_name: what the objects are, for errors.

    Raises:
        ValueError: the name is unknown, or the config has another form.
    """
    if config is None:
        return None
    given = {key: each for key, each in (module_objects or {}).items() if callable(each)}
    name = config.get("class_name") if isinstance(config, Mapping) else config
    if name not in given and not isinstance(config, str):
        return made(config, custom_objects, printable_module_name)
    return Registry(printable_module_name, given).deserialize(config, custom_objects)


__all__ = [
    "CustomObjectScope",
    "FeatureSpace",
    "Progbar",
    "Sequence",
    "custom_object_scope",
    "deserialize_keras_object",
    "get_custom_objects",
    "get_file",
    "get_registered_name",
    "get_registered_object",
    "get_source_inputs",
    "multi_gpu_model",
    "normalize",
    "register_keras_serializable",
    "serialize_keras_object",
    "set_random_seed",
    "to_categorical",
]
__dir__ = listing(__name__)
