"""Invalid values end a run, in every way an operation can run.

Programs and words are TensorFlow 2.15.1's (`tests/golden/make_faults.py`).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import registry
from estimatorkit.core.indexed_slices import may_hold_surplus
from tests.golden.snippets_faults import FAULTS, LEGACY, STATEFUL, Fault
from tests.ops.calls import called
from tests.sweep import sweep

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "faults.json").read_text("utf-8"))
EVERY = FAULTS | STATEFUL

NOT_REFUSED = {"TensorArray.write twice", "TensorArray.scatter 2"}
"""See docs/differences.md: what is written twice has the later value."""

OTHER_WORDS = {
    # Another operation of a lookup refuses the id.
    "embedding_lookup_sparse": "indices[2] = 4 is not in [0, 4)",
    # The index within the batch, which TensorFlow puts before it.
    "gather_nd of a batch": "indices[1] = [3] does not index into param shape [2,3]",
    "ctc_loss 2": "All labels must be nonnegative integers: labels[0] = -1",
    "ctc_loss of lengths 2": "Not enough time for target transition sequence (required: 2, ",
    "TensorArray.write": "TensorArray: Tried to write to index 3 but array is not resizeable and",
    "TensorArray.write 2": "TensorArray: Tried to write to index -1 but array is not resizeable",
    "TensorArray.scatter": "TensorArray: Tried to write to index 3 but array is not resizeable",
    "mean_iou 2": "assertion failed: [`labels` contains negative values]",
    "mean_iou 4": "assertion failed: [`predictions` contains negative values]",
    "confusion_matrix": "assertion failed: [`labels` out of bound]",
    "confusion_matrix 2": "assertion failed: [`labels` contains negative values",
    # TensorFlow's InternalError, "Unexpected error in binary operator".
    **{name: "Integer division by zero" for name in EVERY if name.startswith("truncate")},
}


def expected_words(name: str) -> str | None:
    """How the first line of the error begins; None if there is none."""
    error = GOLDEN["errors"][name]
    if error is None or name in NOT_REFUSED:
        return None
    text: str = error[1]
    for end in (", node name", ".  Label values", "  Label values", " [Condition", " got: "):
        text = text.partition(end)[0]
    return OTHER_WORDS.get(name, text.rstrip("."))


def fed(fault: Fault, values: Any, known: bool = True) -> Any:
    """The program's value, its tensors fed."""
    with tf.Graph().as_default():
        shapes = [each.shape if known else [None] * each.ndim for each in values]
        tensors = [tf.placeholder(each.dtype, s) for each, s in zip(values, shapes, strict=True)]
        made = fault.made(tf, *tensors)
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            return session.run(made, dict(zip(tensors, values, strict=True)))


@sweep("name", sorted(EVERY.keys() - LEGACY), quick=14)
def test_messages_match_tensorflow(name: str) -> None:
    fault, words = EVERY[name], expected_words(name)
    fed(fault, fault.good)
    if words is None:
        fed(fault, fault.bad)
        return
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        fed(fault, fault.bad)
    assert str(caught.value).startswith(words)
    if not name.startswith("confusion"):
        assert "snippets_faults.py" in str(caught.value)
        assert caught.value.op is not None


# -- however it comes to run


def _total(fault: Fault, tensors: Any) -> Any:
    made = fault.made(tf, *tensors)
    return tf.reduce_sum(tf.cast(made, tf.float32))


def _fed(fault: Fault, values: Any, use: Callable[[Any], Any]) -> Any:
    tensors = [tf.placeholder(each.dtype, each.shape) for each in values]
    made = use(lambda *_: _total(fault, tensors))
    with tf.Session() as session:
        return session.run(made, dict(zip(tensors, values, strict=True)))


