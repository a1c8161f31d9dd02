"""Graphs as protocol buffers: round trips, and graphs that TensorFlow wrote."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from tensorboard.compat.proto.graph_pb2 import GraphDef

import estimatorkit as tf
import estimatorkit.ops
from estimatorkit.core import registry
from estimatorkit.core.gradients import gradients
from estimatorkit.core.registry import Spec
from estimatorkit.interop.attr_values import JSON_PREFIX, InMemory, decode, encode
from estimatorkit.interop.graphdef import import_graph_def
from estimatorkit.interop.graphdef_export import export_graph
from estimatorkit.interop.graphdef_tensorflow import RULES, _function
from estimatorkit.ops.control.control_flow import cond, while_loop
from estimatorkit.ops.debug.shape_matching import match_rank

FOLDER = Path(__file__).parents[1] / "golden"

VALUES: list[Any] = [
    *(0, -1, 2**63 - 1, 2**63, -(2**80), True, False, None, "", "text", "\u00e9\n\x00"),
    *(JSON_PREFIX, JSON_PREFIX + "1", b"", b"\xff\x00", b"text"),
    *(0.0, -0.0, 0.1, 0.001, 1e-8, 1 / 3, 1e300, -5e-324, float("inf"), float("-inf")),
    *(1j, 0.1 + 2.5j, tf.float32, tf.string, tf.bool),
    *(tf.TensorShape(None), tf.TensorShape([]), tf.TensorShape([None, 3])),
    *((), (1, 2), (1, None), (1, 0.5), (True, 1), ("a", b"b"), ((1, 2), ()), (0.1, 1 / 3)),
    *((tf.float32, tf.int64), (tf.TensorShape([1]), tf.TensorShape(None)), (True, False)),
    *([], [1], [1, (2, [None])], {}, {"a": 1, "b": [{"c": (1,)}]}, {1: 2, (3,): b"x"}),
    *(slice(None), slice(1, None, -1), ..., ("slice", None, 1, None), "newaxis"),
    *(Spec(tf.float32, tf.TensorShape([2])), (Spec(tf.int32, tf.TensorShape(None)),)),
    *(np.float32(0.1), np.int64(3), np.bool_(True), (np.uint8(1), 2)),
]
ARRAYS = [
    *(np.arange(6, dtype=dtype).reshape(2, 3) for dtype in ("f4", "f8", "i1", "u2", "i8", "c8")),
    np.array(2.5, tf.bfloat16.as_numpy_dtype),
    np.zeros([0, 3], np.float16),
    np.array([[True], [False]]),
    np.array([b"", b"\xff\x00", b"a"], object),
]


def same(one: Any, other: Any) -> bool:
    """Equal in value and, through and through, in type."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, tf.TensorShape):
        return one.dims == other.dims
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return bool(repr(one) == repr(other) and one == other)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_attributes_round_trip(value: Any) -> None:
    attr = type(encode(value)).FromString(encode(value).SerializeToString())
    assert same(decode(attr), value), (decode(attr), value)
    nested = {"key": [value, (value, None)]}
    assert same(decode(encode(nested)), nested)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.dtype))
def test_arrays_round_trip(array: Any) -> None:
    for read in (decode(encode(array)), decode(encode({"a": (array, 1)}))["a"][0]):
        assert read.dtype == array.dtype
        assert read.shape == array.shape
        assert read.tolist() == array.tolist()


def test_common_attributes_use_tensorflow_encoding() -> None:
    assert encode(3).i == 3
    assert encode((1, 2, 2, 1)).list.i == [1, 2, 2, 1]
    assert encode(0.001).f == np.float32(0.001)
    assert encode("NHWC").s == b"NHWC"
    assert encode(tf.int64).type == 9
    assert [dim.size for dim in encode(tf.TensorShape([None, 3])).shape.dim] == [-1, 3]


def test_in_memory_objects_are_not_serialized() -> None:
    assert isinstance(decode(encode(object())), InMemory)
    with tf.Graph().as_default() as graph:
        tf.py_func(lambda: np.float32(1), [], tf.float32, name="python")
        graph.create_op("NoOp", (), (), {"held": object(), "_note": object()}, "odd")
        graph_def = graph.as_graph_def()
    nodes = {node.name: node for node in graph_def.node}
    assert set(nodes["odd"].attr) == {"held"}
    del graph_def.node[: [node.name for node in graph_def.node].index("odd")]
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match=r"'odd' .NoOp.: depends on an in-memory"),
    ):
        import_graph_def(graph_def)


