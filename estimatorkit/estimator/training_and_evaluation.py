"""`train_and_evaluate`: training, evaluation and export, in one process or a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.distribute.cluster_task import CHIEF, EVALUATOR, MASTER, PS, WORKER, ClusterTask
from estimatorkit.estimator.arguments import as_list
from estimatorkit.estimator.cluster_roles import run_role
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.evaluation.early_stopping import EarlyStopping
from estimatorkit.estimator.evaluation.evaluated_training import EvaluatedRun, Results
from estimatorkit.estimator.train_spec import EvalSpec, TrainSpec, check_names
from estimatorkit.logger import ensure_visible


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec | Sequence[EvalSpec]
) -> tuple[Any, Any]:
    """Trains, evaluates checkpoints as they are saved, and exports (`tf.estimator`).

    Each checkpoint is evaluated when it is saved, unless the previous evaluation started less than
    `throttle_secs` ago, except for the initial one before training. The last checkpoint is always
    evaluated, even if training ends before `max_steps`. `RunConfig` determines when checkpoints are
    saved.

    Differences from TensorFlow: exporters always get their final call, whatever ended the training;
    there may be several `EvalSpec`s; if an earlier call reached `max_steps`, its results are
    returned (TensorFlow returns None); a killed call resumes from its last checkpoint.

    Args:
        estimator: an `Estimator`.
        train_spec: the training. If `max_steps` is None, each call trains until the input ends.
        eval_spec: the evaluation, or a list of evaluations with distinct names.

    Returns:
        The metrics and the list of exporters' results of the last evaluation; for a list of
        `EvalSpec`s, both by name ('eval' by default). In a cluster, processes other than the
        evaluator return (None, None).

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: names of evaluations or exporters are repeated, or the process has no role, such
            as a second evaluator.
        SystemExit: in processes of a cluster (see `cluster_roles.run_role`).
    """
    specs = _checked(estimator, train_spec, eval_spec)
    ensure_visible()
    task = estimator.config.task
    results: Results | None
    if not task.is_alone or task.type == EVALUATOR:
        results = run_role(estimator, train_spec, specs)
    else:
        results = EvaluatedRun(estimator, train_spec, specs).results()
    if results is None:
        return None, None
    if isinstance(eval_spec, EvalSpec):
        return results[eval_spec.label]
    return (
        {label: metrics for label, (metrics, _) in results.items()},
        {label: exports for label, (_, exports) in results.items()},
    )


def _checked(estimator: Any, train_spec: Any, eval_spec: Any) -> dict[str, EvalSpec]:
    """The `EvalSpec`s by label."""
    specs = [eval_spec] if isinstance(eval_spec, EvalSpec) else as_list(eval_spec)
    for spec in specs or [None]:
        _check_type("eval_spec", spec, EvalSpec)
    _check_type("estimator", estimator, Estimator)
    _check_type("train_spec", train_spec, TrainSpec)
    _check_task(estimator.config.task)
    labels = [spec.label for spec in specs]
    if len(set(labels)) < len(labels):
        raise value_error(
            "the evaluations must have unique names",
            expected="a different EvalSpec(name=...) for each",
            received=", ".join(labels),
        )
    check_names([exporter.name for spec in specs for exporter in spec.exporters])
    stopping = [hook for hook in train_spec.hooks if isinstance(hook, EarlyStopping)]
    if len(stopping) > 1:
        raise value_error(
            "at most one EarlyStopping is allowed",
            received=len(stopping),
            hint="combine it with stop_if_no_decrease_hook and similar hooks",
        )
    return dict(zip(labels, specs, strict=True))


def _check_task(task: ClusterTask) -> None:
    """Raises ValueError if the process has no role in `train_and_evaluate`."""
    if task.type == EVALUATOR and task.index:
        raise ValueError(
            "For distributed training, there can only be one `evaluator` task (with task id 0). "
            f"Given task id {task.index}"
        )
    if task.type == "local":
        raise ValueError("`task.type` in TF_CONFIG cannot be `local`.")
    roles = [CHIEF, MASTER, PS, EVALUATOR, WORKER]
    if task.type not in roles:
        raise ValueError(
            f"Task type {task.type} is not supported. Supported task types are {', '.join(roles)}."
        )


def _check_type(name: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(
            f"`{name}` must have type `tf.estimator.{kind.__name__}`. Got: {type(value)}"
        )
