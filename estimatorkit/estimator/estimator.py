"""`Estimator`: trains, evaluates and predicts with a model that a `model_fn` builds."""

from __future__ import annotations

import copy
import functools
import inspect
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.checkpoint import (
    checkpoint_exists,
    latest_checkpoint,
    list_variables,
    load_variable,
    read_checkpoint,
)
from estimatorkit.core.directory_lock import DirectoryLock
from estimatorkit.core.errors import OutOfRangeError, explain
from estimatorkit.core.events import MetricsWriter
from estimatorkit.core.graph import Graph
from estimatorkit.core.session import Session
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import (
    global_variables_initializer,
    local_variables_initializer,
)
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.iterator_ops import make_one_shot_iterator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.train.global_steps import get_global_step, get_or_create_global_step
from estimatorkit.train.hooks import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    LossLogHook,
    NanTensorHook,
    SessionRunHook,
    StopAtStepHook,
    check_hooks,
)
from estimatorkit.train.log import ensure_visible, logger, terminal
from estimatorkit.train.progress import ProgressHook
from estimatorkit.train.records import RecordHook
from estimatorkit.train.saver import Saver, restore_checkpoint, saved_items
from estimatorkit.train.training import (
    CheckedLoop,
    empty_input,
    next_stretch,
    run_hooked,
    run_training,
)

_MODEL_FN_ARGUMENTS = {"features", "labels", "mode", "params", "config"}
_MOST_STEPS = 1 << 30


