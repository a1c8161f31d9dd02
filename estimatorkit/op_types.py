"""Every module that registers op types outside `ops`, imported.

A process that runs a graph of another needs the rows of all op types, also of those whose modules
it has had no reason to import.
"""

from __future__ import annotations

from estimatorkit.compat.train.optimizers import (
    contrib_rules as contrib_rules,
    sync_replicas_optimizer as sync_replicas_optimizer,
)
from estimatorkit.compat.train.queues import (
    input_producers as input_producers,
    sparse_batches as sparse_batches,
)
from estimatorkit.data import (
    dataset_values as dataset_values,
    experimental as experimental,
    iterator_ops as iterator_ops,
    traced_functions as traced_functions,
)
from estimatorkit.data.readers import record_writing as record_writing
from estimatorkit.estimator.serving import exported_module as exported_module
from estimatorkit.layers.metrics import ranking as ranking, thresholds as thresholds
from estimatorkit.premade import label_names as label_names, multi_label_head as multi_label_head
from estimatorkit.train.optimizers import (
    keras_rules as keras_rules,
    optimizer_rules as optimizer_rules,
)
