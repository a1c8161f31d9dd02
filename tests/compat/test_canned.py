"""TensorFlow's private `canned.dnn`, `canned.linear`, `canned.kmeans` and `canned.optimizers`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.v1.python.estimator import estimator, util
from estimatorkit.compat.v1.python.estimator.canned import dnn, kmeans, linear, optimizers

COLUMNS = [tf.feature_column.numeric_column("x")]
TRAIN = tf.estimator.ModeKeys.TRAIN


@pytest.mark.parametrize(
    ("builder", "model_fn", "make_head"),
    [
        (dnn.dnn_logit_fn_builder_v2, dnn.dnn_model_fn_v2, tf.estimator.RegressionHead),
        (None, dnn._dnn_model_fn, tf.contrib.estimator.regression_head),
    ],
)
def test_dnn_model_functions(builder: Any, model_fn: Any, make_head: Any) -> None:
    features = {"x": tf.constant([[1.0], [2.0]])}
    with tf.Graph().as_default():
        features = {"x": tf.constant([[1.0], [2.0]])}
        tf.train.create_global_step()
        spec = model_fn(features, tf.constant([1.0, 2.0]), TRAIN, make_head(), (3,), COLUMNS)
        made = {variable.op.name for variable in tf.trainable_variables()}
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(spec.train_op)
            assert session.run(tf.train.get_global_step()) == 1
        with pytest.raises(ValueError, match="features should be a dict"):
            model_fn(features["x"], None, TRAIN, make_head(), (3,), COLUMNS)
    parts = ("kernel", "bias")
    end = "/part_0" if builder is None else ""
    assert made == {
        f"dnn/{layer}/{part}{end}" for layer in ("hiddenlayer_0", "logits") for part in parts
    }
    if builder is not None:
        with tf.Graph().as_default():
            logit_fn = builder(1, (3,), COLUMNS, tf.nn.relu, None, False)
            logit_fn({"x": tf.constant([[1.0]])}, TRAIN)
            assert {variable.op.name for variable in tf.trainable_variables()} == made


def test_cluster_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert estimator._get_replica_device_setter(tf.estimator.RunConfig()) is None
    cluster = {"chief": ["a:1"], "ps": ["b:1", "c:1"], "worker": ["d:1"]}
    config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    setter = estimator._get_replica_device_setter(tf.estimator.RunConfig())
    with tf.Graph().as_default(), tf.device(setter):
        first, second = tf.Variable([1, 2]), tf.Variable([2, 1])
        total = first + second
    places = ["/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"]
    assert [each.device for each in (first, second, total)] == places


def test_manual_evaluation(tmp_path: Path) -> None:
    estimator._write_dict_to_summary(str(tmp_path), {"loss": 0.5, "global_step": 3}, 3)
    (file,) = tmp_path.glob("*tfevents*")
    written = {
        value.tag: (event.step, value.simple_value)
        for event in tf.train.summary_iterator(str(file))
        for value in event.summary.value
    }
    assert written == {"loss": (3, 0.5)}


def test_parse_input_fn_result() -> None:
    with tf.Graph().as_default():
        tensors = tf.constant([1]), tf.constant([2])
        assert util.parse_input_fn_result(tensors) == (*tensors, [])
        assert util.parse_input_fn_result(tensors[0]) == (tensors[0], None, [])
        dataset = tf.data.Dataset.from_tensors(([1.0], [2.0]))
        features, labels, hooks = util.parse_input_fn_result(dataset)
        assert isinstance(hooks[0], util._DatasetInitializerHook)
        with tf.train.MonitoredSession(hooks=hooks) as session:
            assert [list(each) for each in session.run([features, labels])] == [[1.0], [2.0]]
        with pytest.raises(ValueError, match="input_fn should return"):
            util.parse_input_fn_result((1, 2, 3))


def test_fraction_of_zeros() -> None:
    fraction = linear._compute_fraction_of_zero
    with tf.Graph().as_default(), tf.Session() as session:
        mixed = [[tf.constant([0.0, 0, 1, 1, 1])], tf.constant([0, 0, 0, 0, 1])]
        assert session.run(fraction(mixed)) == np.float32(0.6)
        assert np.isnan(session.run(fraction([tf.constant([])])))
        with pytest.raises(ValueError, match="at least one"):
            fraction([])


def test_optimizers_by_name() -> None:
    made = optimizers.get_optimizer_instance("Adam", learning_rate=0.1)
    assert isinstance(made, tf.train.AdamOptimizer)
    assert made._lr == 0.1
    made._lr = 0.2
    assert made._learning_rate == 0.2
    with pytest.raises(ValueError, match="learning_rate must be specified when opt is string"):
        optimizers.get_optimizer_instance("Adam")
    with tf.Graph().as_default(), tf.Session() as session:
        keras = optimizers.get_optimizer_instance_v2("RMSProp", 0.1)
        assert isinstance(keras, tf.keras.optimizers.RMSprop)
        rate = keras.learning_rate
        session.run(tf.global_variables_initializer())
        assert session.run(rate) == np.float32(0.1)
    assert optimizers.get_optimizer_instance_v2(lambda: keras) is keras
    with pytest.raises(ValueError, match="Unsupported optimizer name: Adm"):
        optimizers.get_optimizer_instance_v2("Adm")
    with pytest.raises(ValueError, match=r"not a tf\.keras\.optimizers\.Optimizer instance"):
        optimizers.get_optimizer_instance_v2((1, 2))


def test_contrib_kmeans_returns_squared_distances(tmp_path: Path) -> None:
    points = np.array([[0.0, 0.0], [3.0, 4.0]], np.float32)

    def input_fn() -> Any:
        return tf.train.limit_epochs(tf.constant(points), num_epochs=1)

    found = tf.contrib.factorization.KMeansClustering(
        1, str(tmp_path), points[:1], use_mini_batch=False, random_seed=1
    )
    assert issubclass(tf.contrib.factorization.KMeansClustering, kmeans.KMeansClustering)
    found.train(lambda: tf.constant(points[:1]), steps=1)
    np.testing.assert_allclose(list(found.transform(input_fn)), [[0.0], [25.0]])
    features = {"b": [[4.0]], "a": [[3.0]]}
    with tf.Graph().as_default(), tf.Session() as session:
        parsed = kmeans._parse_features_if_necessary(features, None)
        np.testing.assert_array_equal(session.run(parsed), [[3.0, 4.0]])


def test_private_estimator_module_names(tmp_path: Path) -> None:
    from estimatorkit.compat.v1.python.estimator import estimator, run_config
    from estimatorkit.compat.v1.python.estimator.export import export
    from estimatorkit.compat.v1.python.ops import variables

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        variables.VariableV1(1.0, name="one")
        step = tf.assign_add(tf.train.get_global_step(), 1)
        return tf.estimator.EstimatorSpec(mode, loss=tf.constant(0.0), train_op=step)

    trained = estimator.EstimatorV2(model_fn, str(tmp_path))
    assert estimator._load_global_step_from_checkpoint_dir(trained.model_dir) == 0
    trained.train(lambda: ({"x": tf.constant([1])}, tf.constant([1])), steps=3)
    assert estimator._load_global_step_from_checkpoint_dir(trained.model_dir) == 3
    assert variables.RefVariable is tf.Variable
    assert run_config.TaskType.CHIEF == "chief"
    assert export.EXPORT_TAG_MAP["infer"] == [tf.saved_model.tag_constants.SERVING]
    assert callable(export.build_supervised_input_receiver_fn_from_input_fn)
