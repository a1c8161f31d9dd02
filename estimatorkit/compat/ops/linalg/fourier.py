"""Fourier and cosine transforms.

The transforms of real values take their length as a `static` input: shorter signals are
zero-padded, longer ones truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor
from estimatorkit.core.dtypes import complex64, complex128, float32, float64
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Case,
    Spec,
    constant_value_as_shape,
    fixed_value,
    output,
    register,
)
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.array import shape
from estimatorkit.ops.array.joining import concat

_WAVE = np.array([[1.0, -0.5, 2.0, 0.25], [0.0, 3.0, -1.0, 1.5], [2.0, 1.0, 0.5, -2.0]], np.float32)
_COMPLEX = (_WAVE + 1j * _WAVE[::-1]).astype(np.complex64)
_BLOCK = np.stack([_COMPLEX, _COMPLEX[:, ::-1]])
_DOCS = {1: "the last dimension", 2: "the last two dimensions", 3: "the last three dimensions"}


def _axes(rank: int) -> tuple[int, ...]:
    return tuple(range(-rank, 0))


def _same(inputs: Any, attrs: Any) -> list[Spec]:
    return [Spec(inputs[0].dtype, inputs[0].shape)]


def _complex(op_type: str, rank: int, inverse: bool) -> Callable[..., Tensor]:
    name = "ifftn" if inverse else "fftn"
    on_device, on_host = getattr(jnp.fft, name), getattr(np.fft, name)

    register(
        op_type,
        lambda x: on_device(x, axes=_axes(rank)),
        infer=_same,
        accepts="c",
        cases=lambda: [Case((_BLOCK,), {}, on_host(_BLOCK, axes=_axes(rank)).astype(np.complex64))],
    )

    def function(input: Any, name: str | None = None) -> Tensor:
        given = convert_to_tensor(input, name="input")
        _check_rank(given, rank, op_type)
        return output(op_type, [given], name=name)

    function.__doc__ = (
        f"The {'inverse ' if inverse else ''}discrete Fourier transform over {_DOCS[rank]}.\n\n"
        "Args:\n    input: complex64 or complex128."
    )
    return function


def _check_rank(tensor: Tensor, rank: int, what: str) -> None:
    if tensor.shape.rank is not None and tensor.shape.rank < rank:
        raise value_error(
            f"Shape must be at least rank {rank} but is rank {tensor.shape.rank} for {what}",
            received=tensor,
            made_at=tensor.op.source,
        )


fft = _complex("FFT", 1, False)
ifft = _complex("IFFT", 1, True)
fft2d = _complex("FFT2D", 2, False)
ifft2d = _complex("IFFT2D", 2, True)
fft3d = _complex("FFT3D", 3, False)
ifft3d = _complex("IFFT3D", 3, True)


# -- of real values


def _lengths(fft_length: Any) -> tuple[int, ...]:
    return tuple(int(length) for length in fft_length)


def _infer_real(inputs: Any, attrs: Any, rank: int, inverse: bool) -> list[Spec]:
    given = inputs[0].dtype
    if inverse:
        dtype = float64 if given is complex128 else float32
    else:
        dtype = complex128 if given is float64 else complex64
    dims, lengths = inputs[0].shape.dims, constant_value_as_shape(inputs[1]).dims
    if dims is None:
        return [Spec(dtype, UNKNOWN)]
    last: list[int | None] = [None] * rank
    if lengths is not None:
        last = list(lengths)
        if not inverse:
            last[-1] = None if last[-1] is None else last[-1] // 2 + 1
    return [Spec(dtype, TensorShape([*dims[: len(dims) - rank], *last]))]


def _real(op_type: str, rank: int, inverse: bool) -> Callable[..., Tensor]:
    transform = getattr(jnp.fft, "irfftn" if inverse else "rfftn")

    def kernel(x: Any, fft_length: Any) -> Any:
        return transform(x, s=_lengths(fft_length), axes=_axes(rank))

    def numpy_kernel(x: Any, fft_length: Any) -> Any:
        function = np.fft.irfftn if inverse else np.fft.rfftn
        result = function(x, s=_lengths(fft_length), axes=_axes(rank))
        single = x.dtype in (np.float32, np.complex64)
        return result.astype((np.float32 if inverse else np.complex64) if single else result.dtype)

    register(
        op_type,
        kernel,
        infer=lambda inputs, attrs: _infer_real(inputs, attrs, rank, inverse),
        numpy_kernel=numpy_kernel,
        static=(1,),
        accepts="c" if inverse else "d",
        cases=lambda: [
            Case(
                (
                    _BLOCK[..., :3] if inverse else _BLOCK.real.copy(),
                    np.array([2, 3, 4][3 - rank :], np.int32),
                )
            )
        ],
    )

    def function(input: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
        with get_default_graph().name_scope(name or op_type.lower()) as scope:
            given = convert_to_tensor(
                input, name="input", dtype_hint=complex64 if inverse else float32
            )
            allowed = (complex64, complex128) if inverse else (float32, float64)
            if given.dtype not in allowed:
                raise type_error(
                    f"{op_type.lower()} does not support {given.dtype.name}",
                    expected=" or ".join(dtype.name for dtype in allowed),
                    received=given,
                    made_at=given.op.source,
                )
            _check_rank(given, rank, op_type)
            if fft_length is None:
                lengths = shape(given)[-rank:]
                if inverse:
                    lengths = concat([lengths[:-1], 2 * (lengths[-1:] - 1)], 0)
            else:
                lengths = as_index_tensor(fft_length, "fft_length")
            return output(op_type, [given, lengths], name=scope)

    kind = "complex64 or complex128" if inverse else "float32 or float64"
    function.__doc__ = (
        f"The {'inverse ' if inverse else ''}Fourier transform of real values over {_DOCS[rank]}."
        f"\n\nArgs:\n    input: {kind}; the spectrum has `length // 2 + 1` frequencies in its "
        f"last dimension.\n    fft_length: int32 `({rank},)`, the lengths of the real values; "
        "those of the input by default."
    )
    return function


rfft = _real("RFFT", 1, False)
irfft = _real("IRFFT", 1, True)
rfft2d = _real("RFFT2D", 2, False)
irfft2d = _real("IRFFT2D", 2, True)
rfft3d = _real("RFFT3D", 3, False)
irfft3d = _real("IRFFT3D", 3, True)


# -- shifts


register(
    "FFTShift",
    lambda x, axes, inverse: (jnp.fft.ifftshift if inverse else jnp.fft.fftshift)(x, axes),
    infer=_same,
    accepts="ficb",
    cases=lambda: [
        Case((_WAVE,), {"axes": (1,), "inverse": False}, np.roll(_WAVE, 2, 1)),
        Case((_WAVE,), {"axes": None, "inverse": True}, np.roll(_WAVE, (-1, -2), (0, 1))),
    ],
)


def _shift(x: Any, axes: Any, inverse: bool, name: str) -> Tensor:
    given = convert_to_tensor(x, name="x")
    chosen = None if axes is None else tuple(int(axis) for axis in np.atleast_1d(axes))
    return output("FFTShift", [given], {"axes": chosen, "inverse": inverse}, name)


def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Shifts the zero frequency to the center, along `axes` (all by default)."""
    return _shift(x, axes, False, name or "fftshift")


