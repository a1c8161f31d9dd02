"""Models and weights in files: `save_weights`, `load_weights`, `save_model`, `load_model`.

A saved model is a checkpoint (`storage.checkpoint`): tensors in safetensors, the layers as JSON,
all sealed by checksums, written as a whole or not at all. It is a folder, or one file (a zip of
that folder). Files of Keras end in `.h5` (`hdf5`). No file holds code: layers, losses and
optimizers are found by name among those of the package, the registered ones and `custom_objects`.
Names read from a file are never part of a path.
"""

from __future__ import annotations

import logging
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import NotFoundError, explain
from estimatorkit.keras.engine import model_config
from estimatorkit.keras.engine.weights import (
    StoredLayer,
    check_built,
    give_values,
    of_tensorflow,
    weighted_layers,
)
from estimatorkit.layers.engine.sessions import values_of
from estimatorkit.layers.serialization import get_registered_object
from estimatorkit.storage.atomic_files import os_errors, sync_file, temporary_beside
from estimatorkit.storage.checkpoint import SHARD_BYTES, read_checkpoint, write_checkpoint
from estimatorkit.storage.checkpoint_format import write_contents
from estimatorkit.storage.checkpoint_manifest import is_checkpoint_file
from estimatorkit.storage.checkpoint_state import update_checkpoint_state
from estimatorkit.storage.tensorflow_checkpoint import is_tensorflow_checkpoint

_log = logging.getLogger("estimatorkit")
_HDF5_SUFFIXES = (".h5", ".hdf5")
_FILE_SUFFIXES = (*_HDF5_SUFFIXES, ".keras", ".safetensors", ".zip")
_ZIP, _HDF5 = b"PK", b"\x89HDF\r\n\x1a\n"
_CHECKPOINT = "model"  # the folder's name inside of temporary folders


@dataclass(frozen=True)
class Contents:
    """What a file holds.

    Attributes:
        layers: the layers that have weights, in order.
        optimizer: the optimizer's variables, in order.
        model: the model as {'class_name', 'config'}, where it is there.
        compiled: what `compile` was given, as plain values.
        epoch: the last epoch that was trained, where it is there.
    """

    layers: Sequence[StoredLayer]
    optimizer: Sequence[NDArray[Any]] = ()
    model: Any = None
    compiled: Any = None
    epoch: int | None = None

    def tensors(self) -> dict[str, NDArray[Any]]:
        """All arrays by name."""
        found = {f"optimizer/{number}": value for number, value in enumerate(self.optimizer)}
        for layer in self.layers:
            found |= {f"layers/{layer.name}/{key}": value for key, value in layer.weights}
        return found

    def state(self) -> dict[str, Any]:
        """All but the arrays, as JSON has it."""
        return {
            "kind": "keras",
            "layers": [[each.name, [key for key, _ in each.weights]] for each in self.layers],
            "optimizer_weights": len(self.optimizer),
            "model": self.model,
            "compiled": self.compiled,
            "epoch": self.epoch,
        }


def _contents_of(
    model: Any, architecture: bool, optimizer: bool, epoch: int | None = None
) -> Contents:
    layers = [
        StoredLayer(
            layer.name,
            list(zip(named, values_of(list(named.values())), strict=True)),
        )
        for layer, named in weighted_layers(model)
    ]
    return Contents(
        layers,
        _optimizer_values(model) if optimizer else (),
        model_config.plain_value(model_config.describe(model), model.name)
        if architecture
        else None,
        compile_config(model) if architecture and optimizer else None,
        epoch,
    )


# -- writing


def save_weights(
    model: Any,
    filepath: str | os.PathLike[str],
    overwrite: bool = True,
    save_format: str | None = None,
    options: Any = None,
) -> None:
    """Writes a model's weights.

    Args:
        model: the model.
        filepath: a name in `.h5` or `.hdf5` makes a file as Keras does, where h5py is installed
            (`pip install estimatorkit[h5]`); `.keras` or `.safetensors` a file of our own; any
            other name a checkpoint, which `train.latest_checkpoint` finds.
        overwrite: whether to replace what is there.
        save_format: 'h5', 'tf' (a checkpoint), or None: as the name says.
        options: accepted for TensorFlow's signature.

    Raises:
        ValueError: something is there, the format is unknown, or the model has no variables yet.
        OpError: by errno; what was there is intact.
    """
    check_built(model, "save")
    path = _writable(filepath, overwrite)
    if _is_hdf5(path, save_format):
        from estimatorkit.keras.engine import hdf5

        hdf5.write_weights(path, model)
        return
    _write(path, _contents_of(model, architecture=False, optimizer=False), save_format)
    if path.is_dir():
        update_checkpoint_state(path.parent, path.name)


