"""Parameter-server training whose processes are killed, paused, duplicated or misconfigured.

Each step adds 1 to the global step and to counters on all parameter servers, so that at the end the
counters say whether a step was lost or counted twice, and whether all servers went back together.
"""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import estimatorkit as tf
from tests.distribute.processes import Process, Processes, free_cluster, until
from tests.distribute.proxies import Proxy
from tests.distribute.trainings import END_SECS, Training, all_end, spread

pytestmark = [pytest.mark.multiprocess, pytest.mark.slow]

JOBS = {"ps": 2, "chief": 1, "worker": 1}

TORN = 2
"""A process that dies may leave a part of a step, and of the next, on some parameter servers."""

READ = 15
"""How many steps the others take at most while the chief reads a checkpoint's variables. Servers
that went back to different checkpoints would differ by 20 or more."""

RETRY = 138
"""The exit code of one who lost others, or for whom they did not come."""

TERMINATED = 143
"""The exit code of one who was told to end."""


def training_of(
    processes: Processes, folder: Path, jobs: Mapping[str, int] = JOBS, **options: Any
) -> Training:
    return Training(processes, folder, "asynchronous", jobs, **options)


def lost(process: Process) -> bool:
    """Whether a process has said that it lost parameters."""
    return any("Parameters were lost" in line for line in process.lines)


# -- which process dies


@pytest.mark.slow
@pytest.mark.parametrize("killed", [["ps 0"], ["ps 1"], ["ps 0", "ps 1"]], ids=" and ".join)
def test_all_restore_one_checkpoint_after_lost_server(
    processes: Processes, tmp_path: Path, killed: list[str]
) -> None:
    gates = {"chief 0": [30], "worker 0": [30]}
    training = training_of(processes, tmp_path, gates=gates, max_steps=150)
    started = training.start_all()
    started["chief 0"].wait_for("gate 30")
    started["worker 0"].wait_for("gate 30")
    for role in killed:
        started[role].kill()
    training.open(30)
    started["chief 0"].wait_for("Parameters were lost")
    for role in killed:
        started[role] = training.start(role)
    restored = started["chief 0"].wait_for("Restoring parameters from")
    assert int(restored.rpartition("-")[2]) >= 20
    all_end(started)
    assert training.value("global_step") >= 150
    assert spread(training) <= READ


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["ps 0", "worker 0"])
def test_dynamic_table_keeps_checkpointed_rows(
    processes: Processes, tmp_path: Path, killed: str
) -> None:
    """Rows, ids and counts go back together, and with the other variables."""
    gates = {"chief 0": [40, 60], "worker 0": [30]}
    training = training_of(processes, tmp_path, gates=gates, max_steps=150, table=True)
    started = training.start_all()
    started["chief 0"].wait_for("gate 40")
    started["worker 0"].wait_for("gate 30")
    started[killed].kill()
    training.open(40)
    training.open(30)
    if killed == "ps 0":
        started["chief 0"].wait_for("Parameters were lost")
    else:
        started["chief 0"].wait_for("gate 60")
    started[killed] = training.start(killed)
    training.open(60)
    all_end(started)
    step = int(training.value("global_step"))
    counted = 0
    for part in ("t/part_0", "t/part_1"):
        ids, rows = (training.value(f"{part}/{name}") for name in ("ids", "embedding_weights"))
        assert len(np.unique(ids[:, 0])) == len(ids)
        assert sorted(ids[:, 1]) == [*range(len(ids))]
        values = rows[ids[:, 1], 0]
        assert np.abs(values - ids[:, 2]).sum() <= READ
        counted += int(ids[:, 2].sum())
        assert rows.shape[0] > len(ids) > 8
    assert abs(step - counted) <= READ
    assert spread(training) <= READ


@pytest.mark.slow
def test_newest_checkpoint_is_restored(processes: Processes, tmp_path: Path) -> None:
    """All processes save and step as they please."""
    training = training_of(processes, tmp_path, max_steps=300)
    started = training.start_all()
    started["worker 0"].wait_for("step = ")
    started["chief 0"].wait_for("step = 60")
    started["ps 1"].kill()
    before = started["chief 0"].lines
    for role in ("chief 0", "worker 0"):
        started[role].wait_for("Parameters were lost")
    started["ps 1"] = training.start("ps 1")
    restored = started["chief 0"].wait_for("Restoring parameters from")
    last = max(int(line.partition("step = ")[2].split()[0]) for line in before if "step = " in line)
    assert last - int(restored.rpartition("-")[2]) <= 20 + 10  # saved each 20, told each 10
    all_end(started)
    assert spread(training) <= READ


