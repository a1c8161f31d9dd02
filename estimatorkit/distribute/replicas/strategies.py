"""`Strategy`: the replicas of synchronous training (`tf.distribute`).

A strategy defines the replicas and their devices (`distribute.replicas.replicas`). Estimators take
one from `RunConfig(train_distribute=strategy)`: `model_fn` is called once, in the strategy's scope,
and all replicas run its graph, each on its own batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn

from estimatorkit.core.devices import DeviceSpec
from estimatorkit.core.errors import UnimplementedError
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.distribute import replica_context
from estimatorkit.distribute.replicas.replicas import Replicas
from estimatorkit.ops.control.collectives import all_gather, all_reduce


class ReduceOp(Enum):
    """How values are combined over replicas."""

    SUM = "SUM"
    MEAN = "MEAN"


@dataclass(frozen=True)
class InputContext:
    """The argument `input_context` of an `input_fn`.

    Attributes:
        num_input_pipelines: the number of processes that call the `input_fn`.
        input_pipeline_id: this process's index among them.
        num_replicas_in_sync: the number of replicas.
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The batch size per replica of a global batch.

        Raises:
            ValueError: it is not divisible.
        """
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size!r} is not divisible by "
                f"`num_replicas_in_sync` {self.num_replicas_in_sync!r} "
            )
        return global_batch_size // self.num_replicas_in_sync


class Strategy:
    """The default strategy: a single replica on the default device.

    Subclasses define other replicas. Strategies are for Estimators; TensorFlow 2's custom training
    loops (`run`, `reduce`, distributed datasets) are not supported.
    """

    shard_rows_above: int | None = None
    """Variables of at least so many bytes are sharded by rows over the replicas; None for none."""

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas; initializes JAX."""
        return 1 if self.replicas is None else self.replicas.count

    @property
    def replicas(self) -> Replicas | None:
        """The replicas; None for a single one."""
        return None

    @property
    def device(self) -> str | None:
        """The device of a single replica; None for the default device."""
        return None

    @property
    def input_context(self) -> InputContext:
        """The `InputContext` for this process's `input_fn`."""
        replicas = self.replicas
        return InputContext() if replicas is None else InputContext(1, 0, replicas.count)

    @property
    def is_chief(self) -> bool:
        """Whether this process saves checkpoints."""
        return True

    @property
    def has_others(self) -> bool:
        """Whether there are replicas in other processes."""
        return False

    def connect(self, seconds: float | None = None) -> None:
        """Connects to the processes of the other replicas, if any and not yet connected.

        Args:
            seconds: the timeout, for connecting and for every collective.
        """

    def together(self, seconds: float) -> AbstractContextManager[None]:
        """A context manager for collective work of the replicas of all processes, which all end if
        one fails.

        Args:
            seconds: see `connect`.
        """
        return nullcontext()

    @contextmanager
    def scope(self) -> Iterator[Strategy]:
        """A context manager that makes this the current strategy."""
        token = _current.set(_Current(self, None))
        try:
            yield self
        finally:
            _current.reset(token)

    @contextmanager
    def building(self) -> Iterator[None]:
        """A context manager for building a graph that all replicas run."""
        context = replica_context.ReplicaContext(self.num_replicas_in_sync, all_reduce, all_gather)
        token = _current.set(_Current(self, ReplicaContext(self)))
        try:
            device = get_default_graph().device(self.device or "")  # "" adds nothing
            with replica_context.building_for(context), device:
                yield
        finally:
            _current.reset(token)

    def __getattr__(self, name: str) -> Any:
        if name in _CUSTOM_LOOP_METHODS:
            _refuse(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class OneDeviceStrategy(Strategy):
    """A single replica on a given device (`tf.distribute.OneDeviceStrategy`).

    Args:
        device: its name, such as '/gpu:0' or 'device:GPU:0'. If it does not exist, the model runs
            on the CPU, unless the session's `ConfigProto` sets `allow_soft_placement=False`.
        num_gpus_per_worker: accepted for the signature of `tf.contrib.distribute`.

    Raises:
        ValueError: `device` is not a valid device name.
    """

    def __init__(self, device: str, num_gpus_per_worker: Any = None) -> None:
        self._device = full_device_name(device)

    @property
    def device(self) -> str:
        """The device."""
        return self._device


class ParameterServerStrategy(Strategy):
    """Asynchronous training on the parameter servers of `TF_CONFIG`
    (`tf.distribute.experimental.ParameterServerStrategy`, `tf.contrib.distribute`).

    The default in a cluster with a job 'ps'; outside of a cluster, training is local.

    Args:
        cluster_resolver: accepted for compatibility only; the environment defines the cluster.
        num_gpus_per_worker: accepted for the signature of `tf.contrib.distribute`; workers use
            their default device.
    """

    def __init__(self, cluster_resolver: Any = None, num_gpus_per_worker: int = 0) -> None:
        super().__init__()


def full_device_name(name: str) -> str:
    """Converts a device name to the form '/device:GPU:0'.

    Args:
        name: with or without a leading slash: 'gpu:0', '/gpu:0', 'device:GPU:0'.

    Raises:
        ValueError: it is not a valid device name.
    """
    spec = DeviceSpec.from_string(name if name.startswith("/") else f"/{name}")
    return f"/device:{spec.device_type}:{spec.device_index or 0}"


_CUSTOM_LOOP_METHODS = frozenset(
    [
        "run",
        "experimental_run_v2",
        "reduce",
        "gather",
        "experimental_distribute_dataset",
        "distribute_datasets_from_function",
        "make_dataset_iterator",
        "make_input_fn_iterator",
        "experimental_make_numpy_dataset",
        "experimental_local_results",
        "extended",
        "experimental_distribute_values_from_function",
        "experimental_run",
        "unwrap",
    ]
)


def _refuse(name: str) -> NoReturn:
    raise UnimplementedError.explained(
        f"strategies train Estimators; {name} is for custom training loops of TensorFlow 2",
        expected="an Estimator with RunConfig(train_distribute=strategy)",
        received=f"strategy.{name}",
        hint="write the step as a model_fn, which can use get_replica_context().all_reduce",
    )


class ReplicaContext:
    """The context in which the graph that all replicas run is built.

    Args:
        strategy: the current strategy.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas."""
        return self.strategy.num_replicas_in_sync

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """Sums or averages a tensor, or each of a list of tensors, over all replicas.

        Args:
            reduce_op: a `ReduceOp`, or its name.
            value: a tensor or a list of tensors.
        """
        mean = ReduceOp(reduce_op.upper() if isinstance(reduce_op, str) else reduce_op)
        found = all_reduce(
            value if isinstance(value, list) else [value], mean=mean is ReduceOp.MEAN
        )
        return found if isinstance(value, list) else found[0]


@dataclass(frozen=True)
class _Current:
    strategy: Strategy
    replica: ReplicaContext | None


_DEFAULT = Strategy()
_current: ContextVar[_Current] = ContextVar(
    "strategy",
    default=_Current(_DEFAULT, ReplicaContext(_DEFAULT)),  # noqa: B039 (it never changes)
)


def get_strategy() -> Strategy:
    """Returns the current strategy; outside of all scopes, the default one."""
    return _current.get().strategy


def has_strategy() -> bool:
    """Returns whether the current strategy is not the default one."""
    return get_strategy() is not _DEFAULT


def get_replica_context() -> ReplicaContext | None:
    """Returns the current replica context; None in the cross-replica context of a `scope`."""
    return _current.get().replica


def in_cross_replica_context() -> bool:
    """Returns whether this is inside a strategy's `scope`, but not in a replica context."""
    return get_replica_context() is None


def get_loss_reduction() -> ReduceOp:
    """Returns how losses are combined over replicas (`tf.compat.v1.distribute.get_loss_reduction`).

    MEAN if an optimizer divides them by the number of replicas, else SUM.
    """
    context = replica_context.replica_context()
    if context is None or context.loss_reduction == replica_context.SUM:
        return ReduceOp.SUM
    return ReduceOp.MEAN


def reported_loss(loss: Tensor) -> Tensor:
    """The loss to report for all replicas: the mean of their losses if an optimizer divided them
    by the number of replicas, else their sum.
    """
    context = replica_context.replica_context()
    is_mean = context is not None and context.is_loss_divided
    found: Tensor = replica_context.over_replicas(loss, is_mean)
    return found


__all__ = [
    "InputContext",
    "OneDeviceStrategy",
    "ParameterServerStrategy",
    "ReduceOp",
    "ReplicaContext",
    "Strategy",
    "full_device_name",
    "get_loss_reduction",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "reported_loss",
]
