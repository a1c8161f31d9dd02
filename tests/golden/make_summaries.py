"""Writes summaries.json: what TensorFlow's summary operations give, as serialized protos.

Pictures are compared as pixels: encoders differ, so the file holds the PNGs' pixels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from golden_files import error_of, write_json

v1 = tf.compat.v1
HISTOGRAMS: dict[str, list[float]] = {
    "mixed": [-3.5, -1e-13, 0.0, 1e-12, 1.1e-12, 0.5, 0.5, 7.0, 1e25],
    "zeros": [0.0, 0.0],
    "one": [1.0],
    "negative": [-1.0, -2.0, -1e30],
    "empty": [],
}
PICTURES: dict[str, Any] = {
    "positive": [[[0.0], [0.25]], [[0.5], [2.0]]],
    "signed": [[[-1.0], [0.25]], [[0.5], [0.75]]],
    "zero": [[[0.0], [1e-9]], [[0.0], [0.0]]],
    "color": [[[0.0, 1.0, 2.0], [float("nan"), 0.0, 1.0]]],
    "alpha": [[[0.5, 1.0, 2.0, 4.0], [float("inf"), 0.0, 1.0, 0.0]]],
}
SOUND = [[0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 0.99999, 1.5258789e-05, -1.5258789e-05]]


def values(data: bytes) -> list[Any]:
    return list(v1.Summary.FromString(data).value)


def main() -> None:
    found: dict[str, Any] = {"histograms": {}, "pictures": {}, "tags": {}, "errors": {}}
    with tf.Graph().as_default(), v1.Session() as session:

        def run(tensor: Any) -> bytes:
            return bytes(session.run(tensor))

        for name, numbers in HISTOGRAMS.items():
            data = run(v1.summary.histogram(name, tf.constant(numbers, tf.float64)))
            found["histograms"][name] = {"values": numbers, "summary": data.hex()}
        for name, picture in PICTURES.items():
            (value,) = values(run(v1.summary.image(name, tf.constant([picture]), max_outputs=1)))
            pixels = tf.io.decode_png(value.image.encoded_image_string)
            found["pictures"][name] = {
                "values": picture,
                "pixels": np.asarray(session.run(pixels)).tolist(),
                "tag": value.tag,
                "size": [value.image.height, value.image.width, value.image.colorspace],
            }
        found["scalar"] = run(v1.summary.scalar("loss", 0.1)).hex()
        found["audio"] = {
            "values": SOUND,
            "summary": run(v1.summary.audio("sound", tf.constant(SOUND), 8000.0)).hex(),
        }
        found["text"] = run(v1.summary.text("words", tf.constant(["a", "b"]))).hex()
        found["tensor"] = run(
            v1.summary.tensor_summary("t", tf.constant([[1, 2]]), display_name="T")
        ).hex()
        with v1.name_scope("outer"):
            made = {
                "in a scope": v1.summary.scalar("loss", 1.0),
                "again": v1.summary.scalar("loss", 2.0),
                "illegal": v1.summary.scalar("my loss (%)", 1.0),
                "leading slash": v1.summary.scalar("/loss", 1.0),
                "family": v1.summary.scalar("loss", 1.0, family="all losses"),
                "family again": v1.summary.histogram("h", [1.0], family="all losses"),
                "pictures": v1.summary.image("p", tf.zeros([5, 1, 1, 1])),
                "fewer pictures": v1.summary.image("p", tf.zeros([2, 1, 1, 1])),
                "sounds": v1.summary.audio("s", tf.zeros([2, 3]), 8000.0, max_outputs=2),
                "text": v1.summary.text("t", tf.constant("x")),
                "merged": v1.summary.merge_all(),
                "merged by name": v1.summary.merge([v1.summary.scalar("m", 1.0)], name="all"),
            }
        for name, tensor in made.items():
            tags = [value.tag for value in values(run(tensor))]
            found["tags"][name] = [tensor.name, tags]
        fed = v1.placeholder_with_default([1.0, 2.0], None)
        failing = {
            "nan": v1.summary.histogram("h", [float("nan")]),
            "infinity": v1.summary.histogram("h", [float("inf")]),
            "vector": v1.summary.scalar("s", fed),
            "duplicate": v1.summary.merge([made["in a scope"], made["in a scope"]]),
            "picture": v1.summary.image("i", fed),
        }
        for name, tensor in failing.items():
            found["errors"][name] = error_of(lambda tensor=tensor: run(tensor))
    write_json("summaries.json", found)


if __name__ == "__main__":
    main()
