"""Small functions of TensorFlow 1's top level that only old programs use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import complex64, complex128, float64
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.ops.array import identity, shape
from estimatorkit.core.ops.elementwise import cast, equal, maximum
from estimatorkit.core.ops.filling import ones
from estimatorkit.core.ops.indexing import where
from estimatorkit.core.ops.joining import concat
from estimatorkit.core.shapes import TensorShape, as_shape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variable_scope import variable_scope


class AggregationMethod:
    """Ways to add gradients, which `gradients` takes without effect: XLA chooses."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def add_to_collections(names: Iterable[str] | str, value: Any) -> None:
    """`Graph.add_to_collections` of the default graph."""
    get_default_graph().add_to_collections(names, value)


def to_double(x: Any, name: str = "ToDouble") -> Tensor:
    """`cast` to float64."""
    return cast(x, float64, name)


def to_complex64(x: Any, name: str = "ToComplex64") -> Tensor:
    """`cast` to complex64."""
    return cast(x, complex64, name)


def to_complex128(x: Any, name: str = "ToComplex128") -> Tensor:
    """`cast` to complex128."""
    return cast(x, complex128, name)


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """`identity` of each tensor of a list."""
    with get_default_graph().name_scope(name or "IdentityN"):
        return [identity(each) for each in input]


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape that two static shapes broadcast to.

    Raises:
        ValueError: they do not.
    """
    x, y = as_shape(shape_x).dims, as_shape(shape_y).dims
    if x is None or y is None:
        return TensorShape(None)
    length = max(len(x), len(y))
    pairs = zip((1,) * (length - len(x)) + x, (1,) * (length - len(y)) + y, strict=True)
    result: list[int | None] = []
    for a, b in pairs:
        if None not in (a, b) and 1 not in (a, b) and a != b:
            raise ValueError(
                explain(
                    f"Incompatible shapes for broadcasting: {shape_x} and {shape_y}",
                    expected="equal dimensions, or 1",
                    received=f"{a} and {b}",
                )
            )
        if 1 in (a, b):
            result.append(b if a == 1 else a)
        else:
            result.append(b if a is None else a)
    return TensorShape(result)


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape that two computed shapes, int vectors, broadcast to."""
    x = convert_to_tensor(shape_x, name="shape_x")
    y = convert_to_tensor(shape_y, x.dtype, name="shape_y")
    with get_default_graph().name_scope("BroadcastArgs"):
        length = maximum(shape(x)[0], shape(y)[0])
        x = concat([ones([length - shape(x)[0]], x.dtype), x], 0)
        y = concat([ones([length - shape(y)[0]], y.dtype), y], 0)
        return where(equal(x, 1), y, x)


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Callable[..., Any]:
    """A function whose variables are made by its first call and used again by all others.

    Args:
        name_: the variable scope's name, made unique.
        func_: the function; it makes variables by `get_variable`.
        create_scope_now_: take the scope's name now rather than at the first call.
        unique_name_: a name that is not made unique.
        custom_getter_: as in `variable_scope`.
        kwargs: arguments that `func_` gets besides those of each call.
    """
    scopes: list[Any] = []

    def enter() -> Any:
        return variable_scope(unique_name_, default_name=name_, custom_getter=custom_getter_)

    if create_scope_now_:
        with enter() as scope:
            scopes.append(scope)
    called: list[bool] = []

    def template(*args: Any, **more: Any) -> Any:
        again = variable_scope(scopes[0], reuse=True if called else None) if scopes else enter()
        with again as scope:
            result = func_(*args, **{**kwargs, **more})
        if not scopes:
            scopes.append(scope)
        called.append(True)
        return result

    return template
