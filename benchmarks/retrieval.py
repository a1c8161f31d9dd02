"""Top-K from an exported retrieval model: exact and by faiss, called and over HTTP.

    PYTHONPATH=. python benchmarks/retrieval.py [--items 1682 1000000] [--seconds 10]

The model's towers are random projections of 64 numbers, which is the worst case for an index: real
items lie closer together. Requests are of one user; the load generator uses the same cores.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serving import measure, server

SIZE, K, USERS = 64, 10, 200


def export(folder: Path, items: int, approximate: bool) -> Path:
    """Exports a model with random items; returns the version's folder."""
    import estimatorkit as tf

    random = np.random.default_rng(0)
    vectors = random.normal(size=(items, SIZE)).astype(np.float32)
    column = {key: tf.feature_column.numeric_column(key, SIZE) for key in ("user", "item")}
    model = tf.estimator.TwoTower(
        [column["user"]],
        [column["item"]],
        embedding_dimension=SIZE,
        model_dir=str(folder / "trained"),
        item_id="id",
    )
    few = {"user": vectors[:8], "item": vectors[:8], "id": np.arange(8)}
    model.train(lambda: tf.data.Dataset.from_tensors(few), steps=1)
    receiver = tf.estimator.export.serving_input_receiver_fn_from_columns([column["user"]])

    def catalogue() -> Any:
        rows = {"item": vectors, "id": np.arange(items)}
        return tf.data.Dataset.from_tensor_slices(rows).batch(8192)

    began = time.perf_counter()
    path = tf.estimator.export_candidates(
        model, folder / "model", receiver, catalogue, K, approximate
    )
    print(f"{items} items: exported in {time.perf_counter() - began:.1f} s", flush=True)
    return Path(os.fsdecode(path))


def called(path: Path, names: list[str]) -> None:
    """Prints the milliseconds of a call for 1 and 32 users, and the recall of the approximation."""
    import estimatorkit as tf

    users = np.random.default_rng(1).normal(size=(USERS, SIZE)).astype(np.float32)
    found: dict[str, Any] = {}
    with tf.estimator.load_predictor(path) as predictor:
        for name in names:
            began = time.perf_counter()
            predictor({"user": users[:1]}, name)
            line = [f"  {name}: first call {time.perf_counter() - began:.1f} s"]
            for rows in (1, 32):
                predictor({"user": users[:rows]}, name)
                began = time.perf_counter()
                starts = range(0, USERS - rows + 1, rows)
                answers = [predictor({"user": users[at : at + rows]}, name) for at in starts]
                spent = (time.perf_counter() - began) / len(answers)
                line.append(f"{1000 * spent:.2f} ms for {rows}")
                if rows == 1:
                    found[name] = np.concatenate([each["ids"] for each in answers])
            print(", ".join(line), flush=True)
    if len(names) > 1:
        pairs = zip(*(found[name] for name in names), strict=True)
        recall = np.mean([len({*one} & {*other}) / K for one, other in pairs])
        print(f"  recall@{K} of the approximation: {recall:.3f}", flush=True)


def main(counts: list[int], seconds: float) -> None:
    """Prints the figures for each number of items."""
    approximate = importlib.util.find_spec("faiss") is not None
    names = ["top_k", "approximate_top_k"] if approximate else ["top_k"]
    user = np.random.default_rng(2).normal(size=SIZE).round(3).tolist()
    for items in counts:
        with tempfile.TemporaryDirectory() as temporary:
            path = export(Path(temporary), items, approximate)
            called(path, names)
            command = [sys.executable, "-m", "estimatorkit", "serve", str(path.parent)]
            request = {"signature_name": "top_k", "instances": [{"user": user}]}
            body = Path(temporary, "request.json")
            body.write_text(json.dumps(request))
            with server([*command, "--port", "8701"], 8701, body.read_bytes()) as url:
                for name in names:
                    body.write_text(json.dumps({**request, "signature_name": name}))
                    measure(url, body, 50, seconds / 4)
                    for clients in (1, 50):
                        figures = measure(url, body, clients, seconds)
                        print(f"  {name}, {clients} clients: {figures}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, nargs="+", default=[1682, 1_000_000])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load")
    options = parser.parse_args()
    main(options.items, options.seconds)
