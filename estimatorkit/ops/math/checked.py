"""`checked`: tests of values for functions that consist of several operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.faults import Fault, at, in_range, known, refused
from estimatorkit.core.registry import Case, same_as_input
from estimatorkit.core.tensor import Tensor


def _bits_of(value: Any) -> Any:
    """A number as the bits of a float32, for `Fault.values`."""
    if known(value):
        return np.asarray(value, np.float32).view(np.int32)
    import jax

    return jax.lax.bitcast_convert_type(value.astype(np.float32), np.int32)


def _number_of(bits: int) -> str:
    """The number of these bits, as text."""
    value = np.array(bits & 0xFFFFFFFF, np.uint32).view(np.float32)
    return f"{float(value):g}"


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
        low, high = map(_number_of, found)
        return (
            f"value_range should satisfy value_range[0] < value_range[1], but got '[{low}, {high}]'"
        )

    low, high = ends[0], ends[1]
    return [Fault(0, ~(low < high), (_bits_of(low), _bits_of(high)), text)]


def _probability(values: Any) -> list[Fault]:
    def text(index: tuple[int, ...], found: tuple[int, ...]) -> str:
        where = f"predictions{at(index)} = {_number_of(found[0])}"
        return f"assertion failed: [predictions must be in [0, 1]]: {where}"

    inside = (values >= 0) & (values <= 1)  # not of NaN
    return [Fault(0, ~inside, (_bits_of(values),), text)]


def _classes(what: str, values: Any, bound: int) -> list[Fault]:
    where = f"{what}{{at}} = {{value}}"
    negative = f"assertion failed: [`{what}` contains negative values]: {where}"
    outside = f"assertion failed: [`{what}` out of bound]: {where} is not below {{bound}}"
    return [*_not_negative(negative)(values), *in_range(0, values, bound, outside, low=None)]


def _tokens(values: Any, bound: int) -> list[Fault]:
    words = (
        "assertion failed: [Input values must be in the range 0 <= values < num_tokens with "
        f"num_tokens={bound}]: values{{at}} = {{value}}"
    )
    return in_range(0, values, bound, words)


def _sizes(values: Any, bound: int) -> list[Fault]:
    def text(_: tuple[int, ...], found: tuple[int, ...]) -> str:
        return (
            "Determined shape must either match input shape along split_dim exactly if fully "
            "specified, or be less than the size of the input along split_dim if not fully "
            f"specified.  Got: {found[0]}, of {bound}"
        )

    rest = values == -1
    total = values.sum() + rest.sum().astype(values.dtype)
    fits = (total == bound) | (rest.any() & (total <= bound))
    return [Fault(0, ~fits | (values < -1).any(), (total,), text)]


TESTS: dict[str, Callable[..., list[Fault]]] = {
    "index": partial(in_range, 0),
    "permutation": _permutation,
    "count": _not_negative("Input arr must be non-negative!: arr{at} = {value}"),
    "labels": _not_negative("All labels must be nonnegative integers: labels{at} = {value}"),
    "range": _range,
    "probability": _probability,
    "label classes": partial(_classes, "labels"),
    "predicted classes": partial(_classes, "predictions"),
    "tokens": _tokens,
    "sizes": _sizes,
    "known words": _not_negative(
        "When `num_oov_indices=0` all inputs should be in vocabulary, found OOV values: "
        "inputs{at}; consider setting `num_oov_indices=1`."
    ),
    "gamma": lambda value: [
        refused(0, value < 0, "assertion failed: [Gamma should be a non-negative real number.]")
    ],
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
        infer=same_as_input(),
        gradient="same",
        accepts="fi",
        cases=lambda: [
            Case((np.array([2, 0, 1], np.int32),), {"test": "permutation"}),
            Case((np.array([0.0, 1.0], np.float32),), {"test": "range"}),
            Case((np.array([2, 0, 1], np.int32),), {"test": "index", "bound": 3}),
        ],
    )


def checked(x: Tensor, test: str, bound: Any = None, *, on_host: bool = False) -> Tensor:
    """A tensor, whose values are tested when it is run.

    Args:
        x: the tensor.
        test: a name in `TESTS`.
        bound: the number of rows, classes or tokens; of "sizes", their sum. An
            int, or a scalar tensor: nothing is tested if it is not constant.
        on_host: whether the host tests them: values of sparse tensors, whose number changes.
    """
    attrs: dict[str, Any] = {"test": test}
    if bound is not None:
        known_bound = registry.fixed_value(bound)
        if known_bound is None:
            return x
        attrs["bound"] = int(known_bound)
    return registry.output("CheckedOnHost" if on_host else "Checked", [x], attrs, "Checked")
