"""`RunConfig`: TensorFlow's defaults, immutability, and errors."""

from __future__ import annotations

import copy
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig, default_session_config
from estimatorkit.estimator.spec import EstimatorSpec

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "signatures.json").read_text("utf-8"))


def parameters(function: Any) -> list[list[str | None]]:
    """Names and defaults as the golden file has them."""
    found = inspect.signature(function).parameters.values()
    return [
        [each.name, None if each.default is each.empty else repr(each.default)]
        for each in found
        if each.name not in ("self", "cls")
    ]


def golden_parameters(name: str) -> list[list[str | None]]:
    return [parameter[:2] for parameter in GOLDEN["v2"][name]]


def test_arguments_match_tensorflow() -> None:
    ours = [
        ["<object object>" if d == "<not given>" else d for d in p] for p in parameters(RunConfig)
    ]
    theirs = golden_parameters("RunConfig")
    assert ours[: len(theirs)] == theirs
    rest = list(inspect.signature(RunConfig).parameters.values())[len(theirs) :]
    assert all(each.kind is each.KEYWORD_ONLY for each in rest)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("EstimatorSpec", EstimatorSpec.__new__),
        ("Estimator", Estimator),
        ("Estimator.train", Estimator.train),
        ("Estimator.evaluate", Estimator.evaluate),
        ("Estimator.predict", Estimator.predict),
        ("Estimator.get_variable_names", Estimator.get_variable_names),
        ("Estimator.get_variable_value", Estimator.get_variable_value),
        ("Estimator.latest_checkpoint", Estimator.latest_checkpoint),
        ("Estimator.eval_dir", Estimator.eval_dir),
    ],
)
def test_signatures_match_tensorflow(name: str, function: Any) -> None:
    assert parameters(function) == golden_parameters(name)


@pytest.mark.parametrize("name", sorted(set(GOLDEN["v2_run_config_defaults"]) - {"replace"}))
def test_defaults_match_tensorflow(name: str) -> None:
    golden = GOLDEN["v2_run_config_defaults"][name]
    assert repr(getattr(RunConfig(), name)) == golden


def test_is_immutable() -> None:
    config = RunConfig()
    for name in ("model_dir", "save_summary_steps", "is_chief"):
        with pytest.raises(AttributeError):
            setattr(config, name, 3)


def test_replace_returns_changed_copy() -> None:
    config = RunConfig(model_dir="a", tf_random_seed=3)
    changed = config.replace(model_dir="b", keep_checkpoint_max=None)
    assert (config.model_dir, config.keep_checkpoint_max) == ("a", 5)
    assert (changed.model_dir, changed.keep_checkpoint_max) == ("b", None)
    assert changed.tf_random_seed == 3
    assert isinstance(changed, RunConfig)


class _OwnConfig(RunConfig):
    own = "of the class"

    @property
    def is_chief(self) -> bool:
        return False


def test_subclass_attributes_are_kept(tmp_path: Path) -> None:
    config: Any = _OwnConfig()
    config.marked = True
    for changed in (
        config.replace(keep_checkpoint_max=3),
        Estimator(lambda features: features, tmp_path, config).config,
    ):
        assert isinstance(changed, _OwnConfig)
        assert changed.own == "of the class"
        assert changed.marked is True
        assert not changed.is_chief


def test_every_argument_can_be_replaced() -> None:
    changes: dict[str, Any] = {str(name): None for name, _ in parameters(RunConfig)}
    changes |= {"keep_checkpoint_every_n_hours": 2.0, "session_creation_timeout_secs": 3}
    changed = RunConfig().replace(**changes)
    assert changed.checkpoint_save_graph_def is None
    assert changed.keep_checkpoint_every_n_hours == 2.0


CLUSTER = {"ps": ["a:0", "b:0"], "worker": ["c:0", "d:0"]}  # port 0: any that is free


