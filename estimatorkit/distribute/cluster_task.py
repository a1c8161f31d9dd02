"""`ClusterTask`: this process's cluster and role, read from `TF_CONFIG`.

`TF_CONFIG` is JSON: `cluster` lists the addresses of each job's tasks, `task` identifies this
process. All common forms are supported: with a chief or a master; with the chief also listed as a
worker; without a chief, whose role the first worker takes; with an evaluator inside or outside the
cluster. Without `TF_CONFIG`, Kubeflow Trainer's variables for JAX are used
(`JAX_COORDINATOR_ADDRESS`, `JAX_NUM_PROCESSES`, `JAX_PROCESS_ID`); without either, this is a
single-process cluster.

Errors name the location in the JSON: `cluster.worker[1]`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.distribute.cluster_spec import ClusterSpec

CHIEF, MASTER, WORKER, PS, EVALUATOR = "chief", "master", "worker", "ps", "evaluator"

_JAX = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
_EXAMPLE = (
    '{"cluster": {"chief": ["host1:2222"], "ps": ["host2:2222"]}, '
    '"task": {"type": "ps", "index": 0}}'
)

_HOST = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?\]?")
_SHOWN = 200  # characters of an invalid value


@dataclass(frozen=True)
class ClusterTask:
    """This process's role in its cluster.

    Attributes:
        cluster: the tasks that train together; empty for single processes and evaluators, and if
            only the coordinator's address is known.
        type: this process's job: 'chief', 'master', 'worker', 'ps' or 'evaluator'.
        index: this process's index within the job.
        chief: the job and index of the chief.
        processes: the number of training processes, including parameter servers.
        coordinator: the rendezvous address of synchronous training, `host:port`, if given.
        session_master: the session target, if given; by default that of this task.
        evaluation_master: the same for evaluations.
        model_dir: the model's folder, if the environment sets it.
        service: the value of `service` in `TF_CONFIG`, unchanged.
    """

    cluster: ClusterSpec = field(default_factory=lambda: ClusterSpec({}))
    type: str = WORKER
    index: int = 0
    chief: tuple[str, int] = (WORKER, 0)
    processes: int = 1
    coordinator: str | None = None
    session_master: str | None = None
    evaluation_master: str = ""
    model_dir: str | None = None
    service: Mapping[str, Any] | None = None

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints."""
        return (self.type, self.index) == self.chief

    @property
    def is_alone(self) -> bool:
        """Whether this is the only training process."""
        return self.processes == 1

    @property
    def num_ps_replicas(self) -> int:
        """The number of parameter servers."""
        return self.cluster.num_tasks(PS) if PS in self.cluster.jobs else 0

    @property
    def num_worker_replicas(self) -> int:
        """The number of workers, including the chief; 0 for an evaluator."""
        return 0 if self.type == EVALUATOR else self.processes - self.num_ps_replicas

    @property
    def global_id_in_cluster(self) -> int | None:
        """This process's index in the cluster: the chief first, then other jobs by name, parameter
        servers last, including missing indices. None for an evaluator.
        """
        if self.type == EVALUATOR:
            return None
        jobs = sorted(self.cluster.jobs, key=lambda job: (job != self.chief[0], job == PS, job))
        before = jobs[: jobs.index(self.type)] if jobs else []
        return sum(len(self.cluster.job_tasks(job)) for job in before) + self.index

    @property
    def address(self) -> str | None:
        """This task's address, `host:port`, or None."""
        if self.type not in self.cluster.jobs:
            return None
        return self.cluster.task_address(self.type, self.index)

    @property
    def master(self) -> str:
        """The session target for training; '' for a single process."""
        if self.session_master is not None:
            return self.session_master
        return "" if self.is_alone or self.address is None else f"grpc://{self.address}"

    @staticmethod
    def of_environment(environment: Mapping[str, str] | None = None) -> ClusterTask:
        """Reads the environment.

        Args:
            environment: variables by name; those of this process by default.

        Raises:
            ValueError: `TF_CONFIG` or one of JAX's variables is invalid.
        """
        variables = os.environ if environment is None else environment
        text = variables.get("TF_CONFIG")
        if text is not None:
            return _of_tf_config(_parsed(text))
        if any(name in variables for name in _JAX[1:]):
            return _of_jax(variables)
        return ClusterTask()


# -- TF_CONFIG


def _fail(problem: str, **parts: Any) -> NoReturn:
    if len(received := str(parts.get("received", ""))) > _SHOWN:
        parts["received"] = f"{received[:_SHOWN]}..."
    raise value_error(f"TF_CONFIG: {problem}", **parts) from None


