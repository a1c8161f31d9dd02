"""`DCN`: a cross network beside a deep network, of both versions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.ops.nn import nn
from estimatorkit.premade.dnn import Activation
from estimatorkit.premade.head import Head
from estimatorkit.premade.parts import OptimizerLike
from estimatorkit.recommend.interaction.cross_network import CrossNetwork, CrossNetworkV2
from estimatorkit.recommend.recommender import (
    Columns,
    Inputs,
    Network,
    Recommender,
    layer,
)


class DCN(Recommender):
    """A click-through model: a cross network beside a deep network (DCN, arXiv:1708.05123; DCN V2,
    arXiv:2008.13535).

    Both read all columns side by side, so embeddings may differ in dimension. `structure='stacked'`
    puts the deep network on top of the cross network instead.

    Labels, metrics and predictions: see `DNNClassifier`. By default there is no linear model.

    Args:
        feature_columns, hidden_units, model_dir, linear_feature_columns, head, n_classes,
            weight_column, label_vocabulary, optimizer, linear_optimizer, activation_fn, dropout,
            batch_norm, config, warm_start_from, loss_reduction: see `DeepFM`.
        cross_layers: the number of cross layers; 2 by default.
        version: 1 for weight vectors (`CrossNetwork`), 2 (default) for matrices
            (`CrossNetworkV2`).
        rank: of the matrices of version 2; None (default) for full ones.
        experts: the number of low-rank matrices that version 2 mixes; 1 by default.
        structure: 'parallel' (default) or 'stacked'.

    Raises:
        ValueError: an argument is invalid.
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
        cross_layers: int = 2,
        version: Literal[1, 2] = 2,
        rank: int | None = None,
        experts: int = 1,
        structure: Literal["parallel", "stacked"] = "parallel",
    ) -> None:
        if version not in (1, 2) or structure not in ("parallel", "stacked"):
            raise value_error(
                "version or structure is unknown",
                expected="version 1 or 2, structure 'parallel' or 'stacked'",
                received=f"version={version!r}, structure={structure!r}",
            )
        if version == 1 and (rank is not None or experts != 1):
            raise value_error(
                "rank and experts are those of version 2",
                expected="rank=None and experts=1, or version=2",
                received=f"version=1, rank={rank}, experts={experts}",
            )
        matrices: dict[str, Any] = {"rank": rank, "experts": experts} if version == 2 else {}
        kind: Any = CrossNetworkV2 if version == 2 else CrossNetwork
        kind(cross_layers, **matrices)  # raises if invalid

        def interaction(inputs: Inputs) -> Tensor:
            cross = layer(kind, "cross", num_layers=cross_layers, **matrices)(inputs.flat)
            if structure == "stacked":
                return inputs.logits(inputs.deep(cross) or [cross])
            return inputs.logits([cross, *inputs.deep(inputs.flat)])

        super().__init__(
            "dcn",
            interaction,
            feature_columns,
            Network(hidden_units, activation_fn, dropout, batch_norm),
            0,
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


__all__ = ["DCN"]
