"""Writes saved_models/tensorflow_*, and saved_model.json: what TensorFlow's loader gives for all
models of `saved_models`.

First `python -m tests.golden.write_saved_models` writes saved_models/estimatorkit_*, the same
models as this package exports them; then this script loads these too.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import tensorflow as tf
from golden_files import FOLDER, write_json
from golden_values import plain
from snippets_saved_model import MODELS, OURS, VOCABULARY, export, predict

v1 = tf.compat.v1
MODULE = SimpleNamespace(**{name: getattr(v1, name) for name in dir(v1)})


def values(found: Any) -> Any:
    """Sparse values as dicts."""
    return {
        key: plain(value._asdict() if hasattr(value, "_asdict") else value)
        for key, value in found.items()
    }


def without_notes(folder: Path) -> None:
    """Leaves out the list of TensorFlow's own operations, which is most of a small model, and the
    tables' random names.
    """
    from tensorflow.core.protobuf import saved_model_pb2

    path = folder / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    for meta_graph in model.meta_graphs:
        meta_graph.meta_info_def.ClearField("stripped_op_list")
        for node in meta_graph.graph_def.node:
            for note in [key for key in node.attr if key.startswith("_")]:
                del node.attr[note]
            if node.op == "HashTableV2" and b"words.txt" not in node.attr["shared_name"].s:
                node.attr["shared_name"].s = b"table_of_tensors"
    path.write_bytes(model.SerializeToString(deterministic=True))


def main() -> None:
    v1.disable_v2_behavior()
    models = FOLDER / "saved_models"
    found: dict[str, Any] = {"tensorflow": {}, "estimatorkit": {}}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path(VOCABULARY[0]).write_bytes(VOCABULARY[1])
        for name in MODELS:
            written = models / f"tensorflow_{name}"
            shutil.rmtree(written, ignore_errors=True)
            export(MODULE, name, str(written))
            without_notes(written)
        Path(VOCABULARY[0]).unlink()  # from here on, assets are the models' own
        for writer in found:
            for name in MODELS if writer == "tensorflow" else (*MODELS, *OURS):
                loaded = predict(MODULE, name, str(models / f"{writer}_{name}"))
                found[writer][name] = values(loaded)
    write_json("saved_model.json", found)


if __name__ == "__main__":
    main()
