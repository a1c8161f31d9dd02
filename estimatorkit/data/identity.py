"""`identify`: fingerprints of a dataset's pipeline and of its content.

A saved position counts elements, so it applies only to the same elements: to an equal pipeline
(transformations, batch sizes, seeds, functions) over equal content. Arrays count by their bytes,
files by name, size and time. Generators and the programs behind `py_func` are not asked: what a
generator yields, its checksums tell (`execution.checksums`), and functions count by their code.
"""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from estimatorkit.core.dtypes import DType, resource
from estimatorkit.core.errors import OpError
from estimatorkit.core.function_graph import GraphFunction
from estimatorkit.core.registry import Role, constant_value, lookup, role_of
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.data.execution.checksums import checksum
from estimatorkit.data.parameters import Pending
from estimatorkit.data.plan import Plan
from estimatorkit.data.traced_functions import DatasetFunction
from estimatorkit.runtime.steps.columns import RaggedColumn, SparseColumn
from estimatorkit.storage import gfile
from estimatorkit.storage.filesystem import is_remote

MOST_FILES = 10_000
"""Files whose size and time are looked up (0.1 s on a local disk); others count by name."""

_LOOKUPS = 32
"""Remote files that are looked up at a time, because each takes tens of milliseconds."""

_PLAIN = (bool, int, float, complex, str, bytes, range, types.NoneType, types.EllipsisType)


_NAMES = ("name", "seed", "token")
"""Attributes that differ between equal functions."""


class Identity(NamedTuple):
    """Hexadecimal fingerprints.

    Attributes:
        pipeline: of the transformations and their parameters.
        content: of the data.
    """

    pipeline: str
    content: str


def identify(plan: Plan) -> Identity:
    """Returns the fingerprints of a bound plan; reads its arrays, at several GB/s."""
    walk = _Walk()
    walk.visit(plan)
    walk.visit_files()
    return Identity(walk.pipeline.hexdigest(), walk.content.hexdigest())


