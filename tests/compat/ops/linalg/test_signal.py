"""Signals and audio against TensorFlow's results.

Also the rows "RFFT", "RFFT2D" and "RFFT3D", whose outputs are complex.
"""

from __future__ import annotations

import json
import wave as wave_files
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

import estimatorkit as tf
from tests.golden.golden_files import error_of
from tests.golden.snippets_signal import SIGNAL_ERRORS, SIGNALS, wave
from tests.golden.snippets_sparse import as_numbers, run_arrays
from tests.sweep import sweep

FOLDER = Path(__file__).parents[3] / "golden"
GOLDEN = json.loads((FOLDER / "signal.json").read_text("utf-8"))
ARRAYS = dict(np.load(FOLDER / "signal.npz"))


@sweep("name", sorted(SIGNALS), quick=12)
def test_results(name: str) -> None:
    values, shapes = run_arrays(tf, SIGNALS[name])
    wanted = GOLDEN["shapes"][name]
    assert len(values) == len(wanted)
    for at, (value, shape, known) in enumerate(zip(values, shapes, wanted, strict=True)):
        found, expected = as_numbers(value), ARRAYS[f"{name}/{at}"]
        assert found.dtype == expected.dtype, at
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5, err_msg=str(at))
        if known is not None:
            assert all(b in (None, a) for a, b in zip(shape, known, strict=True)), (at, shape)


@pytest.mark.parametrize("name", sorted(SIGNAL_ERRORS))
def test_errors(name: str) -> None:
    got = error_of(lambda: run_arrays(tf, SIGNAL_ERRORS[name]))
    assert got is not None
    assert got["class"] == GOLDEN["errors"][name]["class"], got


def test_only_16_bit_wav_files_are_read() -> None:
    buffer = BytesIO()
    with wave_files.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8000)
        file.writeframes(bytes(10))
    with tf.Graph().as_default(), tf.Session() as session:
        whole = session.run(tf.audio.encode_wav(wave(6, 2), 8000))
        contents = tf.placeholder(tf.string, [])
        decoded = tf.audio.decode_wav(contents)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Can only read 16-bit WAV"):
            session.run(decoded.audio, {contents: buffer.getvalue()})
        cut = session.run(decoded, {contents: whole[:-3]})
        assert cut.audio.shape == (5, 2)
        for length in range(0, 44, 4):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(decoded.audio, {contents: whole[:length]})


def test_transform_errors() -> None:
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="float32 or float64"):
            tf.signal.rfft(tf.constant(np.ones(4, np.float16)))
        with pytest.raises(ValueError, match="at least rank 2"):
            tf.signal.fft2d(np.ones(4, np.complex64))
        with pytest.raises(ValueError, match="must be known"):
            tf.signal.frame(np.ones(4, np.float32), tf.placeholder(tf.int32, []), 1)
        assert tf.signal.rfft(tf.placeholder(tf.float32, [None, 8])).shape.as_list() == [None, 5]
