"""The tests of `tests/runtime/xla/test_faults.py` that need names of TensorFlow 1."""

from __future__ import annotations

from tests.golden.snippets_faults import LEGACY
from tests.runtime.xla.test_faults import test_messages_match_tensorflow as check_messages
from tests.sweep import sweep


@sweep("name", sorted(LEGACY), quick=2)
def test_messages_match_tensorflow(name: str) -> None:
    check_messages(name)
