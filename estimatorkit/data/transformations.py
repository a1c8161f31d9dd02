"""Argument checks and construction of the more complex `Dataset` transformations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from estimatorkit.core import nest
from estimatorkit.core.dtypes import int64, string
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.shapes import Dimension, TensorShape, UnknownDimension, as_shape
from estimatorkit.core.sparse_tensor import SparseTensor, SparseTensorValue
from estimatorkit.core.tensor import Tensor
from estimatorkit.data.execution.grouping import GroupByReducer, GroupByWindow, Scan
from estimatorkit.data.parameters import Pending, integer, parameter, then
from estimatorkit.data.plan import Plan
from estimatorkit.data.spec import (
    DatasetSpec,
    SparseTensorSpec,
    TensorSpec,
    either,
    flatten,
    flatten_as,
    leaf_names,
    pack,
)
from estimatorkit.data.tracing import trace_function

if TYPE_CHECKING:
    from estimatorkit.data.dataset import Dataset


def check_dataset(what: str, spec: Any) -> None:
    """Raises TypeError if a function's result spec does not describe a dataset."""
    if not isinstance(spec, DatasetSpec):
        raise type_error(
            f"{what}(): the function must return a `Dataset` object",
            expected="a Dataset",
            received=spec,
            hint="use map() for functions that return tensors",
        )


def unbatched(spec: Any) -> Any:
    """The spec of a slice of a leaf.

    Raises:
        ValueError: the leaf is a scalar.
    """
    if isinstance(spec, DatasetSpec) or spec.shape.rank == 0:
        raise value_error(
            "Cannot unbatch an input with scalar components.",
            expected="components of rank 1 or more",
            received=spec,
        )
    return type(spec)(None if spec.shape.rank is None else spec.shape[1:], spec.dtype)


def padding(element_spec: Any, padded_shapes: Any, padding_values: Any) -> tuple[Any, Any]:
    """The shapes and values of `padded_batch`, one per component.

    Raises:
        ValueError: a rank is unknown, or a shape does not fit a component.
        TypeError: a component cannot be padded, or a value has another dtype.
    """
    specs = flatten(element_spec)
    names = leaf_names(element_spec)
    for spec, name in zip(specs, names, strict=True):
        if not isinstance(spec, TensorSpec):
            raise type_error(
                f"Batching of padded sparse tensors is not currently supported ({name})",
                received=spec,
                hint="use batch(), or call sparse.to_dense() first",
            )
    shapes = [spec.shape for spec in specs]
    if padded_shapes is not None:
        shapes = _as_nested(element_spec, padded_shapes, "padded_shapes")
    values = [None] * len(specs)
    if padding_values is not None:
        if len(specs) > 1 and not nest.is_nested(padding_values):
            values = [padding_values] * len(specs)  # one for all components, as in TensorFlow
        else:
            values = flatten_as(element_spec, padding_values)
    chosen = [
        _padded_shape(shape, spec, name)
        for shape, spec, name in zip(shapes, specs, names, strict=True)
    ]
    filled = [
        _padding_value(value, spec, name)
        for value, spec, name in zip(values, specs, names, strict=True)
    ]
    return tuple(chosen), tuple(filled)


def _as_nested(element_spec: Any, value: Any, what: str) -> list[Any]:
    try:
        return flatten_as(element_spec, value)
    except ValueError as error:
        raise value_error(
            f"padded_batch(): {what} do not have the structure of the elements",
            expected=f"one for each leaf of {element_spec}",
            received=repr(value),
        ) from error


