"""Pipelines and input functions against TensorFlow 2.15.1: see tests/golden/README.md."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import dtypes
from estimatorkit.core.errors import InvalidArgumentError, OutOfRangeError
from estimatorkit.data import Dataset, numpy_input_fn, pandas_input_fn, traced_functions
from estimatorkit.data.spec import flatten
from tests.data.models import BlockFunction
from tests.golden.golden_files import FOLDER
from tests.golden.snippets_data import DATA_ERRORS, INPUT_ERRORS, INPUTS, PIPELINES

GOLDEN = json.loads((FOLDER / "data.json").read_text(encoding="utf-8"))

# The functions given to map and filter run on NumPy blocks here, so those that call ops, return
# what must be converted, or use transformations of other modules are left to the tests of these.
NEEDS_A_GRAPH = {
    *("map to a dict", "map of strings", "map to a list", "map to a constant", "map after batch"),
    *("unbatch", "flat_map", "interleave", "interleave with blocks", "padded_batch"),
    *("padded_batch with value", "take_while", "scan", "window flattened", "unique"),
}
ERRORS_NEED_A_GRAPH = {
    *("batch of different shapes", "filter that gives a vector", "map that returns nothing"),
    *("map of wrong types", "parse of a bad number", "map with too few arguments"),
    *("map of a missing key",),
}

# Errors whose class differs by intent: that of the generator itself comes out, not a wrapper.
OTHER_CLASS = {"generator that fails": "KeyError"}

TF = SimpleNamespace(
    data=SimpleNamespace(Dataset=Dataset),
    int64=dtypes.int64,
    float32=dtypes.float32,
    string=dtypes.string,
)
INPUTS_MODULE = SimpleNamespace(numpy_input_fn=numpy_input_fn, pandas_input_fn=pandas_input_fn)


@pytest.fixture(autouse=True)
def _tracer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced_functions, "dataset_function", BlockFunction)


def _spec(structure: Any) -> Any:
    if isinstance(structure, dict):
        return {key: _spec(structure[key]) for key in sorted(structure)}
    if isinstance(structure, tuple):
        return [_spec(part) for part in structure]
    shape = "unknown" if structure.shape.rank is None else structure.shape.as_list()
    return f"{structure.dtype.name} {shape}"


def _plain(value: Any) -> Any:
    nested = np.asarray(value).tolist()
    return json.loads(json.dumps(nested, default=bytes.decode))


def _elements(made: Dataset, count: int | None = None) -> list[Any]:
    return [[_plain(x) for x in flatten(element)] for element in itertools.islice(made, count)]


@pytest.mark.parametrize("name", sorted(set(PIPELINES) - NEEDS_A_GRAPH))
def test_pipelines(name: str) -> None:
    golden = GOLDEN["pipelines"][name]
    made = PIPELINES[name](TF)
    assert _spec(made.element_spec) == golden["spec"]
    assert made.cardinality() == golden["cardinality"]
    assert _elements(made) == golden["elements"]


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_input_functions(name: str) -> None:
    golden = GOLDEN["inputs"][name]
    tensors = INPUTS[name](INPUTS_MODULE)()
    assert _spec(tensors) == golden["spec"]
    batches = []
    with tf.Session() as session:
        while len(batches) < len(golden["batches"]):
            batches.append([_plain(x) for x in flatten(session.run(tensors))])
        if "without end" not in name:
            with pytest.raises(OutOfRangeError):
                session.run(tensors)
    assert batches == golden["batches"]


@pytest.mark.parametrize("name", sorted(set(DATA_ERRORS) - ERRORS_NEED_A_GRAPH))
def test_errors_match_tensorflow_class(name: str) -> None:
    expected = OTHER_CLASS.get(name, GOLDEN["data_errors"][name]["class"])
    with pytest.raises((ValueError, TypeError, KeyError, InvalidArgumentError)) as caught:
        DATA_ERRORS[name](TF)
    assert type(caught.value).__name__ == expected


@pytest.mark.parametrize("name", sorted(INPUT_ERRORS))
def test_input_function_errors(name: str) -> None:
    golden = GOLDEN["input_errors"][name]
    if golden["class"] == "AttributeError":  # a list among the features: accepted here
        assert INPUT_ERRORS[name](INPUTS_MODULE) is not None
        return
    with pytest.raises((ValueError, TypeError)) as caught:
        INPUT_ERRORS[name](INPUTS_MODULE)
    assert type(caught.value).__name__ == golden["class"]
