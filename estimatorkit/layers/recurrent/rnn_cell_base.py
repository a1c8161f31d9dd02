"""Base of the recurrent cells of `tf.nn.rnn_cell`: `RNNCell`, and the linear part of a step."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.layers.engine.base import snake_case
from estimatorkit.layers.recurrent.steps import zeros_of
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.math import elementwise, linalg
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.initializers import Constant
from estimatorkit.ops.variables.variable_scope import VariableScope, get_variable, variable_scope

Activation = Callable[[Any], Tensor]


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM cell: the memory `c`, `(batch, units)`, and the output `h`."""

    c: Any
    h: Any

    @property
    def dtype(self) -> Any:
        """The dtype of both.

        Raises:
            TypeError: they have different dtypes.
        """
        if self.c.dtype != self.h.dtype:
            raise TypeError(
                f"Inconsistent dtypes for internal state: {self.c.dtype} vs {self.h.dtype}"
            )
        return self.c.dtype


class ScopedVariables:
    """The variables of a layer that are under a scope, which is None before the first call."""

    _scope: VariableScope | None = None

    @property
    def variables(self) -> list[Variable]:
        """The variables; none before the first call."""
        return [] if self._scope is None else self._scope.global_variables()

    weights = variables

    @property
    def trainable_variables(self) -> list[Variable]:
        """The trainable variables."""
        return [] if self._scope is None else self._scope.trainable_variables()

    trainable_weights = trainable_variables

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """The variables that are not trainable."""
        trainable = set(map(id, self.trainable_variables))
        return [each for each in self.variables if id(each) not in trainable]

    non_trainable_weights = non_trainable_variables


