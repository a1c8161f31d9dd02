"""Splitting, joining and formatting of strings.

There is no RaggedTensor: where TensorFlow returns one, splitting a tensor of rank N returns a
`SparseTensor` of rank N + 1, and splitting a scalar a vector. All run on the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import DType, string
from estimatorkit.core.errors import InvalidArgumentError, OutOfRangeError, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, apply, constant_value, fixed, output, register
from estimatorkit.core.shapes import SCALAR, UNKNOWN, TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.debug.summarize import summarize_ends
from estimatorkit.ops.text.sparse_rows import rows_as_sparse, sparse_specs
from estimatorkit.ops.text.strings import one_of, register_string_op, string_array

# -- pieces of strings


def _infer_sparse(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    rank = inputs[0].shape.rank
    return sparse_specs(None if rank is None else rank + 1, attrs.get("dtype", string))


def split_row(
    op_type: str,
    splitter: Callable[..., Callable[[bytes], Sequence[Any]]],
    cases: Callable[[], Sequence[Case]],
) -> None:
    def kernel(value: Any, *rest: Any, dtype: DType = string, **attrs: Any) -> list[Any]:
        array = string_array(value)
        split = splitter(*(string_array(each)[()] for each in rest), **attrs)
        rows = [split(text) for text in array.reshape(-1).tolist()]
        return rows_as_sparse(rows, array.shape, dtype)

    register_string_op(op_type, kernel, cases, _infer_sparse)


def _splitter_at_any(delimiters: bytes, skip_empty: bool) -> Callable[[bytes], Sequence[bytes]]:
    """Splits at any byte of `delimiters`; if empty, at every byte. `b""` has no pieces."""
    if not delimiters:
        return _bytes_of
    first = delimiters[:1]
    rest = bytes.maketrans(delimiters, first * len(delimiters))

    def split(text: bytes) -> Sequence[bytes]:
        found = text.translate(rest).split(first) if text else []
        return [piece for piece in found if piece] if skip_empty else found

    return split


def _splitter_at(separator: bytes, maxsplit: int) -> Callable[[bytes], Sequence[bytes]]:
    if separator or maxsplit < 0:
        return lambda text: text.split(separator or None, maxsplit)
    if maxsplit == 0:
        return lambda text: [text]

    def split(text: bytes) -> Sequence[bytes]:
        """As TensorFlow, which keeps the rest after `maxsplit` words though it is empty."""
        found = text.split(None, maxsplit)
        return [*found, b""] if len(found) == maxsplit else found

    return split


def _bytes_of(text: bytes) -> Sequence[bytes]:
    return [text[place : place + 1] for place in range(len(text))]


_LINES = np.array([b"a b,c", b"", b"d"], object)
split_row(
    "StringSplit",
    lambda delimiter, skip_empty: _splitter_at_any(delimiter, skip_empty),
    lambda: [
        Case(
            (_LINES, np.array(b" ,", object)),
            {"skip_empty": True},
            (
                np.array([[0, 0], [0, 1], [0, 2], [2, 0]]),
                np.array([b"a", b"b", b"c", b"d"], object),
                np.array([3, 3]),
            ),
        )
    ],
)
split_row(
    "StringSplitV2",
    lambda separator, maxsplit: _splitter_at(separator, maxsplit),
    lambda: [
        Case(
            (_LINES, np.array(b"", object)),
            {"maxsplit": -1},
            (
                np.array([[0, 0], [0, 1], [2, 0]]),
                np.array([b"a", b"b,c", b"d"], object),
                np.array([3, 2]),
            ),
        ),
        Case(
            (np.array(b"a,b,c", object), np.array(b",", object)),
            {"maxsplit": 1},
            (np.array([[0], [1]]), np.array([b"a", b"b,c"], object), np.array([2])),
        ),
    ],
)
split_row(
    "StringBytesSplit",
    lambda: _bytes_of,
    lambda: [
        Case(
            (np.array([b"ab"], object),),
            {},
            (np.array([[0, 0], [0, 1]]), np.array([b"a", b"b"], object), np.array([1, 2])),
        )
    ],
)


def string_split(
    source: Any,
    sep: Any = None,
    skip_empty: bool = True,
    delimiter: Any = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> SparseTensor:
    """Splits strings at delimiters: a sparse tensor `(len(source), longest)`.

    Source: `tf.compat.v1.string_split`. See `strings.split` for a multi-character separator.

    Args:
        source: a vector of strings.
        sep: the delimiters, one per byte; ' ' by default; '' splits at every byte.
        skip_empty: whether to drop empty pieces.
        delimiter: deprecated alias of `sep`.
        result_type: 'SparseTensor' (there is no RaggedTensor).
    """
    _only_sparse(result_type)
    chosen = sep if delimiter is None else delimiter
    with get_default_graph().name_scope(name or "StringSplit") as scope:
        values = convert_to_tensor(source, string, "source")
        values.shape.with_rank(1)
        separators = convert_to_tensor(" " if chosen is None else chosen, string, "delimiter")
        attrs = {"skip_empty": bool(skip_empty)}
        return SparseTensor(*apply("StringSplit", [values, separators], attrs, scope).outputs)


def split(
    input: Any = None,
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> Any:
    """Splits strings at separators, like Python's `bytes.split`.

    Source: `tf.compat.v1.strings.split`; differs in that splitting a scalar returns a vector.

    Args:
        input: strings of any rank N.
        sep: the separator; by default, or if empty, runs of whitespace.
        maxsplit: the maximum number of splits; unlimited if negative.
        result_type: 'SparseTensor' (there is no RaggedTensor).
        source: deprecated alias of `input`.

    Returns:
        A sparse tensor of rank N + 1; a vector if `input` is a scalar.
    """
    _only_sparse(result_type)
    with get_default_graph().name_scope(name or "StringSplit") as scope:
        values = convert_to_tensor(source if input is None else input, string, "input")
        separator = convert_to_tensor("" if sep is None else sep, string, "sep")
        outputs = apply("StringSplitV2", [values, separator], {"maxsplit": int(maxsplit)}, scope)
        return pieces(values, outputs.outputs)


def bytes_split(input: Any, name: str | None = None) -> Any:
    """Splits strings into bytes; the result has the form of that of `split`."""
    values = convert_to_tensor(input, string, "input")
    return pieces(values, apply("StringBytesSplit", [values], {}, name).outputs)


def _only_sparse(result_type: str) -> None:
    if result_type == "RaggedTensor":
        raise value_error(
            "there is no RaggedTensor",
            expected="result_type='SparseTensor'",
            received="result_type='RaggedTensor'",
            hint="sparse_tensor_to_dense(split(...), '') pads the pieces to one length",
        )
    one_of("result_type", result_type, ("SparseTensor",))


def pieces(values: Tensor, outputs: Sequence[Tensor]) -> Any:
    if values.shape.rank is None:
        raise value_error(
            "the rank of the strings to split must be known",
            received=values,
            made_at=values.op.source,
            hint="use set_shape on it",
        )
    return SparseTensor(*outputs) if values.shape.rank else outputs[1]


# -- joins


def _join(*values: Any, separator: str | bytes) -> NDArray[Any]:
    arrays = [string_array(value) for value in values]
    shapes = {array.shape for array in arrays if array.ndim}
    if len(shapes) > 1:
        raise ValueError(f"Input shapes do not match: {sorted(shapes)}")
    joined = np.empty(shapes.pop() if shapes else (), object)
    columns = [np.broadcast_to(array, joined.shape).reshape(-1).tolist() for array in arrays]
    glue = _bytes(separator)
    joined.reshape(-1)[:] = [glue.join(parts) for parts in zip(*columns, strict=True)]
    return joined


def _infer_join(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    shape = SCALAR if all(tensor.shape.rank == 0 for tensor in inputs) else UNKNOWN
    for tensor in inputs:
        if tensor.shape.rank:
            try:
                shape = shape.merge_with(tensor.shape)
            except ValueError as error:
                raise value_error(
                    "string_join: the shapes must be equal (scalars broadcast)",
                    received=", ".join(f"{each.name} {each.shape}" for each in inputs),
                    made_at=tensor.op.source,
                ) from error
    return [Spec(string, shape)]


register_string_op(
    "StringJoin",
    _join,
    lambda: [
        Case(
            (np.array([b"a", b"b"], object), np.array(b"c", object)),
            {"separator": "-"},
            np.array([b"a-c", b"b-c"], object),
        )
    ],
    _infer_join,
    broadcasts=True,
)


def _attribute(value: str | bytes) -> str | bytes:
    """A string attribute: text if it is valid UTF-8, which is readable in graph files."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def string_join(inputs: Any, separator: str | bytes = "", name: str | None = None) -> Tensor:
    """Joins strings of several tensors elementwise.

    Args:
        inputs: tensors of one shape; scalars broadcast.
        separator: what to insert between two strings.
    """
    given = {f"inputs_{position}": value for position, value in enumerate(inputs)}
    if not given:
        return convert_to_tensor("", string, name)
    attrs = {"separator": _attribute(separator)}
    return make("StringJoin", given, attrs, name, dtypes=dict.fromkeys(given, string))


