"""`Layer`: what all layers share.

A layer makes its variables when it is first called (`build`), and computes in `call`. Calls nest,
are recorded in the graph (`call_record`), carry masks along, and are told whether they train. A
layer owns its variables: two layers never share by name. `scoped` makes the same layers as
`tf.layers`, whose variables are looked up by `get_variable`.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.initializers import GlorotUniform, Zeros
from estimatorkit.core.nest import flatten, map_structure
from estimatorkit.core.ops import array, elementwise
from estimatorkit.core.shapes import ShapeOfDimensions, TensorShape, as_shape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.layers.call_record import (
    LayerCall,
    call_scope,
    current_call,
    learning_phase,
    record_of,
)
from estimatorkit.layers.input_spec import InputSpec, check_inputs
from estimatorkit.layers.policy import AutoCastVariable, Policy, as_policy, autocast
from estimatorkit.layers.tracking import Tracker

_MISSING = object()
_SHAPE_ARGUMENTS = ("input_shape", "batch_input_shape", "batch_size", "input_dim", "input_length")


class Layer(Tracker):
    """A computation with variables of its own (`tf.keras.layers.Layer`).

    Subclasses make variables in `build(input_shape)` by `add_weight`, compute in `call(inputs)`,
    which may also take `training` and `mask`, and describe themselves in `get_config`. Layers that
    are attributes of a layer, or in its lists and dicts, are part of it.

    Args:
        trainable: whether optimizers change its variables.
        name: its name; that of the class in snake case, made unique in the default graph, by
            default.
        dtype: a dtype, its name, or a `keras.mixed_precision.Policy`. None takes the global policy
            or, where that is float32, the dtype of the first floating input.
        dynamic: must be False: calls are graphs.
        autocast: whether floating inputs are cast to the dtype it computes in.
        kwargs: `input_shape` (without the batch), `batch_input_shape`, `batch_size`, `input_dim`,
            `input_length`: what the inputs will be, for `Sequential`; `weights`: arrays for
            `set_weights` after building; `activity_regularizer`.

    Raises:
        TypeError: an argument is unknown.
    """

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if dynamic:
            raise ValueError(f"{type(self).__name__}: dynamic layers need eager execution")
        self._auto_cast = kwargs.pop("autocast", True)
        self._initial_weights = kwargs.pop("weights", None)
        self.activity_regularizer = kwargs.pop("activity_regularizer", None)
        self._batch_input_shape = _batch_input_shape(kwargs)
        unknown = sorted(set(kwargs) - set(_SHAPE_ARGUMENTS))
        if unknown:
            raise TypeError(f"Keyword argument not understood: {unknown[0]}")
        self._name = self._chosen_name(name)
        self._policy: Policy = as_policy(dtype)
        self._dtype_given = dtype is not None
        self._trainable = trainable
        self._weights: list[Any] = []
        self._frozen: list[Any] = []  # weights that are not trainable in themselves
        self._regularized: list[tuple[Any, Callable[[Any], Any]]] = []
        self._regularization: dict[Graph, list[Tensor]] = {}
        self._made_losses: list[Any] = []
        self._made_updates: list[Any] = []
        self._calls: list[LayerCall] = []
        self.built = False
        self.supports_masking = False
        self.stateful = False
        self.input_spec: Any = None
        self._build_input_shape: Any = None
        self._building = False
        self._before_build: dict[str, Any] | None = None  # what `build` changed, see `unbuilt`
        self._names_before: list[str] = []  # of the variables, where it is built anew

    def _chosen_name(self, name: str | None) -> str:
        if name is None:
            return record_of(get_default_graph().outermost).unique_name(
                snake_case(type(self).__name__)
            )
        if not isinstance(name, str):
            raise TypeError(f"Expected `name` to be a string, but got: {name!r}")
        return name

    # -- what subclasses say

    def build(self, input_shape: Any) -> None:
        """Makes the variables; called once, before the first call.

        Args:
            input_shape: the `TensorShape` of the inputs, in their structure.
        """
        self._build_input_shape = input_shape
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        return inputs

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs; the inputs' where the layer supports masking, or None."""
        return mask if self.supports_masking else None

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the outputs for a shape of inputs: that of a call in a graph of its own."""
        scratch = Graph()
        with scratch.as_default(), unbuilt(self):
            shapes = _as_shapes(input_shape)
            inputs = map_structure(
                lambda shape: array.placeholder(self._policy.compute_dtype, shape), shapes
            )
            outputs = self(inputs)
        return map_structure(lambda tensor: tensor.shape, outputs)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, as plain values.

        Raises:
            NotImplementedError: the constructor has arguments of its own, and this is not
                overridden.
        """
        config: dict[str, Any] = {"name": self.name, "trainable": self._trainable}
        if self._batch_input_shape is not None:
            config["batch_input_shape"] = self._batch_input_shape
        config["dtype"] = self._policy_config()
        own = set(inspect.signature(type(self).__init__).parameters)
        extra = own - {"self", "args", "kwargs", "dynamic", *config}
        if extra and type(self).get_config is Layer.get_config:
            raise NotImplementedError(
                explain(
                    f"Layer {type(self).__name__} has arguments {sorted(extra)} in `__init__` and "
                    "therefore must override `get_config`",
                    hint="config = super().get_config(); config.update({...}); return config",
                )
            )
        return config

    def _policy_config(self) -> Any:
        if self._policy.is_mixed:
            return {"class_name": "Policy", "config": self._policy.get_config()}
        return self._policy.name

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        """The layer that `get_config` described."""
        return cls(**config)

    # -- variables

    def add_weight(
        self,
        name: str | None = None,
        shape: Any = (),
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        constraint: Any = None,
        partitioner: Any = None,
        use_resource: bool | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        experimental_autocast: bool = True,
        collections: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Makes a variable of the layer.

        Args:
            name: its name within the layer; 'Variable' by default.
            shape: its shape, known in all dimensions.
            dtype: the layer's variable dtype by default.
            initializer: an object, a function of (shape, dtype), or a name; Glorot uniform for
                floats and zeros for the rest by default (in `tf.layers` the scope's, first).
            regularizer: a function of the variable giving a loss, see `losses`.
            trainable: True by default.
            constraint: a function that optimizers apply to a new value.
            experimental_autocast: whether a mixed policy casts it where it is read.
            collections: see `Variable`.
            partitioner: for layers of `tf.layers` only.
            use_resource, synchronization, aggregation, kwargs: accepted for TensorFlow's signature.

        Raises:
            ValueError: the shape is not known.
        """
        from estimatorkit.layers import constraints, initializers, regularizers

        wanted = as_dtype(dtype or self._policy.variable_dtype)
        static = as_shape(tuple(shape) if isinstance(shape, list) else shape)
        if not static.is_fully_defined():
            raise ValueError(
                explain(
                    f"Shape of a new variable ({self.name}/{name}) must be fully defined",
                    received=str(static),
                    hint="give the inputs known dimensions, all but the batch",
                )
            )
        variable = self._make_variable(
            name or "Variable",
            static,
            wanted,
            initializers.get(initializer),
            trainable is None or trainable,
            regularizers.get(regularizer),
            constraints.get(constraint),
            mixed=self._policy.is_mixed and experimental_autocast and wanted.is_floating,
            collections=collections,
            partitioner=partitioner,
        )
        self._weights.append(variable)
        if trainable is not None and not trainable:
            self._frozen.append(variable)
        return variable

    add_variable = add_weight

    def _make_variable(
        self,
        name: str,
        shape: TensorShape,
        dtype: Any,
        initializer: Any,
        trainable: bool,
        regularizer: Any,
        constraint: Any,
        mixed: bool,
        collections: Sequence[str] | None,
        partitioner: Any,
    ) -> Any:
        """A new variable under the layer's name; `scoped` layers look theirs up."""
        if initializer is None:
            initializer = GlorotUniform() if dtype.is_floating else Zeros()
        kind = AutoCastVariable if mixed else Variable
        graph = get_default_graph()
        scope = graph.get_name_scope()
        full_name = f"{scope}/{name}" if scope else name
        if self._names_before:
            full_name = self._names_before.pop(0)
        with graph.outermost.name_scope(None):
            variable = kind(
                lambda: initializer(shape.as_list(), dtype=dtype),
                trainable=trainable,
                name=full_name,
                dtype=dtype,
                constraint=constraint,
                collections=collections,
            )
        if regularizer is not None:
            self._regularized.append((variable, regularizer))
        return variable

    def _own_weights(self) -> list[Any]:
        """The variables that were made by `add_weight` or are attributes."""
        return _unique([*self._weights, *self._attribute_variables()])

    @property
    def weights(self) -> list[Any]:
        """The variables, those that can be trained first."""
        return self.trainable_weights + self.non_trainable_weights

    variables = weights

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that optimizers change."""
        if not self._trainable:
            return []
        frozen = set(self._frozen)
        own = [each for each in self._own_weights() if each not in frozen and each.trainable]
        return _unique(own + [w for each in self._parts() for w in each.trainable_weights])

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The variables that optimizers leave alone."""
        frozen = set(self._frozen)
        own = [
            each
            for each in self._own_weights()
            if each in frozen or not self._trainable or not each.trainable
        ]
        if not self._trainable:
            return _unique(own + [w for each in self._parts() for w in each.weights])
        return _unique(own + [w for each in self._parts() for w in each.non_trainable_weights])

    @property
    def trainable_variables(self) -> list[Any]:
        """`trainable_weights`."""
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Any]:
        """`non_trainable_weights`."""
        return self.non_trainable_weights

    @property
    def trainable(self) -> bool:
        """Whether optimizers change its variables; setting it sets that of all its layers."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        for each in self._parts():
            each.trainable = value

    def get_weights(self) -> list[Any]:
        """The variables' values as arrays, in the order of `weights`."""
        from estimatorkit.layers.sessions import values_of

        return values_of(self.weights)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets the variables' values.

        Args:
            weights: arrays in the order and shapes of `weights`.

        Raises:
            ValueError: there are more or fewer of them, or a shape is another.
        """
        from estimatorkit.layers.sessions import set_values

        expected = self.weights
        if len(expected) != len(weights):
            raise ValueError(
                explain(
                    f'You called `set_weights(weights)` on layer "{self.name}" with a weight list '
                    f"of length {len(weights)}, but the layer was expecting {len(expected)} "
                    "weights",
                    expected=", ".join(f"{each.op.name} {each.shape}" for each in expected),
                )
            )
        for variable, value in zip(expected, weights, strict=True):
            if not variable.shape.is_compatible_with(np.shape(value)):
                raise ValueError(
                    f"Layer weight shape {variable.shape} not compatible with provided weight "
                    f"shape {np.shape(value)} ({variable.op.name})."
                )
        set_values(list(zip(expected, weights, strict=True)))

    def count_params(self) -> int:
        """The number of elements of all variables.

        Raises:
            ValueError: the layer is not built.
        """
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on layer {self.name}, but the layer isn't "
                f"built. You can build it manually via: `{self.name}.build(batch_input_shape)`."
            )
        return sum(int(np.prod(each.shape.as_list())) for each in self.weights)

    # -- losses, updates, metrics

    @property
    def losses(self) -> list[Tensor]:
        """The losses of the layer and its parts in the default graph: one for each regularized
        variable, and those that calls have added.
        """
        graph = get_default_graph().outermost
        if self._trainable and graph not in self._regularization:
            self._regularization[graph] = [
                regularizer(variable)
                for variable, regularizer in self._regularized
                if variable is None or variable.graph is graph
            ]
        own = list(self._regularization.get(graph, ())) if self._trainable else []
        own += [loss for loss in self._made_losses if loss.graph.outermost is graph]
        return own + [loss for each in self._parts() for loss in each.losses]

    @property
    def updates(self) -> list[Any]:
        """Operations that a training step must run: those of moving averages."""
        graph = get_default_graph().outermost
        own = [each for each in self._made_updates if each.graph.outermost is graph]
        return own + [update for each in self._parts() for update in each.updates]

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses that `fit` adds to the model's.

        Args:
            losses: a scalar tensor, a function without arguments giving one, or a list of them.
            inputs: accepted for TensorFlow's signature.
        """
        for loss in flatten(losses):
            if callable(loss):
                self._regularized.append((None, functools.partial(_called, loss)))
                continue
            tensor = convert_to_tensor(loss)
            self._made_losses.append(tensor)
            scope = current_call()
            if scope is not None:
                scope.losses.append(tensor)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds operations that a training step must run; they are in UPDATE_OPS too.

        Args:
            updates: operations or tensors, or functions giving them.
            inputs: accepted for TensorFlow's signature.
        """
        for update in flatten(updates):
            made = update() if callable(update) else update
            self._made_updates.append(made)
            get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, made)
            scope = current_call()
            if scope is not None:
                scope.updates.append(made)

    def add_metric(self, value: Any, name: str | None = None, **kwargs: Any) -> None:
        """Adds a tensor whose mean over the batches is shown by `fit` and `evaluate`.

        Args:
            value: a tensor.
            name: what it is called.
            kwargs: accepted for TensorFlow's signature.

        Raises:
            ValueError: there is no name.
        """
        if name is None:
            raise ValueError("Please provide a name for your metric like `add_metric(x, name=...)`")
        scope = current_call()
        if scope is not None:
            scope.metrics.append((name, convert_to_tensor(value)))

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """`updates`; accepted for TensorFlow's signature."""
        return self.updates

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """`losses`; accepted for TensorFlow's signature."""
        return self.losses

    # -- calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer on inputs: tensors, arrays, or structures of them.

        Args:
            args, kwargs: those of `call`. `training` and `mask` go on to `call` where it takes
                them; where they are not given they are found.

        Raises:
            ValueError: the inputs do not fit the layer.
        """
        arguments = self._arguments
        args, kwargs = self._converted(args, kwargs)
        inputs = args[0] if args else kwargs[arguments.first or ""]
        given = dict(kwargs)
        training = kwargs.get("training")
        if training is None and arguments.training_at is not None:
            training = args[arguments.training_at] if len(args) > arguments.training_at else None
        mask = self._mask_for(inputs, args, kwargs)
        with self._entered(), call_scope(training) as scope:
            if not arguments.takes_training:
                kwargs.pop("training", None)
            elif training is None:
                found = scope.training
                if found is None:
                    found = arguments.default_training
                kwargs["training"] = learning_phase() if found is None else found
            if scope.training is None:
                scope.training = kwargs.get("training")
            if not self.built:
                self._build_for(inputs)
            check_inputs(self.input_spec, inputs, self.name)
            with autocast(self._policy.compute_dtype if self._policy.is_mixed else None):
                outputs = self.call(*args, **kwargs)
            outputs = self._distinct(outputs, args, given)
            self._regularize_activity(outputs)
            self._set_mask(inputs, outputs, mask)
        self._record(args, given, outputs)
        return outputs

    def apply(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer, as TensorFlow 1 spells it."""
        return self(inputs, *args, **kwargs)

    @property
    def _arguments(self) -> _Arguments:
        found: _Arguments | None = self.__dict__.get("_call_arguments")
        if found is None:
            found = _Arguments(self.call)
            object.__setattr__(self, "_call_arguments", found)
        return found

    def _converted(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The inputs as tensors of the dtype that the layer computes in."""
        arguments = self._arguments
        if args:
            return (self._cast(args[0]), *args[1:]), dict(kwargs)
        if arguments.first is None or arguments.first not in kwargs:
            raise ValueError(
                f"The first argument to `Layer.call` must always be passed ({self.name})."
            )
        return (), {**kwargs, arguments.first: self._cast(kwargs[arguments.first])}

    def _cast(self, inputs: Any) -> Any:
        tensors = map_structure(_as_tensor, inputs)
        floating = [
            each for each in flatten(tensors) if isinstance(each, Tensor) and each.dtype.is_floating
        ]
        if not self.built and not self._dtype_given and floating and self._infers_dtype:
            self._policy = as_policy(floating[0].dtype)
            self._dtype_given = True
        wanted = as_dtype(self._policy.compute_dtype)
        if (
            not self._auto_cast
            or not wanted.is_floating
            or all(t.dtype == wanted for t in floating)
        ):
            return tensors

        def cast(value: Any) -> Any:
            return elementwise.cast(value, wanted) if value in floating else value

        return map_structure(cast, tensors)

    @property
    def _infers_dtype(self) -> bool:
        return self._policy.name == "float32"

    def _build_for(self, inputs: Any) -> None:
        self._run_build(self.build, map_structure(_shape_of, inputs))

    def _run_build(self, build: Callable[[Any], None], shapes: Any) -> None:
        """Builds, and notes what that changes (see `unbuilt`)."""
        before = {key: _copy(value) for key, value in vars(self).items()}
        self._building = True
        try:
            build(shapes)
        finally:
            self._building = False
        self.built = True  # also where a subclass's `build` does not call `super().build`
        if self._build_input_shape is None:
            self._build_input_shape = shapes
        changed = [
            key for key in vars(self) if not _same(before.get(key, _MISSING), vars(self)[key])
        ]
        self._before_build = {key: before.get(key, _MISSING) for key in changed}
        if self._initial_weights is not None:
            self.set_weights(self._initial_weights)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Lets a `build` that is called by hand run under the layer's name."""
        super().__init_subclass__(**kwargs)
        if "build" in vars(cls):
            build = vars(cls)["build"]

            @functools.wraps(build)
            def named(self: Layer, input_shape: Any = None) -> None:
                if self._building:
                    build(self, input_shape)
                    return
                with self._entered():
                    self._run_build(functools.partial(build, self), _as_shapes(input_shape))

            cls.build = named  # type: ignore[method-assign]

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """Inside, variables and operations are made under the layer's name."""
        with get_default_graph().name_scope(self.name):
            yield

    def _mask_for(self, inputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The inputs' mask; `call` gets it where it takes one and none was given."""
        arguments = self._arguments
        if kwargs.get("mask") is not None:
            return kwargs["mask"]
        if arguments.mask_at is not None and len(args) > arguments.mask_at:
            return args[arguments.mask_at]
        mask = mask_of(inputs)
        if arguments.takes_mask and mask is not None and any(m is not None for m in flatten(mask)):
            kwargs["mask"] = mask
        return mask

    def _set_mask(self, inputs: Any, outputs: Any, mask: Any) -> None:
        tensors = flatten(outputs)
        masks = record_of().masks
        if any(tensor in masks for tensor in tensors if isinstance(tensor, Tensor)):
            return  # a part of the layer has said it already
        found = self.compute_mask(inputs, mask)
        if found is None:
            return
        found = flatten(found) if isinstance(found, (list, tuple)) else [found] * len(tensors)
        for tensor, each in zip(tensors, found, strict=False):
            if each is not None and isinstance(tensor, Tensor):
                masks[tensor] = each

    def _distinct(self, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The outputs, of which none is one of the inputs: each tensor is made by one call."""
        taken = {each for each in flatten([args, kwargs], True) if isinstance(each, Tensor)}

        def distinct(value: Any) -> Any:
            return array.identity(value) if isinstance(value, Tensor) and value in taken else value

        return map_structure(distinct, outputs)

    def _regularize_activity(self, outputs: Any) -> None:
        if self.activity_regularizer is not None:
            for tensor in flatten(outputs):
                batch = elementwise.cast(array.shape(tensor)[0], tensor.dtype)
                self.add_loss(self.activity_regularizer(tensor) / batch)

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> None:
        kwargs = {key: value for key, value in kwargs.items() if key != "training"}
        call = LayerCall(self, args, kwargs, outputs)
        self._calls.append(call)
        calls = record_of().calls
        for tensor in flatten(outputs, True):
            if isinstance(tensor, Tensor):
                calls[tensor] = call

    # -- what it is

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The name of the variables' dtype."""
        return self._policy.variable_dtype

    @property
    def variable_dtype(self) -> str:
        """The name of the variables' dtype."""
        return self._policy.variable_dtype

    @property
    def compute_dtype(self) -> str:
        """The name of the dtype that it computes in."""
        return self._policy.compute_dtype

    @property
    def dtype_policy(self) -> Policy:
        """The policy."""
        return self._policy

    @property
    def dynamic(self) -> bool:
        """False: calls are graphs."""
        return False

    @property
    def input(self) -> Any:
        """The inputs of the only call.

        Raises:
            AttributeError: the layer was never called, or several times.
        """
        call = self._only_call("input")
        return call.args[0] if call.args else next(iter(call.kwargs.values()))

    @property
    def output(self) -> Any:
        """The outputs of the only call; errors as for `input`."""
        return self._only_call("output").outputs

    @property
    def input_shape(self) -> Any:
        """The shape of `input` as a tuple."""
        return map_structure(lambda tensor: _as_tuple(tensor.shape), self.input)

    @property
    def output_shape(self) -> Any:
        """The shape of `output` as a tuple."""
        return map_structure(lambda tensor: _as_tuple(tensor.shape), self.output)

    def _only_call(self, what: str) -> LayerCall:
        if not self._calls:
            raise AttributeError(f"Layer {self.name} has never been called and thus has no {what}.")
        if len({id(call) for call in self._calls}) > 1 and what:
            shapes = {str(map_structure(lambda t: t.shape, call.outputs)) for call in self._calls}
            if len(shapes) > 1:
                raise AttributeError(
                    f"The layer {self.name} has multiple calls with different shapes: "
                    f"the {what} is ill-defined. Use `get_{what}_at(node_index)` instead."
                )
        return self._calls[0]

    def get_input_at(self, node_index: int) -> Any:
        """The inputs of a call, by its number."""
        return self._calls[node_index].args[0]

    def get_output_at(self, node_index: int) -> Any:
        """The outputs of a call, by its number."""
        return self._calls[node_index].outputs

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name!r}>"


class _Arguments:
    """What a `call` method takes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters = inspect.signature(function).parameters
        named = [
            name
            for name, each in parameters.items()
            if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        ]
        every = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        self.first = named[0] if named else None
        self.takes_training = "training" in named or (every and not named)
        self.takes_mask = "mask" in named
        self.training_at = named.index("training") if "training" in named else None
        self.mask_at = named.index("mask") if "mask" in named else None
        default = parameters["training"].default if "training" in named else None
        self.default_training = None if default is inspect.Parameter.empty else default


def mask_of(inputs: Any) -> Any:
    """The masks of tensors in their structure, or None where there is none."""
    masks = record_of().masks
    if isinstance(inputs, Tensor):
        return masks.get(inputs)
    found = map_structure(
        lambda each: masks.get(each) if isinstance(each, Tensor) else None, inputs
    )
    return found if any(each is not None for each in flatten(found)) else None


@contextmanager
def unbuilt(layer: Layer) -> Iterator[None]:
    """Inside, a layer and its parts are as before they were built, so that they build anew.

    For calling a layer in another graph than that of its variables, where they get the same names.
    Afterwards all is as it was.
    """
    kept = [(each, dict(each.__dict__)) for each in layer.submodules_and_self()]
    for each, state in kept:
        names = [variable.op.name for variable in state["_weights"]]
        before = {**(state["_before_build"] or {}), "_calls": [], "_regularization": {}}
        before["_names_before"] = names
        now = {key: _copy(before.get(key, value)) for key, value in state.items()}
        object.__setattr__(
            each, "__dict__", {key: value for key, value in now.items() if value is not _MISSING}
        )
    try:
        yield
    finally:
        for each, state in kept:
            object.__setattr__(each, "__dict__", state)


def _called(loss: Callable[[], Any], _: Any) -> Any:
    return loss()


def _copy(value: Any) -> Any:
    return value.copy() if type(value) in (list, dict) else value


def _same(one: Any, other: Any) -> bool:
    if type(one) in (list, dict) and type(one) is type(other):
        return len(one) == len(other) and all(
            a is b for a, b in zip(flatten([one]), flatten([other]), strict=False)
        )
    return one is other


def snake_case(name: str) -> str:
    """`MaxPooling2D` as `max_pooling2d`, as Keras names layers."""
    parted = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    parted = re.sub("([a-z])([A-Z])", r"\1_\2", parted).lower()
    return f"private{parted}" if parted.startswith("_") else parted


def _batch_input_shape(kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    if "input_dim" in kwargs and "input_shape" not in kwargs:
        kwargs["input_shape"] = (kwargs["input_dim"],)
    if "batch_input_shape" in kwargs:
        return tuple(kwargs["batch_input_shape"])
    if "input_shape" in kwargs:
        return (kwargs.get("batch_size"), *kwargs["input_shape"])
    return None


def _as_tensor(value: Any) -> Any:
    if value is None or isinstance(value, (Tensor, SparseTensor)) or hasattr(value, "_components"):
        return value
    return convert_to_tensor(value)


def _shape_of(value: Any) -> Any:
    shape = getattr(value, "shape", None)
    return TensorShape(None) if not isinstance(shape, TensorShape) else ShapeOfDimensions(shape)


def _as_shapes(shape: Any) -> Any:
    """A shape or a structure of shapes, given as tuples, lists or `TensorShape`s."""
    if isinstance(shape, TensorShape):
        return shape
    if isinstance(shape, Mapping):
        return {key: _as_shapes(value) for key, value in shape.items()}
    if all(each is None or isinstance(each, (int, np.integer)) for each in shape):
        return TensorShape(shape)
    return [_as_shapes(each) for each in shape]


def _as_tuple(shape: TensorShape) -> Any:
    return None if shape.dims is None else tuple(shape.dims)


def _unique(items: Sequence[Any]) -> list[Any]:
    return list({id(each): each for each in items}.values())


__all__ = ["InputSpec", "Layer", "mask_of", "snake_case", "unbuilt"]
