"""`tf.keras.backend`: settings, sessions, values of variables, functions, the learning phase."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from estimatorkit.core import builtin_ops, conversion
from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import value_error
from estimatorkit.core.gradients import gradients as _gradients
from estimatorkit.core.graph import Graph, get_default_graph, reset_default_graph
from estimatorkit.core.nest import flatten, pack_sequence_as
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.layers.engine import policy, sessions
from estimatorkit.layers.engine.call_record import learning_phase, record_of, set_learning_phase
from estimatorkit.ops.array import array, filling, indexing
from estimatorkit.ops.control import higher_order
from estimatorkit.ops.control.control_flow import cond
from estimatorkit.ops.linalg import diagonals
from estimatorkit.ops.math import elementwise, random
from estimatorkit.ops.sparse.sparse import sparse_placeholder, sparse_tensor_to_dense
from estimatorkit.runtime.session import Session

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_settings = {"epsilon": 1e-7, "initialize": True}
_uids: defaultdict[Graph, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))

# -- settings


def backend() -> str:
    """'tensorflow': the name by which programs know these functions."""
    return "tensorflow"


def epsilon() -> float:
    """A small number, 1e-7 unless it was set."""
    return _settings["epsilon"]


def set_epsilon(value: float) -> None:
    """Sets what `epsilon` gives, to losses too. Optimizers keep 1e-7, or what they are given."""
    _settings["epsilon"] = float(value)


def floatx() -> str:
    """The name of the floating dtype of layers and of this module's tensors."""
    return policy.global_policy().variable_dtype


def set_floatx(value: str) -> None:
    """Sets `floatx`: the dtype of layers that are made from now on.

    Raises:
        ValueError: it is no floating dtype.
    """
    if value not in _FLOATS:
        raise ValueError(f"Unknown `floatx` value: {value}. Expected one of {list(_FLOATS)}")
    policy.set_global_policy(value)


def get_uid(prefix: str = "") -> int:
    """How often it was asked for this prefix in the default graph."""
    counts = _uids[get_default_graph().outermost]
    counts[prefix] += 1
    return counts[prefix]


def reset_uids() -> None:
    """Lets `get_uid` and the names of layers begin anew."""
    _uids.clear()
    record_of(get_default_graph().outermost)._names.clear()


# -- sessions


def get_session(op_input_list: Any = ()) -> Session:
    """The session of the default graph, variables with a value (`manual_variable_initialization`).

    Args:
        op_input_list: accepted for TensorFlow's signature.
    """
    return sessions.session_of(initialize=bool(_settings["initialize"]))


def manual_variable_initialization(value: bool) -> None:
    """Sets whether the program itself gives variables their first values."""
    _settings["initialize"] = not value


def clear_session() -> None:
    """Begins a new default graph, with new names of layers; its session is closed."""
    graph = get_default_graph().outermost
    session = record_of(graph).session
    reset_default_graph()
    if session is not None:
        session.close()
    _uids.pop(graph, None)


# -- variables and their values


def variable(value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None) -> Any:
    """A variable.

    Args:
        value: its first value, an array or a tensor.
        dtype: `floatx()` by default.
        name: its name.
        constraint: a function that optimizers apply to a new value.
    """
    wanted = as_dtype(dtype or floatx())
    first = elementwise.cast(value, wanted) if isinstance(value, Tensor) else np.asarray(value)
    return Variable(first, dtype=wanted, name=name, constraint=constraint)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A constant, of `floatx()` by default."""
    return conversion.constant(value, as_dtype(dtype or floatx()), shape, name or "Const")


def placeholder(
    shape: Any = None,
    ndim: int | None = None,
    dtype: Any = None,
    sparse: bool = False,
    name: str | None = None,
    ragged: bool = False,
) -> Any:
    """A tensor that is fed.

    Args:
        shape: its shape, with None for what is not known.
        ndim: its rank, where there is no shape.
        dtype: `floatx()` by default.
        sparse: whether it is a `SparseTensor`.
        name: its name.
        ragged: must be False.

    Raises:
        ValueError: `ragged`.
    """
    if ragged:
        raise ValueError("placeholder: ragged tensors are not supported; use padding and masks")
    dims = [None] * ndim if shape is None and ndim is not None else shape
    wanted = as_dtype(dtype or floatx())
    if sparse:
        return sparse_placeholder(wanted, dims, name=name)
    return builtin_ops.placeholder(wanted, dims, name)


def _filled(value: Tensor, dtype: Any, name: str | None) -> Any:
    """A variable, where the shape is known and not empty; as Keras does."""
    if value.shape.is_fully_defined() and all(value.shape.as_list()):
        return variable(value, dtype, name)
    return value


def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of zeros."""
    return _filled(filling.zeros(shape, as_dtype(dtype or floatx())), dtype, name)


