"""Distributed training: cluster specs, tasks, replicas, strategies, launching."""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
