"""Recurrent layers with the defaults of `tf.compat.v1.keras.layers`.

Gates are `hard_sigmoid`, and a GRU resets the state before the product. `recurrent_kinds` has the
defaults of `tf.keras.layers`; the computations are the same.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.layers.recurrent import recurrent_cells, recurrent_kinds


class LSTMCell(recurrent_cells.LSTMCell):
    """`LSTMCell` with `hard_sigmoid` gates by default."""

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "hard_sigmoid",
        *,
        implementation: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            units, activation, recurrent_activation, implementation=implementation, **kwargs
        )


class GRUCell(recurrent_cells.GRUCell):
    """`GRUCell` with `hard_sigmoid` gates and the reset before the product by default."""

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "hard_sigmoid",
        *,
        reset_after: bool = False,
        implementation: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            units,
            activation,
            recurrent_activation,
            reset_after=reset_after,
            implementation=implementation,
            **kwargs,
        )


class LSTM(recurrent_kinds.LSTM):
    """`LSTMCell` of this module over time."""

    kind = LSTMCell


class GRU(recurrent_kinds.GRU):
    """`GRUCell` of this module over time."""

    kind = GRUCell


__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell"]
