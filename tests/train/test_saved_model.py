"""SavedModels: TensorFlow loads ours, we load TensorFlow's, and invalid ones raise.

`tests/golden/saved_models` has the same models as written by TensorFlow 2.15.1 and by this package,
`saved_model.json` what TensorFlow's loader gives for both.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.interop.graphdef_export import export_graph
from estimatorkit.storage import atomic_files as durable
from estimatorkit.storage.checkpoint import read_checkpoint, read_contents
from estimatorkit.storage.tensor_bundle import TensorBundle
from estimatorkit.storage.tensor_bundle_writer import write_bundle
from estimatorkit.storage.tensorflow_checkpoint import verify_tensorflow
from estimatorkit.train.saving.saved_model_files import read_saved_model, saved_model_class
from tests.estimator.graph_checks import problems
from tests.golden.golden_values import plain
from tests.golden.snippets_saved_model import MODELS, OURS, VOCABULARY, export, predict
from tests.sweep import sweep

GOLDEN = Path(__file__).parents[1] / "golden"
VALUES = json.loads((GOLDEN / "saved_model.json").read_text("utf-8"))
FOLDERS = GOLDEN / "saved_models"
X = np.array([[1.0, 2.0], [3.0, -4.0]], np.float32)


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with tf.Graph().as_default():
        yield


def assert_equal(found: Any, expected: Any) -> None:
    """Values that a session gave, and values of the golden file; numbers to 1e-5."""
    if "values" not in expected or "indices" in expected:
        parts = found._asdict() if hasattr(found, "_asdict") else found
        assert set(parts) == set(expected)
        for key, each in expected.items():
            assert_equal(parts[key], each)
        return
    given = found if isinstance(found, dict) else plain(found)
    assert (given["dtype"], given["shape"]) == (expected["dtype"], expected["shape"])
    if given["dtype"].startswith("float"):
        numbers = [[float(each) for each in side["values"]] for side in (given, expected)]
        np.testing.assert_allclose(*numbers, rtol=1e-5, atol=1e-5)
    else:
        assert given["values"] == expected["values"]


# -- TensorFlow and back


@sweep(
    ("writer", "name"),
    [
        *(("tensorflow", name) for name in MODELS),
        *(("estimatorkit", name) for name in (*MODELS, *OURS)),
    ],
    quick=2,
)
def test_loaded_models_compute_the_same(writer: str, name: str) -> None:
    found = predict(tf, name, str(FOLDERS / f"{writer}_{name}"))
    assert_equal(found, VALUES[writer][name])


@pytest.mark.parametrize("name", MODELS)
def test_loaded_operation_names_have_no_gaps(name: str) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], FOLDERS / f"tensorflow_{name}")
    assert not [op.name for op in graph.get_operations() if "//" in op.name]


@sweep("name", [*MODELS, *OURS], quick=1)
def test_exports_match_those_tensorflow_loaded(name: str, tmp_path: Path) -> None:
    Path(VOCABULARY[0]).write_bytes(VOCABULARY[1])
    found = export(tf, name, str(tmp_path / "model"))
    expected = FOLDERS / f"estimatorkit_{name}"
    files = sorted(path.relative_to(expected) for path in expected.rglob("*") if path.is_file())
    written = tmp_path / "model"
    assert files == sorted(
        path.relative_to(written) for path in written.rglob("*") if path.is_file()
    )
    for file in files:
        same = (written / file).read_bytes() == (expected / file).read_bytes()
        assert same, f"{file} changed: run tests.golden.write_saved_models, then make_saved_model"
    # And TensorFlow computed with it what this package did, and what its own export does.
    assert_equal(found, VALUES["estimatorkit"][name])
    for key, value in VALUES["tensorflow"].get(name, {}).items():
        assert_equal(value, VALUES["estimatorkit"][name][key])


def test_loaded_model_is_exported_again(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        folder = FOLDERS / "tensorflow_vocabulary"
        model = tf.saved_model.loader.load(session, ["serve"], folder)
        builder = tf.saved_model.Builder(tmp_path / "model")
        Path(VOCABULARY[0]).write_bytes(VOCABULARY[1])  # where the model's own path leads
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            dict(model.signature_def),
            assets_collection=graph.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
            main_op=graph.get_collection("saved_model_main_op")[0],
        )
        builder.save()
    found = predict(tf, "vocabulary", str(tmp_path / "model"))
    assert_equal(found, VALUES["tensorflow"]["vocabulary"])


# -- the builder


def model() -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.get_variable("w", initializer=np.array([[2.0], [1.0]], np.float32))
    return x, tf.matmul(x, w, name="y")


def saved(path: Path, **kwargs: Any) -> Any:
    x, y = model()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        builder = tf.saved_model.builder.SavedModelBuilder(path)
        signature = tf.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder.add_meta_graph_and_variables(session, ["serve"], {"s": signature}, **kwargs)
    return builder


def loaded(path: Path, *tags: str, scope: str | None = None) -> Any:
    prefix = f"{scope}/" if scope else ""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, tags or ["serve"], path, import_scope=scope)
        return session.run(f"{prefix}y:0", {f"{prefix}x:0": X}).tolist()


def test_graphs_share_variables(tmp_path: Path) -> None:
    builder = saved(tmp_path / "model")
    with tf.Graph().as_default():
        x, y = model()
        twice = tf.multiply(y, 2.0, name="twice")
        signature = tf.saved_model.predict_signature_def({"x": x}, {"twice": twice})
        builder.add_meta_graph(["serve", "gpu"], {"s": signature}, clear_devices=True)
    builder.save()
    builder.save(as_text=True)
    assert sorted(os.listdir(tmp_path / "model")) == [
        *("saved_model.pb", "saved_model.pbtxt", "variables")
    ]
    assert loaded(tmp_path / "model", "gpu", "serve") == [[4.0], [2.0]]
    with pytest.raises(RuntimeError, match=r"(?s)tags 'gpu' could not be found.*serve") as error:
        loaded(tmp_path / "model", "gpu")
    assert "'gpu,serve'" in str(error.value)


def test_failed_export_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = saved(tmp_path / "model")

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("estimatorkit.train.saving.saved_model_builder.write_bundle", refuse)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="could not export the model"):
        builder.save()
    assert os.listdir(tmp_path) == []
    monkeypatch.undo()
    os.mkdir(tmp_path / "model")
    (tmp_path / "model" / "other").write_bytes(b"")
    with pytest.raises(tf.errors.FailedPreconditionError):
        builder.save()
    assert os.listdir(tmp_path / "model") == ["other"]
    assert not any(durable.is_temporary(name) for name in os.listdir(tmp_path))


def test_builder_errors(tmp_path: Path) -> None:
    builder = tf.saved_model.Builder(tmp_path / "model")
    with pytest.raises(AssertionError, match="has not been saved yet"):
        builder.add_meta_graph(["serve"])
    builder = saved(tmp_path / "model")
    with tf.Session() as session:
        with pytest.raises(AssertionError, match="has already been saved"):
            builder.add_meta_graph_and_variables(session, ["serve"])
        other = tf.saved_model.Builder(tmp_path / "other")
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value w"):
            other.add_meta_graph_and_variables(session, ["serve"])
        session.run(tf.global_variables_initializer())
        empty = tf.saved_model.build_signature_def(
            {"x": type(tf.saved_model.build_tensor_info(tf.constant(1.0)))()}
        )
        with pytest.raises(AssertionError, match="must have one of the 'encoding' fields"):
            other.add_meta_graph_and_variables(session, ["serve"], {"a": empty})
        with pytest.raises(TypeError, match="to be an Operation but got type"):
            other.add_meta_graph_and_variables(session, ["serve"], main_op="init")
        no_file = tf.constant("nowhere.txt")
        with pytest.raises(ValueError, match="is not a file"):
            other.add_meta_graph_and_variables(session, ["serve"], assets_collection=[no_file])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_bytes(b"")
    with pytest.raises(AssertionError, match="already exists, and isn't empty"):
        tf.saved_model.Builder(tmp_path / "full")


def test_assets_of_same_name(tmp_path: Path) -> None:
    paths = []
    for folder, word in (("a", b"one\n"), ("b", b"two\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "words.txt").write_bytes(word)
        paths.append(str(tmp_path / folder / "words.txt"))
    words = tf.constant(["one", "two"])
    for name, path in zip("yz", paths, strict=True):
        file = tf.lookup.TextFileInitializer(path, tf.string, -2, tf.int64, -1)
        tf.identity(tf.lookup.StaticHashTable(file, -1).lookup(words), name=name)
    with tf.Session() as session:
        builder = tf.saved_model.Builder(tmp_path / "model")
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
            main_op=tf.tables_initializer(),
        )
        builder.save()
    assert sorted(os.listdir(tmp_path / "model" / "assets")) == ["words.txt", "words.txt_1"]
    for folder in "ab":
        shutil.rmtree(tmp_path / folder)
    os.rename(tmp_path / "model", tmp_path / "moved")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], tmp_path / "moved")
        assert [each.tolist() for each in session.run(["y:0", "z:0"])] == [[0, -1], [-1, 0]]


# -- graphs in TensorFlow's node types


def test_operations_without_node_are_omitted() -> None:
    _, y = model()
    w = tf.trainable_variables()[0]
    train = tf.train.AdamOptimizer().minimize(tf.reduce_mean(tf.square(y)), name="train")
    exported = export_graph(tf.get_default_graph())
    assert exported.has(y)
    assert exported.has(w.initializer)
    assert not exported.has(train)
    assert any("no node type" in problem for problem in exported.missing.values())
    types = {node.op for node in exported.graph_def.node}
    assert {"MatMul", "VarHandleOp", "AssignVariableOp", "ReadVariableOp"} <= types
    assert "VectorJacobianProduct" not in types


def test_random_seeds_are_written() -> None:
    tf.set_random_seed(4)
    tf.random_uniform([2], seed=5, name="uniform")
    exported = export_graph(tf.get_default_graph())
    assert not exported.missing
    seeds = {
        node.name: (node.attr["seed"].i, node.attr["seed2"].i)
        for node in exported.graph_def.node
        if "seed" in node.attr
    }
    assert seeds["uniform/RandomUniform"] == (4, 5)


def test_signature_without_nodes_is_omitted_for_tensorflow(tmp_path: Path, caplog: Any) -> None:
    x, y = model()
    slope = tf.identity(tf.gradients(y * y, x)[0], name="slope")
    signature = tf.saved_model.predict_signature_def
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        expected = session.run(slope, {x: X}).tolist()
        builder = tf.saved_model.Builder(tmp_path / "model")
        signatures = {
            "y": signature({"x": x}, {"y": y}),
            "slope": signature({"x": x}, {"z": slope}),
            "again": signature({"x": x}, {"other": slope}),
        }
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
        builder.save()
    assert caplog.text.count("TensorFlow cannot load") == 1
    assert "load 'slope', 'again', so its version of the model omits them: " in caplog.text
    (written,) = read_saved_model(tmp_path / "model").meta_graphs
    assert list(written.signature_def) == ["y"]
    assert problems(written.graph_def) == []
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.saved_model.loader.load(session, ["serve"], tmp_path / "model")
        assert set(found.signature_def) == {"y", "slope", "again"}
        assert session.run("slope:0", {"x:0": X}).tolist() == expected


def test_variables_whose_initializers_have_no_node(tmp_path: Path) -> None:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    first = tf.get_variable("first", initializer=[[1.0], [2.0]])
    second = tf.get_variable("second", initializer=first.initialized_value())
    tf.matmul(x, second, name="y")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        builder = tf.saved_model.Builder(tmp_path / "model")
        builder.add_meta_graph_and_variables(session, ["serve"])
        builder.save()
    assert loaded(tmp_path / "model") == [[5.0], [-5.0]]


def test_signatures_with_unknown_nodes_are_named(tmp_path: Path, caplog: Any) -> None:
    saved(tmp_path / "model").save()
    model = read_saved_model(tmp_path / "model")
    for node in model.meta_graphs[0].graph_def.node:
        if node.name == "y":
            node.op = "MatMulOfTomorrow"
    (tmp_path / "model" / "saved_model.pb").write_bytes(model.SerializeToString())
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], tmp_path / "model")
    assert "not supported (MatMulOfTomorrow)" in caplog.text
    assert "The signature 's' lacks the outputs y." in caplog.text


def test_sparse_features_keep_order(tmp_path: Path) -> None:
    """TensorFlow's node gives all indices first; several sparse features are put in order."""
    serialized = tf.placeholder(tf.string, [None], name="serialized")
    kinds = {"a": tf.int64, "b": tf.string, "c": tf.float32}
    parsed = tf.parse_example(serialized, {key: tf.VarLenFeature(kinds[key]) for key in kinds})
    parsed["doubled"] = tf.identity(parsed["c"].values * 2.0)
    train = tf.train
    features = {
        "a": train.Feature(int64_list=train.Int64List(value=[1, 2])),
        "b": train.Feature(bytes_list=train.BytesList(value=[b"x"])),
        "c": train.Feature(float_list=train.FloatList(value=[0.5, 1.5, 2.5])),
    }
    text = train.Example(features=train.Features(feature=features)).SerializeToString()
    with tf.Session() as session:
        tf.saved_model.simple_save(session, "model", {"serialized": serialized}, parsed)
    for _ in range(2):  # exported again as it was loaded
        with tf.Graph().as_default() as graph, tf.Session() as session:
            model = tf.saved_model.loader.load(session, ["serve"], "model")
            signature = model.signature_def["serving_default"]
            get = tf.saved_model.get_tensor_from_tensor_info
            outputs = {key: get(info, graph) for key, info in signature.outputs.items()}
            feed = get(signature.inputs["serialized"], graph)
            found = session.run(outputs, {feed: [text, b""]})
            assert found["a"].values.tolist() == [1, 2]
            assert found["b"].values.tolist() == [b"x"]
            assert found["b"].dense_shape.tolist() == [2, 1]
            assert found["c"].indices.tolist() == [[0, 0], [0, 1], [0, 2]]
            assert found["doubled"].tolist() == [1.0, 3.0, 5.0]
            shutil.rmtree("model")
            tf.saved_model.simple_save(session, "model", {"serialized": feed}, outputs)


