"""Crafted exports are refused, and nothing outside their folder is touched.

The sha256 of files tell of accidents; whoever makes up a model writes those that fit (`_sign`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import estimatorkit as tf
from estimatorkit.core import errors
from estimatorkit.estimator.serving.exported_files import SIGNATURE
from estimatorkit.estimator.serving.exported_module import read_module
from estimatorkit.estimator.serving.predictor import load_predictor
from estimatorkit.interop import attr_values
from estimatorkit.interop.graphdef import node_def_of
from estimatorkit.ops.files.files import write_file
from estimatorkit.storage import tensor_proto
from estimatorkit.storage.checkpoint_format import read_tensors, write_contents
from estimatorkit.storage.checkpoint_manifest import read_manifest
from tests.estimator.exported import batch, shared_export


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A copy of an export."""
    return Path(shutil.copytree(shared_export(), tmp_path / "model"))


def _sign(model: Path, change: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
    """Changes `signature.json`, and lets it tell the truth about the other files."""
    path = model / SIGNATURE
    content = json.loads(path.read_text())
    for name, entry in content["files"].items():
        data = (model / name).read_bytes()
        entry |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    change(content)
    path.write_text(json.dumps(content))


def _ask(model: Path) -> Any:
    with load_predictor(model) as predictor:
        return predictor(batch(0, 1))


def _refused(model: Path, words: str = "damaged|cannot be read") -> None:
    with pytest.raises(errors.DataLossError, match=words):
        _ask(model)


def _graph(model: Path) -> Any:
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    return GraphDef.FromString((model / "serving" / "graph-0.pb").read_bytes())


def _put_graph(model: Path, graph: Any) -> None:
    (model / "serving" / "graph-0.pb").write_bytes(graph.SerializeToString())
    _sign(model)


# -- files


def test_re_signed_export_is_read(model: Path) -> None:
    _sign(model)
    assert _ask(model)["logits"].shape == (1, 3)


@pytest.mark.parametrize(
    "name",
    [
        *("signature.json", "serving/graph-0.pb", "serving/module-0.stablehlo"),
        *("serving/weights/MANIFEST.json", "serving/weights/variables-00000-of-00001.safetensors"),
    ],
)
def test_every_file_is_checked(model: Path, name: str) -> None:
    path = model / name
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    if name == SIGNATURE:  # it has no sha256: every change is checked by what it means
        path.write_bytes(data[:middle])
    _refused(model)
    path.write_bytes(data[:-1])
    if name != SIGNATURE:
        _refused(model)
    path.unlink()
    with pytest.raises((errors.DataLossError, errors.NotFoundError)):
        _ask(model)


@pytest.mark.parametrize(
    "name",
    [
        *("signature.json", "serving/graph-0.pb", "serving/module-0.stablehlo", "serving"),
        *("serving/weights", "serving/weights/MANIFEST.json"),
        "serving/weights/variables-00000-of-00001.safetensors",
    ],
)
def test_links_are_not_followed(model: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    os.rename(model / name, outside)
    (model / name).symlink_to(outside)
    _refused(model, "link|plain")


def test_pipes_and_folders_are_refused(model: Path) -> None:
    (model / "serving" / "graph-0.pb").unlink()
    os.mkfifo(model / "serving" / "graph-0.pb")
    _refused(model, "not a regular file")


# -- signature.json


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"format_version": 1, "format_version": 1}',
        "\ud800",
        "{",
    ],
)
def test_invalid_json_is_refused(model: Path, text: str) -> None:
    (model / SIGNATURE).write_bytes(text.encode("utf-8", "surrogatepass"))
    _refused(model)


def test_oversized_signature_is_not_read(model: Path) -> None:
    with open(model / SIGNATURE, "ab") as file:
        file.truncate(1 << 40)
    _refused(model, "too large")


def _set(*keys: Any) -> Callable[[dict[str, Any]], None]:
    *path, last, value = keys

    def change(content: Any) -> None:
        for key in path:
            content = content[key]
        content[last] = value

    return change


_X = ("signatures", "predict", "inputs", "x")


