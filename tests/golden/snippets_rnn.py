"""Programs with recurrent networks, as functions of the module used as `tf`.

`RNN`: each gives tensors; `run` gives all variables numbers of its own, and fetches the tensors and
their gradients. `RNN_ERRORS`: each gives what fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Snippet = Callable[[Any], Any]

LENGTHS = [3, 2, 0]


def numbers(seed: int, *shape: int) -> Any:
    """Normally distributed float32 numbers, the same with every version of NumPy."""
    return np.asarray(np.random.RandomState(seed).randn(*shape), np.float32)


def inputs(tf: Any, time_major: bool = False) -> Any:
    """Three sequences of three steps of four numbers, differentiated too."""
    x = tf.constant(numbers(98 if time_major else 99, 3, 3, 4))
    tf.add_to_collection("differentiated", x)
    return x


def state(tf: Any, seed: int, units: int) -> Any:
    """An initial state, differentiated too."""
    made = tf.constant(numbers(seed, 3, units))
    tf.add_to_collection("differentiated", made)
    return made


def steps(tf: Any) -> list[Any]:
    """The inputs as a list."""
    return tf.unstack(inputs(tf), axis=1)  # type: ignore[no-any-return]


def dynamic(make: Snippet, **options: Any) -> Snippet:
    """`dynamic_rnn` with a cell."""
    options = {"dtype": "float32", **options}
    return lambda tf: tf.nn.dynamic_rnn(make(tf), inputs(tf), **options)


def static(make: Snippet, **options: Any) -> Snippet:
    """`static_rnn` with a cell."""
    options = {"dtype": "float32", **options}
    return lambda tf: tf.nn.static_rnn(make(tf), steps(tf), **options)


def cell(kind: str, *arguments: Any, **options: Any) -> Snippet:
    """What makes a cell."""
    return lambda tf: getattr(tf.nn.rnn_cell, kind)(*arguments, **options)


def _all_of_lstm(tf: Any) -> Any:
    return tf.nn.rnn_cell.LSTMCell(
        6, use_peepholes=True, cell_clip=0.5, num_proj=3, proj_clip=0.4, forget_bias=0.3
    )


def _initial_state(tf: Any) -> Any:
    start = tf.nn.rnn_cell.LSTMStateTuple(state(tf, 50, 6), state(tf, 51, 6))
    made = tf.nn.rnn_cell.BasicLSTMCell(6)
    return tf.nn.dynamic_rnn(made, inputs(tf), sequence_length=LENGTHS, initial_state=start)


def _time_major(tf: Any) -> Any:
    made = tf.nn.rnn_cell.GRUCell(6)
    lengths = tf.constant(LENGTHS, tf.int64)
    return tf.nn.dynamic_rnn(made, inputs(tf, True), lengths, dtype=tf.float32, time_major=True)


def _double(tf: Any) -> Any:
    x = tf.cast(inputs(tf), tf.float64)
    return tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(6), x, dtype=tf.float64)


def _unknown_sizes(tf: Any) -> Any:
    x = tf.placeholder_with_default(numbers(99, 3, 3, 4), [None, None, 4])
    return tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(6), x, LENGTHS, dtype=tf.float32)


def _multi(tuples: bool) -> Snippet:
    def make(tf: Any) -> Any:
        rnn_cell = tf.nn.rnn_cell
        cells = [
            rnn_cell.LSTMCell(6, state_is_tuple=tuples),
            rnn_cell.BasicRNNCell(5, activation=tf.nn.relu),
            rnn_cell.GRUCell(3),
        ]
        return rnn_cell.MultiRNNCell(cells, state_is_tuple=tuples)

    return make


def _residual(tf: Any) -> Any:
    plain = tf.nn.rnn_cell.ResidualWrapper(tf.nn.rnn_cell.LSTMCell(4))
    other = tf.nn.rnn_cell.ResidualWrapper(
        tf.nn.rnn_cell.GRUCell(4), residual_fn=lambda before, after: 0.5 * before + after
    )
    return tf.nn.rnn_cell.MultiRNNCell([plain, other])


def _on_device(tf: Any) -> Any:
    return tf.nn.rnn_cell.DeviceWrapper(tf.nn.rnn_cell.BasicLSTMCell(6), "/cpu:0")


def _kept(tf: Any) -> Any:
    return tf.nn.rnn_cell.DropoutWrapper(
        tf.nn.rnn_cell.LSTMCell(6), input_keep_prob=1.0, output_keep_prob=1.0, state_keep_prob=1.0
    )


def _several(tf: Any) -> Any:
    """Where variables are shared, and what they are called."""
    x, rnn_cell = inputs(tf), tf.nn.rnn_cell
    one = rnn_cell.BasicLSTMCell(3)
    start = one.zero_state(3, tf.float32)
    first, second = one(x[:, 0], start)
    again, _ = one(x[:, 1], second)
    other, _ = rnn_cell.BasicLSTMCell(3)(x[:, 1], start)
    named, _ = rnn_cell.GRUCell(3, name="mine")(x[:, 1], first)
    scoped, _ = rnn_cell.BasicRNNCell(3)(x[:, 1], first, scope="place")
    with tf.variable_scope("outer"):
        inside, _ = rnn_cell.BasicRNNCell(3)(x[:, 2], first)
    with tf.variable_scope("outer", reuse=True):
        shared, _ = rnn_cell.BasicRNNCell(3)(x[:, 1], first)
    return [first, again, other, named, scoped, inside, shared]


def _scopes(tf: Any) -> Any:
    """Loops over time in scopes."""
    x, rnn_cell, found = inputs(tf), tf.nn.rnn_cell, []
    for scope in ("encoder", "decoder"):
        found += tf.nn.dynamic_rnn(rnn_cell.GRUCell(3), x, dtype=tf.float32, scope=scope)
    with tf.variable_scope("model") as scope:
        found += tf.nn.dynamic_rnn(rnn_cell.GRUCell(3), x, dtype=tf.float32)
    with tf.variable_scope(scope, reuse=True):
        found += tf.nn.dynamic_rnn(rnn_cell.GRUCell(3), x[:, ::2], dtype=tf.float32)
    with tf.variable_scope("reused", reuse=tf.AUTO_REUSE):
        for _ in range(2):
            found += tf.nn.dynamic_rnn(rnn_cell.LSTMCell(2), x, dtype=tf.float32)[1]
    return found


def _own_cell(tf: Any) -> Any:
    """A cell of the program's own, with variables made by `build`."""

    class Mixing(tf.nn.rnn_cell.RNNCell):  # type: ignore[misc]
        def __init__(self, units: int, **options: Any) -> None:
            super().__init__(**options)
            self._units = units

        @property
        def state_size(self) -> Any:
            return (self._units, self._units)

        @property
        def output_size(self) -> Any:
            return self._units

        def build(self, shape: Any) -> None:
            size = int(shape[-1])
            self.mixing = self.add_variable("mixing", [size, self._units])
            self.fading = self.add_variable("fading", [], trainable=False)
            self.built = True

        def call(self, values: Any, carried: Any) -> Any:
            one, other = carried
            new = tf.tanh(tf.matmul(values, self.mixing) + one)
            return new + other, (other * self.fading, new)

    return tf.nn.dynamic_rnn(Mixing(3), inputs(tf), LENGTHS, dtype=tf.float32)


