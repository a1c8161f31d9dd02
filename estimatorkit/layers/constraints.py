"""Constraints: functions of a variable's new value, applied after each update
(`tf.keras.constraints`).
"""

from __future__ import annotations

from typing import Any

from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.arguments import kept_arguments
from estimatorkit.layers.serialization import Registry
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.math import elementwise, reduce

_EPSILON = 1e-7


class Constraint:
    """Base class of constraints: called with a variable's new value, they return a valid one."""

    def __call__(self, w: Any) -> Any:
        """Returns the value to keep."""
        return w

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return kept_arguments(self, Constraint)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Constraint:
        """Creates a constraint from the result of `get_config`."""
        return cls(**config)


def _norms(w: Any, axis: Any) -> Tensor:
    return elementwise.sqrt(reduce.reduce_sum(elementwise.square(w), axis, keepdims=True))


class MaxNorm(Constraint):
    """Scales weights down so that no norm exceeds `max_value`.

    Args:
        max_value: the largest norm.
        axis: the axes to compute norms over: 0 for the weights of each unit of a Dense layer.
    """

    def __init__(self, max_value: float = 2, axis: Any = 0) -> None:
        self.max_value = max_value
        self.axis = axis

    def __call__(self, w: Any) -> Any:
        norms = _norms(w, self.axis)
        wanted = elementwise.clip_by_value(norms, 0.0, float(self.max_value))
        return w * (wanted / (_EPSILON + norms))


class NonNeg(Constraint):
    """Sets negative weights to 0."""

    def __call__(self, w: Any) -> Any:
        zero = elementwise.cast(0.0, w.dtype)
        return w * elementwise.cast(elementwise.greater_equal(w, zero), w.dtype)


class UnitNorm(Constraint):
    """Scales weights to norm 1; `axis` is as for `MaxNorm`."""

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Any:
        return w / (_EPSILON + _norms(w, self.axis))


class MinMaxNorm(Constraint):
    """Scales weights so that norms move into [min_value, max_value].

    Args:
        min_value, max_value: the bounds.
        rate: how far to move norms towards the bounds, in [0, 1]; 1 for all the way.
        axis: as for `MaxNorm`.
    """

    def __init__(
        self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0
    ) -> None:
        self.min_value = min_value
        self.max_value = max_value
        self.rate = rate
        self.axis = axis

    def __call__(self, w: Any) -> Any:
        norms = _norms(w, self.axis)
        inside = elementwise.clip_by_value(norms, float(self.min_value), float(self.max_value))
        wanted = self.rate * inside + (1 - self.rate) * norms
        return w * (wanted / (_EPSILON + norms))


class RadialConstraint(Constraint):
    """Makes the filters of a convolution, `(n, n, channels, filters)`, radially symmetric: each
    square ring around the centre takes the value in the middle of its first row.
    """

    def __call__(self, w: Any) -> Any:
        height, width, channels, filters = w.shape.as_list()
        if height != width:
            raise ValueError(f"RadialConstraint takes square filters; got shape {w.shape}")
        flat = array.reshape(w, [height, width, channels * filters])
        # The upper half of the middle column holds the values, from the edge to the center.
        start = (height + 1) // 2 - 1 if height % 2 else height // 2 - 1
        half = flat[: start + 1, start]
        rows = []
        for row in range(height):
            cells = []
            for column in range(width):
                ring = min(row, column, height - 1 - row, width - 1 - column)
                cells.append(half[ring])
            rows.append(joining.stack(cells))
        return array.reshape(joining.stack(rows), [height, width, channels, filters])


max_norm, non_neg, unit_norm = MaxNorm, NonNeg, UnitNorm
min_max_norm, radial_constraint = MinMaxNorm, RadialConstraint
registry = Registry(
    "constraint",
    {
        **{kind.__name__: kind for kind in (MaxNorm, NonNeg, UnitNorm, MinMaxNorm)},
        "RadialConstraint": RadialConstraint,
        "max_norm": MaxNorm,
        "non_neg": NonNeg,
        "unit_norm": UnitNorm,
        "min_max_norm": MinMaxNorm,
        "radial_constraint": RadialConstraint,
    },
)
get, serialize, deserialize = registry.get, registry.serialize, registry.deserialize

__all__ = [
    "Constraint",
    "MaxNorm",
    "MinMaxNorm",
    "NonNeg",
    "RadialConstraint",
    "UnitNorm",
    "deserialize",
    "get",
    "max_norm",
    "min_max_norm",
    "non_neg",
    "radial_constraint",
    "serialize",
    "unit_norm",
]
__dir__ = listing(__name__)
