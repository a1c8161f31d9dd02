"""Sections that are derived from signatures: their keys, types and defaults are the functions'."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from estimatorkit.experiment import signatures
from estimatorkit.experiment.arguments import Arguments, Kinds
from estimatorkit.experiment.estimators import ESTIMATORS, OPTIMIZERS, SCHEDULES
from estimatorkit.experiment.schema import EXPORTS, HOOKS

SOURCE = '''
class Base:
    """A base.

    Args:
        size: the size.
    """

    def __init__(self, size: int, rate: float = 0.5, made: Any = None, *, on: bool = False) -> None:
        pass


class Made(Base):
    """What is made
    of a base. And more.

    Not this.
    """


def other(
    size: int,
    kind: Literal["a", "b"] = "a",
    names: Sequence[str] | None = None,
    share: Any = 0.25,
    count: int = 0,
    given: Any = lambda: 3,
    *args: int,
    **kwargs: int,
) -> None:
    """Another.

    Args:
        size: see `Base`.
        kind: 'a' or
            'b'.
        names, share: both.
    """


@arguments_of(other)
def third(**given: Any) -> None:
    """A third."""
'''


KINDS = {
    name: kinds
    for kinds in (ESTIMATORS, OPTIMIZERS, SCHEDULES, EXPORTS, HOOKS)
    for name in kinds
    # 'constant' is no function's, and legacy ones need not be installed.
    if name != "constant" and signatures.place_of(kinds[name].place)
}


@pytest.mark.parametrize("name", KINDS)
def test_keys_are_arguments_with_their_defaults(name: str) -> None:
    section: Any = KINDS[name][name]
    given = inspect.signature(section.function()).parameters
    derived = signatures.signature(section.place, section.related).arguments
    assert [name for name, each in given.items() if each.kind.value not in (2, 4)] == list(derived)
    for name, argument in derived.items():
        if argument.default is signatures.REQUIRED:
            assert given[name].default is inspect.Parameter.empty
        elif argument.default is not signatures.COMPUTED:
            assert given[name].default == argument.default


def test_a_function_may_have_the_arguments_of_another(source: None) -> None:
    found = signatures.signature("written.here:third")
    assert found.summary == "A third."
    assert list(found.arguments) == list(signatures.signature("written.here:other").arguments)
    assert found.arguments["size"].text == "the size"


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "_source", lambda module: SOURCE)


def test_a_function_is_described_by_its_source(source: None) -> None:
    class Other(Arguments):
        place = "written.here:other"

    assert Other.__doc__ == "Another."
    schema = Other.model_json_schema()
    assert schema["required"] == ["size"]
    assert schema["properties"]["size"] == {
        "description": "the size",
        "minimum": 1,
        "title": "Size",
        "type": "integer",
    }
    assert schema["properties"]["kind"] == {
        "default": "a",
        "description": "'a' or 'b'",
        "enum": ["a", "b"],
        "title": "Kind",
        "type": "string",
    }
    assert list(Other.model_fields) == ["size", "kind", "names", "share", "count"]
    assert Other(size=2, count=0, share=0.5).names is None  # type: ignore[call-arg]


def test_a_constructor_may_be_inherited(source: None) -> None:
    kinds = Kinds(Arguments, {"made": "written.here:Made"})
    assert set(kinds["made"].model_fields) == {"type", "size", "rate", "on"}
    assert kinds["made"].__doc__ == "What is made of a base. And more."
    assert kinds["made"](size=1).rate == 0.5  # type: ignore[attr-defined,call-arg]
