"""Base of distributions with tensor parameters: conversion, checks, shapes, NaN."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from estimatorkit.compat.layers.distributions.distribution import (
    Distribution,
    ReparameterizationType,
)
from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array
from estimatorkit.ops.array.filling import ones
from estimatorkit.ops.array.indexing import where
from estimatorkit.ops.array.joining import concat
from estimatorkit.ops.debug import checks
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.math.broadcasting import broadcast_shapes
from estimatorkit.ops.math.reduce import reduce_sum
from estimatorkit.ops.nn.nn import softmax

_LARGEST_COUNT = {"float16": 2**11, "float32": 2**24, "float64": 2**53}


class ParametricDistribution(Distribution):
    """A distribution whose parameters are float tensors of one dtype.

    Events are scalars (`_event_rank` 0), and the parameters' shapes broadcast to the batch shape;
    with `_event_rank` 1 the last dimension is the event's.
    """

    _event_rank: ClassVar[int] = 0
    _names: ClassVar[tuple[str, ...]] = ()
    _functions: ClassVar[Mapping[str, Callable[[Any], Tensor]]] = {}
    """Transformations of the parameters, by name."""

    def _set_parameters(
        self, arguments: Mapping[str, Any], reparameterization_type: ReparameterizationType
    ) -> None:
        """Converts the parameters and calls `Distribution`'s constructor.

        `arguments` are the constructor's local variables: those of `_names`, and `validate_args`,
        `allow_nan_stats`, `name`.
        """
        graph = get_default_graph()
        with graph.name_scope(arguments["name"]) as scope:
            given = {
                name: self._functions.get(name, convert_to_tensor)(arguments[name])
                for name in self._names
            }
            tests = self._parameter_checks(given) if arguments["validate_args"] else []
            with graph.control_dependencies([test for test in tests if test is not None]):
                made = {name: builtin_ops.identity(each, name=name) for name, each in given.items()}
            dtype = checks.assert_same_float_dtype(list(made.values()))
        vars(self).update(made)
        Distribution.__init__(
            self,
            dtype,
            reparameterization_type,
            arguments["validate_args"],
            arguments["allow_nan_stats"],
            arguments,
            list(made.values()),
            scope,
        )

    def _parameter_checks(self, given: Mapping[str, Tensor]) -> list[Any]:
        """Assertions on the parameters, used if `validate_args`."""
        return []

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        return {name: convert_to_tensor(sample_shape, int32) for name in cls._names}

    def _tensors(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._names]

    def _broadcast(self, value: Tensor) -> Tensor:
        """Broadcasts `value` against all parameters."""
        return value * ones(self.batch_shape_tensor(), self.dtype)

    def _whole_shape(self) -> TensorShape:
        return reduce(
            lambda a, b: broadcast_shapes(a, b, lambda i, j: _no_broadcast(self, i, j)),
            [each.shape for each in self._tensors()],
        )

    def _batch_shape(self) -> TensorShape:
        whole = self._whole_shape()
        return whole[: -self._event_rank] if self._event_rank else whole

    def _event_shape(self) -> TensorShape:
        return self._whole_shape()[-1:] if self._event_rank else TensorShape([])

    def _batch_shape_tensor(self) -> Tensor:
        whole = array.shape(reduce(operator.add, self._tensors()))
        return whole[: -self._event_rank] if self._event_rank else whole

    def _event_shape_tensor(self) -> Tensor:
        return array.shape(self._tensors()[-1])[-1:]

    def _drawn_shape(self, n: Any) -> Tensor:
        return concat([[n], self.batch_shape_tensor()], 0)

    def _checked(self, value: Tensor, *tests: Callable[[], Any]) -> Tensor:
        """`value`, after assertions if `validate_args`."""
        if not self.validate_args:
            return value
        return after([test() for test in tests], value)

    def _where_above(
        self, bound: float, parameters: Sequence[Tensor], value: Tensor, message: str
    ) -> Tensor:
        """`value` where all parameters exceed `bound`; elsewhere NaN or an error."""
        limit = convert_to_tensor(bound, self.dtype)
        if not self.allow_nan_stats:
            return after(
                [checks.assert_less(limit, each, message=message) for each in parameters], value
            )
        defined = reduce(elementwise.logical_and, [each > limit for each in parameters])
        return where(defined, value, convert_to_tensor(np.nan, self.dtype))


def _no_broadcast(made: Distribution, first: int, second: int) -> Exception:
    return value_error(
        f"Incompatible shapes for broadcasting: the parameters of {type(made).__name__}",
        expected="equal dimensions, or 1",
        received=f"{first} and {second}",
    )


def after(tests: Sequence[Any], value: Tensor) -> Tensor:
    """`value` with control dependencies on assertions; None marks one that passed statically."""
    with get_default_graph().control_dependencies([test for test in tests if test is not None]):
        return builtin_ops.identity(value)


def check_counts(counts: Tensor, name: str = "", like: str = "") -> list[Any]:
    """Asserts nonnegative integers; messages use `name`, and compare in the dtype `like`."""
    called = name or f"'{counts}'"
    tests: list[Any] = [
        checks.assert_non_negative(counts, message=f"{called} must be non-negative.")
    ]
    if counts.dtype.is_floating:
        fault = f"must be {like}-equivalent" if like else "cannot contain fractional components"
        tests.append(
            checks.assert_equal(counts, elementwise.floor(counts), message=f"{called} {fault}.")
        )
    return tests


def check_class_count(parameter: Tensor) -> list[Any]:
    """Checks for at least 2 classes, and that the dtype represents all class numbers exactly.

    Returns assertions for facts that are not known statically.

    Raises:
        ValueError: a check fails, or there is no last dimension.
    """
    if parameter.shape.rank is None:
        few = "A categorical-distribution parameter must have at least 2 events."
        none = "A categorical-distribution parameter must have at least 1 dimension."
        return [
            checks.assert_rank_at_least(parameter, 1, message=none),
            checks.assert_greater_equal(array.shape(parameter)[-1], 2, message=few),
        ]
    if parameter.shape.rank == 0:
        raise ValueError("A categorical-distribution parameter must have at least 1 dimension.")
    size = parameter.shape.as_list()[-1]
    if size is None:
        few = "A categorical-distribution parameter must have at least 2 events."
        return [checks.assert_greater_equal(array.shape(parameter)[-1], 2, message=few)]
    if size < 2:
        raise ValueError("A categorical-distribution parameter must have at least 2 events.")
    largest = _LARGEST_COUNT.get(parameter.dtype.name, 2**24)
    if size > largest:
        raise ValueError(
            f"Number of classes exceeds `dtype` precision, i.e., {parameter.dtype.name} implies "
            f"shape ({size}) cannot exceed {largest}."
        )
    return []


def logits_and_probs(
    logits: Any, probs: Any, validate_args: bool, classes: bool = False
) -> tuple[Tensor, Tensor]:
    """Computes logits from probabilities, or the reverse.

    With `classes`, the last dimension is a distribution over classes; otherwise each element is
    the probability of an event. `probs` are checked at run time if `validate_args`.

    Raises:
        ValueError: not exactly one is given.
        TypeError: the given one is not floating.
    """
    if (logits is None) == (probs is None):
        raise ValueError("Must pass probs or logits, but not both.")
    if probs is None:
        given = convert_to_tensor(logits, name="logits")
        if not given.dtype.is_floating:
            raise TypeError("logits must having floating type.")
        if validate_args and classes:
            given = after(check_class_count(given), given)
        return given, (softmax if classes else elementwise.sigmoid)(given, name="probs")
    given = convert_to_tensor(probs, name="probs")
    if not given.dtype.is_floating:
        raise TypeError("probs must having floating type.")
    if validate_args:
        one = convert_to_tensor(1, given.dtype)
        tests = [checks.assert_non_negative(given)]
        if classes:
            tests += check_class_count(given)
            total = reduce_sum(given, -1)
            tests.append(checks.assert_near(total, one, message="probs does not sum to 1."))
        else:
            message = "probs has components greater than 1."
            tests.append(checks.assert_less_equal(given, one, message=message))
        given = after(tests, given)
    log_probs = elementwise.log(given, name="logits" if classes else None)
    return (log_probs if classes else log_probs - elementwise.log1p(-given)), given