# -- damage


def test_not_a_saved_model(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="SavedModel file does not exist at: "):
        loaded(tmp_path / "nowhere")
    with pytest.raises(OSError, match="an empty folder"):
        loaded(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\xff\xff\xff", b"\x12\x05abc", b"\x08\x01"])
def test_damaged_proto(tmp_path: Path, content: bytes) -> None:
    for name in ("saved_model.pbtxt", "saved_model.pb"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(OSError, match="is damaged or not a SavedModel"):
            loaded(tmp_path)


def lose_the_main_op(graph: Any) -> None:
    graph.collection_def["saved_model_main_op"].node_list.value[0] = "nowhere"


def spoil_a_variable(graph: Any) -> None:
    graph.collection_def["variables"].bytes_list.value[0] = b"\xff"


def lose_the_asset(graph: Any) -> None:
    graph.asset_file_def[0].tensor_info.name = "nowhere:0"


@pytest.mark.parametrize("damage", [lose_the_main_op, spoil_a_variable, lose_the_asset])
def test_damaged_names(tmp_path: Path, damage: Any) -> None:
    shutil.copytree(FOLDERS / "estimatorkit_vocabulary", tmp_path / "model")
    model = read_saved_model(tmp_path / "model")
    damage(model.meta_graphs[0])
    (tmp_path / "model" / "saved_model.pb").write_bytes(model.SerializeToString())
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.DataLossError, match=r"The SavedModel in '.*' is damaged"),
    ):
        tf.saved_model.loader.load(session, ["serve"], tmp_path / "model")


