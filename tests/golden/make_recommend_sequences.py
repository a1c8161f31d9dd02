"""Layers of DeepCTR for sequences and several tasks.

Run, with TensorFlow 2.15.1 and DeepCTR 0.9.3:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_recommend_sequences.py

Writes `recommend_sequences.npz` beside this file: inputs, weights in this package's order and
layout, and outputs, by case.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from deepctr.contrib.utils import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    QAAttGRUCell,
    VecAttGRUCell,
)
from deepctr.feature_column import DenseFeat  # type: ignore[import-not-found,import-untyped,unused-ignore]
from deepctr.layers.activation import Dice  # type: ignore[import-not-found,import-untyped,unused-ignore]
from deepctr.layers.sequence import AttentionSequencePoolingLayer  # type: ignore[import-not-found,import-untyped,unused-ignore]
from deepctr.models.multitask import ESMM, MMOE, PLE  # type: ignore[import-not-found,import-untyped,unused-ignore]
from deepctr.models.sequence.dien import auxiliary_loss  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_npz
from tensorflow.python.util import nest  # type: ignore[import-not-found,import-untyped,unused-ignore]

RANDOM = np.random.default_rng(11)
BATCH, STEPS, WIDTH = 4, 5, 3


def draw(*shape: int) -> Any:
    """Numbers near 0."""
    return RANDOM.normal(scale=0.7, size=shape).astype(np.float32)


def with_new_weights(model: Any) -> dict[str, Any]:
    """Gives a model's weights values, positive ones, and returns them by name."""
    model.set_weights([abs(draw(*each.shape)) - 0.2 for each in model.get_weights()])
    names = [each.name.split(":")[0] for each in model.weights]
    found = dict(zip(names, model.get_weights(), strict=True))
    variances = [name for name in found if name.endswith("variance")]
    for name in variances:
        found[name] = abs(found[name]) + 0.1
    for name in names:
        if name.endswith("global_bias"):  # of its predictions, after the logits
            found[name] = np.zeros_like(found[name])
    model.set_weights([found[name] for name in names])
    return found


def keras(inputs: list[Any], outputs: Any) -> Any:
    """A model."""
    return tf.keras.Model(inputs, outputs)


