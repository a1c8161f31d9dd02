"""`VocabInfo`: warm starts variables whose vocabulary has changed.

Rows (or columns) of a variable are matched by word. New words, and buckets of unknown words, are
initialized anew.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import constant
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import indexing
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.variables.initializers import Zeros
from estimatorkit.storage.checkpoint_manifest import TensorEntry
from estimatorkit.storage.filesystem import open_file


class VocabInfo(NamedTuple):
    """Describes the change of a vocabulary (`tf.train.VocabInfo`, `tf.estimator.VocabInfo`).

    Attributes:
        new_vocab: the current vocabulary file, one word per line.
        new_vocab_size: the number of its words to use.
        num_oov_buckets: the number of rows for unknown words, after those of the words.
        old_vocab: the vocabulary file of the checkpoint.
        old_vocab_size: the number of its words to use; -1 for all.
        backup_initializer: initializes rows without a counterpart; zeros by default.
        axis: 0 if rows are words, 1 if columns are (labels of the last layer).
    """

    new_vocab: Any
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: Any
    old_vocab_size: int = -1
    backup_initializer: Callable[..., Tensor] | None = None
    axis: int = 0


def _rows_before(new: Sequence[bytes], old: Sequence[bytes], buckets: int) -> NDArray[np.int32]:
    """Returns the old row of each new row, or -1."""
    places = {word: row for row, word in enumerate(old)}
    found = [places.get(word, -1) for word in new]
    return np.array(found + [-1] * buckets, np.int32)


def _words(path: Any, size: int) -> list[bytes]:
    with open_file(path) as file:
        words: list[bytes] = file.read().removeprefix(codecs.BOM_UTF8).splitlines()
    if size < 0:
        return words
    if size > len(words):
        raise value_error(
            f"the vocabulary {path} has fewer words than its given size",
            expected=f"at least {size}",
            received=f"{len(words)} lines",
        )
    return words[:size]


def changed_value(old: Tensor, entry: TensorEntry, variable: Variable, info: VocabInfo) -> Tensor:
    """Returns the initial value of a variable, or part of one, whose vocabulary has changed.

    `old` is the value in the checkpoint, described by `entry`. Raises ValueError if shapes and
    vocabulary sizes do not match, or `axis` is neither 0 nor 1.
    """
    part, axis = [dim or 0 for dim in variable.shape.as_list()], info.axis
    place = variable.save_slice_info
    shape = part if place is None else list(place.full_shape)
    starts = [0] * len(part) if place is None else list(place.var_offset)
    if axis not in (0, 1):
        raise ValueError(f"The supported values of axis are 0 and 1.  Provided axis: {axis}")
    words_before = _words(info.old_vocab, info.old_vocab_size)
    words = _words(info.new_vocab, info.new_vocab_size)
    rows = _rows_before(words, words_before, info.num_oov_buckets)
    fits = (
        len(shape) == len(entry.shape) > axis
        and shape[axis] == len(rows)
        and entry.shape[axis] >= len(words_before)
        and [*shape[:axis], *shape[axis + 1 :]] == [*entry.shape[:axis], *entry.shape[axis + 1 :]]
    )
    if not fits:
        raise value_error(
            f"the vocabularies do not fit variable {variable.op.name}",
            expected=f"{shape[axis] if len(shape) > axis else 'no'} rows along axis "
            f"{axis}: words and buckets now; at least as many rows before as words",
            received=f"{len(rows)} words and buckets now, {len(words_before)} words before, "
            f"shape {entry.shape} in the checkpoint, {shape} now",
            made_at=variable.op.source,
        )
    own = rows[starts[axis] : starts[axis] + part[axis]]
    kept = indexing.gather(old, constant(np.maximum(own, 0)), axis=axis)
    cuts = [slice(start, start + size) for start, size in zip(starts, part, strict=True)]
    cuts[axis] = slice(None)
    kept = kept[tuple(cuts)]
    backup = (info.backup_initializer or Zeros())(part, dtype=variable.dtype)
    wide = [1] * len(part)
    wide[axis] = len(own)
    known = constant(np.broadcast_to((own >= 0).reshape(wide), part).copy())
    return indexing.where(known, elementwise.cast(kept, variable.dtype), backup)


__all__ = ["VocabInfo", "changed_value"]
