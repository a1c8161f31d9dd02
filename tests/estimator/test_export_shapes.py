"""Exports of models with unknown dimensions: session, export and loaded model agree, also for no
rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.estimator import load_predictor
from tests.sweep import sweep

Model = tuple[dict[str, Any], dict[str, Any]]


def floats(*shape: int | None, name: str = "x") -> Any:
    return tf.placeholder(tf.float32, shape, name=name)


def products() -> Model:
    """Two reshaped products of unknown dimensions meet, and nothing proves them equal."""
    x, mask = floats(None, None, None, None), floats(None, None, None, name="mask")
    s = tf.shape(x)
    rows = s[0] * s[1]
    y = tf.reshape(x, [rows, s[2], 4]) * tf.reshape(mask, [rows, s[2], 1])
    return {"x": x, "mask": mask}, {"y": y, "sum": tf.reduce_sum(y, [1, 2])}


def tiled() -> Model:
    """Every row beside every row."""
    x = floats(None, 3)
    count = tf.shape(x)[0]
    pairs = tf.tile(x[:, None, :], [1, count, 1]) - x
    return {"x": x}, {"y": tf.reshape(pairs, [count, count * 3])}


def ranges() -> Model:
    """Positions, filled and one-hot vectors of a computed size."""
    x = floats(None, None)
    s = tf.shape(x)
    positions = tf.range(s[1])
    y = x * tf.cast(positions, tf.float32) + tf.fill(s, 2.0)
    return {"x": x}, {"y": y, "codes": tf.one_hot(positions, s[1]), "n": tf.range(0, s[0], 2)}


def masked() -> Model:
    """Sizes that follow from values."""
    x = floats(None, None)
    kept = tf.boolean_mask(x, x > 1.0)
    return {"x": x}, {"kept": kept, "count": tf.shape(kept), "where": tf.where(x > 1.0)}


def attention() -> Model:
    """Heads, by reshaping with computed sizes."""
    x = floats(None, None, 8)
    s = tf.shape(x)
    dense = tf.layers.dense(x, 8, kernel_initializer=tf.ones_initializer())
    heads = tf.transpose(tf.reshape(dense, [s[0], s[1], 2, 4]), [0, 2, 1, 3])
    found = tf.matmul(tf.nn.softmax(tf.matmul(heads, heads, transpose_b=True)), heads)
    return {"x": x}, {"y": tf.reshape(tf.transpose(found, [0, 2, 1, 3]), [s[0], s[1], 8])}


def outer() -> Model:
    """Products of a dimension with itself."""
    x = floats(None, None)
    s = tf.shape(x)
    columns, rows = tf.reshape(x, [s[0], s[1], 1]), tf.reshape(x, [s[0], 1, s[1]])
    return {"x": x}, {"y": tf.reshape(columns * rows, [s[0], s[1] * s[1]])}


def tables() -> Model:
    """A static and a mutable table, and a partitioned embedding."""
    x = tf.placeholder(tf.string, [None], name="x")
    pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
    ids = tf.lookup.StaticHashTable(pairs, 0).lookup(x)
    counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1, name="counts")
    filled = counts.insert(tf.constant(["a", "b"]), tf.constant([5, 6], tf.int64))
    tf.add_to_collection("fill", filled)
    rows = tf.get_variable(
        "rows",
        [3, 2],
        initializer=tf.random_uniform_initializer(seed=1),
        partitioner=tf.fixed_size_partitioner(2),
    )
    found = {"embedded": tf.nn.embedding_lookup(rows, ids), "count": counts.lookup(x)}
    return {"x": x}, found


def control_flow() -> Model:
    """A condition on a size, and a loop over a dimension."""
    x = floats(None, None)
    steps = tf.shape(x)[1]
    total = tf.while_loop(
        lambda at, _: at < steps,
        lambda at, y: (at + 1, y * 0.5 + tf.reduce_sum(x * tf.one_hot(at, steps), 1)),
        (0, tf.zeros([tf.shape(x)[0]])),
    )[1]
    rows = tf.map_fn(lambda row: tf.reduce_sum(row) * row, x)
    return {"x": x}, {
        "y": total,
        "rows": rows,
        "z": tf.cond(tf.shape(x)[0] > 2, lambda: x * 2.0, lambda: x),
    }


def normalized() -> Model:
    """Batch normalization of images in inference mode, and a default that is not fed."""
    x = floats(None, None, None, 3)
    scale = tf.placeholder_with_default(2.0, [], name="scale")
    y = tf.layers.conv2d(x, 2, 3, padding="same", kernel_initializer=tf.ones_initializer())
    y = tf.layers.batch_normalization(y, training=False) * scale
    s = tf.shape(y)
    return {"x": x}, {"y": tf.reshape(y, [s[0], s[1] * s[2], 2])}


def default_fed() -> Model:
    """A default that is fed."""
    x, scale = floats(None, 3), tf.placeholder_with_default(2.0, [], name="scale")
    return {"x": x, "scale": scale}, {"y": x * scale}


def words() -> Model:
    """Strings that are split."""
    x = tf.placeholder(tf.string, [None], name="x")
    dense = tf.sparse_tensor_to_dense(tf.string_split(x, " "), "")
    return {"x": x}, {"words": dense, "count": tf.shape(dense)}


def numbers(*shape: int) -> Any:
    return (np.arange(np.prod(shape)) % 7 * 0.5).astype(np.float32).reshape(shape)


def texts(rows: int) -> Any:
    return np.array([b"a b a".decode()[: 1 + 2 * (row % 3)] for row in range(rows)], object)


MODELS: dict[Callable[[], Model], Callable[[int, int], Mapping[str, Any]]] = {
    products: lambda b, t: {"x": numbers(b, t, 3, 4), "mask": numbers(b, t, 3)},
    tiled: lambda b, t: {"x": numbers(b, 3)},
    ranges: lambda b, t: {"x": numbers(b, t)},
    masked: lambda b, t: {"x": numbers(b, t)},
    attention: lambda b, t: {"x": numbers(b, t, 8)},
    outer: lambda b, t: {"x": numbers(b, t)},
    tables: lambda b, t: {"x": texts(b)},
    control_flow: lambda b, t: {"x": numbers(b, t)},
    normalized: lambda b, t: {"x": numbers(b, t + 1, 4, 3)},
    default_fed: lambda b, t: {"x": numbers(b, 3), "scale": np.float32(7.0)},
    words: lambda b, t: {"x": texts(b)},
}
SIZES = [(2, 3), (1, 1), (4, 5), (0, 3), (2, 0)]


def equal(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        array = np.asarray(found[key])
        assert array.shape == value.shape, key
        if value.dtype == object:
            assert array.tolist() == value.tolist(), key
        else:
            np.testing.assert_allclose(array, value, 1e-5, 1e-6, err_msg=key)


@sweep("build", MODELS, quick=1)
def test_export_matches_session(build: Callable[[], Model], tmp_path: Path) -> None:
    check_export(build, MODELS[build], tmp_path)


def check_export(
    build: Callable[[], Model], given_of: Callable[[int, int], Mapping[str, Any]], tmp_path: Path
) -> None:
    """Compares an exported model's answers with those of a session."""
    built: dict[str, Any] = {}

    def receiver() -> Any:
        inputs, built["outputs"] = build()
        return tf.estimator.export.ServingInputReceiver(inputs, inputs)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions=built["outputs"])
        build()
        step = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        trained = tf.group(step, *tf.get_collection("fill"))
        return tf.estimator.EstimatorSpec(mode, loss=tf.constant(0.0), train_op=trained)

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path / "model"))
    estimator.train(lambda: tf.data.Dataset.from_tensors(0.0), steps=1)
    folder = estimator.export_saved_model(str(tmp_path / "export"), receiver)
    feeds = [given_of(*sizes) for sizes in SIZES]
    with tf.Graph().as_default(), tf.Session() as session:
        inputs, outputs = build()
        tf.train.get_or_create_global_step()
        session.run(tf.tables_initializer())
        path = tf.train.latest_checkpoint(str(tmp_path / "model"))
        tf.train.Saver().restore(session, path)
        expected = [
            session.run(outputs, {inputs[key]: value for key, value in given.items()})
            for given in feeds
        ]
    with load_predictor(folder) as predictor:
        for given, wanted in zip(feeds, expected, strict=True):
            equal(predictor(given), wanted)
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.saved_model.loader.load(session, ["serve"], folder)
        signature = model.signature_def["serving_default"]
        names = {key: info.name for key, info in signature.outputs.items()}
        for given, wanted in zip(feeds, expected, strict=True):
            fed = {signature.inputs[key].name: value for key, value in given.items()}
            equal(session.run(names, fed), wanted)


