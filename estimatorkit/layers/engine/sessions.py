"""The session that holds layers' weights: the default session, or one per graph.

Like `tf.keras.backend.get_session`, getting it initializes uninitialized variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.variables import Variable
from estimatorkit.layers.engine.call_record import record_of
from estimatorkit.ops.variables.variable_collections import variables_initializer
from estimatorkit.runtime.session import Session


def session_of(graph: Graph | None = None, initialize: bool = True) -> Session:
    """The session of a graph (by default the default graph).

    The default session, if it runs that graph. `initialize` also initializes the graph's
    uninitialized variables.
    """
    graph = (graph or get_default_graph()).outermost
    session: Session | None = get_default_session()
    if session is None or session.graph is not graph:
        record = record_of(graph)
        if record.session is None:
            record.session = Session(graph=graph)
        session = record.session
    if initialize:
        initialize_new(session)
    return session


def set_session(session: Session) -> None:
    """Registers a session as that of its graph."""
    record_of(session.graph).session = session


def initialize_new(session: Session, variables: Sequence[Variable] | None = None) -> None:
    """Initializes uninitialized variables, by default all of the graph, local ones included."""
    graph = session.graph
    if variables is None:
        variables = [
            *graph.get_collection(GraphKeys.GLOBAL_VARIABLES),
            *graph.get_collection(GraphKeys.LOCAL_VARIABLES),
        ]
    values = session.state.values
    missing = [each for each in dict.fromkeys(variables) if each.op.name not in values]
    if missing:
        finalized = graph.finalized
        graph.unfinalize()
        with graph.as_default(), graph.name_scope(None), graph.control_dependencies(None):
            operation = variables_initializer(missing)
        session.run(operation)
        if finalized:
            graph.finalize()


def values_of(variables: Sequence[Any]) -> list[Any]:
    """Reads variables of one graph as arrays."""
    if not variables:
        return []
    session = session_of(variables[0].graph)
    return [np.array(value) for value in session.state.read([each.op.name for each in variables])]


def set_values(pairs: Sequence[tuple[Any, Any]]) -> None:
    """Assigns arrays to variables of one graph, given as (variable, array) pairs."""
    if pairs:
        session = session_of(pairs[0][0].graph, initialize=False)
        for variable, value in pairs:
            variable.load(value, session)


__all__ = ["initialize_new", "session_of", "set_session", "set_values", "values_of"]
