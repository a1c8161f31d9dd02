"""A damaged file of any format that the package writes is read as it was, or refused by name.

A format is what writes its files and what reads them. Bytes are flipped, and files cut, at places
that are spread over them. Formats with checksums give the same content or an error; in the others a
byte may be another value, and a line that cannot be read may be left out with a warning.
"""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import OpError
from estimatorkit.estimator.evaluation.completion import FILE, read_completion
from estimatorkit.estimator.evaluation.early_stopping import BestCheckpoint
from estimatorkit.estimator.evaluation.evaluation_records import LINES, read_eval_metrics
from estimatorkit.estimator.evaluation.metric_monitor import MetricMonitor
from estimatorkit.estimator.serving.exporters import BestExporter
from estimatorkit.estimator.serving.predictor import load_predictor
from estimatorkit.experiment import earlier_run, reading
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.report_html import _config_sections
from estimatorkit.experiment.tuning.search import Search
from estimatorkit.experiment.tuning.space import Dimension
from estimatorkit.storage import checkpoint, checkpoint_delta
from tests.fuzz import targets
from tests.fuzz.contract import unclear

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of what the libraries call
    pytest.mark.filterwarnings("ignore:.*experimental:Warning"),  # of Optuna
]

_BITS = (0x01, 0x20, 0xFF)
_PLACES = 24
_CUTS = (0.0, 0.3, 0.9, 0.999)
_Read = Callable[[Path], Any]


class Format(NamedTuple):
    """Files of a kind.

    Attributes:
        write: writes them to a folder.
        read: reads them from it; the result can be compared.
        sealed: whether checksums find every change.
    """

    write: Callable[[Path], object]
    read: _Read
    sealed: bool