def _run(made: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(made)


def _elements(values: Any) -> Any:
    return tf.data.Dataset.from_tensors(tuple(values))


def _next(dataset: Any) -> Any:
    return _run(tf.data.make_one_shot_iterator(dataset).get_next())


def _called(fault: Fault, values: Any) -> Any:
    return _run(called(lambda *tensors: _total(fault, tensors), *map(tf.constant, values))[0])


def _backward(fault: Fault, values: Any) -> Any:
    @tf.custom_gradient
    def doubled(x: Any) -> Any:
        return x * 2.0, lambda dy: dy * _total(fault, [tf.constant(each) for each in values])

    x = tf.constant([1.0, 2.0])
    return _run(tf.gradients(tf.map_fn(doubled, x), x))


def _gradient(fault: Fault, values: Any) -> Any:
    weight = tf.Variable(2.0)
    tensors = [tf.placeholder_with_default(each, each.shape) for each in values]
    loop = tf.while_loop(
        lambda i, _: i < 2, lambda i, x: (i + 1, x * weight + _total(fault, tensors)), [0, weight]
    )
    return _run(tf.gradients(loop[1], weight))


def _in_parts(fault: Fault, values: Any) -> Any:
    tensors = [tf.placeholder(each.dtype, each.shape) for each in values]
    made = _total(fault, tensors)
    with tf.Session() as session:
        handle = session.partial_run_setup([made], tensors)
        return session.partial_run(handle, made, dict(zip(tensors, values, strict=True)))


def _callable(fault: Fault, values: Any) -> Any:
    tensors = [tf.placeholder(each.dtype, each.shape) for each in values]
    made = _total(fault, tensors)
    with tf.Session() as session:
        return session.make_callable(made, tensors)(*values)


def _initial(fault: Fault, values: Any) -> Any:
    variable = tf.Variable(lambda: _total(fault, [tf.constant(each) for each in values]))
    with tf.Session() as session:
        return session.run(variable.initializer)


WAYS: dict[str, Callable[[Fault, Any], Any]] = {
    "fed, of unknown shape": lambda fault, values: fed(fault, values, known=False),
    "constant": lambda fault, values: _run(_total(fault, list(map(tf.constant, values)))),
    "variable": lambda fault, values: _run(_total(fault, list(map(tf.Variable, values)))),
    "cond": lambda fault, values: _fed(
        fault, values, lambda f: tf.cond(tf.placeholder_with_default(True, []), f, lambda: 0.0)
    ),
    "cond of constants": lambda fault, values: _run(
        tf.cond(
            tf.placeholder_with_default(True, []),
            lambda: _total(fault, list(map(tf.constant, values))),
            lambda: 0.0,
        )
    ),
    "while_loop": lambda fault, values: _fed(
        fault,
        values,
        lambda f: tf.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, x + f()), [0, 0.0]),
    ),
    "while_loop's condition": lambda fault, values: _fed(
        fault,
        values,
        lambda f: tf.while_loop(
            lambda i: tf.cast(i, tf.float32) < f() * 0 + 2, lambda i: i + 1, [0]
        ),
    ),
    "map_fn": lambda fault, values: _run(
        tf.map_fn(
            lambda tensors: _total(fault, tensors),
            tuple(tf.constant(np.stack([each, each])) for each in values),
            dtype=tf.float32,
        )
    ),
    "scan": lambda fault, values: _fed(
        fault, values, lambda f: tf.scan(lambda x, y: x + y * f(), tf.ones([3]))
    ),
    "call": _called,
    "gradient of a loop": _gradient,
    "backward function": _backward,
    "partial_run": _in_parts,
    "make_callable": _callable,
    "initial value": _initial,
    "map": lambda fault, values: _next(_elements(values).map(lambda *t: _total(fault, t))),
    "map of a batch": lambda fault, values: _next(
        _elements(values)
        .repeat(2)
        .batch(2)
        .map(lambda *t: tf.map_fn(lambda row: _total(fault, row), t, dtype=tf.float32))
    ),
    "filter": lambda fault, values: _next(
        _elements(values).filter(lambda *t: _total(fault, t) * 0 + 1 > 0)
    ),
}

