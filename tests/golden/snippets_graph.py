"""Small graph programs: `make_graph.py` runs them on TensorFlow, tests run them on this package.

A snippet is a function of the module that it uses as `tf` (`tf.compat.v1`, or what stands in for
it). It runs in a fresh default graph and returns facts by label: names, strings, booleans.
Single ops are in `snippets_ops.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Snippet = Callable[[Any], dict[str, Any]]
SNIPPETS: dict[str, Snippet] = {}


def snippet(function: Snippet) -> Snippet:
    """Registers a snippet under its function's name."""
    SNIPPETS[function.__name__] = function
    return function


@snippet
def add_of_numbers(tf: Any) -> dict[str, Any]:
    first = tf.add(3, 5)
    second = tf.add(3, 5)
    return {
        "first": first.name,
        "op": first.op.name,
        "op type": first.op.type,
        "inputs": [tensor.name for tensor in first.op.inputs],
        "second": second.name,
        "inputs of second": [tensor.name for tensor in second.op.inputs],
        "named": tf.add(3, 5, name="sum").name,
        "named again": tf.add(3, 5, name="sum").name,
        "repr": repr(first),
        "str": str(first),
        "repr of op": repr(first.op),
    }


@snippet
def operators(tf: Any) -> dict[str, Any]:
    a = tf.constant([[1.0, 2.0], [3.0, 4.0]], name="a")
    b = tf.constant([[5.0, 6.0], [7.0, 8.0]], name="b")
    p = tf.constant([True, False], name="p")
    made = {
        "a + b": a + b,
        "a + b again": a + b,
        "a - b": a - b,
        "a * b": a * b,
        "a / b": a / b,
        "a // b": a // b,
        "a % b": a % b,
        "-a": -a,
        "a ** b": a**b,
        "a @ b": a @ b,
        "abs(a)": abs(a),
        "a[0]": a[0],
        "a[:, 1]": a[:, 1],
        "a[..., tf.newaxis]": a[..., tf.newaxis],
        "a < b": a < b,
        "a <= b": a <= b,
        "a > b": a > b,
        "a >= b": a >= b,
        "p & p": p & p,
        "p | p": p | p,
        "p ^ p": p ^ p,
        "~p": ~p,
        "a + 1": a + 1,
        "1 + a": 1 + a,
        "a - 1.0": a - 1.0,
        "1.0 - a": 1.0 - a,
        "2 * a": 2 * a,
        "1 / a": 1 / a,
        "2 ** a": 2**a,
    }
    facts = {label: [t.name, t.op.type] for label, t in made.items()}
    facts["inputs of a + 1"] = [t.name for t in made["a + 1"].op.inputs]
    facts["inputs of 1 + a"] = [t.name for t in made["1 + a"].op.inputs]
    return {**facts, "type of a == b": type(a == b).__name__, "a == a": (a == a) is True}


@snippet
def division_of_integers(tf: Any) -> dict[str, Any]:
    a = tf.constant(7, name="a")
    made = {
        "a / 2": a / 2,
        "a // 2": a // 2,
        "tf.div(a, 2)": tf.div(a, 2),
        "tf.divide(a, 2)": tf.divide(a, 2),
        "tf.truediv(a, 2)": tf.truediv(a, 2),
        "tf.floordiv(a, 2)": tf.floordiv(a, 2),
        "tf.mod(-a, 3)": tf.mod(-a, 3),
        "tf.truncatediv(-a, 2)": tf.truncatediv(-a, 2),
    }
    with tf.Session() as session:
        values = session.run(made)
    return {
        label: [t.name, t.op.type, t.dtype.name, np.asarray(values[label]).item()]
        for label, t in made.items()
    }


@snippet
def constants_and_placeholders(tf: Any) -> dict[str, Any]:
    return {
        "constant": tf.constant(1).name,
        "constant again": tf.constant(1).name,
        "named": tf.constant(1, name="x").name,
        "named again": tf.constant(1, name="x").name,
        "placeholder": tf.placeholder(tf.float32).name,
        "placeholder again": tf.placeholder(tf.float32, [None, 3]).name,
        "placeholder named": tf.placeholder(tf.float32, name="in").name,
        "with default": tf.placeholder_with_default(1.0, []).name,
        "dtype of 1": tf.constant(1).dtype.name,
        "dtype of 1.0": tf.constant(1.0).dtype.name,
        "dtype of 'a'": tf.constant("a").dtype.name,
        "dtype of True": tf.constant(True).dtype.name,
        "dtype of [1, 2.5]": tf.constant([1, 2.5]).dtype.name,
        "dtype of np float64": tf.constant(np.zeros(2)).dtype.name,
        "dtype of np int64": tf.constant(np.zeros(2, np.int64)).dtype.name,
        "dtype of 1j": tf.constant(1j).dtype.name,
        "fills": str(tf.constant(1.5, shape=[2, 3]).shape),
    }


