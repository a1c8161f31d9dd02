"""Names of later TensorFlow releases: modules that can be imported, and messages about their names.

A message applies to a dotted name below `tf` and everything below it; the longest match wins.
"""

from __future__ import annotations

from collections.abc import Iterable

_GRAPHS = "programs here are graphs with sessions, as in TensorFlow 1"
_STRATEGIES = (
    "use distribute.MirroredStrategy or MultiWorkerMirroredStrategy; without a strategy, a cluster "
    "in TF_CONFIG trains on its parameter servers"
)
_RESOLVERS = "strategies and estimators read TF_CONFIG by themselves; JAX finds a TPU by itself"
_CANNED = "use estimator, data and metrics: contrib.learn ended with TensorFlow 1"
_TPU = "estimator.tpu.TPUEstimator runs on what there is: JAX finds a TPU by itself"
_TREES = "use estimator.BoostedTreesClassifier or BoostedTreesRegressor"
_RAGGED = "use a SparseTensor, or padding and sequence_mask"


_KERAS = {
    "preprocessing.image.ImageDataGenerator": "map image's functions over a data.Dataset",
    "applications": "build the network of keras.layers; Model.load_weights reads what Keras wrote",
}
_CONTRIB = {
    "boosted_trees": _TREES,
    "tensor_forest": "use scikit-learn's RandomForestClassifier or RandomForestRegressor",
    "kernel_methods": "use scikit-learn's RBFSampler before a linear model",
    "timeseries": "use data.Dataset.window and a model of your own",
    "linear_optimizer": "use optimizer='Ftrl'",
    "gan": "two calls of minimize, each with its var_list, train a pair of networks",
    "saved_model": "use saved_model, and keras.Model.save",
    "session_bundle": "use saved_model",
    "tfprof": "use train.ProfilerHook",
    "cloud": "files are those of this machine",
    "losses": "use losses",
    "metrics": "use metrics",
    "estimator": "use estimator and estimator.experimental",
    "eager": _GRAPHS,
    "learn": _CANNED,
    "tpu": _TPU,
    "distribute": _STRATEGIES,
    "cluster_resolver": _RESOLVERS,
    "slim.nets": "there are alexnet, overfeat, resnet_v1, resnet_v2 and vgg",
    "slim.python.slim.nets": "there are alexnet, overfeat, resnet_v1, resnet_v2 and vgg",
}

SENTENCES: dict[str, str] = {
    **{f"contrib.{name}": each for name, each in _CONTRIB.items()},
    **{f"keras.{name}": each for name, each in _KERAS.items()},
    "RaggedTensor": _RAGGED,
    "RaggedTensorSpec": _RAGGED,
    "ragged": _RAGGED,
    "autograph": f"{_GRAPHS}: use cond and while_loop",
    "enable_v2_behavior": _GRAPHS,
    "config": "a session takes a ConfigProto; python.client.device_lib lists devices",
    "raw_ops": "use the public function",
    "distribute": _STRATEGIES,
    "distribute.cluster_resolver": _RESOLVERS,
    "train.ServerDef": "give train.Server a ClusterSpec or a dict, job_name and task_index",
    "tpu": _TPU,
    "estimator.EVAL": "use estimator.ModeKeys.EVAL",
    "saved_model.save": "use saved_model.simple_save, or keras.Model.save",
    "Module": "use layers.Layer",
    "optimizers": "use train's optimizers, or keras.optimizers",
    "estimator.tpu": _TPU,
    "estimator.experimental.LinearSDCA": "use optimizer='Ftrl'",
}

# Their names raise with a suggested replacement; the modules of `tables.MODULES` take precedence.
MODULES = (
    "contrib.cluster_resolver",
    "distribute.cluster_resolver",
    "keras.applications",
    "python.keras.applications",
    "tpu.experimental",
)


def sentence(name: str) -> str | None:
    """The message for a missing dotted name below `tf`; None if there is none."""
    short = name.removeprefix("python.")
    return next((SENTENCES[each] for each in _prefixes(short) if each in SENTENCES), None)


def _prefixes(name: str) -> Iterable[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(len(parts), 0, -1))
