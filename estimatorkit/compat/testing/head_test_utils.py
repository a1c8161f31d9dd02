"""Helpers for tests of heads: TensorFlow's private `estimator.head.head_utils`."""

from __future__ import annotations

from collections.abc import Mapping

from estimatorkit.compat.testing.test_case import TestCase
from estimatorkit.estimator.spec import EstimatorSpec
from estimatorkit.lazy import listing
from estimatorkit.premade.classification_heads import (
    classification_head as binary_or_multi_class_head,
)
from estimatorkit.summary import Summary
from estimatorkit.train.saving.saved_model_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from estimatorkit.train.sessions.scaffold import Scaffold

__dir__ = listing(__name__)

_DEFAULT_SERVING_KEY = DEFAULT_SERVING_SIGNATURE_DEF_KEY


def _initialize_variables(test_case: TestCase, scaffold: Scaffold) -> None:
    """Initializes all variables and tables as a `MonitoredSession` does."""
    scaffold.finalize()
    if scaffold.init_feed_dict is not None or scaffold.init_fn is not None:
        test_case.fail("the scaffold has an init_feed_dict or an init_fn")
    scaffold.init_op.run()
    scaffold.ready_for_local_init_op.eval()
    scaffold.local_init_op.run()
    scaffold.ready_op.eval()
    if scaffold.saver is None:
        test_case.fail("the scaffold has no saver")


def _assert_simple_summaries(
    test_case: TestCase,
    expected_summaries: Mapping[str, float],
    summary_str: bytes,
    tol: float = 1e-6,
) -> None:
    """Asserts that a serialized `Summary` holds the given scalars, by tag."""
    summary = Summary()
    summary.ParseFromString(summary_str)
    found = {value.tag: value.simple_value for value in summary.value}
    test_case.assertAllClose(expected_summaries, found, rtol=tol, atol=tol)


def _assert_no_hooks(test_case: TestCase, spec: EstimatorSpec) -> None:
    """Asserts that training has no hooks."""
    test_case.assertAllEqual([], spec.training_chief_hooks)
    test_case.assertAllEqual([], spec.training_hooks)


__all__ = ["binary_or_multi_class_head"]
