"""Sequence-to-sequence models of `tf.contrib`, as functions of the module used as `tf`.

`SEQ2SEQ`: each gives tensors, for `snippets_rnn.run`. `SEQ2SEQ_ERRORS`: each gives what fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.golden.snippets_rnn import Snippet, inputs, numbers, steps

SYMBOLS = 5
IDS = np.asarray([[1, 4, 2], [3, 0, 1], [2, 2, 4]], np.int32)  # (steps, batch)


def ids(tf: Any, count: int = 3, seed: int = 0) -> list[Any]:
    """A list of ids, `(batch,)` each."""
    return [tf.constant(np.roll(IDS[(at + seed) % 3], at), tf.int32) for at in range(count)]


def gru(tf: Any, units: int = 4) -> Any:
    """A cell."""
    return tf.nn.rnn_cell.GRUCell(units)


def lstms(tf: Any, units: int = 4) -> Any:
    """Two cells, one on top of the other."""
    return tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(units) for _ in range(2)])


# -- contrib.legacy_seq2seq


def _rnn_decoder(tf: Any) -> Any:
    legacy, cell = tf.contrib.legacy_seq2seq, gru(tf)
    return legacy.rnn_decoder(steps(tf), cell.zero_state(3, tf.float32), cell)


def _rnn_decoder_loop(tf: Any) -> Any:
    legacy, cell = tf.contrib.legacy_seq2seq, gru(tf)
    seen = []

    def loop(previous: Any, step: int) -> Any:
        seen.append(step)
        return previous * step

    found = legacy.rnn_decoder(steps(tf), cell.zero_state(3, tf.float32), cell, loop, scope="mine")
    assert seen == [1, 2]
    return found


def _plain(name: str, **options: Any) -> Snippet:
    def snippet(tf: Any) -> Any:
        values = steps(tf)
        cell = lstms(tf)
        return getattr(tf.contrib.legacy_seq2seq, name)(values, values[:2], cell, **options)

    return snippet


def _embedding_decoder(tf: Any, **options: Any) -> Any:
    cell = gru(tf)
    state = cell.zero_state(3, tf.float32)
    return tf.contrib.legacy_seq2seq.embedding_rnn_decoder(
        ids(tf), state, cell, SYMBOLS, 2, **options
    )


def _feedback(tf: Any) -> Any:
    cell = tf.nn.rnn_cell.BasicRNNCell(SYMBOLS)
    return tf.contrib.legacy_seq2seq.embedding_rnn_decoder(
        ids(tf), cell.zero_state(3, tf.float32), cell, SYMBOLS, 2, feed_previous=True
    )


def projection(tf: Any, units: int = 4) -> Any:
    """Weights and biases of an output projection."""
    return tf.get_variable("w", [units, SYMBOLS]), tf.get_variable("b", [SYMBOLS])


def _projected(tf: Any) -> Any:
    return _embedding_decoder(tf, output_projection=projection(tf), feed_previous=True)


def _projected_fixed(tf: Any) -> Any:
    return _embedding_decoder(
        tf,
        output_projection=projection(tf),
        feed_previous=True,
        update_embedding_for_previous=False,
    )


def seq2seq(name: str, make: Snippet, feeds: Any = False, **options: Any) -> Snippet:
    """A model of symbols; `feeds` is a bool, or None and a bool for a tensor."""

    def snippet(tf: Any) -> Any:
        feed_previous = tf.constant(feeds[1]) if isinstance(feeds, tuple) else feeds
        sizes = (SYMBOLS, 3) if "tied" in name else (SYMBOLS + 1, SYMBOLS, 3)
        given = dict(options)
        if given.pop("projected", False):
            given["output_projection"] = projection(tf)
        return getattr(tf.contrib.legacy_seq2seq, name)(
            ids(tf), ids(tf, 4, 1), make(tf), *sizes, feed_previous=feed_previous, **given
        )

    return snippet


def _attention(**options: Any) -> Snippet:
    def snippet(tf: Any) -> Any:
        cell = lstms(tf, 3)
        states = tf.constant(numbers(7, 3, 5, 2))
        tf.add_to_collection("differentiated", states)
        start = cell.zero_state(3, tf.float32)
        return tf.contrib.legacy_seq2seq.attention_decoder(
            steps(tf), start, states, cell, **options
        )

    return snippet


def _attention_of_unknown_length(tf: Any) -> Any:
    states = tf.placeholder_with_default(numbers(7, 3, 5, 2), [None, None, 2])
    cell = gru(tf)
    return tf.contrib.legacy_seq2seq.attention_decoder(
        steps(tf), cell.zero_state(3, tf.float32), states, cell, num_heads=2
    )


def _one_to_many(feeds: Any) -> Snippet:
    def snippet(tf: Any) -> Any:
        cells = {"a": gru(tf), "b": gru(tf)}
        decoder_inputs = {"a": ids(tf), "b": ids(tf, 2, 1)}
        outputs, states = tf.contrib.legacy_seq2seq.one2many_rnn_seq2seq(
            ids(tf),
            decoder_inputs,
            gru(tf),
            cells,
            SYMBOLS,
            {"a": 5, "b": 6},
            2,
            feed_previous=tf.constant(feeds[1]) if isinstance(feeds, tuple) else feeds,
        )
        return [outputs["a"], states["a"], outputs["b"], states["b"]]

    return snippet


def _lists(tf: Any) -> Any:
    logits = tf.unstack(tf.constant(numbers(20, 3, 3, SYMBOLS)))
    tf.add_to_collection("differentiated", logits[0])
    weights = [tf.constant([1.0, 1.0, 0.0]), tf.constant([0.5, 1.0, 0.0]), tf.zeros([3])]
    return logits, ids(tf), weights


def _legacy_losses(tf: Any) -> Any:
    legacy, given = tf.contrib.legacy_seq2seq, _lists(tf)
    squared = lambda labels, logits: tf.reduce_sum(logits**2, 1)  # noqa: E731
    return [
        legacy.sequence_loss(*given),
        legacy.sequence_loss(*given, average_across_timesteps=False),
        legacy.sequence_loss(*given, average_across_batch=False),
        legacy.sequence_loss(*given, softmax_loss_function=squared),
        legacy.sequence_loss_by_example(*given),
        legacy.sequence_loss_by_example(*given, average_across_timesteps=False),
    ]


def _buckets(per_example: bool) -> Snippet:
    def snippet(tf: Any) -> Any:
        legacy = tf.contrib.legacy_seq2seq

        def model(encoder: Any, decoder: Any) -> Any:
            return legacy.embedding_attention_seq2seq(encoder, decoder, gru(tf), 5, 5, 3)

        outputs, losses = legacy.model_with_buckets(
            ids(tf, 4),
            ids(tf, 5),
            ids(tf, 5, 1),
            [tf.constant([1.0, 0.5, 0.0])] * 5,
            [(2, 3), (4, 5)],
            model,
            per_example_loss=per_example,
        )
        return [outputs, losses]

    return snippet


_MODELS = {
    "embedding_rnn_seq2seq": lstms,
    "embedding_tied_rnn_seq2seq": gru,
    "embedding_attention_seq2seq": lstms,
}

LEGACY: dict[str, Snippet] = {
    "rnn_decoder": _rnn_decoder,
    "rnn_decoder_loop": _rnn_decoder_loop,
    "basic_rnn_seq2seq": _plain("basic_rnn_seq2seq"),
    "tied_rnn_seq2seq": _plain("tied_rnn_seq2seq"),
    "tied_scope": _plain("tied_rnn_seq2seq", scope="mine"),
    "embedding_rnn_decoder": _embedding_decoder,
    "embedding_rnn_decoder_feedback": _feedback,
    "embedding_rnn_decoder_projected": _projected,
    "embedding_rnn_decoder_fixed": _projected_fixed,
    **{
        f"{name}_{what}": seq2seq(name, make, feeds)
        for name, make in _MODELS.items()
        for what, feeds in (
            *(("given", False), ("fed_back", True)),
            *(("tensor_true", (None, True)), ("tensor_false", (None, False))),
        )
    },
    **{f"{name}_projected": seq2seq(name, gru, True, projected=True) for name in _MODELS},
    "embedding_tied_symbols": seq2seq("embedding_tied_rnn_seq2seq", gru, num_decoder_symbols=4),
    "embedding_attention_heads": seq2seq(
        "embedding_attention_seq2seq", gru, num_heads=2, initial_state_attention=True
    ),
    "attention_decoder": _attention(),
    "attention_decoder_heads": _attention(num_heads=2, output_size=4),
    "attention_decoder_initial": _attention(initial_state_attention=True),
    "attention_decoder_unknown": _attention_of_unknown_length,
    "one2many": _one_to_many(False),
    "one2many_fed_back": _one_to_many(True),
    "one2many_tensor": _one_to_many((None, False)),
    "legacy_losses": _legacy_losses,
    "buckets": _buckets(False),
    "buckets_per_example": _buckets(True),
}

# -- contrib.seq2seq


def decoded(tf: Any, result: Any) -> Any:
    """What `dynamic_decode` gives, without the state's parts that are not to be compared."""
    outputs, state, lengths = result
    return [list(outputs), state, lengths]


