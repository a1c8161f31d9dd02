"""`ShardedRows`: a variable whose rows are divided among replicas, inside of a step.

Every replica holds a contiguous block of rows. `lookup` and sparse updates exchange the ids and
rows of a batch, never the table; operations that know nothing of shards get the whole value. Models
such as DLRM (arXiv:1906.00091) have tables that are too large for one device; TorchRec and HugeCTR
(arXiv:2210.08803) shard them by rows, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

_psum_scatter: Any = lax.psum_scatter


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["own"], meta_fields=["rows", "axis"]
)
@dataclass(frozen=True)
class ShardedRows:
    """A replica's rows of a variable, in a trace over a mesh.

    Attributes:
        own: the rows of this replica, `(ceil(rows / replicas), ...)`; those past the table, at the
            end of the last replicas, are arbitrary.
        rows: the number of rows of the variable.
        axis: the mesh axis.
    """

    own: Any
    rows: int
    axis: str

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole variable."""
        return (self.rows, *self.own.shape[1:])

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self.own.dtype

    @property
    def first(self) -> Any:
        """The index of this replica's first row."""
        return lax.axis_index(self.axis) * self.own.shape[0]

    def whole(self) -> Any:
        """The whole variable, gathered on every replica."""
        gathered: Any = lax.all_gather(self.own, self.axis, tiled=True)
        return gathered[: self.rows]

    def with_whole(self, value: Any) -> ShardedRows:
        """These rows of another value of the whole variable."""
        size = self.own.shape[0]
        missing = size * lax.axis_size(self.axis) - self.rows
        padded = jnp.pad(value, [(0, missing), *[(0, 0)] * (value.ndim - 1)])
        return replace(self, own=lax.dynamic_slice_in_dim(padded, self.first, size))

    def lookup(self, indices: Any) -> Any:
        """The rows at each replica's own `indices`, clamped to the table.

        All replicas' ids are gathered, each replica contributes the rows it holds, and a
        reduce-scatter returns them: a device receives `replicas * ids` ids and sends
        `replicas * ids` rows. An all-to-all with static shapes sends as many, because all ids may
        have one owner.
        """
        flat = jnp.clip(jnp.asarray(indices).reshape(-1), 0, self.rows - 1)
        every: Any = lax.all_gather(flat, self.axis, tiled=True)
        place = every - self.first.astype(every.dtype)
        is_own = (place >= 0) & (place < self.own.shape[0])
        found = self.own.at[jnp.where(is_own, place, 0)].get(mode="clip")
        mask = is_own.reshape(-1, *[1] * (found.ndim - 1))
        scattered = _psum_scatter(
            jnp.where(mask, found, jnp.zeros((), found.dtype)), self.axis, tiled=True
        )
        return scattered.reshape(*indices.shape, *self.own.shape[1:])


def whole(value: Any) -> Any:
    """The whole value of `ShardedRows`; other values unchanged."""
    return value.whole() if isinstance(value, ShardedRows) else value


def on_own_rows(update: Callable[..., Sequence[Any]], inputs: Sequence[Any], ids: int) -> Any:
    """Runs a sparse update on the rows of this replica.

    Args:
        update: `update(*inputs)` returns the new values of its first inputs. It drops ids that are
            out of range.
        inputs: variables, of which the first is sharded, and the same values on all replicas.
        ids: the position of the ids of rows.
    """
    own = [each.own if isinstance(each, ShardedRows) else each for each in inputs]
    table, indices = inputs[0], jnp.asarray(inputs[ids])
    is_valid = (indices >= 0) & (indices < table.rows)
    own[ids] = jnp.where(is_valid, indices - table.first.astype(indices.dtype), -1)
    return tuple(
        replace(old, own=new) if isinstance(old, ShardedRows) else new
        for old, new in zip(inputs, update(*own), strict=False)
    )


__all__ = ["ShardedRows", "on_own_rows", "whole"]
