"""`tf.keras.backend`: settings, sessions, variables, functions, the learning phase."""

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
    """'tensorflow', the backend's name."""
    return "tensorflow"


def epsilon() -> float:
    """The fuzz factor, 1e-7 by default."""
    return _settings["epsilon"]


def set_epsilon(value: float) -> None:
    """Sets `epsilon`, also for losses. Optimizers use 1e-7 or their own argument."""
    _settings["epsilon"] = float(value)


def floatx() -> str:
    """The default floating dtype, as a string."""
    return policy.global_policy().variable_dtype


def set_floatx(value: str) -> None:
    """Sets `floatx` for layers created from now on.

    Raises:
        ValueError: it is not a floating dtype.
    """
    if value not in _FLOATS:
        raise ValueError(f"Unknown `floatx` value: {value}. Expected one of {list(_FLOATS)}")
    policy.set_global_policy(value)


def get_uid(prefix: str = "") -> int:
    """The number of calls with this prefix in the default graph."""
    counts = _uids[get_default_graph().outermost]
    counts[prefix] += 1
    return counts[prefix]


def reset_uids() -> None:
    """Resets `get_uid` and the numbering of layers' names."""
    _uids.clear()
    record_of(get_default_graph().outermost)._names.clear()


# -- sessions


def get_session(op_input_list: Any = ()) -> Session:
    """The default graph's session, with variables initialized (but see
    `manual_variable_initialization`).

    Args:
        op_input_list: accepted for compatibility only.
    """
    return sessions.session_of(initialize=bool(_settings["initialize"]))


def manual_variable_initialization(value: bool) -> None:
    """Sets whether the program initializes variables itself."""
    _settings["initialize"] = not value


def clear_session() -> None:
    """Starts a new default graph, resets layers' names and closes the old session."""
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
        value: the initial value, an array or a tensor.
        dtype: `floatx()` by default.
        constraint: a function that optimizers apply to new values.
    """
    wanted = as_dtype(dtype or floatx())
    first = elementwise.cast(value, wanted) if isinstance(value, Tensor) else np.asarray(value)
    return Variable(first, dtype=wanted, name=name, constraint=constraint)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A constant; `dtype` is `floatx()` by default."""
    return conversion.constant(value, as_dtype(dtype or floatx()), shape, name or "Const")


def placeholder(
    shape: Any = None,
    ndim: int | None = None,
    dtype: Any = None,
    sparse: bool = False,
    name: str | None = None,
    ragged: bool = False,
) -> Any:
    """A placeholder.

    Args:
        shape: the shape, with None for unknown sizes.
        ndim: the rank, if there is no shape.
        dtype: `floatx()` by default.
        sparse: whether it is a `SparseTensor`.
        ragged: must be False.

    Raises:
        ValueError: `ragged` is True.
    """
    if ragged:
        raise ValueError("placeholder: ragged tensors are not supported; use padding and masks")
    dims = [None] * ndim if shape is None and ndim is not None else shape
    wanted = as_dtype(dtype or floatx())
    if sparse:
        return sparse_placeholder(wanted, dims, name=name)
    return builtin_ops.placeholder(wanted, dims, name)


def _filled(value: Tensor, dtype: Any, name: str | None) -> Any:
    """A variable if the shape is static and has no 0, otherwise the tensor, as in Keras."""
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
    """A variable holding the identity matrix."""
    return _filled(diagonals.eye(size, dtype=as_dtype(dtype or floatx())), dtype, name)


def random_uniform_variable(
    shape: Any,
    low: float,
    high: float,
    dtype: Any = None,
    name: str | None = None,
    seed: int | None = None,
) -> Any:
    """A variable initialized uniformly in [low, high)."""
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
    """A variable initialized from a normal distribution."""
    wanted = as_dtype(dtype or floatx())
    return variable(random.random_normal(shape, mean, scale, wanted, seed), wanted, name)


def get_value(x: Any) -> Any:
    """Evaluates a variable, or a tensor that depends on no feed, to an array."""
    if isinstance(x, Variable):
        return sessions.values_of([x])[0]
    if isinstance(x, Tensor):
        return sessions.session_of(x.graph).run(x)
    return x


def batch_get_value(tensors: Sequence[Any]) -> list[Any]:
    """Evaluates variables or tensors in one run."""
    if all(isinstance(each, Variable) for each in tensors):
        return sessions.values_of(tensors)
    return list(get_session().run(list(tensors)))


