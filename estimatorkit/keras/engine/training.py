"""Training, evaluation and prediction of models: step graphs, and the loops that run them.

Each kind of step and structure of batches has one `Step`: operations in the model's graph that read
the next batch from an iterator. `fit` runs an epoch's steps in as few XLA calls as the callbacks
allow (`train.training.CheckedLoop`). Log names and weighting follow TensorFlow 2.15's Keras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from estimatorkit.core.errors import OutOfRangeError, value_error
from estimatorkit.core.nest import flatten, pack_sequence_as
from estimatorkit.core.registry import constant_value
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.iterator_ops import Iterator as GraphIterator, named_iterator
from estimatorkit.keras import metrics as keras_metrics
from estimatorkit.keras.engine.compiled import (
    CompiledLoss,
    CompiledMetrics,
    added,
    as_list_of,
    weights_of_classes,
)
from estimatorkit.keras.engine.data_adapter import Batches
from estimatorkit.keras.engine.metric_logs import MetricLogs
from estimatorkit.keras.engine.not_a_number import DataNaNWarning
from estimatorkit.keras.optimizers.optimizer import Optimizer
from estimatorkit.layers.engine.call_record import CallScope, call_scope, record_of
from estimatorkit.layers.engine.sessions import session_of
from estimatorkit.logger import logger
from estimatorkit.ops.array import array, indexing
from estimatorkit.ops.math import elementwise
from estimatorkit.runtime.loop import Steps
from estimatorkit.runtime.session import Session
from estimatorkit.train.checks import collecting_step_checks
from estimatorkit.train.training import CheckedLoop

if TYPE_CHECKING:
    from estimatorkit.keras.engine.model import Model

_MOST_STEPS = 1 << 30
_MOST_LOOPS = 16
"""Steps of a graph whose executables are kept, of 4 MB each: those of five models that train,
evaluate and predict. Programs that make models in a loop hold all of them in the default graph."""


@dataclass(eq=False, repr=False)
class Compiled:
    """The arguments of `Model.compile`, and the steps built from them."""

    model: Model
    optimizer: Any
    loss: Any
    given_metrics: Any
    given_loss_weights: Any
    given_weighted_metrics: Any
    metric_objects: list[Any] = field(default_factory=list)
    added_metrics: dict[tuple[int, str], Any] = field(default_factory=dict)
    _losses: CompiledLoss | None = None
    _metrics: CompiledMetrics | None = None

    def losses_and_metrics(self, names: Sequence[str]) -> tuple[CompiledLoss, CompiledMetrics]:
        """The losses and metrics for outputs of these names."""
        if self._losses is None or self._metrics is None:
            self._losses = CompiledLoss(self.loss, self.given_loss_weights, names)
            self._metrics = CompiledMetrics(self.given_metrics, self.given_weighted_metrics, names)
        return self._losses, self._metrics

    def names_for(self, names: Sequence[str], outputs: Sequence[Any]) -> list[str]:
        """What the loss and the metrics of `compile` are called in logs, for outputs by name."""
        losses, metrics = self.losses_and_metrics(names)
        return ["loss", *losses.names, *metrics.names_for(outputs)]

    def added(self, scope: CallScope) -> list[tuple[str, Any, list[Any]]]:
        """The metrics of the model's layers: name, `Metric` and updates of each.

        Those that are attributes of layers, and those that `add_metric` added in a call. A layer
        that adds several values by one name has one metric of them all.
        """
        updates: dict[tuple[int, str], list[Any]] = {}
        for each in scope.metrics:
            key = id(each.layer), each.name
            if each.call is not None:
                self.added_metrics[key], update = each.call.metric, each.call.update
            else:
                mean = self.added_metrics.setdefault(key, keras_metrics.Mean(each.name))
                update = mean.update_state(each.value)
            updates.setdefault(key, []).append(update)
        found: dict[int, tuple[str, Any, list[Any]]] = {}
        for layer in _layers_of(self.model, {}):
            own = [(id(layer), metric.name) for metric in _metrics_of(layer)]
            self.added_metrics |= dict(zip(own, _metrics_of(layer), strict=True))
            for key in (*own, *(key for key in updates if key[0] == id(layer))):
                metric = self.added_metrics[key]
                if metric.variables:
                    found[id(metric)] = metric.name, metric, updates.get(key, scope.updates)
        return list(found.values())


def _layers_of(layer: Any, seen: dict[int, Any]) -> list[Any]:
    """A layer and all layers inside of it, each before its own."""
    if id(layer) not in seen:
        seen[id(layer)] = layer
        for each in layer._parts():
            _layers_of(each, seen)
    return list(seen.values())


def _metrics_of(layer: Any) -> list[Any]:
    """Metrics held by a layer's attributes, directly or in lists and dicts."""
    values = (
        each
        for value in vars(layer).values()
        for each in (flatten(value) if isinstance(value, (list, tuple, dict)) else [value])
    )
    return [each for each in values if isinstance(each, keras_metrics.Metric)]


