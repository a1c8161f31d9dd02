"""Training settings: class weights, learning-rate schedules, streamed files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import estimatorkit as ek
from estimatorkit.experiment import build, examples, inputs, row_sets, runner, tables
from estimatorkit.experiment.errors import ConfigurationError
from estimatorkit.experiment.load import load_experiment

CONFIG = """\
name: rare
seed: 1
data: {train: {csv: data.csv}, holdout: 0.25, label: kind}
features: [numeric: x]
estimator:
  type: LinearClassifier
  label_vocabulary: [no, yes]
  optimizer: {type: Adam, learning_rate: 0.05}
train: {batch_size: 50, epochs: 10}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with 2,000 rows, a twentieth of which are 'yes' and overlap with the others."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    is_rare = np.arange(2000) % 20 == 0
    x = random.normal(1.5 * is_rare)
    lines = [f"{a:.3f},{'yes' if b else 'no'}" for a, b in zip(x, is_rare, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["x,kind", *lines]) + "\n")
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


@pytest.mark.slow
def test_balanced_classes_improve_recall() -> None:
    plain = runner.train(load_experiment("config.yaml")).metrics["eval"]
    balanced = load_experiment("config.yaml", ["name=b", "train.class_weights=balanced"])
    even = runner.train(balanced).metrics["eval"]
    assert plain["recall"] < 0.3
    assert even["recall"] > 0.6
    assert even["accuracy_baseline"] == plain["accuracy_baseline"]  # evaluations are not weighted


def test_class_weights_by_name() -> None:
    given = load_experiment("config.yaml", ["train.class_weights={yes: 3}"])
    table = row_sets.training_table(given)
    features, labels = examples.examples_of(given, table, "data", training=True)
    weights = features[examples.CLASS_WEIGHT]
    np.testing.assert_array_equal(weights, np.where(labels == "yes", 3, 1))
    evaluated, _ = examples.examples_of(given, table, "data")
    assert set(evaluated[examples.CLASS_WEIGHT]) == {1.0}

    balanced = load_experiment("config.yaml", ["train.class_weights=balanced"])
    features, labels = examples.examples_of(balanced, table, "data", training=True)
    sums = [features[examples.CLASS_WEIGHT][labels == each].sum() for each in ("no", "yes")]
    assert sums[0] == pytest.approx(sums[1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("train.class_weights={maybe: 2}", "names 'maybe', which is no class"),
        ("train.class_weights=even", "train.class_weights has a wrong value"),
        ("estimator.optimizer.learning_rate={type: cosine}", "cosine_decay"),
        ("estimator.optimizer.learning_rate={type: cosine_decay}", "learning_rate is missing"),
        ("estimator.optimizer.learning_rate=-1", "a number > 0"),
    ],
)
def test_invalid_settings_raise(change: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        load_experiment("config.yaml", [change])


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("{type: cosine_decay, learning_rate: 0.4}", {0: 0.4, 50: 0.2, 100: 0.0}),
        (
            "{type: polynomial_decay, learning_rate: 0.4, decay_steps: 10, end_learning_rate: 0.2}",
            {0: 0.4, 5: 0.3, 10: 0.2, 99: 0.2},
        ),
        (
            "{type: exponential_decay, learning_rate: 0.4, decay_steps: 10, decay_rate: 0.5,"
            " staircase: true}",
            {9: 0.4, 10: 0.2, 20: 0.1},
        ),
        ("{type: constant, learning_rate: 0.4, warmup_steps: 3}", {0: 0.1, 1: 0.2, 3: 0.4, 9: 0.4}),
        ("{type: coslog_decay, learning_rate: 0.4, cycles: 1}", {0: 0.0, 100: 0.0}),
        (
            "{type: flat_cosine_decay, learning_rate: 0.4, flat: 0.2}",
            {0: 0.4, 20: 0.4, 60: 0.2, 100: 0.0},
        ),
        (
            "{type: cosine_decay, learning_rate: 0.4, warmup_steps: 20}",
            {0: 0.4 / 21, 20: 0.4, 60: 0.2, 100: 0.0},
        ),
    ],
)
def test_schedules(schedule: str, expected: dict[int, float]) -> None:
    given = load_experiment("config.yaml", [f"estimator.optimizer.learning_rate={schedule}"])
    make = build.optimizer(given.estimator.optimizer, last_step=100)
    with ek.Graph().as_default(), ek.Session() as session:
        step = ek.train.create_global_step()
        rate = make()._lr
        for number, value in expected.items():
            session.run(step.assign(number))
            assert session.run(rate) == pytest.approx(value, abs=1e-6)


