"""`EmbeddingTable`: embedding tables with their own sizes, lifetimes and optimizers."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import bool_, float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.registry import output
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.layers.engine.call_record import current_call, record_of
from estimatorkit.layers.feature_column.tables import Table
from estimatorkit.layers.feature_column.weights import WeightMaker, notes_of_graph, variables_of
from estimatorkit.ops.array.joining import unstack
from estimatorkit.ops.math.random import get_seed
from estimatorkit.ops.tables.row_growth import RowValues
from estimatorkit.ops.variables import initializers


@dataclass(frozen=True)
class EmbeddingTable:
    """A table of trainable vectors with its own optimizer, size and lifetime.

    Columns with equal tables of one name share it. It is the variable `<name>/embedding_weights`,
    outside the scope of the layer.

    A table is of one of three kinds. By default it has a row for each id of the column. With
    `rows` and `hashes` it has fewer rows than ids: the vector of an id is the sum of the rows that
    `hashes` hash functions choose (hash embeddings, Svenstrup et al. 2017, arXiv:1709.03933). With
    `dynamic`, it has a row for each id that training has seen, and grows as new ones come; the
    column's number of ids then does not matter: `categorical_column_with_hash_bucket(key, 2**62)`
    takes any strings or integers. Ids that it does not have, and all new ones in evaluation and
    prediction, have a vector of zeros.

    A dynamic table also has the variable `<name>/ids`, int64 `(ids, 4)`: for each id, its row (-1
    without), how often it was seen, and the number of the batch that had it last. Checkpoints and
    exported models hold it. Its rows are looked up on the host, or on the parameter server that
    has the table.

    Args:
        name: the table's name; by default the column's.
        dimension: the length of its rows; by default that of the column's vectors. Shorter rows are
            multiplied by a trainable matrix, the variable `<name>/projection` (mixed dimensions,
            Ginart et al. 2019, arXiv:1909.11810).
        initializer: of the rows; truncated normal with standard deviation 1 / sqrt(dimension) by
            default. For a dynamic table: zeros, ones, a constant, uniform, normal or truncated
            normal.
        optimizer: an `Optimizer` for this table in place of the model's, or a function
            without arguments that returns one; for example `train.RowwiseAdagradOptimizer`,
            `train.LazyAdamOptimizer` or `train.FtrlOptimizer`.
        rows: the number of rows, if that is not the number of ids.
        hashes: how many rows the vector of an id is the sum of; 1 by default.
        dynamic: whether the table grows with the ids; False by default.
        capacity: (dynamic) the number of rows to start with, 4096 by default. When they do not
            suffice, there are four times as many (twice, from a million on), and the training step
            is compiled again.
        min_count: (dynamic) how often an id must have been seen to get a row; 1 by default.
        max_age: (dynamic) the number of batches without an id after which it is forgotten, and its
            row given to another; never by default.
        partitions: (dynamic) the number of variables that share the ids by hash, for several
            parameter servers; 1 by default.
        trainable: whether training changes the rows; True by default.
        shard_rows: whether synchronous replicas shard the rows (see `Variable.shard_rows`); by
            default the strategy decides. The rows of dynamic tables are replicated.

    Raises:
        ValueError: an argument is invalid, or does not fit the others.
    """

    name: str | None = None
    dimension: int | None = None
    initializer: Any = None
    optimizer: Any = field(default=None, compare=False)  # affects how to train, not what
    rows: int | None = None
    hashes: int = 1
    dynamic: bool = False
    capacity: int = 4096
    min_count: int = 1
    max_age: int | None = None
    partitions: int = 1
    trainable: bool = True
    shard_rows: bool | None = None

    def __post_init__(self) -> None:
        for name in (
            "dimension",
            "rows",
            "hashes",
            "capacity",
            "min_count",
            "max_age",
            "partitions",
        ):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise value_error(
                    f"EmbeddingTable: invalid {name}",
                    expected="an integer of at least 1",
                    received=repr(value),
                )
        if self.dynamic and (self.rows is not None or self.hashes > 1):
            raise value_error(
                "EmbeddingTable: a dynamic table has a row for each id",
                expected="dynamic=True, or rows and hashes",
                received=f"dynamic=True, rows={self.rows}, hashes={self.hashes}",
            )
        if self.dynamic and self.shard_rows:
            raise value_error(
                "EmbeddingTable: the rows of a dynamic table cannot be sharded over replicas",
                hint="use partitions and parameter servers, or give it a number of rows",
            )
        if self.hashes > 1 and self.rows is None:
            raise value_error(
                "EmbeddingTable: hashes need a number of rows",
                expected="rows, for example a tenth of the number of ids",
                received=f"rows=None, hashes={self.hashes}",
            )
        if not self.dynamic and (self.min_count > 1 or self.max_age or self.partitions > 1):
            raise value_error(
                "EmbeddingTable: min_count, max_age and partitions are for dynamic tables",
                received="dynamic=False",
                hint="add dynamic=True",
            )
        if isinstance(self.optimizer, (str, type)):
            raise value_error(
                "EmbeddingTable: the optimizer must be an Optimizer",
                expected="for example train.RowwiseAdagradOptimizer(0.05)",
                received=repr(self.optimizer),
            )
        if self.initializer is not None and not callable(self.initializer):
            raise value_error(
                "EmbeddingTable: the initializer must be callable", received=repr(self.initializer)
            )

    def made_for(self, column: Any, weights: WeightMaker) -> _MadeTable:
        """The table that `combined_rows` reads for a column.

        Raises:
            ValueError: the graph has another table of this name.
        """
        name = self.name or column.categorical_column.name
        length = self.dimension or column.dimension
        parts: list[Any]
        if self.dynamic:
            names = [name] if self.partitions == 1 else _part_names(name, self.partitions)
            parts = [
                _DynamicRows.made(self, each, length, number, weights)
                for number, each in enumerate(names)
            ]
        else:
            size = self.rows or column.categorical_column.num_buckets
            table = Table(size, length, self.initializer, None, None, self.trainable)
            where = f"{name}/embedding_weights"
            make = partial(table.made_by, weights.make_shared, column, where)
            variable = weights.shared(where, make)
            _check_shape(variable, (size, length))
            for each in variables_of(variable):
                each.optimizer = each.optimizer or self.optimizer
                each.shard_rows = self.shard_rows
            parts = [_StaticRows(variable, self.rows, self.hashes)]
        if length == column.dimension:
            return _MadeTable(parts)
        where = f"{name}/projection_to_{column.dimension}"
        shape = [length, column.dimension]
        make = partial(weights.make_shared, column, where, shape, None, self.trainable)
        return _MadeTable(parts, weights.shared(where, make))


def _part_names(name: str, count: int) -> list[str]:
    return [f"{name}/part_{number}" for number in range(count)]


def _check_shape(variable: Any, shape: tuple[int | None, int]) -> None:
    if tuple(variable.shape.as_list()) != shape:
        raise value_error(
            "two embedding tables of the same name differ in shape",
            expected=str(list(shape)),
            received=f"{variable.name} {variable.shape}",
            hint="give one of them another name",
        )


@dataclass(frozen=True)
class _MadeTable:
    """A table in a graph.

    Attributes:
        parts: each finds the rows of some ids.
        projection: the matrix that combined rows are multiplied by; None for none.
    """

    parts: Sequence[Any]
    projection: Any = None

    def find(self, ids: Tensor) -> list[tuple[Any, Tensor]]:
        """See `combined_rows`."""
        return [found for part in self.parts for found in part.find(ids)]


@dataclass(frozen=True)
class _StaticRows:
    """A fixed number of rows.

    Attributes:
        variable: the rows.
        size: how many, where ids are hashed to them; None where an id is its row.
        hashes: the number of rows of an id.
    """

    variable: Any
    size: int | None
    hashes: int

    def find(self, ids: Tensor) -> list[tuple[Any, Tensor]]:
        """The variable, with each of the row numbers of the ids."""
        if self.size is None:
            return [(self.variable, ids)]
        attrs = {"rows": self.size, "hashes": self.hashes}
        return [
            (self.variable, rows)
            for rows in unstack(output("HashedRows", [ids], attrs), self.hashes, -1)
        ]


@dataclass(frozen=True)
class _DynamicRows:
    """Rows of ids that training has seen.

    Attributes:
        weights: the rows.
        ids: the ids that have them.
        attrs: those of `EmbeddingRows`.
    """

    weights: Variable
    ids: Variable
    attrs: dict[str, Any]

    @staticmethod
    def made(
        table: EmbeddingTable, name: str, length: int, number: int, weights: WeightMaker
    ) -> _DynamicRows:
        """The rows of a partition of a table, created once per graph."""
        chosen = table.initializer or initializers.TruncatedNormal(0.0, 1 / math.sqrt(length))
        collections = [GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]

        def rows() -> Variable:
            return Variable(
                partial(chosen, (table.capacity, length), float32),
                trainable=table.trainable and weights.trainable,
                collections=collections,
                name=f"{name}/embedding_weights",
                shape=[None, length],
            )

        def ids() -> Variable:
            return Variable(
                np.zeros((0, 4), np.int64),
                trainable=False,
                collections=collections,
                name=f"{name}/ids",
                shape=[None, 4],
            )

        graph = get_default_graph().outermost
        with graph.name_scope(None):
            variable = weights.shared(f"{name}/embedding_weights", rows)
            _check_shape(variable, (None, length))
            # Without a device function, which would count one more variable.
            with graph.device(None), graph.colocate_with(variable):
                known = weights.shared(f"{name}/ids", ids)
        variable.optimizer = variable.optimizer or table.optimizer
        variable.row_ids = known
        attrs = {
            "table": known.op.name,
            "weights": variable.op.name,
            "values": tuple(_distribution(chosen, name)),
            "part": (number, table.partitions),
            "min_count": table.min_count,
            "max_age": table.max_age,
        }
        return _DynamicRows(variable, known, attrs)

    def find(self, ids: Tensor) -> list[tuple[Any, Tensor]]:
        """The variable, with the row numbers of the ids."""
        begun = notes_of_graph().setdefault("tables read", set())
        attrs = {**self.attrs, "starts_batch": self.ids not in begun}
        begun.add(self.ids)
        given = [ids, convert_to_tensor(_is_training(), bool_)]
        with get_default_graph().colocate_with(self.ids):
            return [(self.weights, output("EmbeddingRows", given, attrs))]


def _is_training() -> Any:
    """Whether the layer that reads a table is being trained: a bool or a tensor."""
    call = current_call()
    if call is not None and call.training is not None:
        return call.training
    phase = record_of(get_default_graph().outermost).learning_phase
    return True if phase is None else phase


def _distribution(initializer: Any, name: str) -> RowValues:
    """The distribution of an initializer, for rows that are made while training runs."""
    made = initializer() if isinstance(initializer, type) else initializer
    seed = get_seed(getattr(made, "seed", None)) or np.frombuffer(os.urandom(8), np.uint32)
    number = int(seed[0]) << 32 | int(seed[1])
    if isinstance(made, (initializers.Zeros, initializers.Ones)):
        return RowValues("constant", float(isinstance(made, initializers.Ones)), 0.0, number)
    if isinstance(made, initializers.Constant) and np.ndim(made.value) == 0:
        return RowValues("constant", float(np.asarray(made.value)), 0.0, number)
    if isinstance(made, initializers.RandomUniform):
        low, high = float(made.minval), float(1.0 if made.maxval is None else made.maxval)
        return RowValues("uniform", low, high, number)
    if isinstance(made, initializers.RandomNormal):
        kind = "truncated_normal" if isinstance(made, initializers.TruncatedNormal) else "normal"
        return RowValues(kind, float(made.mean), float(made.stddev), number)
    raise value_error(
        f"the initializer of the dynamic table {name!r} must give each row the same distribution",
        expected="Zeros, Ones, Constant, RandomUniform, RandomNormal or TruncatedNormal",
        received=repr(initializer),
    )


__all__ = ["EmbeddingTable"]