PROGRAMS = (
    *("gather", "gather of int64", "gather_nd", "scatter_nd", "x[i]", "unsorted_segment_sum"),
    *("x % y", "invert_permutation", "sparse_softmax_cross_entropy", "TensorArray.read"),
    "matrix_inverse",
)


@sweep(("way", "name"), itertools.product(WAYS, PROGRAMS), quick=18)
def test_faults_in_every_way_of_running(way: str, name: str) -> None:
    fault, words = FAULTS[name], expected_words(name)
    assert words is not None
    with tf.Graph().as_default():
        WAYS[way](fault, fault.good)
    errors = tf.errors.InvalidArgumentError, ValueError
    with tf.Graph().as_default(), pytest.raises(errors) as caught:
        WAYS[way](fault, fault.bad)
    of_constant = name == "x[i]" and isinstance(caught.value, ValueError)  # as in TensorFlow
    assert isinstance(caught.value, tf.errors.InvalidArgumentError) or of_constant
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["gather", "floordiv of int32"])
def test_pruned_operation_does_not_fault(name: str) -> None:
    fault = FAULTS[name]
    for values in ([tf.constant(each) for each in fault.bad], None):
        with tf.Graph().as_default():
            fed = [tf.placeholder_with_default(each, each.shape) for each in fault.bad]
            tensors = fed if values is None else [tf.constant(each) for each in fault.bad]
            chosen = tf.placeholder_with_default(False, [])
            made = tf.cond(chosen, lambda t=tensors: _total(fault, t), lambda: 1.0)
            assert _run(made) == 1


def test_empty_inputs_do_not_fault() -> None:
    ids = tf.placeholder(tf.int32, [None])
    made = [tf.gather(tf.zeros([0, 2]), ids), tf.constant(1) // ids, tf.invert_permutation(ids)]
    with tf.Session() as session:
        for value in session.run(made, {ids: np.zeros(0, np.int32)}):
            assert len(value) == 0


# -- the state afterwards


def _training(optimizer: Any) -> Any:
    ids = tf.placeholder(tf.int32, [None])
    table = tf.get_variable("table", [4, 2])
    other = tf.get_variable("other", [3, 2])
    loss = tf.reduce_sum(tf.gather(table, ids)) * tf.reduce_sum(other)
    step = tf.train.get_or_create_global_step()
    return ids, optimizer.minimize(loss, step)


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: tf.train.AdamOptimizer(0.5),
        lambda: tf.train.MomentumOptimizer(0.5, 0.9),
        lambda: tf.train.FtrlOptimizer(0.5),
    ],
)
def test_failed_step_leaves_variables_unchanged(optimizer: Any) -> None:
    ids, train = _training(optimizer())
    values = tf.global_variables()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {ids: [1, 2]})
        before = session.run(values)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 4"):
            session.run(train, {ids: [1, 4]})
        for old, new in zip(before, session.run(values), strict=True):
            np.testing.assert_array_equal(old, new)
        compiled = dict(session.state.compilations)
        session.run(train, {ids: [3, 2]})
        assert session.run(tf.train.get_global_step()) == 2
        assert dict(session.state.compilations) == compiled


def test_failed_assignment_leaves_variable_unchanged() -> None:
    ids = tf.placeholder(tf.int32, [2])
    one, other = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
    assign = tf.group(one.assign(tf.gather([5.0, 6.0], ids)), other.assign_add([1.0, 1.0]))
    with tf.Session() as session:
        session.run(one.initializer)
        session.run(other.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(assign, {ids: [0, 2]})
        np.testing.assert_array_equal(session.run(one), [1, 2])
        session.run(assign, {ids: [0, 1]})
        np.testing.assert_array_equal(session.run(one), [5, 6])


def _model_fn(features: Any, labels: Any, mode: str) -> Any:
    table = tf.get_variable("table", [10, 1], initializer=tf.zeros_initializer())
    found = tf.gather(table, features)[:, 0]
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=found)
    loss = tf.reduce_mean((found - labels) ** 2)
    train = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def _input_fn(*ids: int) -> Callable[[], Any]:
    columns = np.array(ids), np.ones(len(ids), np.float32)
    return lambda: tf.data.Dataset.from_tensor_slices(columns).batch(2)