@pytest.mark.slow
def test_killed_worker_returns_while_others_continue(processes: Processes, tmp_path: Path) -> None:
    training = training_of(processes, tmp_path, max_steps=150, gates={"chief 0": [60]})
    started = training.start_all()
    started["worker 0"].wait_for("step = ")
    started["worker 0"].kill()
    started["chief 0"].wait_for("gate 60")
    started["worker 0"] = training.start("worker 0")
    first = started["worker 0"].wait_for("step = ")
    assert int(first.partition("step = ")[2].split()[0]) >= 50  # the newest checkpoint has 40
    training.open(60)
    all_end(started)
    assert not lost(started["chief 0"])
    assert spread(training) <= TORN


@pytest.mark.slow
def test_unlisted_worker_may_join(processes: Processes, tmp_path: Path) -> None:
    # With 20 steps each, neither of the two ends the training at step 60.
    training = training_of(processes, tmp_path, gates={"chief 0": [20], "worker 0": [20]})
    started = training.start_all()
    started["chief 0"].wait_for("gate 20")
    (address,) = free_cluster(worker=1)["worker"].values()
    cluster = {**training.cluster, "worker": [*training.cluster["worker"], address]}
    started["worker 1"] = training.start("worker 1", cluster, max_steps=10**6)
    started["worker 1"].wait_for("step = ")
    training.open(20)
    all_end(started)
    assert spread(training) == 0


@pytest.mark.slow
def test_workers_continue_without_chief_until_it_returns(
    processes: Processes, tmp_path: Path
) -> None:
    training = training_of(processes, tmp_path, max_steps=150, gates={"chief 0": [30]})
    started = training.start_all()
    started["chief 0"].wait_for("gate 30")
    started["chief 0"].kill()
    started["worker 0"].join()  # it has done the rest
    training.open(30)
    started["chief 0"] = training.start("chief 0")
    started["chief 0"].wait_for("Continuing with the values on the parameter servers")
    all_end(started)
    assert training.value("global_step") >= 150
    assert spread(training) <= TORN


@pytest.mark.slow
def test_terminated_chief_leaves_workers_running(processes: Processes, tmp_path: Path) -> None:
    gates = {"chief 0": [200], "worker 0": [150]}  # together they cannot do all steps
    training = training_of(processes, tmp_path, gates=gates, max_steps=400, secs=0.03)
    started = training.start_all()
    started["chief 0"].wait_for("step = 20")
    started["worker 0"].wait_for("step = ")
    started["chief 0"].signal(signal.SIGTERM)
    started["chief 0"].join(END_SECS, code=TERMINATED)
    started["chief 0"] = training.start("chief 0", gates={"chief 0": [30]})
    started["chief 0"].wait_for("Continuing with the values on the parameter servers")
    assert started["worker 0"].runs
    started["worker 0"].kill()
    started["worker 0"] = training.start("worker 0", gates={})
    started["worker 0"].wait_for("step = ")  # it takes part again
    training.open(30)
    all_end(started)
    assert spread(training) <= TORN


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "there"), [("chief 0", []), ("worker 0", []), ("worker 0", ["ps 0", "ps 1"])]
)
def test_waiting_process_ends_on_sigterm(
    processes: Processes, tmp_path: Path, role: str, there: list[str]
) -> None:
    training = training_of(processes, tmp_path)
    for other in there:
        training.start(other)
    waiting = training.start(role)
    waiting.wait_for("Graph was finalized")
    time.sleep(2)
    assert waiting.runs
    waiting.signal(signal.SIGTERM)
    waiting.join(END_SECS, code=TERMINATED)


@pytest.mark.slow
def test_waiters_continue_on_next_server(processes: Processes, tmp_path: Path) -> None:
    """The chief waits on the servers for the worker, which stands at its gate."""
    gates = {"worker 0": [10]}
    training = training_of(processes, tmp_path, gates=gates, ahead=2, max_steps=100)
    started = training.start_all()
    started["worker 0"].wait_for("gate 10")
    started["chief 0"].wait_for("step = 10")
    time.sleep(1)
    started["ps 0"].signal(signal.SIGTERM)
    started["ps 0"].join(code=TERMINATED)
    started["chief 0"].wait_for("Parameters were lost")
    started["ps 0"] = training.start("ps 0")
    training.open(10)
    all_end(started)
    assert spread(training) <= TORN