class Step:
    """Operations that read the next batch and run one step on it.

    Args:
        spec: the structure of batches: `(x,)`, `(x, y)` or `(x, y, weights)`.
        kind: 'train', 'test' or 'predict'.
        class_weight: weights by class, for training.
    """

    def __init__(self, model: Model, spec: Any, kind: str, class_weight: Any = None) -> None:
        self._model = model
        self._graph = model.graph
        self._kind = kind
        self.names: list[str] = []
        self._values: list[Tensor] = []
        self._targets: list[Operation] = []
        self._variables: list[Any] = []
        self._every: list[Tensor] = []
        self._outputs: Any = None
        self._resets: list[Operation] = []
        self._first: dict[str, Any] | None = None
        self._loop: CheckedLoop | None = None
        self._session: Session | None = None
        self._data_nan: DataNaNWarning | None = None
        finalized = self._graph.finalized
        self._graph.unfinalize()
        with self._graph.as_default(), self._graph.name_scope(None), self._graph.name_scope(kind):
            self.iterator: GraphIterator = named_iterator(spec)
            x, y, weight = (*self.iterator.get_next(), None, None)[:3]
            with (
                call_scope(kind == "train", keeps=False) as scope,
                self._graph.program_order() as writes,
            ):
                outputs = model(x, training=kind == "train")
            scope.updates += writes
            if kind == "predict":
                self._outputs = outputs
                self._every = flatten(outputs)
            with collecting_step_checks() as self._checks:
                if kind != "predict":
                    self._make_losses(x, y, weight, outputs, scope, kind, class_weight)
            if kind != "train":  # in training they run with the gradients
                self._targets += _operations(scope.updates)
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
        for loss in [*scope.losses, *model.regularization_losses()]:
            total = added(total, loss)
        if total is None:
            raise value_error(
                "The model cannot be trained because it has no loss to optimize",
                hint="give one to compile(loss=...), or call add_loss in a layer",
            )
        self._data_nan = DataNaNWarning(total, {"x": x, "y": y, "sample_weight": weight})
        # A mean over batches; losses that average over labels are weighted by the number of labels.
        labeled = [each for each, loss in zip(truths, losses.losses, strict=True) if loss]
        batch = array.shape(labeled[0])[0] if labeled else None
        for name, value in [("loss", total), *named]:
            self._add_mean(name, value, batch)
        for name, update, metric in metrics(truths, tensors, weights, x):
            self._add(name, metric, update)
        for name, metric, updates in compiled.added(scope):
            self._add(name, metric, *updates)
        compiled.metric_objects = [*metrics.metrics, *compiled.added_metrics.values()]
        self._variables += [each for one in compiled.metric_objects for each in one.variables]
        self._every = [total]
        if kind == "train":
            self._make_update(total, scope)
            self._every = self._values
            self._make_end_of_epoch()

    def _make_update(self, total: Tensor, scope: Any) -> None:
        model = self._model
        trainable = model.trainable_weights
        with self._graph.control_dependencies(scope.updates):
            if trainable:
                self._targets += _operations(model.training_updates(total))
        self._targets += _operations(scope.updates)

    def _make_end_of_epoch(self) -> None:
        """Adds operations that reset the metrics after an epoch's last step.

        So one call may run several epochs. They are added last, because `run` returns the values of
        every step and must read them before the reset.
        """
        self._length = Variable(0, trainable=False, collections=[], name="epoch_length")
        self._position = Variable(0, trainable=False, collections=[], name="epoch_position")
        following = self._position.value() + 1
        ends = elementwise.equal(following, self._length.value())
        self._targets.append(self._position.assign(indexing.where(ends, 0, following)).op)
        for variable in dict.fromkeys(self._variables):
            with self._graph.control_dependencies(self._targets):
                kept = variable.read_value()
            self._resets.append(
                variable.assign(indexing.where(ends, variable.initial_value, kept)).op
            )
        self._targets += self._resets

    def _add_mean(self, name: str, value: Tensor, weight: Any) -> None:
        mean = keras_metrics.Mean(name=name)
        update = mean.update_state(value, sample_weight=weight)
        self._variables += mean.variables
        self._add(name, mean, update)

    def _add(self, name: str, metric: Any, *updates: Any) -> None:
        unique = (name, *(f"{name}_{number}" for number in range(1, len(self.names) + 1)))
        self.names.append(next(each for each in unique if each not in self.names))
        # In training the values are those after each step, otherwise those after the last one.
        with self._graph.control_dependencies(updates if self._kind == "train" else []):
            self._values.append(metric.result())
        self._targets += _operations(updates)

    # -- running

    def ready(self) -> CheckedLoop:
        """The loop, after initializing all variables."""
        session = session_of(self._graph)
        if self._loop is None or self._session is not session:
            self._session = session
            targets = list(dict.fromkeys(self._targets))
            after = [] if self._resets else self._values
            checks = self._checks
            self._loop = CheckedLoop(session, self._every, targets, after, "keras_step", checks)
        self._keep_recent()
        return self._loop

    def _keep_recent(self) -> None:
        """Drops the executables and data of steps of the graph that others have followed."""
        recent = record_of(self._graph).recent_steps
        recent.pop(self, None)
        recent[self] = None
        while len(recent) > _MOST_LOOPS:
            step, _ = recent.popitem(last=False)
            step._loop = step._session = None

    def start(self, dataset: Dataset, epoch: int = 0) -> None:
        """Initializes the iterator with a dataset."""
        if self._data_nan is not None:
            self._data_nan.begin()
        self.iterator.start(self._state, dataset, epoch)

    def reset(self, length: int = 0) -> None:
        """Resets the metrics.

        Training also resets them after every `length` steps; 0 means an unknown length.
        """
        values = self._state.values
        if self._first is None:
            self._first = self._first_values()
        for name, value in self._first.items():
            values[name] = np.array(value)
        self.begin_epoch(length)

    def _first_values(self) -> dict[str, Any]:
        """The metric variables' initial values: 0, except in some user-defined metrics."""
        found = {each: constant_value(each.initial_value) for each in self._variables}
        unknown = {each: each.initial_value for each, value in found.items() if value is None}
        if unknown:
            made = session_of(self._graph).run(list(unknown.values()))
            found.update(zip(unknown, made, strict=True))
        return {each.op.name: value for each, value in found.items()}

    def begin_epoch(self, length: int = 0) -> None:
        """Sets the epoch's length (see `reset`) without resetting the metrics."""
        if self._resets:
            values = self._state.values
            values[self._length.op.name] = np.int32(length)
            values[self._position.op.name] = np.int32(0)

    @property
    def _state(self) -> Any:
        """The session's variables; `ready` has initialized them."""
        return session_of(self._graph, initialize=False).state

    def logs(self, values: Sequence[Any]) -> dict[str, float]:
        """Converts values to logs by name."""
        return MetricLogs(
            (name, float(value) if np.ndim(value) == 0 else value)
            for name, value in zip(self.names, values, strict=True)
        )

    def close(self) -> None:
        """Releases the iterator's resources."""
        held = self._state.resources.pop(self.iterator.resource_name, None)
        if held is not None:
            held.close()


