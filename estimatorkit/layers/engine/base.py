"""`Layer`, the base class of all layers.

Variables are created on the first call (`build`); `call` computes the outputs. Calls nest, are
recorded in the graph (`call_record`), propagate masks, and receive the training mode. A layer owns
its variables: two layers never share by name. `scoped` derives the classes of `tf.layers`, which
look their variables up by `get_variable`.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.composite import is_composite
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.nest import flatten, map_structure
from estimatorkit.core.shapes import ShapeOfDimensions, TensorShape, as_shape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.data.spec import TensorSpec
from estimatorkit.layers.engine.call_record import (
    LayerCall,
    call_scope,
    learning_phase,
    mask_on,
    record_of,
    set_mask,
)
from estimatorkit.layers.engine.input_spec import InputSpec, as_shapes, check_inputs
from estimatorkit.layers.engine.layer_connections import LayerConnections
from estimatorkit.layers.engine.layer_losses import LayerLosses
from estimatorkit.layers.engine.layer_weights import LayerWeights
from estimatorkit.layers.engine.policy import Policy, as_policy, autocast
from estimatorkit.ops.array import array
from estimatorkit.ops.math import elementwise

_MISSING = object()
_SHAPE_ARGUMENTS = ("input_shape", "batch_input_shape", "batch_size", "input_dim", "input_length")


class Layer(LayerWeights, LayerLosses, LayerConnections):
    """A computation with its own variables (`tf.keras.layers.Layer`).

    Subclasses create variables in `build(input_shape)` with `add_weight`, compute in
    `call(inputs)`, which may also take `training` and `mask`, and return their arguments in
    `get_config`. Layers stored in attributes, or in lists and dicts there, become sublayers.

    Args:
        trainable: whether optimizers update its variables.
        name: its name; by default that of the class in snake case, made unique in the default
            graph.
        dtype: a dtype, its name, or a `keras.mixed_precision.Policy`. None means the global policy
            or, if that is float32, the dtype of the first floating input.
        dynamic: must be False: calls build graphs.
        autocast: whether to cast floating inputs to the compute dtype.
        kwargs: the shape of the inputs, for `Sequential`: `input_shape` (without the batch),
            `batch_input_shape`, `batch_size`, `input_dim`, `input_length`; `weights`, arrays to
            set after building; `activity_regularizer`.

    Raises:
        TypeError: an argument is unknown.
    """

    # Whether calls train by default; None asks the learning phase.
    _default_training: bool | None = None

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
        self._frozen: list[Any] = []  # weights created with trainable=False
        self._regularized: list[tuple[Any, Callable[[Any], Any]]] = []
        self._regularization: dict[Graph, dict[int, Tensor]] = {}
        self._made_losses: list[Any] = []
        self._made_updates: list[Any] = []
        self._calls: list[LayerCall] = []
        self._calls_of_inputs: list[LayerCall] = []
        self.built = False
        self.supports_masking = False
        self.stateful = False
        self.input_spec: Any = None
        self._build_input_shape: Any = None
        self._building = False
        self._before_build: dict[str, Any] | None = None  # what `build` has changed, see `unbuilt`
        self._names_before: list[str] = []  # of the variables, if rebuilt

    def _chosen_name(self, name: str | None) -> str:
        if name is None:
            return record_of(get_default_graph().outermost).unique_name(
                snake_case(type(self).__name__)
            )
        if not isinstance(name, str):
            raise TypeError(f"Expected `name` to be a string, but got: {name!r}")
        return name

    # -- what subclasses say

    takes_columns = False  # whether inputs may be vectors in place of columns, shape [batch, 1]

    def build(self, input_shape: Any) -> None:
        """Creates the variables for `input_shape`; runs once, before the first call."""
        self._build_input_shape = input_shape
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        return inputs

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Returns the outputs' mask: the inputs'.

        Raises:
            TypeError: the layer does not support masking, and there is a mask.
        """
        if not self.supports_masking and any(each is not None for each in flatten(mask)):
            raise TypeError(
                f"Layer {self.name} does not support masking, but was passed an input_mask: {mask}"
            )
        return mask if self.supports_masking else None

    def computed_mask(self, inputs: Any, mask: Any) -> Any:
        """The outputs' mask; None of a layer that does not say that it has one."""
        silent = type(self).compute_mask is Layer.compute_mask and not self.supports_masking
        return None if silent else self.compute_mask(inputs, mask)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Infers the outputs' shape from `input_shape` by calling the layer in a scratch graph."""
        scratch = Graph()
        with scratch.as_default(), unbuilt(self):
            shapes = as_shapes(input_shape)
            inputs = map_structure(
                lambda shape: builtin_ops.placeholder(self._policy.compute_dtype, shape), shapes
            )
            outputs = self(inputs)
        return map_structure(lambda tensor: tensor.shape, outputs)

    def compute_output_signature(self, input_signature: Any) -> Any:
        """Infers the outputs' `TensorSpec`s from those of the inputs.

        Args:
            input_signature: a `TensorSpec`, or a structure of them.
        """
        shapes = self.compute_output_shape(map_structure(lambda spec: spec.shape, input_signature))
        dtype = as_dtype(self._policy.compute_dtype)
        return map_structure(lambda shape: TensorSpec(as_shape(shape), dtype), as_shapes(shapes))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain values.

        Raises:
            NotImplementedError: the constructor has its own arguments, and this is not overridden.
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
        """Creates a layer from the result of `get_config`."""
        return cls(**config)

    # -- calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer on tensors, arrays, or nested structures of them.

        Args:
            args, kwargs: the arguments of `call`. `training` and `mask` are passed on if `call`
                accepts them, and are inferred if they are not given.

        Raises:
            ValueError: the inputs are incompatible with the layer.
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
                if found is None:
                    found = self._default_training
                kwargs["training"] = learning_phase() if found is None else found
            if scope.training is None:
                scope.training = kwargs.get("training")
            if not self.built:
                check_inputs(self.input_spec, inputs, self.name)
                self._build_for(inputs)
            check_inputs(self.input_spec, inputs, self.name)
            with autocast(self._policy.compute_dtype if self._policy.is_mixed else None):
                outputs = self.call(*args, **kwargs)
            outputs = self._distinct(outputs, args, given)
            self._regularize_activity(inputs, outputs)
            self._set_mask(inputs, outputs, mask)
        self._record(args, given, outputs)
        return outputs

    def apply(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer; TensorFlow 1's alias of `__call__`."""
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
        """Converts inputs to tensors of the compute dtype."""
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
        """Runs `build` and records the attributes it changes (see `unbuilt`)."""
        before = {key: _copy(value) for key, value in vars(self).items()}
        self._building = True
        try:
            build(shapes)
        except BaseException:
            object.__setattr__(self, "__dict__", before)  # a partly built layer is reset
            raise
        finally:
            self._building = False
        self.built = True  # even if a subclass's `build` does not call `super().build`
        if self._build_input_shape is None:
            self._build_input_shape = shapes
        changed = [
            key for key in vars(self) if not _same(before.get(key, _MISSING), vars(self)[key])
        ]
        self._before_build = {key: before.get(key, _MISSING) for key in changed}
        if self._initial_weights is not None:
            self.set_weights(self._initial_weights)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Wraps `build`, so that calling it directly also enters the layer's name scope."""
        super().__init_subclass__(**kwargs)
        if "build" in vars(cls):
            build = vars(cls)["build"]

            @functools.wraps(build)
            def named(self: Layer, input_shape: Any = None) -> None:
                if self._building:
                    build(self, input_shape)
                    return
                with self._entered():
                    shapes = None if input_shape is None else as_shapes(input_shape)
                    self._run_build(functools.partial(build, self), shapes)

            cls.build = named  # type: ignore[method-assign]

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """Context manager: creates variables and operations under the layer's name."""
        with get_default_graph().name_scope(self.name):
            yield

    def _mask_for(self, inputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The inputs' mask, if `call` accepts one and none was given."""
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
        if all(mask_on(tensor) is not None for tensor in tensors):
            return  # a sublayer has already set the mask
        found = self.computed_mask(inputs, mask)
        if found is None:
            return
        for tensor, each in zip(tensors, flatten(found), strict=False):
            if each is not None and isinstance(tensor, Tensor):
                set_mask(tensor, each)

    def _distinct(self, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Copies outputs that are also inputs: each tensor is produced by exactly one call."""
        taken = {each for each in flatten([args, kwargs], True) if isinstance(each, Tensor)}

        def distinct(value: Any) -> Any:
            return (
                builtin_ops.identity(value)
                if isinstance(value, Tensor) and value in taken
                else value
            )

        return map_structure(distinct, outputs)

    def _regularize_activity(self, inputs: Any, outputs: Any) -> None:
        if self.activity_regularizer is not None:
            for tensor in flatten(outputs):
                with get_default_graph().name_scope("ActivityRegularizer"):
                    batch = elementwise.cast(array.shape(tensor)[0], tensor.dtype)
                    self.add_loss(self.activity_regularizer(tensor) / batch, inputs)

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> None:
        kwargs = {key: value for key, value in kwargs.items() if key != "training"}
        LayerCall(self, args, kwargs, outputs).record()

    # -- properties

    @property
    def name(self) -> str:
        """The layer's name."""
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
        """The name of the compute dtype."""
        return self._policy.compute_dtype

    @property
    def dtype_policy(self) -> Policy:
        """The layer's dtype policy."""
        return self._policy

    @property
    def dynamic(self) -> bool:
        """False: calls build graphs."""
        return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name!r}>"


class _Arguments:
    """The arguments that a `call` method accepts."""

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
    """The masks of tensors, in the tensors' structure; None if no tensor has one."""
    found = map_structure(mask_on, inputs)
    return found if any(each is not None for each in flatten(found)) else None


@contextmanager
def unbuilt(layer: Layer) -> Iterator[None]:
    """Context manager that makes a layer and its sublayers build again.

    For calling a layer in a graph other than that of its variables; the new variables get the same
    names. The previous state is restored on exit.
    """
    kept = [(each, dict(each.__dict__)) for each in layer.submodules_and_self()]
    for each, state in kept:
        names = [variable.op.name for variable in state["_weights"]]
        before = {
            **(state["_before_build"] or {}),
            "_calls": [],
            "_calls_of_inputs": [],
            "_regularization": {},
        }
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


def _copy(value: Any) -> Any:
    return value.copy() if type(value) in (list, dict) else value


def _same(one: Any, other: Any) -> bool:
    if type(one) in (list, dict) and type(one) is type(other):
        return len(one) == len(other) and all(
            a is b for a, b in zip(flatten([one]), flatten([other]), strict=False)
        )
    return one is other


def snake_case(name: str) -> str:
    """Converts a class name to Keras's layer name: `MaxPooling2D` to `max_pooling2d`."""
    parted = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
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
    if value is None or isinstance(value, (Tensor, SparseTensor)) or is_composite(value):
        return value
    return convert_to_tensor(value)


def _shape_of(value: Any) -> Any:
    shape = getattr(value, "shape", None)
    return TensorShape(None) if not isinstance(shape, TensorShape) else ShapeOfDimensions(shape)


__all__ = ["InputSpec", "Layer", "mask_of", "snake_case", "unbuilt"]
