"""Models as configs and JSON, and back; cloning.

The format is Keras': a Sequential model is a list of layers; a functional one lists, for each
layer, its calls (`inbound_nodes`), with inputs as [layer, call, output]. Layers are looked up by
name (`layers.registry`); nothing is imported or evaluated.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from estimatorkit.core.composite import is_composite
from estimatorkit.core.errors import explain, value_error
from estimatorkit.core.nest import flatten, map_structure
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.data.spec import TensorSpec
from estimatorkit.keras.engine.added_terms import AddLoss, AddMetric
from estimatorkit.keras.engine.input_layer import InputLayer
from estimatorkit.keras.engine.model import Model
from estimatorkit.keras.engine.sequential import Sequential
from estimatorkit.layers import registry, serialization
from estimatorkit.layers.basic import Lambda
from estimatorkit.layers.engine.base import Layer
from estimatorkit.layers.engine.call_record import LayerCall, record_of
from estimatorkit.layers.engine.configured import plain

_CONSTANT = "_CONSTANT_VALUE"
_TENSOR = "__keras_tensor__"
_VERSION = "2.15.0"  # of Keras, whose format this is


# -- layers by name


def describe(layer: Layer) -> dict[str, Any]:
    """A layer or model as {'class_name', 'config'}; raises NotImplementedError without
    `get_config`."""
    kind = type(layer)
    known = {Model: "Functional", Sequential: "Sequential"}
    if kind in known:
        return {"class_name": known[kind], "config": layer.get_config()}
    described: dict[str, Any] = _layers().serialize(layer)
    return described


def made(
    description: Any, custom_objects: Mapping[str, Any] | None = None, what: str = "layer"
) -> Any:
    """Creates the layer or model from the result of `describe`.

    Raises ValueError if the format is invalid or a name is unknown; `what` names the object there.
    """
    if not isinstance(description, Mapping) or not isinstance(description.get("class_name"), str):
        raise value_error(
            f"Improper config format for a {what}",
            expected="{'class_name': ..., 'config': ...}",
            received=repr(description)[:200],
        )
    models = {"Functional": Model, "Model": Model, "Sequential": Sequential}
    name = description["class_name"]
    if serialization.get_registered_object(name, custom_objects) is None and name in models:
        with serialization.custom_object_scope(custom_objects or {}):
            return model_of(models[name], description.get("config"), custom_objects)
    if name == "InputLayer":
        return InputLayer(**_input_arguments(description.get("config") or {}))
    return _layers().deserialize(description, custom_objects)


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Converts the errors of a malformed config to ValueError; `what` names it."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        NotImplementedError,
        RecursionError,
        TypeError,
        _NotYetError,
    ) as error:
        raise value_error(
            f"{what} is malformed, or not of this version",
            received=f"{type(error).__name__}: {str(error)[:500]}",
        ) from error


def made_model(
    description: Any, custom_objects: Mapping[str, Any] | None = None, source: str = "a model"
) -> Any:
    """Creates the model of a file, or of a text, from the result of `describe`.

    Raises ValueError if the format is invalid, a name is unknown, or a layer rejects its arguments.
    """
    with readable(f"the config of {source}"):
        return made(description, custom_objects, "model")


@functools.cache
def _layers() -> Any:
    registry.add(AddLoss, AddMetric, InputLayer, Model, Sequential)
    return registry


def _input_arguments(config: Mapping[str, Any]) -> dict[str, Any]:
    known = ("batch_input_shape", "dtype", "sparse", "name")
    given = {"batch_input_shape": config.get("batch_shape"), **config}
    arguments = {key: given[key] for key in known if given.get(key) is not None}
    arguments["batch_input_shape"] = tuple(arguments["batch_input_shape"])
    return arguments


# -- configs of models


def config_of(model: Any) -> dict[str, Any]:
    """A model as plain values (`Model.get_config`).

    Raises:
        NotImplementedError: it is a subclass without `get_config`.
        ValueError: an operation outside of any layer is part of it, or two layers have the same
            name.
    """
    if isinstance(model, Sequential):
        config: dict[str, Any] = {"name": model.name}
        config["layers"] = [describe(each) for each in model._parts()]
        if model._features is not None:  # not known from any InputLayer
            config["build_input_features"] = {
                key: [each.shape.as_list(), each.dtype.name]
                for key, each in model._features.items()
            }
        return config
    if model._network is None:
        raise NotImplementedError(
            explain(
                f"the model {model.name!r} of class {type(model).__name__} cannot be described",
                expected="a functional or Sequential model, or a class with its own `get_config`",
                hint="define get_config() to give the constructor's arguments; save_weights() "
                "needs no description",
            )
        )
    return _Describer(model).config()


def model_of(cls: Any, config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Creates a model from `get_config`'s result, with new weights (`Model.from_config`).

    Raises ValueError if the format is invalid or a name is unknown.
    """
    if issubclass(cls, Sequential):
        entries, name = (config, None) if isinstance(config, list) else _sequential(config)
        model = cls(name=name)
        for each in entries:
            model.add(made(each, custom_objects))
        shape = config.get("build_input_shape") if isinstance(config, Mapping) else None
        if shape and not model.built:
            model.build(tuple(shape))
        features = config.get("build_input_features") if isinstance(config, Mapping) else None
        if features and not model.built:
            model._prepare_for({key: TensorSpec(*each) for key, each in features.items()})
        return model
    if isinstance(config, Mapping) and "input_layers" in config and "layers" in config:
        builder = _Builder(config, custom_objects)
        model = builder.model(cls)
        if config.get("trainable") is False:
            model.trainable = False
        return model
    if not isinstance(config, Mapping):
        raise ValueError(f"Improper config format for a model: {config!r:.200}")
    return cls(**config)


