"""Programs with partitioned variables and gradients in rows: `make_partitioned.py` runs them on
TensorFlow, tests run them on this package.

Each is a function of the module that stands for `tf` (`tf.compat.v1`, without its version 2
behaviour). It runs in a fresh default graph and returns facts by label.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

ROWS, STEPS = 7, 3
START = (np.arange(2 * ROWS, dtype=np.float32).reshape(ROWS, 2) - 5) / 8
IDS = ([4, 4, 6, 1], [5, 1, 4, 5], [1, 1, 1, 6])  # never 0 and 3, which begin parts
WEIGHTS = ([1.0, 0.5, 2.0, 0.25], [0.5, 1.0, 1.0, 3.0], [1.0, 1.0, 2.0, 0.5])
PLACES = ((0, 0), (0, 1), (2, 0), (3, 0))  # rows 1 and 4 are empty

SNIPPETS: dict[str, Callable[[Any], dict[str, Any]]] = {}


def snippet(function: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    """Registers a snippet under its function's name."""
    SNIPPETS[function.__name__] = function
    return function


def run_snippet(tf: Any, name: str) -> dict[str, Any]:
    """Runs a snippet in a fresh graph."""
    with tf.Graph().as_default():
        return SNIPPETS[name](tf)


def table(tf: Any, name: str, parts: int = 3) -> Any:
    """A variable that begins with START, in parts."""

    def slice_of_start(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        first = partition_info.var_offset[0]
        return tf.constant(START[first : first + shape[0]])

    cut = tf.fixed_size_partitioner(parts)
    return tf.get_variable(name, [ROWS, 2], initializer=slice_of_start, partitioner=cut)


def sparse(tf: Any, values: Any) -> Any:
    """A sparse tensor of five rows."""
    return tf.SparseTensor(np.array(PLACES, np.int64), values, [5, 2])


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "momentum": lambda tf: tf.train.MomentumOptimizer(0.1, 0.9),
    "adagrad": lambda tf: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda tf: tf.train.AdadeltaOptimizer(1.0),
    "adam": lambda tf: tf.train.AdamOptimizer(0.1),
    "rms_prop": lambda tf: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "ftrl": lambda tf: tf.train.FtrlOptimizer(
        0.1, l1_regularization_strength=0.05, l2_regularization_strength=0.1
    ),
    "proximal_adagrad": lambda tf: tf.train.ProximalAdagradOptimizer(0.1, 0.1, 0.05, 0.1),
}
LOOKUPS: dict[str, Callable[..., Any]] = {
    "div": lambda tf, t, ids, weights: tf.nn.embedding_lookup(t, ids, "div"),
    "mod": lambda tf, t, ids, weights: tf.nn.embedding_lookup(t, ids, "mod"),
    "sparse": lambda tf, t, ids, weights: tf.nn.embedding_lookup_sparse(
        t, sparse(tf, ids), sparse(tf, weights), "div", combiner="sqrtn"
    ),
    "safe": lambda tf, t, ids, weights: tf.nn.safe_embedding_lookup_sparse(
        t, sparse(tf, ids), sparse(tf, weights), partition_strategy="div"
    ),
    "gather": lambda tf, t, ids, weights: tf.gather(t, ids),
    "twice": lambda tf, t, ids, weights: (
        tf.nn.embedding_lookup(t, ids, "div") * 2.0 - tf.nn.embedding_lookup(t, ids + 1 - 1, "div")
    ),
    "regularized": lambda tf, t, ids, weights: tf.concat(
        [tf.nn.embedding_lookup(t, ids, "div"), 0.1 * tf.convert_to_tensor(t)], 0
    ),
}