def main() -> None:
    """Runs all cases and writes the file."""
    tf.compat.v1.disable_eager_execution()
    nest.is_sequence = nest.is_nested  # its older name, by which DeepCTR calls it
    cases: dict[str, Any] = {}

    def add(case: str, **values: Any) -> None:
        for key, value in values.items():
            each = {str(at): v for at, v in enumerate(value)} if isinstance(value, list) else None
            for name, array in (each or {"": value}).items():
                cases[f"{case}/{key}{name and '/'}{name}"] = np.asarray(array)

    x, query, keys = draw(BATCH, WIDTH), draw(BATCH, WIDTH), draw(BATCH, STEPS, WIDTH)
    lengths = np.array([5, 1, 3, 2], np.int64)

    given = tf.keras.Input([WIDTH])
    model = keras([given], Dice(name="dice")(given))
    weights = with_new_weights(model)
    found = [weights[f"dice/{name}"] for name in ("dice_alpha",)]
    found += [v for name, v in weights.items() if "moving" in name]
    add("dice", inputs=[x], weights=found, outputs=[model.predict(x)])

    for case, softmax in (("attention", False), ("attention_softmax", True)):
        layer = AttentionSequencePoolingLayer(
            (4, 2), att_activation="sigmoid", weight_normalization=softmax
        )
        inputs = [tf.keras.Input(shape) for shape in ([1, WIDTH], [STEPS, WIDTH], [1])]
        model = keras(inputs, layer(inputs))
        weights = with_new_weights(model)
        names = [n for n in weights if "dnn" in n]
        kernels = sorted(n for n in names if "kernel" in n)
        biases = sorted(n for n in names if "bias" in n)
        order = [n for pair in zip(kernels, biases, strict=True) for n in pair]
        order += [n for n in weights if "dnn" not in n]
        result = model.predict([query[:, None], keys, lengths[:, None]])[:, 0]
        add(
            *(case,),
            inputs=[query, keys, lengths],
            weights=[weights[n] for n in order],
            outputs=[result],
        )

    attention = RANDOM.uniform(size=(BATCH, STEPS, 1)).astype(np.float32)
    for case, kind in (("agru", QAAttGRUCell), ("augru", VecAttGRUCell)):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            cell, state = kind(WIDTH), tf.zeros([BATCH, WIDTH])
            for step in range(STEPS):  # as its dynamic_rnn, which TensorFlow 2.15 cannot run
                new, _ = cell(tf.constant(keys[:, step]), state, tf.constant(attention[:, step]))
                state = tf.where((step < lengths)[:, None], new, state)
            variables = tf.compat.v1.global_variables()
            values = {v.name: draw(*v.shape.as_list()) for v in variables}
            for v in variables:
                v.load(values[v.name], session)
            result = session.run(state)
        gates = next(v for n, v in values.items() if "gates/kernel" in n)
        gate_bias = next(v for n, v in values.items() if "gates/bias" in n)
        candidate = next(v for n, v in values.items() if "candidate/kernel" in n)
        candidate_bias = next(v for n, v in values.items() if "candidate/bias" in n)
        # DeepCTR's columns are reset and update (what is kept); ours are kept and reset.
        reset, kept = np.split(gates, 2, 1)
        reset_bias, kept_bias = np.split(gate_bias, 2)
        whole = np.concatenate([kept, reset, candidate], 1)
        found = [
            *(whole[:WIDTH], whole[WIDTH:]),
            np.concatenate([kept_bias, reset_bias, candidate_bias]),
        ]
        add(case, inputs=[keys, attention, lengths], weights=found, outputs=[result])

    states, clicked, unclicked = (draw(BATCH, STEPS, WIDTH) for _ in range(3))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loss = auxiliary_loss(
            *(tf.constant(each) for each in (states, clicked, unclicked)),
            tf.constant(np.full((BATCH, 1), STEPS)),
            stag="gru",
        )
        variables = tf.compat.v1.global_variables()
        session.run(tf.compat.v1.global_variables_initializer())
        values = [0.3 * draw(*v.shape.as_list()) for v in variables]
        for v, value in zip(variables, values, strict=True):
            v.load(value, session)
        result = session.run(loss)
    kernels = [v for v in values if v.ndim == 2]
    biases = [v for v in values if v.ndim == 1]
    ours = [each for pair in zip(kernels, biases, strict=True) for each in pair]
    add("auxiliary", inputs=[states, clicked, unclicked], weights=ours, outputs=[result])

    columns = [DenseFeat("x", WIDTH)]
    tasks = {"task_types": ["binary", "binary"], "task_names": ["a", "b"]}
    units = {"expert_dnn_hidden_units": (4, 3), "tower_dnn_hidden_units": (2,)}
    model = MMOE(columns, num_experts=3, gate_dnn_hidden_units=(2,), **units, **tasks)
    weights = with_new_weights(model)

    def layers_of(prefix: str, last: str | None = None) -> list[Any]:
        of_one = {n: v for n, v in weights.items() if n.startswith(f"{prefix}/")}
        kernels = [v for n, v in sorted(of_one.items()) if "kernel" in n]
        biases = [v for n, v in sorted(of_one.items()) if "bias" in n]
        pairs = [each for pair in zip(kernels, biases, strict=True) for each in pair]
        return [*pairs, *([weights[f"{last}/kernel"]] if last else [])]

    def stacked(prefixes: list[str]) -> list[Any]:
        return [np.stack(each) for each in zip(*map(layers_of, prefixes), strict=True)]

    found = stacked([f"expert_{at}" for at in range(3)])
    found += [v for t in "ab" for v in layers_of(f"gate_{t}", f"gate_softmax_{t}")]
    mixed = [model.get_layer(f"gate_mul_expert_{t}").output for t in "ab"]
    outputs = keras(model.inputs, mixed).predict(x)
    add("mmoe", inputs=[x], weights=found, outputs=outputs)

    model = PLE(
        columns,
        shared_expert_num=2,
        specific_expert_num=1,
        num_levels=2,
        gate_dnn_hidden_units=(),
        **units,
        **tasks,
    )
    weights = with_new_weights(model)
    found = []
    for level in ("level_0_", "level_1_"):
        for t in "ab":
            found += stacked([f"{level}task_{t}_expert_specific_0"])
        found += stacked([f"{level}expert_shared_{at}" for at in range(2)])
    for level in ("level_0_", "level_1_"):
        found += [weights[f"{level}gate_softmax_specific_{t}/kernel"] for t in "ab"]
        shared = f"{level}gate_softmax_shared/kernel"
        found += [weights[shared]] if shared in weights else []
    mixed = [model.get_layer(f"level_1_gate_mul_expert_specific_{t}").output for t in "ab"]
    outputs = keras(model.inputs, mixed).predict(x)
    add("ple", inputs=[x], weights=found, outputs=outputs)

    model = ESMM(columns, tower_dnn_hidden_units=(2,), task_names=["ctr", "ctcvr"])
    values = list(with_new_weights(model).values())
    kernels, biases = ([v for v in values if v.ndim == rank] for rank in (2, 1))
    hidden = [v for v in kernels if v.shape == (WIDTH, 2)]
    last = [v for v in kernels if v.shape == (2, 1)]
    biases = [v for v in biases if v.shape == (2,)]
    found = [v for at in range(2) for v in (hidden[at], biases[at], last[at])]
    add("esmm", inputs=[x], weights=found, outputs=model.predict(x))
    write_npz("recommend_sequences.npz", cases)


if __name__ == "__main__":
    main()