class Estimator:
    """Trains, evaluates and predicts with a model.

    Args:
        model_fn: `model_fn(features, labels, mode, params, config)`, of which only `features` is
            needed; it builds the model in the default graph and returns an `EstimatorSpec`.
        model_dir: where checkpoints and logs go; by default that of `config`, then a temporary
            directory. A model that is there is gone on with.
        config: a `RunConfig`.
        params: a dict given to `model_fn` and `input_fn`.
        warm_start_from: must be None.

    Raises:
        ValueError: an argument does not fit.
    """

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec],
        model_dir: str | os.PathLike[str] | None = None,
        config: RunConfig | None = None,
        params: Mapping[str, Any] | None = None,
        warm_start_from: Any = None,
    ) -> None:
        self._check_not_overridden()
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        if warm_start_from is not None:
            raise ValueError(
                explain(
                    "warm_start_from is not supported",
                    expected="None",
                    received=warm_start_from,
                    hint="give the new estimator the old model_dir, or use train.Saver in model_fn",
                )
            )
        _check_model_fn(model_fn, params)
        self._model_fn = model_fn
        self._params = dict(params or {})
        self._config = _checked_config(config, model_dir)

    def _check_not_overridden(self) -> None:
        members = {name for name in vars(Estimator) if not name.startswith("_")}
        members -= {"model_fn"}
        overridden = sorted(
            name
            for kind in type(self).__mro__
            if kind not in (Estimator, object)
            for name in members & set(vars(kind))
        )
        if overridden:
            raise ValueError(
                f"Subclasses of Estimator cannot override members of Estimator. {type(self)} does "
                f"override {overridden}"
            )

    # -- what it is

    @property
    def model_dir(self) -> str:
        """Where checkpoints and logs go."""
        return str(self._config.model_dir)

    @property
    def config(self) -> RunConfig:
        """How it runs."""
        return copy.copy(self._config)

    @property
    def params(self) -> dict[str, Any]:
        """A copy of the parameters."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """The model function with `params` bound: `(features, labels, mode, config)`."""

        def bound(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            return self._call_model_fn(features, labels, mode, config)

        return bound

    def eval_dir(self, name: str | None = None) -> str:
        """Where evaluations called `name` write."""
        return os.path.join(self.model_dir, "eval" if not name else f"eval_{name}")

    def latest_checkpoint(self) -> str | None:
        """The newest whole checkpoint's path, or None."""
        return latest_checkpoint(self.model_dir)

    def get_variable_names(self) -> list[str]:
        """The names of the variables in the newest checkpoint.

        Raises:
            ValueError: there is no checkpoint.
        """
        return [name for name, _ in list_variables(self._checkpoint_or_error())]

    def get_variable_value(self, name: str) -> NDArray[Any]:
        """The value of a variable in the newest checkpoint.

        Raises:
            ValueError: there is no checkpoint.
            NotFoundError: the variable is not in it.
        """
        return load_variable(self._checkpoint_or_error(), name)

    def _checkpoint_or_error(self, path: str | os.PathLike[str] | None = None) -> str:
        if path is not None:
            if not checkpoint_exists(path):
                raise ValueError(
                    f"The passed save_path is not a valid checkpoint: {os.fspath(path)}"
                )
            return os.fspath(path)
        found = self.latest_checkpoint()
        if found is None:
            raise ValueError(
                explain(
                    f"Could not find trained model in model_dir: {self.model_dir}",
                    expected="a checkpoint",
                    received="none that is whole",
                    hint="call train() first, or give the model_dir that it was called with",
                )
            )
        return found

    # -- training

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[SessionRunHook] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[CheckpointSaverListener] | None = None,
    ) -> Estimator:
        """Trains until the steps are done, a hook stops it, or the input ends.

        Args:
            input_fn: gives a `Dataset` of (features, labels) or the tensors of a batch. May take
                `mode`, `params` and `config`.
            hooks: called around the steps.
            steps: how many more steps.
            max_steps: the global step to end at; nothing happens where it is reached already.
            saving_listeners: called around the saving of checkpoints.

        Returns:
            The estimator.

        Raises:
            ValueError: both `steps` and `max_steps` are given, or one is not positive.
            NanLossDuringTrainingError: the loss became NaN.
            FailedPreconditionError: another process trains in `model_dir`.
        """
        _check_steps(steps, max_steps)
        given_hooks = check_hooks(hooks)
        listeners = _as_list(saving_listeners)
        for listener in listeners:
            if not isinstance(listener, CheckpointSaverListener):
                raise TypeError(
                    "saving_listeners must be a list of CheckpointSaverListener, "
                    f"given: {listener!r}"
                )
        ensure_visible()
        with DirectoryLock(self.model_dir):
            start = self.latest_checkpoint()
            done = 0 if start is None else int(load_variable(start, "global_step"))
            if max_steps is not None and done >= max_steps:
                logger.info("Skipping training since max_steps has already saved.")
                return self
            loss = self._train(input_fn, given_hooks, steps, max_steps, listeners, start)
        if loss is not None:
            logger.info("Loss for final step: %s.", loss)
        return self

    def _train(
        self,
        input_fn: Callable[..., Any],
        hooks: list[SessionRunHook],
        steps: int | None,
        max_steps: int | None,
        saving_listeners: Sequence[CheckpointSaverListener],
        start: str | None,
    ) -> NDArray[Any] | None:
        graph = Graph()
        graph.seed = self._config.tf_random_seed
        with graph.as_default(), ExitStack() as closing:
            get_or_create_global_step(graph)
            spec = self._build(input_fn, ModeKeys.TRAIN)
            given = [*hooks, *spec.training_chief_hooks, *spec.training_hooks]
            saving = self._saver_hooks(given, saving_listeners)
            all_hooks: list[SessionRunHook] = [NanTensorHook(spec.loss)]
            all_hooks += [hook for hook in given if hook not in saving]
            if steps is not None or max_steps is not None:
                all_hooks.append(StopAtStepHook(steps, max_steps))
            all_hooks += self._reports(steps, max_steps)
            all_hooks += saving  # last: where a hook before them fails, nothing bad is saved
            for hook in all_hooks:
                closing.callback(hook.close)
            for hook in all_hooks:
                hook.begin()
            initializer = [global_variables_initializer(), local_variables_initializer()]
            graph.finalize()
            session = Session(graph=graph)
            closing.callback(session.close)
            if start is None:
                session.run(initializer[0])
            else:
                self._restore(session, start, saving)
            session.run(initializer[1])
            for hook in all_hooks:
                hook.after_create_session(session, None)
            loss = run_training(session, spec.train_op, spec.loss, all_hooks)
            for hook in all_hooks:
                hook.end(session)
            return loss

    def _reports(self, steps: int | None, max_steps: int | None) -> list[SessionRunHook]:
        """The hooks that tell people how the training goes."""
        reports: list[SessionRunHook] = []
        if terminal():
            reports.append(ProgressHook(steps, max_steps))
        elif self._config.log_step_count_steps:
            reports.append(LossLogHook(self._config.log_step_count_steps))
        if self._config.save_summary_steps:
            reports.append(RecordHook(self.model_dir, self._config.save_summary_steps))
        return reports

    def _saver_hooks(
        self, given: Sequence[SessionRunHook], listeners: Sequence[CheckpointSaverListener]
    ) -> list[CheckpointSaverHook]:
        """The hooks that save: those that the caller gave, or one that follows the config."""
        savers = [hook for hook in given if isinstance(hook, CheckpointSaverHook)]
        config = self._config
        cadence = (config.save_checkpoints_steps, config.save_checkpoints_secs)
        if not savers and cadence != (None, None):
            saver = Saver(
                max_to_keep=config.keep_checkpoint_max,
                keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
            )
            savers.append(
                CheckpointSaverHook(
                    self.model_dir,
                    save_secs=config.save_checkpoints_secs,
                    save_steps=config.save_checkpoints_steps,
                    saver=saver,
                )
            )
        if savers:
            savers[0].add_listeners(listeners)
        elif listeners:
            raise ValueError(
                "There should be a CheckpointSaverHook to use saving_listeners. Please set one of "
                "the RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
            )
        return savers

    def _restore(self, session: Session, path: str, saving: Sequence[CheckpointSaverHook]) -> None:
        logger.info("Restoring parameters from %s", path)
        restore_checkpoint(session, read_checkpoint(path), saved_items())
        for hook in saving:
            hook.restored_at(int(session.run(get_global_step(session.graph))))

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
            steps: how many batches; all by default.
            hooks: called around the batches; one that takes part in single steps costs their speed.
            checkpoint_path: the checkpoint; the newest by default.
            name: names this evaluation, where there are several.

        Returns:
            The metrics by name, with 'loss' (the mean of the batches' losses) and 'global_step'.

        Raises:
            ValueError: there is no trained model, the input is empty, or `steps` is not positive.
        """
        _check_steps(steps, None)
        given_hooks = check_hooks(hooks)
        ensure_visible()
        path = self._checkpoint_or_error(checkpoint_path)
        graph = Graph()
        graph.seed = self._config.tf_random_seed
        with graph.as_default(), ExitStack() as closing:
            counter = get_or_create_global_step(graph)
            spec = self._build(input_fn, ModeKeys.EVAL)
            metrics = _with_loss(spec)
            all_hooks = [*given_hooks, *spec.evaluation_hooks]
            session = self._restored_session(graph, path, all_hooks, closing)
            logger.info("Starting evaluation at %s", _timestamp("T"))
            started = time.perf_counter()
            values = _run_metrics(session, metrics, steps, counter, all_hooks)
            for hook in all_hooks:
                hook.end(session)
        logger.info("Inference Time : %.5fs", time.perf_counter() - started)
        logger.info("Finished evaluation at %s", _timestamp("-"))
        step = int(values["global_step"])
        text = ", ".join(f"{key} = {value}" for key, value in sorted(values.items()))
        logger.info("Saving dict for global step %d: %s", step, text)
        writer = MetricsWriter(self.eval_dir(name))
        writer.write(step, {key: value for key, value in values.items() if key != "global_step"})
        writer.close()
        return values

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
            input_fn: gives features, or (features, labels) of which labels are not used. It must
                end.
            predict_keys: which predictions; all by default.
            hooks: called around the batches.
            checkpoint_path: the checkpoint; the newest by default.
            yield_single_examples: one example at a time, rather than a batch.

        Yields:
            A dict of arrays by key (or an array, where the model gives one tensor).

        Raises:
            ValueError: there is no trained model, or no prediction is called so.
        """
        given_hooks = check_hooks(hooks)
        ensure_visible()
        path = self._checkpoint_or_error(checkpoint_path)
        return self._predict(input_fn, predict_keys, given_hooks, path, yield_single_examples)

    def _predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: str | Sequence[str] | None,
        hooks: Sequence[SessionRunHook],
        path: str,
        yield_single_examples: bool,
    ) -> Iterator[Any]:
        graph = Graph()
        graph.seed = self._config.tf_random_seed
        with ExitStack() as closing:
            with graph.as_default():
                get_or_create_global_step(graph)
                spec = self._build(input_fn, ModeKeys.PREDICT)
                predictions = _chosen(spec.predictions, predict_keys)
                all_hooks = [*hooks, *spec.prediction_hooks]
                session = self._restored_session(graph, path, all_hooks, closing)
            # Features that are no input would come for ever: they are one batch.
            endless = not any(op.type == "IteratorGetNext" for op in graph.get_operations())
            stop: list[str] = ["there is one batch"] if endless else []
            while True:
                try:
                    batch = run_hooked(session, predictions, all_hooks, stop)
                except OutOfRangeError:
                    break
                if yield_single_examples:
                    yield from _single_examples(batch)
                else:
                    yield batch
                if stop:
                    break
            for hook in all_hooks:
                hook.end(session)

    @staticmethod
    def _restored_session(
        graph: Graph, path: str, hooks: Sequence[SessionRunHook], closing: ExitStack
    ) -> Session:
        """A session with a checkpoint's values, for evaluation and prediction."""
        for hook in hooks:
            closing.callback(hook.close)
        for hook in hooks:
            hook.begin()
        initializer = local_variables_initializer()
        graph.finalize()
        session = Session(graph=graph)
        closing.callback(session.close)
        restore_checkpoint(session, read_checkpoint(path), saved_items(), iterators=False)
        session.run(initializer)
        for hook in hooks:
            hook.after_create_session(session, None)
        return session

    # -- building

    def _build(self, input_fn: Callable[..., Any], mode: str) -> EstimatorSpec:
        features, labels = _features_and_labels(self._call_input_fn(input_fn, mode), mode)
        logger.info("Calling model_fn.")
        spec = self._call_model_fn(features, labels, mode, self.config)
        logger.info("Done calling model_fn.")
        return spec

    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str) -> Any:
        if not callable(input_fn):
            raise TypeError(
                explain(
                    "input_fn must be a function",
                    expected="a function without arguments, or of mode, params and config",
                    received=repr(input_fn)[:200],
                    hint="wrap it: input_fn=lambda: dataset",
                )
            )
        known = {"mode": mode, "params": self.params, "config": self.config}
        return input_fn(**{name: known[name] for name in _arguments(input_fn) if name in known})

    def _call_model_fn(
        self, features: Any, labels: Any, mode: str, config: RunConfig
    ) -> EstimatorSpec:
        names = _arguments(self._model_fn)
        if "labels" not in names and labels is not None:
            raise ValueError("model_fn does not take labels, but input_fn returns labels.")
        known = {"labels": labels, "mode": mode, "params": self.params, "config": config}
        spec = self._model_fn(features, **{name: known[name] for name in names if name in known})
        if not isinstance(spec, EstimatorSpec):
            raise ValueError("model_fn should return an EstimatorSpec.")
        return spec

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model_dir={self.model_dir!r})"


