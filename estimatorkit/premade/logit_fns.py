"""Functions from features to logits, for custom `model_fn`s with a head:
`dnn_logit_fn_builder`, `linear_logit_fn_builder`, `call_logit_fn` (`tf.estimator.experimental`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.arguments import arguments_of
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.layers.feature_column import (
    FeatureColumn,
    check_sparse_combiner,
    linear_model,
    normalize_columns,
)
from estimatorkit.premade.dnn import Activation, layered_logits
from estimatorkit.premade.linear import summarize_weights


def dnn_logit_fn_builder(
    units: int,
    hidden_units: Iterable[int],
    feature_columns: FeatureColumn | Iterable[FeatureColumn],
    activation_fn: Activation,
    dropout: float | None,
    input_layer_partitioner: Any,
    batch_norm: bool,
) -> Callable[..., Tensor]:
    """Returns a function that builds a deep network.

    Its variables are `hiddenlayer_<i>/{kernel,bias}` and `logits/{kernel,bias}` in the variable
    scope where it is called.

    Args:
        units: the number of logits.
        hidden_units: the width of each hidden layer.
        feature_columns: dense columns.
        activation_fn: applied after each hidden layer; None for none.
        dropout: the probability that an output of a hidden layer is dropped in training; None for
            no dropout.
        input_layer_partitioner: partitions the embedding tables; None for no partitioning.
        batch_norm: whether to normalize after each hidden layer.

    Returns:
        `logit_fn(features, mode)`, which returns float32 `(batch, units)`.

    Raises:
        ValueError: `units` is not an integer.

    Source: `tf.compat.v1.estimator.experimental.dnn_logit_fn_builder`.
    """
    _check_units(units)
    columns, widths = normalize_columns(feature_columns), tuple(hidden_units)

    def dnn_logit_fn(features: Any, mode: str) -> Tensor:
        return layered_logits(
            features,
            mode,
            units,
            widths,
            columns,
            activation_fn=activation_fn,
            dropout=dropout,
            batch_norm=batch_norm,
            partitioner=input_layer_partitioner,
            outer=_name_scope(),
        )

    return dnn_logit_fn


def linear_logit_fn_builder(
    units: int,
    feature_columns: FeatureColumn | Iterable[FeatureColumn],
    sparse_combiner: str = "sum",
) -> Callable[..., Tensor]:
    """Returns a function that builds a linear model.

    Its variables are `linear_model/<column>/weights` and `linear_model/bias_weights` in the
    variable scope where it is called.

    Args:
        units: the number of logits.
        feature_columns: dense and categorical columns.
        sparse_combiner: how to combine several values of a categorical column: 'sum' (default),
            'mean' or 'sqrtn'.

    Returns:
        `logit_fn(features)`, which returns float32 `(batch, units)`.

    Raises:
        ValueError: an argument is invalid.

    Source: `tf.compat.v1.estimator.experimental.linear_logit_fn_builder`.
    """
    _check_units(units)
    check_sparse_combiner(sparse_combiner)
    columns = normalize_columns(feature_columns)

    def linear_logit_fn(features: Any) -> Tensor:
        made: dict[Any, Any] = {}
        logits = linear_model(features, columns, units, sparse_combiner, cols_to_vars=made)
        summarize_weights(made, units, _name_scope())
        return logits

    return linear_logit_fn


def call_logit_fn(
    logit_fn: Callable[..., Any],
    features: Any,
    mode: str = ModeKeys.TRAIN,
    params: Any = None,
    config: Any = None,
) -> Tensor | Mapping[str, Tensor]:
    """Calls a logit function with the arguments that it accepts.

    Args:
        logit_fn: takes `features` and any of the others, all by name.
        features, mode, params, config: its arguments; those that it does not accept are omitted.

    Returns:
        The result of `logit_fn`: logits, or a dict of logits by head.

    Raises:
        ValueError: `logit_fn` returns something else.

    Source: `tf.estimator.experimental.call_logit_fn`.
    """
    known = {"mode": mode, "params": params, "config": config}
    names = arguments_of(logit_fn)
    result = logit_fn(features=features, **{key: known[key] for key in known if key in names})
    by_head = isinstance(result, Mapping) and all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in result.items()
    )
    if not by_head and not isinstance(result, Tensor):
        raise value_error(
            "logit_fn should return a Tensor or a dictionary mapping strings to Tensors",
            received=f"logit_fn returned: {result!r}"[:200],
        )
    logits: Tensor | Mapping[str, Tensor] = result
    return logits


def _check_units(units: Any) -> None:
    if not isinstance(units, int) or isinstance(units, bool):
        raise ValueError(f"units must be an int.  Given type: {type(units)}")


def _name_scope() -> str | None:
    """The current name scope with a trailing slash; None at the root."""
    name = get_default_graph().get_name_scope()
    return f"{name}/" if name else None


__all__ = ["call_logit_fn", "dnn_logit_fn_builder", "linear_logit_fn_builder"]