class _Walk:
    """Visits all that a plan consists of."""

    def __init__(self) -> None:
        self.pipeline = hashlib.blake2b(digest_size=8)
        self.content = hashlib.blake2b(digest_size=8)
        self._names: list[Any] = []  # arrays of strings, which may be file names
        self._reads_files = False  # by file names that are elements
        self._open: list[Any] = []  # objects being visited: they may refer to themselves

    def visit(self, value: Any) -> None:
        """Adds a value."""
        if isinstance(value, _PLAIN):
            self._note(repr(value))
        elif isinstance(value, (np.ndarray, np.generic)):
            self._visit_array(np.asarray(value))
        elif isinstance(value, (DType, TensorShape, np.dtype, type)):
            self._note(getattr(value, "__qualname__", None) or str(value))
        elif any(each is value for each in self._open):
            self._note("itself")
        else:
            self._open.append(value)
            self._visit_object(value)
            self._open.pop()

    def _visit_object(self, value: Any) -> None:
        self._note(type(value).__qualname__)
        if isinstance(value, (tuple, list)):
            self._visit_all(value)
        elif isinstance(value, (set, frozenset)):
            self._visit_all(sorted(map(repr, value)))
        elif isinstance(value, Enum):
            self._note(value.name)
        elif isinstance(value, Mapping):
            for key, each in value.items():
                self.visit(key)
                self.visit(each)
        elif isinstance(value, Plan):
            self._visit_plan(value)
        elif isinstance(value, DatasetFunction):
            self._visit_function(value.function)
            self._visit_all(_lasting(value))
        elif isinstance(value, GraphFunction):
            self._visit_function(value)
        elif isinstance(value, Pending):
            self._visit_all([tensor.dtype for tensor in value.tensors])
        elif isinstance(value, (RaggedColumn, SparseColumn)):
            self._visit_all([value.shapes, value.starts, *_flat_parts(value)])
        elif isinstance(value, (Tensor, Operation)):
            pass
        elif is_dataclass(value):
            self._visit_all([getattr(value, field.name) for field in fields(value)])
        elif callable(value):
            self._visit_callable(value)

    def _note(self, text: str) -> None:
        self.pipeline.update(f"{len(text)}:{text}".encode())

    def _visit_all(self, values: Any) -> None:
        self._note(str(len(values)))
        for each in values:
            self.visit(each)

    def _visit_array(self, array: Any) -> None:
        if array.dtype.hasobject and not all(isinstance(each, bytes) for each in array.flat):
            self._visit_all(list(array.flat))
            return
        if array.dtype.hasobject:
            self._names.append(array)
        self._note(f"{array.dtype}{array.shape[1:]}")
        self.content.update(f"{checksum(array)} ".encode())

    def _visit_plan(self, plan: Plan) -> None:
        for field in fields(plan):  # type: ignore[arg-type]
            if field.name not in plan.not_identifying:
                self.visit(getattr(plan, field.name))
        names = getattr(plan, "filenames", None)
        if isinstance(names, np.ndarray):
            self._visit_names(names)
        elif names is not None:
            self._reads_files = True

    def _visit_function(self, function: GraphFunction) -> None:
        """Adds the operations by type, inputs and attributes: names and seeds may differ."""
        numbers = {tensor: number for number, tensor in enumerate(function.inputs)}
        for op in function.ops:
            self._note(op.type)
            self._reads_files |= lookup(op.type).semantics.effects == "asset"
            for tensor in op.inputs:
                self.visit(numbers.get(tensor, constant_value(tensor)))
            for name in sorted(op.attrs):
                if not name.startswith("_") and name not in _NAMES:
                    self._note(name)
                    self.visit(op.attrs[name])
            if "_function" in op.attrs:  # of py_func
                self.visit(op.attrs["_function"].call)
            for tensor in op.outputs:
                numbers[tensor] = len(numbers)
        for tensor in function.outputs:
            self.visit(numbers.get(tensor, constant_value(tensor)))

    def _visit_callable(self, function: Callable[..., Any]) -> None:
        """Adds the code, and that of the functions it captures. Values may change while it runs (a
        counter), and objects have state: they do not identify it.
        """
        if isinstance(function, functools.partial):
            self.visit(function.func)
        elif isinstance(function, types.MethodType):
            self.visit(function.__func__)
        elif isinstance(function, types.FunctionType):
            self._visit_code(function.__code__)
            for cell in function.__closure__ or ():
                try:
                    held = cell.cell_contents
                except ValueError:  # not assigned yet
                    continue
                if isinstance(held, types.FunctionType):
                    self.visit(held)

    def _visit_code(self, code: types.CodeType) -> None:
        self.visit(code.co_code)
        self._visit_all(code.co_names)
        for each in code.co_consts:
            if isinstance(each, types.CodeType):
                self._visit_code(each)
            else:
                self.visit(each)

    def visit_files(self) -> None:
        """Adds the files that functions open by the names that they are given."""
        for names in self._names if self._reads_files else ():
            self._visit_names(names)

    def _visit_names(self, names: Any) -> None:
        listed = names.reshape(-1)[:MOST_FILES].tolist()
        if any(map(is_remote, listed)):
            with ThreadPoolExecutor(_LOOKUPS) as pool:
                found = list(pool.map(_size_and_time, listed))
        else:
            found = list(map(_size_and_time, listed))
        for each in found:
            self.content.update(each)


def _size_and_time(name: Any) -> bytes:
    try:
        found = gfile.stat(name)
    except (OpError, OSError, ValueError):
        return b"no file "
    return f"{found.length} {found.mtime_nsec} ".encode()


def _lasting(function: DatasetFunction) -> list[Any]:
    """The captured values that are the same in the next session: those without variables."""
    pairs = zip(function.function.captured, function.captured or (), strict=False)
    return [value for tensor, value in pairs if not _may_change(tensor, set())]


def _may_change(tensor: Tensor, seen: set[Tensor]) -> bool:
    if tensor in seen:
        return False
    seen.add(tensor)
    op = tensor.op
    if role_of(op) in (Role.VARIABLE, Role.READ) or lookup(op.type).semantics.random:
        return True
    return tensor.dtype is resource or any(_may_change(each, seen) for each in op.inputs)


def _flat_parts(column: RaggedColumn | SparseColumn) -> list[Any]:
    if isinstance(column, RaggedColumn):
        return [column.values]
    return [column.indices, column.values]


__all__ = ["Identity", "identify"]
