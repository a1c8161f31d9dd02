"""`tf.test.compute_gradient`: Jacobians by backpropagation and by central differences."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.gradients import gradients
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.tensor import Tensor
from estimatorkit.runtime.session import Session

Jacobians = tuple[NDArray[Any], NDArray[Any]]

_DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> Any:
    """The theoretical and numeric Jacobian of `y` with respect to `x`, in the default session.

    Args:
        x: a tensor of floats or complex numbers, or a list of them.
        x_shape: its shape, or a list of shapes.
        y: the tensor to differentiate.
        y_shape: its shape.
        x_init_value: the point: an array of `x_shape` (or a list); random in [0, 1) by default.
        delta: the step of the central differences.
        init_targets: operations to run first.
        extra_feed_dict: additional feeds.

    Returns:
        For each `x`, the theoretical and the numeric Jacobian, `(size of x, size of y)`. A complex
        number counts as two: real and imaginary part.

    Raises:
        TypeError: a tensor is neither float nor complex.
        ValueError: a value does not have the given shape, or there is no default session.
    """
    session = get_default_session()
    if session is None:
        raise ValueError("compute_gradient: use it inside `with session.as_default():`")
    if init_targets is not None:
        session.run(init_targets)
    if not isinstance(x, (list, tuple)):
        return _both(session, x, x_shape, y, y_shape, x_init_value, delta, extra_feed_dict)
    values = [None] * len(x) if x_init_value is None else x_init_value
    at = [_start(*each) for each in zip(x, x_shape, values, strict=True)]
    fed = {**dict(zip(x, at, strict=True)), **(extra_feed_dict or {})}
    return [
        _both(session, each, shape, y, y_shape, value, delta, fed)
        for each, shape, value in zip(x, x_shape, at, strict=True)
    ]


def compute_gradient_error(*args: Any, **kwargs: Any) -> float:
    """The maximum difference of the two Jacobians of `compute_gradient`; NaN if either contains
    NaN.
    """
    found = compute_gradient(*args, **kwargs)
    pairs: Sequence[Jacobians] = found if isinstance(found, list) else [found]
    return float(max((np.abs(one - other).max(initial=0.0) for one, other in pairs), default=0.0))


compute_gradient_error.__signature__ = inspect.signature(compute_gradient)  # type: ignore[attr-defined]


def _both(
    session: Session,
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any,
    delta: float,
    extra: Mapping[Any, Any] | None,
) -> Jacobians:
    for name, tensor in (("x", x), ("y", y)):
        if as_dtype(tensor.dtype).name not in _DTYPES:
            raise type_error(
                f"compute_gradient: {name} must be floats or complex numbers",
                expected=", ".join(_DTYPES),
                received=str(tensor.dtype),
            )
    at = _start(x, x_shape, x_init_value)
    feeds = dict(extra or {})
    theoretical = _theoretical(session, x, at, y, tuple(y_shape), feeds)
    return theoretical, _numeric(session, x, at, y, delta, feeds, theoretical.shape)


def _start(x: Any, x_shape: Any, value: Any) -> NDArray[Any]:
    dtype = as_dtype(x.dtype).numpy_dtype
    if value is None:
        drawn = np.random.default_rng(0).random((2, *x_shape))
        return np.asarray(drawn[0] + (1j * drawn[1] if np.iscomplexobj(dtype.type()) else 0), dtype)
    found = np.array(value, dtype)
    if found.shape != tuple(x_shape):
        raise value_error(
            "x_init_value does not have shape x_shape",
            expected=str(list(x_shape)),
            received=str(list(found.shape)),
        )
    return found


def _parts(array: NDArray[Any]) -> NDArray[Any]:
    """The elements of an array as a float64 vector, complex ones as two."""
    flat = np.ascontiguousarray(array).ravel()
    if np.iscomplexobj(flat):
        return flat.astype(np.complex128).view(np.float64)
    return flat.astype(np.float64)


def _theoretical(
    session: Session, x: Any, at: Any, y: Tensor, y_shape: tuple[int, ...], feeds: dict[Any, Any]
) -> NDArray[Any]:
    """The Jacobian by backpropagation, one element of `y` at a time."""
    with y.graph.as_default():
        seed = placeholder(y.dtype, y_shape)
        (found,) = gradients(y, x, grad_ys=seed, unconnected_gradients="zero")
        if isinstance(found, IndexedSlices):
            found = convert_to_tensor(found)
    flowing = np.zeros(y_shape, as_dtype(y.dtype).numpy_dtype)
    jacobian = np.zeros((_parts(at).size, _parts(flowing).size))
    for column in range(jacobian.shape[1]):
        unit = np.zeros(jacobian.shape[1])
        unit[column] = 1.0
        value = session.run(found, {**feeds, x: at, seed: _from_parts(unit, flowing)})
        jacobian[:, column] = _parts(value)
    return jacobian


def _numeric(
    session: Session,
    x: Any,
    at: NDArray[Any],
    y: Tensor,
    delta: float,
    feeds: dict[Any, Any],
    shape: tuple[int, ...],
) -> NDArray[Any]:
    jacobian = np.zeros(shape)
    start = _parts(at)
    for row in range(shape[0]):
        step = np.zeros(start.size)
        step[row] = delta
        above, below = (
            _parts(session.run(y, {**feeds, x: _from_parts(start + sign * step, at)}))
            for sign in (1, -1)
        )
        jacobian[row] = (above - below) / (2 * delta)
    return jacobian


def _from_parts(parts: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
    """The inverse of `_parts`, with the dtype and shape of `like`."""
    numbers = parts.view(np.complex128) if np.iscomplexobj(like) else parts
    return numbers.astype(like.dtype).reshape(like.shape)
