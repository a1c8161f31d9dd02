"""`load_predictor`: an exported model as a function of arrays, without its code.

`exported_files` reads an export: one graph per signature, whose device parts are StableHLO. The
first call of a signature imports its graph and transfers its variables to the device; later calls
only feed, run and fetch. Thread-safe.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import as_array
from estimatorkit.core.dtypes import DType, as_dtype, string
from estimatorkit.core.errors import (
    InvalidArgumentError,
    NotFoundError,
    did_you_mean,
    value_error,
)
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.x64 import x64
from estimatorkit.data.cell_formats import as_cells, number_cell
from estimatorkit.estimator.serving import exported_files as files
from estimatorkit.estimator.serving.exported_module import UnsupportedShapesError
from estimatorkit.interop.graphdef import import_graph_def
from estimatorkit.runtime.session import Session
from estimatorkit.storage.gfile import local_path
from estimatorkit.train.saving.saved_model_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY

_MOST_EXECUTABLES = 64
"""For shapes that clients choose: each takes about 3 MB."""

BLOCK = 1024
"""Rows at once: temporaries of more exceed the caches, and fewer have more overhead."""

_MOST_REPEATED_BYTES = 1 << 28
"""A request of a few megabytes must not become terabytes."""

_VERSION = re.compile(r"0|[1-9][0-9]{0,18}")


class Signature:
    """The inputs and outputs of a predictor's signature.

    Attributes:
        name: such as 'serving_default'.
        method: the method of servers, such as 'tensorflow/serving/predict'.
        inputs: dtype and shape by input.
        outputs: dtype and shape by output.
        pads: padding values, by input of a variable number of values.
        general: the same signature of a graph that takes any shapes, or None.
    """

    def __init__(self, name: str, entry: files.GraphSignature) -> None:
        self.name = name
        self.method = entry.method
        self.graph = entry.graph
        self.inputs = {key: _described(each) for key, each in entry.inputs.items()}
        self.outputs = {key: _described(each) for key, each in entry.outputs.items()}
        self.feeds = {key: each.tensor for key, each in entry.inputs.items()}
        self.pads = {
            key: each.pad
            for key, each in entry.inputs.items()
            if each.pad is not None and self.inputs[key][1].rank == 2
        }
        self.fetches = {key: each.tensor for key, each in entry.outputs.items()}
        general = entry.general if isinstance(entry, files.SignatureEntry) else None
        self.general = None if general is None else Signature(name, general)

    def __repr__(self) -> str:
        def listed(tensors: Mapping[str, tuple[DType, TensorShape]]) -> str:
            return ", ".join(
                f"{key}: {dtype.name}{shape}" for key, (dtype, shape) in tensors.items()
            )

        return f"<Signature {self.name!r}: ({listed(self.inputs)}) -> ({listed(self.outputs)})>"


def _described(entry: files.TensorEntry) -> tuple[DType, TensorShape]:
    return as_dtype(entry.dtype), TensorShape(entry.shape)


class Predictor:
    """An exported model as a function; see `load_predictor`.

    Args:
        directory: the model's folder.
        few_runs: whether it is called a few times only: XLA then optimizes little.

    Attributes:
        directory: the model's folder.
        signatures: `Signature`s by name.
        versions: versions of the software that wrote the model: 'estimatorkit', 'jax' and others.
    """

    def __init__(self, directory: Path, few_runs: bool = False) -> None:
        self.directory = directory
        self._few_runs = few_runs
        self._contents = files.read_signature(directory)
        self._weights: dict[str, Any] = files.read_weights(directory, self._contents)
        self.versions = dict(self._contents.versions)
        self.signatures = {
            name: Signature(name, entry) for name, entry in self._contents.signatures.items()
        }
        self._lock = threading.Lock()
        self._sessions: dict[int, Session] = {}
        self._calls: dict[tuple[Any, ...], Callable[..., list[NDArray[Any]]]] = {}
        self._closed = False

    def signature(self, name: str | None = None) -> Signature:
        """The signature with a name; by default 'serving_default', or the only one.

        Raises:
            ValueError: there is none.
        """
        wanted = DEFAULT_SERVING_SIGNATURE_DEF_KEY if name is None else name
        if name is None and wanted not in self.signatures and len(self.signatures) == 1:
            wanted = next(iter(self.signatures))
        if wanted not in self.signatures:
            raise value_error(
                f"the exported model has no signature {wanted!r}",
                expected=", ".join(sorted(self.signatures)),
                hint=did_you_mean(wanted, self.signatures),
            )
        return self.signatures[wanted]

    def __call__(
        self, inputs: Mapping[str, Any], signature: str | None = None
    ) -> dict[str, NDArray[Any]]:
        """Computes the outputs for a batch of inputs.

        Args:
            inputs: arrays (or lists) by input, `(batch, ...)`; text may be `str` or `bytes`.
                `(batch,)` is accepted for `(batch, 1)` and for a variable number of values. One row
                is repeated for those of the others, as a user's for all candidates, if the outputs
                of rows do not depend on each other.
            signature: its name; 'serving_default' by default.

        Returns:
            Arrays by output.

        Raises:
            ValueError: an input is missing, unknown, or of another shape or dtype; or there is no
                such signature.
            InvalidArgumentError: the model rejects a value, or the predictor is closed.
        """
        return self.answers(inputs, [self.signature(signature)])[0]

    def answers(
        self, inputs: Mapping[str, Any], signatures: Sequence[Signature]
    ) -> list[dict[str, NDArray[Any]]]:
        """Like a call, of several signatures with the same graph and inputs, in one run.

        Returns:
            The outputs of each.
        """
        first = signatures[0]
        fed = _as_fed(first, inputs)
        rows = 0
        if self.has_independent_rows(first):
            rows = _batch_size(first, fed)
            fed = _repeated(first, fed, rows)
        left = map(array_of, self._in_blocks(signatures, fed, rows))
        return [{key: next(left) for key in each.fetches} for each in signatures]

    def _in_blocks(
        self, signatures: Sequence[Signature], fed: list[Any], rows: int
    ) -> list[NDArray[Any]]:
        """Computes the outputs; independent rows are computed in blocks of at most `BLOCK`.

        Args:
            signatures: of the same graph and inputs.
            fed: the inputs.
            rows: the number of independent rows; 0: rows depend on each other.

        Blocks of equal size need one executable for all large batches, and their intermediate
        values fit into caches: 10,000 rows of an ensemble for tables take two thirds of the time.
        """
        size = min(_next_size(rows), BLOCK)
        if size in (rows, 0):
            return self._run(signatures, fed)
        if missing := -rows % size:
            fed = [np.concatenate([each, np.repeat(each[-1:], missing, 0)]) for each in fed]
        blocks: list[list[NDArray[Any]]] = []
        for at in range(0, rows, size):
            try:
                blocks.append(self._run(signatures, [each[at : at + size] for each in fed]))
            except InvalidArgumentError as error:
                if at:
                    error.add_note(f"in the rows from {at} on, of which the first is number 0")
                raise
        return [np.concatenate(parts)[:rows] for parts in zip(*blocks, strict=True)]

    def _run(self, signatures: Sequence[Signature], fed: list[Any]) -> list[NDArray[Any]]:
        try:
            return self._call(signatures)(*fed)
        except UnsupportedShapesError:
            general = [each.general for each in signatures if each.general is not None]
            if len(general) < len(signatures):
                raise
            return self._call(general)(*fed)

    def _call(self, signatures: Sequence[Signature]) -> Callable[..., list[NDArray[Any]]]:
        return self._calls.get(_key(signatures)) or self._opened(signatures)

    def has_independent_rows(self, signature: Signature) -> bool:
        """Whether the outputs of a row do not depend on the other rows of a batch."""
        return bool(self._contents.graphs[signature.graph].rows_alone)

    def _opened(self, signatures: Sequence[Signature]) -> Callable[..., list[NDArray[Any]]]:
        first = signatures[0]
        with self._lock:
            if self._closed:
                raise InvalidArgumentError.explained(
                    "the predictor is closed", hint="load the model again"
                )
            session = self._sessions.get(first.graph)
            if session is None:
                session = self._sessions[first.graph] = self._session(first.graph)
            try:
                fetches = [name for each in signatures for name in each.fetches.values()]
                call = session.make_callable(fetches, list(first.feeds.values()))
            except (TypeError, ValueError, KeyError) as error:
                files.damaged(
                    self.directory / files.SIGNATURE,
                    f"signature {first.name!r} does not fit its graph",
                    received=str(error).splitlines()[0],
                )
            self._calls[_key(signatures)] = call
            return call

    def _session(self, number: int) -> Session:
        path = self.directory / files.FOLDER / f"graph-{number}.pb"
        graph_def = files.fill_graph(self.directory, number, self._contents, self._weights)
        graph = Graph()
        try:
            with graph.as_default():
                import_graph_def(graph_def, name="")
            graph.finalize()
            session = Session(graph=graph)
            session.state.most_executables = _MOST_EXECUTABLES
            if self._few_runs:
                session.state.few_runs, session.state.executor = True, "xla"
            entry = self._contents.graphs[number]
            for name in entry.variables:
                handle = graph.get_operation_by_name(name)
                value = self._weights[f"variable/{name}"]
                dtype, shape = handle.attrs["dtype"], handle.attrs["shape"]
                if role_of(handle) is not Role.VARIABLE or not shape.is_compatible_with(
                    value.shape
                ):
                    raise ValueError(f"variable {name} is not of shape {value.shape}")
                session.state.values[name] = _on_device(as_array(value, dtype))
            session.run([graph.get_operation_by_name(name) for name in entry.initializers])
        except (ValueError, TypeError, KeyError) as error:
            files.damaged(path, "it cannot be loaded", received=str(error)[:500])
        return session

    def close(self) -> None:
        """Frees the model's memory; idempotent."""
        with self._lock:
            self._closed = True
            for session in self._sessions.values():
                session.close()
            self._sessions.clear()
            self._calls.clear()
            self._weights.clear()

    def __enter__(self) -> Predictor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Predictor of {os.fspath(self.directory)!r}: {sorted(self.signatures)}>"


