"""`SyncReplicasOptimizer`: replicas whose gradients are applied together, with backup workers.

The variables, an accumulator of gradients for each, and a queue of tokens are with the parameter
servers; all replicas share them. A replica computes gradients, puts them into the accumulators with
the step that it computed them for (`sync_rep_local_step`, a variable of its own), and takes a
token: the number of its next step. The chief, in a thread of its own, takes the mean of each
accumulator once there are enough gradients, applies the means, counts the global step and puts
tokens into the queue. Gradients of a step that is over are dropped, so that nobody waits for a slow
replica where there are more replicas than gradients are asked for.

Source: `tf.compat.v1.train.SyncReplicasOptimizer`; Chen et al. 2016, "Revisiting Distributed
Synchronous SGD".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from estimatorkit.ops.queues.accumulators import (
    ConditionalAccumulator,
    SparseConditionalAccumulator,
)
from estimatorkit.ops.queues.queue_kinds import FIFOQueue
from estimatorkit.ops.queues.queues import host_queue
from estimatorkit.ops.variables.variable_collections import (
    global_variables,
    report_uninitialized_variables,
)
from estimatorkit.train.hooks.sync_replicas_hook import SynchronizingRunner, SyncReplicasHook
from estimatorkit.train.optimizers.optimizer import GradientAndVariable, Optimizer, checked_pair
from estimatorkit.train.queues.queue_runner import QueueRunner


@dataclass
class _Synchronization:
    """What `apply_gradients` has made of one model.

    Attributes:
        step: the global step.
        tokens: the queue.
        sync_op: an update, and tokens for the next step.
        wake: tokens of the present step for all replicas.
        give_back: a token of the replica's own step.
        close: closes the queue.
        reopen: throws the queue away, where a training before has closed it.
        first_tokens: the operations that fill the queue at the beginning, by the number of tokens.
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

    With more replicas than gradients are taken (`total_num_replicas` above
    `replicas_to_aggregate`), those that come first count, and the rest are backups: a replica that
    is slow or dead holds nobody up. With fewer, replicas compute several gradients for an update.
    The mean of a row of sparse gradients is over those that hold the row.

    Each replica runs the train operation in a session with the hook of `make_session_run_hook`; for
    an estimator it is one of the hooks of `train`, or of the spec's `training_hooks`. At the end of
    the chief's `MonitoredSession` the others, who wait for tokens, get `OutOfRangeError`, which
    ends theirs. A replica whose input ends before gives its token to the others.

    Unless `num_tokens` is 0 there, the chief begins with `replicas_to_aggregate` tokens of the
    present step, as in TensorFlow: a few of the first gradients are then computed in vain.

    Args:
        opt: applies the gradients.
        replicas_to_aggregate: how many gradients make an update.
        total_num_replicas: how many replicas there are; `replicas_to_aggregate` by default.
        variable_averages: an `ExponentialMovingAverage`, moved after each update; differs from
            TensorFlow in that tokens come after it: whoever has one finds the averages moved.
        variables_to_average: the variables that it is applied to.
        use_locking: accepted for TensorFlow's signature.
        name: the name of the operations.

    Attributes:
        ready_for_local_init_op: the names of the variables without a value; once there are none,
            `local_step_init_op` can be run, and by the chief `chief_init_op`.
        local_step_init_op: gives a replica the step that it is at.
        chief_init_op: the same, and makes gradients of earlier steps stale.
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
            *(replicas_to_aggregate, total),
        )
        self._opt = opt
        self._required = replicas_to_aggregate
        self._total = total
        self._averages = variable_averages
        self._averaged = variables_to_average
        self._made: _Synchronization | None = None

    # -- the train operation

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[GradientAndVariable]:
        """As the inner optimizer's. Gradients are clipped replica by replica, after this."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None = None,
        name: str | None = None,
        skip_gradients_aggregation: bool = False,
    ) -> Any:
        """What a replica runs: it gives its gradients away and waits for its next step.

        Args:
            grads_and_vars: see `Optimizer.apply_gradients`.
            global_step: counts the updates; needed, as it says which gradients are stale.
            name: accepted for TensorFlow's signature.
            skip_gradients_aggregation: accepted for TensorFlow's signature.

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
        with graph.colocate_with(no_op()):  # with the replica, wherever other variables go
            local_step = Variable(
                0,
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES],
                name="sync_rep_local_step",
                dtype=global_step.dtype,
            )
        with graph.control_dependencies(None):  # for what is no part of a step
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
        """Operations that give gradients to accumulators; pairs with the means that are taken from
        these; operations that make gradients of earlier steps stale.
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

    # -- what the chief runs

    def get_chief_queue_runner(self) -> QueueRunner:
        """The runner that the chief's program starts, where its session has no hook for it.

        Raises:
            ValueError: `apply_gradients` was not called before.
        """
        made = self._synchronized("Should be called after apply_gradients()")
        return SynchronizingRunner(made.tokens, [made.sync_op], made.close, made.close)

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """An operation that puts the first tokens into the queue; the chief's program runs it.

        Args:
            num_tokens: how many, at least `replicas_to_aggregate - total_num_replicas`, as the
                first step would never end otherwise; -1 for `replicas_to_aggregate`.

        Raises:
            ValueError: there are too few, or `apply_gradients` was not called before.
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
        if num_tokens not in made.first_tokens:  # else the graph may be finalized
            graph = made.step.graph
            with graph.colocate_with(made.step), graph.name_scope(None):
                made.first_tokens[num_tokens] = (
                    made.tokens.enqueue_many(_tokens(made.step, num_tokens))
                    if num_tokens > 0
                    else no_op(name="no_init_tokens")
                )
        return made.first_tokens[num_tokens]

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SyncReplicasHook:
        """The hook that the session of each replica needs.

        Args:
            is_chief: whether this replica applies the gradients of all; exactly one does.
            num_tokens: see `get_init_tokens_op`.
        """
        return SyncReplicasHook(self, is_chief, num_tokens)

    def _synchronized(self, problem: str) -> _Synchronization:
        if self._made is None:
            raise value_error(problem, hint="minimize() does it")
        return self._made

    # -- of the inner optimizer

    def get_slot(self, *args: Any, **kwargs: Any) -> Variable | None:
        """As the inner optimizer's."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """As the inner optimizer's."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Variable]:
        """The inner optimizer's own variables; the replica's step is none of them."""
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
