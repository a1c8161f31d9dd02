"""`BuiltModel`: a model that a `model_fn` built for one mode, with its session.

Models are cached between calls of an estimator's methods (`ModelStore`): a second `predict` neither
builds, compiles nor restores anything. A model in use is removed from the store, so concurrent
predictions have separate models.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimatorkit.core.builtin_ops import group
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import Graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.x64 import x64
from estimatorkit.data.iterator_ops import Iterator as GraphIterator, resuming
from estimatorkit.distribute.replicas.replica_state import ReplicaSession
from estimatorkit.distribute.replicas.replicas import Replicas
from estimatorkit.distribute.replicas.strategies import Strategy
from estimatorkit.estimator.model_input import ModelInput
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.layers.engine.call_record import set_learning_phase
from estimatorkit.runtime.session import Session
from estimatorkit.runtime.state import State
from estimatorkit.storage.checkpoint import checkpoint_version, read_checkpoint
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.hooks.hooks import SessionRunHook
from estimatorkit.train.queues.queue_runner import start_queue_runners
from estimatorkit.train.saving.saver import input_stays, restore_checkpoint, saved_items
from estimatorkit.train.sessions.coordinator import Coordinator
from estimatorkit.train.sessions.scaffold import Scaffold

_KEPT = 8
"""Models of an estimator that are kept: training, evaluation and prediction, with a few inputs."""


@dataclass(frozen=True)
class Setting:
    """Where and how a model runs.

    Attributes:
        device: the device scope of the graph (see `Graph.device`).
        open_target: opens the target of its session.
        session_config: its session's `ConfigProto`.
        is_chief: whether this process saves checkpoints.
        strategy: the distribution strategy; None for the default device.
        make_global_step: creates the global step of a new graph.
    """

    device: Any = None
    open_target: Callable[[], str] = str
    session_config: Any = None
    is_chief: bool = True
    strategy: Strategy | None = None
    make_global_step: Callable[[Graph], Any] = get_or_create_global_step

    @property
    def replicas(self) -> Replicas | None:
        """The replicas that run it; None for a single one."""
        return None if self.strategy is None else self.strategy.replicas

    @contextmanager
    def building(self, graph: Graph) -> Iterator[None]:
        """A context manager for building the graph."""
        scope = nullcontext() if self.strategy is None else self.strategy.building()
        with graph.as_default(), graph.device(self.device), scope:
            yield


class BuiltModel:
    """A model built for one mode.

    Args:
        given: the input to build it for.
        mode: a `ModeKeys`.
        model_fn: `(features, labels) -> EstimatorSpec`.
        finish: called with the spec, in the graph, to add what the estimator needs.
        setting: where and how it runs.
        initialized: whether to initialize its variables rather than restore them.

    Attributes:
        graph: its graph.
        spec: what the `model_fn` returned.
        features: the features that it was built for.
        extra: the result of `finish`.
        reusable: whether it can run on other datasets.
        input_names: the names of an input element's tensors, by position.
    """

    def __init__(
        self,
        given: ModelInput,
        mode: str,
        model_fn: Callable[[Any, Any], EstimatorSpec],
        finish: Callable[[EstimatorSpec], Any],
        setting: Setting | None = None,
        initialized: bool = False,
    ) -> None:
        self.mode = mode
        self._setting = setting or Setting()
        self.reusable = given.dataset is not None
        self._iterator: GraphIterator | None = None
        if given.dataset is None and self._setting.replicas is not None:
            raise value_error(
                "dataset_fn() must return a tf.data.Dataset when using a tf.distribute.Strategy",
                expected="an input_fn that returns a Dataset",
                received=repr(given.features)[:200],
            )
        if given.dataset is None:
            self.graph, self.features, labels = given.graph, given.features, given.labels
        else:
            self.graph = Graph()
            self.graph.seed = given.graph.seed
            with self.graph.as_default(), self.graph.device(self._setting.device):
                self._setting.make_global_step(self.graph)
            self._iterator, self.features, labels = given.rebuilt(self.graph)
        # The default of layers that get no `training` argument.
        set_learning_phase(mode == ModeKeys.TRAIN, self.graph)
        with self._setting.building(self.graph):
            self.spec = model_fn(self.features, labels)
            is_needed = initialized or not self.spec.scaffold.is_default
            self.scaffold: Scaffold | None = self.spec.scaffold if is_needed else None
            self.extra = finish(self.spec)
        self.input_names = _names_of_input(self.features, labels)
        self._session: Session | None = None
        self._local_init: Any = None
        self._threads: Coordinator | None = None
        self._version: Any = None

    @property
    def hooks(self) -> tuple[SessionRunHook, ...]:
        """The hooks of the spec for its mode, but `chief_hooks`."""
        spec = self.spec
        return {
            ModeKeys.TRAIN: spec.training_hooks,
            ModeKeys.EVAL: spec.evaluation_hooks,
            ModeKeys.PREDICT: spec.prediction_hooks,
        }[self.mode]

    @property
    def chief_hooks(self) -> tuple[SessionRunHook, ...]:
        """The hooks of the spec for the chief's training, which come first."""
        is_here = self.mode == ModeKeys.TRAIN and self._setting.is_chief
        return self.spec.training_chief_hooks if is_here else ()

    @property
    def session(self) -> Session:
        """Its session, whose creation finalizes the graph."""
        if self._session is None:
            with self.graph.as_default():
                if self.scaffold is not None:
                    given = self.scaffold.local_init_op
                    if given is not None and self.mode == ModeKeys.EVAL:
                        # The loss metric was created after the model's own initializers.
                        self._local_init = group(given, Scaffold.default_local_init_op())
                    self.scaffold.finalize()
                    self._local_init = self._local_init or self.scaffold.local_init_op
                elif self._has_local():
                    self._local_init = Scaffold.default_local_init_op()
            self.graph.finalize()
            setting = self._setting
            given = setting.open_target(), self.graph, setting.session_config
            if setting.replicas is None:
                self._session = Session(*given)
            else:
                above = None if setting.strategy is None else setting.strategy.shard_rows_above
                self._session = ReplicaSession(*given, setting.replicas, above)
        return self._session

    def _has_local(self) -> bool:
        keys = (GraphKeys.LOCAL_VARIABLES, GraphKeys.TABLE_INITIALIZERS)
        return any(self.graph.get_collection(key) for key in keys)

    def initialize_local(self) -> None:
        """Initializes local variables (those of metrics) and tables, and starts queue runners."""
        session = self.session
        if self._local_init is not None:
            fed = None if self.scaffold is None else self.scaffold.local_init_feed_dict
            with resuming(session.state):
                session.run(self._local_init, fed)
        if self._threads is None and self.graph.get_collection(GraphKeys.QUEUE_RUNNERS):
            self._threads = Coordinator()
            start_queue_runners(session, self._threads)

    def initialize(self) -> None:
        """Initializes all variables; for models built with `initialized`."""
        session, scaffold = self.session, self.scaffold
        if scaffold is None:
            raise RuntimeError("the model was built for restoring only")
        session.state.restart_random()
        session.run(scaffold.init_op, scaffold.init_feed_dict)
        if scaffold.init_fn is not None:
            scaffold.init_fn(session)
        self.initialize_local()

    def start(self, given: ModelInput) -> None:
        """Starts an input at its first element."""
        if self._iterator is not None and given.dataset is not None:
            self._iterator.start(self.session.state, given.dataset)

    def stop(self) -> None:
        """Releases the input, and raises errors of its threads."""
        if self._threads is not None:
            threads, self._threads = self._threads, None
            threads.request_stop()
            threads.join()
        if self._iterator is not None and self._session is not None:
            held = self._session.state.resources.pop(self._iterator.resource_name, None)
            if held is not None:
                held.close()

    def load(self, path: str | None) -> None:
        """Restores a checkpoint, unless the session has its values; None initializes variables."""
        session = self.session
        if path is None:
            self.initialize()
            return
        version = checkpoint_version(path)
        if version is None or version != self._version:
            self._version = None
            with self.graph.as_default(), input_stays():
                if self.scaffold is not None:
                    self.scaffold.saver.restore(session, path)
                else:
                    restore_checkpoint(session, read_checkpoint(path), saved_items())
            _put_on_device(session.state)
            self._version = version
        # As in a new session: a checkpoint's random counters matter only when training continues.
        session.state.restart_random()
        self.initialize_local()

    def holds(self, path: str | None) -> bool:
        """Whether the session has the values of a checkpoint."""
        version = None if path is None else checkpoint_version(path)
        return version is not None and version == self._version

    def now_holds(self, path: str | None) -> None:
        """Records which checkpoint the session's values are from; None for none."""
        self._version = None if path is None else checkpoint_version(path)

    def close(self) -> None:
        """Closes the session."""
        if self._session is not None:
            self._session.close()
            self._session = None


