"""What Kubernetes and three operators take, as JSON schemas.

Run, with the packages that the README names:

    python tests/experiment/kubernetes_schemas/make_schemas.py

Writes `core.json`, `tfjob.json`, `trainjob.json` and `rayjob.json` beside this file. Names and
types are those of the published Python models, for KubeRay those of its API reference. Fields in
`LEFT_OUT` are not taken, and no field that is not there is allowed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import kubernetes.client  # type: ignore[import-not-found,import-untyped,unused-ignore]
import kubernetes.client.models as core  # type: ignore[import-not-found,import-untyped,unused-ignore]
from kubeflow.training import models as training  # type: ignore[import-not-found,unused-ignore]
from kubeflow_trainer_api import models as trainer  # type: ignore[import-not-found,unused-ignore]

Schema = dict[str, Any]

FOLDER = Path(__file__).parent

# Whole branches that no manifest here needs: nine tenths of the models.
LEFT_OUT = {
    *("affinity", "appArmorProfile", "claims", "dataSource", "dataSourceRef", "dnsConfig"),
    *("egress", "ephemeralContainers", "evictionRequest", "fieldRef", "fileKeyRef"),
    *("hostAliases", "imagePullSecrets", "initContainers", "initializer", "lifecycle"),
    *("livenessProbe", "managedFields", "overhead", "ownerReferences", "readinessGates"),
    *("readinessProbe", "resizePolicy", "resourceClaims", "resourceFieldRef"),
    *("restartPolicyRules", "schedulingGates", "schedulingGroup", "schedulingPolicy"),
    *("seLinuxOptions", "selector", "startupProbe", "status", "sysctls", "tolerations"),
    *("topologySpreadConstraints", "volumeDevices", "windowsOptions", "workloadRef"),
}
VOLUMES = {"name", "emptyDir", "persistentVolumeClaim"}  # of thirty kinds

SIMPLE: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "float": {"type": "number"},
    "datetime": {"type": "string"},
    "object": {},
}


def is_left_out(owner: str, field: str) -> bool:
    """Whether a field is not taken."""
    return field in LEFT_OUT or (owner.endswith("V1Volume") and field not in VOLUMES)


# -- models that list their types by name


def of_types(name: str, found: dict[str, Schema], file: str = "") -> Schema:
    """The schema of a type by its name; models that it needs are put into `found`."""
    if name in SIMPLE:
        return dict(SIMPLE[name])
    if many := re.fullmatch(r"list\[(.+)\]", name):
        return {"type": "array", "items": of_types(many[1], found, file)}
    if mapped := re.fullmatch(r"dict\(str, (.+)\)", name):
        return {"type": "object", "additionalProperties": of_types(mapped[1], found, file)}
    if file and hasattr(core, name):
        return {"$ref": f"{file}#/$defs/{name}"}
    if name not in found:
        model = getattr(core, name, None) or getattr(training, name)
        found[name] = {}  # a model may need itself
        required = [
            json_name
            for field, json_name in model.attribute_map.items()
            if is_required(model, field) and not is_left_out(name, json_name)
        ]
        found[name] = {
            "type": "object",
            "properties": {
                model.attribute_map[field]: of_types(kind, found, file)
                for field, kind in model.openapi_types.items()
                if not is_left_out(name, model.attribute_map[field])
            },
            "required": sorted(required),
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{name}"}


def is_required(model: Any, field: str) -> bool:
    """Whether a model refuses None for a field."""
    configuration = kubernetes.client.Configuration()
    configuration.client_side_validation = False
    made = model(local_vars_configuration=configuration)
    configuration.client_side_validation = True
    made.local_vars_configuration = configuration
    try:
        setattr(made, field, None)
    except ValueError:
        return True
    return False


# -- models of pydantic


def pruned(name: str, definitions: dict[str, Schema], found: dict[str, Schema]) -> None:
    """Puts a definition into `found`, with those that it needs, without prose and defaults."""
    if name in found:
        return
    given = definitions[name]
    found[name] = {}
    properties = {
        field: simplified(value, definitions, found)
        for field, value in given.get("properties", {}).items()
        if not is_left_out(name, field)
    }
    found[name] = {
        "type": "object",
        "properties": properties,
        "required": sorted(set(given.get("required", ())) & set(properties)),
        "additionalProperties": False,
    }


def simplified(value: Schema, definitions: dict[str, Schema], found: dict[str, Schema]) -> Schema:
    """A field's schema without prose, and without null beside its type."""
    choices = [each for each in value.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1:
        return simplified(choices[0], definitions, found)
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        if "actual_instance" in definitions[name].get("properties", {}):
            return {"type": ["string", "number"]}  # a quantity, or a number or name of a port
        pruned(name, definitions, found)
        return {"$ref": f"#/$defs/{name}"}
    kept: Schema = {key: value[key] for key in ("type", "enum") if key in value}
    for key in ("items", "additionalProperties"):
        if isinstance(value.get(key), dict):
            kept[key] = simplified(value[key], definitions, found)
    return kept


# -- KubeRay has no published models: its fields as its reference lists them


def ray_definitions() -> dict[str, Schema]:
    """RayJobs and what they consist of."""
    text, whole, number, switch = (dict(SIMPLE[each]) for each in ("str", "int", "float", "bool"))
    texts = {"type": "object", "additionalProperties": text}
    template = {"$ref": "core.json#/$defs/V1PodTemplateSpec"}
    fields: dict[str, tuple[Schema, list[str]]] = {
        "RayJob": (
            {
                "apiVersion": {"const": "ray.io/v1"},
                "kind": {"const": "RayJob"},
                "metadata": {"$ref": "core.json#/$defs/V1ObjectMeta"},
                "spec": {"$ref": "#/$defs/RayJobSpec"},
            },
            [],
        ),
        "RayJobSpec": (
            {
                "activeDeadlineSeconds": whole,
                "backoffLimit": whole,
                "clusterSelector": texts,
                "entrypoint": text,
                "entrypointNumCpus": number,
                "entrypointNumGpus": number,
                "entrypointResources": text,
                "jobId": text,
                "managedBy": text,
                "metadata": texts,
                "preRunningDeadlineSeconds": whole,
                "rayClusterSpec": {"$ref": "#/$defs/RayClusterSpec"},
                "runtimeEnvYAML": text,
                "shutdownAfterJobFinishes": switch,
                "submissionMode": {
                    "enum": ["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"]
                },
                "submitterConfig": {
                    "type": "object",
                    "properties": {"backoffLimit": whole},
                    "additionalProperties": False,
                },
                "submitterPodTemplate": template,
                "suspend": switch,
                "ttlSecondsAfterFinished": whole,
            },
            [],
        ),
        "RayClusterSpec": (
            {
                "authOptions": {"$ref": "#/$defs/AuthOptions"},
                "enableInTreeAutoscaling": switch,
                "headGroupSpec": {"$ref": "#/$defs/HeadGroupSpec"},
                "headServiceAnnotations": texts,
                "managedBy": text,
                "rayVersion": text,
                "suspend": switch,
                "workerGroupSpecs": {
                    "type": "array",
                    "items": {"$ref": "#/$defs/WorkerGroupSpec"},
                },
            },
            ["headGroupSpec"],
        ),
        "AuthOptions": (
            {
                "enableK8sTokenAuth": switch,
                "mode": {"enum": ["disabled", "token"]},
                "secretName": text,
            },
            [],
        ),
        "HeadGroupSpec": (
            {
                "enableIngress": switch,
                "labels": texts,
                "rayStartParams": texts,
                "resources": texts,
                "serviceType": text,
                "template": template,
            },
            ["template"],
        ),
        "WorkerGroupSpec": (
            {
                "groupName": text,
                "idleTimeoutSeconds": whole,
                "labels": texts,
                "maxReplicas": whole,
                "minReplicas": whole,
                "numOfHosts": whole,
                "rayStartParams": texts,
                "replicas": whole,
                "resources": texts,
                "suspend": switch,
                "template": template,
            },
            ["groupName", "maxReplicas", "minReplicas", "template"],
        ),
    }
    return {
        name: {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
        for name, (properties, required) in fields.items()
    }


def write(name: str, root: str, found: dict[str, Schema]) -> None:
    """Writes a file, a line a definition."""
    lines = [f' "{key}": {json.dumps(found[key], sort_keys=True)}' for key in sorted(found)]
    definitions = ",\n".join(lines)
    head = f'"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/{root}"'
    (FOLDER / name).write_text(f'{{{head}, "$defs": {{\n{definitions}\n}}}}\n', encoding="utf-8")


def main() -> None:
    """Writes the four."""
    found: dict[str, Schema] = {}
    kinds = (
        "Secret",
        "ServiceAccount",
        "PersistentVolumeClaim",
        "NetworkPolicy",
        "PodTemplateSpec",
    )
    for kind in kinds:
        of_types(f"V1{kind}", found)
    write("core.json", "V1PodTemplateSpec", found)
    found = {}
    of_types("KubeflowOrgV1TFJob", found, "core.json")
    write("tfjob.json", "KubeflowOrgV1TFJob", found)
    found = {}
    schema = trainer.TrainerV1alpha1TrainJob.model_json_schema(by_alias=True)
    definitions = schema["$defs"] | {"TrainJob": schema}
    pruned("TrainJob", definitions, found)
    write("trainjob.json", "TrainJob", found)
    write("rayjob.json", "RayJob", ray_definitions())


if __name__ == "__main__":
    main()
