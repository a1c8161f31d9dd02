"""Programs with variables and variable scopes: `make_variables.py` runs them on TensorFlow, tests
run them on this package.

Each is a function of the module that stands for `tf` (`tf.compat.v1`, without its version 2
behaviour). It runs in a fresh default graph. Those of `SNIPPETS` return facts by label; those of
`ERRORS` must fail.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

# Rows that need names of TensorFlow 1.
LEGACY = {
    *("template_of_no_function", "template_that_makes_new_variables"),
    *("template_that_makes_variables_by_hand", "template_without_a_name"),
    *("what_templates_say_of_their_variables",),
}
SNIPPETS: dict[str, Callable[[Any], dict[str, Any]]] = {}
ERRORS: dict[str, Callable[[Any], object]] = {}


def snippet(function: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    """Registers a snippet under its function's name."""
    SNIPPETS[function.__name__] = function
    return function


def mistake(function: Callable[[Any], object]) -> Callable[[Any], object]:
    """Registers a mistake under its function's name."""
    ERRORS[function.__name__] = function
    return function


def run_snippet(tf: Any, name: str) -> dict[str, Any]:
    """Runs a snippet in a fresh graph."""
    with tf.Graph().as_default():
        return SNIPPETS[name](tf)


def _values(tf: Any, *tensors: Any) -> list[Any]:
    """The values of tensors once all variables are initialized."""
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return [np.asarray(value).tolist() for value in session.run(list(tensors))]


def _cut(*slices: int) -> Any:
    """A partitioner that always gives these numbers."""
    return lambda shape=None, dtype=None, **_: list(slices)


# -- names of scopes


