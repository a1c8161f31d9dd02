"""Saving and loading of models and weights.

A saved model is a checkpoint (`storage.checkpoint`) with checksums: tensors in safetensors, layers
as JSON, written atomically. It is a directory, or one file (a zip of that directory). Keras' own
files end in `.h5` (`hdf5`). Files contain no code: layers, losses and optimizers are looked up by
name in the package, the registered ones and `custom_objects`. Names read from a file are never part
of a path.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import NotFoundError, value_error
from estimatorkit.keras.engine import hdf5, model_config
from estimatorkit.keras.engine.compile_config import Contents, compile_config, compile_from_config
from estimatorkit.keras.engine.weights import (
    StoredLayer,
    check_built,
    give_values,
    of_tensorflow,
    weighted_layers,
)
from estimatorkit.layers.engine.sessions import values_of
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
_MOST_MEMBERS = 10_000  # the first bytes of a zip file
_CHECKPOINT = "model"  # the folder's name inside temporary folders


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
    """Saves a model's weights.

    Args:
        filepath: `.h5` and `.hdf5` select Keras' format if h5py is installed (`pip install
            estimatorkit[h5]`), `.keras` and `.safetensors` a single file in this package's format;
            any other name is a checkpoint, which `train.latest_checkpoint` finds.
        overwrite: whether to replace an existing file.
        save_format: 'h5', 'tf' (a checkpoint), or None to derive it from the name.
        options: accepted for compatibility only.

    Raises:
        ValueError: the file exists, the format is unknown, or the model has no variables yet.
        OpError: by errno; an existing file is left intact.
    """
    check_built(model, "save")
    path = _writable(filepath, overwrite)
    if _is_hdf5(path, save_format):
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
    """Saves a model: its layers, weights, optimizer and the arguments of `compile`.

    Args:
        model: a functional or Sequential model, or one whose class defines `get_config`.
        filepath: see `save_weights`; names without a file's suffix create a directory.
        overwrite: whether to replace an existing file.
        include_optimizer: whether to save the optimizer and its variables.
        save_format: 'h5', 'keras' (one file), 'tf' (a directory), or None to derive it from the
            name.
        signatures, options, save_traces: accepted for compatibility only.

    Raises:
        NotImplementedError, ValueError: the file exists, or the model has no config, for example
            because of a `Lambda` of an unnamed function.
        OpError: by errno; an existing file is left intact.
    """
    check_built(model, "save")
    path = _writable(filepath, overwrite)
    if _is_hdf5(path, save_format):
        hdf5.write_model(path, model, include_optimizer)
        return
    _write(path, _contents_of(model, architecture=True, optimizer=include_optimizer), save_format)


def save_training(model: Any, path: str | os.PathLike[str], epoch: int) -> None:
    """Writes weights, the optimizer's variables and the epoch to one file."""
    contents = _contents_of(model, architecture=False, optimizer=True, epoch=epoch)
    _write_file(Path(path), contents)


def _writable(filepath: str | os.PathLike[str], overwrite: bool) -> Path:
    path = Path(os.fspath(filepath))
    if not overwrite and path.exists():
        raise value_error(f"{os.fspath(path)!r} is there already", hint="pass overwrite=True")
    return path


def _is_hdf5(path: Path, save_format: str | None) -> bool:
    """Whether to write Keras' format; without h5py, the package's own single file replaces it."""
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
    """Writes a checkpoint atomically as one uncompressed zip."""
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
    """The contents of a file or directory written by this package.

    Raises NotFoundError if it does not exist, ValueError if it is something else, OpError if it is
    damaged.
    """
    path = Path(os.fspath(filepath))
    if not path.exists():
        raise NotFoundError.explained(
            f"there is no file or folder {os.fspath(path)!r}", hint="is the path right?"
        )
    if path.is_dir():
        if (path / "saved_model.pb").exists():
            raise value_error(
                f"{os.fspath(path)!r} is a SavedModel, which is a graph and not layers",
                hint="load it by saved_model.load, or save the weights in Keras as .h5",
            )
        return _parsed(path)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, _CHECKPOINT)
        folder.mkdir()
        _unpack(path, folder)
        return _parsed(folder)


def _unpack(path: Path, folder: Path) -> None:
    """Unpacks a zip from `_write_file`: only known names, uncompressed and not overlapping."""

    def no_model(received: str) -> ValueError:
        return value_error(
            f"{os.fspath(path)!r} is no model of estimatorkit",
            expected="a zip of the files of a checkpoint, not compressed",
            received=received,
            hint="Keras 3's .keras files: save the weights there as .weights.h5",
        )

    try:
        with os_errors("read the model", path), zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            held = path.stat().st_size
            if len(members) > _MOST_MEMBERS:
                raise no_model(f"{len(members)} members")
            if sum(each.file_size for each in members) > held:
                raise no_model(f"members of more than the {held} bytes of the file")
            names: set[str] = set()
            for each in members:
                plain = is_checkpoint_file(each.filename) and each.compress_type == 0
                if not plain or each.filename in names:
                    raise no_model(f"a member {each.filename!r:.100}")
                names.add(each.filename)
            for each in members:
                with archive.open(each) as source, open(folder / each.filename, "xb") as target:
                    shutil.copyfileobj(source, target, 1 << 22)
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError) as error:
        raise value_error(
            f"{os.fspath(path)!r} is no model or damaged", received=str(error)
        ) from error


def _parsed(folder: Path) -> Contents:
    found = read_checkpoint(folder)
    state, tensors = found.state, found.tensors
    if state.get("kind") != "keras":
        raise value_error(
            f"{os.fspath(folder)!r} is a checkpoint, but not of a Keras-style model",
            received=f"tensors {sorted(tensors)[:5]}",
            hint="restore it by train.Saver",
        )
    try:
        layers = [
            StoredLayer(name, [(key, tensors[f"layers/{name}/{key}"]) for key in keys])
            for name, keys in state["layers"]
        ]
        optimizer = [tensors[f"optimizer/{n}"] for n in range(state["optimizer_weights"])]
        return Contents(layers, optimizer, state["model"], state["compiled"], state["epoch"])
    except (KeyError, TypeError, ValueError) as error:
        raise value_error(
            f"{os.fspath(folder)!r} is not laid out as a saved model",
            received=f"{type(error).__name__}: {error}",
        ) from error


def load_weights(
    model: Any,
    filepath: str | os.PathLike[str],
    by_name: bool = False,
    skip_mismatch: bool = False,
    options: Any = None,
) -> None:
    """Loads a model's weights from a file.

    Args:
        model: a model with variables.
        filepath: written by `save_weights` or `save_model`, a Keras file (`.h5`, with h5py), or a
            TensorFlow checkpoint.
        by_name: match layers by name and ignore others; otherwise match by order.
        skip_mismatch: with `by_name`, skip layers with different shapes.
        options: accepted for compatibility only.

    Raises:
        ValueError: layers, weights or shapes do not match; nothing was changed.
        OpError: the file does not exist or is damaged.
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
    """Loads a model, compiled as when it was saved.

    Args:
        filepath: written by `save_model`, or a whole model of Keras (`.h5`, with h5py).
        custom_objects: the user's classes and functions by name. Nothing is imported by name.
        compile: whether to compile it.
        safe_mode: must be True: files contain no code.
        options: accepted for compatibility only.

    Raises:
        ValueError: the file contains no model, or a name is unknown.
        OpError: the file does not exist or is damaged.
    """
    if not safe_mode:
        raise ValueError("load_model: safe_mode=False is not supported: files hold no code")
    path = os.fspath(filepath)
    contents = hdf5.read_model(Path(path)) if _begins_with(path, _HDF5) else read(path)
    if contents.model is None:
        raise value_error(
            f"{path!r} holds weights, but no model",
            hint="build the model and call load_weights",
        )
    model = model_config.made_model(contents.model, custom_objects, f"a model in {path!r}")
    if contents.layers:
        check_built(model, "load")
        give_values(model, contents.layers)
    if compile and contents.compiled is not None:
        with model_config.readable(f"what compile() was given, in {path!r},"):
            compile_from_config(model, contents.compiled, custom_objects)
            _restore_optimizer(model, contents.optimizer)
    return model


def restore_training(model: Any, path: str | os.PathLike[str]) -> int | None:
    """Restores the result of `save_training` and returns its epoch; None if the file does not
    exist."""
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


__all__ = [
    "load_model",
    "load_weights",
    "restore_training",
    "save_model",
    "save_training",
    "save_weights",
]