def save_model(
    model: Any,
    filepath: str | os.PathLike[str],
    overwrite: bool = True,
    include_optimizer: bool = True,
    save_format: str | None = None,
    signatures: Any = None,
    options: Any = None,
    save_traces: bool = True,
) -> None:
    """Writes a model: its layers, weights, optimizer and what `compile` was given.

    Args:
        model: a functional or Sequential model, or one of a class with its own `get_config`.
        filepath: see `save_weights`; other names than those of files make a folder.
        overwrite: whether to replace what is there.
        include_optimizer: whether the optimizer and its variables are written.
        save_format: 'h5', 'keras' (one file), 'tf' (a folder), or None: as the name says.
        signatures, options, save_traces: accepted for TensorFlow's signature.

    Raises:
        NotImplementedError, ValueError: the model cannot be described, as a `Lambda` of a function
            without a name; something is there.
        OpError: by errno; what was there is intact.
    """
    check_built(model, "save")
    path = _writable(filepath, overwrite)
    if _is_hdf5(path, save_format):
        from estimatorkit.keras.engine import hdf5

        hdf5.write_model(path, model, include_optimizer)
        return
    _write(path, _contents_of(model, architecture=True, optimizer=include_optimizer), save_format)


def save_training(model: Any, path: str | os.PathLike[str], epoch: int) -> None:
    """Writes weights, the optimizer's variables and the number of an epoch into one file."""
    contents = _contents_of(model, architecture=False, optimizer=True, epoch=epoch)
    _write_file(Path(path), contents)


def _writable(filepath: str | os.PathLike[str], overwrite: bool) -> Path:
    path = Path(os.fspath(filepath))
    if not overwrite and path.exists():
        raise ValueError(
            explain(f"{os.fspath(path)!r} is there already", hint="pass overwrite=True")
        )
    return path


def _is_hdf5(path: Path, save_format: str | None) -> bool:
    """Whether to write as Keras does; without h5py a file of our own takes its place."""
    if save_format not in (None, "h5", "hdf5", "keras", "tf", "tensorflow"):
        raise ValueError(
            f"Unknown format: {save_format}. Was expecting one of {{'tf', 'h5', 'keras'}}."
        )
    wanted = save_format in ("h5", "hdf5") or (
        save_format is None and path.suffix in _HDF5_SUFFIXES
    )
    if not wanted:
        return False
    try:
        import h5py  # noqa: F401
    except ImportError:
        _log.warning(
            "%s: h5py is not installed, so that this is written in estimatorkit's own format, "
            "which load_weights and load_model read under any name. For files that Keras reads: "
            "pip install estimatorkit[h5]",
            path,
        )
        return False
    return True


def _write(path: Path, contents: Contents, save_format: str | None) -> None:
    as_file = save_format in ("keras", "h5", "hdf5") or (
        save_format is None and path.suffix in _FILE_SUFFIXES
    )
    if as_file:
        _write_file(path, contents)
    else:
        write_checkpoint(path.parent, path.name, contents.tensors(), contents.state())


def _write_file(path: Path, contents: Contents) -> None:
    """Writes a checkpoint folder as one zip, uncompressed."""
    with os_errors("write the model", path), temporary_beside(path) as temporary:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            write_contents(Path(folder), contents.tensors(), contents.state(), SHARD_BYTES)
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
                for each in sorted(Path(folder).iterdir()):
                    archive.write(each, each.name)
        sync_file(temporary)
        os.replace(temporary, path)
        sync_file(path.parent)


# -- reading


def read(filepath: str | os.PathLike[str]) -> Contents:
    """What a file or folder that this package wrote holds.

    Raises:
        NotFoundError: there is nothing.
        ValueError: it is no such file.
        OpError: it is damaged.
    """
    path = Path(os.fspath(filepath))
    if not path.exists():
        raise NotFoundError(
            None,
            None,
            explain(f"there is no file or folder {os.fspath(path)!r}", hint="is the path right?"),
        )
    if path.is_dir():
        if (path / "saved_model.pb").exists():
            raise ValueError(
                explain(
                    f"{os.fspath(path)!r} is a SavedModel, which is a graph and not layers",
                    hint="load it by saved_model.load, or save the weights in Keras as .h5",
                )
            )
        return _parsed(path)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, _CHECKPOINT)
        folder.mkdir()
        _unpack(path, folder)
        return _parsed(folder)