class _Losses(tf.train.SessionRunHook):
    def __init__(self) -> None:
        self.count = 0

    def before_run(self, _: Any) -> Any:
        return tf.train.SessionRunArgs(tf.train.get_global_step())

    def after_run(self, _: Any, __: Any) -> None:
        self.count += 1


@pytest.mark.parametrize("hooks", [[], [_Losses]], ids=["in one call", "step by step"])
def test_training_stops_at_first_failing_step(tmp_path: Path, hooks: Any) -> None:
    estimator = tf.estimator.Estimator(_model_fn, tmp_path)
    estimator.train(_input_fn(1, 2, 3, 4), hooks=[hook() for hook in hooks])
    before = estimator.get_variable_value("table")
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        estimator.train(_input_fn(5, 6, 7, 8, 9, 60, 1, 1), hooks=[hook() for hook in hooks])
    assert str(caught.value).startswith("indices[1] = 60 is not in [0, 10)")
    assert estimator.latest_checkpoint().endswith("-2")
    np.testing.assert_array_equal(estimator.get_variable_value("table"), before)


def test_steps_before_failure_are_kept(tmp_path: Path) -> None:
    estimator = tf.estimator.Estimator(
        _model_fn, tmp_path, config=tf.estimator.RunConfig(save_checkpoints_steps=2)
    )
    with pytest.raises(tf.errors.InvalidArgumentError):
        estimator.train(_input_fn(5, 6, 7, 8, 9, 60, 1, 1))
    assert estimator.get_variable_value("global_step") == 2
    table = estimator.get_variable_value("table")[:, 0]
    np.testing.assert_array_equal(table != 0, np.isin(np.arange(10), [5, 6, 7, 8]))


