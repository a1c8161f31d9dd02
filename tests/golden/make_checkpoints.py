"""Checkpoints as TensorFlow 2.15.1 writes them, and what it says is in them.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_checkpoints.py

Writes the folder `tensorflow_checkpoints` (ten seconds) and in it `facts.json`: for each checkpoint
its variables by name as [dtype, shape, value] (bfloat16 and half as float, complex as [real,
imaginary], strings as Latin-1 text); what the estimators evaluate and predict; what a model with
its graph gives; averages of `ExponentialMovingAverage`; a sample of Snappy data.
"""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import FOLDER, write_json
from tensorflow.core.framework import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    dataset_pb2,
    tensor_pb2,
)

HERE = FOLDER / "tensorflow_checkpoints"
v1 = tf.compat.v1
DTYPES = [
    *("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"),
    *("uint16", "uint32", "uint64", "complex64", "complex128", "bool"),
]


def values_of_each_dtype() -> dict[str, Any]:
    """One array a dtype, an empty one, a scalar, and strings."""
    numbers = np.array([[0, 1, 2], [3, 100, 127]])
    values: dict[str, Any] = {}
    for name in DTYPES:
        dtype = tf.as_dtype(name)
        array = numbers.astype(dtype.as_numpy_dtype)
        if dtype.is_floating or dtype.is_complex:
            array = (array / dtype.as_numpy_dtype(3)).astype(dtype.as_numpy_dtype)
        if dtype.is_complex:
            array = array * dtype.as_numpy_dtype(1 - 2j)
        values[f"all/{name}"] = array
    values["all/empty"] = np.zeros((0, 3), np.float32)
    values["all/scalar"] = np.int64(-(1 << 62))
    values["all/string"] = np.array([[b"one", b""], [b"\x00\xff", b"long " * 40]], object)
    values["all/one_string"] = np.array(b"caf\xc3\xa9", object)
    return values


def plain(value: Any) -> Any:
    """A value as JSON holds it."""
    array = np.asarray(value, object if isinstance(value, bytes) else None)
    if array.dtype == object:
        return np.vectorize(lambda text: text.decode("latin-1"), otypes=[object])(array).tolist()
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], -1).astype(np.float64).tolist()
    if array.dtype.kind in "fV":
        return array.astype(np.float64).tolist()
    return array.tolist()


def content(path: str) -> dict[str, Any]:
    """What TensorFlow reads in a checkpoint."""
    reader = tf.train.load_checkpoint(path)
    dtypes = reader.get_variable_to_dtype_map()
    result = {}
    for name, shape in sorted(reader.get_variable_to_shape_map().items()):
        # The op reads dtypes that the reader's `get_tensor` refuses.
        prefix = tf.train.latest_checkpoint(path) or path
        value = tf.raw_ops.RestoreV2(
            prefix=prefix, tensor_names=[name], shape_and_slices=[""], dtypes=[dtypes[name]]
        )[0]
        result[name] = [dtypes[name].name, list(shape), plain(value.numpy())]
    return result


def save(folder: str, write_version: int, **arguments: Any) -> str:
    """All dtypes, by the Saver of version 1."""
    (HERE / folder).mkdir()
    with tf.Graph().as_default(), v1.Session() as session:
        for name, value in values_of_each_dtype().items():
            if write_version == 1 and name.split("/")[1] in ("bfloat16", "uint32", "uint64"):
                continue  # TensorFlow cannot save these in that format
            v1.get_variable(name, initializer=tf.constant(value), use_resource=True)
        session.run(v1.global_variables_initializer())
        saver = v1.train.Saver(write_version=write_version, **arguments)
        saver.save(session, str(HERE / folder / "model.ckpt"), 7, write_meta_graph=False)
    return f"{folder}/model.ckpt-7"


def save_partitioned(folder: str, write_version: int) -> str:
    """Variables that lie in slices, along each axis."""
    (HERE / folder).mkdir()
    with tf.Graph().as_default(), v1.Session() as session:
        for axis, parts in ((0, 3), (1, 2)):
            v1.get_variable(
                f"axis_{axis}",
                initializer=tf.reshape(tf.range(30.0), (6, 5)),
                partitioner=tf.compat.v1.fixed_size_partitioner(parts, axis),
                use_resource=False,
            )
        v1.get_variable("whole", initializer=tf.constant([1, 2], tf.int32))
        session.run(v1.global_variables_initializer())
        saver = v1.train.Saver(write_version=write_version)
        saver.save(session, str(HERE / folder / "p"), write_meta_graph=False)
    return f"{folder}/p"


def save_objects(folder: str) -> str:
    """An object-based checkpoint of TensorFlow 2, with an optimizer."""
    (HERE / folder).mkdir()
    kernel = tf.Variable(tf.reshape(tf.range(6.0), (2, 3)), name="dense/kernel")
    bias = tf.Variable(tf.ones(3), name="dense/bias")
    optimizer = tf.keras.optimizers.legacy.Adam(0.5)
    optimizer.apply_gradients([(tf.ones((2, 3)), kernel), (tf.ones(3), bias)])
    saved = tf.train.Checkpoint(kernel=kernel, bias=bias, optimizer=optimizer)
    saved.write(str(HERE / folder / "ckpt-1"))
    return f"{folder}/ckpt-1"


def save_shards(folder: str) -> str:
    """A checkpoint of two data files."""
    (HERE / folder).mkdir()
    parts = []
    for number in range(2):
        part = str(HERE / folder / f"part-{number}")
        tf.raw_ops.SaveV2(
            prefix=part,
            tensor_names=[f"v{number}"],
            shape_and_slices=[""],
            tensors=[tf.constant([number, 5], tf.int32)],
        )
        parts.append(part)
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=parts, destination_prefix=str(HERE / folder / "two")
    )
    return f"{folder}/two"


