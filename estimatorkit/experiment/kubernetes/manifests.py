"""The manifests of a job, as plain values, for Kubernetes and training operators.

`job_manifest` makes a `TFJOB`, `TRAINJOB` or `RAYJOB`, `common_manifests` what all of them use: an
unprivileged account, the claim that the tasks share, and a network policy that restricts traffic to
the job's tasks. Pods satisfy the Pod Security Standard `restricted`, with a read-only root file
system and no service account token.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from typing import Any

from estimatorkit.distribute.tasks.token import VARIABLE
from estimatorkit.distribute.tls import INSECURE
from estimatorkit.experiment.kubernetes.image import RAY, USER
from estimatorkit.experiment.kubernetes.job import SHARED, Job

Manifest = dict[str, Any]

TFJOB, TRAINJOB, RAYJOB = "tfjob", "trainjob", "rayjob"

TOKEN_KEY = "auth_token"  # noqa: S105 (the key's name, which KubeRay prescribes)
PLACEHOLDER = "REPLACE-ME"

_GRACE_SECS = 120
"""Seconds from SIGTERM to SIGKILL: a task saves a checkpoint and exits with 143."""

_PORT = 2222
_DASHBOARD_PORT = 8265


def job_manifest(kind: str, job: Job) -> Manifest:
    """The manifest of an operator: `TFJOB`, `TRAINJOB` or `RAYJOB`."""
    return _MAKERS[kind](job)


def common_manifests(job: Job, kinds: Iterable[str]) -> list[Manifest]:
    """The common manifests: account, claim (unless it exists already), network policy."""
    account = _manifest("v1", "ServiceAccount", job) | {"automountServiceAccountToken": False}
    claim = _manifest("v1", "PersistentVolumeClaim", job) | {
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": job.storage}},
        }
    }
    return [account, *([] if job.claim else [claim]), _network_policy(job, RAYJOB in kinds)]


def secret_template(job: Job) -> Manifest:
    """The secret with the token by which tasks authenticate each other, to be filled in."""
    values = {"type": "Opaque", "stringData": {TOKEN_KEY: PLACEHOLDER}}
    return _manifest("v1", "Secret", job) | values


def _manifest(version: str, kind: str, job: Job) -> Manifest:
    metadata: Manifest = {"name": job.name}
    if job.namespace is not None:
        metadata["namespace"] = job.namespace
    metadata["labels"] = _labels(job)
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _labels(job: Job) -> Manifest:
    return {"app.kubernetes.io/name": "estimatorkit", "app.kubernetes.io/instance": job.name}


def _network_policy(job: Job, ray: bool) -> Manifest:
    own = {"app.kubernetes.io/instance": job.name}
    ingress: list[Manifest] = [{"from": [{"podSelector": {"matchLabels": own}}]}]
    if ray:
        # KubeRay polls the dashboard's server for the job's status, from any namespace.
        operator = {
            "namespaceSelector": {},
            "podSelector": {"matchLabels": {"app.kubernetes.io/component": "kuberay-operator"}},
        }
        ports = [{"protocol": "TCP", "port": _DASHBOARD_PORT}]
        ingress.append({"from": [operator], "ports": ports})
    spec = {
        "podSelector": {"matchLabels": dict(own)},
        "policyTypes": ["Ingress"],
        "ingress": ingress,
    }
    return _manifest("networking.k8s.io/v1", "NetworkPolicy", job) | {"spec": spec}


# -- pods


def _resources(cpu: str, memory: str, gpus: int = 0) -> Manifest:
    """Requests equal to limits: such pods are evicted last."""
    amounts: Manifest = {"cpu": cpu, "memory": memory}
    if gpus:
        amounts["nvidia.com/gpu"] = str(gpus)
    return {"requests": amounts, "limits": dict(amounts)}


def _environment(job: Job) -> list[Manifest]:
    token = {"secretKeyRef": {"name": job.name, "key": TOKEN_KEY}}
    return [
        {"name": VARIABLE, "valueFrom": token},
        {"name": INSECURE, "value": "1"},  # the pods' network is the cluster's own
        {"name": "ESTIMATORKIT_DATA_DIR", "value": f"{SHARED}/data"},
    ]


def _volumes(job: Job) -> list[Manifest]:
    return [
        {"name": "shared", "persistentVolumeClaim": {"claimName": job.claim_name}},
        {"name": "tmp", "emptyDir": {}},
    ]


def _mounts() -> list[Manifest]:
    return [{"name": "shared", "mountPath": SHARED}, {"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108 (a volume of the pod's own)


def _container_security() -> Manifest:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def _pod_security() -> Manifest:
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _pod(job: Job, container: str, resources: Manifest, **more: Any) -> Manifest:
    """The template of a pod with one container; `more`: the container's other fields."""
    return {
        "metadata": {"labels": _labels(job)},
        "spec": {
            "serviceAccountName": job.name,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": _GRACE_SECS,
            "securityContext": _pod_security(),
            "containers": [
                {
                    "name": container,
                    "image": job.image,
                    **more,
                    "env": _environment(job),
                    "resources": resources,
                    "securityContext": _container_security(),
                    "volumeMounts": _mounts(),
                }
            ],
            "volumes": _volumes(job),
        },
    }


