"""Distributed training: cluster specs, tasks, replicas, strategies, launching.

Importing this makes 'grpc://host:port' a target of sessions.
"""

from __future__ import annotations

from estimatorkit.distribute.tasks import task_cluster as task_cluster
from estimatorkit.lazy import attach, names

_PLACES = {
    **names("estimatorkit.runtime.session", "InteractiveSession Session"),
    **names("estimatorkit.distribute.cluster_spec", "ClusterSpec"),
    **names("estimatorkit.distribute.cluster_task", "ClusterTask"),
    **names("estimatorkit.distribute.tasks.server", "Server"),
    **names("estimatorkit.distribute.dynamic_sharding", "dynamically_sharded"),
    **names("estimatorkit.distribute.launch.launching", "Launch local_cluster"),
    "experimental": "estimatorkit.distribute.experimental",
    **names("estimatorkit.distribute.replicas.mirrored", "MirroredStrategy"),
    **names("estimatorkit.distribute.replicas.multi_worker", "MultiWorkerMirroredStrategy"),
    **names(
        "estimatorkit.distribute.replicas.strategies",
        "InputContext OneDeviceStrategy ReduceOp ReplicaContext Strategy get_replica_context",
        "get_loss_reduction get_strategy has_strategy in_cross_replica_context",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
