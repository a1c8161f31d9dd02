"""`tf.contrib.tpu`: runs programs written for TPUs as estimators on the available devices.

`TPUEstimator` is an `Estimator` that passes `params["batch_size"]` to functions and accepts
`TPUEstimatorSpec`, like TensorFlow's with `use_tpu=False`. JAX finds the devices; `TPUConfig` is
stored without effect.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from estimatorkit.compat.arguments import signature_of
from estimatorkit.core.errors import value_error
from estimatorkit.estimator import run_config
from estimatorkit.estimator.arguments import arguments_of
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.lazy import listing
from estimatorkit.train.hooks.hooks import SessionRunArgs, SessionRunContext, SessionRunHook
from estimatorkit.train.optimizers.optimizer import Optimizer
from estimatorkit.train.optimizers.wrapping_optimizer import WrappingOptimizer

_RESERVED = ("batch_size", "context")


class InputPipelineConfig:
    """Where a TPU's input is computed; has no effect."""

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


class TPUConfig(NamedTuple):
    """TPU settings; stored without effect."""

    iterations_per_loop: int = 2
    num_shards: int | None = None
    num_cores_per_replica: int | None = None
    per_host_input_for_training: Any = True
    tpu_job_name: str | None = None
    initial_infeed_sleep_secs: int | None = None
    input_partition_dims: Any = None
    eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1
    experimental_host_call_every_n_steps: int = 1
    experimental_allow_per_host_v2_parallel_get_next: bool = False
    experimental_feed_hook: Any = None


class RunConfig(run_config.RunConfig):
    """`tf.estimator.RunConfig` with a `TPUConfig`.

    Args:
        tpu_config: a `TPUConfig`.
        evaluation_master, master, cluster: stored without effect; this process does the work.
        **kwargs: those of `tf.estimator.RunConfig`.
    """

    def __init__(
        self,
        tpu_config: TPUConfig | None = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._tpu_config = tpu_config or TPUConfig()
        self._named_master = master or ""
        self._named_evaluation_master = evaluation_master or self._named_master
        self._cluster = cluster

    @property
    def tpu_config(self) -> TPUConfig:
        """As given."""
        return self._tpu_config

    @property
    def master(self) -> str:
        """As given."""
        return self._named_master

    @property
    def evaluation_master(self) -> str:
        """As given, or `master`."""
        return self._named_evaluation_master

    @property
    def cluster(self) -> Any:
        """As given."""
        return self._cluster

    def replace(self, **changes: Any) -> Self:
        """A copy with some properties changed; see `tf.estimator.RunConfig.replace`."""
        tpu_config = changes.pop("tpu_config", self._tpu_config)
        changed = super().replace(**changes)
        changed._tpu_config = tpu_config
        return changed


HostCall = tuple[Callable[..., Any], Any]


class _Spec(NamedTuple):
    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metrics: HostCall | None = None
    export_outputs: Any = None
    scaffold_fn: Callable[[], Any] | None = None
    host_call: HostCall | None = None
    training_hooks: Sequence[Any] = ()
    evaluation_hooks: Sequence[Any] = ()
    prediction_hooks: Sequence[Any] = ()


class TPUEstimatorSpec(_Spec):
    """The result of a `model_fn` of a `TPUEstimator`.

    Args:
        mode, predictions, loss, train_op, export_outputs, training_hooks, evaluation_hooks,
            prediction_hooks: those of `tf.estimator.EstimatorSpec`.
        eval_metrics: a function and its tensors (a list, or a dict by argument); it returns the
            `eval_metric_ops`.
        scaffold_fn: returns the `Scaffold`.
        host_call: a function and its tensors; the operations it returns run at each step.
    """

    __slots__ = ()

    def as_estimator_spec(self) -> EstimatorSpec:
        """The equivalent `EstimatorSpec`."""
        hooks = () if self.host_call is None else (_FetchHook(_called(self.host_call)),)
        return EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=None if self.eval_metrics is None else _called(self.eval_metrics),
            export_outputs=self.export_outputs,
            scaffold=None if self.scaffold_fn is None else self.scaffold_fn(),
            training_hooks=(*(self.training_hooks or ()), *hooks),
            evaluation_hooks=(*(self.evaluation_hooks or ()), *hooks),
            prediction_hooks=(*(self.prediction_hooks or ()), *hooks),
        )


