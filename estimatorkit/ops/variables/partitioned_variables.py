"""`PartitionedVariable`, a variable sliced along one axis, and partitioners.

A partitioner is a function from (shape, dtype) to the number of slices along each axis, for
`get_variable(partitioner=...)`. The slices are variables named 'name/part_0', ..., which is what
optimizers see. Checkpoints store the whole variable, which may be restored with another
partitioning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

from estimatorkit.core.builtin_ops import identity
from estimatorkit.core.dtypes import DType, string
from estimatorkit.core.errors import explain, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.shapes import TensorShape, as_shape
from estimatorkit.core.tensor import Operators, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array.joining import concat, split

Partitioner: TypeAlias = Callable[..., Sequence[int]]


@dataclass(frozen=True)
class PartitionInfo:
    """The slice of a partitioned variable that an initializer is called for.

    Attributes:
        full_shape: the shape of the whole variable.
        var_offset: where the slice begins along each axis.
    """

    full_shape: list[int]
    var_offset: list[int]

    def single_offset(self, shape: Sequence[int]) -> int:
        """The offset of a slice of this shape along the partitioned axis."""
        return self.var_offset[self.single_slice_dim(shape)]

    def single_slice_dim(self, shape: Sequence[int]) -> int:
        """The partitioned axis, given a slice's shape; 0 if no axis is partitioned.

        Raises TypeError unless `shape` is a sequence, ValueError if it is not the shape of a slice
        along a single axis.
        """
        if not isinstance(shape, Sequence):
            raise TypeError(f"`shape` must be a sequence (like tuple or list) instead of {shape!r}")
        places = list(zip(shape, self.full_shape, self.var_offset, strict=False))
        cut = [axis for axis, (size, whole, _) in enumerate(places) if size != whole]
        beyond = any(start + size > whole for size, whole, start in places)
        if len(shape) != len(self.full_shape) or beyond or len(cut) > 1:
            raise value_error(
                "the shape is not that of a slice along one axis",
                expected=f"a slice of {self.full_shape} at offset {self.var_offset}",
                received=list(shape),
            )
        return cut[0] if cut else 0


class PartitionedVariable(Operators):
    """A variable stored as slices along one axis; converts to a tensor by concatenating them.

    Args:
        shape: the shape of the whole variable.
        dtype: its dtype.
        variable_list: the slices, in any order, each with its `save_slice_info`.
        partitions: the number of slices along each axis; more than one along at most one axis.

    Raises:
        ValueError: there are no slices, a slice has no `save_slice_info` for a tensor of this
            shape, or several axes are partitioned.
    """

    def __init__(
        self,
        name: str,
        shape: Any,
        dtype: DType,
        variable_list: Sequence[Variable],
        partitions: Sequence[int],
    ) -> None:
        if not variable_list:
            raise ValueError("variable_list may not be empty")
        infos = [variable.save_slice_info for variable in variable_list]
        if any(count < 1 for count in partitions):
            raise ValueError(f"partition values must be positive: {list(partitions)}")
        if None in infos:
            names = [variable.name for variable in variable_list]
            raise ValueError(f"All variables must have a save_slice_info available: {names}")
        shapes = [list(info.full_shape) for info in infos if info is not None]
        if any(each != as_shape(shape).as_list() for each in shapes):
            raise ValueError(
                f"All variables' full shapes must match shape: {shape}; but full shapes were: "
                f"{shapes}"
            )
        self.name = name
        self.dtype = dtype
        self.shape = as_shape(shape)
        self._variables = sorted(variable_list, key=_offset)
        self.partitions = list(partitions)
        self.axis = partition_axis(name, partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def _get_variable_list(self) -> list[Variable]:
        """The slices in order; TensorFlow's name for `list(self)`."""
        return list(self._variables)

    def _get_partitions(self) -> list[int]:
        """TensorFlow's name for `partitions`."""
        return self.partitions

    def __getitem__(self, key: Any) -> Tensor:
        return self.as_tensor()[key]

    def __repr__(self) -> str:
        return (
            f"<PartitionedVariable {self.name!r} shape={self.shape} dtype={self.dtype.name} in "
            f"{len(self)} parts>"
        )

    @property
    def handle(self) -> Tensor:
        """Not there: what is done by handle (`gradients`, updates) is done to the slices.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            explain(
                "PartitionedVariable doesn't support being used as a reference",
                expected="its slices, such as in gradients(loss, list(variable))",
                received=repr(self),
                made_at=self._variables[0].op.source,
            )
        )

    def get_shape(self) -> TensorShape:
        """The shape of the whole variable."""
        return self.shape

    def as_tensor(self) -> Tensor:
        """The concatenated slices."""
        graph = get_default_graph()
        with graph.control_dependencies(None), graph.name_scope(None):
            if len(self) == 1:
                return identity(self._variables[0], name=self.name)
            with graph.name_scope(f"{self.name}/ConcatPartitions/"):
                joined = concat(self._variables, self.axis)
            return identity(joined, name=self.name)

    def _as_tensor(self) -> Tensor:
        return self.as_tensor()

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Tensor]:
        """A list of operations that set the slices, from a whole value or a list of slices."""
        parts = zip(self._variables, self._slices(value), strict=True)
        return [variable.assign(part, use_locking, name) for variable, part in parts]

    def assign_add(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Tensor]:
        """A list of operations that add to the slices; see `assign`."""
        parts = zip(self._variables, self._slices(value), strict=True)
        return [variable.assign_add(part, use_locking, name) for variable, part in parts]

    def assign_sub(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Tensor]:
        """A list of operations that subtract from the slices; see `assign`."""
        parts = zip(self._variables, self._slices(value), strict=True)
        return [variable.assign_sub(part, use_locking, name) for variable, part in parts]

    def _slices(self, value: Any) -> list[Any]:
        if isinstance(value, (list, PartitionedVariable)):
            return list(value)
        sizes = [variable.shape[self.axis] for variable in self._variables]
        return list(split(value, sizes, axis=self.axis))


def _offset(part: Variable) -> list[int]:
    info = part.save_slice_info
    return [] if info is None else list(info.var_offset)


def parts_of_rows(table: Any) -> list[Any]:
    """The inputs of a row lookup: the parts of a variable partitioned by rows, in order.

    Another variable or tensor is read whole.
    """
    if not isinstance(table, PartitionedVariable):
        return [table]
    return list(table) if table.axis == 0 else [table.as_tensor()]


def whole_of(name: str, parts: Sequence[Variable]) -> PartitionedVariable | None:
    """Reassembles a partitioned variable from its slices, which need a `save_slice_info`.

    Returns None if slices are missing or several axes are partitioned.
    """
    found = [(part.save_slice_info, part) for part in parts if part.save_slice_info is not None]
    found.sort(key=lambda each: each[0].var_offset)
    shape = found[0][0].full_shape
    cut = {
        axis
        for info, _ in found
        for axis, size in enumerate(info.full_shape)
        if info.var_shape[axis] != size
    }
    axis = min(cut, default=0)
    ends = list(accumulate((info.var_shape[axis] for info, _ in found), initial=0))
    if len(cut) > 1 or any(info.full_shape != shape for info, _ in found):
        return None
    if [info.var_offset[axis] for info, _ in found] != ends[:-1] or ends[-1] != shape[axis]:
        return None
    partitions = [len(found) if each == axis else 1 for each in range(len(shape))]
    variables = [part for _, part in found]
    return PartitionedVariable(name, shape, variables[0].dtype, variables, partitions)


def partition_axis(name: str, partitions: Sequence[int]) -> int:
    """The partitioned axis, 0 if there is none.

    Raises ValueError if several axes are partitioned or a number is not positive.
    """
    cut = [axis for axis, count in enumerate(partitions) if count > 1]
    if len(cut) > 1 or any(count < 1 for count in partitions):
        raise value_error(
            f"partitions of {name}: only one axis may be partitioned",
            expected="at most one number of slices above 1",
            received=list(partitions),
        )
    return cut[0] if cut else 0


def partitions_of(
    name: str, shape: TensorShape, dtype: DType, partitioner: Partitioner
) -> list[int]:
    """The number of slices along each axis, as the partitioner returns it.

    Raises ValueError if the shape is not fully defined or scalar, or the result does not fit it.
    """
    if not shape.is_fully_defined():
        raise value_error(
            f"Shape of a new partitioned variable must be fully defined, but instead was {shape}.",
            hint=f"give {name} a shape",
        )
    if shape.rank == 0:
        raise ValueError(f"A partitioned Variable must have rank at least 1, shape: {shape}")
    found = partitioner(shape=shape, dtype=dtype)
    if not isinstance(found, Sequence):
        raise ValueError(f"Partitioner must return a sequence, but saw: {found}")
    partitions = [int(count) for count in found]
    if len(partitions) != shape.rank:
        raise ValueError(
            "Partitioner returned a partition list that does not match the Variable's rank: "
            f"{partitions} vs. {shape}"
        )
    if any(count < 1 for count in partitions):
        raise ValueError(f"Partitioner returned zero partitions for some axes: {partitions}")
    if sum(count > 1 for count in partitions) > 1:
        raise ValueError(
            f"Can only slice a variable along one dimension: shape: {shape}, partitioning: "
            f"{partitions}"
        )
    return partitions


def slices_of(
    name: str, shape: TensorShape, partitions: Sequence[int]
) -> list[tuple[PartitionInfo, list[int]]]:
    """The `PartitionInfo` and shape of each slice; sizes differ by at most one, larger ones first.

    Raises ValueError if there are more slices than the axis is long.
    """
    dims = [int(dim) for dim in shape.as_list() if dim is not None]
    axis = partition_axis(name, partitions)
    count = partitions[axis]
    if count > dims[axis]:
        raise value_error(
            f"{name} cannot be partitioned into {count} slices along axis {axis}",
            expected=f"at most {dims[axis]}",
        )
    found, start = [], 0
    for number in range(count):
        size = dims[axis] // count + (number < dims[axis] % count)
        offset = [0] * len(dims)
        offset[axis] = start
        found.append((PartitionInfo(dims, offset), [*dims[:axis], size, *dims[axis + 1 :]]))
        start += size
    return found


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """Returns a partitioner into `num_shards` slices along `axis` (fewer if it is shorter)."""

    def partitioner(shape: Any, **_: Any) -> list[int]:
        return _along(as_shape(shape), axis, num_shards)

    return partitioner


def variable_axis_size_partitioner(
    max_shard_bytes: int,
    axis: int = 0,
    bytes_per_string_element: int = 16,
    max_shards: int | None = None,
) -> Partitioner:
    """Returns a partitioner along `axis` into slices of at most `max_shard_bytes`, if possible.

    Args:
        max_shard_bytes: the size limit of a slice.
        axis: the partitioned axis.
        bytes_per_string_element: the estimated size of a string.
        max_shards: the maximum number of slices; takes precedence over `max_shard_bytes`.

    Raises:
        ValueError: a number is not positive.
    """
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise value_error(
            "Both max_shard_bytes and bytes_per_string_element must be positive",
            received=f"{max_shard_bytes} and {bytes_per_string_element}",
        )
    if max_shards is not None and max_shards < 1:
        raise value_error("max_shards must be positive", received=max_shards)

    def partitioner(shape: Any, dtype: DType) -> list[int]:
        whole = _with_axis(as_shape(shape), axis)
        length = whole[axis] or 1
        row_bytes = _bytes(whole, dtype, bytes_per_string_element) / length
        rows = max(1, math.floor(max_shard_bytes / max(row_bytes, 1)))
        return _along(whole, axis, min(max_shards or length, math.ceil(length / rows)))

    return partitioner


def min_max_variable_partitioner(
    max_partitions: int = 1,
    axis: int = 0,
    min_slice_size: int = 256 << 10,
    bytes_per_string_element: int = 16,
) -> Partitioner:
    """A partitioner into at most `max_partitions` slices of at least `min_slice_size` bytes."""

    def partitioner(shape: Any, dtype: DType) -> list[int]:
        whole = as_shape(shape)
        wanted = math.ceil(_bytes(whole, dtype, bytes_per_string_element) / min_slice_size)
        return _along(whole, axis, max(1, min(max_partitions, wanted)))

    return partitioner


def _bytes(shape: TensorShape, dtype: DType, bytes_per_string: int) -> int:
    return (shape.num_elements() or 0) * (bytes_per_string if dtype is string else dtype.size)


def _along(shape: TensorShape, axis: int, count: int) -> list[int]:
    partitions = [1] * len(_with_axis(shape, axis))
    partitions[axis] = min(count, shape[axis] or 1)
    return partitions


def _with_axis(shape: TensorShape, axis: int) -> TensorShape:
    if axis >= len(shape):
        raise ValueError(f"Cannot partition variable along axis {axis} when shape is only {shape}")
    return shape