@pytest.mark.slow
def test_training_with_a_schedule() -> None:
    rate = "{type: cosine_decay, learning_rate: 0.1, warmup_steps: 5}"
    given = load_experiment("config.yaml", [f"estimator.optimizer.learning_rate={rate}"])
    assert runner.train(given).metrics["eval"]["accuracy"] > 0.9


def test_streamed_files_give_same_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    read_chunks = tables.read_chunks
    monkeypatch.setattr(tables, "read_chunks", lambda source: read_chunks(source, 4000))
    Path("more.csv").write_text("x,kind\n7,yes\n")
    changes = ["data.train.csv=[data.csv, more.csv]", "data.stream=true", "data.holdout=null"]
    changes.append("data.evaluate={csv: data.csv}")
    streamed = load_experiment("config.yaml", changes)
    found = inputs.training(streamed)
    assert len(found.labels if found.labels is not None else ()) < 1000  # one chunk
    assert found.count() == 2001
    whole = load_experiment("config.yaml", [*changes, "data.stream=false"])
    for one, other in (
        (found, inputs.training(whole)),
        (inputs.evaluation(streamed), inputs.evaluation(whole)),
    ):
        rows = [list(each.dataset().as_numpy_iterator()) for each in (one, other)]
        for first, second in zip(*rows, strict=True):
            assert first[0]["x"] == second[0]["x"]
            assert first[1] == second[1]


@pytest.mark.slow
def test_holdout_of_streamed_files(monkeypatch: pytest.MonkeyPatch) -> None:
    read_chunks = tables.read_chunks
    monkeypatch.setattr(tables, "read_chunks", lambda source: read_chunks(source, 4000))
    streamed = load_experiment("config.yaml", ["data.stream=true"])
    counts = [inputs.training(streamed).count(), inputs.evaluation(streamed).count()]
    assert sum(counts) == 2000
    assert counts[1] == pytest.approx(500, abs=10)
    trained = runner.train(streamed)
    assert trained.last_step == streamed.train.last_step(counts[0])
    assert trained.metrics["eval"]["accuracy"] > 0.9


@pytest.mark.slow
def test_mixed_precision() -> None:
    network = "estimator={type: DNNClassifier, hidden_units: [8], label_vocabulary: [no, yes]}"
    given = load_experiment("config.yaml", [network, "train.mixed_precision=true"])
    metrics = runner.train(given).metrics["eval"]
    assert metrics["accuracy"] > 0.9
    estimator = build.estimator(given)
    weights = {estimator.get_variable_value(name).dtype for name in estimator.get_variable_names()}
    assert weights == {np.dtype("float32"), np.dtype("int64")}
    with ek.Graph().as_default() as graph:
        features = {"x": ek.placeholder(ek.float32, [None, 1])}
        estimator.model_fn(features, None, "infer", estimator.config)
        products = [each for each in graph.get_operations() if each.type == "MatMul"]
    assert len(products) == 2
    assert {each.outputs[0].dtype for each in products} == {ek.bfloat16}
    with ek.Graph().as_default() as graph:  # later models are not affected
        build.estimator(load_experiment("config.yaml", [network])).model_fn(
            {"x": ek.placeholder(ek.float32, [None, 1])}, None, "infer", estimator.config
        )
        dtypes = {each.outputs[0].dtype for each in graph.get_operations() if each.outputs}
    assert ek.bfloat16 not in dtypes
