"""The tests of `tests/estimator/test_export_shapes.py` that need names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.estimator import load_predictor
from tests.estimator.test_export_shapes import Model, check_export, equal, floats, numbers


@pytest.mark.slow
def test_same_named_vocabularies_from_two_folders(tmp_path: Path) -> None:
    for folder, words in (("one", "x\ny\n"), ("two", "y\nz\nx\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "words.txt").write_text(words)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        found = {
            folder: tf.contrib.lookup.index_table_from_file(
                str(tmp_path / folder / "words.txt")
            ).lookup(features["words"])
            for folder in ("one", "two")
        }
        step = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        return tf.estimator.EstimatorSpec(
            mode, loss=tf.constant(0.0), train_op=step, predictions=found
        )

    words = np.array(["x", "y", "z"], object)
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path / "model"))
    estimator.train(lambda: tf.data.Dataset.from_tensors({"words": words}), steps=1)
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"words": tf.placeholder(tf.string, [None])}
    )
    path = Path(estimator.export_saved_model(str(tmp_path / "export"), receiver).decode())
    assert sorted(each.name for each in (path / "assets").iterdir()) == ["words.txt", "words.txt_1"]
    for folder in ("one", "two"):
        (tmp_path / folder / "words.txt").unlink()
    expected = {"one": np.array([0, 1, -1]), "two": np.array([2, 0, 1])}
    with load_predictor(path) as predictor:
        equal(predictor({"words": words}), expected)
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.saved_model.loader.load(session, ["serve"], path)
        signature = model.signature_def["serving_default"]
        names = {key: info.name for key, info in signature.outputs.items()}
        equal(session.run(names, {signature.inputs["words"].name: words}), expected)


def sequences() -> Model:
    """A recurrent network and means over the steps of a sequence."""
    x = floats(None, None, 2)
    lengths = tf.placeholder(tf.int32, [None], name="lengths")
    cell = tf.nn.rnn_cell.LSTMCell(3, initializer=tf.ones_initializer())
    outputs, state = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
    mask = tf.sequence_mask(lengths, tf.shape(x)[1], tf.float32)
    total = tf.reduce_sum(x * mask[:, :, None], 1)
    return {"x": x, "lengths": lengths}, {"outputs": outputs, "h": state.h, "total": total}


@pytest.mark.slow
def test_export_matches_session(tmp_path: Path) -> None:
    check_export(
        sequences,
        lambda b, t: {
            "x": numbers(b, t, 2),
            "lengths": np.minimum(np.arange(b) + 1, t).astype(np.int32),
        },
        tmp_path,
    )
