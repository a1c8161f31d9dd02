"""Parts of `contrib.framework`: the variables under a scope or by a suffix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from estimatorkit.core.graph import get_collection
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.variables import Variable


def get_variables(
    scope: Any = None, suffix: str | None = None, collection: str = GraphKeys.GLOBAL_VARIABLES
) -> list[Variable]:
    """The variables whose name begins with a scope and ends with a suffix."""
    prefix = getattr(scope, "name", scope)
    found: list[Variable] = get_collection(collection, prefix)
    return [each for each in found if suffix is None or each.op.name.endswith(suffix)]


def get_variables_to_restore(
    include: Sequence[str] | None = None, exclude: Sequence[str] | None = None
) -> list[Variable]:
    """The global variables under some scopes (all by default) and not under others."""
    found = get_collection(GraphKeys.GLOBAL_VARIABLES)
    return [
        each
        for each in found
        if (include is None or any(re.match(scope, each.op.name) for scope in include))
        and not any(re.match(scope, each.op.name) for scope in exclude or ())
    ]
