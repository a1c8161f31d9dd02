"""Programs whose shapes change at each step reach what TensorFlow reaches from the same weights."""

from __future__ import annotations

import runpy

import pytest

import estimatorkit.compat.v1 as tf
from benchmarks import shapes
from benchmarks.cold import Use
from benchmarks.shapes import FOLDER, Result, cells, names

FIGURES = {
    "attention": {"loss": 2.53462},
    "crf_tagger": {"loss": 22.6853},
    "decoding": {"loss": 1.66614},
    "gcn": {"loss": 1.07309},
    "last_batches": {"loss": 0.154825},
    "lstm": {"loss": 0.095269},
    "masks": {"loss": 1.82969},
    "text_cnn": {"loss": 0.549555},
    "translation": {"loss": 3.06517, "words": 2748},
}
"""By TensorFlow 2.15.1: `benchmarks/shapes.py`."""


def printed(*figures: str) -> Use:
    return Use(9.0, 9.0, 10**9, figures)


def test_every_program_has_figures() -> None:
    assert names() == sorted(FIGURES)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_program_reaches_figures(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    with tf.Graph().as_default():
        runpy.run_path(str(FOLDER / f"{name}.py"))
    lines = [line.split()[1:] for line in capsys.readouterr().out.splitlines()]
    found = {figure: float(value) for figure, value in lines if not figure.endswith("_seconds")}
    assert found == pytest.approx(FIGURES[name], rel=1e-3)


def test_results_are_medians_with_last_figures() -> None:
    rounds = [
        printed(f"first_epoch_seconds {first}", f"second_epoch_seconds {second}", f"loss {loss}")
        for first, second, loss in ((4, 0.5, 0.25), (1, 0.25, 0.25), (2, 0.75, 0.125))
    ]
    result = Result.of(rounds)
    assert result == Result((2.0, 0.5), 10**9, {"loss": 0.125})
    ours = Result((8.0, 0.25), 2 * 10**9, {"loss": 0.12505})
    assert cells("gcn", result, ours) == [
        *("gcn", "2.000 s, 0.500 s", "8.000 s, 0.250 s", "0.25", "2"),
        *("1,000, 2,000", "loss 0.125; loss 0.12505"),
    ]


def test_figures_that_differ_are_failures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = Result((1.0, 1.0), 10**9, {"loss": 0.5, "words": 7.0})
    for figures, status in (
        ({"loss": 0.50001, "words": 7.0}, 0),
        ({"loss": 0.5, "words": 8.0}, 1),
        ({"loss": 0.5}, 1),
    ):
        ours = Result((2.0, 0.5), 10**9, figures)
        monkeypatch.setattr(shapes, "measure", lambda name, rounds, ours=ours: (theirs, ours))
        monkeypatch.setenv("ESTIMATORKIT_BENCH_TENSORFLOW", "python")
        assert shapes.main(["--only", "gcn"]) == status
        assert ("gcn: the packages do not agree" in capsys.readouterr().err) == bool(status)
