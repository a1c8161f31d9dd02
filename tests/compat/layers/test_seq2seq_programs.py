"""Complete sequence-to-sequence programs: they learn to reverse sequences and decode them.

And how often XLA compiles for them.
"""

from __future__ import annotations

import copy
import importlib
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

BATCH, LONGEST, SYMBOLS, UNITS = 16, 4, 8, 24
PAD, GO, END = 0, 1, 2


def batches(seed: int) -> Any:
    """Sequences, their lengths, and what is to be given and predicted: the sequence backwards."""
    drawn = np.random.RandomState(seed)
    while True:
        lengths = drawn.randint(1, LONGEST + 1, BATCH)
        lengths[0] = LONGEST
        source = np.full((BATCH, LONGEST), PAD)
        given = np.full((BATCH, LONGEST + 1), PAD)
        target = np.full((BATCH, LONGEST + 1), PAD)
        for row, length in enumerate(lengths):
            source[row, :length] = drawn.randint(3, SYMBOLS, length)
            target[row, : length + 1] = [*source[row, :length][::-1], END]
            given[row, : length + 1] = [GO, *target[row, :length]]
        yield source, lengths, given, target


def compilations(session: Any) -> int:
    """How often XLA compiled for a session."""
    return sum(session.state.compilations.values())


class Translator:
    """The shape of the NMT tutorials: an encoder, and a decoder with attention."""

    def __init__(self) -> None:
        self.source = tf.placeholder(tf.int32, [None, None])
        self.lengths = tf.placeholder(tf.int32, [None])
        self.given = tf.placeholder(tf.int32, [None, None])
        self.target = tf.placeholder(tf.int32, [None, None])
        self.table = tf.get_variable("embedding", [SYMBOLS, UNITS])
        with tf.variable_scope("encoder"):
            self.outputs, self.state = tf.nn.dynamic_rnn(
                tf.contrib.rnn.GRUCell(UNITS),
                tf.nn.embedding_lookup(self.table, self.source),
                self.lengths,
                dtype=tf.float32,
            )
        self.layer = tf.layers.Dense(SYMBOLS, use_bias=False, name="output_projection")
        lib = tf.contrib.seq2seq
        trained = self.decode(
            lib.TrainingHelper(tf.nn.embedding_lookup(self.table, self.given), self.lengths + 1)
        )
        logits = trained[0].rnn_output
        steps = tf.shape(logits)[1]
        weights = tf.sequence_mask(self.lengths + 1, steps, dtype=tf.float32)
        self.loss = lib.sequence_loss(logits, self.target[:, :steps], weights)
        self.train = tf.train.AdamOptimizer(0.02).minimize(self.loss)
        start = tf.fill([tf.shape(self.lengths)[0]], GO)
        helper = lib.GreedyEmbeddingHelper(self.table, start, END)
        self.greedy = self.decode(helper, maximum_iterations=2 * LONGEST)[0].sample_id
        self.unbounded = self.decode(helper)[0].sample_id
        self.beams = self.decode(start, width=3, maximum_iterations=2 * LONGEST)[0].predicted_ids

    def decode(self, helper: Any, width: int = 1, **options: Any) -> Any:
        """Decodes with a helper, or with a beam search from start tokens."""
        lib = tf.contrib.seq2seq
        reuse = bool(tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "decoder"))
        with tf.variable_scope("decoder", reuse=reuse) as scope:
            memory = (self.outputs, self.state, self.lengths)
            if width > 1:
                memory = lib.tile_batch(memory, multiplier=width)
            outputs, state, lengths = memory
            mechanism = lib.LuongAttention(UNITS, outputs, memory_sequence_length=lengths)
            cell = lib.AttentionWrapper(tf.contrib.rnn.GRUCell(UNITS), mechanism, UNITS)
            start = cell.zero_state(tf.shape(lengths)[0], tf.float32).clone(cell_state=state)
            if width > 1:
                decoder: Any = lib.BeamSearchDecoder(
                    cell, self.table, helper, END, start, width, self.layer
                )
            else:
                decoder = lib.BasicDecoder(cell, helper, start, output_layer=self.layer)
            return lib.dynamic_decode(decoder, scope=scope, **options)