def test_evaluation_and_prediction_stop(tmp_path: Path) -> None:
    estimator = tf.estimator.Estimator(_model_fn, tmp_path)
    estimator.train(_input_fn(1, 2))
    for call in (
        lambda: estimator.evaluate(_input_fn(1, 60)),
        lambda: list(estimator.predict(_input_fn(1, 2, 1, 60))),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 60"):
            call()


@pytest.mark.slow
def test_keras_models_stop() -> None:
    keras = tf.keras
    model = keras.Sequential(
        [keras.layers.Embedding(10, 3, input_length=1), keras.layers.Flatten()]
    )
    model.compile("adam", "mse")
    good, bad = np.array([[1], [2]]), np.array([[1], [12]])
    targets = np.ones([2, 3])
    model.fit(good, targets, verbose=0)
    weights = model.get_weights()[0]
    for call in (
        lambda: model.fit(bad, targets, shuffle=False, verbose=0),
        lambda: model.evaluate(bad, targets, verbose=0),
        lambda: model.predict(bad),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1,0\] = 12"):
            call()
    np.testing.assert_array_equal(model.get_weights()[0], weights)


def test_elements_before_failure_are_returned() -> None:
    dataset = tf.data.Dataset.range(5).map(
        lambda i: 12 // (tf.constant([1, 2, 0, 4, 6], tf.int64)[i])
    )
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        assert [session.run(element), session.run(element)] == [12, 6]
        with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero"):
            session.run(element)
        assert [session.run(element), session.run(element)] == [3, 2]


# -- surplus indices, which a gradient of a part of a table has


def _part_and_gradient(number: int) -> Any:
    """A part of a table, the gradient by it of squares of its rows, and what feeds the ids."""
    table = tf.get_variable(
        "table", [6, 2], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(3)
    )
    ids = tf.placeholder(tf.int32, [None])
    rows = tf.nn.embedding_lookup(table, ids, partition_strategy="div")
    gradients = tf.gradients(tf.reduce_sum(rows * rows), list(table))
    return list(table)[number], gradients[number], {ids: [0, 3, 3, 5]}


SURPLUS: dict[str, Callable[[Any, Any], Any]] = {
    "scatter_sub": lambda part, rows: tf.scatter_sub(part, rows.indices, 0.1 * rows.values),
    "scatter_sub in cond": lambda part, rows: tf.cond(
        tf.placeholder_with_default(True, []),
        lambda: tf.identity(tf.scatter_sub(part, rows.indices, 0.1 * rows.values)),
        lambda: tf.identity(part),
    ),
    "scatter_nd_sub": lambda part, rows: tf.scatter_nd_sub(
        part, rows.indices[:, tf.newaxis], 0.1 * rows.values
    ),
    "gather": lambda part, rows: (
        1
        - tf.convert_to_tensor(
            tf.IndexedSlices(
                0.1 * rows.values * tf.gather(part, rows.indices), rows.indices, rows.dense_shape
            )
        )
    ),
    "scatter_nd": lambda part, rows: (
        1 - tf.scatter_nd(rows.indices[:, tf.newaxis], 0.1 * rows.values, [2, 2])
    ),
    "unsorted_segment_sum": lambda part, rows: (
        1 - tf.unsorted_segment_sum(0.1 * rows.values, rows.indices, 2)
    ),
    "dense": lambda part, rows: 1 - 0.1 * tf.convert_to_tensor(rows),
}


@pytest.mark.parametrize("name", sorted(SURPLUS))
def test_rows_of_other_shards_do_not_fault(name: str) -> None:
    """Values of TensorFlow 2.15.1, whose gradients have rows of the part alone."""
    part, rows, feed = _part_and_gradient(1)
    made = SURPLUS[name](part, rows)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(made, feed), [[1, 1], [0.6, 0.6]], rtol=1e-6)