def _names_of_input(features: Any, labels: Any) -> dict[int, str]:
    found: dict[int, str] = {}

    def visit(value: Any, name: str) -> None:
        if isinstance(value, Mapping):
            for key, each in value.items():
                visit(each, f"{name} {key!r}")
        elif isinstance(value, (list, tuple)):
            for number, each in enumerate(value):
                visit(each, f"{name}[{number}]")
        elif isinstance(value, Tensor) and role_of(value.op) is Role.ELEMENT:
            found[value.value_index] = name

    visit(features, "feature" if isinstance(features, Mapping) else "features")
    visit(labels, "label" if isinstance(labels, Mapping) else "labels")
    return found


class MadeOf:
    """What models are built from: equal if the same objects, with equal texts.

    Args:
        objects: compared by identity; kept alive, so that no other object gets an identity.
        text: compared by value.
    """

    def __init__(self, objects: Sequence[Any], text: str) -> None:
        self._objects = objects
        self._key = (*map(id, objects), text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MadeOf) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class ModelStore:
    """An estimator's idle models, keyed by what they were built from."""

    def __init__(self) -> None:
        self._models: OrderedDict[Any, BuiltModel] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def model(
        self,
        given: ModelInput,
        made_of: MadeOf,
        build: Callable[[], BuiltModel],
        hooks: Sequence[SessionRunHook],
    ) -> Iterator[BuiltModel]:
        """A context manager that yields a model, started on an input.

        It is returned to the store, except after an error, or if a hook or the input prevents it:
        hooks that add to the graph need a new model, and hooks of a `model_fn` belong to one.

        Args:
            given: the input.
            made_of: what else a model is built from.
            build: builds a model.
            hooks: the hooks to run with.
        """
        may_reuse = given.key is not None and not any(hook.changes_graph for hook in hooks)
        key = (given.key, made_of)
        model = self._take(key) if may_reuse else None
        if model is None:
            model = build()
        own = (*model.hooks, *model.chief_hooks)
        may_keep = (
            may_reuse and model.reusable and not any(each.serves_one_training for each in own)
        )
        kept = False
        try:
            yield model
            kept = may_keep
        except GeneratorExit:
            kept = may_keep
            raise
        finally:
            try:
                model.stop()
            finally:
                if kept:
                    self._keep(key, model)
                else:
                    model.close()

    def _take(self, key: Any) -> BuiltModel | None:
        with self._lock:
            return self._models.pop(key, None)

    def _keep(self, key: Any, model: BuiltModel) -> None:
        with self._lock:
            old = self._models.pop(key, None)
            self._models[key] = model
            dropped = [] if old is None else [old]
            while len(self._models) > _KEPT:
                dropped.append(self._models.popitem(last=False)[1])
        for each in dropped:
            each.close()

    def clear(self) -> None:
        """Discards all models."""
        with self._lock:
            models, self._models = list(self._models.values()), OrderedDict()
        for each in models:
            each.close()


def _put_on_device(state: State) -> None:
    """Transfers restored values to the device, once."""
    with x64():
        for name, value in list(state.values.items()):
            if isinstance(value, np.ndarray) and value.dtype.kind not in "OSU":
                state.put(name, state.initial(name, value, None))


__all__ = ["BuiltModel", "MadeOf", "ModelStore"]
