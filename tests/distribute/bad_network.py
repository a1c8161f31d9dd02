"""Trainings whose processes reach each other through something bad.

As a program, in a network namespace of its own, it trains behind `packets.BadNetwork` and says how
many packets came. Its argument is JSON: 'folder', 'program', 'jobs' and 'options' of the training,
'network' for the arguments of `BadNetwork`, and 'outages', seconds of each, which begin 3 s apart.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.distribute.packets import FAR, NEAR, BadNetwork
from tests.distribute.processes import Process, Processes, known_token
from tests.distribute.trainings import Training, all_end


def start_through(training: Training, through: Callable[[str], str]) -> dict[str, Process]:
    """Starts all processes; `through` gives the address by which others reach one."""
    started = {}
    for role in training.roles:
        cluster = {
            job: [
                each if f"{job} {index}" == role else through(each)
                for index, each in enumerate(addresses)
            ]
            for job, addresses in training.cluster.items()
        }
        started[role] = training.start(role, cluster)
    return started


def main(given: dict[str, Any]) -> None:
    """Trains behind a bad network."""
    network = BadNetwork(**given["network"])

    def fail_now_and_then() -> None:
        for seconds in given["outages"]:
            time.sleep(3)
            network.is_down = True
            time.sleep(seconds)
            network.is_down = False

    folder = Path(given["folder"])
    with known_token(), Processes(folder, ESTIMATORKIT_INSECURE="1") as processes:
        training = Training(processes, folder, given["program"], given["jobs"], **given["options"])
        training.cluster = {
            job: [each.replace("127.0.0.1", NEAR) for each in addresses]
            for job, addresses in training.cluster.items()
        }
        started = start_through(training, lambda address: address.replace(NEAR, FAR))
        started["chief 0"].wait_for("step = ")
        threading.Thread(target=fail_now_and_then, daemon=True).start()
        all_end(started)
    print(network.packets)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
