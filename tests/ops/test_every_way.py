"""Every op gives the same however its inputs are given, in every dtype that its row accepts.

Inputs are fed, constants (which NumPy folds), fed constants, variables, captured by functions,
elements of datasets, and read from a `GraphDef`. The values are those of the rows' cases, cast to
other dtypes, with NaN and infinities, at the limits of integers, with 4,096 elements of 16 bits,
and without elements. What is fed is the reference: `test_ops` compares it with NumPy. Many
operations share a graph and a run, since compiling is what takes the time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import estimatorkit.compat.v1 as tf
from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import ALL, DType, as_dtype
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.control.defun import Defun
from tests.ops.test_ops import Example, apply, as_array, examples, fed, reads_a_handle
from tests.sweep import sweep

Values = list[Any] | Exception


class Trial(NamedTuple):
    """An example with the arrays of its inputs."""

    example: Example
    label: str
    arrays: list[NDArray[Any]]

    def __str__(self) -> str:
        return f"{self.example.row.type} of {self.label}"

    def build(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs for these inputs; those that must be known are constants."""
        known = [
            constant(array) if position in self.example.static else tensor
            for position, (array, tensor) in enumerate(zip(self.arrays, inputs, strict=True))
        ]
        return list(apply(self.example, known).outputs)


# -- the inputs

_DTYPES = [dtype for dtype in ALL.values() if dtype.kind in "fcib"]


def of_cases() -> list[Trial]:
    """The cases as they are."""
    return [Trial(example, "its case", example.arrays) for example in _examples()]


def of_every_dtype() -> list[Trial]:
    """The cases in every dtype that their row accepts, and with special values."""
    found = [trial for example in _examples() for trial in _variants(example)]
    return [trial for trial in found if _is_accepted(trial)]


def _examples() -> Iterator[Example]:
    for parameter in examples():
        example = parameter.values[0]
        # Their outputs depend on the replicas; a handle is not a value.
        if not reads_a_handle(example) and example.row.type not in ("AllReduce", "AllGather"):
            yield example


def _is_accepted(trial: Trial) -> bool:
    with tf.Graph().as_default():
        try:
            trial.build(fed(trial.arrays))
        except (TypeError, ValueError, tf.errors.InvalidArgumentError):
            return False
    return True


def _variants(example: Example) -> Iterator[Trial]:
    arrays = example.arrays
    if not arrays or arrays[0].dtype.kind in "OSU":
        return
    own = as_dtype(arrays[0].dtype)
    data = [
        position
        for position, array in enumerate(arrays)
        if as_dtype(array.dtype) is own and position not in example.static
    ]
    if not data:
        return

    for dtype in _DTYPES:
        if (own.is_integer and dtype.is_differentiable) or own.is_bool:
            continue  # indices, flags
        accepted = [example.row.accepted(position) for position in data]
        if any(each and dtype not in each for each in accepted):
            continue
        cast = _changed(arrays, data, _cast, dtype)
        yield Trial(example, dtype.name, cast)
        if dtype.is_floating:
            for special in ([np.nan], [np.inf, -np.inf]):
                label = f"{dtype.name} with {special[0]}"
                yield Trial(example, label, _changed(cast, data, _with, special))
        if dtype.is_integer and own.is_floating:
            label = f"{dtype.name} at its limits"
            yield Trial(example, label, _changed(cast, data, _with, [dtype.min, dtype.max]))
        if dtype.name in ("float16", "bfloat16"):
            yield Trial(example, f"4096 {dtype.name}", _changed(cast, data, _many))
    yield Trial(example, "no elements", _changed(arrays, data, _none))


def _changed(
    arrays: list[NDArray[Any]], data: list[int], change: Callable[..., NDArray[Any]], *how: Any
) -> list[NDArray[Any]]:
    return [change(each, *how) if at in data else each for at, each in enumerate(arrays)]


def _none(array: NDArray[Any]) -> NDArray[Any]:
    return array[:0] if array.ndim else array