@pytest.mark.slow
def test_all_processes_end_on_sigterm(processes: Processes, tmp_path: Path) -> None:
    training = training_of(processes, tmp_path, ahead=2, gates={"worker 0": [10]})
    started = training.start_all()
    started["worker 0"].wait_for("gate 10")
    started["chief 0"].wait_for("step = 10")
    time.sleep(1)
    for process in started.values():
        process.signal(signal.SIGTERM)
    training.open(10)
    for process in started.values():
        process.join(2 * END_SECS, code=TERMINATED)


@pytest.mark.slow
def test_restarted_evaluator_exports_no_worse_model(processes: Processes, tmp_path: Path) -> None:
    """Step 40 is the best. The evaluator dies in an evaluation after it."""
    jobs = {"ps": 1, "chief": 1, "evaluator": 1}
    training = training_of(processes, tmp_path, jobs, gates={"chief 0": [52]}, eval_gate=True)
    started = training.start_all()
    exports = training.model_dir / "export" / "best_exporter"
    started["evaluator 0"].wait_for("evaluating 40")
    until(lambda: list(exports.glob("[0-9]*")), "no export")
    training.open(52)
    started["evaluator 0"].wait_for("evaluating 60")
    best = sorted(exports.glob("[0-9]*"))
    started["evaluator 0"].kill()
    training.open(0)
    started["evaluator 0"] = training.start("evaluator 0")
    all_end(started)
    assert any("evaluating 60" in line for line in started["evaluator 0"].lines)
    assert sorted(exports.glob("[0-9]*")) == best


@pytest.mark.slow
@pytest.mark.parametrize(
    "order",
    [
        ("ps 0", "chief 0", "worker 0"),
        ("worker 0", "chief 0", "ps 0"),
        ("chief 0", "ps 0", "worker 0"),
    ],
    ids=" then ".join,
)
def test_all_restart_in_any_order(
    processes: Processes, tmp_path: Path, order: tuple[str, ...]
) -> None:
    jobs = {"ps": 1, "chief": 1, "worker": 1}
    gates = {"chief 0": [30], "worker 0": [30]}
    training = training_of(processes, tmp_path, jobs, gates=gates, max_steps=150)
    started = training.start_all()
    started["chief 0"].wait_for("gate 30")
    started["worker 0"].wait_for("gate 30")
    for process in started.values():
        process.kill()
    training.open(30)
    for role in order:
        started[role] = training.start(role)
        time.sleep(3)  # long enough to look for the others
    all_end(started)
    restored = started["chief 0"].wait_for("Restoring parameters from")
    assert int(restored.rpartition("-")[2]) >= 20
    assert spread(training) <= READ


# -- ends


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jobs", "chief"),
    [
        ({"ps": 1, "chief": 1, "worker": 1, "evaluator": 1}, "chief 0"),
        ({"ps": 2, "chief": 1}, "chief 0"),
        ({"ps": 1, "worker": 2, "evaluator": 1}, "worker 0"),
        ({"ps": 1, "master": 1, "worker": 1}, "master 0"),
    ],
    ids=["all roles", "no worker", "the first worker is the chief", "a master"],
)
def test_all_end_with_chief(
    processes: Processes, tmp_path: Path, jobs: dict[str, int], chief: str
) -> None:
    training = training_of(processes, tmp_path, jobs)
    all_end(training.start_all(), chief)
    assert spread(training) == 0
    # Who comes after the end has nothing to do.
    for role in training.roles:
        training.start(role).join()


@pytest.mark.slow
def test_worker_ends_if_servers_are_gone_at_end(processes: Processes, tmp_path: Path) -> None:
    """The training ends between its look whether it has ended and its first question."""
    training = training_of(processes, tmp_path, {"ps": 1, "chief": 1, "worker": 1}, secs=0.0)
    late = training.start("worker 0", model_secs=15.0)
    late.wait_for("Calling model_fn")
    all_end({role: training.start(role) for role in ("ps 0", "chief 0")})
    assert late.runs
    assert not any("Done calling model_fn" in line for line in late.lines)
    late.join()


@pytest.mark.slow
@pytest.mark.parametrize("absent", ["chief 0", "ps 0"])
def test_missing_process_is_named_and_can_be_restarted(
    processes: Processes, tmp_path: Path, absent: str
) -> None:
    jobs = {"ps": 1, "chief": 1, "worker": 1}
    training = training_of(processes, tmp_path, jobs, wait_secs=4.0)
    started = {role: training.start(role) for role in training.roles if role != absent}
    started["worker 0"].join(code=RETRY)
    if absent == "ps 0":
        started["chief 0"].join(code=RETRY)
        started["worker 0"].wait_for("/job:ps/task:0 did not become reachable within 4 seconds")
        assert any(training.cluster["ps"][0] in line for line in started["worker 0"].lines)
    else:
        started["worker 0"].wait_for("the chief did not initialize the model within 4 seconds")