def updates_of(optimizer: Any, loss: Tensor, variables: Sequence[Any]) -> list[Any]:
    """The update operations of an optimizer; those of `get_updates` if a subclass overrides it.

    Steps of a `tf.train` optimizer are counted in an added attribute `iterations`, as in Keras.
    """
    kind: Any = type(optimizer)
    if not hasattr(kind, "get_updates"):
        counter = getattr(optimizer, "iterations", None)
        if counter is None or counter.graph is not loss.graph.outermost:
            counter = Variable(np.int64(0), trainable=False, name="iterations")
            optimizer.iterations = counter
        return [optimizer.minimize(loss, var_list=variables, global_step=counter)]
    if kind.get_updates is Optimizer.get_updates:
        return [optimizer.minimize(loss, var_list=variables)]
    return [each for each in optimizer.get_updates(loss=loss, params=variables) if each is not None]


def _operations(made: Sequence[Any]) -> list[Operation]:
    return [each.op if isinstance(each, Tensor) else each for each in made]


@dataclass(eq=False)
class _Fit:
    """The state of a running `fit`: its position, callbacks and validation.

    Attributes:
        _epochs: the end of the range of epochs.
        _epoch: the epoch, at first the first one.
        _begun: whether this epoch runs a batch even if a callback stops it.
        _done: the steps of this epoch.
    """

    _model: Model
    _batches: Batches
    _step: Step
    _callbacks: Any
    _validate: Callable[[int], Mapping[str, Any]] | None
    _epochs: int
    _epoch: int
    _begun: bool = False
    _done: int = 0
    _logs: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        batches = self._batches
        self._first = self._epoch
        self._singly = self._callbacks.wants_batches
        # Without batch callbacks in between, several epochs run in one call.
        self._repeats = not batches.once and batches.on_epoch_end is None and batches.steps
        self._ahead = (
            bool(self._repeats or batches.once)
            and self._validate is None
            and batches.steps is not None
            and not self._callbacks.wants_epochs
        )

    def run(self) -> None:
        """Runs the epochs."""
        loop = self._step.ready()
        self._step.reset(self._batches.steps or 0)
        if self._repeats:
            self._step.start(self._batches.dataset.repeat(self._epochs - self._epoch))
        elif self._batches.once:
            self._step.start(self._batches.dataset)
        self._begin()
        while self._epoch < self._epochs and (self._begun or not self._model.stop_training):
            self._callbacks.on_train_batch_begin(self._done, self._batches.place(self._done))
            try:
                result = loop.run(self._wanted())
            except OutOfRangeError:
                self._end_of_data()
                continue
            self._take(result)
            if result.ended and self._done:
                self._end_of_data()

    def _wanted(self) -> int:
        """The number of steps that one call may run."""
        if self._singly or self._model.stop_training:
            return 1
        if self._batches.steps is None:
            return _MOST_STEPS
        rest = self._batches.steps - self._done
        if self._ahead:
            rest += (self._epochs - self._epoch - 1) * self._batches.steps
        return rest

    def _take(self, result: Steps) -> None:
        """Reports completed steps, possibly of several epochs, to the callbacks."""
        self._callbacks.after_steps(result.count)
        self._begun = False
        taken = 0
        while taken < result.count:
            count = result.count - taken
            if self._batches.steps is not None:
                count = min(count, self._batches.steps - self._done)
            taken += count
            self._done += count
            self._logs = self._step.logs([column[taken - 1] for column in result.every])
            logs = MetricLogs(self._batches.place(self._done - 1) | self._logs)
            self._callbacks.on_train_batch_end(self._done - 1, logs)
            if self._done == self._batches.steps:
                self._end_epoch()
            elif self._model.stop_training:
                self._end_epoch()
                return

    def _begin(self) -> None:
        self._begun = True
        self._done = 0
        self._callbacks.on_epoch_begin(self._epoch)
        if not self._ahead:  # validation uses the metrics, too
            self._step.reset(self._batches.steps or 0)
        if not self._repeats and not self._batches.once:
            self._step.start(self._batches.dataset, self._epoch - self._first)

    def _end_epoch(self) -> None:
        if self._batches.on_epoch_end is not None:
            self._batches.on_epoch_end()
        logs = MetricLogs(self._logs)
        if self._validate is not None:
            logs.update({f"val_{key}": value for key, value in self._validate(self._epoch).items()})
        self._callbacks.on_epoch_end(self._epoch, logs)
        self._epoch += 1
        if self._epoch < self._epochs and not self._model.stop_training:
            self._begin()

    def _end_of_data(self) -> None:
        """Handles the end of the data: an epoch of unknown length, or premature."""
        self._begun = False
        if not self._done and self._epoch == self._first:
            raise value_error(
                "Expect x to be a non-empty array or dataset",
                expected="at least one batch",
                received="none",
            )
        known = self._batches.steps is not None
        if known or not self._done:
            logger.warning(
                "Your input ran out of data; interrupting training. Make sure that your dataset or "
                "generator can generate at least `steps_per_epoch * epochs` batches (%s an epoch "
                "were asked for). You may need to use the repeat() function when building your "
                "dataset.",
                self._batches.steps,
            )
            self._model.stop_training = True
        if self._done:
            if self._batches.once and not known:
                self._epochs = self._epoch + 1  # a generator has no second pass
            self._end_epoch()


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
    with callbacks.around_training():
        callbacks.on_train_begin()
        first = callbacks.first_epoch(initial_epoch)
        if first < epochs:
            try:
                _Fit(model, batches, step, callbacks, validate, epochs, first).run()
            finally:
                step.close()
        callbacks.on_train_end()


