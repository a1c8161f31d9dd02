"""`compat.v1` has the names that public TensorFlow 1 programs use, with their keywords.

`tests/golden/api_names.json` lists them by area and tier. What is left out on purpose stands in
ABSENT and CLUSTERS, with what the error says to use instead.
"""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
import estimatorkit.estimator
from estimatorkit.compat.ops.control.critical_section import CriticalSection
from estimatorkit.compat.private import private_modules
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.queues.queue_kinds import FIFOQueue
from estimatorkit.ops.queues.readers import ReaderBase
from estimatorkit.runtime.session import Session

FILES = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((FILES / "api_names.json").read_text("utf-8"))
KINDS = json.loads((FILES / "api_kinds.json").read_text("utf-8"))

# Names that mean a method: the class that has it.
OWNERS: dict[str, Any] = {
    "Tensor": Tensor,
    "Operation": Operation,
    "Session": Session,
    "Queue": FIFOQueue,
    "Reader": ReaderBase,
    "CriticalSection": CriticalSection,
}
OWNER_NAMES = {
    "Graph": "Graph",
    "Variable": "Variable",
    "VariableScope": "VariableScope",
    "TensorArray": "TensorArray",
    "Optimizer": "train.Optimizer",
    "EMA": "train.ExponentialMovingAverage",
    "Saver": "train.Saver",
    "SavedModelBuilder": "saved_model.builder.SavedModelBuilder",
    "Coordinator": "train.Coordinator",
    "Supervisor": "train.Supervisor",
    "FileWriter": "summary.FileWriter",
    "TFRecordWriter": "python_io.TFRecordWriter",
    "Example": "train.Example",
    "LookupTable": "contrib.lookup.HashTable",
    "GFile": "gfile.GFile",
    "Dataset": "data.Dataset",
    "Iterator": "data.Iterator",
    "Estimator": "estimator.Estimator",
    "RunConfig": "estimator.RunConfig",
    "HParams": "contrib.training.HParams",
    "KModel": "keras.Model",
}
# Left out on purpose; what the error says.
ABSENT = {
    "RaggedTensor": "SparseTensor",
    "RaggedTensor.from_row_lengths": "SparseTensor",
    "ragged.constant": "SparseTensor",
    "load_op_library": "jax_function",
    "saved_model.save": "simple_save",
    "keras.applications.VGG16": "keras.layers",
    "keras.preprocessing.image.ImageDataGenerator": "data.Dataset",
    "contrib.gan.gan_loss": "minimize",
    "contrib.boosted_trees.proto.learner_pb2.LearnerConfig": "BoostedTreesClassifier",
    "contrib.eager.Variable": "graphs with sessions",
    "contrib.tpu.keras_to_tpu_model": "TPUEstimator",
    "contrib.learn.monitors.ValidationMonitor": "train_and_evaluate",
    "contrib.image.connected_components": "SciPy",
    "contrib.cluster_resolver.TPUClusterResolver": "TF_CONFIG",
    "distribute.cluster_resolver.TPUClusterResolver": "TF_CONFIG",
}
# Names of methods that come with those, or that the lists take for another object's.
NOT_METHODS = {
    "Session.should_stop": "of monitored sessions",
    "Optimizer.make_session_run_hook": "of SyncReplicasOptimizer",
    "Optimizer.chief_init_op": "of SyncReplicasOptimizer",
    "Optimizer.local_step_init_op": "of SyncReplicasOptimizer",
    "KModel.add": "of Sequential: the test of models has it",
}
# There, but not what TensorFlow 2 has under this name.
OTHER = {"function": "the module with Defun", "enable_eager_execution": "refused when called"}
# Keywords of TensorFlow 2's function of the same name.
LATER_KEYWORDS = {
    "summary.scalar": {"step"},
    "contrib.summary.scalar": {"step"},
    "layers.dense": {"input"},  # a mistake of one program: TensorFlow refuses it, too
}
# Attributes that instances have: `find` sees only classes.
OF_INSTANCES = {
    *("Variable.dtype", "Variable.initializer", "VariableScope.name", "Session.graph"),
    *("ConfigProto.gpu_options", "Example.features", "Tensor.dtype", "Supervisor.saver"),
    *("Server.join", "Server.target"),
}


