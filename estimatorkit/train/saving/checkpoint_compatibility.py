"""Compatibility of checkpoint and model: compares names, shapes and dtypes before restoring.

Errors have TensorFlow's message, then a table of missing, unexpected and different variables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import InvalidArgumentError, NotFoundError, explain
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.variables import Variable
from estimatorkit.ops.variables.partitioned_variables import PartitionedVariable, whole_of
from estimatorkit.storage.checkpoint import load_variable, read_contents
from estimatorkit.storage.saveable import Saveable

Whole = Variable | PartitionedVariable
Item = Whole | Saveable
"""An item of a checkpoint; a `Whole` is one tensor."""
_PART = re.compile(r"/part_[0-9]+(?=/|$)")  # suffix of a partitioned variable's part
# The key of the object graph in TensorFlow 2's object-based checkpoints.
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
# `<variable>/<slot>` here is `training/<optimizer>/<variable>/<old>` in checkpoints of TensorFlow
# 2's estimators. Only slots with the same meaning are listed: Adam's and Momentum's differ.
_SLOTS = {
    "Adagrad": ("Adagrad", "accumulator"),
    "Ftrl": ("Ftrl", "accumulator"),
    "Ftrl_1": ("Ftrl", "linear"),
}


class Found(NamedTuple):
    """The dtype name and shape of a tensor in a checkpoint."""

    dtype: str
    shape: tuple[int, ...]

    @staticmethod
    def of_array(value: NDArray[Any]) -> Found:
        """Describes an array."""
        return Found(as_dtype(value.dtype).name, value.shape)

    def __str__(self) -> str:
        return f"{self.shape} {self.dtype}"


def with_wholes(items: Mapping[str, Item]) -> dict[str, Item]:
    """Replaces parts of partitioned variables, and of their slots, by the whole."""
    result: dict[str, Item] = {}
    parts: dict[str, dict[str, Variable]] = {}
    for name, item in items.items():
        whole = _name_of_whole(name, item) if isinstance(item, Variable) else None
        result[whole or name] = item  # reserves the position for the whole variable
        if whole is not None and isinstance(item, Variable):
            parts.setdefault(whole, {})[name] = item
    for whole, found in parts.items():
        together = whole_of(whole, list(found.values()))
        if together is None:
            del result[whole]
            result.update(found)
        else:
            result[whole] = together
    return result


def _name_of_whole(name: str, variable: Variable) -> str | None:
    """Returns the checkpoint name of the tensor that a variable is part of, or None.

    `name` is the checkpoint name of the part. If it does not contain the part's suffix, a user has
    chosen it, and the part is saved by itself.
    """
    info, own = variable.save_slice_info, variable.op.name
    for found in _PART.finditer(own):
        if info is not None and own[: found.start()] + own[found.end() :] == info.full_name:
            whole, count = re.subn(rf"{found[0]}(?=/|$)", "", name)
            return whole if count == 1 else None
    return None


def keys_of(items: Mapping[str, Item]) -> list[str]:
    """Returns the names of the items' tensors in a checkpoint."""
    return [
        key
        for name, item in items.items()
        for key in (
            [name] if isinstance(item, Whole) else [name + suffix for suffix in item.saved_suffixes]
        )
    ]


def keys_by_name(path: str, found: Iterable[str], wanted: Iterable[str]) -> dict[str, str]:
    """Maps names in the model to keys in the checkpoint.

    These are equal, except for wanted names that a checkpoint of TensorFlow 2 lacks: in
    object-based checkpoints variables are also found by full name, and optimizer slots by the
    package's names (`_SLOTS`).
    """
    names = {name: name for name in found}
    missing = [name for name in wanted if name not in names]
    if missing and _OBJECT_GRAPH in names:
        for name, key in _full_names(path).items():
            if key in names:
                names.setdefault(name, key)
    for name in missing:
        variable, _, slot = name.rpartition("/")
        optimizer, old = _SLOTS.get(slot, ("", ""))
        key = f"training/{optimizer}/{variable}/{old}"
        if key in names:
            names.setdefault(name, key)
    return names


