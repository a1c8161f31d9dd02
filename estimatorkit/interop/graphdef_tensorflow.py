"""Import of TensorFlow's graphs: the rules for its node types.

A rule names a public function, and maps a node's inputs and attributes to its arguments. The
operation gets the node's name; other operations that the function creates go below it. Axes,
permutations and sizes, inputs in TensorFlow, are constants in frozen graphs and become arguments.
Variable handles are replaced by reads where values are needed. Graphs with unsupported node types
are rejected with a list of all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core import registry
from estimatorkit.core.builtin_ops import identity
from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import fixed_value
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.interop.graphdef_files import FILE_RULES
from estimatorkit.interop.graphdef_rules import Call, Node, Rule
from estimatorkit.interop.graphdef_tables import TABLE_RULES
from estimatorkit.ops.array.indexing import where_v2

# Rules by call signature.


def _elementwise(f: Any, n: Node) -> Any:
    return f(*n.inputs, name=n.name)


def _reduction(f: Any, n: Node) -> Any:
    return f(n[0], axis=n.number(1), keepdims=n.get("keep_dims", False), name=n.name)


def _arg(f: Any, n: Node) -> Any:
    output_type = n.get("output_type", "int64")
    return f(n[0], axis=n.number(1), output_type=output_type, name=n.name)


def _cumulated(f: Any, n: Node) -> Any:
    flags = {key: n.get(key, False) for key in ("exclusive", "reverse")}
    return f(n[0], axis=n.number(1), **flags, name=n.name)


def _matmul(f: Any, n: Node) -> Any:
    transpose = {key: n.get(key, False) for key in ("transpose_a", "transpose_b")}
    return f(n[0], n[1], **transpose, name=n.name)


def _batch_matmul(f: Any, n: Node) -> Any:
    return f(
        n[0], n[1], adjoint_a=n.get("adj_x", False), adjoint_b=n.get("adj_y", False), name=n.name
    )


def _window(n: Node) -> dict[str, Any]:
    """The arguments common to convolutions and pooling."""
    padding = n["padding"]
    if padding == "EXPLICIT":
        pairs = n["explicit_paddings"]
        padding = [list(pairs[at : at + 2]) for at in range(0, len(pairs), 2)]
    return {
        "strides": list(n["strides"]),
        "padding": padding,
        "data_format": n.get("data_format", "NHWC"),
        "name": n.name,
    }


def _dilations(n: Node) -> list[int]:
    return list(n.get("dilations", (1, 1, 1, 1)))


def _conv2d(f: Any, n: Node) -> Any:
    return f(n[0], n[1], dilations=_dilations(n), **_window(n))


def _conv3d(f: Any, n: Node) -> Any:
    dilations = list(n.get("dilations", (1, 1, 1, 1, 1)))
    window = {**_window(n), "data_format": n.get("data_format", "NDHWC")}
    return f(n[0], n[1], dilations=dilations, **window)


def _depthwise_conv2d(f: Any, n: Node) -> Any:
    data_format = n.get("data_format", "NHWC")
    dilations = n.get("dilations", (1, 1, 1, 1))
    rate = dilations[1:3] if data_format == "NHWC" else dilations[2:]
    return f(n[0], n[1], rate=list(rate), **_window(n))


def _conv2d_transpose(f: Any, n: Node) -> Any:
    return f(n[2], n[1], output_shape=n[0], dilations=_dilations(n), **_window(n))


def _conv2d_backprop_filter(f: Any, n: Node) -> Any:
    return f(*n.inputs, dilations=_dilations(n), **_window(n))


def _bucketize(_: Any, n: Node) -> Any:
    boundaries = {"boundaries": tuple(n.get("boundaries", ()))}
    return registry.output("Bucketize", [n[0]], boundaries, n.name)


def _pool(f: Any, n: Node) -> Any:
    return f(n[0], ksize=list(n["ksize"]), **_window(n))


def _batch_norm(f: Any, n: Node) -> Any:
    training = n.get("is_training", True)
    moments = {} if training else {"mean": n[3], "variance": n[4]}
    return f(
        *n.inputs[:3],
        **moments,
        epsilon=n.get("epsilon", 1e-4),
        data_format=n.get("data_format", "NHWC"),
        is_training=training,
        name=n.name,
    )


def _lrn(f: Any, n: Node) -> Any:
    numbers = {
        key: n.get(key, value) for key, value in (("bias", 1.0), ("alpha", 1.0), ("beta", 0.5))
    }
    return f(n[0], depth_radius=n.get("depth_radius", 5), **numbers, name=n.name)


def _resize(f: Any, n: Node) -> Any:
    flags = {key: n.get(key, False) for key in ("align_corners", "half_pixel_centers")}
    return f(n[0], n[1], **flags, name=n.name)


def _placeholder(f: Any, n: Node) -> Any:
    return f(n["dtype"], n.get("shape", UNKNOWN), n.name)


def _random(f: Any, n: Node) -> Any:
    # Two zeros mean no seed.
    seed = n.get("seed2", 0) if n.get("seed", 0) or n.get("seed2", 0) else None
    return f(n[0], dtype=n["dtype"], seed=seed, name=n.name)


def _strided_slice(f: Any, n: Node) -> Any:
    """Indexes as `x[...]`, with the bounds and items that the masks describe."""
    length = n[1].shape.num_elements()
    if length is None:
        length = len(n.known(1))
    starts, ends, steps = (_elements(n, position, length) for position in (1, 2, 3))

    def has(mask: str, part: int) -> bool:
        return bool(n.get(mask, 0) >> part & 1)

    key: list[Any] = []
    for part in range(length):
        if has("ellipsis_mask", part):
            key.append(Ellipsis)
        elif has("new_axis_mask", part):
            key.append(None)
        elif has("shrink_axis_mask", part):
            key.append(starts[part])
        else:
            start = None if has("begin_mask", part) else starts[part]
            end = None if has("end_mask", part) else ends[part]
            key.append(slice(start, end, steps[part]))
    return n[0][tuple(key)]


def _elements(n: Node, position: int, length: int) -> list[Any]:
    """Returns a vector's elements: ints if it is constant, else tensors."""
    value = fixed_value(n[position])
    if value is not None:
        return [int(each) for each in value]
    return [n[position][at] for at in range(length)]


