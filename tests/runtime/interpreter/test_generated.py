"""Programs as generated code."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimatorkit.runtime.interpreter import generated, program
from estimatorkit.runtime.interpreter.table import Template


def _steps(x: Any, y: Any) -> Any:
    low, high = jnp.split(x * 2 + y, 2)
    return jnp.concatenate([high, low]), (x - y) * np.arange(4, dtype=np.float32), y


def test_programs_that_run_often_are_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    class Counted(generated.Code):
        def __init__(self, *given: Any) -> None:
            made.append(1)
            super().__init__(*given)

    monkeypatch.setattr(program, "Code", Counted)
    x, y = np.ones(4, np.float32), np.arange(4, dtype=np.float32)
    template = Template(jax.make_jaxpr(_steps)(x, y))
    several = [template.program(()) for _ in range(2)]
    wanted = several[0](x, y)
    for at in range(generated.OFTEN + 2):
        assert made == [1] * (at >= generated.OFTEN)
        for run in several[: 1 + (at >= generated.OFTEN)]:  # they share their code
            for got, expected in zip(run(x, y), wanted, strict=True):
                np.testing.assert_array_equal(got, expected)
