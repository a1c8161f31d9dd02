"""Arguments that are written once: those of another function, and those that a config lists."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import pytest

from estimatorkit.layers.engine.arguments import (
    argument_names,
    arguments_of,
    given_arguments,
    kept_arguments,
)


def distance(labels: float, predictions: float, weight: float = 1.0, *, name: str = "d") -> float:
    return weight * (predictions - labels)


@arguments_of(distance)
def reversed_distance(**given: Any) -> float:
    """The other way round."""
    return -distance(**given)


def test_a_function_takes_the_arguments_of_another() -> None:
    assert reversed_distance(1.0, 3.0, name="e") == -2.0
    assert reversed_distance(1.0, weight=2.0, predictions=3.0) == -4.0
    assert inspect.signature(reversed_distance) == inspect.signature(distance)
    assert get_type_hints(reversed_distance) == get_type_hints(distance)
    assert reversed_distance.__name__ == "reversed_distance"
    assert reversed_distance.__doc__ == "The other way round."
    with pytest.raises(TypeError, match=r"^reversed_distance\(\) got an unexpected keyword"):
        reversed_distance(1.0, 3.0, weights=2.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^reversed_distance\(\) missing .*'predictions'"):
        reversed_distance(1.0)  # type: ignore[call-arg]


class Base:
    def __init__(self, name: str = "base", **kwargs: Any) -> None:
        self.name = name


class Shape(Base):
    def __init__(self, sides: int, size: float = 1.0, *, hidden: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        vars(self).update(given_arguments(locals(), ("hidden",)))


def test_arguments_are_those_of_all_constructors() -> None:
    assert argument_names(Shape, Base) == ["sides", "size", "hidden", "name"]


def test_arguments_that_are_attributes_are_kept() -> None:
    shape = Shape(4, name="square")
    assert vars(shape) == {"name": "square", "sides": 4, "size": 1.0}


def test_a_users_subclass_has_the_config_of_the_class_that_it_extends() -> None:
    from estimatorkit.layers.constraints import Constraint, MaxNorm

    class Mine(MaxNorm):
        def __init__(self, mine: int) -> None:
            super().__init__(3.0)
            self.mine = mine

    assert kept_arguments(Mine(1), Constraint) == {"max_value": 3.0, "axis": 0}
    assert kept_arguments(Mine(1), Constraint, ("axis",)) == {"max_value": 3.0}
