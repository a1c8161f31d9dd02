"""The rewriting of a segment's jaxpr that makes the first fault an output (see `faults`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Literal, Var, jaxprs_in_params

from estimatorkit.runtime.xla.faults import COMMIT, GUARD, LENGTH, no_fault
from estimatorkit.runtime.xla.jaxpr_optimizer import bind_equation


def has(jaxpr: Any, *primitives: Any) -> bool:
    """Whether a jaxpr contains one of the primitives, at any depth."""
    return any(
        equation.primitive in primitives
        or any(has(inner, *primitives) for inner in jaxprs_in_params(equation.params))
        for equation in jaxpr.eqns
    )


def collect(
    closed: ClosedJaxpr, arguments: Sequence[Any], vector: Any, axis: str | None
) -> tuple[list[Any], Any]:
    """Runs a jaxpr that contains marks; also returns the vector of its first fault.

    Args:
        closed: the jaxpr.
        arguments: its arguments.
        vector: that of the steps before: after a fault, variables keep their values; or None.
        axis: the mesh axis of replicas, who learn of each other's faults; or None.
    """
    collected = _Collected(vector, axis)
    outputs = collected.run(closed, arguments)
    return outputs, collected.shared()


class _Test(NamedTuple):
    """A test that has been traced."""

    bad: Any
    values: tuple[Any, ...]
    site: int

    @property
    def kind(self) -> Any:
        """The key by which tests are grouped to be reduced together."""
        return self.bad.shape, tuple((each.shape, each.dtype) for each in self.values)


_LAST = np.int32(np.iinfo(np.int32).max)


def _first(tests: Sequence[_Test]) -> tuple[Any, Any]:
    """The vector of the first test that fails, and whether none does.

    The vector is computed in each step, in few kernels, each of which takes about 1 us: one minimum
    of the numbers of all tests' elements, then scalars. By `lax.cond` or `argmax` it took 20 us
    longer on a CPU (jax 0.10).
    """
    ends = np.cumsum([test.bad.size for test in tests], dtype=np.int64)
    if ends[-1] >= _LAST and len(tests) > 1:
        (first, is_good), (rest, are_good) = _first(tests[:1]), _first(tests[1:])
        return jnp.where(is_good, rest, first), is_good & are_good
    starts = [np.int32(each) for each in (0, *ends[:-1])]
    kinds: dict[Any, list[tuple[_Test, Any]]] = {}
    for test, start in zip(tests, starts, strict=True):
        kinds.setdefault(test.kind, []).append((test, start))
    every = [functools.reduce(jnp.minimum, starmap(_numbers, own)) for own in kinds.values()]
    # XLA would replace the minimum of a concatenation by the minimum of each part.
    joined = lax.optimization_barrier(jnp.concatenate(every))  # type: ignore[no-untyped-call]
    number = jnp.min(joined)

    def of_first(given: Sequence[Any]) -> Any:
        return _of_first(number, starts, given)

    site, place = of_first([np.int32(test.site) for test in tests]), number - of_first(starts)
    kind = of_first([list(kinds).index(test.kind) for test in tests])
    words = [jnp.where(number < _LAST, site, 0), place]
    for which, own in enumerate(kinds.values()):
        values = _values(own, number, place)
        for at, value in enumerate(values, 2):
            if at == len(words):
                words.append(value)
            else:
                words[at] = jnp.where(kind == which, value, words[at])
    words += [0] * (LENGTH - len(words))
    return jnp.stack([jnp.asarray(each, jnp.int32) for each in words]), number == _LAST


def _numbers(test: _Test, start: Any) -> Any:
    """The numbers of faulty elements, where those of a test begin at `start`."""
    bad = test.bad.reshape(-1)
    return jnp.where(bad, lax.iota(jnp.int32, bad.size) + start, _LAST)


def _of_first(number: Any, starts: Sequence[Any], given: Sequence[Any]) -> Any:
    """The entry of `given` for the last test that starts at `number` or before."""
    result = given[0]
    for start, other in zip(starts[1:], given[1:], strict=True):
        result = jnp.where(number >= start, other, result)
    return result


def _values(own: Sequence[tuple[_Test, Any]], number: Any, place: Any) -> Iterator[Any]:
    """The values to report of an element, if one of these tests, all of one kind, has it."""
    tests, starts = zip(*own, strict=True)
    for given in zip(*(test.values for test in tests), strict=True):
        value = _of_first(number, starts, given)
        if value.size > 1:
            row = jnp.broadcast_to(value, tests[0].bad.shape).reshape(-1)
            value = lax.dynamic_index_in_dim(row, place, 0, keepdims=False)
        yield value.reshape(())


class _Collected:
    """Runs jaxprs, and keeps the vector of their first fault.

    Args:
        vector: that of the preceding computation; None if it had no tests.
        axis: see `collect`.
    """

    def __init__(self, vector: Any, axis: str | None = None) -> None:
        self._vector = vector
        self._axis = axis
        self._is_shared = True
        self._tests: list[_Test] = []
        self._good: Any = None
        self._count = 0

    @property
    def has_tests(self) -> bool:
        """Whether there have been tests so far."""
        return self._vector is not None or bool(self._tests)

    def vector(self) -> Any:
        """The vector of the first fault, of all tests so far; None if there are none."""
        if self._tests:
            (vector, good), before = _first(self._tests), self._vector
            if before is not None:
                was_good = before[0] == 0
                vector, good = jnp.where(was_good, vector, before), was_good & good
            self._vector, self._good = vector, good
            self._tests = []
            self._is_shared = False
        return self._vector

    def shared(self) -> Any:
        """The vector; of replicas, that of the first one which has a fault."""
        vector = self.vector()
        if self._axis is not None and vector is not None and not self._is_shared:
            every = lax.all_gather(vector, self._axis)
            self._vector = every[jnp.argmax(every[:, 0] != 0)]
            self._is_shared = True
            self._good = None
        return self._vector

    def run(self, closed: Any, arguments: Sequence[Any]) -> list[Any]:
        """The outputs of a `ClosedJaxpr`."""
        jaxpr = closed.jaxpr
        values: dict[Any, Any] = {}
        values.update(zip(jaxpr.constvars, closed.consts, strict=True))
        values.update(zip(jaxpr.invars, arguments, strict=True))

        def read(atom: Any) -> Any:
            return atom.val if isinstance(atom, Literal) else values[atom]

        commits = _commits_of(jaxpr)
        selected: dict[Any, int] = {}  # the number of preceding checks
        for number, equation in enumerate(jaxpr.eqns):
            given = list(map(read, equation.invars))
            if number in commits.scatters and self.has_tests:
                root = equation.invars[0]
                if (
                    not isinstance(root, Literal)
                    and root in commits.olds
                    and selected.get(root) != self._count
                ):
                    given[0] = self._kept(given[0], read(commits.olds[root]))
                given[1] = self._nowhere_after_fault(given[1])
            new = equation.invars[-1] if equation.primitive is COMMIT else None
            is_selected = isinstance(new, Var) and selected.get(new) == self._count
            if is_selected or number in commits.covered:
                results = [given[1]]
            else:
                results = self._results(equation, given)
            values.update(zip(equation.outvars, results, strict=True))
            for result in equation.outvars:
                old = commits.olds.get(result)
                if (
                    old is not None
                    and self.has_tests
                    and (isinstance(old, Literal) or old in values)
                ):
                    values[result] = self._kept(values[result], read(old))
                    selected[result] = self._count
        return list(map(read, jaxpr.outvars))

    def _results(self, equation: Any, given: list[Any]) -> list[Any]:
        primitive = equation.primitive
        if primitive is GUARD:
            value, bad, *values = given
            self._tests.append(_Test(bad, tuple(values), equation.params["site"]))
            self._count += 1
            return [value]
        has_tests = self.has_tests
        if primitive is COMMIT:
            old, new = given
            return [self._kept(new, old) if has_tests else new]
        marks = (GUARD, COMMIT) if has_tests else (GUARD,)
        if any(has(inner, *marks) for inner in jaxprs_in_params(equation.params)):
            if self.vector() is None:
                self._vector = jnp.asarray(no_fault())
            run = _CONTAINERS.get(primitive.name)
            if run is None:
                raise AssertionError(f"no rule for checks within {primitive.name}")
            return list(run(self, equation, given))
        return bind_equation(equation, given)

    def _is_good(self) -> Any:
        """Whether there has been no fault so far.

        Computed without the vector where possible: XLA fuses what this depends on into the kernel
        of each variable's update; the vector's part was a quarter of a transformer's instructions.
        """
        vector = self.shared()
        if self._good is None:
            self._good = vector[0] == 0
        return self._good

    def _kept(self, new: Any, old: Any) -> Any:
        """The new value of a variable, or the old one after a fault."""
        return jnp.where(self._is_good(), new, old)

    def _nowhere_after_fault(self, indices: Any) -> Any:
        """Indices of a scatter, which drops those out of range."""
        most = np.array(np.iinfo(indices.dtype).max, indices.dtype)
        return jnp.where(self._is_good(), indices, most)

    # -- within other equations

    def within(self, closed: Any, vector: Any, arguments: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The vector after a jaxpr, and its outputs."""
        own = _Collected(vector)
        outputs = own.run(closed, arguments)
        return own.vector(), outputs

    def _after(self, results: tuple[Any, Sequence[Any]]) -> Sequence[Any]:
        self._vector, outputs = results
        self._is_shared, self._good = False, None
        self._count += 1
        return outputs

    def called(self, equation: Any, given: list[Any]) -> Sequence[Any]:
        """A function that is called: its equations, here."""
        inner = equation.params.get("call_jaxpr", equation.params.get("jaxpr"))
        closed = inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())
        return self._after(self.within(closed, self.vector(), given))

    def recomputed(self, equation: Any, given: list[Any]) -> Sequence[Any]:
        """A function under `jax.checkpoint`."""
        closed = ClosedJaxpr(equation.params["jaxpr"], ())
        run = functools.partial(self.within, closed)
        options = {key: equation.params[key] for key in ("prevent_cse", "policy")}
        return self._after(jax.checkpoint(run, **options)(self._vector, given))

    def branches(self, equation: Any, given: list[Any]) -> Sequence[Any]:
        """`lax.cond` and `lax.switch`."""
        index, *operands = given
        runs = [functools.partial(self.within, each) for each in equation.params["branches"]]
        return self._after(lax.switch(index, runs, self._vector, operands))

    def while_loop(self, equation: Any, given: list[Any]) -> Sequence[Any]:
        """`lax.while_loop`: ends at a fault."""
        parameters = equation.params
        split = parameters["cond_nconsts"]
        end = split + parameters["body_nconsts"]
        own, constants, start = given[:split], given[split:end], given[end:]
        condition = functools.partial(self.within, parameters["cond_jaxpr"])
        tests = has(parameters["cond_jaxpr"].jaxpr, GUARD)

        def go_on(state: Any) -> Any:
            vector, values = state
            return (vector[0] == 0) & condition(vector, [*own, *values])[1][0]

        def body(state: Any) -> Any:
            vector, values = state
            if tests:
                vector, _ = condition(vector, [*own, *values])
            return self.within(parameters["body_jaxpr"], vector, [*constants, *values])

        vector, values = lax.while_loop(go_on, body, (self._vector, start))
        if tests:
            vector, _ = condition(vector, [*own, *values])
        return self._after((vector, values))

    def scanned(self, equation: Any, given: list[Any]) -> Sequence[Any]:
        """`lax.scan`."""
        parameters = equation.params
        split, count = scan_counts(parameters)
        end = split + count
        constants, start, columns = given[:split], given[split:end], given[end:]

        def step(carried: Any, row: Any) -> Any:
            vector, values = carried
            vector, outputs = self.within(parameters["jaxpr"], vector, [*constants, *values, *row])
            return (vector, outputs[:count]), outputs[count:]

        options = {key: parameters[key] for key in ("length", "reverse", "unroll")}
        (vector, after), stacks = lax.scan(step, (self._vector, start), columns, **options)
        return self._after((vector, [*after, *stacks]))