def training(tf: Any, make: Snippet, attends: Any = None, **options: Any) -> Any:
    """A decoder that reads its inputs; `attends` wraps the cell."""
    layer = tf.layers.Dense(SYMBOLS, name="out") if options.pop("layer", False) else None
    time_major = options.pop("time_major", False)
    helper = tf.contrib.seq2seq.TrainingHelper(inputs(tf, time_major), [3, 2, 1], time_major)
    cell = make(tf)
    if attends is not None:
        cell = attends(tf, cell)
    start = cell.zero_state(3, tf.float32)
    decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, start, layer)
    return tf.contrib.seq2seq.dynamic_decode(decoder, **options)


def _trained(make: Snippet, **options: Any) -> Snippet:
    return lambda tf: decoded(tf, training(tf, make, **options))


def greedy(tf: Any, make: Snippet = gru, **options: Any) -> Any:
    """A decoder that feeds its predictions back."""
    table = tf.get_variable("table", [SYMBOLS, 3])
    helper = tf.contrib.seq2seq.GreedyEmbeddingHelper(table, [1, 2, 3], 4)
    cell = make(tf)
    start = tf.nn.rnn_cell.GRUCell(4).zero_state(3, tf.float32) + tf.constant(numbers(5, 3, 4))
    layer = tf.layers.Dense(SYMBOLS, name="out")
    decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, start, layer)
    return tf.contrib.seq2seq.dynamic_decode(decoder, **options)