class RNNCell(ScopedVariables):
    """Base class of cells; subclasses define `state_size`, `output_size`, `call(inputs, state)`.

    A subclass may create its variables in `build(inputs_shape)`, which runs before the first
    `call`.

    Args:
        trainable: whether the variables are trainable.
        name: the variable scope; by default the class's name in snake case, made unique.
        dtype: accepted for compatibility only; variables have the dtype of the inputs.
        _reuse: whether to share the variables of a cell called in the same scope before.
    """

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        _reuse: bool | None = None,
        **kwargs: Any,
    ) -> None:
        if kwargs:
            raise TypeError(f"{type(self).__name__} got unexpected arguments {sorted(kwargs)}.")
        self.trainable = trainable
        self._name = name
        self._reuse = _reuse
        self._dtype: str | None = None
        self.built = False

    @property
    def name(self) -> str:
        """The name of the variable scope."""
        return self._name or snake_case(type(self).__name__)

    @property
    def state_size(self) -> Any:
        """The size, or nested structure of sizes, of the state without the batch dimension."""
        raise NotImplementedError(f"{type(self).__name__} must define state_size")

    @property
    def output_size(self) -> Any:
        """The size of the output without the batch dimension."""
        raise NotImplementedError(f"{type(self).__name__} must define output_size")

    def build(self, inputs_shape: Any) -> None:
        """Creates variables; called once, before the first `call`."""

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: the output and the new state."""
        raise NotImplementedError(f"{type(self).__name__} must define call(inputs, state)")

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step.

        Args:
            inputs: `(batch, n)`.
            state: in the structure of `zero_state`.
            scope: the variable scope (a name or a `VariableScope`); first call only.

        Returns:
            The output, and the new state.
        """
        with self._variables(scope):
            if not self.built:
                self._dtype = convert_to_tensor(nest.flatten(inputs)[0]).dtype.base_dtype.name
                self.build(_shape_of(inputs))
                self.built = True
            return self.call(inputs, state)

    @contextmanager
    def _variables(self, scope: Any) -> Iterator[None]:
        """The cell's variable scope; the name scope is that of the first call."""
        if self._scope is not None:
            with (
                variable_scope(self._scope, reuse=True, auxiliary_name_scope=False),
                get_default_graph().name_scope(self._scope.original_name_scope),
            ):
                yield
            return
        # A name is made unique, unless variables of that name are to be shared.
        chosen = self.name if scope is None and self._reuse else scope
        with variable_scope(chosen, default_name=self.name, reuse=self._reuse) as self._scope:
            yield

    @property
    def dtype(self) -> Any:
        """The name of the dtype of the first inputs; None before the first call."""
        return self._dtype

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros; `batch_size` is an int or an int32 scalar tensor."""
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            return zeros_of(self.state_size, batch_size, dtype)

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """A state of zeros for the batch size and dtype of `inputs`, or those given."""
        if inputs is not None:
            tensor = convert_to_tensor(inputs)
            batch_size, dtype = array.shape(tensor)[0], tensor.dtype
        return self.zero_state(batch_size, dtype)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """An equal cell that has not been called, and will create its own variables.

        Inner cells are copied as well; tensors and all other values are shared.
        """
        made = copy.copy(self)
        memo[id(self)] = made

        def copied(leaf: Any) -> Any:
            return copy.deepcopy(leaf, memo) if isinstance(leaf, RNNCell) else leaf

        for name, value in vars(self).items():
            setattr(made, name, nest.map_structure(copied, value))
        made._scope = None
        made.built = False
        return made

    # -- for subclasses

    def add_variable(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        trainable: bool = True,
        **kwargs: Any,
    ) -> Variable:
        """A variable of the cell: created in the first call, shared by later ones."""
        kwargs["trainable"] = trainable and self.trainable
        return get_variable(name, shape, dtype, initializer, **kwargs)

    add_weight = add_variable


def assert_like_cell(cell: Any, what: str = "cell") -> None:
    """Raises TypeError if the argument `what` is not a recurrent cell."""
    needed = [("state_size",), ("output_size",), ("zero_state", "get_initial_state")]
    missing = [each for each in needed if not any(_has(cell, name) for name in each)]
    if missing or not callable(cell):
        raise type_error(
            f"The argument {what!r} ({str(cell)[:100]}) is not an RNNCell",
            expected="a callable with state_size, output_size and zero_state (or "
            "get_initial_state)",
            received=repr(cell)[:200],
        )


def _has(cell: Any, attribute: str) -> bool:
    # The class first: the base class's properties raise NotImplementedError.
    return hasattr(type(cell), attribute) or hasattr(cell, attribute)


def _shape_of(inputs: Any) -> Any:
    """The shapes of the inputs, in their structure."""
    return nest.map_structure(lambda each: convert_to_tensor(each).shape, inputs)


def input_size(inputs: Tensor, cell: RNNCell) -> int:
    """The size of the last dimension; raises ValueError if unknown."""
    size = inputs.shape[-1] if inputs.shape.rank else None
    if size is None:
        raise value_error(
            f"{type(cell).__name__}: expected inputs.shape[-1] to be known",
            received=inputs,
            made_at=inputs.op.source,
            hint="give the placeholder a shape, or call set_shape",
        )
    return size


def linear(
    cell: RNNCell,
    values: Sequence[Tensor],
    units: int,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    names: tuple[str, str] = ("kernel", "bias"),
) -> Tensor:
    """Concatenated values x kernel + bias, with variables of the given names."""
    rows = sum(input_size(value, cell) for value in values)
    dtype = values[0].dtype
    joined = values[0] if len(values) == 1 else joining.concat(list(values), 1)
    kernel = cell.add_variable(names[0], [rows, units], dtype, kernel_initializer)
    bias = cell.add_variable(
        names[1],
        [units],
        dtype,
        Constant(0.0) if bias_initializer is None else bias_initializer,
    )
    return nn.bias_add(linalg.matmul(joined, kernel), bias)


def activation_of(given: Any, default: Activation = elementwise.tanh) -> Activation:
    """The activation function for a name, a function or None."""
    if given is None:
        return default
    if isinstance(given, str):
        found: Activation = getattr(nn, given, None) or getattr(elementwise, given)
        return found
    chosen: Activation = given
    return chosen
