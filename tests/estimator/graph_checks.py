"""Checks `GraphDef`s against what TensorFlow knows of its node types (`golden/op_defs.json`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OP_DEFS = json.loads((Path(__file__).parents[1] / "golden" / "op_defs.json").read_text("utf-8"))
_FIELDS = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "shape": "shape"}
_FIELDS |= {"tensor": "tensor"}


def problems(graph_def: Any) -> list[str]:
    """What TensorFlow would refuse in a graph: unknown node types, attributes that are missing,
    unknown or of another kind, inputs that are not there, and inputs of other numbers or dtypes.
    """
    nodes = {node.name: node for node in graph_def.node}
    found = [] if len(nodes) == len(graph_def.node) else ["two nodes have one name"]
    unknown = sorted({node.op for node in graph_def.node} - set(OP_DEFS))
    if unknown:
        return [*found, f"unknown node types: {unknown}"]
    outputs = {name: list(_dtypes(node, "outputs")) for name, node in nodes.items()}
    for node in graph_def.node:
        found += [f"{node.op} {node.name!r}: {each}" for each in _problems_of(node, outputs)]
    return found


def _problems_of(node: Any, outputs: dict[str, list[int]]) -> Iterator[str]:
    known = OP_DEFS[node.op]["attrs"]
    given = {key for key in node.attr if not key.startswith("_")}
    yield from (f"has no attribute {key!r}" for key in sorted(given - set(known)))
    for key, attr in known.items():
        if key in given:
            yield from _problems_of_attr(key, attr, node.attr[key])
        elif not attr["optional"]:
            yield f"lacks the attribute {key!r}"
    data = [each for each in node.input if not each.startswith("^")]
    if node.input[len(data) :] != [each for each in node.input if each.startswith("^")]:
        yield "has data inputs behind control inputs"
    wanted = list(_dtypes(node, "inputs"))
    if len(data) != len(wanted):
        yield f"takes {len(wanted)} inputs, has {len(data)}"
    for name, dtype in zip(data, wanted, strict=False):
        source, _, index = name.partition(":")
        there = outputs.get(source, [])
        if int(index or 0) >= len(there):
            yield f"takes {name!r}, which is not there"
        elif there[int(index or 0)] != dtype:
            yield f"takes dtype {dtype}, {name!r} has {there[int(index or 0)]}"
    for name in node.input[len(data) :]:
        if name[1:] not in outputs:
            yield f"comes after {name[1:]!r}, which is not there"


def _problems_of_attr(key: str, attr: dict[str, Any], value: Any) -> Iterator[str]:
    kind, held = attr["type"], value.WhichOneof("value")
    if kind.startswith("list("):
        inner = _FIELDS[kind[5:-1]]
        others = [field.name for field, _ in value.list.ListFields() if field.name != inner]
        if held != "list" or others:
            yield f"{key!r} is no {kind}: {others or held}"
    elif held != _FIELDS[kind]:
        yield f"{key!r} is no {kind}: {held}"
    elif "allowed" in attr:
        single = value.type if kind == "type" else value.s.decode()
        if single not in attr["allowed"]:
            yield f"{key!r} may not be {single!r}"


def _dtypes(node: Any, side: str) -> Iterator[int]:
    """The dtypes of a node's inputs or outputs, as its attributes tell."""
    attrs = type(node)(attr=node.attr).attr  # reading what is not there would add it
    for arg in OP_DEFS[node.op][side]:
        if "type_list_attr" in arg:
            yield from attrs[arg["type_list_attr"]].list.type
            continue
        dtype = arg["type"] if "type" in arg else attrs[arg["type_attr"]].type
        count = attrs[arg["number_attr"]].i if "number_attr" in arg else 1
        yield from [dtype] * count
