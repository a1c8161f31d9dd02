"""Helpers of private modules: `tensorflow.python.framework.ops` and `function`."""

from __future__ import annotations

import pickle
import threading

import pytest

import estimatorkit.compat.v1 as tf


def test_framework_ops_and_function() -> None:
    from estimatorkit.compat.v1.python.framework import function, ops

    assert ops.name_from_scope_name("a/b/") == "a/b"
    assert ops.strip_name_scope("loc:@a/b", "a") == "loc:@b"
    assert ops.strip_name_scope("^a/b", "a/") == "^b"
    assert ops.prepend_name_scope("^b", "a") == "^a/b"
    assert [ops.strip_name_scope("b", None), ops.prepend_name_scope("b", "")] == ["b", "b"]
    assert ops.uid() < ops.uid()
    with tf.Graph().as_default():
        x, y = ops.convert_n_to_tensor([1.0, [2.0]], name="n")
        assert [x.op.name, y.op.name] == ["n_0", "n_1"]
        assert ops.get_gradient_function(x.op) is None
        assert ops.get_gradient_function((x * y).op) is not None
        slices = tf.IndexedSlices(y, tf.constant([0]))
        assert ops.convert_to_tensor_or_composite(slices) is slices
        inside: list[bool] = []

        @function.Defun(tf.float32)
        def f(z: tf.Tensor) -> tf.Tensor:
            inside.append(ops.inside_function())
            return z

        f(x)
        assert [*inside, ops.inside_function()] == [True, False]
    with pytest.raises(TypeError, match="values must be a sequence"):
        ops.convert_n_to_tensor(3)


def test_threads_inherit_graph_scopes_if_requested() -> None:
    graph = tf.Graph()
    found: list[tf.Operation] = []
    with graph.device("/cpu:0"), graph.name_scope("main"):
        graph.switch_to_thread_local()
        with graph.as_default():
            found.append(tf.no_op(name="own"))
        thread = threading.Thread(target=lambda: found.append(graph.create_op("NoOp", [], [])))
        thread.start()
        thread.join()
    assert [(op.name, op.device) for op in found] == [
        ("main/own", "/device:CPU:0"),
        ("NoOp", "/device:CPU:0"),
    ]


def test_shapes_devices_and_server_messages() -> None:
    from estimatorkit.compat.v1.core.lib.core import error_codes_pb2
    from estimatorkit.compat.v1.core.protobuf import tensorflow_server_pb2
    from estimatorkit.compat.v1.python.framework import common_shapes, device

    one, two = tf.TensorShape([3, 1, None]), tf.TensorShape([4, 1])
    assert common_shapes.broadcast_shape(one, two).as_list() == [3, 4, None]
    assert common_shapes.is_broadcast_compatible(one, two)
    assert not common_shapes.is_broadcast_compatible(two, tf.TensorShape([3, 1]))
    assert not common_shapes.is_broadcast_compatible(two, tf.TensorShape(None))
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        common_shapes.broadcast_shape(two, tf.TensorShape([3, 1]))
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, None])
        assert (common_shapes.rank(x), common_shapes.has_fully_defined_shape(x)) == (2, False)
        with tf.device("/job:ps"), tf.device(device.merge_device("/gpu:1")):
            assert tf.no_op().device == "/job:ps/device:GPU:1"
    assert device.canonical_name("/job:a/cpu:0") == "/job:a/device:CPU:0"
    assert device.canonical_name(None) == ""
    assert device.is_device_spec(tf.DeviceSpec(job="a"))
    with pytest.raises(ValueError, match="Unknown attribute"):
        device.check_valid("/what:0")
    with pytest.raises(ValueError, match="Multiple device types"):
        device.check_valid("/cpu:0/gpu:0")
    assert tf.as_dtype("variant") is tf.variant
    error = pickle.loads(pickle.dumps(tf.errors.DataLossError(None, tf.no_op(), "lost")))  # noqa: S301
    assert (type(error), error.message, error.op) == (tf.errors.DataLossError, "lost", None)
    assert error_codes_pb2.INVALID_ARGUMENT == tf.errors.INVALID_ARGUMENT

    cluster = tf.train.ClusterSpec({"local": ["localhost:0"]})
    made = tensorflow_server_pb2.ServerDef(
        cluster=cluster.as_cluster_def(), job_name="local", protocol="grpc"
    )
    assert tf.train.Server(made, start=False).server_def == made