def model() -> None:
    """A graph with state, randomness, queues, control flow, strings, gradients and summaries."""
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    with tf.variable_scope("layer"):
        weights = tf.get_variable("w", [4, 3])
        bias = tf.get_variable("b", [3], initializer=tf.zeros_initializer())
        hidden = tf.nn.dropout(tf.nn.relu(tf.nn.bias_add(tf.matmul(x, weights), bias)), 0.5, seed=1)
    scale = tf.get_variable("scale", [], initializer=tf.ones_initializer())
    with tf.name_scope("flow"):
        total = tf.reduce_sum(hidden[:, 1:] * 0.1)
        looped = cond(
            total > 0,
            lambda: total * scale,
            lambda: while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * scale), (0, total))[1],
        )
    loss = tf.identity(looped, name="loss")
    gradients(loss, [scale])
    queue = tf.queue.FIFOQueue(3, tf.float32, name="queue")
    with tf.control_dependencies([queue.enqueue(loss, name="put")]), tf.device("/cpu:0"):
        queue.dequeue(name="take")
    tf.train.AdamOptimizer(0.1).minimize(loss, name="train")
    tf.summary.scalar("shown", loss)
    tf.summary.merge_all()
    tf.group(*[each.initializer for each in tf.global_variables()], name="init")


def test_graph_round_trips() -> None:
    with tf.Graph().as_default() as graph:
        model()
    graph_def = graph.as_graph_def(add_shapes=True)
    assert len(graph_def.library.function) >= 4
    with tf.Graph().as_default() as again:
        assert import_graph_def(GraphDef.FromString(graph_def.SerializeToString()), name="") is None
    assert again.as_graph_def(add_shapes=True) == graph_def
    for one, other in zip(graph.get_operations(), again.get_operations(), strict=True):
        assert [(t.dtype, t.shape) for t in one.outputs] == [
            (t.dtype, t.shape) for t in other.outputs
        ]
        assert one.device == other.device
    text = text_format.MessageToString(graph_def)
    assert text_format.Parse(text, GraphDef()) == graph_def


@pytest.mark.slow
def test_imported_graph_computes_the_same() -> None:
    with tf.Graph().as_default() as graph:
        model()
    found = []
    for name in (None, "", "a/b", "import"):
        with (
            tf.Graph().as_default() as again,
            tf.Session(graph=graph if name is None else again) as s,
        ):
            prefix = f"{name}/" if name else ""
            if name is not None:
                elements = ["loss:0", "take:0", "train"]
                returned = import_graph_def(
                    graph.as_graph_def(), return_elements=elements, name=name
                )
                assert [each.name for each in returned or []] == [
                    prefix + each for each in elements
                ]
            s.graph.seed = 1
            s.run(prefix + "init")
            for variable, value in (("layer/w", np.ones([4, 3])), ("scale", np.array(-2.0))):
                handle = s.graph.get_operation_by_name(prefix + variable)
                s.state.values[handle.name] = value.astype(np.float32)
            feeds = {f"{prefix}x:0": np.full([2, 4], 3.0, np.float32)}
            s.run(prefix + "put", feeds)
            taken = s.run(
                [f"{prefix}take:0", f"{prefix}loss:0", f"{prefix}Merge/MergeSummary:0"], feeds
            )
            found.append((taken, s.run(f"{prefix}scale/read:0")))
    (first, _), *_ = found
    assert first[0] != 0
    for values, scale in found:
        assert values == first
        assert scale == -2.0


