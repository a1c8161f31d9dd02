"""Ids of many columns in one tensor, computed by one host operation.

This saves the overhead per operation and per array passed to the executable (about 5 us each),
which exceeds the cost of the ids themselves. The parts are kernels of other ops, and may use each
other's results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import int64
from estimatorkit.core.registry import Case, Spec, lookup, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor

Part = tuple[str, tuple[int, ...], Mapping[str, Any]]
"""Op type, input indices (raw features first, then previous parts), attributes."""


def _packed(
    *raw: NDArray[Any], parts: Sequence[Part], kept: Sequence[int], width: int
) -> NDArray[np.int64]:
    values = list(raw)
    for op_type, inputs, attrs in parts:
        values.append(lookup(op_type).kernel(*[values[number] for number in inputs], **attrs))
    ids = np.concatenate([values[number] for number in kept], axis=-1)
    if ids.shape[-1] != width:
        raise ValueError(f"ids are {ids.shape[-1]} wide, not {width}: a feature changed its shape")
    return ids


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    batch = TensorShape([None])
    for tensor in inputs:
        batch = batch.merge_with(tensor.shape[:1])
    return [Spec(int64, batch.concatenate([attrs["width"]]))]


register(
    "PackedIds",
    _packed,
    where="host",
    rowwise=True,
    infer=_infer,
    gradient=None,
    cases=lambda: [
        Case(
            (np.array([b"a", b""], object), np.array([[1, 2], [0, 7]])),
            {
                "parts": (
                    ("MixedIds", (0,), {"expand": 1}),
                    (
                        "IdentityIds",
                        (1,),
                        {"key": "x", "num_buckets": 5, "default_value": 4} | {"expand": 0},
                    ),
                    (
                        "CrossedIds",
                        (3, 2),
                        {"num_buckets": 1000, "hash_key": 5, "expand": (0, 0)}
                        | {"mixed": (False, True)},
                    ),
                ),
                "kept": (3, 4),
                "width": 4,
            },
            np.array([[1, 2, 671, 921], [0, 4, 666, 174]]),
        )
    ],
)
