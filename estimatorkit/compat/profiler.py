"""`tf.profiler`: the numbers of parameters and floating-point operations of a graph by name scope.

Float operations are counted from static shapes by TensorFlow's formulas; operations of unknown
shape count as 0. `train.ProfilerHook` and `RunMetadata` measure times and memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from estimatorkit.core.errors import explain, value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Operation

TRAINABLE_VARIABLES = "_trainable_variables"


@dataclass
class GraphNodeProto:
    """A name scope of a profile, with its children.

    Attributes:
        name: the scope's or operation's full name; '_TFProfRoot' at the top.
        parameters: the number of elements of its variable.
        float_ops: its own floating-point operations per run.
        total_parameters, total_float_ops: the same including children.
        children: its immediate scopes and operations.
    """

    name: str
    parameters: int = 0
    float_ops: int = 0
    total_parameters: int = 0
    total_float_ops: int = 0
    children: list[GraphNodeProto] = field(default_factory=list)


def _size(shape: Any) -> int:
    """The number of elements; 0 if unknown."""
    return shape.num_elements() or 0


def _elements(each: int) -> Callable[[Operation], int]:
    return lambda op: each * _size(op.outputs[0].shape)


def _reduction(finalize: int) -> Callable[[Operation], int]:
    def count(op: Operation) -> int:
        before, after = _size(op.inputs[0].shape), _size(op.outputs[0].shape)
        return before + after * (finalize - 1) if before and after else 0

    return count


def _matmul(op: Operation) -> int:
    dims = op.inputs[0].shape.dims
    if dims is None:
        return 0
    transposed = any(op.attrs.get(each) for each in ("transpose_a", "adj_x", "adjoint_a"))
    return 2 * _size(op.outputs[0].shape) * (dims[-2 if transposed else -1] or 0)


def _convolution(op: Operation) -> int:
    return 2 * _size(op.outputs[0].shape) * _size(op.inputs[1].shape[:-1])


_FLOAT_OPS: dict[str, Callable[[Operation], int]] = {
    **dict.fromkeys(("Reciprocal", "Square", "Log", "Neg", "AssignSub", "AssignAdd"), _elements(1)),
    **dict.fromkeys(("Add", "Sub", "Mul", "RealDiv", "Maximum", "Minimum"), _elements(1)),
    **dict.fromkeys(("GreaterEqual", "Greater", "LessEqual", "Less", "Equal"), _elements(1)),
    **dict.fromkeys(("NotEqual", "Pow", "BiasAdd"), _elements(1)),
    **dict.fromkeys(("Rsqrt", "SquaredDifference"), _elements(2)),
    "Softmax": _elements(5),
    "Mean": _reduction(1),
    **dict.fromkeys(("Sum", "ArgMax", "ArgMin"), _reduction(0)),
    "MatMul": _matmul,
    "Convolution": _convolution,
}


class ProfileOptionBuilder:
    """Builds the options of `profile` (`tf.profiler.ProfileOptionBuilder`).

    Args:
        options: initial options, the result of a `build`.
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options: dict[str, Any] = {
            "max_depth": 100,
            "min_params": 0,
            "min_float_ops": 0,
            "order_by": "name",
            "account_type_regexes": [".*"],
            "start_name_regexes": [".*"],
            "show_name_regexes": [".*"],
            "hide_name_regexes": [],
            "select": ["params"],
            "output": "stdout",
            **(options or {}),
        }

    @staticmethod
    def trainable_variables_parameter() -> dict[str, Any]:
        """Options that count the elements of trainable variables."""
        return ProfileOptionBuilder().with_accounted_types([TRAINABLE_VARIABLES]).build()

    @staticmethod
    def float_operation() -> dict[str, Any]:
        """Options that count floating-point operations."""
        options = ProfileOptionBuilder().select(["float_ops"]).order_by("float_ops")
        return options.with_min_float_operations(1).build()

    @staticmethod
    def time_and_memory(*args: Any, **kwargs: Any) -> dict[str, Any]:
        """Not supported: always raises NotImplementedError, which names the alternatives."""
        raise NotImplementedError(
            explain(
                "profiler: time and memory are not part of a graph's profile",
                hint="train.ProfilerHook writes timelines of steps, with XLA's own profile",
            )
        )

    def build(self) -> dict[str, Any]:
        """The options."""
        return dict(self._options)

    def _with(self, **options: Any) -> ProfileOptionBuilder:
        self._options.update(options)
        return self

    def with_max_depth(self, max_depth: int) -> ProfileOptionBuilder:
        """Limits the number of levels shown."""
        return self._with(max_depth=max_depth)

    def with_min_parameters(self, min_params: int) -> ProfileOptionBuilder:
        """Shows only nodes with at least this many parameters."""
        return self._with(min_params=min_params)

    def with_min_float_operations(self, min_float_ops: int) -> ProfileOptionBuilder:
        """Shows only nodes with at least this many float operations."""
        return self._with(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes: Sequence[str]) -> ProfileOptionBuilder:
        """Counts operations with a matching type, and variables with '_trainable_variables'."""
        return self._with(account_type_regexes=list(account_type_regexes))

    def with_node_names(
        self,
        start_name_regexes: Sequence[str] | None = None,
        show_name_regexes: Sequence[str] | None = None,
        hide_name_regexes: Sequence[str] | None = None,
        trim_name_regexes: Sequence[str] | None = None,
    ) -> ProfileOptionBuilder:
        """Counts operations that match a start and a show pattern, but no hide or trim one."""
        hidden = [*(hide_name_regexes or ()), *(trim_name_regexes or ())]
        return self._with(
            start_name_regexes=list(start_name_regexes or [".*"]),
            show_name_regexes=list(show_name_regexes or [".*"]),
            hide_name_regexes=hidden,
        )

    def with_empty_output(self) -> ProfileOptionBuilder:
        """Prints nothing."""
        return self._with(output="none")

    def with_stdout_output(self) -> ProfileOptionBuilder:
        """Prints the profile."""
        return self._with(output="stdout")

    def with_file_output(self, outfile: str) -> ProfileOptionBuilder:
        """Writes the profile to a file."""
        return self._with(output=f"file:outfile={outfile}")

    def order_by(self, attribute: str) -> ProfileOptionBuilder:
        """Sorts the output by 'name', 'params' or 'float_ops'."""
        return self._with(order_by=attribute)

    def select(self, attributes: Sequence[str]) -> ProfileOptionBuilder:
        """Selects the columns to print: 'params', 'float_ops'."""
        return self._with(select=list(attributes))