def _cast(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    if array.dtype.kind == "c" and not dtype.is_complex:
        array = array.real
    elif dtype.is_complex and array.dtype.kind != "c":
        array = array * (1 + 0.5j)
    with np.errstate(invalid="ignore", over="ignore"):
        return (np.abs(array) if dtype.is_unsigned else array).astype(dtype.numpy_dtype)


def _with(array: NDArray[Any], values: Sequence[Any]) -> NDArray[Any]:
    """The array with the values as its first and last elements."""
    result = np.array(array)
    for place, value in zip((0, -1), values, strict=False):
        result.reshape(-1)[place : place + 1 or None] = value
    return result


def _many(array: NDArray[Any]) -> NDArray[Any]:
    repeats = 4096 // max(array.size, 1)
    return np.tile(array, [1] * (array.ndim - 1) + [repeats]) if array.ndim else array


# -- the ways


def _values(session: Any, outputs: Sequence[Sequence[Tensor]], feeds: Any) -> list[Values]:
    found: list[Values] = session.run([list(each) for each in outputs], feeds)
    return found


def _feeds(trials: Sequence[Trial], inputs: Sequence[Sequence[Tensor]]) -> dict[Any, Any]:
    return {
        tensor: array
        for trial, own in zip(trials, inputs, strict=True)
        for position, (tensor, array) in enumerate(zip(own, trial.arrays, strict=True))
        if position not in trial.example.static
    }


def _by_feeds(trials: Sequence[Trial], session: Any) -> list[Values]:
    inputs = [fed(trial.arrays) for trial in trials]
    outputs = [trial.build(own) for trial, own in zip(trials, inputs, strict=True)]
    return _values(session, outputs, _feeds(trials, inputs))


def _as_constants(trials: Sequence[Trial], session: Any) -> list[Values]:
    return _values(session, [each.build(list(map(constant, each.arrays))) for each in trials], {})


def _as_fed_constants(trials: Sequence[Trial], session: Any) -> list[Values]:
    def other(array: NDArray[Any]) -> NDArray[Any]:
        return np.full_like(array, b"" if array.dtype.kind == "O" else 1)

    inputs = [list(map(constant, map(other, trial.arrays))) for trial in trials]
    outputs = [trial.build(own) for trial, own in zip(trials, inputs, strict=True)]
    return _values(session, outputs, _feeds(trials, inputs))


def _as_variables(trials: Sequence[Trial], session: Any) -> list[Values]:
    def held(array: NDArray[Any]) -> Tensor:
        # Variables cannot hold strings.
        return constant(array) if array.dtype.kind in "OSU" else tf.Variable(array).read_value()

    outputs = [trial.build(list(map(held, trial.arrays))) for trial in trials]
    session.run(tf.global_variables_initializer())
    return _values(session, outputs, {})


def _split(values: Sequence[Any], lengths: Sequence[int]) -> list[Any]:
    rest = iter(values)
    return [[next(rest) for _ in range(length)] for length in lengths]


def _captured_by(call: Callable[[Callable[[], tuple[Tensor, ...]]], Sequence[Tensor]]) -> Any:
    """The way of a function without arguments, which captures fed tensors."""

    def run(trials: Sequence[Trial], session: Any) -> list[Values]:
        inputs = [fed(trial.arrays) for trial in trials]
        lengths: list[int] = []

        def body() -> tuple[Tensor, ...]:
            outputs = [trial.build(own) for trial, own in zip(trials, inputs, strict=True)]
            lengths[:] = map(len, outputs)
            return tuple(tensor for own in outputs for tensor in own)

        tensors = list(call(body))
        return _values(session, _split(tensors, lengths), _feeds(trials, inputs))

    return run


def _by_cond(body: Any) -> Any:
    return tf.cond(tf.placeholder_with_default(True, []), body, body, strict=True)


def _by_while_loop(body: Any) -> Any:
    start = [tf.fill(tf.shape(each), tf.zeros([], each.dtype)) for each in body()]
    return tf.while_loop(lambda i, *_: i < 2, lambda i, *_: [i + 1, *body()], [0, *start])[1:]


def _by_map_fn(body: Any) -> Any:
    dtypes = tuple(each.dtype for each in body())
    stacked = tf.map_fn(lambda _: body(), tf.placeholder_with_default([0, 1], [2]), dtypes)
    return [each[1] for each in stacked]


def _by_defun(body: Any) -> Any:
    @Defun()
    def function() -> Any:
        return body()

    found = function()
    return found if isinstance(found, (list, tuple)) else [found]


def _by_map(trials: Sequence[Trial], session: Any) -> list[Values]:
    """The second of three equal elements, which are computed as one block."""
    arrays = tuple(array for trial in trials for array in trial.arrays)
    lengths: list[int] = []

    def function(*given: Tensor) -> Any:
        inputs = _split(given, [len(trial.arrays) for trial in trials])
        outputs = [trial.build(own) for trial, own in zip(trials, inputs, strict=True)]
        lengths[:] = map(len, outputs)
        return tuple(tensor for own in outputs for tensor in own)

    dataset = tf.data.Dataset.from_tensors(arrays).repeat(3).map(function)
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    session.run(element)
    return _split(session.run(element), lengths)


def _imported(trials: Sequence[Trial], session: Any) -> list[Values]:
    with tf.Graph().as_default() as graph:
        inputs = [fed(trial.arrays) for trial in trials]
        outputs = [trial.build(own) for trial, own in zip(trials, inputs, strict=True)]
    written = graph.as_graph_def().SerializeToString()

    def names(tensors: Sequence[Sequence[Tensor]]) -> list[str]:
        return [tensor.name for own in tensors for tensor in own]

    definition = tf.GraphDef.FromString(written)
    elements = [*names(outputs), *names(inputs)]
    found = tf.import_graph_def(definition, return_elements=elements, name="")
    lengths = [*map(len, outputs), *map(len, inputs)]
    both = _split(found, lengths)
    return _values(session, both[: len(trials)], _feeds(trials, both[len(trials) :]))


WAYS: dict[str, Callable[[Sequence[Trial], Any], list[Values]]] = {
    "fed": _by_feeds,
    "constants": _as_constants,
    "fed constants": _as_fed_constants,
    "variables": _as_variables,
    "cond": _captured_by(_by_cond),
    "while_loop": _captured_by(_by_while_loop),
    "map_fn": _captured_by(_by_map_fn),
    "Defun": _captured_by(_by_defun),
    "map": _by_map,
    "GraphDef": _imported,
}

# A size that has to be positive.
NOT_BUILT = {("fed constants", "CombinedNonMaxSuppression")}

# Rows whose constants and fed values differ, and why.
OTHERWISE = {
    **dict.fromkeys(
        ("Convolution", "ConvolutionBackpropFilter", "ConvolutionBackpropInput"),
        "XLA's interpreter of constants leaves out products with padding",
    ),
    **dict.fromkeys(("Cumprod", "Prod", "PSNR", "RecurrentLoop"), "rounding that adds up"),
    "Mean": "integers are added in floats where XLA computes",
    "RankedListSums": "sums in float32",
    "Rot90": "of computed turns images must be square",
}

PARTS = 8


def attempt(way: str, trials: Sequence[Trial]) -> list[Values]:
    """The values of each trial, or the error that it raises."""
    try:
        with tf.Graph().as_default(), tf.Session() as session:
            return list(WAYS[way](trials, session))
    except (tf.errors.OpError, TypeError, ValueError, IndexError, ArithmeticError) as error:
        if len(trials) == 1:
            return [error]
    middle = len(trials) // 2
    return attempt(way, trials[:middle]) + attempt(way, trials[middle:])


# -- the comparison


def difference(expected: Values, found: Values) -> str:
    """What differs between the values of a trial; '' if nothing does."""
    if isinstance(expected, Exception) or isinstance(found, Exception):
        same = type(expected) is type(found)
        return "" if same else f"{_first_line(expected)} / {_first_line(found)}"
    for one, two in zip(map(as_array, expected), map(as_array, found), strict=True):
        if (one.dtype, one.shape) != (two.dtype, two.shape):
            return f"{one.dtype} {one.shape} / {two.dtype} {two.shape}"
        if not _alike(one, two):
            return f"{one!r:.200} / {two!r:.200}"
    return ""


def _first_line(values: Values) -> str:
    return f"{type(values).__name__} {values!s:.200}".splitlines()[0]


# One rounding of 16 bits and a few of 32 and 64.
_TOLERANCES = {"bfloat16": 1e-2, "float16": 2e-3, "float32": 3e-6, "complex64": 3e-6}


def _alike(one: NDArray[Any], two: NDArray[Any]) -> bool:
    dtype = as_dtype(one.dtype)
    if not dtype.is_differentiable:
        return np.array_equal(one, two)
    tolerance = _TOLERANCES.get(dtype.name, 1e-12)
    wide = np.complex128 if dtype.is_complex else np.float64
    one, two = one.astype(wide), two.astype(wide)
    largest = np.abs(one[np.isfinite(one)]).max(initial=0.0)
    return np.allclose(two, one, rtol=tolerance, atol=tolerance * min(largest, 1.0), equal_nan=True)


def _compare(way: str, trials: Sequence[Trial], reference: Sequence[Values]) -> None:
    values = attempt(way, trials)
    found = {
        str(trial): different
        for trial, expected, value in zip(trials, reference, values, strict=True)
        if (different := difference(expected, value))
    }
    assert not found


@functools.cache
def _cases(third: int, part: int) -> tuple[list[Trial], list[Values]]:
    trials = of_cases()[third::3][part::PARTS]
    return trials, attempt("fed", trials)


@sweep("part", range(PARTS), quick=1)
@pytest.mark.parametrize("way", [way for way in WAYS if way != "fed"])
def test_ways(way: str, part: int) -> None:
    """Each case in three of the ways."""
    trials, reference = _cases(list(WAYS).index(way) % 3, part)
    other = {row for excepted, row in NOT_BUILT if excepted == way} | OTHERWISE.keys()
    kept = [at for at, each in enumerate(trials) if each.example.row.type not in other]
    _compare(way, [trials[at] for at in kept], [reference[at] for at in kept])


@functools.cache
def _every_dtype() -> list[Trial]:
    return of_every_dtype()


@sweep("part", range(PARTS), quick=1)
def test_constants_of_every_dtype(part: int) -> None:
    """One in twenty."""
    chosen = _every_dtype()[part :: 20 * PARTS]
    trials = [each for each in chosen if each.example.row.type not in OTHERWISE]
    _compare("constants", trials, attempt("fed", trials))