def _sequential(config: Any) -> tuple[Sequence[Any], Any]:
    if not isinstance(config, Mapping) or not isinstance(config.get("layers"), (list, tuple)):
        raise ValueError(f"Improper config format for a Sequential model: {config!r:.200}")
    return config["layers"], config.get("name")


class _Describer:
    """Converts a functional model to its config."""

    def __init__(self, model: Any) -> None:
        self._model = model
        network = model.network
        self._records: list[tuple[Layer | None, dict[str, Any], list[LayerCall]]] = []
        self._places: dict[Tensor, list[Any]] = {}
        calls: dict[int, list[LayerCall]] = {}
        for step in network.steps:
            if isinstance(step, Operation):
                raise value_error(
                    f"the model {model.name!r} applies the operation {step.name!r} "
                    f"({step.type}), which no layer made: it cannot be described",
                    made_at=step.source,
                    hint="make it part of a layer: a subclass of Layer, or a Lambda of a "
                    "function decorated with keras.utils.register_keras_serializable()",
                )
            calls.setdefault(id(step.layer), []).append(step)
        for tensor, name in zip(network.input_tensors, network.input_names, strict=True):
            self._add_input(tensor, name)
        for layer in network.layers:
            if id(layer) in calls:
                self._add(layer, calls[id(layer)])
        names = [entry["name"] for _, entry, _ in self._records]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(
                f'The name "{doubled[0]}" is used {names.count(doubled[0])} times in the model. '
                "All layer names should be unique."
            )

    def _add_input(self, tensor: Any, name: str) -> None:
        call = record_of(tensor.graph).calls.get(tensor)
        if call is not None and isinstance(call.layer, InputLayer):
            config = call.layer.get_config()
        else:  # a tensor inside another model
            name = f"{name}_input"
            shape = tuple(tensor.shape.as_list())
            config = {"batch_input_shape": shape, "dtype": tensor.dtype.name, "sparse": False}
            config |= {"ragged": False, "name": name}
        entry = {"class_name": "InputLayer", "config": config, "name": name}
        self._records.append((None, entry, []))
        self._places[tensor] = [name, 0, 0]

    def _add(self, layer: Layer, calls: list[LayerCall]) -> None:
        self._records.append((layer, {"name": layer.name}, calls))
        for number, call in enumerate(calls):
            for index, tensor in enumerate(flatten(call.outputs, True)):
                self._places.setdefault(tensor, [layer.name, number, index])

    def config(self, describe: Callable[[Layer], dict[str, Any]] = describe) -> dict[str, Any]:
        """The config; `describe` converts one layer."""
        network = self._model.network
        layers = []
        for layer, entry, calls in self._records:
            if layer is not None:
                entry = {**describe(layer), **entry}
            layers.append({**entry, "inbound_nodes": [self._node(call) for call in calls]})
        return {
            "name": self._model.name,
            "trainable": self._model.trainable,
            "layers": layers,
            "input_layers": self._ends(network.inputs),
            "output_layers": self._ends(network.outputs),
        }

    def _ends(self, structure: Any) -> Any:
        if isinstance(structure, Tensor) or is_composite(structure):
            return [self._places[structure]]
        return map_structure(lambda tensor: self._places[tensor], structure)

    def _node(self, call: LayerCall) -> Any:
        names = list(inspect.signature(call.layer.call).parameters)
        named = dict(zip(names[1:], call.args[1:], strict=False))
        keywords = dict(call.kwargs)
        first = call.args[0] if call.args else keywords.pop(names[0])
        rest = {
            key: self._value(value, call)
            for key, value in {**named, **keywords}.items()
            if value is not None
        }

        def entry(value: Any) -> list[Any]:
            if isinstance(value, Tensor) or is_composite(value):
                return [*self._place(value, call), rest]
            return [_CONSTANT, -1, plain_value(value, call.layer.name), rest]

        if isinstance(first, Tensor) or is_composite(first):
            return [entry(first)]
        return map_structure(entry, first)

    def _value(self, value: Any, call: LayerCall) -> Any:
        def one(each: Any) -> Any:
            if isinstance(each, Tensor):
                place = {"keras_history": self._place(each, call)}
                return {"class_name": _TENSOR, "config": place}
            return plain_value(each, call.layer.name)

        return map_structure(one, value)

    def _place(self, tensor: Any, call: LayerCall) -> list[Any]:
        if tensor not in self._places:
            raise value_error(
                f"the layer {call.layer.name!r} takes {tensor.name}, which no layer of the "
                "model made: the model cannot be described",
                made_at=tensor.op.source,
                hint="make it in a layer's call(), or a weight of a layer",
            )
        return list(self._places[tensor])


