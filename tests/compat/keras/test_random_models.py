"""The tests of `tests/keras/test_random_models.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

from tests.golden.snippets_random_models import LEGACY
from tests.keras.test_random_models import test_model as check_model


@pytest.mark.slow
@pytest.mark.parametrize("seed", sorted(LEGACY))
def test_model(seed: str) -> None:
    check_model(seed)
