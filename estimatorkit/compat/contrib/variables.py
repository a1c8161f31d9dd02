"""Variables of `contrib.framework` and `contrib.slim`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from estimatorkit.compat.arg_scope import add_arg_scope
from estimatorkit.core.builtin_ops import group, placeholder
from estimatorkit.core.devices import DeviceSpec
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_collection, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.variables import Variable
from estimatorkit.lazy import listing
from estimatorkit.logger import logger
from estimatorkit.ops.variables.variable_scope import get_variable
from estimatorkit.storage.checkpoint import list_variables, read_checkpoint
from estimatorkit.train.global_steps import assert_global_step, get_global_step
from estimatorkit.train.saving.saver import Saver

__dir__ = listing(__name__)

Values = Mapping[str, Any]


@add_arg_scope
def variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    use_resource: bool | None = None,
) -> Any:
    """`get_variable`, placed on `device`.

    Args:
        device: a device's name, or a function from an operation to it.
        name, shape, dtype, initializer, regularizer, trainable, collections, caching_device,
            partitioner, custom_getter, use_resource: see `get_variable`.
    """
    keys = dict.fromkeys([GraphKeys.GLOBAL_VARIABLES] if collections is None else collections)
    with get_default_graph().device(device or ""):
        return get_variable(
            name,
            shape,
            dtype,
            initializer,
            regularizer,
            trainable,
            collections=list(keys),
            caching_device=caching_device,
            partitioner=partitioner,
            custom_getter=custom_getter,
            use_resource=use_resource,
        )


@add_arg_scope
def model_variable(
    name: str,
    shape: Any = None,
    dtype: Any = float32,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    *rest: Any,
    **named: Any,
) -> Any:
    """`variable`, also in the collection MODEL_VARIABLES."""
    keys = [*(collections or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return variable(name, shape, dtype, initializer, regularizer, trainable, keys, *rest, **named)


def local_variable(
    initial_value: Any,
    validate_shape: bool = True,
    name: str | None = None,
    use_resource: bool | None = None,
) -> Any:
    """A variable in the collection LOCAL_VARIABLES; neither trained nor saved."""
    keys = [GraphKeys.LOCAL_VARIABLES]
    return Variable(
        initial_value, trainable=False, collections=keys, validate_shape=validate_shape, name=name
    )


def global_variable(
    initial_value: Any,
    validate_shape: bool = True,
    name: str | None = None,
    use_resource: bool | None = None,
) -> Any:
    """A variable in the collection GLOBAL_VARIABLES; saved but not trained."""
    keys = [GraphKeys.GLOBAL_VARIABLES]
    return Variable(
        initial_value, trainable=False, collections=keys, validate_shape=validate_shape, name=name
    )


class VariableDeviceChooser:
    """Device function that places variables on the parameter servers round-robin, or on one device.

    Args:
        num_tasks: the number of parameter servers; 0 for the local device.
        job_name: the servers' job.
        device_type, device_index: the device; None for any index.
        replica: the replica's number.
    """

    def __init__(
        self,
        num_tasks: int = 0,
        job_name: str = "ps",
        device_type: str = "CPU",
        device_index: int | None = 0,
        replica: int | None = None,
    ) -> None:
        self._job = job_name
        self._spec = DeviceSpec(replica=replica, device_type=device_type, device_index=device_index)
        self._tasks = itertools.cycle(range(num_tasks))

    def __call__(self, op: Any) -> str:
        """The device of the next variable."""
        task = next(self._tasks, None)
        if task is None:
            return self._spec.to_string()
        return replace(self._spec, job=self._job, task=task).to_string()


def assert_or_get_global_step(graph: Any = None, global_step_tensor: Any = None) -> Any:
    """Checks `global_step_tensor` by `assert_global_step` and returns it; by default the
    graph's."""
    if global_step_tensor is None:
        return get_global_step(graph)
    assert_global_step(global_step_tensor)
    return global_step_tensor


def get_name_scope() -> str:
    """The current name scope of the default graph, without a trailing slash."""
    return get_default_graph().get_name_scope()


def add_model_variable(var: Any) -> None:
    """Adds a variable to the collection MODEL_VARIABLES."""
    if var not in get_collection(GraphKeys.MODEL_VARIABLES):
        get_default_graph().add_to_collection(GraphKeys.MODEL_VARIABLES, var)


# -- which variables there are