def in_scope() -> Iterator[str]:
    for tiers in GOLDEN["names"].values():
        for tier in ("S", "A"):
            for marked in tiers.get(tier, ()):
                yield marked.rstrip("†²")


def find(name: str) -> Any:
    owner, _, method = name.rpartition(".")
    if name == "Tensor.as_list":  # of its shape
        return tf.TensorShape.as_list
    if owner in OWNERS:
        return getattr(OWNERS[owner], method)
    if owner in OWNER_NAMES:
        return getattr(find(OWNER_NAMES[owner]), method)
    value: Any = tf
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("name", sorted({*in_scope()} - {*ABSENT, *NOT_METHODS, *OTHER}))
def test_name_exists_with_its_keywords(name: str) -> None:
    if name in OF_INSTANCES:
        return
    value = find(name)
    if not callable(value) or type(value).__module__.startswith("google"):
        return
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return  # a protocol buffer
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    words = set(GOLDEN["keywords"].get(name, ())) - LATER_KEYWORDS.get(name, set())
    missing = [word for word in sorted(words) if word not in parameters]
    assert not missing, f"tf.{name} does not take {missing}; it takes {list(parameters)}"


@pytest.mark.parametrize("name", sorted(ABSENT))
def test_missing_name_suggests_replacement(name: str) -> None:
    with pytest.raises(AttributeError, match=ABSENT[name]):
        find(name)


def test_differing_names_are_explained() -> None:
    with pytest.raises(ValueError, match="graph and a session"):
        tf.enable_eager_execution()
    assert not callable(tf.function)
    for name in NOT_METHODS:
        with pytest.raises(AttributeError):
            find(name)
    assert callable(tf.keras.Sequential.add)


def test_kinds_match_tensorflow() -> None:
    """Modules and values are; classes may be functions that make one, and functions classes."""
    absent = {*ABSENT, *OTHER}
    others = {}
    for name, kind in KINDS.items():
        if name in absent or name in OF_INSTANCES:
            continue
        value = find(name)
        is_module = isinstance(value, types.ModuleType)
        found = "module" if is_module else "callable" if callable(value) else "value"
        if found != {"class": "callable", "function": "callable"}.get(kind, kind):
            others[name] = (kind, found)
    assert not others
    for name in ("keras.layers.Dense", "keras.Model", "estimator.Estimator", "train.AdamOptimizer"):
        assert inspect.isclass(find(name))  # programs make subclasses of these


def test_unknown_name_lists_alternatives() -> None:
    with pytest.raises(AttributeError, match=r"tf\.reduce_summ is not part .* 'reduce_sum'"):
        tf.reduce_summ  # noqa: B018
    with pytest.raises(AttributeError, match=r"tf\.keras\.layers\.Dens is not part"):
        tf.keras.layers.Dens  # noqa: B018


@pytest.mark.parametrize(
    "module",
    [
        *("keras", "keras.layers", "contrib", "contrib.rnn", "contrib.tensorboard.plugins"),
        *("python.framework.ops", "python.util.nest", "examples.tutorials.mnist", "nn.rnn_cell"),
    ],
)
def test_modules_import_as_in_tensorflow(module: str) -> None:
    found = importlib.import_module(f"estimatorkit.compat.v1.{module}")
    value: Any = tf
    for part in module.split("."):
        value = getattr(value, part)
    assert value is found


