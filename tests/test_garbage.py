"""Garbage collection is put off, and nothing else changes."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from estimatorkit import garbage
from estimatorkit.garbage import uncollected
from estimatorkit.lazy import fetch


@pytest.fixture(autouse=True)
def _nothing_frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    gc.unfreeze()  # the tests' modules are
    monkeypatch.setattr(garbage._frozen, "_has_others", False)
    yield
    gc.enable()
    gc.freeze()


def _is_old(value: object) -> bool:
    return any(each is value for each in gc.get_objects(generation=2))


def test_collection_is_off_within_and_on_after_an_error() -> None:
    @uncollected()
    def inner() -> None:
        assert not gc.isenabled()
        raise KeyError

    @uncollected()
    def outer() -> None:
        with pytest.raises(KeyError):
            inner()
        assert not gc.isenabled()
        inner()

    with pytest.raises(KeyError):
        outer()
    assert gc.isenabled()


class _Node:
    def __init__(self) -> None:
        self.own = self


def test_what_is_made_within_is_young() -> None:
    """Collections that it causes find it; full ones come as often as without."""
    with uncollected():
        made = _Node()
    assert not _is_old(made)
    seen = weakref.ref(made)
    del made
    assert seen() is not None
    gc.collect(0)
    assert seen() is None


def test_what_is_off_stays_so() -> None:
    gc.disable()
    with uncollected():
        pass
    assert not gc.isenabled()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module that holds a list, `made`."""
    (tmp_path / "module_for_garbage.py").write_text("made = [[]]\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield "module_for_garbage"
    sys.modules.pop("module_for_garbage", None)


def test_what_imports_make_is_old(module: str) -> None:
    assert _is_old(fetch(f"{module}:made"))


def test_only_imports_make_old(module: str) -> None:
    """Objects of a loop would else not count towards the next full collection."""
    fetch(f"{module}:made")
    young = _Node()
    fetch(f"{module}:made")
    assert not _is_old(young)


def test_frozen_objects_stay_frozen(module: str) -> None:
    gc.freeze()
    assert not _is_old(fetch(f"{module}:made"))
    assert gc.get_freeze_count()


def test_frozen_objects_are_not_counted_by_every_import(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.freeze()
    fetch(f"{module}:made")
    del sys.modules[module]
    monkeypatch.delattr(gc, "get_freeze_count")
    assert not _is_old(fetch(f"{module}:made"))