def _split(f: Any, n: Node) -> Any:
    return f(n[1], n["num_split"], axis=n.number(0), name=n.name)


def _one_hot(f: Any, n: Node) -> Any:
    return f(n[0], n.number(1), n[2], n[3], axis=n.get("axis", -1), name=n.name)


def _as_string(f: Any, n: Node) -> Any:
    kept = ("precision", "scientific", "shortest", "width", "fill")
    return f(n[0], **{key: n[key] for key in kept if key in n.proto.attr}, name=n.name)


def _handle(_: Any, n: Node) -> Any:
    attrs = {"dtype": n["dtype"], "shape": n.get("shape", TensorShape(None))}
    return registry.output("VarHandleOp", (), attrs, n.name)


def _state(op_type: str) -> Call:
    return lambda _, n: registry.output(op_type, n.inputs, None, n.name)


def _is_initialized(_: Any, n: Node) -> Any:
    return registry.output("VarIsInitializedOp", (), {"variable": n[0].op.name}, n.name)


# Node types, and the function called with their inputs; without `=`, it has the type's name.
_SAME_CALL = """
Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Digamma Erf Erfc Exp Expm1 Floor Lgamma Log
Log1p Rint Round Rsqrt Sigmoid Sign Sin Sinh Sqrt Square Tan Tanh Reciprocal Add RealDiv Div
FloorDiv FloorMod TruncateDiv Maximum Minimum Pow Atan2 Equal Less Greater Identity Rank Reshape
Fill Range Tile Slice Where Gather Pad Neg=negative Inv=reciprocal IsFinite=is_finite IsInf=is_inf
IsNan=is_nan LogicalNot=logical_not OnesLike=ones_like ZerosLike=zeros_like Relu=nn.relu
Relu6=nn.relu6 Elu=nn.elu Selu=nn.selu Softplus=nn.softplus Softsign=nn.softsign L2Loss=nn.l2_loss
Softmax=nn.softmax LogSoftmax=nn.log_softmax AddV2=add Sub=subtract Mul=multiply
SquaredDifference=squared_difference DivNoNan=div_no_nan NotEqual=not_equal LessEqual=less_equal
GreaterEqual=greater_equal LogicalAnd=logical_and LogicalOr=logical_or StopGradient=stop_gradient
Snapshot=identity PreventGradient=stop_gradient GatherNd=gather_nd Select=where
BroadcastTo=broadcast_to MatrixInverse=matrix_inverse ScatterNd=scatter_nd
UnsortedSegmentMax=unsorted_segment_max UnsortedSegmentMin=unsorted_segment_min
UnsortedSegmentProd=unsorted_segment_prod UnsortedSegmentSum=unsorted_segment_sum
ClipByValue=clip_by_value ResourceGather=gather StringStrip=string_strip
"""