def _old_cell(tf: Any) -> Any:
    """A cell that makes its variables where it is called, as before TensorFlow 1.2."""

    class Plain(tf.nn.rnn_cell.RNNCell):  # type: ignore[misc]
        @property
        def state_size(self) -> Any:
            return 3

        @property
        def output_size(self) -> Any:
            return 3

        def __call__(self, values: Any, carried: Any, scope: Any = None) -> Any:
            with tf.variable_scope(scope or type(self).__name__):
                kernel = tf.get_variable("W", [7, 3])
                new = tf.sigmoid(tf.matmul(tf.concat([values, carried], 1), kernel))
            return new, new

    return [
        *tf.nn.dynamic_rnn(Plain(), inputs(tf), dtype=tf.float32, scope="loop"),
    ]


def _nested(tf: Any) -> Any:
    """Inputs, outputs and states that are structures."""

    class Pairs(tf.nn.rnn_cell.RNNCell):  # type: ignore[misc]
        @property
        def state_size(self) -> Any:
            return (4, (2, 4))

        @property
        def output_size(self) -> Any:
            return (4, 2)

        def call(self, values: Any, carried: Any) -> Any:
            one, other = values
            first, (second, third) = carried
            return (one + first, other + second), (one, (other * 0.5, third + one * first))

    x = inputs(tf)
    return tf.nn.dynamic_rnn(Pairs(), (x, x[:, :, :2]), LENGTHS, dtype=tf.float32)


