"""Sessions: feeds, fetches, pruning, values and their types, errors.

Of the ops, `Placeholder` and `NoOp` are tested here; so are `GetSessionHandle`, `GetSessionTensor`
and `DeleteSessionTensor`.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from tensorboard.compat.proto.config_pb2 import CallableOptions

from estimatorkit.core import builtin_ops, errors, registry
from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.dtypes import (
    as_dtype,
    bfloat16,
    bool_,
    float32,
    float64,
    int32,
    int64,
    string,
)
from estimatorkit.core.graph import Graph, control_dependencies, device
from estimatorkit.core.registry import same_as_input
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.interop.protos import ConfigProto, RunMetadata, RunOptions
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.math import elementwise, linalg, reduce
from estimatorkit.ops.variables.variable_collections import global_variables_initializer
from estimatorkit.runtime.executor import CompiledSegment
from estimatorkit.runtime.prepared_run import register_session_run_conversion_functions
from estimatorkit.runtime.session import Session
from estimatorkit.runtime.xla import placement
from estimatorkit.train.sessions.interactive_session import InteractiveSession

COUNTS: collections.Counter[str] = collections.Counter()


def count(value: Any, label: str) -> Any:
    COUNTS[label] += 1
    return value


if "CountForTests" not in registry.registered_types():
    registry.register(
        "CountForTests",
        count,
        where="host",
        infer=same_as_input(),
        gradient=None,
        pure=False,
        cases=lambda: [registry.Case((np.float32(1),), {"label": "case"}, np.float32(1))],
    )


def counted(value: Any, label: str) -> Tensor:
    """`value`, and each run counts up `COUNTS[label]`."""
    return registry.output("CountForTests", [convert_to_tensor(value)], {"label": label})


class Pair(NamedTuple):
    first: Any
    second: Any


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    COUNTS.clear()
    with Graph().as_default():
        yield


# -- fetches


def test_nested_fetches() -> None:
    a, b = constant(1), constant([2.0, 3.0])
    v = Variable(5, name="v")
    no = builtin_ops.no_op("nothing")
    ordered = collections.OrderedDict([("z", a), ("a", b)])
    with Session() as session:
        session.run(v.initializer)
        assert session.run(a) == 1
        assert session.run(no) is None
        assert session.run(v) == 5
        assert session.run("Const:0") == 1
        assert session.run("nothing") is None
        assert session.run([]) == []
        assert session.run({}) == {}
        assert session.run([a, a, no, v, "Const:0"]) == [1, 1, None, 5, 1]
        found = session.run({"pair": Pair(a, {"deep": [b, (a,)]}), "ops": (no, no)})
        assert isinstance(found["pair"], Pair)
        assert found["pair"].first == 1
        assert found["pair"].second["deep"][1] == (1,)
        np.testing.assert_array_equal(found["pair"].second["deep"][0], [2.0, 3.0])
        assert found["ops"] == (None, None)
        result = session.run(ordered)
        assert isinstance(result, collections.OrderedDict)
        assert list(result) == ["z", "a"]
        assert result["z"] == 1
        assert type(session.run((a, v))) is tuple
        assert session.run([[a], [[v]], ()]) == [[1], [[5]], ()]


def test_equal_fetch_structures_are_not_confused() -> None:
    a, b = constant(1), constant(2)
    with Session() as session:
        assert session.run({"x": a}) == {"x": 1}
        assert session.run({"x": b}) == {"x": 2}
        assert session.run({"y": a}) == {"y": 1}
        assert session.run([a, b]) == [1, 2]
        assert session.run([b, a]) == [2, 1]
        assert session.run((a, b)) == (1, 2)
        assert session.run([[a, b]]) == [[1, 2]]
        assert session.run([a, [b]]) == [1, [2]]
        assert session.run(Pair(a, b)) == Pair(1, 2)


def test_fetch_and_feed_are_not_confused() -> None:
    a = placeholder(int32, [], "a")
    b = array.placeholder_with_default(7, [], "b")
    with Session() as session:
        assert session.run([a], {a: 1, b: 2}) == [1]
        assert session.run([a, b], {a: 1}) == [1, 7]
        assert session.run([a, b], {a: 1, b: 2}) == [1, 2]
        assert session.run([b], {b: 3}) == [3]
        assert session.run((b, [b]), {b: 4}) == (4, [4])


def test_fetches_grow_with_graph() -> None:
    a = constant(1)
    with Session() as session:
        assert session.run(a) == 1
        b = a + 1
        assert session.run([a, b]) == [1, 2]


def test_unneeded_operations_do_not_run() -> None:
    used = counted(1.0, "used")
    counted(2.0, "useless")
    with Session() as session:
        assert session.run(used + 1.0) == 2.0
        session.run(used.op)
        assert session.run(used + 1.0, {used: 5.0}) == 6.0
        session.run([used, used, (used,)])
    assert COUNTS == {"used": 3}


def test_duplicate_fetches_share_one_computation() -> None:
    x = counted(1.0, "x")
    with Session() as session:
        assert session.run([x, {"again": x}, x.name]) == [1.0, {"again": 1.0}, 1.0]
    assert COUNTS == {"x": 1}


# -- feeds


def test_any_tensor_can_be_fed() -> None:
    x = placeholder(float32, [None], "x")
    middle = x * 2.0
    y = middle + 1.0
    c = constant(3.0, name="c")
    v = Variable(1.0, name="v")
    with Session() as session:
        np.testing.assert_array_equal(session.run(y, {x: [1, 2]}), [3.0, 5.0])
        np.testing.assert_array_equal(session.run(y, {middle: [1, 2]}), [2.0, 3.0])
        np.testing.assert_array_equal(session.run(y, {"x:0": [1]}), [3.0])
        assert session.run(c * 2.0, {c: 10.0}) == 20.0
        assert session.run(c, {c: 10.0}) == 10.0
        assert session.run(v * 2.0, {v: 4.0}) == 8.0  # never initialized
        np.testing.assert_array_equal(session.run([middle, y], {middle: [1]})[0], [1.0])


def test_feeds_are_cast_to_dtype() -> None:
    for dtype, value in (
        (float32, [1, 2]),
        (float64, [1.5, 2.5]),
        (int64, [2**40, -1]),
        (bool_, [True, False]),
        (bfloat16, [1.5, 2.0]),
        (string, ["a", b"b"]),
    ):
        x = placeholder(dtype, [2])
        with Session() as session:
            result = session.run(builtin_ops.identity(x), {x: value})
            direct = session.run(x, {x: value})
        assert as_dtype(result.dtype) is dtype
        assert as_dtype(direct.dtype) is dtype
        wanted = [b"a", b"b"] if dtype is string else value
        assert list(result) == wanted
        assert list(direct) == wanted


def test_fed_array_is_neither_changed_nor_kept() -> None:
    x = placeholder(float32, [2])
    v = Variable(np.zeros(2, np.float32))
    assign = v.assign(x)
    add = v.assign_add([1.0, 1.0])
    fed = np.array([1.0, 2.0], np.float32)
    with Session() as session:
        session.run(assign, {x: fed})
        fed[:] = 9
        np.testing.assert_array_equal(session.run(v), [1.0, 2.0])
        fed[:] = 5
        v.load(fed, session)
        session.run(add)
        np.testing.assert_array_equal(fed, [5.0, 5.0])
        np.testing.assert_array_equal(session.run(v), [6.0, 6.0])


def test_wrong_feeds_raise() -> None:
    x = placeholder(float32, [None, 3], "x")
    y = x * 2.0
    with Session() as session:
        session.run(y, {x: np.zeros([1, 3])})
        with pytest.raises(ValueError, match=r"Cannot feed value of shape \(1, 2\).*'x:0'"):
            session.run(y, {x: np.zeros([1, 2])})
        with pytest.raises(ValueError, match="could not convert"):
            session.run(y, {x: [["a", "b", "c"]]})
        with pytest.raises(errors.InvalidArgumentError, match=r"must feed a value.*'x'") as caught:
            session.run(y)
        assert caught.value.op is x.op
        assert f"{__file__}:" in str(caught.value)
        with pytest.raises(TypeError, match="Operation, not a Tensor"):
            session.run(y, {"x": 1.0})
        with pytest.raises(TypeError, match="nowhere"):
            session.run(y, {"nowhere:0": 1.0})
        with Graph().as_default():
            other = placeholder(float32, name="other")
        with pytest.raises(TypeError, match="not an element of this graph"):
            session.run(y, {other: 1.0})


def test_unneeded_placeholder_needs_no_feed() -> None:
    placeholder(float32, name="x")
    with Session() as session:
        assert session.run(constant(1.0)) == 1.0


# -- plans and compilations


@pytest.mark.usefixtures("compiled")
def test_one_call_per_step_and_one_compilation_per_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    x = placeholder(float32, [None, 3], "x")
    w = Variable(np.ones([3, 2], np.float32))
    loss = reduce.reduce_mean(linalg.matmul(x, w))
    with control_dependencies([loss]):
        train = w.assign_sub(np.full([3, 2], 0.1, np.float32))
    with Session() as session:
        session.run(w.initializer)
        session.state.compilations.clear()
        assert len(session.plan([train, loss], [x]).segments) == 1
        call = CompiledSegment.start

        def counting(self: CompiledSegment, values: dict[Tensor, Any]) -> None:
            COUNTS["XLA"] += 1
            call(self, values)

        monkeypatch.setattr(CompiledSegment, "start", counting)
        for _ in range(3):
            session.run([train, loss], {x: np.ones([4, 3])})
        assert COUNTS == {"XLA": 3}
        assert session.state.compilations.total() == 1
        session.run([train, loss], {x: np.ones([5, 3])})
        assert session.state.compilations.total() == 2
        for rows in (4, 5, 4):
            session.run([train, loss], {x: np.ones([rows, 3])})
        assert session.state.compilations.total() == 2


def test_fetch_forms_compile_at_most_once() -> None:
    x = placeholder(float32, [2], "x")
    y = elementwise.exp(x)
    with Session() as session:
        for _ in range(3):
            session.run(y, {x: [1, 2]})
            session.run({"y": y}, {x: [1, 2]})
        assert session.state.compilations.total() <= 2


def test_plan_description() -> None:
    x = placeholder(float32, [2], "x")
    y = elementwise.exp(counted(x, "input"), name="y")
    with Session() as session:
        plan = session.plan([y], [x])
    text = plan.describe()
    assert [segment.place for segment in plan.segments] == ["host", "device"]
    assert "y = Exp(" in text
    assert "one XLA call" in text


# -- values


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int64", 2**53 + 1),
        ("uint64", 2**63 + 1),
        ("int8", -128),
        ("float64", 1 + 2**-52),
        ("float16", 0.5),
        ("bfloat16", 1.5),
        ("bool", True),
        ("complex64", 1 + 2j),
        ("int32", -(2**31)),
    ],
)
def test_dtypes_are_preserved(dtype: str, value: Any) -> None:
    numpy_dtype = as_dtype(dtype).numpy_dtype
    x = placeholder(dtype, [1])
    y = indexing.where(constant([True]), x, filling.zeros_like(x))
    v = Variable(np.array([value], numpy_dtype))
    with Session() as session:
        session.run(v.initializer)
        for result in (
            session.run(y, {x: [value]}),
            session.run(v),
            session.run(v.read_value()),
        ):
            assert result.dtype == numpy_dtype
            assert result[0] == numpy_dtype.type(value)


def test_scalars_are_numpy_scalars() -> None:
    with Session() as session:
        for value, type_ in (
            (constant(1), np.int32),
            (constant(1.0) + 1.0, np.float32),
            (constant(1.0, float64) * 2, np.float64),
            (constant(True), np.bool_),
            (constant("a"), bytes),
            (constant(1.0, bfloat16), ml_dtypes.bfloat16),
        ):
            assert type(session.run(value)) is type_


def test_strings_stay_on_the_host() -> None:
    words = constant(["a", "bc"])
    joined = joining.concat([words, constant(["d"])], 0)
    chosen = indexing.gather(joined, [2, 0])
    n = array.shape(joined)[0] * 2
    with Session() as session:
        assert session.run(joined).tolist() == [b"a", b"bc", b"d"]
        assert session.run(joined).dtype == object
        assert session.run([chosen, n])[0].tolist() == [b"d", b"a"]
        assert session.run(n) == 6
        assert session.run(words[1]) == b"bc"
        assert session.run(elementwise.equal(joined, "a")).tolist() == [True, False, False]
        assert session.run(words + words).tolist() == [b"aa", b"bcbc"]


def test_op_without_string_support_raises() -> None:
    with pytest.raises(TypeError, match="string not in list of allowed values"):
        constant("a") * constant("b")


def test_results_are_owned_by_caller() -> None:
    v = Variable(np.zeros(3, np.float32))
    add = v.assign_add(np.ones(3, np.float32))
    c = constant([1.0, 2.0])
    with Session() as session:
        session.run(v.initializer)
        first = session.run(v)
        second = session.run(add)
        session.run(add)
        np.testing.assert_array_equal(first, [0, 0, 0])
        np.testing.assert_array_equal(second, [1, 1, 1])
        for value in (first, second, session.run(c), session.run(c + 1.0)):
            assert value.flags.writeable
            value[:] = 100
        np.testing.assert_array_equal(session.run(v), [2, 2, 2])
        np.testing.assert_array_equal(session.run(c), [1, 2])


def test_duplicate_fetches_do_not_share_memory() -> None:
    x = elementwise.exp(constant([1.0, 2.0]))
    with Session() as session:
        one, other = session.run([x, builtin_ops.identity(x)])
        one[:] = 0
        assert (other != 0).all()


@pytest.mark.parametrize("dtype", ["int64", "float64", "float32", "bool"])
def test_large_constants(dtype: str) -> None:
    """Constants above `plan.LARGE_CONSTANT` bytes are arguments of the executable."""
    value = np.full(20000, 2**40 + 1).astype(dtype)
    value[7] = 0
    c = constant(value)
    with Session() as session:
        found = session.run([c[5:9], builtin_ops.identity(c)])
        np.testing.assert_array_equal(found[0], value[5:9])
        np.testing.assert_array_equal(found[1], value)
        assert found[1].dtype == value.dtype
        other = value[::-1].copy()
        np.testing.assert_array_equal(session.run(builtin_ops.identity(c), {c: other}), other)


def test_empty_arrays() -> None:
    x = placeholder(float32, [None, 2])
    with Session() as session:
        total, doubled, mean = session.run(
            [reduce.reduce_sum(x), x * 2.0, reduce.reduce_mean(x)], {x: np.zeros([0, 2])}
        )
    assert total == 0.0
    assert doubled.shape == (0, 2)
    assert np.isnan(mean)


def test_extremes_of_empty_arrays() -> None:
    x = placeholder(float32, [None])
    i = placeholder(int32, [None])
    extremes = [reduce.reduce_max(x), reduce.reduce_min(x), reduce.reduce_max(i)]
    with Session() as session:
        found = session.run(extremes, {x: [], i: []})
        assert found == [-np.inf, np.inf, -(2**31)]
        assert session.run(extremes, {x: [1, -2], i: [-5]}) == [1.0, -2.0, -5]
        assert np.isnan(session.run(extremes[0], {x: [1, np.nan]}))


# -- shapes that follow from values


@pytest.mark.usefixtures("compiled")
def test_shapes_from_shapes_are_static() -> None:
    x = placeholder(float32, [None, None], "x")
    rows = array.shape(x)[0]
    flat = array.reshape(x, [rows * array.shape(x)[1]])
    pairs = array.reshape(x, joining.stack([rows, -1]))
    zeros = filling.zeros(array.shape(x))
    numbers = filling.range_(rows)
    tiled = filling.tile(x, [1, rows])
    part = indexing.slice_(x, [0, 0], [rows - 1, 1])
    with Session() as session:
        fed = np.arange(6, dtype=np.float32).reshape(2, 3)
        found = session.run([flat, pairs, zeros, numbers, tiled, part], {x: fed})
        assert len(session.plan([flat, pairs, zeros, numbers, tiled, part], [x]).segments) == 1
        assert [value.shape for value in found] == [(6,), (2, 3), (2, 3), (2,), (2, 6), (1, 1)]
        assert session.state.compilations.total() == 1


@pytest.mark.usefixtures("compiled")
def test_fed_shape_compiles_once_per_value() -> None:
    dims = placeholder(int32, [2], "dims")
    limit = placeholder(int32, [], "limit")
    filled = filling.fill(dims, 7.0)
    numbers = filling.range_(limit) + 1
    with Session() as session:
        for shape in ([2, 3], [3, 2], [2, 3]):
            assert session.run(filled, {dims: shape}).shape == tuple(shape)
        assert session.state.compilations.total() == 2
        assert session.run(numbers, {limit: 3}).tolist() == [1, 2, 3]
        assert session.run(numbers, {limit: 2}).tolist() == [1, 2]


def test_computed_shape() -> None:
    x = placeholder(float32, [None], "x")
    count = elementwise.cast(reduce.reduce_sum(x), int32)
    filled = filling.fill(joining.stack([count, 2]), 1.0)
    with Session() as session:
        assert session.run(filled, {x: [1.0, 2.0]}).shape == (3, 2)
        assert session.run(filled, {x: [1.0]}).shape == (1, 2)
        assert session.run(filled, {x: np.ones(5000)}).shape == (5000, 2)


@pytest.mark.usefixtures("compiled")
def test_data_behind_computed_shape_is_not_compiled_in() -> None:
    x = placeholder(float32, [2], "x")
    count = elementwise.cast(reduce.reduce_sum(x), int32)
    filled = filling.fill(joining.stack([count, 2]), 1.0)
    with Session() as session:
        for part in (0.5, 0.25, 0.75):
            assert session.run(filled, {x: [part, 3 - part]}).shape == (3, 2)
        assert session.state.compilations.total() == 2  # the count, and 3 rows


def test_shape_computed_on_host() -> None:
    names = placeholder(string, [None])
    filled = filling.zeros([array.size(names), 2])
    with Session() as session:
        assert session.run(filled, {names: ["a", "b", "c"]}).shape == (3, 2)


def test_data_dependent_rows() -> None:
    x = placeholder(float32, [None])
    positive = indexing.gather(x, indexing.where(x > 0.0)[:, 0])
    with Session() as session:
        assert session.run(positive, {x: [1, -1, 2]}).tolist() == [1.0, 2.0]
        assert session.run(positive * 2.0, {x: [-1, 3]}).tolist() == [6.0]


# -- order


def test_control_dependencies_order_host_operations() -> None:
    first = counted(1.0, "first")
    with control_dependencies([first]):
        second = counted(2.0, "second")
        nothing = builtin_ops.no_op()  # a NoOp
    third = counted(3.0, "third")
    with Session() as session:
        session.run(nothing)
        assert COUNTS == {"first": 1}
        session.run(second)
        assert COUNTS == {"first": 2, "second": 1}
        session.run(builtin_ops.group(second, third))
        assert COUNTS == {"first": 3, "second": 2, "third": 1}


@pytest.mark.slow
def test_control_dependencies_between_host_and_device() -> None:
    v = Variable(0.0)
    add = v.assign_add(1.0)
    with control_dependencies([add]):
        seen = counted(v, "seen")
    with control_dependencies([seen]):
        again = v.assign_add(10.0)
    with Session() as session:
        session.run(v.initializer)
        assert session.run([again, seen]) == [11.0, 1.0]
        assert session.run(v) == 11.0
    assert COUNTS == {"seen": 1}


def test_fed_tensor_ignores_its_dependencies() -> None:
    with control_dependencies([counted(1.0, "before")]):
        x = builtin_ops.identity(2.0)
    with Session() as session:
        assert session.run(x * 2.0, {x: 5.0}) == 10.0
    assert COUNTS == {}


# -- errors


def test_kernel_error_names_operation_and_line() -> None:
    x = placeholder(float32, [None, None], "x")
    bad = linalg.matmul(x, filling.zeros([3, 1]), name="product")  # the line
    with Session() as session:
        with pytest.raises(errors.InvalidArgumentError) as caught:
            session.run(bad, {x: np.zeros([2, 4])})
        assert caught.value.op is bad.op
        text = str(caught.value)
        assert "product (MatMul)" in text
        assert "(2, 4)" in text
        line = bad.op.source
        assert f"{line.file}:{line.line}" in text
        assert line.file == __file__
        # The session goes on.
        assert session.run(bad, {x: np.zeros([2, 3])}).shape == (2, 1)


def test_error_leaves_variables_unchanged() -> None:
    x = placeholder(float32, [None], "x")
    v = Variable([1.0, 2.0])
    add = v.assign_add(x)
    with Session() as session:
        session.run(v.initializer)
        with pytest.raises(errors.InvalidArgumentError):
            session.run(add, {x: [1.0, 2.0, 3.0]})
        np.testing.assert_array_equal(session.run(v), [1.0, 2.0])
        session.run(add, {x: [1.0, 1.0]})
        np.testing.assert_array_equal(session.run(v), [2.0, 3.0])


def test_uninitialized_variable_raises() -> None:
    v = Variable(1.0, name="v")
    with Session() as session:
        with pytest.raises(errors.FailedPreconditionError, match="uninitialized value v") as caught:
            session.run(v * 2.0)
        assert caught.value.op is v.op
        assert __file__ in str(caught.value)
        session.run(global_variables_initializer())
        assert session.run(v * 2.0) == 2.0


def test_fetch_of_wrong_graph_or_type_raises() -> None:
    a = constant(1.0, name="a")
    with Graph().as_default(), Session() as session:
        constant(2.0, name="b")
        with pytest.raises(ValueError, match="not an element of this graph"):
            session.run(a)
        with pytest.raises(ValueError, match="not an element of this graph"):
            session.run([a.op])
        with pytest.raises(TypeError, match="invalid type"):
            session.run(3.5)
        with pytest.raises(TypeError, match="invalid type"):
            session.run(None)
        with pytest.raises(TypeError, match="invalid type"):
            session.run([None])
        with pytest.raises(ValueError, match="cannot be interpreted as a Tensor"):
            session.run("nothing:0")
        with pytest.raises(ValueError, match="cannot be interpreted as a Tensor"):
            session.run("b:1")


def test_closed_session_raises() -> None:
    a = constant(1.0)
    session = Session()
    assert session.run(a) == 1.0
    session.close()
    session.close()
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(a)
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(a * 2.0)


# -- which session


def test_sessions_have_separate_variables() -> None:
    v = Variable(1.0)
    add = v.assign_add(1.0)
    one, other = Session(), Session()
    for session in (one, other):
        session.run(v.initializer)
    assert one.run(add) == 2.0
    assert one.run(add) == 3.0
    assert other.run(v) == 1.0
    one.close()
    assert other.run(add) == 2.0
    other.close()


def test_default_sessions() -> None:
    a = constant(3.0)
    assert get_default_session() is None
    with Session() as outer:
        assert a.eval() == 3.0
        with Session() as inner:
            assert get_default_session() is inner
        assert get_default_session() is outer
        a.op.run()
    assert get_default_session() is None
    with pytest.raises(ValueError, match="No default session"):
        a.eval()
    session = Session()
    with session.as_default():
        assert a.eval() == 3.0
    assert session.run(a) == 3.0
    session.close()
    interactive = InteractiveSession()
    assert a.eval() == 3.0
    interactive.close()
    assert get_default_session() is None


def test_second_interactive_session_warns() -> None:
    first = InteractiveSession()
    with pytest.warns(UserWarning, match="An interactive session is already active"):
        second = InteractiveSession()
    second.close()
    first.close()


class Squared:
    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor * tensor


def test_feed_and_fetch_of_registered_types() -> None:
    register = register_session_run_conversion_functions
    functions: Any = (
        lambda squared: ([squared.tensor], lambda values: values[0]),
        lambda squared, value: [(squared.tensor, value)],
        lambda squared: [squared.tensor],
    )
    register(Squared, *functions)
    with pytest.raises(ValueError, match="already been registered"):
        register(Squared, *functions)
    squared = Squared(constant([3.0, 4.0]))
    with Session() as session:
        assert session.run(squared).tolist() == [9, 16]
        assert session.run({"a": squared}, {squared: [1, 2]})["a"].tolist() == [1, 2]
        handle = session.partial_run_setup([squared], [squared])
        assert session.partial_run(handle, squared, {squared: [1, 2]}).tolist() == [1, 2]


def test_callable_from_options() -> None:
    fed = placeholder(float32)
    options = CallableOptions(feed=[fed.name], fetch=[(fed + 1.0).name])
    options.run_options.trace_level = options.run_options.FULL_TRACE
    metadata = RunMetadata()
    with Session() as session:
        assert session._make_callable_from_options(options)(5.0, run_metadata=metadata) == [6.0]
    assert metadata.step_stats.dev_stats


def test_session_graph_def_with_shapes() -> None:
    constant([1, 2], name=b"named")
    config = ConfigProto()
    assert "_output_shapes" not in Session(config=config).graph_def.node[0].attr
    config.graph_options.infer_shapes = True
    (node,) = Session(config=config).graph_def.node
    assert node.name == "named"
    assert "_output_shapes" in node.attr


def test_late_cpu_device_request(caplog: pytest.LogCaptureFixture) -> None:
    there = len(placement.available())
    config = ConfigProto(device_count={"CPU": there + 1})
    try:
        with Session(config=config) as session, device(f"/cpu:{there}"):
            assert session.run(constant(1.0) + 1.0) == 2.0
            assert len(session.list_devices()) > there
    finally:
        placement._cpu_names = 1
        placement.available.cache_clear()
    assert "cannot change once JAX has started" in caplog.text


def test_eval_with_session_of_another_graph_raises() -> None:
    a = constant(1.0)
    with (
        Graph().as_default(),
        Session(),
        pytest.raises(ValueError, match="different from the graph"),
    ):
        a.eval()


def test_make_callable() -> None:
    x = placeholder(float32, [])
    y = x * 2.0
    with Session() as session:
        double = session.make_callable(y, [x])
        assert [double(1.0), double(2.0)] == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="closed Session"):
        double(1.0)


def test_runtime_shape_mismatch_raises() -> None:
    with Graph().as_default(), Session() as session:
        x = placeholder(float32, [None])
        with pytest.raises(errors.InvalidArgumentError, match=r"with 6 values, but .* has 4"):
            session.run(array.reshape(x, [4]), {x: np.zeros(6)})
        with pytest.raises(errors.InvalidArgumentError, match=r"with 6 values, .* multiple of 4"):
            session.run(array.reshape(x, [4, -1]), {x: np.zeros(6)})


def test_legacy_concat_argument_order() -> None:
    with Graph().as_default(), pytest.raises(TypeError, match=r"before TensorFlow 1\.0"):
        joining.concat(0, [filling.zeros([2]), filling.zeros([3])])


def test_session_graph_def() -> None:
    with Graph().as_default() as graph, Session() as session:
        constant(1, name="one")
        assert session.graph_def == graph.as_graph_def()
        assert [node.name for node in session.graph_def.node] == ["one"]


def test_run_metadata() -> None:
    with Graph().as_default() as graph, Session() as session:
        fetched = constant(1.0, name="one")
        constant(2.0, name="two")
        metadata = RunMetadata()
        traced = RunOptions(trace_level=RunOptions.FULL_TRACE, output_partition_graphs=True)
        session.run(fetched, options=traced, run_metadata=metadata)
        assert len(metadata.step_stats.dev_stats) == 1
        (partition,) = metadata.partition_graphs
        assert [node.name for node in partition.node] == ["one"]
        with pytest.raises(errors.InvalidArgumentError, match="Must run 'setup'"):
            session.partial_run("no handle", fetched)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="appears to refer to a Tensor, not a Operation"):
            graph.get_operation_by_name("one:0")
        with pytest.raises(ValueError, match="not a valid one"):
            graph.get_tensor_by_name("one:0:0")
        with pytest.raises(ValueError, match=r"looks like an \(invalid\) Operation name"):
            graph.get_tensor_by_name("three")


@pytest.mark.parametrize(
    ("fetches", "place"),
    [
        (lambda x: None, "fetches"),
        (lambda x: [x, {"a": None}], "fetches[1]['a']"),
        (lambda x: {"loss": x, "accuracy": None}, "fetches['accuracy']"),
        (lambda x: (None, [x, None]), "fetches[0], fetches[1][1]"),
    ],
)
def test_error_says_which_fetch_is_none(fetches: Any, place: str) -> None:
    with Graph().as_default(), Session() as session:
        x = constant(1.0)
        with pytest.raises(TypeError, match="Cannot be None") as caught:
            session.run(fetches(x))
    assert str(caught.value).endswith(f"received: None as {place}")
