"""The tests of `tests/estimator/test_golden_programs.py` that need names of TensorFlow 1."""

from __future__ import annotations

import json
from pathlib import Path

import estimatorkit.compat.v1 as tf
from tests.estimator.test_golden_programs import (
    GOLDEN,
    check_hooks,
    check_subclass,
    check_summaries,
)
from tests.golden.snippets_estimator_programs import HOOKS, LEGACY, SUBCLASSES, SUMMARIES, log
from tests.sweep import sweep


@sweep("name", sorted(HOOKS.keys() & LEGACY), quick=1)
def test_hooks_see_model_graph_in_every_method(name: str, tmp_path: Path) -> None:
    check_hooks(tf, name, tmp_path)


@sweep("name", sorted(SUBCLASSES.keys() & LEGACY), quick=0)
def test_subclasses_override_and_assign_private_members(name: str, tmp_path: Path) -> None:
    check_subclass(tf, name, tmp_path)


@sweep("name", sorted(SUMMARIES.keys() & LEGACY), quick=1)
def test_scalar_tags_and_steps_match_tensorflow(name: str, tmp_path: Path) -> None:
    check_summaries(tf, name, tmp_path)


def test_log_levels_match_python() -> None:
    assert json.loads(json.dumps(log(tf, ""))) == GOLDEN["log"]["log"]
