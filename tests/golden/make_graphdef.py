"""Writes graphdef_*.pb and graphdef.npz: graphs as TensorFlow writes them, and what they compute.

Each graph takes the placeholder `x` and gives `y`; the CNN and the MLP are frozen, `variables` is
not (`init` gives its variables their values).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from golden_files import FOLDER, write_npz

v1 = tf.compat.v1
RNG = np.random.default_rng(0)


def weights(name: str, *shape: int) -> Any:
    value = RNG.normal(size=shape).astype(np.float32) / np.sqrt(np.prod(shape[:-1]) or 1)
    return v1.get_variable(name, initializer=value)


def mlp(x: Any) -> Any:
    for number, (rows, columns) in enumerate([(6, 8), (8, 8), (8, 3)]):
        with v1.variable_scope(f"layer{number}"):
            x = v1.nn.xw_plus_b(x, weights("w", rows, columns), weights("b", columns))
            x = (tf.nn.tanh, tf.nn.relu, tf.nn.softmax)[number](x)
    return x


def cnn(x: Any) -> Any:
    x = tf.nn.conv2d(x, weights("conv1", 3, 3, 3, 4), strides=[1, 2, 2, 1], padding="SAME")
    x = tf.nn.relu(tf.nn.bias_add(x, weights("bias1", 4)))
    x = tf.nn.max_pool2d(x, 2, 2, "VALID")
    x = tf.nn.local_response_normalization(x, 2, 1.0, 1e-3, 0.75)
    scale, offset, mean = weights("scale", 4), weights("offset", 4), weights("mean", 4)
    variance = tf.square(weights("deviation", 4)) + 0.5
    x, _, _ = v1.nn.fused_batch_norm(x, scale, offset, mean, variance, is_training=False)
    x = tf.nn.depthwise_conv2d(x, weights("depthwise", 2, 2, 4, 2), [1, 1, 1, 1], "SAME")
    x = tf.nn.relu6(x)
    x = tf.nn.avg_pool2d(x, 2, 2, "SAME")
    x = tf.reshape(x, [tf.shape(x)[0], x.shape[1] * x.shape[2] * x.shape[3]])
    x = tf.matmul(x, weights("dense", 32, 5))
    return tf.nn.log_softmax(x)


def arrays(x: Any) -> Any:
    """One after another, the operations whose TensorFlow inputs are arguments here."""
    a, b = tf.split(x, 2, axis=1)
    c, d, e = tf.split(x, [1, 2, 3], axis=1)
    parts = [
        tf.concat([a, b, c], axis=-1),
        tf.stack([a, b], axis=1)[:, 1, ::-1],
        tf.transpose(tf.expand_dims(x, 1), [0, 2, 1])[..., 0],
        tf.pad(d, [[0, 0], [1, 2]], constant_values=3.0),
        tf.pad(e, [[0, 0], [1, 1]], "REFLECT"),
        tf.tile(c, [1, 2]),
        tf.one_hot(tf.argmax(x, 1), 4, dtype=tf.float32),
        tf.squeeze(x[:, tf.newaxis, 1:-1:2], 1),
        tf.gather(x, [2, 0], axis=1),
        tf.cast(tf.cast(x * 3, tf.int32), tf.float32),
        tf.cumsum(x, axis=1, exclusive=True),
        tf.reduce_mean(x, axis=1, keepdims=True),
        tf.fill(tf.stack([tf.shape(x)[0], 2]), 0.5) + tf.reduce_max(x) - tf.reduce_min(x, 0)[0],
        tf.where(x > 0, x, tf.zeros_like(x)),
        v1.where(tf.reduce_sum(x, 1) > 0, x, -x),
        tf.slice(x, [0, 1], [-1, 2]),
        tf.linalg.matmul(x[:, :, None], x[:, :, None], transpose_a=True)[:, 0],
        tf.nn.leaky_relu(x, 0.3),
        tf.cast(tf.range(1, 13, 2), tf.float32) * tf.math.log1p(tf.abs(x)),
        tf.add_n([part for part in tf.unstack(x, axis=1)])[:, None],
    ]
    return tf.concat(parts, 1)


def strings(x: Any) -> Any:
    words = tf.strings.join([tf.strings.as_string(tf.cast(tf.round(x), tf.int32)), "5"])
    return tf.strings.to_number(words) + tf.cast(
        tf.strings.to_hash_bucket_fast(words, 7), tf.float32
    )


def variables(x: Any) -> Any:
    """One resource variable and one of the old kind; `y` is made after an assignment."""
    new = v1.get_variable("new", initializer=np.float32([1, 2, 3, 4, 5, 6]), use_resource=True)
    old = v1.get_variable("old", initializer=np.float32([2.0]), use_resource=False)
    with tf.control_dependencies([v1.assign_add(old, [1.0]), new.assign_add([1.0] * 6)]):
        y = x * new.read_value() + old.read_value()
    v1.global_variables_initializer()
    return y


GRAPHS: dict[str, tuple[Callable[[Any], Any], list[int]]] = {
    "mlp": (mlp, [4, 6]),
    "cnn": (cnn, [2, 16, 16, 3]),
    "arrays": (arrays, [3, 6]),
    "strings": (strings, [2, 3]),
    "variables": (variables, [2, 6]),
}


def training() -> dict[str, Any]:
    """A graph of a training with its collections, as a `Saver` writes it."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 6], name="x")
        y = tf.identity(mlp(x), name="y")
        loss = tf.reduce_mean(tf.square(y - 0.5))
        step = v1.train.get_or_create_global_step()
        v1.add_to_collection("train_op", v1.train.AdamOptimizer().minimize(loss, step))
        v1.add_to_collection("outputs", y)
        v1.summary.scalar("loss", loss)
        saver = v1.train.Saver(max_to_keep=3)
        session.run(v1.global_variables_initializer())
        given = RNG.normal(size=[4, 6]).astype(np.float32)
        values = {"training/x": given, "training/y": session.run(y, {x: given})}
        meta_graph = v1.train.export_meta_graph(saver_def=saver.as_saver_def(), as_text=False)
    meta_graph.meta_info_def.Clear()  # lists TensorFlow's own operations
    data = meta_graph.SerializeToString(deterministic=True)
    (FOLDER / "graphdef_training.meta").write_bytes(data)
    return values


def main() -> None:
    v1.disable_resource_variables()
    values = training()
    for name, (build, shape) in GRAPHS.items():
        with tf.Graph().as_default() as graph, v1.Session() as session:
            x = v1.placeholder(tf.float32, [None, *shape[1:]], name="x")
            tf.identity(build(x), name="y")
            if name == "variables":
                graph_def = graph.as_graph_def()
            else:
                session.run(v1.global_variables_initializer())
                graph_def = v1.graph_util.convert_variables_to_constants(
                    session, graph.as_graph_def(), ["y"]
                )
        given = RNG.normal(size=shape).astype(np.float32)
        with tf.Graph().as_default() as graph, v1.Session() as session:
            tf.import_graph_def(graph_def, name="")
            if name == "variables":
                session.run("init")
            values[f"{name}/x"] = given
            values[f"{name}/y"] = session.run("y:0", {"x:0": given})
        for node in graph_def.node:  # notes that change from version to version
            for note in [key for key in node.attr if key.startswith("_")]:
                del node.attr[note]
        (FOLDER / f"graphdef_{name}.pb").write_bytes(
            graph_def.SerializeToString(deterministic=True)
        )
    write_npz("graphdef.npz", values)


if __name__ == "__main__":
    main()
