"""What TensorFlow 2.15.1's `RunConfig` makes of TF_CONFIG.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_clusters.py

Writes `clusters.json` beside this file: for each TF_CONFIG the properties, or the error.
"""

from __future__ import annotations

import json
import os
from typing import Any

import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json

CLUSTER = {"chief": ["h0:1"], "ps": ["h1:1", "h2:1"], "worker": ["h3:1", "h4:1", "h5:1"]}
# As Kubeflow's operator for TFJobs writes it: services by name, and no evaluator in the cluster.
TFJOB = {
    "chief": ["iris-chief-0.default.svc:2222"],
    "ps": ["iris-ps-0.default.svc:2222"],
    "worker": ["iris-worker-0.default.svc:2222", "iris-worker-1.default.svc:2222"],
}
LEGACY = {"master": ["h0:1"], "ps": ["h1:1", "h2:1"], "worker": ["h3:1", "h4:1", "h5:1"]}


def task(kind: Any, index: Any) -> dict[str, Any]:
    """Returns the part of TF_CONFIG that names a task."""
    return {"task": {"type": kind, "index": index}}


CASES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "alone": task("worker", 0),
    "one chief": {"cluster": {"chief": ["h0:1"]}} | task("chief", 0),
    "service": {"service": {"key": 1}, "eval_session_master": "e", "session_master": "s"},
    "master given": {"cluster": CLUSTER, "session_master": "grpc://x:1"} | task("worker", 1),
    "number as a string": {"cluster": CLUSTER} | task("worker", "2"),
    "numbered tasks": {"cluster": {**CLUSTER, "worker": {"1": "h4:1"}}} | task("worker", 1),
    "eval master": {"cluster": CLUSTER, "eval_session_master": "grpc://e:1"} | task("evaluator", 0),
    "evaluator 3": {"cluster": CLUSTER} | task("evaluator", 3),
    "folder": {"cluster": CLUSTER, "model_dir": "/model"} | task("ps", 0),
    **{
        f"TFJob {kind} {index}": {"cluster": TFJOB, "environment": "cloud"} | task(kind, index)
        for kind, index in (("chief", 0), ("ps", 0), ("worker", 1), ("evaluator", 0))
    },
    **{
        f"{name} {kind} {index}": {"cluster": cluster} | task(kind, index)
        for name, cluster, first in (("chief's", CLUSTER, "chief"), ("master's", LEGACY, "master"))
        for kind, index in ((first, 0), ("ps", 1), ("worker", 0), ("worker", 2))
    },
}
WRONG: dict[str, dict[str, Any]] = {
    "no chief": {"cluster": {"ps": ["h1:1"]}} | task("ps", 0),
    "two chiefs": {"cluster": {"chief": ["h0:1", "h1:1"]}} | task("chief", 0),
    "chief and master": {"cluster": {"chief": ["h0:1"], "master": ["h1:1"]}} | task("chief", 0),
    "no type": {"cluster": CLUSTER, "task": {"index": 0}},
    "no index": {"cluster": CLUSTER, "task": {"type": "ps"}},
    "no task": {"cluster": CLUSTER},
    "negative": {"cluster": CLUSTER} | task("ps", -1),
    "out of range": {"cluster": CLUSTER} | task("ps", 2),
    "unknown role": {"cluster": CLUSTER} | task("wrker", 0),
    "evaluator of a master": {"cluster": LEGACY} | task("evaluator", 0),
    "alone as ps": task("ps", 0),
    "alone as second": task("worker", 1),
    "service is a list": {"service": [1]},
    "empty folder": {"model_dir": ""},
}
PROPERTIES = (
    *("cluster_spec", "task_type", "task_id", "is_chief", "num_ps_replicas", "service"),
    *("num_worker_replicas", "global_id_in_cluster", "master", "evaluation_master", "model_dir"),
)


def config_of(tf_config: dict[str, Any]) -> Any:
    """Returns the RunConfig with a TF_CONFIG."""
    os.environ["TF_CONFIG"] = json.dumps(tf_config)
    return tf.estimator.RunConfig()


def properties(tf_config: dict[str, Any]) -> dict[str, Any]:
    """Returns the properties by name."""
    config = config_of(tf_config)
    found = {name: getattr(config, name) for name in PROPERTIES}
    found["cluster_spec"] = config.cluster_spec.as_dict()
    return found


def error(tf_config: dict[str, Any]) -> list[str]:
    """Returns the kind and the words of the error."""
    try:
        config_of(tf_config)
    except (ValueError, TypeError) as wrong:
        return [type(wrong).__name__, str(wrong)]
    raise RuntimeError(f"no error: {tf_config}")


def main() -> None:
    """Reads all and writes the file."""
    found = {
        "properties": {name: [case, properties(case)] for name, case in CASES.items()},
        "errors": {name: [case, error(case)] for name, case in WRONG.items()},
    }
    write_json("clusters.json", found)


if __name__ == "__main__":
    main()