@snippet
def variables(tf: Any) -> dict[str, Any]:
    v = tf.Variable(3.0)
    again = tf.Variable([1, 2])
    named = tf.Variable(tf.zeros([2, 2]), name="w")
    facts = {
        "name": v.name,
        "op name": v.op.name,
        "op type": v.op.type,
        "initializer": v.initializer.name,
        "initial value": v.initial_value.name,
        "value": v.value().name,
        "read value": v.read_value().name,
        "again": again.name,
        "named": named.name,
        "named again": tf.Variable(0.0, name="w").name,
        "v + 1": (v + 1).name,
        "inputs of v * 2": [tensor.name for tensor in (v * 2).op.inputs],
        "assign": tf.assign(v, 1.0).name,
        "assign method": v.assign(1.0).name,
        "assign_add": tf.assign_add(v, 1.0).name,
        "assign_sub": tf.assign_sub(v, 1.0).name,
        "not trainable": tf.Variable(1, trainable=False, name="n").name,
        "initializer of all": tf.global_variables_initializer().name,
        "initializer of local": tf.local_variables_initializer().name,
        "initializer of tables": tf.tables_initializer().name,
        "repr": repr(v),
        "str": str(v),
        "dtype": repr(v.dtype),
        "base dtype": repr(v.dtype.base_dtype),
    }
    facts["trainable"] = [variable.name for variable in tf.trainable_variables()]
    facts["global"] = [variable.name for variable in tf.global_variables()]
    return facts


@snippet
def get_variable_plain(tf: Any) -> dict[str, Any]:
    v = tf.get_variable("v", [2, 3])
    z = tf.get_variable("z", [2], initializer=tf.zeros_initializer())
    n = tf.get_variable("n", initializer=tf.constant([1, 2]), trainable=False)
    return {
        "v": v.name,
        "initializer": v.initializer.name,
        "dtype": repr(v.dtype),
        "initial value of v": v.initial_value.name,
        "initial value of z": z.initial_value.name,
        "initial value of n": n.initial_value.name,
        "trainable": [variable.name for variable in tf.trainable_variables()],
    }


@snippet
def variable_scope_nested(tf: Any) -> dict[str, Any]:
    with tf.variable_scope("outer") as outer:
        v = tf.get_variable("v", [1])
        with tf.variable_scope("inner") as inner:
            w = tf.get_variable("w", [1])
            op = tf.constant(1.0, name="c")
            x = tf.Variable(0.0, name="x")
    return {
        "v": v.name,
        "w": w.name,
        "op": op.name,
        "Variable": x.name,
        "outer": outer.name,
        "inner": inner.name,
        "inner's original name scope": inner.original_name_scope,
        "current": tf.get_variable_scope().name,
    }


@snippet
def variable_scope_twice(tf: Any) -> dict[str, Any]:
    with tf.variable_scope("s") as scope:
        v = tf.get_variable("v", [1])
        first = tf.constant(1.0, name="c")
        x = tf.Variable(0.0, name="x")
    with tf.variable_scope("s", reuse=True):
        same = tf.get_variable("v", [1])
        second = tf.constant(1.0, name="c")
        y = tf.Variable(0.0, name="x")
    with tf.variable_scope(scope, reuse=True):
        also_same = tf.get_variable("v", [1])
        third = tf.constant(1.0, name="c")
    return {
        "v": v.name,
        "v again": same.name,
        "same object": v is same,
        "v by scope object": also_same.name,
        "op": first.name,
        "op in second": second.name,
        "op by scope object": third.name,
        "Variable": x.name,
        "Variable in second": y.name,
    }


@snippet
def variable_scope_object_elsewhere(tf: Any) -> dict[str, Any]:
    with tf.variable_scope("a") as a:
        tf.get_variable("v", [1])
    with tf.variable_scope("b"), tf.variable_scope(a, reuse=True) as entered:
        v = tf.get_variable("v")
        op = tf.constant(1.0, name="c")
    with tf.variable_scope(a, auxiliary_name_scope=False):
        bare = tf.constant(1.0, name="c")
    with tf.variable_scope(a, auxiliary_name_scope=False), tf.name_scope(a.original_name_scope):
        back = tf.constant(1.0, name="c")
    return {
        "v": v.name,
        "op": op.name,
        "scope": entered.name,
        "without name scope": bare.name,
        "back in the first name scope": back.name,
    }