def until_end(ids: Any) -> list[list[int]]:
    """Sequences up to their end tokens."""
    rows = np.asarray(ids).tolist()
    return [row[: row.index(END)] if END in row else row for row in rows]


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_attention_translator_learns_and_decodes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        model, data = Translator(), batches(0)
        session.run(tf.global_variables_initializer())
        losses, before = [], 0
        for step in range(400):
            source, lengths, given, target = next(data)
            feeds = {model.source: source, model.lengths: lengths}
            feeds |= {model.given: given, model.target: target}
            losses.append(session.run([model.loss, model.train], feeds)[0])
            if step == 0:
                before = compilations(session)
        # Lengths change with each batch; XLA compiles anew only for another longest one.
        assert compilations(session) == before
        assert losses[0] > 1.5
        assert np.mean(losses[-5:]) < 0.1
        expected = until_end(target)
        feeds = {model.source: source, model.lengths: lengths}
        found = until_end(session.run(model.greedy, feeds))
        right = sum(a == b for a, b in zip(found, expected, strict=True))
        assert right >= BATCH - 2
        assert until_end(session.run(model.unbounded, feeds)) == found
        best = until_end(session.run(model.beams, feeds)[:, :, 0])
        assert sum(a == b for a, b in zip(best, expected, strict=True)) >= BATCH - 2


def test_decoding_compiles_once_for_all_lengths() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        lib, cell = tf.contrib.seq2seq, tf.nn.rnn_cell.BasicRNNCell(5)
        ends = tf.placeholder(tf.int32, [])
        helper = lib.CustomHelper(
            lambda: (tf.zeros([2], tf.bool), tf.ones([2, 3])),
            lambda time, outputs, state: tf.cast(tf.argmax(outputs, 1), tf.int32),
            lambda time, outputs, state, sample_ids: (
                tf.fill([2], time + 1 >= ends),
                tf.ones([2, 3]),
                state,
            ),
        )
        decoder = lib.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
        bounded = lib.dynamic_decode(decoder, maximum_iterations=100)
        session.run(tf.global_variables_initializer())
        outputs = [bounded[0].rnn_output, bounded[0].sample_id, bounded[2]]
        counts = []
        for steps in (3, 5, 99):
            values = session.run(outputs, {ends: steps})
            assert [each.shape for each in values] == [(2, steps, 5), (2, steps), (2,)]
            assert values[2].tolist() == [steps, steps]
            counts.append(compilations(session))
        assert len(set(counts)) == 1


def test_unbounded_decoder_continues_beyond_block() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        lib = tf.contrib.seq2seq

        class Counter(lib.Decoder):  # type: ignore[name-defined,misc]
            batch_size = 2
            output_size = tf.TensorShape([])
            output_dtype = tf.int32

            def initialize(self, name: Any = None) -> Any:
                return tf.zeros([2], tf.bool), tf.zeros([2], tf.int32), tf.zeros([2], tf.int32)

            def step(self, time: Any, inputs: Any, state: Any, name: Any = None) -> Any:
                after = state + inputs
                return after, after, inputs + 1, inputs >= [149, 9]

        outputs, state, lengths = lib.dynamic_decode(Counter(), impute_finished=True)
        values, last, counts = session.run([outputs, state, lengths])
        expected = np.cumsum(np.arange(150))
        np.testing.assert_array_equal(values[0], expected)
        np.testing.assert_array_equal(values[1], [*expected[:10], *[0] * 140])
        assert counts.tolist() == [150, 10]
        assert last.tolist() == [expected[-1], expected[9]]


