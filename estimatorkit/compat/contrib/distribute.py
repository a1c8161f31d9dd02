"""`tf.contrib.distribute`: arguments of strategies, and strategies that are not supported.

Supported strategies are in `estimatorkit.distribute`. Unsupported names raise when called, so that
tables may refer to them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from estimatorkit.core.errors import UnimplementedError, value_error
from estimatorkit.distribute.cluster_task import ClusterTask
from estimatorkit.distribute.replicas.strategies import (
    Strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from estimatorkit.distribute.tasks.server import Server
from estimatorkit.lazy import listing

__dir__ = listing(__name__)


class DistributeConfig(NamedTuple):
    """The argument of `RunConfig(experimental_distribute=...)`.

    Attributes:
        train_distribute, eval_distribute: see `RunConfig`.
        remote_cluster: must be None: each process of a cluster is started separately, with
            `TF_CONFIG`.
    """

    train_distribute: Strategy | None = None
    eval_distribute: Strategy | None = None
    remote_cluster: Any = None


class CrossDeviceOps:
    """How values are reduced across replicas: accepted by strategies without effect, as XLA
    chooses.

    Args:
        *args, **kwargs: those of TensorFlow's class of the same name.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs


AllReduceCrossDeviceOps = AllReduceCrossTowerOps = MultiWorkerAllReduce = CrossDeviceOps
CrossTowerOps = ReductionToOneDeviceCrossDeviceOps = ReductionToOneDevice = CrossDeviceOps
HierarchicalCopyAllReduce = NcclAllReduce = CollectiveAllReduce = CrossDeviceOps

get_distribution_strategy = get_strategy
get_tower_context = get_replica_context
has_distribution_strategy = has_strategy
in_cross_tower_context = in_cross_replica_context


def run_standard_tensorflow_server(session_config: Any = None) -> Server:
    """Starts the server of this process's task, according to `TF_CONFIG`.

    Args:
        session_config: the server's `ConfigProto`.

    Raises:
        ValueError: `TF_CONFIG` has no cluster, or is invalid.
    """
    task = ClusterTask.of_environment()
    if task.is_alone:
        raise value_error(
            "a server needs a cluster",
            expected="TF_CONFIG with a cluster of several tasks",
            received=f"{task.cluster}",
        )
    return Server(task.cluster, task.type, task.index, config=session_config)


def _refused(name: str, hint: str) -> type:
    """A class whose constructor raises an error with a suggested replacement."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise UnimplementedError.explained(
            f"{name} is not part of estimatorkit", received=name, hint=hint
        )

    return type(name, (), {"__init__": refuse, "__doc__": f"Raises UnimplementedError: {hint}."})


_LOOPS = "write the step as a model_fn and train it by an Estimator"
TPUStrategy = _refused(
    "TPUStrategy", "MirroredStrategy() computes on all devices that JAX finds here, TPUs among them"
)
Monitor = _refused("Monitor", _LOOPS)
StandardInputStep = _refused("StandardInputStep", _LOOPS)
StandardSingleLossStep = _refused("StandardSingleLossStep", _LOOPS)
Step = _refused("Step", _LOOPS)

__all__ = [
    "AllReduceCrossDeviceOps",
    "AllReduceCrossTowerOps",
    "CollectiveAllReduce",
    "CrossDeviceOps",
    "CrossTowerOps",
    "DistributeConfig",
    "HierarchicalCopyAllReduce",
    "Monitor",
    "MultiWorkerAllReduce",
    "NcclAllReduce",
    "ReductionToOneDevice",
    "ReductionToOneDeviceCrossDeviceOps",
    "StandardInputStep",
    "StandardSingleLossStep",
    "Step",
    "TPUStrategy",
    "get_distribution_strategy",
    "get_tower_context",
    "has_distribution_strategy",
    "in_cross_tower_context",
    "run_standard_tensorflow_server",
]
