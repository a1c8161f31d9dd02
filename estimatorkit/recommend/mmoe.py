"""Multi-gate mixture-of-experts: `MMoE`, and what models of several tasks share.

Variables: `mmoe/input_from_feature_columns/...`, `mmoe/multi_gate_mixture_of_experts/...`, and for
each head `mmoe/<head>/hiddenlayer_<i>/{kernel,bias}`, `mmoe/<head>/logits/{kernel,bias}`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.layers.feature_column import FeatureColumn, input_layer, normalize_columns
from estimatorkit.ops.array import joining
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.variable_scope import variable_scope
from estimatorkit.premade.dnn import (
    Activation,
    check_dropout,
    checked_units,
    optimizer_of,
    tower_logits,
)
from estimatorkit.premade.head import Head
from estimatorkit.premade.multi_head import MultiHead
from estimatorkit.premade.parts import OptimizerLike, Part, Premade
from estimatorkit.recommend.interaction.experts import MultiGateMixtureOfExperts
from estimatorkit.train.saving.column_notes import note_columns


def multi_task_part(
    scope: str,
    inputs_of_tasks: Callable[[Tensor, bool], Sequence[Tensor]],
    tasks: Mapping[str, int],
    hidden_units: Iterable[int],
    feature_columns: Any,
    optimizer: OptimizerLike,
    activation_fn: Activation,
    dropout: float | None,
    batch_norm: bool,
) -> Part:
    """A network (tower) for each task over inputs that are made of the same columns.

    Args:
        scope: the variable scope.
        inputs_of_tasks: maps the columns' values, float32 `(batch, n)`, and whether this is
            training to the inputs of each task's tower.
        tasks: the number of logits of each task by name; the part's logits are in this order.
        hidden_units, feature_columns, optimizer, activation_fn, dropout, batch_norm: see `MMoE`.

    Raises:
        ValueError: an argument is invalid.
    """
    widths, columns = checked_units(hidden_units), normalize_columns(feature_columns)
    check_dropout(dropout)

    def logits(features: Any, mode: str, _: int) -> Tensor:
        note_columns(scope, (column.name for column in columns))
        with variable_scope(scope):
            with variable_scope("input_from_feature_columns"):
                net = input_layer(features, columns)
            found = []
            inputs = inputs_of_tasks(net, mode == ModeKeys.TRAIN)
            for (task, units), each in zip(tasks.items(), inputs, strict=True):
                with variable_scope(task):
                    found.append(
                        tower_logits(
                            each,
                            mode,
                            units,
                            widths,
                            activation_fn=activation_fn,
                            dropout=dropout,
                            batch_norm=batch_norm,
                        )
                    )
            return joining.concat(found, 1)

    return Part(logits, lambda: optimizer_of(optimizer), scope, columns)


def as_multi_head(head: MultiHead | Sequence[Head]) -> MultiHead:
    """The head of several tasks, made of a list of named heads if it is not one already.

    Raises:
        ValueError: there are no heads, or names are missing or repeated.
    """
    return head if isinstance(head, MultiHead) else MultiHead(head)


class MMoE(Premade):
    """Multi-gate mixture-of-experts (Ma et al., KDD 2018, doi:10.1145/3219819.3220007).

    All tasks share experts, networks over the columns. A gate of each task weights the experts'
    outputs; a further network, the tower, computes the logits of the task's head.

    Labels, metrics and predictions are those of `MultiHead`: labels are a dict by head name.

    Example:
        ```python
        import estimatorkit as tf

        heads = [tf.estimator.BinaryClassHead(name=name) for name in ("click", "like")]
        model = tf.estimator.MMoE(heads, [64], [tf.feature_column.numeric_column("x")])
        ```

    Args:
        head: a `MultiHead`, or a list of heads with names, one for each task.
        hidden_units: the width of each hidden layer of the tasks' towers.
        feature_columns: the model's inputs: dense columns.
        model_dir: where checkpoints and logs go; a temporary folder by default.
        num_experts: the number of experts.
        expert_units: the width of each layer of an expert.
        gate_units: the width of each hidden layer of a gate; none by default, as in the paper.
        optimizer, config, warm_start_from: see `DNNClassifier`.
        activation_fn: applied after each layer of experts, gates and towers; `nn.relu` by default.
        dropout: the probability of dropping an output of a layer of experts or towers in training;
            None (default) for no dropout.
        batch_norm: whether to normalize after each hidden layer of the towers.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        head: MultiHead | Sequence[Head],
        hidden_units: Iterable[int],
        feature_columns: FeatureColumn | Iterable[FeatureColumn],
        model_dir: str | os.PathLike[str] | None = None,
        num_experts: int = 3,
        expert_units: Sequence[int] = (256, 128),
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

        def mixture() -> MultiGateMixtureOfExperts:
            return MultiGateMixtureOfExperts(
                len(tasks),
                num_experts,
                checked_units(expert_units),
                checked_units(gate_units),
                activation=activation_fn,
                dropout=dropout or 0.0,
                name="multi_gate_mixture_of_experts",
            )

        mixture()  # raises if invalid
        part = multi_task_part(
            "mmoe",
            lambda net, training: mixture()(net, training=training),
            tasks,
            hidden_units,
            feature_columns,
            optimizer,
            activation_fn,
            dropout,
            batch_norm,
        )
        super().__init__(made, [part], model_dir, config, warm_start_from)


__all__ = ["MMoE"]
