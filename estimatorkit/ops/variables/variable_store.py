"""`VariableStore`: a graph's variables by full name.

`variable_scope` applies scopes and custom getters before it calls `VariableStore.get`. The slices
of a partitioned variable are stored as variables ('name/part_0') and together as a
`PartitionedVariable`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, float32, string
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.shapes import TensorShape, as_shape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import SaveSliceInfo, Variable
from estimatorkit.ops.variables.initializers import GlorotUniform, Zeros
from estimatorkit.ops.variables.partitioned_variables import (
    PartitionedVariable,
    PartitionInfo,
    partitions_of,
    slices_of,
)


class VariableStore:
    """The variables that `get_variable` has made in a graph.

    Attributes:
        variables: by full name; includes the slices of partitioned variables.
        partitioned: the partitioned variables by full name.
    """

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.partitioned: dict[str, PartitionedVariable] = {}

    def get(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = float32,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool | None = None,
        collections: Sequence[str] | None = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
    ) -> Any:
        """Shares or creates the variable of this full name; this is what custom getters call.

        `reuse` False requires a new variable, True an existing one; None and AUTO_REUSE allow both.
        See `get_variable` for the other arguments. With a partitioner, returns a
        `PartitionedVariable` unless the variable is a scalar.

        Raises:
            ValueError: the variable may not be shared, does not exist, exists with another shape,
                dtype or number of slices, or cannot be created from these arguments.
        """
        rest = {
            "regularizer": regularizer,
            "trainable": trainable,
            "collections": collections,
            "caching_device": caching_device,
            "validate_shape": validate_shape,
            "constraint": constraint,
            "synchronization": synchronization,
            "aggregation": aggregation,
        }
        wanted = as_dtype(dtype)
        if partitioner is not None and not callable(partitioner):
            raise ValueError(f"Partitioner must be callable, but received: {partitioner}")
        known = shape is not None and as_shape(shape).rank == 0
        shared = reuse is True and name in self.partitioned
        if (partitioner is not None and not known) or (partitioner is None and shared):
            return self._in_parts(name, shape, wanted, initializer, reuse, partitioner, rest)
        if f"{name}/part_0" in self.variables:
            raise value_error(
                "No partitioner was provided, but a partitioned version of the variable was "
                f"found: {name}/part_0. Perhaps a variable of the same name was already "
                "created with partitioning?",
                made_at=self.variables[f"{name}/part_0"].op.source,
            )
        return self._single(name, shape, wanted, initializer, reuse, rest)

    def _single(
        self,
        name: str,
        shape: Any,
        dtype: DType,
        initializer: Any,
        reuse: Any,
        rest: dict[str, Any],
        info: PartitionInfo | None = None,
    ) -> Variable:
        """Shares or creates an unpartitioned variable, or a slice."""
        of_value = initializer is not None and not callable(initializer)
        if of_value and shape is not None:
            raise ValueError("If initializer is a constant, do not specify shape.")
        found = self.variables.get(name)
        if found is not None:
            _check_shared(found, name, "share variable", reuse, shape, dtype)
            return found
        if reuse is True:
            raise value_error(
                f"Variable {name} does not exist, or was not created with tf.get_variable()",
                hint="did you mean to set reuse=AUTO_REUSE in variable_scope?",
            )
        value, value_dtype = initializer, None
        if not of_value:
            if initializer is None and shape is None:
                raise ValueError(
                    f"Variable {name} did not get an initializer, so its `shape` argument must be "
                    "specified."
                )
            function = _default_initializer(name, dtype) if initializer is None else initializer
            value = _value_maker(function, None if shape is None else as_shape(shape), dtype, info)
            value_dtype = None if value is function else dtype
        made = self.variables[name] = _make(name, value, value_dtype, **rest)
        return made

    def _in_parts(
        self,
        name: str,
        shape: Any,
        dtype: DType,
        initializer: Any,
        reuse: Any,
        partitioner: Any,
        rest: dict[str, Any],
    ) -> PartitionedVariable:
        """Shares or creates a partitioned variable; sharing needs no partitioner."""
        if name in self.variables:
            raise value_error(
                "A partitioner was provided, but an unpartitioned version of the variable was "
                f"found: {name}.  Perhaps a variable of the same name was already created "
                "without partitioning?",
                made_at=self.variables[name].op.source,
            )
        whole = as_shape(shape)
        if isinstance(initializer, Tensor):
            whole = whole.merge_with(initializer.shape)
        cut = None if partitioner is None else partitions_of(name, whole, dtype, partitioner)
        found = self.partitioned.get(name)
        if found is not None:
            _check_shared(found, name, "reuse partitioned variable", reuse, shape, dtype)
            if cut is not None and cut != found.partitions:
                raise value_error(
                    f"Trying to reuse partitioned variable {name}, but specified partitions "
                    f"{cut} and found partitions {found.partitions}.",
                    made_at=next(iter(found)).op.source,
                )
            return found
        if reuse is True or cut is None:
            raise value_error(
                f"PartitionedVariable {name} does not exist, or was not created with "
                "tf.get_variable()",
                hint="did you mean to set reuse=False or reuse=AUTO_REUSE in variable_scope?",
            )
        parts = []
        for number, (info, part_shape) in enumerate(slices_of(name, whole, cut)):
            part_name = f"{name}/part_{number}"
            of_value = initializer is not None and not callable(initializer)
            value = _slice_of(initializer, dtype, info, part_shape) if of_value else initializer
            given = None if of_value else part_shape
            part = self._single(part_name, given, dtype, value, reuse, rest, info)
            places = info.full_shape, info.var_offset, part_shape
            part.save_slice_info = SaveSliceInfo(name, *map(tuple, places))
            parts.append(part)
        made = PartitionedVariable(name, whole, parts[0].dtype, parts, cut)
        self.partitioned[name] = made
        return made


def _default_initializer(name: str, dtype: DType) -> Callable[..., Tensor]:
    if dtype.is_floating:
        return GlorotUniform()
    if dtype.is_integer or dtype.is_bool or dtype is string:
        return Zeros()
    raise ValueError(f"An initializer for variable {name} of {dtype!r} is required")


def _value_maker(
    initializer: Any, shape: TensorShape | None, dtype: DType, info: PartitionInfo | None
) -> Callable[[], Any]:
    """Binds the arguments of `initializer`, unless it needs none and no shape is given."""
    function: Callable[..., Any] = initializer() if isinstance(initializer, type) else initializer
    parameters = inspect.signature(function).parameters
    if shape is not None and shape.is_fully_defined():
        given = {"partition_info": info} if "partition_info" in parameters else {}
        return functools.partial(function, shape.as_list(), dtype=dtype, **given)
    required = [
        each
        for each in parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if required:
        raise value_error(
            "The initializer passed is not valid. It should be a callable with no arguments "
            "and the shape should not be provided or an instance of "
            "`tf.keras.initializers.*' and `shape` should be fully defined.",
            received=f"{initializer!r} and shape {as_shape(shape)}",
        )
    return function


def _slice_of(value: Any, dtype: DType, info: PartitionInfo, shape: Sequence[int]) -> Tensor:
    """A slice of a constant initial value."""
    whole = value if isinstance(value, Tensor) else convert_to_tensor(value, dtype)
    ends = [start + size for start, size in zip(info.var_offset, shape, strict=True)]
    return whole[tuple(map(slice, info.var_offset, ends))]


def _make(name: str, value: Any, dtype: DType | None, regularizer: Any, **rest: Any) -> Variable:
    """Makes a variable and its regularization loss."""
    graph = get_default_graph().outermost
    with graph.name_scope(None), graph.control_dependencies(None):
        variable = Variable(value, name=name, dtype=dtype, **rest)
    if regularizer is not None:
        with graph.as_default(), graph.name_scope(f"{name}/Regularizer/"):
            loss = regularizer(variable)
        if loss is not None:
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return variable


def _parts(variable: Variable | PartitionedVariable) -> Iterator[Variable]:
    return iter(variable) if isinstance(variable, PartitionedVariable) else iter([variable])


def _check_shared(
    found: Variable | PartitionedVariable,
    name: str,
    what: str,
    reuse: Any,
    shape: Any,
    dtype: DType,
) -> None:
    source = next(_parts(found)).op.source
    if reuse is False:
        kind = "Variable" if isinstance(found, Variable) else "Partitioned variable with name"
        raise value_error(
            f"{kind} {name} already exists{', disallowed' * isinstance(found, Variable)}",
            made_at=source,
            hint="did you mean to set reuse=True or reuse=AUTO_REUSE in variable_scope? "
            "reset_default_graph() begins a new graph, as for a notebook's cell that runs again",
        )
    for kind, asked, there, fits in (
        ("shape", as_shape(shape), found.shape, found.shape.is_compatible_with(shape)),
        ("dtype", dtype.name, found.dtype.name, dtype is found.dtype),
    ):
        if not fits:
            raise value_error(
                f"Trying to {what} {name}, but specified {kind} {asked} and found {kind} {there}.",
                made_at=source,
            )
