"""`xDeepFM`: a compressed interaction network beside a deep network."""

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
from estimatorkit.recommend.interaction.compressed_interaction import CompressedInteraction
from estimatorkit.recommend.recommender import (
    Columns,
    Inputs,
    Network,
    Recommender,
    first_order,
    layer,
)


class xDeepFM(Recommender):
    """A click-through model: a compressed interaction network (CIN), a deep network and a
    linear model (arXiv:1803.05170).

    Labels, metrics and predictions: see `DNNClassifier`.

    Args:
        feature_columns, hidden_units, model_dir, linear_feature_columns, head, n_classes,
            weight_column, label_vocabulary, optimizer, linear_optimizer, activation_fn, dropout,
            batch_norm, config, warm_start_from, loss_reduction: see `DeepFM`.
        cin_layers: the number of feature maps of each layer of the CIN; `[128, 128]` by default.
        cin_split_half: whether half of the maps feed the next layer and the others the logits (see
            `CompressedInteraction`); False by default.
        cin_activation_fn: applied to the feature maps; None (default) for none.

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
        cin_layers: Sequence[int] = (128, 128),
        cin_split_half: bool = False,
        cin_activation_fn: Activation = None,
    ) -> None:
        cin: dict[str, Any] = {
            "maps": cin_layers,
            "split_half": cin_split_half,
            "activation": cin_activation_fn,
        }
        CompressedInteraction(**cin)  # raises if invalid

        def interaction(inputs: Inputs) -> Tensor:
            maps = layer(CompressedInteraction, "cin", **cin)(inputs.fields)
            return inputs.logits([maps, *inputs.deep(inputs.flat)])

        super().__init__(
            "xdeepfm",
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


__all__ = ["xDeepFM"]
