"""What may share memory: operands and results of equations, arguments and outputs of jaxprs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from jax.extend.core import Literal

from estimatorkit.runtime.interpreter.calls import SAME, called_function
from estimatorkit.runtime.xla.collected_faults import scan_counts
from estimatorkit.runtime.xla.faults import COMMIT, GUARD

UPDATES = frozenset(
    {"dynamic_update_slice", "scatter"}
    | {f"scatter{mark}{kind}" for mark in "-_" for kind in ("add", "sub", "mul", "min", "max")}
)
"""Primitives that change a part of their first operand."""

FRESH = frozenset(
    {"add", "sub", "mul", "div", "max", "min", "neg", "exp", "log", "tanh", "logistic", "sqrt"}
    | {"eq", "ne", "lt", "le", "gt", "ge", "dot_general", "argmax", "argmin", "rem"}
    | {"random_bits", "random_split", "random_fold_in", "concatenate", "stack", "pad", "add_any"}
)
"""Primitives whose results are always new arrays, by their rules."""

ELEMENTWISE = frozenset(
    {"add", "add_any", "sub", "mul", "div", "neg", "exp", "log", "tanh", "sqrt"}
)
"""Primitives that are functions of NumPy, which may write to an operand (of most dtypes)."""

WRITABLE = ELEMENTWISE | {"logistic", "dot_general", "concatenate", "select_n"}
"""Primitives whose results may be written to if they are new arrays."""

_VIEWS = frozenset(
    {"reshape", "squeeze", "expand_dims", "transpose", "rev", "slice", "split", "unstack", "tile"}
    | {"broadcast_in_dim", "convert_element_type", "select_n", "reduce_sum", "reduce_max"}
    | {"reduce_min", "reduce_prod", "reduce_and", "reduce_or", "square", "abs", "sign", "floor"}
    | {"integer_pow", "pow", "and", "or", "not", "rsqrt", "sin", "cos", "log1p", "expm1", "clamp"}
    | {"cumsum", "cumprod", "cummax", "cummin", "sort", "top_k", "is_finite", "erf"}
)
"""Primitives whose results are new arrays, or share memory with operands."""

_OF_FIRST = UPDATES | {"dynamic_slice", "gather"}
"""Those that share with their first operand only."""


class Shared(NamedTuple):
    """Operands and results of an equation, or of a jaxpr, that may share memory, by position.

    Attributes:
        operands, results: their positions.
        foreign: whether the memory may be that of a constant, or unknown.
    """

    operands: Sequence[int]
    results: Sequence[int]
    foreign: bool = False


def shared(source: Any) -> Sequence[Shared]:
    """What may share memory in an equation, which may be one of a call."""
    name, parameters = source.primitive.name, source.params
    operands, results = range(len(source.invars)), range(len(source.outvars))
    if name in FRESH or (name == "select_n" and len(operands) > 2):
        return ()
    if name in _OF_FIRST or source.primitive is GUARD:
        return (Shared((0,), (0,)),)
    if name in SAME:
        return [Shared((at,), (at,)) for at in results]
    if source.primitive is COMMIT:
        return [Shared((at + 1,), (at,)) for at in results]
    if name in _VIEWS:
        return (Shared(operands, results),)
    if name == "cond":
        return [
            _moved(each, 1) for branch in parameters["branches"] for each in shared_within(branch)
        ]
    if name == "while":
        count = parameters["body_nconsts"]
        carried = [(count + at, at) for at in results]
        found = shared_within(parameters["body_jaxpr"], carried)
        return [_moved(each, parameters["cond_nconsts"]) for each in found]
    if name == "scan":
        constants, count = scan_counts(parameters)
        carried = [(constants + at, at) for at in range(count)]
        found = shared_within(parameters["jaxpr"], carried)
        # The stacked results are new arrays.
        return [each._replace(results=[at for at in each.results if at < count]) for each in found]
    inner = called_function(source)
    return (Shared(operands, results, foreign=True),) if inner is None else shared_within(inner)


def _moved(each: Shared, count: int) -> Shared:
    return each._replace(operands=[at + count for at in each.operands])


def shared_within(closed: Any, carried: Sequence[tuple[int, int]] = ()) -> Sequence[Shared]:
    """Arguments and outputs of a jaxpr that may share memory.

    Args:
        closed: the jaxpr.
        carried: the arguments that a loop carries, with the output that is the next iteration's.
    """
    return _shared_within(closed.jaxpr, tuple(carried))


@functools.lru_cache(100)
def _shared_within(jaxpr: Any, carried: Sequence[tuple[int, int]]) -> Sequence[Shared]:
    groups = Groups()
    foreign = set(jaxpr.constvars)
    for source in jaxpr.eqns:
        for part in shared(source):
            given = [source.invars[at] for at in part.operands]
            made = [source.outvars[at] for at in part.results]
            groups.join([*(atom for atom in given if not isinstance(atom, Literal)), *made])
            if part.foreign or any(isinstance(atom, Literal) for atom in given):
                foreign.update(made)
    outputs = [None if isinstance(atom, Literal) else atom for atom in jaxpr.outvars]
    for argument, number in carried:
        following = outputs[number]
        if following is None:
            foreign.add(jaxpr.invars[argument])
        else:
            groups.join([jaxpr.invars[argument], following])
    roots = {groups.root(each) for each in foreign}
    found: dict[Any, tuple[list[int], list[int]]] = {}
    for at, variable in enumerate(jaxpr.invars):
        found.setdefault(groups.root(variable), ([], []))[0].append(at)
    alone = []
    for at, each in enumerate(outputs):
        if each is None:
            before = [argument for argument, number in carried if number == at]
            alone.append(Shared(before, (at,), foreign=True))
        else:
            found.setdefault(groups.root(each), ([], []))[1].append(at)
    return alone + [Shared(*sides, foreign=root in roots) for root, sides in found.items()]


class Groups:
    """Disjoint sets of hashable values: those that may share memory."""

    def __init__(self) -> None:
        self._parents: dict[Any, Any] = {}

    def join(self, values: Sequence[Any]) -> None:
        """Makes one set of those that hold the values."""
        for value in values[1:]:
            self._parents[self.root(value)] = self.root(values[0])

    def root(self, value: Any) -> Any:
        """The value that stands for its set."""
        while (parent := self._parents.get(value, value)) != value:
            value = parent
        return value
