"""TensorFlow Serving's JSON format: requests to inputs, outputs to responses.

Predictions have row format (`instances`, `predictions`) or column format (`inputs`, `outputs`);
`classify` and `regress` take `examples`, feature values by key. Bytes are `{"b64": ...}`. A missing
value of a request is null: NaN among floats, '' among strings, and -1 among integers, which is the
id that feature columns ignore. A model that has no finite answer without it refuses the request.
Other numbers of a response that are not finite are null, too: TensorFlow Serving writes the words
NaN and Infinity, which JSON has not. Values are of their input's kind: no "5" for 5, and no true
for 1.0.
"""

from __future__ import annotations

import base64
import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType, string
from estimatorkit.core.errors import explain
from estimatorkit.estimator.serving.predictor import Signature, array_of
from estimatorkit.storage.example_proto import Example, Feature
from estimatorkit.train.saving import saved_model_constants as constants

_BYTES_SUFFIX = "_bytes"
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LARGEST = float(np.finfo(np.float32).max)
_MOST_DIMENSIONS = 32  # NumPy arrays have at most 64 dimensions


class RequestError(ValueError):
    """An invalid request; a server answers 400."""


@dataclass(frozen=True)
class _Kind:
    """What JSON may hold for an input.

    Attributes:
        expected: in words.
        types: of its values, besides bytes.
        missing: what replaces null.
        has_missing: whether null is replaced.
        has_bytes: whether `{"b64": ...}` is accepted.
    """

    expected: str
    types: frozenset[type]
    missing: Any = None
    has_missing: bool = True
    has_bytes: bool = True


_ANY = _Kind("a value", frozenset([str, int, float, bool]))


@functools.cache
def _kind(dtype: DType | None) -> _Kind:
    if dtype is None or dtype is string:
        return _ANY if dtype is None else replace(_ANY, missing=b"")
    if not (dtype.is_floating or dtype.is_integer):
        return _Kind(dtype.name, frozenset([int, float, bool]), None, False, False)
    missing = math.nan if dtype.is_floating else -1
    has_missing = dtype.is_floating or not dtype.is_unsigned
    # Flags of a table are features of integers, and are sent as true and false.
    types = frozenset([int, float] if dtype.is_floating else [int, float, bool])
    return _Kind(f"a number ({dtype.name})", types, missing, has_missing, False)


