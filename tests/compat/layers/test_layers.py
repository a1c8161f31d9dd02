"""The tests of `tests/layers/test_layers.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

from estimatorkit.keras import layers


def test_invalid_implementation_raises() -> None:
    with pytest.raises(ValueError, match="=3 is not there"):
        layers.LocallyConnected1D(2, 2, implementation=3)