def _padded_shape(shape: Any, spec: TensorSpec, name: str) -> Any:
    if isinstance(shape, Tensor):
        if shape.shape.rank not in (1, None) or not shape.dtype.is_integer:
            raise (ValueError if shape.dtype.is_integer else TypeError)(
                f"Padded shape {shape} must be a `tf.int64` vector tensor, but its shape was "
                f"{shape.shape}."
            )
        pending = parameter(shape, None, "padded_batch(): padded_shapes")
        return then(
            pending,
            lambda found: tuple(None if dim < 0 else int(dim) for dim in np.atleast_1d(found)),
        )
    wanted = _shape_of(shape)
    if wanted.rank is None:
        raise value_error(
            "You must provide `padded_shapes` argument because a component has unknown rank: the "
            f"rank of {name} in padded_batch()",
            received=spec,
            hint="give padded_shapes=",
        )
    if not spec.shape.is_compatible_with([None] * wanted.rank):
        raise value_error(
            f"The padded shape {wanted} is not compatible with the corresponding input "
            f"component shape {spec.shape} ({name}).",
            expected=f"rank {spec.shape.rank}",
        )
    for dim, known in zip(wanted, spec.shape if spec.shape.rank else wanted, strict=True):
        if dim is not None and known is not None and dim < known:
            raise ValueError(
                f"The padded shape {wanted} is not compatible with the corresponding input "
                f"component shape {spec.shape} ({name})."
            )
    return tuple(wanted)


def _shape_of(shape: Any) -> TensorShape:
    if isinstance(shape, TensorShape):
        return shape
    if shape is None:
        return as_shape(None)
    if isinstance(shape, (list, tuple)) and any(
        isinstance(dim, (Dimension, UnknownDimension)) for dim in shape
    ):
        return TensorShape(shape)
    dims = np.atleast_1d(np.asarray(shape, object))
    if dims.ndim > 1 and None not in dims.ravel().tolist():
        raise ValueError(
            f"Padded shape {shape} must be a `tf.int64` vector tensor, but its shape was "
            f"{dims.shape}."
        )
    if dims.ndim > 1 or not all(dim is None or hasattr(dim, "__index__") for dim in dims.flat):
        raise type_error(
            f"Padded shape {shape} must be a `tf.int64` vector tensor in padded_batch()",
            expected="numbers and None, one for each dimension of the component",
            received=repr(shape),
        )
    return TensorShape([None if dim is None or dim < 0 else int(dim) for dim in dims])


def _padding_value(value: Any, spec: TensorSpec, name: str) -> Any:
    what = f"Invalid `padding_values`. The value for {name} in padded_batch()"
    if value is None:
        return b"" if spec.dtype is string else spec.dtype.numpy_dtype.type(0)
    if isinstance(value, Tensor):
        return then(parameter(value, spec.dtype, what), lambda found: found[()])
    given = np.asarray(value.encode() if isinstance(value, str) else value)
    fits = (given.dtype.kind in "SO") == (spec.dtype is string)
    fits = fits and (
        spec.dtype is string or np.can_cast(given.dtype, spec.dtype.numpy_dtype, "same_kind")
    )
    if given.ndim:
        raise value_error(
            "Invalid `padding_values`. `padding_values` values should be scalars",
            received=repr(value),
        )
    if not fits:
        raise type_error(
            f"{what} does not match the type of the corresponding input component",
            expected=f"a scalar {spec.dtype.name}",
            received=repr(value),
        )
    return given.item() if spec.dtype is string else given.astype(spec.dtype.numpy_dtype)[()]


def group_plan(
    source: Plan,
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: Any,
    window_size_func: Callable[[Any], Any] | None,
) -> Plan:
    """The plan of `group_by_window`."""
    if (window_size is None) == (window_size_func is None):
        raise ValueError(
            "Either the `window_size` argument or the `window_size_func` argument must be "
            "specified."
        )
    if window_size_func is None:
        size = integer(
            "group_by_window(): window_size",
            window_size,
            least=1,
            rule="Window size must be greater than zero",
        )

        def window_size_func(key: Any) -> Any:
            return np.int64(size) if not isinstance(size, Pending) else window_size

    from estimatorkit.ops.math.elementwise import cast

    of_size = window_size_func
    keys = _keys(source, key_func, "group_by_window()")
    key_spec = TensorSpec((), int64)
    sizes = trace_function(lambda key: cast(of_size(key), int64), key_spec)
    _check_scalar("group_by_window(): window_size_func", sizes.output_spec)
    elements = DatasetSpec(source.element_spec)
    reduced = trace_function(reduce_func, (key_spec, elements), unpack=False)
    check_dataset("group_by_window", reduced.output_spec)
    return GroupByWindow(source, keys, reduced, sizes)


