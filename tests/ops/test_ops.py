"""Every op of the registry: value, dtype, shape, inference with unknown dimensions, gradient.

The cases come from the rows themselves: a new row is tested by being there, and a row without a
case is red. Inputs are fed through placeholders, so that XLA computes and nothing is folded.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

import estimatorkit
from estimatorkit.core import registry
from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, float64
from estimatorkit.core.gradients import gradients
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import Case, OpDef
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.core.x64 import x64
from estimatorkit.ops.math.elementwise import add_n
from estimatorkit.ops.math.reduce import reduce_sum
from estimatorkit.ops.math.special import conj, imag, real
from estimatorkit.runtime.session import Session
from tests.sweep import sweep

TESTS = Path(__file__).parents[1]

for _module in pkgutil.walk_packages(estimatorkit.__path__, "estimatorkit."):
    importlib.import_module(_module.name)  # each registers its rows

# Rows that no single call can show: tested by name in the file given.
ELSEWHERE = {
    "NoOp": "test_session.py",  # control inputs only
    "Placeholder": "test_session.py",  # fed, never run
    "VarHandleOp": "test_variables.py",  # a handle, never executed
    "VarIsInitializedOp": "test_variables.py",  # asks the session
    **dict.fromkeys(  # so do these
        ("AssertVariablesInitialized", "CountUpTo", "InitializedValue"), "test_variables.py"
    ),
    "ReportUninitializedVariables": "test_variables.py",
    **dict.fromkeys(("BuildNearestNeighbors", "NearestNeighbors"), "test_candidates.py"),
    "EmbeddingRows": "test_embedding_table.py",  # reads and changes variables by their names
    **dict.fromkeys(("KeptExamples", "KeepExamples", "GroupedListSums"), "test_ranking_metrics.py"),
    **dict.fromkeys(("Print", "PrintV2", "PyFunc", "PyFuncStateless"), "test_debug.py"),
    **dict.fromkeys(("If", "While", "Scan", "Call"), "test_control_flow.py"),  # hold functions
    **dict.fromkeys(
        ("DeleteSessionTensor", "GetSessionHandle", "GetSessionTensor"), "test_session.py"
    ),
    "JaxFunction": "test_functions.py",  # needs ranks
    **dict.fromkeys(("MutexV2", "ExecuteInCriticalSection"), "test_critical_section.py"),
    "Timestamp": "test_debug.py",  # another value each time
    "ExportedModule": "test_exported_module.py",  # holds a program
    **dict.fromkeys(("UnigramSampler", "LearnedUnigramCandidateSampler"), "test_nn_golden.py"),
    **dict.fromkeys(("ReadFile", "WriteFile", "MatchingFiles"), "test_files.py"),
    **{type_: "test_tables.py" for type_ in registry.registered_types() if "Table" in type_},
    **dict.fromkeys(("Restore", "RestoreV2", "Save", "SaveV2"), "test_initializing.py"),
    **{type_: "test_readers.py" for type_ in registry.registered_types() if "Reader" in type_},
    **{type_: "test_accumulators.py" for type_ in registry.registered_types() if "Accum" in type_},
    **dict.fromkeys(("RFFT", "RFFT2D", "RFFT3D"), "test_signal.py"),  # complex numbers of real
    **dict.fromkeys(("SparseToBoxes", "BoxesToSparse"), "test_input_producers.py"),
    **{type_: "test_iterators.py" for type_ in registry.registered_types() if "Iterator" in type_},
    **{
        type_: "test_dataset_functions.py"
        for type_ in registry.registered_types()
        if "Dataset" in type_
    },
    "DatasetToTFRecord": "test_tfrecords.py",
    "MergeV2Checkpoints": "test_saver_names.py",
    **{
        type_: "test_golden_pipelines.py"
        for type_ in registry.registered_types()
        if "Optional" in type_
    },
    **{type_: "test_queues.py" for type_ in registry.registered_types() if "Queue" in type_},
    "QueueReopen": "test_sync_replicas.py",
}


# Rows whose shape is not known even where all inputs' are: it depends on values, or is said so.
UNKNOWN_SHAPES = {"AllGather", "PlaceholderWithDefault", "Where", "EditDistance"} | {
    type_ for type_ in registry.registered_types() if "Sparse" in type_ and "Cross" not in type_
}


@pytest.fixture(params=["interpret", "xla"])
def _executor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATORKIT_EXECUTOR", request.param)


in_both_executors = pytest.mark.usefixtures("_executor")


class Example(NamedTuple):
    """One case of one row."""

    row: OpDef
    case: Case

    @property
    def attrs(self) -> dict[str, Any]:
        return {**self.case.attrs, **({"_seed": (1, 2)} if self.row.semantics.random else {})}

    @property
    def static(self) -> tuple[int, ...]:
        return self.row.semantics.static_positions(self.case.attrs)

    @property
    def arrays(self) -> list[NDArray[Any]]:
        return [np.asarray(value) for value in self.case.inputs]

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(zlib.crc32(self.row.type.encode()))


def rows() -> list[OpDef]:
    return [registry.lookup(type_) for type_ in registry.registered_types()]


@functools.cache
def cases(row: OpDef) -> Sequence[Case]:
    return row.cases()


def examples(*, state: bool = False, random: bool = False) -> Iterator[Any]:
    for row in rows():
        if (
            bool(row.semantics.updates) == state
            and row.semantics.random == random
            and row.type not in ELSEWHERE
        ):
            for index, case in enumerate(cases(row)):
                yield pytest.param(Example(row, case), id=f"{row.type}-{index}")


def fed(arrays: Sequence[NDArray[Any]], shapes: Sequence[Any] | None = None) -> list[Tensor]:
    return [
        placeholder(as_dtype(array.dtype), array.shape if shapes is None else shapes[position])
        for position, array in enumerate(arrays)
    ]


def apply(example: Example, inputs: Sequence[Tensor]) -> Operation:
    if reads_a_handle(example):
        inputs = [Variable(inputs[0]).handle]
    return registry.apply(example.row.type, inputs, example.attrs)


def reads_a_handle(example: Example) -> bool:
    return example.row.type == "ReadVariableOp"


def expected_outputs(example: Example) -> tuple[NDArray[Any], ...]:
    row, case = example.row, example.case
    found = [] if case.expected is None else [case.expected]
    if row.numpy_kernel is not None and not row.placement.context:
        found.append(row.numpy_kernel(*example.arrays, **case.attrs))
    assert found, "a case needs `expected` or a numpy_kernel"
    outputs = [
        tuple(map(as_array, value if isinstance(value, (tuple, list)) else (value,)))
        for value in found
    ]
    for one, other in zip(outputs[0], outputs[-1], strict=True):
        compare(one, other)
    return outputs[0]


def as_array(value: Any) -> NDArray[Any]:
    # NumPy's own strings lose zero bytes at their end.
    return np.asarray(value, object if isinstance(value, bytes) else None)


def compare(one: NDArray[Any], other: NDArray[Any]) -> None:
    if one.dtype.kind in "fc" or other.dtype.kind in "fc":
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("type_", registry.registered_types())
def test_every_row_has_a_case(type_: str) -> None:
    if type_ in ELSEWHERE:
        assert any(type_ in file.read_text("utf-8") for file in TESTS.rglob(ELSEWHERE[type_]))
    else:
        assert cases(registry.lookup(type_))


@in_both_executors
@sweep("example", list(examples()), quick=120)
def test_value(example: Example) -> None:
    arrays = example.arrays
    with Graph().as_default() as graph, Session() as session:
        inputs = fed(arrays)
        known = [
            constant(array) if position in example.static else tensor
            for position, (array, tensor) in enumerate(zip(arrays, inputs, strict=True))
        ]
        inferred = apply(example, known).outputs
        feeds = dict(zip(inputs, arrays, strict=True))
        operation = apply(example, inputs)
        for variable in graph.get_collection("variables"):
            session.run(variable.initializer, feeds)
        values = session.run(list(operation.outputs), feeds)
    expected = expected_outputs(example)
    assert len(values) == len(expected)
    for value, wanted, spec in zip(values, expected, inferred, strict=True):
        array = as_array(value)
        assert spec.dtype.numpy_dtype == array.dtype
        assert spec.shape.is_compatible_with(array.shape)
        free = example.row.type in UNKNOWN_SHAPES or example.row.placement.where == "host"
        assert spec.shape.is_fully_defined() or free
        assert array.shape == wanted.shape
        compare(array, wanted)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int64", "bool"])
@sweep("type_", sorted({row.type for row in rows() if row.placement.where != "host"}), quick=100)
def test_kernel_dtype_matches_inference(type_: str, dtype: str) -> None:
    """Within a segment nothing converts: a kernel that promotes would change what follows.

    What a kernel cannot take, the row must refuse.
    """
    row = registry.lookup(type_)
    if row.semantics.random or row.semantics.updates or type_ in ELSEWHERE:
        return
    if type_ == "VectorJacobianProduct" and not as_dtype(dtype).is_floating:
        return  # made by `gradients`, which gives it floats
    for case in row.cases():
        example = Example(row, case)
        arrays = [
            array.astype(as_dtype(dtype).numpy_dtype)
            if array.dtype.kind == "f" and position not in example.static
            else array
            for position, array in enumerate(example.arrays)
        ]
        with Graph().as_default():
            inputs = [constant(array) for array in arrays]
            if any(
                row.accepted(at) and each.dtype not in row.accepted(at)
                for at, each in enumerate(inputs)
            ):
                with pytest.raises(TypeError, match="not in list of allowed values"):
                    apply(example, inputs)
                continue
            inferred = [output.dtype for output in apply(example, inputs).outputs]

        def call(*given: Any, arrays: Any = arrays, example: Any = example) -> Any:
            rest = iter(given)
            return example.row.kernel(
                *(
                    array if position in example.static else next(rest)
                    for position, array in enumerate(arrays)
                ),
                **{key: each for key, each in example.case.attrs.items() if key[0] != "_"},
            )

        traced = [array for at, array in enumerate(arrays) if at not in example.static]
        with x64():
            result = jax.eval_shape(call, *traced)
        results = result if isinstance(result, (tuple, list)) else (result,)
        assert [as_dtype(each.dtype) for each in results] == inferred


@in_both_executors
@pytest.mark.parametrize(
    "example",
    [
        parameter
        for parameter in examples()
        if parameter.values[0].row.placement.where != "host" and len(parameter.values[0].arrays) > 1
    ],
)
def test_constants_beside_computed_values(example: Example) -> None:
    """Constants reach kernels as NumPy arrays, computed values as JAX's."""
    arrays = example.arrays
    attrs = {key: value for key, value in example.case.attrs.items() if key[0] != "_"}
    for traced in set(range(len(arrays))) - set(example.static):

        def call(value: Any, traced: int = traced) -> Any:
            given = [value if at == traced else array for at, array in enumerate(arrays)]
            return example.row.kernel(*given, **attrs)

        with x64():
            jax.eval_shape(call, arrays[traced])


