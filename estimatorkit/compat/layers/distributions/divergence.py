"""Kullback-Leibler divergences, dispatched on both distributions' classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from estimatorkit.core import builtin_ops
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.debug.debug import Assert
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.math.reduce import reduce_any

if TYPE_CHECKING:
    from estimatorkit.compat.layers.distributions.distribution import Distribution

_Function = TypeVar("_Function", bound=Callable[..., Any])
_DIVERGENCES: dict[tuple[type, type], Callable[..., Any]] = {}


class RegisterKL:
    """Decorator that registers the divergence of two classes.

    Args:
        dist_cls_a: the class of the first distribution.
        dist_cls_b: that of the second.
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: _Function) -> _Function:
        """Registers `kl_fn(a, b, name=None)` and returns it.

        Raises:
            TypeError: it is not callable.
            ValueError: the pair of classes is already registered.
        """
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in _DIVERGENCES:
            first, second = (each.__name__ for each in self._key)
            raise ValueError(
                f"KL({first} || {second}) has already been registered to: {_DIVERGENCES[self._key]}"
            )
        _DIVERGENCES[self._key] = kl_fn
        return kl_fn


def registered_kl(type_a: type, type_b: type) -> Callable[..., Any] | None:
    """The function of the nearest base classes, by distance in both method resolution orders."""
    found = [
        (i + j, i, _DIVERGENCES[a, b])
        for i, a in enumerate(type_a.__mro__)
        for j, b in enumerate(type_b.__mro__)
        if (a, b) in _DIVERGENCES
    ]
    return min(found, key=lambda each: each[:2])[2] if found else None


def kl_divergence(
    distribution_a: Distribution,
    distribution_b: Distribution,
    allow_nan_stats: bool = True,
    name: str | None = None,
) -> Tensor:
    """The divergence from `distribution_a` to `distribution_b`, in nats.

    Args:
        distribution_a: the distribution whose draws the expectation is over.
        distribution_b: the other one.
        allow_nan_stats: whether the result may be NaN; otherwise that is an `InvalidArgumentError`.
        name: the name scope.

    Returns:
        A tensor of the batch's shape.

    Raises:
        NotImplementedError: there is no formula for these classes; see `RegisterKL`.
    """
    function = registered_kl(type(distribution_a), type(distribution_b))
    if function is None:
        raise NotImplementedError(
            "No KL(distribution_a || distribution_b) registered for distribution_a type "
            f"{type(distribution_a).__name__} and distribution_b type "
            f"{type(distribution_b).__name__}"
        )
    graph = get_default_graph()
    with graph.name_scope("KullbackLeibler"):
        result: Tensor = function(distribution_a, distribution_b, name=name)
        if allow_nan_stats:
            return result
        check = Assert(
            elementwise.logical_not(reduce_any(elementwise.is_nan(result))),
            [
                f"KL calculation between {distribution_a.name} and {distribution_b.name} returned "
                "NaN values (and was called with allow_nan_stats=False). Values:",
                result,
            ],
        )
        with graph.control_dependencies([check]):
            return builtin_ops.identity(result, name="checked_kl")


def cross_entropy(
    ref: Distribution, other: Distribution, allow_nan_stats: bool = True, name: str | None = None
) -> Tensor:
    """The entropy of `ref` plus its divergence to `other`."""
    with get_default_graph().name_scope(name or "cross_entropy"):
        return ref.entropy() + kl_divergence(ref, other, allow_nan_stats)
