"""Variables: order of reads and writes, assignments, sharing scopes, errors."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import builtin_ops, errors
from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import float32, float64, int32, int64
from estimatorkit.core.graph import Graph, control_dependencies, get_collection, name_scope
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import filling
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.variables.initializers import Constant, Ones, Zeros
from estimatorkit.ops.variables.variable_collections import (
    assign,
    assign_add,
    assign_sub,
    global_variables,
    global_variables_initializer,
    is_variable_initialized,
    local_variables,
    local_variables_initializer,
    trainable_variables,
    variables_initializer,
)
from estimatorkit.ops.variables.variable_scope import AUTO_REUSE, get_variable, variable_scope
from estimatorkit.runtime.session import Session


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with Graph().as_default():
        yield


def initialized() -> Session:
    session = Session()
    session.run(global_variables_initializer())
    return session


# -- the order of reads and writes


def test_read_before_assignment_returns_old_value() -> None:
    v = Variable(1.0)
    before = v * 10.0
    add = v.assign_add(1.0)
    session = initialized()
    for expected in (10.0, 20.0, 30.0):
        assert session.run([add, before]) == [expected / 10 + 1, expected]
        assert session.run(v) == expected / 10 + 1


def test_fetch_beside_assignment_returns_old_value() -> None:
    v = Variable(1.0)
    add = v.assign_add(1.0)
    session = initialized()
    assert session.run([v, add]) == [1.0, 2.0]
    assert session.run([add, v]) == [3.0, 2.0]


def test_loss_precedes_update() -> None:
    w = Variable([3.0, 4.0])
    loss = reduce.reduce_sum(elementwise.square(w))
    train = builtin_ops.group(w.assign_sub(w * 0.5))
    session = initialized()
    assert session.run([train, loss]) == [None, 25.0]
    assert session.run([loss, train]) == [6.25, None]
    assert session.run(loss) == 1.5625


def test_read_after_control_dependency() -> None:
    v = Variable(1.0)
    add = v.assign_add(1.0)
    with control_dependencies([add]):
        after = builtin_ops.identity(v)
        doubled = v * 2.0
        value = v.read_value()
    session = initialized()
    assert session.run([after, doubled, value, v]) == [2.0, 4.0, 2.0, 1.0]


def test_assignments_run_in_creation_order() -> None:
    v = Variable(1.0)
    first = v.assign(10.0)
    second = v.assign_add(5.0)
    third = v.assign_sub(1.0)
    session = initialized()
    assert session.run([third, first, second]) == [14.0, 10.0, 15.0]
    assert session.run(v) == 14.0


def test_unfetched_assignments_do_not_run() -> None:
    v = Variable(1.0)
    v.assign(10.0)
    last = v.assign_add(5.0)
    session = initialized()
    assert session.run(last) == 6.0


def test_assignment_returns_new_value() -> None:
    v = Variable(1.0)
    w = Variable(2.0)
    chain = w.assign(v.assign_add(1.0) * 3.0) + 1.0
    session = initialized()
    assert session.run(chain) == 7.0
    assert session.run([v, w]) == [2.0, 6.0]


def test_swap_of_two_variables() -> None:
    v, w = Variable(1.0), Variable(2.0)
    old_v, old_w = builtin_ops.identity(v), builtin_ops.identity(w)
    swap = builtin_ops.group(v.assign(old_w), w.assign(old_v))
    session = initialized()
    session.run(swap)
    assert session.run([v, w]) == [2.0, 1.0]


def test_assigning_variable_copies_value() -> None:
    v, w = Variable([1.0]), Variable([2.0])
    copy = w.assign(v)
    change = v.assign_add([5.0])
    session = initialized()
    session.run(copy)
    session.run(change)
    assert session.run([v, w]) == [[6.0], [1.0]]


def test_assign_functions_and_methods() -> None:
    v = Variable(1.0)
    set_, add, sub = assign(v, 5.0), assign_add(v, 2.0), assign_sub(v, 1.0)
    session = initialized()
    assert session.run(set_) == 5.0
    assert session.run(add) == 7.0
    assert session.run(sub) == 6.0


# -- what they are


def test_variable_dtypes_and_shapes() -> None:
    for value, dtype, shape in (
        (1, int32, ()),
        (1.0, float32, ()),
        (np.zeros([2, 3]), float64, (2, 3)),
        (np.int64(2**40), int64, ()),
    ):
        v = Variable(value)
        assert v.dtype is dtype
        assert v.shape == shape
        assert v.get_shape() == shape
        assert v.value().dtype is dtype
        with Session() as session:
            session.run(v.initializer)
            assert session.run(v) == pytest.approx(value)
            assert session.run(v).dtype == dtype.numpy_dtype
    assert Variable(1, dtype=float64).dtype is float64
    assert Variable(lambda: constant([1.0, 2.0])).shape == (2,)


@pytest.mark.slow
def test_operators() -> None:
    v = Variable([1.0, -2.0])
    session = initialized()
    for tensor, expected in (
        (v + 1.0, [2, -1]),
        (1.0 - v, [0, 3]),
        (v * v, [1, 4]),
        (-v, [-1, 2]),
        (abs(v), [1, 2]),
        (v[0], 1),
        (v > 0.0, [True, False]),
        (v / 2.0, [0.5, -1]),
        (v**2.0, [1, 4]),
    ):
        assert np.array_equal(session.run(tensor), expected)
    assert [session.run(each) for each in v] == [1.0, -2.0]
    assert v  # it is there, whatever its value


def test_identity_and_names() -> None:
    v, w = Variable(1.0, name="v"), Variable(1.0, name="v")
    assert v != w
    assert len({v, w, v}) == 2
    assert [v.name, w.name] == ["v:0", "v_1:0"]
    assert v.op.name == "v"
    assert v.op.type == "VarHandleOp"
    assert repr(v) == "<tf.Variable 'v:0' shape=() dtype=float32>"


def test_variable_collections() -> None:
    a = Variable(1.0, name="a")
    b = Variable(1.0, trainable=False, name="b")
    c = Variable(1.0, collections=[GraphKeys.LOCAL_VARIABLES], trainable=False, name="c")
    d = Variable(1.0, collections=["mine"], name="d")
    assert global_variables() == [a, b]
    assert trainable_variables() == [a, d]
    assert local_variables() == [c]
    assert get_collection("mine") == [d]
    with name_scope("scope"):
        e = Variable(1.0, name="e")
    assert global_variables("scope/") == [e]
    with Session() as session:
        session.run([global_variables_initializer(), local_variables_initializer()])
        assert session.run([a, b, c, e]) == [1.0] * 4
        session.run(variables_initializer([d]))
        assert session.run(d) == 1.0


def test_is_variable_initialized() -> None:
    v = Variable(1.0)
    known = is_variable_initialized(v)  # VarIsInitializedOp
    with Session() as session:
        assert not session.run(known)
        session.run(v.initializer)
        assert session.run(known)
        assert session.run(known).dtype == np.bool_


def test_load_and_eval() -> None:
    v = Variable([1.0, 2.0])
    with Session() as session:
        v.load([3, 4], session)
        np.testing.assert_array_equal(v.eval(), [3.0, 4.0])
        v.load([5, 6])
        np.testing.assert_array_equal(v.eval(session), [5.0, 6.0])
        with pytest.raises(ValueError, match="does not match"):
            v.load([1.0], session)
    with pytest.raises(ValueError, match="default session"):
        v.load([1.0, 2.0])


def test_variable_of_unknown_shape() -> None:
    x = builtin_ops.placeholder(float32, [None])
    v = Variable([1.0], validate_shape=False)
    assert v.shape.rank is None
    longer = v.assign(x)
    session = initialized()
    session.run(longer, {x: [1.0, 2.0, 3.0]})
    assert session.run(v).shape == (3,)
    assert session.run(v + 1.0).shape == (3,)


def test_initial_value_from_another_variable() -> None:
    v = Variable(2.0)
    w = Variable(v.initialized_value() * 3.0)
    session = initialized()
    assert session.run(w) == 6.0


def test_wrong_assignments_raise() -> None:
    v = Variable([1.0, 2.0], name="v")
    with pytest.raises(ValueError, match="incompatible") as caught:
        v.assign([1.0])
    assert __file__ in str(caught.value)
    with pytest.raises(TypeError, match="wrong dtype"):
        v.assign(constant([1, 2]))
    with pytest.raises(ValueError, match="initial_value must be specified"):
        Variable()
    with pytest.raises(ValueError, match="incompatible"):
        Variable([1.0], expected_shape=[2])


def test_reinitialization() -> None:
    v = Variable(1.0)
    add = v.assign_add(1.0)
    init = global_variables_initializer()
    with Session() as session:
        session.run(init)
        session.run(add)
        session.run(init)
        assert session.run(v) == 1.0


# -- get_variable and its scopes


def test_get_variable_creates_and_shares() -> None:
    with variable_scope("s"):
        v = get_variable("v", [2])
    with variable_scope("s", reuse=True):
        assert get_variable("v", [2]) is v
        assert get_variable("v") is v
    with variable_scope("s", reuse=AUTO_REUSE):
        assert get_variable("v", [2]) is v
        w = get_variable("w", [3])
    assert w.name == "s/w:0"
    with variable_scope("s") as scope:
        scope.reuse_variables()
        assert get_variable("w") is w
    with variable_scope("s"), pytest.raises(ValueError, match="already exists") as caught:
        get_variable("v", [2])
    assert __file__ in str(caught.value)
    assert "reset_default_graph() begins a new graph" in str(caught.value)


def test_reuse_is_inherited_within_block() -> None:
    with variable_scope("a"), variable_scope("b"):
        v = get_variable("v", [1])
    with variable_scope("a", reuse=True):
        with variable_scope("b"):
            assert get_variable("v") is v
        with variable_scope("c"), pytest.raises(ValueError, match="does not exist"):
            get_variable("v", [1])
    with variable_scope("d"):
        assert get_variable("v", [1]).name == "d/v:0"


def test_scope_defaults() -> None:
    penalties: list[Any] = []

    def penalty(variable: Any) -> Any:
        penalties.append(variable)
        return reduce.reduce_sum(elementwise.abs(variable))

    with variable_scope("s", initializer=Constant(3.0), regularizer=penalty, dtype=float64):
        v = get_variable("v", [2])
        with variable_scope("t"):
            w = get_variable("w", [2], initializer=Ones())
    assert v.dtype is float64
    assert penalties == [v, w]
    losses = get_collection(GraphKeys.REGULARIZATION_LOSSES)
    session = initialized()
    assert session.run(v).tolist() == [3.0, 3.0]
    assert session.run(w).tolist() == [1.0, 1.0]
    assert session.run(losses) == [6.0, 2.0]


@pytest.mark.parametrize("name", ["random_uniform", "random_normal", "truncated_normal"])
def test_default_scale_of_random_initializers(name: str) -> None:
    """TensorFlow 1's own are of scale 1, those of Keras of 0.05."""
    drawn = getattr(tf.initializers, name)(seed=1)([400])
    of_keras = getattr(tf.keras.initializers, name)(seed=1)([400])
    by_name = tf.keras.initializers.get(name)([400])
    first, second, third = Session().run([drawn, of_keras, by_name])
    assert np.abs(first).max() > 0.9
    assert 0.04 < np.abs(second).max() < 0.25
    assert 0.04 < np.abs(third).max() < 0.25
    assert first.min() >= 0 if name == "random_uniform" else first.min() < -0.9