def test_fallback_graph_for_empty_inputs(tmp_path: Path) -> None:
    def receiver() -> Any:
        x = floats(None, None)
        return tf.estimator.export.TensorServingInputReceiver(x, {"x": x})

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", initializer=2.0)
        return tf.estimator.EstimatorSpec(
            mode,
            loss=w,
            train_op=tf.assign_add(step, 1),
            predictions=tf.reduce_max(features * w, 1),
        )

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path / "model"))
    estimator.train(lambda: tf.data.Dataset.from_tensors(np.ones([1, 1], np.float32)), steps=1)
    folder = estimator.export_saved_model(str(tmp_path / "export"), receiver)
    with load_predictor(folder) as predictor:
        signature = predictor.signature()
        assert signature.general is not None
        assert signature.general.graph != signature.graph
        assert predictor({"x": numbers(2, 3)})["output"].tolist() == [2.0, 5.0]
        assert predictor({"x": numbers(2, 0)})["output"].tolist() == [-np.inf, -np.inf]
        assert predictor({"x": numbers(0, 3)})["output"].shape == (0,)
        with pytest.raises(ValueError, match="has another shape"):
            predictor({"x": numbers(2, 3, 1)})
    path = Path(folder.decode()) / "signature.json"
    content = json.loads(path.read_text())
    content["signatures"]["serving_default"]["general"]["graph"] = 9
    path.write_text(json.dumps(content))
    with pytest.raises(tf.errors.DataLossError, match="names graph 9, which is not there"):
        load_predictor(folder)
