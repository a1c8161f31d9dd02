"""Coverage-guided fuzzing of all targets, or of those named: `make fuzz`.

Each target has a process of its own, since a parser in C++ may end it. An input that breaks the
contract is written to `corpus/TARGET`, once for each place where it breaks; the run goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path
from random import Random

import atheris

_PLACE = tempfile.TemporaryDirectory(prefix="fuzzing-")
os.environ["JAX_COMPILATION_CACHE_DIR"] = _PLACE.name

with (
    contextlib.redirect_stderr(io.StringIO()),  # a line for each module
    atheris.instrument_imports(include=["estimatorkit"], enable_loader_override=False),
):
    from tests.compat.fuzz import targets as legacy
    from tests.fuzz import targets as own
    from tests.fuzz.contract import violation
    from tests.fuzz.mutations import mutated

TARGETS = own.TARGETS | legacy.TARGETS


def corpus(name: str) -> Path:
    """The folder of the inputs that broke the contract of a target."""
    targets = own if name in own.TARGETS else legacy
    return Path(targets.__file__).parent / "corpus" / name


def fuzz(name: str, seconds: float, folder: str) -> None:
    """Fuzzes one target in this process, which ends with it."""
    target = TARGETS[name]
    seeds = target.seeds()
    for number, seed in enumerate(seeds):
        Path(folder, f"seed-{number}").write_bytes(seed)
        with tempfile.TemporaryDirectory() as place:
            target.read(seed, Path(place))  # what is made once, is made now
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", DeprecationWarning)  # of what the libraries call
    warnings.filterwarnings("ignore", "overflow encountered in cast")  # an infinite float32
    logging.disable()
    known: set[str] = set()

    def one(data: bytes) -> None:
        problem = violation(target, data)
        if problem is None or _place(problem) in known:
            return
        known.add(_place(problem))
        path = corpus(name) / hashlib.sha256(data).hexdigest()[:12]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        print(f"BROKEN {name}: {path}\n  {problem}\n", flush=True)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.3:
            return bytes(atheris.Mutate(data, most))
        return mutated(target.kind, data, random, seeds)[:most]

    options = [
        *(f"-max_total_time={seconds:.0f}", "-max_len=65536", "-rss_limit_mb=4096", "-timeout=0"),
        *("-verbosity=0", "-print_final_stats=1", f"-artifact_prefix={corpus(name)}/ended-"),
    ]
    atheris.Setup([sys.argv[0], *options, folder, str(corpus(name))], one, custom_mutator=mutate)
    atheris.Fuzz()


def _place(problem: str) -> str:
    """Where an input breaks the contract: the kind of error and the innermost line of code."""
    first, *frames = problem.splitlines()
    return re.sub(r"\d+", "", first.partition(":")[0]) + "".join(frames[-1:])


def main(names: list[str]) -> int:
    """Fuzzes targets one after another; returns how many broke the contract."""
    chosen = names or list(TARGETS)
    seconds = float(os.environ.get("FUZZ_SECONDS", "600")) / len(chosen)
    broken = []
    for name in chosen:
        before = set(corpus(name).glob("*"))
        corpus(name).mkdir(parents=True, exist_ok=True)
        print(f"-- {name}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            child = os.fork()  # importing everything with its counters takes longer than fuzzing
            if not child:
                tempfile.tempdir = folder  # the child ends without removing what it made
                fuzz(name, seconds, tempfile.mkdtemp(prefix="inputs-"))
            _, status = os.waitpid(child, 0)
        if status or set(corpus(name).glob("*")) - before:
            broken.append(name)
        if not any(corpus(name).iterdir()):
            corpus(name).rmdir()
    print(f"{len(chosen)} targets; broken: {', '.join(broken) or 'none'}")
    return len(broken)


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