def test_integer_initializer() -> None:
    whole = get_variable("whole", [50], int32, tf.random_uniform_initializer(maxval=4, dtype=int32))
    assert set(initialized().run(whole)) == {0, 1, 2, 3}


@pytest.mark.slow
def test_initial_values() -> None:
    zeros = get_variable("zeros", [2], initializer=Zeros)
    whole = get_variable("whole", [2], int32)
    value = get_variable("value", initializer=[1.0, 2.0])
    tensor = get_variable("tensor", initializer=constant([1, 2]))
    function = get_variable("function", [2], initializer=lambda shape, dtype: filling.ones(shape))
    number = get_variable("number", initializer=7)
    glorot = get_variable("glorot", [50, 50])
    session = initialized()
    assert session.run(zeros).tolist() == [0.0, 0.0]
    assert session.run(whole).tolist() == [0, 0]
    assert session.run(value).tolist() == [1.0, 2.0]
    assert session.run(tensor).tolist() == [1, 2]
    assert session.run(function).tolist() == [1.0, 1.0]
    assert session.run(number) == 7
    limit = np.sqrt(6 / 100)
    drawn = session.run(glorot)
    assert abs(drawn).max() <= limit
    assert drawn.std() == pytest.approx(limit / np.sqrt(3), rel=0.05)