def _unpack(path: Path, folder: Path) -> None:
    """Unpacks a zip that `_write_file` made: files of known names, not compressed."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            names = [each.filename for each in members]
            for each in members:
                plain = is_checkpoint_file(each.filename) and each.compress_type == 0
                if not plain or names.count(each.filename) > 1 or each.file_size > _size(path):
                    raise ValueError(
                        explain(
                            f"{os.fspath(path)!r} is no model of estimatorkit",
                            expected="a zip of the files of a checkpoint, not compressed",
                            received=f"a member {each.filename!r:.100}",
                            hint="Keras 3's .keras files: save the weights there as .weights.h5",
                        )
                    )
                with archive.open(each) as source, open(folder / each.filename, "xb") as target:
                    while block := source.read(1 << 22):
                        target.write(block)
    except zipfile.BadZipFile as error:
        raise ValueError(
            explain(f"{os.fspath(path)!r} is no model or damaged", received=str(error))
        ) from error


def _size(path: Path) -> int:
    return path.stat().st_size


def _parsed(folder: Path) -> Contents:
    found = read_checkpoint(folder)
    state, tensors = found.state, found.tensors
    if state.get("kind") != "keras":
        raise ValueError(
            explain(
                f"{os.fspath(folder)!r} is a checkpoint, but not of a Keras-style model",
                received=f"tensors {sorted(tensors)[:5]}",
                hint="restore it by train.Saver",
            )
        )
    try:
        layers = [
            StoredLayer(name, [(key, tensors[f"layers/{name}/{key}"]) for key in keys])
            for name, keys in state["layers"]
        ]
        optimizer = [tensors[f"optimizer/{n}"] for n in range(state["optimizer_weights"])]
        return Contents(layers, optimizer, state["model"], state["compiled"], state["epoch"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            explain(
                f"{os.fspath(folder)!r} is not laid out as a saved model",
                received=f"{type(error).__name__}: {error}",
            )
        ) from error


def load_weights(
    model: Any,
    filepath: str | os.PathLike[str],
    by_name: bool = False,
    skip_mismatch: bool = False,
    options: Any = None,
) -> None:
    """Gives a model the weights of a file.

    Args:
        model: the model, with variables.
        filepath: what `save_weights` or `save_model` wrote, a file of Keras (`.h5`, with h5py), or
            a checkpoint of TensorFlow.
        by_name: whether layers are found by their names, and others left alone; otherwise they are
            taken in order, whatever they are called.
        skip_mismatch: with `by_name`, whether layers of other shapes are left alone.
        options: accepted for TensorFlow's signature.

    Raises:
        ValueError: layers, weights or shapes do not fit; nothing was changed.
        OpError: the file is not there, or damaged.
    """
    if skip_mismatch and not by_name:
        raise ValueError(
            "When calling model.load_weights, skip_mismatch can only be set to True when by_name "
            "is True."
        )
    check_built(model, "load")
    path = os.fspath(filepath)
    if is_tensorflow_checkpoint(path):
        stored = of_tensorflow(model, read_checkpoint(path).tensors)
    elif _begins_with(path, _HDF5):
        from estimatorkit.keras.engine import hdf5

        stored = hdf5.read_weights(Path(path))
    else:
        stored = list(read(path).layers)
    give_values(model, stored, by_name, skip_mismatch)


def load_model(
    filepath: str | os.PathLike[str],
    custom_objects: Mapping[str, Any] | None = None,
    compile: bool = True,
    safe_mode: bool = True,
    options: Any = None,
) -> Any:
    """The model of a file, compiled as it was.

    Args:
        filepath: what `save_model` wrote, or a whole model of Keras (`.h5`, with h5py).
        custom_objects: the user's classes and functions by name. Nothing is imported by name.
        compile: whether to compile it as it was.
        safe_mode: must be True: files hold no code here.
        options: accepted for TensorFlow's signature.

    Raises:
        ValueError: it holds no model, or a name is unknown.
        OpError: the file is not there, or damaged.
    """
    if not safe_mode:
        raise ValueError("load_model: safe_mode=False is not supported: files hold no code")
    path = os.fspath(filepath)
    if _begins_with(path, _HDF5):
        from estimatorkit.keras.engine import hdf5

        contents = hdf5.read_model(Path(path))
    else:
        contents = read(path)
    if contents.model is None:
        raise ValueError(
            explain(
                f"{path!r} holds weights, but no model",
                hint="build the model and call load_weights",
            )
        )
    model = model_config.made(contents.model, custom_objects, "model")
    if contents.layers:
        check_built(model, "load")
        give_values(model, contents.layers)
    if compile and contents.compiled is not None:
        compile_from_config(model, contents.compiled, custom_objects)
        _restore_optimizer(model, contents.optimizer)
    return model


def restore_training(model: Any, path: str | os.PathLike[str]) -> int | None:
    """Gives a model what `save_training` wrote.

    Returns:
        The number of the epoch; None where there is no such file.
    """
    if not os.path.exists(path):
        return None
    contents = read(path)
    give_values(model, contents.layers)
    _restore_optimizer(model, contents.optimizer)
    return contents.epoch


def _begins_with(path: str, magic: bytes) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(magic)) == magic


# -- the optimizer, and what `compile` was given


def _optimizer_values(model: Any) -> list[NDArray[Any]]:
    optimizer = model.optimizer
    if not hasattr(optimizer, "get_weights"):
        return []
    with model.graph.as_default():
        return [np.asarray(each) for each in optimizer.get_weights()]


def _restore_optimizer(model: Any, values: Sequence[NDArray[Any]]) -> None:
    optimizer = model.optimizer
    if values and hasattr(optimizer, "set_weights"):
        with model.graph.as_default(), model.graph.name_scope(None):
            with model.graph.name_scope(optimizer._name):
                optimizer._create_all_weights(model.trainable_weights)
            optimizer.set_weights(values)


def compile_config(model: Any) -> Any:
    """What `compile` was given, as plain values; None where it was not called, or, with a warning,
    where a part has no name.
    """
    from estimatorkit.keras import losses, metrics, optimizers

    compiled = model._compiled
    if compiled is None:
        return None
    try:
        if not hasattr(compiled.optimizer, "get_config"):
            raise ValueError(f"{type(compiled.optimizer).__name__} does not describe itself")
        with model.graph.as_default():
            optimizer = optimizers.serialize(compiled.optimizer)
        return model_config.plain_value(
            {
                "optimizer": optimizer,
                "loss": _each(_named(losses.serialize), compiled.loss),
                "metrics": _each(_named(metrics.serialize), compiled.given_metrics),
                "loss_weights": compiled.given_loss_weights,
                "weighted_metrics": _each(
                    _named(metrics.serialize), compiled.given_weighted_metrics
                ),
            },
            model.name,
        )
    except (ValueError, NotImplementedError) as error:
        _log.warning(
            "The model %r is saved without what compile() was given, because a part of it has no "
            "name: compile it after loading. %s",
            *(model.name, error),
        )
        return None


def compile_from_config(
    model: Any, config: Any, custom_objects: Mapping[str, Any] | None = None
) -> None:
    """Compiles a model as `compile_config` described.

    Raises:
        ValueError: a name is unknown.
    """
    from estimatorkit.keras import losses, optimizers

    def metric(value: Any) -> Any:
        return _metric(value, custom_objects)

    with model.graph.as_default():
        optimizer = optimizers.deserialize(config["optimizer"], custom_objects)
    model.compile(
        optimizer,
        loss=_each(lambda each: losses.deserialize(each, custom_objects), config.get("loss")),
        metrics=_each(metric, config.get("metrics")),
        loss_weights=config.get("loss_weights"),
        weighted_metrics=_each(metric, config.get("weighted_metrics")),
    )


def _metric(value: Any, custom_objects: Mapping[str, Any] | None) -> Any:
    """A metric; names stay names, by which logs are called."""
    from estimatorkit.keras import metrics

    named = isinstance(value, str) and get_registered_object(value, custom_objects) is None
    if named and value.lower() in ("accuracy", "acc", "crossentropy", "ce"):
        return value  # which one depends on the outputs
    found = metrics.deserialize(value, custom_objects)
    return value if named else found


def _each(function: Callable[[Any], Any], value: Any) -> Any:
    """A function on each leaf; names and {'class_name', ...} are leaves."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [_each(function, each) for each in value]
    if isinstance(value, Mapping) and "class_name" not in value:
        return {key: _each(function, each) for key, each in value.items()}
    return function(value)


def _named(serialize: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What describes an object; a name describes itself."""
    return lambda value: value if isinstance(value, str) else serialize(value)


__all__ = [
    *("compile_config", "compile_from_config", "load_model", "load_weights", "restore_training"),
    *("save_model", "save_training", "save_weights"),
]
