"""TensorBoard's embedding projector: configuration and data.

`visualize_embeddings` writes the projector's configuration into a run's folder. TensorBoard does
not read this package's checkpoints, so the matrices are in tables next to them, which
`visualize_embeddings` and each later checkpoint of the folder bring up to date. Paths are relative
to the folder, since the projector rejects others and the folder may be moved.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.interop.graph_util import proto_bytes
from estimatorkit.logger import logger
from estimatorkit.storage.atomic_files import write_durably
from estimatorkit.storage.checkpoint import (
    checkpoint_exists,
    latest_checkpoint,
    list_variables,
    load_variable,
)

CONFIG = "projector_config.pbtxt"


def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Writes the projector's configuration into a run's folder.

    Args:
        summary_writer: a `FileWriter`, or the folder.
        config: a `ProjectorConfig` proto. Its file paths may be absolute, or relative to the
            folder; TensorBoard does not show files outside it, which a warning reports.
            Embeddings without a `tensor_path` are variables of the folder's checkpoints.
    """
    logdir = _logdir(summary_writer)
    written = type(config)()
    written.CopyFrom(config)
    for embedding in written.embeddings:
        for owner, field in (
            *((embedding, name) for name in ("metadata_path", "tensor_path", "bookmarks_path")),
            (embedding.sprite, "image_path"),
        ):
            if getattr(owner, field):
                setattr(owner, field, _relative(getattr(owner, field), logdir))
    logdir.mkdir(parents=True, exist_ok=True)
    write_durably(logdir / CONFIG, proto_bytes(written, as_text=True))
    write_from_checkpoint(logdir)


def write_from_checkpoint(folder: str | os.PathLike[str]) -> None:
    """Writes the matrices that a folder's configuration names, from its newest checkpoint.

    Embeddings with files of their own stay as they are, and so do those that no checkpoint has.

    Raises:
        ValueError: the configuration cannot be read.
    """
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

    logdir = Path(folder)
    try:
        config = text_format.Parse((logdir / CONFIG).read_text("utf-8"), ProjectorConfig())
    except text_format.ParseError as error:
        raise ValueError(f"{logdir / CONFIG}: {error}") from error
    given = config.model_checkpoint_path
    checkpoint = given if given and checkpoint_exists(given) else latest_checkpoint(logdir)
    if checkpoint is None:
        return
    shapes = dict(list_variables(checkpoint))
    for embedding in config.embeddings:
        name = embedding.tensor_name.removesuffix(":0")
        is_ours = embedding.tensor_path in ("", _file_name(embedding))
        if is_ours and len(shapes.get(name, ())) == 2:
            _write(logdir, embedding, load_variable(checkpoint, name))
    write_durably(logdir / CONFIG, proto_bytes(config, as_text=True))


def _file_name(embedding: Any) -> str:
    return f"{embedding.tensor_name.removesuffix(':0').replace('/', '-')}.tsv"


def _write(logdir: Path, embedding: Any, value: NDArray[Any]) -> None:
    """Writes a matrix as text: TensorBoard detects raw numbers only if they are invalid UTF-8."""
    rows = ("\t".join(map(repr, row)) for row in np.asarray(value, np.float32).tolist())
    write_durably(logdir / _file_name(embedding), ("\n".join(rows) + "\n").encode())
    embedding.tensor_path = _file_name(embedding)
    embedding.tensor_shape[:] = value.shape


def _logdir(summary_writer: Any) -> Path:
    get = getattr(summary_writer, "get_logdir", None)
    return Path(summary_writer if get is None else get())


def _relative(path: str, logdir: Path) -> str:
    root = os.path.realpath(logdir)
    full = os.path.realpath(os.path.join(root, path))
    if os.path.commonpath([root, full]) != root:
        logger.warning(
            "The projector's file %s is outside the run's folder %s: TensorBoard does not show it; "
            "copy it there.",
            path,
            root,
        )
        return path
    return Path(os.path.relpath(full, root)).as_posix()


def write_embeddings(summary_writer: Any, config: Any, session: Any) -> None:
    """Writes the projector's data and configuration.

    Args:
        summary_writer: a `FileWriter`, or the folder.
        config: a `ProjectorConfig` proto. For each embedding without a `tensor_path`, the current
            value of the variable `tensor_name` is written to a file, and path and shape are set.
        session: the session that holds the variables.

    Raises:
        ValueError: there is no such variable, or it is not a matrix.
    """
    logdir = _logdir(summary_writer)
    logdir.mkdir(parents=True, exist_ok=True)
    for embedding in config.embeddings:
        if not embedding.tensor_path:
            _write(logdir, embedding, _value(embedding.tensor_name, session))
    visualize_embeddings(logdir, config)


def _value(tensor_name: str, session: Any) -> Any:
    variables = {
        variable.op.name: variable for variable in session.graph.get_collection("variables")
    }
    variable = variables.get(tensor_name.removesuffix(":0"))
    if variable is None:
        raise value_error(
            f"there is no variable {tensor_name!r}",
            hint=did_you_mean(tensor_name, variables),
        )
    value = np.asarray(session.run(variable), np.float32)
    if value.ndim != 2:
        raise value_error(
            f"the projector shows matrices with one row per point; {tensor_name!r} is not a matrix",
            expected="shape (points, dimensions)",
            received=str(variable.shape),
        )
    return value
