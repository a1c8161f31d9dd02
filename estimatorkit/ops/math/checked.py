"""`checked`: tests of values for functions that consist of several operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.faults import Fault, at, bits_of, in_range, known, number_of
from estimatorkit.core.registry import Case, same_as_input
from estimatorkit.core.tensor import Tensor


def _first_repeats(values: Any) -> Any:
    """Which elements of a vector are equal to an earlier one."""
    module = np if known(values) else jnp
    order = module.argsort(values, stable=True)
    ordered = values[order]
    same = module.concatenate([module.zeros(1, bool), ordered[1:] == ordered[:-1]])
    if module is np:
        result = np.zeros(len(values), bool)
        result[order] = same
        return result
    return jax.lax.sort((order, same), num_keys=1)[1]


def _permutation(values: Any) -> list[Fault]:
    count = values.shape[0]
    if count == 0:
        return []

    def repeated(_: tuple[int, ...], found: tuple[int, ...]) -> str:
        return f"{found[0]} is duplicated in the input"

    outside = in_range(0, values, count, "{value} is not between 0 and {bound}: x{at}")
    return [*outside, Fault(0, _first_repeats(values), (values,), repeated)]


def _not_negative(text: str) -> Callable[[Any], list[Fault]]:
    def test(values: Any) -> list[Fault]:
        def words(index: tuple[int, ...], found: tuple[int, ...]) -> str:
            return text.format(at=at(index), value=found[0])

        return [Fault(0, values < 0, (values,), words)]

    return test


def _range(ends: Any) -> list[Fault]:
    def text(_: tuple[int, ...], found: tuple[int, ...]) -> str:
        low, high = map(number_of, found)
        return (
            f"value_range should satisfy value_range[0] < value_range[1], but got '[{low}, {high}]'"
        )

    low, high = ends[0], ends[1]
    return [Fault(0, ~(low < high), (bits_of(low), bits_of(high)), text)]


TESTS: dict[str, Callable[..., list[Fault]]] = {
    "index": partial(in_range, 0),
    "permutation": _permutation,
    "count": _not_negative("Input arr must be non-negative!: arr{at} = {value}"),
    "labels": _not_negative("All labels must be nonnegative integers: labels{at} = {value}"),
    "range": _range,
}
"""The tests, by name."""


def _fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    bound = attrs.get("bound")
    return TESTS[attrs["test"]](inputs[0], *(() if bound is None else (bound,)))


for _type, _where in (("Checked", "device"), ("CheckedOnHost", "host")):
    registry.register(
        _type,
        lambda x, test, bound=None: x,
        where=_where,
        fault=_fault,
        numpy_kernel=lambda x, test, bound=None: x,
        accepts="fi",
        infer=same_as_input(),
        gradient="same",
        cases=lambda: [
            Case((np.array([2, 0, 1], np.int32),), {"test": "permutation"}),
            Case((np.array([0.0, 1.0], np.float32),), {"test": "range"}),
            Case((np.array([2, 0, 1], np.int32),), {"test": "index", "bound": 3}),
        ],
    )


def checked(x: Tensor, test: str, bound: int | None = None, *, on_host: bool = False) -> Tensor:
    """A tensor, whose values are tested when it is run.

    Args:
        x: the tensor.
        test: a name in `TESTS`.
        bound: of "index", the number of rows.
        on_host: whether the host tests them: values of sparse tensors, whose number changes.
    """
    attrs = {"test": test} if bound is None else {"test": test, "bound": bound}
    return registry.output("CheckedOnHost" if on_host else "Checked", [x], attrs, "Checked")
