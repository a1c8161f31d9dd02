"""Deep Interest Evolution Network: `DIEN`.

Variables, beside those of the network as in `din`, in the scope `dien`: `interest_extractor/...`,
`target_attention/...`, `interest_evolution/...`, and `auxiliary/...` in training.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from estimatorkit.core.dtypes import float32, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.layers.dense_and_embedding import Dense
from estimatorkit.layers.feature_column import FeatureColumn
from estimatorkit.layers.recurrent.recurrent import RNN
from estimatorkit.layers.recurrent.recurrent_kinds import GRU
from estimatorkit.ops.array import array, indexing, joining, rearrange, selection
from estimatorkit.ops.math import elementwise, random, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.variable_scope import variable_scope
from estimatorkit.premade.dnn import checked_units
from estimatorkit.premade.head import Head
from estimatorkit.premade.parts import OptimizerLike, Premade
from estimatorkit.recommend.din import (
    ActivationLike,
    Behaviours,
    Sequences,
    behaviour_part,
    head_or_binary,
)
from estimatorkit.recommend.interaction.interest_evolution import AUGRUCell
from estimatorkit.recommend.interaction.target_attention import TargetAttention


def sampled_steps(steps: Tensor, lengths: Tensor) -> Tensor:
    """Steps drawn from all sequences of a batch, each with the same probability, as negatives.

    Args:
        steps: `(batch, steps, n)`.
        lengths: int64 `(batch,)`.

    Returns:
        As `steps`; zeros where the batch has no step.
    """
    ends = reduce.cumsum(lengths)
    shape = array.shape(steps)
    drawn = random.random_uniform(joining.stack([shape[0] * shape[1]]), dtype=float32)
    place = elementwise.cast(drawn * elementwise.cast(ends[-1], float32), int64)
    place = elementwise.minimum(place, ends[-1] - 1)  # where rounding would go up
    row = elementwise.minimum(
        selection.searchsorted(ends, place, side="right", out_type=int64),
        elementwise.cast(shape[0] - 1, int64),
    )
    start = indexing.gather(ends - lengths, row)
    flat = array.reshape(steps, joining.stack([shape[0] * shape[1], shape[2]]))
    at = row * elementwise.cast(shape[1], int64) + elementwise.maximum(place - start, 0)
    return array.reshape(indexing.gather(flat, at), shape)


def auxiliary_loss(
    states: Tensor, clicked: Tensor, unclicked: Tensor, mask: Tensor, units: Sequence[int]
) -> Tensor:
    """The mean cross entropy of telling the next behaviour from a negative by the state before.

    Args:
        states: of the interest extractor, `(batch, steps, n)`.
        clicked, unclicked: the next behaviours and the negatives, `(batch, steps, m)`.
        mask: bool `(batch, steps)`: the steps that count.
        units: the width of each hidden layer of the network.

    Returns:
        A float32 scalar; 0 if no step counts.
    """
    hidden = [Dense(width, "sigmoid", name=f"hidden_{at}") for at, width in enumerate(units)]
    layers = [*hidden, Dense(1, name="logits")]

    def logits(items: Tensor) -> Tensor:
        net = joining.concat([states, items], -1)
        for layer in layers:
            net = layer(net)
        return array.squeeze(net, [-1])

    # -log sigmoid(x) and -log(1 - sigmoid(x)).
    losses = nn.softplus(-logits(clicked)) + nn.softplus(logits(unclicked))
    weights = elementwise.cast(mask, losses.dtype)
    total = reduce.reduce_sum(losses * weights)
    return total / elementwise.maximum(reduce.reduce_sum(weights), 1.0)


class DIEN(Premade):
    """Deep Interest Evolution Network (Zhou et al. 2019, arXiv:1809.03672).

    A GRU extracts interests from a sequence of behaviours, and a second one, whose update gate is
    scaled by the attention of the target item (`keras.layers.AUGRUCell`), follows those that
    concern it; its last state is an input of the network. In training, an auxiliary loss makes
    the state after a step predict the next behaviour: a network, as in the authors' code, must
    distinguish it from a negative. The loss is the mean over all steps that have a next one.

    Labels, metrics and predictions are those of the head; see `DNNClassifier` for two classes.
    The auxiliary loss is summarized as `regularization_loss`; it is not part of evaluations.

    Args:
        negatives: a sequence column for each of `sequences`, with an item that was not clicked for
            each behaviour, and the same lengths; by default, behaviours drawn from the batch.
        auxiliary_weight: the weight of the auxiliary loss; 0 for none.
        auxiliary_units: the width of each hidden layer of its network.
        attention_softmax: whether the attention of a sequence sums to 1, as in the paper (default).
        update: how the attention changes the update gate; see `keras.layers.AUGRUCell`.
        hidden_units, feature_columns, sequences, head, model_dir, attention_units,
            attention_activation, weight_column, label_vocabulary, optimizer, activation_fn,
            dropout, config, warm_start_from, loss_reduction, batch_norm: see `DIN`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        hidden_units: Iterable[int],
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        sequences: Sequences,
        negatives: Iterable[FeatureColumn] | None = None,
        head: Head | None = None,
        model_dir: str | os.PathLike[str] | None = None,
        auxiliary_weight: float = 1.0,
        auxiliary_units: Sequence[int] = (100, 50),
        attention_units: Sequence[int] = (80, 40),
        attention_activation: ActivationLike = "dice",
        attention_softmax: bool = True,
        update: Literal["scale", "replace", "released"] = "scale",
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
        pairs, others = list(sequences), list(negatives or ())
        if others and len(others) != len(pairs):
            raise value_error(
                "negatives must be as many columns as sequences",
                expected=f"{len(pairs)} sequence columns, or none",
                received=len(others),
            )
        attention, of_auxiliary = checked_units(attention_units), checked_units(auxiliary_units)
        AUGRUCell(1, update)  # raises if `update` is unknown

        def interest(found: Behaviours) -> Tensor:
            training = found.mode == ModeKeys.TRAIN
            mask = rearrange.sequence_mask(found.lengths, array.shape(found.steps)[1])
            units = int(found.steps.shape[-1] or 0)
            extractor = GRU(units, return_sequences=True, name="interest_extractor")
            states = extractor(found.steps, mask=mask)
            if training and auxiliary_weight:
                unclicked = found.negatives
                if unclicked is None:
                    unclicked = sampled_steps(found.steps, found.lengths)
                with variable_scope("auxiliary"):
                    loss = auxiliary_loss(
                        states[:, :-1],
                        found.steps[:, 1:],
                        unclicked[:, 1:],
                        mask[:, 1:],
                        of_auxiliary,
                    )
                get_default_graph().add_to_collection(
                    GraphKeys.REGULARIZATION_LOSSES, loss * auxiliary_weight
                )
            scoring = TargetAttention(
                attention, attention_activation, attention_softmax, name="target_attention"
            )
            inputs = [found.target, states, found.lengths]
            _, scores = scoring(inputs, training=training, return_attention_scores=True)
            evolution = RNN(AUGRUCell(units, update, name="augru_cell"), name="interest_evolution")
            last: Tensor = evolution((states, array.expand_dims(scores, -1)), mask=mask)
            return last

        part = behaviour_part(
            "dien",
            interest,
            hidden_units,
            feature_columns,
            pairs,
            others,
            optimizer,
            activation_fn,
            dropout,
            batch_norm,
        )
        made = head_or_binary(head, weight_column, label_vocabulary, loss_reduction)
        super().__init__(made, [part], model_dir, config, warm_start_from)


__all__ = ["DIEN"]
