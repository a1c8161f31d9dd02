"""Regularizers: penalties on a variable's values (`tf.keras.regularizers`)."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.arguments import kept_arguments
from estimatorkit.layers.serialization import Registry
from estimatorkit.lazy import listing
from estimatorkit.ops.math import elementwise, reduce


class Regularizer:
    """Base class of regularizers: called with a variable, they return a scalar loss."""

    def __call__(self, x: Any) -> Any:
        """The loss of `x`."""
        return 0.0

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments.

        Raises:
            NotImplementedError: a subclass does not say.
        """
        raise NotImplementedError(f"{self} does not implement get_config()")

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Regularizer:
        """Creates a regularizer from the result of `get_config`."""
        return cls(**config)


class L1L2(Regularizer):
    """l1 * sum(|x|) + l2 * sum(x^2).

    Args:
        l1, l2: the factors; 0 for no such term.
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1 = 0.0 if l1 is None else float(l1)
        self.l2 = 0.0 if l2 is None else float(l2)

    def __call__(self, x: Any) -> Any:
        terms: list[Tensor] = []
        if self.l1:
            terms.append(self.l1 * reduce.reduce_sum(elementwise.abs(x)))
        if self.l2:
            terms.append(self.l2 * reduce.reduce_sum(elementwise.square(x)))
        return elementwise.add_n(terms) if terms else 0.0

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return kept_arguments(self, L1L2)


class L1(L1L2):
    """l1 * sum(|x|); `l` is an older name of `l1`."""

    def __init__(self, l1: float = 0.01, *, l: float | None = None) -> None:  # noqa: E741
        super().__init__(l1=l1 if l is None else l)


class L2(L1L2):
    """l2 * sum(x^2); `l` is an older name of `l2`."""

    def __init__(self, l2: float = 0.01, *, l: float | None = None) -> None:  # noqa: E741
        super().__init__(l2=l2 if l is None else l)


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    """Returns an `L1L2` whose factors are both 0.01 by default."""
    return L1L2(l1, l2)


l1, l2 = L1, L2
registry = Registry(
    "regularizer", {"L1L2": L1L2, "L1": L1, "L2": L2, "l1": L1, "l2": L2, "l1_l2": l1_l2()}
)
get, serialize, deserialize = registry.get, registry.serialize, registry.deserialize

__all__ = [
    "L1",
    "L1L2",
    "L2",
    "Regularizer",
    "deserialize",
    "get",
    "l1",
    "l1_l2",
    "l2",
    "serialize",
]
__dir__ = listing(__name__)
