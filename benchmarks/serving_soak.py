"""A model server for ten minutes: requests of many widths, versions that come and go.

    PYTHONPATH=. python benchmarks/serving_soak.py [--minutes 10] [--write]

A model of texts of any length is served; 16 clients send requests of 40 sizes, one to eight rows of
1 to 400 words. Each half minute a new version is published, and the oldest one removed. The table
shows what the server's process holds each minute; the figures should stay flat.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.report import keep, machine
from benchmarks.serving import ROOT, server
from benchmarks.serving_load import load

CLIENTS, SIZES, PUBLISH_SECS = 16, 40, 30.0
WORDS = [f"word{each}" for each in range(200)]


def export(folder: Path) -> Path:
    """Trains and exports a model of texts; returns the version's folder."""
    import estimatorkit as tf

    column = tf.feature_column.embedding_column(
        tf.feature_column.categorical_column_with_vocabulary_list("words", WORDS), 16
    )
    texts = np.random.default_rng(0).choice(WORDS, (64, 5))
    model = tf.estimator.DNNClassifier([64], [column], model_dir=str(folder / "trained"))
    model.train(
        lambda: tf.data.Dataset.from_tensor_slices(({"words": texts}, [0, 1] * 32)).batch(32),
        steps=2,
    )
    receiver = tf.estimator.export.serving_input_receiver_fn_from_columns([column])
    return Path(os.fsdecode(model.export_saved_model(str(folder / "model"), receiver)))


def bodies() -> list[bytes]:
    """Requests of different sizes."""
    draw = random.Random(0)
    made = []
    for _ in range(SIZES):
        rows = [
            {"words": draw.choices(WORDS, k=draw.randint(1, 400))}
            for _ in range(draw.randint(1, 8))
        ]
        made.append(json.dumps({"signature_name": "predict", "instances": rows}).encode())
    return made


def publish(version: Path) -> Path:
    """Publishes a copy as the next version, and removes the one before the last."""
    following = version.with_name(str(int(version.name) + 1))
    copied = version.with_name(f"tmp-{following.name}")
    shutil.copytree(version, copied)
    copied.rename(following)
    shutil.rmtree(version.with_name(str(int(version.name) - 1)), ignore_errors=True)
    return following


async def minute(url: str, requests: list[bytes], version: Path) -> tuple[Path, dict[str, float]]:
    """Sends requests for a minute, and publishes versions meanwhile."""
    some = random.sample(requests, CLIENTS)
    loads = asyncio.gather(*(load(url, body, 1, 60.0) for body in some))
    for _ in range(int(60 / PUBLISH_SECS)):
        await asyncio.sleep(PUBLISH_SECS / 2)
        version = await asyncio.to_thread(publish, version)
    found = await loads
    return version, {
        "rate": sum(each["requests_per_second"] for each in found),
        "p99": max(each["p99_ms"] for each in found),
        "errors": sum(each["errors"] for each in found),
    }


def main(minutes: int, write: bool) -> int:
    """Prints the table; returns 1 if a request failed."""
    lines = [
        "| minute | requests a second | worst p99 | failed | memory | descriptors | threads |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    failed = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        version, requests = export(Path(temporary)), bodies()
        command = [sys.executable, "-m", "estimatorkit", "serve", str(version.parent)]
        command += ["--port", "8703"]
        with server(command, 8703, requests[0]) as url:
            [process] = [
                each
                for each in psutil.Process().children()
                if "serve" in each.cmdline() and each.is_running()
            ]
            for number in range(1, minutes + 1):
                version, figures = asyncio.run(minute(url, requests, version))
                time.sleep(1)
                held: list[Any] = [number, f"{figures['rate']:,.0f}", f"{figures['p99']:.0f} ms"]
                held += [f"{figures['errors']:.0f}", f"{process.memory_info().rss / 1e6:.0f} MB"]
                held += [process.num_fds(), process.num_threads()]
                failed += figures["errors"]
                lines.append(f"| {' | '.join(map(str, held))} |")
                print(lines[-1], flush=True)
    if write:
        text = "### A model server for ten minutes, by `benchmarks/serving_soak.py`\n\n"
        keep(ROOT / "benchmarks" / "RESULTS.md", machine(), [text + "\n".join(lines)])
    return int(failed > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    options = parser.parse_args()
    sys.exit(main(options.minutes, options.write))
