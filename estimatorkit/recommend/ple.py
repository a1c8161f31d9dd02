"""Progressive layered extraction: `PLE`.

Variables: `ple/input_from_feature_columns/...`, `ple/progressive_layered_extraction/...`, and for
each head those of `mmoe` in the scope `ple`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.layers.feature_column import FeatureColumn
from estimatorkit.ops.nn import nn
from estimatorkit.premade.dnn import Activation, checked_units
from estimatorkit.premade.head import Head
from estimatorkit.premade.multi_head import MultiHead
from estimatorkit.premade.parts import OptimizerLike, Premade
from estimatorkit.recommend.interaction.experts import ProgressiveLayeredExtraction
from estimatorkit.recommend.mmoe import as_multi_head, multi_task_part


class PLE(Premade):
    """Progressive layered extraction (Tang et al., RecSys 2020, doi:10.1145/3383313.3412236).

    As `MMoE`, with experts of single tasks beside the shared ones, in several levels
    (`keras.layers.ProgressiveLayeredExtraction`).

    Args:
        num_levels: the number of levels; 1 is the paper's customized gate control (CGC).
        num_shared_experts: the number of experts of a level that all tasks share.
        num_task_experts: the number of experts of each task in a level.
        head, hidden_units, feature_columns, model_dir, expert_units, gate_units, optimizer,
            activation_fn, dropout, config, warm_start_from, batch_norm: see `MMoE`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        head: MultiHead | Sequence[Head],
        hidden_units: Iterable[int],
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        model_dir: str | os.PathLike[str] | None = None,
        num_levels: int = 2,
        num_shared_experts: int = 1,
        num_task_experts: int = 1,
        expert_units: Sequence[int] = (256,),
        gate_units: Sequence[int] = (),
        optimizer: OptimizerLike = "Adagrad",
        activation_fn: Activation = nn.relu,
        dropout: float | None = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ) -> None:
        made = as_multi_head(head)
        tasks = {name: each.logits_dimension for name, each in made.heads.items()}

        def extraction() -> ProgressiveLayeredExtraction:
            return ProgressiveLayeredExtraction(
                len(tasks),
                num_levels,
                num_shared_experts,
                num_task_experts,
                checked_units(expert_units),
                checked_units(gate_units),
                activation=activation_fn,
                dropout=dropout or 0.0,
                name="progressive_layered_extraction",
            )

        extraction()  # raises if invalid
        part = multi_task_part(
            "ple",
            lambda net, training: extraction()(net, training=training),
            tasks,
            hidden_units,
            feature_columns,
            optimizer,
            activation_fn,
            dropout,
            batch_norm,
        )
        super().__init__(made, [part], model_dir, config, warm_start_from)


__all__ = ["PLE"]