@pytest.mark.slow
def test_worker_without_needed_chief_can_be_restarted(processes: Processes, tmp_path: Path) -> None:
    """Parameters were lost, and nobody restores them."""
    jobs = {"ps": 1, "chief": 1, "worker": 1}
    training = training_of(processes, tmp_path, jobs, wait_secs=4.0, max_steps=10**6)
    started = training.start_all()
    started["worker 0"].wait_for("step = ")
    for role in ("chief 0", "ps 0"):
        started[role].kill()
    started["ps 0"] = training.start("ps 0")
    started["worker 0"].join(END_SECS + 3 * 4.0, code=RETRY)  # it waits for either, or for both
    assert any("within 4 seconds" in line for line in started["worker 0"].lines)


# -- processes that stand still, or are too many, or others than the rest


@pytest.mark.slow
def test_paused_processes_continue(processes: Processes, tmp_path: Path) -> None:
    training = training_of(processes, tmp_path, secs=0.02, max_steps=300)
    started = training.start_all()
    started["chief 0"].wait_for("step = 20")
    for role in ("ps 1", "worker 0"):
        started[role].signal(signal.SIGSTOP)
    time.sleep(30)
    for role in ("worker 0", "ps 1"):
        started[role].signal(signal.SIGCONT)
    all_end(started)
    assert not lost(started["chief 0"])
    assert not lost(started["worker 0"])
    assert spread(training) == 0


@pytest.mark.slow
def test_silent_process_is_not_waited_for_long(processes: Processes, tmp_path: Path) -> None:
    """Its connections look open, as those of a host do that is gone without a word."""
    training = training_of(processes, tmp_path, ahead=2, max_steps=150, silent_secs=3.0)
    started = training.start_all()
    started["chief 0"].wait_for("step = 20")
    started["worker 0"].wait_for("step = ")
    started["worker 0"].signal(signal.SIGSTOP)
    started["chief 0"].join()
    assert training.value("global_step") >= 150
    started["worker 0"].signal(signal.SIGCONT)
    all_end(started)


@pytest.mark.slow
def test_disconnected_chief_continues_with_existing_values(
    processes: Processes, tmp_path: Path
) -> None:
    training = training_of(processes, tmp_path, max_steps=1500)
    proxies = [Proxy(address) for address in training.cluster["ps"]]
    try:
        started = {role: training.start(role) for role in ("ps 0", "ps 1", "worker 0")}
        cluster = {**training.cluster, "ps": [each.address for each in proxies]}
        started["chief 0"] = training.start("chief 0", cluster)
        started["chief 0"].wait_for("step = ")
        for each in proxies:
            each.hold()
        started["chief 0"].wait_for("Parameters were lost")
        for each in proxies:
            each.release()
        started["chief 0"].wait_for("Continuing with the values on the parameter servers")
        all_end(started)
    finally:
        for each in proxies:
            each.close()
    assert not lost(started["worker 0"])
    assert not any("Restoring parameters" in line for line in started["chief 0"].lines)
    assert spread(training) <= TORN


@pytest.mark.slow
def test_hanging_worker_ends_with_stack_trace(processes: Processes, tmp_path: Path) -> None:
    gates = {"worker 0": [20]}
    training = training_of(processes, tmp_path, gates=gates, stuck_secs=2.0, secs=0.01)
    started = training.start_all()
    started["worker 0"].join(code=RETRY)
    started["worker 0"].wait_for("wait_for")  # the function, in the threads that are shown
    training.open(20)
    started["worker 0"] = training.start("worker 0")
    all_end(started)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("worker 0", "another process already runs as job:worker/task:0"),
        ("chief 0", "has a writer already"),
    ],
)
def test_second_process_of_same_index_is_refused(
    processes: Processes, tmp_path: Path, role: str, words: str
) -> None:
    jobs = {"ps": 1, "chief": 1, "worker": 1}
    training = training_of(processes, tmp_path, jobs, secs=0.05, max_steps=10**6)
    started = training.start_all()
    started[role].wait_for("step = ")
    second = training.start(role)
    second.join(code=1)
    second.wait_for(words)
    for process in started.values():
        assert process.runs
    assert not lost(started["chief 0"])


