"""Experiments for Kubernetes: manifests match the operators' schemas, images are complete."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from estimatorkit.__main__ import cli
from estimatorkit.distribute.cluster_task import ClusterTask
from estimatorkit.experiment.kubernetes.job import MAX_NAME, Job, dns_name
from estimatorkit.experiment.kubernetes.manifests import PLACEHOLDER
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.tables import read_source

ROOT = Path(__file__).parent.parent.parent
CONFIG = str(ROOT / "configs" / "iris_dnn.yaml")

EXPERIMENT = """\
name: Rich_People.2
data: {train: {csv: "../data/day-*.csv"}, evaluate: {csv: "../data/test.csv"}, label: rich}
features:
  - indicator: {vocabulary_file: {key: town, file: towns.txt}}
estimator: {type: LinearClassifier, label_vocabulary: ["no", "yes"]}
train: {max_steps: 10}
"""

SCHEMAS = {
    path.name: json.loads(path.read_text("utf-8"))
    for path in (Path(__file__).parent / "kubernetes_schemas").glob("*.json")
}
REGISTRY: Registry[Any] = Registry().with_resources(
    (name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)
KINDS = {
    "TFJob": ("kubeflow.org/v1", "tfjob.json"),
    "TrainJob": ("trainer.kubeflow.org/v1alpha1", "trainjob.json"),
    "RayJob": ("ray.io/v1", "rayjob.json"),
    "Secret": ("v1", "core.json#/$defs/V1Secret"),
    "ServiceAccount": ("v1", "core.json#/$defs/V1ServiceAccount"),
    "PersistentVolumeClaim": ("v1", "core.json#/$defs/V1PersistentVolumeClaim"),
    "NetworkPolicy": ("networking.k8s.io/v1", "core.json#/$defs/V1NetworkPolicy"),
}


def errors(manifest: dict[str, Any]) -> list[str]:
    """What Kubernetes would refuse."""
    version, schema = KINDS[manifest["kind"]]
    assert manifest["apiVersion"] == version
    found = Draft202012Validator({"$ref": schema}, registry=REGISTRY).iter_errors(manifest)
    return [f"{error.json_path}: {error.message}" for error in found]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["k8s", *arguments])


def written(folder: Path, *arguments: str) -> dict[str, str]:
    """The texts of the files that the command writes, by name."""
    result = run(*arguments, "--output", str(folder))
    assert result.exit_code == 0, result.output
    return {path.name: path.read_text("utf-8") for path in folder.iterdir()}


def manifests(folder: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """All manifests, by kind; each fits its schema."""
    texts = written(folder, *arguments)
    found = {}
    for name, text in texts.items():
        if ".yaml" in name:
            assert not re.search(r"[&*]id\d", text), "each value stands where it belongs"
            found |= {each["kind"]: each for each in yaml.safe_load_all(text)}
    for manifest in found.values():
        assert errors(manifest) == []
    return found


def pods(value: Any) -> Iterator[dict[str, Any]]:
    """All specs of pods in a manifest."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for each in value.values():
            yield from pods(each)
    elif isinstance(value, list):
        for each in value:
            yield from pods(each)