@snippet
def training(tf: Any) -> dict[str, Any]:
    """The table after three steps, by optimizer and lookup."""
    ids, weights = tf.placeholder(tf.int64, [4]), tf.placeholder(tf.float32, [4])
    tables, updates = {}, []
    combinations = [("momentum", lookup) for lookup in LOOKUPS]
    combinations += [(optimizer, "div") for optimizer in OPTIMIZERS if optimizer != "momentum"]
    for optimizer, lookup in combinations:
        name = f"{optimizer}_{lookup}"
        tables[name] = table(tf, name)
        found = LOOKUPS[lookup](tf, tables[name], ids, weights)
        loss = tf.reduce_sum(tf.square(found) + found)
        updates.append(OPTIMIZERS[optimizer](tf).minimize(loss, var_list=list(tables[name])))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(STEPS):
            session.run(updates, {ids: IDS[step], weights: WEIGHTS[step]})
        return {name: _whole(session.run(list(each))) for name, each in tables.items()}


def _whole(parts: Any) -> Any:
    return np.concatenate(parts).round(6).tolist()


@snippet
def clipping(tf: Any) -> dict[str, Any]:
    """Clipped gradients of parts, and the table after a step with them."""
    made = table(tf, "table")
    found = tf.nn.embedding_lookup(made, [4, 4, 6, 1], "div")
    loss = tf.reduce_sum(tf.square(found) + found)
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    given = [pair[0] for pair in optimizer.compute_gradients(loss, list(made))]
    clipped, norm = tf.clip_by_global_norm(given, 0.5)
    train = optimizer.apply_gradients(list(zip(clipped, made, strict=True)))
    dense = [tf.convert_to_tensor(each) for each in (*given, *clipped)]
    each = [tf.clip_by_norm(gradient, 0.25) for gradient in given]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        facts = {
            "norm": float(session.run(norm)),
            "rows": [value.tolist() for value in session.run(dense)],
            "each": [value.values.tolist() for value in session.run(each) if len(value.values)],
            "indices": [value.indices.tolist() for value in session.run(given)],
        }
        for _ in range(2):
            session.run(train)
        slots = [optimizer.get_slot(part, "momentum") for part in made]
        facts["table"] = _whole(session.run(list(made)))
        facts["slot"] = _whole(session.run(slots))
        facts["names"] = [slot.op.name for slot in slots]
    return facts


@snippet
def averages_and_regularizers(tf: Any) -> dict[str, Any]:
    """Moving averages of parts, and losses of regularizers on them."""

    def regularizer(value: Any) -> Any:
        return 0.5 * tf.reduce_sum(tf.square(value)) + tf.reduce_sum(tf.abs(value))

    with tf.variable_scope("a", regularizer=regularizer):
        made = table(tf, "table")
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    loss = tf.reduce_sum(tf.nn.embedding_lookup(made, [4, 4], "div")) + tf.add_n(losses)
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    average = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([train]):
        update = average.apply(list(made))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        facts = {"losses": [float(each) for each in session.run(losses)]}
        for _ in range(STEPS):
            session.run(update)
        facts["table"] = _whole(session.run(list(made)))
        kept = [average.average(part) for part in made]
        facts["average"] = _whole(session.run(kept))
        facts["names"] = [each.op.name for each in kept]
    return facts


