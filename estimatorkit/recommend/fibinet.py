"""`FiBiNET`: bilinear interactions of fields and of reweighted fields, under a deep network."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.ops.nn import nn
from estimatorkit.premade.dnn import Activation
from estimatorkit.premade.head import Head
from estimatorkit.premade.parts import OptimizerLike
from estimatorkit.recommend.interaction.bilinear_interaction import BilinearInteraction
from estimatorkit.recommend.interaction.squeeze_excitation import SqueezeExcitation
from estimatorkit.recommend.recommender import (
    Columns,
    Inputs,
    Network,
    Recommender,
    first_order,
    joined,
    layer,
)


class FiBiNET(Recommender):
    """A click-through model: bilinear products of the fields, and of the fields weighed by a
    squeeze-and-excitation network, are the inputs of a deep network (arXiv:1905.09433).

    Labels, metrics and predictions: see `DNNClassifier`.

    Args:
        feature_columns, hidden_units, model_dir, linear_feature_columns, head, n_classes,
            weight_column, label_vocabulary, optimizer, linear_optimizer, activation_fn, dropout,
            batch_norm, config, warm_start_from, loss_reduction: see `DeepFM`.
        bilinear_type: 'all', 'each' or 'interaction' (default); see `BilinearInteraction`.
        reduction_ratio: fields per unit of the weights (`SqueezeExcitation`); 3 by default.

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
        bilinear_type: Literal["all", "each", "interaction"] = "interaction",
        reduction_ratio: int = 3,
    ) -> None:
        SqueezeExcitation(reduction_ratio)  # raises if invalid
        BilinearInteraction(bilinear_type)

        def interaction(inputs: Inputs) -> Tensor:
            fields = inputs.fields
            weigh = layer(SqueezeExcitation, "senet", reduction_ratio=reduction_ratio)
            products = [
                layer(BilinearInteraction, name, bilinear_type=bilinear_type)(each)
                for name, each in (("weighed_pairs", weigh(fields)), ("pairs", fields))
            ]
            net = joined([*products, *inputs.dense])
            return inputs.logits(inputs.deep(net) or [net])

        super().__init__(
            "fibinet",
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


__all__ = ["FiBiNET"]
