"""Programs with estimators give TensorFlow's results: hooks, subclasses, summaries, messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.golden.snippets_estimator_programs import (
    BASES,
    ENDINGS,
    HEADS,
    HOOKS,
    LEGACY,
    SUBCLASSES,
    SUMMARIES,
    model_fn_of,
    rows,
    run_ending,
    run_head,
    run_subclass,
)
from tests.sweep import sweep

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "estimator_programs.json").read_text("utf-8")
)


@sweep("name", sorted(HOOKS.keys() - LEGACY), quick=1)
def test_hooks_see_model_graph_in_every_method(name: str, tmp_path: Path) -> None:
    check_hooks(tf, name, tmp_path)


def check_hooks(module: Any, name: str, tmp_path: Path) -> None:
    """Compares what hooks see with a module."""
    seen: dict[str, Any] = {}
    HOOKS[name](module, str(tmp_path), seen)
    assert seen == GOLDEN["hooks"][name]


@sweep(("way", "method"), ENDINGS, quick=3)
def test_hook_ends_run_in_every_way(way: str, method: str, tmp_path: Path) -> None:
    found = run_ending(tf, str(tmp_path), way, method)
    expected = GOLDEN["endings"][f"{way} in {method}"]
    assert found.pop("loss") == pytest.approx(expected["loss"], rel=1e-5)
    assert found == {key: expected[key] for key in found}


def test_default_graph_between_predictions_is_callers(tmp_path: Path) -> None:
    estimator = tf.estimator.Estimator(model_fn_of(tf), tmp_path)
    estimator.train(lambda: rows(tf), steps=1)
    graph = tf.get_default_graph()
    for _ in estimator.predict(lambda: rows(tf)):
        assert tf.get_default_graph() is graph


@sweep("name", sorted(SUBCLASSES.keys() - LEGACY), quick=4)
def test_subclasses_override_and_assign_private_members(name: str, tmp_path: Path) -> None:
    check_subclass(tf, name, tmp_path)


def check_subclass(module: Any, name: str, tmp_path: Path) -> None:
    """Compares a subclass of a module's estimator."""
    found = run_subclass(module, str(tmp_path), name)
    expected = GOLDEN["subclasses"][name]
    assert found.pop("predicted") == pytest.approx(expected["predicted"], rel=1e-5)
    np.testing.assert_allclose(found.pop("weight"), expected["weight"], rtol=1e-5)
    assert found.pop("loss") == pytest.approx(expected["loss"], rel=1e-5, abs=1e-9)
    assert found == {key: expected[key] for key in found}


@pytest.mark.parametrize("name", ["_actual_eval", "_evaluate_run", "_add_meta_graph_for_mode"])
def test_uncalled_override_is_refused(name: str) -> None:
    kind = type("Kind", (tf.estimator.Estimator,), {name: lambda self, *args: None})
    with pytest.raises(ValueError, match=f"Kind overrides {name}, which would do nothing"):
        kind(model_fn_of(tf))


def test_override_called_by_subclass_is_accepted(tmp_path: Path) -> None:
    class Kind(tf.estimator.Estimator):  # type: ignore[misc, name-defined]
        def _assert_members_are_not_overridden(self) -> None:
            pass

        def evaluate(self, input_fn: Any) -> str:
            return self._actual_eval(input_fn)

        def _actual_eval(self, input_fn: Any) -> str:
            return "evaluated"

    assert Kind(model_fn_of(tf), tmp_path).evaluate(None) == "evaluated"


def test_overridden_training_under_strategy_raises(tmp_path: Path) -> None:
    kind = SUBCLASSES["overrides _train_model"](tf, [])
    config = tf.estimator.RunConfig(train_distribute=tf.distribute.MirroredStrategy())
    with pytest.raises(ValueError, match="Kind overrides a step of its training"):
        kind(model_fn_of(tf), tmp_path, config).train(lambda: rows(tf), steps=1)


@sweep(("base", "name"), [(base, name) for base in BASES for name in HEADS], quick=3)
def test_head_overrides_are_called(base: str, name: str, tmp_path: Path) -> None:
    found = run_head(tf, tf, str(tmp_path), name, base)
    assert found == pytest.approx(GOLDEN["heads"][f"{base}: {name}"], rel=1e-4)


@sweep("name", sorted(SUMMARIES.keys() - LEGACY), quick=1)
def test_scalar_tags_and_steps_match_tensorflow(name: str, tmp_path: Path) -> None:
    check_summaries(tf, name, tmp_path)


def check_summaries(module: Any, name: str, tmp_path: Path) -> None:
    """Compares the summaries of a module's estimators."""
    found, expected = SUMMARIES[name](module, str(tmp_path)), GOLDEN["summaries"][name]
    for each in (found, expected):
        # Histograms of layers are on demand: see docs/differences.md.
        each.get("training", {}).pop("linear/bias", None)
    assert found == expected
