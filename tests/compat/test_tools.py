"""`tf.python.tools` and `tf.profiler`: stripped graphs and profiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.v1.python.layers import utils
from estimatorkit.compat.v1.python.tools import optimize_for_inference_lib, strip_unused_lib


def test_strip_unused_turns_inner_node_into_placeholder() -> None:
    with tf.Graph().as_default() as graph:
        decoded = tf.identity(tf.placeholder(tf.float32, [2], name="file") * 100.0, name="image")
        tf.identity(tf.identity(decoded + 1.0, name="middle"), name="output")
        tf.identity(decoded, name="other")
    enum = tf.float32.as_datatype_enum
    for function in (
        strip_unused_lib.strip_unused,
        optimize_for_inference_lib.optimize_for_inference,
    ):
        cut = function(graph.as_graph_def(), ["image"], ["output"], enum)
        names = {node.name for node in cut.node}
        assert {"image", "output"} <= names
        assert names.isdisjoint({"file", "other"})
        with tf.Graph().as_default(), tf.Session() as session:
            tf.import_graph_def(cut, name="")
            np.testing.assert_array_equal(session.run("output:0", {"image:0": [1, 2]}), [2, 3])
    with pytest.raises(KeyError, match="not found: \\['nothing'\\]"):
        strip_unused_lib.strip_unused(graph.as_graph_def(), ["nothing"], ["output"], enum)


def _network() -> Any:
    x = tf.placeholder(tf.float32, [4, 8, 8, 3])
    with tf.variable_scope("conv"):
        filters = tf.get_variable("w", [3, 3, 3, 5])
        offset = tf.get_variable("b", [5], trainable=False)
        y = tf.nn.bias_add(tf.nn.conv2d(x, filters, [1, 1, 1, 1], "SAME"), offset)
        tf.nn.depthwise_conv2d(x, tf.get_variable("d", [2, 2, 3, 2]), [1, 1, 1, 1], "VALID")
    with tf.variable_scope("head"):
        kernel = tf.get_variable("kernel", [320, 10])
        logits = tf.matmul(tf.reshape(y, [4, 320]), kernel)
        tf.matmul(kernel, tf.ones([4, 320]), transpose_a=True, transpose_b=True)
        tf.reduce_mean(tf.nn.softmax(logits))


def test_profile_counts_match_tensorflow(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The totals are those of `tf.profiler` in TensorFlow 2.15, initializers included."""
    options = tf.profiler.ProfileOptionBuilder
    with tf.Graph().as_default() as graph:
        _network()
    parameters = tf.profiler.profile(graph, options=options.trainable_variables_parameter())
    assert parameters.total_parameters == 3359
    assert capsys.readouterr().out.splitlines() == [
        "_TFProfRoot (0/3,359 params)",
        "  conv (0/159 params)",
        "    conv/d (24/24 params)",
        "    conv/w (135/135 params)",
        "  head (0/3,200 params)",
        "    head/kernel (3,200/3,200 params)",
    ]
    operations = tf.profiler.profile(
        graph,
        options=options(options.float_operation())
        .with_node_names(hide_name_regexes=[".*Initializer.*"])
        .with_max_depth(1)
        .with_file_output(str(tmp_path / "profile"))
        .build(),
    )
    assert operations.total_float_ops == 69120 + 1280 + 9408 + 2 * 25600 + 200 + 40
    assert (tmp_path / "profile").read_text().splitlines()[1:] == [
        "  conv (0/79,808 flops)",
        "  head (0/51,440 flops)",
    ]
    by_type = tf.profiler.profile(
        graph, cmd="op", options=options(options.float_operation()).with_empty_output().build()
    )
    assert {each.name: each.float_ops for each in by_type.children}["MatMul"] == 2 * 25600
    with pytest.raises(ValueError, match="unknown cmd"):
        tf.profiler.profile(graph, cmd="code")
    with pytest.raises(NotImplementedError, match="ProfilerHook"):
        options.time_and_memory()


def test_layer_utilities() -> None:
    assert utils.normalize_tuple(2, 3, "strides") == (2, 2, 2)
    assert utils.normalize_data_format("Channels_First") == "channels_first"
    assert [utils.convert_data_format("channels_first", n) for n in (3, 4, 5)] == [
        *("NCW", "NCHW", "NCDHW"),
    ]
    lengths = [utils.conv_output_length(7, 3, each, 2) for each in ("same", "valid", "full")]
    assert lengths == [4, 3, 5]
    assert [utils.deconv_output_length(4, 3, each, stride=2) for each in ("same", "valid")] == [
        *(8, 9),
    ]
    assert utils.smart_cond(tf.constant(True), lambda: 1, lambda: 2) == 1
    assert utils.constant_value(tf.placeholder(tf.bool)) is None
    for call in (
        lambda: utils.normalize_tuple((1, 0), 2, "strides"),
        lambda: utils.normalize_padding("half"),
        lambda: utils.convert_data_format("channels_last", 2),
    ):
        with pytest.raises(ValueError, match=r"argument must be|not supported"):
            call()
