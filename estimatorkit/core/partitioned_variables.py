"""`PartitionedVariable`: one variable as several, each a slice along one axis; and partitioners.

A partitioner is a function of (shape, dtype) that says how many slices each axis has.

`get_variable(partitioner=...)` makes them. The parts are variables of their own, called
'name/part_0' and so on, and optimizers see these. Checkpoints hold the whole, so that it may be cut
otherwise when it is restored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

from estimatorkit.core.dtypes import DType, string
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.ops.array import identity
from estimatorkit.core.ops.joining import concat, split
from estimatorkit.core.shapes import TensorShape, as_shape
from estimatorkit.core.tensor import Operators, Tensor
from estimatorkit.core.variables import Variable

Partitioner: TypeAlias = Callable[..., Sequence[int]]


@dataclass(frozen=True)
class PartitionInfo:
    """Which slice of a whole variable an initializer makes.

    Attributes:
        full_shape: the shape of the whole.
        var_offset: where the slice begins, for each dimension.
    """

    full_shape: list[int]
    var_offset: list[int]


class PartitionedVariable(Operators):
    """A variable in parts. As a tensor it is the parts joined.

    Args:
        name: its name.
        shape: the shape of the whole.
        dtype: its dtype.
        variable_list: the parts, in order.
        partitions: how many slices each axis has; more than one for one axis at most.

    Raises:
        ValueError: there are no parts, or slices along several axes.
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
        self.name = name
        self.dtype = dtype
        self.shape = as_shape(shape)
        self._variables = list(variable_list)
        self._partitions = list(partitions)
        self.axis = partition_axis(name, partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __getitem__(self, key: Any) -> Tensor:
        return self.as_tensor()[key]

    def __repr__(self) -> str:
        return (
            f"<PartitionedVariable {self.name!r} shape={self.shape} dtype={self.dtype.name} in "
            f"{len(self)} parts>"
        )

    def get_shape(self) -> TensorShape:
        """The shape of the whole."""
        return self.shape

    def as_tensor(self) -> Tensor:
        """The parts joined."""
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
        """Operations that set the parts, a list: of a whole value, or of a list of parts."""
        parts = zip(self._variables, self._slices(value), strict=True)
        return [variable.assign(part, use_locking, name) for variable, part in parts]

    def assign_add(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Tensor]:
        """Operations that add to the parts; see `assign`."""
        parts = zip(self._variables, self._slices(value), strict=True)
        return [variable.assign_add(part, use_locking, name) for variable, part in parts]

    def assign_sub(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Tensor]:
        """Operations that subtract from the parts; see `assign`."""
        parts = zip(self._variables, self._slices(value), strict=True)
        return [variable.assign_sub(part, use_locking, name) for variable, part in parts]

    def _slices(self, value: Any) -> list[Any]:
        if isinstance(value, (list, PartitionedVariable)):
            return list(value)
        sizes = [variable.shape[self.axis] for variable in self._variables]
        return list(split(value, sizes, axis=self.axis))


def whole_of(name: str, parts: Sequence[Variable]) -> PartitionedVariable | None:
    """The variable that these are all the parts of, by what they say of themselves.

    Args:
        name: how it is to be called.
        parts: variables with a `save_slice_info`, in any order.

    Returns:
        None where some are missing, or they are parts along several axes.
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
    """The axis that is cut; 0 where none is.

    Raises:
        ValueError: several are, or a number is not positive.
    """
    cut = [axis for axis, count in enumerate(partitions) if count > 1]
    if len(cut) > 1 or any(count < 1 for count in partitions):
        raise ValueError(
            explain(
                f"partitions of {name}: only one axis may be cut",
                expected="numbers of slices, all 1 but one",
                received=list(partitions),
            )
        )
    return cut[0] if cut else 0


def slices_of(
    name: str, shape: TensorShape, dtype: DType, partitioner: Partitioner
) -> tuple[list[int], list[tuple[PartitionInfo, list[int]]]]:
    """How a partitioner cuts a variable.

    Returns:
        The number of slices for each axis; and for each slice where it is, and its shape. Sizes
        differ by one at most, the larger first.

    Raises:
        ValueError: the partitioner's answer does not fit.
    """
    dims = [int(dim) for dim in shape.as_list() if dim is not None]
    partitions = [int(count) for count in partitioner(shape=shape, dtype=dtype)]
    if len(partitions) != len(dims):
        raise ValueError(
            explain(
                f"Partitioner returned a partition list that does not match shape of {name}",
                expected=f"{len(dims)} numbers, for shape {shape}",
                received=partitions,
            )
        )
    axis = partition_axis(name, partitions)
    count = partitions[axis]
    if count > dims[axis]:
        raise ValueError(
            explain(
                f"{name} cannot be cut into {count} slices along axis {axis}",
                expected=f"at most {dims[axis]}",
            )
        )
    found, start = [], 0
    for number in range(count):
        size = dims[axis] // count + (number < dims[axis] % count)
        offset = [0] * len(dims)
        offset[axis] = start
        found.append((PartitionInfo(dims, offset), [*dims[:axis], size, *dims[axis + 1 :]]))
        start += size
    return partitions, found


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """A partitioner into `num_shards` slices along `axis` (fewer where it is shorter)."""

    def partitioner(shape: Any, **_: Any) -> list[int]:
        return _along(as_shape(shape), axis, num_shards)

    return partitioner


def variable_axis_size_partitioner(
    max_shard_bytes: int,
    axis: int = 0,
    bytes_per_string_element: int = 16,
    max_shards: int | None = None,
) -> Partitioner:
    """A partitioner into slices of at most `max_shard_bytes`, as far as one axis allows.

    Args:
        max_shard_bytes: bytes.
        axis: the axis that is cut.
        bytes_per_string_element: an estimate for strings.
        max_shards: the most slices.

    Raises:
        ValueError: a number is not positive.
    """
    if max_shard_bytes < 1 or bytes_per_string_element < 1 or (max_shards or 1) < 1:
        raise ValueError(
            explain(
                "variable_axis_size_partitioner: all numbers must be positive",
                received=(max_shard_bytes, bytes_per_string_element, max_shards),
            )
        )

    def partitioner(shape: Any, dtype: DType) -> list[int]:
        whole = as_shape(shape)
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
    if axis >= len(shape):
        raise ValueError(f"Cannot partition variable along axis {axis} when shape is only {shape}")
    partitions = [1] * len(shape)
    partitions[axis] = min(count, shape[axis] or 1)
    return partitions
