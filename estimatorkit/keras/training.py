"""How a model is trained, evaluated and asked: graphs of steps, and the loops that run them.

For each kind of step and each structure of batches there is one `_Step`: operations in the model's
graph that take the next batch from an iterator. `fit` gives the iterator a dataset and runs an
epoch's steps in as few XLA calls as the callbacks let it (`train.training.CheckedLoop`). Names of
logs and what is weighted how are those of TensorFlow 2.15's Keras.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from estimatorkit.core.errors import OutOfRangeError, explain
from estimatorkit.core.nest import flatten, pack_sequence_as
from estimatorkit.core.ops import array, elementwise
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.iterator_ops import Iterator, named_iterator
from estimatorkit.keras import metrics as keras_metrics
from estimatorkit.keras.compiled import (
    CompiledLoss,
    CompiledMetrics,
    as_list_of,
    weights_of_classes,
)
from estimatorkit.keras.data_adapter import Batches
from estimatorkit.layers.call_record import call_scope
from estimatorkit.layers.sessions import session_of
from estimatorkit.train.log import logger
from estimatorkit.train.training import CheckedLoop

if TYPE_CHECKING:
    from estimatorkit.keras.model import Model

_MOST_STEPS = 1 << 30


class Compiled:
    """What `compile` was given, and the steps made of it.

    Args:
        model: the model.
        optimizer: a `train.Optimizer`.
        loss, metrics, loss_weights, weighted_metrics: as for `Model.compile`.
    """

    def __init__(
        self,
        model: Model,
        optimizer: Any,
        loss: Any,
        metrics: Any,
        loss_weights: Any,
        weighted_metrics: Any,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.loss = loss
        self.given_metrics = metrics
        self.given_loss_weights = loss_weights
        self.given_weighted_metrics = weighted_metrics
        self.metric_objects: list[Any] = []
        self._losses: CompiledLoss | None = None
        self._metrics: CompiledMetrics | None = None

    def losses_and_metrics(self, names: Sequence[str]) -> tuple[CompiledLoss, CompiledMetrics]:
        """Those for outputs of these names."""
        if self._losses is None or self._metrics is None:
            self._losses = CompiledLoss(self.loss, self.given_loss_weights, names)
            self._metrics = CompiledMetrics(
                self.given_metrics, self.given_weighted_metrics, self.loss, names
            )
        return self._losses, self._metrics


class Step:
    """Operations that take the next batch and do one step with it.

    Args:
        model: the model.
        spec: the structure of batches: `(x,)`, `(x, y)` or `(x, y, weights)`.
        kind: 'train', 'test' or 'predict'.
        class_weight: weights by class, for training.
    """

    def __init__(self, model: Model, spec: Any, kind: str, class_weight: Any = None) -> None:
        self._model = model
        self._graph = model.graph
        self.names: list[str] = []
        self._values: list[Tensor] = []
        self._targets: list[Operation] = []
        self._variables: list[Any] = []
        self._every: list[Tensor] = []
        self._outputs: Any = None
        self._loop: CheckedLoop | None = None
        finalized = self._graph.finalized
        self._graph.unfinalize()
        with self._graph.as_default(), self._graph.name_scope(None), self._graph.name_scope(kind):
            self.iterator: Iterator = named_iterator(spec)
            x, y, weight = (*self.iterator.get_next(), None, None)[:3]
            with call_scope(kind == "train") as scope:
                outputs = model(x, training=kind == "train")
            if kind == "predict":
                self._outputs = outputs
                self._every = flatten(outputs)
            else:
                self._make_losses(x, y, weight, outputs, scope, kind, class_weight)
        if finalized:
            self._graph.finalize()

    def _make_losses(
        self, x: Any, y: Any, weight: Any, outputs: Any, scope: Any, kind: str, class_weight: Any
    ) -> None:
        model = self._model
        compiled = model.compiled
        names = model.output_names_of(outputs)
        tensors = flatten(outputs)
        truths = as_list_of(y, names, "labels")
        weights = as_list_of(weight, names, "sample weights")
        if class_weight is not None and kind == "train":
            if len(names) > 1:
                raise ValueError(
                    "`class_weight` is only supported for Models with a single output."
                )
            of_class = weights_of_classes(truths[0], class_weight)
            weights = [
                of_class if given is None else of_class * elementwise.cast(given, of_class.dtype)
                for given in weights
            ]
        losses, metrics = compiled.losses_and_metrics(names)
        total, named = losses(truths, tensors, weights)
        extra = [*scope.losses, *model.regularization_losses()]
        for loss in extra:
            loss = loss if total is None else elementwise.cast(loss, total.dtype)
            total = loss if total is None else total + loss
        if total is None:
            raise ValueError(
                explain(
                    "The model cannot be trained because it has no loss to optimize",
                    hint="give one to compile(loss=...), or call add_loss in a layer",
                )
            )
        batch = array.shape(flatten(x)[0])[0]
        for name, value in [("loss", total), *named]:
            self._add_mean(name, value, batch)
        for name, update, value in metrics(truths, tensors, weights):
            self._add(name, value, update)
        for name, value in scope.metrics:
            self._add_mean(name, value, batch)
        compiled.metric_objects = metrics.metrics
        self._variables += [each for metric in metrics.metrics for each in metric.variables]
        self._every = [total]
        if kind == "train":
            self._make_update(total, scope)

    def _make_update(self, total: Tensor, scope: Any) -> None:
        model = self._model
        trainable = model.trainable_weights
        with self._graph.control_dependencies(scope.updates):
            if trainable:
                update = model.compiled.optimizer.minimize(total, var_list=trainable)
                self._targets.append(update.op if isinstance(update, Tensor) else update)
        self._targets += [each.op if isinstance(each, Tensor) else each for each in scope.updates]

    def _add_mean(self, name: str, value: Tensor, weight: Any) -> None:
        mean = keras_metrics.Mean(name=name)
        update = mean.update_state(value, sample_weight=weight)
        self._variables += mean.variables
        self._add(name, mean.result(), update)

    def _add(self, name: str, value: Tensor, update: Any) -> None:
        self.names.append(name)
        self._values.append(value)
        self._targets.append(update.op if isinstance(update, Tensor) else update)

    # -- running

    def ready(self) -> CheckedLoop:
        """The loop, with a value for every variable."""
        session = session_of(self._graph)
        if self._loop is None or self._session is not session:
            self._session = session
            targets = list(dict.fromkeys(self._targets))
            self._loop = CheckedLoop(session, self._every, targets, self._values, "keras_step")
        return self._loop

    def start(self, dataset: Dataset, epoch: int = 0) -> None:
        """Puts the iterator at the first batch of a dataset."""
        self.iterator.start(session_of(self._graph).state, dataset, epoch)

    def reset(self) -> None:
        """Sets the metrics to where they begin."""
        values = session_of(self._graph).state.values
        for variable in self._variables:
            values[variable.op.name] = np.zeros(
                variable.shape.as_list(), variable.dtype.numpy_dtype
            )

    def logs(self, after: Sequence[Any]) -> dict[str, float]:
        """The values by name."""
        return {
            name: float(value) if np.ndim(value) == 0 else value
            for name, value in zip(self.names, after, strict=True)
        }

    def close(self) -> None:
        """Gives back what the iterator holds."""
        held = session_of(self._graph).state.resources.pop(self.iterator.resource_name, None)
        if held is not None:
            held.close()


def run_epoch(
    step: Step,
    steps: int | None,
    singly: bool,
    before: Callable[[int], None],
    after: Callable[[int, dict[str, float]], bool],
) -> tuple[int, dict[str, float]]:
    """Runs steps until there are enough, the batches end, or `after` says so.

    Args:
        step: what a step does.
        steps: how many; None: until the batches end.
        singly: whether each step is a call of its own.
        before: called with the number of the next step.
        after: called with the number of the last step and the logs; True ends the epoch.

    Returns:
        How many steps were done, and the logs.
    """
    loop = step.ready()
    done = 0
    logs: dict[str, float] = {}
    while steps is None or done < steps:
        wanted = 1 if singly else (_MOST_STEPS if steps is None else steps - done)
        before(done)
        try:
            result = loop.run(wanted)
        except OutOfRangeError:
            break
        done += result.count
        logs = step.logs(result.after)
        if after(done - 1, logs) or result.ended:
            break
    return done, logs


def fit(
    model: Model,
    batches: Batches,
    epochs: int,
    initial_epoch: int,
    callbacks: Any,
    class_weight: Mapping[int, float] | None,
    validate: Callable[[int], Mapping[str, Any]] | None,
) -> None:
    """Trains: see `Model.fit`."""
    step = model.step("train", batches.dataset.element_spec, class_weight)
    callbacks.on_train_begin()
    if batches.once:
        step.start(batches.dataset)
    try:
        for epoch in range(initial_epoch, epochs):
            step.reset()
            callbacks.on_epoch_begin(epoch)
            if not batches.once:
                step.start(batches.dataset, epoch - initial_epoch)

            def after(number: int, logs: dict[str, float]) -> bool:
                callbacks.on_train_batch_end(number, logs)
                return bool(model.stop_training)

            done, logs = run_epoch(
                step, batches.steps, callbacks.wants_batches, callbacks.on_train_batch_begin, after
            )
            if not done:
                if epoch == initial_epoch:
                    raise ValueError(
                        explain(
                            "Expect x to be a non-empty array or dataset",
                            expected="at least one batch",
                            received="none",
                        )
                    )
                _out_of_data(batches.steps)
                break
            if batches.on_epoch_end is not None:
                batches.on_epoch_end()
            epoch_logs: dict[str, Any] = dict(logs)
            short = batches.steps is not None and done < batches.steps and not model.stop_training
            if short:
                _out_of_data(batches.steps)
            if validate is not None:
                epoch_logs.update({f"val_{k}": v for k, v in validate(epoch).items()})
            callbacks.on_epoch_end(epoch, epoch_logs)
            if model.stop_training or (short and batches.once):
                break
        callbacks.on_train_end()
    finally:
        step.close()


def _out_of_data(steps: int | None) -> None:
    logger.warning(
        "Your input ran out of data; interrupting training. Make sure that your dataset or "
        "generator can generate at least `steps_per_epoch * epochs` batches (%s an epoch were "
        "asked for). You may need to use the repeat() function when building your dataset.",
        steps,
    )


def evaluate(model: Model, batches: Batches, callbacks: Any) -> dict[str, float]:
    """The logs of one pass: see `Model.evaluate`."""
    step = model.step("test", batches.dataset.element_spec)
    callbacks.on_test_begin()
    step.reset()
    step.start(batches.dataset)

    def after(number: int, logs: dict[str, float]) -> bool:
        callbacks.on_test_batch_end(number, logs)
        return False

    try:
        done, logs = run_epoch(
            step, batches.steps, callbacks.wants_batches, callbacks.on_test_batch_begin, after
        )
    finally:
        step.close()
    if not done:
        raise ValueError("evaluate(): expected at least one batch, received none.")
    callbacks.on_test_end(logs)
    return logs


def predict(model: Model, batches: Batches, callbacks: Any) -> Any:
    """The outputs of one pass: see `Model.predict`."""
    step = model.step("predict", batches.dataset.element_spec)
    callbacks.on_predict_begin()
    step.start(batches.dataset)
    loop = step.ready()
    parts: list[list[Any]] = []
    done = 0
    try:
        while batches.steps is None or done < batches.steps:
            wanted = _MOST_STEPS if batches.steps is None else batches.steps - done
            callbacks.on_predict_batch_begin(done)
            try:
                result = loop.run(1 if callbacks.wants_batches else wanted)
            except OutOfRangeError:
                break
            done += result.count
            parts.append([_joined(value) for value in result.every])
            callbacks.on_predict_batch_end(done - 1, {"outputs": parts[-1]})
            if result.ended:
                break
    finally:
        step.close()
    if not parts:
        raise ValueError("predict(): expected at least one batch, received none.")
    callbacks.on_predict_end()
    whole = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return pack_sequence_as(step._outputs, whole)


def _joined(batches: Any) -> Any:
    """`(steps, batch, ...)` as `(steps * batch, ...)`."""
    return batches.reshape(-1, *batches.shape[2:])


__all__ = ["Compiled", "Step", "evaluate", "fit", "predict", "run_epoch"]
