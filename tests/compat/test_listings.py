"""`dir` of public modules lists public names only."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import pytest

import estimatorkit
import estimatorkit.compat.v1

# Where names come from that programs import for themselves.
FOREIGN = (
    *("__future__", "abc", "collections", "contextlib", "dataclasses", "functools", "itertools"),
    *("numpy", "operator", "jax", "types", "typing"),
)
# Of others' modules, what TensorFlow shows, too.
SHOWN = "test.mock"


def public_modules(module: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """A module and those that its `dir` leads to, but for TensorFlow's private ones."""
    seen.add(id(module))
    yield path, module
    for name in dir(module):
        value = None if name.startswith("_") else getattr(module, name)
        if (
            isinstance(value, types.ModuleType)
            and value.__name__.startswith("estimatorkit")
            and id(value) not in seen
            and name != "python"
        ):
            yield from public_modules(value, f"{path}.{name}".removeprefix("."), seen)


@pytest.mark.parametrize("root", [estimatorkit, estimatorkit.compat.v1], ids=lambda x: x.__name__)
def test_public_modules_list_public_names_only(root: Any) -> None:
    found = list(public_modules(root, "", set()))
    assert len(found) > 30
    problems = []
    for path, module in found:
        names = [name for name in dir(module) if not name.startswith("_")]
        is_table = hasattr(module, "__getattr__") or hasattr(module, "_table")
        for name in names:
            value = getattr(module, name)  # what is listed is there
            full = f"{path}.{name}".removeprefix(".")
            home = getattr(value, "__module__", None) or ""
            if isinstance(value, types.ModuleType):
                ours = value.__name__.startswith("estimatorkit")
                # Tables say which modules are public; others show only those below them.
                fine = ours and (is_table or value.__name__.startswith(module.__name__))
                if not fine and not full.endswith(SHOWN):
                    problems.append(f"{full} is the module {value.__name__}")
            elif home.partition(".")[0] in FOREIGN:
                problems.append(f"{full} is of {home}")
    assert not problems


def test_module_names_and_hidden_names() -> None:
    tf = estimatorkit
    assert {"mean_squared_error", "Reduction", "compute_weighted_loss"} <= set(dir(tf.losses))
    assert {"Dataset", "make_one_shot_iterator"} <= set(dir(tf.data))
    assert {"numeric_column", "input_layer"} <= set(dir(tf.feature_column))
    assert {"OpError", "DataLossError", "OK", "UNAUTHENTICATED"} <= set(dir(tf.errors))
    assert {"explain", "did_you_mean"}.isdisjoint(dir(tf.errors))
    assert {"flatten", "map_structure"} <= set(dir(tf.nest))
    v1: Any = estimatorkit.compat.v1
    assert {"info", "set_verbosity", "WARN"} <= set(dir(v1.logging))
    assert {"TestCase", "main", "mock", "get_temp_dir"} <= set(dir(v1.test))
    assert "float32" in dir(v1.dtypes)
