"""What TensorFlow's nodes stand for each op type: the table of `graphdef_export`.

Attributes that are inputs in TensorFlow (axes, paddings, permutations) become constants below the
operation's name. A rule gives up (`Writer.require`) where TensorFlow's node means something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import bool_, complex64, complex128, float32, int32, int64, string
from estimatorkit.core.example_parsing import Column
from estimatorkit.core.graphdef_export import Rule, Writer
from estimatorkit.core.shapes import TensorShape

# -- rules by the shape of their nodes


def _typed(type_: str, **rest: Any) -> Rule:
    """The same node, with the dtype of its first input as `T`."""

    def rule(w: Writer) -> None:
        w.node(type_, w.inputs, T=w.dtype(), **rest)

    return rule


def _plain(type_: str, *kept: str, **rest: Any) -> Rule:
    """The same node, without a dtype; `kept` attributes have the same name and meaning."""

    def rule(w: Writer) -> None:
        w.node(type_, w.inputs, **{key: w.attrs[key] for key in kept}, **rest)

    return rule


def _reduction(type_: str) -> Rule:
    def rule(w: Writer) -> None:
        axis = w.attrs["axis"]
        axes = range(w.rank()) if axis is None else axis
        places = w.const(list(axes), "reduction_indices", int32)
        dtype = {} if type_ in ("All", "Any") else {"T": w.dtype()}
        keep = w.attrs["keepdims"]
        w.node(type_, [w.inputs[0], places], Tidx=int32, keep_dims=keep, **dtype)

    return rule


def _arg(type_: str) -> Rule:
    def rule(w: Writer) -> None:
        place = w.const(w.attrs["axis"], "dimension", int32)
        inputs = [w.inputs[0], place]
        w.node(type_, inputs, T=w.dtype(), Tidx=int32, output_type=w.attrs["dtype"])

    return rule


def _along(type_: str, key: str, part: str, **rest: str) -> Rule:
    """One input and an axis that is an input in TensorFlow.

    Args:
        type_: the type of the node.
        key: the attribute here.
        part: the constant's name.
        **rest: TensorFlow's attributes, and what they are called here.
    """

    def rule(w: Writer) -> None:
        place = w.const(w.attrs[key], part, int32)
        dtype = "Tdim" if type_ == "ExpandDims" else "Tidx"
        kept = {theirs: w.attrs[ours] for theirs, ours in rest.items()}
        w.node(type_, [w.inputs[0], place], T=w.dtype(), **{dtype: int32}, **kept)

    return rule


def _by_shape(type_: str, dtype: str, index: str, shape_at: int = 1) -> Rule:
    """A tensor, and a shape or multiples of it."""

    def rule(w: Writer) -> None:
        attrs = {dtype: w.dtype(1 - shape_at), index: w.dtype(shape_at)}
        w.node(type_, w.inputs, **attrs)

    return rule


# -- single types


def _add(w: Writer) -> None:
    w.node("Add" if w.dtype() is string else "AddV2", w.inputs, T=w.dtype())


def _xor(w: Writer) -> None:
    w.node("NotEqual", w.inputs, T=bool_)


def _zeros_like(type_: str) -> Rule:
    def rule(w: Writer) -> None:
        source, dtype = w.inputs[0], w.attrs["dtype"]
        if dtype is not w.dtype():
            source = w.node("Cast", [source], "Cast", SrcT=w.dtype(), DstT=dtype)
        w.node(type_, [source], T=dtype)

    return rule


def _select(w: Writer) -> None:
    rows = w.op.inputs[0].shape.rank in (1, None) and w.op.inputs[1].shape.rank != 1
    w.node("Select" if rows else "SelectV2", w.inputs, T=w.dtype(1))


def _const(w: Writer) -> None:
    w.const(w.attrs["value"], "")


def _placeholder(w: Writer) -> None:
    w.node("Placeholder", [], dtype=w.attrs["dtype"], shape=w.attrs["shape"])


def _placeholder_with_default(w: Writer) -> None:
    w.node("PlaceholderWithDefault", w.inputs, dtype=w.dtype(), shape=w.attrs["shape"])


def _cast(w: Writer) -> None:
    w.node("Cast", w.inputs, SrcT=w.dtype(), DstT=w.attrs["dtype"])


def _identity_n(w: Writer) -> None:
    w.node("IdentityN", w.inputs, T=[tensor.dtype for tensor in w.op.inputs])


def _leaky_relu(w: Writer) -> None:
    w.node("LeakyRelu", w.inputs, T=w.dtype(), alpha=float(w.attrs["alpha"]))


def _matmul(w: Writer) -> None:
    a, b = w.attrs["transpose_a"], w.attrs["transpose_b"]
    if w.rank(0) == w.rank(1) == 2:
        w.node("MatMul", w.inputs, T=w.dtype(), transpose_a=a, transpose_b=b)
        return
    complex_ = w.dtype() in (complex64, complex128)
    w.require(
        not (complex_ and (a or b)), "batches of complex matrices are adjoint, not transposed"
    )
    w.node("BatchMatMulV2", w.inputs, T=w.dtype(), adj_x=a, adj_y=b)


def _last_axis(type_: str) -> Rule:
    def rule(w: Writer) -> None:
        w.require(w.attrs["axis"] in (-1, w.rank() - 1), "it is not along the last axis")
        w.node(type_, w.inputs, T=w.dtype())

    return rule


def _n(type_: str, **rest: str) -> Rule:
    """Any number of inputs of one dtype."""

    def rule(w: Writer) -> None:
        kept = {theirs: w.attrs[ours] for theirs, ours in rest.items()}
        w.node(type_, w.inputs, T=w.dtype(), N=len(w.inputs), **kept)

    return rule


def _shape(type_: str) -> Rule:
    def rule(w: Writer) -> None:
        w.node(type_, w.inputs, T=w.dtype(), out_type=w.attrs["dtype"])

    return rule


def _range(w: Writer) -> None:
    w.node("Range", w.inputs, Tidx=w.dtype())


def _squeeze(w: Writer) -> None:
    w.node("Squeeze", w.inputs, T=w.dtype(), squeeze_dims=list(w.attrs["axis"] or ()))


def _transpose(w: Writer) -> None:
    order = w.attrs["perm"]
    order = list(range(w.rank()))[::-1] if order is None else order
    w.node("Transpose", [w.inputs[0], w.const(order, "perm", int32)], T=w.dtype(), Tperm=int32)


def _concat(w: Writer) -> None:
    axis = w.const(w.attrs["axis"], "axis", int32)
    w.node("ConcatV2", [*w.inputs, axis], T=w.dtype(), N=len(w.inputs), Tidx=int32)


def _unpack(w: Writer) -> None:
    w.node("Unpack", w.inputs, T=w.dtype(), num=w.attrs["num"], axis=w.attrs["axis"])


def _split(w: Writer) -> None:
    sizes = w.attrs["sizes"]
    inputs = [
        w.inputs[0],
        w.const(sizes, "size_splits", int32),
        w.const(w.attrs["axis"], "split_dim", int32),
    ]
    w.node("SplitV", inputs, T=w.dtype(), Tlen=int32, num_split=len(sizes))


def _gather(w: Writer) -> None:
    axis = w.const(w.attrs["axis"], "axis", int32)
    dtypes = {"Tparams": w.dtype(), "Tindices": w.dtype(1), "Taxis": int32}
    w.node("GatherV2", [*w.inputs, axis], batch_dims=w.attrs["batch_dims"], **dtypes)


def _gather_nd(w: Writer) -> None:
    w.node("GatherNd", w.inputs, Tparams=w.dtype(), Tindices=w.dtype(1))


def _one_hot(w: Writer) -> None:
    depth = w.const(w.attrs["depth"], "depth", int32)
    indices, *values = w.inputs
    attrs = {"T": w.dtype(1), "TI": w.dtype(), "axis": w.attrs["axis"]}
    w.node("OneHot", [indices, depth, *values], **attrs)


def _pad(w: Writer) -> None:
    inputs = [w.inputs[0], w.const(w.attrs["paddings"], "paddings", int32)]
    mode, value = w.attrs["mode"].upper(), w.attrs["constant_values"]
    if mode != "CONSTANT":
        w.node("MirrorPad", inputs, T=w.dtype(), Tpaddings=int32, mode=mode)
    elif np.any(value):
        inputs.append(w.const(value, "constant_values", w.dtype()))
        w.node("PadV2", inputs, T=w.dtype(), Tpaddings=int32)
    else:
        w.node("Pad", inputs, T=w.dtype(), Tpaddings=int32)


def _top_k(w: Writer) -> None:
    w.node("TopKV2", w.inputs, T=w.dtype(), sorted=True)


def _slice(w: Writer) -> None:
    w.node("Slice", w.inputs, T=w.dtype(), Index=w.dtype(1))


def _strided_slice(w: Writer) -> None:
    rest = iter(range(1, len(w.inputs)))
    bounds: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    masks = dict.fromkeys(("begin", "end", "ellipsis", "new_axis", "shrink_axis"), 0)

    def known(bound: Any) -> Any:
        return w.inputs[next(rest)] if bound == "input" else bound

    for position, part in enumerate(w.attrs["index"]):
        bit = 1 << position
        begin, end, step = 0, 0, 1
        if isinstance(part, tuple):
            begin, end, step = (known(bound) for bound in part[1:])
            masks["begin"] |= bit if begin is None else 0
            masks["end"] |= bit if end is None else 0
            begin, end, step = begin or 0, end or 0, 1 if step is None else step
        elif part == "ellipsis":
            masks["ellipsis"] |= bit
        elif part == "newaxis":
            masks["new_axis"] |= bit
        else:
            begin = known(part)
            end = 0 if isinstance(begin, str) else begin + 1
            masks["shrink_axis"] |= bit
        for target, bound in zip(bounds, (begin, end, step), strict=True):
            target.append(bound)
    parts = ("begin", "end", "strides")
    inputs = [_vector(w, values, name) for values, name in zip(bounds, parts, strict=True)]
    given = {f"{name}_mask": mask for name, mask in masks.items()}
    w.node("StridedSlice", [w.inputs[0], *inputs], T=w.dtype(), Index=int32, **given)


def _vector(w: Writer, values: Sequence[Any], part: str) -> str:
    """int32 numbers and scalar tensors as a vector."""
    if not any(isinstance(each, str) for each in values):
        return w.const(values, part, int32)
    dtypes = {name: tensor.dtype for name, tensor in zip(w.inputs, w.op.inputs, strict=True)}
    elements = []
    for each in values:
        if not isinstance(each, str):
            each = w.const(each, f"{part}/element", int32)
        elif dtypes[each] is not int32:
            each = w.node("Cast", [each], f"{part}/Cast", SrcT=dtypes[each], DstT=int32)
        elements.append(each)
    return w.node("Pack", elements, part, T=int32, N=len(elements), axis=0)


# -- layers


def _format(w: Writer, first: bool) -> str:
    return "NCHW" if first else "NHWC"


def _spread(sizes: Sequence[int], first: bool) -> list[int]:
    """Sizes of a window for all four (or five) dimensions."""
    return [1, 1, *sizes] if first else [1, *sizes, 1]


def _window(w: Writer, first: bool, *keys: str) -> dict[str, Any]:
    padding = w.attrs["padding"]
    w.require(padding in ("SAME", "VALID"), f"padding {padding!r}")
    w.require(len(w.attrs["strides"]) == 2, "it has not two dimensions of space")
    spread = {key: _spread(w.attrs[key], first) for key in keys}
    return {"padding": padding, "data_format": _format(w, first), **spread}


def _bias_add(w: Writer) -> None:
    data_format = _format(w, w.attrs["channels_first"])
    w.node("BiasAdd", w.inputs, T=w.dtype(), data_format=data_format)


def _convolution(w: Writer) -> None:
    first = w.attrs["channels_first"]
    attrs = {"T": w.dtype(), **_window(w, first, "strides", "dilations")}
    kernel = w.op.inputs[1].shape.as_list() if w.op.inputs[1].shape.rank else [None]
    if w.attrs["groups"] == 1:
        w.node("Conv2D", w.inputs, **attrs)
        return
    w.require(
        None not in kernel and kernel[2] == 1, "it has groups of channels, and is not depthwise"
    )
    channels = w.attrs["groups"]
    dims = w.const([*kernel[:2], channels, kernel[3] // channels], "filter/shape", int32)
    kernels = w.node("Reshape", [w.inputs[1], dims], "filter", T=w.dtype(1), Tshape=int32)
    w.node("DepthwiseConv2dNative", [w.inputs[0], kernels], **attrs)


def _transposed_convolution(w: Writer) -> None:
    value, kernels, sizes = w.inputs
    attrs = _window(w, w.attrs["first"], "strides", "dilations")
    w.require(w.dtype(2) is int32, "the output's shape is not int32")
    w.node("Conv2DBackpropInput", [sizes, kernels, value], T=w.dtype(), **attrs)


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
        data_format=_format(w, w.attrs["channels_first"]),
        is_training=training,
    )


def _einsum(w: Writer) -> None:
    w.node("Einsum", w.inputs, T=w.dtype(), N=len(w.inputs), equation=w.attrs["equation"])


def _resize(type_: str) -> Rule:
    def rule(w: Writer) -> None:
        w.require(not w.attrs.get("preserve"), "it keeps the dtype or the ratio")
        flags = {key: w.attrs[key] for key in ("align_corners", "half_pixel_centers")}
        w.node(type_, w.inputs, T=w.dtype(), **flags)

    return rule


# -- randomness and variables


def _random(type_: str) -> Rule:
    def rule(w: Writer) -> None:
        seeds = {"seed": 0, "seed2": int(w.attrs["_seed"] or 0)}
        w.node(type_, w.inputs, T=w.dtype(), dtype=w.attrs["dtype"], **seeds)

    return rule


def _handle(w: Writer) -> None:
    attrs = {"dtype": w.attrs["dtype"], "shape": w.attrs["shape"]}
    w.node("VarHandleOp", [], container="", shared_name=w.op.name, **attrs)


def _read(w: Writer) -> None:
    w.node("ReadVariableOp", w.inputs, dtype=w.op.outputs[0].dtype)


def _assign(type_: str) -> Rule:
    def rule(w: Writer) -> list[str]:
        w.node(type_, w.inputs, dtype=w.dtype(1))
        if not w.consumed:  # TensorFlow's node has no output
            return [f"^{w.op.name}"]
        inputs = [w.inputs[0], f"^{w.op.name}"]
        return [w.node("ReadVariableOp", inputs, "value", dtype=w.dtype(1))]

    return rule


def _is_initialized(w: Writer) -> None:
    w.node("VarIsInitializedOp", [w.attrs["variable"]])


# -- tables and strings


def _table(w: Writer) -> None:
    attrs = {key: w.attrs[key] for key in ("key_dtype", "value_dtype", "shared_name")}
    w.node("HashTableV2", [], container="", use_node_name_sharing=True, **attrs)


def _on_table(type_: str, key: str, value: str, *kept: str) -> Rule:
    """A node that takes a table first.

    Args:
        type_: its type.
        key, value: what the attributes with the table's dtypes are called; '' for none.
        *kept: attributes that have the same name and meaning.
    """

    def rule(w: Writer) -> None:
        handle = _of_table(w)
        _, key_dtype, value_dtype, *_ = w.attrs["spec"]
        dtypes = {key: key_dtype, value: value_dtype} if key else {}
        w.node(type_, [handle, *w.inputs], **dtypes, **{name: w.attrs[name] for name in kept})

    return rule


def _of_table(w: Writer) -> str:
    handle = w.tables.get(w.attrs["table"])
    w.require(handle is not None, "its table is not static")
    return str(handle)


def _find_or_hash(w: Writer) -> None:
    """Ids of a vocabulary, those of hash buckets for words outside."""
    w.require(w.dtype() is string, "its keys are no strings")
    count, key = w.attrs["num_oov_buckets"], w.attrs["hash_key"]
    type_ = "StringToHashBucketStrong" if key else "StringToHashBucketFast"
    strong = {"key": list(key)} if key else {}
    part = "hash_bucket" if w.attrs["table"] else ""
    bucket = w.node(type_, w.inputs, part, num_buckets=count, **strong)
    if not w.attrs["table"]:
        return
    handle = _of_table(w)
    size = w.node("LookupTableSizeV2", [handle], "Size")
    outside = w.node("AddV2", [bucket, size], "Add", T=int64)
    missing = w.const(-1, "default", int64)
    found = w.node(
        "LookupTableFindV2", [handle, w.inputs[0], missing], "Find", Tin=string, Tout=int64
    )
    is_in = w.node("NotEqual", [found, missing], "NotEqual", T=int64)
    w.node("SelectV2", [is_in, found, outside], T=int64)


def _as_string(w: Writer) -> None:
    kept = {key: w.attrs[key] for key in ("precision", "scientific", "shortest", "width", "fill")}
    w.node("AsString", w.inputs, T=w.dtype(), **kept)


def _string_join(w: Writer) -> None:
    w.node("StringJoin", w.inputs, N=len(w.inputs), separator=w.attrs["separator"])


def _string_to_number(w: Writer) -> None:
    w.node("StringToNumber", w.inputs, out_type=w.attrs["out_type"])


def _decode_image(w: Writer) -> None:
    w.require(w.attrs["ratio"] == 1 and not w.attrs["recover"], "it decodes in its own way")
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
    return [f"{w.op.name}:{place}" if place else w.op.name for place in outputs]


RULES: dict[str, Rule] = {
    **{
        name: _typed(name)
        for name in (
            *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "Ceil", "Cos"),
            *("Cosh", "Digamma", "DivNoNan", "Elu", "Equal", "Erf", "Erfc", "Exp", "Expm1"),
            *("Floor", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "Identity", "IsFinite"),
            *("IsInf", "IsNan", "Less", "LessEqual", "Lgamma", "Log", "Log1p", "Maximum"),
            *("Minimum", "Mul", "Neg", "NotEqual", "Pow", "RealDiv", "Reciprocal", "Relu"),
            *("Relu6", "Rint", "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin", "Sinh"),
            *("Softplus", "Softsign", "Sqrt", "Square", "SquaredDifference", "Sub", "Tan"),
            *("Tanh", "TruncateDiv", "Where"),
        )
    },
    "Rank": _typed("Rank"),
    "StopGradient": _typed("StopGradient"),
    **{name: _plain(name) for name in ("LogicalAnd", "LogicalNot", "LogicalOr", "NoOp")},
    **{name: _reduction(name) for name in ("All", "Any", "Max", "Mean", "Min", "Prod", "Sum")},
    **{name: _arg(name) for name in ("ArgMax", "ArgMin")},
    **{name: _zeros_like(name) for name in ("OnesLike", "ZerosLike")},
    **{name: _last_axis(name) for name in ("Softmax", "LogSoftmax")},
    **{name: _shape(name) for name in ("Shape", "Size")},
    **{name: _pool(name) for name in ("AvgPool", "MaxPool")},
    **{name: _resize(name) for name in ("ResizeBilinear", "ResizeNearestNeighbor")},
    **{
        name: _random(name) for name in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
    },
    **{
        name: _assign(name)
        for name in ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
    },
    "Add": _add,
    "AddN": _n("AddN"),
    "AsString": _as_string,
    "BiasAdd": _bias_add,
    "BroadcastTo": _by_shape("BroadcastTo", "T", "Tidx"),
    "Cast": _cast,
    "ConcatV2": _concat,
    "Const": _const,
    "Convolution": _convolution,
    "ConvolutionBackpropInput": _transposed_convolution,
    "Cumsum": _along("Cumsum", "axis", "axis", exclusive="exclusive", reverse="reverse"),
    "DecodeImage": _decode_image,
    "DecodeRaw": _plain("DecodeRaw", "out_type", "little_endian"),
    "Einsum": _einsum,
    "ExpandDims": _along("ExpandDims", "axis", "dim"),
    "Fill": _by_shape("Fill", "T", "index_type", shape_at=0),
    "FusedBatchNormV3": _batch_norm,
    "GatherNd": _gather_nd,
    "GatherV2": _gather,
    "HashTableV2": _table,
    "IdentityN": _identity_n,
    "InitializeTableFromTextFileV2": _on_table(
        "InitializeTableFromTextFileV2",
        *("", "", "key_index", "value_index", "vocab_size", "delimiter", "offset"),
    ),
    "InitializeTableV2": _on_table("InitializeTableV2", "Tkey", "Tval"),
    "LeakyRelu": _leaky_relu,
    "LogicalXor": _xor,
    "LookupTableFindOrHash": _find_or_hash,
    "LookupTableFindV2": _on_table("LookupTableFindV2", "Tin", "Tout"),
    "LookupTableSizeV2": _on_table("LookupTableSizeV2", "", ""),
    "MatMul": _matmul,
    "OneHot": _one_hot,
    "Pack": _n("Pack", axis="axis"),
    "Pad": _pad,
    "ParseExampleV2": _parse_example,
    "Placeholder": _placeholder,
    "PlaceholderWithDefault": _placeholder_with_default,
    "Range": _range,
    "ReadVariableOp": _read,
    "RegexReplace": _plain("RegexReplace", "replace_global"),
    "Reshape": _by_shape("Reshape", "T", "Tshape"),
    "ReverseV2": _along("ReverseV2", "axes", "axis"),
    "Select": _select,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "StringJoin": _string_join,
    "StringLower": _plain("StringLower", "encoding"),
    "StringStrip": _plain("StringStrip"),
    "StringToHashBucketFast": _plain("StringToHashBucketFast", "num_buckets"),
    "StringToNumber": _string_to_number,
    "StringUpper": _plain("StringUpper", "encoding"),
    "Tile": _by_shape("Tile", "T", "Tmultiples"),
    "TopKV2": _top_k,
    "Transpose": _transpose,
    "Unpack": _unpack,
    "VarHandleOp": _handle,
    "VarIsInitializedOp": _is_initialized,
}