def _keys(source: Plan, key_func: Callable[..., Any], what: str) -> Any:
    """The traced function of the key: a scalar int64, or a Python integer."""

    def key(*element: Any) -> Any:
        found = key_func(*element)
        return np.int64(found) if isinstance(found, int) else found

    keys = trace_function(key, source.element_spec)
    _check_scalar(f"{what}: key_func", keys.output_spec)
    return keys


def reducer_plan(source: Plan, key_func: Callable[..., Any], reducer: Any) -> Plan:
    """The plan of `group_by_reducer`."""
    keys = _keys(source, key_func, "group_by_reducer()")
    initial = trace_function(reducer.init_func, TensorSpec((), int64))
    state_spec = initial.output_spec
    for _ in range(2):  # retraced with the shapes that cover all states
        inputs = (state_spec, source.element_spec)
        reduced = trace_function(reducer.reduce_func, inputs, unpack=False)
        specs, grown = merged_states("group_by_reducer()", state_spec, reduced.output_spec)
        if not grown:
            break
        state_spec = pack(state_spec, specs)
    finalize = trace_function(reducer.finalize_func, state_spec)
    return GroupByReducer(source, keys, initial, reduced, finalize)


def _check_scalar(what: str, spec: Any) -> None:
    if not isinstance(spec, TensorSpec) or not spec.is_compatible_with(TensorSpec((), int64)):
        raise value_error(
            f"{what} must return a single int64 scalar tensor",
            expected=TensorSpec((), int64),
            received=spec,
            hint="use cast(x, int64)",
        )


def scan_plan(source: Plan, initial_state: Any, scan_func: Callable[..., Any]) -> Plan:
    """The plan of `scan`."""
    structure, initial, specs = initial_values(initial_state, "scan()")
    for _ in range(2):  # retraced with the shapes that cover all states
        state_spec = pack(structure, specs)
        traced = trace_function(scan_func, (state_spec, source.element_spec), unpack=False)
        spec = traced.output_spec
        if type(spec) is not tuple or len(spec) != 2:
            raise type_error(
                "Invalid `scan_func`. It must return a pair: the new state and the output",
                received=spec,
            )
        specs, grown = merged_states("scan()", state_spec, spec[0])
        if not grown:
            break
    return Scan(source, traced, tuple(initial))


def initial_values(initial_state: Any, what: str) -> tuple[Any, list[Any], list[Any]]:
    """The structure of an initial state, and the parameters and specs of its leaves; a sparse leaf
    has three parameters.
    """
    leaves = flatten(initial_state)
    parameters = [_initial(leaf, f"{what}: initial_state") for leaf in leaves]
    specs = [_spec_of(leaf, made) for leaf, made in zip(leaves, parameters, strict=True)]
    return pack(initial_state, list(range(len(leaves)))), parameters, specs


def _initial(leaf: Any, what: str) -> Any:
    if isinstance(leaf, (SparseTensor, SparseTensorValue)):
        dtypes = (int64, None, int64)
        parts = zip((leaf.indices, leaf.values, leaf.dense_shape), dtypes, strict=True)
        return tuple(parameter(part, dtype, what) for part, dtype in parts)
    return parameter(leaf, None, what)


def _spec_of(leaf: Any, made: Any) -> Any:
    if isinstance(leaf, SparseTensor):
        return SparseTensorSpec(leaf.shape, leaf.dtype)
    if isinstance(leaf, SparseTensorValue):
        return SparseTensorSpec(list(leaf.dense_shape), made[1].dtype)
    given = leaf if isinstance(made, Pending) else made
    return TensorSpec(given.shape, given.dtype)


def merged_states(what: str, state_spec: Any, result: Any) -> tuple[list[Any], bool]:
    """The specs that cover both the current and the returned state, and whether they are wider.

    Raises:
        TypeError: they differ in structure or dtypes.
    """
    before = flatten(state_spec)
    try:
        nest.assert_same_structure(state_spec, result, lists_are_leaves=True)
        after = flatten(result)
        alike = all(one.dtype is two.dtype for one, two in zip(before, after, strict=True))
    except (TypeError, ValueError):
        alike = False
    if not alike:
        raise type_error(
            f"The element types for the new state must match the initial state: {what}: the "
            "function returns a state that differs from its argument",
            expected=state_spec,
            received=result,
        )
    wider = [either(one, two) for one, two in zip(before, after, strict=True)]
    return wider, wider != before


