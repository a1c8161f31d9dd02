"""Categorical, embedding and sequence columns and their layers, beyond the golden files.

Which rows of tables a step touches, how many host operations and compilations there are, errors
with values, files, checkpoints, lists; and properties, against plain NumPy.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

import estimatorkit as tf
from estimatorkit.core import errors
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import lookup
from estimatorkit.interop.graphdef import import_graph_def
from estimatorkit.layers import feature_column as fc
from estimatorkit.layers.feature_column.configs import (
    deserialize_feature_column,
    deserialize_feature_columns,
    serialize_feature_column,
    serialize_feature_columns,
)
from estimatorkit.ops.tables.feature_ids import ABSENT, KnownHashes, laid_out
from estimatorkit.ops.text import farmhash
from tests.sweep import sweep


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def text_of(error: type[Exception], action: Any) -> str:
    with pytest.raises(error) as caught:
        action()
    return str(caught.value)


def ids_of(column: Any, raw: Any) -> Any:
    return fc.Features(raw).transformed(column).ids


# -- rows that no example used


@sweep(
    ("optimizer", "parts"),
    [
        (lambda: tf.train.AdagradOptimizer(0.5), 1),
        (lambda: tf.train.FtrlOptimizer(0.5), 1),
        (lambda: tf.train.FtrlOptimizer(0.5), 3),
        (lambda: tf.train.AdamOptimizer(0.5), 3),
    ],
    quick=1,
)
def test_step_changes_only_used_rows(optimizer: Any, parts: int) -> None:
    column = fc.categorical_column_with_identity("x", 9)
    features = {"x": np.array([[2, -1], [-1, -1], [5, 2]])}
    partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
    with tf.variable_scope("model", partitioner=partitioner):
        dense = fc.input_layer(features, [fc.embedding_column(column, 2)])
        linear = fc.linear_model(features, [column])
    loss = tf.reduce_sum(tf.square(dense + 1.0)) + tf.reduce_sum(tf.square(linear + 1.0))
    tables = [each for each in tf.trainable_variables() if "bias" not in each.name]
    assert len(tables) == 2 * parts
    gradients = tf.gradients(loss, tables)
    assert all(isinstance(each, tf.IndexedSlices) for each in gradients)
    step = optimizer().apply_gradients(zip(gradients, tables, strict=True))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(tables)
        session.run(step)
        after = session.run(tables)
    for start in (0, parts):
        old, new = (np.concatenate(each[start : start + parts]) for each in (before, after))
        changed = (old != new).any(axis=1)
        assert np.flatnonzero(changed).tolist() == [2, 5]


def test_unused_nan_row_is_harmless() -> None:
    column = fc.categorical_column_with_identity("x", 3)
    layer = fc.input_layer({"x": [[0, -1], [-1, -1]]}, [fc.embedding_column(column, 1)])
    (table,) = tf.trainable_variables()
    with tf.Session() as session:
        table.load(np.array([[1.0], [2.0], [np.nan]], np.float32), session)
        assert session.run(layer).tolist() == [[1.0], [0.0]]


# -- counts


def types(graph: Graph, where: str) -> list[str]:
    return [
        op.type
        for op in graph.get_operations()
        if lookup(op.type).placement.place(op.attrs) == where
    ]


def census_columns() -> tuple[list[Any], list[Any]]:
    ages = fc.bucketized_column(fc.numeric_column("age"), [20.0, 40.0])
    words = fc.categorical_column_with_vocabulary_list("w", ["a", "b"])
    hashed = fc.categorical_column_with_hash_bucket("h", 10)
    cross = fc.crossed_column(["w", ages, "h"], 20)
    return [words, hashed, cross, ages], [fc.indicator_column(words), fc.embedding_column(cross, 2)]


def test_ids_of_layer_are_one_shared_operation(graph: Graph) -> None:
    features = {
        "w": tf.placeholder(tf.string, [None]),
        "h": tf.placeholder(tf.string, [None, 1]),
        "age": tf.placeholder(tf.float32, [None]),
    }
    wide, deep = census_columns()
    outputs = [fc.input_layer(features, deep), fc.linear_model(features, wide)]
    feeds = {
        features["w"]: ["a", "", "c"],
        features["h"]: [["x"], ["y"], ["x"]],
        features["age"]: [10.0, 20.0, 50.0],
    }
    host = [each for each in types(graph, "host") if each not in ("Placeholder", "VarHandleOp")]
    assert host.count("PackedIds") == 1
    assert host.count("HashedIds") == 1  # the only one that the first layer had not made
    assert not {"VocabularyIds", "CrossedIds", "BucketIds"} & set(host)
    assert [value.shape for value in run(outputs, feeds)] == [(3, 4), (3, 1)]


def test_packed_ids_match_separate_columns() -> None:
    raw = {
        "w": np.array(["a", "", "b", "é"], object),
        "h": np.array([["x", ""], ["y", "x"], ["", ""], ["z", "a"]], object),
        "i": np.array([0, 3, -1, 7]),
        "age": np.array([1.0, 30.0, 20.0, np.nan], np.float32),
    }
    ages = fc.bucketized_column(fc.numeric_column("age"), [20.0, 40.0])
    words = fc.categorical_column_with_vocabulary_list("w", ["a", "b"], num_oov_buckets=2)
    columns = [
        words,
        fc.categorical_column_with_hash_bucket("h", 10),
        fc.categorical_column_with_identity("i", 8),
        fc.crossed_column(["h", ages, words], 100),
        fc.crossed_column(["h", "i"], 100),
        fc.crossed_column([fc.crossed_column(["w", "i"], 5), "h"], 100),
    ]
    alone = [ids_of(column, {key: tf.constant(raw[key]) for key in raw}) for column in columns]
    features = fc.Features(raw)
    fc.linear_model(features, columns)
    packed = [features.transformed(column).ids for column in columns]
    assert packed[0].op.type == "StridedSlice"
    for one, other in zip(*run([alone, packed]), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("compiled")
def test_sparse_batches_of_similar_width_share_compilation() -> None:
    words = tf.sparse_placeholder(tf.string, [None, None])
    column = fc.categorical_column_with_hash_bucket("x", 10)
    layer = fc.input_layer({"x": words}, [fc.embedding_column(column, 2)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = sum(session.state.compilations.values())
        for longest in (3, 4, 3, 4):
            places = [[0, step] for step in range(longest)]
            value = tf.SparseTensorValue(places, ["a"] * longest, [2, longest])
            assert session.run(layer, {words: value}).shape == (2, 2)
        assert sum(session.state.compilations.values()) == before + 1


def test_graph_with_columns_round_trips(graph: Graph) -> None:
    features = {"w": tf.placeholder(tf.string, [3], "w"), "h": tf.placeholder(tf.string, [3], "h")}
    columns = [
        fc.categorical_column_with_vocabulary_list("w", ["a", "größer"], num_oov_buckets=1),
        fc.crossed_column(["w", "h"], 50),
    ]
    layer = fc.input_layer(features, [fc.indicator_column(column) for column in columns])
    tf.no_op("init")
    feeds = {"w:0": ["a", "größer", "x"], "h:0": ["p", "", "q"]}
    expected = run(layer, feeds)
    with Graph().as_default(), tf.Session() as session:
        import_graph_def(graph.as_graph_def(), name="")
        session.run("init")
        np.testing.assert_array_equal(session.run(layer.name, feeds), expected)


# -- errors


def test_out_of_range_identity_names_values() -> None:
    column = fc.categorical_column_with_identity("kind", 4)
    layer = fc.input_layer({"kind": [1, 9, -3, 12]}, [fc.indicator_column(column)])
    text = text_of(errors.InvalidArgumentError, lambda: run(layer))
    assert "indices[1] = 9 is not in [0, 4)" in text
    assert "feature 'kind' of categorical_column_with_identity('kind', 4)" in text
    assert "2 of 4 values outside it, for example 9, 12" in text
    assert "num_buckets=13 or more, or default_value=0" in text
    assert __file__ in text


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        (
            lambda: fc.categorical_column_with_vocabulary_list("x", ["a", "b"]),
            [1, 2, 3, 4],
            ("key: x", "column dtype: <dtype: 'string'>", "[1, 2, 3]", "as_string"),
        ),
        (
            lambda: fc.categorical_column_with_vocabulary_list("x", [1, 2]),
            ["1", "2"],
            ("column dtype: <dtype: 'int64'>", "[b'1', b'2']", "to_number"),
        ),
        (
            lambda: fc.categorical_column_with_hash_bucket("x", 3),
            [1.5],
            ("must be string or integer", "[1.5]", "bucketized_column"),
        ),
        (
            lambda: fc.crossed_column(["x", "y"], 3),
            [1.5],
            ("crossed_column 'x_X_y' cannot cross feature 'x'", "bucketized_column"),
        ),
    ],
)
def test_wrong_dtype_names_values_and_fix(column: Any, values: Any, words: tuple[str, ...]) -> None:
    features = {"x": values, "y": ["a"] * len(values)}
    text = text_of(ValueError, lambda: fc.linear_model(features, [column()]))
    assert all(word in text for word in words), text


def test_mismatched_weights_raise() -> None:
    column = fc.weighted_categorical_column(fc.categorical_column_with_identity("x", 4), "w")
    features = {
        "x": tf.SparseTensor([[0, 0], [1, 0]], [1, 2], [2, 1]),
        "w": tf.SparseTensor([[0, 0], [0, 1]], [1.0, 2.0], [2, 2]),
    }
    model = fc.linear_model(features, [column])
    assert "'w' does not have the indices" in text_of(
        errors.InvalidArgumentError, lambda: run(model)
    )
    features["w"] = tf.constant([[1.0], [2.0]])
    assert run(fc.linear_model(features, [column])).shape == (2, 1)
    features = {"x": tf.constant([[1]]), "w": tf.SparseTensor([[0, 0]], [1.0], [1, 1])}
    text = text_of(ValueError, lambda: fc.linear_model(features, [column]))
    assert "both sparse" in text


def test_non_categorical_column_raises() -> None:
    number = fc.numeric_column("x")
    assert "needs a categorical column" in text_of(
        ValueError, lambda: fc.embedding_column(number, 2)
    )
    assert "did you mean 'sqrtn'?" in text_of(
        ValueError,
        lambda: fc.embedding_column(fc.categorical_column_with_identity("x", 2), 2, "sqrt"),
    )


# -- vocabulary files


def test_changed_vocabulary_file_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("a\nb\nc", "utf-8")
    column = fc.categorical_column_with_vocabulary_file("x", path)
    assert (column.vocabulary_size, column.num_buckets) == (3, 3)
    assert run(ids_of(column, {"x": ["c", "a", "?"]})).tolist() == [[2], [0], [-1]]
    saved = fc.vocabulary_fingerprints()
    sha256 = hashlib.sha256(b"a\nb\nc").hexdigest()
    assert saved == {"x": {"path": str(path), "sha256": sha256}}
    path.write_text("b\na\nc", "utf-8")
    with Graph().as_default():
        text = text_of(errors.FailedPreconditionError, lambda: ids_of(column, {"x": ["c"]}))
        assert "column 'x' has changed since" in text
        assert sha256 in text
        again = fc.categorical_column_with_vocabulary_file("x", path)  # as another process does
        ids_of(again, {"x": ["c"]})
        text = text_of(
            errors.FailedPreconditionError, lambda: fc.check_vocabulary_fingerprints(saved)
        )
        assert "has changed since the model was built" in text
    fc.check_vocabulary_fingerprints(saved)  # the first graph's
    path.unlink()
    with Graph().as_default():
        assert "words.txt" in text_of(errors.NotFoundError, lambda: ids_of(column, {"x": ["c"]}))


def test_vocabulary_file_formats(tmp_path: Path) -> None:
    numbers = tmp_path / "numbers.txt"
    numbers.write_text("7\r\n5\r\n", "utf-8")
    column = fc.categorical_column_with_vocabulary_file("x", str(numbers), dtype=tf.int64)
    records = tmp_path / "words.tfrecord.gz"
    with tf.python_io.TFRecordWriter(str(records), "GZIP") as writer:
        for word in (b"a", "é".encode()):
            writer.write(word)
    packed = fc.categorical_column_with_vocabulary_file("w", str(records))
    raw = {"x": [5, 7, 6], "w": ["é", "a", ""]}
    found = run([ids_of(column, raw), ids_of(packed, raw)])
    assert found[0].tolist() == [[1], [0], [-1]]
    assert found[1].tolist() == [[1], [0], [ABSENT]]
    assert packed.num_buckets == 2
    twice = tmp_path / "twice.txt"
    twice.write_text("a\nb\na\n", "utf-8")
    column = fc.categorical_column_with_vocabulary_file("x", str(twice))
    text = text_of(errors.FailedPreconditionError, lambda: ids_of(column, {"x": ["a"]}))
    assert "lines 1 and 3" in text


# -- tables from checkpoints, lists, layers as objects


@pytest.mark.parametrize("parts", [1, 2])
def test_embedding_initialized_from_checkpoint(tmp_path: Path, parts: int) -> None:
    values = np.arange(10, dtype=np.float32).reshape(5, 2)
    with Graph().as_default(), tf.Session() as session:
        tf.get_variable("table", initializer=tf.constant(values))
        session.run(tf.global_variables_initializer())
        checkpoint = tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    column = fc.embedding_column(
        fc.categorical_column_with_identity("x", 5),
        2,
        ckpt_to_load_from=checkpoint,
        tensor_name_in_ckpt="table",
    )
    with tf.variable_scope("", partitioner=tf.fixed_size_partitioner(parts)):
        layer = fc.input_layer({"x": [4, 0, 2]}, [column])
    np.testing.assert_array_equal(run(layer), values[[4, 0, 2]])
    wrong = fc.embedding_column(column.categorical_column, 3, "mean", None, checkpoint, "table")
    assert "doesn't match" in text_of(ValueError, lambda: fc.input_layer({"x": [4]}, [wrong]))


def test_unknown_rank_features_are_vectors_or_rows() -> None:
    words, ids = tf.placeholder(tf.string), tf.placeholder(tf.int64)
    columns = [
        fc.categorical_column_with_hash_bucket("w", 9),
        fc.categorical_column_with_identity("i", 3),
        fc.crossed_column(["w", "i"], 9),
    ]
    model = fc.linear_model({"w": words, "i": ids}, columns)
    features = fc.Features({"w": words, "i": ids})
    fetches = [model, *(features.transformed(column).ids for column in columns)]
    rows = run(fetches, {words: [["a"], ["b"]], ids: [[0], [2]]})
    vectors = run(fetches, {words: ["a", "b"], ids: [0, 2]})
    for one, other in zip(rows, vectors, strict=True):
        assert one.shape == (2, 1)
        np.testing.assert_array_equal(one, other)


def test_lists_of_different_lengths_are_padded() -> None:
    column = fc.indicator_column(fc.categorical_column_with_vocabulary_list("x", ["a", "b"]))
    layer = fc.input_layer({"x": [["a"], [], ["b", "a", "b"]]}, [column])
    assert run(layer).tolist() == [[1, 0], [0, 0], [1, 2]]


def test_layer_objects_keep_variables() -> None:
    words = fc.categorical_column_with_hash_bucket("x", 4)
    layer = fc.DenseFeatures([fc.embedding_column(words, 2), fc.numeric_column("n")])
    other = fc.DenseFeatures([fc.embedding_column(words, 2)], trainable=False)
    assert (layer.name, other.name) == ("dense_features", "dense_features_1")
    assert layer.variables == []
    one, two = (layer({"x": [word], "n": [1.0]}) for word in ("a", "b"))
    assert [each.op.name for each in layer.weights] == [
        "dense_features/x_embedding/embedding_weights"
    ]
    other({"x": ["a"]})
    assert other.trainable_variables == []
    assert len(other.non_trainable_weights) == 1
    assert tf.trainable_variables() == layer.trainable_weights
    assert layer.compute_output_shape([None, 1]).as_list() == [None, 3]
    assert [each.shape for each in run([one, two])] == [(1, 3), (1, 3)]


def test_concatenated_sequences() -> None:
    steps = [[0, 0], [0, 1], [2, 0]]
    features = {
        "n": tf.SparseTensor(steps, [1.0, 2.0, 3.0], [3, 2]),
        "w": tf.SparseTensor(steps, ["a", "b", "a"], [3, 2]),
    }
    words = fc.sequence_categorical_column_with_vocabulary_list("w", ["a", "b"])
    columns = [fc.indicator_column(words), fc.sequence_numeric_column("n")]
    values, lengths = fc.sequence_input_layer(features, columns)
    context = fc.concatenate_context_input(tf.constant([[7.0], [8.0], [9.0]]), values)
    found, counted, whole = run([values, lengths, context])
    assert counted.tolist() == [2, 0, 1]
    assert found.tolist() == [
        [[1, 1, 0], [2, 0, 1]],
        [[0, 0, 0], [0, 0, 0]],
        [[3, 1, 0], [0, 0, 0]],
    ]
    assert whole[:, 1].tolist() == [[2, 0, 1, 7], [0, 0, 0, 8], [0, 0, 0, 9]]
    features["w"] = tf.SparseTensor(steps[:2], ["a", "b"], [3, 2])
    values, lengths = fc.sequence_input_layer(features, columns)
    with pytest.raises(errors.InvalidArgumentError, match="differ in length"):
        run([values, lengths])


def test_parse_specs() -> None:
    ages = fc.bucketized_column(fc.numeric_column("age"), [18.0])
    columns = [
        fc.crossed_column(["word", ages], 10),
        fc.embedding_column(fc.categorical_column_with_identity("id", 3), 2),
        fc.weighted_categorical_column(fc.categorical_column_with_hash_bucket("h", 3), "weights"),
    ]
    spec = fc.make_parse_example_spec(columns)
    assert spec == {
        "word": tf.io.VarLenFeature(tf.string),
        "age": tf.io.FixedLenFeature((1,), tf.float32),
        "id": tf.io.VarLenFeature(tf.int64),
        "h": tf.io.VarLenFeature(tf.string),
        "weights": tf.io.VarLenFeature(tf.float32),
    }
    whole = tf.estimator.classifier_parse_example_spec(columns, "y", weight_column="example_weight")
    assert whole["y"] == tf.io.FixedLenFeature((1,), tf.int64)
    assert whole["example_weight"] == tf.io.FixedLenFeature((1,), tf.float32)
    numbers = tf.estimator.regressor_parse_example_spec(columns, "y", label_dimension=2)
    assert numbers["y"] == tf.io.FixedLenFeature((2,), tf.float32)
    for arguments, words in (
        ({"label_key": "id"}, "label should not be used as feature"),
        ({"label_key": "y", "weight_column": "age"}, "weight_column should not be used"),
        ({"label_key": "y", "weight_column": 3}, "weight_column should be an instance"),
        ({"label_key": None}, "label_key should not be None"),
    ):
        text = text_of(
            ValueError, lambda given=arguments: fc.classifier_parse_example_spec(columns, **given)
        )
        assert words in text


# -- properties

bags = st.lists(st.lists(st.integers(-1, 4), max_size=5), min_size=1, max_size=6)
words = st.sampled_from([b"", b"a", "é".encode(), b"longer than eight", b"x" * 70])


def bag(rows: list[list[int]]) -> tuple[Any, Any, Any]:
    places = [[row, at] for row, each in enumerate(rows) for at in range(len(each))]
    values = np.array([value for each in rows for value in each], np.int64)
    shape = np.array([len(rows), max(map(len, rows))], np.int64)
    return np.array(places, np.int64).reshape(-1, 2), values, shape


@settings(max_examples=50, deadline=None)
@given(bags)
def test_sparse_rows_keep_values_and_order(rows: list[list[int]]) -> None:
    found = laid_out(*bag(rows), ABSENT)
    assert [[value for value in row if value != ABSENT] for row in found.tolist()] == rows
    width = found.shape[1]
    assert width & (width - 1) == 0
    assert width < 2 * max(1, *map(len, rows))
    order = np.random.RandomState(0).permutation(len(bag(rows)[1]))
    places, values, shape = bag(rows)
    mixed = laid_out(places[order], values[order], shape, ABSENT)
    assert [sorted(row) for row in mixed.tolist()] == [sorted(row) for row in found.tolist()]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(words, min_size=2, max_size=2), min_size=1, max_size=8), st.data())
def test_crosses_hash_combinations(rows: list[list[bytes]], data: Any) -> None:
    left = np.empty((len(rows), 2), object)
    left[:] = rows
    strategy = st.lists(st.integers(-(1 << 63) + 1, (1 << 63) - 1), min_size=len(rows))
    right = np.array(data.draw(strategy)[: len(rows)], np.int64)
    attrs = {"num_buckets": 97, "hash_key": 5, "expand": (0, 1), "mixed": (False, False)}
    found = lookup("CrossedIds").kernel(left, right, **attrs)
    for row, number, ids in zip(rows, right, found, strict=True):
        expected = []
        for word in row:
            first = farmhash.fingerprint_cat64(np.uint64(5), farmhash.fingerprint64([word])[0])
            joined = farmhash.fingerprint_cat64(first, number.view(np.uint64))
            expected.append(int(joined) % 97)
        assert ids.tolist() == expected
    deep = lookup("CrossedIds").kernel(left[None], right[None], **attrs)  # any leading axes
    np.testing.assert_array_equal(deep[0], found)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(words, max_size=9), max_size=4))
def test_cached_hashes_match_function(batches: list[list[bytes]]) -> None:
    kept = KnownHashes(farmhash.fingerprint64)
    for batch in batches:
        np.testing.assert_array_equal(kept(batch), farmhash.fingerprint64(batch))


def reference(table: NDArray[Any], ids: Any, weights: Any, combiner: str) -> NDArray[Any]:
    rows = []
    for each, weight in zip(ids, weights, strict=True):
        use = [(i, w) for i, w in zip(each, weight, strict=True) if i >= 0]
        use = use if combiner == "sum" else [(i, w) for i, w in use if w > 0]
        total = sum((table[i] * w for i, w in use), np.zeros(table.shape[1]))
        by = {
            "sum": 1.0,
            "mean": sum(w for _, w in use),
            "sqrtn": np.sqrt(sum(w * w for _, w in use)),
        }[combiner]
        rows.append(total / by if use else total)
    return np.array(rows)


@pytest.mark.slow
def test_embedding_combiners_match_formulas() -> None:
    rng = np.random.default_rng(0)
    ids = tf.placeholder(tf.int64, [None, 4])
    given_weights = tf.placeholder(tf.float32, [None, 4])
    column = fc.weighted_categorical_column(fc.categorical_column_with_identity("x", 6), "w")
    raw = {"x": ids, "w": given_weights}
    layers = {
        combiner: fc.input_layer(raw, [fc.embedding_column(column, 3, combiner)])
        for combiner in ("sum", "mean", "sqrtn")
    }
    tables = tf.trainable_variables()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = dict(zip(layers, session.run(tables), strict=True))
        for _ in range(10):
            some = rng.integers(-2, 6, (5, 4))
            weight = rng.integers(-1, 4, (5, 4)).astype(np.float32)
            found = session.run(layers, {ids: some, given_weights: weight})
            for combiner, result in found.items():
                expected = reference(values[combiner], some, weight, combiner)
                np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def increased(numbers: Any) -> Any:
    return numbers + 2.0


def test_configs_match_tensorflow() -> None:
    ids = tf.feature_column.categorical_column_with_identity("ids", 3)
    number = tf.feature_column.numeric_column("price", shape=[1], normalizer_fn=increased)
    config = {"key": "price", "shape": (1,), "default_value": None, "dtype": "float32"}
    assert number.get_config() == {**config, "normalizer_fn": "increased"}
    assert ids.get_config() == {"key": "ids", "number_buckets": 3, "default_value": None}
    known = {"increased": increased}
    assert type(number).from_config(number.get_config(), custom_objects=known) == number
    with pytest.raises(ValueError, match="'increased'"):
        type(number).from_config(number.get_config())
    crossed = tf.feature_column.crossed_column([ids, "key"], 15)
    (same,) = deserialize_feature_columns(serialize_feature_columns([crossed]))
    assert same == crossed


def test_columns_are_serialized_once() -> None:
    ids = tf.feature_column.categorical_column_with_identity("ids", 3)
    both = [ids, tf.feature_column.indicator_column(ids)]
    plain, indicator = deserialize_feature_columns(serialize_feature_columns(both))
    assert indicator.categorical_column is plain
    assert serialize_feature_column("key") == deserialize_feature_column("key") == "key"
    with pytest.raises(ValueError, match="Instance: 3 is not a FeatureColumn"):
        serialize_feature_column(3)
    with pytest.raises(ValueError, match="Unknown feature_column_v2: NoColumn"):
        deserialize_feature_column({"class_name": "NoColumn", "config": {}})


def test_run_time_rank_features_have_rows() -> None:
    numbers = tf.placeholder(tf.float32)
    rows = fc.Features({"a": numbers}).get("a")
    with tf.Session() as session:
        assert session.run(rows, {numbers: [1.0, 2.0]}).tolist() == [[1.0], [2.0]]
        assert session.run(rows, {numbers: [[1.0, 2.0]]}).tolist() == [[1.0, 2.0]]