def _parsed(text: str) -> dict[str, Any]:
    if not text.strip():
        _fail(
            "the value is empty", expected=_EXAMPLE, hint="unset TF_CONFIG if there is no cluster"
        )
    try:
        found = json.loads(text, object_pairs_hook=_without_duplicates)
    except _DuplicateKeyError as error:
        _fail(f"the key {str(error)!r} is given twice", received=text)
    except RecursionError:
        _fail("the value is nested too deeply", expected=_EXAMPLE, received=text)
    except ValueError as error:
        hint = None
        if "'" in text and '"' not in text:
            hint = "JSON needs double quotes; in a shell: TF_CONFIG='{\"cluster\": ...}'"
        elif re.search(r"#|//", text):
            hint = "JSON does not allow comments"
        _fail(f"invalid JSON: {error}", expected=_EXAMPLE, received=text, hint=hint)
    if not isinstance(found, dict):
        _fail("the value is not a dict", expected=_EXAMPLE, received=text)
    return found


class _DuplicateKeyError(Exception):
    """A key of a JSON object that is given twice."""


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _DuplicateKeyError(next(name for name in names if names.count(name) > 1))
    return found


def _of_tf_config(config: dict[str, Any]) -> ClusterTask:
    cluster = _cluster_of(config.get("cluster", {}))
    task = config.get("task", {})
    if not isinstance(task, dict):
        _fail("task is not a dict", expected='{"type": "ps", "index": 0}', received=repr(task))
    rest = _rest_of(config)
    if not cluster:
        kind, index = task.get("type", WORKER), _index(task.get("index", 0))
        if kind != WORKER:
            _fail(
                'If "cluster" is not set in TF_CONFIG, task type must be WORKER',
                received=f"task.type: {kind!r}",
            )
        if index:
            _fail(
                'If "cluster" is not set in TF_CONFIG, task index must be 0',
                received=f"task.index: {index}",
            )
        return ClusterTask(**rest)
    chief = _chief_of(cluster)
    _check_ports(cluster)
    kind, index = _task_of(task, cluster, chief)
    if kind == EVALUATOR:
        return ClusterTask(type=kind, index=index, chief=chief, **rest)
    rest["evaluation_master"] = ""  # evaluators have another
    cluster.pop(EVALUATOR, None)
    _check_addresses(cluster, chief)
    if chief[0] != WORKER and WORKER in cluster:
        # The chief that is listed among the workers, too, is the same process.
        own = cluster[chief[0]][chief[1]]
        same = [number for number, address in cluster[WORKER].items() if address == own]
        for number in same:
            del cluster[WORKER][number]
        if kind == WORKER and index in same:
            kind, index = chief
        if not cluster[WORKER]:
            del cluster[WORKER]
    return ClusterTask(
        cluster=ClusterSpec(cluster),
        type=kind,
        index=index,
        chief=chief,
        processes=sum(map(len, cluster.values())),
        **rest,
    )


def _cluster_of(given: Any) -> dict[str, dict[int, str]]:
    if not isinstance(given, dict):
        _fail(
            "cluster is not a dict",
            expected='{"worker": ["host1:2222", "host2:2222"]}',
            received=repr(given),
        )
    return {job: _tasks_of(job, tasks) for job, tasks in given.items()}


def _tasks_of(job: str, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, list):
        numbered = {str(number): address for number, address in enumerate(tasks)}
    elif isinstance(tasks, dict):
        numbered = tasks
    else:
        _fail(
            f"cluster.{job} is neither a list nor a dict",
            expected='a list of addresses, as ["host1:2222"], or a dict by task number',
            received=repr(tasks),
        )
    found = {}
    for number, address in numbered.items():
        if not re.fullmatch(r"[0-9]{1,9}", number):
            _fail(f"cluster.{job}: {number!r} is not a task number", expected="0, 1, ...")
        where = f"cluster.{job}[{number}]"
        if not isinstance(address, str):
            _fail(f"{where} is not an address", expected='"host:port"', received=repr(address))
        found[int(number)] = address
    return found


def _check_ports(cluster: Mapping[str, Mapping[int, str]]) -> None:
    for job, tasks in cluster.items():
        for number, address in tasks.items():
            host, colon, port = address.rpartition(":")
            where = f"cluster.{job}[{number}]"
            if not colon or not host or not re.fullmatch("[0-9]{1,5}", port) or int(port) >= 65536:
                _fail(
                    f"{where} has no valid port",
                    expected='"host:port" with a port from 1 to 65535, or 0 for any free port',
                    received=repr(address),
                    hint=f'"{address.partition(":")[0] or "host"}:2222"',
                )
            if not _HOST.fullmatch(host):
                _fail(
                    f"{where} has no valid host",
                    expected='the name or address of a host, such as "host1:2222" or "[::1]:2222"',
                    received=repr(address),
                    hint=f'"{address.rpartition("/")[2]}"' if "://" in address else None,
                )


