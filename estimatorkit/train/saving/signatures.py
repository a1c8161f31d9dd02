"""Signatures: protos that describe a model's inputs and outputs.

A `TensorInfo` holds a tensor's name, dtype and shape; a `SignatureDef` maps keys to them. As
`tf.saved_model.utils` and `tf.saved_model.signature_def_utils`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimatorkit.core.dtypes import DType, float32, string
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.lazy import listing
from estimatorkit.train.saving import saved_model_constants as constants


def build_tensor_info(tensor: Any) -> Any:
    """Returns the `TensorInfo` of a tensor, variable or sparse tensor; else raises TypeError."""
    from tensorboard.compat.proto.meta_graph_pb2 import TensorInfo

    if isinstance(tensor, SparseTensor):
        parts = TensorInfo.CooSparse(
            values_tensor_name=tensor.values.name,
            indices_tensor_name=tensor.indices.name,
            dense_shape_tensor_name=tensor.dense_shape.name,
        )
        made = TensorInfo(coo_sparse=parts)
    else:
        tensor = tensor._as_graph_element() if hasattr(tensor, "_as_graph_element") else tensor
        if not isinstance(tensor, Tensor):
            raise type_error(
                "a TensorInfo describes a tensor of the graph",
                expected="a Tensor, a Variable or a SparseTensor",
                received=repr(tensor)[:200],
            )
        made = TensorInfo(name=tensor.name)
    made.dtype = tensor.dtype.as_datatype_enum
    made.tensor_shape.CopyFrom(tensor.shape.as_proto())
    return made


def get_tensor_from_tensor_info(
    tensor_info: Any, graph: Graph | None = None, import_scope: str | None = None
) -> Tensor | SparseTensor:
    """Returns the tensor, or sparse tensor, that a `TensorInfo` names.

    Args:
        graph: the default graph by default.
        import_scope: the name scope of the imported model.

    Raises:
        KeyError: the graph has no such tensor.
        ValueError: the proto has no name.
    """
    graph = graph or get_default_graph()
    scope = f"{import_scope}/" if import_scope else ""
    kind = tensor_info.WhichOneof("encoding")
    if kind == "name":
        return graph.get_tensor_by_name(scope + tensor_info.name)
    if kind == "coo_sparse":
        parts = tensor_info.coo_sparse
        names = parts.indices_tensor_name, parts.values_tensor_name, parts.dense_shape_tensor_name
        return SparseTensor(*(graph.get_tensor_by_name(scope + name) for name in names))
    raise value_error("Invalid TensorInfo.encoding", expected="name or coo_sparse", received=kind)


def build_signature_def(
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    method_name: str | None = None,
) -> Any:
    """Builds a `SignatureDef`.

    Args:
        inputs: `TensorInfo`s by input name.
        outputs: `TensorInfo`s by output name.
        method_name: the method, one of `signature_constants.*_METHOD_NAME`.
    """
    from tensorboard.compat.proto.meta_graph_pb2 import SignatureDef

    made = SignatureDef()
    for target, given in ((made.inputs, inputs), (made.outputs, outputs)):
        for key, info in (given or {}).items():
            target[key].CopyFrom(info)
    if method_name is not None:
        made.method_name = method_name
    return made


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """Builds the `SignatureDef` of a generic prediction, from tensors by name.

    Raises:
        ValueError: `inputs` or `outputs` is empty.
    """
    for what, given in (("inputs", inputs), ("outputs", outputs)):
        if not given:
            raise ValueError(f"Prediction `{what}` cannot be None or empty.")
    return build_signature_def(
        {key: build_tensor_info(tensor) for key, tensor in inputs.items()},
        {key: build_tensor_info(tensor) for key, tensor in outputs.items()},
        constants.PREDICT_METHOD_NAME,
    )


def regression_signature_def(examples: Tensor, predictions: Tensor) -> Any:
    """Builds the `SignatureDef` of a regression.

    Args:
        examples: string `(batch,)`, serialized `Example`s.
        predictions: float32 `(batch,)` or `(batch, 1)`.

    Raises:
        ValueError: a tensor is missing or has another dtype.
    """
    _require(examples, "Regression `examples` cannot be None.")
    _require(predictions, "Regression `predictions` cannot be None.")
    inputs = _of_dtype(examples, string, "Regression input tensors must be of type string.")
    outputs = _of_dtype(predictions, float32, "Regression output tensors must be of type float.")
    return build_signature_def(
        {constants.REGRESS_INPUTS: inputs},
        {constants.REGRESS_OUTPUTS: outputs},
        constants.REGRESS_METHOD_NAME,
    )


def classification_signature_def(
    examples: Tensor, classes: Tensor | None, scores: Tensor | None
) -> Any:
    """Builds the `SignatureDef` of a classification.

    Args:
        examples: string `(batch,)`, serialized `Example`s.
        classes: string `(batch, classes)`, or None.
        scores: float32 `(batch, classes)`, or None.

    Raises:
        ValueError: tensors are missing or have another dtype.
    """
    _require(examples, "Classification `examples` cannot be None.")
    if classes is None and scores is None:
        raise ValueError("Classification `classes` and `scores` cannot both be None.")
    inputs = _of_dtype(examples, string, "Classification input tensors must be of type string.")
    outputs = {}
    if classes is not None:
        problem = "Classification classes must be of type string Tensor."
        outputs[constants.CLASSIFY_OUTPUT_CLASSES] = _of_dtype(classes, string, problem)
    if scores is not None:
        problem = "Classification scores must be a float Tensor."
        outputs[constants.CLASSIFY_OUTPUT_SCORES] = _of_dtype(scores, float32, problem)
    return build_signature_def(
        {constants.CLASSIFY_INPUTS: inputs}, outputs, constants.CLASSIFY_METHOD_NAME
    )


def _require(tensor: Tensor | None, problem: str) -> None:
    if tensor is None:
        raise ValueError(problem)


def _of_dtype(tensor: Tensor, dtype: DType, problem: str) -> Any:
    if tensor.dtype is not dtype:
        raise value_error(problem, expected=dtype.name, received=tensor, made_at=tensor.op.source)
    return build_tensor_info(tensor)


def is_valid_signature(signature_def: Any) -> bool:
    """Returns whether a `SignatureDef` can be served: method, names and dtypes are consistent."""
    inputs, outputs = signature_def.inputs, signature_def.outputs
    if not inputs or not outputs:
        return False
    text, number = string.as_datatype_enum, float32.as_datatype_enum
    found = {key: info.dtype for key, info in outputs.items()}
    method = signature_def.method_name
    if method == constants.PREDICT_METHOD_NAME:
        return True
    if {key: info.dtype for key, info in inputs.items()} != {"inputs": text}:
        return False
    if method == constants.REGRESS_METHOD_NAME:
        return found == {constants.REGRESS_OUTPUTS: number}
    allowed = {
        constants.CLASSIFY_OUTPUT_CLASSES: text,
        constants.CLASSIFY_OUTPUT_SCORES: number,
    }
    return method == constants.CLASSIFY_METHOD_NAME and found.items() <= allowed.items()


__all__ = [
    "build_signature_def",
    "build_tensor_info",
    "classification_signature_def",
    "get_tensor_from_tensor_info",
    "is_valid_signature",
    "predict_signature_def",
    "regression_signature_def",
]
__dir__ = listing(__name__)
