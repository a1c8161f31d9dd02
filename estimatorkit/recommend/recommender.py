"""`Recommender`: the base of click-through models, an interaction of fields beside a network.

Embedding columns are fields `(batch, fields, dim)`, sorted by name as `input_layer` sorts them; all
other dense columns are joined to the deep network's inputs. Embeddings without an initializer start
as truncated normal numbers with a standard deviation of 0.01, as DeepFM's do. A model is a function
`interaction` of `Inputs` to logits, and optionally a linear model (`linear.linear_part`) with its
own optimizer.

Variables: `<scope>/input_from_feature_columns/...`, `<scope>/hiddenlayer_<i>/{kernel,bias}`, those
of the interaction's layers in `<scope>`, and the linear model's in `linear`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.layers import functional as layers
from estimatorkit.layers.engine.scoped import scoped
from estimatorkit.layers.feature_column import FeatureColumn, input_layer, normalize_columns
from estimatorkit.layers.feature_column.embedding import EmbeddingColumn, SharedEmbeddingColumn
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.math.elementwise import cast
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.initializers import TruncatedNormal
from estimatorkit.ops.variables.variable_scope import variable_scope
from estimatorkit.premade.classification_heads import classification_head
from estimatorkit.premade.dnn import (
    Activation,
    check_dropout,
    checked_units,
    hidden_layers,
    optimizer_of,
)
from estimatorkit.premade.head import Head
from estimatorkit.premade.linear import LEARNING_RATE, learning_rate_for, linear_part
from estimatorkit.premade.parts import OptimizerLike, Part, Premade
from estimatorkit.train.saving.column_notes import note_columns

Columns = FeatureColumn | Iterable[FeatureColumn]

# An embedding column's own default, 1 / sqrt(dim), would make the products of all pairs of many
# fields large: with 26 fields of 8 numbers, logits start with a deviation of 6.
DEVIATION = 0.01


@dataclass(frozen=True)
class Network:
    """The arguments of the deep network; see `DNNClassifier`."""

    hidden_units: Iterable[int]
    activation_fn: Activation = nn.relu
    dropout: float | None = None
    batch_norm: bool = False

    def __post_init__(self) -> None:
        """Checks them."""
        object.__setattr__(self, "hidden_units", checked_units(self.hidden_units))
        check_dropout(self.dropout)


@dataclass(frozen=True)
class Inputs:
    """What an interaction computes logits of, in the model's variable scope.

    Attributes:
        embedded: one float tensor `(batch, dim)` a field.
        dense: the tensors `(batch, n)` of the other columns.
        mode: a `ModeKeys`.
        units: the number of logits.
        network: the arguments of the deep network.
    """

    embedded: Sequence[Tensor]
    dense: Sequence[Tensor]
    mode: str
    units: int
    network: Network

    @property
    def fields(self) -> Tensor:
        """The fields, floats `(batch, fields, dim)`."""
        return joining.stack(list(self.embedded), 1)

    @property
    def flat(self) -> Tensor:
        """All columns side by side, floats `(batch, n)`."""
        return joined([*self.embedded, *self.dense])

    def deep(self, net: Tensor) -> list[Tensor]:
        """The last hidden layer of the deep network over `net`; empty if it has no layers."""
        if not self.network.hidden_units:
            return []
        return [
            hidden_layers(
                net,
                self.mode,
                self.network.hidden_units,
                activation_fn=self.network.activation_fn,
                dropout=self.network.dropout,
                batch_norm=self.network.batch_norm,
            )
        ]

    def logits(self, tensors: Sequence[Tensor], name: str = "logits", bias: bool = True) -> Tensor:
        """A dense layer over tensors side by side, `(batch, units)`."""
        return layers.dense(joined(tensors), self.units, use_bias=bias, name=name)


def joined(tensors: Sequence[Tensor]) -> Tensor:
    """Flattens tensors `(batch, ...)` and concatenates them to `(batch, n)`."""
    flat = [
        each
        if len(each.shape) == 2
        else array.reshape(each, [-1, math.prod(dim or 0 for dim in each.shape[1:])])
        for each in tensors
    ]
    return joining.concat(flat, 1) if len(flat) > 1 else flat[0]


def layer(kind: Any, name: str, **arguments: Any) -> Any:
    """A layer of `keras.layers` whose variables are in the current variable scope."""
    return scoped(kind)(name=name, **arguments)


def _starting_small(column: FeatureColumn) -> FeatureColumn:
    """An embedding column with an initializer, `DEVIATION` unless it has one."""
    small = TruncatedNormal(stddev=DEVIATION)
    if isinstance(column, EmbeddingColumn) and column.initializer is None:
        return replace(column, initializer=small)
    if isinstance(column, SharedEmbeddingColumn) and column.initializer is None:
        return replace(column, table=replace(column.table, initializer=small))
    return column


def split_columns(
    feature_columns: Columns, least: int
) -> tuple[list[FeatureColumn], list[FeatureColumn]]:
    """The embedding columns, which are fields, and all others.

    Args:
        feature_columns: dense columns.
        least: the smallest number of fields, which must have one dimension if it is positive.

    Raises:
        ValueError: there are too few fields, or their dimensions differ.
    """
    columns = [_starting_small(column) for column in normalize_columns(feature_columns)]
    columns.sort(key=lambda column: column.name)
    kinds = (EmbeddingColumn, SharedEmbeddingColumn)
    fields = [column for column in columns if isinstance(column, kinds)]
    if len(fields) < least:
        raise value_error(
            "feature_columns has too few fields",
            expected=f"at least {least} embedding columns",
            received=", ".join(column.name for column in fields) or "none",
            hint="embedding_column(categorical_column, dimension=8)",
        )
    dimensions = {column.dimension for column in fields}
    if least and len(dimensions) > 1:
        raise value_error(
            "the fields' embeddings differ in dimension",
            expected="one dimension for all embedding columns",
            received=", ".join(f"{column.name} ({column.dimension})" for column in fields),
        )
    return list(fields), [column for column in columns if column not in fields]


def first_order(feature_columns: Columns) -> list[FeatureColumn]:
    """The columns of a linear model of the same features: ids in place of embeddings."""
    kinds = (EmbeddingColumn, SharedEmbeddingColumn)
    return [
        column.categorical_column if isinstance(column, kinds) else column
        for column in normalize_columns(feature_columns)
    ]


class Recommender(Premade):
    """The base class of click-through models.

    Args:
        scope: the variable scope.
        interaction: computes logits, float `(batch, units)`.
        feature_columns: dense columns.
        network: the deep network's arguments.
        least_fields: the smallest number of embedding columns, of one dimension; 0: any.
        linear_feature_columns: dense and categorical columns; none for no linear model.
        head: None for a classifier of `n_classes`, `weight_column`, `label_vocabulary` and
            `loss_reduction`.
        optimizer, linear_optimizer: see `DeepFM`.
        model_dir, config, warm_start_from: see `Estimator`.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        scope: str,
        interaction: Callable[[Inputs], Tensor],
        feature_columns: Columns,
        network: Network,
        least_fields: int,
        linear_feature_columns: Columns | None,
        head: Head | None,
        n_classes: int,
        weight_column: Any,
        label_vocabulary: Sequence[str] | None,
        loss_reduction: str,
        optimizer: OptimizerLike,
        linear_optimizer: OptimizerLike,
        model_dir: str | os.PathLike[str] | None,
        config: RunConfig | None,
        warm_start_from: Any,
    ) -> None:
        fields, others = split_columns(feature_columns, least_fields)

        def logits(features: Any, mode: str, units: int) -> Tensor:
            note_columns(scope, (column.name for column in (*fields, *others)))
            found: dict[Any, Tensor] = {}
            with variable_scope(scope):
                with variable_scope("input_from_feature_columns"):
                    columns = [*fields, *others]
                    dtype = input_layer(features, columns, cols_to_output_tensors=found).dtype
                embedded, dense = ([found[each] for each in kind] for kind in (fields, others))
                made = interaction(Inputs(embedded, dense, mode, units, network))
            return cast(made, dtype)  # float32, even if layers compute in bfloat16

        parts = [Part(logits, lambda: optimizer_of(optimizer), scope, (*fields, *others))]
        linear = [] if not linear_feature_columns else normalize_columns(linear_feature_columns)
        if linear:
            rate = learning_rate_for(linear, LEARNING_RATE)
            parts.append(linear_part(linear, linear_optimizer, rate, is_one_of_several=True))
        if head is None:
            head = classification_head(
                n_classes, weight_column, label_vocabulary, loss_reduction, self._version
            )
        super().__init__(head, parts, model_dir, config, warm_start_from)


__all__ = [
    "Columns",
    "Inputs",
    "Network",
    "Recommender",
    "first_order",
    "joined",
    "layer",
    "split_columns",
]
