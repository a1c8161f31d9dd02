"""Wiring: which modules have the functions that lower folders call by their ports.

A folder imports only from those before it (see CONTRIBUTING). Where a method of a lower one needs a
later one, it declares a port (`core.ports`), and a line here says what is connected to it. The
modules are imported when they are called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimatorkit.lazy import LazyFunctions, connect

connect(
    {
        "ops": LazyFunctions("estimatorkit.ops.all_ops"),
        "op_types": LazyFunctions("estimatorkit.op_types"),
        "indexing": LazyFunctions("estimatorkit.ops.array.indexing"),
        "gather_nd": LazyFunctions("estimatorkit.ops.array.gather_nd"),
        "variable_updates": LazyFunctions("estimatorkit.ops.variables.variable_updates"),
        "replica_context": LazyFunctions("estimatorkit.distribute.replica_context"),
        "graphdef": LazyFunctions("estimatorkit.interop.graphdef"),
        "graph_util": LazyFunctions("estimatorkit.interop.graph_util"),
        "graph_dot": LazyFunctions("estimatorkit.interop.graph_dot"),
        "verification": LazyFunctions("estimatorkit.core.verify"),
        "step_checks": LazyFunctions("estimatorkit.runtime.steps.step_checks"),
        "partial_run": LazyFunctions("estimatorkit.runtime.steps.partial_run"),
        "local_loop": LazyFunctions("estimatorkit.runtime.steps.local_loop"),
        "servers": LazyFunctions("estimatorkit.distribute.tasks.task_cluster"),
        "list_files": LazyFunctions("estimatorkit.data.readers.list_files"),
        "data_experimental": LazyFunctions("estimatorkit.data.experimental"),
        "traced_functions": LazyFunctions("estimatorkit.data.traced_functions"),
        "iterator_ops": LazyFunctions("estimatorkit.data.iterator_ops"),
        "dataset_values": LazyFunctions("estimatorkit.data.dataset_values"),
        "model_config": LazyFunctions("estimatorkit.keras.engine.model_config"),
        "model_summary": LazyFunctions("estimatorkit.keras.engine.model_summary"),
        "model_saving": LazyFunctions("estimatorkit.keras.engine.saving"),
        "loss_scaling": LazyFunctions("estimatorkit.keras.mixed_precision.loss_scale_optimizer"),
        "column_configs": LazyFunctions("estimatorkit.layers.feature_column.configs"),
    }
)

if TYPE_CHECKING:  # that the modules have the functions, with these arguments
    from estimatorkit import op_types
    from estimatorkit.core import ports, verify
    from estimatorkit.data import (
        dataset_values,
        experimental,
        iterator_ops,
        ports as data_ports,
        traced_functions,
    )
    from estimatorkit.data.readers import list_files
    from estimatorkit.interop import graph_dot, graph_util, graphdef
    from estimatorkit.ops import all_ops
    from estimatorkit.ops.array import gather_nd, indexing
    from estimatorkit.ops.variables import variable_updates

    ports.ops = all_ops
    ports.op_types = op_types
    ports.indexing = indexing
    ports.gather_nd = gather_nd
    ports.variable_updates = variable_updates
    ports.graphdef = graphdef
    ports.graph_util = graph_util
    ports.graph_dot = graph_dot
    ports.verification = verify
    data_ports.list_files = list_files
    data_ports.experimental = experimental
    data_ports.traced_functions = traced_functions
    data_ports.iterator_ops = iterator_ops
    data_ports.dataset_values = dataset_values