@pytest.mark.parametrize(
    ("kind", "index", "filters"),
    [
        ("chief", 0, ["/job:ps", "/job:chief"]),
        ("master", 0, ["/job:ps", "/job:master"]),
        ("worker", 1, ["/job:ps", "/job:worker/task:1"]),
        ("ps", 1, ["/job:ps", "/job:worker", "/job:chief", "/job:master"]),
        ("evaluator", 0, None),
    ],
)
def test_cluster_session_device_filters(
    monkeypatch: pytest.MonkeyPatch, kind: str, index: int, filters: list[str] | None
) -> None:
    boss = "master" if kind == "master" else "chief"
    config = {"cluster": {boss: ["e:0"], **CLUSTER}, "task": {"type": kind, "index": index}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    found = RunConfig().session_config
    assert found == (None if filters is None else default_session_config(filters))
    given = default_session_config(["/job:ps"])
    assert RunConfig(session_config=given).session_config == given


def test_estimator_has_session_config(tmp_path: Path) -> None:
    estimator = Estimator(lambda features: features, tmp_path)
    assert estimator._session_config == estimator.config.session_config == default_session_config()
    assert repr(estimator.config) == f"RunConfig(model_dir={str(tmp_path)!r})"


def test_replace_refuses_unknown_names() -> None:
    with pytest.raises(ValueError, match=r"Replacing save_checkpoint_steps is not supported"):
        RunConfig().replace(save_checkpoint_steps=3)
    with pytest.raises(ValueError, match=r"did you mean 'save_checkpoints_steps'"):
        RunConfig().replace(save_checkpoint_steps=3)
    with pytest.raises(ValueError, match=r"Replacing is_chief is not supported"):
        RunConfig().replace(is_chief=False)


@pytest.mark.parametrize(
    ("given", "steps", "secs"),
    [
        ({}, None, 600),
        ({"save_checkpoints_steps": 7}, 7, None),
        ({"save_checkpoints_secs": 7}, None, 7),
        ({"save_checkpoints_steps": None}, None, None),
        ({"save_checkpoints_secs": None}, None, None),
        ({"save_checkpoints_steps": 7, "save_checkpoints_secs": None}, 7, None),
    ],
)
def test_steps_or_seconds(given: dict[str, Any], steps: int | None, secs: int | None) -> None:
    config = RunConfig(**given)
    assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == (steps, secs)


def test_steps_and_seconds_replace_each_other() -> None:
    by_steps = RunConfig().replace(save_checkpoints_steps=7)
    assert by_steps.save_checkpoints_secs is None
    by_secs = by_steps.replace(save_checkpoints_secs=8)
    assert by_secs.save_checkpoints_steps is None
    with pytest.raises(ValueError, match="cannot be both set"):
        RunConfig().replace(save_checkpoints_steps=7, save_checkpoints_secs=8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"save_checkpoints_steps": -1}, "save_checkpoints_steps should be >= 0"),
        ({"save_summary_steps": -1}, "save_summary_steps should be >= 0"),
        ({"save_checkpoints_secs": -1}, "save_checkpoints_secs should be >= 0"),
        ({"keep_checkpoint_max": -1}, "keep_checkpoint_max should be >= 0"),
        ({"keep_checkpoint_every_n_hours": 0}, "keep_checkpoint_every_n_hours should be > 0"),
        ({"log_step_count_steps": 0}, "log_step_count_steps should be > 0"),
        ({"session_creation_timeout_secs": 0}, "session_creation_timeout_secs should be > 0"),
        ({"tf_random_seed": 1.5}, "tf_random_seed must be integer"),
        ({"tf_random_seed": True}, "tf_random_seed must be integer"),
        ({"model_dir": ""}, "model_dir should be non-empty"),
        ({"session_config": {}}, "session_config must be instance of ConfigProto"),
        ({"device_fn": lambda x: "/cpu:0"}, "device_fn must be callable with exactly one argument"),
        (
            {"experimental_max_worker_delay_secs": "5"},
            "experimental_max_worker_delay_secs must be an integer if set",
        ),
        ({"protocol": "http"}, "protocol should be grpc or grpc\\+verbs"),
    ],
)
def test_out_of_range_values_raise(arguments: dict[str, Any], message: str) -> None:
    """The messages are TensorFlow's."""
    with pytest.raises(ValueError, match=message):
        RunConfig(**arguments)
    with pytest.raises(ValueError, match=message):
        RunConfig().replace(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"save_summary_steps": 0},
        {"save_checkpoints_steps": 0},
        {"save_checkpoints_secs": 0},
        {"keep_checkpoint_max": 0},
        {"log_step_count_steps": None},
        {"tf_random_seed": 0},
    ],
)
def test_boundary_values(arguments: dict[str, Any]) -> None:
    (name, value), config = next(iter(arguments.items())), RunConfig(**arguments)
    assert getattr(config, name) == value


def test_equality() -> None:
    config = RunConfig(model_dir="a", save_checkpoints_steps=3)
    assert config == RunConfig(model_dir="a", save_checkpoints_steps=3)
    assert config == copy.copy(config) == copy.deepcopy(config)
    assert config != config.replace(save_checkpoints_steps=4)
    assert config != "a"


def test_path_is_directory(tmp_path: Path) -> None:
    assert RunConfig(model_dir=tmp_path).model_dir == str(tmp_path)
    assert RunConfig(model_dir=tmp_path) == RunConfig(model_dir=str(tmp_path))


def test_repr_shows_non_defaults() -> None:
    config = RunConfig(model_dir="a", save_checkpoints_steps=3)
    shown = "RunConfig(model_dir='a', save_checkpoints_steps=3, save_checkpoints_secs=None)"
    assert repr(config) == shown
    assert repr(RunConfig()) == "RunConfig()"