def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shift(x, axes, True, name or "ifftshift")


# -- cosine transforms


def fitted(x: Any, length: int) -> Any:
    """Truncates or zero-pads the last axis to `length`."""
    if length <= x.shape[-1]:
        return x[..., :length]
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, length - x.shape[-1])])


def _turns(count: int, sign: int, dtype: Any) -> Any:
    kind = np.complex128 if dtype == np.float64 else np.complex64
    return (2 * np.exp(sign * 1j * np.pi * np.arange(count) / (2 * count))).astype(kind)


def _second(x: Any) -> Any:
    count = x.shape[-1]
    spectrum = jnp.fft.rfft(x, n=2 * count)[..., :count]
    return (spectrum * _turns(count, -1, x.dtype)).real


def _dct(x: Any, type: int, n: int | None, axis: int, ortho: bool) -> Any:
    given = x.dtype
    x = jnp.moveaxis(jnp.asarray(x), axis, -1)
    x = x.astype(np.float64 if given == np.float64 else np.float32)
    x = x if n is None else fitted(x, n)
    count = x.shape[-1]
    first, rest = 1.0, 1.0
    if ortho:
        first, rest = (0.5 * count**-0.5, (0.5 / count) ** 0.5)
    scale = np.array([first] + [rest] * (count - 1)).astype(x.dtype)
    if type == 1:
        result = jnp.fft.rfft(jnp.concatenate([x, x[..., -2:0:-1]], -1)).real
    elif type == 2:
        result = _second(x) * scale
    elif type == 3:
        weights = np.full(count, float(count))
        if ortho:
            weights = np.array([count**0.5] + [(count / 2) ** 0.5] * (count - 1))
        spectrum = x * weights.astype(x.dtype) * _turns(count, 1, x.dtype)
        result = jnp.fft.irfft(spectrum, n=2 * count)[..., :count]
    else:
        result = _second(fitted(x, 2 * count))[..., 1::2]
        result = result * np.asarray((0.5 / count) ** 0.5 if ortho else 1.0).astype(x.dtype)
    return jnp.moveaxis(result.astype(given), -1, axis)