RULES: dict[str, Rule] = {
    **{
        type_: Rule(name or type_.lower(), _elementwise)
        for type_, _, name in (each.partition("=") for each in _SAME_CALL.split())
    },
    **{
        type_: Rule(f"reduce_{type_.lower()}", _reduction)
        for type_ in ("All", "Any", "Max", "Mean", "Min", "Prod", "Sum")
    },
    "CheckNumerics": Rule(
        "check_numerics", lambda f, n: f(n[0], n.get("message", ""), name=n.name)
    ),
    "SelectV2": Rule("", lambda _, n: where_v2(n[0], n[1], n[2], n.name)),
    "ArgMax": Rule("argmax", _arg),
    "ArgMin": Rule("argmin", _arg),
    "AddN": Rule("add_n", lambda f, n: f(n.inputs, name=n.name)),
    "Cumsum": Rule("cumsum", _cumulated),
    "Cumprod": Rule("cumprod", _cumulated),
    "LeakyRelu": Rule("nn.leaky_relu", lambda f, n: f(n[0], n.get("alpha", 0.2), name=n.name)),
    # values
    "Const": Rule("constant", lambda f, n: f(n["value"], name=n.name)),
    "Placeholder": Rule("placeholder", _placeholder),
    "PlaceholderV2": Rule("placeholder", _placeholder),
    "PlaceholderWithDefault": Rule(
        "placeholder_with_default", lambda f, n: f(n[0], n.get("shape", UNKNOWN), n.name)
    ),
    "NoOp": Rule("no_op", lambda f, n: f(n.name)),
    "Cast": Rule("cast", lambda f, n: f(n[0], n["DstT"], name=n.name)),
    "RandomUniform": Rule("random_uniform", _random),
    "RandomStandardNormal": Rule("random_normal", _random),
    "TruncatedNormal": Rule("truncated_normal", _random),
    # shapes
    **{
        type_: Rule(type_.lower(), lambda f, n: f(n[0], n.name, n.get("out_type", "int32")))
        for type_ in ("Shape", "Size")
    },
    "Squeeze": Rule(
        "squeeze", lambda f, n: f(n[0], list(n.get("squeeze_dims", ())) or None, name=n.name)
    ),
    "ExpandDims": Rule("expand_dims", lambda f, n: f(n[0], n.number(1), name=n.name)),
    "Transpose": Rule("transpose", lambda f, n: f(n[0], n.number(1), name=n.name)),
    # joining, splitting, choosing
    "ConcatV2": Rule("concat", lambda f, n: f(n.inputs[:-1], n.number(-1), name=n.name)),
    "Concat": Rule("concat", lambda f, n: f(n.inputs[1:], n.number(0), name=n.name)),
    "Pack": Rule("stack", lambda f, n: f(n.inputs, axis=n.get("axis", 0), name=n.name)),
    "Unpack": Rule("unstack", lambda f, n: f(n[0], n["num"], axis=n.get("axis", 0), name=n.name)),
    "Split": Rule("split", _split),
    "SplitV": Rule("split", lambda f, n: f(n[0], n.number(1), n.number(2), n["num_split"], n.name)),
    "StridedSlice": Rule("", _strided_slice),
    "Bucketize": Rule("", _bucketize),
    "GatherV2": Rule(
        "gather",
        lambda f, n: f(
            n[0], n[1], axis=n.number(2), batch_dims=n.get("batch_dims", 0), name=n.name
        ),
    ),
    "OneHot": Rule("one_hot", _one_hot),
    "PadV2": Rule(
        "pad", lambda f, n: f(n[0], n[1], constant_values=n.known(2).item(), name=n.name)
    ),
    "MirrorPad": Rule("pad", lambda f, n: f(n[0], n[1], n["mode"], name=n.name)),
    "TopKV2": Rule("nn.top_k", lambda f, n: f(n[0], n.number(1), n.get("sorted", True), n.name)),
    "ReverseV2": Rule("reverse", lambda f, n: f(n[0], n.number(1), name=n.name)),
    # layers
    "MatMul": Rule("matmul", _matmul),
    **{type_: Rule("matmul", _batch_matmul) for type_ in ("BatchMatMul", "BatchMatMulV2")},
    "Einsum": Rule("einsum", lambda f, n: f(n["equation"], *n.inputs, name=n.name)),
    "BiasAdd": Rule(
        "nn.bias_add", lambda f, n: f(n[0], n[1], n.get("data_format", "NHWC"), name=n.name)
    ),
    "Conv2D": Rule("nn.conv2d", _conv2d),
    "Conv2DBackpropFilter": Rule("nn.conv2d_backprop_filter", _conv2d_backprop_filter),
    "Conv2DBackpropInput": Rule("nn.conv2d_transpose", _conv2d_transpose),
    "Conv3D": Rule("nn.conv3d", _conv3d),
    "DepthwiseConv2dNative": Rule("nn.depthwise_conv2d", _depthwise_conv2d),
    "MaxPool": Rule("nn.max_pool", _pool),
    "AvgPool": Rule("nn.avg_pool", _pool),
    **{
        type_: Rule("nn.fused_batch_norm", _batch_norm)
        for type_ in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
    },
    "LRN": Rule("nn.local_response_normalization", _lrn),
    **{
        f"{kind}SoftmaxCrossEntropyWithLogits": Rule(
            f"nn.{prefix}softmax_cross_entropy_with_logits",
            lambda f, n: f(labels=n[1], logits=n[0], name=n.name),
        )
        for kind, prefix in (("", ""), ("Sparse", "sparse_"))
    },
    # variables
    **{type_: Rule("", _handle) for type_ in ("VarHandleOp", "Variable", "VariableV2")},
    "ReadVariableOp": Rule("", _state("ReadVariableOp"), True),
    **{
        type_: Rule("", _is_initialized, True)
        for type_ in ("VarIsInitializedOp", "IsVariableInitialized")
    },
    **{
        f"{kind}{ending}": Rule("", _state(f"{kind}VariableOp"), True)
        for kind in ("Assign", "AssignAdd", "AssignSub")
        for ending in ("", "VariableOp")
    },
    # pictures and strings
    "DecodeJpeg": Rule(
        "image.decode_jpeg", lambda f, n: f(n[0], channels=n.get("channels", 0), name=n.name)
    ),
    "DecodePng": Rule(
        "image.decode_png", lambda f, n: f(n[0], channels=n.get("channels", 0), name=n.name)
    ),
    "ResizeBilinear": Rule("image.resize_bilinear", _resize),
    "ResizeNearestNeighbor": Rule("image.resize_nearest_neighbor", _resize),
    "DecodeRaw": Rule("decode_raw", lambda f, n: f(n[0], n["out_type"], name=n.name)),
    "AsString": Rule("as_string", _as_string),
    "StringJoin": Rule(
        "string_join", lambda f, n: f(n.inputs, n.get("separator", ""), name=n.name)
    ),
    "StringToNumber": Rule(
        "string_to_number", lambda f, n: f(n[0], n.get("out_type", "float32"), name=n.name)
    ),
    "StringToHashBucketFast": Rule(
        "string_to_hash_bucket_fast", lambda f, n: f(n[0], n["num_buckets"], name=n.name)
    ),
    **FILE_RULES,
    **TABLE_RULES,
}