def test_import_statements() -> None:
    import estimatorkit.compat.v1.keras.layers as layers
    from estimatorkit.compat.v1 import keras
    from estimatorkit.compat.v1.contrib import rnn
    from estimatorkit.compat.v1.examples.tutorials.mnist import input_data
    from estimatorkit.compat.v1.python.framework import ops
    from estimatorkit.compat.v1.python.util import nest

    assert keras.layers is layers
    assert rnn.BasicLSTMCell is tf.nn.rnn_cell.BasicLSTMCell
    assert callable(input_data.read_data_sets)
    assert ops.convert_to_tensor is tf.convert_to_tensor
    assert nest.is_sequence([1])


PRIVATE = json.loads((FILES / "private_names.json").read_text("utf-8"))["names"]
# Two functions here, one in TensorFlow.
TWINS = {"python.ops.random_crop_ops.random_crop"}


@pytest.mark.slow
def test_private_paths_return_public_objects() -> None:
    """Wherever TensorFlow defines what is public, its name is found there, the same object."""
    others = []
    for private, public in PRIVATE.items():
        try:
            wanted = find(public)
        except AttributeError:
            continue  # not here at all
        module, _, name = private.rpartition(".")
        found = getattr(importlib.import_module(f"{tf.__name__}.{module}"), name)
        if found is not wanted and private not in TWINS:
            others.append((private, public))
    assert not others


def test_private_modules_import() -> None:
    listed = json.loads(Path(private_modules.__file__).with_suffix(".json").read_text("utf-8"))
    for package, modules in listed.items():
        above = importlib.import_module(f"{tf.__name__}.{package}")
        for module in modules.split():
            found = getattr(above, module)
            is_named = (
                isinstance(found, types.ModuleType) or module in above.__dict__["_table"].names
            )
            assert is_named, f"{package}.{module} is {found!r}"


PRIVATE_IMPORTS = """
from {0}.python.training import adam, saver as saver_lib, session_run_hook
from {0}.python.keras.layers import Dense
from {0}.python.keras.engine.base_layer import Layer
from {0}.python.feature_column import feature_column as fc, feature_column_lib
from {0}.python.feature_column.feature_column_v2 import EmbeddingColumn
from {0}.python.framework import dtypes, errors_impl, tensor_shape
from {0}.python.feature_column.feature_column import _EmbeddingColumn
from {0}.python.ops import gen_math_ops, init_ops, metrics_impl, rnn_cell_impl
from {0}.python.ops.losses import losses_impl
from {0}.python.estimator import estimator, model_fn
from {0}.python.estimator.canned import dnn, metric_keys, prediction_keys
from {0}.python.layers.core import Dense as DenseV1
from {0}.python.layers.convolutional import Convolution2D
from {0}.python.layers.normalization import batch_norm
import {0}.python.platform.tf_logging as logging
from {0}.contrib.layers.python.layers import initializers
from {0}.contrib.rnn.python.ops import core_rnn_cell, rnn_cell
"""


def test_private_import_statements() -> None:
    names: dict[str, Any] = {}
    exec(PRIVATE_IMPORTS.format(tf.__name__), names)  # noqa: S102
    assert names["adam"].AdamOptimizer is tf.train.AdamOptimizer
    assert names["Dense"] is tf.keras.layers.Dense
    assert names["DenseV1"] is tf.layers.Dense
    assert names["Convolution2D"] is tf.layers.Conv2D
    assert names["batch_norm"] is tf.layers.batch_normalization
    assert names["estimator"].EstimatorV2 is tf.estimator.Estimator
    assert names["dnn"].DNNClassifier is tf.estimator.DNNClassifier
    assert names["dnn"].DNNClassifierV2 is estimatorkit.estimator.DNNClassifier
    assert names["metric_keys"].MetricKeys.LOSS_MEAN == "average_loss"
    assert names["prediction_keys"].PredictionKeys.LOGITS == "logits"
    assert names["model_fn"].LOSS_METRIC_KEY == "loss"
    assert names["metrics_impl"].mean is tf.metrics.mean
    assert names["losses_impl"].log_loss is tf.losses.log_loss
    assert names["rnn_cell_impl"].LSTMCell is tf.nn.rnn_cell.LSTMCell
    assert names["core_rnn_cell"].GRUCell is tf.nn.rnn_cell.GRUCell
    assert names["gen_math_ops"].equal is tf.equal
    column = tf.feature_column.categorical_column_with_identity("x", 3)
    embedded = tf.feature_column.embedding_column(column, 2)
    assert type(embedded) is names["EmbeddingColumn"] is names["_EmbeddingColumn"]
    assert names["logging"].info is tf.logging.info
    assert names["initializers"].xavier_initializer is tf.contrib.layers.xavier_initializer


