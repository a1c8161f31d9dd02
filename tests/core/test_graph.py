"""Graphs: operations, names, scopes, dependencies, collections, look-up, threads, slices."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from estimatorkit.core import builtin_ops, function_graph, graph as graphs
from estimatorkit.core.conversion import constant
from estimatorkit.core.devices import DeviceSpec
from estimatorkit.core.dtypes import float32
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import array, filling
from estimatorkit.ops.math import elementwise
from estimatorkit.runtime.session import Session


@pytest.fixture
def graph() -> Iterator[Graph]:
    with Graph().as_default() as made:
        yield made


def test_operation_attributes_and_repr(graph: Graph) -> None:
    a = constant(1.0, name="a")
    with graph.control_dependencies([a.op]):
        b = elementwise.exp(constant(2.0), name="b")  # the line
    operation = b.op
    assert isinstance(operation, Operation)
    assert operation.type == "Exp"
    assert [tensor.name for tensor in operation.inputs] == ["Const:0"]
    assert operation.control_inputs == [a.op]
    assert operation.outputs == (b,)
    assert (b.op, b.value_index, b.graph, b.device) == (operation, 0, graph, "")
    assert operation.source.file == __file__
    assert operation.source.function == "test_operation_attributes_and_repr"
    assert operation.traceback is operation.source
    assert str(operation) == "b = Exp(Const:0, ^a) -> float32()"
    assert repr(operation) == "<tf.Operation 'b' type=Exp>"
    assert str(graph).count("\n") == 2
    assert repr(graph) == "<Graph of 3 operations>"
    assert a.consumers() == []
    assert operation.inputs[0].consumers() == [operation]


def test_attributes(graph: Graph) -> None:
    operation = array.transpose(filling.zeros([2, 3]), [1, 0]).op
    assert operation.get_attr("perm") == (1, 0)
    with pytest.raises(ValueError, match="has no attribute 'axis'"):
        operation.get_attr("axis")
    noted = builtin_ops.identity(1.0).op
    noted.attrs["_note"] = 1
    assert noted.kernel_attrs == {}


def test_helper_module_lines_are_user_lines(graph: Graph) -> None:
    def helper() -> Tensor:
        return constant(1.0) + 2.0

    operation = helper().op
    assert operation.source.function == "helper"
    assert str(operation.source).startswith(f"{__file__}:")


def test_tensors_compare_by_identity(graph: Graph) -> None:
    a, b = constant(1.0), constant(1.0)
    assert a != b
    assert {a: 1}[a] == 1
    assert b not in [a]
    assert f"{a}" == str(a)


def test_unsupported_tensor_protocols_raise(graph: Graph) -> None:
    a = constant([1.0, 2.0])
    for refused in (bool, len, float, int, np.asarray):
        with pytest.raises((TypeError, NotImplementedError)):
            refused(a if refused is not len else constant(1.0))  # type: ignore[operator]
    with pytest.raises(TypeError, match="first dimension is known"):
        list(builtin_ops.placeholder(float32, [None]))
    for key in ([0, 1], True, 1.5, constant([0, 1]), "a"):
        with pytest.raises(TypeError, match="are valid indices"):
            a[key]
    with pytest.raises(ValueError, match="mask cannot be scalar"):
        a[constant(True)]


def test_set_shape_merges(graph: Graph) -> None:
    x = builtin_ops.placeholder(float32)
    x.set_shape([None, 3])
    x.set_shape([2, None])
    assert x.shape == [2, 3]
    with pytest.raises(ValueError, match="not compatible"):
        x.set_shape([3, 3])


# -- names


@given(st.lists(st.sampled_from(["a", "A", "a_1", "b", "a/b", "a_1_1", "B"]), max_size=14))
@settings(max_examples=100, deadline=None)
def test_names_are_unique_case_insensitively(names: list[str]) -> None:
    with Graph().as_default() as graph:
        made = [constant(1.0, name=name).op.name for name in names]
        assert len({name.lower() for name in made}) == len(made)
        for wished, name in zip(names, made, strict=True):
            assert name.startswith(wished)
            assert graph.get_operation_by_name(name).name == name


@pytest.mark.parametrize("name", ["a b", "_a", "", "/a", "a:0", "a$"])
def test_malformed_names_raise(graph: Graph, name: str) -> None:
    if name:
        with pytest.raises(ValueError, match="not a valid node name"):
            constant(1.0, name=name)
        with pytest.raises(ValueError, match="not a valid scope name"), graph.name_scope(name):
            pass
    else:
        assert constant(1.0, name=name).name == "Const:0"


def test_name_scopes_nest(graph: Graph) -> None:
    with graphs.name_scope("a") as outer, graphs.name_scope("b") as inner:
        assert (outer, inner) == ("a/", "a/b/")
        assert graph.get_name_scope() == "a/b"
        with graphs.name_scope(outer):
            assert constant(1.0, name="c").name == "a/c:0"
        with graphs.name_scope(None):
            assert constant(1.0, name="c").name == "c:0"
        assert constant(1.0, name="c").name == "a/b/c:0"
    assert constant(1.0, name="d").name == "d:0"
    with pytest.raises(ZeroDivisionError), graphs.name_scope("e"):
        _ = 1 // 0
    assert graph.get_name_scope() == ""


# -- control dependencies


def test_control_dependencies_nest_and_clear(graph: Graph) -> None:
    a, b = constant(1.0, name="a"), constant(2.0, name="b")
    v = Variable(1.0, name="v")
    with graph.control_dependencies([a]):
        with graph.control_dependencies([b, v, a.op]):
            inner = builtin_ops.no_op()
            with graph.control_dependencies(None):
                cleared = builtin_ops.no_op()
            with graph.init_scope():
                assert not graph.has_control_dependencies
        outer = builtin_ops.no_op()
        direct = builtin_ops.identity(a)
    after = builtin_ops.no_op()
    assert [op.name for op in inner.control_inputs] == ["a", "b", "v"]
    assert cleared.control_inputs == []
    assert [op.name for op in outer.control_inputs] == ["a"]
    assert direct.op.control_inputs == []  # already an input
    assert after.control_inputs == []
    with pytest.raises(TypeError, match="not an operation"), graph.control_dependencies([3]):
        pass
    with graph.control_dependencies(["a", "b:0"]):
        assert [op.name for op in builtin_ops.no_op().control_inputs] == ["a", "b"]
    with Graph().as_default() as other:
        elsewhere = constant(1.0)
    with pytest.raises(ValueError, match="not an element"), graph.control_dependencies([elsewhere]):
        pass
    with graph.control_dependencies([a]), pytest.raises(ValueError, match="not an element"):
        function_graph.trace(lambda: _after(elsewhere), ())
    assert other.get_operations() == [elsewhere.op]


def _after(tensor: Tensor) -> Tensor:
    with get_default_graph().control_dependencies([tensor]):
        return constant(1.0)


def test_operations_join_graph_of_inputs() -> None:
    with Graph().as_default() as one:
        a, v = constant([1.0, 2.0]), Variable(1.0)
    with Graph().as_default():
        b = constant(1.0)
    with Graph().as_default() as other:
        made = [a + 1.0, 2.0 * v, a[0], elementwise.add(a, 1.0), -a]
        with graphs.name_scope("inside", values=[a]) as scope:
            made.append(constant(1.0))
        assert {each.graph for each in made} == {one}
        assert made[-1].op.name == f"{scope}Const"
        assert constant(1.0).graph is other
        with pytest.raises(ValueError, match="must be from the same graph"):
            graphs.name_scope("between", values=[a, b]).__enter__()
    with pytest.raises(ValueError, match=r"name \(None\) and default_name \(None\) must be"):
        graphs.name_scope(None, values=[a]).__enter__()
    one.finalize()
    one._unsafe_unfinalize()
    with one.as_default():
        assert constant(1.0).graph is one


def test_variables_ignore_control_dependencies(graph: Graph) -> None:
    with graph.control_dependencies([constant(1.0)]):
        v = Variable(1.0)
    assert v.initializer.control_inputs == []


# -- look-up


def test_lookup_by_name(graph: Graph) -> None:
    a = constant(1.0, name="scope/alpha")
    assert graph.get_operation_by_name("scope/alpha") is a.op
    assert graph.get_tensor_by_name("scope/alpha:0") is a
    assert graph.as_graph_element("scope/alpha") is a.op
    assert graph.as_graph_element("scope/alpha:0") is a
    assert graph.as_graph_element(a) is a
    v = Variable(1.0, name="v")
    assert graph.as_graph_element(v) is v.value()
    with pytest.raises(KeyError, match="did you mean 'scope/alpha'"):
        graph.get_operation_by_name("scope/alpa")
    with pytest.raises(KeyError, match="does not exist"):
        graph.get_tensor_by_name("scope/alpha:1")
    with pytest.raises(ValueError, match=r"looks like an \(invalid\) Operation name"):
        graph.get_tensor_by_name("nothing")
    with pytest.raises(ValueError, match="Operation, not a Tensor"):
        graph.as_graph_element("scope/alpha", allow_operation=False)
    with pytest.raises(TypeError, match="Can not convert a Operation into a Tensor"):
        graph.as_graph_element(a.op, allow_operation=False)
    with pytest.raises(ValueError, match="not an element of this graph"):
        Graph().as_graph_element(a)


# -- collections


def test_collections(graph: Graph) -> None:
    a, b = constant(1.0, name="one/a"), constant(2.0, name="two/b")
    graph.add_to_collection("mine", a)
    graph.add_to_collections(["mine", "other", "mine"], b)
    graph.add_to_collection("mine", 3)
    assert graph.get_collection("mine") == [a, b, 3]
    assert graph.get_collection("mine", "one/") == [a]
    assert graph.get_collection("nothing") == []
    graph.get_collection("mine").append(5)
    assert len(graph.get_collection("mine")) == 3
    graph.get_collection_ref("mine").append(5)
    assert graph.get_collection("mine")[-1] == 5
    assert set(graph.get_all_collection_keys()) == {"mine", "other"}
    graph.clear_collection("mine")
    assert graph.get_collection("mine") == []
    assert GraphKeys.GLOBAL_VARIABLES == "variables"


# -- default graphs


def test_default_graphs_nest() -> None:
    outermost = get_default_graph()
    with Graph().as_default() as outer:
        with Graph().as_default() as inner:
            assert constant(1.0).graph is inner
        assert constant(1.0).graph is outer
        with pytest.raises(AssertionError, match="nested graphs"):
            graphs.reset_default_graph()
    assert get_default_graph() is outermost


def test_reset_default_graph() -> None:
    before = get_default_graph()
    graphs.reset_default_graph()
    assert get_default_graph() is not before
    assert get_default_graph().get_operations() == []


def test_default_graph_is_thread_local(graph: Graph) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(get_default_graph()))
    thread.start()
    thread.join()
    assert found[0] is not graph


def test_concurrent_graph_building(graph: Graph) -> None:
    def build(number: int) -> None:
        with graph.as_default(), graphs.name_scope(f"thread{number}"):
            for _ in range(50):
                elementwise.add(constant(1.0), 1.0)

    threads = [threading.Thread(target=build, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    operations = graph.get_operations()
    assert len(operations) == 4 * 50 * 3
    assert [operation.index for operation in operations] == list(range(600))
    assert len({operation.name for operation in operations}) == 600


def test_concurrent_session_runs(graph: Graph) -> None:
    x = builtin_ops.placeholder(float32, [])
    y = elementwise.square(x)
    v = Variable(0.0)
    add = v.assign_add(1.0)
    wrong: list[float] = []
    with Session() as session:
        session.run(v.initializer)

        def work(number: int) -> None:
            for step in range(20):
                value = float(number * 100 + step)
                if session.run(y, {x: value}) != np.float32(value) ** 2:
                    wrong.append(value)
                session.run(add)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert session.run(v) == 60.0


def test_finalized_graph_raises(graph: Graph) -> None:
    a = constant(1.0)
    graph.finalize()
    assert graph.finalized
    with pytest.raises(RuntimeError, match="Graph is finalized"):
        constant(2.0)
    with Session() as session:
        assert session.run(a) == 1.0


# -- devices


@pytest.mark.parametrize(
    ("spec", "canonical"),
    [
        *(("", ""), ("/job:ps", "/job:ps"), ("/job:ps/task:1", "/job:ps/task:1")),
        *(("/cpu:0", "/device:CPU:0"), ("/gpu:1", "/device:GPU:1"), ("/GPU", "/device:GPU:*")),
        *(("/device:gpu:0", "/device:GPU:0"), ("cpu:0", "/device:CPU:0")),
        ("/task:3/job:worker/replica:0/device:TPU:7", "/job:worker/replica:0/task:3/device:TPU:7"),
    ],
)
def test_device_names(spec: str, canonical: str) -> None:
    found = DeviceSpec.from_string(spec)
    assert found.to_string() == canonical
    assert DeviceSpec.from_string(canonical) == found
    assert DeviceSpec().make_merged_spec(found) == found


def test_device_specs_match_tensorflow() -> None:
    spec = DeviceSpec(job="a", device_type="GPU", device_index=0)
    assert spec.parse_from_string("/job:b/task:1") is spec
    assert spec == DeviceSpec("b", task=1)
    spec.merge_from(DeviceSpec(job="c", device_type="CPU"))
    spec.replica = 2
    assert spec.to_string() == "/job:c/replica:2/task:1/device:CPU:*"


@pytest.mark.parametrize("spec", ["my gpu", "/job", "/task:one", "/cpu:zero", "/disk:0"])
def test_malformed_device_names_raise(graph: Graph, spec: str) -> None:
    with pytest.raises(ValueError, match="Unknown attribute"), graphs.device(spec):
        pass


def test_colocation_and_root_scope(graph: Graph) -> None:
    with graph.device("/cpu:1"):
        on_one = constant(1.0)
    plain = constant(2.0)
    with (
        graph.device("/gpu:0"),
        graph.name_scope("inner"),
        graph.control_dependencies([plain]),
    ):
        with graphs.colocate_with(on_one):
            assert constant(0.0).device == "/device:CPU:1"
        with graphs.colocate_with(plain.op):
            assert constant(0.0).device == ""
        with graphs.init_scope():
            made = constant(3.0, name="outside")
        assert constant(0.0).op.control_inputs == [plain.op]
    assert made.op.name == "outside"
    assert made.op.control_inputs == []


def test_device_scopes(graph: Graph) -> None:
    def by_type(op: Operation) -> str:
        return "/job:ps" if op.type == "VarHandleOp" else f"/job:worker{op.device}"

    with graphs.device(by_type):
        v = Variable(1.0)
        with graphs.device("/gpu:0"):
            a = constant(1.0)
            with graphs.device(DeviceSpec(device_type="CPU", device_index=1)):
                b = constant(1.0)
            with graphs.device(None):
                c = constant(1.0)
            with graphs.device(""):
                d = constant(1.0)
    assert v.device == "/job:ps"
    assert v.initializer.device == "/job:ps"  # where the variable is
    assert a.device == d.device == "/job:worker/device:GPU:0"
    assert b.device == "/job:worker/device:CPU:1"
    assert c.device == ""
    assert constant(1.0).device == ""


# -- slicing

SAMPLE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "key",
    [
        *(0, -1, slice(1, None), slice(None, None, -1), Ellipsis, None),
        *((0, 1), (0, slice(1, 3), -1), (Ellipsis, 0), (Ellipsis, None, slice(0, 2))),
        *((slice(None), None, 1), (slice(-2, None), Ellipsis, slice(None, None, 2)), (0, 1, 2)),
        *(
            (np.int64(1), slice(0, 100)),
            (slice(2, 1), 0),
            (None, Ellipsis, None),
            (slice(5, -9, -2),),
        ),
    ],
    ids=str,
)
def test_slicing_matches_numpy(graph: Graph, key: Any) -> None:
    x = builtin_ops.placeholder(float32, [None, 3, 4])
    with Session() as session:
        sliced = x[key]
        value = session.run(sliced, {x: SAMPLE})
        np.testing.assert_array_equal(value, SAMPLE[key])
        assert sliced.shape.is_compatible_with(np.shape(value))


def test_slicing_with_tensors(graph: Graph) -> None:
    x = constant(SAMPLE)
    at = builtin_ops.placeholder("int32", [])
    with Session() as session:
        for position in (0, 1, -1):
            np.testing.assert_array_equal(session.run(x[at], {at: position}), SAMPLE[position])
            np.testing.assert_array_equal(
                session.run(x[:, at, None], {at: position}), SAMPLE[:, position, None]
            )
        np.testing.assert_array_equal(session.run(x[constant(1)]), SAMPLE[1])
        np.testing.assert_array_equal(session.run(x[constant(0) : constant(1)]), SAMPLE[0:1])
        np.testing.assert_array_equal(session.run(x[at:], {at: 1}), SAMPLE[1:])
        np.testing.assert_array_equal(session.run(x[:, :at], {at: -1}), SAMPLE[:, :-1])
    with pytest.raises(TypeError, match="are valid indices"):
        x[builtin_ops.placeholder("float32", []) :]


def test_static_index_out_of_range_raises(graph: Graph) -> None:
    x = constant(SAMPLE)
    for key in (2, (0, 3), (0, 0, 0, 0), (Ellipsis, 4), (..., ..., 0), -3):
        words = "out of bounds|Index out of range using input dim 3|Multiple ellipses"
        with pytest.raises(ValueError, match=words):
            x[key]


def test_a_graph_has_one_extension_of_a_class() -> None:
    graph, other = Graph(), Graph()
    names: set[str] = graph.extension(set)
    assert names == set()
    assert graph.extension(set) is names
    assert other.extension(set) is not names
    assert graph.extension(dict) == {}
