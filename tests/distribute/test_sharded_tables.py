"""Tables sharded by rows over eight devices or two processes train as on one device."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.sharded_tables import collective_bytes, dumped
from estimatorkit.runtime.xla.faults import LENGTH
from estimatorkit.storage.checkpoint import latest_checkpoint, load_variable
from estimatorkit.storage.checkpoint_manifest import read_manifest
from tests.distribute.processes import Processes
from tests.distribute.test_multi_worker import environments

PROGRAM = "from tests.distribute.programs.sharded import main; main()"

EIGHT = {"strategy": "mirrored", "batch": 4, "above": 100}
TWO = {"strategy": "multi", "batch": 16, "above": 100}
MODELS: dict[str, dict[str, Any]] = {
    **{name: {"optimizer": name} for name in ("sgd", "adagrad", "adam", "ftrl")},
    "one_batch": {"optimizer": "adagrad", "examples": 32},  # wherever the input is
    "columns": {"model": "columns", "optimizer": "adagrad"},
    "premade": {"model": "premade"},
    "regularized": {"regularized": True},
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the models of this file are."""
    return tmp_path_factory.mktemp("sharded")


@pytest.fixture(scope="module")
def started(folder: Path) -> Iterator[Processes]:
    """Starts processes."""
    with Processes(folder, JAX_NUM_CPU_DEVICES="8") as processes:
        yield processes


def arguments(folder: Path, kind: str, names: list[str], **options: Any) -> list[str]:
    """The program's arguments, with a model folder for each model."""
    return [
        json.dumps({**MODELS[name], **options, "model_dir": str(folder / f"{kind}-{name}")})
        for name in names
    ]


def on_two(started: Processes, given: list[str]) -> list[Any]:
    """What the first of two processes answers."""
    both = [
        started.program(f"process {number}", PROGRAM, *given, **environment)
        for number, environment in enumerate(environments({"worker": 2}))
    ]
    answers = [process.answer() for process in both]
    assert len(answers[0]) == len(given)
    return list(answers[0])


@pytest.fixture(scope="module")
def one(started: Processes, folder: Path) -> dict[str, Any]:
    """The models on one device."""
    names = list(MODELS)
    answer = started.program("one", PROGRAM, *arguments(folder, "one", names)).answer()
    return dict(zip(names, answer, strict=True))


@pytest.fixture(scope="module")
def eight(started: Processes, folder: Path) -> dict[str, Any]:
    """The models on eight devices."""
    names = list(MODELS)
    given = arguments(folder, "eight", names, **EIGHT)
    answer = started.program("eight", PROGRAM, *given).answer()
    return dict(zip(names, answer, strict=True))


@pytest.fixture(scope="module")
def two(started: Processes, folder: Path) -> dict[str, Any]:
    """Some of the models in two processes."""
    names = ["adagrad", "ftrl", "premade", "one_batch"]
    answer = on_two(started, arguments(folder, "two", names, **TWO))
    return dict(zip(names, answer, strict=True))


