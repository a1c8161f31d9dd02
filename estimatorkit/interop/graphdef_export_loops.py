"""Export of `If`, `While`, `Scan`, `Call` and recurrent networks to TensorFlow's nodes.

Part of the table of `graphdef_export`. Bodies are inlined with TensorFlow 1's control flow
(`Switch` and `Merge`, frames of `Enter`, `NextIteration` and `Exit`), which every loader and server
supports. Captures enter the frame as loop constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.dtypes import DType, bool_, int32, variant
from estimatorkit.core.function_graph import GraphFunction
from estimatorkit.core.tensor import Tensor
from estimatorkit.interop.graphdef_writer import Rule, Writer, composed
from estimatorkit.ops.array.array import expand_dims
from estimatorkit.ops.array.indexing import where
from estimatorkit.ops.array.joining import split
from estimatorkit.ops.control.higher_order import scan_op
from estimatorkit.ops.control.host_functions import ELEMENT
from estimatorkit.ops.math.elementwise import sigmoid, tanh
from estimatorkit.ops.math.linalg import matmul

Names = list[str]


def _body(
    w: Writer,
    number: int,
    given: Sequence[str],
    part: str,
    pivot: str,
    elements: Sequence[str] = (),
) -> Names:
    """Writes the operation's function `number` inline, and returns its outputs' names.

    `given` are the names of the operation's inputs there, `elements` those of elements of the
    inputs. `part` and `pivot` are as in `Writer.graph`.
    """
    function: GraphFunction = w.attrs["functions"][number]
    w.require(not function.updated, "its body changes variables")
    rest = iter(elements)
    taken = [next(rest) if at == ELEMENT else given[at] for at in w.attrs["positions"][number]]
    needed = set(function.ops)  # without constants
    operations = [
        op for op in function.graph.get_operations() if op in needed or op.type == "Const"
    ]
    names = w.graph(operations, dict(zip(function.inputs, taken, strict=True)), part, pivot)
    return [names[output] for output in function.outputs]


def _if(w: Writer) -> None:
    w.require(not w.attrs["keyed"], "its branches draw random numbers")
    w.require(bool(w.op.outputs), "its branches have no outputs")
    predicate, *captured = w.inputs
    switched = [w.node("Switch", [predicate, predicate], "Switch", T=bool_)]
    for name, tensor in zip(captured, w.op.inputs[1:], strict=True):
        switched.append(w.node("Switch", [name, predicate], "Switch", T=tensor.dtype))
    sides = []
    for number, part, at in ((1, "else", ""), (0, "then", ":1")):
        here = [f"{name}{at}" for name in switched]
        pivot = "^" + w.node("Identity", here[:1], f"{part}_pivot", T=bool_)
        outputs = _body(w, number, here, part, pivot)
        # An output may be a constant: `Merge` needs a node that only runs in this branch.
        sides.append(
            [
                w.node("Identity", [name, pivot], f"{part}_output", T=output.dtype)
                for name, output in zip(outputs, w.op.outputs, strict=True)
            ]
        )
    merged = [
        w.node("Merge", pair, "Merge", T=output.dtype, N=2)
        for pair, output in zip(zip(*sides, strict=True), w.op.outputs, strict=True)
    ]
    w.identities(merged)


def _call(w: Writer) -> None:
    w.require(not w.attrs["keyed"], "its function draws random numbers")
    w.identities(_body(w, 0, w.inputs, "body", ""))


def _loop(
    w: Writer,
    variables: Sequence[tuple[str, DType]],
    constants: Sequence[tuple[str, DType]],
    condition: Callable[[Names, Names, str], str],
    body: Callable[[Names, Names, str], Names],
) -> Names:
    """Writes a loop, and returns the final names of its variables.

    `variables` and `constants` are initial values and dtypes. `condition` and `body` write the
    condition and an iteration, given the names of both and the pivot; `body` returns the variables'
    next values.
    """
    frame = f"{w.name}/frame"

    def enter(name: str, dtype: DType, constant: bool) -> str:
        attrs = {"frame_name": frame, "is_constant": constant, "parallel_iterations": 10}
        return w.node("Enter", [name], "Enter", T=dtype, **attrs)

    entered = [enter(name, dtype, False) for name, dtype in variables]
    held = [enter(name, dtype, True) for name, dtype in constants]
    dtypes = [dtype for _, dtype in variables]
    merges = []
    for name, dtype in zip(entered, dtypes, strict=True):
        merges.append(w.node("Merge", [name, name], "Merge", T=dtype, N=2))
    nodes = {node.name: node for node in w.nodes}
    holds = w.node("LoopCond", [condition(merges, held, f"^{merges[0]}")], "LoopCond")
    switches = [
        w.node("Switch", [name, holds], "Switch", T=dtype)
        for name, dtype in zip(merges, dtypes, strict=True)
    ]
    inside = [
        w.node("Identity", [f"{name}:1"], "Identity", T=dtype)
        for name, dtype in zip(switches, dtypes, strict=True)
    ]
    after = body(inside, held, f"^{inside[0]}")
    for merge, name, dtype in zip(merges, after, dtypes, strict=True):
        nodes[merge].input[1] = w.node("NextIteration", [name], "NextIteration", T=dtype)
    return [
        w.node("Exit", [name], "Exit", T=dtype)
        for name, dtype in zip(switches, dtypes, strict=True)
    ]


def _inputs_of(w: Writer, start: int, end: int | None) -> list[tuple[str, DType]]:
    pairs = zip(w.inputs, w.op.inputs, strict=True)
    return [(name, tensor.dtype) for name, tensor in pairs][start:end]


def _while(w: Writer) -> None:
    count = w.attrs["leading"]
    w.require(not w.attrs["keyed"], "its body draws random numbers")
    w.require(not w.attrs["arrays"], "its loop variables include tensor arrays")
    w.require(count > 0, "it has no loop variables")

    def condition(current: Names, held: Names, pivot: str) -> str:
        (name,) = _body(w, 0, [*current, *held], "cond", pivot)
        return name

    def body(current: Names, held: Names, pivot: str) -> Names:
        return _body(w, 1, [*current, *held], "body", pivot)

    w.identities(_loop(w, _inputs_of(w, 0, count), _inputs_of(w, count, None), condition, body))


def _scan(w: Writer) -> None:
    """Writes a loop over the elements' rows, with results in tensor lists."""
    carried, leading = w.attrs["carried"], w.attrs["leading"]
    w.require(not w.attrs["keyed"], "its body draws random numbers")
    columns = _inputs_of(w, carried, leading)
    zero, one = w.const(0, "zero", int32), w.const(1, "one", int32)
    if columns:
        name, dtype = columns[0]
        shape = w.node("Shape", [name], "Shape", T=dtype, out_type=int32)
        length = w.node("GatherV2", [shape, zero, zero], "length", **_gather(int32))
    else:
        length = w.const(w.attrs["length"], "length", int32)
    results = w.op.outputs[carried:]
    lists = []
    for each in results:
        dims = each.shape.dims
        shape = w.const([-1 if dim is None else dim for dim in (dims or [])[1:]], "rows", int32)
        if dims is None:
            shape = w.const(-1, "rows", int32)
        attrs = {"element_dtype": each.dtype, "shape_type": int32}
        lists.append(
            (w.node("TensorListReserve", [shape, length], "TensorListReserve", **attrs), shape)
        )
    variables = [(zero, int32), *_inputs_of(w, 0, carried), *((name, variant) for name, _ in lists)]
    constants = [*_inputs_of(w, carried, None), (length, int32), (one, int32), (zero, int32)]

    def condition(current: Names, held: Names, pivot: str) -> str:
        return w.node("Less", [current[0], held[-3]], "Less", T=int32)

    def body(current: Names, held: Names, pivot: str) -> Names:
        step, last, first = current[0], held[-2], held[-1]
        at = step
        if w.attrs["reverse"]:
            behind = w.node("Sub", [held[-3], last], "Sub", T=int32)
            at = w.node("Sub", [behind, step], "Sub", T=int32)
        elements = [
            w.node("GatherV2", [held[number], at, first], "element", **_gather(dtype))
            for number, (_, dtype) in enumerate(columns)
        ]
        given = [*current[1 : 1 + carried], *held[:-3]]
        outputs = _body(w, 0, given, "body", pivot, elements)
        written = [
            w.node(
                "TensorListSetItem", [kept, at, name], "TensorListSetItem", element_dtype=each.dtype
            )
            for kept, name, each in zip(
                current[1 + carried :], outputs[carried:], results, strict=True
            )
        ]
        following = w.node("AddV2", [step, last], "next", T=int32)
        return [following, *outputs[:carried], *written]

    _, *after = _loop(w, variables, constants, condition, body)
    stacked = [
        w.node(
            "TensorListStack",
            [name, shape],
            "TensorListStack",
            element_dtype=each.dtype,
            num_elements=-1,
        )
        for name, (_, shape), each in zip(after[carried:], lists, results, strict=True)
    ]
    w.identities([*after[:carried], *stacked])


