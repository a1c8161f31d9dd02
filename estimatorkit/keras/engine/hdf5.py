"""Keras's HDF5 files (`.h5`): weights, whole models, in both directions (the extra `[h5]`: h5py).

The layout is that of Keras 1 and 2: groups by layer, `layer_names` and `weight_names` as
attributes, a model's config and what `compile` was given as JSON. Links to other files, and data
that lies outside of the file, are refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import value_error
from estimatorkit.keras.engine import model_config
from estimatorkit.keras.engine.compile_config import Contents, compile_config
from estimatorkit.keras.engine.weights import TOP_LEVEL, StoredLayer, keras_order, weighted_layers
from estimatorkit.layers.engine.sessions import values_of
from estimatorkit.storage.atomic_files import os_errors, sync_file, temporary_beside

_ATTRIBUTE_BYTES = 64512  # what an HDF5 object's header takes; longer lists are cut in parts
_VERSION = "2.15.0"
_MOST_RATIO = 100
"""Bytes of arrays by bytes of the file: Keras does not compress weights, other tools may."""


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise ImportError("Files of Keras (.h5) need h5py: pip install estimatorkit[h5]") from error
    return h5py


# -- writing


def write_weights(path: Path, model: Any) -> None:
    """Writes a model's weights."""
    _replace(path, lambda file: _put_weights(file, model))


def write_model(path: Path, model: Any, include_optimizer: bool) -> None:
    """Writes a model: its config, weights, what `compile` was given, the optimizer's variables.

    Raises:
        NotImplementedError, ValueError: the model cannot be described.
    """
    config = model_config.plain_value(model_config.describe(model), model.name)
    compiled = compile_config(model) if include_optimizer else None

    def put(file: Any) -> None:
        file.attrs["keras_version"] = _VERSION
        file.attrs["backend"] = "estimatorkit"
        file.attrs["model_config"] = json.dumps(config)
        _put_weights(file.create_group("model_weights"), model)
        if compiled is not None:
            file.attrs["training_config"] = json.dumps(_as_keras(compiled))
            with model.graph.as_default():
                variables = getattr(model.optimizer, "weights", [])
                values = values_of(variables)
            named = list(zip([each.name for each in variables], values, strict=True))
            _put(file.create_group("optimizer_weights"), named)

    _replace(path, put)


def _as_keras(compiled: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in compiled.items() if key != "optimizer"}
    return {**rest, "optimizer_config": compiled["optimizer"]}


def _replace(path: Path, put: Any) -> None:
    h5py = _h5py()
    path.parent.mkdir(parents=True, exist_ok=True)
    with os_errors("write the weights", path), temporary_beside(path) as temporary:
        with h5py.File(temporary, "w") as file:
            put(file)
        sync_file(temporary)
        os.replace(temporary, path)
        sync_file(path.parent)


def _put_weights(group: Any, model: Any) -> None:
    with_weights = {id(layer): layer for layer, _ in weighted_layers(model)}
    layers = [layer for layer in model.layers if layer.name != TOP_LEVEL]
    _put_texts(group, "layer_names", [layer.name for layer in layers])
    group.attrs["backend"] = "estimatorkit"
    group.attrs["keras_version"] = _VERSION
    for layer in layers:
        variables = keras_order(layer) if id(layer) in with_weights else []
        values = values_of(variables)
        _put(group.create_group(layer.name), _named(variables, values))
    own = [layer for layer in with_weights.values() if layer.name == TOP_LEVEL]
    variables = own[0].weights if own else []
    _put(group.create_group(TOP_LEVEL), _named(variables, values_of(variables)))


def _named(variables: Sequence[Any], values: Sequence[Any]) -> list[tuple[str, Any]]:
    return list(zip([each.name for each in variables], values, strict=True))


def _put(group: Any, weights: Sequence[tuple[str, Any]]) -> None:
    _put_texts(group, "weight_names", [name for name, _ in weights])
    for name, value in weights:
        group.create_dataset(name, data=np.asarray(value))


