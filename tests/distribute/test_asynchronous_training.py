"""Models trained by parameter servers are as good as those of one process, and may be larger."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from estimatorkit.storage.checkpoint import latest_checkpoint, list_variables, load_variable
from tests.slides.data import data_dir

pytestmark = pytest.mark.multiprocess

MNIST = """
    import json, os, sys
    import numpy as np
    import estimatorkit as tf

    model_dir, steps = sys.argv[1], int(sys.argv[2])
    (train_x, train_y), (test_x, test_y) = tf.datasets.mnist.load_data()

    def input_of(images, labels, epochs, shuffle):
        def batches():
            data = tf.data.Dataset.from_tensor_slices(
                ({"image": images.astype(np.float32) / 255}, labels.astype(np.int32))
            )
            if shuffle:
                data = data.shuffle(len(images), seed=int(os.getpid()))
            return data.repeat(epochs).batch(128)
        return batches

    classifier = tf.estimator.DNNClassifier(
        [256, 128],
        [tf.feature_column.numeric_column("image", [28, 28])],
        n_classes=10,
        # It decays, so that the accuracy at the end is not that of a chance moment.
        optimizer=lambda: tf.train.AdamOptimizer(
            tf.train.polynomial_decay(0.002, tf.train.get_global_step(), steps, 1e-5)
        ),
        config=tf.estimator.RunConfig(model_dir, tf_random_seed=1, save_checkpoints_steps=steps),
    )
    metrics, _ = tf.estimator.train_and_evaluate(
        classifier,
        tf.estimator.TrainSpec(input_of(train_x, train_y, None, True), max_steps=steps),
        tf.estimator.EvalSpec(
            input_of(test_x, test_y, 1, False), steps=None, start_delay_secs=0, throttle_secs=600
        ),
    )
    if metrics is not None:
        print("METRICS", json.dumps({key: float(each) for key, each in metrics.items()}))
    """

TABLE = """
    import resource, sys
    import numpy as np
    import estimatorkit as tf

    model_dir, steps = sys.argv[1], int(sys.argv[2])
    rows, width = 10_000_000, 16

    def input_fn():
        random = np.random.RandomState(0)
        ids = random.zipf(1.3, (20_000, 8)).astype(np.int64) % rows
        labels = (ids.sum(1) % 2).astype(np.int32)
        return tf.data.Dataset.from_tensor_slices(({"ids": ids}, labels)).repeat().batch(256)

    def model_fn(features, labels, mode):
        table = tf.get_variable(
            "table",
            [rows, width],
            initializer=tf.random_uniform_initializer(-0.05, 0.05),
            partitioner=tf.fixed_size_partitioner(2),
        )
        mean = tf.reduce_mean(tf.nn.embedding_lookup(table, features["ids"]), 1)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(mean, 2))
        step = tf.train.get_or_create_global_step()
        train = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    config = tf.estimator.RunConfig(model_dir, save_checkpoints_steps=10**6)
    try:
        tf.estimator.train_and_evaluate(
            tf.estimator.Estimator(model_fn, config=config),
            tf.estimator.TrainSpec(input_fn, max_steps=steps),
            tf.estimator.EvalSpec(input_fn, steps=1),
        )
    finally:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print("PEAK", config.task_type, config.task_id, peak, flush=True)
    """


LARGE_LAYERS = """
    import sys
    import numpy as np
    import estimatorkit as tf

    model_dir, steps = sys.argv[1], int(sys.argv[2])
    random = np.random.RandomState(0)
    x = random.rand(640, 300).astype(np.float32)
    y = random.randint(0, 3, 640).astype(np.int32)

    def input_fn():
        return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(64)

    classifier = tf.estimator.DNNClassifier(
        [256, 128],  # 300 kB and 128 kB: by shared memory
        [tf.feature_column.numeric_column("x", [300])],
        n_classes=3,
        config=tf.estimator.RunConfig(model_dir, tf_random_seed=1, save_checkpoints_steps=70),
    )
    tf.estimator.train_and_evaluate(
        classifier,
        tf.estimator.TrainSpec(input_fn, max_steps=steps),
        tf.estimator.EvalSpec(input_fn, steps=1),
    )
    """


def run(tmp_path: Path, program: str, steps: int, *launch: str) -> str:
    """What a program prints, by itself or launched as a cluster."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(program))
    words = [sys.executable, str(path), str(tmp_path / "model"), str(steps)]
    if launch:
        words = [sys.executable, "-m", "estimatorkit", "launch", *launch, "--", *words]
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def accuracy(printed: str) -> float:
    line = next(line for line in printed.splitlines() if "METRICS" in line)
    return float(json.loads(line.partition("METRICS ")[2])["accuracy"])


@pytest.mark.slow
def test_mnist_matches_accuracy_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESTIMATORKIT_DATA_DIR", str(data_dir("mnist").parent))
    alone, together = tmp_path / "alone", tmp_path / "together"
    alone.mkdir()
    together.mkdir()
    one = accuracy(run(alone, MNIST, 2000))
    printed = run(together, MNIST, 2000, "--ps", "1", "--workers", "2", "--evaluator")
    assert one > 0.97
    assert accuracy(printed) > one - 0.005
    assert "updates, stale by" in printed


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_one_worker_matches_one_process(tmp_path: Path) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    alone.mkdir()
    together.mkdir()
    run(alone, LARGE_LAYERS, 200)
    run(together, LARGE_LAYERS, 200, "--ps", "2", "--workers", "1")
    paths = [latest_checkpoint(str(each / "model")) for each in (alone, together)]
    assert paths[0] is not None
    assert paths[1] is not None
    names = dict(list_variables(paths[0]))
    assert dict(list_variables(paths[1])) == names
    for name in names:
        one, other = (load_variable(path, name) for path in paths)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_table_larger_than_worker_memory(tmp_path: Path) -> None:
    printed = run(tmp_path, TABLE, 60, "--ps", "2", "--workers", "2")
    peaks = {
        tuple(line.partition("PEAK ")[2].split()[:2]): int(line.split()[-1])
        for line in printed.splitlines()
        if "PEAK" in line
    }
    table = 10_000_000 * 16 * 4 >> 20  # 610 MB, and as much for Adagrad
    assert set(peaks) == {("chief", "0"), ("worker", "0"), ("ps", "0"), ("ps", "1")}
    assert all(peak < 1000 for (job, _), peak in peaks.items() if job != "ps")
    assert all(peak > table for (job, _), peak in peaks.items() if job == "ps")
    checkpoints = sorted((tmp_path / "model").glob("model.ckpt-*/variables-*"))
    assert {each.name.split("-of-")[1] for each in checkpoints} == {"00002.safetensors"}
    assert sum(each.stat().st_size for each in checkpoints) > 4 * (table << 20)


@pytest.mark.slow
def test_word2vec_on_two_parameter_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATORKIT_DATA_DIR", str(data_dir("text").parent))
    example = Path(__file__).parents[2] / "examples" / "word2vec_cluster.py"
    words = [
        *(sys.executable, "-m", "estimatorkit", "launch", "--ps", "2", "--workers", "2", "--"),
        *(sys.executable, str(example), "--model_dir", str(tmp_path / "model")),
        *("--steps", "1500", "--words", "200000", "--seed", "1"),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    near = next(line for line in done.stdout.splitlines() if "three: " in line)
    numbers = {"zero", "one", "two", "four", "five", "six", "seven", "eight", "nine"}
    assert len(numbers.intersection(near.split("three: ")[1].split(", "))) >= 3