def test_shard_indices_are_checked() -> None:
    part, _, feed = _part_and_gradient(1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 3"):
            session.run(tf.gather(part, *feed), feed)


@pytest.mark.slow
def test_indices_of_long_computations() -> None:
    _, rows, _ = _part_and_gradient(1)
    surplus, plain = rows.all_indices, tf.placeholder(tf.int32, [2])
    for _ in range(1200):
        surplus, plain = tf.identity(surplus), tf.identity(plain)
    for _ in range(40):  # each is twice in the next
        surplus, plain = (tf.concat([each[:1], each[:1]], 0) for each in (surplus, plain))
    assert may_hold_surplus(surplus)
    assert not may_hold_surplus(plain)


# -- shapes that do not fit

UNFIT: dict[str, tuple[Callable[..., Any], Any]] = {
    "gather_nd": (tf.gather_nd, (np.ones([3, 2]), [[0, 1, 0]])),
    "scatter_nd": (tf.scatter_nd, ([[0, 1, 0]], [1.0], [2, 3])),
    "tensor_scatter_nd_update": (
        tf.tensor_scatter_nd_update,
        (np.ones([3, 2]), [[0, 1, 1]], [1.0]),
    ),
    "scatter_nd_update": (
        lambda *given: tf.scatter_nd_update(tf.Variable([1.0, 2.0]), *given),
        ([[0, 1]], [1.0]),
    ),
    "slice": (tf.slice, (np.ones([3, 2]), [0], [1])),
    "segment_sum": (tf.segment_sum, (np.ones([3, 2]), 0)),
    "invert_permutation": (tf.invert_permutation, ([[0, 1]],)),
    "x[i]": (lambda x, i: x[i], (1.0, 0)),
    "gather": (tf.gather, (1.0, 0)),
    "gather along an axis": (lambda x, i: tf.gather(x, i, axis=1), ([1.0], 0)),
    "histogram": (tf.histogram_fixed_width, ([1.0, 2.0], 1.0)),
}


@pytest.mark.parametrize("name", sorted(UNFIT))
def test_shape_mismatch_names_operation(name: str) -> None:
    """As in TensorFlow 2.15.1, where shapes are not known before."""
    function, values = UNFIT[name]
    kinds = {"f": tf.float32, "i": tf.int32}
    unknown = [[] if name == "x[i]" and at else None for at in range(len(values))]
    given = [
        tf.placeholder(kinds[np.asarray(value).dtype.kind], shape)
        for value, shape in zip(values, unknown, strict=True)
    ]
    made = function(*given)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(made, dict(zip(given, values, strict=True)))
    assert "test_faults.py" in str(caught.value)


# -- what it costs, and how to do without


def _held(value: Any) -> list[Any]:
    """What a function keeps alive."""
    cells = getattr(value, "__closure__", None) or ()
    found = [each for cell in cells for each in _held(cell.cell_contents)]
    items = value if isinstance(value, (list, tuple)) else ()
    return [value, *found, *(each for item in items for each in _held(item))]


@pytest.mark.parametrize(
    "op_type",
    [
        row.type
        for row in map(registry.lookup, registry.registered_types())
        if row.fault is not None and row.cases and row.placement.where != "host"
    ],
)
def test_fault_messages_release_tracers(op_type: str) -> None:
    row = registry.lookup(op_type)
    for case in row.cases():
        static = row.semantics.static_positions(case.attrs)

        def function(*given: Any, case: Any = case, static: Any = static) -> None:
            traced = iter(given)
            inputs = [each if at in static else next(traced) for at, each in enumerate(case.inputs)]
            for fault in row.fault(inputs, case.attrs):
                assert not any(isinstance(each, jax.core.Tracer) for each in _held(fault.text))

        given = [each for at, each in enumerate(case.inputs) if at not in static]
        jax.make_jaxpr(function)(*given)


@pytest.mark.usefixtures("compiled")
def test_failing_run_compiles_once() -> None:
    ids, x = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.float32, [2])
    row, double = tf.gather([1.0, 2.0, 3.0], ids), x * 2.0
    with tf.Session() as session:
        for each in ([0, 1], [0, 3], [2, 1], [3, 1]):
            try:
                session.run(row, {ids: each})
            except tf.errors.InvalidArgumentError:
                assert max(each) == 3
        compiled = session.state.compilations
        assert compiled[row.op.name] == 1
        (plain,) = session.traced(double, [x])
        (tested,) = session.traced(row, [ids])
        assert len(plain.jaxpr.jaxpr.outvars) == 1
        assert len(tested.jaxpr.jaxpr.outvars) == 2


@pytest.mark.parametrize("lookups", [1, 5])
def test_cost_per_variable_does_not_depend_on_number_of_checks(lookups: int) -> None:
    def compared(updates: int) -> int:
        """The number of comparisons in the XLA code of a step that updates so many variables."""
        with tf.Graph().as_default(), tf.Session() as session:
            ids = [tf.placeholder(tf.int32, [at + 2]) for at in range(lookups)]
            values = [tf.placeholder(tf.float32, [at + 3, 4]) for at in range(lookups)]
            found = [tf.reduce_sum(tf.gather(*each)) for each in zip(values, ids, strict=True)]
            made = [tf.get_variable(f"v{at}", [at + 5]) for at in range(updates)]
            step = tf.group(*[each.assign_add(each * tf.add_n(found)) for each in made])
            code = session.traced(step, [*ids, *values])[0].lower().compile().as_text()
            return code.count(" compare(") + code.count(" select(")

    assert compared(9) - compared(4) <= 5 * 3


def test_checks_can_be_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATORKIT_CHECKS", "0")
    ids = tf.placeholder(tf.int32, [2])
    with tf.Session() as session:
        found = session.run(tf.gather([1.0, 2.0, 3.0], ids), {ids: [0, 3]})
    np.testing.assert_array_equal(found, [1, 3])
