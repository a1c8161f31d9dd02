"""`AutoInt`: self-attention among fields, optionally beside a deep network."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.ops.nn import nn
from estimatorkit.premade.dnn import Activation
from estimatorkit.premade.head import Head
from estimatorkit.premade.parts import OptimizerLike
from estimatorkit.recommend.interaction.field_attention import FieldAttention
from estimatorkit.recommend.recommender import (
    Columns,
    Inputs,
    Network,
    Recommender,
    layer,
)


class AutoInt(Recommender):
    """A click-through model: layers of multi-head self-attention among fields (AutoInt,
    arXiv:1810.11921), with `hidden_units` beside a deep network (AutoInt+).

    Columns that are not embeddings are read by the deep network only. Labels, metrics and
    predictions: see `DNNClassifier`. By default there is no linear model.

    Args:
        feature_columns, hidden_units, model_dir, linear_feature_columns, head, n_classes,
            weight_column, label_vocabulary, optimizer, linear_optimizer, activation_fn, dropout,
            batch_norm, config, warm_start_from, loss_reduction: see `DeepFM`.
        attention_layers: the number of attention layers; 3 by default.
        num_heads: the number of heads of each; 2 by default.
        key_dim: the length of each head's vectors; 8 by default.
        use_residual: whether attention layers have residual connections; True by default.

    Raises:
        ValueError: an argument is invalid, or the dimensions of the embedding columns differ.
    """

    def __init__(
        self,
        feature_columns: Columns,
        hidden_units: Iterable[int] = (),
        model_dir: str | os.PathLike[str] | None = None,
        linear_feature_columns: Columns | None = None,
        head: Head | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: OptimizerLike = "Adagrad",
        linear_optimizer: OptimizerLike = "Ftrl",
        activation_fn: Activation = nn.relu,
        dropout: float | None = None,
        batch_norm: bool = False,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        attention_layers: int = 3,
        num_heads: int = 2,
        key_dim: int = 8,
        use_residual: bool = True,
    ) -> None:
        attention: dict[str, Any] = {
            "num_heads": num_heads,
            "key_dim": key_dim,
            "use_residual": use_residual,
        }
        FieldAttention(**attention)  # raises if invalid

        def interaction(inputs: Inputs) -> Tensor:
            attended = inputs.fields
            for number in range(attention_layers):
                attended = layer(FieldAttention, f"attention_{number}", **attention)(attended)
            return inputs.logits([attended, *inputs.deep(inputs.flat)])

        super().__init__(
            "autoint",
            interaction,
            feature_columns,
            Network(hidden_units, activation_fn, dropout, batch_norm),
            2,
            linear_feature_columns,
            head,
            n_classes,
            weight_column,
            label_vocabulary,
            loss_reduction,
            optimizer,
            linear_optimizer,
            model_dir,
            config,
            warm_start_from,
        )


__all__ = ["AutoInt"]