@snippet
def variable_scope_reuse(tf: Any) -> dict[str, Any]:
    def layer() -> str:
        with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
            return str(tf.get_variable("v", [1]).name)

    names = [layer(), layer()]
    with tf.variable_scope("s"):
        v = tf.get_variable("v", [1])
        tf.get_variable_scope().reuse_variables()
        w = tf.get_variable("v", [1])
        reuse = bool(tf.get_variable_scope().reuse)
    return {"AUTO_REUSE": names, "reuse_variables": w is v, "reuse": reuse}


@snippet
def variable_scope_default_name(tf: Any) -> dict[str, Any]:
    found = []
    for _ in range(3):
        with tf.variable_scope(None, default_name="layer") as scope:
            v = tf.get_variable("v", [1])
            found.append([scope.name, v.name, tf.constant(0.0, name="c").name])
    with tf.variable_scope("layer"):
        found.append(["layer", tf.get_variable("w", [1]).name, tf.constant(0.0, name="c").name])
    return {"default_name": found}


@snippet
def name_scope_and_variables(tf: Any) -> dict[str, Any]:
    with tf.name_scope("n") as name:
        g = tf.get_variable("g", [1])
        v = tf.Variable(0.0, name="v")
        op = tf.constant(1.0, name="c")
        with tf.variable_scope("s"):
            h = tf.get_variable("h", [1])
            inner = tf.constant(1.0, name="c")
            product = g * 2.0
    return {
        "scope": name,
        "get_variable": g.name,
        "Variable": v.name,
        "op": op.name,
        "get_variable in variable_scope": h.name,
        "op in variable_scope": inner.name,
        "operator": product.name,
    }


@snippet
def name_scope_again(tf: Any) -> dict[str, Any]:
    with tf.name_scope("s") as first_scope:
        first = tf.constant(1.0, name="c")
        with tf.name_scope("t"):
            nested = tf.constant(1.0, name="c")
    with tf.name_scope("s") as second_scope:
        second = tf.constant(1.0, name="c")
    with tf.name_scope(first_scope) as third_scope:
        third = tf.constant(1.0, name="c")
        fresh = tf.constant(1.0, name="d")
        with tf.name_scope("t"):
            nested_again = tf.constant(1.0, name="c")
    with tf.name_scope("s/"):
        slash = tf.constant(1.0, name="c")
    with tf.name_scope("s"), tf.name_scope(None):
        root = tf.constant(1.0, name="c")
    with tf.name_scope(None, "default", [first]) as default_scope:
        pass
    with tf.name_scope(None, "default", [first]) as default_again:
        pass
    return {
        "scopes": [first_scope, second_scope, third_scope],
        "first": first.name,
        "nested": nested.name,
        "second": second.name,
        "entered by its string": third.name,
        "new name there": fresh.name,
        "nested there": nested_again.name,
        "with a slash": slash.name,
        "None": root.name,
        "default": [default_scope, default_again],
        "op whose name ends in a slash": tf.constant(1.0, name="exact/").name,
    }


@snippet
def names_are_unique_without_case(tf: Any) -> dict[str, Any]:
    return {
        "foo": tf.constant(1.0, name="foo").name,
        "FOO": tf.constant(1.0, name="FOO").name,
        "Foo": tf.constant(1.0, name="Foo").name,
        "foo_1": tf.constant(1.0, name="foo_1").name,
        "foo again": tf.constant(1.0, name="foo").name,
        "a/b": tf.constant(1.0, name="a/b").name,
        "a": tf.constant(1.0, name="a").name,
        "A/b": tf.constant(1.0, name="A/b").name,
        "unique_name": tf.get_default_graph().unique_name("foo"),
        "unique_name not marked": [
            tf.get_default_graph().unique_name("bar", mark_as_used=False),
            tf.get_default_graph().unique_name("bar"),
        ],
    }


@snippet
def gradients(tf: Any) -> dict[str, Any]:
    x = tf.placeholder(tf.float32, [2], name="x")
    w = tf.Variable([1.0, 2.0], name="w")
    y = tf.reduce_sum(tf.square(x * w), name="y")
    (first,) = tf.gradients(y, [w])
    (second,) = tf.gradients(y, [x])
    (named,) = tf.gradients(y, [w], name="mine")
    return {
        "first is under": first.name.split("/")[0],
        "second is under": second.name.split("/")[0],
        "named is under": named.name.split("/")[0],
        "of what does not depend": tf.gradients(y, [tf.constant(1.0)])[0] is None,
        "dtype": first.dtype.name,
        "shape": str(first.shape),
    }


