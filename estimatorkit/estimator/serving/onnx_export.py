"""`export_onnx`: exports an estimator's model to ONNX, for runtimes without JAX.

With the extra `[onnx]`: `jax2onnx` translates the traced model, and `onnxruntime` verifies it with
an example before the file is renamed to its final name. Only models that compute on the device are
supported: those of numbers, without strings and vocabularies. Outputs computed on the host, such as
class names, are omitted; integers have 32 bits.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import float64
from estimatorkit.core.errors import (
    InternalError,
    OpError,
    UnimplementedError,
    value_error,
)
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.serving.example_requests import sample_inputs
from estimatorkit.estimator.serving.exporting import ServedModel
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.logger import logger
from estimatorkit.runtime.plan import Segment, make_plan
from estimatorkit.runtime.symbolic import polymorphic_function
from estimatorkit.storage.atomic_files import write_durably
from estimatorkit.train.saving.saved_model_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY

OPSET = 21
"""The ONNX operator set version, that of 2024, which current runtimes support."""


def export_onnx(
    estimator: Any,
    path: str | os.PathLike[str],
    serving_input_receiver_fn: Callable[[], Any],
    signature: str = DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    checkpoint_path: str | os.PathLike[str] | None = None,
    opset: int = OPSET,
) -> list[str]:
    """Exports an estimator's model to an ONNX file, with a variable batch size.

    Args:
        estimator: the estimator; it must be trained, unless `checkpoint_path` is given.
        path: the file.
        serving_input_receiver_fn: makes a `ServingInputReceiver` of numbers.
        signature: the signature whose inputs and outputs the file has, by name.
        checkpoint_path: the checkpoint; the newest by default.
        opset: the ONNX operator set version.

    Returns:
        The names of the file's outputs.

    Raises:
        ModuleNotFoundError: the extra `[onnx]` is not installed.
        ValueError: there is no such signature, or no checkpoint.
        UnimplementedError: the model, or every output, needs the host; or an operation cannot be
            translated.
        InternalError: the file's outputs differ from the model's.
    """
    tools = [_tool(name) for name in ("jax2onnx", "onnxruntime")]
    checkpoint = estimator._checkpoint_or_error(checkpoint_path)
    model = ServedModel(estimator, ModeKeys.PREDICT, serving_input_receiver_fn)
    with model.session as session:
        model.load(checkpoint)
        session.run(model.main_op)
        if signature not in model.signatures:
            raise value_error(
                f"the model has no signature {signature!r}",
                expected=", ".join(sorted(model.signatures)),
            )
        inputs, outputs = model.parts(model.signatures[signature])
        kept, segment = _on_device(session, inputs, outputs)
        data = _translated(tools[0], session, segment, inputs, kept, opset)
        _test(tools[1], data, session, inputs, kept)
    write_durably(Path(path), data)
    return list(kept)


def _tool(name: str) -> Any:
    try:
        return importlib.import_module(name)  # one of two fixed names
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{name} is needed to write ONNX files: pip install 'estimatorkit[onnx]'"
        ) from error


def _on_device(
    session: Any, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], Segment]:
    """The outputs computed by a single device segment, and that segment."""
    graph, feeds, placer = session.graph, list(inputs.values()), session.state.placer
    kept: dict[str, Tensor] = {}
    for key, tensor in outputs.items():
        plan = make_plan(graph, [tensor], [], feeds, placer)
        hosts = [op for each in plan.segments if each.place == "host" for op in each.ops]
        if hosts:
            logger.warning("ONNX: output %r is left out: it needs %s", key, hosts[0])
        else:
            kept[key] = tensor
    plan = make_plan(graph, list(kept.values()), [], feeds, placer)
    (segment, *more) = plan.segments or (None,)
    if segment is None or more or segment.static_inputs or segment.random or segment.writes:
        raise UnimplementedError.explained(
            "the model cannot be written as ONNX",
            expected="outputs that follow from numbers by one computation on the device",
            received=plan.describe()[:500] if kept else "outputs that need the host",
            hint="strings, vocabularies and Examples stay with export_saved_model; its form "
            "runs by load_predictor",
        )
    return kept, segment


def _translated(
    jax2onnx: Any,
    session: Any,
    segment: Segment,
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, Tensor],
    opset: int,
) -> bytes:
    run = polymorphic_function(segment)
    constants = {
        each: each.op.attrs["value"] for each in segment.inputs if role_of(each.op) is Role.CONSTANT
    }
    weights = session.state.read(segment.reads)
    names = list(inputs.values())

    def function(*given: Any) -> tuple[Any, ...]:
        values = {**constants, **dict(zip(names, given, strict=True))}
        found = dict(
            zip(segment.outputs, run([*(values[t] for t in segment.inputs), *weights]), strict=True)
        )
        resolve = segment.rewriting.resolve
        return tuple(found[resolve(each)] for each in outputs.values())

    taken = [_abstract(key, tensor) for key, tensor in inputs.items()]
    for op in segment.ops:
        if any(tensor.dtype is float64 for tensor in (*op.inputs, *op.outputs)):
            raise UnimplementedError.explained(
                "float64 cannot be written as ONNX", received=op, made_at=op.source
            )
    try:
        with warnings.catch_warnings(), _functions_of_jax_kept():
            warnings.simplefilter("ignore", UserWarning)  # 64-bit integers become 32-bit
            made = jax2onnx.to_onnx(
                function,
                taken,
                model_name="estimatorkit",
                opset=opset,
                input_names=list(inputs),
                output_names=list(outputs),
            )
    except (OpError, ValueError, TypeError, NotImplementedError, KeyError, RuntimeError) as error:
        raise UnimplementedError.explained(
            "the model cannot be written as ONNX", received=str(error)[:500]
        ) from error
    return bytes(made.SerializeToString())


@contextmanager
def _functions_of_jax_kept() -> Iterator[None]:
    """Restores what jax2onnx (0.17) leaves patched in JAX's modules, such as a `jax.numpy.cumsum`
    that takes fewer arguments.
    """
    kept = {
        module: {key: each for key, each in vars(module).items() if callable(each)}
        for name, module in list(sys.modules.items())
        if name.split(".")[0] == "jax" and "._" not in name
    }
    try:
        yield
    finally:
        for module, functions in kept.items():
            for key, each in functions.items():
                if vars(module).get(key) is not each:
                    setattr(module, key, each)


def _abstract(key: str, tensor: Tensor) -> Any:
    import jax

    dims = tensor.shape.dims
    if dims is None or None in dims[1:]:
        raise UnimplementedError.explained(f"input {key!r} has no known shape", received=tensor)
    shape = ["batch" if dim is None else dim for dim in dims]
    return jax.ShapeDtypeStruct(shape, tensor.dtype.numpy_dtype)  # type: ignore[no-untyped-call]


def _test(
    onnxruntime: Any,
    data: bytes,
    session: Any,
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, Tensor],
) -> None:
    """Compares the file's outputs with the model's for two batch sizes."""
    runtime = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    taken = {each.name for each in runtime.get_inputs()}
    for rows in (1, 3):
        values = sample_inputs(inputs, rows)
        feeds = {tensor: values[key] for key, tensor in inputs.items()}
        expected = session.run(dict(outputs), feeds)
        found = runtime.run(
            list(outputs), {key: each for key, each in values.items() if key in taken}
        )
        for (key, wanted), got in zip(expected.items(), found, strict=True):
            if got.shape != wanted.shape or not np.allclose(got, wanted, rtol=1e-3, atol=1e-4):
                raise InternalError.explained(
                    f"the ONNX file's output differs from the model's: output {key!r}",
                    expected=f"{wanted!r:.300}",
                    received=f"{got!r:.300}",
                    hint="nothing was written; please report it with the model",
                )


__all__ = ["OPSET", "export_onnx"]