def _bidirectional(tf: Any) -> Any:
    rnn_cell = tf.nn.rnn_cell
    return tf.nn.bidirectional_dynamic_rnn(
        rnn_cell.LSTMCell(3), rnn_cell.GRUCell(2), inputs(tf), LENGTHS, dtype=tf.float32
    )


def _bidirectional_whole(tf: Any) -> Any:
    rnn_cell = tf.nn.rnn_cell
    return tf.nn.bidirectional_dynamic_rnn(
        rnn_cell.GRUCell(3),
        rnn_cell.GRUCell(3),
        inputs(tf, True),
        initial_state_fw=state(tf, 50, 3),
        initial_state_bw=state(tf, 51, 3),
        time_major=True,
        scope="both",
    )


def _static_bidirectional(tf: Any) -> Any:
    rnn_cell, found = tf.nn.rnn_cell, []
    for scope, lengths in (("some", LENGTHS), ("all", None)):
        found.append(
            tf.nn.static_bidirectional_rnn(
                rnn_cell.BasicLSTMCell(3),
                rnn_cell.BasicLSTMCell(2),
                steps(tf),
                dtype=tf.float32,
                sequence_length=lengths,
                scope=scope,
            )
        )
    return found


class _Saver:
    """What `static_state_saving_rnn` asks for."""

    def __init__(self, tf: Any) -> None:
        self.start = {"c": state(tf, 50, 3), "h": state(tf, 51, 3)}
        self.saved: dict[str, Any] = {}
        self.identity = tf.identity

    def state(self, name: str) -> Any:
        """The state at the start."""
        return self.start[name]

    def save_state(self, name: str, value: Any) -> Any:
        """Keeps the state at the end."""
        self.saved[name] = value
        return self.identity(value)


def _state_saving(tf: Any) -> Any:
    saver = _Saver(tf)
    made = tf.nn.rnn_cell.LSTMCell(3)
    found = tf.nn.static_state_saving_rnn(made, steps(tf), saver, ("c", "h"), LENGTHS)
    return [found, saver.saved["c"], saver.saved["h"]]


def _raw(tf: Any) -> Any:
    """A loop in which the program says what comes next."""
    x, made = inputs(tf, True), tf.nn.rnn_cell.LSTMCell(3)
    columns = tf.TensorArray(tf.float32, 3).unstack(tf.identity(x))

    def step(time: Any, output: Any, carried: Any, seen: Any) -> Any:
        start = output is None
        following = made.zero_state(3, tf.float32) if start else carried
        done = time >= tf.constant(LENGTHS)
        finished = tf.reduce_all(done)
        value = tf.cond(
            finished, lambda: tf.zeros([3, 4]), lambda: columns.read(tf.minimum(time, 2))
        )
        return done, value, following, output, None

    outputs, last, _ = tf.nn.raw_rnn(made, step)
    return [outputs.stack(), last]


