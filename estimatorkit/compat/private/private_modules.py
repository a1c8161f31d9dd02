"""TensorFlow's private modules: `from tensorflow.python.training import adam` and its like.

`private_modules.json` lists the modules below `tensorflow.python` and below `tensorflow.contrib`
(TensorFlow 1.15 and 2.15, with `tensorflow_estimator.python` merged in). None has a file here: a
name of a private module is looked up in the public modules of its area (`_AREAS`, the longest
prefixes first), and then in all others. A name that does not exist says what to use instead, when
it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from estimatorkit.compat.modules import ROOT, Table

_CORE = "estimatorkit.core"
_COMPAT = "estimatorkit.compat"
_RNN = ("estimatorkit.layers.recurrent.rnn_cell", "estimatorkit.layers.recurrent.rnn")
_NN = ("estimatorkit.nn", "estimatorkit.layers.recurrent.rnn")
_TRAIN = ("estimatorkit.train",)
_SUMMARY = ("estimatorkit.summary",)
_IO = ("estimatorkit.gfile", "estimatorkit.python_io")

# Public modules by prefix of a private module's name.
_AREAS: Mapping[str, tuple[str, ...]] = {
    "contrib.keras.python.keras": ("estimatorkit.keras",),
    "python.client.timeline": ("estimatorkit.runtime.timeline",),
    "python.client.device_lib": ("estimatorkit.compat.private.device_lib",),
    "python.data": ("estimatorkit.data", f"{ROOT}.data.experimental"),
    "python.data.experimental": (f"{ROOT}.data.experimental",),
    "python.data.util.nest": (f"{_CORE}.nest",),
    "python.distribute": (
        *(f"{ROOT}.distribute", f"{ROOT}.distribute.experimental", f"{ROOT}.contrib.distribute"),
    ),
    "python.estimator": (
        *(f"{ROOT}.estimator", "estimatorkit.estimator.export", f"{ROOT}.estimator.experimental"),
        *("estimatorkit.data.inputs", "estimatorkit.compat.private.estimator_keys"),
        "estimatorkit.estimator.serving.serving_inputs",
    ),
    "python.feature_column": ("estimatorkit.layers.feature_column",),
    "python.framework.dtypes": (f"{_CORE}.dtypes",),
    "python.framework.errors": (f"{_CORE}.errors",),
    "python.framework.function": (f"{ROOT}.function",),
    "python.framework.ops": ("estimatorkit.compat.private.framework_ops",),
    "python.framework.graph_util": ("estimatorkit.graph_util",),
    "python.framework.tensor_shape": ("estimatorkit.compat.private.shapes",),
    "python.framework.tensor_util": (
        "estimatorkit.compat.private.tensor_protos",
        f"{_CORE}.registry",
    ),
    "python.framework.meta_graph": (
        f"{_COMPAT}.private.framework_meta_graph",
        "estimatorkit.train.saving.meta_graph",
    ),
    "python.framework.common_shapes": (f"{_COMPAT}.private.common_shapes",),
    "python.framework.device": (f"{_COMPAT}.private.framework_devices",),
    "python.framework.test_": (
        "estimatorkit.compat.testing.test_util",
        "estimatorkit.compat.testing.test_case",
    ),
    "python.keras": ("estimatorkit.keras", f"{ROOT}.keras.layers", "estimatorkit.keras.models"),
    **{
        f"python.keras.{private}": (f"{ROOT}.keras.{public}",)
        for private, public in (
            *((name, name) for name in ("backend", "callbacks", "datasets", "losses", "metrics")),
            *((name, name) for name in ("activations", "constraints", "mixed_precision", "models")),
            *((name, name) for name in ("optimizers", "preprocessing", "regularizers", "utils")),
            *(("initializers", "initializers"), ("optimizer_v2", "optimizers")),
            *(("optimizer_v2.learning_rate_schedule", "optimizers.schedules"),),
            *(("premade", "experimental"), ("wrappers", "wrappers.scikit_learn")),
        )
    },
    "python.layers": ("estimatorkit.layers",),
    "python.lib.io": _IO,
    "python.lib.io.file_io": ("estimatorkit.compat.private.file_io",),
    "python.ops.audio_ops": ("estimatorkit.audio", "estimatorkit.ops.text.audio_features"),
    "python.ops.bitwise_ops": ("estimatorkit.bitwise",),
    "python.ops.candidate_sampling_ops": _NN,
    "python.ops.check_ops": ("estimatorkit.debugging",),
    "python.ops.control_flow_ops": (
        "estimatorkit.ops.debug.debug",
        "estimatorkit.ops.control.switches",
    ),
    "python.ops.confusion_matrix": ("estimatorkit.layers.weighting",),
    "python.ops.ctc_ops": _NN,
    "python.ops.embedding_ops": _NN,
    "python.ops.image_": ("estimatorkit.image",),
    "python.ops.init_ops": ("estimatorkit.initializers",),
    "python.ops.linalg": ("estimatorkit.linalg",),
    "python.ops.lookup_ops": ("estimatorkit.lookup",),
    "python.ops.losses": ("estimatorkit.losses",),
    "python.ops.math_ops": ("estimatorkit.math",),
    "python.ops.metrics": ("estimatorkit.metrics",),
    "python.ops.nn": _NN,
    "python.ops.random_ops": ("estimatorkit.random",),
    "python.ops.ragged": ("estimatorkit.strings",),
    "python.ops.rnn": _RNN,
    "python.ops.sets": ("estimatorkit.sets",),
    "python.ops.signal": ("estimatorkit.signal",),
    "python.ops.sparse_ops": ("estimatorkit.sparse",),
    "python.ops.string_ops": ("estimatorkit.strings",),
    "python.ops.summary_ops": _SUMMARY,
    "python.ops.summary_ops_v2": ("estimatorkit.compat.contrib.summary",),
    "python.ops.weights_broadcast_ops": ("estimatorkit.layers.weighting",),
    "python.platform": ("estimatorkit.compat.testing.test_case", "estimatorkit.compat.resources"),
    "python.platform.app": ("estimatorkit.compat.app",),
    "python.platform.flags": (f"{ROOT}.flags",),
    "python.platform.gfile": _IO,
    "python.platform.tf_logging": ("estimatorkit.compat.logging",),
    "python.pywrap_tensorflow": _TRAIN,
    "python.saved_model": (
        "estimatorkit.saved_model",
        *(
            f"estimatorkit.train.saving.saved_model_{part}"
            for part in ("builder", "constants", "loader")
        ),
        "estimatorkit.train.saving.signatures",
    ),
    "python.summary": _SUMMARY,
    "python.tpu": (f"{ROOT}.tpu",),
    "python.tools": ("estimatorkit.compat.private.tools",),
    "python.training": _TRAIN,
    "python.training.moving_averages": ("estimatorkit.train.optimizers.moving_averages",),
    "python.training.slot_creator": ("estimatorkit.train.optimizers.slot_creator",),
    "python.training.training_ops": ("estimatorkit.compat.private.training_ops",),
    "python.training.saving": ("estimatorkit.train.saving.saver",),
    "python.util.compat": ("estimatorkit.compat.text",),
    "python.util.nest": (f"{_CORE}.nest",),
}

# Where any other name is looked for, in this order.
_EVERYWHERE = (
    *(ROOT, *_NN, "estimatorkit.train", "estimatorkit.math", "estimatorkit.linalg"),
    *("estimatorkit.strings", "estimatorkit.sparse", "estimatorkit.image", "estimatorkit.io"),
    *("estimatorkit.random", "estimatorkit.lookup", "estimatorkit.queue", "estimatorkit.data"),
    *("estimatorkit.summary", "estimatorkit.saved_model", "estimatorkit.graph_util"),
    *("estimatorkit.debugging", "estimatorkit.signal", "estimatorkit.layers.feature_column"),
    *("estimatorkit.distribute", f"{ROOT}.estimator", "estimatorkit.compat.testing.test_case"),
)


def private_tables(public: Mapping[str, Table]) -> dict[str, Table]:
    """The tables of the private modules, by name below `ROOT`.

    Args:
        public: those of the other modules. One that is there keeps its own names, and finds more by
            its area; below `contrib` a module finds what its `contrib.<package>` has.
    """
    text = Path(__file__).with_suffix(".json").read_text("utf-8")
    found = {}
    for package, modules in json.loads(text).items():
        for name in (f"{package}.{module}" for module in modules.split()):
            if not name.startswith("contrib."):
                own = public.get(name, Table())
                behind = (*own.behind, *_areas(name))
                found[name] = Table(behind, own.names, own.instead, _EVERYWHERE)
            elif name not in public and (above := _nearest(public, name)) is not None:
                # `contrib.slim.python.slim.learning` is `contrib.slim.learning`.
                same = public.get(f"{'.'.join(name.split('.')[:2])}.{name.split('.')[-1]}", Table())
                found[name] = Table(
                    (*same.behind, *above.behind, *_areas(name)),
                    {**above.names, **same.names},
                    {**above.instead, **same.instead},
                )
    return found


def _nearest(tables: Mapping[str, Table], name: str) -> Table | None:
    """The table of the innermost package of a module that has one."""
    while name and name not in tables:
        name = name.rpartition(".")[0]
    return tables.get(name)


def _areas(name: str) -> list[str]:
    plain = name.replace(".gen_", ".")  # generated wrappers: gen_math_ops
    near = _near(name.rpartition(".")[0])
    return [module for prefix in near if plain.startswith(prefix) for module in _AREAS[prefix]]


@cache
def _near(package: str) -> list[str]:
    """The prefixes that a module of a package may have, the longest first."""
    return [
        prefix
        for prefix in sorted(_AREAS, key=len, reverse=True)
        if prefix.startswith(package) or package.startswith(prefix)
    ]
