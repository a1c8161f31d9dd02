"""What a run writes is read by TensorBoard itself, and line by line as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from estimatorkit.interop.events import MetricsWriter


def test_tensorboard_reads_what_is_written(tmp_path: Path) -> None:
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