@snippet
def minimize(tf: Any) -> dict[str, Any]:
    w = tf.Variable([1.0, 2.0], name="w")
    loss = tf.reduce_sum(tf.square(w), name="loss")
    step = tf.train.get_or_create_global_step()
    made = {
        "GradientDescent": tf.train.GradientDescentOptimizer(0.1).minimize(loss),
        "GradientDescent again": tf.train.GradientDescentOptimizer(0.1).minimize(loss),
        "GradientDescent with step": tf.train.GradientDescentOptimizer(0.1).minimize(loss, step),
        "Adam": tf.train.AdamOptimizer().minimize(loss),
        "Adam again": tf.train.AdamOptimizer().minimize(loss, step),
        "Momentum": tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss),
        "Adagrad": tf.train.AdagradOptimizer(0.1).minimize(loss),
        "RMSProp": tf.train.RMSPropOptimizer(0.1).minimize(loss),
        "Ftrl": tf.train.FtrlOptimizer(0.1).minimize(loss),
        "named": tf.train.AdamOptimizer(name="Mine").minimize(loss),
        "named minimize": tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="train"),
    }
    facts: dict[str, Any] = {label: [op.name, op.type] for label, op in made.items()}
    facts["global step"] = step.name
    facts["global variables"] = [variable.name for variable in tf.global_variables()]
    names = [operation.name for operation in tf.get_default_graph().get_operations()]
    facts["updates"] = [name for name in names if "/update_w/Apply" in name]
    return facts


@snippet
def shapes(tf: Any) -> dict[str, Any]:
    some = tf.TensorShape([None, 3])
    unknown = tf.TensorShape(None)
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    u = tf.placeholder(tf.float32, name="u")
    return {
        "repr": repr(some),
        "str": str(some),
        "repr of unknown": repr(unknown),
        "str of unknown": str(unknown),
        "scalar": [repr(tf.TensorShape([])), str(tf.TensorShape([]))],
        "as_list": some.as_list(),
        "ndims": [some.ndims, unknown.ndims],
        "num_elements": [some.num_elements(), tf.TensorShape([2, 3]).num_elements()],
        "is_fully_defined": [some.is_fully_defined(), tf.TensorShape([2]).is_fully_defined()],
        "compatible": [
            some.is_compatible_with([5, 3]),
            some.is_compatible_with([5, 4]),
            unknown.is_compatible_with([5]),
        ],
        "merge_with": str(some.merge_with([5, None])),
        "concatenate": str(some.concatenate([7])),
        "with_rank": str(unknown.with_rank(2)),
        "slice": str(some[1:]),
        "dimension": [repr(some[0]), repr(some[1]), str(some[0]), str(some[1])],
        "dimension value": [some[0].value, some[1].value],
        "equal": [some == tf.TensorShape([None, 3]), tf.TensorShape([2]) == [2]],
        "repr of placeholder": repr(x),
        "str of placeholder": str(x),
        "repr of unknown rank": repr(u),
        "str of unknown rank": str(u),
        "x + x": repr(x + x),
        "matmul": repr(tf.matmul(x, tf.zeros([3, 4]))),
        "reduce_sum": repr(tf.reduce_sum(x, axis=0)),
        "reshape": repr(tf.reshape(x, [-1, 1])),
        "concat": repr(tf.concat([x, x], axis=1)),
        "broadcast": repr(x + tf.zeros([1, 1])),
        "get_shape": str(x.get_shape()),
        "set_shape": str(_with_shape(u, [4, None]).shape),
        "shape op": repr(tf.shape(x)),
        "x[0]": repr(x[0]),
        "x[:, 0]": repr(x[:, 0]),
        "transpose": repr(tf.transpose(x)),
        "expand_dims": repr(tf.expand_dims(x, 1)),
        "one_hot": repr(tf.one_hot([1, 2], 5)),
        "argmax": repr(tf.argmax(x, axis=1)),
    }


def _with_shape(tensor: Any, shape: list[int | None]) -> Any:
    tensor.set_shape(shape)
    return tensor


