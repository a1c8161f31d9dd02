"""Summaries against TensorFlow's (tests/golden/summaries.json), and execution."""

from __future__ import annotations

import io
import json
import logging
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tensorboard.compat.proto.summary_pb2 import Summary

import estimatorkit as tf
from estimatorkit.ops.control.control_flow import cond
from estimatorkit.ops.files import summary_values
from estimatorkit.ops.files.summary_values import png

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "summaries.json").read_text("utf-8"))


def run(tensor: Any, feeds: Any = None) -> bytes:
    with tf.Session(graph=tensor.graph) as session:
        data: bytes = session.run(tensor, feeds)
    return data


def parsed(data: bytes) -> list[Any]:
    return list(Summary.FromString(data).value)


@pytest.mark.parametrize("name", sorted(GOLDEN["histograms"]))
def test_histogram(name: str) -> None:
    golden = GOLDEN["histograms"][name]
    with tf.Graph().as_default():
        values = tf.constant(np.array(golden["values"], np.float64))
        (ours,) = parsed(run(tf.summary.histogram(name, values)))
    (theirs,) = parsed(bytes.fromhex(golden["summary"]))
    assert ours.tag == theirs.tag
    assert list(ours.histo.bucket_limit) == list(theirs.histo.bucket_limit)
    assert list(ours.histo.bucket) == list(theirs.histo.bucket)
    for field in ("min", "max", "num", "sum", "sum_squares"):
        assert getattr(ours.histo, field) == pytest.approx(getattr(theirs.histo, field), rel=1e-12)


@pytest.mark.parametrize("name", sorted(GOLDEN["pictures"]))
def test_image(name: str) -> None:
    golden = GOLDEN["pictures"][name]
    with tf.Graph().as_default():
        picture = tf.constant(np.array([golden["values"]], np.float32))
        (value,) = parsed(run(tf.summary.image(name, picture, max_outputs=1)))
    assert value.tag == golden["tag"]
    assert [value.image.height, value.image.width, value.image.colorspace] == golden["size"]
    pixels = np.asarray(Image.open(io.BytesIO(value.image.encoded_image_string)))
    np.testing.assert_array_equal(pixels.reshape(golden["size"]), golden["pixels"])


def test_uint8_images_are_unchanged() -> None:
    picture = np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3)
    with tf.Graph().as_default():
        (value,) = parsed(run(tf.summary.image("p", tf.constant(picture))))
    assert value.tag == "p/image/0"
    pixels = np.asarray(Image.open(io.BytesIO(value.image.encoded_image_string)))
    np.testing.assert_array_equal(pixels, picture[0])
    assert value.image.encoded_image_string == png(picture[0])


def test_other_kinds_match_tensorflow_bytes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        sound = tf.constant(np.array(GOLDEN["audio"]["values"], np.float32))
        made = {
            "scalar": tf.summary.scalar("loss", 0.1),
            "audio": tf.summary.audio("sound", sound, 8000.0),
            "text": tf.summary.text("words", tf.constant(["a", "b"])),
            "tensor": tf.summary.tensor_summary("t", tf.constant([[1, 2]]), display_name="T"),
        }
        ours = {name: Summary.FromString(data) for name, data in session.run(made).items()}
    golden = {**GOLDEN, "audio": GOLDEN["audio"]["summary"]}
    for name, summary in ours.items():
        theirs = Summary.FromString(bytes.fromhex(golden[name]))
        for value in (*summary.value, *theirs.value):
            if value.HasField("tensor"):  # the values as a list, or as bytes
                value.tensor.CopyFrom(plain_tensor(value.tensor))
        assert summary == theirs, name
    with wave.open(io.BytesIO(ours["audio"].value[0].audio.encoded_audio_string)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getnframes()) == (8000, 1, 10)


def plain_tensor(proto: Any) -> Any:
    from tensorboard.util.tensor_util import make_ndarray, make_tensor_proto

    return make_tensor_proto(make_ndarray(proto))


def test_names_and_tags() -> None:
    with tf.Graph().as_default(), tf.Session() as session, tf.name_scope("outer"):
        summary = tf.summary
        pictures = [np.zeros([count, 1, 1, 1], np.float32) for count in (5, 2)]
        made = {
            "in a scope": summary.scalar("loss", 1.0),
            "again": summary.scalar("loss", 2.0),
            "illegal": summary.scalar("my loss (%)", 1.0),
            "leading slash": summary.scalar("/loss", 1.0),
            "family": summary.scalar("loss", 1.0, family="all losses"),
            "family again": summary.histogram("h", [1.0], family="all losses"),
            "pictures": summary.image("p", pictures[0]),
            "fewer pictures": summary.image("p", pictures[1]),
            "sounds": summary.audio("s", np.zeros([2, 3], np.float32), 8000.0, max_outputs=2),
            "text": summary.text("t", tf.constant("x")),
            "merged": summary.merge_all(),
            "merged by name": summary.merge([summary.scalar("m", 1.0)], name="all"),
        }
        values = session.run(made)
    tags = {name: [value.tag for value in parsed(values[name])] for name in made}
    golden = dict(GOLDEN["tags"])
    name, known = golden["merged"]
    golden["merged"] = [name, known[known.index("outer/loss") :]]  # of this scope only
    assert {name: [made[name].name, tags[name]] for name in made} == golden


