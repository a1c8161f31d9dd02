"""Distributed training: cluster specs, tasks, replicas, strategies, launching.

Importing this makes 'grpc://host:port' a target of sessions.
"""

from __future__ import annotations

from estimatorkit.distribute.tasks import task_cluster as task_cluster
from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