def _one_pass(
    step: Step, batches: Batches, singly: bool, begin: Callable[[int, dict[str, int]], Any]
) -> Iterator[tuple[int, Steps]]:
    """Runs a step over the batches once; returns the last batch's index and the results.

    Args:
        singly: whether each batch is a separate call.
        begin: called with the index of the next batch, and its logs.
    """
    step.start(batches.dataset)
    loop = step.ready()
    done = 0
    try:
        while batches.steps is None or done < batches.steps:
            wanted = _MOST_STEPS if batches.steps is None else batches.steps - done
            begin(done, batches.place(done))
            try:
                result = loop.run(1 if singly else wanted)
            except OutOfRangeError:
                break
            done += result.count
            yield done - 1, result
            if result.ended:
                break
    finally:
        step.close()


def evaluate(model: Model, batches: Batches, callbacks: Any) -> dict[str, float]:
    """Returns the logs of one pass; see `Model.evaluate`."""
    step = model.step("test", batches.dataset.element_spec)
    callbacks.on_test_begin()
    step.reset()
    logs: dict[str, float] | None = None
    singly, begin = callbacks.wants_test_batches, callbacks.on_test_batch_begin
    for number, result in _one_pass(step, batches, singly, begin):
        logs = step.logs(result.after)
        callbacks.on_test_batch_end(number, MetricLogs(batches.place(number) | logs))
    if logs is None:
        raise ValueError("evaluate(): expected at least one batch, received none.")
    callbacks.on_test_end(logs)
    return logs


def predict(model: Model, batches: Batches, callbacks: Any) -> Any:
    """Returns the outputs of one pass; see `Model.predict`."""
    step = model.step("predict", batches.dataset.element_spec)
    callbacks.on_predict_begin()
    parts: list[list[Any]] = []
    singly, begin = callbacks.wants_predict_batches, callbacks.on_predict_batch_begin
    for number, result in _one_pass(step, batches, singly, begin):
        parts.append([_joined(value) for value in result.every])
        callbacks.on_predict_batch_end(number, batches.place(number) | {"outputs": parts[-1]})
    if not parts:
        raise ValueError("predict(): expected at least one batch, received none.")
    callbacks.on_predict_end()
    whole = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return pack_sequence_as(step._outputs, whole)


def _joined(batches: Any) -> Any:
    """Reshapes `(steps, batch, ...)` to `(steps * batch, ...)`."""
    return batches.reshape(batches.shape[0] * batches.shape[1], *batches.shape[2:])


__all__ = ["Compiled", "Step", "evaluate", "fit", "predict", "updates_of"]
