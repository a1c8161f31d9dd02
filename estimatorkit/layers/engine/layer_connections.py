"""`LayerConnections`: inputs and outputs of a layer's calls."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.nest import map_structure
from estimatorkit.core.shapes import TensorShape
from estimatorkit.layers.engine.call_record import LayerCall, mask_on


class LayerConnections:
    """Mixin of `Layer`: the inputs and outputs of its calls."""

    _name: str
    _calls: list[LayerCall]

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
        """The mask of `input`, None where it has none; raises like `input`."""
        return self.get_input_mask_at(0) if self._only_call("input") else None

    @property
    def output_mask(self) -> Any:
        """The mask of `output`, None where it has none; raises like `input`."""
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

    def _only_call(self, what: str) -> LayerCall:
        if not self._calls:
            raise AttributeError(
                f"Layer {self._name} has never been called and thus has no {what}."
            )
        shapes = {str(map_structure(lambda t: t.shape, call.outputs)) for call in self._calls}
        if len(shapes) > 1:
            raise AttributeError(
                f"The layer {self._name} has multiple calls with different shapes: "
                f"the {what} is ill-defined. Use `get_{what}_at(node_index)` instead."
            )
        return self._calls[0]

    def get_input_at(self, node_index: int) -> Any:
        """The inputs of the call with index `node_index`."""
        return self._calls[node_index].inputs

    def get_output_at(self, node_index: int) -> Any:
        """The outputs of the call with index `node_index`."""
        return self._calls[node_index].outputs


def _masks(tensors: Any) -> Any:
    return map_structure(mask_on, tensors)


def _as_tuple(shape: TensorShape) -> Any:
    return None if shape.dims is None else tuple(shape.dims)


__all__ = ["LayerConnections"]
