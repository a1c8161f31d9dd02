"""Every example in docs/examples is of a public name, those of TensorFlow 1 included."""

from __future__ import annotations

import pytest

from docs.reference_pages import NAMESPACES, documented_here, examples


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_example_has_a_public_name(namespace: str) -> None:
    assert not examples(namespace).keys() - set(documented_here(namespace))
