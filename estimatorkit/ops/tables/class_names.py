"""Host ops that map class ids to names, for classifiers' predictions.

A run that does not fetch the names does not execute them. They are core ops because exported models
contain them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import make
from estimatorkit.core.dtypes import string
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor


def _strings(values: Sequence[bytes]) -> NDArray[Any]:
    result = np.empty(len(values), object)
    result[:] = values
    return result


def _class_names(ids: NDArray[Any], names: Sequence[bytes]) -> NDArray[Any]:
    return _strings(names)[ids]  # type: ignore[no-any-return]


def _all_class_names(ids: NDArray[Any], names: Sequence[bytes]) -> NDArray[Any]:
    return np.tile(_strings(names), (ids.shape[0], 1))


def _infer_all(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    dims = inputs[0].shape.dims
    shape = UNKNOWN if dims is None else TensorShape((dims[0], len(attrs["names"])))
    return [Spec(string, shape)]


_NAMES = (b"a", b"b", b"c")
_IDS = np.array([[2], [0]], np.int64)

register(
    "ClassNames",
    _class_names,
    where="host",
    infer=lambda inputs, attrs: [Spec(string, inputs[0].shape)],
    gradient=None,
    cases=lambda: [Case((_IDS,), {"names": _NAMES}, _strings([b"c", b"a"])[:, None])],
)
register(
    "AllClassNames",
    _all_class_names,
    where="host",
    infer=_infer_all,
    gradient=None,
    cases=lambda: [
        Case((_IDS,), {"names": _NAMES}, np.stack([_strings(_NAMES), _strings(_NAMES)]))
    ],
)


def class_names(class_ids: Tensor, names: Sequence[bytes], name: str = "classes") -> Tensor:
    """The name of each class, in the shape of `class_ids`."""
    return make("ClassNames", {"class_ids": class_ids}, {"names": tuple(names)}, name)


def all_class_names(class_ids: Tensor, names: Sequence[bytes]) -> Tensor:
    """All names, repeated for each row of `class_ids`: `(batch, classes)`.

    The operation is named `Tile`, as in the graphs of TensorFlow's heads.
    """
    return make("AllClassNames", {"class_ids": class_ids}, {"names": tuple(names)}, "Tile")


__all__ = ["all_class_names", "class_names"]
