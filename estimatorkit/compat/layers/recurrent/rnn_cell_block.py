"""Cells of `contrib.rnn` that are fused kernels in TensorFlow; XLA fuses these."""

from __future__ import annotations

from typing import Any

from estimatorkit.compat.layers.recurrent.rnn_cell import GRUCell, LSTMCell
from estimatorkit.core.tensor import Tensor
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array
from estimatorkit.ops.math import elementwise


class LSTMBlockCell(LSTMCell):
    """`LSTMCell` with the arguments of TensorFlow's fused kernel.

    Args:
        num_units: the number of units.
        forget_bias: added to the forget gate.
        cell_clip: clips the memory to [-cell_clip, cell_clip]; None or negative for no clipping.
        use_peephole: whether the gates depend on the memory.
        dtype, reuse, name: see `RNNCell`.
    """

    _peepholes = "ifo"

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: bool | None = None,
        name: str | None = "lstm_cell",
    ) -> None:
        super().__init__(
            num_units,
            use_peepholes=use_peephole,
            cell_clip=cell_clip if cell_clip is not None and cell_clip > 0 else None,
            forget_bias=forget_bias,
            reuse=reuse,
            name=name,
            dtype=dtype,
        )

    @staticmethod
    def _clipped(memory: Tensor, bound: float) -> Tensor:
        # As in the fused kernel, the gradient ignores the clipping.
        change = elementwise.clip_by_value(memory, -bound, bound) - memory
        return memory + array.stop_gradient(change)


class GRUBlockCell(GRUCell):
    """`GRUCell` with the variable names of TensorFlow's fused kernel.

    Args:
        num_units: the number of units.
        cell_size: old name of `num_units`.
        reuse, name: see `RNNCell`.

    Raises:
        ValueError: both or neither of the two are given.
    """

    _names = (("w_ru", "b_ru"), ("w_c", "b_c"))

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: bool | None = None,
        name: str | None = "gru_cell",
    ) -> None:
        given = [each for each in (num_units, cell_size) if each is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of num_units or cell_size must be provided.")
        super().__init__(given[0], reuse=reuse, name=name)


class GRUBlockCellV2(GRUBlockCell):
    """`GRUBlockCell` with the variable names of `GRUCell`."""

    _names = GRUCell._names


__all__ = ["GRUBlockCell", "GRUBlockCellV2", "LSTMBlockCell"]
__dir__ = listing(__name__)
