"""`ModelStructure`: a model's network or sublayers, names, and graph."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.nest import flatten, map_structure
from estimatorkit.core.tensor import Tensor
from estimatorkit.keras.engine.added_terms import AddLoss, AddMetric
from estimatorkit.keras.engine.network import Network
from estimatorkit.layers.engine.base import Layer
from estimatorkit.layers.engine.call_record import current_call, record_of
from estimatorkit.layers.engine.input_spec import as_shapes


class ModelStructure(Layer):
    """Mixin of `Model`: its layers."""

    _untracked = Layer._untracked | {"_network"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        inputs = kwargs.pop("inputs", args[0] if args else None)
        outputs = kwargs.pop("outputs", args[1] if len(args) > 1 else None)
        if len(args) > 2 and "name" not in kwargs:
            kwargs["name"] = args[2]
        super().__init__(**kwargs)
        self._network: Network | None = None
        self._own_graph: Graph | None = None
        if inputs is not None or outputs is not None:
            if inputs is None or outputs is None:
                raise ValueError("Model: both inputs and outputs are needed for a functional model")
            self._set_network(inputs, outputs)

    def _set_network(self, inputs: Any, outputs: Any) -> None:
        self._network = Network(inputs, outputs)
        self._own_graph = self._network.output_tensors[0].graph
        self.built = True
        self.supports_masking = True

    @property
    def graph(self) -> Graph:
        """The graph of the variables; the default graph if the model is not built."""
        if self._own_graph is not None:
            return self._own_graph
        weights = self.weights
        return weights[0].graph if weights else get_default_graph().outermost

    @property
    def _is_graph_network(self) -> bool:
        return self._network is not None

    @property
    def network(self) -> Network:
        """The layers between inputs and outputs.

        Raises:
            ValueError: the model is a subclass that defines `call` in Python.
        """
        if self._network is None:
            raise value_error(
                f"the model {self.name!r} has no inputs and outputs of its own",
                expected="a functional or a built Sequential model",
                received=type(self).__name__,
            )
        return self._network

    @property
    def layers(self) -> list[Layer]:
        """The layers of the network or, for a subclass, of its attributes."""
        return list(self._parts())

    def _parts(self) -> list[Any]:
        return super()._parts() if self._network is None else list(self._network.layers)

    @property
    def weights(self) -> list[Any]:
        """The variables, layer by layer."""
        own = [each for layer in self._parts() for each in layer.weights]
        return list({id(each): each for each in [*own, *self._own_weights()]}.values())

    variables = weights

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """Returns the layer of a name, or at an index of `layers`.

        Raises:
            ValueError: there is no such layer, or both are given.
        """
        layers = self.layers
        if index is not None and name is not None:
            raise ValueError(
                f"Provide only a layer name or a layer index. Received: index={index}, name={name}."
            )
        if index is not None:
            if index >= len(layers):
                raise ValueError(
                    f"Was asked to retrieve layer at index {index} but model only has "
                    f"{len(layers)} layers."
                )
            return layers[index]
        if name is None:
            raise ValueError("Provide either a layer name or layer index at `get_layer`.")
        for layer in layers:
            if layer.name == name:
                return layer
        names = [layer.name for layer in layers]
        raise value_error(
            f"No such layer: {name}",
            expected=f"one of {names}",
            hint=did_you_mean(name, names),
        )

    @property
    def inputs(self) -> list[Any] | None:
        """The input tensors; None if the model is not built, or defines `call` in Python."""
        return None if self._network is None else list(self._network.input_tensors)

    @property
    def outputs(self) -> list[Any] | None:
        """The output tensors; None like `inputs`."""
        return None if self._network is None else list(self._network.output_tensors)

    @property
    def input(self) -> Any:
        """The input tensor, or the structure of them."""
        return self.network.inputs if self._network is not None else super().input

    @property
    def output(self) -> Any:
        """The output tensor, or the structure of them."""
        return self.network.outputs if self._network is not None else super().output

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs."""
        return self.network.input_names

    @property
    def output_names(self) -> list[str]:
        """The outputs' names: those of the layers that produce them."""
        return self.network.output_names

    def output_names_of(self, outputs: Any) -> list[str]:
        """Names the outputs of a call.

        Uses a dict's keys, else the model's output names, else 'output_1', ...
        """
        count = len(flatten(outputs))
        if isinstance(outputs, Mapping) and len(outputs) == count:
            return sorted(outputs)
        if self._network is not None:
            return self.output_names
        return [f"output_{number + 1}" for number in range(count)]

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """Computes the outputs; subclasses override it.

        Raises:
            NotImplementedError: a subclass does not define it.
        """
        if self._network is None:
            raise NotImplementedError(
                "When subclassing the `Model` class, you should implement a `call` method."
            )
        return self._network.apply(inputs, mask)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Returns None: sublayers propagate masks."""
        return None

    def build(self, input_shape: Any = None) -> None:
        """Creates a subclass's variables by a call on placeholders."""
        if not self.built and input_shape is not None:
            inputs = map_structure(
                lambda shape: builtin_ops.placeholder(self.compute_dtype, shape),
                as_shapes(input_shape),
            )
            self.call(inputs)
        self.built = True

    def _build_for(self, inputs: Any) -> None:
        if type(self).build is not ModelStructure.build:
            super()._build_for(inputs)
            return

        def alike(value: Any) -> Any:
            is_tensor = isinstance(value, Tensor)
            return builtin_ops.placeholder(value.dtype, value.shape) if is_tensor else value

        # By a call on placeholders, as a user would, but with the dtypes known here.
        shapes = map_structure(lambda value: getattr(value, "shape", None), inputs)
        self._run_build(lambda _: self.call(map_structure(alike, inputs)), shapes)

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses, see `Layer.add_loss`; tensors that a functional model computes from its
        inputs become parts of it.
        """
        network = self._network if current_call() is None else None
        for loss in flatten(losses):
            if network is not None and isinstance(loss, Tensor):
                if network.depends(loss):
                    self._extend_network(AddLoss()(loss))
                else:
                    super().add_loss(functools.partial(_given, loss))
            else:
                super().add_loss(loss)

    def add_metric(self, value: Any, name: str | None = None, **kwargs: Any) -> None:
        """Adds a metric, see `Layer.add_metric`; one that a functional model computes from its
        inputs becomes a part of it.
        """
        network = self._network if current_call() is None else None
        if network is None or not isinstance(value, Tensor):
            super().add_metric(value, name, **kwargs)
            return
        made = record_of(value.graph).metric_calls.get(value)
        if made is not None:
            layer = AddMetric(None, made.metric.name, made.metric)
            self._extend_network(layer(*made.args, **made.kwargs))
            return
        if name is None:
            raise ValueError("Please provide a name for your metric like `add_metric(x, name=...)`")
        self._extend_network(AddMetric(metric_name=name)(value))

    def _extend_network(self, outputs: Any) -> None:
        self.network.extend([outputs])

    def regularization_losses(self) -> list[Tensor]:
        """The losses of regularized variables, in the default graph."""
        made = {id(loss) for each in self.submodules_and_self() for loss in each._made_losses}
        return [loss for loss in self.losses if id(loss) not in made]

    def reset_states(self) -> None:
        """Resets the states of stateful layers to zero."""
        for layer in self.submodules_and_self():
            if layer is not self and getattr(layer, "stateful", False):
                layer.reset_states()


def _given(loss: Tensor) -> Tensor:
    return loss


__all__ = ["ModelStructure"]