def _greedy(**options: Any) -> Snippet:
    return lambda tf: decoded(tf, greedy(tf, **options))


def _custom(tf: Any) -> Any:
    values = tf.unstack(inputs(tf), axis=1)
    helper = tf.contrib.seq2seq.CustomHelper(
        lambda: (tf.zeros([3], tf.bool), values[0]),
        lambda time, outputs, state: tf.cast(tf.argmax(outputs, 1), tf.int32),
        lambda time, outputs, state, sample_ids: (
            tf.fill([3], time >= 2),
            outputs * 0.5,
            state,
        ),
    )
    cell = gru(tf)
    decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
    return decoded(tf, tf.contrib.seq2seq.dynamic_decode(decoder))


def _inference(tf: Any) -> Any:
    start = tf.constant(numbers(3, 3, 4))
    tf.add_to_collection("differentiated", start)
    helper = tf.contrib.seq2seq.InferenceHelper(
        lambda outputs: outputs,
        [4],
        tf.float32,
        start,
        lambda samples: tf.reduce_sum(samples, 1) > 0.5,
        lambda samples: samples * 2.0,
    )
    cell = gru(tf)
    decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
    result = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=4)
    return decoded(tf, result)


def memory(tf: Any) -> Any:
    """What a mechanism reads: three memories of five places."""
    made = tf.constant(numbers(31, 3, 5, 2))
    tf.add_to_collection("differentiated", made)
    return made


def wrapper(kind: str, units: int = 4, **options: Any) -> Callable[[Any, Any], Any]:
    """What wraps a cell with a mechanism."""
    own = {
        key: options.pop(key)
        for key in ("attention_layer_size", "output_attention", "cell_input_fn")
        if key in options
    }

    def make(tf: Any, cell: Any) -> Any:
        given = {
            key: value(tf) if key in ("probability_fn", "custom_key_value_fn") else value
            for key, value in options.items()
        }
        mechanism = getattr(tf.contrib.seq2seq, kind)(units, memory(tf), **given)
        return tf.contrib.seq2seq.AttentionWrapper(cell, mechanism, **own)

    return make


def _attended(attends: Callable[[Any, Any], Any], make: Snippet = gru, **options: Any) -> Snippet:
    def snippet(tf: Any) -> Any:
        outputs, state, lengths = training(tf, make, attends, **options)
        return [list(outputs), list(state._replace(alignment_history=())), lengths]

    return snippet


def _several(tf: Any, cell: Any) -> Any:
    lib = tf.contrib.seq2seq
    mechanisms = [
        lib.BahdanauAttention(3, memory(tf), [5, 2, 1]),
        lib.LuongAttention(4, memory(tf), scale=True),
        lib.BahdanauAttention(2, memory(tf), normalize=True),
    ]
    return lib.AttentionWrapper(cell, mechanisms, attention_layer_size=[2, 3, 4])


def _own_layer(tf: Any, cell: Any) -> Any:
    lib = tf.contrib.seq2seq
    layer = tf.layers.Dense(6, activation=tf.tanh, name="mine")
    return lib.AttentionWrapper(cell, lib.LuongAttention(4, memory(tf)), attention_layer=layer)


def _initial_cell_state(tf: Any, cell: Any) -> Any:
    lib = tf.contrib.seq2seq
    start = tf.constant(numbers(8, 3, 4))
    tf.add_to_collection("differentiated", start)
    return lib.AttentionWrapper(
        cell, lib.LuongAttention(4, memory(tf)), name="named", initial_cell_state=start
    )


