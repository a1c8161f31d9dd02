"""Recurrent layers and wrappers, and how they are called, for TensorFlow and for this package.

`run` puts all cases into one graph, gives all weights values by a formula, and runs them once: the
outputs, and the gradients of their weighted sum with regard to weights, inputs and states. Nothing
here imports TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BATCH, STEPS, WIDTH, UNITS = 3, 4, 2, 2
MASK = np.array([[0, 1, 0, 1], [1, 1, 0, 0], [1, 0, 1, 1]], bool)


class Case(NamedTuple):
    """A layer and how it is called.

    Attributes:
        make: makes it of `tf` and `tf.keras.layers`.
        mask: whether `MASK` is given.
        states: the shapes of the initial states, without the batch.
        constants: the shapes of constants, without the batch.
        shape: of the inputs, without batch and steps.
        time_major: whether inputs and mask have the steps first.
    """

    make: Callable[[Any, Any], Any]
    mask: bool = False
    states: tuple[tuple[int, ...], ...] = ()
    constants: tuple[tuple[int, ...], ...] = ()
    shape: tuple[int, ...] = (WIDTH,)
    time_major: bool = False


def numbers(shape: tuple[int, ...], start: float) -> NDArray[Any]:
    """Numbers by a formula, between -0.6 and 0.6."""
    count = int(np.prod(shape))
    return (0.6 * np.sin(np.arange(count) * 1.37 + start)).astype(np.float32).reshape(shape)


def attention_cell(tf: Any, layers: Any) -> Any:
    """A user's cell with a constant, a nested state, and an output of another size."""

    class AttentionCell(layers.Layer):  # type: ignore[misc,name-defined]
        state_size = (UNITS, 3)
        output_size = 5

        def build(self, input_shape: Any) -> None:
            self.kernel = self.add_weight("kernel", [int(input_shape[-1]), UNITS])
            self.sums = self.add_weight("sums", [UNITS, 3])
            self.built = True

        def call(self, inputs: Any, states: Any, constants: Any) -> Any:
            one, other = states
            one = tf.tanh(tf.matmul(inputs, self.kernel) + one * constants[0])
            other = 0.5 * other + tf.matmul(one, self.sums)
            return tf.concat([one, other], 1), [one, other]

    return AttentionCell()


def _masked_kinds() -> dict[str, Case]:
    """Each kind of layer in each way of being called."""
    two, one = ((UNITS,),) * 2, ((UNITS,),)
    kinds: dict[str, tuple[str, dict[str, Any], Any]] = {
        "simple": ("SimpleRNN", {}, one),
        "lstm": ("LSTM", {}, two),
        "lstm_relu": (
            "LSTM",
            {"activation": "relu", "recurrent_activation": "hard_sigmoid", "use_bias": False},
            two,
        ),
        "gru": ("GRU", {}, one),
        "gru_before": ("GRU", {"reset_after": False}, one),
        "gru_no_bias": ("GRU", {"use_bias": False}, one),
    }
    every = {"return_sequences": True, "return_state": True}
    ways: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "last": ({}, {}),
        "backwards_masked": ({**every, "go_backwards": True}, {"mask": True}),
        "started_masked": (every, {"mask": True, "states": True}),
        "started_masked_last": ({"return_state": True}, {"mask": True, "states": True}),
        "zeros_masked": ({**every, "zero_output_for_mask": True}, {"mask": True, "states": True}),
        "backwards_unrolled": (
            {"go_backwards": True, "return_sequences": True, "unroll": True},
            {"states": True},
        ),
    }
    chosen = {
        "simple": ("started_masked", "zeros_masked"),
        "lstm": tuple(ways),
        "lstm_relu": ("started_masked",),
        "gru": ("last", "backwards_masked", "started_masked"),
        "gru_before": ("backwards_masked",),
        "gru_no_bias": ("last",),
    }
    cases = {}
    for kind, (name, fixed, states) in kinds.items():
        for way in chosen[kind]:
            options, call = ways[way]

            def make(
                tf: Any,
                layers: Any,
                name: str = name,
                options: Mapping[str, Any] = {**fixed, **options},
            ) -> Any:
                return getattr(layers, name)(UNITS, **options)

            call = {**call, "states": states} if call.get("states") else call
            cases[f"{kind}_{way}"] = Case(make, **call)
    return cases


