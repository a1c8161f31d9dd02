from estimatorkit.runtime.session import Session as Session
from estimatorkit.train.sessions.interactive_session import (
    InteractiveSession as InteractiveSession,
)
from estimatorkit.distribute.cluster_spec import ClusterSpec as ClusterSpec
from estimatorkit.distribute.cluster_task import ClusterTask as ClusterTask
from estimatorkit.distribute.tasks.server import Server as Server
from estimatorkit.distribute.dynamic_sharding import dynamically_sharded as dynamically_sharded
from estimatorkit.distribute.launch.launching import (
    Launch as Launch, local_cluster as local_cluster,
)
from . import experimental as experimental
from estimatorkit.distribute.replicas.mirrored import MirroredStrategy as MirroredStrategy
from estimatorkit.distribute.replicas.multi_worker import (
    MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
)
from estimatorkit.distribute.replicas.strategies import (
    get_loss_reduction as get_loss_reduction, get_replica_context as get_replica_context,
    get_strategy as get_strategy, has_strategy as has_strategy,
    in_cross_replica_context as in_cross_replica_context, InputContext as InputContext,
    OneDeviceStrategy as OneDeviceStrategy, ReduceOp as ReduceOp, ReplicaContext as ReplicaContext,
    Strategy as Strategy,
)