@pytest.mark.parametrize(
    "change",
    [
        _set("files", "../../x", {"size": 1, "sha256": "0" * 64}),
        _set("files", "/etc/passwd", {"size": 1, "sha256": "0" * 64}),
        _set("files", "serving/graph-0.pb", "size", -1),
        _set("files", "serving/graph-0.pb", "more", 1),
        _set("graphs", 0, "modules", {"serving_module": "../../x.stablehlo"}),
        _set("graphs", 0, "modules", {"serving_module": "module-9.stablehlo"}),
        _set("graphs", 0, "modules", {"other": "module-0.stablehlo"}),
        _set("graphs", 0, "modules", {"serving_input": "module-0.stablehlo"}),
        _set("graphs", 0, "arrays", {"serving_input:value": "../../x"}),
        _set("graphs", 0, "variables", ["../../x"]),
        _set("graphs", 0, "initializers", ["../../x"]),
        _set("graphs", 0, "rows_alone", 1),
        _set("signatures", "predict", "graph", 7),
        _set("signatures", "predict", "graph", -1),
        _set("signatures", "predict", "outputs", []),
        _set(*_X, "shape", [-1, 3]),
        _set(*_X, "shape", [float("nan"), 3]),
        _set(*_X, "shape", [None] * 1000),
        _set(*_X, "dtype", "resource"),
        _set(*_X, "dtype", "os:system"),
        _set(*_X, "tensor", "../../x"),
        _set(*_X, "tensor", "missing:0"),
        _set("format_version", "1"),
        _set("format_version", 0),
        _set("code", "import os"),
    ],
)
def test_invalid_signatures_are_refused(model: Path, change: Any) -> None:
    _sign(model, change)
    with (
        pytest.raises(errors.DataLossError),
        load_predictor(model) as predictor,
    ):
        predictor(batch(0, 1), "predict")


def test_newer_versions_are_named(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _sign(model, _set("format_version", 2))
    with pytest.raises(errors.FailedPreconditionError, match=r"newer estimatorkit(.|\n)*'jax': "):
        _ask(model)
    _sign(model, _set("format_version", 1))
    with monkeypatch.context() as patch:
        read_module.cache_clear()
        patch.setattr(jax.export, "maximum_supported_calling_convention_version", 8)
        patch.setattr(jax.export, "minimum_supported_calling_convention_version", 7)
        words = rf"cannot run(.|\n)*7 to 8 \(jax {jax.__version__}\)(.|\n)*convention [0-9]+"
        with pytest.raises(errors.FailedPreconditionError, match=words):
            _ask(model)
    read_module.cache_clear()


def test_other_platforms_are_named(model: Path) -> None:
    program = jax.export.export(jax.jit(lambda x: [x[0]]), platforms=["tpu"])(
        [jax.ShapeDtypeStruct((2,), np.float32)]
    )
    with pytest.raises(errors.FailedPreconditionError, match="no program for cpu"):
        read_module(bytes(program.serialize()))


# -- weights


def _weights(model: Path, change: Callable[[dict[str, Any]], None]) -> None:
    folder = model / "serving" / "weights"
    manifest = read_manifest(folder)
    tensors = dict(read_tensors(folder, manifest, manifest.tensors))
    change(tensors)
    shutil.rmtree(folder)
    folder.mkdir()
    write_contents(folder, tensors, {}, 1 << 30)


def test_weights_must_fit_graph(model: Path, tmp_path: Path) -> None:
    with load_predictor(model) as predictor:
        name = predictor._contents.graphs[0].variables[0]
    _weights(model, lambda tensors: tensors.update({"variable/../../x": np.zeros(3)}))
    _ask(model)  # a name is a name: it is no path, and nobody asks for it
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model"]
    _weights(model, lambda tensors: tensors.update({f"variable/{name}": np.zeros(7)}))
    _refused(model, "not of shape")
    _weights(model, lambda tensors: tensors.pop(f"variable/{name}"))
    _refused(model, "there is no")


def test_tensors_larger_than_file_allocate_nothing(model: Path) -> None:
    folder = model / "serving" / "weights"
    shard = "variables-00000-of-00001.safetensors"
    for header in (
        (1 << 60).to_bytes(8, "little") + b"{}",
        b'{"a":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}',
    ):
        data = header if header[7] else len(header).to_bytes(8, "little") + header
        data = header if header.startswith(b"\0") else data
        (folder / shard).write_bytes(data)
        path = folder / "MANIFEST.json"
        content = json.loads(path.read_text())
        content.pop("manifest_sha256")
        content["files"][shard] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        sealed = json.dumps(content, indent=1).encode().removesuffix(b"\n}")
        seal = b',\n "manifest_sha256": "%s"\n}\n' % hashlib.sha256(sealed).hexdigest().encode()
        path.write_bytes(sealed + seal)
        _refused(model, "not a valid safetensors file")


# -- graphs and programs


def _with_node(model: Path, node: Any) -> None:
    graph = _graph(model)
    graph.node.append(node)
    _put_graph(model, graph)


def test_operations_with_effects_are_refused(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "written"
    with tf.Graph().as_default():
        name = tf.constant(str(target))
        nodes = {
            "WriteFile": node_def_of(write_file(name, tf.constant("x"))),
            "ReadFile": node_def_of(tf.read_file(name).op),
            "MatchingFiles": node_def_of(tf.matching_files(name).op),
        }
        tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                "http://example.com/words.txt",
                *(tf.string, tf.lookup.TextFileIndex.WHOLE_LINE),
                *(tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER),
            ),
            -1,
        )
        made = tf.tables_initializer().control_inputs[0]
        nodes["InitializeTableFromTextFileV2"] = node_def_of(made)
    nodes["PyFunc"] = type(made_node := nodes["ReadFile"])(name="python", op="PyFunc")
    nodes["NoSuchOp"] = type(made_node)(name="other", op="NoSuchOp")
    original = (model / "serving" / "graph-0.pb").read_bytes()
    for kind, node in nodes.items():
        _with_node(model, node)
        _refused(model, rf"a type that no exported model has(.|\n)*{kind}")
        (model / "serving" / "graph-0.pb").write_bytes(original)
    assert not target.exists()