def _function(rule: Rule) -> Any:
    """Returns the function of a rule; None if it has none, or this version lacks it."""
    place: Any = sys.modules["estimatorkit"]  # rules name public functions
    for part in rule.function.split("."):
        place = getattr(place, part, None)
    return place


def node_maker(graph_def: Any) -> Callable[[Any, list[Tensor], str], Sequence[Tensor]]:
    """Returns the function that creates operations for TensorFlow's nodes (see `graphdef`).

    Raises ValueError if node types have no rule, listing each with a node.
    """
    types = {node.op: node.name for node in reversed(graph_def.node)}
    missing = sorted(filter(_is_unknown, types))
    if missing:
        raise value_error(
            f"nodes of these types cannot be imported: {', '.join(missing)}",
            expected="a graph for inference (interop/graphdef_tensorflow.py lists the types)",
            received="; ".join(f"{types[op]} is {op}" for op in missing[:8]),
            hint="graph_util.extract_sub_graph keeps what some outputs need",
        )

    def make(node: Any, inputs: list[Tensor], full_name: str) -> Sequence[Tensor]:
        rule = RULES[node.op]
        graph = get_default_graph()
        with graph.name_scope(f"{full_name}/"):
            values = inputs if rule.takes_handles else [_value(each) for each in inputs]
            made = rule.call(_function(rule), Node(node, values, f"{full_name}/"))
            outputs = _outputs(made)
            if outputs and outputs[0].op.name != full_name:
                outputs = [identity(outputs[0], f"{full_name}/"), *outputs[1:]]
        return outputs

    return make


