"""`LayerConnections`: inputs and outputs of a layer's calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from estimatorkit.core.nest import map_structure
from estimatorkit.core.shapes import TensorShape
from estimatorkit.layers.engine.call_record import LayerCall, mask_on, record_of


class LayerConnections:
    """Mixin of `Layer`: the inputs and outputs of its calls."""

    _name: str
    _calls: list[LayerCall]
    _calls_of_inputs: list[LayerCall]

    @property
    def input(self) -> Any:
        """The inputs of the only call.

        Raises:
            AttributeError: the layer was never called, or more than once.
        """
        return self._only_call("input").inputs

    @property
    def output(self) -> Any:
        """The outputs of the only call; raises like `input`."""
        return self._only_call("output").outputs

    @property
    def input_shape(self) -> Any:
        """The shape of `input` as a tuple."""
        return map_structure(lambda tensor: _as_tuple(tensor.shape), self.input)

    @property
    def output_shape(self) -> Any:
        """The shape of `output` as a tuple."""
        return map_structure(lambda tensor: _as_tuple(tensor.shape), self.output)

    @property
    def input_mask(self) -> Any:
        """The mask of `input`, or None; raises like `input`."""
        return self.get_input_mask_at(0) if self._only_call("input") else None

    @property
    def output_mask(self) -> Any:
        """The mask of `output`, or None; raises like `input`."""
        return self.get_output_mask_at(0) if self._only_call("output") else None

    def get_input_mask_at(self, node_index: int) -> Any:
        """The mask of the inputs of the call with index `node_index`."""
        return _masks(self.get_input_at(node_index))

    def get_output_mask_at(self, node_index: int) -> Any:
        """The mask of the outputs of the call with index `node_index`."""
        return _masks(self.get_output_at(node_index))

    def get_input_shape_at(self, node_index: int) -> Any:
        """The shape of the inputs of the call with index `node_index`, as a tuple."""
        return map_structure(lambda each: _as_tuple(each.shape), self.get_input_at(node_index))

    def get_output_shape_at(self, node_index: int) -> Any:
        """The shape of the outputs of the call with index `node_index`, as a tuple."""
        return map_structure(lambda each: _as_tuple(each.shape), self.get_output_at(node_index))

    @property
    def _nodes(self) -> list[LayerCall]:
        """The calls on tensors computed from model inputs; all if there are none."""
        return self._calls_of_inputs or self._calls

    @property
    def _inbound_nodes(self) -> list[Node]:
        return [Node(call) for call in self._nodes]

    @property
    def _outbound_nodes(self) -> list[Node]:
        known = record_of().calls
        return [
            Node(call)
            for call in dict.fromkeys(known.values())
            if call.of_inputs and self in [known[t].layer for t in call.input_tensors if t in known]
        ]

    def _only_call(self, what: str) -> LayerCall:
        calls = self._nodes
        if not calls:
            raise AttributeError(
                f"Layer {self._name} has never been called and thus has no {what}."
            )
        shapes = {str(map_structure(lambda t: t.shape, call.outputs)) for call in calls}
        if len(shapes) > 1:
            raise AttributeError(
                f"The layer {self._name} has multiple calls with different shapes: "
                f"the {what} is ill-defined. Use `get_{what}_at(node_index)` instead."
            )
        return calls[0]

    def _call_at(self, node_index: int, what: str) -> LayerCall:
        calls = self._nodes
        if not calls:
            raise RuntimeError(
                f"The layer {self._name} has never been called and thus has no defined {what}."
            )
        if node_index >= len(calls):
            raise ValueError(
                f"Asked to get {what} at node {node_index}, but the layer has only {len(calls)} "
                "inbound nodes."
            )
        return calls[node_index]

    def get_input_at(self, node_index: int) -> Any:
        """The inputs of the call with index `node_index`.

        Raises:
            RuntimeError: the layer was never called.
            ValueError: there are fewer calls.
        """
        return self._call_at(node_index, "input").inputs

    def get_output_at(self, node_index: int) -> Any:
        """The outputs of the call with index `node_index`; raises like `get_input_at`."""
        return self._call_at(node_index, "output").outputs


@dataclass(frozen=True)
class Node:
    """A call of a layer, under the names of Keras's nodes.

    Attributes:
        call: the call.
    """

    call: LayerCall

    @property
    def layer(self) -> Any:
        """The layer that was called."""
        return self.call.layer

    outbound_layer = layer

    @property
    def is_input(self) -> bool:
        """Whether an input layer made this call."""
        return self.call.is_input

    @property
    def keras_inputs(self) -> list[Any]:
        """The tensors that it was called on, in a list."""
        return self.call.input_tensors

    @property
    def input_tensors(self) -> Any:
        """The tensors that it was called on; one alone is not in a list."""
        given = [self.call.outputs] if self.is_input else self.call.input_tensors
        return given[0] if len(given) == 1 and not self.is_input else given

    @property
    def output_tensors(self) -> Any:
        """The call's outputs."""
        return self.call.outputs

    outputs = output_tensors

    @property
    def inbound_layers(self) -> Any:
        """The layers that gave `input_tensors`; one alone is not in a list."""
        known = record_of().calls
        found = [known[each].layer for each in self.call.input_tensors if each in known]
        return found[0] if len(found) == 1 else found

    @property
    def input_shapes(self) -> Any:
        """The shapes of `input_tensors`, as tuples."""
        return map_structure(lambda each: _as_tuple(each.shape), self.input_tensors)

    @property
    def output_shapes(self) -> Any:
        """The shapes of `output_tensors`, as tuples."""
        return map_structure(lambda each: _as_tuple(each.shape), self.output_tensors)


def _masks(tensors: Any) -> Any:
    return map_structure(mask_on, tensors)


def _as_tuple(shape: TensorShape) -> Any:
    return None if shape.dims is None else tuple(shape.dims)


__all__ = ["LayerConnections", "Node"]