def test_operations_in_attributes_are_refused(model: Path, tmp_path: Path) -> None:
    with tf.Graph().as_default():
        texts = [tf.constant([str(tmp_path / "written")]), tf.constant(["x"])]
        nodes = [node_def_of(each.op) for each in texts]
        packed = type(nodes[0])(name="packed", op="PackedIds", input=[each.name for each in nodes])
    attrs = {"parts": (("WriteFile", (0, 1), {}),), "kept": (0,), "width": 1}
    for key, value in attrs.items():
        packed.attr[key].CopyFrom(attr_values.encode(value))
    graph = _graph(model)
    graph.node.extend([*nodes, packed])
    _put_graph(model, graph)
    _refused(model, "names 'WriteFile'")


def test_attributes_are_data(model: Path) -> None:
    original = (model / "serving" / "graph-0.pb").read_bytes()
    for text in (
        '{"tag": "os.system", "value": "touch x"}',
        '{"tag": "tuple"}',
        "[" * 100_000,
        '{"tag": "array", "value": "zz"}',
    ):
        graph = _graph(model)
        node = next(each for each in graph.node if each.op == "VocabularyIds")
        node.attr["source"].s = b"estimatorkit-json:" + text.encode()
        _put_graph(model, graph)
        _refused(model)
        (model / "serving" / "graph-0.pb").write_bytes(original)


def test_constants_larger_than_their_data_allocate_nothing(model: Path) -> None:
    graph = _graph(model)
    node = graph.node.add(name="large", op="Const")
    tensor = node.attr["value"].tensor
    tensor.CopyFrom(tensor_proto.tensor_proto(np.zeros(1, np.float32)))
    tensor.tensor_shape.dim[0].size = 1 << 40
    _put_graph(model, graph)
    _refused(model, "lists 1 values only")
    listed = next(each for each in graph.node if each.op == "VocabularyIds").attr["source"].list
    listed.s.append(b"WriteFile")
    _put_graph(model, graph)
    _refused(model, "names 'WriteFile'")


def test_programs_that_call_python_are_refused(model: Path) -> None:
    shape = jax.ShapeDtypeStruct((2,), np.float32)
    target = "xla_ffi_python_cpu_callback"
    program = jax.export.export(
        jax.jit(lambda x: [jax.ffi.ffi_call(target, shape)(x[0], index=np.int64(0))]),
        platforms=["cpu"],
        disabled_checks=[jax.export.DisabledSafetyCheck.custom_call(target)],
    )([shape])
    (model / "serving" / "module-0.stablehlo").write_bytes(program.serialize())
    _sign(model)
    _refused(model, "calls a function that exports never call(.|\n)*python_cpu_callback")


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"not a program", b"\xff" * 1000])
def test_invalid_programs_are_refused(model: Path, data: bytes) -> None:
    (model / "serving" / "module-0.stablehlo").write_bytes(data)
    _sign(model)
    _refused(model, rf"cannot be read(.|\n)*jax {jax.__version__}")


def test_nothing_is_imported_by_name(model: Path) -> None:
    _ask(model)
    before = set(sys.modules)
    _sign(model, _set("versions", {"this": "antigravity:main"}))
    _ask(model)
    assert set(sys.modules) == before


# -- any bytes


@pytest.mark.parametrize("name", ["serving/graph-0.pb", "serving/module-0.stablehlo", SIGNATURE])
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(place=st.floats(0, 1), size=st.integers(0, 20), new=st.binary(max_size=20))
def test_changed_bytes_raise_only_package_errors(
    model: Path, name: str, place: float, size: int, new: bytes
) -> None:
    original = (shared_export() / name).read_bytes()
    at = int(place * len(original))
    (model / name).write_bytes(original[:at] + new + original[at + size :])
    if name != SIGNATURE:
        _sign(model)
    try:
        with suppress(errors.OpError, ValueError), load_predictor(model) as predictor:
            predictor._opened([predictor.signature("predict")])
    finally:
        for each in (name, SIGNATURE):
            shutil.copyfile(shared_export() / each, model / each)
