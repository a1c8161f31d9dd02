"""The readers of untrusted bytes that have names of TensorFlow 1."""

from __future__ import annotations

import functools

import numpy as np

import estimatorkit as tf
from estimatorkit.core.errors import OpError
from tests.fuzz.targets import Op, Target


def _wav() -> list[bytes]:
    with tf.Graph().as_default(), tf.Session() as session:
        sound = tf.constant(np.linspace(-1, 1, 20, dtype=np.float32).reshape(10, 2))
        return [bytes(session.run(tf.audio.encode_wav(sound, 8000)))]


TARGETS = {
    "wav": Target("bytes", Op(tf.audio.decode_wav), functools.cache(_wav), (OpError,), False)
}