@snippet
def scopes_entered_again(tf: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    with tf.name_scope("first"), tf.variable_scope("tower") as tower:
        facts["made"] = [tower.name, tower.original_name_scope, tf.no_op(name="n").name]
    with tf.name_scope("second"):
        with tf.variable_scope(tower) as again:
            facts["again"] = [again.name, again.original_name_scope, tf.no_op(name="n").name]
        with tf.name_scope(again.original_name_scope):
            facts["in its own name scope"] = tf.no_op(name="n").name
    with tf.variable_scope("outer"), tf.variable_scope(tower, reuse=tf.AUTO_REUSE) as inside:
        facts["inside another"] = [
            inside.original_name_scope,
            tf.no_op(name="n").name,
            tf.get_variable("v", []).name,
        ]
    root = tf.get_variable_scope()
    facts["root"] = [root.name, root.original_name_scope]
    with tf.name_scope("third"), tf.variable_scope(root) as top:
        facts["root again"] = [top.name, top.original_name_scope, tf.no_op(name="n").name]
    return facts


@snippet
def scopes_without_a_name_scope(tf: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}

    def told(label: str, scope: Any) -> None:
        count = str(len(facts))
        facts[label] = [
            scope.name,
            scope.original_name_scope,
            tf.get_variable("w" + count, []).name,
            tf.constant(0, name="c").name,
        ]

    with tf.variable_scope("scope", auxiliary_name_scope=False) as scope:
        told("by name", scope)
    with tf.variable_scope(scope, auxiliary_name_scope=False) as again:
        told("again", again)
    with tf.variable_scope(None, "default", auxiliary_name_scope=False) as default:
        told("by default name", default)
    with tf.variable_scope("outer"):
        with tf.variable_scope("inner", auxiliary_name_scope=False) as inner:
            told("inside", inner)
        with tf.variable_scope(inner, auxiliary_name_scope=False) as again:
            told("inside again", again)
        with tf.variable_scope(None, "default", auxiliary_name_scope=False) as default:
            told("inside by default name", default)
    with (
        tf.variable_scope("another"),
        tf.variable_scope(inner, auxiliary_name_scope=False) as moved,
    ):
        told("elsewhere", moved)
        with tf.name_scope(moved.original_name_scope):
            facts["original"] = tf.constant(0, name="c").name
    root = tf.get_variable_scope()
    with tf.variable_scope("last"), tf.variable_scope(root, auxiliary_name_scope=False) as top:
        told("root", top)
    return facts


@snippet
def numbers_of_default_names(tf: Any) -> dict[str, Any]:
    def name() -> str:
        try:
            with tf.variable_scope(None, "layer") as scope:
                return str(tf.get_variable("w", []).name)
        except ValueError:
            return f"{scope.name} has it"

    facts: dict[str, Any] = {}
    with tf.variable_scope("default") as default:
        facts["two"] = [name(), name()]
        with tf.variable_scope(default):
            facts["entered again inside"] = name()
        facts["and on"] = name()
    with tf.variable_scope(default):
        facts["after its end"] = name()
        facts["next"] = name()
    with tf.variable_scope(None, "default"):
        facts["another"] = name()
    with tf.variable_scope(default, reuse=True):
        facts["reused"] = [name(), name()]
    with tf.variable_scope("default", reuse=True):
        facts["reused by name"] = [name(), name()]
    return facts


@snippet
def what_scopes_inherit(tf: Any) -> dict[str, Any]:
    def told(scope: Any) -> list[str]:
        values = scope.initializer, scope.regularizer, scope.partitioner, scope.constraint
        names = ["none" if each is None else getattr(each, "__name__", "?") for each in values]
        return [*names, str(scope.reuse), tf.as_dtype(scope.dtype).name]

    def one(*_: Any, **__: Any) -> Any:
        return None

    def two(*_: Any, **__: Any) -> Any:
        return None

    every = {"initializer": one, "regularizer": one, "partitioner": one, "constraint": one}
    facts: dict[str, Any] = {"root": told(tf.get_variable_scope())}
    with tf.variable_scope("a", **every, dtype=tf.float16, reuse=True) as a:
        facts["a"] = told(a)
        with tf.variable_scope("b", initializer=two, reuse=False) as b:
            facts["b"] = told(b)
    with tf.variable_scope(a) as again:
        facts["again"] = told(again)
    with tf.variable_scope(a, regularizer=two, constraint=two, reuse=False) as changed:
        facts["changed"] = told(changed)
    with tf.variable_scope("plain", reuse=False) as plain:
        facts["plain"] = told(plain)
    with tf.variable_scope(plain, reuse=tf.AUTO_REUSE) as auto:
        facts["auto"] = [auto.reuse is tf.AUTO_REUSE]
    return facts


# -- custom getters, creators


@snippet
def names_of_what_custom_getters_make(tf: Any) -> dict[str, Any]:
    reuses: list[Any] = []

    def custom(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        reuses.append(str(kwargs["reuse"]))
        found = getter(name, *args, **kwargs)
        return tf.identity(found, name="reused" if kwargs["reuse"] else "not_reused")

    def two(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        first = getter(f"{name}/0", *args, **kwargs)
        second = getter(f"{name}/1", *args, **kwargs)
        with tf.name_scope("custom_getter"):
            return first + second

    facts: dict[str, Any] = {}
    with tf.variable_scope("scope", custom_getter=custom) as scope:
        facts["made"] = tf.get_variable("v", [1]).name
    with tf.variable_scope(scope, reuse=True):
        facts["shared"] = tf.get_variable("v", [1]).name
    with tf.name_scope("names"), tf.variable_scope("pair", custom_getter=two):
        facts["two"] = tf.get_variable("v", [1, 2, 3]).name
    facts["variables"] = [variable.name for variable in tf.trainable_variables()]
    facts["reuse"] = reuses
    return facts


@snippet
def what_custom_getters_are_told(tf: Any) -> dict[str, Any]:
    told: dict[str, Any] = {}

    def custom(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        told[name] = [
            kwargs["synchronization"].name,
            kwargs["aggregation"].name,
            kwargs["trainable"],
            tf.as_dtype(kwargs["dtype"]).name,
            sorted(kwargs),
        ]
        return getter(name, *args, **kwargs)

    on_read = tf.VariableSynchronization.ON_READ
    with tf.variable_scope("s", custom_getter=custom):
        tf.get_variable("plain", [1])
        tf.get_variable("on_read", [1], synchronization=on_read)
        tf.get_variable(
            "mean", [1], dtype=tf.float16, aggregation=tf.VariableAggregation.MEAN, trainable=True
        )
    return told


@snippet
def a_getter_that_does_not_hand_on_reuse(tf: Any) -> dict[str, Any]:
    def custom(getter: Any, name: str, **kwargs: Any) -> Any:
        return getter(name, shape=[2], dtype=tf.float32)

    with tf.variable_scope("s", custom_getter=custom):
        first = tf.get_variable("v")
        second = tf.get_variable("v")
    return {"one variable": first is second, "name": first.name}


@snippet
def creators(tf: Any) -> dict[str, Any]:
    names: list[Any] = []
    told: dict[str, Any] = {}

    def listing(next_creator: Any, **kwargs: Any) -> Any:
        names.append(kwargs.get("name"))
        return next_creator(**kwargs)

    def naming(next_creator: Any, **kwargs: Any) -> Any:
        kwargs["name"] = "forced"
        return next_creator(**kwargs)

    def asking(next_creator: Any, **kwargs: Any) -> Any:
        told[kwargs["name"]] = [
            kwargs["synchronization"].name,
            kwargs["aggregation"].name,
            kwargs["trainable"],
            kwargs["validate_shape"],
        ]
        return next_creator(**kwargs)

    facts: dict[str, Any] = {}
    with tf.variable_creator_scope(listing), tf.variable_creator_scope(naming):
        facts["forced"] = tf.Variable(1.0, name="own").name
        facts["forced get_variable"] = tf.get_variable("got", []).name
    with tf.variable_creator_scope(asking):
        tf.get_variable("v", [], synchronization=tf.VariableSynchronization.ON_WRITE)
        tf.Variable(1.0, name="w", aggregation=tf.VariableAggregation.MEAN)
    facts["outside"] = tf.Variable(1.0, name="outside").name
    return {**facts, "names": names, "told": told}


@snippet
def variables_that_are_read_together_are_not_trained(tf: Any) -> dict[str, Any]:
    sync = tf.VariableSynchronization
    variables = [
        tf.get_variable("read", [], synchronization=sync.ON_READ),
        tf.get_variable("read_trainable", [], synchronization=sync.ON_READ, trainable=True),
        tf.get_variable("write", [], synchronization=sync.ON_WRITE),
        tf.get_variable("not", [], trainable=False),
        tf.Variable(1.0, name="read_variable", synchronization=sync.ON_READ),
        tf.Variable(1.0, name="read_trained", synchronization=sync.ON_READ, trainable=True),
        tf.Variable(1.0, name="plain"),
    ]
    return {
        "trainable": [[each.op.name, each.trainable] for each in variables],
        "synchronization": [each.synchronization.name for each in variables],
        "aggregation": [each.aggregation.name for each in variables],
        "collection": [each.op.name for each in tf.trainable_variables()],
    }


# -- initial values


@snippet
def initial_values_of_get_variable(tf: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    value = tf.constant(0.5)
    with tf.variable_scope("foo", initializer=value):
        inherited = tf.get_variable("v")
    whole = tf.get_variable("t", initializer=tf.constant([1, 2]))
    made = [
        inherited,
        whole,
        tf.get_variable("number", initializer=4, dtype=tf.int32),
        tf.get_variable("array", initializer=np.array([1, 2, 3]), dtype=tf.int64),
        tf.get_variable("list", initializer=[1.5, 2.5]),
        tf.get_variable("function", initializer=lambda: [2]),
        tf.get_variable("optional", initializer=lambda x=True: [[2.5]]),
        tf.get_variable("class", [2], initializer=tf.ones_initializer),
        tf.get_variable("bool", [2], dtype=tf.bool),
        tf.get_variable("int8", [2], dtype=tf.int8),
    ]
    facts["specs"] = [
        [each.name, each.dtype.base_dtype.name, each.shape.as_list()] for each in made
    ]
    facts["values"] = _values(tf, *made)
    facts["string"] = tf.get_variable("string", [], dtype=tf.string).dtype.base_dtype.name
    return facts


@snippet
def parts_of_initial_values(tf: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    constant = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    made = {
        "list with shape": tf.get_variable(
            "a", [3, 2], initializer=constant, partitioner=_cut(2, 1)
        ),
        "array with shape": tf.get_variable(
            "b", [3, 2], initializer=np.array(constant, np.float32), partitioner=_cut(1, 2)
        ),
        "tensor": tf.get_variable("c", initializer=tf.constant(constant), partitioner=_cut(3, 1)),
        "tensor with shape": tf.get_variable(
            "d", [3, 2], initializer=tf.constant(constant), partitioner=_cut(2, 1)
        ),
        "constant_initializer": tf.get_variable(
            "e", [4, 1], initializer=tf.constant_initializer(2.5), partitioner=_cut(2, 1)
        ),
        "default": tf.get_variable("f", [4], dtype=tf.int32, partitioner=_cut(2)),
    }
    for label, whole in made.items():
        facts[label] = [
            whole.name,
            [part.name for part in whole],
            [part.shape.as_list() for part in whole],
            _values(tf, *whole),
            _values(tf, whole.as_tensor())[0],
        ]
    return facts


@snippet
def partitioned_variables_shared(tf: Any) -> dict[str, Any]:
    with tf.variable_scope("s", partitioner=_cut(2, 1)):
        made = tf.get_variable("v", [4, 1])
        tf.get_variable_scope().reuse_variables()
        again = tf.get_variable("v", [4, 1])
    with tf.variable_scope("s", reuse=True):
        without = tf.get_variable("v")
    with tf.variable_scope("s", reuse=True, partitioner=_cut(2, 1)):
        same = tf.get_variable("v", [4, 1])
    return {
        "one": [made is again, made is without, made is same],
        "tensor": made.as_tensor().name,
        "type": [type(made).__name__, made.get_shape().as_list(), len(made)],
    }


@snippet
def variables_cut_by_hand(tf: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    with tf.variable_scope("by_hand"):
        parts = tf.create_partitioned_variables([4, 2], [2, 1], tf.constant_initializer(1.5))
        named = tf.create_partitioned_variables(
            [2, 4], [1, 2], tf.zeros_initializer(), name="weights", trainable=False
        )
        again = tf.create_partitioned_variables(
            [2, 4], [1, 2], tf.zeros_initializer(), name="weights", reuse=True
        )
        whole = tf.create_partitioned_variables(
            [2, 3], [1, 1], tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        )
        uneven = tf.create_partitioned_variables(
            [5], [2], lambda shape, dtype: tf.ones(shape, dtype)
        )
    for label, made in {"parts": parts, "named": named, "whole": whole, "uneven": uneven}.items():
        facts[label] = [
            [each.name for each in made],
            [each.shape.as_list() for each in made],
            _values(tf, *made),
        ]
    facts["shared"] = [first is second for first, second in zip(named, again, strict=True)]
    facts["trainable"] = [each.name for each in tf.trainable_variables()]
    return facts


@snippet
def where_a_part_is(tf: Any) -> dict[str, Any]:
    told: list[Any] = []

    def initializer(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        told.append(
            [
                list(shape),
                list(partition_info.full_shape),
                list(partition_info.var_offset),
                partition_info.single_offset(shape),
                partition_info.single_slice_dim(shape),
            ]
        )
        return tf.zeros(shape, dtype)

    tf.get_variable("v", [5, 3], initializer=initializer, partitioner=_cut(2, 1))
    tf.get_variable("w", [5, 3], initializer=initializer, partitioner=_cut(1, 3))
    return {"told": told}


@snippet
def slices_of_variables_are_assigned(tf: Any) -> dict[str, Any]:
    def after(assign: Callable[[Any], Any], dtype: Any = tf.float32) -> Any:
        variable = tf.Variable(tf.reshape(tf.range(12, dtype=dtype), [3, 4]))
        changed = assign(variable)
        with tf.Session() as session:
            session.run(variable.initializer)
            given = session.run(changed)
            return [given.tolist(), session.run(variable).tolist()]

    at = tf.constant(1)
    return {
        "rows": after(lambda v: v[:2].assign(tf.zeros([2, 4]))),
        "row": after(lambda v: v[1].assign([9.0, 8.0, 7.0, 6.0])),
        "number": after(lambda v: v[2, 3].assign(100.0)),
        "column": after(lambda v: v[:, 1].assign([5.0, 5.0, 5.0])),
        "steps": after(lambda v: v[::2, ::-2].assign([[1.0, 2.0], [3.0, 4.0]])),
        "ellipsis": after(lambda v: v[..., 0].assign([7.0, 7.0, 7.0])),
        "new axis": after(lambda v: v[tf.newaxis, 0].assign([[1.0, 1.0, 1.0, 1.0]])),
        "computed": after(lambda v: v[at, at:].assign([3.0, 2.0, 1.0])),
        "integers": after(lambda v: v[0, :2].assign([-1, -2]), tf.int32),
    }


# -- what is said of variables


@snippet
def references(tf: Any) -> dict[str, Any]:
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    t = tf.constant(1.0)
    refs = {v.ref(), v.experimental_ref(), w.ref(), t.ref(), t.experimental_ref()}
    return {
        "count": len(refs),
        "equal": [v.ref() == v.ref(), v.ref() == w.ref(), v.ref() == t.ref()],
        "deref": [v.ref().deref() is v, t.ref().deref() is t],
    }


@snippet
def protos_of_variables(tf: Any) -> dict[str, Any]:
    v = tf.Variable([1.0, 2.0], name="v", trainable=False)
    with tf.variable_scope("s"):
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
    told = [v.to_proto(), w.to_proto(), w.to_proto(export_scope="s"), w.to_proto("other")]
    again = tf.Variable.from_proto(told[0])
    by_argument = tf.Variable(variable_def=told[1])
    facts: dict[str, Any] = {
        "names": [None if each is None else each.variable_name for each in told],
        "initializers": [None if each is None else each.initializer_name for each in told],
        "trainable": [each.trainable for each in told[:2]],
        "again": [again.name, by_argument.name, again.shape.as_list(), again.trainable],
        "no new variables": len(tf.global_variables()),
    }
    with tf.Session() as session:
        session.run([again.initializer, by_argument.initializer])
        facts["values"] = [
            session.run(v).tolist(),
            session.run(again.assign_add([1.0, 1.0])).tolist(),
        ]
        facts["after"] = [session.run(v).tolist(), session.run(by_argument).tolist()]
    return facts


@snippet
def what_templates_say_of_their_variables(tf: Any) -> dict[str, Any]:
    def function(x: Any) -> Any:
        a = tf.get_variable("a", [], initializer=tf.ones_initializer())
        b = tf.get_variable("b", [], trainable=False)
        c = tf.get_local_variable("c", [])
        with tf.variable_scope("deep"):
            d = tf.get_variable("d", [], regularizer=lambda v: 0.5 * v)
        return x * a + b + c + d

    kinds = (
        "variables",
        "trainable_variables",
        "non_trainable_variables",
        "global_variables",
        "local_variables",
        "weights",
        "trainable_weights",
        "non_trainable_weights",
    )
    template = tf.make_template("t", function)
    other = tf.make_template("t", function)
    named = tf.make_template("ignored", function, unique_name_="own")
    now = tf.make_template("t", function, create_scope_now_=True)
    facts: dict[str, Any] = {"now": [now.name, now.variable_scope_name]}
    facts["results"] = [each(tf.constant(1.0)).name for each in (template, other, named, now)]
    facts["second"] = [each(tf.constant(1.0)).name for each in (template, other, named, now)]
    for kind in kinds:
        facts[kind] = [each.name for each in getattr(template, kind)]
    facts["names"] = [each.name for each in (template, other, named, now)]
    facts["scopes"] = [each.variable_scope_name for each in (template, other, named, now)]
    return facts


@snippet
def constant_initializers(tf: Any) -> dict[str, Any]:
    def value(given: Any, shape: Any, dtype: Any = tf.int32) -> Any:
        return tf.constant_initializer(given, dtype=dtype)(shape)

    made = {
        "number": value(7, [2]),
        "tuple": value((10, 20, 30), [3]),
        "matrix": value([0, 1, 2, 3, 4, 5], [2, 3]),
        "too few": value(np.arange(6).reshape(2, 3), [2, 4]),
        "text": value("a", [2], tf.string),
        "bool": value([True, False], [2], tf.bool),
    }
    with tf.Session() as session:
        return {
            label: session.run(tensor).tolist() for label, tensor in made.items() if label != "text"
        }


@snippet
def copies_of_layers(tf: Any) -> dict[str, Any]:
    class Square(tf.layers.Layer):  # type: ignore[misc,name-defined]
        def call(self, inputs: Any) -> Any:
            return tf.square(inputs)

    layer = Square(name="mine")
    layer.kept = tf.constant(1.0)
    layer(tf.ones([5]))
    made = copy.deepcopy(layer)
    return {
        "name": made.name,
        "scope": made.scope_name,
        "tensor": made.kept is layer.kept,
        "another": made is not layer,
        "output": made(tf.ones([5])).name,
    }


@snippet
def elements_of_rows_are_set(tf: Any) -> dict[str, Any]:
    v = tf.Variable(np.zeros([2, 3], np.float32))
    changed = tf.batch_scatter_update(v, [[0, 1], [1, 2]], [[1.0, 2.0], [3.0, 4.0]])
    w = tf.Variable(np.zeros([2, 3, 2], np.float32))
    slices = tf.IndexedSlices(tf.ones([2, 1, 2]), tf.constant([[2], [0]]))
    with tf.Session() as session:
        session.run([v.initializer, w.initializer])
        return {
            "matrix": session.run(changed).tolist(),
            "method": session.run(w.batch_scatter_update(slices)).tolist(),
        }


@snippet
def nothing_to_assert(tf: Any) -> dict[str, Any]:
    return {"none": tf.assert_variables_initialized() is None}


# -- mistakes


@mistake
def scope_without_a_name(tf: Any) -> object:
    with tf.variable_scope(None):
        return None


@mistake
def scope_of_something_else(tf: Any) -> object:
    with tf.variable_scope(3):
        return None


@mistake
def reuse_of_something_else(tf: Any) -> object:
    with tf.variable_scope("s", reuse="yes"):
        return None


@mistake
def reuse_with_a_default_name(tf: Any) -> object:
    with tf.variable_scope(None, "default", reuse=True):
        return None


@mistake
def auxiliary_name_scope_of_something_else(tf: Any) -> object:
    with tf.variable_scope("s", auxiliary_name_scope="invalid"):
        return None


@mistake
def scopes_that_end_in_the_wrong_order(tf: Any) -> object:
    scope = tf.variable_scope("bb")
    scope.__enter__()
    with tf.variable_scope("cc"):
        return scope.__exit__(None, None, None)


@mistake
def getter_that_is_no_function(tf: Any) -> object:
    return tf.get_variable("v", [], custom_getter=3)


@mistake
def getter_of_a_scope_that_is_no_function(tf: Any) -> object:
    with tf.variable_scope("s", custom_getter=3):
        return tf.get_variable("v", [])


@mistake
def partitioner_that_is_no_function(tf: Any) -> object:
    return tf.get_variable("v", [2], partitioner=3)


@mistake
def partitioner_that_gives_no_list(tf: Any) -> object:
    return tf.get_variable("v", [2], partitioner=lambda **_: 2)


@mistake
def partitioner_of_another_rank(tf: Any) -> object:
    return tf.get_variable("v", [2, 3], partitioner=_cut(2))


@mistake
def partitioner_that_gives_zero(tf: Any) -> object:
    return tf.get_variable("v", [2, 3], partitioner=_cut(0, 1))


@mistake
def partitioner_that_cuts_twice(tf: Any) -> object:
    return tf.get_variable("v", [2, 3], partitioner=_cut(2, 3))


@mistake
def partitioned_variable_without_a_shape(tf: Any) -> object:
    return tf.get_variable("v", partitioner=_cut(2, 3))


@mistake
def other_partitions_when_shared(tf: Any) -> object:
    with tf.variable_scope("s", partitioner=_cut(2, 1)):
        tf.get_variable("v", [4, 1])
    with tf.variable_scope("s", partitioner=_cut(4, 1), reuse=True):
        return tf.get_variable("v", [4, 1])


@mistake
def one_part_when_shared(tf: Any) -> object:
    with tf.variable_scope("s", partitioner=_cut(2, 1)):
        tf.get_variable("v", [4, 1])
    with tf.variable_scope("s", partitioner=_cut(1, 1), reuse=tf.AUTO_REUSE):
        return tf.get_variable("v", [4, 1])


@mistake
def partitioned_variable_made_twice(tf: Any) -> object:
    tf.get_variable("v", [4, 1], partitioner=_cut(2, 1))
    return tf.get_variable("v", [4, 1], partitioner=_cut(2, 1))


@mistake
def partitioned_variable_shared_with_another_shape(tf: Any) -> object:
    with tf.variable_scope("", reuse=tf.AUTO_REUSE, partitioner=_cut(2, 1)):
        tf.get_variable("v", [4, 1])
        return tf.get_variable("v", [6, 1])


@mistake
def partitioned_variable_shared_with_another_dtype(tf: Any) -> object:
    with tf.variable_scope("", reuse=tf.AUTO_REUSE, partitioner=_cut(2, 1)):
        tf.get_variable("v", [4, 1])
        return tf.get_variable("v", [4, 1], tf.int32)


@mistake
def partitioned_variable_that_is_not_there(tf: Any) -> object:
    with tf.variable_scope("", reuse=True, partitioner=_cut(2, 1)):
        return tf.get_variable("v", [4, 1])


@mistake
def partitioner_where_there_is_a_whole(tf: Any) -> object:
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        tf.get_variable("v", [4, 1])
        return tf.get_variable("v", [4, 1], partitioner=_cut(2, 1))


@mistake
def no_partitioner_where_there_are_parts(tf: Any) -> object:
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        tf.get_variable("v", [4, 1], partitioner=_cut(2, 1))
        return tf.get_variable("v", [4, 1])


@mistake
def variable_made_twice(tf: Any) -> object:
    tf.get_variable("v", [])
    return tf.get_variable("v", [])


@mistake
def variable_that_is_not_there(tf: Any) -> object:
    with tf.variable_scope("s", reuse=True):
        return tf.get_variable("v", [])


@mistake
def variable_shared_with_another_shape(tf: Any) -> object:
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        tf.get_variable("v", [1])
        return tf.get_variable("v", [2])


@mistake
def variable_shared_with_the_default_dtype(tf: Any) -> object:
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        tf.get_variable("v", [1], tf.int32)
        return tf.get_variable("v", [1])


@mistake
def constant_with_a_shape(tf: Any) -> object:
    return tf.get_variable("u", [1], initializer=tf.constant(0.1))


@mistake
def number_with_a_shape(tf: Any) -> object:
    return tf.get_variable("u", [3], initializer=0.1)


@mistake
def constant_of_another_dtype(tf: Any) -> object:
    return tf.get_variable("u", initializer=tf.constant(1), dtype=tf.float64)


@mistake
def number_of_another_dtype(tf: Any) -> object:
    return tf.get_variable("u", initializer=1, dtype=tf.float32)


@mistake
def initializer_that_wants_a_shape(tf: Any) -> object:
    return tf.get_variable("u", initializer=lambda x: [2])


@mistake
def variable_of_no_shape(tf: Any) -> object:
    return tf.get_variable("u")


@mistake
def variable_of_an_unknown_shape(tf: Any) -> object:
    return tf.get_variable("u", [None, 2])


@mistake
def complex_variable_without_an_initializer(tf: Any) -> object:
    return tf.get_variable("u", [2], tf.complex64)


@mistake
def synchronization_of_something_else(tf: Any) -> object:
    return tf.get_variable("u", [2], synchronization="on_read")


@mistake
def aggregation_of_something_else(tf: Any) -> object:
    return tf.Variable(1.0, aggregation="mean")


@mistake
def variable_without_a_value(tf: Any) -> object:
    return tf.Variable()


@mistake
def collections_that_are_no_list(tf: Any) -> object:
    return tf.Variable(1.0, collections="mine")


@mistake
def constraint_that_is_no_function(tf: Any) -> object:
    return tf.Variable(1.0, constraint=3)


@mistake
def initial_value_of_unknown_shape(tf: Any) -> object:
    return tf.Variable(tf.placeholder(tf.float32))


@mistake
def variable_in_a_condition(tf: Any) -> object:
    def branch() -> Any:
        return tf.Variable(tf.constant(1.0)) + 1.0

    return tf.cond(tf.placeholder(tf.bool, []), branch, lambda: tf.constant(2.0))


@mistake
def variable_as_a_bool(tf: Any) -> object:
    return bool(tf.Variable(True))


@mistake
def iteration_over_a_scalar_variable(tf: Any) -> object:
    return list(tf.Variable(1.0))


@mistake
def a_value_and_a_definition(tf: Any) -> object:
    return tf.Variable(1.0, variable_def=tf.Variable(1.0).to_proto())


@mistake
def load_without_a_session(tf: Any) -> object:
    return tf.Variable(1.0).load(2.0)


@mistake
def assignment_of_another_shape(tf: Any) -> object:
    return tf.assign(tf.Variable([1.0, 2.0]), [1.0, 2.0, 3.0])


@mistake
def assignment_to_a_tensor(tf: Any) -> object:
    return tf.assign(tf.constant(1.0), 2.0)


@mistake
def reading_before_initializing(tf: Any) -> object:
    v = tf.Variable([1.0, 2.0], name="v")
    with tf.Session() as session:
        return session.run(v.read_value())


@mistake
def adding_before_initializing(tf: Any) -> object:
    v = tf.Variable([1.0, 2.0], name="v")
    with tf.Session() as session:
        return session.run(tf.assign_add(v, [1.0, 1.0]))


@mistake
def slice_assigned_with_another_shape(tf: Any) -> object:
    v = tf.Variable([1.0, 2.0, 3.0])
    assigned = v[:2].assign([1.0, 2.0, 3.0])
    with tf.Session() as session:
        session.run(v.initializer)
        return session.run(assigned)


@mistake
def assignment_to_a_slice_of_a_tensor(tf: Any) -> object:
    return tf.constant([1.0, 2.0])[:1].assign([3.0])


@mistake
def hand_cut_of_another_rank(tf: Any) -> object:
    return tf.create_partitioned_variables([4, 2], [2], tf.zeros_initializer())


@mistake
def hand_cut_twice(tf: Any) -> object:
    return tf.create_partitioned_variables([4, 2], [2, 2], tf.zeros_initializer())


@mistake
def hand_cut_that_is_no_list(tf: Any) -> object:
    return tf.create_partitioned_variables([4, 2], 2, tf.zeros_initializer())


@mistake
def hand_cut_into_more_parts_than_rows(tf: Any) -> object:
    return tf.create_partitioned_variables([4, 2], [5, 1], tf.zeros_initializer())


@mistake
def creators_that_end_in_the_wrong_order(tf: Any) -> object:
    def creator(next_creator: Any, **kwargs: Any) -> Any:
        return next_creator(**kwargs)

    scope = tf.variable_creator_scope(creator)
    scope.__enter__()
    with tf.variable_creator_scope(creator):
        return scope.__exit__(None, None, None)


@mistake
def partition_bytes_below_one(tf: Any) -> object:
    return tf.variable_axis_size_partitioner(max_shard_bytes=-1)


@mistake
def partition_bytes_of_strings_below_one(tf: Any) -> object:
    return tf.variable_axis_size_partitioner(max_shard_bytes=10, bytes_per_string_element=0)


@mistake
def partition_shards_below_one(tf: Any) -> object:
    return tf.variable_axis_size_partitioner(max_shard_bytes=10, max_shards=0)


@mistake
def partition_axis_out_of_range(tf: Any) -> object:
    partitioner = tf.variable_axis_size_partitioner(max_shard_bytes=10, axis=2)
    return tf.get_variable("v", [4, 2], partitioner=partitioner)


@mistake
def partition_axis_below_zero(tf: Any) -> object:
    partitioner = tf.min_max_variable_partitioner(axis=-1)
    return tf.get_variable("v", [4, 2], partitioner=partitioner)


@mistake
def template_that_makes_new_variables(tf: Any) -> object:
    names = iter("ab")
    template = tf.make_template("t", lambda: tf.get_variable(next(names), []))
    template()
    return template()


@mistake
def template_that_makes_variables_by_hand(tf: Any) -> object:
    template = tf.make_template("t", lambda: tf.Variable(1.0))
    template()
    return template()


@mistake
def template_of_no_function(tf: Any) -> object:
    return tf.make_template("t", 3)


@mistake
def template_without_a_name(tf: Any) -> object:
    return tf.make_template(None, lambda: None)


@mistake
def copy_of_a_variable(tf: Any) -> object:
    return copy.deepcopy(tf.Variable(1.0))


@mistake
def rows_that_are_none(tf: Any) -> object:
    return tf.Variable([1.0, 2.0]).scatter_update(3)


@mistake
def counting_in_fractions(tf: Any) -> object:
    return tf.count_up_to(tf.Variable(1.0), 3)


def _part(tf: Any, full_shape: list[int] | None, partitions: list[int]) -> object:
    variable = tf.Variable([0])
    if full_shape is not None:
        info = tf.Variable.SaveSliceInfo(variable.name, full_shape, [0], [1])
        variable._set_save_slice_info(info)
    kind = type(tf.get_variable("any", [2], partitioner=_cut(2)))
    return kind("made", [2], tf.int32, [variable], partitions)


@mistake
def part_of_nothing(tf: Any) -> object:
    return _part(tf, None, [2])


@mistake
def part_of_another_shape(tf: Any) -> object:
    return _part(tf, [3], [2])


@mistake
def no_partitions(tf: Any) -> object:
    return _part(tf, [2], [0])


def _initializer_mistakes() -> None:
    floating = (
        *("random_normal_initializer", "truncated_normal_initializer", "orthogonal_initializer"),
        *("uniform_unit_scaling_initializer", "variance_scaling_initializer"),
    )
    for name in floating:
        ERRORS[f"{name}_of_strings"] = lambda tf, name=name: getattr(tf, name)(dtype=tf.string)  # type: ignore[misc]
    calls: dict[str, Callable[[Any], object]] = {
        "constant_initializer_of_a_tensor": lambda tf: tf.constant_initializer(tf.constant(1.0)),
        "constant_initializer_of_a_variable": lambda tf: tf.constant_initializer(tf.Variable(1.0)),
        "constant_initializer_of_too_many": lambda tf: tf.constant_initializer([1, 2, 3])([2]),
        "constant_initializer_of_another_shape": lambda tf: tf.constant_initializer(
            [1, 2], verify_shape=True
        )([3]),
        "negative_scale": lambda tf: tf.variance_scaling_initializer(scale=-1),
        "unknown_mode": lambda tf: tf.variance_scaling_initializer(mode="x"),
        "unknown_distribution": lambda tf: tf.variance_scaling_initializer(distribution="x"),
        "orthogonal_vector": lambda tf: tf.orthogonal_initializer()([5]),
        "identity_of_rank_three": lambda tf: tf.initializers.identity()([2, 3, 3]),
    }
    ERRORS.update(calls)


_initializer_mistakes()