def save_graph(folder: str) -> dict[str, Any]:
    """A model with its graph (`.meta`), as programs of TensorFlow 1 restore it."""
    (HERE / folder).mkdir()
    v1.disable_resource_variables()
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        weights = v1.get_variable("w", initializer=tf.reshape(tf.range(6.0), (3, 2)) / 10)
        bias = v1.get_variable("b", initializer=tf.ones(2))
        y = tf.nn.softmax(tf.matmul(x, weights) + bias, name="y")
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(HERE / folder / "model"), 5)
        found: list[list[float]] = session.run(y, {x: [[1, 2, 3]]}).tolist()
    v1.enable_resource_variables()
    return {"path": f"{folder}/model-5", "x": [[1, 2, 3]], "y": found}


def estimators() -> dict[str, Any]:
    """Model folders of premade estimators."""
    columns = [tf.feature_column.numeric_column("x", shape=(2,))]
    cases = {
        "dnn": (tf.estimator.DNNClassifier, {"hidden_units": [4]}),
        "linear": (tf.estimator.LinearClassifier, {}),
    }
    facts = {}
    for name, (kind, arguments) in cases.items():
        folder = HERE / f"{name}_classifier"
        config = tf.estimator.RunConfig(tf_random_seed=1, save_summary_steps=None)
        estimator = kind(
            feature_columns=columns, n_classes=3, model_dir=str(folder), config=config, **arguments
        )
        estimator.train(batches, steps=10)
        metrics = estimator.evaluate(batches)
        predictions = [p["probabilities"].tolist() for p in estimator.predict(batches)]
        for path in folder.glob("*"):
            if path.is_dir():
                shutil.rmtree(path)
            elif not path.name.startswith(("checkpoint", "model.ckpt")) or ".meta" in path.name:
                path.unlink()
        facts[name] = {
            "metrics": {key: float(value) for key, value in metrics.items()},
            "probabilities": predictions,
            "checkpoint": content(str(folder)),
        }
    return facts


def batches() -> Any:
    """Six examples of three classes, three a batch."""
    x = np.arange(12, dtype=np.float32).reshape(6, 2) / 6
    dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, np.array([0, 1, 2, 0, 1, 2])))
    return dataset.batch(3)


def moving_averages() -> dict[str, Any]:
    """Names and values of averages of a variable and of a tensor, in each mode."""
    facts = {}
    for label, arguments in {
        "plain": {"decay": 0.9},
        "num_updates": {"decay": 0.9, "num_updates": 3},
        "zero_debias": {"decay": 0.9, "zero_debias": True},
    }.items():
        with tf.Graph().as_default(), v1.Session() as session:
            variable = v1.get_variable("v", initializer=tf.constant([1.0, 2.0]))
            average = tf.train.ExponentialMovingAverage(**arguments)
            with tf.control_dependencies([variable.assign_add([1.0, 0.5])]):
                tensor = tf.multiply(variable.read_value(), 3.0, name="t")
                update = average.apply([variable, tensor])
            session.run(v1.global_variables_initializer())
            steps = []
            for _ in range(3):
                session.run(update)
                shown = [average.average(variable), average.average(tensor)]
                steps.append([value.tolist() for value in session.run(shown)])
            facts[label] = {
                "arguments": arguments,
                "variables": sorted(variable.op.name for variable in v1.global_variables()),
                "average_names": [average.average_name(variable), average.average_name(tensor)],
                "to_restore": {
                    key: value.op.name
                    for key, value in sorted(average.variables_to_restore().items())
                },
                "steps": steps,
            }
    return facts


def snappy_sample() -> dict[str, str]:
    """Text, and what TensorFlow's Snappy makes of it."""
    text = b"".join(b"%d bottles of beer on the wall, " % (number % 7) for number in range(60))
    variant = tf.raw_ops.CompressElement(components=[tf.constant(text)])
    return {"text": text.decode(), "compressed": base64.b64encode(_data_of(variant)).decode()}


def _data_of(variant: Any) -> bytes:
    """The bytes in the `CompressedElement` that a variant holds."""
    content = tensor_pb2.TensorProto.FromString(tf.io.serialize_tensor(variant).numpy())
    # The tensor's content is a length, of two bytes here, then the message.
    held = tensor_pb2.VariantTensorDataProto.FromString(content.tensor_content[2:])
    data: bytes = dataset_pb2.CompressedElement.FromString(held.metadata).data
    return data


def main() -> None:
    """Makes the folder anew."""
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    paths = [
        save("all_dtypes", 2),
        save("all_dtypes_version_1", 1),
        save_partitioned("partitioned", 2),
        save_partitioned("partitioned_version_1", 1),
        save_objects("objects"),
        save_shards("two_shards"),
    ]
    facts = {
        "checkpoints": {path: content(str(HERE / path)) for path in paths},
        "graph": save_graph("graph"),
        "estimators": estimators(),
        "moving_averages": moving_averages(),
        "snappy": snappy_sample(),
    }
    write_json("tensorflow_checkpoints/facts.json", facts)
    for path in Path(HERE).rglob("checkpoint"):
        text = path.read_text("utf-8")
        path.write_text(text.replace(str(HERE), "/elsewhere"), "utf-8")
    print(sum(os.path.getsize(path) for path in HERE.rglob("*") if path.is_file()), "bytes")


if __name__ == "__main__":
    main()