def parse(body: bytes) -> dict[str, Any]:
    """The object in a request's body.

    Raises:
        RequestError: it is not a JSON object.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"JSON Parse error: {error}") from error
    if _SURROGATE.search(body):
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise RequestError(f"a text of the request is not Unicode: {error}") from error
    if not isinstance(content, dict):
        raise RequestError(explain("JSON body must be an object", received=f"{content!r:.100}"))
    return content


def dump(content: Any, indent: int | None = None) -> bytes:
    """The body of a response; null for numbers that are not finite.

    Args:
        indent: for people; with it Python's encoder is ten times as slow.
    """
    try:
        text = json.dumps(content, indent=indent, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(content), indent=indent, allow_nan=False)
    return text.encode() + b"\n"


def _finite(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {key: _finite(each) for key, each in content.items()}
    if isinstance(content, list):
        return [_finite(each) for each in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


# -- requests


def predict_inputs(content: Mapping[str, Any], signature: Signature) -> tuple[dict[str, Any], bool]:
    """The inputs of a `predict` request, and whether it is in row format.

    Raises:
        RequestError: it has neither or both formats, or rows differ in their keys.
    """
    if ("instances" in content) == ("inputs" in content):
        raise RequestError(
            explain(
                "the request must have exactly one of 'instances' (rows) and 'inputs' (columns)",
                received=sorted(content),
            )
        )
    names = list(signature.inputs)
    if "inputs" in content:
        given = content["inputs"]
        named = isinstance(given, dict) and set(given) != {"b64"}
        columns = given if named else {_only(names): given}
        return {key: _input(signature, key, value) for key, value in columns.items()}, False
    rows = content["instances"]
    if not isinstance(rows, list) or not rows:
        raise RequestError(
            explain("'instances' must be a list of examples", received=f"{rows!r:.100}")
        )
    if not _is_named(rows[0]):
        return {_only(names): _input(signature, names[0], rows)}, True
    keys = list(rows[0])
    for number, row in enumerate(rows):
        if not _is_named(row) or row.keys() != rows[0].keys():
            raise RequestError(
                explain(
                    f"instance {number} has other inputs than the first one",
                    expected=sorted(keys),
                    received=sorted(row) if isinstance(row, dict) else f"{row!r:.100}",
                )
            )
    return {key: _input(signature, key, [row[key] for row in rows]) for key in keys}, True


def _input(signature: Signature, key: str, value: Any) -> Any:
    """A decoded value of an input, with null replaced by the missing value of its dtype."""
    kind = _kind(_dtype(signature, key))
    try:
        return _decoded(value, kind)
    except RequestError as error:
        for number, each in enumerate(value if isinstance(value, list) else ()):
            try:
                _decoded(each, kind, 1)
            except RequestError as first:
                raise RequestError(f"row {number}, feature {key!r}: {first}") from first
        raise RequestError(f"feature {key!r}: {error}") from error


def _is_named(row: Any) -> bool:
    return isinstance(row, dict) and set(row) != {"b64"}


def _only(names: Sequence[str]) -> str:
    if len(names) != 1:
        raise RequestError(
            explain("the signature has several inputs: name them", expected=", ".join(names))
        )
    return names[0]


def _decoded(value: Any, kind: _Kind = _ANY, depth: int = 0) -> Any:
    """Decodes `{"b64": ...}` in a value to bytes, and null to the missing value."""
    if type(value) in kind.types:
        return value
    if value is None and kind.has_missing:
        return kind.missing
    if isinstance(value, list):
        if depth == _MOST_DIMENSIONS:
            raise RequestError(f"a value has lists that are nested more than {depth} times")
        return [_decoded(each, kind, depth + 1) for each in value]
    if isinstance(value, dict) and kind.has_bytes:
        if set(value) != {"b64"} or not isinstance(value["b64"], str):
            raise RequestError(
                explain("an object stands for bytes", expected='{"b64": "..."}', received=value)
            )
        try:
            return base64.b64decode(value["b64"], validate=True)
        except ValueError as error:
            raise RequestError(f"base64 of a value cannot be decoded: {error}") from error
    raise RequestError(
        explain(
            "a value is of another kind",
            expected=kind.expected,
            received=f"{json.dumps(value):.100}",
        )
    )


def example_inputs(content: Mapping[str, Any], signature: Signature) -> dict[str, Any]:
    """The inputs of a `classify` or `regress` request: serialized `Example`s.

    Raises:
        RequestError: there are none, or a feature is in both an example and the context.
    """
    examples, context = content.get("examples"), content.get("context", {})
    if not isinstance(examples, list) or not examples or not isinstance(context, dict):
        raise RequestError(
            explain(
                "the request must have 'examples', a list of objects",
                received=sorted(content),
            )
        )
    made = []
    for number, each in enumerate(examples):
        if not isinstance(each, dict) or each.keys() & context.keys():
            raise RequestError(
                explain(f"example {number} is no object, or repeats a feature of the context")
            )
        example = Example()
        for key, value in {**context, **each}.items():
            try:
                example.features.feature[key].CopyFrom(_feature(_decoded(value)))
            except RequestError as error:
                raise RequestError(f"row {number}, feature {key!r}: {error}") from error
        made.append(example.SerializeToString())
    return {_only(list(signature.inputs)): made}


def _feature(value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    kinds = {type(each) for each in values}
    made = Feature()
    if kinds <= {str, bytes}:
        made.bytes_list.value.extend(
            each.encode() if isinstance(each, str) else each for each in values
        )
    elif kinds <= {int, bool} and all(-(1 << 63) <= each < 1 << 63 for each in values):
        made.int64_list.value.extend(map(int, values))
    elif kinds <= {int, float, bool} and not any(_is_huge(each) for each in values):
        made.float_list.value.extend(map(float, values))
    else:
        raise RequestError(
            explain(
                "the values are of several kinds, or too large",
                expected="numbers, or strings",
                received=f"{value!r:.100}",
            )
        )
    return made


def _is_huge(value: Any) -> bool:
    """Whether a number is an integer that no float holds."""
    return isinstance(value, int) and value.bit_length() > 1000


# -- missing numbers


def refuse_missing(
    content: Mapping[str, Any], signature: Signature, outputs: Mapping[str, NDArray[Any]]
) -> None:
    """Refuses a request whose missing or infinite numbers left the model without an answer.

    A model that replaces missing numbers, or takes them, has finite outputs. An output with an
    input's name repeats it (`forward_features`), and may be missing as well.

    Raises:
        RequestError: a row lacks a number, and its outputs are not finite; it names the first such
            row, and what the row lacks.
    """
    wrong = {}
    for key, value in outputs.items():
        array = array_of(value)
        if key not in signature.inputs and array.dtype.kind in "fV":
            finite = np.isfinite(array)
            if not finite.all():
                wrong[key] = ~finite
    if not wrong:
        return
    rows = _raw_rows(content, list(signature.inputs))
    for number, row in enumerate(rows):
        missing = [key for key, value in row.items() if _is_missing(value)]
        numbers = [key for key in missing if _dtype(signature, key) is not string]
        if missing and any(
            each[number].any() if each.ndim and len(each) == len(rows) else True
            for each in wrong.values()
        ):
            names = ", ".join(map(repr, numbers or missing))
            raise RequestError(
                explain(
                    f"row {number}: the model has no finite answer without {names}",
                    expected="numbers that are neither null nor infinite (in float32)",
                    received=f"{json.dumps({key: row[key] for key in numbers or missing}):.200}",
                )
            )


def _raw_rows(content: Mapping[str, Any], names: list[str]) -> list[dict[str, Any]]:
    """The rows of a valid request as they were sent."""
    if "examples" in content:
        rows = [{**content.get("context", {}), **each} for each in content["examples"]]
        keys = dict.fromkeys(key for row in rows for key in row)
        return [{key: row.get(key) for key in keys} for row in rows]
    if "instances" in content:
        rows = content["instances"]
        return rows if _is_named(rows[0]) else [{names[0]: row} for row in rows]
    given = content["inputs"]
    named = isinstance(given, dict) and set(given) != {"b64"}
    columns = {
        key: each if isinstance(each, list) else [each]
        for key, each in (given if named else {names[0]: given}).items()
    }
    count = max(map(len, columns.values()), default=0)
    return [
        {key: each[min(number, len(each) - 1)] for key, each in columns.items() if each}
        for number in range(count)
    ]


def _dtype(signature: Signature, key: str) -> DType | None:
    return signature.inputs[key][0] if key in signature.inputs else None


def _is_missing(value: Any) -> bool:
    """Whether a value, or one in it, is null, empty text, or a number that float32 has not."""
    if isinstance(value, list):
        return any(map(_is_missing, value))
    if isinstance(value, (int, float)):
        return not abs(value) <= _LARGEST
    return value is None or value == ""


# -- replies


def reply(outputs: Mapping[str, NDArray[Any]], rows: bool) -> dict[str, Any]:
    """The response to a `predict` request, in row or column format.

    Raises:
        RequestError: row format was requested, and the outputs' numbers of rows differ; or an
            output is complex, which JSON has not.
    """
    columns = {key: _encoded(key, value) for key, value in outputs.items()}
    if not rows:
        return {"outputs": columns if len(columns) != 1 else next(iter(columns.values()))}
    lengths = {len(each) if isinstance(each, list) else None for each in columns.values()}
    if len(lengths) != 1 or None in lengths:
        raise RequestError(
            explain(
                "the outputs have no common first dimension: ask by columns ('inputs')",
                received=", ".join(f"{key} {np.shape(each)}" for key, each in outputs.items()),
            )
        )
    if len(columns) == 1:
        return {"predictions": next(iter(columns.values()))}
    pairs = zip(*columns.values(), strict=True)
    return {"predictions": [dict(zip(columns, values, strict=True)) for values in pairs]}


def classification_reply(outputs: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The response to a `classify` request: pairs of label and score for each example."""
    classes = outputs.get(constants.CLASSIFY_OUTPUT_CLASSES)
    scores = outputs.get(constants.CLASSIFY_OUTPUT_SCORES)
    shape = next(np.shape(each) for each in (classes, scores) if each is not None)
    labels = [[""] * shape[1]] * shape[0] if classes is None else _encoded("classes", classes)
    numbers = [[0.0] * shape[1]] * shape[0] if scores is None else _encoded("scores", scores)
    return {
        "results": [
            [[label, score] for label, score in zip(*row, strict=True)]
            for row in zip(labels, numbers, strict=True)
        ]
    }


