"""TensorFlow Serving's REST interface as functions: paths, predictions, status and metadata.

No I/O. Names, labels and numbers of a request's path are only looked up; none becomes part of a
file path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.errors import explain
from estimatorkit.estimator.explanations import of_request
from estimatorkit.estimator.serving import rest_json
from estimatorkit.estimator.serving.predictor import Predictor, Signature
from estimatorkit.experiment.serving.model_store import ModelStore
from estimatorkit.train.saving import saved_model_constants as constants

_PATH = re.compile(
    r"/v1/models/(?P<name>[^/:]{1,200})"
    r"(?:/versions/(?P<version>0|[1-9][0-9]{0,17})|/labels/(?P<label>[^/:]{1,200}))?"
    r"(?P<action>:predict|:classify|:regress|/metadata)?"
)


class HttpError(Exception):
    """An error response.

    Attributes:
        status: the HTTP status code.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Endpoint:
    """The model, version and action that a path names.

    Attributes:
        model: the model's name.
        version: the version's number.
        predictor: the version's predictor.
        is_specific: whether the path names the version, or a label.
        action: ':predict', ':classify', ':regress', '/metadata', or None for the status.
    """

    model: str
    version: int
    predictor: Predictor
    is_specific: bool
    action: str | None


def endpoint_of(stores: Mapping[str, ModelStore], method: str, path: str) -> Endpoint:
    """Resolves a path.

    Raises:
        HttpError: it is malformed, its model is not served, or it does not allow the method.
    """
    found = _PATH.fullmatch(path)
    if found is None:
        raise HttpError(404, f"Malformed request: {method} {path[:200]}")
    name, number, label = found["name"], found["version"], found["label"]
    if name not in stores:
        raise HttpError(404, f"Servable not found for request: Latest({name})")
    try:
        version, predictor = stores[name].get(int(number) if number else None, label)
    except KeyError:
        specific = f"Specific({name}, {number or label})"
        raise HttpError(404, f"Servable not found for request: {specific}") from None
    allowed = "GET" if found["action"] in (None, "/metadata") else "POST"
    if method != allowed:
        raise HttpError(405, f"Method not allowed: {method} {path[:200]}")
    return Endpoint(name, version, predictor, bool(number or label), found["action"])


# -- predictions


def requested_signature(
    predictor: Predictor, content: Mapping[str, Any], method: str | None = None
) -> Signature:
    """The signature that a request names.

    Raises:
        ValueError: it does not exist, or has another method.
    """
    name = content.get("signature_name") or None
    if name is not None and not isinstance(name, str):
        raise rest_json.RequestError("'signature_name' must be a string")
    signature = predictor.signature(name)
    if method is not None and signature.method != method:
        raise rest_json.RequestError(
            explain(
                f"Expected signature method_name to be {method}. Was: {signature.method}",
                hint="other signatures: "
                + ", ".join(f"{key} ({each.method})" for key, each in predictor.signatures.items()),
            )
        )
    return signature


def predict_rows(predictor: Predictor, signature: Signature, rows: list[Any]) -> list[Any]:
    """The predictions of rows, of one request or several.

    Raises:
        ValueError: a row is invalid.
        InvalidArgumentError: the model rejects a value.
    """
    content = {"instances": rows}
    inputs, _ = rest_json.predict_inputs(content, signature)
    outputs = predictor(inputs, signature.name)
    rest_json.refuse_missing(content, signature, outputs)
    found: list[Any] = rest_json.reply(outputs, True)["predictions"]
    return found


def _predict(predictor: Predictor, content: Mapping[str, Any]) -> dict[str, Any]:
    signature = requested_signature(predictor, content)
    inputs, rows = rest_json.predict_inputs(content, signature)
    outputs = predictor(inputs, signature.name)
    rest_json.refuse_missing(content, signature, outputs)
    found = rest_json.reply(outputs, rows)
    return found | {"explanations": of_request(predictor, inputs)} if explains(content) else found


def explains(content: Mapping[str, Any]) -> bool:
    """Whether a `predict` request asks what each input adds to the predictions.

    Raises:
        RequestError: its `explain` is neither true nor false.
    """
    asked = content.get("explain", False)
    if not isinstance(asked, bool):
        raise rest_json.RequestError("'explain' must be true or false")
    return asked


def _on_examples(
    method: str, make: Callable[[Any], dict[str, Any]]
) -> Callable[[Predictor, Mapping[str, Any]], dict[str, Any]]:
    def reply(predictor: Predictor, content: Mapping[str, Any]) -> dict[str, Any]:
        signature = requested_signature(predictor, content, method)
        inputs = rest_json.example_inputs(content, signature)
        outputs = predictor(inputs, signature.name)
        rest_json.refuse_missing(content, signature, outputs)
        return make(outputs)

    return reply


ACTIONS: dict[str, Callable[[Predictor, Mapping[str, Any]], dict[str, Any]]] = {
    ":predict": _predict,
    ":classify": _on_examples(constants.CLASSIFY_METHOD_NAME, rest_json.classification_reply),
    ":regress": _on_examples(constants.REGRESS_METHOD_NAME, rest_json.regression_reply),
}
"""Functions from a predictor and a request's content to the response, by action."""


# -- status and metadata


def status_or_metadata(endpoint: Endpoint, versions: list[int]) -> dict[str, Any]:
    """The response to a GET request.

    Args:
        endpoint: what the request names.
        versions: the versions whose status is reported.
    """
    if endpoint.action == "/metadata":
        return _metadata(endpoint)
    ok = {"error_code": "OK", "error_message": ""}
    states = [
        {"version": str(each), "state": "AVAILABLE", "status": ok} for each in reversed(versions)
    ]
    return {"model_version_status": states}


def _metadata(endpoint: Endpoint) -> dict[str, Any]:
    signatures = {
        key: {
            "inputs": _infos(each.inputs, each.feeds),
            "outputs": _infos(each.outputs, each.fetches),
            "method_name": each.method,
        }
        for key, each in endpoint.predictor.signatures.items()
    }
    version = str(endpoint.version)
    return {
        "model_spec": {"name": endpoint.model, "signature_name": "", "version": version},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def _infos(tensors: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    from tensorboard.compat.proto.types_pb2 import DataType

    found = {}
    for key, (dtype, shape) in tensors.items():
        dims = [{"size": str(-1 if dim is None else dim), "name": ""} for dim in shape.dims or ()]
        found[key] = {
            "dtype": DataType.Name(dtype.as_datatype_enum),
            "tensor_shape": {"dim": dims, "unknown_rank": shape.dims is None},
            "name": names[key],
        }
    return found


__all__ = [
    "ACTIONS",
    "Endpoint",
    "HttpError",
    "endpoint_of",
    "explains",
    "predict_rows",
    "requested_signature",
    "status_or_metadata",
]