def array_of(value: Any) -> NDArray[Any]:
    """A fetched or fed value as an array, text as objects.

    NumPy's own strings lose zero bytes at their end.
    """
    array = np.asarray(value, object if isinstance(value, (bytes, str)) else None)
    return array.astype(object) if array.dtype.kind in "SU" else array


def _key(signatures: Sequence[Signature]) -> tuple[Any, ...]:
    return signatures[0].graph, *(each.name for each in signatures)


def _on_device(value: NDArray[Any]) -> Any:
    """A variable's value on the device, shared by all calls: transferring 3 MB takes 0.4 ms."""
    if value.dtype == object:
        return value
    with x64():
        return jax.device_put(value)


def _as_fed(signature: Signature, inputs: Mapping[str, Any]) -> list[Any]:
    """The inputs as arrays, in the order of the signature's feeds."""
    if inputs.keys() != signature.inputs.keys():
        unknown = [key for key in inputs if key not in signature.inputs]
        missing = [key for key in signature.inputs if key not in inputs]
        problem = f"unknown input {unknown[0]!r}" if unknown else f"input {missing[0]!r} is missing"
        raise value_error(
            f"signature {signature.name!r}: {problem}",
            expected=", ".join(map(str, signature.inputs)),
            received=", ".join(map(str, inputs)) or "none",
            hint=did_you_mean(str(unknown[0]), signature.inputs) if unknown else None,
        )
    fed = []
    for key, spec in signature.inputs.items():
        pad = signature.pads.get(key)
        value = inputs[key] if pad is None else _evened(inputs[key], pad)
        array = _array(signature.name, key, value, *spec)
        fed.append(array if pad is None else padded(array, pad, _next_size(max(1, array.shape[1]))))
    return fed


