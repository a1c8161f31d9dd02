"""Warns users of `fit` that NaN in the data, not the model, made the loss NaN."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.nest import flatten
from estimatorkit.core.tensor import Tensor
from estimatorkit.logger import logger
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.train.checks import offer_step_check


class DataNaNWarning:
    """A step check that warns once per pass if both the loss and the batch contain NaN.

    NaN in the data alone is legal, since a model may mask or replace it. So is a NaN loss, which
    callbacks such as `TerminateOnNaN` handle. Results are the same as TensorFlow's.

    Args:
        loss: the step's loss.
        data: nested tensors by their name in the warning, such as 'x' and 'y'.
    """

    def __init__(self, loss: Tensor, data: dict[str, Any]) -> None:
        self._names: list[str] = []
        found: list[Tensor] = []
        lost = reduce.reduce_any(elementwise.is_nan(loss))
        for name, structure in data.items():
            for tensor in flatten(structure):
                if isinstance(tensor, Tensor) and tensor.dtype.is_floating:
                    has = reduce.reduce_any(elementwise.is_nan(tensor))
                    found.append(elementwise.logical_and(has, lost))
                    self._names.append(name)
        self.begin()
        if found:
            offer_step_check(found, self._look)

    def begin(self) -> None:
        """Restarts the count of batches, and rearms the warning."""
        self._batches = 0
        self._warned = False

    def _look(self, values: list[Any]) -> None:
        if not self._warned:
            for number, flags in enumerate(zip(*values, strict=True)):
                if any(flags):
                    self._warn(number, flags)
                    break
        self._batches += len(values[0])

    def _warn(self, number: int, flags: tuple[Any, ...]) -> None:
        self._warned = True
        names = [name for name, flag in zip(self._names, flags, strict=True) if flag]
        logger.warning(
            "The loss became NaN in batch %s, counted from 0 since the data began, because %s of "
            "this batch has NaN values. Fill them in or leave these examples out before training, "
            "for example with numpy.nan_to_num(x) or x[~numpy.isnan(x).any(axis=1)].",
            self._batches + number,
            " and ".join(dict.fromkeys(names)),
        )


__all__ = ["DataNaNWarning"]
