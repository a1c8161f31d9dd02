"""Modules that are executed when a name of theirs is first used."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from estimatorkit.runtime.xla.import_hooks import import_on_use

NAME = "module_of_the_test"


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports a module of a text, to be executed on use."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, NAME, raising=False)

    def of(text: str) -> ModuleType:
        (tmp_path / f"{NAME}.py").write_text(text)
        import_on_use(frozenset({NAME}))
        import_on_use(frozenset({NAME}))
        return importlib.import_module(NAME)

    return of


def test_first_name_executes(imported: Callable[[str], ModuleType]) -> None:
    module = imported("import sys\nsys.executed.append(1)\nvalue = 5")
    executed: list[int] = []
    sys.executed = executed  # type: ignore[attr-defined]
    try:
        assert module.__name__ == NAME
        assert not executed
        assert [module.value, module.value] == [5, 5]
        assert executed == [1]
        assert not hasattr(module, "other")
    finally:
        del sys.executed  # type: ignore[attr-defined]


def test_names_that_the_module_makes(imported: Callable[[str], ModuleType]) -> None:
    module = imported("def __getattr__(name):\n    return name * 2")
    assert module.ab == "abab"


def test_module_that_uses_itself(imported: Callable[[str], ModuleType]) -> None:
    module = imported(f"import {NAME}\nbefore = hasattr({NAME}, 'after')\nafter = 1")
    assert module.after == 1
    assert module.before is False


def test_failing_module(imported: Callable[[str], ModuleType]) -> None:
    module = imported("value = 1 / 0")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            _ = module.value


def test_threads_wait(imported: Callable[[str], ModuleType]) -> None:
    module = imported("import sys\nearly = 1\nsys.begun.set()\nsys.go_on.wait()\nlate = 2")
    begun, go_on = threading.Event(), threading.Event()
    sys.begun, sys.go_on = begun, go_on  # type: ignore[attr-defined]
    found: list[int] = []
    try:
        threads = [threading.Thread(target=lambda: found.append(module.late)) for _ in range(3)]
        threads[0].start()
        begun.wait()
        for thread in threads[1:]:
            thread.start()
        assert module.early == 1
        assert not found
        go_on.set()
        for thread in threads:
            thread.join()
        assert found == [2, 2, 2]
    finally:
        go_on.set()
        del sys.begun, sys.go_on  # type: ignore[attr-defined]