def _matches(patterns: Iterable[str], text: str) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in patterns)


def _counts(graph: Graph, options: Mapping[str, Any]) -> dict[str, tuple[str, int, int]]:
    """Type, parameters and float operations of each counted operation, by name."""
    trainable = {each.op.name for each in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)}
    variables = {
        each.op.name: math.prod(each.shape.as_list())
        for each in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        if each.shape.is_fully_defined()
    }
    found = {}
    for op in graph.get_operations():
        types = [op.type, *([TRAINABLE_VARIABLES] if op.name in trainable else [])]
        if (
            any(_matches(options["account_type_regexes"], each) for each in types)
            and _matches(options["start_name_regexes"], op.name)
            and _matches(options["show_name_regexes"], op.name)
            and not _matches(options["hide_name_regexes"], op.name)
        ):
            count = _FLOAT_OPS.get(op.type) if "float_ops" in options["select"] else None
            size = variables.get(op.name, 0) if "params" in options["select"] else 0
            found[op.name] = op.type, size, count(op) if count else 0
    return found


def _tree(counts: Mapping[str, tuple[str, int, int]], by_type: bool) -> GraphNodeProto:
    root = GraphNodeProto("_TFProfRoot")
    nodes = {"": root}
    for name, (kind, parameters, float_ops) in counts.items():
        parts = [kind] if by_type else name.split("/")
        path = [root]
        for count in range(1, len(parts) + 1):
            full = "/".join(parts[:count])
            if full not in nodes:
                nodes[full] = GraphNodeProto(full)
                path[-1].children.append(nodes[full])
            path.append(nodes[full])
        path[-1].parameters += parameters
        path[-1].float_ops += float_ops
        for node in path:
            node.total_parameters += parameters
            node.total_float_ops += float_ops
    return root


def _lines(node: GraphNodeProto, options: Mapping[str, Any], depth: int = 0) -> list[str]:
    if (
        depth > options["max_depth"]
        or node.total_parameters < options["min_params"]
        or node.total_float_ops < options["min_float_ops"]
    ):
        return []
    shown = {
        "params": f"{node.parameters:,}/{node.total_parameters:,} params",
        "float_ops": f"{node.float_ops:,}/{node.total_float_ops:,} flops",
    }
    values = ", ".join(shown[each] for each in options["select"] if each in shown)
    keys: dict[str, Callable[[GraphNodeProto], Any]] = {
        "params": lambda each: -each.total_parameters,
        "float_ops": lambda each: -each.total_float_ops,
    }
    children = sorted(node.children, key=keys.get(options["order_by"], lambda each: each.name))
    below = [line for child in children for line in _lines(child, options, depth + 1)]
    return [f"{'  ' * depth}{node.name} ({values})", *below]


def profile(
    graph: Graph | None = None,
    run_meta: Any = None,
    op_log: Any = None,
    cmd: str = "scope",
    options: Mapping[str, Any] | None = None,
) -> GraphNodeProto:
    """Counts parameters and floating-point operations (`tf.profiler.profile`).

    Args:
        graph: the graph; None for the default graph.
        run_meta, op_log: accepted for compatibility only.
        cmd: 'scope' or 'graph' for totals by name scope, 'op' by type of operation.
        options: what to count and print: a dict, see `ProfileOptionBuilder`.

    Returns:
        The root of the profile, whose `total_parameters` and `total_float_ops` are the graph's.

    Raises:
        ValueError: `cmd` is unknown.
    """
    if cmd not in ("scope", "graph", "op"):
        raise value_error(
            "profile: unknown cmd", expected="'scope', 'graph' or 'op'", received=repr(cmd)
        )
    chosen = ProfileOptionBuilder(options).build()
    root = _tree(_counts(graph or get_default_graph(), chosen), by_type=cmd == "op")
    kind, _, target = str(chosen["output"]).partition(":outfile=")
    text = "\n".join(_lines(root, chosen))
    if kind == "stdout":
        print(text)
    elif kind == "file":
        with open(target, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
    return root


TRAINABLE_VARS_PARAMS_STAT_OPTIONS = ProfileOptionBuilder.trainable_variables_parameter()
FLOAT_OPS_OPTIONS = ProfileOptionBuilder.float_operation()


def print_model_analysis(
    graph: Graph,
    run_meta: Any = None,
    op_log: Any = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Mapping[str, Any] = TRAINABLE_VARS_PARAMS_STAT_OPTIONS,
) -> GraphNodeProto:
    """`profile` under its older name (`contrib.tfprof.model_analyzer`)."""
    return profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options)
