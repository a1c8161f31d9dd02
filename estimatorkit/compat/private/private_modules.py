"""TensorFlow's private modules, such as `from tensorflow.python.training import adam`.

`private_modules.json` lists the modules below `tensorflow.python` and below `tensorflow.contrib`
(TensorFlow 1.15 and 2.15, with `tensorflow_estimator.python` merged in). They have no files here: a
name is looked up in the public modules of its area (`_AREAS`, the longest prefixes first), and then
in all others. A missing name raises on use, with a suggested replacement.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from estimatorkit.compat.modules import Table, tables_of

# Public modules by prefix of a private module's name, as rows of `compat.tables`; `everywhere` is
# searched for all other names.
_AREAS = """
python.keras.{backend,callbacks,datasets,losses,metrics,activations,constraints}: .compat.v1.keras.*
python.keras.{mixed_precision,models,optimizers,preprocessing,regularizers}: .compat.v1.keras.*
python.keras.{utils,initializers}: .compat.v1.keras.*
contrib.keras.python.keras: .keras
python.client.timeline: .runtime.xla.timeline
python.client.device_lib: .compat.private.device_lib
python.data: .data .compat.v1.data.experimental
python.data.experimental: .compat.v1.data.experimental
python.data.util.nest python.util.nest: .core.nest
python.distribute: .compat.v1.distribute .compat.v1.distribute.experimental
        .compat.v1.contrib.distribute
python.estimator: .compat.v1.estimator .estimator.export .compat.v1.estimator.experimental
        .data.inputs .compat.private.estimator_keys .estimator.serving.serving_inputs
python.feature_column: .layers.feature_column
python.framework.dtypes: .core.dtypes
python.framework.errors: .core.errors
python.framework.function: .compat.v1.function
python.framework.ops: .compat.private.framework_ops
python.framework.graph_util: .graph_util
python.framework.tensor_shape: .compat.private.shapes
python.framework.tensor_util: .compat.private.tensor_protos .core.registry
python.framework.meta_graph: .compat.private.framework_meta_graph .train.saving.meta_graph
python.framework.common_shapes: .compat.private.common_shapes
python.framework.device: .compat.private.framework_devices
python.framework.test_: .compat.testing.test_util .compat.testing.test_case
python.keras: .keras .compat.v1.keras.layers .keras.models
python.keras.optimizer_v2: .compat.v1.keras.optimizers
python.keras.optimizer_v2.learning_rate_schedule: .compat.v1.keras.optimizers.schedules
python.keras.premade: .compat.v1.keras.experimental
python.keras.wrappers: .compat.v1.keras.wrappers.scikit_learn
python.layers: .layers
python.lib.io python.platform.gfile: .gfile .python_io
python.lib.io.file_io: .compat.private.file_io
python.ops.audio_ops: .audio .compat.ops.text.audio_features
python.ops.bitwise_ops: .bitwise
python.ops.candidate_sampling_ops python.ops.ctc_ops python.ops.embedding_ops python.ops.nn: .nn
        .compat.layers.recurrent.rnn
python.ops.check_ops: .debugging
python.ops.control_flow_ops: .ops.debug.debug .compat.ops.control.switches
python.ops.confusion_matrix python.ops.weights_broadcast_ops: .layers.weighting
python.ops.image_: .image
python.ops.init_ops: .initializers
python.ops.linalg: .linalg
python.ops.lookup_ops: .lookup
python.ops.losses: .losses
python.ops.math_ops: .math
python.ops.metrics: .metrics
python.ops.random_ops: .random
python.ops.ragged python.ops.string_ops: .strings
python.ops.rnn: .compat.layers.recurrent.rnn_cell .compat.layers.recurrent.rnn
python.ops.sets: .sets
python.ops.signal: .signal
python.ops.sparse_ops: .sparse
python.ops.summary_ops python.summary: .summary
python.ops.summary_ops_v2: .compat.contrib.summary
python.platform: .compat.testing.test_case .compat.resources
python.platform.app: .compat.app
python.platform.flags: .compat.v1.flags
python.platform.tf_logging: .compat.logging
python.pywrap_tensorflow python.training: .train
python.saved_model: .saved_model .train.saving.saved_model_builder
        .train.saving.saved_model_constants .train.saving.saved_model_loader
        .train.saving.signatures
python.tpu: .compat.v1.tpu
python.tools: .compat.private.tools
python.training.moving_averages: .train.optimizers.moving_averages
python.training.slot_creator: .train.optimizers.slot_creator
python.training.training_ops: .compat.private.training_ops
python.training.saving: .train.saving.saver
python.util.compat: .compat.text
everywhere: .compat.v1 .nn .compat.layers.recurrent.rnn .train .math .linalg .strings .sparse .image
        .io
        .random .lookup .queue .data .summary .saved_model .graph_util .debugging .signal
        .layers.feature_column .distribute .compat.v1.estimator .compat.testing.test_case
"""


class AllTables(Mapping[str, Table]):
    """The tables of public and private modules, by name below `ROOT`; the latter built on access.

    Args:
        public: the tables of public modules. A private module in it keeps its own names, and falls
            back to its area; below `contrib` a module falls back to its `contrib.<package>`.
    """

    def __init__(self, public: Mapping[str, Table]) -> None:
        self._public = public
        text = Path(__file__).with_suffix(".json").read_text("utf-8")
        names = (
            f"{package}.{module}"
            for package, modules in json.loads(text).items()
            for module in modules.split()
        )
        self._private = {
            name
            for name in names
            if not name.startswith("contrib.") or (name not in public and self._nearest(name))
        }

    def __iter__(self) -> Iterator[str]:
        """The names of all modules."""
        return iter({**self._public, **dict.fromkeys(self._private)})

    def __len__(self) -> int:
        """The number of modules."""
        return len(self._private.union(self._public))

    def __contains__(self, name: object) -> bool:
        """Whether there is such a module."""
        return name in self._private or name in self._public

    def __getitem__(self, name: str) -> Table:
        """The table of a module."""
        if name not in self._private:
            return self._public[name]
        areas, empty = _areas(name), Table()
        own = self._public.get(name, empty)
        if not name.startswith("contrib."):
            return Table((*own.behind, *areas), own.names, own.instead, _areas_by_prefix()[""])
        # `contrib.slim.python.slim.learning` is `contrib.slim.learning`.
        same = self._public.get(f"{'.'.join(name.split('.')[:2])}.{name.split('.')[-1]}", empty)
        above = self._nearest(name) or empty
        return Table(
            (*same.behind, *above.behind, *areas),
            {**above.names, **same.names},
            {**above.instead, **same.instead},
        )

    def _nearest(self, name: str) -> Table | None:
        """The table of a module's innermost package that has one."""
        while name and name not in self._public:
            name = name.rpartition(".")[0]
        return self._public.get(name)


def _areas(name: str) -> list[str]:
    """The public modules of a private module's areas, those of the longest prefix first."""
    plain = name.replace(".gen_", ".")  # generated wrappers: gen_math_ops
    areas = _areas_by_prefix()
    prefixes = [prefix for prefix in areas if prefix and plain.startswith(prefix)]
    return [
        module for prefix in sorted(prefixes, key=len, reverse=True) for module in areas[prefix]
    ]


@cache
def _areas_by_prefix() -> dict[str, Sequence[str]]:
    tables = tables_of(_AREAS)
    return {name.removeprefix("everywhere"): table.behind for name, table in tables.items()}