def test_get_variable_ignores_name_scopes_and_control_dependencies() -> None:
    with name_scope("n"), control_dependencies([constant(1.0)]):
        v = get_variable("v", [1])
    assert v.name == "v:0"
    assert v.op.control_inputs == []
    assert v.initializer.control_inputs == []
    with Session() as session:
        session.run(v.initializer)


def test_get_variable_errors() -> None:
    with pytest.raises(ValueError, match="`shape` argument must be"):
        get_variable("v")
    with pytest.raises(ValueError, match="fully defined"):
        get_variable("v", [None, 2])
    get_variable("w", [1])
    with variable_scope("", reuse=True):
        with pytest.raises(ValueError, match=r"specified shape \(2,\)"):
            get_variable("w", [2])
        with pytest.raises(ValueError, match="specified dtype int32"):
            get_variable("w", [1], int32)
    with pytest.raises(TypeError, match="default_name is None"), variable_scope(None):
        pass


def test_uninitialized_variables_of_scope() -> None:
    with variable_scope("s"):
        v = get_variable("v", [1])
    with Session() as session, pytest.raises(errors.FailedPreconditionError, match="s/v"):
        session.run(v)


def test_fetch_and_feed_variable_by_name() -> None:
    variable = Variable([1.0, 2.0], name="w")
    doubled = variable * 2.0
    with Session() as session:
        session.run(global_variables_initializer())
        assert session.run("w:0").tolist() == [1.0, 2.0]
        assert session.run(doubled, {"w:0": [5.0, 6.0]}).tolist() == [10.0, 12.0]
        assert session.run(doubled, {variable: [7.0, 8.0]}).tolist() == [14.0, 16.0]


