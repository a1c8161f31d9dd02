"""Initialization of variables from checkpoints: `init_from_checkpoint`, `warm_start`.

A variable's initializer is replaced by one that reads the checkpoint when run. Therefore call these
functions before creating `global_variables_initializer()`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.conversion import make
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.variables import Variable
from estimatorkit.logger import logger
from estimatorkit.ops.files.checkpoint_ops import RESTORE, restore_v2
from estimatorkit.ops.variables.partitioned_variables import PartitionedVariable
from estimatorkit.ops.variables.variable_collections import global_variables, trainable_variables
from estimatorkit.ops.variables.variable_scope import partitioned_variables
from estimatorkit.storage.checkpoint import locate_checkpoint, read_contents
from estimatorkit.storage.checkpoint_manifest import TensorEntry
from estimatorkit.train.saving.vocabulary_change import VocabInfo, changed_value

AnyPath = str | os.PathLike[str]
Parts = Variable | PartitionedVariable | Sequence[Variable]


def init_from_checkpoint(
    ckpt_dir_or_file: AnyPath, assignment_map: Mapping[str, Any] | Iterable[tuple[str, Any]]
) -> None:
    """Initializes variables of the default graph from a checkpoint.

    Args:
        ckpt_dir_or_file: a checkpoint, of this package or TensorFlow, or a model folder.
        assignment_map: maps names in the checkpoint to the graph, a dict or pairs:
            'scope/': 'other/' initializes every variable below `other/` from the tensor of the same
            name below `scope/` ('/' is the root); 'name': a variable, its name, a partitioned
            variable, or a list of parts.

    Raises:
        ValueError: a tensor is missing or its shape differs, or no variable matches.
        NotFoundError: there is no such checkpoint.
    """
    path = locate_checkpoint(ckpt_dir_or_file)
    source = _Source(path, read_contents(path))
    pairs = assignment_map.items() if isinstance(assignment_map, Mapping) else assignment_map
    known = _variables(get_default_graph())
    for old, target in pairs:
        found = known.get(target) if isinstance(target, str) else target
        if found is not None:
            source.initialize(old, found)
            continue
        if not old.endswith("/") or not (target == "/" or target.endswith("/")):
            hint = did_you_mean(target, known)
            raise value_error(
                f"Assignment map with scope only name {target.rpartition('/')[0]} should map "
                f"to scope only {old}. Should be 'scope/': 'other_scope/'",
                received=f"{old!r}: {target!r}, and there is no variable {target!r}",
                hint=hint,
            )
        scope = "" if target == "/" else target
        prefix = "" if old == "/" else old
        for name, variable in sorted(known.items()):
            if name.startswith(scope):
                source.initialize(prefix + name[len(scope) :], variable)


class _Source:
    """A checkpoint to initialize variables from."""

    def __init__(self, path: str, contents: Mapping[str, TensorEntry]) -> None:
        self._path = os.path.abspath(path)  # the initializer may run in another folder
        self._contents = contents

    def initialize(self, name: str, target: Parts) -> None:
        """Initializes a variable, or its parts, from the tensor `name`.

        Raises ValueError if there is no such tensor, or its shape differs.
        """
        entry = self._contents.get(name)
        if entry is None:
            raise value_error(
                f"Tensor {name} is not found in {self._path} checkpoint",
                expected=f"one of its {len(self._contents)} tensors",
                hint=did_you_mean(name, self._contents),
            )
        if isinstance(target, Variable):
            if not target.shape.is_compatible_with(entry.shape):
                raise self._misfit(name, entry, target.op.name, str(target.shape))
            self._start(target, name, "", entry)
            return
        parts = list(target)
        for part, spec in zip(parts, self._specs(name, entry, parts), strict=True):
            self._start(part, name, spec, entry)

    def _specs(self, name: str, entry: TensorEntry, parts: Sequence[Variable]) -> list[str]:
        """Returns the parts' slices of a tensor, in TensorFlow's shape_and_slices notation."""
        shapes = [tuple(part.shape.as_list()) for part in parts]
        sizes = entry.shape
        for axis in range(len(sizes)):
            cuts = [shape[axis] if len(shape) == len(sizes) else None for shape in shapes]
            if None in cuts or sum(cuts) != sizes[axis]:  # type: ignore[arg-type]
                continue
            if any(
                shape[:axis] + shape[axis + 1 :] != sizes[:axis] + sizes[axis + 1 :]
                for shape in shapes
            ):
                continue
            starts = np.cumsum([0, *cuts])[:-1]
            whole = " ".join(map(str, sizes))
            places = ["-"] * len(sizes)
            specs = []
            for start, size in zip(starts, cuts, strict=True):
                places[axis] = f"{start},{size}"
                specs.append(f"{whole} {':'.join(places)}")
            return specs
        names = ",".join(part.op.name for part in parts)
        raise self._misfit(name, entry, names, " ".join(map(str, shapes)))

    def _misfit(self, name: str, entry: TensorEntry, variable: str, shape: str) -> ValueError:
        return value_error(
            f"Shape of variable {variable} ({shape}) doesn't match with shape of tensor {name} "
            f"({list(entry.shape)}) from checkpoint reader",
            received=f"the checkpoint {self._path}",
        )

    def initialize_changed(self, name: str, target: Parts, info: VocabInfo) -> None:
        """Initializes a variable from the tensor `name`, matching rows by word.

        Raises ValueError if there is no such tensor, or sizes do not match.
        """
        entry = self._contents.get(name)
        if entry is None:
            raise value_error(
                f"Tensor {name} is not found in {self._path} checkpoint",
                expected=f"one of its {len(self._contents)} tensors",
                hint=did_you_mean(name, self._contents),
            )
        for part in [target] if isinstance(target, Variable) else target:
            self._start(part, name, "", entry, info)

    def _start(
        self,
        variable: Variable,
        name: str,
        spec: str,
        entry: TensorEntry,
        info: VocabInfo | None = None,
    ) -> None:
        graph = variable.graph
        with graph.init_scope(), graph.name_scope(None), graph.colocate_with(variable):
            (value,) = restore_v2(
                self._path, [name], [spec], [entry.dtype], name="checkpoint_initializer"
            )
            if info is None:
                value.set_shape(variable.shape)
            else:
                value = changed_value(value, entry, variable, info)
            variable.initial_value = value
            variable.initializer = make(
                "AssignVariableOp",
                {"ref": variable.handle, "value": value},
                name=f"{variable.op.name}/Assign",
            ).op
        logger.debug("%s starts with %s of %s", variable.op.name, name, self._path)


def _variables(graph: Graph) -> dict[str, Parts]:
    """Returns the graph's variables by name, partitioned ones as wholes."""
    wholes = {each.name: each for each in partitioned_variables(graph)}
    parts = {part for whole in wholes.values() for part in whole}
    single = {v.op.name: v for v in global_variables() if v not in parts}
    return {**single, **wholes}