def plain(value: Any) -> Any:
    """A value with lists in place of arrays, and the types of its numbers."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return str(value.dtype), value.tolist()
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _contents(path: Path) -> Any:
    found = checkpoint.read_checkpoint(path)
    return plain(found.tensors), found.state


def _write_delta(folder: Path) -> None:
    _files(targets._checkpoint())(folder)
    w = np.arange(6.0).reshape(2, 3) * [[1.0], [2.0]]
    checkpoint.write_checkpoint(folder, "model.ckpt-4", {"w": w}, {"step": 4})
    names = (folder / "model.ckpt-3", folder / "model.ckpt-4", folder / "delta-4")
    checkpoint_delta.write_checkpoint_delta(*names)
    shutil.rmtree(folder / "model.ckpt-4")


def _read_delta(folder: Path) -> Any:
    names = (folder / "model.ckpt-3", folder / "delta-4", folder / "model.ckpt-5")
    return _contents(Path(checkpoint_delta.apply_checkpoint_delta(*names)))


def _files(files: dict[str, bytes]) -> Callable[[Path], object]:
    return functools.partial(targets.written, files=files)


def _export(folder: Path) -> None:
    _files(targets._export())(folder)


def _predictions(folder: Path) -> Any:
    [home] = [path.parent for path in folder.rglob("signature.json")]
    with load_predictor(home) as predict:
        return plain([predict(targets._REQUEST, each) for each in predict.signatures])


def _saved_model(folder: Path) -> Any:
    [home] = [path.parent for path in folder.rglob("signature.json")]
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], str(home))
        return plain(session.run([each.value() for each in graph.get_collection("variables")]))


def _keras(folder: Path) -> Any:
    [path] = folder.iterdir()
    with tf.Graph().as_default():
        model = tf.keras.models.load_model(str(path))
        return plain(model.get_weights()), model.get_config()


def _metrics(folder: Path) -> Any:
    return dict(read_eval_metrics(folder))


def _journal(folder: Path) -> Search:
    space = {"rate": Dimension(choice=(1, 2))}
    return Search(space, MetricMonitor("loss", "min"), folder, 0)


def _search(folder: Path) -> None:
    def objective(settings: Any, report: Any) -> float:
        report(0.5)
        return float(settings["rate"])

    _journal(folder).run(objective, 2)
    (folder / "next.lock").unlink()


EXPERIMENT = """\
name: a
data: {train: {csv: a.csv}, holdout: 0.5, label: y}
features: [{numeric: x}]
estimator: {type: LinearRegressor}
train: {epochs: 1, batch_size: 2}
"""


def _text(name: str, text: str) -> Callable[[Path], object]:
    return _files({name: text.encode()})


def _best_checkpoint(folder: Path) -> Any:
    return BestCheckpoint(str(folder), MetricMonitor("loss", "min"), "eval")._read_state()


FORMATS: dict[str, Format] = {
    "checkpoint": Format(
        _files(targets._checkpoint()), lambda folder: _contents(folder / "model.ckpt-3"), True
    ),
    "delta": Format(_write_delta, _read_delta, True),
    "export": Format(_export, _predictions, True),
    "saved model": Format(_export, _saved_model, False),
    "keras file": Format(_files({"m.keras": targets._saved(".keras")}), _keras, False),
    "hdf5 file": Format(_files({"m.h5": targets._saved(".h5")}), _keras, False),
    "events": Format(_files({"events.out.tfevents.1": targets._event_file()[0]}), _metrics, False),
    "records": Format(
        _files({"file": targets._record_files()[0]}),
        lambda folder: list(targets.records.read_records(folder / "file", "")),
        False,  # fewer records are a file, too
    ),
    "metrics.jsonl": Format(
        _text(LINES, '{"step": 3, "time": 1.5, "loss": 0.25}\n{"step": 4, "loss": 0.5}\n'),
        _metrics,
        False,
    ),
    "search": Format(_search, lambda folder: _journal(folder).trials(), False),
    "completion": Format(
        _files({FILE: targets._completion()[0]}),
        lambda folder: read_completion(str(folder)),
        False,
    ),
    "reading.json": Format(
        _text(
            "assets.extra/reading.json",
            json.dumps({"kind": "csv", "settings": {"delimiter": ","}, "without": ["y"]}),
        ),
        lambda folder: reading._read(folder / "assets.extra/reading.json", folder / "a.csv"),
        False,
    ),
    "experiment": Format(
        _text("config.yaml", EXPERIMENT),
        lambda folder: load_experiment(folder / "config.yaml"),
        False,
    ),
    "earlier run": Format(
        _text("config.yaml", EXPERIMENT),
        lambda folder: earlier_run.differences(folder / "config.yaml", _experiment()),
        False,
    ),
    "report": Format(
        _text("config.yaml", EXPERIMENT), lambda folder: _config_sections(str(folder)), False
    ),
    "best.json": Format(
        _text("best.json", '{"metrics": {"loss": 0.5}, "previous": null, "exports_before": []}'),
        lambda folder: BestExporter(metric="loss")._read_best(folder),
        False,
    ),
}
"""By name."""


@functools.cache
def _experiment() -> Any:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        Path(folder, "config.yaml").write_text(EXPERIMENT)
        return load_experiment(Path(folder, "config.yaml"))


def damaged(data: bytes, random: Random) -> Iterator[bytes]:
    """The bytes with one changed, at several places, or cut."""
    for _ in range(_PLACES if data else 0):
        place = random.randrange(len(data))
        yield data[:place] + bytes([data[place] ^ random.choice(_BITS)]) + data[place + 1 :]
    for share in _CUTS:
        yield data[: int(len(data) * share)]


def names_file(message: str, file: str) -> bool:
    """Whether an error is about a file, or the folder of it: a checkpoint, an export."""
    path = Path(file)
    return path.name in message or any(part in message for part in path.parent.parts)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_damage_is_named(name: str, tmp_path: Path) -> None:
    form = FORMATS[name]
    files = targets.files_of(form.write)
    whole = tmp_path / "whole"
    expected = form.read(targets.written(whole, files))
    wrong = []
    random = Random(name)
    for file, data in files.items():
        for number, content in enumerate(damaged(data, random)):
            folder = targets.written(tmp_path / "damaged", {**files, file: content})
            try:
                found = form.read(folder)
                if form.sealed and found != expected:
                    wrong.append(f"{file}, {number}: {found}")
            except (OpError, ValueError, OSError) as error:  # TensorFlow's for SavedModels
                problem = unclear(error)
                if problem is None and not names_file(str(error), file):
                    problem = f"does not name it: {error}"
                wrong += [f"{file}, {number}: {problem}"] * (problem is not None)
            except Exception as error:
                wrong.append(f"{file}, {number}: {type(error).__name__}: {error}")
            shutil.rmtree(folder)
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:8])