def partly_unknown(arrays: Sequence[NDArray[Any]]) -> Iterator[list[Any]]:
    """Shapes with each dimension unknown in turn, all of an input's, all; each rank, all ranks."""
    full: list[Any] = [array.shape for array in arrays]
    for position, array in enumerate(arrays):
        for axis in range(array.ndim):
            shape = [None if at == axis else dim for at, dim in enumerate(array.shape)]
            yield [*full[:position], shape, *full[position + 1 :]]
        yield [*full[:position], [None] * array.ndim, *full[position + 1 :]]
        yield [*full[:position], None, *full[position + 1 :]]
    yield [[None] * array.ndim for array in arrays]
    yield [None for _ in arrays]


@pytest.mark.parametrize(
    "example",
    [
        parameter
        for parameter in (*examples(), *examples(random=True))
        if not reads_a_handle(parameter.values[0])  # its shape is the handle's
    ],
)
def test_inference_with_unknown_dimensions(example: Example) -> None:
    arrays = example.arrays
    with Graph().as_default():
        known = [constant(array) for array in arrays]
        true = [(tensor.dtype, tensor.shape) for tensor in apply(example, known).outputs]
        for static_known in (True, False):
            for shapes in partly_unknown(arrays):
                inputs = [
                    known[position] if static_known and position in example.static else tensor
                    for position, tensor in enumerate(fed(arrays, shapes))
                ]
                outputs = apply(example, inputs).outputs
                assert len(outputs) == len(true), shapes
                for output, (dtype, shape) in zip(outputs, true, strict=True):
                    assert output.dtype is dtype, shapes
                    assert output.shape.is_compatible_with(shape), (shapes, output.shape)