def _evened(value: Any, pad: Any) -> Any:
    """Pads lists of different lengths to the longest."""
    if not isinstance(value, list) or not all(isinstance(each, list) for each in value):
        return value
    longest = max(map(len, value), default=0)
    return [each + [pad] * (longest - len(each)) for each in value]


def padded(array: NDArray[Any], pad: Any, width: int) -> NDArray[Any]:
    """A matrix with columns of a value appended."""
    missing = width - array.shape[1]
    value = pad.encode() if isinstance(pad, str) else pad
    return np.concatenate([array, np.full((len(array), missing), value, array.dtype)], 1)


def _array(name: str, key: str, value: Any, dtype: DType, shape: TensorShape) -> NDArray[Any]:
    try:
        array = _cast(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise value_error(
            f"signature {name!r}: input {key!r} is of another kind{_refused_row(value, dtype)}",
            expected=f"{dtype.name} of shape {shape}",
            received=f"{value!r:.100}: {error}",
        ) from error
    if array.ndim and shape.rank == array.ndim + 1 and shape[-1] in (1, None):
        array = array[..., None]
    if not shape.is_compatible_with(array.shape):
        raise value_error(
            f"signature {name!r}: input {key!r} has another shape",
            expected=f"{dtype.name} of shape {shape}",
            received=f"shape {array.shape}",
            hint="the first dimension is that of the examples" if array.ndim == 0 else None,
        )
    return array


def _cast(value: Any, dtype: DType) -> NDArray[Any]:
    if dtype is string:
        return np.asarray(as_array(_texts(value), string))
    array = np.asarray(value)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite; compared below
        cast = array.astype(dtype.numpy_dtype, copy=False)
    if dtype.is_integer and array.dtype.kind not in "iu" and (cast != array).any():
        raise ValueError("fractions are not integers")
    return cast


def _refused_row(value: Any, dtype: DType) -> str:
    """Where in a list the first value is that cannot be cast."""
    for number, each in enumerate(value if isinstance(value, list) else ()):
        try:
            _cast(each, dtype)
        except (TypeError, ValueError, OverflowError):
            return f" in row {number}"
    return ""


def _texts(value: Any) -> Any:
    """Numbers as text: what a column of cells with a format reads alike, and nothing as ''."""
    if isinstance(value, list | tuple):
        return [_texts(each) for each in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        return as_cells(value.reshape(-1)).reshape(value.shape)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return b"" if value is None else number_cell(value)
    return value


def _batch_size(signature: Signature, fed: list[Any]) -> int:
    """The number of rows, of which an input has all or one."""
    sizes = {key: len(each) for key, each in zip(signature.inputs, fed, strict=True)}
    several = set(sizes.values()) - {1}
    if len(several) > 1:
        raise value_error(
            f"signature {signature.name!r}: inputs have different numbers of examples",
            expected="one number, or 1 for an input whose row is repeated",
            received=", ".join(f"{key}: {size}" for key, size in sizes.items()),
        )
    return several.pop() if several else min(1, len(sizes))


def _repeated(signature: Signature, fed: list[Any], rows: int) -> list[Any]:
    """Broadcasts inputs of one row to the size of the batch."""
    if all(len(each) == rows for each in fed):
        return fed
    size = sum(each[:1].nbytes for each in fed if len(each) == 1) * rows
    if size > _MOST_REPEATED_BYTES:
        raise value_error(
            f"signature {signature.name!r}: an input is too large to be repeated for all rows",
            expected=f"at most {_MOST_REPEATED_BYTES} bytes",
            received=f"{size} bytes, for {rows} rows",
            hint="send fewer rows in a request",
        )
    return [np.repeat(each, rows, 0) if len(each) != rows else each for each in fed]


def _next_size(count: int) -> int:
    """The padded number of rows or values: powers of two up to 1024, then multiples of 1024.

    Each size is compiled once, in 100 ms to some seconds; computing the padding takes less.
    """
    if count <= 1024:
        return 1 << (count - 1).bit_length() if count else 0
    return -(-count // 1024) * 1024


def load_predictor(export_dir: str | bytes | os.PathLike[str]) -> Predictor:
    """Loads a model that `Estimator.export_saved_model` wrote.

    The model's code is not needed and nothing is imported by name; variables, vocabularies and
    programs come from the folder, whose files are verified by sha256.

    Args:
        export_dir: the folder of one version (`.../1700000000`), or its parent, for the newest
            version.

    Returns:
        A thread-safe function `predictor(inputs, signature=None)`, which is also a context manager
        with a method `close()`.

    Raises:
        NotFoundError: there is no exported model.
        DataLossError: a file is damaged, or was not written by an export.
        FailedPreconditionError: a newer version of this package wrote it, or this version of JAX
            cannot run it.
    """
    folder = Path(local_path(export_dir))
    if not (folder / files.SIGNATURE).exists():
        versions = versions_of(folder)
        if not versions:
            raise no_export(folder)
        folder = folder / str(versions[-1])
    return Predictor(folder)


def no_export(folder: Path) -> NotFoundError:
    """The error for a folder that is no export and has none."""
    hint = "estimator.export_saved_model(directory, serving_input_receiver_fn)"
    if any(folder.glob("saved_model.pb")) or any(folder.glob("*/saved_model.pb")):
        hint = "this SavedModel is TensorFlow's: tf.contrib.predictor.from_saved_model runs it"
    return NotFoundError.explained(
        f"there is no exported model in {str(folder)!r}",
        expected=f"{files.SIGNATURE}, or folders whose names are numbers",
        hint=hint,
    )


def versions_of(base: Path) -> list[int]:
    """The versions of a model in a folder of exports, oldest first."""
    try:
        names = [entry.name for entry in os.scandir(base) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    numbers = sorted(int(name) for name in names if _VERSION.fullmatch(name))
    return [each for each in numbers if (base / str(each) / files.SIGNATURE).is_file()]


__all__ = ["Predictor", "Signature", "array_of", "load_predictor", "padded", "versions_of"]