class _Builder:
    """Rebuilds a functional model's tensors from its config.

    Args:
        custom_objects: the user's classes and functions by name.
        layers: existing layers to use, by name.
        outputs: tensors that replace inputs, by the names of their layers.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        custom_objects: Mapping[str, Any] | None,
        layers: Mapping[str, Layer] | None = None,
        outputs: Mapping[str, Any] | None = None,
    ) -> None:
        self._config = config
        self._made: dict[str, dict[int, list[Any]]] = {}
        self._added: list[Tensor] = []  # the outputs of layers that add losses and metrics
        waiting: list[tuple[str, Layer, int, Any]] = []
        for entry in config["layers"]:
            name = entry.get("name") or entry["config"]["name"]
            if name in self._made:
                raise ValueError(f'The name "{name}" is used twice in the config of a model.')
            self._made[name] = {}
            if outputs and name in outputs:
                self._made[name][0] = [outputs[name]]
                continue
            layer = (layers or {}).get(name) or made(entry, custom_objects)
            nodes = entry.get("inbound_nodes") or []
            if isinstance(layer, InputLayer) and not nodes:
                self._made[name][0] = [layer.output]
            waiting += [(name, layer, number, node) for number, node in enumerate(nodes)]
        self._least = self._lowest_calls([node for *_, node in waiting])
        self._run(waiting)

    def _lowest_calls(self, nodes: Any) -> dict[str, int]:
        """The lowest call number of each layer: Keras counts a nested model's calls from 1."""
        least: dict[str, int] = {}

        def see(value: Any) -> None:
            if self._is_place(value):
                least[value[0]] = min(least.get(value[0], value[1]), value[1])
                see(list(value[3:]))
            elif isinstance(value, Mapping):
                for each in value.values():
                    see(each)
            elif isinstance(value, (list, tuple)):
                for each in value:
                    see(each)

        see([nodes, self._config["input_layers"], self._config["output_layers"]])
        return least

    def _is_place(self, value: Any) -> bool:
        return (
            isinstance(value, (list, tuple))
            and len(value) in (3, 4)
            and isinstance(value[0], str)
            and value[0] in self._made
            and type(value[1]) is int
            and type(value[2]) is int
        )

    def _run(self, waiting: list[tuple[str, Layer, int, Any]]) -> None:
        while waiting:
            left = []
            for entry in waiting:
                name, layer, number, node = entry
                try:
                    args, kwargs = self._arguments(node)
                except _NotYetError:
                    left.append(entry)
                    continue
                self._made[name][number] = flatten(layer(*args, **kwargs), True)
                if isinstance(layer, (AddLoss, AddMetric)):
                    self._added += self._made[name][number]
            if len(left) == len(waiting):
                raise value_error(
                    f"the config of the model {self._config.get('name')!r} is not connected",
                    received=f"layers {sorted({each[0] for each in left})} take tensors that "
                    "no layer makes",
                )
            waiting = left

    def _arguments(self, node: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kwargs: dict[str, Any] = {}

        def value(each: Any) -> Any:
            if isinstance(each, Mapping):
                return {key: value(item) for key, item in each.items()}
            if self._is_place(each) or (each and each[0] == _CONSTANT):
                if len(each) == 4:
                    kwargs.update(each[3])
                return each[2] if each[0] == _CONSTANT else self._tensor(each)
            return type(each)(map(value, each))

        first = value(node)
        if isinstance(first, list) and len(first) == 1:
            first = first[0]
        return (first,), {key: self._keyword(each) for key, each in kwargs.items()}

    def _keyword(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            if value.get("class_name") == _TENSOR:
                return self._tensor(value["config"]["keras_history"])
            return {key: self._keyword(each) for key, each in value.items()}
        if self._is_place(value):
            return self._tensor(value)
        if isinstance(value, (list, tuple)):
            return [self._keyword(each) for each in value]
        return value

    def _tensor(self, place: Sequence[Any]) -> Any:
        name, number, index = place[:3]
        calls = self._made[name]
        number -= self._least.get(name, 0)
        if number not in calls:
            raise _NotYetError
        return calls[number][index]

    def model(self, cls: Any) -> Any:
        """The model of a class."""
        inputs, outputs = self._ends("input_layers"), self._ends("output_layers")
        model = cls(inputs=inputs, outputs=outputs, name=self._config.get("name"))
        if self._added:
            model.network.extend(self._added)
        return model

    def _ends(self, which: str) -> Any:
        given = self._config[which]
        if self._is_place(given):
            return self._tensor(given)
        if isinstance(given, Mapping):
            return {key: self._tensor(place) for key, place in given.items()}
        found = [self._structure(place) for place in given]
        return found[0] if len(found) == 1 else found

    def _structure(self, places: Any) -> Any:
        if self._is_place(places):
            return self._tensor(places)
        return [self._structure(each) for each in places]


class _NotYetError(Exception):
    """A required tensor does not exist yet."""


# -- JSON


def plain_value(value: Any, what: str) -> Any:
    """A value as JSON represents it; raises ValueError for functions and other objects."""
    value = plain(value)
    if isinstance(value, Mapping):
        return {str(key): plain_value(each, what) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(each, what) for each in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "name") and hasattr(value, "numpy_dtype"):
        return value.name
    raise value_error(
        f"the config of {what!r} holds what no file can: {value!r:.100}",
        expected="numbers, texts, lists and dicts",
        hint="let get_config() give the name of a registered function or class",
    )


def to_json(model: Any, **kwargs: Any) -> str:
    """A model's config as JSON (`Model.to_json`); `kwargs` go to `json.dumps`.

    Raises NotImplementedError or ValueError if it has no config.
    """
    content = {**describe(model), "keras_version": _VERSION, "backend": "estimatorkit"}
    return json.dumps(plain_value(content, model.name), **kwargs)


def model_from_json(json_string: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Creates a model from `to_json`'s result, with new weights
    (`tf.keras.models.model_from_json`).

    Raises:
        ValueError: the JSON does not describe a model.
    """
    try:
        description = json.loads(json_string)
    except RecursionError as error:
        raise ValueError("The JSON of a model is nested too deeply.") from error
    except ValueError as error:
        raise value_error("The text is no JSON of a model", received=str(error)) from error
    return made_model(description, custom_objects)


def to_yaml(model: Any, **kwargs: Any) -> str:
    """A model's config as YAML of plain values."""
    import yaml

    return str(yaml.safe_dump(json.loads(to_json(model)), **kwargs))


def model_from_yaml(yaml_string: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Creates a model from `to_yaml`'s result; tags that construct objects are errors.

    Raises:
        ValueError: the YAML does not describe a model, or has aliases, which could expand to a text
            of any length.
    """
    import yaml

    try:
        aliases = any(isinstance(each, yaml.AliasToken) for each in yaml.scan(yaml_string))
        description = None if aliases else yaml.safe_load(yaml_string)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise value_error("The text is no YAML of a model", received=str(error)) from error
    if aliases:
        raise value_error("The YAML of a model has an alias (*)", hint="write its value instead")
    return made_model(description, custom_objects)


def model_from_config(
    config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
) -> Any:
    """Creates a model from {'class_name', 'config'} (`tf.keras.models.model_from_config`).

    Raises:
        TypeError: a list is given.
    """
    if isinstance(config, list):
        raise TypeError(
            "`model_from_config` expects a dictionary, not a list. Maybe you meant to use "
            "`Sequential.from_config(config)`?"
        )
    return made_model(config, custom_objects)


# -- copies


def clone_model(
    model: Any, input_tensors: Any = None, clone_function: Callable[[Layer], Layer] | None = None
) -> Any:
    """Copies a model, with new layers and new weights (`tf.keras.models.clone_model`).

    Args:
        model: a functional or Sequential model, or one with its own `get_config`.
        input_tensors: the inputs of the copy; new placeholders by default.
        clone_function: copies a layer; not called for input layers.

    Raises:
        ValueError: the model is of another kind.
    """
    if not hasattr(model, "_network"):
        raise ValueError(f"Expected `model` argument to be a Model instance, got {model!r}")
    copy = clone_function or _copied
    if isinstance(model, Sequential):
        given = flatten(input_tensors) if input_tensors is not None else []
        cloned = Sequential(name=model.name)
        for layer in model._parts():
            if not isinstance(layer, InputLayer):
                cloned.add(copy(layer))
            elif given:
                cloned.add(InputLayer(input_tensor=given[0], name=f"{layer.name}_copy"))
            else:
                cloned.add(InputLayer.from_config(layer.get_config()))
        return cloned
    if model._network is None:
        if clone_function is not None or input_tensors is not None:
            raise ValueError(
                "Expected `model` argument to be a functional `Model` instance, but got a "
                "subclassed model instead."
            )
        return type(model).from_config(model.get_config())
    config = _Describer(model).config(lambda layer: {})
    layers = {each.name: copy(each) for each in model.layers if not isinstance(each, InputLayer)}
    outputs: dict[str, Any] = {}
    if input_tensors is not None:
        ends = flatten(model.network.input_names)
        outputs = dict(zip(ends, flatten(input_tensors), strict=True))
    return _Builder(config, None, layers, outputs).model(type(model))


def _copied(layer: Layer) -> Layer:
    if hasattr(layer, "_network"):
        copied: Layer = clone_model(layer)
        return copied
    if isinstance(layer, Lambda):
        return layer  # it has no weights, and its function may have no name
    return type(layer).from_config(layer.get_config())


__all__ = [
    "clone_model",
    "config_of",
    "describe",
    "made",
    "made_model",
    "model_from_config",
    "model_from_json",
    "model_from_yaml",
    "model_of",
    "plain_value",
    "readable",
    "to_json",
    "to_yaml",
]
