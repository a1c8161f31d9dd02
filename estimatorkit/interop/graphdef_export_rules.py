"""Export rules for each op type: the table of `graphdef_export`.

Arithmetic and array operations are here, others in `graphdef_export_layers`,
`graphdef_export_columns` and `graphdef_export_loops`. Attributes that are inputs in TensorFlow
(axes, paddings, permutations) become constants below the operation's name. A rule raises
(`Writer.require`) if TensorFlow's node has different semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import complex64, complex128, int32, string
from estimatorkit.core.indexed_slices import may_hold_surplus
from estimatorkit.interop.graphdef_export_columns import COLUMN_RULES
from estimatorkit.interop.graphdef_export_layers import LAYER_RULES
from estimatorkit.interop.graphdef_export_loops import LOOP_RULES
from estimatorkit.interop.graphdef_writer import Rule, Writer, plain, rows
from estimatorkit.ops.math.axes import input_of

# Rules by node signature.


def _reduction(type_: str) -> Rule:
    def rule(w: Writer) -> None:
        places, of = w.number("axis", "reduction_indices")
        dtype = {} if type_ in ("All", "Any") else {"T": w.dtype()}
        keep = w.attrs["keepdims"]
        w.node(type_, [w.inputs[0], places], Tidx=of, keep_dims=keep, **dtype)

    return rule


def _arg(type_: str) -> Rule:
    def rule(w: Writer) -> None:
        place, of = w.number("axis", "dimension")
        inputs = [w.inputs[0], place]
        w.node(type_, inputs, T=w.dtype(), Tidx=of, output_type=w.attrs["dtype"])

    return rule


def _along(type_: str, key: str, part: str, **rest: str) -> Rule:
    """Returns the rule of a node with one input and an axis, which is an input in TensorFlow.

    `key` is the axis attribute here, `part` the constant's name, and `rest` maps TensorFlow's
    attribute names to those here.
    """

    def rule(w: Writer) -> None:
        place, of = w.number(key, part)
        dtype = "Tdim" if type_ == "ExpandDims" else "Tidx"
        kept = {theirs: w.attrs[ours] for theirs, ours in rest.items()}
        w.node(type_, [w.inputs[0], place], T=w.dtype(), **{dtype: of}, **kept)

    return rule


def _add(w: Writer) -> None:
    w.node("Add" if w.dtype() is string else "AddV2", w.inputs, T=w.dtype())


def _zeros_like(type_: str) -> Rule:
    def rule(w: Writer) -> None:
        source, dtype = w.inputs[0], w.attrs["dtype"]
        if dtype is not w.dtype():
            source = w.node("Cast", [source], "Cast", SrcT=w.dtype(), DstT=dtype)
        w.node(type_, [source], T=dtype)

    return rule


def _select(w: Writer) -> None:
    rows = w.op.inputs[0].shape.rank in (1, None) and w.op.inputs[1].shape.rank != 1
    v1 = rows and w.op.type == "Select"
    w.node("Select" if v1 else "SelectV2", w.inputs, T=w.dtype(1))


def _const(w: Writer) -> None:
    w.const(w.attrs["value"], "")


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
        w.require(w.attrs["axis"] in (-1, w.rank() - 1), "its axis is not the last")
        w.node(type_, w.inputs, T=w.dtype())

    return rule


def _squeeze(w: Writer) -> None:
    w.node("Squeeze", w.inputs, T=w.dtype(), squeeze_dims=list(w.attrs["axis"] or ()))


def _transpose(w: Writer) -> None:
    if w.attrs["perm"] is None:
        order, of = w.const(list(range(w.rank()))[::-1], "perm", int32), int32
    else:
        order, of = w.number("perm", "perm")
    w.node("Transpose", [w.inputs[0], order], T=w.dtype(), Tperm=of)


def _concat(w: Writer) -> None:
    axis, of = w.number("axis", "axis")
    values = [each for each in w.inputs if each != axis]
    w.node("ConcatV2", [*values, axis], T=w.dtype(), N=len(values), Tidx=of)


def _split(w: Writer) -> None:
    sizes, (axis, of) = w.attrs["sizes"], w.number("axis", "split_dim")
    w.require(of is int32, "its axis is not of int32")
    if sizes[0] is None:  # equal parts of a length known only at run time
        w.node("Split", [axis, w.inputs[0]], T=w.dtype(), num_split=len(sizes))
        return
    inputs = [w.inputs[0], w.const(sizes, "size_splits", int32), axis]
    w.node("SplitV", inputs, T=w.dtype(), Tlen=int32, num_split=len(sizes))


def _gather(w: Writer) -> None:
    params, indices = w.inputs[:2]
    axis, of = w.number("axis", "axis")
    dims = w.op.inputs[0].shape.dims if axis not in w.inputs else None
    if dims is not None and may_hold_surplus(w.op.inputs[1]):
        # Here the row past the end is clamped to the last row; in TensorFlow it is an error.
        dtype, size = w.dtype(1), dims[w.attrs["axis"]]
        if size is None:
            zero, one = w.const(0, "zero", int32), w.const(1, "one", dtype)
            shape = w.node("Shape", [params], "shape", T=w.dtype(), out_type=dtype)
            kinds = {"Tparams": dtype, "Tindices": int32, "Taxis": int32}
            end = w.node("GatherV2", [shape, axis, zero], "size", batch_dims=0, **kinds)
            last = w.node("Sub", [end, one], "last", T=dtype)
        else:
            last = w.const(size - 1, "last", dtype)
        indices = w.node("Minimum", [indices, last], "Minimum", T=dtype)
    dtypes = {"Tparams": w.dtype(), "Tindices": w.dtype(1), "Taxis": of}
    w.node("GatherV2", [params, indices, axis], batch_dims=w.attrs["batch_dims"], **dtypes)


def _one_hot(w: Writer) -> None:
    depth = w.const(w.attrs["depth"], "depth", int32)
    indices, *values = w.inputs
    attrs = {"T": w.dtype(1), "TI": w.dtype(), "axis": w.attrs["axis"]}
    w.node("OneHot", [indices, depth, *values], **attrs)


def _pad(w: Writer) -> None:
    mode, value = w.attrs["mode"].upper(), w.attrs["constant_values"]
    inputs = list(w.inputs)
    filler = [inputs.pop()] if value is None else []
    if "paddings" in w.attrs:
        inputs.append(w.const(w.attrs["paddings"], "paddings", int32))
    widths = int32 if "paddings" in w.attrs else w.dtype(1)
    if mode != "CONSTANT":
        w.node("MirrorPad", inputs[:2], T=w.dtype(), Tpaddings=widths, mode=mode)
    elif filler or np.any(value):
        inputs += filler or [w.const(value, "constant_values", w.dtype())]
        w.node("PadV2", inputs, T=w.dtype(), Tpaddings=widths)
    else:
        w.node("Pad", inputs, T=w.dtype(), Tpaddings=widths)


def _top_k(w: Writer) -> None:
    w.node("TopKV2", w.inputs, T=w.dtype(), sorted=True)


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
    """Packs int32 numbers and scalar tensors into a vector."""
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


def _log_sum_exp(w: Writer) -> None:
    axes = w.attrs["axis"]
    w.require(input_of(axes) is None, "its axes are not constant")
    axes = list(range(w.rank()) if axes is None else axes)
    dtype = w.dtype()
    places = w.const(axes, "reduction_indices", int32)
    reduced = {"T": dtype, "Tidx": int32, "keep_dims": True}
    most = w.node("Max", [w.inputs[0], places], "Max", **reduced)
    finite = w.node("IsFinite", [most], "IsFinite", T=dtype)
    zero = w.node("ZerosLike", [most], "zeros_like", T=dtype)
    most = w.node("SelectV2", [finite, most, zero], "Select", T=dtype)
    powers = w.node("Exp", [w.node("Sub", [w.inputs[0], most], "Sub", T=dtype)], "Exp", T=dtype)
    total = w.node("Log", [w.node("Sum", [powers, places], "Sum", **reduced)], "Log", T=dtype)
    if w.attrs["keepdims"]:
        w.node("AddV2", [total, most], T=dtype)
        return
    whole = w.node("AddV2", [total, most], "Add", T=dtype)
    w.node("Squeeze", [whole], T=dtype, squeeze_dims=axes)


def _sparse_to_dense(w: Writer) -> list[str]:
    attrs = {"T": w.dtype(2), "Tindices": w.dtype()}
    name = w.node("SparseToDense", w.inputs, validate_indices=w.attrs["validate_indices"], **attrs)
    return [name, f"^{name}"]  # the second output is for gradients


RULES: dict[str, Rule] = {
    **rows(
        partial(plain, dtypes="T"),
        "Abs Acos Acosh Asin Asinh Atan Atan2 Atanh BitwiseAnd Ceil Cos Cosh Digamma DivNoNan Elu "
        "Equal Erf Erfc Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Identity IsFinite "
        "IsInf IsNan Less LessEqual Lgamma Log Log1p Maximum Minimum Mul Neg NotEqual Pow Rank "
        "RealDiv Reciprocal Relu Relu6 RightShift Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh "
        "Softplus Softsign Sqrt Square SquaredDifference StopGradient Sub Tan Tanh TruncateDiv "
        "Where",
    ),
    **rows(plain, "LogicalAnd LogicalNot LogicalOr NoOp"),
    **rows(_reduction, "All Any Max Mean Min Prod Sum"),
    **rows(_arg, "ArgMax ArgMin"),
    **rows(_zeros_like, "OnesLike ZerosLike"),
    **rows(_last_axis, "Softmax LogSoftmax"),
    **rows(partial(plain, dtypes="T", kept="out_type=dtype"), "Shape Size"),
    **rows(
        partial(plain, dtypes="T Tindices Tnumsegments"),
        "UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum",
    ),
    "Add": _add,
    "AddN": plain("AddN", "T", "N"),
    "Bitcast": plain("Bitcast", "T", "type=dtype"),
    "BroadcastTo": plain("BroadcastTo", "T Tidx"),
    "Cast": plain("Cast", "SrcT", "DstT=dtype"),
    "Checked": plain("Identity", "T"),
    "CheckedOnHost": plain("Identity", "T"),
    "ConcatV2": _concat,
    "Const": _const,
    "Cumprod": _along("Cumprod", "axis", "axis", exclusive="exclusive", reverse="reverse"),
    "Cumsum": _along("Cumsum", "axis", "axis", exclusive="exclusive", reverse="reverse"),
    "Einsum": plain("Einsum", "T", "N equation"),
    "ExpandDims": _along("ExpandDims", "axis", "dim"),
    "Fill": plain("Fill", "index_type T"),
    "GatherNd": plain("GatherNd", "Tparams Tindices"),
    "GatherV2": _gather,
    "IdentityN": _identity_n,
    "LeakyRelu": _leaky_relu,
    "LogSumExp": _log_sum_exp,
    "LogicalXor": plain("NotEqual", "T"),
    "MatMul": _matmul,
    "OneHot": _one_hot,
    "Pack": plain("Pack", "T", "N axis"),
    "Pad": _pad,
    "PadComputed": _pad,
    "Placeholder": plain("Placeholder", "", "dtype shape"),
    "PlaceholderWithDefault": plain("PlaceholderWithDefault", "dtype", "shape"),
    "Range": plain("Range", "Tidx"),
    "Reshape": plain("Reshape", "T Tshape"),
    "ReverseV2": _along("ReverseV2", "axes", "axis"),
    "ScatterNd": plain("ScatterNd", "Tindices T"),
    "Select": _select,
    "SelectV2": _select,
    "Slice": plain("Slice", "T Index"),
    "SparseToDense": _sparse_to_dense,
    "Split": _split,
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Tile": plain("Tile", "T Tmultiples"),
    "TopKV2": _top_k,
    "Transpose": _transpose,
    "Unique": plain("UniqueWithCounts", "T", "out_idx=dtype"),
    "Unpack": plain("Unpack", "T", "num axis"),
    **LAYER_RULES,
    **COLUMN_RULES,
    **LOOP_RULES,
}
