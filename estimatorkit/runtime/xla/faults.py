"""Faults on devices (see `core.faults`): XLA cannot raise, so that an executable returns them.

While a segment is traced (`collecting`), `interpret` marks each tested input by `guard`, with the
mask of the faulty elements. `collect` then rewrites the segment's jaxpr: the first fault becomes an
output of its own, an int32 vector, which XLA's control flow carries. A variable that is updated
after a fault keeps its value (`commit`), and a loop ends. Masks of one shape are reduced together;
where and what the fault is, is computed if there is one.

The jaxpr is that after differentiation: functions, gradients and loops are not treated one by one.
Marks that are not collected, as in exports, have no effect.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, mlir
from numpy.typing import NDArray

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.faults import MOST_VALUES, Fault, fault_error, first_fault, known, message
from estimatorkit.core.sizes import Size, shown
from estimatorkit.core.tensor import Operation

LENGTH = 2 + 2 * MOST_VALUES
"""Of a vector: the number of the site + 1 (0: no fault), the position of the element, its values,
each as two words of 32 bits."""

_VARIABLE = "ESTIMATORKIT_CHECKS"


class Sites:
    """The tests that an executable contains, by number."""

    def __init__(self) -> None:
        self._found: list[tuple[Operation, Fault]] = []
        self._lock = threading.Lock()  # several threads trace a segment

    def add(self, op: Operation, fault: Fault) -> int:
        """Registers a test and returns its site number."""
        shape = jax.ShapeDtypeStruct(np.shape(fault.bad), np.bool_)  # type: ignore[no-untyped-call]
        values = (None,) * len(fault.values)  # no tracers
        with self._lock:
            self._found.append((op, fault._replace(bad=shape, values=values)))
            return len(self._found)

    def error(self, vector: Any, sizes: Sequence[int] | None = None) -> InvalidArgumentError | None:
        """The error that an executable's vector stands for; None if there is no fault.

        Args:
            vector: the vector.
            sizes: the values of the atoms (`core.sizes`) if the segment was traced for all sizes.
        """
        words = np.asarray(vector)
        if not words[0]:
            return None
        op, fault = self._found[words[0] - 1]
        if sizes is not None:
            shape = [dim.at(sizes) if isinstance(dim, Size) else dim for dim in fault.bad.shape]
            fault = fault._replace(bad=np.broadcast_to(False, shape))
        pairs = words[2:].reshape(-1, 2).tolist()
        values = [(high << 32) | (low & 0xFFFFFFFF) for low, high in pairs]
        with nullcontext() if sizes is None else shown(sizes):
            text = message(fault, int(words[1]), values[: len(fault.values)])
        return fault_error(op, text)


Mark: TypeAlias = tuple[Sequence[Any], int]
"""The operands of `GUARD`, and the number of the site."""

_sites: ContextVar[Sites | None] = ContextVar("sites", default=None)


def are_checked() -> bool:
    """Whether values are tested; `ESTIMATORKIT_CHECKS=0` in the environment turns it off."""
    return os.environ.get(_VARIABLE, "1") != "0"


def sites() -> Sites | None:
    """What receives the tests of traced operations; None if they are not marked."""
    return _sites.get()


def is_collecting() -> bool:
    """Whether traced operations mark the tested inputs."""
    return _sites.get() is not None


@contextmanager
def collecting(sites: Sites) -> Iterator[None]:
    """A context manager in which traced operations mark the tested inputs."""
    token = _sites.set(sites if are_checked() else None)
    try:
        yield
    finally:
        _sites.reset(token)


def tested(
    op: Operation, inputs: list[Any], faults: Sequence[Fault], certain: Collection[int]
) -> tuple[list[Any], list[Mark]]:
    """The inputs of a traced operation, marked for its tests, and the marks of those that are known
    (see `marked`).

    Args:
        op: the operation.
        inputs: its inputs.
        faults: its tests.
        certain: the inputs that cannot be faulty without an error: all, unless the operation is in
            a branch that may not run.

    Raises:
        InvalidArgumentError: known values are faulty.
    """
    found = _sites.get()
    inputs, later = list(inputs), list[Mark]()
    if found is None:
        return inputs, later
    for fault in faults:
        if 0 in np.shape(fault.bad):
            continue
        if known(fault.bad):
            if not np.any(fault.bad):
                continue
            if fault.position in certain:
                raise_found(op, [fault])
        site = found.add(op, fault)
        marked = inputs[fault.position]
        if isinstance(marked, (np.ndarray, np.generic)):  # stays static
            later.append((_operands(fault), site))
        else:
            inputs[fault.position] = GUARD.bind(marked, *_operands(fault), site=site)
    return inputs, later


def marked(outputs: Sequence[Any], marks: Sequence[Mark]) -> Sequence[Any]:
    """The outputs of a traced operation, marked for the tests of its known inputs."""
    for operands, site in marks:
        first, *others = outputs
        outputs = [GUARD.bind(jnp.asarray(first), *operands, site=site), *others]
    return outputs


def raise_found(op: Operation, faults: Sequence[Fault]) -> None:
    """Raises InvalidArgumentError if known values are faulty."""
    if are_checked() and (first := first_fault(faults)) is not None:
        raise fault_error(op, message(*first))


def committed(old: Any, new: Any) -> Any:
    """The value of a variable after an update: `old` once there is a fault. It is JAX's, also of a
    constant, which later updates would get as NumPy's."""
    if _sites.get() is None or old is None:
        return jnp.asarray(new) if isinstance(new, (np.ndarray, np.generic)) else new
    old, new = (jax.tree.map(jnp.asarray, each) for each in (old, new))
    kinds: list[Any] = [jax.tree.structure(each) for each in (old, new)]
    if kinds[0] != kinds[1]:
        return new
    return jax.tree.map(
        lambda a, b: COMMIT.bind(a, b) if (a.shape, a.dtype) == (b.shape, b.dtype) else b, old, new
    )


def _operands(fault: Fault) -> list[Any]:
    words = (word for value in fault.values for word in _two_words(value))
    return [jnp.asarray(fault.bad), *map(jnp.asarray, words)]


def _two_words(value: Any) -> tuple[Any, Any]:
    """Integers as two int32: NumPy's 64 bits are 32 to JAX, outside `x64`."""
    if value.dtype.itemsize < 8:
        if value.dtype == np.uint32:
            low = value.view(np.int32)
            return low, low * 0
        value = value.astype(np.int32)
        return value, value >> 31
    return (value & 0xFFFFFFFF).astype(np.uint32).view(np.int32), (value >> 32).astype(np.int32)


# -- the marks


GUARD: Any = Primitive("guard")
"""`guard(value, bad, *values)`: the value; `bad` and `values` are those of its test."""

COMMIT: Any = Primitive("commit")
"""`commit(old, new)`: the new value."""


def _define(primitive: Any, result: int) -> None:
    primitive.def_impl(lambda *values, **_: values[result])
    primitive.def_abstract_eval(lambda *avals, **_: avals[result])
    mlir.register_lowering(primitive, lambda _, *values, **__: [values[result]])

    def jvp(primals: Any, tangents: Any, **parameters: Any) -> Any:
        return primitive.bind(*primals, **parameters), tangents[result]

    ad.primitive_jvps[primitive] = jvp


_define(GUARD, 0)
_define(COMMIT, 1)


def no_fault() -> NDArray[np.int32]:
    """The vector of no fault."""
    return np.zeros(LENGTH, np.int32)
