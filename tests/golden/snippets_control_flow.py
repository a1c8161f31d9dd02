"""Programs of control flow, functions and gradients: functions of the module `tf` and a session.

`STATE`: variables that bodies read and assign.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np


def _after(session: Any, tf: Any, result: Any, *variables: Any) -> list[Any]:
    """What a run gives, then the variables."""
    session.run(tf.global_variables_initializer())
    return [session.run(result), *(session.run(each) for each in variables)]


def _doubled_by_a_loop(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)

    def body(i: Any) -> Any:
        with tf.control_dependencies([v.assign(v * 2.0)]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 4, body, [0]), v)


def _squared_by_a_loop(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=2.0)

    def body(i: Any) -> Any:
        with tf.control_dependencies([tf.assign(v, tf.square(v))]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 4, body, [0]), v)


def _map_fn(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)

    def function(x: Any) -> Any:
        with tf.control_dependencies([v.assign(v * 2.0)]):
            return x + v

    mapped = tf.map_fn(function, tf.constant([1.0, 2.0, 3.0]), parallel_iterations=1)
    return _after(session, tf, mapped, v)


def _scan_and_foldl(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)

    def function(total: Any, x: Any) -> Any:
        with tf.control_dependencies([v.assign(v * 2.0)]):
            return total + x + v

    xs = tf.constant([1.0, 2.0, 3.0])
    scanned = tf.scan(function, xs, tf.constant(0.0), parallel_iterations=1)
    folded = tf.foldl(function, xs, tf.constant(0.0), parallel_iterations=1)
    return [*_after(session, tf, scanned, v), session.run(folded), session.run(v)]


def _nested(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)

    def inner(j: Any) -> Any:
        with tf.control_dependencies([v.assign(v + 1.0)]):
            return j + 1

    def body(i: Any) -> Any:
        count = tf.while_loop(lambda j: j < 2, inner, [0])
        doubled = tf.cond(count > 0, lambda: v.assign(v * 2.0), lambda: v + 0.0)
        with tf.control_dependencies([doubled]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 3, body, [0]), v)


def _nested_map_fn(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    one = {"parallel_iterations": 1}
    mapped = tf.map_fn(lambda x: tf.map_fn(lambda y: v.assign_add(y), x, **one), rows, **one)
    return _after(session, tf, mapped, v)


def _count_up_to(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=np.int64(0))

    def body(i: Any) -> Any:
        with tf.control_dependencies([v.count_up_to(3)]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 3, body, [0]), v)


def _count_up_to_the_limit(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=np.int64(0))

    def body(i: Any) -> Any:
        with tf.control_dependencies([v.count_up_to(2)]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 3, body, [0]), v)


def _scatter(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=tf.zeros([5]))

    def body(i: Any) -> Any:
        added = tf.scatter_add(v, [i], [tf.cast(i, tf.float32) + v[0] + 1.0])
        with tf.control_dependencies([added]):
            later = tf.scatter_nd_update(v, [[i + 1]], [v[i] * 2.0])
        with tf.control_dependencies([later]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 4, body, [0]), v)


def _strings(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer="a")

    def body(i: Any) -> Any:
        with tf.control_dependencies([v.assign(tf.strings.join([v, "b"]))]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 3, body, [0]), v)


def _parts_of_strings(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=tf.constant(["a", "b", "c"]))
    session.run(tf.global_variables_initializer())
    updates = [
        v[1].assign(b"d\0"),
        v[1:].assign("e"),
        tf.scatter_update(v, [0], ["f"]),
        tf.scatter_update(v, 2, b"g\0"),
        tf.scatter_nd_update(v, [[1]], ["h"]),
    ]
    return [[session.run(update), session.run(v)] for update in updates]


def _python(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)

    def body(i: Any) -> Any:
        tripled = tf.py_func(lambda x: np.float32(x * 3), [v], tf.float32)
        tripled.set_shape([])
        with tf.control_dependencies([v.assign(tripled)]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 3, body, [0]), v)


def _optimizer(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)
    optimizer = tf.train.GradientDescentOptimizer(0.25)

    def body(i: Any) -> Any:
        with tf.control_dependencies([optimizer.minimize(tf.square(v - 3.0), var_list=[v])]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 3, body, [0]), v)


def _initialized(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)
    asked = tf.placeholder_with_default(True, [])
    result = tf.cond(asked, lambda: tf.is_variable_initialized(v), lambda: True)
    return [bool(session.run(result)), *map(bool, _after(session, tf, result))]


def _under_control_dependencies(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)
    yes = tf.placeholder_with_default(True, [])
    with tf.control_dependencies([v.assign_add(5.0)]):
        chosen = tf.cond(yes, lambda: v + 0.0, lambda: -v)
        looped = tf.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, x * v), [0, 1.0])[1]
    return [*_after(session, tf, chosen), session.run(chosen, {yes: False}), session.run(looped)]


def _assigned_in_a_branch(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)
    which = tf.placeholder_with_default(0, [])

    def second() -> Any:
        return v.assign(v - 2.0)

    cases = [(tf.equal(which, 0), lambda: v.assign(4.0)), (tf.equal(which, 1), second)]
    result = tf.case(cases, default=lambda: v.assign_sub(3.0))
    later = [session.run(result, {which: at}) for at in (1, 2) if _after(session, tf, result)]
    return [*later, session.run(v)]


def _gradients_of_reads(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=3.0)
    looped = tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x * v), [0, 2.0])[1]
    chosen = tf.cond(v > 1.0, lambda: v * v, lambda: -v)
    mapped = tf.reduce_sum(tf.map_fn(lambda x: v * x, tf.constant([1.0, 2.0])))
    return _after(session, tf, [tf.gradients(y, v) for y in (looped, chosen, mapped)])


# -- loops that grow, gradients, graphs


def _grows_without_a_known_shape(tf: Any, session: Any) -> Any:
    def body(i: Any, x: Any) -> Any:
        return i + 1, tf.concat([x, x], 0)

    shapes = [tf.TensorShape([]), tf.TensorShape(None)]
    looped = tf.while_loop(lambda i, _: i < 3, body, [0, tf.ones([1])], shape_invariants=shapes)
    return [*session.run(looped), str(looped[1].shape)]


def _gains_dimensions(tf: Any, session: Any) -> Any:
    def body(i: Any, x: Any) -> Any:
        return i + 1, tf.expand_dims(x, 0)

    shapes = [tf.TensorShape([]), tf.TensorShape(None)]
    looped = tf.while_loop(lambda i, _: i < 3, body, [0, tf.ones([2])], shape_invariants=shapes)
    return session.run(looped)


def _grows_from_a_placeholder(tf: Any, session: Any) -> Any:
    x = tf.placeholder(tf.float32, [None, 2])

    def body(i: Any, x: Any) -> Any:
        return i + 1, tf.concat([x, 2.0 * x], 0)

    shapes = [tf.TensorShape([]), tf.TensorShape([None, 2])]
    looped = tf.while_loop(lambda i, _: i < 2, body, [0, x], shape_invariants=shapes)[1]
    return session.run([looped, *tf.gradients(looped, x)], {x: [[1.0, 2.0]]})


def _declared_loosely(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=2.0)

    def body(i: Any, x: Any) -> Any:
        with tf.control_dependencies([v.assign_add(1.0)]):
            return i + 1, x * v

    looped = tf.while_loop(
        lambda i, _: i < 2,
        body,
        [0, tf.ones([3])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)],
        parallel_iterations=1,
    )
    return _after(session, tf, looped, v)


def _recompute_grad(tf: Any, session: Any) -> Any:
    w = tf.get_variable("w", initializer=[[0.5, -1.0], [2.0, 0.25]])
    x = tf.constant([[1.0, 2.0]])

    @tf.recompute_grad
    def layer(x: Any) -> Any:
        return tf.tanh(tf.matmul(x, w))

    y = layer(layer(x))
    return _after(session, tf, [y, *tf.gradients(y, [x, w])])


def _grad_pass_through(tf: Any, session: Any) -> Any:
    x = tf.constant([1.5, -0.5])
    y = tf.grad_pass_through(tf.floor)(x) * 2.0
    return session.run([y, *tf.gradients(y, x)])


def _custom_gradient_uses_a_variable(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=3.0)

    @tf.custom_gradient
    def function(x: Any) -> Any:
        def grad(dy: Any, variables: Any = None) -> Any:
            return dy * 10.0, [dy * 100.0 for _ in variables]

        return x * v, grad

    x = tf.constant(2.0)
    return _after(session, tf, tf.gradients(function(x), [x, v]))


def _custom_gradient_takes_no_variables(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=3.0)
    return tf.custom_gradient(lambda x: (x * v, lambda dy: dy))(tf.constant(2.0))


def _colocation(tf: Any, session: Any) -> Any:
    graph = tf.get_default_graph()
    a = tf.constant(1.0, name="a")
    with graph.colocate_with(a.op):
        b = tf.constant(2.0, name="b")
        with graph.colocate_with(None, ignore_existing=True):
            c = tf.constant(3.0, name="c")
        with tf.colocate_with(b.op):
            d = tf.constant(4.0, name="d")
        with graph.colocate_with(c.op, ignore_existing=True):
            e = tf.constant(5.0, name="e")
    groups = [each.op.colocation_groups() for each in (a, b, c, d, e)]
    with tf.Graph().as_default():
        found = tf.import_graph_def(graph.as_graph_def(), return_elements=["b"], name="z")
        groups.append(found[0].colocation_groups())
    return [*groups, b.op.get_attr("_class")]


def _colocation_with_nothing(tf: Any, session: Any) -> Any:
    with tf.colocate_with(None):
        return 1


def _not_fetched(tf: Any, session: Any) -> Any:
    a = tf.constant(1.0)
    a.graph.prevent_fetching(a.op)
    return session.run(a)


def _negative_slices(tf: Any, session: Any) -> Any:
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([2, 2]))
    return list(session.run(-slices))


def _graph_facts(tf: Any, session: Any) -> Any:
    graph = tf.get_default_graph()
    graph.get_collection_ref("empty")
    graph.add_to_collection("full", 1)
    with graph.control_dependencies([tf.no_op(name="first")]):
        op = tf.no_op(name="second")
    with graph.container("jar") as name:
        kept = graph.collections, graph.get_all_collection_keys(), name
    names = [each.name for each in op.control_inputs]
    spec = tf.IndexedSlicesSpec([3, None], tf.float64, dense_shape_dtype=tf.int32)
    other = tf.IndexedSlicesSpec([3, 4], tf.float64, dense_shape_dtype=tf.int32)
    fits = spec.is_compatible_with(other), spec == other, spec.value_type.__name__
    x = tf.constant(1.0)
    ref = x.experimental_ref()
    return [*kept, names, isinstance(op.control_inputs, list), *fits, ref.deref() is x]


def _importable(tf: Any, **changes: str) -> Any:
    """A `GraphDef` of four nodes; `changes` are inputs of node c, or its name."""
    with tf.Graph().as_default() as graph:
        a = tf.placeholder(tf.float32, [2], name="a")
        tf.identity(tf.add(a, tf.constant([1.0, 2.0], name="b"), name="c"), name="d")
    graph_def = graph.as_graph_def()
    node = next(each for each in graph_def.node if each.name == "c")
    node.input[0] = changes.get("input", node.input[0])
    node.name = changes.get("name", node.name)
    return graph_def


def _imported(tf: Any, session: Any) -> Any:
    before = tf.no_op(name="before")
    with tf.control_dependencies([before]):
        given = {"a:0": tf.constant([5.0, 6.0])}
        made = tf.import_graph_def(_importable(tf), given, ["c:0", b"d"], name="z")
    names = [[each.name for each in op.control_inputs] for op in (made[0].op, made[1])]
    return [session.run(made[0]), made[1].name, names]


def _duplicate_names(tf: Any, session: Any) -> Any:
    graph_def = tf.constant(1.0, name="a").graph.as_graph_def()
    graph_def.node.add().CopyFrom(graph_def.node[0])
    with tf.Graph().as_default():
        return tf.import_graph_def(graph_def)


# Rows that need names of TensorFlow 1.
LEGACY = {
    *("defun_arguments", "defun_call", "defun_default", "defun_keyword", "defun_names"),
    *("defun_no_function", "recompute_grad"),
}
GRAPHS: dict[str, Callable[[Any, Any], Any]] = {
    function.__name__[1:]: function
    for function in (
        *(_grows_without_a_known_shape, _gains_dimensions, _grows_from_a_placeholder),
        *(_declared_loosely, _recompute_grad, _grad_pass_through),
        *(_custom_gradient_uses_a_variable, _custom_gradient_takes_no_variables, _colocation),
        *(_colocation_with_nothing, _not_fetched, _negative_slices, _graph_facts),
        *(_duplicate_names, _imported),
    )
}

# -- tensor arrays


def _three_shapes(tf: Any) -> Any:
    array = tf.TensorArray(tf.float32, 3, infer_shape=False, clear_after_read=False)
    return (
        array.write(0, [[1.0, 2.0]]).write(1, [[3.0, 4.0], [5.0, 6.0]]).write(2, tf.zeros([0, 2]))
    )


def _array_of_several_shapes(tf: Any, session: Any) -> Any:
    array = _three_shapes(tf)
    return session.run([*(array.read(at) for at in range(3)), array.concat(), array.size()])


def _array_of_several_ranks(tf: Any, session: Any) -> Any:
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True, infer_shape=False)
    array = array.write(0, [1.0]).write(2, [1.0, 2.0]).write(1, [[3.0]])
    return session.run([array.read(1), array.read(2), array.size()])


def _array_of_strings(tf: Any, session: Any) -> Any:
    array = tf.TensorArray(tf.string, 2, infer_shape=False).write(0, ["a"]).write(1, ["b", "c"])
    return session.run(array.concat())


def _array_of_texts(tf: Any, session: Any) -> Any:
    written = tf.while_loop(
        lambda i, _: i < 2,
        lambda i, array: (i + 1, array.write(i, tf.as_string(i))),
        [0, tf.TensorArray(tf.string, 2)],
    )[1]
    scattered = tf.TensorArray(tf.string, 2).scatter([1, 0], [b"a\0", b"b"])
    return session.run([written.stack(), scattered.stack()])


def _text_that_ends_in_zero_bytes(tf: Any, session: Any) -> Any:
    def lengths(text: Any) -> Any:
        return tf.strings.length(text)

    one_value = tf.SparseTensor([[0, 0]], [b"a\0"], [2, 1])
    made = [
        tf.py_func(lambda: b"a\0", [], tf.string),
        tf.py_func(lambda: [[b"a\0", b"bc"]], [], [tf.string])[0],
        tf.sparse.to_dense(one_value, default_value=b"\0"),
        tf.sparse.fill_empty_rows(one_value, b"c\0\0")[0].values,
        tf.map_fn(lambda text: tf.strings.join([text, b"\0"]), tf.constant(["a", ""])),
    ]
    return session.run([made, [lengths(each) for each in made]])


def _split_unequally(tf: Any, session: Any) -> Any:
    value = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    array = tf.TensorArray(tf.float32, 3, infer_shape=False).split(value, [1, 2, 0])
    read = [array.read(at) for at in range(3)]
    return session.run([*read, *tf.gradients([read[0] * 2.0, read[1] * 3.0], value)])


def _split_by_computed_lengths(tf: Any, session: Any) -> Any:
    value = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    lengths = tf.placeholder_with_default([1, 2, 0], [3])
    joined = tf.TensorArray(tf.float32, 3, infer_shape=False).split(value, lengths).concat()
    incoming = tf.constant([[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]])
    return session.run([joined, *tf.gradients(joined, value, incoming)])


def _array_grows_in_a_loop(tf: Any, session: Any) -> Any:
    x = tf.constant(2.0)

    def body(i: Any, array: Any) -> Any:
        return i + 1, array.write(i, tf.fill([i + 1], x * tf.cast(i + 1, tf.float32)))

    start = tf.TensorArray(tf.float32, 3, infer_shape=False)
    joined = tf.while_loop(lambda i, _: i < 3, body, [0, start])[1].concat()
    return session.run([joined, *tf.gradients(joined, x)])


def _array_in_branches(tf: Any, session: Any) -> Any:
    yes = tf.placeholder_with_default(True, [])
    array = tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, [1.0])
    array = tf.cond(yes, lambda: array.write(1, [2.0, 3.0]), lambda: array.write(1, [[4.0]]))
    read = array.read(1)
    return [session.run(read), session.run(read, {yes: False})]


def _scattered_array(tf: Any, session: Any) -> Any:
    array = tf.TensorArray(tf.float32, 3, infer_shape=False, clear_after_read=False)
    array = array.scatter([2, 0], tf.constant([[1.0, 2.0], [3.0, 4.0]])).write(1, [7.0])
    return session.run([array.concat(), array.gather([0, 2])])


def _gradients_of_an_array(tf: Any, session: Any) -> Any:
    x = tf.constant([1.0, 2.0, 3.0])
    array = tf.TensorArray(tf.float32, 3, infer_shape=False)
    array = array.write(0, x).write(1, x[:1] * 4.0).write(2, x[1:] * 2.0)
    y = tf.concat([tf.square(array.read(at)) for at in range(3)], 0)
    return session.run([y, *tf.gradients(y, x)])


def _written_twice(tf: Any, session: Any) -> Any:
    array = tf.TensorArray(tf.float32, 3, infer_shape=False).write(0, [1.0]).write(0, [2.0])
    return session.run(array.read(0))


def _never_written(tf: Any, session: Any) -> Any:
    return session.run(tf.TensorArray(tf.float32, 3, infer_shape=False).write(0, [1.0]).read(1))


def _out_of_range(tf: Any, session: Any) -> Any:
    return session.run(tf.TensorArray(tf.float32, 3, infer_shape=False).write(3, [1.0]).flow)


def _stack_of_several_shapes(tf: Any, session: Any) -> Any:
    return session.run(_three_shapes(tf).stack())


def _another_shape(tf: Any, session: Any) -> Any:
    return tf.TensorArray(tf.float32, 3).write(0, [1.0]).write(1, [1.0, 2.0])


def _another_shape_when_run(tf: Any, session: Any) -> Any:
    one, two = tf.placeholder(tf.float32, None), tf.placeholder(tf.float32, None)
    array = tf.TensorArray(tf.float32, 2).write(0, one).write(1, two)
    return session.run([array.read(0), array.read(1)], {one: [1.0, 2.0], two: [3.0]})


def _not_the_element_shape(tf: Any, session: Any) -> Any:
    return tf.TensorArray(tf.float32, 3, element_shape=[2]).write(0, [1.0, 2.0, 3.0])


def _wrong_lengths(tf: Any, session: Any) -> Any:
    array = tf.TensorArray(tf.float32, 2, infer_shape=False).split(tf.ones([3]), [1, 1])
    return session.run(array.read(0))


def _split_into_too_few(tf: Any, session: Any) -> Any:
    array = tf.TensorArray(tf.float32, 2, infer_shape=False).split(tf.ones([3]), [3])
    return session.run(array.flow)


def _gradient_of_one_row(tf: Any, session: Any) -> Any:
    x = tf.constant([2.0, 3.0])
    return session.run(tf.gradients(tf.TensorArray(tf.float32, 2).unstack(x).read(0), x))


def _mapped_to_numbers(tf: Any, session: Any) -> Any:
    return session.run(tf.map_fn(lambda _: 1, tf.constant([2.0, 3.0])))


def _array_of_scalars_joined(tf: Any, session: Any) -> Any:
    array = tf.TensorArray(tf.float32, 1, infer_shape=False).write(0, 1.0)
    return session.run(array.concat())


def _array_without_size(tf: Any, session: Any) -> Any:
    return tf.TensorArray(tf.float32)


def _array_of_handle_and_size(tf: Any, session: Any) -> Any:
    return tf.TensorArray(tf.float32, 3, handle=tf.TensorArray(tf.float32, 3).handle)


def _array_of_a_handle(tf: Any, session: Any) -> Any:
    array = tf.TensorArray(tf.float32, 3, infer_shape=False).write(0, [1.0])
    return session.run(tf.TensorArray(tf.float32, handle=array.handle, flow=array.flow).read(0))


def _shapes_of_an_array(tf: Any, session: Any) -> Any:
    array = tf.TensorArray(tf.float32, 2).write(0, [1.0, 2.0])
    parts = array.read(0), array.stack(), array.concat()
    return [array.element_shape.as_list(), *(part.shape.as_list() for part in parts)]


ARRAYS: dict[str, Callable[[Any, Any], Any]] = {
    function.__name__[1:]: function
    for function in (
        *(_array_of_several_shapes, _array_of_several_ranks, _array_of_strings, _split_unequally),
        *(_array_of_texts, _text_that_ends_in_zero_bytes),
        *(_split_by_computed_lengths, _array_grows_in_a_loop, _array_in_branches),
        *(_scattered_array, _gradients_of_an_array, _written_twice, _never_written),
        *(_out_of_range, _stack_of_several_shapes, _another_shape, _another_shape_when_run),
        *(_not_the_element_shape, _wrong_lengths, _array_of_scalars_joined, _array_without_size),
        *(_array_of_handle_and_size, _array_of_a_handle, _shapes_of_an_array),
        *(_split_into_too_few, _gradient_of_one_row, _mapped_to_numbers),
    )
}

# -- functions, and what is refused


def _defun(tf: Any, *args: Any, **keywords: Any) -> Any:
    """`Defun`, by the private module that has it."""
    root = "tensorflow" if tf.__name__.startswith("tensorflow") else "estimatorkit.compat.v1"
    function = importlib.import_module(f"{root}.python.framework.function")
    return function.Defun(*args, **keywords)


def _function_without_results(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)

    def add(x: Any) -> None:
        v.assign_add(x)

    called = _defun(tf, tf.float32)(add)(2.0)
    session.run(tf.global_variables_initializer())
    session.run(called)
    return session.run(v)


def _function_captures(tf: Any, session: Any) -> Any:
    x = tf.constant(5.0)

    def times(y: Any) -> Any:
        return x * y

    function = _defun(tf, tf.float32)(times)
    return [session.run(function(2.0)), len(function.captured_inputs)]


def _two_results(x: Any) -> Any:
    return x, x


def _two_arguments(x: Any, y: Any) -> Any:
    return x


def _with_default(x: Any, y: Any = 1.0) -> Any:
    return x


def _yes(tf: Any) -> Any:
    return tf.placeholder_with_default(True, [])


def _loop(tf: Any, body: Any, start: Any, **rest: Any) -> Any:
    return tf.while_loop(lambda i, *_: i < 1, body, start, **rest)


def _sevens(*_: Any) -> int:
    return 7


Program = Callable[[Any, Any], Any]

REFUSALS: dict[str, Program] = {
    "cond_python_bool": lambda tf, _: tf.cond(False, _sevens, _sevens),
    "cond_no_function": lambda tf, _: tf.cond(_yes(tf), 1, _sevens),
    "cond_both_names": lambda tf, _: tf.cond(_yes(tf), true_fn=_sevens, fn1=_sevens),
    "cond_one_branch": lambda tf, _: tf.cond(_yes(tf), _sevens),
    "cond_dtypes": lambda tf, _: tf.cond(_yes(tf), _sevens, lambda: tf.constant(1.0)),
    "cond_structures": lambda tf, _: tf.cond(_yes(tf), _sevens, lambda: (1, 2)),
    "cond_none": lambda tf, _: tf.cond(_yes(tf), lambda: None, lambda: None),
    "cond_kinds": lambda tf, _: tf.cond(
        _yes(tf),
        lambda: tf.IndexedSlices(tf.constant([1.0]), tf.constant([0])),
        lambda: tf.constant([1.0]),
    ),
    "cond_keys": lambda tf, _: tf.cond(_yes(tf), lambda: {"a": 1}, lambda: {"b": 1}),
    "cond_int": lambda tf, _: tf.cond(tf.constant(1), _sevens, _sevens),
    "cond_vector": lambda tf, _: tf.cond(tf.constant([True]), _sevens, _sevens),
    "loop_no_condition": lambda tf, _: tf.while_loop(1, _sevens, [0]),
    "loop_no_body": lambda tf, _: tf.while_loop(_sevens, 1, [0]),
    "loop_of_nothing": lambda tf, _: tf.while_loop(_sevens, _sevens, []),
    "loop_iterations": lambda tf, _: _loop(tf, _sevens, [0], parallel_iterations=0),
    "loop_none": lambda tf, _: _loop(tf, lambda i: None, [0]),
    "loop_structure": lambda tf, _: _loop(tf, lambda i, x: (i, [x]), [0, 1]),
    "loop_shape": lambda tf, _: _loop(
        tf, lambda i, x: (i, tf.concat([x, x], 0)), [0, tf.ones([2])]
    ),
    "loop_invariant": lambda tf, _: _loop(
        tf,
        lambda i, x: (i, x),
        [0, tf.ones([2])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([3])],
    ),
    "loop_invariants": lambda tf, _: _loop(
        tf, lambda i, x: (i, x), [0, 1], shape_invariants=[tf.TensorShape([])]
    ),
    "loop_maximum": lambda tf, _: _loop(tf, _sevens, [0], maximum_iterations=[1, 2]),
    "case_python_bool": lambda tf, _: tf.case([(True, _sevens)], default=_sevens),
    "case_no_function": lambda tf, _: tf.case([(_yes(tf), 3)], default=_sevens),
    "case_text": lambda tf, _: tf.case("a", default=_sevens),
    "case_triple": lambda tf, _: tf.case([(_yes(tf), _sevens, 1)]),
    "case_int": lambda tf, _: tf.case([(tf.constant(1), _sevens)]),
    "case_default": lambda tf, _: tf.case([(_yes(tf), _sevens)], default=3),
    "switch_case_float": lambda tf, _: tf.switch_case(tf.constant(1.0), [_sevens]),
    "switch_case_empty": lambda tf, _: tf.switch_case(tf.constant(1), []),
    "switch_case_no_function": lambda tf, _: tf.switch_case(tf.constant(1), [1]),
    "switch_case_twice": lambda tf, _: tf.switch_case(tf.constant(1), [(0, _sevens), (0, _sevens)]),
    "switch_case_key": lambda tf, _: tf.switch_case(tf.constant(1), [(0.5, _sevens)]),
    "switch_case_text": lambda tf, _: tf.switch_case("a", [_sevens]),
    "switch_case_gap": lambda tf, _: tf.switch_case(tf.constant(1), {0: _sevens, 5: _sevens}),
    "tuple_of_nothing": lambda tf, _: tf.tuple([None]),
    "grad_ys_count": lambda tf, _: tf.gradients(tf.ones([]), tf.ones([]), grad_ys=[1.0, 2.0]),
    "unconnected": lambda tf, _: tf.gradients(
        tf.ones([]), tf.ones([]), unconnected_gradients="nonsense"
    ),
    "override_map": lambda tf, _: (
        tf.get_default_graph().gradient_override_map({1: "a"}).__enter__()
    ),
    "defun_keyword": lambda tf, _: _defun(tf, tf.float32, whatever=1)(_two_results)(1.0),
    "defun_arguments": lambda tf, _: _defun(tf, tf.float32)(_two_arguments)(1.0),
    "defun_call": lambda tf, _: _defun(tf, tf.float32)(_two_results)(1.0, 2.0),
    "defun_default": lambda tf, _: _defun(tf, tf.float32)(_with_default)(1.0),
    "defun_names": lambda tf, _: _defun(tf, tf.float32, out_names=["a"])(_two_results)(1.0),
    "defun_no_function": lambda tf, _: _defun(tf, tf.float32)(3),
    "import_no_graph": lambda tf, _: tf.import_graph_def("graph"),
    "import_no_map": lambda tf, _: tf.import_graph_def(_importable(tf), [tf.constant(1.0)]),
    "import_no_list": lambda tf, _: tf.import_graph_def(_importable(tf), return_elements=7),
    "import_element": lambda tf, _: tf.import_graph_def(_importable(tf), return_elements=["z"]),
    "import_output": lambda tf, _: tf.import_graph_def(_importable(tf), return_elements=["a:7"]),
    "import_name": lambda tf, _: tf.import_graph_def(_importable(tf), return_elements=["a:b:c"]),
    "import_unused": lambda tf, _: tf.import_graph_def(_importable(tf), {"z:0": tf.constant(1.0)}),
    "import_dtype": lambda tf, _: tf.import_graph_def(
        _importable(tf), {"a:0": tf.constant([1, 2])}
    ),
    "import_input": lambda tf, _: tf.import_graph_def(_importable(tf, input="z")),
    "import_input_output": lambda tf, _: tf.import_graph_def(_importable(tf, input="a:5")),
    "import_cycle": lambda tf, _: tf.import_graph_def(_importable(tf, input="d")),
    "import_bad_name": lambda tf, _: tf.import_graph_def(_importable(tf, name="bad name")),
    "map_fn_scalar": lambda tf, _: tf.map_fn(lambda x: x, tf.constant(1)),
    "map_fn_structure": lambda tf, _: tf.map_fn(_two_results, tf.constant([1])),
    "scan_structure": lambda tf, _: tf.scan(
        lambda a, x: (a, a), tf.constant([1, 2]), initializer=0
    ),
}

FUNCTIONS: dict[str, Program] = {
    function.__name__[1:]: function for function in (_function_without_results, _function_captures)
}

STATE: dict[str, Callable[[Any, Any], Any]] = {
    function.__name__[1:]: function
    for function in (
        *(_doubled_by_a_loop, _squared_by_a_loop, _map_fn, _scan_and_foldl, _nested),
        *(_nested_map_fn, _count_up_to, _count_up_to_the_limit, _scatter, _strings, _python),
        _parts_of_strings,
        *(_optimizer, _initialized, _under_control_dependencies, _assigned_in_a_branch),
        _gradients_of_reads,
    )
}