ROUTES: dict[str, Callable[..., Any]] = {
    "concat": lambda tf, a, b: tf.gather(tf.concat([a, b], 0), [0, 5, 5, 1]),
    "concat from the end": lambda tf, a, b: tf.gather(tf.concat([a, b], -2), [0, 5, 5, 1]),
    "concat of columns": lambda tf, a, b: tf.gather(tf.concat([b, b + 0.0 * b, b], 1), [0, 2, 2]),
    "cast": lambda tf, a, b: tf.gather(tf.cast(a, tf.float64), [0, 2, 2, 1]),
    "negative": lambda tf, a, b: tf.gather(-a, [0, 2, 2, 1]),
    "identity": lambda tf, a, b: tf.gather(tf.identity(a), [0, 2, 2, 1]),
    "add_n": lambda tf, a, b: tf.gather(tf.add_n([a, a]), [0, 2, 2, 1]),
    "product": lambda tf, a, b: tf.gather(a * 2.0, [0, 2, 2, 1]),
    "reshape": lambda tf, a, b: tf.gather(tf.reshape(a, [4, 2, 1]), [0, 2, 2, 1]),
    "print": lambda tf, a, b: tf.gather(tf.Print(a, [], first_n=0), [0, 2, 2, 1]),
    "two lookups": lambda tf, a, b: tf.gather(a, [0, 2]) + tf.gather(a, [1, 1]),
    "lookup and whole": lambda tf, a, b: tf.concat([tf.gather(a, [0, 2]), a], 0),
    "stack": lambda tf, a, b: tf.gather(tf.stack([b, b]), [0, 1]),
    "gather_nd of rows": lambda tf, a, b: tf.gather_nd(a, [[0], [3], [3]]),
    "gather_nd of rows by a matrix": lambda tf, a, b: tf.gather_nd(a, [[[0], [1]], [[3], [3]]]),
    "gather_nd of elements": lambda tf, a, b: tf.gather_nd(a, [[0, 1], [1, 1]]),
    "gather of columns": lambda tf, a, b: tf.gather(a, [0, 1], axis=1),
    "gather of a gather": lambda tf, a, b: tf.gather(tf.gather(a, [0, 2, 2]), [0, 1]),
    "two tables": lambda tf, a, b: tf.nn.embedding_lookup([a, b], [0, 5, 5, 1], "div"),
}


@snippet
def routes_of_rows(tf: Any) -> dict[str, Any]:
    """Which gradients are rows, and which ones, after what a table passes before a lookup."""
    a = tf.get_variable("a", initializer=START[:4])
    b = tf.get_variable("b", initializer=START[:3] / 4)
    facts: dict[str, Any] = {}
    fetched: dict[str, Any] = {}
    for name, route in ROUTES.items():
        found = route(tf, a, b)
        given = tf.gradients(tf.reduce_sum(tf.square(found)), [a, b])
        facts[name] = {"rows": [isinstance(each, tf.IndexedSlices) for each in given]}
        fetched[name] = [tf.convert_to_tensor(each) for each in given if each is not None]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for name, values in session.run(fetched).items():
            facts[name]["values"] = [value.round(6).tolist() for value in values]
    return facts


READERS: dict[str, Callable[[Any, Any], Any]] = {
    "indices": lambda tf, rows: rows.indices,
    "values": lambda tf, rows: rows.values,
    "counts": lambda tf, rows: tf.math.bincount(rows.indices, minlength=2),
    "length": lambda tf, rows: tf.shape(rows.indices),
    "mean": lambda tf, rows: tf.reduce_mean(rows.values),
    "of the negative": lambda tf, rows: tf.size((-rows).values),
    "of the clipped": lambda tf, rows: tf.reduce_mean(tf.clip_by_norm(rows, 1.0).values),
    "made again": lambda tf, rows: tf.convert_to_tensor(
        tf.IndexedSlices(rows.values + 1.0, rows.indices, rows.dense_shape)
    ),
    "second gradients": lambda tf, rows: tf.gradients(
        tf.reduce_sum(rows.values**2), tf.global_variables()
    ),
}


@snippet
def rows_that_are_read(tf: Any) -> dict[str, Any]:
    """What a program computes from the rows of the gradients of parts."""
    made = table(tf, "table")
    found = {
        **{way: tf.nn.embedding_lookup(made, IDS[0], way) for way in ("mod", "div")},
        "gather": tf.gather(made, IDS[0]),
    }
    fetched = {}
    for way, looked_up in found.items():
        loss = tf.reduce_sum(looked_up**3)
        for at, rows in enumerate(tf.gradients(loss, list(made))):
            for name, read in READERS.items():
                each = read(tf, rows)
                whole = each if isinstance(each, list) else [each]
                fetched[f"{way} {at} {name}"] = [
                    tf.convert_to_tensor(one) for one in whole if one is not None
                ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = session.run(fetched)
    return {name: [one.round(5).tolist() for one in each] for name, each in values.items()}
