"""Rules of control flow, and of the tests of a step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.cost import spend
from estimatorkit.runtime.interpreter.equations import Equation, Function, NotInterpretable
from estimatorkit.runtime.interpreter.fission import fission_of
from estimatorkit.runtime.interpreter.program import Program
from estimatorkit.runtime.interpreter.rules import rule
from estimatorkit.runtime.xla.cancellation import FIRST, LoopWatch
from estimatorkit.runtime.xla.collected_faults import scan_counts

_watch: ContextVar[LoopWatch | None] = ContextVar("watch", default=None)


class Faulted(Exception):
    """A test of the program failed: its values depend on a fault."""


@contextmanager
def cancellable_by(watch: LoopWatch | None) -> Iterator[None]:
    """A context manager in which `while` loops end when the watch cancels the call."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


@rule("guard")
def _guard(equation: Equation) -> Function:
    def run(value: Any, bad: Any, *_: Any) -> Any:
        if np.count_nonzero(bad):  # in a fifth of the time of `any`
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
            program = made[at] = equation.numbers.program(branches[at])
        spend(program.seconds)
        return program(*operands)

    return run


@rule("platform_index")
def _platform_index(equation: Equation) -> Function:
    platforms = equation.params["platforms"]
    found = [at for at, each in enumerate(platforms) if each is None or "cpu" in each]
    index = np.asarray(found[0], np.int32)
    return lambda: index


@rule("while")
def _while(equation: Equation) -> Function:
    parameters = equation.params
    split = parameters["cond_nconsts"]
    end = split + parameters["body_nconsts"]
    condition = equation.numbers.program(parameters["cond_jaxpr"])
    count = parameters["body_nconsts"]
    carried = range(count, count + len(equation.outputs))
    body = equation.numbers.program(parameters["body_jaxpr"], carried)
    owned = [at - count for at in body.owned]

    def run(*operands: Any) -> list[Any]:
        own, constants, values = operands[:split], operands[split:end], list(operands[end:])
        for at in owned:
            values[at] = np.array(values[at], order="C")
        watch, done, end_of_turn = _watch.get(), 0, FIRST
        while condition(*own, *values)[0]:
            values = body(*constants, *values)
            done += 1
            if watch is not None:
                if done == end_of_turn:
                    end_of_turn += watch.iterations(done)
                if watch.is_over:
                    break
        spend(done * (condition.seconds + body.seconds))
        return values

    return run


@rule("scan")
def _scan(equation: Equation) -> Function:
    split = fission_of(equation).at(equation)
    if split is not None:
        return split
    parameters = equation.params
    constants, carried = scan_counts(parameters)
    end = constants + carried
    length, reverse = parameters["length"], parameters["reverse"]
    body = equation.numbers.program(parameters["jaxpr"], range(constants, end))
    owned = [at - constants for at in body.owned]
    stacks = equation.outputs[carried:]
    order = range(length - 1, -1, -1) if reverse else range(length)

    def run(*operands: Any) -> list[Any]:
        shared, columns = operands[:constants], operands[end:]
        values = list(operands[constants:end])
        for at in owned:
            values[at] = np.array(values[at], order="C")
        stacked = [np.empty(aval.shape, aval.dtype) for aval in stacks]
        for at in order:
            results = body(*shared, *values, *[column[at] for column in columns])
            values = results[:carried]
            for stack, row in zip(stacked, results[carried:], strict=True):
                stack[at] = row
        return [*values, *stacked]

    run.seconds = length * body.seconds  # type: ignore[attr-defined]
    return run


@rule("custom_lin", "pure_callback", "io_callback", "debug_callback", "pallas_call")
def _refused(equation: Equation) -> Function:
    raise NotInterpretable(equation.name)
