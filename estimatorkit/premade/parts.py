"""`Part` and `Premade`: a premade estimator is a head over the sum of its parts' logits.

A part is a linear model, a deep network or a bias, with the optimizer of its variables (`linear`,
`dnn`, `baseline`); a training step trains all parts. `Premade._version` is the major version of
TensorFlow whose numbers to reproduce: 2 here, 1 in `estimatorkit.compat.v1.estimator`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from estimatorkit.core import builtin_ops
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.keras.optimizers.optimizer import Optimizer as KerasOptimizer
from estimatorkit.layers.feature_column import FeatureColumn
from estimatorkit.ops.files import summary
from estimatorkit.ops.nn.normalization import zero_fraction
from estimatorkit.ops.variables.variable_collections import trainable_variables
from estimatorkit.premade.head import Head, Version
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.hooks.records import on_demand
from estimatorkit.train.optimizers.optimizer import Optimizer, part_of_mean

OptimizerLike = str | Optimizer | Callable[[], Optimizer]


@dataclass(frozen=True)
class Part:
    """One term of a model's logits.

    Attributes:
        logits: `logits(features, mode, units)`, float32 `(batch, units)`; or, of an only part,
            what its head takes. Losses that it adds to the collection REGULARIZATION_LOSSES are
            added to that of the head.
        optimizer: creates the optimizer of the variables that `logits` creates.
        scope: what version 1's names of an optimizer's own variables begin with, where the part is
            the only one.
        columns: the feature columns that it reads.
    """

    logits: Callable[[Any, str, int], Any]
    optimizer: Callable[[], Optimizer]
    scope: str = ""
    columns: Sequence[FeatureColumn] = ()


class Premade(Estimator):
    """The base class of premade estimators.

    Args:
        head: its head.
        parts: the terms of its logits.
        model_dir, config, warm_start_from: see `Estimator`.

    Attributes:
        parts: the terms of its logits.

    Raises:
        ValueError: `head` is not a head.
    """

    _version: ClassVar[Version] = 2
    _partitioner: Any = None  # of the input tables; an argument in version 1 only

    def __init__(
        self,
        head: Head,
        parts: Sequence[Part],
        model_dir: str | os.PathLike[str] | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
    ) -> None:
        if not isinstance(head, Head):
            raise value_error(
                "head is not a Head",
                expected="for example estimator.BinaryClassHead()",
                received=f"{head!r} of type {type(head).__name__}",
            )
        self.parts = tuple(parts)
        super().__init__(
            model_fn=model_fn_of(head, parts, self._version),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
        )


def model_fn_of(
    head: Head, parts: Sequence[Part], version: Version
) -> Callable[..., EstimatorSpec]:
    only = f"{parts[0].scope}/" if len(parts) == 1 and parts[0].scope else ""
    # TensorFlow 1 has `dnn/head/beta1_power`.
    name = head.name if isinstance(head.name, str) else "head"
    scope = f"{only}{name}/" if version == 1 else None
    minimize = _minimize if version == 2 else _minimize_as_version_1

    def model_fn(features: Any, labels: Any, mode: str, config: Any = None) -> EstimatorSpec:
        if isinstance(features, Mapping):
            features = dict(features)  # a part may add entries for the head
        terms: list[Any] = []
        trained: list[tuple[Optimizer, list[Any]]] = []
        others = len(get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES))
        for part in parts:
            there = len(trainable_variables())
            terms.append(part.logits(features, mode, head.logits_dimension))
            if mode == ModeKeys.TRAIN:
                trained.append((part.optimizer(), trainable_variables()[there:]))
        given: dict[str, Any] = {}  # a user's head may accept no other arguments
        if losses := get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES)[others:]:
            given["regularization_losses"] = losses
        if trained:
            given["train_op_fn"] = lambda loss: minimize(loss, trained, scope)
        with get_default_graph().name_scope(only if version == 1 and only else None):
            logits = sum(terms[1:], terms[0])
            return head.create_estimator_spec(
                features=features, mode=mode, logits=logits, labels=labels, **given
            )

    return model_fn


def _minimize(
    loss: Tensor, trained: Sequence[tuple[Optimizer, list[Any]]], scope: str | None
) -> Operation:
    """One operation for the updates of all parts; the first increments the global step."""
    counter = get_or_create_global_step()
    updates = []
    for number, (optimizer, own) in enumerate(trained):
        counted = counter if number == 0 else None
        updates.append(
            _keras_update(optimizer, loss, own, counted)
            if isinstance(optimizer, KerasOptimizer)
            else _update(optimizer, loss, scope, own, counted)
        )
    operation: Operation = updates[0] if len(updates) == 1 else builtin_ops.group(*updates)
    return operation


def _minimize_as_version_1(
    loss: Tensor, trained: Sequence[tuple[Optimizer, list[Any]]], scope: str | None
) -> Operation:
    """As `_minimize`, with the arguments that version 1 gives to optimizers, which a user's own may
    not take otherwise: one of several gets its variables and does not count the global step.
    """
    if any(isinstance(optimizer, KerasOptimizer) for optimizer, _ in trained):
        return _minimize(loss, trained, scope)
    if len(trained) == 1:
        return _update(trained[0][0], loss, scope, None, get_or_create_global_step())
    updates = [_update(optimizer, loss, scope, own, None) for optimizer, own in trained]
    with get_default_graph().name_scope(scope):
        updates.append(get_or_create_global_step().assign_add(1).op)
        operation: Operation = builtin_ops.group(*updates)
    return operation


def _update(
    optimizer: Optimizer, loss: Tensor, scope: str | None, own: Any, counter: Any
) -> Operation:
    """The update of one part; variables and global step are only passed if not None."""
    given = {"var_list": own, "global_step": counter}
    with get_default_graph().name_scope(scope):
        operation: Operation = optimizer.minimize(
            part_of_mean(loss, optimizer), **{key: v for key, v in given.items() if v is not None}
        )
    return operation


def _keras_update(
    optimizer: KerasOptimizer, loss: Tensor, own: list[Any], counter: Any
) -> Operation:
    """The update of one part by a Keras optimizer, using a custom `get_updates` if it has one."""
    own_loss = part_of_mean(loss, optimizer)
    graph = get_default_graph()
    if type(optimizer).get_updates is not KerasOptimizer.get_updates:
        if counter is not None:
            optimizer.iterations = counter
        with graph.name_scope("training/"):
            operation: Operation = optimizer.get_updates(own_loss, own)[0]
        return operation
    if counter is not None:
        with graph.name_scope(None):
            return optimizer.minimize(own_loss, global_step=counter, var_list=own)
    # If it counts the global step, it names its variables itself.
    with graph.name_scope("training/"):
        return optimizer.minimize(own_loss, var_list=own)


def summarize_layer(value: Tensor, name: str, mode: str, outer: str | None) -> None:
    """Summarizes a layer's output, as in TensorFlow's estimators.

    An estimator does not write them by itself: see `train.hooks.records.ON_DEMAND`.

    Args:
        value: the layer's output.
        name: the prefix of the summaries' names.
        mode: a `ModeKeys`; nothing is summarized for PREDICT.
        outer: a name scope that ends with a slash, or None.
    """
    if mode != ModeKeys.PREDICT:
        with get_default_graph().name_scope(outer):
            on_demand(summary.scalar(f"{name}/fraction_of_zero_values", zero_fraction(value)))
            on_demand(summary.histogram(f"{name}/activation", value))


__all__ = ["OptimizerLike", "Part", "Premade", "Version", "summarize_layer"]
