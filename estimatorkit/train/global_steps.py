"""The global step: the int64 variable that counts a model's updates, one per graph."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.dtypes import int64
from estimatorkit.core.errors import explain, type_error, value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.variables.initializers import Zeros
from estimatorkit.ops.variables.variable_scope import get_variable


def get_global_step(graph: Graph | None = None) -> Variable | None:
    """Returns the graph's global step, or None.

    It is looked up in the GLOBAL_STEP collection, then by the name 'global_step'.

    Raises:
        RuntimeError: the graph has more than one.
        TypeError: it is not an integer scalar.
    """
    graph = graph or get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if not found:
        variables = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        found = [each for each in variables if each.op.name == GraphKeys.GLOBAL_STEP]
    if len(found) > 1:
        raise RuntimeError(explain("a graph must have only one global step", received=found))
    if not found:
        return None
    step: Variable = found[0]
    assert_global_step(step)
    return step


def assert_global_step(global_step_tensor: Any) -> None:
    """Checks that a variable or tensor is an integer scalar.

    Raises:
        TypeError: it is not.
    """
    step = global_step_tensor
    problem = None
    if not isinstance(step, (Variable, Tensor)):
        problem = f'Existing "global_step" must be a Variable or Tensor: {step}.'
    elif not step.dtype.base_dtype.is_integer:
        problem = f'Existing "global_step" does not have integer type: {step.dtype}'
    elif step.shape.rank not in (0, None):
        problem = f'Existing "global_step" is not scalar: {step.shape}'
    if problem is not None:
        raise type_error(
            problem,
            made_at=getattr(getattr(step, "op", None), "source", None),
            hint="tf.Variable(0, name='global_step'), or get_or_create_global_step()",
        )


def create_global_step(graph: Graph | None = None) -> Variable:
    """Creates the global step: 'global_step', int64, initially 0, not trainable.

    Raises:
        ValueError: the graph already has one.
    """
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default(), graph.name_scope(None):
        return get_variable(
            GraphKeys.GLOBAL_STEP,
            shape=[],
            dtype=int64,
            initializer=Zeros(),
            trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """Returns the graph's global step, creating it if needed."""
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def increment_global_step(increment: Any, graph: Graph | None = None) -> Tensor:
    """Adds to the global step (`training_util._increment_global_step`).

    Raises ValueError if the graph has none.
    """
    graph = graph or get_default_graph()
    step = get_global_step(graph)
    if step is None:
        raise value_error(
            "Global step tensor should be created by tf.train.get_or_create_global_step "
            "before it is incremented.",
            hint="call tf.train.get_or_create_global_step() when the graph is built",
        )
    with graph.as_default(), graph.name_scope(None):
        moved: Tensor = step.assign_add(increment)
        return moved


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """Returns the value of a global step in a session (`tf.compat.v1.train.global_step`)."""
    return int(sess.run(global_step_tensor))
