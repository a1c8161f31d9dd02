"""Strategies under the names of `tf.distribute.experimental`."""

from __future__ import annotations

from estimatorkit.distribute.replicas.mirrored import CentralStorageStrategy
from estimatorkit.distribute.replicas.multi_worker import (
    CommunicationImplementation,
    MultiWorkerMirroredStrategy,
)
from estimatorkit.distribute.replicas.strategies import ParameterServerStrategy
from estimatorkit.lazy import listing

__dir__ = listing(__name__)

CollectiveCommunication = CommunicationImplementation

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "CommunicationImplementation",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
]