def get_variables(
    scope: Any = None, suffix: str | None = None, collection: str = GraphKeys.GLOBAL_VARIABLES
) -> list[Any]:
    """The variables whose name starts with a scope and ends with a suffix.

    Args:
        scope: a variable scope, or a regular expression matched at the start of the name.
        suffix: the suffix.
        collection: the collection to search.
    """
    prefix = getattr(scope, "name", scope)
    found: list[Any] = get_collection(collection, prefix)
    return [each for each in found if suffix is None or each.op.name.endswith(suffix)]


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of the collection MODEL_VARIABLES."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of the collection LOCAL_VARIABLES."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of the collection TRAINABLE_VARIABLES."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """The variables whose name ends with a suffix."""
    return get_variables(scope, suffix)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """The variables named `given_name`, or whose names end in `/given_name`."""
    whole = re.compile(f"(^|/){re.escape(given_name)}$")
    return [each for each in get_variables(scope) if whole.search(each.op.name)]


def get_variables_to_restore(
    include: Sequence[str] | None = None, exclude: Sequence[str] | None = None
) -> list[Any]:
    """The global variables in the scopes `include` (all by default) but not in `exclude`.

    Raises:
        TypeError: `include` or `exclude` is not a list.
    """
    for given, name in ((include, "include"), (exclude, "exclude")):
        if given is not None and not isinstance(given, (list, tuple)):
            raise TypeError(f"{name} must be a list or a tuple, got {given!r}.")
    found = get_collection(GraphKeys.GLOBAL_VARIABLES)
    return [
        each
        for each in found
        if (include is None or any(re.match(scope, each.op.name) for scope in include))
        and not any(re.match(scope, each.op.name) for scope in exclude or ())
    ]


def get_unique_variable(var_op_name: str) -> Any:
    """The variable with this name.

    Raises:
        ValueError: there is none, or more than one.
    """
    found = [each for each in get_variables() if each.op.name == var_op_name]
    if len(found) == 1:
        return found[0]
    if not found:
        raise ValueError(f"Couldn't find variable {var_op_name}")
    raise ValueError(
        f"Variable {var_op_name} found {len(found)} times: it does not uniquely identify a variable"
    )


def get_variable_full_name(var: Any) -> str:
    """A variable's name in checkpoints."""
    name: str = var.op.name
    return name


def filter_variables(
    var_list: Sequence[Any],
    include_patterns: Sequence[str] | None = None,
    exclude_patterns: Sequence[str] | None = None,
    reg_search: bool = True,
) -> list[Any]:
    """Filters variables by regular expressions on their names.

    Args:
        include_patterns: at least one must match; all names by default.
        exclude_patterns: none may match.
        reg_search: use `re.search` instead of `re.match`.
    """
    search = re.search if reg_search else re.match
    return [
        each
        for each in var_list
        if (not include_patterns or any(search(one, each.op.name) for one in include_patterns))
        and not any(search(one, each.op.name) for one in exclude_patterns or ())
    ]


# -- values for them


def assign_from_values(var_names_to_values: Values) -> tuple[Any, dict[Any, Any]]:
    """An operation that assigns values to variables, and its feeds.

    Args:
        var_names_to_values: arrays by the variables' names.

    Raises:
        ValueError: a variable does not exist.
    """
    feeds: dict[Any, Any] = {}
    updates = []
    for name, value in var_names_to_values.items():
        target = get_unique_variable(name)
        array = np.asarray(value)
        fed = placeholder(target.dtype.base_dtype, array.shape)
        feeds[fed] = array
        updates.append(target.assign(fed))
    return group(*updates), feeds


def assign_from_values_fn(var_names_to_values: Values) -> Callable[[Any], None]:
    """`assign_from_values` as a function of the session."""
    update, feeds = assign_from_values(var_names_to_values)
    return lambda session: session.run(update, feeds)


def assign_from_checkpoint(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False
) -> tuple[Any, dict[Any, Any]]:
    """An operation that assigns a checkpoint's values to variables, and its feeds.

    Args:
        model_path: the checkpoint.
        var_list: variables, or a dict of them by their names in the checkpoint.
        ignore_missing_vars: leave variables missing from the checkpoint unchanged.

    Raises:
        ValueError: a variable is missing from the checkpoint, or has another shape there.
    """
    named = _found_in(model_path, var_list, ignore_missing_vars)
    read = read_checkpoint(model_path, named).tensors
    feeds: dict[Any, Any] = {}
    updates = []
    for name, target in named.items():
        value = read[name]
        if not target.shape.is_compatible_with(value.shape):
            if target.shape.num_elements() != value.size:
                raise value_error(
                    f"Total size of new array must be unchanged for {name}",
                    expected=str(target.shape),
                    received=str(list(value.shape)),
                    made_at=target.op.source,
                )
            value = value.reshape(target.shape.as_list())
        fed = placeholder(target.dtype.base_dtype, value.shape)
        feeds[fed] = value
        updates.append(target.assign(fed))
    return group(*updates), feeds


def assign_from_checkpoint_fn(
    model_path: str,
    var_list: Any,
    ignore_missing_vars: bool = False,
    reshape_variables: bool = False,
) -> Callable[[Any], None]:
    """Returns a function of the session that restores variables.

    Args:
        model_path, var_list, ignore_missing_vars: see `assign_from_checkpoint`.
        reshape_variables: see `Saver`.

    Raises:
        ValueError: there is nothing to restore, or a variable is missing from the checkpoint.
    """
    named = _found_in(model_path, var_list, ignore_missing_vars)
    if not named:
        raise ValueError("var_list cannot be empty")
    saver = Saver(named, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)


def _found_in(model_path: str, var_list: Any, ignore_missing: bool) -> dict[str, Any]:
    named = (
        dict(var_list)
        if isinstance(var_list, Mapping)
        else {each.op.name: each for each in var_list}
    )
    there = {name for name, _ in list_variables(model_path)}
    missing = [name for name in named if name not in there]
    if missing and not ignore_missing:
        raise value_error(
            f"Checkpoint is missing variable [{missing[0]}]",
            expected=", ".join(sorted(there)[:10]),
            received=", ".join(missing),
            hint="ignore_missing_vars=True leaves such variables as they are",
        )
    for name in missing:
        logger.warning("Variable %s missing in checkpoint %s", name, model_path)
    return {name: each for name, each in named.items() if name in there}
