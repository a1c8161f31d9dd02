"""A model server beside TensorFlow's SavedModel behind the same HTTP server.

    PYTHONPATH=. python benchmarks/serving.py [--seconds 10] [--rounds 3] [--write]

One export (a DNN of 256 and 128 units on six numbers and eight words) is served by `estimatorkit
serve`, and by a Starlette program on uvicorn that calls `tf.saved_model.load`, as guides show it.
1, 50 and 200 clients keep their connections and send requests of one row; rounds are interleaved.
The load generator uses the same cores. TensorFlow's interpreter is given by
ESTIMATORKIT_BENCH_TENSORFLOW, and needs uvicorn, starlette, httptools and uvloop.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import keep, machine

ROOT = Path(__file__).parents[1]
CLIENTS = (1, 50, 200)

_TENSORFLOW = """
import json, sys
import tensorflow as tf
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

model = tf.saved_model.load(sys.argv[1])
call = model.signatures["predict"]
inputs = {key: spec.dtype for key, spec in call.structured_input_signature[1].items()}

def predict(request_body):
    rows = json.loads(request_body)["instances"]
    fed = {key: tf.constant([row[key] for row in rows], dtype) for key, dtype in inputs.items()}
    found = {key: value.numpy() for key, value in call(**fed).items()}
    lists = {
        key: (value.astype(str) if value.dtype == object else value).tolist()
        for key, value in found.items()
    }
    return [{key: value[row] for key, value in lists.items()} for row in range(len(rows))]

async def answer(request):
    return JSONResponse({"predictions": predict(await request.body())})

app = Starlette(routes=[Route("/v1/models/model:predict", answer, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[2]), log_level="error", access_log=False)
"""


def export(folder: Path) -> tuple[Path, bytes]:
    """Trains and exports a model; returns the version's folder, and a request of one row."""
    import estimatorkit as tf

    random = np.random.default_rng(0)
    words = [f"word{each}" for each in range(50)]
    rows: dict[str, Any] = {f"n{k}": random.normal(size=(512, 1)) for k in range(6)}
    rows |= {f"w{k}": random.choice(words, (512, 1)) for k in range(8)}
    columns = [tf.feature_column.numeric_column(f"n{k}") for k in range(6)]
    for k in range(8):
        listed = tf.feature_column.categorical_column_with_vocabulary_list(f"w{k}", words)
        columns.append(tf.feature_column.indicator_column(listed))
    model = tf.estimator.DNNClassifier([256, 128], columns, model_dir=str(folder / "trained"))
    labels = random.integers(0, 2, 512)
    model.train(
        lambda: tf.data.Dataset.from_tensor_slices((rows, labels)).batch(64).repeat(), steps=50
    )
    receiver = tf.estimator.export.serving_input_receiver_fn_from_columns(columns)
    path = Path(os.fsdecode(model.export_saved_model(str(folder / "model"), receiver)))
    row = {key: [float(v[0, 0]) if key[0] == "n" else str(v[0, 0])] for key, v in rows.items()}
    return path, json.dumps({"signature_name": "predict", "instances": [row]}).encode()


@contextmanager
def server(command: list[str], port: int, request: bytes) -> Iterator[str]:
    """A server that answers; gives the URL of its predictions."""
    url = f"http://127.0.0.1:{port}/v1/models/model:predict"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    process = subprocess.Popen(  # noqa: S603 - programs of this benchmark
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    try:
        for _ in range(300):
            time.sleep(0.2)
            try:
                urllib.request.urlopen(url, request).read()
                break
            except OSError:
                continue
        yield url
    finally:
        process.terminate()
        process.wait()


def measure(url: str, body: Path, clients: int, seconds: float) -> dict[str, float]:
    """The figures of one load."""
    command = [sys.executable, str(ROOT / "benchmarks/serving_load.py"), url, str(body)]
    done = subprocess.run(  # noqa: S603 - a program of this benchmark
        [*command, str(clients), str(seconds)], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(seconds: float, rounds: int, write: bool) -> int:
    """Prints the table; returns 1 if a request failed here."""
    peer = os.environ.get("ESTIMATORKIT_BENCH_TENSORFLOW")
    where = machine()
    with tempfile.TemporaryDirectory() as temporary:
        path, request = export(Path(temporary))
        body = Path(temporary, "request.json")
        body.write_bytes(request)
        program = Path(temporary, "server.py")
        program.write_text(_TENSORFLOW)
        commands = {
            "estimatorkit": [sys.executable, "-m", "estimatorkit", "serve", str(path.parent)],
        }
        commands["estimatorkit"] += ["--port", "8701"]
        if peer:
            commands["tensorflow"] = [peer, str(program), str(path), "8702"]
        found: dict[tuple[int, str], list[dict[str, float]]] = {}
        for _ in range(rounds):
            for number, (name, command) in enumerate(commands.items(), 8701):
                with server(command, number, request) as url:
                    measure(url, body, 50, 2)
                    for clients in CLIENTS:
                        figures = measure(url, body, clients, seconds)
                        found.setdefault((clients, name), []).append(figures)
                        print(clients, name, figures, flush=True)
    lines = [
        "| clients | server | requests a second | rounds | p50 | p99 | failed |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (clients, name), each in sorted(found.items()):
        rates = [one["requests_per_second"] for one in each]
        cells = [str(clients), name, f"{statistics.median(rates):,.0f}"]
        cells.append(f"{min(rates):,.0f} to {max(rates):,.0f}")
        for key in ("p50_ms", "p99_ms"):
            cells.append(f"{statistics.median(one[key] for one in each):.3g} ms")
        cells.append(f"{sum(one['errors'] for one in each):.0f}")
        lines.append(f"| {' | '.join(cells)} |")
    print("\n".join(lines))
    if write:
        versions = ", ".join(f"{each} {metadata.version(each)}" for each in ("jax", "uvicorn"))
        about = f"### Serving, by `benchmarks/serving.py`: python {sys.version.split()[0]}, "
        text = f"{about}{versions}, tensorflow 2.15.1\n\n" + "\n".join(lines)
        keep(ROOT / "benchmarks" / "RESULTS.md", where, [text])
    own = [one["errors"] for (_, name), each in found.items() for one in each if name[0] == "e"]
    return int(any(own))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    options = parser.parse_args()
    sys.exit(main(options.seconds, options.rounds, options.write))