def saved_global_step(path: str) -> int:
    """Returns the global step in a checkpoint; 0 if its Saver did not save it under its name.

    Raises NotFoundError, DataLossError as `load_variable`.
    """
    name = GraphKeys.GLOBAL_STEP
    keys = keys_by_name(path, read_contents(path), [name])
    return int(load_variable(path, keys[name])) if name in keys else 0


def _full_names(path: str) -> dict[str, str]:
    """Returns the keys of an object-based checkpoint by the variables' full names."""
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

    try:
        graph = TrackableObjectGraph.FromString(bytes(load_variable(path, _OBJECT_GRAPH)))
    except DecodeError:
        return {}  # the table of missing names follows
    attributes = (attribute for node in graph.nodes for attribute in node.attributes)
    return {attribute.full_name: attribute.checkpoint_key for attribute in attributes}


def check_fits(
    path: str,
    found: Mapping[str, Found],
    items: Mapping[str, Item],
    reshape: bool = False,
    changes: str | None = None,
) -> None:
    """Checks that a checkpoint's tensors `found` match the items to restore, by checkpoint name.

    With `reshape`, an equal number of elements suffices; `changes` are known changes of the model,
    for the error. Raises NotFoundError if only items are missing, InvalidArgumentError if a shape
    or dtype differs.
    """
    keys = keys_of(items)
    missing = [key for key in keys if key not in found]
    different = [
        name
        for name, item in items.items()
        if isinstance(item, Whole) and name in found and not _same(item, found[name], reshape)
    ]
    if not missing and not different:
        return
    unexpected = [name for name in found if name not in set(keys)]
    rows = [
        *(("missing", name, _text(items.get(name)), "-") for name in missing),
        *(("different", name, _text(items[name]), str(found[name])) for name in different),
        *(("unexpected", name, "-", str(found[name])) for name in unexpected),
    ]
    table = _table([("", "variable", "in the model", "in the checkpoint"), *rows])
    first = next((item for item in items.values() if isinstance(item, Variable)), None)
    error = NotFoundError if missing and not different else InvalidArgumentError
    problem = (
        f"Key {missing[0]} not found in checkpoint"
        if error is NotFoundError
        else _difference(different[0], items[different[0]], found[different[0]])
    )
    cause = (
        "a Variable name or other graph key that is missing from the checkpoint"
        if error is NotFoundError
        else "a mismatch between the current graph and the graph from the checkpoint"
    )
    raise error(
        None,
        None,
        explain(
            f"{problem}: the checkpoint {path} does not fit this model. Restoring from checkpoint "
            f"failed. This is most likely due to {cause}",
            expected="the model that wrote the checkpoint",
            received=f"{len(missing)} variables missing, {len(different)} different, "
            f"{len(unexpected)} unexpected\n{table}" + (f"\n{changes}" if changes else ""),
            made_at=None if first is None else first.op.source,
            hint="did feature columns, layers or the optimizer change since the checkpoint was "
            "written? Use another model_dir for the new model",
        ),
    )


def _same(variable: Whole, found: Found, reshape: bool) -> bool:
    shape = variable.shape
    fits = shape.is_compatible_with(found.shape)
    if reshape and shape.is_fully_defined():
        fits = shape.num_elements() == math.prod(found.shape)
    return bool(fits) and variable.dtype.name == found.dtype


def _difference(name: str, item: Any, found: Found) -> str:
    if item.dtype.name != found.dtype:
        return (
            f"tensor_name = {name}; expected dtype {item.dtype.name} does not equal original "
            f"dtype {found.dtype}"
        )
    lhs, rhs = (",".join(map(str, shape)) for shape in (item.shape.as_list(), found.shape))
    return f"Assign requires shapes of both tensors to match. lhs shape= [{lhs}] rhs shape= [{rhs}]"


def _text(item: Item | None) -> str:
    return f"{item.shape} {item.dtype.name}" if isinstance(item, Whole) else "-"


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "    "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