def ones(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of ones."""
    return _filled(filling.ones(shape, as_dtype(dtype or floatx())), dtype, name)


def eye(size: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable: the identity matrix."""
    return _filled(diagonals.eye(size, dtype=as_dtype(dtype or floatx())), dtype, name)


def random_uniform_variable(
    shape: Any,
    low: float,
    high: float,
    dtype: Any = None,
    name: str | None = None,
    seed: int | None = None,
) -> Any:
    """A variable of numbers drawn from [low, high)."""
    wanted = as_dtype(dtype or floatx())
    return variable(random.random_uniform(shape, low, high, wanted, seed), wanted, name)


def random_normal_variable(
    shape: Any,
    mean: float,
    scale: float,
    dtype: Any = None,
    name: str | None = None,
    seed: int | None = None,
) -> Any:
    """A variable of numbers drawn from a normal distribution."""
    wanted = as_dtype(dtype or floatx())
    return variable(random.random_normal(shape, mean, scale, wanted, seed), wanted, name)


def get_value(x: Any) -> Any:
    """The value of a variable, or of a tensor that needs no feed, as an array."""
    if isinstance(x, Variable):
        return sessions.values_of([x])[0]
    if isinstance(x, Tensor):
        return sessions.session_of(x.graph).run(x)
    return x


def batch_get_value(tensors: Sequence[Any]) -> list[Any]:
    """The values of variables or tensors, in one run."""
    if all(isinstance(each, Variable) for each in tensors):
        return sessions.values_of(tensors)
    return list(get_session().run(list(tensors)))


def set_value(x: Any, value: Any) -> None:
    """Sets a variable's value."""
    sessions.set_values([(x, np.asarray(value, x.dtype.numpy_dtype))])


def batch_set_value(tuples: Sequence[tuple[Any, Any]]) -> None:
    """Sets the values of variables: pairs of a variable and an array."""
    sessions.set_values([(x, np.asarray(value, x.dtype.numpy_dtype)) for x, value in tuples])


def eval_(x: Any) -> Any:
    """`get_value`, of sparse tensors too."""
    return get_value(sparse_tensor_to_dense(x) if isinstance(x, SparseTensor) else x)


def update(x: Any, new_x: Any) -> Any:
    """The assignment of a value to a variable."""
    return x.assign(new_x)


def update_add(x: Any, increment: Any) -> Any:
    """The addition of a value to a variable."""
    return x.assign_add(increment)


def update_sub(x: Any, decrement: Any) -> Any:
    """The subtraction of a value from a variable."""
    return x.assign_sub(decrement)


def moving_average_update(x: Any, value: Any, momentum: Any) -> Any:
    """The update of a moving average: x * momentum + value * (1 - momentum)."""
    momentum = elementwise.cast(momentum, x.dtype)
    value = elementwise.cast(value, x.dtype)
    return x.assign(x * momentum + value * (1 - momentum))


# -- functions


class Function:
    """A part of the graph, to be called with arrays: see `function`."""

    def __init__(self, inputs: Any, outputs: Any, updates: Any, name: str | None) -> None:
        self.inputs = flatten(inputs)
        self.outputs = outputs
        self.name = name
        known = [each for each in flatten(outputs) if each is not None]
        with known[0].graph.as_default() if known else get_default_graph().as_default():
            # The updates come after the outputs: these are of the values before.
            with get_default_graph().control_dependencies(known):
                made = [_update(each) for each in updates or ()]
            self._updates = builtin_ops.group(*made)

    def __call__(self, inputs: Any) -> Any:
        """The outputs.

        Args:
            inputs: arrays in the structure of the inputs.

        Raises:
            ValueError: there are more or fewer.
        """
        values = flatten(inputs)
        if len(values) != len(self.inputs):
            raise value_error(
                f"The function {self.name or ''} takes another number of inputs",
                expected=[each.name for each in self.inputs],
                received=f"{len(values)} values",
            )
        session = sessions.session_of(self._updates.graph)
        fetches = [each for each in flatten(self.outputs) if each is not None]
        feed = {key: v for key, v in zip(self.inputs, values, strict=True) if v is not None}
        found = iter(session.run([*fetches, self._updates], feed))
        leaves = [None if each is None else next(found) for each in flatten(self.outputs)]
        return pack_sequence_as(self.outputs, leaves)


def _update(given: Any) -> Any:
    made = given[0].assign(given[1]) if isinstance(given, tuple) else given
    return made.op if isinstance(made, Tensor) else made


def function(
    inputs: Any, outputs: Any, updates: Any = None, name: str | None = None, **kwargs: Any
) -> Function:
    """A function of arrays that runs a part of the graph.

    Args:
        inputs: tensors that are fed, `learning_phase()` among them if need be.
        outputs: a tensor or a structure of them.
        updates: operations that run after the outputs, or pairs of a variable and its new value.
        name: for errors.
        kwargs: none is known.

    Raises:
        ValueError: an argument is unknown.
    """
    if kwargs:
        raise ValueError(f"Invalid argument {next(iter(kwargs))!r} passed to K.function")
    return Function(inputs, outputs, updates, name)


def gradients(loss: Any, variables: Any) -> list[Any]:
    """The gradients of a loss with respect to variables."""
    return list(_gradients(loss, variables))


def stop_gradient(variables: Any) -> Any:
    """Tensors that have no gradient: one, or a list."""
    if isinstance(variables, (list, tuple)):
        return [builtin_ops.stop_gradient(each) for each in variables]
    return builtin_ops.stop_gradient(variables)


# -- the learning phase, choices


@contextmanager
def learning_phase_scope(value: Any) -> Iterator[None]:
    """Inside, `learning_phase` gives a value: 0 or 1."""
    record = record_of(get_default_graph().outermost)
    before = record.learning_phase
    set_learning_phase(value)
    try:
        yield
    finally:
        record.learning_phase = before


def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """`x` in training, `alt` otherwise.

    Args:
        x, alt: tensors, or functions without arguments giving them.
        training: a bool or a tensor; `learning_phase()` by default.
    """
    phase = learning_phase() if training is None else training
    if not isinstance(phase, (Tensor, Variable)):
        chosen = x if phase else alt
        return chosen() if callable(chosen) else chosen
    return switch(phase, x, alt)


def in_test_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """`alt` in training, `x` otherwise; see `in_train_phase`."""
    return in_train_phase(alt, x, training)


def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """One of two tensors, or element by element.

    Args:
        condition: a scalar, or a tensor of the first dimensions of the others.
        then_expression, else_expression: tensors, or functions without arguments giving them.

    Raises:
        ValueError: the condition has more dimensions than they have.
    """
    condition = elementwise.cast(condition, "bool")
    if condition.shape.rank == 0:

        def of(value: Any) -> Callable[[], Any]:
            return value if callable(value) else lambda: builtin_ops.identity(value)

        return cond(condition, of(then_expression), of(else_expression))
    then = then_expression() if callable(then_expression) else then_expression
    other = else_expression() if callable(else_expression) else else_expression
    then, other = conversion.convert_to_tensor(then), conversion.convert_to_tensor(other)
    rank, wanted = condition.shape.rank, then.shape.rank
    if rank is not None and wanted is not None:
        if rank > wanted:
            raise ValueError(
                "Rank of `condition` should be less than or equal to rank of `then_expression` "
                f"and `else_expression`. ndim(condition)={rank}, ndim(then_expression)={wanted}"
            )
        for _ in range(wanted - rank):
            condition = array.expand_dims(condition, -1)
    return indexing.where(condition, then, other)


def map_fn(fn: Callable[..., Any], elems: Any, name: str | None = None, dtype: Any = None) -> Any:
    """A function on each element along the first axis; see `tf.map_fn`."""
    return higher_order.map_fn(fn, elems, dtype, name=name)


def foldl(
    fn: Callable[..., Any], elems: Any, initializer: Any = None, name: str | None = None
) -> Any:
    """A function of (value so far, element), from the first element on; see `tf.foldl`."""
    return higher_order.foldl(fn, elems, initializer, name=name)


def foldr(
    fn: Callable[..., Any], elems: Any, initializer: Any = None, name: str | None = None
) -> Any:
    """A function of (value so far, element), from the last element back; see `tf.foldr`."""
    return higher_order.foldr(fn, elems, initializer, name=name)