def _history(maximum: int | None) -> Snippet:
    def snippet(tf: Any) -> Any:
        lib = tf.contrib.seq2seq
        table = tf.get_variable("table", [SYMBOLS, 3])
        helper = lib.GreedyEmbeddingHelper(table, [1, 2, 3], 4)
        mechanism = lib.BahdanauAttention(4, memory(tf), [5, 2, 1])
        cell = lib.AttentionWrapper(gru(tf), mechanism, alignment_history=True)
        decoder = lib.BasicDecoder(
            cell, helper, cell.zero_state(3, tf.float32), tf.layers.Dense(SYMBOLS, name="out")
        )
        outputs, state, lengths = lib.dynamic_decode(decoder, maximum_iterations=maximum)
        return [list(outputs), state.alignment_history.stack(), state.alignments, lengths]

    return snippet


def _history_of_training(tf: Any) -> Any:
    lib = tf.contrib.seq2seq

    def attends(tf: Any, cell: Any) -> Any:
        mechanism = lib.LuongAttention(4, memory(tf))
        return lib.AttentionWrapper(cell, mechanism, alignment_history=True)

    outputs, state, _ = training(tf, gru, attends)
    return [list(outputs), state.alignment_history.stack()]


def _clone(tf: Any) -> Any:
    lib = tf.contrib.seq2seq
    cell = lib.AttentionWrapper(lstms(tf), lib.LuongAttention(4, memory(tf)), 3)
    start = cell.zero_state(3, tf.float32)
    encoded = tf.nn.dynamic_rnn(lstms(tf), inputs(tf), dtype=tf.float32, scope="encoder")[1]
    state = start.clone(cell_state=encoded)
    output, after = cell(inputs(tf)[:, 0], state)
    again, last = cell(inputs(tf)[:, 1], after)
    return [output, again, list(last._replace(alignment_history=()))]


def beams(tf: Any, attends: Any = None, layer: bool = True, **options: Any) -> Any:
    """A beam search with three beams; `attends` wraps the cell, given a function that tiles."""
    lib, width = tf.contrib.seq2seq, 3
    table = tf.get_variable("table", [SYMBOLS, 3])
    start = lib.tile_batch(tf.constant(numbers(5, 2, 4)), width)
    cell = gru(tf)
    if attends is not None:
        cell = attends(tf, cell, lambda value: lib.tile_batch(value, width))
        start = cell.zero_state(2 * width, tf.float32).clone(cell_state=start)
    maximum = options.pop("maximum", 6)
    tokens = tf.constant([1, 2])
    if options.pop("unknown", False):
        tokens = tf.placeholder_with_default(tokens, [None])
    decoder = lib.BeamSearchDecoder(
        cell, table, tokens, 4, start, width, tf.layers.Dense(SYMBOLS, name="out"), **options
    )
    return lib.dynamic_decode(decoder, maximum_iterations=maximum, output_time_major=True)


def _beamed(attends: Any = None, **options: Any) -> Snippet:
    def snippet(tf: Any) -> Any:
        outputs, state, lengths = beams(tf, attends, **dict(options))
        found = [outputs.predicted_ids, list(outputs.beam_search_decoder_output)]
        # Log probabilities of beams that cannot be are -infinity or not, as rounding has it.
        return [*found, state.finished, state.lengths, lengths]

    return snippet


def _reading(**options: Any) -> Any:
    def attends(tf: Any, cell: Any, tiled: Callable[[Any], Any]) -> Any:
        lib = tf.contrib.seq2seq
        places = tiled(tf.constant(numbers(31, 2, 5, 2)))
        mechanism = lib.BahdanauAttention(4, places, tiled(tf.constant([5, 3])))
        return lib.AttentionWrapper(cell, mechanism, **options)

    return attends


def _beam_history(tf: Any) -> Any:
    outputs, state, _ = beams(tf, _reading(alignment_history=True), unknown=True)
    return [outputs.predicted_ids, state.cell_state.alignment_history]


def _trees(tf: Any) -> Any:
    lib = tf.contrib.seq2seq
    from_op = lib.gather_tree(
        step_ids=[[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]], [[-1, -1, -1]]],
        parent_ids=[[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]], [[-1, -1, -1]]],
        max_sequence_lengths=[3],
        end_token=10,
    )
    ended = lib.gather_tree(
        step_ids=np.asarray([[[1, 2]], [[9, 3]], [[4, 9]], [[5, 6]]], np.int32),
        parent_ids=np.asarray([[[0, 0]], [[0, 1]], [[1, 0]], [[0, 0]]], np.int32),
        max_sequence_lengths=np.asarray([4], np.int32),
        end_token=9,
    )
    return [from_op, ended]


def _tiled(tf: Any) -> Any:
    values = [tf.constant(numbers(1, 2, 3)), tf.constant([1, 2])]
    unknown = tf.placeholder_with_default(numbers(2, 2, 3), [None, 3])
    return tf.contrib.seq2seq.tile_batch([*values, unknown], 2)


