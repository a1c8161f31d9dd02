"""`ExportedModule`: part of a graph as StableHLO, which runs without its source operations.

An exported model holds each device segment of its plans as one operation of this type. Its program
was written by `jax.export`; it is parsed, never unpickled, and rejected if it calls anything but
XLA and the numerical routines that JAX guarantees to keep.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.export
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    value_error,
)
from estimatorkit.core.registry import Spec, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor

OP_TYPE = "ExportedModule"
PLATFORMS = ("cpu", "cuda", "tpu")

_CALL = re.compile(r"custom_call(?:\s+@(?P<target>[\w.$-]+))?")
# Checks of shapes, sharding, top-k and dense linear algebra. Python callbacks, which take an
# address as argument, are deliberately excluded.
_SAFE_CALLS = re.compile(
    r"shape_assertion|Sharding|stablehlo\.dynamic_\w+|mhlo\.\w+|chlo\.\w+|ApproxTopK|Eigh|Qr"
    r"|LuDecomposition|ProductOfElementaryHouseholderReflectors"
    r"|(?:lapack|cusolver|cusparse|hipsolver|cu|hip)_\w+"
)
_MALFORMED = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    AssertionError,
    NotImplementedError,
    OverflowError,
    struct.error,
    RecursionError,
    RuntimeError,
)
"""The exceptions of JAX's reader on malformed bytes."""


@functools.lru_cache(maxsize=256)
def read_module(data: bytes) -> jax.export.Exported:
    """Deserializes a program.

    Raises:
        DataLossError: the bytes are damaged, or the program calls targets that exports never call.
        FailedPreconditionError: another version of JAX, or another platform, is needed.
    """
    try:
        found = jax.export.deserialize(bytearray(data))
        version = found.calling_convention_version
        platforms = found.platforms
        text = found.mlir_module() if _is_supported(version) else ""
    except _MALFORMED as error:
        raise DataLossError.explained(
            "a program of the exported model cannot be read",
            expected=f"StableHLO that jax {jax.__version__} reads",
            received=f"{len(data)} bytes; {str(error)[:200]}",
            hint="export the model again with this version of jax, or install the one that "
            "signature.json names",
        ) from error
    if not _is_supported(version):
        raise FailedPreconditionError.explained(
            "a program of the exported model is of a version that this jax cannot run",
            expected=f"calling convention {_supported()} (jax {jax.__version__})",
            received=f"calling convention {version}",
            hint="export the model again with this version of jax, or install the one that "
            "signature.json names",
        )
    platform = jax.export.default_export_platform()
    if platform not in platforms:
        raise FailedPreconditionError.explained(
            f"the exported model has no program for {platform}",
            expected=" or ".join(platforms),
            received=platform,
            hint=f"export it again where {platform} is, or set JAX_PLATFORMS={platforms[0]}",
        )
    for call in _CALL.finditer(text):
        if _SAFE_CALLS.fullmatch(call["target"] or "") is None:
            raise DataLossError.explained(
                "a program of the exported model calls a function that exports never call",
                received=call["target"] or text[call.start() : call.start() + 60],
                hint="do not load this model: it was not written by this package",
            )
    return found


def _supported() -> str:
    return (
        f"{jax.export.minimum_supported_calling_convention_version} to "
        f"{jax.export.maximum_supported_calling_convention_version}"
    )


def _is_supported(version: int) -> bool:
    first = jax.export.minimum_supported_calling_convention_version
    return first <= version <= jax.export.maximum_supported_calling_convention_version


class UnsupportedShapesError(InvalidArgumentError):
    """A program does not take inputs of these shapes, such as empty ones."""


def _run(*inputs: Any, module: NDArray[np.uint8]) -> tuple[Any, ...]:
    call: Any = read_module(module.tobytes()).call
    try:
        return tuple(call(list(inputs)))
    except ValueError as error:
        raise UnsupportedShapesError.explained(
            "the program of an exported model does not take inputs of these shapes",
            received=f"{', '.join(str(each.shape) for each in inputs)}; {str(error)[:300]}",
        ) from error


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    program = read_module(attrs["module"].tobytes())
    taken = [(as_dtype(each.dtype), len(each.shape)) for each in program.in_avals]
    given = [(each.dtype, each.shape.rank) for each in inputs]
    if len(taken) != len(given) or any(
        one[0] is not other[0] or other[1] not in (None, one[1])
        for one, other in zip(taken, given, strict=True)
    ):
        raise value_error(
            "a program takes other inputs", expected=taken, received=list(map(str, inputs))
        )
    return [
        Spec(
            as_dtype(each.dtype),
            TensorShape([dim if isinstance(dim, int) else None for dim in each.shape]),
        )
        for each in program.out_avals
    ]


register(OP_TYPE, _run, infer=_infer, gradient=None)

__all__ = ["OP_TYPE", "PLATFORMS", "UnsupportedShapesError", "read_module"]