@snippet
def dtypes(tf: Any) -> dict[str, Any]:
    names = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "uint16")
    names += ("int32", "uint32", "int64", "uint64", "bool", "string", "complex64", "complex128")
    facts: dict[str, Any] = {}
    for name in names:
        dtype = getattr(tf, name)
        facts[name] = {
            "repr": repr(dtype),
            "str": str(dtype),
            "name": dtype.name,
            "enum": dtype.as_datatype_enum,
            "size": dtype.size,
            "numpy": np.dtype(dtype.as_numpy_dtype).name,
            "is_floating": dtype.is_floating,
            "is_integer": dtype.is_integer,
            "is_numpy_compatible": dtype.is_numpy_compatible,
        }
    facts["as_dtype"] = {
        "float": tf.as_dtype(float).name,
        "bool": tf.as_dtype(bool).name,
        "'int64'": tf.as_dtype("int64").name,
        "np.float64": tf.as_dtype(np.float64).name,
        "np.dtype('S3')": tf.as_dtype(np.dtype("S3")).name,
    }
    facts["limits"] = {"int32": [tf.int32.min, tf.int32.max], "uint8": [tf.uint8.min, tf.uint8.max]}
    facts["equal"] = [tf.float32 == np.float32, tf.float32 == "float32", tf.int32 == tf.int64]
    return facts


@snippet
def fetches(tf: Any) -> dict[str, Any]:
    a = tf.constant(3)
    b = tf.constant([1.5, 2.5])
    text = tf.constant("text")
    no = tf.no_op()
    pair = (a, b)
    with tf.Session() as session:
        found = {
            "scalar": session.run(a),
            "vector": session.run(b),
            "string": session.run(text),
            "strings": session.run(tf.constant(["a", "b"])),
            "operation": session.run(no),
            "list": session.run([a, b]),
            "tuple": session.run(pair),
            "dict": session.run({"a": a, "pair": pair}),
            "by name": session.run("Const:0"),
            "op by name": session.run("NoOp"),
            "empty list": session.run([]),
            "bool": session.run(tf.constant(True)),
            "fed": session.run(a * 2, {a: 10}),
            "fed by name": session.run(a * 2, {"Const:0": 11}),
        }
    facts = {label: type(value).__name__ for label, value in found.items()}
    facts["dtype of strings"] = str(found["strings"].dtype)
    facts["text"] = found["string"].decode()
    facts["fed value"] = int(found["fed"])
    facts["fed by name value"] = int(found["fed by name"])
    return facts


@snippet
def collections(tf: Any) -> dict[str, Any]:
    keys = tf.GraphKeys
    names = [name for name in dir(keys) if name.isupper() and not name.startswith("_")]
    return {name: getattr(keys, name) for name in names}


@snippet
def layers(tf: Any) -> dict[str, Any]:
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    first = tf.layers.dense(x, 3, activation=tf.nn.relu)
    second = tf.layers.dense(first, 2)
    named = tf.layers.dense(second, 2, name="out")
    dropped = tf.layers.dropout(named, training=True)
    normed = tf.layers.batch_normalization(dropped, training=True)
    image = tf.placeholder(tf.float32, [None, 8, 8, 1], name="image")
    convolved = tf.layers.conv2d(image, 2, 3)
    pooled = tf.layers.max_pooling2d(convolved, 2, 2)
    flat = tf.layers.flatten(pooled)
    return {
        "dense": first.name,
        "dense without activation": second.name,
        "named": named.name,
        "dropout": dropped.name,
        "batch_normalization": normed.name,
        "conv2d": [convolved.name, str(convolved.shape)],
        "max_pooling2d": [pooled.name, str(pooled.shape)],
        "flatten": [flat.name, str(flat.shape)],
        "variables": [[v.name, str(v.shape)] for v in tf.global_variables()],
        "updates": len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)),
    }


@snippet
def devices(tf: Any) -> dict[str, Any]:
    with tf.device("/job:ps/task:1"):
        a = tf.constant(1.0)
        with tf.device("/cpu:0"):
            b = tf.constant(1.0)
        with tf.device(None):
            c = tf.constant(1.0)
    with tf.device("/gpu:1"), tf.device("/job:worker"):
        d = tf.constant(1.0)
    plain = tf.constant(1.0)
    return {
        "job and task": a.device,
        "nested": b.device,
        "None": c.device,
        "job inside gpu": d.device,
        "plain": plain.device,
    }


def run_snippet(tf: Any, name: str) -> dict[str, Any]:
    """Runs a snippet in a fresh graph.

    Returns:
        `facts`: what the snippet returns; `operations`: [name, type] of all ops of the graph, in
        the order in which they were made.
    """
    with tf.Graph().as_default() as graph:
        facts = SNIPPETS[name](tf)
        operations = [[operation.name, operation.type] for operation in graph.get_operations()]
    return {"facts": facts, "operations": operations}