def warm_start(
    ckpt_to_initialize_from: AnyPath,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: Mapping[str, Any] | None = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Initializes selected variables from a checkpoint (`tf.compat.v1.train.warm_start`).

    Args:
        ckpt_to_initialize_from: a checkpoint, or a model folder.
        vars_to_warm_start: a regular expression for names of trainable variables, a list of
            expressions for names of global variables, or a list of variables.
        var_name_to_vocab_info: a `VocabInfo` for each variable whose vocabulary has changed.
        var_name_to_prev_var_name: the names in the checkpoint, where they differ.

    Raises:
        ValueError: a name in a dict is not warm-started, a list has items of other types, or as
            `init_from_checkpoint`.
    """
    previous = dict(var_name_to_prev_var_name or {})
    changed: dict[str, VocabInfo] = dict(var_name_to_vocab_info or {})
    known = _variables(get_default_graph())
    chosen = _chosen(known, vars_to_warm_start)
    chosen.update((name, known[name]) for name in changed if name in known)
    for what, given in (
        ("var_name_to_prev_var_name", previous),
        ("var_name_to_vocab_info", changed),
    ):
        unused = sorted(set(given) - set(chosen))
        if unused:
            raise value_error(
                f"You provided the following variables in {what} that were not used: {unused}",
                expected=f"some of {sorted(chosen)}",
            )
    for name, variable in list(chosen.items()):
        ids = getattr(variable, "row_ids", None)
        if ids is not None:  # rows are worthless without their ids
            chosen[ids.op.name] = ids
            if name in previous:
                previous.setdefault(ids.op.name, f"{previous[name].rpartition('/')[0]}/ids")
    path = locate_checkpoint(ckpt_to_initialize_from)
    source = _Source(path, read_contents(path))
    for name, variable in chosen.items():
        if name in changed:
            source.initialize_changed(previous.get(name, name), variable, changed[name])
        else:
            source.initialize(previous.get(name, name), variable)


def starts_from_checkpoint(graph: Graph) -> bool:
    """Returns whether `init_from_checkpoint` or `warm_start` has been called in a graph."""
    return any(RESTORE.made(op) for op in graph.get_operations())


def _chosen(known: Mapping[str, Parts], wanted: Any) -> dict[str, Parts]:
    if wanted is None:
        return {}
    if isinstance(wanted, str):
        trainable = {variable.op.name for variable in trainable_variables()}
        return {
            name: variable
            for name, variable in known.items()
            if _matches(wanted, name, variable)
            and (name in trainable or not isinstance(variable, Variable))
        }
    items = [wanted] if isinstance(wanted, Variable) else list(wanted)
    if len({isinstance(item, str) for item in items}) > 1 or not all(
        isinstance(item, (str, Variable, PartitionedVariable)) for item in items
    ):
        raise ValueError(
            "If `vars_to_warm_start` is a list, it must be all `Variable` or all `str`.  Given "
            f"types are {[type(item) for item in items]}"
        )
    result: dict[str, Parts] = {}
    for item in items:
        if isinstance(item, str):
            result.update(
                (n, variable) for n, variable in known.items() if _matches(item, n, variable)
            )
        else:
            result[item.op.name if isinstance(item, Variable) else item.name] = item
    return result


def _matches(expression: str, name: str, variable: Parts) -> bool:
    """Returns whether an expression matches the start of a variable's name, or of its full name.

    Full names are those of the variable or one of its parts, such as `w/part_0:0`.
    """
    parts = [variable] if isinstance(variable, Variable) else variable
    return any(re.match(expression, each) for each in (name, *(part.name for part in parts)))