def scan_counts(parameters: Mapping[str, Any]) -> tuple[int, int]:
    """The numbers of constants and of carried values of a `lax.scan`."""
    if "num_consts" in parameters:  # JAX 0.10
        return parameters["num_consts"], parameters["num_carry"]
    constants, carried, _ = parameters["ft_in"].unpack()
    return len(constants), len(carried)


_CONTAINERS: dict[str, Callable[[_Collected, Any, list[Any]], Sequence[Any]]] = {
    "cond": _Collected.branches,
    "while": _Collected.while_loop,
    "scan": _Collected.scanned,
    "remat2": _Collected.recomputed,
    "checkpoint": _Collected.recomputed,
    **dict.fromkeys(
        ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"),
        _Collected.called,
    ),
}


class _Commits(NamedTuple):
    """How the new values of variables are made.

    Scatters drop their rows after a fault: a variable then keeps its old value without a pass over
    all of it. Other values are selected where they are made: what else is made of them is not
    needed after a fault, and XLA would compute them twice if it used them unselected.

    Attributes:
        scatters: the equations that are scatters.
        olds: the old values, by the new ones, or by those that the first scatter starts with.
        covered: the commits of scatters, by their equations.
    """

    scatters: set[int]
    olds: dict[Any, Any]
    covered: set[int]


def _commits_of(jaxpr: Any) -> _Commits:
    made = {
        result: number for number, equation in enumerate(jaxpr.eqns) for result in equation.outvars
    }
    found = _Commits(set(), {}, set())
    several: set[Any] = set()
    for number, equation in enumerate(jaxpr.eqns):
        if equation.primitive is not COMMIT:
            continue
        old, new = equation.invars
        while not isinstance(new, Literal) and new in made:
            maker = made[new]
            if not jaxpr.eqns[maker].primitive.name.startswith("scatter"):
                break
            found.scatters.add(maker)
            found.covered.add(number)
            new = jaxpr.eqns[maker].invars[0]
        is_made = new is not old and not isinstance(new, Literal)
        if is_made and found.olds.setdefault(new, old) is not old:
            several.add(new)
    for new in several:
        del found.olds[new]
    return found