def _joined_axes(axes: Sequence[int], rank: int) -> list[int]:
    found = []
    for each in axes:
        if not -rank <= each < rank:
            problem = f"Invalid reduction dimension {each} for input with {rank} dimension(s)"
            raise OutOfRangeError(None, None, problem)
        if each % rank in found:
            problem = f"Duplicate reduction dimension {each % rank}"
            raise InvalidArgumentError(None, None, problem)
        found.append(each % rank)
    return found


def _reduce_join(value: Any, axis: Any, keep_dims: bool, separator: str | bytes) -> NDArray[Any]:
    array = string_array(value)
    axes = _joined_axes(np.reshape(axis, -1).tolist(), array.ndim)
    kept = [each for each in range(array.ndim) if each not in axes]
    # The first of `axes` is joined first: it varies fastest.
    ordered = array.transpose([*kept, *reversed(axes)])
    count = math.prod(array.shape[each] for each in axes)
    rows = ordered.reshape(*(array.shape[each] for each in kept), count)
    glue = _bytes(separator)
    joined = np.empty(rows.shape[:-1], object)
    flat = rows.reshape(joined.size, -1) if rows.size else np.empty((joined.size, 0), object)
    joined.reshape(-1)[:] = [glue.join(row) for row in flat.tolist()]
    if keep_dims:
        shape = [1 if at in axes else size for at, size in enumerate(array.shape)]
        return joined.reshape(shape)
    return joined