# -- checking arguments


def _check_steps(steps: int | None, max_steps: int | None) -> None:
    if steps is not None and max_steps is not None:
        raise ValueError("Can not provide both steps and max_steps.")
    if steps is not None and steps <= 0:
        raise ValueError(f"Must specify steps > 0, given: {steps}")
    if max_steps is not None and max_steps <= 0:
        raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _arguments(function: Callable[..., Any]) -> list[str]:
    """The names of a function's arguments, but those that `functools.partial` has given."""
    given = function.keywords if isinstance(function, functools.partial) else {}
    return [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and name not in given
    ]


def _check_model_fn(model_fn: Callable[..., Any], params: Mapping[str, Any] | None) -> None:
    names = _arguments(model_fn)
    if "features" not in names:
        raise ValueError(f"model_fn ({model_fn}) must include features argument.")
    if params is not None and "params" not in names:
        raise ValueError(
            f"model_fn ({model_fn}) does not include params argument, but params ({params}) is "
            "passed to Estimator."
        )
    unknown = sorted(set(names) - _MODEL_FN_ARGUMENTS)
    if unknown:
        raise ValueError(f"model_fn ({model_fn}) has following not expected args: {unknown}")


def _checked_config(
    config: RunConfig | None, model_dir: str | os.PathLike[str] | None
) -> RunConfig:
    if config is not None and not isinstance(config, RunConfig):
        raise ValueError(f"config must be an instance of `RunConfig`, but provided {config}.")
    config = config or RunConfig()
    given = None if model_dir is None else os.fspath(model_dir)
    if given is not None and config.model_dir not in (None, given):
        raise ValueError(
            "`model_dir` are set both in constructor and `RunConfig`, but with different values. "
            f"In constructor: '{given}', in `RunConfig`: '{config.model_dir}'"
        )
    chosen = given or config.model_dir
    if chosen is None:
        chosen = tempfile.mkdtemp(prefix="estimatorkit-")
        logger.warning("Using temporary folder as model directory: %s", chosen)
    return config.replace(model_dir=os.fspath(chosen))