def _put_texts(group: Any, name: str, texts: Sequence[str]) -> None:
    data = [text.encode() for text in texts]
    array = np.array(data, dtype=f"S{max(map(len, data), default=1)}")
    if array.nbytes <= _ATTRIBUTE_BYTES:
        group.attrs[name] = array
        return
    parts = -(-array.nbytes // _ATTRIBUTE_BYTES)
    for number, part in enumerate(np.array_split(array, parts)):
        group.attrs[f"{name}{number}"] = part


# -- reading


def read_weights(path: Path) -> list[StoredLayer]:
    """Reads the layers of a weights file, or of a whole model's file.

    Raises:
        ValueError: it is not laid out as Keras's files, or leads out of itself.
    """
    with _opened(path) as file:
        group = _group(file, "model_weights") if "model_weights" in file else file
        return _layers(group, _Arrays(path))


def read_model(path: Path) -> Contents:
    """Reads a whole model.

    Raises:
        ValueError: it is not laid out as Keras's files, or leads out of itself.
    """
    with _opened(path) as file:
        arrays = _Arrays(path)
        if "model_config" not in file.attrs:
            raise value_error(
                f"No model config found in the file at {os.fspath(path)!r}",
                hint="it holds weights: build the model and call load_weights",
            )
        layers = _layers(_group(file, "model_weights"), arrays)
        compiled = None
        optimizer: list[NDArray[Any]] = []
        if "training_config" in file.attrs:
            given = _parsed(file, "training_config")
            optimizer_config = given.pop("optimizer_config", None)
            compiled = {**given, "optimizer": optimizer_config}
            if "optimizer_weights" in file:
                group = _group(file, "optimizer_weights")
                names = _texts(group, "weight_names")
                optimizer = [arrays.read(group, name) for name in names]
        return Contents(layers, optimizer, _parsed(file, "model_config"), compiled)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    h5py = _h5py()
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, LookupError, RuntimeError, TypeError, UnicodeDecodeError) as error:
        raise value_error(
            f"{os.fspath(path)!r} is no HDF5 file, or damaged", received=str(error)
        ) from error


def _parsed(file: Any, name: str) -> Any:
    """The JSON object in an attribute."""
    try:
        found = json.loads(_text(file.attrs[name]))
    except (ValueError, RecursionError) as error:
        raise value_error(
            f"{file.filename!r}: the attribute {name!r} is not valid JSON", received=str(error)
        ) from error
    if not isinstance(found, dict):
        raise value_error(
            f"{file.filename!r}: the attribute {name!r} is not an object", received=found
        )
    return found


def _layers(file: Any, arrays: _Arrays) -> list[StoredLayer]:
    names = _texts(file, "layer_names")
    if TOP_LEVEL in file:
        names.append(TOP_LEVEL)
    found = []
    for name in names:
        group = _group(file, name)
        weights = [(each, arrays.read(group, each)) for each in _texts(group, "weight_names")]
        found.append(StoredLayer(name, weights, ordered=True))
    return found


def _texts(group: Any, name: str) -> list[str]:
    if name in group.attrs:
        return [_text(each) for each in group.attrs[name]]
    found: list[str] = []
    number = 0
    while f"{name}{number}" in group.attrs:
        found += [_text(each) for each in group.attrs[f"{name}{number}"]]
        number += 1
    if number == 0:
        raise value_error(
            f"{group.file.filename!r} is not laid out as a file of Keras",
            expected=f"an attribute {name!r} of {group.name!r}",
            received=sorted(group.attrs)[:8],
        )
    return found


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _group(group: Any, name: str) -> Any:
    found = _inside(group, name)
    if not isinstance(found, _h5py().Group):
        raise ValueError(f"{group.file.filename!r}: expected a group {name!r}.")
    return found


class _Arrays:
    """Reads the arrays of a file, which in sum may not be much larger than the file."""

    def __init__(self, path: Path) -> None:
        self._left = path.stat().st_size * _MOST_RATIO

    def read(self, group: Any, name: str) -> NDArray[Any]:
        """The array of a name below a group."""
        found = _inside(group, name)
        plain = isinstance(found, _h5py().Dataset) and not found.is_virtual and not found.external
        if not plain or _kind(found) not in "biufc":
            raise value_error(
                f"{group.file.filename!r}: {name!r:.100} is no array of numbers within the file",
                received=type(found).__name__,
            )
        held = found.id.get_storage_size() * (1 if found.compression is None else _MOST_RATIO)
        self._left -= found.nbytes
        if found.nbytes > held or self._left < 0:
            raise value_error(
                f"{group.file.filename!r} does not hold what it lists: {name!r:.100}",
                expected=f"{found.nbytes} bytes of shape {found.shape}",
                received=f"{found.id.get_storage_size()} bytes in the file",
                hint="the file is damaged, or made to fill the memory",
            )
        return np.asarray(found)


def _kind(array: Any) -> str:
    try:
        return str(array.dtype.kind)
    except ValueError:  # a type that NumPy lacks
        return "V"


def _inside(group: Any, name: str) -> Any:
    """Resolves a name, following links within the file only."""
    h5py = _h5py()
    for part in filter(None, name.split("/")):
        link = group.get(part, getlink=True) if isinstance(group, h5py.Group) else None
        if not isinstance(link, h5py.HardLink):
            raise value_error(
                f"{group.file.filename!r} has no {name!r:.100} of its own",
                received="nothing" if link is None else f"a {type(link).__name__}",
            )
        group = group[part]
    return group


__all__ = ["read_model", "read_weights", "write_model", "write_weights"]
