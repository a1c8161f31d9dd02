"""`SyncReplicasOptimizer`: synchronous replicas with backup workers.

Variables, gradient accumulators and a token queue are shared, on the parameter servers. A replica
adds its gradients to the accumulators, tagged with the step for which they were computed
(`sync_rep_local_step`, a local variable), and dequeues a token: the number of its next step. A
thread of the chief waits for enough gradients, applies the means, increments the global step and
enqueues tokens. Stale gradients are dropped, so that slow replicas delay no one if there are more
replicas than gradients required.

Source: `tf.compat.v1.train.SyncReplicasOptimizer`; Chen et al. 2016, "Revisiting Distributed
Synchronous SGD".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from estimatorkit.compat.ops.queues.accumulators import (
    ConditionalAccumulator,
    SparseConditionalAccumulator,
)
from estimatorkit.compat.train.hooks.sync_replicas_hook import SynchronizingRunner, SyncReplicasHook
from estimatorkit.core.builtin_ops import group, no_op
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.registry import apply, no_outputs, register
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.logger import logger
from estimatorkit.ops.array.filling import fill
from estimatorkit.ops.queues.queue_kinds import FIFOQueue
from estimatorkit.ops.queues.queues import host_queue
from estimatorkit.ops.variables.variable_collections import (
    global_variables,
    report_uninitialized_variables,
)
from estimatorkit.train.optimizers.optimizer import GradientAndVariable, Optimizer, checked_pair
from estimatorkit.train.queues.queue_runner import QueueRunner


@dataclass
class _Synchronization:
    """The operations and state that `apply_gradients` creates.

    Attributes:
        sync_op: applies an update, and enqueues tokens for the next step.
        wake: enqueues tokens of the current step for all replicas.
        give_back: enqueues a token of the replica's own step.
        close: closes the queue.
        reopen: discards the queue, in case an earlier training has closed it.
        first_tokens: the operations that enqueue the first tokens, by their number.
    """

    step: Variable
    tokens: FIFOQueue
    sync_op: Operation
    wake: Operation
    give_back: Operation
    close: Operation
    reopen: Operation
    first_tokens: dict[int, Operation] = field(default_factory=dict)


class SyncReplicasOptimizer(Optimizer):
    """Applies the mean of the gradients of several replicas in one update.

    If `total_num_replicas` exceeds `replicas_to_aggregate`, the first gradients count, and the
    other replicas are backups, so that slow or failed replicas do not delay the others. If it is
    less, replicas compute several gradients per update. A row of sparse gradients is averaged over
    the replicas that have it.

    Each replica runs the train operation in a session with the hook of `make_session_run_hook`; an
    estimator takes it in the hooks of `train`, or in the spec's `training_hooks`. When the chief's
    `MonitoredSession` ends, the others, which wait for tokens, get `OutOfRangeError` and end too. A
    replica whose input ends first passes its token on.

    Unless `num_tokens` is 0 there, the chief starts with `replicas_to_aggregate` tokens of the
    current step, as in TensorFlow; a few of the first gradients are then stale.

    Args:
        opt: applies the gradients.
        replicas_to_aggregate: the number of gradients per update.
        total_num_replicas: the number of replicas; `replicas_to_aggregate` by default.
        variable_averages: an `ExponentialMovingAverage` to update after each step; unlike in
            TensorFlow, before tokens are enqueued, so that replicas see the new averages.
        variables_to_average: the variables to average.
        use_locking: accepted for compatibility only.
        name: the name of the operations.

    Attributes:
        ready_for_local_init_op: the names of uninitialized variables; once there are none,
            `local_step_init_op` can be run, or `chief_init_op` by the chief.
        local_step_init_op: sets a replica's local step.
        chief_init_op: also makes gradients of earlier steps stale.
    """

    ready_for_local_init_op: Tensor
    local_step_init_op: Any
    chief_init_op: Operation

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Any = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        super().__init__(use_locking, name)
        total = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        logger.info(
            "SyncReplicasV2: replicas_to_aggregate=%s; total_num_replicas=%s",
            replicas_to_aggregate,
            total,
        )
        self._opt = opt
        self._required = replicas_to_aggregate
        self._total = total
        self._averages = variable_averages
        self._averaged = variables_to_average
        self._made: _Synchronization | None = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[GradientAndVariable]:
        """See the wrapped optimizer. Clip gradients per replica, after this."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None = None,
        name: str | None = None,
        skip_gradients_aggregation: bool = False,
    ) -> Any:
        """Returns a replica's train operation: adds its gradients and waits for its next step.

        Args:
            grads_and_vars: see `Optimizer.apply_gradients`.
            global_step: required; counts the updates, and tells which gradients are stale.
            name, skip_gradients_aggregation: accepted for compatibility only.

        Returns:
            The replica's next step, a scalar.

        Raises:
            ValueError: there are no pairs, or there is no global step.
        """
        pairs = [checked_pair(pair) for pair in grads_and_vars]
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        graph = get_default_graph()
        with graph.colocate_with(no_op()):  # with the replica, wherever other variables are placed
            local_step = Variable(
                0,
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES],
                name="sync_rep_local_step",
                dtype=global_step.dtype,
            )
        with graph.control_dependencies(None):  # not part of a step
            self.local_step_init_op = local_step.assign(global_step.read_value())
            self.ready_for_local_init_op = report_uninitialized_variables(global_variables())
        with graph.name_scope(self._name):
            given, means, to_begin = self._accumulated(pairs, local_step, global_step)
            with graph.colocate_with(global_step), graph.name_scope(None):
                tokens = FIFOQueue(
                    -1, global_step.dtype, [()], name="sync_token_q", shared_name="sync_token_q"
                )
                with graph.control_dependencies(given):
                    token = tokens.dequeue()
                self._made = self._synchronization(means, global_step, tokens, local_step)
            train_op = local_step.assign(token)
            with graph.control_dependencies(None):
                self.chief_init_op = group(self.local_step_init_op, *to_begin)
        return train_op

    def _accumulated(
        self, pairs: Sequence[GradientAndVariable], local_step: Variable, global_step: Variable
    ) -> tuple[list[Operation], list[GradientAndVariable], list[Operation]]:
        """Creates the gradients' accumulators.

        Returns operations that add gradients, pairs with the accumulated means, and operations that
        make gradients of earlier steps stale.
        """
        graph = get_default_graph()
        given, means, to_begin = [], [], []
        for gradient, variable in pairs:
            if gradient is None:
                means.append((None, variable))
                continue
            with graph.colocate_with(variable):
                accumulator = _accumulator(gradient, variable)
                given.append(accumulator.apply(gradient, local_step.read_value()))
                with graph.control_dependencies(None):
                    means.append((accumulator.take(self._required), variable))
                    now = global_step.read_value()
                    to_begin.append(accumulator.set_global_step(now, name="SetGlobalStep"))
        return given, means, to_begin

    def _synchronization(
        self,
        means: Sequence[GradientAndVariable],
        global_step: Variable,
        tokens: FIFOQueue,
        local_step: Variable,
    ) -> _Synchronization:
        graph = get_default_graph()
        count = max(self._total, self._required)
        with graph.control_dependencies(None):
            done = self._opt.apply_gradients(means, global_step)
            if self._averages is not None:
                with graph.control_dependencies([done]):
                    done = self._averages.apply(self._averaged)
            with graph.control_dependencies([done]):
                sync_op = tokens.enqueue_many(_tokens(global_step, count))
            return _Synchronization(
                global_step,
                tokens,
                sync_op,
                wake=tokens.enqueue_many(_tokens(global_step, count)),
                give_back=tokens.enqueue(local_step.read_value()),
                close=tokens.close(cancel_pending_enqueues=True),
                reopen=apply("QueueReopen", (), {"queues": (tokens.queue_ref.name,)}),
            )

    def get_chief_queue_runner(self) -> QueueRunner:
        """Returns the runner for the chief to start if its session does not use the hook.

        Raises:
            ValueError: `apply_gradients` has not been called.
        """
        made = self._synchronized("Should be called after apply_gradients()")
        return SynchronizingRunner(made.tokens, [made.sync_op], made.close, made.close)

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """Returns an operation, to be run by the chief, that enqueues the first tokens.

        Args:
            num_tokens: at least `replicas_to_aggregate - total_num_replicas`, since the first step
                would never end otherwise; -1 for `replicas_to_aggregate`.

        Raises:
            ValueError: there are too few, or `apply_gradients` has not been called.
        """
        made = self._synchronized("get_init_tokens_op() should be called after apply_gradients()")
        needed = self._required - self._total
        if num_tokens == -1:
            num_tokens = self._required
        elif num_tokens < needed:
            raise ValueError(
                f"Too few tokens to finish the first step: {num_tokens} (given) vs {needed} "
                "(needed)"
            )
        if num_tokens not in made.first_tokens:  # otherwise the graph may be finalized
            graph = made.step.graph
            with graph.colocate_with(made.step), graph.name_scope(None):
                made.first_tokens[num_tokens] = (
                    made.tokens.enqueue_many(_tokens(made.step, num_tokens))
                    if num_tokens > 0
                    else no_op(name="no_init_tokens")
                )
        return made.first_tokens[num_tokens]

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SyncReplicasHook:
        """Returns the hook that each replica's session needs.

        Args:
            is_chief: whether this replica applies the gradients; exactly one does.
            num_tokens: see `get_init_tokens_op`.
        """
        return SyncReplicasHook(self, is_chief, num_tokens)

    def _synchronized(self, problem: str) -> _Synchronization:
        if self._made is None:
            raise value_error(problem, hint="minimize() does it")
        return self._made

    def get_slot(self, *args: Any, **kwargs: Any) -> Variable | None:
        """See the wrapped optimizer."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """See the wrapped optimizer."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Variable]:
        """Returns the wrapped optimizer's variables, without the replica's local step."""
        return self._opt.variables()


