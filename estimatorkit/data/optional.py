"""`Optional`: a value that may be missing, such as the next element of an iterator that may end."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import bool_, variant
from estimatorkit.core.errors import InvalidArgumentError, OutOfRangeError
from estimatorkit.core.registry import Spec, apply, output, register
from estimatorkit.core.shapes import SCALAR
from estimatorkit.core.sparse_tensor import SparseTensor, SparseTensorValue
from estimatorkit.core.tensor import Tensor
from estimatorkit.data.iterator_ops import Iterator, next_values
from estimatorkit.data.spec import SparseTensorSpec, TensorSpec
from estimatorkit.data.traced_functions import of_tensors, specs_of


def _held(values: list[Any] | None) -> Any:
    made = np.empty((), object)
    made[()] = values
    return made


def _values(held: Any) -> list[Any] | None:
    values: list[Any] | None = np.asarray(held, object).item()
    return values


def _next(*handle: Any, context: Any, **attrs: Any) -> Any:
    try:
        return _held(next_values(*handle, context=context, **attrs))
    except OutOfRangeError:
        return _held(None)


def _get(held: Any, *, specs: tuple[Spec, ...]) -> list[Any]:
    values = _values(held)
    if values is None:
        raise InvalidArgumentError.explained(
            "The given optional does not have a value.",
            hint="ask has_value() first, for example in cond()",
        )
    return values


for _type, _kernel, _infer, _more in (
    ("IteratorGetNextAsOptional", _next, variant, {"context": True, "client_only": True}),
    ("OptionalFromValue", lambda *values: _held(list(values)), variant, {}),
    ("OptionalNone", lambda: _held(None), variant, {}),
    ("OptionalHasValue", lambda held: np.bool_(_values(held) is not None), bool_, {}),
):
    register(
        _type,
        _kernel,
        infer=lambda inputs, attrs, dtype=_infer: [Spec(dtype, SCALAR)],
        gradient=None,
        where="host",
        pure=False,
        **_more,
    )
register(
    "OptionalGetValue",
    _get,
    infer=lambda inputs, attrs: attrs["specs"],
    gradient=None,
    where="host",
    pure=False,
)


class Optional:
    """A value that may be missing; made by the static methods and `get_next_as_optional`."""

    def __init__(self, tensor: Tensor, structure: Any) -> None:
        self._tensor = tensor
        self._structure = structure

    @staticmethod
    def from_value(value: Any) -> Optional:
        """Returns an optional that has a value, a nested structure of tensors."""

        def leaf(each: Any) -> Any:
            if isinstance(each, SparseTensorValue):
                return SparseTensor.from_value(each)
            return each if isinstance(each, SparseTensor) else convert_to_tensor(each)

        made = nest.map_structure(leaf, value, lists_are_leaves=True)
        spec = nest.map_structure(_spec_of, made, lists_are_leaves=True)
        return Optional(output("OptionalFromValue", nest.expand(made)[0], {}, None), spec)

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """Returns an optional without a value.

        Args:
            element_spec: the nested spec of its values.
        """
        return Optional(output("OptionalNone", (), {}, None), element_spec)

    none_from_structure = empty

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether it has a value: a scalar bool."""
        return output("OptionalHasValue", [self._tensor], {}, name)

    def get_value(self, name: str | None = None) -> Any:
        """The value, as tensors in its structure; without one, running them raises
        `InvalidArgumentError`.
        """
        attrs = {"specs": specs_of(self._structure)}
        op = apply("OptionalGetValue", [self._tensor], attrs, name or "OptionalGetValue")
        return of_tensors(self._structure, op.outputs)

    @property
    def element_spec(self) -> Any:
        """The nested spec of its values."""
        return self._structure

    value_structure = element_spec


def _spec_of(leaf: Any) -> Any:
    kind = SparseTensorSpec if isinstance(leaf, SparseTensor) else TensorSpec
    return kind(leaf.shape, leaf.dtype)


def get_next_as_optional(iterator: Iterator) -> Optional:
    """Returns the next element of an iterator; at its end, an optional without a value.

    Each run that needs it advances the iterator by one element.
    """
    inputs, attrs = iterator.source()
    held = output("IteratorGetNextAsOptional", inputs, attrs, None)
    return Optional(held, iterator.element_spec)
