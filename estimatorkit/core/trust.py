"""Operations from files: those that touch the outside world run only if the file is trusted.

A graph that comes from a file may have been written by anyone. While it is imported, operations
whose row has `effects` are marked with the folder of the assets that they may read; when one runs,
`check` rejects it. The rest of the graph is not affected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from estimatorkit.core.errors import PermissionDeniedError

if TYPE_CHECKING:
    from estimatorkit.core.tensor import Operation

Effects: TypeAlias = Literal["", "asset", "files", "python"]
"""What a kernel touches beyond its inputs and the session: nothing; the file that its first input
names, which it reads; any files, by the schemes of `gfile`; Python functions."""

_MARK = "_untrusted"
_assets: ContextVar[str | None] = ContextVar("assets", default=None)


@contextmanager
def untrusted(assets: str = "") -> Iterator[None]:
    """Marks the operations created inside the `with` block.

    Args:
        assets: the folder with the files that they may read; none by default.
    """
    token = _assets.set(assets)
    try:
        yield
    finally:
        _assets.reset(token)


def marked(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of an operation with effects, with a mark if it comes from an untrusted file."""
    assets = _assets.get()
    return dict(attrs) if assets is None else {**attrs, _MARK: assets}


def check(op: Operation, effects: Effects, inputs: Sequence[Any]) -> None:
    """Raises PermissionDeniedError if an operation may not run with these inputs."""
    assets = op.attrs.get(_MARK)
    if assets is None:
        return
    names = [os.fsdecode(name) for name in np.ravel(inputs[0])] if effects == "asset" else []
    if assets and names and all(map(_inside(assets), names)):
        return
    what = "Python functions" if effects == "python" else "files"
    raise PermissionDeniedError.explained(
        f"{op.type} operation {op.name!r} comes from a graph that was loaded, and accesses {what}",
        expected=f"only files below {assets!r} are read" if assets else f"no access to {what}",
        received=", ".join(map(repr, names))[:500] or None,
        hint="if you trust who wrote the graph, load it with trusted=True",
        made_at=op.source,
        op=op,
    )


def _inside(folder: str) -> Any:
    prefix = os.path.join(os.path.realpath(folder), "")
    return lambda name: os.path.realpath(name).startswith(prefix)
