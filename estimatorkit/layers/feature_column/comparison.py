"""Fingerprints of feature columns, which must be equal in all processes that train one model.

Columns with vocabularies in another order, or with other boundaries, have variables of the same
shapes: nothing else would tell that two processes do not mean the same by a row of a table.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from types import CodeType
from typing import Any

from estimatorkit.core.dtypes import DType
from estimatorkit.core.graph import Graph
from estimatorkit.layers.feature_column.vocabulary import vocabulary_fingerprints
from estimatorkit.layers.feature_column.weights import remembered_columns

_OF_THE_CHIEF = {"initializer", "ckpt_to_load_from", "tensor_name_in_ckpt", "table"}
"""Fields that say with which values variables begin."""

_OF_THE_HOST = {"vocabulary_file", "fingerprint"}
"""Fields that may be others on every host: of a vocabulary's file the content is compared that the
graph has read."""

_SHOWN = 160
"""Characters of a column's text that are exchanged; a digest stands for the rest."""


def column_texts(graph: Graph) -> dict[str, str]:
    """Describes the columns that a graph's layers read, so that processes can compare them.

    Functions are equal if their code is: a normalizer may use numbers that each process has
    computed from its own data.

    Args:
        graph: the graph.

    Returns:
        A dict: 'column <name>' maps to a text, which ends with a digest if it is long, and
        'vocabulary of <key>' to the SHA-256 of a file.
    """
    columns = remembered_columns(graph)
    texts = {f"column {column.name}": _shortened(_text(column)) for column in columns}
    files = vocabulary_fingerprints(graph)
    return {**texts, **{f"vocabulary of {key}": read["sha256"] for key, read in files.items()}}


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... (SHA-256 {_digest(text)})"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _text(value: Any) -> str:
    if isinstance(value, DType):
        return value.name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value)]
        fields = [
            f"{name}={_text(getattr(value, name))}"
            for name in names
            if name not in _OF_THE_CHIEF | _OF_THE_HOST
        ]
        return f"{type(value).__name__}({', '.join(fields)})"
    if isinstance(value, CodeType):  # without its position in the source
        return f"{value.co_code.hex()} {value.co_names} {_text(value.co_consts)}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, (set, frozenset)):  # ordered differently in each process
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_text(key)}: {_text(each)}' for key, each in value.items())}}}"
    if isinstance(value, functools.partial):
        return f"partial({_text(value.func)}, {_text(value.args)}, {_text(value.keywords)})"
    if callable(value):
        code = getattr(value, "__code__", None)
        name = getattr(value, "__qualname__", type(value).__qualname__)
        return name if code is None else f"{name} (code {_digest(_text(code))})"
    # Such a repr would contain the object's memory address.
    if getattr(type(value), "__repr__", None) is object.__repr__:
        return type(value).__qualname__
    return repr(value)


__all__ = ["column_texts"]