def _chief_of(cluster: Mapping[str, Mapping[int, str]]) -> tuple[str, int]:
    if CHIEF in cluster and MASTER in cluster:
        _fail(
            "If `master` node exists in `cluster`, job `chief` is not supported",
            received=f"jobs {list(cluster)}",
        )
    for job in (CHIEF, MASTER):
        if len(cluster.get(job, ())) > 1:
            _fail(
                f'The "cluster" in TF_CONFIG must have only one "{job}" node',
                received=f"cluster.{job}: {list(cluster[job].values())}",
            )
        if cluster.get(job):
            return job, min(cluster[job])
    if not cluster.get(WORKER):
        _fail(
            'If "cluster" is set in TF_CONFIG, it must have one "chief" node',
            expected="a chief, or workers, of which the first becomes the chief",
            received=f"jobs {list(cluster)}",
        )
    return WORKER, min(cluster[WORKER])


def _task_of(
    task: Mapping[str, Any], cluster: Mapping[str, Mapping[int, str]], chief: tuple[str, int]
) -> tuple[str, int]:
    kind = task.get("type")
    if not kind:
        _fail(
            'If "cluster" is set in TF_CONFIG, task type must be set',
            expected=f"task.type: one of {list(cluster)}",
        )
    if not isinstance(kind, str):
        _fail(
            "task.type is not text",
            expected=f"one of {list(cluster)}, or evaluator",
            received=repr(kind),
        )
    if task.get("index") is None:
        _fail(
            'If "cluster" is set in TF_CONFIG, task index must be set',
            expected="task.index: 0, ...",
        )
    index = _index(task["index"])
    if kind == EVALUATOR:
        if chief[0] == MASTER:
            _fail(
                "If `master` node exists in `cluster`, task_type `evaluator` is not supported",
                hint='call the job "chief"',
            )
        return kind, index
    if kind not in cluster:
        if kind in (CHIEF, MASTER) and chief[0] in (CHIEF, MASTER):
            return chief[0], index if index else chief[1]
        _fail(
            f"{kind} is not a valid task_type in the cluster_spec",
            expected=f"task.type: one of {list(cluster)}, or evaluator",
            received=f"task.type: {kind!r}",
            hint=did_you_mean(str(kind), [*cluster, EVALUATOR]),
        )
    if index not in cluster[kind]:
        _fail(
            f"{index} is not a valid task_id for task_type {kind} in the cluster_spec",
            expected=f"task.index: one of {list(cluster[kind])}",
            received=f"task.index: {index}",
        )
    return kind, index


def _index(given: Any) -> int:
    is_number = isinstance(given, int) and not isinstance(given, bool)
    if not is_number and not (isinstance(given, str) and re.fullmatch("-?[0-9]{1,9}", given)):
        _fail("task.index is not a number", expected="0, 1, ...", received=repr(given))
    if int(given) < 0:
        _fail("Task index must be non-negative number", received=f"task.index: {given}")
    return int(given)


def _check_addresses(cluster: Mapping[str, Mapping[int, str]], chief: tuple[str, int]) -> None:
    """Checks that addresses are unique, except for a chief that is also listed as a worker."""
    seen: dict[str, str] = {}
    for job, tasks in sorted(cluster.items(), key=lambda item: item[0] != chief[0]):
        for number, address in tasks.items():
            where = f"cluster.{job}[{number}]"
            first = seen.setdefault(address, where)
            alias = job == WORKER and first == f"cluster.{chief[0]}[{chief[1]}]"
            if first != where and not alias:
                _fail(
                    f"{where} and {first} have the same address",
                    expected="a unique address for each task",
                    received=repr(address),
                )


def _rest_of(config: Mapping[str, Any]) -> dict[str, Any]:
    service = config.get("service")
    if service is not None and not isinstance(service, dict):
        raise TypeError(
            f'If "service" is set in TF_CONFIG, it must be a dict. Given {type(service)}'
        )
    if config.get("model_dir") == "":
        raise ValueError("model_dir in TF_CONFIG should be non-empty.")
    return {
        "service": service,
        "model_dir": config.get("model_dir"),
        "session_master": config.get("session_master"),
        "evaluation_master": config.get("eval_session_master", ""),
    }


# -- JAX's variables


def _of_jax(variables: Mapping[str, str]) -> ClusterTask:
    given = {name: variables[name] for name in _JAX if variables.get(name)}
    missing = [name for name in _JAX if name not in given]
    if missing:
        raise value_error(
            f"{missing[0]} is not set",
            expected=f"{', '.join(_JAX)}, or none of them",
            received=given,
        )
    numbers = {}
    for name in _JAX[1:]:
        if not given[name].isdigit():
            raise value_error(f"{name} is not a number", received=repr(given[name]))
        numbers[name] = int(given[name])
    count, index = numbers.values()
    if not index < count:
        raise value_error(
            "JAX_PROCESS_ID is out of range",
            expected=f"0 to {count - 1}: JAX_NUM_PROCESSES is {count}",
            received=index,
        )
    address = given[_JAX[0]]
    if ":" not in address and "JAX_COORDINATOR_PORT" in variables:
        address = f"{address}:{variables['JAX_COORDINATOR_PORT']}"
    return ClusterTask(index=index, processes=count, coordinator=address)


__all__ = ["CHIEF", "EVALUATOR", "MASTER", "PS", "WORKER", "ClusterTask"]