def _called(call: HostCall) -> Any:
    """Calls the function of a pair with its tensors."""
    if not isinstance(call, (tuple, list)) or len(call) != 2 or not callable(call[0]):
        raise value_error(
            "eval_metrics and host_call must be tuples of a function and its tensors",
            received=repr(call)[:200],
        )
    function, tensors = call
    if isinstance(tensors, Mapping):
        return function(**tensors)
    return function(*tensors) if isinstance(tensors, (tuple, list)) else function(tensors)


class _FetchHook(SessionRunHook):
    """Runs operations at each step."""

    def __init__(self, fetches: Any) -> None:
        self._fetches = fetches

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        return None if self._fetches is None else SessionRunArgs(self._fetches)


class TPUEstimator(Estimator):
    """An estimator that passes the batch size to its functions.

    Args:
        model_fn: as for `Estimator`; `params` has `batch_size` and `use_tpu` (False). It returns a
            `TPUEstimatorSpec` or an `EstimatorSpec`.
        model_dir: the directory of checkpoints and logs.
        config: an `estimator.tpu.RunConfig`.
        params: a dict; `batch_size` and `context` are reserved.
        train_batch_size, eval_batch_size, predict_batch_size: `params["batch_size"]` of each mode,
            in examples.
        use_tpu, batch_axis, eval_on_tpu, export_to_tpu, export_to_cpu, embedding_config_spec,
            export_saved_model_api_version: accepted for compatibility only: JAX finds the
            devices, and an exported model runs on any.
        warm_start_from: as for `Estimator`.

    Raises:
        ValueError: `config` is not an `estimator.tpu.RunConfig`, or a reserved key is in `params`.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any] | None = None,
        model_dir: str | os.PathLike[str] | None = None,
        config: RunConfig | None = None,
        params: Mapping[str, Any] | None = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Any = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
        embedding_config_spec: Any = None,
        export_saved_model_api_version: Any = None,
    ) -> None:
        if not isinstance(config, RunConfig):
            raise value_error(
                "`config` must be provided with type `tpu_config.RunConfig`",
                received=type(config).__name__,
                hint="estimator.tpu.RunConfig takes the same arguments, and tpu_config",
            )
        reserved = [name for name in _RESERVED if name in (params or {})]
        if reserved:
            raise ValueError(f"{list(_RESERVED)} are reserved keys but existed in params {params}.")
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }
        adapted = self._adapted(model_fn)
        super().__init__(adapted, model_dir, config, params, warm_start_from)

    def _told(self, mode: str) -> dict[str, Any]:
        """The `params` in a mode."""
        size = self._batch_sizes[mode]
        sizes = {} if size is None else {"batch_size": size}
        return {**self.params, "use_tpu": False, **sizes}

    def _adapted(self, model_fn: Callable[..., Any]) -> Callable[..., EstimatorSpec]:
        """Wraps a model function to return an `EstimatorSpec`."""
        names = arguments_of(model_fn)

        def adapted(features: Any, **given: Any) -> EstimatorSpec:
            known = {**given, "params": self._told(given["mode"])}
            known["features"] = features
            spec = model_fn(**{name: known[name] for name in names if name in known})
            return spec.as_estimator_spec() if isinstance(spec, TPUEstimatorSpec) else spec

        wanted = dict.fromkeys([*names, "mode"], ...)
        adapted.__signature__ = signature_of(wanted)  # type: ignore[attr-defined]
        return adapted

    def _call_input_fn(
        self, input_fn: Callable[..., Any], mode: str, input_context: Any = None
    ) -> Any:
        if callable(input_fn) and "params" in arguments_of(input_fn):
            input_fn = functools.partial(input_fn, params=self._told(mode))
        return super()._call_input_fn(input_fn, mode, input_context)


class CrossShardOptimizer(WrappingOptimizer):
    """Returns the optimizer itself: there is a single shard here.

    Args:
        opt: the optimizer.
        reduction: 'weighted_mean' or another of `tf.losses.Reduction`; equivalent for one shard.
        name, group_assignment: accepted for compatibility only.
    """

    def __init__(
        self,
        opt: Optimizer,
        reduction: str = "weighted_mean",
        name: str = "CrossShardOptimizer",
        group_assignment: Any = None,
    ) -> None:
        super().__init__(opt, name)


__dir__ = listing(__name__)