ABSENT_IMPORTS = {
    "from {0}.python.training import AdamOptimiser": "did you mean 'AdamOptimizer'",
    "from {0}.python.training.nothing import AdamOptimizer": "training.nothing is not part",
    "from {0}.keras.layers import Conv2": "tf.keras.layers.Conv2 is not part",
    "from {0}.keras.applications import ResNet50": "tf.keras.applications.ResNet50 .*keras.layers",
    "from {0}.contrib.learn.python.learn import SVM": "use estimator",
    "import {0}.keras.nothing": "tf.keras.nothing is not part",
    "import {0}.Session": "tf.Session is not a module; use `from",
    "from {0} import Sesion": "did you mean 'Session'",
}


@pytest.mark.parametrize("statement", ABSENT_IMPORTS)
def test_missing_imports_suggest_replacement(statement: str) -> None:
    module, _, name = statement.removeprefix("from ").removeprefix("import ").partition(" import ")
    full = module.format(tf.__name__)
    with pytest.raises(ImportError, match=ABSENT_IMPORTS[statement]):
        __import__(full, fromlist=[name] if name else [])


def test_version_resembles_tensorflow_1() -> None:
    assert tf.__version__.startswith("1.15")
    assert [int(part) for part in tf.VERSION.split(".")] >= [1, 15, 0]


def test_dimensions_have_value() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 7])
        batch, features = x.get_shape()
        assert (batch.value, features.value, x.shape[1].value) == (None, 7, 7)
        assert tf.zeros([features, 2]).shape == (7, 2)
        assert tf.Dimension(None).value is None


def test_operand_names_and_order_match_tensorflow() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        sparse = tf.SparseTensor([[0, 1]], [2.0], [2, 2])
        values = session.run(
            [
                tf.atan2(y=1.0, x=2.0),
                tf.igamma(a=2.0, x=1.0),
                tf.zeta(x=2.0, q=1.0),
                tf.confusion_matrix([0, 1], [1, 1], 2, tf.int64),
                tf.sparse.matmul(sparse, [[1.0], [3.0]]),
                tf.transpose(tf.constant([[1 + 2j]]), conjugate=True),
                tf.nn.swish([1.0], beta=2.0),
                tf.tuple([tf.constant(1)], control_inputs=[tf.no_op()])[0],
            ]
        )
    expected = [
        *(0.4636476, 0.2642411, 1.6449341, [[0, 1], [0, 1]], [[6.0], [0.0]], [[1 - 2j]]),
        *([0.8807971], 1),
    ]
    for value, wanted in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-6)
    assert values[3].dtype == np.int64
    with pytest.raises(TypeError, match="'x'"):
        tf.atan2(1.0)


@pytest.mark.slow
def test_compat_is_attribute_of_package() -> None:
    program = (
        "import estimatorkit as tf\n"
        "assert tf.compat.v1.placeholder and tf.compat.as_bytes('a') == b'a'\n"
        "from estimatorkit.compat import as_text\n"
        "import estimatorkit.compat.v1 as v1; assert v1.compat.v1 is v1 is tf.compat.v1\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_boosted_trees_have_version_1s_metrics() -> None:
    made = tf.estimator.BoostedTreesClassifier([tf.feature_column.numeric_column("x")], 1)
    assert isinstance(made, estimatorkit.estimator.BoostedTreesClassifier)
    assert made._version == 1
    assert tf.estimator.BoostedTreesRegressor.__name__ == "BoostedTreesRegressor"