def test_second_import_gets_new_scope_and_input_map() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [], name="x")
        tf.add(x, x, name="twice")
        with tf.control_dependencies([tf.no_op(name="before")]):
            tf.identity(x * 3.0, name="thrice")
    graph_def = graph.as_graph_def()
    with tf.Graph().as_default() as outer, tf.Session() as session:
        with tf.name_scope("scope"):
            (one,) = import_graph_def(graph_def, {"x": 5.0}, ["twice:0"])
            (two,) = import_graph_def(graph_def, {"x:0": one, "^before": tf.no_op()}, ["thrice:0"])
        assert [one.name, two.name] == ["scope/import/twice:0", "scope/import_1/thrice:0"]
        assert session.run(two) == 30.0
        assert outer.get_operation_by_name("scope/import/before").type == "NoOp"
        with pytest.raises(ValueError, match=r"not found in graph_def: \[y:0\]"):
            import_graph_def(graph_def, {"y": 1.0})
        with pytest.raises(
            ValueError, match="Requested node 'thrise' not found in graph_def"
        ) as raised:
            import_graph_def(graph_def, return_elements=["thrise:0"])
        assert "did you mean 'thrice'?" in str(raised.value)
        import_graph_def(graph_def, name="")
        assert tf.constant(1.0, name="twice").name == "twice_1:0"
        # As in TensorFlow, names that are taken become others.
        again = import_graph_def(graph_def, {"x": 2.0}, ["twice:0", "twice", "x:0"], name="")
        assert [each.name for each in again[:2]] == ["twice_2:0", "twice_2"]
        assert session.run([again[0], again[2]]) == [4.0, 2.0]
        import_graph_def(graph_def, {"twice:0": 1.0})  # what nothing takes may be mapped, too
        with pytest.raises(ValueError, match=r"not found in graph_def: \[x:1\]"):
            import_graph_def(graph_def, {"x:1": 1.0})


def test_unreadable_graphs_raise() -> None:
    node = GraphDef().node.add
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="must be a GraphDef"):
            import_graph_def("graph.pb")
        for text, words in (
            ('node {name: "a" op: "NoOp" input: "^b"}', "Unknown input node 'b'"),
            ('node {name: "a" op: "NoOp" input: "^a"}', "nodes in a cycle: 'a' and 'a'"),
            ('node {name: "a" op: "Nope"} node {name: "b" op: "Not"}', "Nope, Not"),
            (
                'node {name: "a" op: "Const" attr {key: "value" value {}}}',
                "node 'a' .Const.: attribute 'value' is",
            ),
            ("versions {producer: 99}", "format version 99"),
            (
                'node {name: "a" op: "Nope" attr {key: "T" value {type: 1}}} '
                'node {name: "b" op: "Switch"} node {name: "c" op: "NoOp"}',
                "cannot be imported: Nope, Switch",
            ),
        ):
            with pytest.raises(ValueError, match=words):
                import_graph_def(text_format.Parse(text, GraphDef()))
    assert node is not None


@pytest.mark.slow
def test_damaged_graphs_raise() -> None:
    """Nodes lose, get and exchange parts: what comes is a graph, or an error that is meant."""
    with tf.Graph().as_default() as graph:
        model()
    whole = graph.as_graph_def(add_shapes=True)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        graph_def = GraphDef()
        graph_def.CopyFrom(whole)
        bodies = [list(function.node_def) for function in graph_def.library.function]
        nodes = [*graph_def.node, *(node for body in bodies for node in body)]
        one, other = (nodes[at] for at in rng.integers(len(nodes), size=2))
        damage = rng.integers(5)
        if damage == 0 and one.attr:
            del one.attr[str(rng.choice(sorted(one.attr)))]
        elif damage == 1 and one.attr and other.attr:
            key = str(rng.choice(sorted(one.attr)))
            one.attr[key].CopyFrom(other.attr[str(rng.choice(sorted(other.attr)))])
        elif damage == 2 and one.input:
            del one.input[int(rng.integers(len(one.input)))]
        elif damage == 3:
            one.input.append(f"{other.name}:{rng.integers(2)}")
        else:
            one.op = other.op
        try:
            with tf.Graph().as_default():
                import_graph_def(graph_def, name="")
        except (TypeError, ValueError):
            refused += 1
    assert refused > 100


def test_nodes_without_an_input_raise() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2])
        tf.add(x, x, name="sum")
        tf.matmul(x[None], x[:, None], name="product")
    for name in ("sum", "product"):
        graph_def = graph.as_graph_def()
        (node,) = (each for each in graph_def.node if each.name == name)
        del node.input[1]
        with (
            tf.Graph().as_default(),
            pytest.raises(ValueError, match="lacks required inputs or attributes"),
        ):
            import_graph_def(graph_def, name="")


def test_graph_def_from_version_and_node_def() -> None:
    with tf.Graph().as_default() as graph:
        first = tf.constant(1.0, name="first")
        version = graph.version
        second = tf.add(first, 2.0, name="second")
    nodes = graph.as_graph_def(from_version=version).node
    assert [node.name for node in nodes] == ["second/y", "second"]
    assert second.op.node_def == nodes[1]
    assert list(second.op.node_def.input) == ["first", "second/y"]