@pytest.mark.slow
def test_worker_with_other_model_is_refused(processes: Processes, tmp_path: Path) -> None:
    training = training_of(processes, tmp_path, {"ps": 1, "chief": 1, "worker": 1})
    started = {role: training.start(role) for role in ("ps 0", "chief 0")}
    other = training.start("worker 0", width=7)
    other.join(code=1)
    other.wait_for("this process's model differs from the chief's")
    assert any("count_0: float32(7,)" in line for line in other.lines)
    all_end(started)


@pytest.mark.slow
def test_worker_with_other_vocabulary_is_refused(processes: Processes, tmp_path: Path) -> None:
    """Its variables are of the same shapes."""
    jobs = {"ps": 1, "chief": 1, "worker": 1}
    training = training_of(processes, tmp_path, jobs, vocabulary=["a", "b"])
    started = {role: training.start(role) for role in ("ps 0", "chief 0")}
    other = training.start("worker 0", vocabulary=["b", "a"])
    other.join(code=1)
    other.wait_for("this process's model differs from the chief's")
    assert any("vocabulary_list=['b', 'a']" in line for line in other.lines)
    all_end(started)


@pytest.mark.slow
def test_staleness_is_bounded_and_reported(processes: Processes, tmp_path: Path) -> None:
    jobs = {"ps": 1, "chief": 1, "worker": 1}
    training = training_of(processes, tmp_path, jobs, ahead=2, max_steps=80)
    started = {role: training.start(role) for role in ("ps 0", "worker 0")}
    started["chief 0"] = training.start("chief 0", secs=0.1)
    all_end(started)
    told = started["chief 0"].wait_for("updates, stale by")
    most = int(told.rpartition(" at most")[0].split()[-1])
    # Without a bound the worker makes all of its steps within the chief's first ones.
    assert 1 <= most <= 2 * 2 + 1


# -- addresses and folders


@pytest.mark.slow
def test_port_in_use_is_retried_and_named(processes: Processes, tmp_path: Path) -> None:
    training = training_of(processes, tmp_path, {"ps": 1, "chief": 1})
    address = training.cluster["ps"][0]
    with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))):
        server = training.start("ps 0")
        server.join(code=RETRY)
        server.wait_for("/job:ps/task:0 cannot listen on its address")
        assert any(address in line for line in server.lines)
        started = {"ps 0": training.start("ps 0"), "chief 0": training.start("chief 0")}
        time.sleep(5)  # it has found the port taken
    all_end(started)


@pytest.mark.slow
def test_unknown_host_is_named(processes: Processes, tmp_path: Path) -> None:
    training = training_of(processes, tmp_path, {"ps": 1, "chief": 1}, wait_secs=3.0)
    training.cluster["ps"] = ["nowhere.invalid:2222"]
    chief = training.start("chief 0")
    chief.join(code=RETRY)
    chief.wait_for("/job:ps/task:0 did not become reachable within 3 seconds")
    assert any("nowhere.invalid:2222" in line for line in chief.lines)


@pytest.mark.slow
def test_only_parameter_servers_listen(processes: Processes, tmp_path: Path) -> None:
    training = training_of(processes, tmp_path, gates={"chief 0": [30]})
    started = training.start_all()
    started["chief 0"].wait_for("gate 30")
    listening = {
        role: [
            f"{each.laddr.ip.removeprefix('::ffff:')}:{each.laddr.port}"
            for each in psutil.Process(process.pid).net_connections("inet")
            if each.status == psutil.CONN_LISTEN
        ]
        for role, process in started.items()
    }
    servers = dict(zip(["ps 0", "ps 1"], training.cluster["ps"], strict=True))
    assert {role: each for role, each in listening.items() if each} == {
        role: [address] for role, address in servers.items()
    }


@pytest.mark.slow
def test_evaluator_reports_missing_checkpoint(processes: Processes, tmp_path: Path) -> None:
    """It looks at another folder than the chief."""
    training = training_of(processes, tmp_path, {"ps": 1, "chief": 1, "evaluator": 1})
    other = str(tmp_path / "other")
    evaluator = training.start("evaluator 0", model_dir=other, told_secs=2.0)
    line = evaluator.wait_for("There is still no checkpoint in")
    assert other in line
    (tmp_path / "other").mkdir(exist_ok=True)
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.get_variable("count_0", [1]), tf.train.get_or_create_global_step()
        session.run([each.initializer for each in model])
        old = tf.train.Saver().save(session, f"{other}/model.ckpt", 7)
    assert str(old) in evaluator.wait_for("There is still no checkpoint after")
