"""`Sequential`: a linear stack of layers (`tf.keras.Sequential`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.data.spec import TensorSpec
from estimatorkit.keras.engine.input_layer import Input, InputLayer
from estimatorkit.keras.engine.model import Model
from estimatorkit.layers.engine.base import Layer
from estimatorkit.layers.engine.call_record import record_of


class Sequential(Model):
    """A linear stack of layers.

    Its variables are created once the shape of the inputs is known: from the first layer's
    `input_shape`, an `InputLayer`, `build`, or the first data.

    Args:
        layers: the layers.
        name: as for `Layer`.
    """

    _untracked = Model._untracked | {"_members", "_features"}

    def __init__(self, layers: Sequence[Any] | None = None, name: str | None = None) -> None:
        super().__init__(name=name)
        self._members: list[Layer] = []
        self._features: dict[str, TensorSpec] | None = None  # dict inputs seen when built
        self._is_guess = False  # whether data may refine the input shape
        self.supports_masking = True
        given = layers if isinstance(layers, (list, tuple)) or layers is None else [layers]
        for layer in given or ():
            self.add(layer)

    def _parts(self) -> list[Any]:
        return list(self._members)

    @property
    def layers(self) -> list[Layer]:
        """The layers, except the input layer."""
        return [each for each in self._members if not isinstance(each, InputLayer)]

    def add(self, layer: Any) -> None:
        """Adds a layer at the end.

        Raises:
            TypeError: it is not a layer.
            ValueError: its name is taken, or it has several outputs.
        """
        if isinstance(layer, Tensor):  # the tensor of `Input`
            call = record_of(layer.graph).calls.get(layer)
            layer = layer if call is None else call.layer
        if not isinstance(layer, Layer):
            raise TypeError(
                f"The added layer must be an instance of class Layer. Received: {layer}"
            )
        if any(each.name == layer.name and each is not layer for each in self._members):
            raise value_error(
                f"All layers added to a Sequential model should have unique names. Name "
                f'"{layer.name}" is already the name of a layer in this model',
                hint="update the `name` argument to pass a unique name",
            )
        if not self._members and not isinstance(layer, InputLayer):
            shape, dtype = _first_shape(layer)
            if shape is not None:
                self._is_guess = all(each is None for each in shape)
                placeholder = Input(batch_shape=shape, dtype=dtype, name=f"{layer.name}_input")
                self._members.append(record_of(placeholder.graph).calls[placeholder].layer)
        self._members.append(layer)
        try:
            if self._network is not None:
                self._extend(layer)
            elif isinstance(self._members[0], InputLayer):
                self._connect(self._members[0].output)
        except ValueError:
            if not self._is_guess:
                raise
            # The layer may need a dimension that only the data has: it is connected then.
            self._members = self.layers
            self._network, self.built, self._is_guess = None, False, False

    def _connect(self, inputs: Any) -> None:
        """Builds the layers on inputs."""
        outputs = inputs
        for layer in self._members:
            if not isinstance(layer, InputLayer):
                outputs = layer(outputs)
        if outputs is not inputs:
            self._set_network(inputs, outputs)

    def _extend(self, layer: Layer) -> None:
        self._set_network(self.network.inputs, layer(self.network.outputs))

    def pop(self) -> None:
        """Removes the last layer.

        Raises:
            TypeError: there are no layers.
        """
        if not self.layers:
            raise TypeError("There are no layers in the model.")
        self._members.pop()
        network, self._network = self._network, None
        self._steps = {}
        if network is None:
            return
        if self.layers:  # preceding layers may be part of other models, and called there, too
            self._set_network(network.inputs, network.steps[len(self.layers) - 1].outputs)
        else:
            self.built = False

    def build(self, input_shape: Any = None) -> None:
        """Creates the variables for inputs of a shape, which includes the batch dimension.

        If the inputs are a dict, the first layer receives it in each call.

        Raises:
            ValueError: no shape is given, and the layers do not determine one.
        """
        if isinstance(input_shape, Mapping):
            return
        if self._network is None and input_shape is None:
            raise ValueError("You must provide an `input_shape` argument.")
        if self._network is None:
            self._connect_new(Input(batch_shape=tuple(input_shape), dtype=self.compute_dtype))
        self.built = self._network is not None

    def _build_for(self, inputs: Any) -> None:
        super()._build_for(inputs)
        if isinstance(inputs, Mapping) and all(
            isinstance(each, Tensor) for each in inputs.values()
        ):
            self._features = {
                key: TensorSpec([None, *each.shape.as_list()[1:]], each.dtype)
                for key, each in inputs.items()
                if each.shape.rank
            }

    def _connect_new(self, placeholder: Any) -> None:
        self._members.insert(0, record_of(placeholder.graph).calls[placeholder].layer)
        self._connect(placeholder)

    def _prepare_for(self, spec: Any) -> None:
        part = spec[0] if isinstance(spec, tuple) else spec
        if isinstance(part, Mapping):
            super()._prepare_for(spec)
        elif self._network is None:
            with self.graph.as_default():
                shape = [None, *part.shape.as_list()[1:]]
                self._connect_new(Input(batch_shape=shape, dtype=part.dtype))

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """Returns the outputs of the last layer."""
        if self._network is not None:
            return super().call(inputs, training, mask)
        outputs = inputs
        for layer in self.layers:
            outputs = layer(outputs)
        return outputs

    def predict_proba(self, x: Any, batch_size: int = 32, verbose: int = 0) -> Any:
        """`predict` under its older name."""
        return self.predict(x, batch_size, verbose)

    def predict_classes(self, x: Any, batch_size: int = 32, verbose: int = 0) -> Any:
        """Returns the class id of the largest output or, for a single output, whether it exceeds
        1/2.
        """
        values = self.predict(x, batch_size, verbose)
        return values.argmax(-1) if values.shape[-1] > 1 else (values > 0.5).astype("int32")


def _first_shape(layer: Layer) -> tuple[Any, Any]:
    """The input shape and dtype that a first layer declares, or None."""
    if isinstance(layer, Model) and layer._network is not None:
        first = layer.network.input_tensors[0]
        return tuple(first.shape.as_list()), first.dtype
    return layer._batch_input_shape, layer.compute_dtype


__all__ = ["Sequential"]
