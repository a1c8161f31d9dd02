"""Parsing the cluster environment: TensorFlow's results, and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from estimatorkit.distribute.cluster_spec import ClusterSpec
from estimatorkit.distribute.cluster_task import ClusterTask
from estimatorkit.estimator.run_config import RunConfig

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "clusters.json").read_text("utf-8"))
HOSTS = {"chief": ["h0:1"], "ps": ["h1:1", "h2:1"], "worker": ["h3:1", "h4:1"]}


def read(config: Any) -> ClusterTask:
    text = config if isinstance(config, str) else json.dumps(config)
    return ClusterTask.of_environment({"TF_CONFIG": text})


def task(kind: Any, index: Any) -> dict[str, Any]:
    return {"task": {"type": kind, "index": index}}


@pytest.mark.parametrize("name", GOLDEN["properties"])
def test_properties_match_tensorflow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given, expected = GOLDEN["properties"][name]
    monkeypatch.setenv("TF_CONFIG", json.dumps(given))
    config = RunConfig()
    found = {key: getattr(config, key) for key in expected} | {
        "cluster_spec": json.loads(json.dumps(config.cluster_spec.as_dict()))
    }
    assert found == expected


@pytest.mark.parametrize("name", GOLDEN["errors"])
def test_errors_begin_like_tensorflow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given, (kind, words) = GOLDEN["errors"][name]
    monkeypatch.setenv("TF_CONFIG", json.dumps(given))
    with pytest.raises((ValueError, TypeError)) as caught:
        RunConfig()
    assert type(caught.value).__name__ == kind
    first = words.splitlines()[0].rstrip(".:")
    assert str(caught.value).removeprefix("TF_CONFIG: ").startswith(first)


def test_chief_listed_among_workers_is_one_process() -> None:
    """As on the slide: host1 is the chief, and the first of three workers."""
    cluster = {
        "chief": ["host1:2222"],
        "worker": ["host1:2222", "host2:2222", "host3:2222"],
        "ps": ["host4:2222", "host5:2222"],
    }
    chief = read({"cluster": cluster} | task("chief", 0))
    assert read({"cluster": cluster} | task("worker", 0)) == chief
    assert chief.cluster.as_dict() == {
        "chief": ["host1:2222"],
        "worker": {1: "host2:2222", 2: "host3:2222"},
        "ps": ["host4:2222", "host5:2222"],
    }
    assert (chief.num_worker_replicas, chief.num_ps_replicas) == (3, 2)
    first = read({"cluster": cluster} | task("ps", 0))
    assert (first.type, first.index, first.master) == ("ps", 0, "grpc://host4:2222")
    assert not first.is_chief
    everybody = [("chief", 0), ("worker", 1), ("worker", 2), ("ps", 0), ("ps", 1)]
    ids = [read({"cluster": cluster} | task(*each)).global_id_in_cluster for each in everybody]
    assert ids == [0, 2, 3, 4, 5]  # as in TensorFlow, where the first worker would be 1


def test_first_worker_is_chief_by_default() -> None:
    cluster = {"ps": ["h0:1"], "worker": ["h1:1", "h2:1"]}
    first = read({"cluster": cluster} | task("worker", 0))
    second = read({"cluster": cluster} | task("worker", 1))
    assert first.is_chief
    assert not second.is_chief
    assert (second.chief, second.num_worker_replicas) == (("worker", 0), 2)
    assert second.global_id_in_cluster == 1


@pytest.mark.parametrize("listed", [True, False])
def test_evaluator_inside_or_beside_cluster(listed: bool) -> None:
    cluster = {**HOSTS, **({"evaluator": ["h9:1"]} if listed else {})}
    evaluator = read({"cluster": cluster} | task("evaluator", 0))
    assert not evaluator.cluster
    assert (evaluator.type, evaluator.is_chief, evaluator.master) == ("evaluator", False, "")
    assert evaluator.global_id_in_cluster is None
    worker = read({"cluster": cluster} | task("worker", 1))
    assert worker.cluster == HOSTS  # nobody waits for an evaluator
    assert worker.processes == 5


def test_master_and_chief_are_synonyms() -> None:
    legacy = {"master": HOSTS["chief"], "ps": HOSTS["ps"]}
    assert read({"cluster": legacy} | task("chief", 0)).type == "master"
    assert read({"cluster": HOSTS} | task("master", 0)).type == "chief"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("", ["TF_CONFIG: the value is empty", "unset TF_CONFIG"]),
        ('{"cluster": ', ["invalid JSON: Expecting value: line 1 column 13"]),
        ("{'cluster': {}}", ["invalid JSON: Expecting property name", "JSON needs double quotes"]),
        ('{"task": {} # ps\n}', ["invalid JSON: ", "JSON does not allow comments"]),
        ("[1]", ["the value is not a dict", "received: [1]"]),
        ({"cluster": ["a:1"]}, ["cluster is not a dict", "received: ['a:1']"]),
        (
            {"cluster": {"worker": 3}},
            ["cluster.worker is neither a list nor a dict", "received: 3"],
        ),
        ({"cluster": {"ps": [3]}}, ["cluster.ps[0] is not an address", "received: 3"]),
        ({"cluster": {"ps": {"x": "a:1"}}}, ["cluster.ps: 'x' is not a task number"]),
        (
            {"cluster": {"worker": ["a:1", "b"]}},
            ["cluster.worker[1] has no valid port", '"b:2222"'],
        ),
        (
            {"cluster": {"worker": ["a:65536"]}},
            ["cluster.worker[0] has no valid port", "'a:65536'"],
        ),
        ({"cluster": {"worker": [":1"]}}, ["cluster.worker[0] has no valid port"]),
        ({"cluster": HOSTS, "task": ["ps", 0]}, ["task is not a dict", "['ps', 0]"]),
        ({"cluster": HOSTS} | task("ps", "one"), ["task.index is not a number", "'one'"]),
        ({"cluster": HOSTS} | task("ps", True), ["task.index is not a number", "True"]),
        ({"cluster": HOSTS} | task("wrker", 0), ["task.type: 'wrker'", "did you mean 'worker'?"]),
        ({"cluster": HOSTS} | task("worker", 2), ["task.index: one of [0, 1]", "task.index: 2"]),
        ({"cluster": HOSTS} | task("ps", -1), ["received: task.index: -1"]),
        ({"cluster": HOSTS, "task": {"type": "ps"}}, ["expected: task.index: 0"]),
        ({"cluster": HOSTS, "task": {"index": 0}}, ["expected: task.type: one of ['chief'"]),
        (
            {"cluster": {"chief": ["a:1", "b:1"]}} | task("chief", 0),
            ["received: cluster.chief: ['a:1', 'b:1']"],
        ),
        ({"cluster": {"ps": ["a:1"]}} | task("ps", 0), ["a chief, or workers", "jobs ['ps']"]),
        ({"cluster": {"ps": ["a:1"], "worker": []}} | task("ps", 0), ['one "chief" node']),
        (
            {"cluster": {**HOSTS, "ps": ["h3:1"]}} | task("ps", 0),
            ["cluster.worker[0] and cluster.ps[0] have the same address", "'h3:1'"],
        ),
        (
            {"cluster": {**HOSTS, "ps": ["h0:1"]}} | task("ps", 0),
            ["cluster.ps[0] and cluster.chief[0] have the same address"],
        ),
    ],
)
def test_errors_name_location_in_json(config: Any, words: list[str]) -> None:
    with pytest.raises(ValueError, match=r"^TF_CONFIG: ") as caught:
        read(config)
    for each in words:
        assert each in str(caught.value)


JAX = {
    "JAX_COORDINATOR_ADDRESS": "node-0:1234",
    "JAX_NUM_PROCESSES": "3",
    "JAX_PROCESS_ID": "2",
}


def test_kubeflow_trainer_variables() -> None:
    found = ClusterTask.of_environment(JAX)
    assert (found.type, found.index, found.processes) == ("worker", 2, 3)
    assert found.coordinator == "node-0:1234"
    assert not found.is_chief
    assert (found.num_worker_replicas, found.global_id_in_cluster) == (3, 2)
    assert ClusterTask.of_environment(JAX | {"JAX_PROCESS_ID": "0"}).is_chief
    apart = {"JAX_COORDINATOR_ADDRESS": "node-0", "JAX_COORDINATOR_PORT": "99"}
    assert ClusterTask.of_environment(JAX | apart).coordinator == "node-0:99"
    both = JAX | {"TF_CONFIG": json.dumps({"cluster": HOSTS} | task("ps", 1))}
    assert ClusterTask.of_environment(both).type == "ps"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"JAX_NUM_PROCESSES": ""}, "JAX_NUM_PROCESSES is not set"),
        ({"JAX_COORDINATOR_ADDRESS": ""}, "JAX_COORDINATOR_ADDRESS is not set"),
        ({"JAX_PROCESS_ID": "two"}, "JAX_PROCESS_ID is not a number"),
        ({"JAX_PROCESS_ID": "3"}, "JAX_PROCESS_ID is out of range"),
    ],
)
def test_jax_variable_errors(change: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ClusterTask.of_environment(JAX | change)


def test_single_process() -> None:
    alone = ClusterTask.of_environment({})
    assert alone == ClusterTask()
    assert alone.is_alone
    assert alone.is_chief
    assert alone.master == ""


def test_model_dir_of_config_and_environment_must_agree(monkeypatch: Any) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps({"model_dir": "/a"}))
    assert RunConfig().model_dir == RunConfig("/a").model_dir == "/a"
    with pytest.raises(ValueError, match="must have the same value as the model_dir in TF_CONFIG"):
        RunConfig("/b")


def test_cluster_specs() -> None:
    spec = ClusterSpec({"ps": ["a:1", "b:1"], "worker": {3: "d:1", 1: b"c:1"}})
    assert spec.jobs == ["ps", "worker"]
    assert spec.as_dict() == {"ps": ["a:1", "b:1"], "worker": {1: "c:1", 3: "d:1"}}
    assert spec.num_tasks("worker") == 2
    assert spec.task_indices("worker") == [1, 3]
    assert spec.task_address("worker", 3) == "d:1"
    assert spec.job_tasks("worker") == [None, "c:1", None, "d:1"]
    assert ClusterSpec(spec) == spec == ClusterSpec(spec.as_cluster_def()) == spec.as_dict()
    assert hash(ClusterSpec(spec)) == hash(spec)
    assert spec != ClusterSpec({"ps": ["a:1"]})
    assert repr(spec) == "ClusterSpec({'ps': ['a:1', 'b:1'], 'worker': {1: 'c:1', 3: 'd:1'}})"
    assert not ClusterSpec({})
    with pytest.raises(ValueError, match="No such job in cluster: 'x'"):
        spec.num_tasks("x")
    with pytest.raises(ValueError, match="No task with index 0 in job 'worker'"):
        spec.task_address("worker", 0)
    for wrong in ([], {"ps": "a:1"}, {"ps": [1]}, {1: ["a:1"]}):
        with pytest.raises(TypeError):
            ClusterSpec(wrong)


def _config(address: str = "a:1", **task: Any) -> str:
    return json.dumps({"cluster": {"chief": [address]}, "task": {"type": "chief", **task}})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"cluster": ' + '{"a":' * 20_000, "nested too deeply"),
        ('{"task": {}, "task": {}}', "the key 'task' is given twice"),
        (_config(type=["chief"], index=0), "task.type is not text"),
        (_config(index="\u00b2"), "task.index is not a number"),
        (_config(index="9" * 5000), "task.index is not a number"),
        (_config("a:\u00b2", index=0), "has no valid port"),
        (_config("a: 1", index=0), "has no valid port"),
        (_config("grpc://a:1", index=0), r"no valid host(.|\n)*hint: +\"a:1\""),
        (_config("a b:1", index=0), "no valid host"),
        (_config("a\x00:1", index=0), "no valid host"),
        (_config("../a:1", index=0), "no valid host"),
    ],
)
def test_hostile_values_are_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        ClusterTask.of_environment({"TF_CONFIG": text})
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("address", ["a-b.example:1", "10.0.0.1:0", "[::1]:2222", "fe80::1:22"])
def test_addresses(address: str) -> None:
    task = ClusterTask.of_environment({"TF_CONFIG": _config(address, index=0)})
    assert task.is_chief
