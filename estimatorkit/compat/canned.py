"""Functions of TensorFlow's private `estimator.estimator` and `estimator.canned`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from typing import Any

from estimatorkit import keras
from estimatorkit.compat.arguments import with_arguments
from estimatorkit.core import builtin_ops
from estimatorkit.core.dtypes import float32, int64
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.nest import flatten
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.evaluation.evaluated_training import step_of
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec
from estimatorkit.estimator.training_cluster import TrainingCluster
from estimatorkit.interop.events import MetricsWriter
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array
from estimatorkit.ops.array.selection import count_nonzero
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.variable_scope import variable_scope
from estimatorkit.premade.dnn import Activation, dnn_part
from estimatorkit.premade.head import Head, Version
from estimatorkit.premade.logit_fns import dnn_logit_fn_builder, linear_logit_fn_builder
from estimatorkit.premade.parts import OptimizerLike, model_fn_of
from estimatorkit.storage.checkpoint import latest_checkpoint
from estimatorkit.train.optimizers.optimizer import Optimizer
from estimatorkit.train.optimizers.optimizers_by_name import get_optimizer_by_name

__dir__ = listing(__name__)

linear_logit_fn_builder_v2 = linear_logit_fn_builder


def load_global_step_from_checkpoint_dir(checkpoint_dir: str) -> int:
    """The global step of a directory's latest checkpoint; 0 if there is none."""
    return step_of(latest_checkpoint(checkpoint_dir))


def write_dict_to_summary(
    output_dir: str, dictionary: Mapping[str, Any], current_global_step: int
) -> None:
    """Writes the metrics of an evaluation to event files.

    Args:
        output_dir: a directory; created if missing.
        dictionary: numbers, arrays or serialized summaries by name; the global step is skipped.
        current_global_step: their step.
    """
    numbers = {key: value for key, value in dictionary.items() if key != GraphKeys.GLOBAL_STEP}
    with closing(MetricsWriter(output_dir)) as writer:
        writer.write(current_global_step, numbers)


def get_replica_device_setter(config: RunConfig) -> Callable[[Any], str] | None:
    """The device function of a cluster's task: variables on the parameter servers, everything else
    on the task; None without parameter servers.
    """
    return TrainingCluster.device_function(config.task)


def dnn_logit_fn_builder_v2(
    units: int,
    hidden_units: Iterable[int],
    feature_columns: Any,
    activation_fn: Activation,
    dropout: float | None,
    batch_norm: bool,
) -> Callable[..., Tensor]:
    """`dnn_logit_fn_builder` without a partitioner; variables are below `dnn/`."""
    build = dnn_logit_fn_builder(
        units, hidden_units, feature_columns, activation_fn, dropout, None, batch_norm
    )

    def dnn_logit_fn(features: Any, mode: str) -> Tensor:
        with variable_scope("dnn"):
            return build(features, mode)

    return dnn_logit_fn


def _dnn_model_fn(
    features: Mapping[str, Any],
    labels: Any,
    mode: str,
    head: Head,
    hidden_units: Iterable[int],
    feature_columns: Any,
    optimizer: OptimizerLike = "Adagrad",
    activation_fn: Activation = nn.relu,
    dropout: float | None = None,
    input_layer_partitioner: Any = None,
    config: Any = None,
    use_tpu: bool = False,
    batch_norm: bool = False,
    *,
    version: Version = 1,
) -> EstimatorSpec:
    """The `model_fn` of `DNNEstimator`, with its arguments.

    Raises:
        ValueError: the features are not a dict, or an argument is invalid.
    """
    if not isinstance(features, dict):
        raise ValueError(
            f"features should be a dictionary of `Tensor`s. Given type: {type(features)}"
        )
    part = dnn_part(
        hidden_units,
        feature_columns,
        optimizer,
        version=version,
        activation_fn=activation_fn,
        dropout=dropout,
        batch_norm=batch_norm,
        partitioner=input_layer_partitioner,
    )
    return model_fn_of(head, [part], version)(features, labels, mode)


dnn_model_fn_v2 = with_arguments(
    __name__,
    "dnn_model_fn_v2",
    _dnn_model_fn,
    "features labels mode head hidden_units feature_columns optimizer activation_fn dropout config "
    "use_tpu batch_norm",
    version=2,
)


def _compute_fraction_of_zero(variables: Any) -> Tensor:
    """The fraction of zeros in variables, float32; NaN if they have no elements.

    Args:
        variables: nested lists of variables or tensors.

    Raises:
        ValueError: there are no variables.
    """
    with get_default_graph().name_scope("zero_fraction"):
        parts = flatten(variables)
        size = elementwise.add_n([array.size(part, out_type=int64) for part in parts])
        zero = size - elementwise.add_n([count_nonzero(part) for part in parts])
        fraction = elementwise.cast(zero, float32) / elementwise.cast(size, float32)
        return builtin_ops.identity(fraction, name="zero_fraction_or_nan")


def get_optimizer_instance(opt: OptimizerLike, learning_rate: Any = None) -> Optimizer:
    """The optimizer of `tf.compat.v1.train` for an argument; see `get_optimizer_by_name`."""
    return get_optimizer_by_name(opt, learning_rate, version=1)


_KERAS_CLASSES = {
    "Adagrad": "Adagrad",
    "Adam": "Adam",
    "Ftrl": "Ftrl",
    "RMSProp": "RMSprop",
    "SGD": "SGD",
}


def get_optimizer_instance_v2(opt: Any, learning_rate: Any = None) -> Any:
    """The optimizer of `tf.keras.optimizers` for an argument.

    Args:
        opt: an optimizer, a function without arguments that returns one, or a name.
        learning_rate: for names only; by default the class's.

    Raises:
        ValueError: the name is unknown, or the object is not a Keras optimizer.
    """
    if isinstance(opt, str):
        name = _KERAS_CLASSES.get(opt)
        if name is None:
            return get_optimizer_by_name(opt)  # the error lists the names
        made = getattr(keras.optimizers, name)
        return made() if not learning_rate else made(learning_rate=learning_rate)
    found = opt() if callable(opt) else opt
    if not isinstance(found, keras.optimizers.Optimizer):
        raise ValueError(
            f"The given object is not a tf.keras.optimizers.Optimizer instance. Given: {found!r}"
        )
    return found
