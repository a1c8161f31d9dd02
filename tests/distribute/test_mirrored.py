"""Two replicas in one process train like one process with the doubled batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.distribute.processes import Processes
from tests.distribute.programs import mirrored
from tests.slides.data import data_dir

PROGRAM = "from tests.distribute.programs.mirrored import main; import sys; main(sys.argv[1:])"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Starts processes with two CPU devices."""
    with Processes(tmp_path_factory.mktemp("replicas"), JAX_NUM_CPU_DEVICES="2") as processes:
        yield processes


@pytest.fixture(scope="module")
def found(started: Processes) -> dict[str, Any]:
    """What all scenarios but that of MNIST give, in one process."""
    names = [name for name in mirrored.SCENARIOS if name != "mnist"]
    answer: dict[str, Any] = started.program("replicas", PROGRAM, *names).answer()
    return answer


# -- updates are those of one process with the doubled batch


def test_every_optimizer(found: dict[str, Any]) -> None:
    assert set(found["optimizers"]) == {"sgd", "momentum", "adam", "ftrl", "scaled"}
    assert max(found["optimizers"].values()) < 1e-4


def test_sums_and_means(found: dict[str, Any]) -> None:
    assert max(found["reductions"].values()) < 1e-4


def test_keras_optimizer_in_model_fn_sums_gradients(
    found: dict[str, Any],
) -> None:
    assert found["keras_optimizers_leave_the_loss_as_it_is"] < 1e-5


def test_partitioned_tables(found: dict[str, Any]) -> None:
    assert set(found["tables_in_parts"]) == {"momentum", "ftrl"}
    assert max(found["tables_in_parts"].values()) < 1e-4


def test_premade_estimators_with_sparse_gradients_and_host_work(found: dict[str, Any]) -> None:
    assert set(found["premade"]) == {"wide and deep", "keras", "sum"}
    assert max(found["premade"].values()) < 1e-4


def test_convolution_steps_are_separate_calls(found: dict[str, Any]) -> None:
    assert found["convolutions"] < 1e-5


def test_mnist(started: Processes) -> None:
    folder = {"ESTIMATORKIT_DATA_DIR": str(data_dir("mnist").parent)}
    answer = started.program("mnist", PROGRAM, "mnist", **folder).answer()["mnist"]
    assert answer["steps"] == 100
    assert answer["loss"] < 1e-5


# -- steps that are not like the others


def test_batches_of_different_sizes_in_one_step(found: dict[str, Any]) -> None:
    assert found["batches_of_several_sizes"] < 1e-5


def test_last_batch_counts_if_other_replica_has_none(found: dict[str, Any]) -> None:
    assert found["the_end_of_the_input"]["steps"] == 5
    assert found["the_end_of_the_input"]["loss"] < 1e-5


def test_fetching_hooks_and_host_work(found: dict[str, Any]) -> None:
    assert max(found["hooks_and_host_work"].values()) < 1e-5


def test_training_resumes_bit_for_bit(found: dict[str, Any]) -> None:
    losses = found["a_training_goes_on"]
    assert len(losses["whole"]) == 30
    assert losses["parts"] == losses["whole"]


def test_steps_compile_once(found: dict[str, Any]) -> None:
    assert found["compilations"]["train_step"] == 1


# -- what differs between replicas


def test_batch_normalization_moments_are_per_replica(found: dict[str, Any]) -> None:
    moved = found["moments_of_batch_normalization"]
    parts = mirrored.X[:8], mirrored.X[8:16]
    mean = 0.1 * np.mean([part.mean(axis=0) for part in parts], axis=0)
    variance = 0.9 + 0.1 * np.mean([part.var(axis=0) for part in parts], axis=0)
    np.testing.assert_allclose(moved["mean"], mean, atol=1e-6)
    np.testing.assert_allclose(moved["variance"], variance, rtol=1e-6)


def test_random_numbers_differ_between_replicas(
    found: dict[str, Any],
) -> None:
    sums = {name: np.array(each) for name, each in found["random_numbers"].items()}
    assert np.array_equal(sums["two"], sums["singly"])
    of_second = 2 * sums["two"] - sums["one"]
    assert np.all(of_second < 0)
    assert np.all(of_second > -2)
    assert np.abs(of_second - sums["one"]).min() > 1e-3


def test_differing_assignments_need_aggregation(found: dict[str, Any]) -> None:
    assert found["variables_that_replicas_assign"]["mean"] < 1e-5
    assert (
        "replicas would give 'noted' different values"
        in (found["variables_that_replicas_assign"]["none"])
    )


# -- evaluation, scopes, refusals


@pytest.mark.parametrize("count", ["100", "96", "97", "8", "3", "steps"])
def test_metrics_cover_all_examples(found: dict[str, Any], count: str) -> None:
    assert found["evaluations"][count] < 1e-6


def test_model_fn_and_input_fn_context(found: dict[str, Any]) -> None:
    assert found["what_a_model_fn_knows"] == {
        "pipelines": 1,
        "batch of each": 8,
        "replicas": 2,
        "in replica": True,
        "batch": [None, 4],
        "scope": True,
        "cross": True,
        "after": False,
        "step": 5,
    }


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("tensors", "ValueError: dataset_fn() must return a tf.data.Dataset when using"),
        ("empty", "ValueError: the training input has no elements"),
        ("branch", "UnimplementedError: replicas cannot exchange values inside of cond"),
        (
            "loop",
            "UnimplementedError: strategies train Estimators; run is for custom training loops",
        ),
        ("device", "ValueError: MirroredStrategy: there is no device /device:GPU:7"),
        ("twice", "ValueError: No duplicates allowed in the devices"),
        ("config", "ValueError: train_distribute must be a strategy"),
    ],
)
def test_errors(found: dict[str, Any], what: str, message: str) -> None:
    assert found["refusals"][what].startswith(message)


def test_labels_of_every_replica_are_checked(found: dict[str, Any]) -> None:
    assert found["labels_of_the_second_replica_are_checked"].startswith(
        "InvalidArgumentError: Labels must be <= n_classes - 1"
    )


def test_one_device_is_one_replica(started: Processes) -> None:
    source = """
        import estimatorkit as tf

        strategy = tf.distribute.MirroredStrategy()
        print(strategy.num_replicas_in_sync, strategy.replicas)
        absent = tf.distribute.MirroredStrategy(["/gpu:7"])
        print(absent.num_replicas_in_sync, absent.replicas, absent.device)
        """
    lines = started.program("alone", source, JAX_NUM_CPU_DEVICES="1").join()
    assert lines == ["1 None", "1 None /device:GPU:7"]