@pytest.mark.slow
def test_bucketed_translate_tutorial() -> None:
    legacy, buckets = tf.contrib.legacy_seq2seq, [(2, 3), (LONGEST, LONGEST + 1)]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(2)
        encoder = [tf.placeholder(tf.int32, [None]) for _ in range(LONGEST)]
        decoder = [tf.placeholder(tf.int32, [None]) for _ in range(LONGEST + 2)]
        weights = [tf.placeholder(tf.float32, [None]) for _ in range(LONGEST + 1)]
        feeds_back = tf.placeholder(tf.bool, [])
        cell = tf.contrib.rnn.MultiRNNCell([tf.contrib.rnn.GRUCell(UNITS) for _ in range(2)])
        outputs, losses = legacy.model_with_buckets(
            encoder,
            decoder[:-1],
            decoder[1:],
            weights,
            buckets,
            lambda x, y: legacy.embedding_attention_seq2seq(
                x, y, cell, SYMBOLS, SYMBOLS, UNITS, feed_previous=feeds_back
            ),
        )
        train = tf.train.AdamOptimizer(0.02).minimize(losses[1])
        session.run(tf.global_variables_initializer())

        def feed(batch: Any, back: bool) -> dict[Any, Any]:
            source, _, given, target = batch
            found = {feeds_back: back, decoder[-1]: target[:, -1]}
            for at, placeholder in enumerate(encoder):
                found[placeholder] = source[:, -1 - at]  # the tutorial reverses its inputs
            for at in range(LONGEST + 1):
                found[decoder[at]] = given[:, at]
                found[weights[at]] = (target[:, at] != PAD).astype(np.float32)
            # Targets are the decoder's inputs, shifted.
            for at in range(LONGEST + 1):
                if at < LONGEST:
                    found[decoder[at + 1]] = np.where(target[:, at] == END, END, given[:, at + 1])
            return found

        data = batches(0)
        found = [session.run([losses[1], train], feed(next(data), False))[0] for _ in range(250)]
        assert found[0] > 1.5
        assert np.mean(found[-5:]) < 0.1
        batch = next(data)
        logits = session.run(outputs[1], feed(batch, True))
        ids = np.argmax(np.stack(logits, 1), 2)
        pairs = zip(until_end(ids), until_end(batch[3]), strict=True)
        assert sum(a == b for a, b in pairs) >= BATCH - 2


@pytest.mark.parametrize("feeds", [False, True])
def test_long_legacy_decoders_are_one_loop(feeds: bool) -> None:
    with tf.Graph().as_default() as graph:
        inputs = [tf.placeholder(tf.int32, [None]) for _ in range(40)]
        tf.contrib.legacy_seq2seq.embedding_attention_seq2seq(
            inputs, inputs, tf.nn.rnn_cell.GRUCell(4), 5, 5, 4, feed_previous=feeds
        )
        kinds = [op.type for op in graph.get_operations()]
        assert kinds.count("Scan") == 2
        assert kinds.count("MatMul") < 10


def test_unknown_number_of_steps() -> None:
    lib = tf.contrib.seq2seq
    with tf.Graph().as_default():
        cell = tf.nn.rnn_cell.BasicRNNCell(4)
        helper = lib.TrainingHelper(tf.zeros([2, 3, 4]), [3, 2])
        decoder = lib.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
        outputs, state, lengths = lib.dynamic_decode(decoder)
        assert outputs.rnn_output.shape.as_list() == [2, None, 4]
        assert outputs.sample_id.shape.as_list() == [2, None]
        assert state.shape.as_list() == [2, 4]
        assert lengths.shape.as_list() == [2]


