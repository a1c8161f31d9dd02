"""Deep Interest Network: `DIN`, and what models of behaviour sequences share.

Variables: `din/input_from_feature_columns/...` (tables of `shared_embeddings` have exactly their
name), `din/target_attention/...`, `din/hiddenlayer_<i>/{kernel,bias}`, `din/logits/{kernel,bias}`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.layers.feature_column import (
    DenseColumn,
    FeatureColumn,
    input_layer,
    normalize_columns,
)
from estimatorkit.layers.feature_column.layers import (
    as_features,
    as_scope,
    flat_tensor,
    joined_steps,
    steps_of,
)
from estimatorkit.layers.feature_column.sequence import SequenceCategoricalColumn
from estimatorkit.layers.feature_column.weights import WeightMaker
from estimatorkit.ops.array import joining
from estimatorkit.ops.variables.variable_scope import variable_scope
from estimatorkit.premade.classification_heads import classification_head
from estimatorkit.premade.dnn import (
    Activation,
    check_dropout,
    checked_units,
    optimizer_of,
    tower_logits,
)
from estimatorkit.premade.head import Head
from estimatorkit.premade.parts import OptimizerLike, Part, Premade
from estimatorkit.recommend.interaction.target_attention import Dice, TargetAttention
from estimatorkit.train.saving.column_notes import note_columns

ActivationLike = Activation | str
"""A function, None, or 'dice'."""

Sequences = Iterable[tuple[FeatureColumn, FeatureColumn]]


@dataclass(frozen=True)
class Behaviours:
    """A batch of behaviour sequences.

    Attributes:
        target: the items to predict for, `(batch, n)`.
        steps: the behaviours, `(batch, steps, n)`.
        lengths: int64 `(batch,)`.
        negatives: in training, items in place of the behaviours, as `steps`; None if no columns are
            given.
        mode: a `ModeKeys`.
    """

    target: Tensor
    steps: Tensor
    lengths: Tensor
    negatives: Tensor | None
    mode: str


def behaviour_part(
    scope: str,
    interest: Callable[[Behaviours], Tensor],
    hidden_units: Iterable[int],
    feature_columns: Any,
    sequences: Sequences,
    negatives: Sequence[FeatureColumn],
    optimizer: OptimizerLike,
    activation_fn: ActivationLike,
    dropout: float | None,
    batch_norm: bool,
) -> Part:
    """A network over dense columns and the interest that a sequence shows in a target.

    Args:
        scope: the variable scope.
        interest: maps the sequences to `(batch, n)`, further inputs of the network.
        hidden_units, feature_columns, sequences, optimizer, activation_fn, dropout, batch_norm:
            see `DIN`.
        negatives: a sequence column for each of `sequences`, or none; read in training.

    Raises:
        ValueError: an argument is invalid.
    """
    widths, pairs = checked_units(hidden_units), _checked_pairs(sequences)
    columns = normalize_columns(feature_columns)
    used = {
        each.name: each for each in (*columns, *negatives, *(c for pair in pairs for c in pair))
    }
    check_dropout(dropout)

    def logits(features: Any, mode: str, units: int) -> Tensor:
        note_columns(scope, used)
        is_training = mode == ModeKeys.TRAIN
        others = negatives if is_training else ()
        read = [each for each in used.values() if is_training or each not in negatives]
        with variable_scope(scope):
            with variable_scope("input_from_feature_columns"):
                source = as_features(features, read)
                net = input_layer(source, columns)
                found = _behaviours_of(source, pairs, others, mode)
            net = joining.concat([net, interest(found)], 1)
            return tower_logits(
                net,
                mode,
                units,
                widths,
                activation_fn=activation_of(activation_fn, mode),
                dropout=dropout,
                batch_norm=batch_norm,
            )

    return Part(logits, lambda: optimizer_of(optimizer), scope, tuple(used.values()))


def activation_of(activation: ActivationLike, mode: str) -> Any:
    """An activation as a function; 'dice' makes a layer at each call."""
    if activation != "dice":
        return activation
    return lambda net: Dice(name="dice")(net, training=mode == ModeKeys.TRAIN)


def _behaviours_of(
    source: Any, pairs: Sequence[Any], negatives: Sequence[Any], mode: str
) -> Behaviours:
    weights = WeightMaker([GraphKeys.MODEL_VARIABLES])

    def each(function: Callable[..., Any], columns: Iterable[Any]) -> list[Any]:
        found = []
        for column in columns:
            with variable_scope(None, default_name=as_scope(column.scope_name)):
                found.append(function(column, source, weights))
        return found

    histories, targets = zip(*pairs, strict=True)
    with variable_scope("sequence_input_layer"):
        target = joining.concat(each(flat_tensor, targets), 1)
        steps, lengths = joined_steps(each(steps_of, histories), histories)
        others = [tensor for tensor, _ in each(steps_of, negatives)]
    return Behaviours(target, steps, lengths, joining.concat(others, 2) if others else None, mode)


def _is_sequence(column: Any) -> bool:
    # Embedding and indicator columns both qualify: what matters is their ids.
    ids = getattr(column, "categorical_column", None)
    return isinstance(ids, SequenceCategoricalColumn) or not isinstance(column, DenseColumn)


def _checked_pairs(sequences: Any) -> list[tuple[Any, Any]]:
    pairs = [tuple(each) if isinstance(each, (list, tuple)) else (each,) for each in sequences]
    for pair in pairs or [()]:
        fits = len(pair) == 2 and _is_sequence(pair[0]) and not _is_sequence(pair[1])
        if not fits or pair[0].variable_shape != pair[1].variable_shape:
            raise value_error(
                "sequences must be pairs of a sequence column and the column of its target",
                expected="embeddings of the same width, such as [(history, item)]",
                received=repr(pair)[:200],
                hint="item, history = feature_column.shared_embeddings([ids, sequence_ids], 16)",
            )
    return pairs


def head_or_binary(
    head: Head | None, weight_column: Any, label_vocabulary: Any, loss_reduction: str
) -> Head:
    """The given head, or a `BinaryClassHead` of the other arguments."""
    if head is not None:
        return head
    return classification_head(2, weight_column, label_vocabulary, loss_reduction)


class DIN(Premade):
    """Deep Interest Network (Zhou et al. 2018, arXiv:1706.06978).

    A network over dense columns and the interest of a user in the target item: the sum of the
    behaviours of a sequence, weighted by attention (`keras.layers.TargetAttention`).

    Example:
        ```python
        import estimatorkit as tf

        item = tf.feature_column.categorical_column_with_identity("item", 1000)
        viewed = tf.feature_column.sequence_categorical_column_with_identity("viewed", 1000)
        item, viewed = tf.feature_column.shared_embeddings([item, viewed], 16)
        model = tf.estimator.DIN([80, 40], [item], sequences=[(viewed, item)])
        ```

    Labels, metrics and predictions are those of the head; see `DNNClassifier` for two classes.

    Args:
        hidden_units: the width of each hidden layer, for example `[200, 80]`.
        feature_columns: dense columns, the target item's embedding among them.
        sequences: pairs of a sequence column and the column of its target, which share a table
            (`shared_embeddings`). The steps of several sequences, such as items and their
            categories, are concatenated: their lengths must be equal.
        head: determines labels, loss, metrics and predictions; by default a `BinaryClassHead` of
            the arguments `weight_column`, `label_vocabulary` and `loss_reduction`.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        attention_units: the width of each hidden layer of the attention.
        attention_activation: their activation: 'dice' (default), or a function.
        attention_softmax: whether the attention of a sequence sums to 1; False by default, as in
            the paper.
        weight_column, label_vocabulary, loss_reduction, optimizer, dropout, batch_norm, config,
            warm_start_from: see `DNNClassifier`.
        activation_fn: applied after each hidden layer: 'dice' (default), a function, or None.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        hidden_units: Iterable[int],
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        sequences: Sequences,
        head: Head | None = None,
        model_dir: str | os.PathLike[str] | None = None,
        attention_units: Sequence[int] = (80, 40),
        attention_activation: ActivationLike = "dice",
        attention_softmax: bool = False,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: OptimizerLike = "Adagrad",
        activation_fn: ActivationLike = "dice",
        dropout: float | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        batch_norm: bool = False,
    ) -> None:
        attention = checked_units(attention_units)

        def interest(found: Behaviours) -> Tensor:
            layer = TargetAttention(
                attention, attention_activation, attention_softmax, name="target_attention"
            )
            inputs = [found.target, found.steps, found.lengths]
            result: Tensor = layer(inputs, training=found.mode == ModeKeys.TRAIN)
            return result

        part = behaviour_part(
            "din",
            interest,
            hidden_units,
            feature_columns,
            sequences,
            (),
            optimizer,
            activation_fn,
            dropout,
            batch_norm,
        )
        made = head_or_binary(head, weight_column, label_vocabulary, loss_reduction)
        super().__init__(made, [part], model_dir, config, warm_start_from)


__all__ = ["DIN"]
