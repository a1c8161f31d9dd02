"""What later releases bring: modules that import already, and what to say of their names.

A sentence stands for a dotted name below `tf` and all that is below it; the longest one counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from estimatorkit.compat.modules import Table

_GRAPHS = "programs here are graphs with sessions, as in TensorFlow 1"
_CLUSTERS = (
    "clusters and replicas come with a later release; one process uses its devices by tf.device"
)
_CANNED = "use estimator, data and metrics: contrib.learn ended with TensorFlow 1"
_TPU = "estimator.tpu.TPUEstimator runs on what there is: JAX finds a TPU by itself"
_RAGGED = "use a SparseTensor, or padding and sequence_mask"


def _later(prefix: str, names: str, sentence: str) -> dict[str, str]:
    return {f"{prefix}.{name}": sentence for name in names.split()}


SENTENCES: dict[str, str] = {
    "RaggedTensor": _RAGGED,
    "RaggedTensorSpec": _RAGGED,
    "ragged": _RAGGED,
    "autograph": f"{_GRAPHS}: use cond and while_loop",
    "enable_v2_behavior": _GRAPHS,
    "contrib.eager": _GRAPHS,
    "config": "a session takes a ConfigProto; python.client.device_lib lists devices",
    "raw_ops": "use the public function",
    "distribute": _CLUSTERS,
    "contrib.distribute": _CLUSTERS,
    "contrib.cluster_resolver": _CLUSTERS,
    **_later(
        "train",
        "ClusterSpec ClusterDef JobDef ServerDef SyncReplicasOptimizer replica_device_setter",
        _CLUSTERS,
    ),
    "tpu": _TPU,
    "contrib.tpu": _TPU,
    "estimator.tpu": _TPU,
    "contrib.learn": _CANNED,
    "contrib.estimator": "use estimator and estimator.experimental",
    "contrib.losses": "use losses",
    "contrib.metrics": "use metrics",
    "contrib.seq2seq": "use nn.dynamic_rnn, nn.raw_rnn and "
    "nn.sparse_softmax_cross_entropy_with_logits",
    "contrib.legacy_seq2seq": "use nn.static_rnn",
    "contrib.cudnn_rnn": "use nn.rnn_cell: XLA compiles the cells",
    "contrib.crf": "not part of this release",
    "estimator.experimental.LinearSDCA": "use optimizer='Ftrl'",
    **_later(
        "estimator",
        "BoostedTreesClassifier BoostedTreesRegressor BoostedTreesEstimator",
        "use scikit-learn's HistGradientBoostingClassifier or HistGradientBoostingRegressor: trees "
        "grow on all data at once, not in steps over batches",
    ),
}

_KERAS_MODULES = (
    *("activations", "applications", "backend", "callbacks", "constraints", "datasets"),
    *("datasets.mnist", "estimator", "initializers", "layers", "losses", "metrics", "models"),
    *("optimizers", "preprocessing", "preprocessing.image", "preprocessing.sequence"),
    *("preprocessing.text", "regularizers", "utils", "wrappers"),
)

# The names of these say what to use instead; the modules of `tables.MODULES` come before them.
MODULES: dict[str, Table] = {
    **{
        f"{top}keras.{name}": Table()
        for top in ("", "python.", "contrib.")
        for name in _KERAS_MODULES
    },
    **{
        name: Table()
        for name in (
            *("contrib.cluster_resolver", "contrib.distribute"),
            *("contrib.seq2seq", "contrib.legacy_seq2seq"),
            *("distribute.cluster_resolver", "distribute.experimental", "tpu.experimental"),
        )
    },
}


def sentence(name: str) -> str | None:
    """What to say of a dotted name below `tf` that is not there; None where nothing is known."""
    short = name.removeprefix("python.")
    return next((SENTENCES[each] for each in _prefixes(short) if each in SENTENCES), None)


def _prefixes(name: str) -> Iterable[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(len(parts), 0, -1))
