"""TensorFlow Serving's REST interface as functions: paths, predictions, status and metadata.

No I/O. Names, labels and numbers of a path are compared with existing ones, and never become part
of a file path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.errors import explain
from estimatorkit.estimator.serving import rest_json
from estimatorkit.estimator.serving.predictor import Predictor, Signature
from estimatorkit.experiment.serving.model_store import ModelStore
from estimatorkit.train.saving import saved_model_constants as constants

_PATH = re.compile(
    r"/v1/models/(?P<name>[^/:]{1,200})"
    r"(?:/versions/(?P<version>0|[1-9][0-9]{0,17})|/labels/(?P<label>[^/:]{1,200}))?"
    r"(?P<what>:predict|:classify|:regress|/metadata)?"
)


class Refused(Exception):
    """A request that is answered with an error.

    Attributes:
        status: of HTTP.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Asked:
    """The model, version and method that a path names.

    Attributes:
        model: its name.
        version: its number.
        predictor: of the version.
        is_specific: whether the path names the version, or a label.
        what: ':predict', ':classify', ':regress', '/metadata', or None for the status.
    """

    model: str
    version: int
    predictor: Predictor
    is_specific: bool
    what: str | None


def asked(stores: Mapping[str, ModelStore], method: str, path: str) -> Asked:
    """Parses a path.

    Raises:
        Refused: it is malformed, names no model that is served, or does not take the method.
    """
    found = _PATH.fullmatch(path)
    if found is None:
        raise Refused(404, f"Malformed request: {method} {path[:200]}")
    name, number, label = found["name"], found["version"], found["label"]
    if name not in stores:
        raise Refused(404, f"Servable not found for request: Latest({name})")
    try:
        version, predictor = stores[name].get(int(number) if number else None, label)
    except KeyError:
        specific = f"Specific({name}, {number or label})"
        raise Refused(404, f"Servable not found for request: {specific}") from None
    takes = "GET" if found["what"] in (None, "/metadata") else "POST"
    if method != takes:
        raise Refused(405, f"Method not allowed: {method} {path[:200]}")
    return Asked(name, version, predictor, bool(number or label), found["what"])


# -- predictions


def chosen(
    predictor: Predictor, content: Mapping[str, Any], method: str | None = None
) -> Signature:
    """The signature that a request names.

    Raises:
        ValueError: there is none, or it is not of the method.
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
    """The predictions of rows; of a batch of requests, too.

    Raises:
        ValueError: a row is invalid.
        InvalidArgumentError: the model rejects a value.
    """
    inputs, _ = rest_json.predict_inputs({"instances": rows}, signature)
    found: list[Any] = rest_json.reply(predictor(inputs, signature.name), True)["predictions"]
    return found


def _predict(predictor: Predictor, content: Mapping[str, Any]) -> dict[str, Any]:
    signature = chosen(predictor, content)
    inputs, rows = rest_json.predict_inputs(content, signature)
    return rest_json.reply(predictor(inputs, signature.name), rows)


def _on_examples(
    method: str, make: Callable[[Any], dict[str, Any]]
) -> Callable[[Predictor, Mapping[str, Any]], dict[str, Any]]:
    def reply(predictor: Predictor, content: Mapping[str, Any]) -> dict[str, Any]:
        signature = chosen(predictor, content, method)
        inputs = rest_json.example_inputs(content, signature)
        return make(predictor(inputs, signature.name))

    return reply


ANSWERS: dict[str, Callable[[Predictor, Mapping[str, Any]], dict[str, Any]]] = {
    ":predict": _predict,
    ":classify": _on_examples(constants.CLASSIFY_METHOD_NAME, rest_json.classification_reply),
    ":regress": _on_examples(constants.REGRESS_METHOD_NAME, rest_json.regression_reply),
}
"""The answer of a predictor to a request's content, by what the path asks for."""


# -- status and metadata


def described(request: Asked, versions: list[int]) -> dict[str, Any]:
    """The status or the metadata of a model.

    Args:
        versions: all that are served.
    """
    if request.what == "/metadata":
        return _metadata(request)
    fine = {"error_code": "OK", "error_message": ""}
    states = [
        {"version": str(each), "state": "AVAILABLE", "status": fine} for each in reversed(versions)
    ]
    return {"model_version_status": states}


def _metadata(request: Asked) -> dict[str, Any]:
    signatures = {
        key: {
            "inputs": _infos(each.inputs, each.feeds),
            "outputs": _infos(each.outputs, each.fetches),
            "method_name": each.method,
        }
        for key, each in request.predictor.signatures.items()
    }
    version = str(request.version)
    return {
        "model_spec": {"name": request.model, "signature_name": "", "version": version},
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


__all__ = ["ANSWERS", "Asked", "Refused", "asked", "chosen", "described", "predict_rows"]