def test_damaged_variables(tmp_path: Path) -> None:
    saved(tmp_path / "model").save()
    data = tmp_path / "model" / "variables" / "variables.data-00000-of-00001"
    content = bytearray(data.read_bytes())
    content[0] ^= 1
    data.write_bytes(content)
    with pytest.raises(tf.errors.DataLossError, match="'w' is damaged"):
        loaded(tmp_path / "model")
    data.unlink()
    with pytest.raises(tf.errors.DataLossError, match="the file of tensor 'w' is missing"):
        loaded(tmp_path / "model")


@pytest.mark.parametrize(
    "name", ["../secret.txt", "/etc/hostname", "..\\secret.txt", "link.txt", "missing.txt", ""]
)
def test_assets_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(FOLDERS / "estimatorkit_vocabulary", folder)
    (folder / "secret.txt").write_bytes(b"secret\n")
    os.symlink(folder / "secret.txt", folder / "assets" / "link.txt")
    model = read_saved_model(folder)
    model.meta_graphs[0].asset_file_def[0].filename = name
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.DataLossError, match=r"leads out of|there is no such file"),
    ):
        tf.saved_model.loader.load(session, ["serve"], folder)
    assert tf.get_default_graph().get_operations() == []


def test_text_proto() -> None:
    model = saved_model_class()(saved_model_schema_version=1)
    model.meta_graphs.add().meta_info_def.tags.append("serve")
    assert str(model).split() == [
        *("saved_model_schema_version:", "1", "meta_graphs", "{", "meta_info_def", "{"),
        *("tags:", '"serve"', "}", "}"),
    ]


