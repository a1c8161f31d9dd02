"""`RunConfig`: the runtime configuration of estimators (`tf.estimator.RunConfig`)."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from inspect import signature
from typing import Any, Self

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.distribute.cluster_spec import ClusterSpec
from estimatorkit.distribute.cluster_task import CHIEF, MASTER, PS, WORKER, ClusterTask
from estimatorkit.distribute.replicas.strategies import Strategy


class _Unset:
    def __repr__(self) -> str:
        return "<not given>"


_UNSET: Any = _Unset()

_FIELDS = (
    "model_dir",
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
    "train_distribute",
    "device_fn",
    "protocol",
    "eval_distribute",
    "experimental_distribute",
    "experimental_max_worker_delay_secs",
    "session_creation_timeout_secs",
    "checkpoint_save_graph_def",
    "max_steps_ahead",
    "steps_in_flight",
    "stuck_secs",
)


_BOUNDS = {
    "save_summary_steps": ">= 0",
    "save_checkpoints_steps": ">= 0",
    "save_checkpoints_secs": ">= 0",
    "keep_checkpoint_max": ">= 0",
    "keep_checkpoint_every_n_hours": "> 0",
    "log_step_count_steps": "> 0",
    "session_creation_timeout_secs": "> 0",
    "max_steps_ahead": ">= 0",
    "steps_in_flight": "> 0",
    "stuck_secs": "> 0",
}


class RunConfig:
    """The configuration of an `Estimator`: immutable; `replace` returns a modified copy.

    Subclasses may override properties and instances may have further attributes; the copy that an
    estimator holds keeps both.

    Args:
        model_dir: where checkpoints and logs go.
        tf_random_seed: the graph's seed. Runs with the same seed are identical, bit for bit.
        save_summary_steps: steps between summaries; None for none.
        save_checkpoints_steps: steps between checkpoints; 0 for none.
        save_checkpoints_secs: seconds between checkpoints; 600 by default. Not together with steps.
            Both None: no checkpoints.
        session_config: the `ConfigProto` of sessions; in a cluster, its default sets
            `device_filters`.
        keep_checkpoint_max: how many recent checkpoints to keep; 0 or None keeps all.
        keep_checkpoint_every_n_hours: additionally keep one checkpoint per this many hours.
        log_step_count_steps: steps between log lines, in place of which a terminal shows a bar;
            None for neither.
        train_distribute, eval_distribute: a `distribute.Strategy` for training, for evaluation.
        session_creation_timeout_secs: how long the processes of a cluster wait for each other.
        experimental_distribute: a `contrib.distribute.DistributeConfig` with both strategies.
        device_fn, protocol, experimental_max_worker_delay_secs: for clusters.
        checkpoint_save_graph_def: whether to write the graph beside each checkpoint.
        max_steps_ahead: the staleness bound of asynchronous training: a worker this many steps
            ahead of the slowest one waits for it; None for no bound. Not in TensorFlow.
        steps_in_flight: 1, or 2: parameter servers then send what the next step reads while a
            worker computes a step, so that it lacks the update of that one, and of others' as
            before. It counts as a step ahead. Not in TensorFlow.
        stuck_secs: the timeout for a stuck peer: a process of a cluster exits with code 138 after
            this many seconds, and 20 times the longest wait so far, without a step. Not in
            TensorFlow.

    The cluster comes from the environment (see `distribute.cluster_task`).

    Raises:
        ValueError: a value is out of range, both steps and seconds between checkpoints are given,
            or TF_CONFIG is invalid.
    """

    def __init__(
        self,
        model_dir: str | os.PathLike[str] | None = None,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_steps: int | None = _UNSET,
        save_checkpoints_secs: float | None = _UNSET,
        session_config: Any = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        train_distribute: Any = None,
        device_fn: Any = None,
        protocol: str | None = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: int | None = None,
        session_creation_timeout_secs: int = 7200,
        checkpoint_save_graph_def: bool = True,
        *,
        max_steps_ahead: int | None = None,
        steps_in_flight: int = 1,
        stuck_secs: float = 600.0,
    ) -> None:
        steps, secs = save_checkpoints_steps, save_checkpoints_secs
        if _UNSET not in (steps, secs):
            _check_one(steps, secs)
        if secs is _UNSET:
            secs = 600 if steps is _UNSET else None
        self._task = ClusterTask.of_environment()
        self._model_dir = _one_of(model_dir, self._task.model_dir)
        self._tf_random_seed = tf_random_seed
        self._save_summary_steps = save_summary_steps
        self._save_checkpoints_steps = None if steps is _UNSET else steps
        self._save_checkpoints_secs = secs
        if session_config is None and self._task.cluster.jobs:
            session_config = _cluster_session_config(self._task)
        self._session_config = session_config
        self._keep_checkpoint_max = keep_checkpoint_max
        self._keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self._log_step_count_steps = log_step_count_steps
        self._train_distribute = train_distribute
        self._device_fn = device_fn
        self._protocol = protocol
        self._eval_distribute = eval_distribute
        self._experimental_distribute = experimental_distribute
        self._experimental_max_worker_delay_secs = experimental_max_worker_delay_secs
        self._session_creation_timeout_secs = session_creation_timeout_secs
        self._checkpoint_save_graph_def = checkpoint_save_graph_def
        self._max_steps_ahead = max_steps_ahead
        self._steps_in_flight = steps_in_flight
        self._stuck_secs = stuck_secs
        self._validate()

    def _check_kinds(self) -> None:
        for name in ("tf_random_seed", "experimental_max_worker_delay_secs"):
            value = getattr(self, "_" + name)
            if value is not None and (isinstance(value, bool) or not hasattr(value, "__index__")):
                end = "" if name == "tf_random_seed" else " if set"
                article = "" if name == "tf_random_seed" else "an "
                raise value_error(f"{name} must be {article}integer{end}", received=repr(value))
        if not _is_session_config(self._session_config):
            raise value_error(
                "session_config must be instance of ConfigProto",
                received=repr(self._session_config)[:200],
            )
        device_fn = self._device_fn
        if device_fn is not None and not (
            callable(device_fn) and list(signature(device_fn).parameters) == ["op"]
        ):
            raise value_error(
                'device_fn must be callable with exactly one argument "op"',
                received=repr(device_fn)[:200],
            )
        if self._protocol not in (None, "grpc", "grpc+verbs"):
            raise value_error(
                "protocol should be grpc or grpc+verbs", received=repr(self._protocol)
            )

    def _validate(self) -> None:
        if self._model_dir == "":
            raise ValueError("model_dir should be non-empty.")
        for name, bound in _BOUNDS.items():
            value = getattr(self, "_" + name)
            if value is not None and (value < 0 or (value == 0 and bound == "> 0")):
                raise value_error(f"{name} should be {bound}", received=value)
        most = 2 if self._max_steps_ahead != 0 else 1
        if self._steps_in_flight > most:
            raise value_error(
                "steps_in_flight is out of range",
                expected="1 or 2, and 1 with max_steps_ahead=0",
                received=self._steps_in_flight,
            )
        if getattr(self._experimental_distribute, "remote_cluster", None) is not None:
            raise value_error(
                "experimental_distribute.remote_cluster is not supported",
                expected="one process per task, started with its own TF_CONFIG",
                hint="use `estimatorkit launch` to start a cluster's processes",
            )
        self._check_kinds()
        for name in ("train_distribute", "eval_distribute"):
            strategy = self._strategy(name)
            if strategy is not None and not isinstance(strategy, Strategy):
                raise value_error(
                    f"{name} must be a strategy",
                    expected="distribute.MirroredStrategy() or MultiWorkerMirroredStrategy()",
                    received=repr(strategy)[:200],
                )

    def _strategy(self, name: str) -> Strategy | None:
        """The strategy from the argument of this name, or from `experimental_distribute`.

        Raises:
            ValueError: both are given.
        """
        own: Strategy | None = getattr(self, "_" + name)
        inner: Strategy | None = getattr(self._experimental_distribute, name, None)
        if own is not None and inner is not None:
            raise ValueError(
                f"Either `{name}` or `experimental_distribute.{name}` can be set, not both."
            )
        return inner if own is None else own

    @property
    def model_dir(self) -> str | None:
        """Where checkpoints and logs go."""
        return self._model_dir

    @property
    def tf_random_seed(self) -> int | None:
        """The graph's seed."""
        return self._tf_random_seed

    @property
    def save_summary_steps(self) -> int | None:
        """Steps between summaries."""
        return self._save_summary_steps

    @property
    def save_checkpoints_steps(self) -> int | None:
        """Steps between checkpoints."""
        return self._save_checkpoints_steps

    @property
    def save_checkpoints_secs(self) -> float | None:
        """Seconds between checkpoints."""
        return self._save_checkpoints_secs

    @property
    def session_config(self) -> Any:
        """The `ConfigProto` of sessions."""
        return self._session_config

    @property
    def keep_checkpoint_max(self) -> int | None:
        """The number of recent checkpoints to keep."""
        return self._keep_checkpoint_max

    @property
    def keep_checkpoint_every_n_hours(self) -> float:
        """Hours between checkpoints to keep permanently."""
        return self._keep_checkpoint_every_n_hours

    @property
    def log_step_count_steps(self) -> int | None:
        """Steps between log lines."""
        return self._log_step_count_steps

    @property
    def train_distribute(self) -> Strategy | None:
        """The strategy for training."""
        return self._strategy("train_distribute")

    @property
    def device_fn(self) -> Any:
        """The argument, unchanged."""
        return self._device_fn

    @property
    def protocol(self) -> str | None:
        """The argument, unchanged."""
        return self._protocol

    @property
    def eval_distribute(self) -> Strategy | None:
        """The strategy for evaluation."""
        return self._strategy("eval_distribute")

    @property
    def experimental_max_worker_delay_secs(self) -> int | None:
        """The argument, unchanged."""
        return self._experimental_max_worker_delay_secs

    @property
    def session_creation_timeout_secs(self) -> int:
        """The argument, unchanged."""
        return self._session_creation_timeout_secs

    @property
    def checkpoint_save_graph_def(self) -> bool:
        """Whether to write the graph beside each checkpoint."""
        return self._checkpoint_save_graph_def

    @property
    def max_steps_ahead(self) -> int | None:
        """The staleness bound of asynchronous training. Not in TensorFlow."""
        return self._max_steps_ahead

    @property
    def steps_in_flight(self) -> int:
        """How many steps with parameter servers overlap. Not in TensorFlow."""
        return self._steps_in_flight

    @property
    def stuck_secs(self) -> float:
        """The timeout for a stuck peer, in seconds. Not in TensorFlow."""
        return self._stuck_secs

    @property
    def task(self) -> ClusterTask:
        """This process's cluster and role. Not in TensorFlow."""
        return self._task

    @property
    def cluster_spec(self) -> ClusterSpec:
        """The tasks that train together; empty for single processes and evaluators."""
        return self._task.cluster

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints; a single process is its own chief."""
        return self._task.is_chief

    @property
    def task_type(self) -> str:
        """This process's role."""
        return self._task.type

    @property
    def task_id(self) -> int:
        """This process's index within its role."""
        return self._task.index

    @property
    def num_worker_replicas(self) -> int:
        """The number of workers, including the chief; 0 for an evaluator."""
        return self._task.num_worker_replicas

    @property
    def num_ps_replicas(self) -> int:
        """The number of parameter servers."""
        return self._task.num_ps_replicas

    @property
    def global_id_in_cluster(self) -> int | None:
        """This process's index in the cluster, 0 for the chief; None for an evaluator."""
        return self._task.global_id_in_cluster

    @property
    def master(self) -> str:
        """The session target for training."""
        return self._task.master

    @property
    def evaluation_master(self) -> str:
        """The session target for evaluation."""
        return self._task.evaluation_master

    @property
    def service(self) -> Any:
        """The value of `service` in the environment, unchanged."""
        return self._task.service

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with some properties replaced, of the same class and attributes.

        Raises:
            ValueError: a property does not exist, cannot be replaced, or is out of range.
        """
        for name in changes:
            if name not in _FIELDS:
                raise ValueError(
                    f"Replacing {name} is not supported. Allowed properties are {list(_FIELDS)}."
                    + (f" {hint}" if (hint := did_you_mean(name, _FIELDS)) else "")
                )
        steps, secs = changes.get("save_checkpoints_steps"), changes.get("save_checkpoints_secs")
        _check_one(steps, secs)
        # Setting steps replaces seconds, and vice versa.
        if steps is not None:
            changes["save_checkpoints_secs"] = None
        elif secs is not None:
            changes["save_checkpoints_steps"] = None
        changed = copy.copy(self)
        if changes.get("model_dir") is not None:
            changes["model_dir"] = os.fspath(changes["model_dir"])
        for name, value in changes.items():
            setattr(changed, f"_{name}", value)
        changed._validate()
        return changed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunConfig) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        default = {name: each.default for name, each in signature(RunConfig).parameters.items()}
        default |= {"save_checkpoints_steps": None, "save_checkpoints_secs": 600}
        given = {name: getattr(self, "_" + name) for name in _FIELDS}
        if given["session_config"] is not None:
            default["session_config"] = default_session_config()
        shown = [f"{name}={value!r}" for name, value in given.items() if value != default[name]]
        return f"RunConfig({', '.join(shown)})"


def is_not_chief(config: RunConfig) -> bool:
    """Whether a subclass overrides `is_chief` to be False for the chief process."""
    return config.task.is_chief and not config.is_chief


def default_session_config(device_filters: Sequence[str] = ()) -> Any:
    """The default `ConfigProto` of estimators.

    Source: `get_default_session_config` of TensorFlow's `run_config`.

    Args:
        device_filters: the devices that a session may use, by prefix; all by default.
    """
    from estimatorkit.interop.protos import ConfigProto, GraphOptions, RewriterConfig

    rewriting = RewriterConfig(meta_optimizer_iterations=RewriterConfig.ONE)
    return ConfigProto(
        allow_soft_placement=True,
        graph_options=GraphOptions(rewrite_options=rewriting),
        device_filters=device_filters,
    )


def _cluster_session_config(task: ClusterTask) -> Any:
    """The `ConfigProto` of a task that only communicates with parameter servers; else None."""
    filters = {
        CHIEF: ["/job:ps", "/job:chief"],
        MASTER: ["/job:ps", "/job:master"],
        WORKER: ["/job:ps", f"/job:worker/task:{task.index}"],
        PS: ["/job:ps", "/job:worker", "/job:chief", "/job:master"],
    }.get(task.type)
    return None if filters is None else default_session_config(filters)


def _is_session_config(value: Any) -> bool:
    if value is None:
        return True
    from estimatorkit.interop.protos import ConfigProto

    return isinstance(value, ConfigProto)


def _check_one(steps: int | None, secs: float | None) -> None:
    if steps is not None and secs is not None:
        raise ValueError("`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set.")


def _one_of(given: str | os.PathLike[str] | None, environment: str | None) -> str | None:
    """The given folder, or that of the environment; if both are set, they must be equal."""
    path = None if given is None else os.fspath(given)
    if path and environment and path != environment:
        raise ValueError(
            "`model_dir` provided in RunConfig construct, if set, must have the same value as the "
            f'model_dir in TF_CONFIG. model_dir: {path}\nTF_CONFIG["model_dir"]: {environment}.\n'
        )
    return environment if path is None else path