def _tokens(step: Variable, count: int) -> Tensor:
    return fill([count], step.read_value())


class _Dense(ConditionalAccumulator):
    def apply(self, gradient: Any, step: Tensor) -> Operation:
        return self.apply_grad(gradient, step)

    def take(self, count: int) -> Any:
        return self.take_grad(count)


class _Sparse(SparseConditionalAccumulator):
    def apply(self, gradient: Any, step: Tensor) -> Operation:
        return self.apply_indexed_slices_grad(gradient, step)

    def take(self, count: int) -> Any:
        return self.take_indexed_slices_grad(count)


def _accumulator(gradient: Any, variable: Variable) -> _Dense | _Sparse:
    kind = _Sparse if isinstance(gradient, IndexedSlices) else _Dense
    return kind(gradient.dtype, variable.shape, shared_name=f"{variable.name}/grad_accum")


def _reopen(*, queues: tuple[str], context: Any) -> list[Any]:
    (name,) = queues
    if host_queue(context, name).is_closed():
        handle = context.graph.get_operation_by_name(name)
        context.resources.pop(handle.attrs["shared_name"] or name, None)
    return []


register(
    "QueueReopen",
    _reopen,
    infer=no_outputs,
    gradient=None,
    where="host",
    context=True,
    pure=False,
    holder="queues",
)


__all__ = ["SyncReplicasOptimizer"]
