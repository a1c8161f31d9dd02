"""A partitioned table trains like the whole one: every optimizer, lookup and partitioner.

Every case trains the same model twice in one graph, whole and in parts. Rows repeat within and
between steps, some examples have none, some parts too, and rows that begin parts are looked up in
the first step only, which optimizers remember.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import optax
from numpy.typing import NDArray

import estimatorkit as tf
from estimatorkit.layers.feature_column import sequence_input_layer
from estimatorkit.train.optimizers.optax_optimizer import OptaxOptimizer
from estimatorkit.train.optimizers.optimizers import RowwiseAdagradOptimizer
from tests.sweep import sweep

Lookup = Callable[[Any, Any], Any]
Maker = Callable[[], Any]

ROWS = 11
IDS = ([0, 4, 8, 4], [9, 1, 3, 9], [2, 2, 2, 10])
WEIGHTS = ([1.0, 0.5, 2.0, 0.25], [0.5, 1.0, 1.0, 3.0], [1.0, 1.0, 2.0, 0.5])
PLACES = np.array([[0, 0], [0, 1], [2, 0], [3, 0]], np.int64)

train, keras, columns = tf.train, tf.keras.optimizers, tf.feature_column
OPTIMIZERS: dict[str, Maker] = {
    "momentum": lambda: train.MomentumOptimizer(0.1, 0.9),
    "gradient_descent": lambda: train.GradientDescentOptimizer(0.1),
    "nesterov": lambda: train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: train.AdagradOptimizer(0.1),
    "rowwise_adagrad": lambda: RowwiseAdagradOptimizer(0.1),
    "adadelta": lambda: train.AdadeltaOptimizer(1.0),
    "adam": lambda: train.AdamOptimizer(0.1),
    "lazy_adam": lambda: train.LazyAdamOptimizer(0.1),
    "rms_prop": lambda: train.RMSPropOptimizer(0.1, momentum=0.5),
    "centered_rms_prop": lambda: train.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
    "ftrl": lambda: train.FtrlOptimizer(
        0.1, l1_regularization_strength=0.05, l2_shrinkage_regularization_strength=0.2
    ),
    "adagrad_da": lambda: train.AdagradDAOptimizer(0.1, tf.constant(3, tf.int64)),
    "proximal": lambda: train.ProximalGradientDescentOptimizer(0.1, 0.05, 0.1),
    "proximal_adagrad": lambda: train.ProximalAdagradOptimizer(0.1, 0.1, 0.05, 0.1),
    "keras_sgd": lambda: keras.SGD(0.1, momentum=0.9, nesterov=True, clipvalue=0.5),
    "keras_clipped": lambda: keras.SGD(0.1, momentum=0.9, global_clipnorm=0.5),
    "keras_rms_prop": lambda: keras.RMSprop(0.1, momentum=0.5, centered=True),
    "keras_adam": lambda: keras.Adam(0.1, amsgrad=True),
    "keras_adamax": lambda: keras.Adamax(0.1),
    "keras_nadam": lambda: keras.Nadam(0.1),
    "keras_adagrad": lambda: keras.Adagrad(0.1),
    "keras_adadelta": lambda: keras.Adadelta(1.0),
    "keras_ftrl": lambda: keras.Ftrl(0.1, l1_regularization_strength=0.05),
    "optax_adam": lambda: OptaxOptimizer(optax.adam(0.1)),
    "optax_sgd": lambda: OptaxOptimizer(optax.sgd(0.1, 0.9)),
}


def table() -> Any:
    return tf.get_variable("table", [ROWS, 2], initializer=tf.zeros_initializer())


def parts_of(variable: Any) -> list[Any]:
    return [variable] if isinstance(variable, tf.Variable) else list(variable)


def sparse(values: Any) -> Any:
    return tf.SparseTensor(PLACES, values, [5, 2])  # rows 1 and 4 are empty


def features(ids: Any, weights: Any) -> dict[str, Any]:
    return {"a": sparse(ids), "b": sparse(ids[::-1]), "w": sparse(weights)}


def identity(key: str = "a") -> Any:
    return columns.categorical_column_with_identity(key, ROWS)


def embedded(column: Any, **given: Any) -> Any:
    return columns.embedding_column(column, 2, initializer=tf.zeros_initializer(), **given)


def weighted() -> Any:
    return columns.weighted_categorical_column(identity(), "w")


def sequence(ids: Any, weights: Any) -> Any:
    column = columns.sequence_categorical_column_with_identity("a", ROWS)
    return sequence_input_layer(features(ids, weights), [embedded(column)])[0]


def shared(ids: Any, weights: Any) -> Any:
    both = columns.shared_embedding_columns([identity("a"), identity("b")], 2)
    return columns.input_layer(features(ids, weights), both)


nn = tf.nn
LOOKUPS: dict[str, Lookup] = {
    "embedding": lambda ids, weights: nn.embedding_lookup(table(), ids, "div"),
    "by modulo": lambda ids, weights: nn.embedding_lookup(table(), ids, "mod"),
    "list": lambda ids, weights: nn.embedding_lookup(parts_of(table()), ids, "div", max_norm=0.5),
    "twice": lambda ids, weights: (
        nn.embedding_lookup(t := table(), ids, "div") - nn.embedding_lookup(t, ids[::-1], "div")
    ),
    "sparse": lambda ids, weights: nn.embedding_lookup_sparse(
        table(), sparse(ids), sparse(weights), "div", combiner="sqrtn"
    ),
    "safe": lambda ids, weights: nn.safe_embedding_lookup_sparse(
        table(),
        sparse(tf.where(ids > 8, -ids, ids)),
        sparse(weights),
        default_id=4,
        partition_strategy="div",
    ),
    "column": lambda ids, weights: columns.input_layer(
        features(ids, weights), [embedded(identity(), max_norm=0.5)]
    ),
    "weighted column": lambda ids, weights: columns.input_layer(
        features(ids, weights), [embedded(weighted(), combiner="sqrtn")]
    ),
    "shared columns": shared,
    "sequence": sequence,
    "linear": lambda ids, weights: columns.linear_model(features(ids, weights), [weighted()]),
    "gather": lambda ids, weights: tf.gather(table(), ids),
    "gather_nd": lambda ids, weights: tf.gather_nd(tf.convert_to_tensor(table()), ids[:, None]),
    "regularized": lambda ids, weights: tf.concat(
        [nn.embedding_lookup(t := table(), ids, "div"), tf.convert_to_tensor(t)], 0
    ),
    "dense": lambda ids, weights: tf.layers.dense(tf.one_hot(ids, ROWS), 3),
}
PARTITIONERS: dict[str, Any] = {
    "three": tf.fixed_size_partitioner(3),
    "a row or two": tf.fixed_size_partitioner(6),
    "one": tf.fixed_size_partitioner(1),
    "by bytes": tf.variable_axis_size_partitioner(16),
    "at most four": tf.min_max_variable_partitioner(4, 0, 8),
}


def cases(lookups: Iterable[str], optimizers: Iterable[str]) -> list[tuple[str, str, str, str]]:
    """Each lookup with a partitioner and two optimizers, so that each optimizer comes up."""
    kinds, others = itertools.cycle(PARTITIONERS), itertools.cycle(optimizers)
    return [(each, next(kinds), next(others), next(others)) for each in lookups]


def in_order(value: NDArray[Any], count: int, lookup: str) -> NDArray[Any]:
    """The rows of a whole table in the order of its parts."""
    if lookup != "by modulo":
        return value
    return np.concatenate([value[first::count] for first in range(count)])


def start(variables: dict[str, list[Any]], lookup: str, session: Any) -> None:
    """Gives the variables of a name the same values, whole or in parts."""
    for name, parts in variables.items():
        lengths = [part.shape.as_list()[0] for part in parts]
        shape = [sum(lengths), *parts[0].shape.as_list()[1:]]
        value = np.random.RandomState(len(name)).normal(size=shape).astype(np.float32)
        cut = np.split(in_order(value, len(parts), lookup), np.cumsum(lengths)[:-1])
        for part, own in zip(parts, cut, strict=True):
            part.load(own, session)


def trained(
    lookup: str, rows_of: Lookup, make: Maker, cut: Any, target: str = "", device: Any = None
) -> dict[str, tuple[NDArray[Any], int]]:
    """The variables and slots after three steps, each with its number of parts."""
    with tf.Graph().as_default(), tf.Session(target) as session, tf.device(device):
        ids, weights = tf.placeholder(tf.int64, [4]), tf.placeholder(tf.float32, [4])
        with tf.variable_scope("model", partitioner=cut):
            rows = rows_of(ids, weights)
        variables: dict[str, list[Any]] = {}
        for each in tf.trainable_variables():
            info = each.save_slice_info
            variables.setdefault(each.op.name if info is None else info.full_name, []).append(each)
        optimizer = make()
        step = optimizer.minimize(tf.reduce_sum(tf.sin(rows) + 0.5 * tf.square(rows)))
        session.run(tf.global_variables_initializer())
        start(variables, lookup, session)
        for given in zip(IDS, WEIGHTS, strict=True):
            session.run(step, dict(zip((ids, weights), given, strict=True)))
        found = {}
        for label, parts in variables.items():
            for slot in optimizer.get_slot_names():
                held = [optimizer.get_slot(part, slot) for part in parts]
                if all(each is not None and each.shape.rank for each in held):
                    found[f"{label}: {slot}"] = np.concatenate(session.run(held)), len(parts)
            found[label] = np.concatenate(session.run(parts)), len(parts)
        return found


def check_parts(
    lookup: str, name: str, partitioner: str, target: str = "", device: Any = None
) -> None:
    """Asserts that a table in parts, on the target, trains like the whole one in this process."""
    check_model(lookup, LOOKUPS[lookup], OPTIMIZERS[name], partitioner, target, device)


def check_model(
    lookup: str,
    rows_of: Lookup,
    make: Maker,
    partitioner: str,
    target: str = "",
    device: Any = None,
) -> None:
    """`check_parts` of any lookup and optimizer."""
    whole = trained(lookup, rows_of, make, None)
    parts = trained(lookup, rows_of, make, PARTITIONERS[partitioner], target, device)
    assert whole.keys() == parts.keys()
    for label, (value, count) in parts.items():
        # XLA computes roots and powers of one row and of several ones in other digits.
        wanted = in_order(whole[label][0], count, lookup)
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6, err_msg=label)


@sweep(("lookup", "partitioner", "first", "second"), cases(LOOKUPS, OPTIMIZERS), quick=1)
def test_partitions_train_like_the_whole(
    lookup: str, partitioner: str, first: str, second: str
) -> None:
    for name in (first, second):
        check_parts(lookup, name, partitioner)
