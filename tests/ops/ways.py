"""The ways in which `test_every_way` gives inputs to ops: many trials in one run."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import estimatorkit as tf
from estimatorkit.compat.ops.control.defun import Defun
from estimatorkit.core.conversion import constant
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator import load_predictor
from tests.distribute.processes import free_cluster, known_token
from tests.ops.test_ops import fed
from tests.ops.trials import Trial

Values = list[Any] | Exception


def _values(session: Any, outputs: Sequence[Sequence[Tensor]], feeds: Any) -> list[Values]:
    found: list[Values] = session.run([list(each) for each in outputs], feeds)
    return found


def _feeds(trials: Sequence[Trial], inputs: Sequence[Sequence[Tensor]]) -> dict[Any, Any]:
    return {
        tensor: array
        for trial, own in zip(trials, inputs, strict=True)
        for position, (tensor, array) in enumerate(zip(own, trial.arrays, strict=True))
        if position not in trial.example.static
    }


def _by_feeds(trials: Sequence[Trial], session: Any) -> list[Values]:
    inputs = [fed(trial.arrays) for trial in trials]
    outputs = [trial.build(own) for trial, own in zip(trials, inputs, strict=True)]
    return _values(session, outputs, _feeds(trials, inputs))


def _as_constants(trials: Sequence[Trial], session: Any) -> list[Values]:
    return _values(session, [each.build(list(map(constant, each.arrays))) for each in trials], {})


def _as_fed_constants(trials: Sequence[Trial], session: Any) -> list[Values]:
    def other(array: NDArray[Any]) -> NDArray[Any]:
        return np.full_like(array, b"" if array.dtype.kind == "O" else 1)

    inputs = [list(map(constant, map(other, trial.arrays))) for trial in trials]
    outputs = [trial.build(own) for trial, own in zip(trials, inputs, strict=True)]
    return _values(session, outputs, _feeds(trials, inputs))


def _as_variables(trials: Sequence[Trial], session: Any) -> list[Values]:
    def held(array: NDArray[Any]) -> Tensor:
        # Variables cannot hold strings.
        return constant(array) if array.dtype.kind in "OSU" else tf.Variable(array).read_value()

    outputs = [trial.build(list(map(held, trial.arrays))) for trial in trials]
    session.run(tf.global_variables_initializer())
    return _values(session, outputs, {})


def _split(values: Sequence[Any], lengths: Sequence[int]) -> list[Any]:
    rest = iter(values)
    return [[next(rest) for _ in range(length)] for length in lengths]


def _captured_by(call: Callable[[Callable[[], tuple[Tensor, ...]]], Sequence[Tensor]]) -> Any:
    """The way of a function without arguments, which captures fed tensors."""

    def run(trials: Sequence[Trial], session: Any) -> list[Values]:
        inputs = [fed(trial.arrays) for trial in trials]
        lengths: list[int] = []

        def body() -> tuple[Tensor, ...]:
            outputs = [trial.build(own) for trial, own in zip(trials, inputs, strict=True)]
            lengths[:] = map(len, outputs)
            return tuple(tensor for own in outputs for tensor in own)

        tensors = list(call(body))
        return _values(session, _split(tensors, lengths), _feeds(trials, inputs))

    return run


def _by_cond(body: Any) -> Any:
    return tf.cond(tf.placeholder_with_default(True, []), body, body, strict=True)


def _by_while_loop(body: Any) -> Any:
    start = [tf.fill(tf.shape(each), tf.zeros([], each.dtype)) for each in body()]
    return tf.while_loop(lambda i, *_: i < 2, lambda i, *_: [i + 1, *body()], [0, *start])[1:]


def _by_map_fn(body: Any) -> Any:
    dtypes = tuple(each.dtype for each in body())
    stacked = tf.map_fn(lambda _: body(), tf.placeholder_with_default([0, 1], [2]), dtypes)
    return [each[1] for each in stacked]


def _by_defun(body: Any) -> Any:
    @Defun()
    def function() -> Any:
        return body()

    found = function()
    return found if isinstance(found, (list, tuple)) else [found]


def _by_map(trials: Sequence[Trial], session: Any) -> list[Values]:
    """The second of three equal elements, which are computed as one block."""
    arrays = tuple(array for trial in trials for array in trial.arrays)
    lengths: list[int] = []

    def function(*given: Tensor) -> Any:
        inputs = _split(given, [len(trial.arrays) for trial in trials])
        outputs = [trial.build(own) for trial, own in zip(trials, inputs, strict=True)]
        lengths[:] = map(len, outputs)
        return tuple(tensor for own in outputs for tensor in own)

    dataset = tf.data.Dataset.from_tensors(arrays).repeat(3).map(function)
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    session.run(element)
    return _split(session.run(element), lengths)


def _imported(trials: Sequence[Trial], session: Any) -> list[Values]:
    with tf.Graph().as_default() as graph:
        inputs = [fed(trial.arrays) for trial in trials]
        outputs = [trial.build(own) for trial, own in zip(trials, inputs, strict=True)]
    written = graph.as_graph_def().SerializeToString()

    def names(tensors: Sequence[Sequence[Tensor]]) -> list[str]:
        return [tensor.name for own in tensors for tensor in own]

    definition = tf.GraphDef.FromString(written)
    elements = [*names(outputs), *names(inputs)]
    found = tf.import_graph_def(definition, return_elements=elements, name="")
    lengths = [*map(len, outputs), *map(len, inputs)]
    both = _split(found, lengths)
    return _values(session, both[: len(trials)], _feeds(trials, both[len(trials) :]))


def _by_batch_and_map(trials: Sequence[Trial], session: Any) -> list[Values]:
    """The second row of a block of two; what maps elements is given the whole block."""
    arrays = tuple(array for trial in trials for array in trial.arrays)
    lengths: list[int] = []

    def built(trial: Trial, blocks: Sequence[Tensor]) -> list[Tensor]:
        if trial.example.row.batching.elementwise and len(blocks) == 1:
            return [each[1] for each in trial.build(blocks)]
        return trial.build([block[1] for block in blocks])

    def function(*given: Tensor) -> Any:
        inputs = _split(given, [len(trial.arrays) for trial in trials])
        outputs = [built(trial, own) for trial, own in zip(trials, inputs, strict=True)]
        lengths[:] = map(len, outputs)
        return tuple(tensor for own in outputs for tensor in own)

    dataset = tf.data.Dataset.from_tensors(arrays).repeat(2).batch(2).map(function)
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    return _split(session.run(element), lengths)


def _by_filter(trials: Sequence[Trial], session: Any) -> list[Values]:
    """The fed values of the trials whose values equal them inside of the predicate."""
    reference = _by_feeds(trials, session)
    arrays = tuple(array for trial in trials for array in trial.arrays)

    def predicate(index: Tensor, given: tuple[Tensor, ...]) -> Tensor:
        inputs = _split(given, [len(trial.arrays) for trial in trials])
        same = [
            tf.reduce_all([_is_near(*each) for each in zip(trial.build(own), values, strict=True)])
            for trial, own, values in zip(trials, inputs, reference, strict=True)
        ]
        return tf.stack(same)[index]

    dataset = tf.data.Dataset.range(len(trials)).map(lambda index: (index, arrays))
    kept = dataset.filter(predicate).map(lambda index, _: index).batch(len(trials))
    found = session.run(tf.data.make_one_shot_iterator(kept).get_next())
    different = AssertionError("the predicate saw another value")
    return [each if at in found else different for at, each in enumerate(reference)]


def _is_near(found: Tensor, expected: Any) -> Tensor:
    """Whether a tensor equals an array but for roundings, NaN included."""
    wanted = constant(expected)
    found = tf.ensure_shape(found, wanted.shape)
    if not found.dtype.is_differentiable:
        return tf.reduce_all(tf.equal(found, wanted))
    wide = tf.complex128 if found.dtype.is_complex else tf.float64
    tolerance = {2: 1e-2, 4: 3e-6}.get(found.dtype.real_dtype.size, 1e-12)
    one, two = tf.cast(found, wide), tf.cast(wanted, wide)
    near = tf.abs(one - two) <= tolerance * (1 + tf.abs(two))
    return tf.reduce_all(
        near | tf.equal(one, two) | (tf.not_equal(one, one) & tf.not_equal(two, two))
    )


def _exported(trials: Sequence[Trial], session: Any) -> list[Values]:
    """What a predictor gives that loads an export without the model's code."""
    inputs: list[list[Tensor]] = []
    lengths: list[int] = []
    known = [
        array
        for trial in trials
        for at, array in enumerate(trial.arrays)
        if at not in trial.example.static
    ]
    given = {f"x{at}": array for at, array in enumerate(known)}

    def receiver() -> Any:
        inputs[:] = [fed(trial.arrays) for trial in trials]
        tensors = dict(zip(given, _feeds(trials, inputs), strict=True))
        return tf.estimator.export.ServingInputReceiver(tensors, tensors)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        tf.train.get_or_create_global_step()
        outputs = [trial.build(own) for trial, own in zip(trials, inputs, strict=True)]
        lengths[:] = map(len, outputs)
        flat = [tensor for own in outputs for tensor in own]
        return tf.estimator.EstimatorSpec(
            mode, predictions={f"y{at:04}": each for at, each in enumerate(flat)}
        )

    tf.train.get_or_create_global_step()
    session.run(tf.global_variables_initializer())
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Saver().save(session, f"{folder}/model", write_meta_graph=False)
        estimator = tf.estimator.Estimator(model_fn, folder)
        written = estimator.export_saved_model(
            f"{folder}/export", receiver, checkpoint_path=path, example_inputs=given
        )
        with load_predictor(written) as predictor:
            found = predictor(given)
    return _split([found[key] for key in sorted(found)], lengths)