CASES: dict[str, Case] = {
    **_masked_kinds(),
    "time_major": Case(
        lambda tf, layers: layers.GRU(UNITS, time_major=True, return_sequences=True),
        mask=True,
        time_major=True,
    ),
    "stack_every": Case(
        lambda tf, layers: layers.RNN(
            [layers.GRUCell(3), layers.SimpleRNNCell(UNITS)],
            return_sequences=True,
            go_backwards=True,
        ),
        mask=True,
    ),
    "user_cell": Case(
        lambda tf, layers: layers.RNN(attention_cell(tf, layers), return_state=True),
        constants=((UNITS,),),
        states=((UNITS,), (3,)),
    ),
    "user_cell_masked": Case(
        lambda tf, layers: layers.RNN(attention_cell(tf, layers)),
        mask=True,
        constants=((UNITS,),),
        states=((UNITS,), (3,)),
    ),
    "user_cell_every": Case(
        lambda tf, layers: layers.RNN(attention_cell(tf, layers), return_sequences=True),
        mask=True,
        constants=((UNITS,),),
        states=((UNITS,), (3,)),
    ),
    **{
        f"bidirectional_{mode}": Case(
            lambda tf, layers, mode=mode, every=every: layers.Bidirectional(
                layers.GRU(UNITS, return_sequences=every), merge_mode=mode
            ),
            mask=every,
        )
        for mode, every in (
            *(("concat", True), ("sum", True), ("ave", False), ("mul", False)),
            (None, True),
        )
    },
    "bidirectional_states": Case(
        lambda tf, layers: layers.Bidirectional(
            layers.LSTM(UNITS, return_sequences=True, return_state=True)
        ),
        mask=True,
        states=((UNITS,),) * 4,
    ),
    "bidirectional_other": Case(
        lambda tf, layers: layers.Bidirectional(
            layers.SimpleRNN(UNITS, activation="sigmoid"),
            backward_layer=layers.LSTM(UNITS, go_backwards=True),
        ),
    ),
    "bidirectional_stack": Case(
        lambda tf, layers: layers.Bidirectional(
            layers.RNN([layers.GRUCell(3), layers.GRUCell(UNITS)])
        ),
    ),
    "each_dense": Case(
        lambda tf, layers: layers.TimeDistributed(layers.Dense(3, "tanh")), mask=True
    ),
    "each_lstm": Case(
        lambda tf, layers: layers.TimeDistributed(layers.LSTM(UNITS)), shape=(3, WIDTH)
    ),
    "images": Case(
        lambda tf, layers: layers.ConvLSTM2D(2, 2, return_sequences=True), shape=(3, 4, 1)
    ),
}

STATEFUL: dict[str, Callable[[Any], Any]] = {
    "lstm": lambda layers: layers.LSTM(UNITS, stateful=True, return_sequences=True),
    "gru": lambda layers: layers.GRU(UNITS, stateful=True),
    "cell": lambda layers: layers.RNN(layers.SimpleRNNCell(UNITS), stateful=True),
}


def _flat(outputs: Any) -> list[Any]:
    if isinstance(outputs, (list, tuple)):
        return [leaf for each in outputs for leaf in _flat(each)]
    return [outputs]


def _weighted(tf: Any, output: Any, start: int) -> Any:
    """The sum of an output's elements, each with a weight of its own."""
    places = tf.cast(tf.range(tf.size(output)), tf.float32)
    return tf.reduce_sum(output * tf.reshape(tf.cos(places + start), tf.shape(output)))


def _load(layer: Any, session: Any) -> None:
    """Gives the weights of a layer values by a formula."""
    for number, weight in enumerate(layer.weights):
        weight.load(numbers(tuple(weight.shape.as_list()), 1.0 + number), session)


def _size(dims: tuple[int, ...], *leading: int) -> tuple[int, ...]:
    return (*leading, *dims)


def run(tf: Any, layers: Any) -> dict[str, dict[str, Any]]:
    """Runs `CASES` in one graph.

    Args:
        tf: TensorFlow 1's names.
        layers: `tf.keras.layers`.

    Returns:
        For each case `values` and `gradients` (arrays), `variables` ([name, shape]), `shapes` of
        the outputs, and the layer's `config`.
    """
    fetches, facts, made = {}, {}, []
    with tf.Graph().as_default(), tf.Session() as session:
        for name, case in CASES.items():
            layer = case.make(tf, layers)
            whole = numbers(_size(case.shape, BATCH, STEPS), 0.5)
            mask = MASK
            if case.time_major:
                whole, mask = np.moveaxis(whole, 1, 0), mask.T
            dims: list[int | None] = list(whole.shape)
            dims[1 if case.time_major else 0] = None
            inputs = tf.placeholder_with_default(whole, dims)
            given = [inputs]
            options: dict[str, Any] = {"mask": tf.constant(mask)} if case.mask else {}
            for what, shapes in (("initial_state", case.states), ("constants", case.constants)):
                if shapes:
                    options[what] = [
                        tf.constant(numbers(_size(shape, BATCH), 3.0 + at))
                        for at, shape in enumerate(shapes)
                    ]
                    given += options[what]
            outputs = _flat(layer(inputs, **options))
            total = tf.add_n([_weighted(tf, each, at) for at, each in enumerate(outputs)])
            gradients = tf.gradients(total, [*given, *layer.weights])
            fetches[name] = {"values": outputs, "gradients": gradients}
            facts[name] = {
                "variables": [[w.op.name, w.shape.as_list()] for w in layer.weights],
                "shapes": [each.shape.as_list() for each in outputs],
                "config": layer.get_config() if "user" not in name else {},
            }
            made.append(layer)
        for layer in made:
            _load(layer, session)
        found = session.run(fetches)
    return {name: {**facts[name], **found[name]} for name in CASES}


def run_stateful(tf: Any, layers: Any) -> dict[str, list[NDArray[Any]]]:
    """Two batches one after the other, and the first again, through layers that keep states."""
    fetches, updates, made = {}, [], []
    with tf.Graph().as_default(), tf.Session() as session:
        batch = tf.placeholder(tf.float32, [BATCH, STEPS, WIDTH])
        for name, make in STATEFUL.items():
            layer = make(layers)
            fetches[name] = layer(batch)
            updates += layer.updates
            made.append(layer)
        weights = {weight.op.name for layer in made for weight in layer.weights}
        states = [each for each in tf.global_variables() if each.op.name not in weights]
        session.run(tf.variables_initializer(states))
        for layer in made:
            _load(layer, session)
        found: dict[str, list[NDArray[Any]]] = {name: [] for name in STATEFUL}
        for start in (0.5, 2.5, 0.5):
            feeds = {batch: numbers((BATCH, STEPS, WIDTH), start)}
            values, _ = session.run([fetches, updates], feeds)
            for name, value in values.items():
                found[name].append(value)
    return found
