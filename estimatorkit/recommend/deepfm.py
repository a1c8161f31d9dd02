"""`DeepFM`: a factorization machine and a deep network over the same embeddings."""

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
from estimatorkit.recommend.interaction.factorization_machine import FactorizationMachine
from estimatorkit.recommend.recommender import (
    Columns,
    Inputs,
    Network,
    Recommender,
    first_order,
    layer,
)


class DeepFM(Recommender):
    """A click-through model: a factorization machine beside a deep network, which share
    embeddings (arXiv:1703.04247).

    Labels, metrics and predictions: see `DNNClassifier`. Of a head with several logits, each
    weighs the pooled products of the factorization machine by a dense layer `pairs`.

    Example:
        ```python
        import estimatorkit as tf

        column = tf.feature_column.categorical_column_with_hash_bucket
        embed = tf.feature_column.embedding_column
        fields = [embed(column(key, 1000), dimension=8) for key in ("ad", "site")]
        age = tf.feature_column.numeric_column("age")
        model = tf.estimator.DeepFM([*fields, age], hidden_units=[64, 32])
        ```

    Args:
        feature_columns: dense columns. Embedding columns, at least two and of one dimension, are
            the fields; any others, numbers for instance, join the deep network's inputs.
        hidden_units: the width of each hidden layer, for example `[64, 32]`; `[]` for no deep
            network.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        linear_feature_columns: the inputs of the linear model, dense and categorical columns. None
            (default) for those of `feature_columns`, with ids in place of their embeddings: the
            first-order term of the paper; `[]` for no linear model.
        head: determines labels, loss, metrics and predictions. None (default) for a classifier,
            made of `n_classes`, `weight_column`, `label_vocabulary` and `loss_reduction`, which are
            those of `DNNClassifier` and otherwise unused.
        n_classes, weight_column, label_vocabulary: see `DNNClassifier`.
        optimizer: trains embeddings, interaction and deep network: an `Optimizer`, a function
            without arguments that returns one, or a name as for `DNNClassifier`.
        linear_optimizer: trains the linear model; by name with the learning rate
            min(0.2, 1 / sqrt(number of columns)).
        activation_fn, dropout, batch_norm: of the hidden layers; see `DNNClassifier`.
        config: a `RunConfig`.
        warm_start_from: see `Estimator`.
        loss_reduction: see `DNNClassifier`.

    Raises:
        ValueError: an argument is invalid, or the dimensions of the embedding columns differ.
    """

    def __init__(
        self,
        feature_columns: Columns,
        hidden_units: Iterable[int],
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
    ) -> None:
        def interaction(inputs: Inputs) -> Tensor:
            pairs = layer(FactorizationMachine, "pairs", reduce_sum=inputs.units == 1)
            logits: Tensor = pairs(inputs.fields)
            if inputs.units > 1:
                logits = inputs.logits([logits], "pairs", bias=False)
            deep = inputs.deep(inputs.flat)
            return logits + inputs.logits(deep) if deep else logits

        super().__init__(
            "deepfm",
            interaction,
            feature_columns,
            Network(hidden_units, activation_fn, dropout, batch_norm),
            2,
            first_order(feature_columns)
            if linear_feature_columns is None
            else linear_feature_columns,
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


__all__ = ["DeepFM"]
