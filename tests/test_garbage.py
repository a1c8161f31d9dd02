"""Garbage collection is put off, and nothing else changes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from estimatorkit.garbage import uncollected


@pytest.fixture(autouse=True)
def _nothing_frozen() -> Iterator[None]:
    gc.unfreeze()  # the tests' modules are
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