def failing() -> dict[str, Callable[[], Any]]:
    vector = tf.placeholder_with_default([1.0, 2.0], None)
    loss = tf.summary.scalar("outer/loss", 1.0)
    return {
        "nan": lambda: tf.summary.histogram("h", [float("nan")]),
        "infinity": lambda: tf.summary.histogram("h_1", [float("inf")]),
        "vector": lambda: tf.summary.scalar("s", vector),
        "duplicate": lambda: tf.summary.merge([loss, loss]),
        "picture": lambda: tf.summary.image("i", vector),
    }


@pytest.mark.parametrize("name", ["nan", "infinity", "vector", "duplicate", "picture"])
def test_failing_runs(name: str) -> None:
    golden = GOLDEN["errors"][name]
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError) as raised:
        run(failing()[name]())
    assert golden["class"] == "InvalidArgumentError"
    assert golden["first_line"] in str(raised.value)


def test_invalid_arguments_raise() -> None:
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="Expected tensor Const:0 to have dtype string"):
            tf.summary.text("t", tf.constant(1))
        for shape in ([], [3], [1, 2, 2], [1, 2, 2, 2]):  # as in TensorFlow, only when it is run
            made = tf.summary.image("i", np.zeros(shape, np.float32))
            with pytest.raises(tf.errors.InvalidArgumentError, match="last dim 1, 3, or 4"):
                run(made)
        with pytest.raises(ValueError, match="max_outputs"):
            tf.summary.image("i", np.zeros([1, 2, 2, 1], np.float32), max_outputs=0)
        with pytest.raises(TypeError, match="bool not in list of allowed values"):
            tf.summary.scalar("b", tf.constant(True))
        with pytest.raises(ValueError, match="at least one"):
            tf.summary.merge([])
        with pytest.raises(TypeError, match="int32 not in list of allowed values: uint8"):
            tf.summary.image("i", tf.constant(np.zeros([1, 2, 2, 1], np.int32)))


def test_collections() -> None:
    with tf.Graph().as_default():
        assert tf.summary.merge_all() is None
        one = tf.summary.scalar("a/one", 1.0)
        two = tf.summary.scalar("two", 2.0, collections=["mine"])
        tf.summary.scalar("three", 3.0, collections=[])
        assert tf.get_collection(tf.GraphKeys.SUMMARIES) == [one]
        assert tf.summary.merge_all(key="mine").op.inputs == (two,)
        assert tf.summary.merge_all(scope="b") is None
        merged = tf.summary.merge([one], collections=["merged"])
        assert tf.get_collection("merged") == [merged]


def test_summaries_in_loop_bodies_are_dropped_with_warning(caplog: Any) -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        outside = tf.summary.scalar("outside", x)
        cond(x > 0, lambda: tf.summary.scalar("inside", x), lambda: tf.constant(""))
        with caplog.at_level(logging.WARNING, "estimatorkit"):
            merged = tf.summary.merge_all()
    assert merged.op.inputs == (outside,)
    assert "cond/inside:0" in caplog.text


def test_summaries_add_one_host_segment() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3])
        weights = tf.get_variable("w", [3, 2])
        y = tf.matmul(x, weights)
        loss = tf.reduce_mean(y * y)
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        tf.summary.scalar("loss", loss)
        tf.summary.histogram("y", y)
        tf.summary.image("p", tf.reshape(y, [-1, 2, 1, 1]))
        merged = tf.summary.merge_all()
        session.run(tf.global_variables_initializer())
        feeds = {x: np.ones([4, 3], np.float32)}
        plan = session.plan([step, loss, merged], feeds)
        assert [segment.place for segment in plan.segments] == ["device", "host"]
        _, value, data = session.run([step, loss, merged], feeds)
    assert parsed(data)[0].simple_value == pytest.approx(float(value))
    assert [each.tag for each in parsed(data)] == [
        "loss",
        "y",
        "p/image/0",
        "p/image/1",
        "p/image/2",
    ]


def test_scalar_dtypes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        made = [
            tf.summary.scalar("s", tf.constant(3, dtype))
            for dtype in (tf.int64, tf.uint8, tf.float16, tf.bfloat16, tf.float64)
        ]
        values = [parsed(data)[0].simple_value for data in session.run(made)]
    assert values == [3.0] * 5


def test_histogram_buckets_match_search() -> None:
    limits = summary_values.bucket_limits()
    random = np.random.default_rng(3)
    wide = np.exp(random.uniform(-700, 700, 5000))
    numbers = np.concatenate(
        [
            limits,
            np.nextafter(limits[1:-1], np.inf),
            np.nextafter(limits[1:-1], -np.inf),
            random.normal(size=5000),
            wide,
            -wide,
            [0.0, -0.0, 5e-324, -5e-324],
        ]
    )
    wanted = np.minimum(np.searchsorted(limits, numbers, side="right"), len(limits) - 1)
    np.testing.assert_array_equal(summary_values._buckets(numbers), wanted)