# -- bundles


def test_bundle_round_trip(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tensors: dict[str, Any] = {
        f"layer_{number:03d}/kernel": rng.normal(size=[number % 5, 3]).astype(np.float32)
        for number in range(300)  # several blocks
    }
    tensors["scalar"] = np.array(7, np.int64)
    tensors["flags"] = np.array([True, False])
    tensors["words"] = np.array([[b"a", b""], ["é".encode(), b"x" * 300]], object)
    tensors["half"] = np.arange(3).astype(tf.bfloat16.as_numpy_dtype)
    write_bundle(tmp_path / "variables", tensors)
    assert verify_tensorflow(str(tmp_path / "variables"))
    assert set(read_contents(tmp_path / "variables")) == set(tensors)
    found = read_checkpoint(tmp_path / "variables").tensors
    for name, value in tensors.items():
        assert found[name].dtype == value.dtype
        assert found[name].tolist() == value.tolist()
    write_bundle(tmp_path / "empty", {})
    assert TensorBundle(str(tmp_path / "empty")).tensors == {}


# -- signatures


def test_signatures() -> None:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    text = tf.placeholder(tf.string, [None], name="text")
    sparse = tf.sparse_placeholder(tf.int64, [None, 3], name="sparse")
    utils = tf.saved_model.utils
    for tensor in (x, sparse):
        info = utils.build_tensor_info(tensor)
        found = utils.get_tensor_from_tensor_info(info)
        assert type(found) is type(tensor)
        assert [dim.size for dim in info.tensor_shape.dim] == tensor.shape.as_list() or [-1, 3]
    assert utils.get_tensor_from_tensor_info(utils.build_tensor_info(x)) is x
    defs = tf.saved_model.signature_def_utils
    predict_def = defs.predict_signature_def({"a": x}, {"b": text})
    regress = defs.regression_signature_def(text, x)
    classify = defs.classification_signature_def(text, text, x)
    for each, method in ((predict_def, "predict"), (regress, "regress"), (classify, "classify")):
        assert each.method_name == f"tensorflow/serving/{method}"
        assert tf.saved_model.is_valid_signature(each)
    assert not tf.saved_model.is_valid_signature(defs.build_signature_def())
    assert classify.outputs["classes"].name == "text:0"
    assert tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY == "serving_default"
    assert tf.saved_model.tag_constants.SERVING == "serve"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda d, x, s: d.predict_signature_def({}, {"a": x}), "Prediction `inputs` cannot"),
        (lambda d, x, s: d.predict_signature_def({"a": x}, None), "Prediction `outputs` cannot"),
        (lambda d, x, s: d.regression_signature_def(None, x), "`examples` cannot be None"),
        (lambda d, x, s: d.regression_signature_def(s, None), "`predictions` cannot be None"),
        (lambda d, x, s: d.regression_signature_def(x, x), "must be of type string"),
        (lambda d, x, s: d.regression_signature_def(s, s), "must be of type float"),
        (lambda d, x, s: d.classification_signature_def(None, s, x), "`examples` cannot be None"),
        (lambda d, x, s: d.classification_signature_def(s, None, None), "cannot both be None"),
        (lambda d, x, s: d.classification_signature_def(x, s, x), "must be of type string"),
        (lambda d, x, s: d.classification_signature_def(s, x, x), "must be of type string"),
        (lambda d, x, s: d.classification_signature_def(s, s, s), "must be a float Tensor"),
    ],
)
def test_signature_errors(make: Any, problem: str) -> None:
    x, s = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.string, [None])
    with pytest.raises(ValueError, match=problem):
        make(tf.saved_model.signature_def_utils, x, s)
    with pytest.raises(TypeError, match="a TensorInfo describes a tensor"):
        tf.saved_model.utils.build_tensor_info(3)


def test_second_legacy_init_op_raises(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        first, second = tf.no_op(), tf.no_op()
        tf.add_to_collection("legacy_init_op", first)
        builder = tf.saved_model.Builder(str(tmp_path / "model"))
        with pytest.raises(ValueError, match="already contains one or more legacy init ops"):
            builder.add_meta_graph_and_variables(session, ["foo"], legacy_init_op=second)
