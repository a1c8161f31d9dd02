"""Recurrent layers with a given cell (`tf.keras.layers`): `SimpleRNN`, `LSTM`, `GRU`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

from estimatorkit.layers import regularizers
from estimatorkit.layers.engine.base import Layer, snake_case
from estimatorkit.layers.recurrent.recurrent import RNN
from estimatorkit.layers.recurrent.recurrent_cells import (
    CuDNNGRUCell,
    CuDNNLSTMCell,
    GRUCell,
    LSTMCell,
    SimpleRNNCell,
)


class CellRNN(RNN):
    """An `RNN` whose constructor accepts the arguments of its cell class, `kind`.

    The signature, attributes and config of subclasses follow from `kind`.
    """

    kind: ClassVar[type[Layer]]
    __signature__: ClassVar[inspect.Signature]
    _of_cell: ClassVar[Mapping[str, inspect.Parameter]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Sets `__signature__` from those of the cell and of `RNN`."""
        super().__init_subclass__(**kwargs)
        cls._of_cell = _arguments_of(cls.kind)
        loop = list(inspect.signature(RNN.__init__).parameters.values())[2:]
        regularizer = inspect.Parameter("activity_regularizer", inspect.Parameter.KEYWORD_ONLY)
        own = [*cls._of_cell.values(), regularizer.replace(default=None), *loop]
        keyword = inspect.Parameter.KEYWORD_ONLY
        own = [
            each.replace(kind=keyword) if at >= len(cls._of_cell) and each.kind < keyword else each
            for at, each in enumerate(own)
        ]
        cls.__signature__ = inspect.Signature(sorted(own, key=lambda each: each.kind))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        positional = [
            each.name for each in self._of_cell.values() if each.kind is each.POSITIONAL_OR_KEYWORD
        ]
        if len(args) > len(positional):
            raise TypeError(
                f"{type(self).__name__} takes at most {len(positional)} positional arguments, got "
                f"{len(args)}"
            )
        of_cell = dict(zip(positional, args, strict=False))
        for name in self._of_cell:
            if name in kwargs:
                if name in of_cell:
                    raise TypeError(
                        f"{type(self).__name__} got multiple values for argument '{name}'"
                    )
                of_cell[name] = kwargs.pop(name)
        shared = {key: kwargs[key] for key in ("dtype", "trainable") if key in kwargs}
        regularizer = regularizers.get(kwargs.pop("activity_regularizer", None))
        cell = self.kind(**of_cell, **shared, name=snake_case(self.kind.__name__))
        super().__init__(cell, activity_regularizer=regularizer, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in type(self)._of_cell and "cell" in self.__dict__:
            return getattr(self.cell, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        of_cell = self.cell.get_config()
        return {
            **self._loop_config(),
            **{name: of_cell[name] for name in self._of_cell if name in of_cell},
            "activity_regularizer": regularizers.serialize(self.activity_regularizer),
        }


def _arguments_of(kind: type[Layer]) -> dict[str, inspect.Parameter]:
    """The arguments of a cell class, without those of `Layer`."""
    found: dict[str, inspect.Parameter] = {}
    fixed = getattr(kind, "fixed", ())
    for base in kind.__mro__:
        if base is Layer:
            break
        if "__init__" in vars(base):
            parameters = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
            for each in parameters:
                if each.kind is not each.VAR_KEYWORD and each.name not in fixed:
                    found.setdefault(each.name, each)
    return found


class SimpleRNN(CellRNN):
    """Runs a `SimpleRNNCell` over time (`tf.keras.layers.SimpleRNN`).

    Accepts the arguments of the cell, `activity_regularizer`, and those of `RNN`.
    """

    kind: ClassVar[type[Layer]] = SimpleRNNCell


class LSTM(CellRNN):
    """Runs an `LSTMCell` over time (`tf.keras.layers.LSTM`). States: the output and the memory.

    Accepts the arguments of the cell, `activity_regularizer`, and those of `RNN`.
    """

    kind: ClassVar[type[Layer]] = LSTMCell


class GRU(CellRNN):
    """Runs a `GRUCell` over time (`tf.keras.layers.GRU`).

    Accepts the arguments of the cell, `activity_regularizer`, and those of `RNN`.
    """

    kind: ClassVar[type[Layer]] = GRUCell


class CuDNNLSTM(CellRNN):
    """An `LSTM` with cuDNN's weight layout, for any device (`tf.compat.v1.keras.layers.CuDNNLSTM`).

    The shape of `bias` is `(8 * units,)`; the variables are under the layer's own name. Accepts the
    arguments of `LSTM`, except the activations, `use_bias` and `implementation`.
    """

    kind = CuDNNLSTMCell

    def _build_cell(self, shape: Any) -> None:
        self.cell._run_build(self.cell.build, shape)


class CuDNNGRU(CellRNN):
    """A `GRU` with cuDNN's weight layout, for any device (`tf.compat.v1.keras.layers.CuDNNGRU`).

    The shape of `bias` is `(6 * units,)`; the variables are under the layer's own name. Accepts the
    arguments of `GRU`, except the activations, `use_bias`, `implementation` and `reset_after`.
    """

    kind = CuDNNGRUCell

    def _build_cell(self, shape: Any) -> None:
        self.cell._run_build(self.cell.build, shape)


__all__ = ["CuDNNGRU", "CuDNNLSTM", "GRU", "LSTM", "CellRNN", "SimpleRNN"]