def _seldom(tf: Any) -> Any:
    """Sequences that are all shorter than the inputs."""
    made = tf.nn.rnn_cell.BasicRNNCell(3)
    return tf.nn.dynamic_rnn(made, inputs(tf), tf.constant([1, 2, 2]), dtype=tf.float32)


RNN: dict[str, Snippet] = {
    "basic": dynamic(cell("BasicRNNCell", 6)),
    "basic_relu": dynamic(lambda tf: tf.nn.rnn_cell.BasicRNNCell(6, activation=tf.nn.relu)),
    "lstm": dynamic(cell("BasicLSTMCell", 6, forget_bias=0.3), sequence_length=LENGTHS),
    "lstm_joined": dynamic(cell("BasicLSTMCell", 6, state_is_tuple=False), sequence_length=LENGTHS),
    "lstm_peepholes": dynamic(cell("LSTMCell", 6, use_peepholes=True)),
    "lstm_projected": dynamic(cell("LSTMCell", 6, num_proj=3), sequence_length=LENGTHS),
    "lstm_all": dynamic(_all_of_lstm),
    "gru": dynamic(cell("GRUCell", 6), sequence_length=LENGTHS),
    "multi": dynamic(_multi(True), sequence_length=LENGTHS),
    "multi_joined": dynamic(_multi(False)),
    "residual": dynamic(_residual),
    "device": dynamic(_on_device),
    "kept": dynamic(_kept),
    "initial_state": _initial_state,
    "time_major": _time_major,
    "double": _double,
    "unknown_sizes": _unknown_sizes,
    "seldom": _seldom,
    "several": _several,
    "scopes": _scopes,
    "own_cell": _own_cell,
    "old_cell": _old_cell,
    "nested": _nested,
    "static": static(cell("BasicLSTMCell", 6), sequence_length=LENGTHS),
    "static_whole": static(cell("GRUCell", 6), scope="whole"),
    "bidirectional": _bidirectional,
    "bidirectional_whole": _bidirectional_whole,
    "static_bidirectional": _static_bidirectional,
    "state_saving": _state_saving,
    "raw": _raw,
}


# Without gradients, which take a second each to compile: others have them in their place.
VALUES_ONLY = {
    *("basic_relu", "lstm_joined", "lstm_peepholes", "lstm_projected", "multi_joined", "device"),
    *("kept", "time_major", "double", "unknown_sizes", "seldom", "scopes", "old_cell", "several"),
    *("static_whole", "bidirectional_whole", "static_bidirectional"),
}


def _lengths(lengths: Any) -> Snippet:
    return lambda tf: tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(2), inputs(tf), lengths, dtype=tf.float32
    )


def _twice(tf: Any) -> Any:
    for _ in range(2):
        found = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(2), inputs(tf), dtype=tf.float32)
    return found


def _unknown_depth(tf: Any) -> Any:
    x = tf.placeholder(tf.float32, [3, 3, None])
    return tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(2), x, dtype=tf.float32)