def _monotonic_functions(tf: Any) -> Any:
    lib = tf.contrib.seq2seq
    choose = tf.constant(np.abs(numbers(3, 2, 6)) % 1)
    before = tf.nn.softmax(tf.constant(numbers(4, 2, 6)))
    tf.add_to_collection("differentiated", choose)
    hard = tf.cast(choose > 0.5, tf.float32)
    first = tf.one_hot([0, 2], 6)
    return [
        lib.safe_cumprod(choose, axis=1),
        lib.safe_cumprod(choose, axis=1, exclusive=True),
        lib.monotonic_attention(choose, before, "recursive"),
        lib.monotonic_attention(choose, before, "parallel"),
        lib.monotonic_attention(hard, first, "hard"),
        lib.hardmax(choose),
    ]


def _losses(tf: Any) -> Any:
    loss = tf.contrib.seq2seq.sequence_loss
    logits = tf.constant(numbers(20, 3, 3, SYMBOLS))
    tf.add_to_collection("differentiated", logits)
    weights = tf.constant([[1.0, 1.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]])
    given = (logits, tf.constant(IDS), weights)
    by = {"average_across_timesteps": False, "average_across_batch": False}
    return [
        loss(*given),
        loss(*given, average_across_timesteps=False),
        loss(*given, average_across_batch=False),
        loss(*given, **by),
        loss(*given, **by, sum_over_timesteps=True),
        loss(*given, **by, sum_over_batch=True),
        loss(*given, **by, sum_over_timesteps=True, sum_over_batch=True),
        loss(*given, average_across_timesteps=False, sum_over_timesteps=True),
    ]


_KINDS = ("LuongAttention", "BahdanauAttention")
_MONOTONIC = ("LuongMonotonicAttention", "BahdanauMonotonicAttention")

DECODERS: dict[str, Snippet] = {
    "training": _trained(gru),
    "training_lstms": _trained(lstms, layer=True),
    "training_impute": _trained(lstms, layer=True, impute_finished=True),
    "training_time_major": _trained(gru, time_major=True, output_time_major=True),
    "training_maximum": _trained(gru, maximum_iterations=2, impute_finished=True),
    "training_maximum_large": _trained(gru, maximum_iterations=7),
    "training_scope": _trained(gru, scope="mine"),
    "greedy": _greedy(maximum_iterations=6),
    "greedy_impute": _greedy(maximum_iterations=6, impute_finished=True),
    "greedy_nothing": _greedy(maximum_iterations=0),
    "custom": _custom,
    "inference": _inference,
    **{f"attention_{kind}": _attended(wrapper(kind)) for kind in (*_KINDS, *_MONOTONIC)},
    **{
        f"attention_{kind}_lengths": _attended(
            wrapper(kind, memory_sequence_length=[5, 2, 1], attention_layer_size=3)
        )
        for kind in (*_KINDS, *_MONOTONIC)
    },
    "attention_scaled": _attended(wrapper("LuongAttention", scale=True)),
    "attention_normalized": _attended(wrapper("BahdanauAttention", 3, normalize=True)),
    "attention_monotonic_scaled": _attended(
        wrapper("LuongMonotonicAttention", scale=True, score_bias_init=-1.0)
    ),
    "attention_monotonic_normalized": _attended(
        wrapper("BahdanauMonotonicAttention", 3, normalize=True, mode="recursive")
    ),
    "attention_monotonic_hard": _attended(wrapper("BahdanauMonotonicAttention", mode="hard")),
    "attention_hardmax": _attended(
        wrapper("LuongAttention", probability_fn=lambda tf: tf.contrib.seq2seq.hardmax)
    ),
    "attention_mask_value": _attended(
        wrapper("LuongAttention", memory_sequence_length=[5, 2, 1], score_mask_value=-1.0)
    ),
    "attention_key_value": _attended(
        wrapper(
            "BahdanauAttention",
            custom_key_value_fn=lambda tf: lambda keys, values: (keys * 2.0, values + 1.0),
        )
    ),
    "attention_cell_output": _attended(
        wrapper("LuongAttention", output_attention=False), layer=True
    ),
    "attention_cell_input": _attended(
        wrapper("LuongAttention", cell_input_fn=lambda values, _: values * 2.0)
    ),
    "attention_lstms": _attended(wrapper("BahdanauAttention"), lstms, impute_finished=True),
    "attention_several": _attended(_several),
    "attention_own_layer": _attended(_own_layer),
    "attention_initial_state": _attended(_initial_cell_state),
    "attention_clone": _clone,
    "history": _history(5),
    "history_of_training": _history_of_training,
    "beams": _beamed(),
    "beams_length_penalty": _beamed(length_penalty_weight=0.8),
    "beams_attention": _beamed(_reading(attention_layer_size=4)),
    "beams_coverage": _beamed(_reading(), coverage_penalty_weight=0.6),
    "beam_history": _beam_history,
    "trees": _trees,
    "tile_batch": _tiled,
    "monotonic_functions": _monotonic_functions,
    "sequence_loss": _losses,
}

