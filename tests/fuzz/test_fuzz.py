"""The readers of untrusted bytes keep their contract: for valid inputs, for every input that ever
broke it, and for some mutations, the same in each run. `make fuzz` looks for new ones.
"""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.contract import violation
from tests.fuzz.mutations import mutated
from tests.fuzz.targets import TARGETS, Target

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of what the libraries call
    pytest.mark.filterwarnings("ignore:overflow encountered in cast"),  # an infinite float32
]

CORPUS = Path(__file__).parent / "corpus"
_MOST = 200
_SECONDS = 0.5
"""Per target; fewer mutations are made on slow machines, but always some."""


def check_inputs(target: Target, corpus: Path, tmp_path: Path) -> None:
    """Reads valid inputs, and those of a folder, which broke the contract."""
    for number, seed in enumerate(target.seeds()):
        folder = tmp_path / str(number)
        folder.mkdir()
        target.read(seed, folder)
    for path in sorted(corpus.glob("*")):
        assert violation(target, path.read_bytes()) is None, path


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_are_read_or_refused(name: str, tmp_path: Path) -> None:
    check_inputs(TARGETS[name], CORPUS / name, tmp_path)


def check_mutations(target: Target, seed: str, tmp_path: Path) -> None:
    """Reads some mutations of valid inputs."""
    random = Random(seed)
    seeds = target.seeds()
    target.read(seeds[0], tmp_path)  # makes what the target keeps, which the contract doesn't cover
    end = time.monotonic() + _SECONDS
    for number in range(_MOST):
        if number > 10 and time.monotonic() > end:
            break
        data = mutated(target.kind, random.choice(seeds), random, seeds)
        assert violation(target, data) is None, data


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TARGETS if not TARGETS[name].native])
def test_mutations_are_read_or_refused(name: str, tmp_path: Path) -> None:
    check_mutations(TARGETS[name], name, tmp_path)


def test_corpus_belongs_to_targets() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= TARGETS.keys()