def set_value(x: Any, value: Any) -> None:
    """Assigns a value to a variable."""
    sessions.set_values([(x, np.asarray(value, x.dtype.numpy_dtype))])


def batch_set_value(tuples: Sequence[tuple[Any, Any]]) -> None:
    """Assigns values to variables: pairs of a variable and an array."""
    sessions.set_values([(x, np.asarray(value, x.dtype.numpy_dtype)) for x, value in tuples])


def eval_(x: Any) -> Any:
    """`get_value`, also for sparse tensors."""
    return get_value(sparse_tensor_to_dense(x) if isinstance(x, SparseTensor) else x)


def update(x: Any, new_x: Any) -> Any:
    """An operation that assigns a value to a variable."""
    return x.assign(new_x)


def update_add(x: Any, increment: Any) -> Any:
    """An operation that adds a value to a variable."""
    return x.assign_add(increment)


def update_sub(x: Any, decrement: Any) -> Any:
    """An operation that subtracts a value from a variable."""
    return x.assign_sub(decrement)


def moving_average_update(x: Any, value: Any, momentum: Any) -> Any:
    """An operation that updates a moving average: x * momentum + value * (1 - momentum)."""
    momentum = elementwise.cast(momentum, x.dtype)
    value = elementwise.cast(value, x.dtype)
    return x.assign(x * momentum + value * (1 - momentum))


# -- functions


class Function:
    """A part of the graph that is callable with arrays; see `function`."""

    def __init__(self, inputs: Any, outputs: Any, updates: Any, name: str | None) -> None:
        self.inputs = flatten(inputs)
        self.outputs = outputs
        self.name = name
        known = [each for each in flatten(outputs) if each is not None]
        with known[0].graph.as_default() if known else get_default_graph().as_default():
            # Updates run after the outputs, which see the old values.
            with get_default_graph().control_dependencies(known):
                made = [_update(each) for each in updates or ()]
            self._updates = builtin_ops.group(*made)

    def __call__(self, inputs: Any) -> Any:
        """Runs the graph.

        Args:
            inputs: arrays in the structure of the inputs; a tensor is computed first.

        Raises:
            ValueError: the number of inputs is wrong.
        """
        values = flatten(inputs)
        if len(values) != len(self.inputs):
            raise value_error(
                f"The function {self.name or 'of the backend'} takes another number of inputs",
                expected=[each.name for each in self.inputs],
                received=f"{len(values)} values",
            )
        session = sessions.session_of(self._updates.graph)
        computed = iter(session.run([each for each in values if isinstance(each, Tensor)]))
        values = [next(computed) if isinstance(each, Tensor) else each for each in values]
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
    """Returns a function of arrays that runs a part of the graph.

    Args:
        inputs: tensors to feed, including `learning_phase()` if needed.
        outputs: a tensor or a structure of them.
        updates: operations that run after the outputs, or pairs of a variable and its new value.
        name: for errors.
        kwargs: must be empty.

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
    """Stops gradients through one tensor or a list of tensors."""
    if isinstance(variables, (list, tuple)):
        return [array.stop_gradient(each) for each in variables]
    return array.stop_gradient(variables)


# -- the learning phase, choices


@contextmanager
def learning_phase_scope(value: Any) -> Iterator[None]:
    """Sets `learning_phase` to 0 or 1 within a `with` block."""
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
        x, alt: tensors, or functions without arguments that return them.
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
    """Selects one of two tensors, or elements of both.

    Args:
        condition: a scalar, or a tensor shaped like the first dimensions of the others.
        then_expression, else_expression: tensors, or functions without arguments that return them.

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
    """Maps a function over the first axis; see `tf.map_fn`."""
    return higher_order.map_fn(fn, elems, dtype, name=name)


def foldl(
    fn: Callable[..., Any], elems: Any, initializer: Any = None, name: str | None = None
) -> Any:
    """Folds a function of (accumulator, element) from the first element; see `tf.foldl`."""
    return higher_order.foldl(fn, elems, initializer, name=name)


def foldr(
    fn: Callable[..., Any], elems: Any, initializer: Any = None, name: str | None = None
) -> Any:
    """Folds a function of (accumulator, element) from the last element; see `tf.foldr`."""
    return higher_order.foldr(fn, elems, initializer, name=name)
