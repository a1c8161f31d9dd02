"""Layer wrappers (`tf.keras.layers`): `Wrapper`, `TimeDistributed`, `Bidirectional`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core import nest
from estimatorkit.core.errors import value_error
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.base import Layer
from estimatorkit.layers.engine.input_spec import InputSpec
from estimatorkit.layers.recurrent.recurrent_base import call_arguments
from estimatorkit.layers.recurrent.steps import size_of
from estimatorkit.ops.array import array, joining, rearrange
from estimatorkit.ops.math import reduce


class Wrapper(Layer):
    """Base class of layers that wrap another layer (`tf.keras.layers.Wrapper`).

    Args:
        layer: the inner layer.
        kwargs: as for `Layer`.

    Raises:
        ValueError: `layer` is not a layer.
    """

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        if not isinstance(layer, Layer):
            raise value_error(
                f"Please initialize `{type(self).__name__}` layer with a Layer instance",
                received=repr(layer)[:200],
            )
        super().__init__(**kwargs)
        self.layer = layer

    def build(self, input_shape: Any) -> None:
        """Builds the inner layer, with its variables under this layer's name."""
        if not self.layer.built:
            self.layer._run_build(self.layer.build, input_shape)
        super().build(input_shape)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        from estimatorkit.layers.registry import serialize

        return {**super().get_config(), "layer": serialize(self.layer)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Wrapper:
        """Recreates the layer from `get_config`."""
        from estimatorkit.layers.registry import deserialize

        return cls(**{**config, "layer": deserialize(config["layer"], custom_objects)})


def _takes(layer: Layer, argument: str) -> bool:
    return argument in inspect.signature(layer.call).parameters


class TimeDistributed(Wrapper):
    """Applies a layer to each step (`tf.keras.layers.TimeDistributed`).

    Inputs: `(batch, steps, ...)`, or a structure of such tensors. Outputs: `(batch, steps, ...)`.
    The layer is called once, on `(batch * steps, ...)`.

    Args:
        layer: the inner layer.
        kwargs: as for `Layer`.

    Raises:
        ValueError: `layer` is not a layer, or the inputs have fewer than 3 dimensions.
    """

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        super().__init__(layer, **kwargs)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Builds the layer for the shape of a step."""

        def of_a_step(shape: Any) -> TensorShape:
            dims = TensorShape(shape).as_list()
            if len(dims) < 3:
                raise ValueError(
                    "`TimeDistributed` Layer should be passed an `input_shape` with at least 3 "
                    f"dimensions, received: {input_shape}"
                )
            return TensorShape([dims[0], *dims[2:]])

        self.input_spec = nest.map_structure(
            lambda shape: InputSpec(shape=[None, None, *TensorShape(shape).as_list()[2:]]),
            input_shape,
        )
        super().build(nest.map_structure(of_a_step, input_shape))
        self._build_input_shape = input_shape

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The layer's outputs for all steps."""
        options: dict[str, Any] = {"training": training} if _takes(self.layer, "training") else {}
        if mask is not None and _takes(self.layer, "mask"):
            options["mask"] = nest.map_structure(_joined, mask)
        first = nest.flatten(inputs)[0]
        outputs = self.layer(nest.map_structure(_joined, inputs), **options)
        return nest.map_structure(lambda each: _parted(each, first), outputs)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Returns the inner layer's mask, or else the mask of the steps."""
        inside = None if mask is None else nest.map_structure(_joined, mask)
        found = self.layer.computed_mask(nest.map_structure(_joined, inputs), inside)
        if found is not None:
            first = nest.flatten(inputs)[0]
            return nest.map_structure(lambda each: _parted(each, first), found)
        if mask is None:
            return None
        whole = nest.flatten(mask)[0]
        further = list(range(2, len(whole.shape)))
        return reduce.reduce_any(whole, further) if further else whole


def _joined(tensor: Tensor) -> Tensor:
    """Reshapes `(batch, steps, ...)` to `(batch * steps, ...)`."""
    known = tensor.shape.as_list()
    sizes = [size_of(tensor, axis) for axis in range(2, len(known))]
    joined = array.reshape(tensor, [-1, *sizes])
    batch, steps = known[:2]
    both = None if batch is None or steps is None else batch * steps
    joined.set_shape([both, *known[2:]])
    return joined


def _parted(tensor: Tensor, like: Tensor) -> Tensor:
    """Reshapes `(batch * steps, ...)` to `(batch, steps, ...)` with the sizes of `like`."""
    known = tensor.shape.as_list()
    sizes = [size_of(tensor, axis) for axis in range(1, len(known))]
    parted = array.reshape(tensor, [size_of(like, 0), size_of(like, 1), *sizes])
    parted.set_shape([*like.shape.as_list()[:2], *known[1:]])
    return parted


_MERGED: dict[str | None, Callable[[Any, Any], Any]] = {
    "concat": lambda one, other: joining.concat([one, other], -1),
    "sum": lambda one, other: one + other,
    "ave": lambda one, other: (one + other) / 2,
    "mul": lambda one, other: one * other,
    None: lambda one, other: [one, other],
}
_SAME = ("stateful", "return_sequences", "return_state")


class Bidirectional(Wrapper):
    """Runs a recurrent layer in both directions (`tf.keras.layers.Bidirectional`).

    `forward_layer` and `backward_layer` are new layers with the config of `layer`. With
    `return_sequences`, the outputs of both are in the order of the inputs, and masked steps output
    zeros.

    Args:
        layer: an `RNN`, or a layer with `go_backwards`, `return_sequences` and `return_state`.
        merge_mode: how to combine the outputs: 'concat', 'sum', 'ave', 'mul', or None for a list
            of both.
        weights: the initial weights, those of `forward_layer` first.
        backward_layer: the layer for the backward direction, with the opposite `go_backwards`.
        kwargs: as for `Layer`.

    Call arguments: those of `RNN`; the first half of `initial_state` is for `forward_layer`.

    Raises:
        ValueError: the merge mode is unknown, or the two layers do not match.
    """

    _untracked = Wrapper._untracked | {"layer"}

    def __init__(
        self,
        layer: Any,
        merge_mode: str | None = "concat",
        weights: Sequence[Any] | None = None,
        backward_layer: Any = None,
        **kwargs: Any,
    ) -> None:
        if merge_mode not in _MERGED:
            raise ValueError(
                f"Invalid merge mode. Received: {merge_mode}. Merge mode should be one of "
                '{"sum", "mul", "ave", "concat", None}'
            )
        super().__init__(layer, **kwargs)
        if backward_layer is not None and not isinstance(backward_layer, Layer):
            raise ValueError(
                "`backward_layer` need to be a `tf.keras.layers.Layer` instance. Received: "
                f"{backward_layer}"
            )
        self._backward_config = None
        self.forward_layer = _made_anew(layer)
        if backward_layer is None:
            self.backward_layer = _made_anew(layer, turned=True)
        else:
            from estimatorkit.layers.registry import serialize

            self._backward_config = serialize(backward_layer)
            self.backward_layer = backward_layer
        self.forward_layer._name = f"forward_{self.forward_layer.name}"
        self.backward_layer._name = f"backward_{self.backward_layer.name}"
        self._check_layers()
        for each in (self.forward_layer, self.backward_layer):
            if hasattr(each, "zero_output_for_mask"):
                each.zero_output_for_mask = each.return_sequences
        self.merge_mode = merge_mode
        if weights:
            half = len(weights) // 2
            self.forward_layer._initial_weights = weights[:half]
            self.backward_layer._initial_weights = weights[half:]
        self.stateful = layer.stateful
        self.return_sequences = layer.return_sequences
        self.return_state = layer.return_state
        self.supports_masking = True
        self._trainable = kwargs.get("trainable", layer.trainable)
        self._num_constants = 0

    def _check_layers(self) -> None:
        forward, backward = self.forward_layer, self.backward_layer
        if forward.go_backwards == backward.go_backwards:
            raise ValueError(
                "Forward layer and backward layer should have different `go_backwards` value. "
                f"Both have {forward.go_backwards}."
            )
        for name in _SAME:
            if getattr(forward, name) != getattr(backward, name):
                raise ValueError(
                    "Forward layer and backward layer are expected to have the same value for "
                    f'attribute "{name}", got "{getattr(forward, name)}" for forward layer and '
                    f'"{getattr(backward, name)}" for backward layer'
                )

    def build(self, input_shape: Any) -> None:
        """Builds both layers."""
        for each in (self.forward_layer, self.backward_layer):
            if not each.built:
                each.build(input_shape)
        Layer.build(self, input_shape)

    def __call__(
        self, inputs: Any, initial_state: Any = None, constants: Any = None, **kwargs: Any
    ) -> Any:
        """Calls both layers; see the class."""
        inputs, given = call_arguments(self, inputs, initial_state, constants)
        states = given.get("initial_state", [])
        if len(states) % 2:
            raise ValueError(
                "When passing `initial_state` to a Bidirectional RNN, the state should be a list "
                f"containing the states of the underlying RNNs. Received: {states}"
            )
        return super().__call__(inputs, **kwargs, **given)

    def call(
        self,
        inputs: Any,
        training: Any = None,
        mask: Any = None,
        initial_state: Any = None,
        constants: Any = None,
    ) -> Any:
        """The merged outputs; with `return_state`, a list of them and the states of both."""
        given = {"training": training, "mask": mask, "constants": constants}
        options = {
            name: value
            for name, value in given.items()
            if value is not None and _takes(self.forward_layer, name)
        }
        halves: list[dict[str, Any]] = [{}, {}]
        if initial_state is not None:
            half = len(initial_state) // 2
            halves = [
                {"initial_state": part} for part in (initial_state[:half], initial_state[half:])
            ]
        one = self.forward_layer(inputs, **options, **halves[0])
        other = self.backward_layer(inputs, **options, **halves[1])
        states: list[Any] = []
        if self.return_state:
            states = [*one[1:], *other[1:]]
            one, other = one[0], other[0]
        if self.return_sequences:
            steps = 0 if getattr(self.forward_layer, "time_major", False) else 1
            other = rearrange.reverse(other, [steps])
        outputs = _MERGED[self.merge_mode](one, other)
        if not self.return_state:
            return outputs
        return [*(outputs if isinstance(outputs, list) else [outputs]), *states]

    def reset_states(self, states: Any = None) -> None:
        """Resets the states of both layers; see `RNN.reset_states`."""
        half = 0 if states is None else len(states) // 2
        self.forward_layer.reset_states(states and states[:half])
        self.backward_layer.reset_states(states and states[half:])

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs with `return_sequences`, else None; None for each state."""
        first = None if mask is None else nest.flatten(mask)[0]
        kept = first if self.return_sequences else None
        masks = [kept, kept] if self.merge_mode is None else [kept]
        if self.return_state:
            masks += [None] * 2 * len(nest.flatten(self.forward_layer.states))
        return masks if len(masks) > 1 else masks[0]

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        config = {**super().get_config(), "merge_mode": self.merge_mode}
        if self._num_constants:
            config["num_constants"] = self._num_constants
        if self._backward_config is not None:
            config["backward_layer"] = self._backward_config
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Bidirectional:
        """Recreates the layer from `get_config`."""
        from estimatorkit.layers.registry import deserialize

        arguments = dict(config)
        constants = arguments.pop("num_constants", 0)
        for name in ("layer", "backward_layer"):
            if name in arguments:
                arguments[name] = deserialize(arguments[name], custom_objects)
        made = cls(**arguments)
        made._num_constants = constants
        return made


def _made_anew(layer: Any, turned: bool = False) -> Any:
    """Clones a layer's config without weights, `turned` to the other direction."""
    config = layer.get_config()
    if turned:
        config["go_backwards"] = not config["go_backwards"]
    kind = type(layer)
    if "custom_objects" not in inspect.signature(kind.from_config).parameters:
        return kind.from_config(config)
    cell = getattr(layer, "cell", None)
    cells = [cell, *getattr(cell, "cells", [])] if cell is not None else []
    return kind.from_config(
        config, custom_objects={type(each).__name__: type(each) for each in cells}
    )


__all__ = ["Bidirectional", "TimeDistributed", "Wrapper"]
