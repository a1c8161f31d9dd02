"""Parameters of plans that depend on tensors: `Pending` values.

File names, batch sizes and arrays may be tensors: a placeholder fed when the iterator's initializer
runs, or the argument of the function of `flat_map`. A plan holds such a parameter as a `Pending`
value; `Plan.bind` substitutes the tensor's value, checked, before iterators are created.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import InvalidArgumentError, type_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.data.spec import to_array


@dataclass(frozen=True, eq=False)
class Pending:
    """A parameter computed from tensors.

    Attributes:
        tensors: the tensors.
        finish: computes and checks the parameter, given the tensors' values.
    """

    tensors: tuple[Tensor, ...]
    finish: Callable[..., Any]


def as_tensor(value: Any) -> Any:
    """The tensor of a variable; other values as they are."""
    if not hasattr(value, "_as_tensor"):
        return value
    from estimatorkit.core.conversion import convert_to_tensor  # imports JAX

    return convert_to_tensor(value)


def parameter(value: Any, dtype: Any, what: str) -> Any:
    """A plan parameter: an array, or `Pending` if given as a tensor.

    Args:
        dtype: the dtype of the parameter; None for the value's own.
        what: describes it in messages: "TextLineDataset(): filenames".

    Raises:
        TypeError, ValueError: the value cannot have this dtype.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    value = as_tensor(value)
    if not isinstance(value, Tensor):
        return to_array(value, what, wanted)
    if wanted is not None and value.dtype is not wanted:
        raise type_error(
            f"{what} has the wrong dtype",
            expected=wanted.name,
            received=value,
            made_at=value.op.source,
        )
    return _known_or_pending(value, lambda found: np.asarray(found, value.dtype.numpy_dtype))


def integer(what: str, value: Any, *, least: int | None = None, rule: str = "") -> Any:
    """An integer plan parameter: an int, or `Pending`.

    Args:
        what: describes it in messages.
        value: an int, or a scalar integer tensor.
        least: the minimum.
        rule: the minimum in TensorFlow's words, for the message.

    Raises:
        TypeError: it is not an integer.
        InvalidArgumentError: it is too small.
    """
    value = as_tensor(value)
    if isinstance(value, Tensor):
        if not value.dtype.is_integer or value.shape.rank not in (None, 0):
            raise type_error(
                f"{what} is not an integer",
                expected="an int, or a scalar integer tensor",
                received=value,
                made_at=value.op.source,
            )
        return _known_or_pending(value, lambda found: integer(what, found, least=least, rule=rule))
    try:
        number = operator.index(value.item() if isinstance(value, np.ndarray) else value)
    except (TypeError, ValueError) as error:
        raise type_error(
            f"{what} is not an integer", expected="an int", received=repr(value)
        ) from error
    if least is not None and number < least:
        raise InvalidArgumentError.explained(
            f"{rule and rule + ': '}{what} is too small", expected=f">= {least}", received=number
        )
    return number


def choice(value: Any) -> Any:
    """A boolean plan parameter: a bool, or `Pending`."""
    value = as_tensor(value)
    if isinstance(value, Tensor):
        return _known_or_pending(value, bool)
    return bool(value)


def then(value: Any, finish: Callable[[Any], Any]) -> Any:
    """`finish` of a parameter, applied now or once its value is known."""
    if isinstance(value, Pending):
        return Pending(value.tensors, lambda *found: finish(value.finish(*found)))
    return finish(value)


def collect(parts: Sequence[Any], finish: Callable[[list[Any]], Any]) -> Any:
    """`finish` of a list of parameters, applied now or once all values are known."""
    if not any(isinstance(part, Pending) for part in parts):
        return finish(list(parts))
    pending = [part for part in parts if isinstance(part, Pending)]
    tensors = tuple(tensor for part in pending for tensor in part.tensors)

    def complete(*values: Any) -> Any:
        rest = iter(values)
        return finish(
            [
                part.finish(*(next(rest) for _ in part.tensors))
                if isinstance(part, Pending)
                else part
                for part in parts
            ]
        )

    return Pending(tensors, complete)


def _known_or_pending(tensor: Tensor, finish: Callable[[Any], Any]) -> Any:
    from estimatorkit.core.registry import fixed_value

    known: NDArray[Any] | None = fixed_value(tensor)
    return Pending((tensor,), finish) if known is None else finish(known)