# -- inputs and outputs


def _features_and_labels(result: Any, mode: str) -> tuple[Any, Any]:
    if isinstance(result, Dataset):
        result = make_one_shot_iterator(result).get_next()
    if isinstance(result, (list, tuple)) and not hasattr(result, "_fields"):
        if len(result) != 2:
            raise ValueError("input_fn should return (features, labels) as a len 2 tuple.")
        features, labels = result
        return features, None if mode == ModeKeys.PREDICT else labels
    return result, None


def _with_loss(spec: EstimatorSpec) -> dict[str, tuple[Any, Any]]:
    """The metrics of a model, with the mean of the batches' losses."""
    from estimatorkit.layers.metrics import mean

    metrics = dict(spec.eval_metric_ops)
    if "loss" not in metrics:
        metrics["loss"] = mean(spec.loss)
    return metrics


def _run_metrics(
    session: Session,
    metrics: Mapping[str, tuple[Any, Any]],
    steps: int | None,
    counter: Any,
    hooks: Sequence[SessionRunHook],
) -> dict[str, Any]:
    """Runs the updates over the input, many batches a call, and gives the final values."""
    names = list(metrics)
    targets = [
        update.op if isinstance(update, Tensor) else update for _, update in metrics.values()
    ]
    values = [_value_of(metrics[name][0]) for name in names]
    after = [*values, counter._as_graph_element()]
    loop = CheckedLoop(session, [], targets, after, "evaluation_step")
    first = int(session.run(counter))
    done = 0
    final: list[Any] = []
    stop: list[str] = []
    while not stop and done < (steps or _MOST_STEPS):
        # Hooks count in steps: those of an evaluation go on from the model's.
        until, due = next_stretch(hooks, first + done)
        try:
            part = loop.run(min(until - first, steps or _MOST_STEPS) - done, due, stop)
        except OutOfRangeError as error:
            if done == 0:
                raise empty_input("evaluation") from error
            break
        done += part.count
        final = part.after
        if part.ended or not loop.has_input:
            break
    results = {
        name: value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        for name, value in zip(names, final, strict=False)
    }
    results["global_step"] = np.int64(final[-1])
    return results


def _value_of(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    raise TypeError(explain("a metric's value must be a tensor", received=repr(value)[:200]))


def _chosen(predictions: Any, keys: str | Sequence[str] | None) -> Any:
    if keys is None:
        return predictions
    if not isinstance(predictions, Mapping):
        raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
    wanted = [keys] if isinstance(keys, str) else list(keys)
    chosen = {key: value for key, value in predictions.items() if key in wanted}
    if not chosen:
        raise ValueError(
            f"Expected to run at least one output from {predictions.keys()}, provided {wanted}."
        )
    return chosen


def _single_examples(batch: Any) -> Iterator[Any]:
    if not isinstance(batch, Mapping):
        yield from batch
        return
    length = None
    for key, value in batch.items():
        if np.ndim(value) == 0 or (length is not None and len(value) != length):
            raise ValueError(
                f"Batch length of predictions should be same. {key} has different batch length "
                "than others."
            )
        length = len(value)
    for index in range(length or 0):
        yield {key: value[index] for key, value in batch.items()}


def _timestamp(between: str) -> str:
    return time.strftime(f"%Y-%m-%d{between}%H:%M:%S", time.localtime())
