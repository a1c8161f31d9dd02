"""`Estimator`: trains, evaluates and predicts with a model that a `model_fn` builds."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from numpy.typing import NDArray

from estimatorkit.core.errors import OutOfRangeError, type_error, value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.iterator_ops import make_one_shot_iterator
from estimatorkit.distribute.cluster_task import CHIEF, EVALUATOR, MASTER, PS, WORKER
from estimatorkit.distribute.replicas.strategies import Strategy, reported_loss
from estimatorkit.estimator.arguments import (
    arguments_of,
    as_list,
    check_model_fn,
    check_steps,
    checked_config,
    line_of,
)
from estimatorkit.estimator.built_model import BuiltModel, MadeOf, ModelStore, Setting
from estimatorkit.estimator.evaluation.evaluation import Evaluation, described
from estimatorkit.estimator.model_input import ModelInput, features_and_labels
from estimatorkit.estimator.prediction import LivePredictor, chosen, single_examples
from estimatorkit.estimator.run_config import RunConfig, is_not_chief
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.estimator.subclassing import (
    check_overrides,
    overrides_training,
    refuse_public_overrides,
    train_in_steps,
)
from estimatorkit.estimator.training import Training
from estimatorkit.estimator.training_cluster import TrainingCluster
from estimatorkit.estimator.warm_starting import (
    WarmStartSettings,
    apply_first_values,
    as_warm_start,
    not_trained,
)
from estimatorkit.interop.events import MetricsWriter
from estimatorkit.logger import ensure_visible, logger
from estimatorkit.runtime.session import Session
from estimatorkit.storage.checkpoint import (
    checkpoint_exists,
    latest_checkpoint,
    list_variables,
    load_variable,
)
from estimatorkit.storage.directory_lock import DirectoryLock
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.hooks.checkpoint_hooks import CheckpointSaverListener
from estimatorkit.train.hooks.hooks import SessionRunHook, StopAtStepHook, check_hooks
from estimatorkit.train.saving.checkpoint_compatibility import saved_global_step
from estimatorkit.train.sessions.coordinator import Coordinator, coordinated
from estimatorkit.train.training import run_hooked, takes_input, training_loop


class Estimator:
    """Trains, evaluates and predicts with a model.

    Args:
        model_fn: `model_fn(features, labels, mode, params, config)`, where all arguments but
            `features` are optional; it builds the model in the default graph and returns an
            `EstimatorSpec`.
        model_dir: where checkpoints and logs go; by default that of `config`, or else a temporary
            directory. Training resumes from the latest checkpoint in it.
        config: a `RunConfig`.
        params: passed to `model_fn` and `input_fn` as `params`, usually a dict; deep-copied.
        warm_start_from: a checkpoint, a model folder, an exported model or `WarmStartSettings` to
            initialize variables from if `model_dir` has no checkpoint yet.

    A model is built and compiled once for each input structure and then cached, so calling
    `train`, `evaluate` or `predict` again costs neither (TensorFlow rebuilds the graph and reads
    the checkpoint each time). A `model_fn` whose result depends on more than its arguments is
    therefore not called again; `forget_models` clears the cache. Hooks whose `begin` adds to the
    graph, and inputs that are more than a dataset, get their own model, as in TensorFlow.

    Raises:
        ValueError: an argument is invalid.
    """

    reads_once: ClassVar[bool] = False
    """Whether `train` reads its input once, so that epochs say nothing. Not in TensorFlow."""

    takes_columns: ClassVar[Literal["dense", "ids", "raw"]] = "dense"
    """The feature columns that suit it: dense ones; ids, into which numbers are divided, for linear
    models; or ids and the numbers as they are, NaN where one is missing. Not in TensorFlow."""

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec],
        model_dir: str | os.PathLike[str] | None = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: Any = None,
    ) -> None:
        type(self)._assert_members_are_not_overridden(self)
        check_overrides(self, Estimator)
        if config is not None and not isinstance(config, RunConfig):
            raise ValueError(f"config must be an instance of `RunConfig`, but provided {config}.")
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        check_model_fn(model_fn, params)
        self._model_fn = model_fn
        self._params = copy.deepcopy({} if params is None else params)
        self._config = config = checked_config(config, model_dir)
        # TensorFlow's private names, which subclasses read and assign.
        self._model_dir: Any = config.model_dir
        self._session_config: Any = config.session_config
        self._device_fn: Any = config.device_fn
        self._train_distribution: Strategy | None = config.train_distribute
        self._eval_distribution: Strategy | None = config.eval_distribute
        self._warm_start_settings: WarmStartSettings | None = as_warm_start(warm_start_from)
        self._models = ModelStore()
        self._evaluates_often = False
        """Whether evaluations are repeated, so that XLA compiles them from the first on."""
        self.cluster: TrainingCluster | None = None
        """The cluster that it trains with; None for a single process. Not in TensorFlow."""
        if config.task.num_ps_replicas and config.task.type in (CHIEF, MASTER, WORKER):
            self.cluster = TrainingCluster(
                config.task,
                str(config.model_dir),
                config.session_creation_timeout_secs,
                config.max_steps_ahead,
                config.steps_in_flight - 1,
                config.bfloat16_rows,
            )

    def _assert_members_are_not_overridden(self) -> None:
        """Refuses subclasses that override public members, as in TensorFlow; those that do on
        purpose override this, too.

        Raises:
            ValueError: the class itself overrides one.
        """
        refuse_public_overrides(self, Estimator)

    # -- what it is

    @property
    def model_dir(self) -> str:
        """Where checkpoints and logs go."""
        return str(self._model_dir)

    @property
    def config(self) -> RunConfig:
        """The `RunConfig`."""
        return copy.copy(self._config)

    @property
    def params(self) -> Any:
        """A deep copy of the parameters; an empty dict if there are none."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """The model function with `params` bound: `(features, labels, mode, config)`."""

        def bound(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            return self._call_model_fn(features, labels, mode, config)

        return bound

    def eval_dir(self, name: str | None = None) -> str:
        """The folder that evaluations called `name` write to."""
        return os.path.join(self.model_dir, "eval" if not name else f"eval_{name}")

    def latest_checkpoint(self) -> str | None:
        """The path of the latest complete checkpoint, or None."""
        return latest_checkpoint(self.model_dir)

    def get_variable_names(self) -> list[str]:
        """The names of the variables in the latest checkpoint.

        Raises:
            ValueError: there is no checkpoint.
        """
        return [name for name, _ in list_variables(self._checkpoint_or_error())]

    def get_variable_value(self, name: str) -> NDArray[Any]:
        """The value of a variable in the latest checkpoint.

        Raises:
            ValueError: there is no checkpoint.
            NotFoundError: the variable is not in it.
        """
        return load_variable(self._checkpoint_or_error(), name)

    def _newest_checkpoint(self) -> str | None:
        """The checkpoint to evaluate, or to resume from."""
        return self.latest_checkpoint()

    def _create_global_step(self, graph: Graph) -> Any:
        """Creates the global step of a new graph, as its first variable."""
        return get_or_create_global_step(graph)

    def _create_and_assert_global_step(self, graph: Graph) -> Any:
        """`_create_global_step`, for subclasses; None if the graph gets one later."""
        return self._create_global_step(graph)

    def _checkpoint_or_error(self, path: str | os.PathLike[str] | None = None) -> str:
        found = self._checkpoint_or_none(path)
        if found is None:
            raise not_trained(self.model_dir)
        return found

    def _checkpoint_or_none(self, path: str | os.PathLike[str] | None) -> str | None:
        """The checkpoint to evaluate or predict with; None if the model itself must provide values
        (see `apply_first_values`).
        """
        if path is not None:
            if not checkpoint_exists(path):
                raise ValueError(
                    f"The passed save_path is not a valid checkpoint: {os.fspath(path)}"
                )
            return os.fspath(path)
        return self._newest_checkpoint()

    # -- training

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[SessionRunHook] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[CheckpointSaverListener] | None = None,
    ) -> Self:
        """Trains the model for a number of steps, until the input ends or a hook requests a stop.

        Args:
            input_fn: returns a `Dataset` of (features, labels), or the tensors of a batch. May take
                `mode`, `params`, `config` and `input_context`. Under a strategy it returns batches
                for single replicas, and is called once in each process.
            hooks: `SessionRunHook`s.
            steps: how many steps to train; a fraction (`examples / batch_size`) is rounded up.
            max_steps: the global step to stop at; no steps are run if it has been reached.
            saving_listeners: `CheckpointSaverListener`s.

        Returns:
            The estimator.

        Raises:
            ValueError: both `steps` and `max_steps` are given, or one is not positive.
            NanLossDuringTrainingError: the loss became NaN.
            FailedPreconditionError: another process trains in `model_dir`.
        """
        steps, max_steps = check_steps(steps, max_steps)
        if self._config.task_type in (EVALUATOR, PS):
            raise value_error(
                "Train has been called wrong configuration. Please use "
                "tf.estimator.train_and_evaluate which calls proper API according to given "
                "configuration",
                received=f"task_type {self._config.task_type!r}",
            )
        given_hooks = check_hooks(hooks)
        listeners = as_list(saving_listeners)
        for listener in listeners:
            if not isinstance(listener, CheckpointSaverListener):
                raise TypeError(
                    "saving_listeners must be a list of CheckpointSaverListener, "
                    f"given: {listener!r}"
                )
        ensure_visible()
        with ExitStack() as stack:
            if self._saves:
                stack.enter_context(DirectoryLock(self.model_dir))
            start = self._newest_checkpoint()
            done = 0 if start is None else saved_global_step(start)
            if max_steps is not None and done >= max_steps and (self._saves or not self.cluster):
                logger.info("Skipping training since max_steps has already saved.")
                return self
            stack.enter_context(self._together(ModeKeys.TRAIN))
            if overrides_training(self, Estimator):
                given_hooks = [*given_hooks, *self._convert_train_steps_to_hooks(steps, max_steps)]
                loss = self._train_model(input_fn, given_hooks, listeners)
            else:
                loss = self._run_training(input_fn, given_hooks, listeners, steps, max_steps, start)
        if loss is not None:
            logger.info("Loss for final step: %s.", loss)
        return self

    def _run_training(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[SessionRunHook],
        listeners: Sequence[CheckpointSaverListener],
        steps: int | None,
        max_steps: int | None,
        start: str | None,
    ) -> Any:
        given = self._input(input_fn, ModeKeys.TRAIN)

        def build() -> BuiltModel:
            return self._build(given, ModeKeys.TRAIN, self._training)

        with self._models.model(given, self._made_of, build, hooks) as model:
            return model.extra.run(model, given, hooks, listeners, steps, max_steps, start)

    def _training(self, spec: EstimatorSpec) -> Training:
        is_new = self.latest_checkpoint() is None
        warm_start = self._warm_start_settings if is_new and self._saves else None
        config = self._config.replace(model_dir=self.model_dir)
        return Training(spec, config, warm_start, self.cluster, self._train_distribution)

    # -- training in TensorFlow's steps, for subclasses that override one of them

    def _train_model(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[SessionRunHook],
        saving_listeners: Sequence[CheckpointSaverListener],
    ) -> Any:
        """Trains with hooks that end the training; returns the last loss."""
        return self._train_model_default(input_fn, hooks, saving_listeners)

    def _train_model_default(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[SessionRunHook],
        saving_listeners: Sequence[CheckpointSaverListener],
    ) -> Any:
        """Builds the model in a new graph and trains it; arguments as for `_train_model`."""
        return train_in_steps(self, input_fn, hooks, saving_listeners)

    def _train_with_estimator_spec(
        self,
        estimator_spec: EstimatorSpec,
        worker_hooks: Sequence[SessionRunHook],
        hooks: Sequence[SessionRunHook],
        global_step_tensor: Any,
        saving_listeners: Sequence[CheckpointSaverListener],
    ) -> Any:
        """Trains the model of the default graph; returns the last loss."""
        given = ModelInput(get_default_graph(), None, None, None, None)
        setting = self._setting(ModeKeys.TRAIN)
        model = BuiltModel(
            given, ModeKeys.TRAIN, lambda *_: estimator_spec, self._training, setting
        )
        start = self._newest_checkpoint()
        all_hooks = [*worker_hooks, *hooks]
        with closing(model):
            return model.extra.run(model, given, all_hooks, saving_listeners, None, None, start)

    def _convert_train_steps_to_hooks(
        self, steps: int | None, max_steps: int | None
    ) -> list[SessionRunHook]:
        """The hooks that end a training."""
        return [] if steps is None and max_steps is None else [StopAtStepHook(steps, max_steps)]

    def _get_features_and_labels_from_input_fn(
        self, input_fn: Callable[..., Any], mode: str
    ) -> tuple[Any, Any, list[SessionRunHook]]:
        """Calls an `input_fn` in the default graph; it needs no hooks to start its input."""
        result = self._call_input_fn(input_fn, mode)
        if isinstance(result, Dataset):
            result = make_one_shot_iterator(result).get_next()
        return *features_and_labels(result, mode), []

    # -- evaluation

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        checkpoint_path: str | os.PathLike[str] | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Computes the metrics of a trained model.

        Args:
            input_fn: as for `train`.
            steps: the number of batches; all by default.
            hooks: `SessionRunHook`s; one that needs every single step prevents running many steps
                in one call.
            checkpoint_path: the checkpoint; the latest by default.
            name: a name for this evaluation, if there are several.

        Returns:
            The metrics by name, including 'loss' (averaged over batches) and 'global_step'. They
            are NumPy scalars, as TensorFlow's, whose `item()` is a Python number.

        Raises:
            ValueError: there is no checkpoint, the input is empty, or `steps` is not positive.
        """
        with closing(MetricsWriter(self.eval_dir(name))) as writer:
            return self._evaluate(input_fn, steps, hooks, checkpoint_path, writer)

    def _evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None,
        hooks: Sequence[SessionRunHook] | None,
        checkpoint_path: str | os.PathLike[str] | None,
        writer: MetricsWriter,
    ) -> dict[str, Any]:
        steps, _ = check_steps(steps, None)
        given_hooks = check_hooks(hooks)
        ensure_visible()
        path = self._checkpoint_or_none(checkpoint_path)

        def evaluation(spec: EstimatorSpec) -> Evaluation:
            return Evaluation(spec, self._evaluates_often)

        def build() -> BuiltModel:
            return self._build(given, ModeKeys.EVAL, evaluation, warm=path is None)

        with ExitStack() as stack:
            stack.enter_context(self._together(ModeKeys.EVAL))
            strategy = self._strategy(ModeKeys.EVAL)
            if path is not None and strategy is not None and strategy.replicas is not None:
                path = strategy.replicas.broadcast_text(path)
            given = self._input(input_fn, ModeKeys.EVAL, path)
            model = stack.enter_context(
                self._models.model(given, self._made_of, build, given_hooks)
            )
            stack.enter_context(model.graph.as_default())  # hooks expect it, as in training
            all_hooks = [*given_hooks, *model.hooks]
            coord = stack.enter_context(coordinated())
            session = self._restored(model, given, path, all_hooks, stack, coord)
            logger.info("Starting evaluation at %s", _timestamp("T"))
            started = time.perf_counter()
            values = model.extra.run(session, steps, all_hooks, coord)
            for hook in all_hooks:
                hook.end(session)
        logger.info("Inference Time : %.5fs", time.perf_counter() - started)
        logger.info("Finished evaluation at %s", _timestamp("-"))
        step = int(values["global_step"])
        logger.info("Saving dict for global step %d: %s", step, described(values))
        if strategy is None or strategy.is_chief:
            numbers = {key: value for key, value in values.items() if key != "global_step"}
            writer.write(step, numbers, {} if path is None else {"checkpoint_path": path})
        result: dict[str, Any] = values
        return result

    # -- prediction

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: str | Sequence[str] | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        checkpoint_path: str | os.PathLike[str] | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Yields predictions.

        Args:
            input_fn: returns features, or (features, labels), whose labels are ignored. The input
                must be finite.
            predict_keys: the keys of the predictions to compute; all by default.
            hooks: `SessionRunHook`s.
            checkpoint_path: the checkpoint; the latest by default.
            yield_single_examples: whether to yield single examples rather than batches.

        Yields:
            A dict of arrays by key, or an array if the model's predictions are one tensor.

        Raises:
            ValueError: there is no checkpoint, or no prediction of that key.
        """
        given_hooks = check_hooks(hooks)
        ensure_visible()
        path = self._checkpoint_or_none(checkpoint_path)
        return self._predict(input_fn, predict_keys, given_hooks, path, yield_single_examples)

    def _predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: str | Sequence[str] | None,
        hooks: Sequence[SessionRunHook],
        path: str | None,
        yield_single_examples: bool,
    ) -> Iterator[Any]:
        given = self._input(input_fn, ModeKeys.PREDICT, path)

        def build() -> BuiltModel:
            return self._build(given, ModeKeys.PREDICT, lambda spec: None, warm=path is None)

        # Hooks expect the model's graph as the default one, which the caller's is not.
        with (
            self._models.model(given, self._made_of, build, hooks) as model,
            ExitStack() as stack,
        ):
            predictions = chosen(model.spec.predictions, predict_keys)
            all_hooks = [*hooks, *model.hooks]
            coord = stack.enter_context(coordinated())
            with model.graph.as_default():
                session = self._restored(model, given, path, all_hooks, stack, coord)
            session.state.is_brief = True
            # Features that take no input would repeat for ever: they are one batch.
            ends = takes_input(model.graph.get_operations())
            stop: list[str] = [] if ends else ["there is one batch"]
            while not coord.should_stop():
                try:
                    with model.graph.as_default():
                        batch = run_hooked(session, predictions, all_hooks, stop)
                except (OutOfRangeError, StopIteration):  # an error of the input, or of a hook
                    break
                if yield_single_examples:
                    yield from single_examples(batch)
                else:
                    yield batch
                if stop:
                    break
            with model.graph.as_default():
                for hook in all_hooks:
                    hook.end(session)

    def as_predictor(
        self,
        checkpoint_path: str | os.PathLike[str] | None = None,
        predict_keys: str | Sequence[str] | None = None,
    ) -> LivePredictor:
        """Returns the trained model as a function of one example. Not in TensorFlow.

        Args:
            checkpoint_path: the checkpoint; the latest by default.
            predict_keys: the keys of the predictions; all by default.

        Raises:
            ValueError: there is no checkpoint.
        """
        path = self._checkpoint_or_error(checkpoint_path)
        return LivePredictor(
            lambda given: self._build(given, ModeKeys.PREDICT, lambda spec: None),
            self._checkpoint_or_error,
            path,
            predict_keys,
        )

    def forget_models(self) -> None:
        """Clears the cache of built models, so that the next call builds a new one."""
        self._models.clear()

    @staticmethod
    def _restored(
        model: BuiltModel,
        given: ModelInput,
        path: str | None,
        hooks: Sequence[SessionRunHook],
        stack: ExitStack,
        coord: Coordinator,
    ) -> Session:
        """Restores a checkpoint into the session of the default graph's model, for evaluation and
        prediction.
        """
        for hook in hooks:
            stack.callback(hook.close)
        for hook in hooks:
            hook.begin()
        session = model.session
        model.start(given)
        model.load(path)
        for hook in hooks:
            hook.after_create_session(session, coord)
        return session

    # -- export

    def export_saved_model(
        self,
        export_dir_base: str | os.PathLike[str],
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | os.PathLike[str] | None = None,
        experimental_mode: str = ModeKeys.PREDICT,
        *,
        example_inputs: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Exports the model for serving (see `estimator.serving.exporting.export_saved_model`).

        Returns:
            The path of the new folder in `export_dir_base`.
        """
        from estimatorkit.estimator.serving import exporting

        return exporting.export_saved_model(
            self,
            export_dir_base,
            serving_input_receiver_fn,
            assets_extra,
            as_text,
            checkpoint_path,
            experimental_mode,
            example_inputs,
        )

    def export_savedmodel(
        self,
        export_dir_base: str | os.PathLike[str],
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | os.PathLike[str] | None = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """`export_saved_model` by its older name."""
        return self.export_saved_model(
            export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path
        )

    def experimental_export_all_saved_models(
        self,
        export_dir_base: str | os.PathLike[str],
        input_receiver_fn_map: Mapping[str, Callable[[], Any]],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | os.PathLike[str] | None = None,
        *,
        example_inputs: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Exports the model for several modes (see `estimator.serving.exporting`)."""
        from estimatorkit.estimator.serving import exporting

        return exporting.experimental_export_all_saved_models(
            self,
            export_dir_base,
            input_receiver_fn_map,
            assets_extra,
            as_text,
            checkpoint_path,
            example_inputs,
        )

    # -- building

    def _input(
        self, input_fn: Callable[..., Any], mode: str, checkpoint: str | None = ""
    ) -> ModelInput:
        """Calls an `input_fn`; without a checkpoint, for a model that is not cached."""
        given = ModelInput.of(
            lambda: self._call_input_fn(input_fn, mode),
            mode,
            self._config.tf_random_seed,
            self._create_and_assert_global_step,
        )
        return given if checkpoint is not None else replace(given, key=None)

    def _build(
        self,
        given: ModelInput,
        mode: str,
        finish: Callable[[EstimatorSpec], Any],
        warm: bool = False,
    ) -> BuiltModel:
        def model_fn(features: Any, labels: Any) -> EstimatorSpec:
            logger.info("Calling model_fn.")
            spec = self._call_model_fn(features, labels, mode, self.config)
            logger.info("Done calling model_fn.")
            return spec

        def finished(spec: EstimatorSpec) -> Any:
            extra = finish(spec)
            if warm:
                apply_first_values(self._warm_start_settings, spec.scaffold, self.model_dir)
            return extra

        return BuiltModel(given, mode, model_fn, finished, self._setting(mode), initialized=warm)

    def _setting(self, mode: str) -> Setting:
        make_step = self._create_and_assert_global_step
        if self.cluster is None or mode != ModeKeys.TRAIN:
            strategy = self._strategy(mode)
            return Setting(
                self._device_fn,
                session_config=self._session_config,
                is_chief=self._saves,
                strategy=strategy,
                make_global_step=make_step,
            )
        return Setting(
            self._device_fn or TrainingCluster.device_function(self._config.task),
            self.cluster.open_target,
            self._session_config,
            self._config.is_chief,
            make_global_step=make_step,
        )

    @property
    def _made_of(self) -> MadeOf:
        """What its models are built from, besides their inputs."""
        places = (self._model_dir, self._session_config, self._device_fn)
        strategies = (self._train_distribution, self._eval_distribution)
        given = (self._model_fn, self._config, *places, *strategies, self._warm_start_settings)
        return MadeOf(given, repr(self._params))

    def _strategy(self, mode: str) -> Strategy | None:
        """The distribution strategy of a mode."""
        strategies = {
            ModeKeys.TRAIN: self._train_distribution,
            ModeKeys.EVAL: self._eval_distribution,
        }
        return strategies.get(mode)

    def _together(self, mode: str) -> AbstractContextManager[None]:
        """A context manager for running a model together with other processes."""
        strategy = self._strategy(mode)
        seconds = self._config.session_creation_timeout_secs
        return nullcontext() if strategy is None else strategy.together(seconds)

    @property
    def _saves(self) -> bool:
        """Whether this process saves checkpoints."""
        others = (self.cluster, self._strategy(ModeKeys.TRAIN))
        return not is_not_chief(self._config) and all(
            each is None or each.is_chief for each in others
        )

    def _call_input_fn(
        self, input_fn: Callable[..., Any], mode: str, input_context: Any = None
    ) -> Any:
        if not callable(input_fn):
            raise type_error(
                "input_fn must be a function",
                expected="a function without arguments, or of mode, params and config",
                received=repr(input_fn)[:200],
                hint="wrap it: input_fn=lambda: dataset",
            )
        names = arguments_of(input_fn)
        known = {"mode": mode, "params": self.params, "config": self.config}
        if "input_context" in names:
            strategy = self._strategy(mode) or Strategy()
            known["input_context"] = input_context or strategy.input_context
        return input_fn(**{name: known[name] for name in names if name in known})

    def _call_model_fn(
        self, features: Any, labels: Any, mode: str, config: RunConfig
    ) -> EstimatorSpec:
        names = arguments_of(self._model_fn)
        if "labels" not in names and labels is not None:
            raise ValueError("model_fn does not take labels, but input_fn returns labels.")
        known = {"labels": labels, "mode": mode, "params": self.params, "config": config}
        given = {name: known[name] for name in names if name in known}
        spec = self._model_fn(features=features, **given)
        if not isinstance(spec, EstimatorSpec):
            raise value_error(
                "model_fn should return an EstimatorSpec",
                received="None" if spec is None else repr(spec),
                made_at=line_of(self._model_fn),
                hint=f"is a return missing for mode {mode!r}?" if spec is None else None,
            )
        return spec

    # -- for people

    def plan(self, input_fn: Callable[..., Any]) -> str:
        """Describes how training on an input runs: its XLA calls, and the plan of a step.

        Args:
            input_fn: as for `train`. The model is built but not run.
        """
        with self._together(ModeKeys.TRAIN):
            given = self._input(input_fn, ModeKeys.TRAIN)
            model = self._build(given, ModeKeys.TRAIN, lambda spec: reported_loss(spec.loss))
            with closing(model):
                loop = training_loop(model.session, model.spec.train_op, model.extra)
                return loop.loop.describe()

    def summary(self, print_fn: Callable[[str], Any] = print) -> None:
        """Prints the contents of the latest checkpoint: layers, shapes, counts, columns,
        optimizers.

        Args:
            print_fn: called with each line.
        """
        from estimatorkit.estimator import description

        description.summary(self, print_fn)

    def _repr_html_(self) -> str:
        from estimatorkit.estimator import description

        return description.estimator_html(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model_dir={self.model_dir!r})"


def _timestamp(between: str) -> str:
    return time.strftime(f"%Y-%m-%d{between}%H:%M:%S", time.localtime())
