"""Targets: what sessions share that were opened on the same one.

A session of target '' has its variables, tables and queues for itself. The sessions of another
target, also of other graphs, share them by name, and they outlive the sessions. A target lives in
this process.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from typing import Any

from estimatorkit.core.errors import NotFoundError, explain


@dataclass(eq=False)
class Held:
    """What sessions hold between runs.

    Attributes:
        values: variables by name, and the counters of random operations.
        resources: host objects by name (queues, tables, ...).
        lock: held while values change.
        making: held while a resource is made.
    """

    values: dict[str, Any] = field(default_factory=dict)
    resources: dict[Any, Any] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    making: threading.RLock = field(default_factory=threading.RLock)

    def clear(self) -> None:
        """Forgets all and closes what can be closed."""
        self.values.clear()
        for resource in list(self.resources.values()):
            close = getattr(resource, "close", None)
            if close is not None:
                close()
        self.resources.clear()


_targets: dict[str, Held] = {}
_numbers = itertools.count(1)


def open_target() -> str:
    """A new target that holds nothing."""
    name = f"local://{next(_numbers)}"
    _targets[name] = Held()
    return name


def held_by(target: str) -> Held:
    """What the sessions of a target share; something of its own for each session of ''.

    Raises:
        NotFoundError: nothing of this process has this target.
    """
    if not target:
        return Held()
    if target not in _targets:
        raise NotFoundError(
            None,
            None,
            explain(
                "Session: this target cannot be reached",
                expected="'' (a session by itself) or the target of a server of this process",
                received=repr(target),
                hint="train.Server.create_local_server().target; servers of other processes come "
                "with a later release",
            ),
        )
    return _targets[target]