def _is_unknown(op_type: str) -> bool:
    rule = RULES.get(op_type)
    return rule is None or bool(rule.function and _function(rule) is None)


def known_part(graph_def: Any) -> tuple[Any, list[str]]:
    """Removes nodes that cannot be imported, and those that depend on them.

    The rest of a training graph, with gradients and save operations, still contains the model.
    Returns a `GraphDef` and the removed node types.
    """
    unknown = {node.op for node in graph_def.node if _is_unknown(node.op)}
    dropped = {node.name for node in graph_def.node if node.op in unknown}
    before = -1
    while len(dropped) > before:
        before = len(dropped)
        for node in graph_def.node:
            sources = (each.removeprefix("^").partition(":")[0] for each in node.input)
            if node.name not in dropped and not dropped.isdisjoint(sources):
                dropped.add(node.name)
    part = type(graph_def)()
    part.versions.CopyFrom(graph_def.versions)
    part.node.extend(node for node in graph_def.node if node.name not in dropped)
    return part, sorted(unknown)


def _value(tensor: Tensor) -> Tensor:
    """Reads the variable of a handle, like the reference variables of old graphs."""
    if tensor.dtype is not resource or tensor.op.type != "VarHandleOp":
        return tensor
    return registry.output("ReadVariableOp", [tensor], name="value")


def _outputs(made: Any) -> list[Tensor]:
    if isinstance(made, Operation):
        return list(made.outputs)
    return list(made) if isinstance(made, (list, tuple)) else [made]
