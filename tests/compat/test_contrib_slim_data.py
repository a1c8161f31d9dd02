"""`slim.prefetch_queue`, `slim.dataset` and data providers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf


def test_batches_keep_order() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        numbers = tf.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
        batch = tf.train.batch([numbers, numbers * 2], batch_size=2)
        queue = tf.contrib.slim.prefetch_queue.prefetch_queue(batch, capacity=4)
        one, two = queue.dequeue()
        (summary,) = tf.get_collection(tf.GraphKeys.SUMMARIES)[-1:]
        assert summary.op.name == "prefetch_queue/fraction_of_4_full"
        assert one.shape.as_list() == [2]
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        found: list[Any] = [session.run([one, two]) for _ in range(3)]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(one)
        coord.request_stop()
        coord.join(threads)
    assert np.array(found).tolist() == [[[k, k + 1], [2 * k, 2 * k + 2]] for k in (0, 2, 4)]


def test_dicts_and_dynamic_padding() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        count = tf.train.input_producer([2, 3], num_epochs=1, shuffle=False).dequeue()
        values = {"values": tf.ones(tf.expand_dims(count, 0)), "count": count}
        values["values"].set_shape([None])
        queue = tf.contrib.slim.prefetch_queue.prefetch_queue(values, dynamic_pad=True)
        found = queue.dequeue_many(2)
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        both = session.run(found)
        coord.request_stop()
        coord.join(threads)
    assert both["count"].tolist() == [2, 3]
    assert both["values"].tolist() == [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]


def test_dataset_items(tmp_path: Path) -> None:
    slim = tf.contrib.slim
    decoder = slim.tfexample_decoder
    raw = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    with tf.Graph().as_default(), tf.Session() as session:
        encoded = session.run(tf.image.encode_png(raw))
        path = str(tmp_path / "flowers-00000-of-00001")
        with tf.python_io.TFRecordWriter(path) as writer:
            for form, data, label in ((b"png", encoded, 0), (b"raw", raw.tobytes(), 1)):
                features = {
                    "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[data])),
                    "image/format": tf.train.Feature(bytes_list=tf.train.BytesList(value=[form])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                    **{
                        f"box/{side}": tf.train.Feature(
                            float_list=tf.train.FloatList(value=[0.25 * at] * (1 + label))
                        )
                        for at, side in enumerate(("ymin", "xmin", "ymax", "xmax"))
                    },
                }
                example = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(example.SerializeToString())
        dataset = slim.dataset.Dataset(
            data_sources=str(tmp_path / "flowers-*"),
            reader=tf.TFRecordReader,
            decoder=decoder.TFExampleDecoder(
                {
                    "image/encoded": tf.FixedLenFeature((), tf.string, ""),
                    "image/format": tf.FixedLenFeature((), tf.string, "png"),
                    "label": tf.FixedLenFeature([], tf.int64, tf.zeros([], tf.int64)),
                    **{
                        f"box/{side}": tf.VarLenFeature(tf.float32)
                        for side in ("ymin", "xmin", "ymax", "xmax")
                    },
                },
                {
                    "image": decoder.Image(shape=[2, 2, 3]),
                    "label": decoder.Tensor("label"),
                    "boxes": decoder.BoundingBox(prefix="box/"),
                    "twice": decoder.ItemHandlerCallback("label", lambda of: of["label"] * 2),
                },
            ),
            num_samples=2,
            items_to_descriptions={"image": "colours"},
            num_classes=2,
        )
        provider = slim.dataset_data_provider.DatasetDataProvider(
            dataset, shuffle=False, num_epochs=1
        )
        assert (provider.num_samples(), dataset.num_classes) == (2, 2)
        assert provider.list_items() == ["image", "label", "boxes", "twice", "record_key"]
        with pytest.raises(ValueError, match=r"Item \[size\] is invalid"):
            provider.get(["size"])
        image, label, boxes, twice = provider.get(["image", "label", "boxes", "twice"])
        session.run(tf.local_variables_initializer())
        with slim.queues.QueueRunners(session):
            for count in range(2):
                pixels, number, sides, double = session.run([image, label, boxes, twice])
                np.testing.assert_array_equal(pixels, raw)
                assert (number, double) == (count, 2 * count)
                assert sides.tolist() == [[0, 0.25, 0.5, 0.75]] * (count + 1)


def test_model_analyzer(capsys: pytest.CaptureFixture[str]) -> None:
    slim = tf.contrib.slim
    with tf.Graph().as_default():
        slim.layers.fully_connected(tf.ones([1, 3]), 2)
        analyze = slim.model_analyzer.analyze_vars
        assert analyze(slim.get_model_variables(), print_info=True) == (8, 32)
    assert "Total size of variables: 8\nTotal bytes of variables: 32" in capsys.readouterr().out
