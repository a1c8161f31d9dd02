"""`InputSpec`: constraints on a layer's inputs, checked before each call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import value_error
from estimatorkit.core.nest import flatten
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor


class InputSpec:
    """Requirements on one input of a layer.

    Args:
        dtype: the dtype.
        shape: the shape, with None for any length.
        ndim: the rank.
        max_ndim, min_ndim: bounds on the rank.
        axes: a dict from axes to lengths.
        allow_last_axis_squeeze: accepted for compatibility only.
        name: accepted for compatibility only.

    Raises:
        TypeError: a key of `axes` is not an integer.
        ValueError: `axes` has an axis beyond the rank.
    """

    def __init__(
        self,
        dtype: Any = None,
        shape: Any = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: Mapping[int, int | None] | None = None,
        allow_last_axis_squeeze: bool = False,
        name: str | None = None,
    ) -> None:
        self.dtype = None if dtype is None else as_dtype(dtype).name
        self.shape = None if shape is None else tuple(shape)
        self.ndim = ndim if self.shape is None else len(self.shape)
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        if not all(isinstance(axis, (int, np.integer)) for axis in axes or {}):
            raise TypeError(f"Argument `axes` must be a dict with integer keys. Received: {axes}")
        self.axes = {int(axis): length for axis, length in (axes or {}).items()}
        rank = self.ndim if self.ndim is not None else self.max_ndim
        if rank is not None and self.axes and max(self.axes) >= rank:
            raise ValueError(
                f"Axis {max(self.axes)} is greater than the maximum allowed value: {rank - 1}"
            )
        self.allow_last_axis_squeeze = allow_last_axis_squeeze
        self.name = name

    def __repr__(self) -> str:
        given = {key: value for key, value in vars(self).items() if value not in (None, {}, False)}
        return f"InputSpec({', '.join(f'{key}={value}' for key, value in given.items())})"

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        names = ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> InputSpec:
        """Creates one from the result of `get_config`."""
        return cls(**config)


def check_inputs(specs: Any, inputs: Any, layer: str) -> None:
    """Checks inputs against an `InputSpec`, a structure of them, or None.

    Raises:
        ValueError: the inputs are incompatible; the message names `layer`.
    """
    if specs is None:
        return
    wanted = flatten(specs)
    given = flatten(inputs)
    if len(wanted) != len(given):
        raise ValueError(
            f'Layer "{layer}" expects {len(wanted)} input(s), but it received {len(given)} input '
            f"tensors. Inputs received: {inputs}"
        )
    for number, (spec, tensor) in enumerate(zip(wanted, given, strict=True)):
        if spec is not None and isinstance(tensor, Tensor):
            problem = _problem(spec, tensor)
            if problem is not None:
                raise value_error(
                    f'Input {number} of layer "{layer}" is incompatible with the layer: {problem}',
                    received=f"{tensor.name}, shape {tensor.shape}, {tensor.dtype.name}",
                    made_at=tensor.op.source,
                )


def _problem(spec: InputSpec, tensor: Tensor) -> str | None:
    if spec.dtype is not None and tensor.dtype.name != spec.dtype:
        return f"expected dtype={spec.dtype}, found dtype={tensor.dtype.name}"
    rank = tensor.shape.rank
    if rank is None:
        return None
    full = f"Full shape received: {_text(tensor)}"
    if spec.ndim is not None and rank != spec.ndim:
        return f"expected ndim={spec.ndim}, found ndim={rank}. {full}"
    if spec.max_ndim is not None and rank > spec.max_ndim:
        return f"expected max_ndim={spec.max_ndim}, found ndim={rank}"
    if spec.min_ndim is not None and rank < spec.min_ndim:
        return f"expected min_ndim={spec.min_ndim}, found ndim={rank}. {full}"
    dims = tensor.shape.dims or ()
    for axis, length in spec.axes.items():
        if length is not None and dims[axis] not in (length, None):
            return (
                f"expected axis {axis} of input shape to have value {length}, but received input "
                f"with shape {_text(tensor)}"
            )
    for axis, length in enumerate(spec.shape or ()):
        if length is not None and dims[axis] not in (length, None):
            return f"expected shape={spec.shape}, found shape={_text(tensor)}"
    return None


def _text(tensor: Tensor) -> str:
    return str(tuple(tensor.shape.dims or ()))


def as_shapes(shape: Any) -> Any:
    """Converts a shape or nested shapes (tuples, lists, `TensorShape`s) to `TensorShape`s."""
    if isinstance(shape, TensorShape):
        return shape
    if isinstance(shape, Mapping):
        return {key: as_shapes(value) for key, value in shape.items()}
    if all(each is None or isinstance(each, (int, np.integer)) for each in shape):
        return TensorShape(shape)
    return [as_shapes(each) for each in shape]


__all__ = ["InputSpec", "as_shapes", "check_inputs"]