# -- contrib.rnn


def _cell(kind: str, *arguments: Any, **options: Any) -> Snippet:
    """A cell of `contrib.rnn` over three steps."""

    def snippet(tf: Any) -> Any:
        made = getattr(tf.contrib.rnn, kind)(*arguments, **options)
        return tf.nn.dynamic_rnn(made, inputs(tf), [3, 2, 1], dtype=tf.float32)

    return snippet


def _around(kind: str, *arguments: Any, **options: Any) -> Snippet:
    """A cell of `contrib.rnn` around another one, called twice."""

    stacked = options.pop("stacked", False)

    def snippet(tf: Any) -> Any:
        inner = lstms(tf) if stacked else gru(tf)
        made = getattr(tf.contrib.rnn, kind)(inner, *arguments, **options)
        values, state = inputs(tf), made.zero_state(3, tf.float32)
        first, state = made(values[:, 0], state)
        return [first, made(values[:, 1], state)]

    return snippet


def _fused(tf: Any, wrap: Callable[[Any, Any], Any], as_list: bool = False, **options: Any) -> Any:
    values = inputs(tf, time_major=True)
    given = tf.unstack(values) if as_list else values
    return wrap(tf, tf.contrib.rnn)(given, dtype=tf.float32, **options)


def _fused_start(tf: Any) -> Any:
    cell = tf.contrib.rnn.LSTMBlockFusedCell(4, cell_clip=0.4, use_peephole=True)
    start = tuple(tf.constant(numbers(at, 3, 4)) for at in (60, 61))
    values = inputs(tf, time_major=True)
    return [cell(values, start, scope="mine"), cell(values, start, sequence_length=[3, 1, 2])]


def _stacked(name: str, **options: Any) -> Snippet:
    def snippet(tf: Any) -> Any:
        forward, backward = [gru(tf), gru(tf, 3)], [gru(tf), gru(tf, 3)]
        values = steps(tf) if name == "stack_bidirectional_rnn" else inputs(tf)
        return getattr(tf.contrib.rnn, name)(forward, backward, values, dtype=tf.float32, **options)

    return snippet


CELLS: dict[str, Snippet] = {
    "cell_layer_norm": _cell("LayerNormBasicLSTMCell", 4),
    "cell_layer_norm_gain": _cell("LayerNormBasicLSTMCell", 4, 0.5, norm_gain=0.7, norm_shift=0.2),
    "cell_without_layer_norm": _cell("LayerNormBasicLSTMCell", 4, layer_norm=False),
    "cell_coupled": _cell("CoupledInputForgetGateLSTMCell", 4),
    "cell_coupled_all": _cell(
        "CoupledInputForgetGateLSTMCell",
        5,
        use_peepholes=True,
        num_proj=3,
        proj_clip=0.2,
        num_unit_shards=2,
        num_proj_shards=2,
        state_is_tuple=False,
    ),
    "cell_coupled_norm": _cell("CoupledInputForgetGateLSTMCell", 4, layer_norm=True),
    "cell_nas": _cell("NASCell", 4),
    "cell_nas_projected": _cell("NASCell", 4, num_proj=3, use_bias=True),
    "cell_ugrnn": _cell("UGRNNCell", 4),
    "cell_lstm_block": _cell("LSTMBlockCell", 4, 0.5),
    "cell_lstm_block_all": _cell("LSTMBlockCell", 4, cell_clip=0.3, use_peephole=True),
    "cell_gru_block": _cell("GRUBlockCell", 4),
    "cell_gru_block_v2": _cell("GRUBlockCellV2", 4),
    "cell_highway": lambda tf: tf.nn.static_rnn(
        tf.contrib.rnn.HighwayWrapper(gru(tf)), steps(tf), dtype=tf.float32
    ),
    "cell_highway_apart": lambda tf: tf.nn.dynamic_rnn(
        tf.contrib.rnn.HighwayWrapper(gru(tf), False, 0.5), inputs(tf), dtype=tf.float32
    ),
    "cell_attention": _around("AttentionCellWrapper", 3),
    "cell_attention_sizes": _around("AttentionCellWrapper", 2, 5, 6, 3, stacked=True),
    "cell_attention_joined": _around("AttentionCellWrapper", 2, state_is_tuple=False),
    "cell_embedding": lambda tf: tf.nn.static_rnn(
        tf.contrib.rnn.EmbeddingWrapper(gru(tf), SYMBOLS, 3), ids(tf), dtype=tf.float32
    ),
    "cell_input_projection": _around("InputProjectionWrapper", 3),
    "fused_lstm": lambda tf: _fused(tf, lambda _, rnn: rnn.LSTMBlockFusedCell(4)),
    "fused_lstm_start": _fused_start,
    "fused_reversed": lambda tf: _fused(
        tf,
        lambda _, rnn: rnn.TimeReversedFusedRNN(rnn.LSTMBlockFusedCell(4)),
        sequence_length=[3, 2, 1],
    ),
    "fused_adaptor": lambda tf: _fused(
        tf, lambda tf, rnn: rnn.FusedRNNCellAdaptor(gru(tf)), scope="mine"
    ),
    "fused_adaptor_dynamic": lambda tf: _fused(
        tf, lambda tf, rnn: rnn.FusedRNNCellAdaptor(gru(tf), use_dynamic_rnn=True), True
    ),
    "stacked": _stacked("stack_bidirectional_rnn"),
    "stacked_dynamic": _stacked("stack_bidirectional_dynamic_rnn", sequence_length=[3, 2, 1]),
}