def check_alike(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Asserts that two trainings came to the same numbers."""
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-5, atol=1e-5)
    assert found["variables"].keys() == expected["variables"].keys()
    for name, value in expected["variables"].items():
        scale = max(1.0, float(np.abs(value).max()))
        np.testing.assert_allclose(
            np.array(found["variables"][name]) / scale, np.array(value) / scale, atol=1e-5
        )


@pytest.mark.parametrize("name", MODELS)
def test_eight_devices_match_one(one: dict[str, Any], eight: dict[str, Any], name: str) -> None:
    assert eight[name]["whole"]
    check_alike(eight[name], one[name])


@pytest.mark.parametrize("name", ["adagrad", "ftrl", "premade"])
def test_two_processes_match_one(one: dict[str, Any], two: dict[str, Any], name: str) -> None:
    assert two[name]["whole"]
    check_alike(two[name], one[name])


def test_no_device_holds_whole_table_or_slot(eight: dict[str, Any], two: dict[str, Any]) -> None:
    for name, rows in {"many": 37, "few": 50, "many/Adagrad": 37, "few/Adagrad": 50}.items():
        assert eight["adagrad"]["shards"][name] == [[-(-rows // 8), 4]] * 8
        assert two["adagrad"]["shards"][name] == [[-(-rows // 2), 4]]
        assert eight["adagrad"]["whole"][name] == two["adagrad"]["whole"][name] == [rows, 4]
    assert eight["adagrad"]["shards"]["dense/kernel"] == [[8, 1]] * 8


def test_shard_rows_per_variable(started: Processes, folder: Path) -> None:
    given = {"strategy": "mirrored", "batch": 4, "steps": 2, "optimizer": "adagrad"}
    chosen = [{**given, "marked": ["few"]}, given]
    words = [
        json.dumps({**each, "model_dir": str(folder / f"marked-{number}")})
        for number, each in enumerate(chosen)
    ]
    marked, small = started.program("marked", PROGRAM, *words).answer()
    assert set(marked["whole"]) == {"few", "few/Adagrad"}
    assert marked["shards"]["many"] == [[37, 4]] * 8
    assert small["whole"] == {}


def test_batches_on_some_replicas_only(started: Processes, folder: Path) -> None:
    given = {"strategy": "mirrored", "batch": 4, "examples": 203, "once": True, "evaluate": True}
    words = [
        json.dumps({**given, "above": above, "model_dir": str(folder / f"uneven-{above}")})
        for above in (100, None)
    ]
    sharded, mirrored = started.program("uneven", PROGRAM, *words).answer()
    assert len(sharded["losses"]) == 7
    check_alike(sharded, mirrored)
    assert sharded["metrics"] == pytest.approx(mirrored["metrics"], rel=1e-5)


@pytest.fixture(scope="module")
def longer(started: Processes, folder: Path) -> dict[str, Any]:
    """What one device comes to in 40 steps, with the losses of the last ten."""
    words = [
        json.dumps({**MODELS["one_batch"], "steps": steps, "model_dir": str(folder / "longer")})
        for steps in (30, 40)
    ]
    answer: dict[str, Any] = started.program("longer", PROGRAM, *words).answer()[1]
    return answer


@pytest.mark.usefixtures("one", "eight", "two")
@pytest.mark.parametrize(
    ("source", "to"), [("eight", "one"), ("eight", "two"), ("one", "eight"), ("two", "eight")]
)
def test_checkpoints_restore_on_any_number_of_devices(
    started: Processes, folder: Path, longer: dict[str, Any], source: str, to: str
) -> None:
    newest = latest_checkpoint(str(folder / f"{source}-one_batch"))
    assert newest is not None
    copied = folder / f"{source}-to-{to}"
    shutil.copytree(newest, copied / Path(newest).name)
    options = {"one": {}, "eight": EIGHT, "two": TWO}[to]
    words = json.dumps({**MODELS["one_batch"], **options, "steps": 40, "model_dir": str(copied)})
    if to == "two":
        (found,) = on_two(started, [words])
    else:
        (found,) = started.program(copied.name, PROGRAM, words).answer()
    assert len(found["losses"]) == 10
    check_alike(found, longer)


def test_checkpoints_keep_table_shape(folder: Path, eight: dict[str, Any]) -> None:
    newest = latest_checkpoint(str(folder / "eight-one_batch"))
    assert newest is not None
    assert load_variable(newest, "many").shape == (37, 4)
    entry = read_manifest(Path(newest)).tensors["many/Adagrad"]
    assert [piece.size for piece in entry.pieces] == [5] * 7 + [2]


def test_communication_depends_on_batch_not_table(started: Processes, tmp_path: Path) -> None:
    sizes = [(1, 4), (10, 4), (100, 4), (1000, 4), (1, 8)]
    options = {**MODELS["adagrad"], **EIGHT, "steps": 2}
    words = [
        json.dumps(
            {**options, "rows": [37 * times, 50 * times], "batch": batch}
            | {"model_dir": str(tmp_path / f"{times}-{batch}")}
        )
        for times, batch in sizes
    ]
    flags = f"--xla_dump_to={tmp_path / 'dump'} --xla_dump_hlo_as_text"
    no_cache = {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    started.program("bytes", PROGRAM, *words, XLA_FLAGS=flags, **no_cache).answer()
    modules = map(collective_bytes, dumped(tmp_path / "dump"))
    found = dict(zip(sizes, [each for each in modules if each], strict=True))
    # Ids and rows of both tables (3 + 1 ids of an example, rows of 4 numbers), there and back.
    ids = 8 * 4 * (3 + 1)
    assert found[1, 4]["reduce-scatter"] == ids * 4 * 4
    faults = 8 * 4 * LENGTH
    assert found[1, 4]["all-gather"] == 2 * ids * 4 + ids * 4 * 4 + faults
    assert found[10, 4] == found[100, 4] == found[1000, 4] == found[1, 4]
    assert found[1, 8]["reduce-scatter"] == 2 * found[1, 4]["reduce-scatter"]
    assert found[1, 8]["all-gather"] - faults == 2 * (found[1, 4]["all-gather"] - faults)