def test_string_variable_stays_on_host() -> None:
    variable = Variable(["a", "b"], name="words")
    assign = variable.assign(["x", "y"])
    with Session() as session:
        session.run(global_variables_initializer())
        assert session.run(variable).tolist() == [b"a", b"b"]
        assert session.run(assign).tolist() == [b"x", b"y"]
        assert session.run(variable).tolist() == [b"x", b"y"]


# -- changing parts


def table(values: Any = (1.0, 2.0, 3.0, 4.0)) -> Variable:
    return Variable(np.array(values, np.float32), name="table")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (tf.scatter_update, [1.0, 10.0, 3.0, 20.0]),
        (tf.scatter_add, [1.0, 12.0, 3.0, 24.0]),
        (tf.scatter_sub, [1.0, -8.0, 3.0, -16.0]),
        (tf.scatter_mul, [1.0, 20.0, 3.0, 80.0]),
        (tf.scatter_div, [1.0, 0.2, 3.0, 0.2]),
        (tf.scatter_min, [1.0, 2.0, 3.0, 4.0]),
        (tf.scatter_max, [1.0, 10.0, 3.0, 20.0]),
    ],
)
def test_scatter_functions(function: Any, expected: list[float]) -> None:
    v = table()
    changed = function(v, [1, 3], [10.0, 20.0])
    assert changed.name == f"Scatter{function.__name__.removeprefix('scatter_').title()}:0"
    method = getattr(v, function.__name__)(
        tf.IndexedSlices(constant([10.0, 20.0]), constant([1, 3]))
    )
    session = initialized()
    np.testing.assert_allclose(session.run(changed), expected, rtol=1e-6)
    np.testing.assert_allclose(session.run(v), expected, rtol=1e-6)
    session.run(v.initializer)
    np.testing.assert_allclose(session.run(method), expected, rtol=1e-6)


