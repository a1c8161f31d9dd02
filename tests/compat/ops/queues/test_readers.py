"""The tests of `tests/ops/queues/test_readers.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

import estimatorkit as tf
from estimatorkit.core import errors
from estimatorkit.ops.queues.readers import TextLineReader
from tests.ops.queues.test_readers import files, session

__all__ = ["files", "session"]


def test_text_pipeline(session: tf.Session, files: list[str]) -> None:
    """File names, lines, batches: the usual way."""
    names = tf.train.string_input_producer(files, num_epochs=2, shuffle=False)
    _, line = TextLineReader().read(names)
    lines = tf.train.batch([line], batch_size=5)
    session.run(tf.local_variables_initializer())
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coord)
    for _ in range(2):
        assert session.run(lines).tolist() == [b"first", b"second", b"third", b"last", b""]
    with pytest.raises(errors.OutOfRangeError):
        session.run(lines)
    coord.request_stop()
    coord.join(threads)