# Inputs with second derivatives, of ops that have none with respect to their others.
TWICE_DIFFERENTIABLE = {
    **{"Betainc": [2], "Igamma": [1], "Igammac": [1], "Polygamma": [1], "Zeta": [1]},
    "ImageProjectiveTransformV2": [0],
    # Of float32 only, which the programs of snippets_nn.py differentiate.
    **{f"FakeQuantWithMinMax{kind}": [] for kind in ("Args", "Vars", "VarsPerChannel")},
    # Draws: their first derivatives are in test_stateless_random.py.
    **{"StatelessRandomGammaV2": [], "StatelessParameterizedTruncatedNormal": []},
}


# Rows that read one triangle of a symmetric matrix, and whose gradient is symmetric.
OF_SYMMETRIC = ("Cholesky", "SelfAdjointEigV2")


def differentiable(example: Example) -> list[int]:
    floating = [
        position
        for position, array in enumerate(example.arrays)
        if as_dtype(array.dtype).is_differentiable and position not in example.static
    ]
    return TWICE_DIFFERENTIABLE.get(example.row.type, floating)


def gradient_examples() -> Iterator[Any]:
    for parameter in examples():
        example = parameter.values[0]
        if example.row.gradient not in (None, "undefined") and differentiable(example):
            yield parameter


