"""`contrib.layers.utils`: aliased outputs in collections, and argument checks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import fixed_value
from estimatorkit.core.shapes import TensorShape, as_shape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.control.control_flow import cond


def append_tensor_alias(tensor: Tensor, alias: str) -> Tensor:
    """Adds a name, without a trailing '/', to `tensor.aliases`."""
    tensor.aliases = [*getattr(tensor, "aliases", ()), alias.removesuffix("/")]
    return tensor


def get_tensor_aliases(tensor: Tensor) -> list[str]:
    """The aliases of a tensor; by default its name without ':0'."""
    aliases: list[str] | None = getattr(tensor, "aliases", None)
    return [tensor.name.removesuffix(":0")] if aliases is None else aliases


def gather_tensors_aliases(tensors: Iterable[Tensor]) -> list[str]:
    """The aliases of all tensors."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def collect_named_outputs(collections: Any, alias: str, outputs: Any) -> Any:
    """Adds outputs to collections (one name or several) under an alias; returns them."""
    if collections:
        append_tensor_alias(outputs, alias)
        get_default_graph().add_to_collections(collections, outputs)
    return outputs


def convert_collection_to_dict(
    collection: str, clear_collection: bool = False
) -> OrderedDict[str, Any]:
    """The tensors of a collection by alias.

    Args:
        collection: its name.
        clear_collection: whether to empty the collection.
    """
    graph = get_default_graph()
    found = OrderedDict(
        (alias, tensor)
        for tensor in graph.get_collection(collection)
        for alias in get_tensor_aliases(tensor)
    )
    if clear_collection:
        graph.clear_collection(collection)
    return found


def constant_value(value_or_tensor_or_var: Any, dtype: Any = None) -> Any:
    """A Python value unchanged; a tensor's value if known; None for a variable.

    Raises:
        ValueError: it is None, or has another dtype.
    """
    value = value_or_tensor_or_var
    if value is None:
        raise ValueError("value_or_tensor_or_var cannot be None")
    if not isinstance(value, (Tensor, Variable)):
        return value
    if dtype and value.dtype != dtype:
        raise ValueError(f"It has the wrong type {value.dtype} instead of {dtype}")
    return None if isinstance(value, Variable) else fixed_value(value)


def static_cond(pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any]) -> Any:
    """`fn1()` or `fn2()`, selected by a Python value.

    Raises:
        TypeError: one is not callable.
    """
    for name, function in (("fn1", fn1), ("fn2", fn2)):
        if not callable(function):
            raise TypeError(f"{name} must be callable.")
    return fn1() if pred else fn2()


def smart_cond(
    pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any], name: str | None = None
) -> Any:
    """`static_cond` if the predicate is known, otherwise `cond`."""
    known = fixed_value(pred)
    if known is None:
        return cond(pred, true_fn=fn1, false_fn=fn2, name=name)
    return static_cond(known, fn1, fn2)


def get_variable_collections(variables_collections: Any, name: str) -> Any:
    """The collections of a variable: those under its name if a dict, otherwise all."""
    if isinstance(variables_collections, dict):
        return variables_collections.get(name)
    return variables_collections


def _dimension(shape: Any, dim: int, min_rank: int) -> int:
    known = as_shape(shape)
    if known.rank is None:
        raise ValueError("dims of shape must be known but is None")
    if known.rank < min_rank:
        raise ValueError(f"rank of shape must be at least {min_rank} not: {known.rank}")
    value: int | None = known.as_list()[dim]
    if value is None:
        raise ValueError(f"dimension {dim} of shape must be known but is None: {known}")
    return value


def last_dimension(shape: Any, min_rank: int = 1) -> int:
    """The last dimension of a static shape.

    Raises:
        ValueError: it is unknown, or the rank is unknown or lower than `min_rank`.
    """
    return _dimension(shape, -1, min_rank)


def channel_dimension(shape: Any, data_format: str, min_rank: int = 1) -> int:
    """The channel dimension: the second for 'channels_first', otherwise the last."""
    return _dimension(shape, 1 if data_format == "channels_first" else -1, min_rank)


def two_element_tuple(int_or_tuple: Any) -> tuple[Any, Any]:
    """A pair of numbers from a number, or from a list or shape of two.

    Raises:
        ValueError: it is something else.
    """
    if isinstance(int_or_tuple, int):
        return int_or_tuple, int_or_tuple
    if isinstance(int_or_tuple, (list, tuple)):
        if len(int_or_tuple) != 2:
            raise ValueError(f"Must be a list with 2 elements: {int_or_tuple}")
        return int(int_or_tuple[0]), int(int_or_tuple[1])
    if isinstance(int_or_tuple, TensorShape) and int_or_tuple.rank == 2:
        return int_or_tuple[0], int_or_tuple[1]
    raise ValueError("Must be an int, a list with 2 elements or a TensorShape of length 2")


def n_positive_integers(n: int, value: Any) -> tuple[int, ...]:
    """`n` positive ints from one, or from a sequence of `n`.

    Raises:
        ValueError: it is something else.
    """
    if int(n) < 1 or int(n) != n:
        raise ValueError("n must be a positive integer")
    given = list(value) if hasattr(value, "__len__") else [value] * int(n)
    if len(given) != n:
        raise ValueError(f"Expected sequence of {n} positive integers, but received {value!r}")
    try:
        values = tuple(int(each) for each in given)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Expected sequence of {n} positive integers, but received {value!r}"
        ) from error
    if wrong := [each for each in values if each < 1]:
        raise ValueError(f"expected positive integer, but received {wrong[0]}")
    return values
