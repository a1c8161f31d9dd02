"""`tf.distribute` and `tf.contrib.distribute`: names, single devices and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

contrib = tf.contrib.distribute


def trained(**arguments: Any) -> tuple[Any, list[str]]:
    """The weights of a linear model after five steps, and its variables' devices."""
    devices: list[str] = []

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
        devices.append(w.device)
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(features * w, 1) - labels))
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn() -> Any:
        x = np.array([[1.0, 2.0], [3.0, -1.0]], np.float32)
        return tf.data.Dataset.from_tensors((x, np.array([1.0, 2.0], np.float32))).repeat()

    config = tf.estimator.RunConfig(tf_random_seed=1, **arguments)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    estimator.train(input_fn, steps=5)
    return estimator.get_variable_value("w"), devices


@pytest.fixture(scope="module")
def alone() -> Any:
    return trained()[0]


@pytest.mark.parametrize(
    "arguments",
    [
        {"train_distribute": contrib.OneDeviceStrategy("device:CPU:0")},
        {"train_distribute": contrib.ParameterServerStrategy(num_gpus_per_worker=0)},
        {"train_distribute": tf.distribute.experimental.ParameterServerStrategy()},
        {"train_distribute": tf.distribute.experimental.CentralStorageStrategy(["/cpu:0"])},
        {
            "experimental_distribute": contrib.DistributeConfig(
                contrib.MirroredStrategy(
                    ["/cpu:0"], cross_device_ops=contrib.AllReduceCrossDeviceOps("nccl", 2)
                )
            )
        },
    ],
    ids=["one device", "parameter servers", "experimental", "central storage", "config"],
)
def test_single_replica_matches_no_strategy(arguments: dict[str, Any], alone: Any) -> None:
    np.testing.assert_array_equal(trained(**arguments)[0], alone)


def test_one_device_strategy_places_model() -> None:
    for strategy in (
        tf.distribute.OneDeviceStrategy("device:CPU:0"),
        tf.distribute.MirroredStrategy(["/cpu:0"]),
    ):
        assert trained(train_distribute=strategy)[1] == ["/device:CPU:0"]


def test_refused_classes_may_be_listed_in_tables() -> None:
    table = {
        name: getattr(contrib, name)
        for name in (
            "TPUStrategy",
            "Monitor",
            "StandardInputStep",
            "StandardSingleLossStep",
            "Step",
        )
    }
    for name, strategy in table.items():
        with pytest.raises(tf.errors.UnimplementedError, match=f"{name} is not part"):
            strategy("resolver", steps_per_run=2)


def test_legacy_names() -> None:
    assert contrib.get_distribution_strategy is tf.distribute.get_strategy
    assert contrib.get_tower_context is tf.distribute.get_replica_context
    assert contrib.AllReduceCrossTowerOps(num_packs=2).kwargs == {"num_packs": 2}


def test_errors() -> None:
    strategy = contrib.OneDeviceStrategy("/cpu:0")
    both = contrib.DistributeConfig(strategy)
    with pytest.raises(ValueError, match=r"Either `train_distribute` or"):
        tf.estimator.RunConfig(train_distribute=strategy, experimental_distribute=both)
    remote = contrib.DistributeConfig(remote_cluster={"worker": ["localhost:1"]})
    with pytest.raises(ValueError, match="remote_cluster"):
        tf.estimator.RunConfig(experimental_distribute=remote)
    with pytest.raises(ValueError, match="nonsense"):
        contrib.OneDeviceStrategy("nonsense")
    with pytest.raises(ValueError, match="TF_CONFIG with a cluster"):
        contrib.run_standard_tensorflow_server()


def test_config_copies_strategies() -> None:
    strategy = contrib.OneDeviceStrategy("/cpu:0")
    config = tf.estimator.RunConfig(
        experimental_distribute=contrib.DistributeConfig(strategy, strategy)
    )
    copied = config.replace(model_dir="elsewhere")
    assert copied.train_distribute is copied.eval_distribute is strategy


def test_standard_server_serves_task(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Any] = []
    monkeypatch.setattr(
        "estimatorkit.compat.contrib.distribute.Server",
        lambda *args, **kwargs: served.append((args, kwargs)),
    )
    cluster = '{"worker": ["localhost:1"], "ps": ["localhost:2"], "chief": ["localhost:3"]}'
    monkeypatch.setenv(
        "TF_CONFIG", f'{{"cluster": {cluster}, "task": {{"type": "ps", "index": 0}}}}'
    )
    contrib.run_standard_tensorflow_server("config")
    ((args, kwargs),) = served
    assert args[0].as_dict()["ps"] == ["localhost:2"]
    assert args[1:] == ("ps", 0)
    assert kwargs == {"config": "config"}