@in_both_executors
@sweep("example", list(gradient_examples()), quick=45)
def test_gradient(example: Example) -> None:
    """Against central differences in a random direction, first and second order."""
    rng = example.rng
    wanted = differentiable(example)
    # A little off the case's point: equal inputs of Maximum are a kink.
    at = [
        array.astype(_wide(array)) + rng.uniform(0.005, 0.01, array.shape)
        if position in wanted
        else array.astype(_wide(array))
        if array.dtype.kind == "f" and position not in example.static
        else array
        for position, array in enumerate(example.arrays)
    ]
    direction = {position: _normal(rng, at[position]) for position in wanted}
    if example.row.type in OF_SYMMETRIC:
        direction = {position: each + each.T for position, each in direction.items()}
    with Graph().as_default() as graph, Session() as session:
        inputs = fed(at)
        outputs = apply(example, inputs).outputs
        parts = [each for output in outputs for each in _real_parts(output)]
        loss = add_n(
            [
                reduce_sum(part * constant(rng.normal(size=part.shape.as_list()), float64))
                if part.shape.is_fully_defined()
                else reduce_sum(part * part)
                for part in parts
            ]
        )
        variables = graph.get_collection("variables")
        sources = variables or [inputs[position] for position in wanted]
        first = gradients(loss, sources)
        slope = along(first, direction, wanted)
        curvature = along(gradients(slope, sources), direction, wanted)

        def values(step: float) -> list[Any]:
            feeds: dict[Any, Any] = {
                tensor: at[position] + step * direction.get(position, 0)
                for position, tensor in enumerate(inputs)
            }
            for variable in variables:
                session.run(variable.initializer, feeds)
            fetched: list[Any] = session.run([loss, slope, curvature], feeds)
            return fetched

        step = 1e-5
        (_, slope_here, curvature_here), after, before = values(0.0), values(step), values(-step)
    assert slope_here == pytest.approx((after[0] - before[0]) / (2 * step), rel=1e-4, abs=1e-6)
    assert curvature_here == pytest.approx((after[1] - before[1]) / (2 * step), rel=1e-4, abs=1e-6)


