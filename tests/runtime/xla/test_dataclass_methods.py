"""Methods of dataclasses that are compiled on first use are those that Python makes."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from estimatorkit.runtime.xla.dataclass_methods import compile_on_use

CLASSES = """
from __future__ import annotations
from dataclasses import dataclass, field

@dataclass{options}
class Base:
    a: int
    b: list = field(default_factory=list, hash=False, compare=False)

@dataclass{options}
class Derived(Base):
    c: str = "c"
"""
OPTIONS = ("", "(frozen=True)", "(order=True)", "(unsafe_hash=True)", "(frozen=True, slots=True)")


def _outcome(call: Any) -> Any:
    try:
        return call()
    except (TypeError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


def _seen(space: dict[str, Any]) -> list[Any]:
    base, derived = space["Base"], space["Derived"]
    seen: list[Any] = [inspect.signature(base), inspect.signature(derived), derived.__doc__]
    for _ in range(2):  # not compiled, and compiled
        one, same, other, sub = base(1), base(1, [2]), base(2), derived(1)
        for each in (one, same, sub):
            seen += [repr(each), _outcome(lambda each=each: hash(each))]
            seen += [_outcome(lambda each=each: setattr(each, "a", 1))]
            seen += [_outcome(lambda each=each: setattr(each, "new", 1))]
            seen += [_outcome(lambda each=each: delattr(each, "b"))]
        for left, right in ((one, same), (one, other), (one, sub), (sub, one), (one, 1)):
            seen += [left == right, _outcome(lambda pair=(left, right): pair[0] < pair[1])]
    for kind in (base, derived):
        for name in ("__eq__", "__hash__", "__setattr__", "__repr__", "__lt__"):
            method = getattr(kind, name)
            seen += [getattr(method, "__qualname__", None), getattr(method, "__name__", None)]
    return seen


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], dict[str, Any]]:
    """Returns a function that executes `CLASSES` as a module of a package."""

    def of(package: str, options: str) -> dict[str, Any]:
        name = f"{package}.module_of_the_test"
        path = tmp_path / f"{package}.py"
        path.write_text(CLASSES.format(options=options))
        spec = spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return vars(module)

    return of


@pytest.mark.parametrize("options", OPTIONS)
def test_methods_are_those_of_python(options: str, made: Callable[..., Any]) -> None:
    compile_on_use()
    compile_on_use()
    ours, others = (made(package, options) for package in ("jax", "other"))
    assert [str(each) for each in _seen(ours)] == [str(each) for each in _seen(others)]


@pytest.mark.skipif(not hasattr(dataclasses, "_create_fn"), reason="Python compiles them together")
def test_methods_are_compiled_on_use(made: Callable[..., Any]) -> None:
    base = made("jax", "")["Base"]
    compiled = "<string>"
    assert base.__init__.__code__.co_filename == compiled
    assert base.__eq__.__code__.co_filename != compiled
    assert base(1) == base(1)
    assert base.__eq__.__code__.co_filename == compiled
    assert made("other", "")["Base"].__eq__.__code__.co_filename == compiled


@pytest.mark.skipif(not hasattr(dataclasses, "_create_fn"), reason="Python compiles them together")
def test_functions_without_globals_are_compiled() -> None:
    """Other packages call `_create_fn`, too, where `globals` is optional."""
    create: Any = vars(dataclasses)["_create_fn"]
    assert create("twice", ["x"], ["return 2 * x"])(21) == 42
