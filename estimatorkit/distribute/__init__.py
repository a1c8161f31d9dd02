"""Many processes and machines: who takes part, and how a cluster is started.

`launch` starts the processes of a cluster on this machine.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_PLACES = {
    **names("estimatorkit.train.cluster_spec", "ClusterSpec"),
    **names("estimatorkit.train.cluster_task", "ClusterTask"),
    **names("estimatorkit.distribute.launching", "Launch", "local_cluster"),
}

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