# -- graphs that TensorFlow wrote


def imported(name: str, scope: str) -> tuple[Any, Any]:
    graph_def = GraphDef.FromString((FOLDER / f"graphdef_{name}.pb").read_bytes())
    x, y = import_graph_def(graph_def, name=scope, return_elements=["x:0", "y:0"]) or ()
    names = {op.name for op in y.graph.get_operations()}
    prefix = f"{scope}/" if scope else ""
    assert {prefix + node.name for node in graph_def.node} <= names
    return x, y


GRAPHS = ["mlp", "arrays", "strings", "variables", "cnn"]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("scope", ["", "net"])
def test_tensorflow_graphs_compute_the_same(name: str, scope: str) -> None:
    with np.load(FOLDER / "graphdef.npz") as golden:
        given, expected = golden[f"{name}/x"], golden[f"{name}/y"]
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x, y = imported(name, scope)
        if name == "variables":
            session.run(f"{scope}/init" if scope else "init")
        np.testing.assert_allclose(session.run(y, {x: given}), expected, rtol=1e-5, atol=1e-5)
        # And once more through our own format.
        graph_def = graph.as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = import_graph_def(graph_def, return_elements=[x.name, y.name], name="again") or ()
        if name == "variables":
            session.run(f"again/{scope}/init" if scope else "again/init")
        np.testing.assert_allclose(session.run(y, {x: given}), expected, rtol=1e-5, atol=1e-5)


def test_every_rule_names_a_function() -> None:
    assert not {rule.function for rule in RULES.values() if rule.function and not _function(rule)}


def test_every_op_round_trips() -> None:
    """One graph with a case of every row that can be made of constants."""
    with tf.Graph().as_default() as graph:
        for type_ in registry.registered_types():
            row = registry.lookup(type_)
            for case in [] if row.semantics.updates or type_ == "ReadVariableOp" else row.cases():
                if type_ == "JaxFunction":
                    continue  # holds a Python function; registered once somebody uses one
                inputs = [tf.constant(each) for each in case.inputs]
                attrs = {**case.attrs, **({"_seed": (1, 2)} if row.semantics.random else {})}
                registry.apply(type_, inputs, attrs)
    graph_def = graph.as_graph_def(add_shapes=True)
    with tf.Graph().as_default() as again:
        import_graph_def(graph_def, name="")
    assert again.as_graph_def(add_shapes=True) == graph_def
    for one, other in zip(graph.get_operations(), again.get_operations(), strict=True):
        if one.type != "Const":
            for key, value in one.kernel_attrs.items():
                assert same(other.attrs[key], value), (one, key)


def test_matched_ranks_export_as_tensorflow_nodes() -> None:
    cases = [([3, 1], [3]), ([3], [3, 1]), ([3], [3, 2]), ([3, 2], [3]), ([], []), ([2, 1], [2, 1])]
    ways: list[Any] = list(itertools.product((-1, 0), ("squeeze", "expand", "either", "column")))
    with tf.Graph().as_default(), tf.Session() as session:
        values, reference = (tf.placeholder(tf.float32, None, name) for name in "ab")
        made = [match_rank(values, reference, *way) for way in ways]
        exported = export_graph(tf.get_default_graph())
        assert not exported.missing
        names = [exported.name_of(each) for each in made]
        again = import_graph_def(exported.graph_def, return_elements=names, name="again")
        for one, other in cases:
            given = {"a": np.ones(one), "b": np.ones(other)}
            imported = {f"again/{key}:0": each for key, each in given.items()}
            feeds = {**imported, **{f"{key}:0": each for key, each in given.items()}}
            expected, found = session.run((made, again), feeds)
            assert [each.shape for each in found] == [each.shape for each in expected]


def test_static_dimensions_export_as_integers() -> None:
    from estimatorkit.interop.attr_values import decode, encode

    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 3])
        tf.unstack(tf.shape(x), name="parts")
        graph_def = graph.as_graph_def()
    (node,) = (each for each in graph_def.node if each.op == "Unpack")
    assert node.attr["num"].i == 2
    length = tf.TensorShape([3])[0]
    assert decode(encode(length)) == decode(encode((length, None)))[0] == 3
