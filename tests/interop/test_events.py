"""Event files are read by TensorBoard, and line by line as JSON."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from estimatorkit.core.errors import OpError, PermissionDeniedError, ResourceExhaustedError
from estimatorkit.interop import events
from estimatorkit.interop.events import MetricsWriter


def test_tensorboard_reads_events(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path)
    writer.write(1, {"loss": np.float32(0.5)})
    writer.write(100, {"loss": np.float32(0.25), "global_step/sec": 12.0, "curve": np.ones(3)})
    writer.close()
    writer.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [
        (1, 0.5),
        (100, 0.25),
    ]
    assert sorted(events.Tags()["scalars"]) == ["global_step/sec", "loss"]
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(line["step"], line["loss"]) for line in lines] == [(1, 0.5), (100, 0.25)]
    assert lines[1]["curve"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("code", "kind"),
    [(errno.ENOSPC, ResourceExhaustedError), (errno.EROFS, PermissionDeniedError)],
)
def test_full_or_read_only_disk(
    code: int, kind: type[OpError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(events.os, "makedirs", refuse)
    writer = MetricsWriter(tmp_path / "eval")
    with pytest.raises(kind, match=r"could not write the metrics at .*eval") as caught:
        writer.write(1, {"loss": np.float32(0.5)})
    assert os.strerror(code) in str(caught.value)