RNN_ERRORS: dict[str, Snippet] = {
    "dynamic_no_dtype": lambda tf: tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(2), inputs(tf)),
    "static_no_dtype": lambda tf: tf.nn.static_rnn(tf.nn.rnn_cell.GRUCell(2), steps(tf)),
    "dynamic_rank": lambda tf: tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(2), tf.ones([5]), dtype=tf.float32
    ),
    "dynamic_no_features": lambda tf: tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(2), tf.ones([3, 3]), dtype=tf.float32
    ),
    "dynamic_no_cell": lambda tf: tf.nn.dynamic_rnn("GRU", inputs(tf), dtype=tf.float32),
    "dynamic_depth": _unknown_depth,
    "lengths_rank": _lengths([[3, 2, 0]]),
    "lengths_number": _lengths([3, 2]),
    "variables_twice": _twice,
    "static_no_list": lambda tf: tf.nn.static_rnn(
        tf.nn.rnn_cell.GRUCell(2), inputs(tf), dtype=tf.float32
    ),
    "static_nothing": lambda tf: tf.nn.static_rnn(tf.nn.rnn_cell.GRUCell(2), [], dtype=tf.float32),
    "static_no_cell": lambda tf: tf.nn.static_rnn("GRU", steps(tf), dtype=tf.float32),
    "multi_nothing": lambda tf: tf.nn.rnn_cell.MultiRNNCell([]),
    "multi_no_list": lambda tf: tf.nn.rnn_cell.MultiRNNCell(tf.nn.rnn_cell.GRUCell(2)),
    "multi_state": lambda tf: tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(2)])(
        tf.ones([3, 4]), tf.ones([3, 2])
    ),
    "keep_too_much": lambda tf: tf.nn.rnn_cell.DropoutWrapper(
        tf.nn.rnn_cell.GRUCell(2), input_keep_prob=1.5
    ),
    "keep_negative": lambda tf: tf.nn.rnn_cell.DropoutWrapper(
        tf.nn.rnn_cell.GRUCell(2), state_keep_prob=-0.5
    ),
    "dropout_no_cell": lambda tf: tf.nn.rnn_cell.DropoutWrapper("GRU"),
    "variational_no_dtype": lambda tf: tf.nn.rnn_cell.DropoutWrapper(
        tf.nn.rnn_cell.GRUCell(2), output_keep_prob=0.5, variational_recurrent=True
    ),
    "variational_no_size": lambda tf: tf.nn.rnn_cell.DropoutWrapper(
        tf.nn.rnn_cell.GRUCell(2),
        input_keep_prob=0.5,
        variational_recurrent=True,
        dtype=tf.float32,
    ),
    "state_depth": lambda tf: tf.nn.rnn_cell.GRUCell(2)(tf.ones([3, 4]), tf.ones([3, 5])),
    "bidirectional_no_cell": lambda tf: tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(2), None, inputs(tf), dtype=tf.float32
    ),
}


def run(tf: Any, snippet: Snippet, differentiate: bool = True) -> dict[str, Any]:
    """The variables of a snippet, the static shapes and values of what it gives, and gradients.

    Gradients, unless `differentiate` is false, are those of the weighted sum of all that it gives:
    of the trainable variables, then of what it put under "differentiated"; None where there is
    none.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        tensors: list[Any] = []
        flatten(snippet(tf), tensors)
        total = tf.add_n([_weighted(tf, each) for each in tensors])
        sources = [*tf.trainable_variables(), *tf.get_collection("differentiated")]
        gradients = [
            None if each is None else tf.convert_to_tensor(each)
            for each in (tf.gradients(total, sources) if sources and differentiate else [])
        ]
        variables = tf.global_variables()
        for seed, variable in enumerate(variables):
            shape = variable.shape.as_list()
            value = numbers(seed, *shape) * np.float32(0.4)
            variable.load(np.asarray(value, variable.dtype.as_numpy_dtype), session)
        there = [each for each in gradients if each is not None]
        values, found = session.run([tensors, there])
        trainable = {each.name for each in tf.trainable_variables()}
        return {
            "variables": [
                [each.name, each.shape.as_list(), each.name in trainable] for each in variables
            ],
            "shapes": [
                None if each.shape.rank is None else each.shape.as_list() for each in tensors
            ],
            "none": [at for at, each in enumerate(gradients) if each is None],
            "values": [np.asarray(each) for each in values],
            "gradients": [np.asarray(each) for each in found],
        }


def flatten(value: Any, found: list[Any]) -> None:
    """The tensors of nested tuples and lists."""
    if isinstance(value, (list, tuple)):
        for each in value:
            flatten(each, found)
    else:
        found.append(value)


def _weighted(tf: Any, tensor: Any) -> Any:
    count = tf.cast(tf.size(tensor), tf.float32)
    weights = tf.cos(tf.range(count) * 1.7 + 0.3)
    return tf.reduce_sum(tf.cast(tf.reshape(tensor, [-1]), tf.float32) * weights)