SEQ2SEQ = {**LEGACY, **DECODERS, **CELLS}
VALUES_ONLY = {name for name in DECODERS if name.startswith(("beam", "tree", "greedy_nothing"))}

# -- errors


def _bad(action: Callable[[Any, Any], Any]) -> Snippet:
    """An action on `contrib.seq2seq`."""
    return lambda tf: action(tf, tf.contrib.seq2seq)


def _old(action: Callable[[Any, Any], Any]) -> Snippet:
    """An action on `contrib.legacy_seq2seq`."""
    return lambda tf: action(tf, tf.contrib.legacy_seq2seq)


def _zeros(tf: Any, *shape: int | None) -> Any:
    if None in shape:
        return tf.placeholder(tf.float32, shape)
    return tf.zeros(shape)


def _helper(tf: Any) -> Any:
    return tf.contrib.seq2seq.TrainingHelper(_zeros(tf, 3, 3, 4), [3, 2, 1])


def _wrapped(tf: Any, **options: Any) -> Any:
    lib = tf.contrib.seq2seq
    mechanism = options.pop("mechanism", None) or lib.LuongAttention(4, _zeros(tf, 3, 5, 2))
    return lib.AttentionWrapper(gru(tf), mechanism, **options)


SEQ2SEQ_ERRORS: dict[str, Snippet] = {
    "decode_no_decoder": _bad(lambda tf, lib: lib.dynamic_decode(1)),
    "decode_maximum": _bad(
        lambda tf, lib: lib.dynamic_decode(
            lib.BasicDecoder(gru(tf), _helper(tf), _zeros(tf, 3, 4)), maximum_iterations=[1]
        )
    ),
    "decoder_no_helper": _bad(lambda tf, lib: lib.BasicDecoder(gru(tf), 1, None)),
    "decoder_no_cell": _bad(lambda tf, lib: lib.BasicDecoder(1, _helper(tf), None)),
    "decoder_no_layer": _bad(lambda tf, lib: lib.BasicDecoder(gru(tf), _helper(tf), None, 1)),
    "helper_lengths": _bad(lambda tf, lib: lib.TrainingHelper(_zeros(tf, 3, 3, 4), 1)),
    "helper_probability": _bad(
        lambda tf, lib: lib.ScheduledOutputTrainingHelper(_zeros(tf, 3, 3, 4), [1, 1, 1], [[0.5]])
    ),
    "helper_start": _bad(lambda tf, lib: lib.GreedyEmbeddingHelper(_zeros(tf, 5, 2), 1, 2)),
    "helper_end": _bad(lambda tf, lib: lib.GreedyEmbeddingHelper(_zeros(tf, 5, 2), [1], [2])),
    "helper_batch_size": _bad(lambda tf, lib: lib.CustomHelper(None, None, None).batch_size),
    "memory_unknown": _bad(lambda tf, lib: lib.LuongAttention(4, _zeros(tf, 3, 5, None))),
    "luong_units": _bad(
        lambda tf, lib: lib.LuongAttention(3, _zeros(tf, 3, 5, 2))(_zeros(tf, 3, 4), None)
    ),
    "monotonic_mode": _bad(
        lambda tf, lib: lib.monotonic_attention(_zeros(tf, 2, 2), _zeros(tf, 2, 2), "no")
    ),
    "wrapper_no_mechanism": _bad(lambda tf, lib: lib.AttentionWrapper(gru(tf), 1)),
    "wrapper_no_mechanisms": _bad(lambda tf, lib: lib.AttentionWrapper(gru(tf), [1])),
    "wrapper_input_fn": _bad(lambda tf, lib: _wrapped(tf, cell_input_fn=1)),
    "wrapper_sizes": _bad(lambda tf, lib: _wrapped(tf, attention_layer_size=[1, 2])),
    "wrapper_layers": _bad(lambda tf, lib: _wrapped(tf, attention_layer=[None, None])),
    "wrapper_both": _bad(
        lambda tf, lib: _wrapped(tf, attention_layer_size=1, attention_layer=tf.layers.Dense(1))
    ),
    "wrapper_state": _bad(lambda tf, lib: _wrapped(tf)(_zeros(tf, 3, 4), _zeros(tf, 3, 4))),
    "wrapper_batch": _bad(lambda tf, lib: _wrapped(tf).zero_state(2, tf.float32)),
    "wrapper_initial": _bad(lambda tf, lib: _wrapped(tf, initial_cell_state=_zeros(tf, 2, 4))),
    "tile_scalar": _bad(lambda tf, lib: lib.tile_batch(1.0, 2)),
    "beam_state": _bad(
        lambda tf, lib: lib.BeamSearchDecoder(
            gru(tf), _zeros(tf, 5, 2), [1, 1], 2, _zeros(tf, 2, 4), 3
        )
    ),
    "beam_start": _bad(
        lambda tf, lib: lib.BeamSearchDecoder(gru(tf), _zeros(tf, 5, 2), 1, 2, _zeros(tf, 6, 4), 3)
    ),
    "beam_coverage": _bad(
        lambda tf, lib: lib.BeamSearchDecoder(
            gru(tf),
            _zeros(tf, 5, 2),
            [1, 1],
            2,
            _zeros(tf, 6, 4),
            3,
            coverage_penalty_weight=0.5,
        ).initialize()
    ),
    "loss_logits": _bad(
        lambda tf, lib: lib.sequence_loss(_zeros(tf, 2, 3), IDS[:2], _zeros(tf, 2, 3))
    ),
    "loss_targets": _bad(
        lambda tf, lib: lib.sequence_loss(
            _zeros(tf, 3, 3, 5), tf.constant(IDS[0]), _zeros(tf, 3, 3)
        )
    ),
    "loss_weights": _bad(
        lambda tf, lib: lib.sequence_loss(_zeros(tf, 3, 3, 5), tf.constant(IDS), _zeros(tf, 3))
    ),
    "loss_both": _bad(
        lambda tf, lib: lib.sequence_loss(
            _zeros(tf, 3, 3, 5), tf.constant(IDS), _zeros(tf, 3, 3), sum_over_batch=True
        )
    ),
    "legacy_no_inputs": _old(
        lambda tf, lib: lib.attention_decoder([], None, _zeros(tf, 3, 5, 2), gru(tf))
    ),
    "legacy_no_heads": _old(
        lambda tf, lib: lib.attention_decoder(
            [_zeros(tf, 3, 4)], None, _zeros(tf, 3, 5, 2), gru(tf), num_heads=0
        )
    ),
    "legacy_states": _old(
        lambda tf, lib: lib.attention_decoder(
            [_zeros(tf, 3, 4)], None, _zeros(tf, 3, 5, None), gru(tf)
        )
    ),
    "legacy_projection": _old(
        lambda tf, lib: lib.embedding_rnn_decoder(
            ids(tf), _zeros(tf, 3, 4), gru(tf), 5, 2, (_zeros(tf, 4, 3), _zeros(tf, 5))
        )
    ),
    "legacy_lengths": _old(
        lambda tf, lib: lib.sequence_loss_by_example([_zeros(tf, 3, 5)], ids(tf), [1.0])
    ),
    "legacy_cell": _old(lambda tf, lib: lib.one2many_rnn_seq2seq(ids(tf), {}, 1, {}, 5, {}, 2)),
    "legacy_keys": _old(
        lambda tf, lib: lib.one2many_rnn_seq2seq(ids(tf), {}, gru(tf), {"a": 1}, 5, {}, 2)
    ),
    "legacy_buckets": _old(
        lambda tf, lib: lib.model_with_buckets(ids(tf), [], [], [], [(4, 4)], None)
    ),
    "stacked_nothing": lambda tf: tf.contrib.rnn.stack_bidirectional_rnn([], [], []),
    "stacked_no_list": lambda tf: tf.contrib.rnn.stack_bidirectional_rnn((gru(tf),), [1], []),
    "stacked_depth": lambda tf: tf.contrib.rnn.stack_bidirectional_rnn([gru(tf)], [1, 2], []),
    "stacked_states": lambda tf: tf.contrib.rnn.stack_bidirectional_rnn([1], [1], [], [1, 2]),
    "attention_length": lambda tf: tf.contrib.rnn.AttentionCellWrapper(gru(tf), 0),
    "attention_tuple": lambda tf: tf.contrib.rnn.AttentionCellWrapper(
        lstms(tf), 2, state_is_tuple=False
    ),
    "gru_block_units": lambda tf: tf.contrib.rnn.GRUBlockCell(),
    "embedding_sizes": lambda tf: tf.contrib.rnn.EmbeddingWrapper(gru(tf), 0, 2),
    "projection_size": lambda tf: tf.contrib.rnn.OutputProjectionWrapper(gru(tf), 0),
}
