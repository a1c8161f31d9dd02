"""Every class of layers against TensorFlow: outputs, gradients, weights, updates, static shapes.

The cases are one table (`tests/golden/golden_layers.py`); the layers that run here have been
through their configs and JSON.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.keras import layers
from estimatorkit.layers import registry
from tests.golden.golden_layers import (
    CASES,
    CHANNELS_FIRST,
    LEGACY,
    LayerCase,
    called,
    inputs_of,
    observe,
    weight_value,
)
from tests.sweep import sweep

GOLDEN = Path(__file__).parents[1] / "golden"
FACTS = json.loads((GOLDEN / "layers.json").read_text(encoding="utf-8"))
FAMILIES = {
    family: {name: case for name, case in cases.items() if case.kind not in LEGACY}
    for family, cases in CASES.items()
}
ALL = {name: case for cases in FAMILIES.values() for name, case in cases.items()}
# Layers whose golden values are elsewhere: recurrent ones, those of other layers, feature columns,
# interactions of fields; those that TensorFlow does not have are in test_numeric_embeddings.
ELSEWHERE = (
    "layers.recurrent",
    "layers.wrappers",
    "layers.feature_column",
    "layers.lookup",
    "layers.member_layers",
    "layers.numeric_embeddings",
    "recommend",
    "compat",
)


class Rebuilt:
    """`keras.layers` whose layers are made from the JSON of their configs."""

    def __getattr__(self, kind: str) -> Any:
        def make(**arguments: Any) -> Any:
            text = json.dumps(layers.serialize(getattr(layers, kind)(**arguments)))
            made = layers.deserialize(json.loads(text))
            assert json.dumps(layers.serialize(made)) == text
            return made

        return make


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    with np.load(GOLDEN / "layers.npz") as file:
        return dict(file)


@sweep("family", FAMILIES, quick=1)
def test_layers_match_tensorflow(family: str, golden: dict[str, Any]) -> None:
    check_cases(FAMILIES[family], golden)


def check_cases(cases: dict[str, LayerCase], golden: dict[str, Any]) -> None:
    """Compares what layers are and compute."""
    facts, arrays = observe(tf, Rebuilt(), cases)
    for name in cases:
        assert facts[name] == FACTS["layers"][name], name
    expected = {key: value for key, value in golden.items() if key.split("/")[0] in facts}
    assert arrays.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(arrays[key], value, rtol=1e-5, atol=2e-6, err_msg=key)


def test_every_class_has_a_case() -> None:
    here = {
        kind
        for kind, place in registry.PLACES.items()
        if not place.removeprefix("estimatorkit.").startswith(ELSEWHERE)
    }
    # A `Lambda`'s function is the user's: see test_layers. A `HashedCrossing`: see test_lookup.
    assert {case.kind for case in ALL.values()} == here - {"Lambda", "HashedCrossing"}


@pytest.mark.parametrize("kind", [kind for kind in FACTS["constructors"] if kind not in LEGACY])
def test_constructor_arguments_match_tensorflow(kind: str) -> None:
    made = getattr(layers, kind)
    own = {
        name: each
        for base in reversed(made.__mro__)
        for name, each in inspect.signature(base.__init__).parameters.items()
        if base is not object
    }
    expected = {k: v for k, v in FACTS["constructors"][kind].items() if k != "dynamic"}
    assert expected.keys() <= own.keys()
    for name, default in expected.items():
        given = own[name].default
        if isinstance(default, list):  # windows: one number for all is the same
            assert np.all(np.asarray(given) == np.asarray(default)), name
        elif default != "required" and name != "data_format":
            assert given == default, name
    required = [name for name, default in expected.items() if default == "required"]
    assert list(inspect.signature(made.__init__).parameters)[1 : len(required) + 1] == required


@pytest.mark.slow
def test_channels_first_matches_channels_last(golden: dict[str, Any]) -> None:
    chosen = {
        name: case
        for name, case in ALL.items()
        if case.kind in CHANNELS_FIRST
        and len(case.shapes[0]) == int(case.kind.split("D")[-2][-1]) + 2
    }
    assert {case.kind for case in chosen.values()} == CHANNELS_FIRST
    fetches, assigns = {}, []
    with tf.Graph().as_default(), tf.Session() as session:
        for name, case in chosen.items():
            layer = getattr(layers, case.kind)(data_format="channels_first", **case.arguments)
            fetches[name] = called(tf, layer, case, [np.moveaxis(inputs_of(case)[0], -1, 1)])
            for number, weight in enumerate(layer.weights):
                value = weight_value(weight.name, weight.shape.as_list(), number)
                assigns.append(tf.assign(weight, value))
        session.run(assigns)
        found = session.run(fetches)
    for name, value in found.items():
        expected = np.moveaxis(golden[f"{name}/outputs/0"], -1, 1)
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=2e-6, err_msg=name)


def _one_of_each() -> list[LayerCase]:
    """A case of each class of floats; those that prepare features have dtypes of their own."""
    return list(
        {
            case.kind: case
            for name, case in ALL.items()
            if case.integers is None and name not in CASES["preprocessing"]
        }.values()
    )


@pytest.mark.parametrize("case", _one_of_each(), ids=lambda case: case.kind)
def test_mixed_precision_computes_in_16_bits_with_float32_variables(case: LayerCase) -> None:
    with tf.Graph().as_default():
        layer = getattr(layers, case.kind)(dtype="mixed_bfloat16", **case.arguments)
        outputs = called(tf, layer, case, [tf.constant(each) for each in inputs_of(case)])
        tensors = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        assert {each.dtype for each in tensors} == {tf.bfloat16}
        assert {each.dtype for each in layer.weights} <= {tf.float32}


# `MultiHeadAttention` takes several arguments, of which this method of layers knows one.
@pytest.mark.parametrize(
    "case",
    [case for case in _one_of_each() if case.kind != "MultiHeadAttention"],
    ids=lambda case: case.kind,
)
def test_output_shapes_are_known_before_call(case: LayerCase) -> None:
    with tf.Graph().as_default():
        call = {key: value for key, value in case.call.items() if key != "mask"}
        layer = getattr(layers, case.kind)(**case.arguments)
        shapes = [(None, *each[1:]) for each in case.shapes]
        found = layer.compute_output_shape(shapes[0] if len(shapes) == 1 else shapes)
        assert not layer.built
        tensors = [tf.placeholder("float32", each) for each in shapes]
        outputs = called(tf, layer, dataclasses.replace(case, call=call), tensors)
        assert found.as_list() == outputs.shape.as_list()