def _infer_reduce_join(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    dims, axis = inputs[0].shape.dims, constant_value(inputs[1])
    if dims is None or (axis is None and not attrs["keep_dims"]):
        return [Spec(string, UNKNOWN)]
    if axis is None:
        return [Spec(string, TensorShape([None] * len(dims)))]
    wanted = np.reshape(axis, -1).tolist()
    wrong = [each for each in wanted if not -len(dims) <= each < len(dims)]
    if wrong:
        raise value_error(
            f"Invalid reduction dimension {wrong[0]} for input with {len(dims)} dimension(s)",
            received=inputs[0],
            made_at=inputs[0].op.source,
        )
    axes = {each % len(dims) for each in wanted}
    kept = [1 if at in axes else dim for at, dim in enumerate(dims)]
    if not attrs["keep_dims"]:
        kept = [dim for at, dim in enumerate(dims) if at not in axes]
    return [Spec(string, TensorShape(kept))]


_TABLE = np.array([[b"a", b"b"], [b"c", b"d"]], object)
register_string_op(
    "ReduceJoin",
    _reduce_join,
    lambda: [
        Case(
            (_TABLE, np.array(0)),
            {"keep_dims": False, "separator": "-"},
            np.array([b"a-c", b"b-d"], object),
        ),
        Case(
            (_TABLE, np.array([0, -1])),
            {"keep_dims": True, "separator": ""},
            np.array([[b"acbd"]], object),
        ),
    ],
    _infer_reduce_join,
)


def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str | bytes = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Joins strings along axes.

    Args:
        inputs: strings.
        axis: the axis or axes, the first joined first; by default all, in row-major order.
        keep_dims: whether to keep the axes with length 1.
        separator: what to insert between two strings.
        reduction_indices: deprecated alias of `axis`.
        keepdims: alias of `keep_dims`.
    """
    with get_default_graph().name_scope(name or "ReduceJoin") as scope:
        values = convert_to_tensor(inputs, string, "inputs")
        axis = reduction_indices if axis is None else axis
        if axis is None:
            rank = values.shape.rank
            if rank is None:
                raise value_error(
                    "reduce_join: the rank must be known if no axis is given",
                    received=values,
                    made_at=values.op.source,
                )
            axis = np.arange(rank - 1, -1, -1, dtype=np.int32)
        axes = convert_to_tensor(axis, name="reduction_indices")
        attrs = {"keep_dims": bool(keepdims or keep_dims), "separator": _attribute(separator)}
        return output("ReduceJoin", [values, axes], attrs, scope)


# -- templates


def _format(*values: Any, template: str, placeholder: str, summarize: int) -> NDArray[Any]:
    texts = iter([summarize_ends(np.asarray(value), summarize) for value in values])
    first, *rest = template.split(placeholder)
    text = first + "".join(next(texts) + part for part in rest)
    return string_array(text.encode())


register(
    "StringFormat",
    _format,
    infer=fixed(string),
    gradient=None,
    where="host",
    cases=lambda: [
        Case(
            (np.arange(8), np.array(1.5)),
            {"template": "x: {}, y: {}", "placeholder": "{}", "summarize": 2},
            np.array(b"x: [0 1 ... 6 7], y: 1.5", object),
        )
    ],
)


def string_format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Tensor:
    """Fills a template with the values of tensors; returns a scalar string.

    Args:
        template: text with placeholders.
        inputs: a tensor, or a nested structure with one tensor per placeholder.
        placeholder: the text to replace.
        summarize: the number of elements to print at each end of a dimension; all if negative.

    Raises:
        ValueError: the numbers of placeholders and tensors differ.
    """
    is_list = isinstance(inputs, (list, tuple)) and not _is_one_tensor(inputs)
    given = nest.flatten(inputs) if is_list else [inputs]
    count = template.count(placeholder)
    if count != len(given):
        raise value_error(
            f"The template expects {count} tensors, but the inputs only has {len(given)}",
            expected=f"a tensor for each {placeholder!r}",
            received=repr(template),
        )
    tensors = [convert_to_tensor(value, name="inputs") for value in given]
    attrs = {"template": template, "placeholder": placeholder, "summarize": int(summarize)}
    return output("StringFormat", tensors, attrs, name)


def _is_one_tensor(inputs: Any) -> bool:
    """Whether a list is the value of one tensor, not a list of tensors."""
    return bool(inputs) and not any(
        isinstance(each, Tensor) or hasattr(each, "_as_tensor") for each in nest.flatten(inputs)
    )