SHAPES = {
    "alone": [],
    "workers": ["--workers", "3"],
    "servers": ["--workers", "3", "--ps", "2"],
    "everything": [
        *("--workers", "2", "--ps", "1", "--evaluator", "--namespace", "team-a", "--gpus", "2"),
        *("--image", "registry.example.com:5000/team/iris:v1.2", "--name", "my-run"),
        *("--cpu", "500m", "--memory", "1.5Gi", "--claim", "models"),
        *("--model-dir", "/shared/models/one", "train.batch_size=16"),
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_manifests_match_schemas(shape: str, tmp_path: Path) -> None:
    found = manifests(tmp_path, CONFIG, *SHAPES[shape])
    expected = {"TFJob", "RayJob", "Secret", "ServiceAccount", "NetworkPolicy"}
    if "--ps" not in SHAPES[shape]:
        expected.add("TrainJob")
    if "--claim" not in SHAPES[shape]:
        expected.add("PersistentVolumeClaim")
    assert set(found) == expected
    assert len({each["metadata"]["name"] for each in found.values()}) == 1


def test_schemas_refuse_unknown_fields(tmp_path: Path) -> None:
    found = manifests(tmp_path, CONFIG, "--workers", "2")
    for kind in ("TFJob", "TrainJob", "RayJob"):
        pod = next(pods(found[kind]))
        pod["containers"][0]["volumeMounts"][0]["mountpath"] = "/x"
        pod["securityContext"]["runAsUser"] = "root"
        first, second = sorted(errors(found[kind]))
        assert "'mountpath' was unexpected" in first + second
        assert "'root' is not of type 'integer'" in first + second


@pytest.mark.parametrize("shape", SHAPES)
def test_tfjob_tasks_know_their_roles(shape: str, tmp_path: Path) -> None:
    """The operator's part is played here: TF_CONFIG of the replicas, the evaluator left out."""
    job = manifests(tmp_path, CONFIG, *SHAPES[shape])["TFJob"]
    replicas = job["spec"]["tfReplicaSpecs"]
    name = job["metadata"]["name"]
    cluster = {
        role.lower(): [
            f"{name}-{role.lower()}-{i}.default.svc:2222" for i in range(spec["replicas"])
        ]
        for role, spec in replicas.items()
        if role != "Evaluator"
    }
    workers = {"alone": 1, "everything": 2}.get(shape, 3)
    for role, spec in replicas.items():
        config = {
            "cluster": cluster,
            "task": {"type": role.lower(), "index": spec["replicas"] - 1},
            "environment": "cloud",
        }
        task = ClusterTask.of_environment({"TF_CONFIG": json.dumps(config)})
        assert task.type == role.lower()
        assert task.is_chief == (role == "Chief")
        assert task.num_worker_replicas == (0 if role == "Evaluator" else workers)
        assert spec["restartPolicy"] == "ExitCode"
        (container,) = spec["template"]["spec"]["containers"]
        assert container["name"] == "tensorflow"
        assert container["ports"] == [{"name": "tfjob-port", "containerPort": 2222}]
        gpus = container["resources"]["limits"].get("nvidia.com/gpu")
        assert gpus == ("2" if shape == "everything" and role != "PS" else None)
    assert ("Evaluator" in replicas) == (shape != "alone")
    # An evaluator may be at the last checkpoint when the chief has ended.
    clean = "Running" if shape == "alone" else "None"
    assert job["spec"]["runPolicy"] == {"cleanPodPolicy": clean}


def test_evaluators_can_be_omitted(tmp_path: Path) -> None:
    found = manifests(tmp_path, CONFIG, "--workers", "2", "--no-evaluator")
    assert set(found["TFJob"]["spec"]["tfReplicaSpecs"]) == {"Chief", "Worker"}
    assert found["TFJob"]["spec"]["runPolicy"] == {"cleanPodPolicy": "Running"}
    assert "--evaluator" not in found["RayJob"]["spec"]["entrypoint"]


def test_trainjob_has_equal_processes(tmp_path: Path) -> None:
    spec = manifests(tmp_path, CONFIG, "--workers", "4", "--gpus", "1")["TrainJob"]["spec"]
    assert spec["runtimeRef"] == {"name": "jax-distributed"}
    trainer = spec["trainer"]
    assert trainer["numNodes"] == 4
    assert trainer["command"][:2] == ["estimatorkit", "run"]
    assert trainer["resourcesPerNode"]["limits"]["nvidia.com/gpu"] == "1"
    # Variables of this container are the trainer's alone: the operator refuses them in a patch.
    (pod,) = pods(spec["runtimePatches"])
    assert pod["containers"][0]["name"] == "node"
    assert "env" not in pod["containers"][0]
    assert {each["name"] for each in trainer["env"]} == {
        "ESTIMATORKIT_TOKEN",
        "ESTIMATORKIT_INSECURE",
        "ESTIMATORKIT_DATA_DIR",
    }


def test_rayjob_launches_tasks(tmp_path: Path) -> None:
    texts = written(tmp_path, CONFIG, "--workers", "3", "--ps", "2", "train.batch_size=16")
    spec = yaml.safe_load(texts["rayjob.yaml"])["spec"]
    assert shlex.split(spec["entrypoint"]) == [
        *("estimatorkit", "launch", "--ray", "--ps", "2", "--workers", "3", "--evaluator", "--"),
        *("estimatorkit", "run", "/experiment/iris_dnn.yaml", "train.batch_size=16"),
        *("--model-dir", "/shared/runs/iris-dnn"),
    ]
    cluster = spec["rayClusterSpec"]
    assert cluster["authOptions"] == {"mode": "token", "secretName": "iris-dnn"}
    assert f'"ray[default]=={cluster["rayVersion"]}"' in texts["Dockerfile"]
    head = cluster["headGroupSpec"]
    assert (head["serviceType"], head["enableIngress"]) == ("ClusterIP", False)
    assert head["rayStartParams"]["num-cpus"] == "0"
    groups = {each["groupName"]: each["replicas"] for each in cluster["workerGroupSpecs"]}
    assert groups == {"ps": 2, "worker": 4}  # three workers and the evaluator


def test_network_policy_admits_only_tasks_and_ray_operator(tmp_path: Path) -> None:
    found = manifests(tmp_path / "all", CONFIG)
    own, operator = found["NetworkPolicy"]["spec"]["ingress"]
    label = {"app.kubernetes.io/instance": "iris-dnn"}
    assert own == {"from": [{"podSelector": {"matchLabels": label}}]}
    assert operator["ports"] == [{"protocol": "TCP", "port": 8265}]
    found = manifests(tmp_path / "one", CONFIG, "--kind", "tfjob")
    assert found["NetworkPolicy"]["spec"]["ingress"] == [own]
    assert "RayJob" not in found


def test_pods_have_no_privileges(tmp_path: Path) -> None:
    found = manifests(tmp_path, CONFIG, "--workers", "2")
    count = 0
    for kind, manifest in found.items():
        for pod in pods(manifest):
            count += 1
            (container,) = pod["containers"]
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            security = pod["securityContext"]
            assert security["runAsNonRoot"]
            assert security["runAsUser"] == security["fsGroup"] == 10001
            assert security["seccompProfile"] == {"type": "RuntimeDefault"}
            assert pod["serviceAccountName"] == "iris-dnn"
            assert kind == "TrainJob" or pod["automountServiceAccountToken"] is False
            mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
            assert mounts == {"shared": "/shared", "tmp": "/tmp"}  # noqa: S108 (the pod's own)
            volumes = {each["name"]: each for each in pod["volumes"]}
            assert volumes["shared"]["persistentVolumeClaim"] == {"claimName": "iris-dnn"}
            assert volumes["tmp"]["emptyDir"] == {}
    assert count == 3 + 1 + 3  # roles of the TFJob; a node; Ray's submitter, head and workers
    assert found["ServiceAccount"]["automountServiceAccountToken"] is False
    assert found["PersistentVolumeClaim"]["spec"]["accessModes"] == ["ReadWriteMany"]


def test_token_is_in_no_file(tmp_path: Path) -> None:
    texts = written(tmp_path, CONFIG, "--workers", "2")
    secret = yaml.safe_load(texts["secret.yaml.template"])
    assert secret["stringData"] == {"auth_token": PLACEHOLDER}
    # `kubectl apply --filename FOLDER` must not put the placeholder in the token's place.
    assert not any(
        PLACEHOLDER in text for name, text in texts.items() if name.endswith((".yaml", ".json"))
    )
    assert not any(re.search(r"[0-9a-f]{32}", text) for text in texts.values())
    line = (
        "kubectl create secret generic iris-dnn --from-literal=auth_token=$(openssl rand -hex 32)"
    )
    assert line in texts["README.md"].splitlines()
    reference = {"secretKeyRef": {"name": "iris-dnn", "key": "auth_token"}}
    assert json.dumps(reference) in json.dumps(yaml.safe_load(texts["tfjob.yaml"]))


# -- images


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with an experiment, its data beside it, and what belongs to neither."""
    for name in ("experiments", "data"):
        (tmp_path / name).mkdir()
    (tmp_path / "experiments/rich.yaml").write_text(EXPERIMENT)
    (tmp_path / "experiments/towns.txt").write_text("Rome\nOslo\n")
    (tmp_path / "private.key").write_text("secret")
    for name in ("day-1.csv", "day-[2].csv", "test.csv", "other.csv"):
        (tmp_path / "data" / name).write_text("town,rich\nRome,yes\nOslo,no\n")
    return tmp_path


def built(context: Path, files: dict[str, str], image: Path) -> list[str]:
    """Does what Docker does for COPY: puts files into an image; those that Docker is sent."""
    copied = []
    for line in files["Dockerfile"].splitlines():
        if line.startswith("COPY "):
            *sources, target = json.loads(line.removeprefix("COPY "))
            assert target.endswith("/")
            folder = image / target.removeprefix("/")
            folder.mkdir(parents=True, exist_ok=True)
            for source in sources:
                (found,) = context.glob(source)
                shutil.copy(found, folder)
                copied.append(source)
    everything, *kept = files["Dockerfile.dockerignore"].splitlines()
    assert everything == "*"
    assert sorted(kept) == sorted(f"!{each}" for each in copied)
    return copied


def test_image_holds_experiment_and_data(project: Path, tmp_path: Path) -> None:
    config = project / "experiments/rich.yaml"
    files = written(tmp_path / "out", str(config), "--workers", "2")
    image = tmp_path / "image"
    copied = built(project, files, image)
    assert len(copied) == 5
    assert not list(image.rglob("other.csv")) + list(image.rglob("private.key"))
    job = yaml.safe_load(files["tfjob.yaml"])
    command = next(pods(job))["containers"][0]["command"]
    assert command[2] == "/experiment/experiments/rich.yaml"
    experiment = load_experiment(image / command[2].removeprefix("/"))
    assert len(read_source(experiment.data.train)["rich"]) == 4
    assert len(read_source(experiment.data.evaluate)["rich"]) == 2
    (vocabulary,) = image.rglob("towns.txt")
    assert str(vocabulary) in experiment.model_dump_json()
    lines = files["Dockerfile"].splitlines()
    assert lines[-2:] == ["USER 10001:10001", f"CMD {json.dumps(command)}"]
    build = next(line for line in files["README.md"].splitlines() if "docker build" in line)
    assert Path(shlex.split(build)[-1]).resolve() == project.resolve()


def test_images_have_required_extras(project: Path, tmp_path: Path) -> None:
    config = str(project / "experiments/rich.yaml")
    alone = written(tmp_path / "a", config, "--kind", "tfjob")["Dockerfile"]
    assert 'ARG PACKAGE="estimatorkit[arrow]==' in alone
    assert "ray" not in alone
    assert "jax[" not in alone
    more = written(tmp_path / "b", config, "data.train.csv=gs://bucket/a.csv", "--gpus", "1")
    assert 'ARG PACKAGE="estimatorkit[arrow,remote]==' in more["Dockerfile"]
    assert '"jax[cuda12]"' in more["Dockerfile"]
    assert "day-1.csv" not in more["Dockerfile"]


def test_data_on_claim_are_not_copied(project: Path, tmp_path: Path) -> None:
    config = str(project / "experiments/rich.yaml")
    files = written(tmp_path / "out", config, "data.train.csv=/shared/data/day-*.csv")
    assert not any("day-" in each for each in built(project, files, tmp_path / "image"))
    assert "data.train.csv=/shared/data/day-*.csv" in files["tfjob.yaml"]


# -- what is refused


WRONG = {
    "name": (["--name", "My_Run"], ["--name My_Run: not a valid Kubernetes name", "--name my-run"]),
    "digit first": (["--name", "7up"], ["a letter first", "--name run-7up"]),
    "long name": (["--name", "x" * 48], ["47 at most", "(48 characters)"]),
    "namespace": (["--namespace", "Team A"], ["--namespace Team A:", "--namespace team-a"]),
    "claim": (["--claim", "a/b"], ["--claim a/b:", "--claim a-b"]),
    "image": (["--image", "Team/Iris:v1"], ["--image Team/Iris:v1:", "--image team/iris:v1"]),
    "image with a space": (["--image", "a b"], ["not a valid image name", "received: 'a b'"]),
    "bytes": (
        ["--memory", "4Gb"],
        ["--memory 4Gb: not a valid Kubernetes quantity", "--memory 4Gi"],
    ),
    "no unit": (["--memory", "4"], ["powers of 1024", "--memory 4Gi"]),
    "thousandths of a byte": (["--memory", "400m"], ["--memory 400Mi"]),
    "nothing": (["--storage", "0Gi"], ["--storage 0Gi: not a valid Kubernetes quantity"]),
    "cores": (["--cpu", "2cores"], ["--cpu 2cores: not a valid number of cores", "500m"]),
    "no cores": (["--cpu", "0"], ["--cpu 0: not a valid number"]),
    "folder": (["--model-dir", "runs/x"], ["not on the claim", "--model-dir /shared/runs/x"]),
    "folder outside": (["--model-dir", "/shared/../etc"], ["a folder below /shared"]),
    "servers alone": (["--ps", "2"], ["--ps 2 without --workers"]),
    "no workers": (["--workers", "0"], ["0 is not in the range x>=1"]),
    "equal with servers": (
        ["--kind", "trainjob", "--ps", "1", "--workers", "2"],
        ["a TrainJob has identical workers only; remove --ps 1"],
    ),
    "equal with evaluator": (["--kind", "trainjob", "--evaluator"], ["remove --evaluator"]),
    "kind": (["--kind", "pytorchjob"], ["'pytorchjob' is not one of"]),
    "experiment": (["train.stepz=1"], ["unknown key train.stepz"]),
    "a model elsewhere": (
        ["estimator.warm_start_from=runs/old"],
        ["the tasks do not have runs/old", "below /shared"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_invalid_settings_are_refused(name: str, tmp_path: Path) -> None:
    arguments, words = WRONG[name]
    result = run(CONFIG, *arguments, "--output", str(tmp_path / "out"))
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    for each in words:
        assert each in result.stderr
    assert not (tmp_path / "out").exists()


def test_local_paths_are_refused(project: Path) -> None:
    config = project / "experiments/rich.yaml"
    absolute = f"{project}/data/day-1.csv"
    result = run(str(config), f"data.train.csv={absolute}", "--dry-run")
    assert result.exit_code == 2
    assert f"rich.yaml: {absolute} is a place on this machine" in result.stderr
    config.write_text(EXPERIMENT.replace("../data/day-*.csv", absolute))
    assert "is a place on this machine" in run(str(config), "--dry-run").stderr
    result = run(CONFIG, "data.train={csv: nowhere.csv}", "--dry-run")
    assert result.exit_code == 1
    assert "nowhere.csv: no such file" in result.stderr


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("iris-dnn", "iris-dnn"),
        ("Iris_DNN.2", "iris-dnn-2"),
        ("7up", "run-7up"),
        ("___", "run"),
        ("x" * 46 + ".y", "x" * 46),
    ],
)
def test_names_from_any_text(text: str, name: str) -> None:
    assert dns_name(text) == name
    assert len(name) <= MAX_NAME
    Job(name=dns_name(text), image="a:1", config="/experiment/a.yaml")  # which checks it


# -- the command


def test_dry_run_prints_files(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    files = written(folder, CONFIG, "--workers", "2")
    result = run(CONFIG, "--workers", "2", "--output", str(folder), "--dry-run")
    printed = re.split(r"^==> (.*) <==\n", result.stdout, flags=re.MULTILINE)
    assert printed[0] == ""
    names = [Path(each).name for each in printed[1::2]]
    assert dict(zip(names, (each[:-1] for each in printed[2::2]), strict=True)) == files


def test_files_go_to_named_folder(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    result = run("experiments/rich.yaml", "--kind", "trainjob")
    assert result.exit_code == 0
    files = {path.name for path in (project / "k8s/rich-people-2").iterdir()}
    assert files == {
        *("Dockerfile", "Dockerfile.dockerignore", "README.md"),
        *("common.yaml", "secret.yaml.template", "trainjob.yaml"),
    }
    build = "docker build --file k8s/rich-people-2/Dockerfile --tag rich-people-2:1 ."
    assert f"  {build}\n" in result.stdout
    assert result.stderr == ""


def test_warnings_about_likely_mistakes(tmp_path: Path) -> None:
    result = run(CONFIG, "--workers", "2", "--ps", "1", "--dry-run")
    assert "train.steps=null train.max_steps=1000 counts all runs" in result.stderr
    assert "no trainjob.yaml, because a TrainJob does not support --ps 1" in result.stderr
