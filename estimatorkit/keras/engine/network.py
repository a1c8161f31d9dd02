"""`Network`: the layers between a functional model's inputs and outputs.

The graph is traced back from the outputs by layer calls (`layers.engine.call_record`); an operation
outside layers is a separate step. Applying a network calls its layers again in order, for
training, for evaluation, or in another graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.core import registry
from estimatorkit.core.composite import is_composite
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.nest import flatten, map_structure
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.layers.engine.base import Layer
from estimatorkit.layers.engine.call_record import LayerCall, record_of, set_mask
from estimatorkit.ops.array.array import expand_dims, squeeze
from estimatorkit.ops.sparse.sparse import from_dense

Step = LayerCall | Operation


class Network:
    """The steps from inputs to outputs.

    Args:
        inputs: a tensor or a structure of tensors, each made by `Input` or a placeholder.
        outputs: a tensor or a structure of tensors that depend on them.

    Attributes:
        inputs, outputs: the structures; lists of one element are unpacked.
        steps: layer calls and operations, in topological order.
        layers: the layers without duplicates, in Keras's order.

    Raises:
        ValueError: an output does not depend on the inputs, or depends on another fed tensor; or
            an input is given twice, or two layers have the same name.
    """

    def __init__(self, inputs: Any, outputs: Any) -> None:
        self.inputs = _only(inputs)
        self.outputs = _only(outputs)
        self.input_tensors: list[Any] = flatten(inputs)
        self.output_tensors: list[Any] = flatten(outputs)
        # Sparse tensors are replaced by their components, each a tensor of the graph.
        self._input_parts: list[Tensor] = flatten(inputs, True)
        for what, tensors in (("Inputs", self.input_tensors), ("Output", self.output_tensors)):
            for tensor in tensors:
                if not isinstance(tensor, Tensor) and not is_composite(tensor):
                    raise ValueError(
                        f"{what} tensors to a Model must be tensors. Found: {tensor!r}"
                    )
        if len(set(map(id, self.input_tensors))) < len(self.input_tensors):
            raise ValueError(
                "The list of inputs passed to the model contains the same input multiple times. "
                "All inputs should only appear once. Received inputs="
                f"{[each.name for each in self.input_tensors]}"
            )
        self.side_outputs: list[Tensor] = []  # of the layers that add losses and metrics
        self._graph = self.output_tensors[0].graph
        self._calls: dict[Tensor, LayerCall] = record_of(self._graph).calls
        self.steps = self._sorted_steps()
        self.layers = self._ordered_layers()
        self._check_names()

    def _check_names(self) -> None:
        names = [layer.name for layer in self.layers]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f'The name "{name}" is used {names.count(name)} times in the model. All layer '
                    "names should be unique."
                )

    def extend(self, outputs: Sequence[Tensor]) -> None:
        """Adds layers that are called with the others, and whose outputs nobody gets.

        Raises:
            ValueError: they do not depend on the inputs.
        """
        self.side_outputs += outputs
        self.steps = self._sorted_steps()
        self.layers += [each for each in self._ordered_layers() if each not in self.layers]

    def depends(self, tensor: Any) -> bool:
        """Whether a tensor is computed from the inputs."""
        given, waiting, seen = set(map(id, self._input_parts)), [tensor], set[int]()
        while waiting:
            each = waiting.pop()
            if id(each) in given:
                return True
            if id(each) not in seen:
                seen.add(id(each))
                waiting += self._needs(self._step_of(each))
        return False

    # -- finding the steps

    def _step_of(self, tensor: Tensor) -> Step:
        return self._calls.get(tensor) or tensor.op

    @staticmethod
    def _needs(step: Step) -> Sequence[Tensor]:
        return step.input_tensors if isinstance(step, LayerCall) else step.inputs

    def _sorted_steps(self) -> list[Step]:
        given = set(map(id, self._input_parts))
        depends: dict[int, bool] = dict.fromkeys(given, True)
        order: list[Step] = []
        placed: set[int] = set()
        for output in flatten([self.output_tensors, self.side_outputs], True):
            self._visit(output, depends, order, placed)
            if not depends.get(id(output)):
                raise value_error(
                    "Graph disconnected: cannot obtain value for tensor "
                    f"{output.name} from the inputs of the model",
                    expected=f"a tensor that depends on {self.input_tensors}",
                    made_at=output.op.source,
                )
        found = {id(step): step for step in order}
        depths = self._depths(order)  # steps of equal depth keep Keras's order
        return [found[key] for key in sorted(depths, key=lambda key: -depths[key]) if key in found]

    def _depths(self, steps: Sequence[Step]) -> dict[int, int]:
        """The longest ways from steps to an output, by id, in the order in which Keras finds them.

        Args:
            steps: each after those that it needs.
        """
        depths: dict[int, int] = {}
        for step in reversed([*self._input_steps(), *steps]):
            depth = depths.setdefault(id(step), 0)
            for tensor in self._needs(step):
                before = id(self._step_of(tensor))
                depths[before] = max(depths.get(before, 0), depth + 1)
        return depths

    def _visit(
        self, start: Tensor, depends: dict[int, bool], order: list[Step], placed: set[int]
    ) -> None:
        """Appends the steps that a tensor depends on; iterative, because models may be deep."""
        stack = [start]
        while stack:
            tensor = stack[-1]
            if id(tensor) in depends:
                stack.pop()
                continue
            step = self._step_of(tensor)
            needed = self._needs(step)
            open_ones = [each for each in needed if id(each) not in depends]
            if open_ones:
                stack.extend(reversed(open_ones))
                continue
            stack.pop()
            found = any(depends[id(each)] for each in needed)
            depends[id(tensor)] = found
            if not needed and role_of(tensor.op) is Role.PLACEHOLDER:
                raise value_error(
                    f"Graph disconnected: cannot obtain value for tensor {tensor.name}",
                    expected="an input of the model",
                    received=f"inputs {[each.name for each in self.input_tensors]}",
                    made_at=tensor.op.source,
                    hint="add it to the model's inputs",
                )
            if found and id(step) not in placed:
                placed.add(id(step))
                order.append(step)

    def _ordered_layers(self) -> list[Layer]:
        """The layers in Keras's order: by decreasing depth from the outputs.

        Layers of equal depth keep the order of a traversal from the outputs.
        """
        depths = self._depths(self.steps)
        layers: dict[int, Layer] = {}
        of_layer: dict[int, int] = {}
        order = self._preorder()
        for step in reversed([*self._input_steps(), *self.steps]):
            if isinstance(step, LayerCall):
                depth = depths[id(step)]
                layers[id(step.layer)] = step.layer
                of_layer[id(step.layer)] = max(of_layer.get(id(step.layer), 0), depth)
        return sorted(
            layers.values(), key=lambda layer: (-of_layer[id(layer)], order.get(id(layer), 0))
        )

    def _input_steps(self) -> list[Step]:
        return [self._calls[each] for each in self._input_parts if each in self._calls]

    def _preorder(self) -> dict[int, int]:
        """The layers' positions in a traversal from the outputs."""
        order: dict[int, int] = {}
        seen: set[int] = set()
        inner = {id(step) for step in (*self._input_steps(), *self.steps)}
        stack: list[Tensor] = flatten([self.output_tensors, self.side_outputs], True)[::-1]
        while stack:
            step = self._step_of(stack.pop())
            if id(step) in seen or id(step) not in inner:
                continue
            seen.add(id(step))
            if isinstance(step, LayerCall):
                order.setdefault(id(step.layer), len(order))
            stack.extend(reversed(self._needs(step)))
        return order

    # -- applying them

    def apply(self, inputs: Any, mask: Any = None) -> Any:
        """Calls the layers on other inputs.

        Args:
            inputs: one tensor per input; a dict is matched by the inputs' names, or by the keys of
                the dict that the network was made with.
            mask: the inputs' masks.
        """
        given = self.matched(inputs)
        pairs = list(zip(self._input_parts, flatten(given, True), strict=True))
        columns = {id(old): new for old, new in pairs}
        values: dict[int, Any] = {id(old): _with_rank_of(old, new) for old, new in pairs}
        if mask is not None:
            for tensor, each in zip(given, flatten(mask), strict=False):
                if each is not None:
                    set_mask(tensor, each)

        def column(tensor: Any) -> Any:
            return columns[id(tensor)] if id(tensor) in columns else value(tensor)

        def value(tensor: Any) -> Any:
            if not isinstance(tensor, Tensor):
                return tensor
            return values[id(tensor)] if id(tensor) in values else self._outside(tensor, values)

        for step in self.steps:
            if isinstance(step, LayerCall):
                argument = column if step.layer.takes_columns else value
                args, kwargs = map_structure(
                    argument, [step.args, step.kwargs], expand_composites=True
                )
                made = flatten(step.layer(*args, **kwargs), True)
                pairs = list(zip(flatten(step.outputs, True), made, strict=True))
            else:
                op = registry.apply(step.type, [value(each) for each in step.inputs], step.attrs)
                pairs = list(zip(step.outputs, op.outputs, strict=True))
            values.update((id(old), new) for old, new in pairs)
        return map_structure(value, self.outputs, expand_composites=True)

    def matched(self, inputs: Any) -> list[Any]:
        """The values for the input tensors, in order.

        Raises:
            ValueError: the number is wrong, or a name is missing.
        """
        own = self.inputs if isinstance(self.inputs, dict) else None
        if isinstance(inputs, dict) and (own is None or len(own) == len(self.input_tensors)):
            names = self.input_names if own is None else sorted(own)
            missing = [name for name in names if name not in inputs]
            if missing:
                raise value_error(
                    f"The model has no value for its inputs {missing}",
                    expected=f"a dict with the keys {names}",
                    received=f"keys {list(inputs)}",
                )
            return self._as_sparse([inputs[name] for name in names])
        given = flatten(inputs)
        if len(given) != len(self.input_tensors):
            raise value_error(
                "The model is called with another number of inputs than it has",
                expected=f"{len(self.input_tensors)} inputs: {self.input_names}",
                received=f"{len(given)}",
            )
        return self._as_sparse(given)

    def _as_sparse(self, given: Sequence[Any]) -> list[Any]:
        """The values, those of sparse inputs as sparse tensors."""
        return [
            from_dense(new) if isinstance(old, SparseTensor) and isinstance(new, Tensor) else new
            for old, new in zip(self.input_tensors, given, strict=True)
        ]

    def _outside(self, tensor: Tensor, values: dict[int, Any]) -> Tensor:
        """Returns a tensor independent of the inputs, copied if the default graph is another."""
        if get_default_graph().reaches(tensor.graph):
            return tensor
        op = tensor.op
        if role_of(op) is Role.VARIABLE:
            raise value_error(
                f"the model reads variable {op.name} outside of a layer, so that it cannot be "
                "built in another graph",
                made_at=op.source,
                hint="make the variable in a layer's build()",
            )
        inputs = [values.get(id(each)) or self._outside(each, values) for each in op.inputs]
        copied = registry.apply(op.type, inputs, op.attrs)
        values.update((id(old), new) for old, new in zip(op.outputs, copied.outputs, strict=True))
        return copied.outputs[tensor.value_index]

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs' layers."""
        return [self._name_of(tensor) for tensor in self.input_tensors]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs' layers, made unique."""
        names: list[str] = []
        for tensor in self.output_tensors:
            base, number = self._name_of(tensor), 0
            name = base
            while name in names:
                number += 1
                name = f"{base}_{number}"
            names.append(name)
        return names

    def _name_of(self, tensor: Tensor) -> str:
        call = self._calls.get(tensor)
        return tensor.op.name.rsplit("/", 1)[-1] if call is None else call.layer.name


def _with_rank_of(own: Tensor, given: Any) -> Any:
    """Adds or drops a last dimension of 1 to match an input tensor's rank."""
    if not isinstance(given, Tensor):
        return given
    wanted, rank = own.shape.ndims, given.shape.ndims
    if wanted is None or rank is None:
        return given
    if rank == wanted - 1 and own.shape.as_list()[-1] == 1:
        return expand_dims(given, -1)
    if rank == wanted + 1 and given.shape.as_list()[-1] == 1:
        return squeeze(given, [-1])
    return given


def _only(structure: Any) -> Any:
    """Unpacks a list of one element."""
    alone = isinstance(structure, list) and len(flatten(structure)) == 1
    return structure[0] if alone else structure


__all__ = ["Network", "Step"]