def _dct_by_scipy(x: Any, attrs: Mapping[str, Any]) -> Any:
    import scipy.fft

    norm: Any = "ortho" if attrs["ortho"] else None
    return scipy.fft.dct(x, attrs["type"], attrs["n"], attrs["axis"], norm).astype(x.dtype)


def _infer_dct(inputs: Any, attrs: Any) -> list[Spec]:
    dims = inputs[0].shape.dims
    if dims is None or attrs["n"] is None:
        return _same(inputs, attrs)
    at = attrs["axis"] % len(dims)
    shape = TensorShape([*dims[:at], attrs["n"], *dims[at + 1 :]])
    return [Spec(inputs[0].dtype, shape)]


register(
    "DCT",
    _dct,
    infer=_infer_dct,
    accepts="f",
    cases=lambda: [
        Case((_WAVE,), attrs, _dct_by_scipy(_WAVE, attrs))
        for kind, ortho in ((1, False), (2, False), (2, True), (3, False), (3, True), (4, True))
        for attrs in [{"type": kind, "n": 5 if kind == 2 else None, "axis": -1, "ortho": ortho}]
    ],
)


def dct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The discrete cosine transform of type I, II, III or IV, as in SciPy.

    Args:
        input: float32 or float64.
        type: 1 to 4.
        n: the length to truncate or pad to.
        axis: the axis to transform.
        norm: None, or 'ortho' (not for type I).

    Raises:
        ValueError: the type or the norm is invalid.
    """
    if type not in (1, 2, 3, 4) or norm not in (None, "ortho") or (type == 1 and norm):
        raise value_error(
            "dct: unsupported type or norm",
            expected="type 1 to 4, norm None or 'ortho' (not with type 1)",
            received=f"type {type}, norm {norm!r}",
        )
    given = convert_to_tensor(input, name="input")
    if given.dtype not in (float32, float64):
        raise type_error("dct does not support " + given.dtype.name, expected="float32 or float64")
    length = length_along(given, axis)
    if type == 1 and (n or length or 2) < 2:
        raise ValueError("Type-I DCT requires the dimension to be greater than one.")
    attrs = {
        "type": int(type),
        "n": None if n is None else int(n),
        "axis": int(axis),
        "ortho": norm is not None,
    }
    return output("DCT", [given], attrs, name or "dct")


def idct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of `dct`, scaled by 2 * length unless `norm` is 'ortho', as in SciPy 0.19."""
    return dct(input, {2: 3, 3: 2}.get(type, type), n, axis, norm, name or "idct")


def length_along(tensor: Tensor, axis: int) -> int | None:
    """The static size of an axis, None if unknown."""
    return None if tensor.shape.rank is None else tensor.shape[axis]


def static_ints(values: Sequence[Any], what: str) -> list[int]:
    """The values of ints or constant tensors; raises ValueError for other tensors."""
    found = []
    for value in values:
        known = fixed_value(value) if isinstance(value, Tensor) else value
        if known is None:
            raise value_error(
                f"{what}: lengths must be known at graph construction",
                expected="an int or a constant",
                received=value,
            )
        found.append(int(np.asarray(known)))
    return found
