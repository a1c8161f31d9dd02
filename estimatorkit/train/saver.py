"""`Saver`: a session's variables to and from checkpoints (`tf.train.Saver`).

Besides the variables a checkpoint holds what makes a resumed run go on as an uninterrupted one: the
counters of random operations and the positions of iterators. How files are committed is the
business of `core.checkpoint`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.checkpoint import Checkpoint, checkpoint_exists, read_checkpoint
from estimatorkit.core.conversion import as_array
from estimatorkit.core.errors import InvalidArgumentError, NotFoundError, explain
from estimatorkit.core.retention import CheckpointManager
from estimatorkit.core.variables import Variable, global_variables
from estimatorkit.data.iterator_ops import iterator_states, restore_iterators
from estimatorkit.train.log import logger


class Saver:
    """Saves and restores variables.

    Args:
        var_list: the variables: a list, or a dict from the names they have in checkpoints; all
            global variables of the default graph by default.
        max_to_keep: how many checkpoints stay; 0 or None for all.
        keep_checkpoint_every_n_hours: of those that go, one stays for so many hours of training.
        reshape, sharded, name, restore_sequentially, saver_def, builder, defer_build,
        write_version, pad_step_number,
            save_relative_paths, filename: accepted for TensorFlow's signature.
        allow_empty: whether there may be no variables.

    Raises:
        ValueError: there are no variables to save.
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: Any = None,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        self._variables = _by_name(global_variables() if var_list is None else var_list)
        if not self._variables and not allow_empty:
            raise ValueError("No variables to save")
        self._max_to_keep = max_to_keep
        self._every_n_hours = keep_checkpoint_every_n_hours
        self._managers: dict[str, CheckpointManager] = {}

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints that are kept, oldest first."""
        return [path for manager in self._managers.values() for path in manager.last_checkpoints]

    def save(
        self,
        sess: Any,
        save_path: str | os.PathLike[str],
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = False,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str:
        """Writes a checkpoint, moves the pointer to it, then removes those that are too many.

        Args:
            sess: the session.
            save_path: directory and first part of the name, for example 'model_dir/model.ckpt'.
            global_step: a number, tensor or variable that is put behind the name.
            latest_filename: the pointer's name; 'checkpoint' by default.
            meta_graph_suffix, write_meta_graph, write_state, strip_default_attrs, save_debug_info:
                accepted for TensorFlow's signature.

        Returns:
            The checkpoint's path, to be given to `restore`.

        Raises:
            FailedPreconditionError: a variable has no value.
            OpError: the disk refuses (see `core.checkpoint.write_checkpoint`).
        """
        path = os.fspath(save_path)
        if global_step is not None:
            number = global_step if isinstance(global_step, int) else sess.run(global_step)
            path = f"{path}-{int(number)}"
        directory, name = os.path.split(path)
        directory = directory or "."
        manager = self._managers.get(directory)
        if manager is None:
            manager = self._managers[directory] = CheckpointManager(
                directory,
                max_to_keep=self._max_to_keep or 0,
                keep_checkpoint_every_n_hours=self._every_n_hours,
                latest_filename=latest_filename,
            )
        return manager.save(name, self._tensors(sess), self._session_state(sess))

    def _tensors(self, sess: Any) -> dict[str, NDArray[Any]]:
        values = sess.state.take([variable.op.name for variable in self._variables.values()])
        return {
            name: np.asarray(value) for name, value in zip(self._variables, values, strict=True)
        }

    @staticmethod
    def _session_state(sess: Any) -> dict[str, Any]:
        random = {
            name: [int(word) for word in np.asarray(value)]
            for name, value in sess.state.values.items()
            if sess.graph.get_operation_by_name(name).type != "VarHandleOp"
        }
        return {"random": random, "iterators": iterator_states(sess.state)}

    def restore(self, sess: Any, save_path: str | os.PathLike[str]) -> None:
        """Puts a checkpoint's values into the session.

        Raises:
            ValueError: there is no checkpoint of this name.
            NotFoundError: it lacks a variable.
            InvalidArgumentError: a variable has another shape or dtype in it.
            DataLossError: a file of it is damaged.
        """
        if not checkpoint_exists(save_path):
            raise ValueError(
                f"The passed save_path is not a valid checkpoint: {os.fspath(save_path)}"
            )
        restore_checkpoint(sess, read_checkpoint(save_path), self._variables)


def _by_name(variables: Any) -> dict[str, Variable]:
    if isinstance(variables, Mapping):
        return dict(variables)
    return {variable.op.name: variable for variable in variables}


def restore_checkpoint(
    sess: Any, checkpoint: Checkpoint, variables: Mapping[str, Variable], *, iterators: bool = True
) -> None:
    """Puts a checkpoint that has been read into a session.

    Args:
        sess: the session.
        checkpoint: what was read.
        variables: the variables by their names in the checkpoint.
        iterators: whether iterators go to their saved positions too.

    Raises:
        NotFoundError, InvalidArgumentError: see `Saver.restore`; a table lists what is missing and
            different.
    """
    _check_fits(checkpoint, variables)
    for name, variable in variables.items():
        sess.load_variable(variable, as_array(checkpoint.tensors[name], variable.dtype))
    state = checkpoint.state
    known = {op.name for op in sess.graph.get_operations()}
    for name, words in state.get("random", {}).items():
        if name in known:
            sess.state.values[name] = np.array(words, np.uint32)
    if iterators:
        moved = restore_iterators(sess.state, state.get("iterators", {}))
        if moved and not any(moved.values()):
            logger.info("The input starts anew: its end was reached, or it is another dataset.")


def _check_fits(checkpoint: Checkpoint, variables: Mapping[str, Variable]) -> None:
    """Compares names, shapes and dtypes before anything is changed."""
    found = checkpoint.tensors
    missing = [name for name in variables if name not in found]
    different = [
        name
        for name, variable in variables.items()
        if name in found and not _same_kind(variable, found[name])
    ]
    if not missing and not different:
        return
    unexpected = [name for name in found if name not in variables]
    rows = [
        *(_row("missing", name, variables[name], None) for name in missing),
        *(_row("different", name, variables[name], found[name]) for name in different),
        *(_row("unexpected", name, None, found[name]) for name in unexpected),
    ]
    table = _table([("", "variable", "in the model", "in the checkpoint"), *rows])
    error = NotFoundError if missing and not different else InvalidArgumentError
    raise error(
        None,
        None,
        explain(
            f"the checkpoint {os.fspath(checkpoint.path)} does not fit this model",
            expected="the model that the checkpoint was written by",
            received=f"{len(missing)} variables missing, {len(different)} different, "
            f"{len(unexpected)} unexpected\n{table}",
            made_at=next(iter(variables.values())).op.source,
            hint="did feature columns, layers or the optimizer change since the checkpoint was "
            "written? Use another model_dir for the new model",
        ),
    )


def _same_kind(variable: Variable, value: NDArray[Any]) -> bool:
    return (
        variable.shape.is_compatible_with(value.shape) and variable.dtype.numpy_dtype == value.dtype
    )


def _row(
    kind: str, name: str, variable: Variable | None, value: NDArray[Any] | None
) -> tuple[str, str, str, str]:
    return (
        kind,
        name,
        "-" if variable is None else f"{variable.shape} {variable.dtype.name}",
        "-" if value is None else f"{value.shape} {value.dtype.name}",
    )


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "    "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