def bucketed(
    dataset: Dataset,
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any,
    padding_values: Any,
    pad_to_bucket_boundary: bool,
    no_padding: bool,
    drop_remainder: bool,
) -> Dataset:
    """Implements `bucket_by_sequence_length`."""
    from estimatorkit.core.builtin_ops import identity
    from estimatorkit.core.conversion import constant
    from estimatorkit.core.graph import control_dependencies
    from estimatorkit.ops.array.indexing import gather
    from estimatorkit.ops.debug.checks import assert_less
    from estimatorkit.ops.math.elementwise import cast, greater_equal
    from estimatorkit.ops.math.reduce import reduce_sum

    bounds, sizes = [int(each) for each in bucket_boundaries], list(bucket_batch_sizes)
    if len(sizes) != len(bounds) + 1:
        raise value_error(
            "`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1`",
            expected=len(bounds) + 1,
            received=len(sizes),
        )
    by_bucket = np.array(sizes, np.int64)

    def key(*element: Any) -> Any:
        length = cast(element_length_func(*element), int64)
        if pad_to_bucket_boundary:
            too_long = (
                "When pad_to_bucket_boundary=True, elements must have length < "
                "max(bucket_boundaries)."
            )
            with control_dependencies(
                [assert_less(length, np.int64(bounds[-1]), message=too_long)]
            ):
                length = identity(length)
        return reduce_sum(cast(greater_equal(length, constant(np.array(bounds, np.int64))), int64))

    def size_of(bucket: Any) -> Any:
        return gather(constant(by_bucket), bucket)

    def batched(bucket: Any, window: Dataset) -> Dataset:
        size = size_of(bucket)
        if no_padding:
            return window.batch(size, drop_remainder=drop_remainder)
        shapes = padded_shapes
        if shapes is None:
            shapes = window.output_shapes
        if pad_to_bucket_boundary:
            limits = constant(np.array([*bounds, 0], np.int64))
            shapes = pack(
                dataset.element_spec,
                [
                    _to_boundary(shape, gather(limits, bucket) - 1)
                    for shape in flatten_as(dataset.element_spec, shapes)
                ],
            )
        return window.padded_batch(size, shapes, padding_values, drop_remainder=drop_remainder)

    return dataset.group_by_window(key, batched, window_size_func=size_of)


def _to_boundary(shape: Any, boundary: Tensor) -> Any:
    """A padded shape whose unknown dimensions are a bucket's boundary."""
    from estimatorkit.ops.array.joining import stack

    dims = _shape_of(shape)
    if dims.is_fully_defined():
        return dims
    return stack([boundary if dim is None else np.int64(dim) for dim in dims])


def rebatched(dataset: Dataset, batch_size: Any, drop_remainder: Any) -> Dataset:
    """The rows of a dataset of batches, in batches of another size, or of several in turns."""
    rows = dataset.unbatch()
    if np.ndim(batch_size) == 0:
        return rows.batch(batch_size, drop_remainder)
    from estimatorkit.ops.array.indexing import gather
    from estimatorkit.ops.array.selection import searchsorted
    from estimatorkit.ops.math.elementwise import cast

    sizes = np.asarray(batch_size, np.int64)
    ends = np.cumsum(sizes)

    def number_of_batch(position: Any, row: Any) -> Any:
        within = searchsorted(ends, (position % ends[-1])[None], side="right")[0]
        return position // ends[-1] * len(ends) + cast(within, int64)

    def size_of(number: Any) -> Any:
        return gather(sizes, number % len(sizes))

    def batch_of(number: Any, numbered: Dataset) -> Dataset:
        return numbered.map(lambda position, row: row).batch(size_of(number), drop_remainder)

    return rows.enumerate().group_by_window(number_of_batch, batch_of, window_size_func=size_of)
