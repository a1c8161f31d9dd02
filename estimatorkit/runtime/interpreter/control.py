"""Rules of control flow, and of the tests of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.program import Program
from estimatorkit.runtime.interpreter.rules import rule
from estimatorkit.runtime.xla.collected_faults import scan_counts

_check: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)

CHECKED = 256
"""Iterations of a `while` loop between two cancellation checks."""


class Faulted(Exception):
    """A test of the program failed: its values depend on a fault."""


@contextmanager
def cancellable_by(check: Callable[[], None]) -> Iterator[None]:
    """A context manager in which `while` loops call a check, which may raise."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


@rule("guard")
def _guard(equation: Equation) -> Function:
    def run(value: Any, bad: Any, *_: Any) -> Any:
        if bad.any():
            raise Faulted
        return value

    return run


@rule("cond")
def _cond(equation: Equation) -> Function:
    branches = equation.params["branches"]
    made: dict[int, Program] = {}

    def run(index: Any, *operands: Any) -> list[Any]:
        at = min(max(int(index), 0), len(branches) - 1)
        program = made.get(at)
        if program is None:  # the other branch is mostly not needed
            program = made[at] = Program(branches[at], equation.sizes)
        return program(*operands)

    return run


@rule("while")
def _while(equation: Equation) -> Function:
    parameters = equation.params
    split = parameters["cond_nconsts"]
    end = split + parameters["body_nconsts"]
    condition = Program(parameters["cond_jaxpr"], equation.sizes)
    body = Program(parameters["body_jaxpr"], equation.sizes)

    def run(*operands: Any) -> list[Any]:
        own, constants, values = operands[:split], operands[split:end], list(operands[end:])
        check, done = _check.get(), 0
        while condition(*own, *values)[0]:
            values = body(*constants, *values)
            done += 1
            if check is not None and done % CHECKED == 0:
                check()
        return values

    return run


@rule("scan")
def _scan(equation: Equation) -> Function:
    parameters = equation.params
    constants, carried = scan_counts(parameters)
    end = constants + carried
    length, reverse = parameters["length"], parameters["reverse"]
    body = Program(parameters["jaxpr"], equation.sizes)
    stacks = equation.outputs[carried:]
    order = range(length - 1, -1, -1) if reverse else range(length)

    def run(*operands: Any) -> list[Any]:
        shared, values, columns = operands[:constants], operands[constants:end], operands[end:]
        stacked = [np.empty(aval.shape, aval.dtype) for aval in stacks]
        for at in order:
            results = body(*shared, *values, *[column[at] for column in columns])
            values = results[:carried]
            for stack, row in zip(stacked, results[carried:], strict=True):
                stack[at] = row
        return [*values, *stacked]

    return run


@rule("custom_lin", "pure_callback", "io_callback", "debug_callback", "pallas_call")
def _refused(equation: Equation) -> Function:
    from estimatorkit.runtime.interpreter.equations import NotInterpretable

    raise NotInterpretable(equation.name)


__all__ = ["ClosedJaxpr", "Faulted", "cancellable_by"]
