"""Experiments of `tf.contrib.learn`, as adapters of `train_and_evaluate`.

An `Experiment` combines an estimator with its inputs; `run` calls one of its methods, and an export
strategy exports the model at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from estimatorkit.compat.contrib.learn_estimators import Learner, as_receiver_fn, with_metrics
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.evaluation.continuous_evaluation import SpecEvaluator
from estimatorkit.estimator.run_config import RunConfig as EstimatorRunConfig
from estimatorkit.estimator.serving.exporters import Exporter, LatestExporter
from estimatorkit.estimator.train_spec import EvalSpec, TrainSpec
from estimatorkit.estimator.training_and_evaluation import train_and_evaluate
from estimatorkit.lazy import listing
from estimatorkit.train.hooks.checkpoint_hooks import CheckpointSaverListener
from estimatorkit.train.hooks.hooks import SessionRunHook


class ModeKeys:
    """The modes of a `model_fn`; prediction is called INFER."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


class ExportStrategy(LatestExporter):
    """Exports the model when training ends; see `make_export_strategy`."""

    def _is_wanted(
        self,
        export_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
        estimator: Any,
    ) -> bool:
        return is_the_final_export


def make_export_strategy(
    serving_input_fn: Callable[[], Any],
    default_output_alternative_key: str | None = None,
    assets_extra: Mapping[str, str] | None = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """Returns a strategy that exports the model to `export/Servo` when training ends.

    Args:
        serving_input_fn: returns a `ServingInputReceiver` or `InputFnOps`.
        default_output_alternative_key: must be None, as for `tf.estimator.Estimator`.
        assets_extra: source files by their path in the model's `assets.extra`.
        as_text: write the model as text.
        exports_to_keep: the number of exports to keep; None for all.
        strip_default_attrs: accepted for compatibility only.

    Raises:
        ValueError: `default_output_alternative_key` is given.
    """
    if default_output_alternative_key is not None:
        raise ValueError(
            "default_output_alternative_key is not supported in core Estimator. Given: "
            f"{default_output_alternative_key}"
        )
    return ExportStrategy(
        "Servo", as_receiver_fn(serving_input_fn), assets_extra, as_text, exports_to_keep
    )


class Experiment:
    """An estimator with its training and evaluation.

    Args:
        estimator: a `tf.estimator.Estimator`, or one of contrib.learn.
        train_input_fn, eval_input_fn: as for `Estimator.train` and `Estimator.evaluate`.
        eval_metrics: `MetricSpec`s by name, for estimators of contrib.learn; otherwise None, as
            metrics belong to the model.
        train_steps: the final global step; None trains until the input ends.
        eval_steps: batches per evaluation; None for all.
        train_monitors, eval_hooks: hooks.
        eval_delay_secs, continuous_eval_throttle_secs: for evaluators of clusters.
        min_eval_frequency: 0 evaluates only at the end; otherwise every checkpoint is evaluated.
        export_strategies: one or more strategies or `Exporter`s.
        saving_listeners: `CheckpointSaverListener`s.
        local_eval_frequency, delay_workers_by_global_step, train_steps_per_iteration,
            checkpoint_and_export, check_interval_secs: accepted for compatibility only.

    Raises:
        ValueError: `estimator` or a strategy has the wrong type, or `eval_metrics` are given.
    """

    def __init__(
        self,
        estimator: Any,
        train_input_fn: Callable[..., Any],
        eval_input_fn: Callable[..., Any],
        eval_metrics: Any = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Iterable[SessionRunHook] | None = None,
        eval_hooks: Iterable[SessionRunHook] | None = None,
        local_eval_frequency: int | None = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: int | None = None,
        delay_workers_by_global_step: bool = False,
        export_strategies: Exporter | Iterable[Exporter] | None = None,
        train_steps_per_iteration: int | None = None,
        checkpoint_and_export: bool = False,
        saving_listeners: Iterable[CheckpointSaverListener] | None = None,
        check_interval_secs: float = 5,
    ) -> None:
        if isinstance(estimator, Learner):
            estimator = with_metrics(estimator.core, eval_metrics)
            eval_metrics = None
        if not isinstance(estimator, Estimator):
            raise value_error(
                "`estimator` must implement `tf.estimator.Estimator`",
                received=type(estimator).__name__,
            )
        if eval_metrics is not None:
            raise ValueError(
                "`eval_metrics` must be `None` with `tf.estimator.Estimator`. Use "
                "`eval_metric_ops` in `tf.estimator.EstimatorSpec` instead, or add_metrics."
            )
        self._estimator = estimator
        self._train_steps = train_steps
        self._train_input_fn = train_input_fn
        self._train_hooks = list(train_monitors or ())
        self._saving_listeners = list(saving_listeners or ())
        self._evaluate_at_checkpoints = min_eval_frequency != 0
        self._eval_spec = EvalSpec(
            eval_input_fn,
            eval_steps,
            hooks=eval_hooks,
            start_delay_secs=eval_delay_secs,
            throttle_secs=0,
        )
        self.reset_export_strategies(export_strategies)

    @property
    def estimator(self) -> Any:
        """The estimator."""
        return self._estimator

    @property
    def eval_metrics(self) -> None:
        """None: metrics belong to the model."""
        return None

    @property
    def train_steps(self) -> int | None:
        """The final global step."""
        return self._train_steps

    @property
    def eval_steps(self) -> int | None:
        """The number of batches per evaluation."""
        return self._eval_spec.steps

    def extend_train_hooks(self, additional_hooks: Iterable[SessionRunHook]) -> None:
        """Adds training hooks."""
        self._train_hooks.extend(additional_hooks)

    def reset_export_strategies(self, new_export_strategies: Any = None) -> list[Exporter]:
        """Replaces the export strategies; returns the old ones.

        Raises:
            ValueError: one of them is not a strategy.
        """
        given = new_export_strategies or ()
        strategies = [given] if isinstance(given, Exporter) else list(given)
        for strategy in strategies:
            if not isinstance(strategy, Exporter):
                raise value_error(
                    "export_strategies must be made by make_export_strategy, or be Exporters",
                    received=type(strategy).__name__,
                )
        old = list(self._eval_spec.exporters)
        self._eval_spec = self._eval_spec._replace(exporters=tuple(strategies))
        return old

    def train(self, delay_secs: float | None = None) -> Any:
        """Trains; returns the estimator."""
        return self._estimator.train(
            self._train_input_fn,
            self._train_hooks,
            max_steps=self._train_steps,
            saving_listeners=self._saving_listeners,
        )

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> Any:
        """Evaluates the latest checkpoint; returns the metrics."""
        spec = self._eval_spec
        return self._estimator.evaluate(spec.input_fn, spec.steps, spec.hooks, name=name)

    def train_and_evaluate(self) -> tuple[Any, list[Any]]:
        """Trains, evaluates checkpoints, and exports; returns metrics and exports."""
        if self._evaluate_at_checkpoints:
            train_spec = TrainSpec(
                self._train_input_fn, self._train_steps, self._train_hooks, self._saving_listeners
            )
            metrics, exports = train_and_evaluate(self._estimator, train_spec, self._eval_spec)
            return metrics, exports
        self.train()
        return self._evaluated_and_exported(self._eval_spec)

    local_run = train_and_evaluate
    continuous_train_and_eval = train_and_evaluate

    def test(self) -> tuple[Any, list[Any]]:
        """Smoke test: trains one step, evaluates one batch and exports."""
        self._estimator.train(
            self._train_input_fn,
            self._train_hooks,
            steps=1,
            saving_listeners=self._saving_listeners,
        )
        return self._evaluated_and_exported(self._eval_spec._replace(steps=1))

    def _evaluated_and_exported(self, spec: EvalSpec) -> tuple[Any, list[Any]]:
        evaluation = SpecEvaluator(self._estimator, spec)
        finished = evaluation.evaluate(self._estimator._checkpoint_or_error())
        evaluation.export(is_final=True)
        return finished.metrics, evaluation.export_results


_SCHEDULES = (
    "continuous_train_and_eval",
    "evaluate",
    "local_run",
    "test",
    "train",
    "train_and_evaluate",
)


def run(
    experiment_fn: Callable[..., Experiment],
    output_dir: str | None = None,
    schedule: str | None = None,
    run_config: EstimatorRunConfig | None = None,
    hparams: Any = None,
) -> Any:
    """Creates an experiment and calls one of its methods (`learn_runner.run`).

    Args:
        experiment_fn: `experiment_fn(output_dir)`, or `experiment_fn(run_config, hparams)` if a
            `run_config` is given.
        output_dir: the model's directory.
        schedule: the method's name; 'train_and_evaluate' by default.
        run_config: instead of `output_dir`; its `model_dir` must be set.
        hparams: passed to `experiment_fn`.

    Returns:
        The method's result.

    Raises:
        TypeError: `experiment_fn` is not a function, or does not return an `Experiment`.
        ValueError: both or neither of `output_dir` and `run_config` are given, or the schedule is
            unknown.
    """
    if not callable(experiment_fn):
        raise TypeError("Experiment builder [experiment_fn] is not callable.")
    if output_dir is not None and run_config is not None:
        raise ValueError("Cannot provide both `output_dir` and `run_config`")
    if run_config is not None:
        if run_config.model_dir is None:
            raise ValueError("Must set value for `model_dir` in `run_config`.")
        experiment = experiment_fn(run_config, hparams)
    elif output_dir is None:
        raise ValueError("Must set value for `output_dir` or `run_config`.")
    elif hparams is not None:
        raise ValueError("Must set `run_config` to use `hparams`.")
    else:
        experiment = experiment_fn(output_dir)
    if not isinstance(experiment, Experiment):
        raise TypeError(
            "Experiment builder did not return an Experiment instance, got "
            f"{type(experiment)} instead."
        )
    name = schedule or "train_and_evaluate"
    if name not in _SCHEDULES:
        raise value_error(
            f"Schedule references non-existent task {name}",
            expected=f"one of {', '.join(_SCHEDULES)}",
            hint=did_you_mean(name, _SCHEDULES),
        )
    return getattr(experiment, name)()


def RunConfig(
    master: str | None = None,
    num_cores: int = 0,
    log_device_placement: bool = False,
    gpu_memory_fraction: float = 1.0,
    tf_random_seed: int | None = None,
    save_summary_steps: int | None = 100,
    save_checkpoints_secs: float | None = 600,
    save_checkpoints_steps: int | None = None,
    keep_checkpoint_max: int | None = 5,
    keep_checkpoint_every_n_hours: float = 10000,
    log_step_count_steps: int | None = 100,
    protocol: str | None = None,
    evaluation_master: str = "",
    model_dir: str | None = None,
    session_config: Any = None,
    session_creation_timeout_secs: int = 7200,
) -> EstimatorRunConfig:
    """Creates a `tf.estimator.RunConfig` from contrib.learn's arguments.

    `master`, `num_cores`, `log_device_placement`, `gpu_memory_fraction` and `evaluation_master` are
    accepted for compatibility only; `save_checkpoints_steps` overrides seconds.
    """
    return EstimatorRunConfig(
        model_dir=model_dir,
        tf_random_seed=tf_random_seed,
        save_summary_steps=save_summary_steps,
        save_checkpoints_steps=save_checkpoints_steps,
        save_checkpoints_secs=None if save_checkpoints_steps is not None else save_checkpoints_secs,
        session_config=session_config,
        keep_checkpoint_max=keep_checkpoint_max,
        keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
        log_step_count_steps=log_step_count_steps,
        protocol=protocol,
        session_creation_timeout_secs=session_creation_timeout_secs,
    )


__dir__ = listing(__name__)