# -- the operators' kinds


def _tfjob(job: Job) -> Manifest:
    """A `TFJob` of Kubeflow's Training Operator, which sets TF_CONFIG."""
    counts = {
        "Chief": (1, job.gpus),
        "Worker": (job.workers - 1, job.gpus),
        "PS": (job.ps, 0),
        "Evaluator": (int(job.evaluator), job.gpus),
    }
    replicas = {
        role: {
            "replicas": count,
            "restartPolicy": "ExitCode",  # restarts from 128 on: signals, 138, 143 after a save
            "template": _pod(
                job,
                "tensorflow",
                _resources(job.cpu, job.memory, gpus),
                command=job.command,
                ports=[{"name": "tfjob-port", "containerPort": _PORT}],
            ),
        }
        for role, (count, gpus) in counts.items()
        if count
    }
    # The job ends with the chief: running pods are removed, except the evaluator, which may still
    # be at the last checkpoint. It and the others end on their own.
    policy = {"cleanPodPolicy": "None" if job.evaluator else "Running"}
    spec = {"runPolicy": policy, "tfReplicaSpecs": replicas}
    return _manifest("kubeflow.org/v1", "TFJob", job) | {"spec": spec}


def _trainjob(job: Job) -> Manifest:
    """A `TrainJob` of Kubeflow's Trainer: equal processes, numbered by the JAX runtime."""
    node = {
        "name": "node",
        "securityContext": _container_security(),
        "volumeMounts": _mounts(),
    }
    pod = {
        "metadata": {"labels": _labels(job)},
        "spec": {
            "serviceAccountName": job.name,  # a patch cannot refuse its token, but the account does
            "terminationGracePeriodSeconds": _GRACE_SECS,
            "securityContext": _pod_security(),
            "containers": [node],
            "volumes": _volumes(job),
        },
    }
    jobs = [{"name": "node", "template": {"spec": {"template": pod}}}]
    patch = {
        "manager": "estimatorkit",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
    }
    spec = {
        "runtimeRef": {"name": "jax-distributed"},
        "trainer": {
            "image": job.image,
            "command": job.command,
            "numNodes": job.workers,
            "env": _environment(job),
            "resourcesPerNode": _resources(job.cpu, job.memory, job.gpus),
        },
        "runtimePatches": [patch],
    }
    return _manifest("trainer.kubeflow.org/v1alpha1", "TrainJob", job) | {"spec": spec}


def _rayjob(job: Job) -> Manifest:
    """A `RayJob` of KubeRay: a cluster for this job, on which `estimatorkit launch` starts tasks.

    Ray's job server is part of its dashboard, so jobs cannot be submitted with `include-dashboard:
    false`. The dashboard is therefore enabled, protected by the token and the network policy, and
    in no ingress.
    """
    launch = ["estimatorkit", "launch", "--ray", "--ps", str(job.ps), "--workers", str(job.workers)]
    if job.evaluator:
        launch.append("--evaluator")
    ports = [
        {"name": "gcs-server", "containerPort": 6379},
        {"name": "dashboard", "containerPort": _DASHBOARD_PORT},
    ]
    submitter = _pod(job, "ray-job-submitter", _resources("500m", "1Gi"))  # it only waits
    submitter["spec"]["restartPolicy"] = "Never"
    cluster = {
        "rayVersion": RAY,
        "authOptions": {"mode": "token", "secretName": job.name},  # sets RAY_AUTH_MODE everywhere
        "headGroupSpec": {
            "serviceType": "ClusterIP",
            "enableIngress": False,
            # No task is scheduled on the head, which manages the cluster.
            "rayStartParams": {"num-cpus": "0", "disable-usage-stats": "true"},
            "template": _pod(job, "ray-head", _resources(job.cpu, job.memory), ports=ports),
        },
        "workerGroupSpecs": [
            {
                "groupName": group,
                "replicas": count,
                "minReplicas": count,
                "maxReplicas": count,
                "rayStartParams": {},
                "template": _pod(job, "ray-worker", _resources(job.cpu, job.memory, gpus)),
            }
            for group, count, gpus in (
                ("ps", job.ps, 0),
                ("worker", job.workers + job.evaluator, job.gpus),
            )
            if count
        ],
    }
    spec = {
        "entrypoint": shlex.join([*launch, "--", *job.command]),
        "submissionMode": "K8sJobMode",
        "shutdownAfterJobFinishes": True,
        "ttlSecondsAfterFinished": 600,  # ten minutes to look at the logs of the cluster
        "backoffLimit": 2,  # KubeRay ignores exit codes: user errors are retried, too
        "submitterPodTemplate": submitter,
        "rayClusterSpec": cluster,
    }
    return _manifest("ray.io/v1", "RayJob", job) | {"spec": spec}


_MAKERS: dict[str, Callable[[Job], Manifest]] = {
    TFJOB: _tfjob,
    TRAINJOB: _trainjob,
    RAYJOB: _rayjob,
}