def _gather(dtype: DType) -> dict[str, Any]:
    return {"Tparams": dtype, "Tindices": int32, "Taxis": int32, "batch_dims": 0}


def _recurrent(attrs: Any, projected: Tensor, kernel: Tensor, *rest: Tensor) -> list[Tensor]:
    """Expresses `RecurrentLoop` as a loop over steps."""
    given = list(rest)
    bias = given.pop(0) if attrs["biased"] else None
    masks = [given.pop(0)] if attrs["masked"] else []
    cell = _CELLS[attrs["kind"]]

    def step(states: list[Tensor], column: list[Tensor]) -> tuple[list[Tensor], Tensor]:
        product = matmul(states[0], kernel)
        new = cell(column[0], product if bias is None else product + bias, states)
        for mask in column[1:]:
            here = expand_dims(mask, -1)
            new = [where(here, one, other) for one, other in zip(new, states, strict=True)]
        return new, new[0]

    last, outputs = scan_op(step, given, [projected, *masks], reverse=attrs["reverse"])
    return [outputs, *last]


def _lstm(projected: Tensor, product: Tensor, states: list[Tensor]) -> list[Tensor]:
    i, f, g, o = split(projected + product, 4, 1)
    memory = sigmoid(f) * states[1] + sigmoid(i) * tanh(g)
    return [sigmoid(o) * tanh(memory), memory]


def _gru(projected: Tensor, product: Tensor, states: list[Tensor]) -> list[Tensor]:
    (px, rx, hx), (pz, rz, hz) = split(projected, 3, 1), split(product, 3, 1)
    z = sigmoid(px + pz)
    return [z * states[0] + (1.0 - z) * tanh(hx + sigmoid(rx + rz) * hz)]


_CELLS = {"LSTM": _lstm, "GRU": _gru}

LOOP_RULES: dict[str, Rule] = {
    "Call": _call,
    "If": _if,
    "RecurrentLoop": composed(_recurrent),
    "Scan": _scan,
    "While": _while,
}