def _on_a_server(trials: Sequence[Trial], session: Any) -> list[Values]:
    """On a parameter server, from its variables."""

    def held(array: NDArray[Any]) -> Tensor:
        return constant(array) if array.dtype.kind in "OSU" else tf.Variable(array).read_value()

    with tf.device("/job:ps/task:0"):
        outputs = [trial.build(list(map(held, trial.arrays))) for trial in trials]
    with tf.Session(_server()) as own:
        tf.Session.reset(_server())
        own.run(tf.global_variables_initializer())
        return _values(own, outputs, {})


@functools.cache
def _server() -> str:
    """The target of a parameter server in this process."""
    with known_token():
        server = tf.train.Server(free_cluster(ps=1), "ps", 0)
    _servers.append(server)
    return str(server.target)


_servers: list[Any] = []


WAYS: dict[str, Callable[[Sequence[Trial], Any], list[Values]]] = {
    "fed": _by_feeds,
    "constants": _as_constants,
    "fed constants": _as_fed_constants,
    "variables": _as_variables,
    "cond": _captured_by(_by_cond),
    "while_loop": _captured_by(_by_while_loop),
    "map_fn": _captured_by(_by_map_fn),
    "Defun": _captured_by(_by_defun),
    "map": _by_map,
    "batch and map": _by_batch_and_map,
    "filter": _by_filter,
    "GraphDef": _imported,
    "export": _exported,
    "server": _on_a_server,
}


def attempt(way: str, trials: Sequence[Trial]) -> list[Values]:
    """The values of each trial, or the error that it raises."""
    try:
        with tf.Graph().as_default(), tf.Session() as session:
            return list(WAYS[way](trials, session))
    except (tf.errors.OpError, TypeError, ValueError, IndexError, ArithmeticError) as error:
        if len(trials) == 1:
            return [error]
    middle = len(trials) // 2
    return attempt(way, trials[:middle]) + attempt(way, trials[middle:])
