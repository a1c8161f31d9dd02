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
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
_MOST = 200
_SECONDS = 0.5
"""Per target; fewer mutations are made on slow machines, but always some."""


def corpus(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what the libraries call
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # an infinite float32
@pytest.mark.parametrize("name", TARGETS)
def test_inputs_are_read_or_refused(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    seeds = target.seeds()
    for number, seed in enumerate(seeds):
        folder = tmp_path / str(number)
        folder.mkdir()
        target.read(seed, folder)
    for data in corpus(name):
        assert violation(target, data) is None, data
    random = Random(name)
    end = time.monotonic() + _SECONDS
    for number in range(0 if target.native else _MOST):
        if number > 10 and time.monotonic() > end:
            break
        data = mutated(target.kind, random.choice(seeds), random, seeds)
        assert violation(target, data) is None, data


def test_corpus_belongs_to_targets() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= TARGETS.keys()
