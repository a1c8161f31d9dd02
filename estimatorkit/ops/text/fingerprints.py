"""`fingerprints`: ids of any type as numbers, which replicas can exchange and compare."""

from __future__ import annotations

from estimatorkit.core.dtypes import string
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.text.string_numbers import as_string, string_to_hash_bucket_fast

FINGERPRINTS = 1 << 62
"""The exclusive upper bound of fingerprints."""


def fingerprints(ids: Tensor) -> Tensor:
    """62-bit hashes of ids (integers or strings): int64, equal for equal ids."""
    texts = ids if ids.dtype is string else as_string(ids)
    return string_to_hash_bucket_fast(texts, FINGERPRINTS)


__all__ = ["FINGERPRINTS", "fingerprints"]
