"""Import of the nodes by which TensorFlow's graphs save and restore themselves.

Part of the table of `graphdef_tensorflow`.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.core import registry
from estimatorkit.core.tensor import Operation
from estimatorkit.interop.graphdef_rules import Call, Node, Rule
from estimatorkit.ops.files import checkpoint_ops as _checkpoint_ops  # noqa: F401 (registers ops)


def _made(type_: str) -> Call:
    return lambda _, n: registry.apply(type_, n.inputs, None, n.name)


def _restore(_: Any, n: Node) -> Operation:
    return registry.apply("RestoreV2", n.inputs, {"dtypes": tuple(n["dtypes"])}, n.name)


def _restore_v1(_: Any, n: Node) -> Operation:
    return registry.apply("Restore", n.inputs[:2], {"dtypes": (n["dt"],)}, n.name)


FILE_RULES: dict[str, Rule] = {
    **{
        type_: Rule("", _made(made))
        for type_, made in (
            ("Save", "Save"),
            ("SaveSlices", "SaveV2"),
            ("SaveV2", "SaveV2"),
            *((type_, type_) for type_ in ("ShardedFilename", "ShardedFilespec")),
            ("MergeV2Checkpoints", "MergeV2Checkpoints"),
        )
    },
    "Restore": Rule("", _restore_v1),
    "RestoreV2": Rule("", _restore),
}
