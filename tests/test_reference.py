"""Every public function and class has an example in docs/examples, and all examples run."""

from __future__ import annotations

import pytest

from docs.reference_pages import NAMESPACES, documented_here, examples, run_example


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_public_name_has_an_example(namespace: str) -> None:
    assert not set(documented_here(namespace)) - examples(namespace).keys()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("namespace", [name for name in NAMESPACES if examples(name)])
def test_examples_run(namespace: str) -> None:
    for name in documented_here(namespace):
        code = examples(namespace)[name]
        try:
            run_example(code)
        except Exception as error:
            error.add_note(f"in the example of {name}:\n{code}")
            raise
