"""Export of layers, variables, tables, strings and parsing to TensorFlow's nodes.

Part of the table of `graphdef_export`; see `graphdef_export_rules`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import float32, int32, string
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.interop.graphdef_export_tables import TABLE_RULES
from estimatorkit.interop.graphdef_writer import Rule, Writer, composed, plain, rows
from estimatorkit.ops.array.array import expand_dims, reshape, shape, size
from estimatorkit.ops.array.indexing import slice_, where
from estimatorkit.ops.array.joining import concat, stack
from estimatorkit.ops.math.elementwise import (
    cast,
    equal,
    greater,
    logical_and,
    logical_not,
    not_equal,
)
from estimatorkit.ops.math.reduce import reduce_sum
from estimatorkit.ops.parsing.example_parsing import Column


def _seeds(pair: Any) -> dict[str, int]:
    """Returns the graph's and the operation's seed; two zeros mean none."""
    first, second = pair or (0, 0)
    return {"seed": int(first), "seed2": int(second)}


def _format(first: bool) -> str:
    return "NCHW" if first else "NHWC"


def _spread(sizes: Sequence[int], first: bool) -> list[int]:
    """Expands window sizes to all dimensions, including batch and channels."""
    return [1, 1, *sizes] if first else [1, *sizes, 1]


def _padding(w: Writer) -> str:
    padding = w.attrs["padding"]
    w.require(padding in ("SAME", "VALID"), f"padding {padding!r}")
    return str(padding)


def _spread_window(w: Writer, first: bool, *keys: str) -> dict[str, Any]:
    return {"padding": _padding(w), **{key: _spread(w.attrs[key], first) for key in keys}}


def _window(w: Writer, first: bool, *keys: str) -> dict[str, Any]:
    w.require(len(w.attrs["strides"]) == 2, "it does not have two spatial dimensions")
    return {"data_format": _format(first), **_spread_window(w, first, *keys)}


def _bias_add(w: Writer) -> None:
    data_format = _format(w.attrs["channels_first"])
    w.node("BiasAdd", w.inputs, T=w.dtype(), data_format=data_format)


def _convolution(w: Writer) -> None:
    first, dtype = w.attrs["channels_first"], w.dtype()
    dimensions = len(w.attrs["strides"])
    if dimensions == 3 and w.attrs["groups"] <= 1:
        attrs = _spread_window(w, first, "strides", "dilations")
        w.node("Conv3D", w.inputs, T=dtype, data_format="NCDHW" if first else "NDHWC", **attrs)
        return
    if dimensions == 1:
        _convolution_of_vectors(w, first)
        return
    attrs = {"T": dtype, **_window(w, first, "strides", "dilations")}
    kernel = w.op.inputs[1].shape.as_list() if w.op.inputs[1].shape.rank else [None]
    channels = w.attrs["groups"]
    if channels <= 1 or None in kernel or kernel[2] != 1:  # groups follow from the shapes
        w.node("Conv2D", w.inputs, **attrs)
        return
    dims = w.const([*kernel[:2], channels, kernel[3] // channels], "filter/shape", int32)
    kernels = w.node("Reshape", [w.inputs[1], dims], "filter", T=dtype, Tshape=int32)
    w.node("DepthwiseConv2dNative", [w.inputs[0], kernels], **attrs)


def _convolution_of_vectors(w: Writer, first: bool) -> None:
    """Writes a 1-D convolution as a 2-D one of height 1."""
    row, top = w.const(2 if first else 1, "row", int32), w.const(0, "top", int32)
    attrs = {"T": w.dtype(), "Tdim": int32}
    images = w.node("ExpandDims", [w.inputs[0], row], "images", **attrs)
    kernels = w.node("ExpandDims", [w.inputs[1], top], "kernels", **attrs)
    sizes = {key: _spread((1, *w.attrs[key]), first) for key in ("strides", "dilations")}
    padding = {"padding": _padding(w), "data_format": _format(first)}
    made = w.node("Conv2D", [images, kernels], "Conv2D", T=w.dtype(), **sizes, **padding)
    w.node("Squeeze", [made], T=w.dtype(), squeeze_dims=[2 if first else 1])


def _transposed_convolution(w: Writer) -> None:
    value, kernels, sizes = w.inputs
    attrs = _window(w, w.attrs["first"], "strides", "dilations")
    w.require(w.dtype(2) is int32, "the output's shape is not int32")
    w.node("Conv2DBackpropInput", [sizes, kernels, value], T=w.dtype(), **attrs)


def _convolution_s_filter(w: Writer) -> None:
    attrs = _window(w, w.attrs["first"], "strides", "dilations")
    w.require(w.dtype(1) is int32, "the filter's shape is not int32")
    w.node("Conv2DBackpropFilter", w.inputs, T=w.dtype(), **attrs)


def _pool(type_: str) -> Rule:
    def rule(w: Writer) -> None:
        first = w.attrs["channels_first"]
        ksize = _spread(w.attrs["window"], first)
        w.node(type_, w.inputs, T=w.dtype(), ksize=ksize, **_window(w, first, "strides"))

    return rule


def _batch_norm(w: Writer) -> None:
    inputs, training = list(w.inputs), w.attrs["training"]
    for part in ("mean", "variance")[len(inputs) - 3 :]:
        inputs.append(w.const(np.zeros(0, np.float32), part))
    w.node(
        "FusedBatchNormV3",
        inputs,
        T=w.dtype(),
        U=float32,
        epsilon=float(w.attrs["epsilon"]),
        data_format=_format(w.attrs["channels_first"]),
        is_training=training,
    )


def _resize(type_: str) -> Rule:
    def rule(w: Writer) -> None:
        w.require(not w.attrs.get("preserve"), "it keeps the dtype or the ratio")
        flags = {key: w.attrs[key] for key in ("align_corners", "half_pixel_centers")}
        w.node(type_, w.inputs, T=w.dtype(), **flags)

    return rule


def _sigmoid_cross_entropy(w: Writer) -> None:
    """max(x, 0) - x z + log(1 + exp(-|x|))."""
    (x, z), dtype = w.inputs, w.dtype()

    def node(type_: str, *inputs: str, part: str | None = None) -> str:
        return w.node(type_, inputs, type_ if part is None else part, T=dtype)

    linear = node("Sub", node("Relu", x), node("Mul", x, z))
    rest = node("Log1p", node("Exp", node("Neg", node("Abs", x))))
    node("AddV2", linear, rest, part="")


def _softmax_cross_entropy(w: Writer) -> None:
    w.require(w.rank(0) == w.rank(1) == 2, "it is not of matrices")
    w.node("SoftmaxCrossEntropyWithLogits", w.inputs, T=w.dtype())


def _sparse_softmax_cross_entropy(w: Writer) -> None:
    w.require(w.rank() == 2, "it is not of matrices")
    dtypes = {"T": w.dtype(), "Tlabels": w.dtype(1)}
    w.node("SparseSoftmaxCrossEntropyWithLogits", w.inputs, **dtypes)


def _to_rgb(w: Writer) -> None:
    multiples = w.const([1] * (w.rank() - 1) + [3], "multiples", int32)
    w.node("Tile", [w.inputs[0], multiples], T=w.dtype(), Tmultiples=int32)


def _substr(w: Writer) -> None:
    w.node("Substr", w.inputs, T=w.dtype(1), unit=w.attrs["unit"])


def _flip(w: Writer) -> None:
    axis = w.const([w.attrs["axis"]], "axis", int32)
    w.node("ReverseV2", [w.inputs[0], axis], T=w.dtype(), Tidx=int32)


def _assert(w: Writer) -> None:
    dtypes = [tensor.dtype for tensor in w.op.inputs[1:]]
    w.node("Assert", w.inputs, T=dtypes, summarize=w.attrs["summarize"])


def _confusion_counts(
    attrs: Any, predictions: Tensor, labels: Tensor, weights: Tensor
) -> list[Tensor]:
    """Counts for each threshold, `(thresholds, batch, columns)`, then sums over the batch."""
    above = greater(expand_dims(predictions, 0), attrs["thresholds"][:, None, None])
    positive = expand_dims(not_equal(labels, 0.0), 0)

    def counted(one: Tensor, other: Tensor) -> Tensor:
        return reduce_sum(where(logical_and(one, other), expand_dims(weights, 0), 0.0), 1)

    below, negative = logical_not(above), logical_not(positive)
    pairs = [(above, positive), (below, positive), (below, negative), (above, negative)]
    return [stack([counted(*pair) for pair in pairs])]


def _ensure_leading(attrs: Any, values: Tensor, reference: Tensor) -> list[Tensor]:
    """Checks the number of values by a `Reshape`, which fails on a mismatch."""
    last = attrs["last"]
    dims = [shape(reference)[:-1], [last[0] if len(last) == 1 else -1]]
    return [reshape(values, concat(dims, 0))]


def _match_rank(attrs: Any, values: Tensor, reference: Tensor) -> list[Tensor]:
    """Reshapes to a rank derived from both ranks."""
    adjust = attrs["adjust"]
    own, other = shape(values), shape(reference)
    surplus = size(own) - size(other) - attrs["difference"]
    kept = size(own)
    if adjust in ("squeeze", "either"):
        kept -= cast(logical_and(equal(surplus, 1), _ends_in_one(own)), int32)
    if adjust != "squeeze":
        fits = equal(surplus, -1)
        fits = logical_and(fits, _ends_in_one(other)) if adjust == "column" else fits
        kept += cast(fits, int32)
    return [reshape(values, slice_(concat([own, [1]], 0), [0], stack([kept])))]


def _ends_in_one(dims: Tensor) -> Tensor:
    """Whether the last dimension is 1; false for a scalar."""
    return equal(concat([[0], dims], 0)[-1], 1)


def _broadcastable(w: Writer) -> None:
    w.node("Identity", w.inputs[:1], T=w.dtype())  # consumers reject other shapes


def _random(type_: str) -> Rule:
    def rule(w: Writer) -> None:
        seeds = _seeds(w.attrs["_seed"])
        w.node(type_, w.inputs, T=w.dtype(), dtype=w.attrs["dtype"], **seeds)

    return rule


def _handle(w: Writer) -> None:
    attrs = {"dtype": w.attrs["dtype"], "shape": w.attrs["shape"]}
    w.node("VarHandleOp", [], container="", shared_name=w.name, **attrs)


def _read(w: Writer) -> None:
    w.node("ReadVariableOp", w.inputs, dtype=w.op.outputs[0].dtype)


def _assign(type_: str) -> Rule:
    def rule(w: Writer) -> list[str]:
        w.node(type_, w.inputs, dtype=w.dtype(1))
        if not w.consumed:  # TensorFlow's node has no output
            return [f"^{w.name}"]
        inputs = [w.inputs[0], f"^{w.name}"]
        return [w.node("ReadVariableOp", inputs, "value", dtype=w.dtype(1))]

    return rule


def _is_initialized(w: Writer) -> None:
    w.node("VarIsInitializedOp", [w.attrs["variable"]])


def _decode_image(w: Writer) -> None:
    # Only JPEG's function sets these two.
    plain = w.attrs.get("ratio", 1) == 1 and not w.attrs.get("recover")
    w.require(plain, "it decodes in its own way")
    attrs = {"channels": w.attrs["channels"], "dtype": w.attrs["dtype"]}
    w.node("DecodeImage", w.inputs, expand_animations=w.attrs["frames"] != "one", **attrs)


def _parse_example(w: Writer) -> list[str]:
    columns = [Column(*each) for each in w.attrs["columns"]]
    w.require(all(each.kind != "sparse" for each in columns), "it reads a SparseFeature")
    sparse = [each for each in columns if each.kind == "lists"]
    dense = [each for each in columns if each.kind != "lists"]
    serialized, names, *rest = w.inputs
    given, defaults = iter(rest), []
    for column in dense:
        if column.default:
            defaults.append(next(given))
        elif column.kind == "padded":
            defaults.append(w.const(b"" if column.dtype is string else 0, "pad", column.dtype))
        else:  # required
            defaults.append(w.const(np.zeros(0, column.dtype.numpy_dtype), "none"))
    keys = [
        w.const(np.array([each.key.encode() for each in part], object), f"{kind}_keys")
        for kind, part in (("sparse", sparse), ("dense", dense), ("ragged", []))
    ]
    shapes = [
        TensorShape([None, *each.shape] if each.kind == "padded" else each.shape) for each in dense
    ]
    w.node(
        "ParseExampleV2",
        [serialized, names, *keys, *defaults],
        num_sparse=len(sparse),
        sparse_types=[each.dtype for each in sparse],
        ragged_value_types=[],
        ragged_split_types=[],
        Tdense=[each.dtype for each in dense],
        dense_shapes=shapes,
    )
    places = {id(each): position for position, each in enumerate(sparse)}
    outputs, count = [], len(sparse)
    for column in columns:
        if column.kind == "lists":
            first = places[id(column)]
            outputs += [first, count + first, 2 * count + first]
        else:
            outputs.append(3 * count + dense.index(column))
    return [f"{w.name}:{place}" if place else w.name for place in outputs]


LAYER_RULES: dict[str, Rule] = {
    "Assert": _assert,
    "CheckNumerics": plain("CheckNumerics", "T", "message"),
    **TABLE_RULES,
    **rows(_pool, "AvgPool MaxPool"),
    **rows(_resize, "ResizeBilinear ResizeNearestNeighbor"),
    **rows(_random, "RandomUniform RandomStandardNormal TruncatedNormal"),
    **rows(_assign, "AssignVariableOp AssignAddVariableOp AssignSubVariableOp"),
    "AsString": plain("AsString", "T", "precision scientific shortest width fill"),
    "BiasAdd": _bias_add,
    "Broadcastable": _broadcastable,
    "ConfusionCounts": composed(_confusion_counts),
    "Convolution": _convolution,
    "ConvolutionBackpropFilter": _convolution_s_filter,
    "ConvolutionBackpropInput": _transposed_convolution,
    "DecodeImage": _decode_image,
    "DecodeRaw": plain("DecodeRaw", "", "out_type little_endian"),
    "EnsureLeading": composed(_ensure_leading),
    "FusedBatchNormV3": _batch_norm,
    "FlipImage": _flip,
    "GrayscaleToRGB": _to_rgb,
    "MatchRank": composed(_match_rank),
    "ParseExampleV2": _parse_example,
    "ReadVariableOp": _read,
    "RegexFullMatch": plain("RegexFullMatch"),
    "RegexReplace": plain("RegexReplace", "", "replace_global"),
    "SigmoidCrossEntropyWithLogits": _sigmoid_cross_entropy,
    "SoftmaxCrossEntropyWithLogits": _softmax_cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_softmax_cross_entropy,
    "StringJoin": plain("StringJoin", "", "N separator"),
    "StringLength": plain("StringLength", "", "unit"),
    "StringLower": plain("StringLower", "", "encoding"),
    "StringSplitV2": plain("StringSplitV2", "", "maxsplit"),
    "StringStrip": plain("StringStrip"),
    "Substr": _substr,
    "StringToHashBucketFast": plain("StringToHashBucketFast", "", "num_buckets"),
    "StringToNumber": plain("StringToNumber", "", "out_type"),
    "StringUpper": plain("StringUpper", "", "encoding"),
    "VarHandleOp": _handle,
    "VarIsInitializedOp": _is_initialized,
}