def _wide(array: NDArray[Any]) -> Any:
    return np.complex128 if array.dtype.kind == "c" else np.float64


def _normal(rng: np.random.Generator, like: NDArray[Any]) -> NDArray[Any]:
    drawn = rng.normal(size=like.shape)
    return drawn + 1j * rng.normal(size=like.shape) if like.dtype.kind == "c" else drawn


def _real_parts(output: Tensor) -> list[Tensor]:
    if output.dtype.is_complex:
        return [real(output), imag(output)]
    return [output] if output.dtype.is_floating else []


def along(found: Sequence[Any], direction: dict[int, NDArray[Any]], wanted: list[int]) -> Tensor:
    """The sum of gradient times direction; 0 where there is no gradient.

    Of complex numbers the real part of the conjugate gradient times direction.
    """
    parts = [
        reduce_sum(real(conj(convert_to_tensor(gradient)) * constant(direction[position])))
        for position, gradient in zip(wanted, found, strict=False)
        if gradient is not None
    ]
    return add_n(parts) if parts else constant(0.0, float64)


@in_both_executors
@sweep("example", list(examples(state=True)), quick=8)
def test_state_op(example: Example) -> None:
    """The variables and the outputs hold the new values, and runs add up."""
    at = example.row.semantics.updated_positions(example.attrs)
    expected = expected_outputs(example)
    with Graph().as_default(), Session() as session:
        variables = {position: Variable(example.arrays[position]) for position in at}
        feeds = {
            placeholder(as_dtype(array.dtype), array.shape): array
            for position, array in enumerate(example.arrays)
            if position not in variables
        }
        others = iter(feeds)
        inputs = [
            variables[position].handle if position in variables else next(others)
            for position in range(len(example.arrays))
        ]
        operation = apply(example, inputs)
        outputs = expected[len(at) :]
        assert [each.dtype for each in operation.outputs] == [each.dtype for each in outputs]
        assert [each.shape for each in operation.outputs] == [each.shape for each in outputs]
        session.run([variable.initializer for variable in variables.values()])
        for output, wanted in zip(
            session.run([operation, list(operation.outputs)], feeds)[1], outputs, strict=True
        ):
            np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-7)
        check_values(session, variables, expected)
        arrays = list(example.arrays)
        for position, new in zip(at, expected, strict=False):
            arrays[position] = new
        session.run(operation, feeds)
        again = example.row.kernel(*map(np_or_jax, arrays), **example.case.attrs)
        check_values(session, variables, again)


def check_values(session: Session, variables: Mapping[int, Any], expected: Sequence[Any]) -> None:
    for variable, value in zip(variables.values(), expected, strict=False):
        np.testing.assert_allclose(session.run(variable), np.asarray(value), rtol=1e-5, atol=1e-7)


def np_or_jax(array: NDArray[Any]) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(array)


@in_both_executors
@sweep("example", list(examples(random=True)), quick=2)
def test_random_op(example: Example) -> None:
    """One sequence a seed: other numbers in each run, the same in each session."""
    with Graph().as_default() as graph:
        inputs = fed(example.arrays)
        feeds = dict(zip(inputs, example.arrays, strict=True))
        known = apply(example, [constant(array) for array in example.arrays]).outputs[0]
        drawn = apply(example, inputs).outputs[0]
    sequences = []
    for _ in range(2):
        with Session(graph=graph) as session:
            sequences.append([session.run(drawn, feeds) for _ in range(6)])
    for one, other in zip(*sequences, strict=True):
        assert known.dtype == one.dtype
        assert known.shape == one.shape
        np.testing.assert_array_equal(one, other)
    assert len({value.tobytes() for value in sequences[0]}) > 1
