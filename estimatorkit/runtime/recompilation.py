"""Says which tensors make XLA compile a segment again and again.

XLA compiles for fixed shapes. A program whose shapes depend on values (`boolean_mask`, `where`,
batches of any length) is compiled for each new set of them, which takes longer than many steps.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.tensor import Tensor

logger = logging.getLogger("estimatorkit")

LIMIT = 20
"""So many shapes are no sign of a fault yet: the lengths of sentences, say."""


class ShapeWatch:
    """The compilations of a segment; warns once, when there are `LIMIT`.

    Args:
        inputs: tensors whose shapes decide what is compiled.
        static: tensors whose values do.
    """

    def __init__(self, inputs: Sequence[Tensor], static: Sequence[Tensor]) -> None:
        self._tensors = [(tensor, "shapes") for tensor in inputs]
        self._tensors += [(tensor, "values") for tensor in static]
        self._seen: list[list[Any]] = []

    def add(self, inputs: Sequence[Any], static: Sequence[NDArray[Any]]) -> None:
        """Notes one more compilation, for these inputs."""
        if len(self._seen) < LIMIT:
            shapes = [str(list(np.shape(value))) for value in inputs]
            self._seen.append([*shapes, *(str(value.tolist()) for value in static)])
            if len(self._seen) == LIMIT:
                self._warn()

    def _warn(self) -> None:
        lines = []
        for (tensor, what), seen in zip(self._tensors, zip(*self._seen, strict=True), strict=True):
            different = list(dict.fromkeys(seen))
            if len(different) > 1:
                some = ", ".join(different[:4])
                lines.append(
                    f"  {tensor.name} had {len(different)} {what} ({some}, ...), "
                    f"made at {tensor.op.source}"
                )
        if lines:
            logger.warning(
                "A part of the graph was compiled %d times:\n%s\n"
                "  try: keep shapes fixed (pad batches, Dataset.batch(drop_remainder=True), "
                "multiply by a mask instead of tf.boolean_mask)",
                LIMIT,
                "\n".join(lines),
            )
