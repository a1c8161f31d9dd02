"""Options of variables: synchronization, aggregation, `SaveSliceInfo`, and creator scopes.

`validated` checks synchronization, aggregation and trainability, which depend on each other.
`CreatedByScopes` is the metaclass of `Variable`: it passes the arguments of `Variable(...)` through
the active creators.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph

Creator = Callable[..., Any]


class VariableSynchronization(Enum):
    """When copies of a variable are synchronized. There is a single copy, so only ON_READ has an
    effect: such variables are not trainable by default.
    """

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(Enum):
    """How values assigned by several replicas are combined: by their sum or mean. By default they
    must be equal.
    """

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = 3


@dataclass(frozen=True)
class SaveSliceInfo:
    """The slice of a partitioned tensor that a variable is (`tf.Variable.SaveSliceInfo`).

    Attributes:
        full_name: the tensor's name.
        full_shape: its shape.
        var_offset: the slice's offset in each dimension.
        var_shape: the slice's shape.
    """

    full_name: str
    full_shape: tuple[int, ...]
    var_offset: tuple[int, ...]
    var_shape: tuple[int, ...]

    @property
    def spec(self) -> str:
        """The form in checkpoints: the full shape, then `offset,length` for each dimension."""
        shape = " ".join(map(str, self.full_shape))
        parts = zip(self.var_offset, self.var_shape, strict=True)
        return f"{shape} " + ":".join(f"{offset},{length}" for offset, length in parts)


def validated(
    synchronization: Any, aggregation: Any, trainable: bool | None, name: str | None
) -> tuple[VariableSynchronization, VariableAggregation, bool]:
    """Returns the three options, with None replaced by defaults.

    Raises:
        ValueError: `synchronization` or `aggregation` is not a member of its enumeration.
    """
    sync = VariableSynchronization.AUTO if synchronization is None else synchronization
    how = VariableAggregation.NONE if aggregation is None else aggregation
    for kind, given, options in (
        ("synchronization", sync, VariableSynchronization),
        ("aggregation", how, VariableAggregation),
    ):
        if not isinstance(given, options):
            raise value_error(
                f"Invalid variable {kind} mode: {given} for variable: {name}",
                expected=", ".join(map(str, options)),
            )
    if trainable is None:
        trainable = sync is not VariableSynchronization.ON_READ
    return sync, how, bool(trainable)


_Made = TypeVar("_Made")


class CreatedByScopes(type):
    """The metaclass of `Variable`; creators do not apply to its subclasses."""

    SaveSliceInfo = SaveSliceInfo

    def __call__(cls: type[_Made], *args: Any, **kwargs: Any) -> _Made:
        creators = get_default_graph().outermost.variable_creators
        if not creators or isinstance(cls.__base__, CreatedByScopes):
            made: _Made = type.__call__(cls, *args, **kwargs)
            return made
        bound = inspect.signature(vars(cls)["__init__"]).bind(None, *args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        del given["self"]
        defaults = {
            "synchronization": VariableSynchronization.AUTO,
            "aggregation": VariableAggregation.NONE,
        }
        given.update({key: value for key, value in defaults.items() if given[key] is None})
        make: Creator = functools.partial(type.__call__, cls)
        for creator in creators:
            make = _before(creator, make)
        made = make(**given)
        return made


def _before(creator: Creator, make: Creator) -> Creator:
    return lambda **kwargs: creator(make, **kwargs)