def test_sliced_assignment() -> None:
    v = Variable(np.zeros([2, 3], np.float32))
    session = initialized()
    session.run(tf.scatter_nd_update(v, [[0, 1], [1, 2]], [1.0, 2.0]))
    session.run(v.scatter_nd_add([[1]], [[10.0, 10.0, 10.0]]))
    session.run(tf.scatter_nd_sub(v, [[0, 0]], [5.0]))
    np.testing.assert_array_equal(session.run(v), [[-5, 1, 0], [10, 10, 12]])
    np.testing.assert_array_equal(session.run(v.sparse_read([1])), [[10, 10, 12]])


def test_integer_division_in_scatter() -> None:
    v = Variable([7, -7, 7])
    session = initialized()
    assert session.run(tf.scatter_div(v, [0, 1], [2, 2])).tolist() == [3, -3, 7]


def test_mismatched_updates_raise() -> None:
    v = table()
    with pytest.raises(ValueError, match="do not match the indices"):
        tf.scatter_update(v, [0, 1], [1.0])
    with pytest.raises(ValueError, match="do not match the indices"):
        tf.scatter_nd_update(v, [[0], [1]], [1.0])
    with pytest.raises(ValueError, match="do not match the indices"):
        tf.scatter_nd_add(v, [[0], [1]], 1.0)
    with pytest.raises(TypeError, match="must contain integers"):
        tf.scatter_update(v, [0.5], [1.0])


def test_count_up_to() -> None:
    v = Variable(np.int64(0))
    count = v.count_up_to(3)
    assert (count.name, count.dtype) == ("CountUpTo:0", int64)
    session = initialized()
    assert [session.run(count) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(errors.OutOfRangeError, match="Reached limit of 3"):
        session.run(count)
    assert session.run(v) == 3


def test_concurrent_count_up_to() -> None:
    v = Variable(0)
    count = tf.count_up_to(v, 40)
    session = initialized()
    with ThreadPoolExecutor(4) as threads:
        counted = list(threads.map(lambda _: session.run(count), range(40)))
    assert sorted(counted) == list(range(40))


# -- what has a value: ReportUninitializedVariables, AssertVariablesInitialized, InitializedValue


def test_report_uninitialized_variables() -> None:
    a, b = Variable(1.0, name="a"), Variable(2.0, name="b", collections=[GraphKeys.LOCAL_VARIABLES])
    report, check = tf.report_uninitialized_variables(), tf.assert_variables_initialized()
    session = Session()
    assert session.run(report).tolist() == [b"a", b"b"]
    with pytest.raises(errors.FailedPreconditionError, match="uninitialized value a"):
        session.run(check)
    session.run(a.initializer)
    assert session.run(report).tolist() == [b"b"]
    assert session.run(tf.report_uninitialized_variables([a])).tolist() == []
    session.run(b.initializer)
    session.run(check)


def test_initialized_value_of_another_variable() -> None:
    a = Variable(1.0)
    b = Variable(a.initialized_value() * 2.0)
    session = Session()
    session.run(variables_initializer([a, b]))
    assert session.run([a, b]) == [1.0, 2.0]
    session.run(a.assign(5.0))
    session.run(b.initializer)
    assert session.run(b) == 10.0


def test_legacy_names() -> None:
    v = Variable(1.0, use_resource=True)
    tf.add_to_collection(GraphKeys.MODEL_VARIABLES, v)
    assert tf.all_variables() == tf.model_variables() == [v]
    assert tf.moving_average_variables() == []
    session = Session()
    session.run([tf.initialize_all_variables(), tf.initialize_local_variables()])
    session.run(tf.initialize_variables([v]))
    assert session.run(v) == 1.0


def test_less_specific_shape() -> None:
    v = Variable([1.0, 2.0], shape=[None])
    assert v.shape.as_list() == [None]
    session = initialized()
    session.run(v.assign([1.0, 2.0, 3.0]))
    assert session.run(v).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="incompatible"):
        Variable([1.0, 2.0], shape=[3])


def test_gather_nd_of_variable() -> None:
    variable = Variable([[1.0, 2.0], [3.0, 4.0]])
    with initialized() as session:
        found = session.run(variable.gather_nd([[0, 1], [1, 0]]))
    assert found.tolist() == [2.0, 3.0]
