"""Parametrization that runs all cases in `make test-all`, and a few of them in `make test`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sweep(names: str | tuple[str, ...], cases: Iterable[Any], *, quick: int, **options: Any) -> Any:
    """`pytest.mark.parametrize` with all cases marked slow but `quick`, spread evenly over them.

    Each case of a dict is its key.
    """
    several = not isinstance(names, str) or "," in names
    given = [
        case
        if isinstance(case, type(pytest.param()))
        else pytest.param(*(case if several else (case,)))
        for case in cases
    ]
    unmarked = {position * len(given) // quick for position in range(quick)}
    return pytest.mark.parametrize(
        names,
        [
            case
            if position in unmarked
            else pytest.param(*case.values, marks=[*case.marks, pytest.mark.slow], id=case.id)
            for position, case in enumerate(given)
        ],
        **options,
    )
