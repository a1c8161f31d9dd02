"""`switch` and `merge` of `control_flow_ops`, as preprocessing programs use them: both sides are
computed, and `merge` selects the one whose predicates hold. `cond` runs one side only.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import bool_, int32
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.math import elementwise

_PAIR = np.array([1.0, 2.0], np.float32)

BOTH_SIDES = register(
    "BothSides",
    lambda data, pred: (data, data),
    numpy_kernel=lambda data, pred: (data, data),
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, inputs[0].shape)] * 2,
    cases=lambda: [Case((_PAIR, np.array(True)))],
    accepts=("", "b"),
)


def _merged(*inputs: Any, module: Any = jnp) -> Any:
    count = len(inputs) // 2
    alive = module.stack(inputs[:count])
    values = inputs[count:]
    chosen = values[-1]
    for at in range(count - 2, -1, -1):
        chosen = module.where(inputs[at], values[at], chosen)
    return chosen, module.argmax(alive).astype(np.int32)


def _infer_merged(inputs: Sequence[Spec], attrs: Any) -> list[Spec]:
    values = inputs[len(inputs) // 2 :]
    shape = values[0].shape
    for each in values[1:]:
        if shape.rank is None or shape.rank != each.shape.rank:
            shape = TensorShape(None)
        else:
            pairs = zip(shape, each.shape, strict=True)
            shape = TensorShape([a if a == b else None for a, b in pairs])
    return [Spec(values[0].dtype, shape), Spec(int32, TensorShape([]))]


CHOSEN_SIDE = register(
    "ChosenSide",
    _merged,
    numpy_kernel=functools.partial(_merged, module=np),
    infer=_infer_merged,
    accepts="b",
    cases=lambda: [Case((np.array(False), np.array(True), _PAIR, 2 * _PAIR))],
)


class Merged(NamedTuple):
    """The result of `merge`: the value, and the index of the selected input."""

    output: Tensor
    value_index: Tensor


def switch(data: Any, pred: Any, dtype: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """Returns `data` twice: for consumers that need `pred` false, and for those that need it true.

    Intended difference from TensorFlow: both sides are computed, and `merge` selects.

    Args:
        data: a tensor.
        pred: a bool scalar.
        dtype: the dtype to convert `data` to if it is not a tensor.
    """
    inputs = {
        "data": convert_to_tensor(data, dtype, name="data"),
        "pred": convert_to_tensor(pred, bool_, name="pred"),
    }
    if_false, if_true = make("BothSides", inputs, name=name or "Switch").op.outputs
    return if_false, if_true


def merge(inputs: Sequence[Any], name: str | None = None) -> Merged:
    """Selects the first input that is on the selected side of all its `switch`es.

    Args:
        inputs: tensors of one dtype and shape.

    Raises:
        ValueError: an input is None.
    """
    if any(each is None for each in inputs):
        raise ValueError(f"At least one of the merge inputs is None: {inputs}")
    values = [convert_to_tensor(each) for each in inputs]
    named = {f"alive_{at}": _alive(value) for at, value in enumerate(values)}
    named |= {f"value_{at}": value for at, value in enumerate(values)}
    return Merged(*make("ChosenSide", named, name=name or "Merge").op.outputs)


def _alive(tensor: Tensor) -> Tensor:
    """Whether all switches that a tensor depends on took its side."""
    conditions: dict[tuple[Tensor, int], None] = {}
    seen: set[Operation] = set()
    pending = [tensor]
    while pending:
        each = pending.pop()
        if BOTH_SIDES.made(each.op):
            conditions[each.op.inputs[1], each.op.outputs.index(each)] = None
            pending.append(each.op.inputs[0])
        elif not CHOSEN_SIDE.made(each.op) and each.op not in seen:
            seen.add(each.op)
            pending.extend(each.op.inputs)
    wanted = [pred if side else elementwise.logical_not(pred) for pred, side in conditions]
    return functools.reduce(elementwise.logical_and, wanted, convert_to_tensor(True))
