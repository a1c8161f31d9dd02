"""Loading valid configurations: defaults, overrides, scalars, and dumping to YAML."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from estimatorkit.experiment import document
from estimatorkit.experiment.errors import ConfigurationError
from estimatorkit.experiment.estimators import OPTIMIZERS
from estimatorkit.experiment.load import dump_experiment, load_experiment
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.sources import CsvSource

BASE = """\
name: iris
data: {train: iris_training, evaluate: iris_test, label: Species}
features: [{numeric: SepalLength}]
estimator: {type: LinearClassifier, n_classes: 3}
train: {steps: 10}
"""

ESTIMATORS = {
    "DNNClassifier": "{type: DNNClassifier, hidden_units: [4], n_classes: 3, dropout: 0.5}",
    "DNNRegressor": "{type: DNNRegressor, hidden_units: [4, 2], batch_norm: true, optimizer: Adam}",
    "LinearClassifier": "{type: LinearClassifier, label_vocabulary: [no, yes]}",
    "LinearRegressor": "{type: LinearRegressor, loss_reduction: sum, weight_column: W}",
    "BaselineClassifier": "{type: BaselineClassifier, n_classes: 3}",
    "BoostedTreesClassifier": "{type: BoostedTreesClassifier, n_classes: 3, n_trees: 20}",
    "BoostedTreesRegressor": "{type: BoostedTreesRegressor, learning_rate: 0.2, max_depth: 4}",
    "BaselineRegressor": "{type: BaselineRegressor, optimizer: {type: SGD, learning_rate: 1e-3}}",
}


def load(folder: Path, text: str, *overrides: str) -> Experiment:
    path = folder / "experiment.yaml"
    path.write_text(text, encoding="utf-8")
    return load_experiment(path, overrides)


def test_defaults_match_tf_estimator(tmp_path: Path) -> None:
    experiment = load(tmp_path, BASE)
    assert experiment.model_dir == "runs/iris"
    assert experiment.seed is None
    assert experiment.evaluate.rhythm == (1, "epoch")
    assert experiment.run.keep_checkpoint_max == 5
    assert experiment.run.log_step_count_steps == 100
    assert experiment.run.save_summary_steps == 100
    assert experiment.estimator.loss_reduction == "sum_over_batch_size"
    assert experiment.estimator.model_dump()["optimizer"] == "Ftrl"


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_dump_round_trips(kind: str, tmp_path: Path) -> None:
    experiment = load(tmp_path, BASE, f"estimator={ESTIMATORS[kind]}")
    assert experiment.estimator.type == kind
    assert experiment.estimator.reads_once == kind.startswith("BoostedTrees")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert load(elsewhere, dump_experiment(experiment)) == experiment


def test_experiments_are_frozen_and_hashable(tmp_path: Path) -> None:
    experiment = load(tmp_path, BASE)
    assert {experiment: 1}[load(tmp_path, BASE)] == 1
    with pytest.raises(ValidationError, match="frozen"):
        experiment.seed = 3


def test_short_forms_equal_long_forms(tmp_path: Path) -> None:
    long = BASE.replace("label: Species", "label: [Species]").replace(
        "{numeric: SepalLength}", "{numeric: {key: SepalLength, dtype: float32, default: null}}"
    )
    assert load(tmp_path, BASE) == load(tmp_path, long)


def test_csv_paths_are_relative_to_yaml_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "configs"
    folder.mkdir()
    path = folder / "experiment.yaml"
    path.write_text(BASE.replace("iris_training", "{csv: ../data/train.csv}"))
    monkeypatch.chdir(tmp_path)
    train = load_experiment("configs/experiment.yaml").data.train
    assert train == CsvSource(csv=(str(tmp_path / "configs" / "../data/train.csv"),))


def test_scalars_follow_yaml_1_2(tmp_path: Path) -> None:
    experiment = load(
        tmp_path,
        BASE,
        "data.class_names=[no, on, 2024-01-31]",
        "estimator.optimizer={type: Adagrad, learning_rate: 1e-3}",
        "train.steps=1_000",
    )
    assert experiment.data.class_names == ("no", "on", "2024-01-31")
    assert experiment.estimator.model_dump()["optimizer"]["learning_rate"] == 0.001
    assert experiment.train.steps == 1000


def test_run_names_contain_settings(tmp_path: Path) -> None:
    changes = "name=iris-{train.batch_size}-{estimator.optimizer}", "train.batch_size=8"
    experiment = load(tmp_path, BASE, *changes)
    assert experiment.name == "iris-8-Ftrl"
    assert experiment.model_dir == "runs/iris-8-Ftrl"
    network = "estimator={type: DNNClassifier, hidden_units: [4, 2]}"
    assert load(tmp_path, BASE, network, "name='{estimator.hidden_units}'").name == "4x2"


@pytest.mark.parametrize(
    ("text", "rhythm"),
    [("500 steps", (500, "step")), ("1 sec", (1, "sec")), ("2 epochs", (2, "epoch"))],
)
def test_evaluation_intervals(tmp_path: Path, text: str, rhythm: tuple[int, str]) -> None:
    assert load(tmp_path, BASE, f"evaluate.every={text}").evaluate.rhythm == rhythm


def test_overrides_apply_in_order_and_add_sections(tmp_path: Path) -> None:
    experiment = load(
        tmp_path,
        BASE,
        "estimator.optimizer.type=Adagrad",
        "estimator.optimizer.learning_rate=1",
        "estimator.optimizer.learning_rate=0.5",
        "train.steps=null",
        "train.max_steps=20",
        "features.0.numeric=PetalLength",
    )
    assert (
        experiment.estimator.model_dump()["optimizer"]
        == OPTIMIZERS["Adagrad"](learning_rate=0.5).model_dump()
    )
    assert (experiment.train.steps, experiment.train.max_steps) == (None, 20)
    assert experiment.feature_keys == ("PetalLength",)


def test_override_leaves_other_alias_uses_alone(tmp_path: Path) -> None:
    text = BASE + "evaluate: &batches {batch_size: 8}\npredict: *batches\n"
    experiment = load(tmp_path, text, "predict.batch_size=4")
    assert (experiment.evaluate.batch_size, experiment.predict.batch_size) == (8, 4)


def test_merge_keys(tmp_path: Path) -> None:
    text = BASE + "evaluate: &base {batch_size: 8, steps: 3}\npredict: {batch_size: 2}\n"
    text = text.replace("train: {steps: 10}", "train: {<<: {batch_size: 8, steps: 3}, steps: 10}")
    experiment = load(tmp_path, text, "train.batch_size=16")
    assert (experiment.train.batch_size, experiment.train.steps) == (16, 10)
    with pytest.raises(ConfigurationError, match=r"experiment\.yaml:5:13: not valid YAML"):
        load(tmp_path, BASE.replace("{steps: 10}", "{<<: 3, steps: 10}"))


# PyYAML folds these three line ends into spaces when it reads quoted text.
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x85\u2028\u2029"))
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)  # the machine may be busy with other tests
@given(st.dictionaries(words, plain, max_size=4))
def test_dumped_values_round_trip(data: dict[str, object]) -> None:
    assert document.to_data(document.parse(document.dump(data), "x.yaml")) == data


@settings(deadline=None)  # the machine may be busy with other tests
@given(st.text(alphabet=":-&*!<>[]{}#|'\"\\ \n\tab1.~", max_size=40))
def test_arbitrary_text_loads_or_raises(text: str) -> None:
    refused = ""
    try:
        document.to_data(document.parse(text, "x.yaml"))
    except ConfigurationError as error:
        refused = str(error)
    assert not refused or refused.startswith("x.yaml")


def test_endless_file() -> None:
    with pytest.raises(ConfigurationError, match="too large for a configuration"):
        load_experiment("/dev/zero")