def regression_reply(outputs: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The response to a `regress` request: a number for each example."""
    values = outputs[constants.REGRESS_OUTPUTS]
    return {"results": _encoded("outputs", values.reshape(len(values), -1)[:, 0])}


def row_request(name: str, inputs: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """A `predict` request in row format."""
    rows = reply(inputs, True)["predictions"]
    return {"signature_name": name, "instances": rows}


def column_request(name: str, inputs: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """A `predict` request in column format."""
    columns = {key: _encoded(key, value) for key, value in inputs.items()}
    return {"signature_name": name, "inputs": columns}


def _encoded(key: str, value: Any) -> Any:
    """An array as nested lists; float32 as its shortest decimal representation."""
    array = array_of(value)
    if array.dtype.kind == "c":
        raise RequestError(
            explain("JSON has no complex numbers", received=f"{key} of dtype {array.dtype}")
        )
    if array.dtype == object:
        as_bytes = key.endswith(_BYTES_SUFFIX)
        texts = np.empty(array.shape, object)
        texts.reshape(-1)[:] = [_text(each, as_bytes) for each in array.reshape(-1).tolist()]
        return texts.tolist()
    if array.dtype.kind in "fV" and array.dtype != np.float64:
        wide = array if array.dtype.kind == "f" else array.astype(np.float32)  # bfloat16
        return wide.astype("U32").astype(np.float64).tolist()
    return array.tolist()


def _text(value: Any, as_bytes: bool) -> Any:
    data = value.encode() if isinstance(value, str) else bytes(value)
    if not as_bytes:
        try:
            text = data.decode()
            if text.isprintable():
                return text
        except UnicodeDecodeError:
            pass
    return {"b64": base64.b64encode(data).decode()}


__all__ = [
    "RequestError",
    "classification_reply",
    "column_request",
    "dump",
    "example_inputs",
    "parse",
    "predict_inputs",
    "refuse_missing",
    "regression_reply",
    "reply",
    "row_request",
]