@pytest.mark.slow
def test_scheduled_sampling() -> None:
    lib = tf.contrib.seq2seq
    values = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)
    table = np.random.RandomState(1).randn(4, 4).astype(np.float32)

    def decoded(helper: Any) -> Any:
        cell = tf.nn.rnn_cell.BasicRNNCell(4)
        decoder = lib.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
        outputs, _, lengths = lib.dynamic_decode(decoder)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for variable in tf.global_variables():
                number = np.linspace(-1, 1, variable.shape.num_elements())
                variable.load(number.reshape(variable.shape.as_list()), session)
            return session.run([*outputs, lengths])

    made: dict[str, Any] = {}
    for name, helper in {
        "plain": lambda: lib.TrainingHelper(values, [3, 2]),
        "never": lambda: lib.ScheduledOutputTrainingHelper(values, [3, 2], 0.0),
        "always": lambda: lib.ScheduledOutputTrainingHelper(values, [3, 2], 1.0),
        "double": lambda: lib.ScheduledOutputTrainingHelper(
            values, [3, 2], 1.0, next_inputs_fn=lambda outputs: 2.0 * outputs
        ),
        "embedded_never": lambda: lib.ScheduledEmbeddingTrainingHelper(values, [3, 2], table, 0.0),
        "embedded": lambda: lib.ScheduledEmbeddingTrainingHelper(values, [3, 2], table, 1.0),
    }.items():
        with tf.Graph().as_default():
            made[name] = decoded(helper())
    outputs = {name: found[0] for name, found in made.items()}
    for name in ("never", "embedded_never"):
        np.testing.assert_allclose(outputs[name], outputs["plain"], rtol=1e-6)
    assert (made["never"][1] == 0).all()
    assert (made["always"][1] == 1).all()
    assert (made["embedded_never"][1] == -1).all()
    assert (made["embedded"][1] >= 0).all()
    kernel = np.linspace(-1, 1, 32).reshape(8, 4)
    bias = np.linspace(-1, 1, 4)

    def step(given: Any, state: Any) -> Any:
        return np.tanh(np.concatenate([given, state], 1) @ kernel + bias)

    first = step(values[:, 0], np.zeros((2, 4)))
    second = {
        "always": step(first, first),
        "double": step(2 * first, first),
        "embedded": step(table[made["embedded"][1][:, 0]], first),
    }
    for name, expected in second.items():
        np.testing.assert_allclose(outputs[name][:, 1], expected, rtol=1e-4, atol=1e-5)


def test_deep_copied_cell_has_own_variables() -> None:
    with tf.Graph().as_default():
        inner = tf.nn.rnn_cell.GRUCell(3)
        kept = tf.placeholder_with_default(0.5, [])
        cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.DropoutWrapper(inner, kept)])
        cell(tf.zeros([2, 3]), cell.zero_state(2, tf.float32))
        made = copy.deepcopy(cell)
        assert made._cells[0]._cell is not inner
        assert made._cells[0]._keep["input"] is kept
        with tf.variable_scope("other"):
            made(tf.zeros([2, 3]), made.zero_state(2, tf.float32))
        assert {each.name.split("/")[0] for each in made.variables} == {"other"}
        assert len(tf.trainable_variables()) == 8


def test_invalid_beam_parents() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.contrib.seq2seq.gather_tree(
            step_ids=[[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]],
            parent_ids=[[[0, 0, 0]], [[0, -1, 1]], [[2, 1, 2]]],
            max_sequence_lengths=[3],
            end_token=10,
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid parent id -1 at"):
            session.run(found)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (
            "contrib.seq2seq.python.ops.attention_wrapper",
            "AttentionWrapper _BaseAttentionMechanism",
        ),
        ("contrib.seq2seq.python.ops.beam_search_ops", "gather_tree"),
        ("contrib.seq2seq.python.ops.beam_search_decoder", "BeamSearchDecoder tile_batch"),
        ("contrib.seq2seq.python.ops.decoder", "Decoder dynamic_decode"),
        ("contrib.seq2seq.python.ops.basic_decoder", "BasicDecoder BasicDecoderOutput"),
        ("contrib.seq2seq.python.ops.helper", "Helper TrainingHelper GreedyEmbeddingHelper"),
        ("contrib.seq2seq.python.ops.loss", "sequence_loss"),
        ("contrib.legacy_seq2seq.python.ops.seq2seq", "rnn_decoder sequence_loss"),
        ("contrib.rnn.python.ops.core_rnn_cell", "_linear EmbeddingWrapper"),
        ("python.layers.core", "Dense dense"),
        ("python.layers.base", "Layer"),
    ],
)
def test_public_imports(module: str, names: str) -> None:
    found = importlib.import_module(f"estimatorkit.compat.v1.{module}")
    assert all(callable(getattr(found, name)) for name in names.split())
