"""A model's weights by layer: their names, and the assignment of stored ones."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from estimatorkit.core.errors import value_error
from estimatorkit.layers.engine.base import Layer
from estimatorkit.layers.engine.sessions import set_values

_log = logging.getLogger("estimatorkit")
TOP_LEVEL = "top_level_model_weights"  # Keras's name for variables that belong to no layer
_ATTRIBUTE = re.compile(r"(?P<path>.+)/\.ATTRIBUTES/VARIABLE_VALUE")


@dataclass(frozen=True)
class StoredLayer:
    """A layer's weights as stored in a file.

    Attributes:
        name: the layer's.
        weights: names and arrays, in order.
        ordered: whether only the order counts, not the names (files of Keras).
    """

    name: str
    weights: Sequence[tuple[str, NDArray[Any]]]
    ordered: bool = False


@dataclass(frozen=True)
class _OwnVariables:
    """Adapter that presents a model's own variables as a layer."""

    weights: list[Any]
    name: str = TOP_LEVEL


def named_weights(layer: Layer) -> dict[str, Any]:
    """A layer's variables by graph-independent names.

    A name joins the names of the nested sublayers and of the variable.
    """
    found: dict[str, Any] = {}
    seen: set[int] = set()

    def add(path: str, variable: Any) -> None:
        if id(variable) in seen:
            return
        seen.add(id(variable))
        name, number = path, 0
        while name in found:
            number += 1
            name = f"{path}_{number}"
        found[name] = variable

    def walk(part: Any, path: str, entered: frozenset[int]) -> None:
        for variable in part._own_weights():
            add(path + variable.op.name.rsplit("/", 1)[-1], variable)
        for each in part._parts():
            if id(each) not in entered:
                walk(each, f"{path}{each.name}/", entered | {id(each)})

    walk(layer, "", frozenset({id(layer)}))
    for variable in layer.weights:
        add(variable.op.name, variable)
    known = {id(each) for each in layer.weights}
    return {name: variable for name, variable in found.items() if id(variable) in known}


def weighted_layers(model: Any) -> list[tuple[Any, dict[str, Any]]]:
    """The layers with weights, and these by name; the model's own ones come last.

    Raises:
        ValueError: two layers have one name.
    """
    found: list[tuple[Any, dict[str, Any]]] = []
    taken: set[int] = set()
    for layer in model.layers:
        named = {name: each for name, each in named_weights(layer).items() if id(each) not in taken}
        taken |= set(map(id, named.values()))
        if named:
            found.append((layer, named))
    own = [each for each in model.weights if id(each) not in taken]
    if own:
        names = {each.op.name.rsplit("/", 1)[-1]: each for each in own}
        if len(names) < len(own):
            names = {each.op.name: each for each in own}
        found.append((_OwnVariables(own), names))
    names_of_layers = [layer.name for layer, _ in found]
    doubled = sorted({name for name in names_of_layers if names_of_layers.count(name) > 1})
    if doubled:
        raise value_error(
            f"two layers of the model are called {doubled[0]!r}: their weights cannot be told "
            "apart",
            hint="give them names: Dense(10, name='first')",
        )
    return found


def keras_order(layer: Any) -> list[Any]:
    """A layer's variables in the order of Keras's files: trainable ones first."""
    if isinstance(layer, _OwnVariables):
        return layer.weights
    return [*layer.trainable_weights, *layer.non_trainable_weights]


def check_built(model: Any, what: str) -> None:
    """Raises ValueError if a model was neither built nor called."""
    if not model.built and not model.weights:
        raise value_error(
            f"Unable to {what} weights of the model {model.name!r}, which has not created its "
            "variables yet",
            hint="call the model on inputs, or model.build(input_shape), first",
        )


def give_values(
    model: Any, stored: Sequence[StoredLayer], by_name: bool = False, skip_mismatch: bool = False
) -> None:
    """Assigns stored weights to a model, or none of them if any does not fit.

    Args:
        model: the model.
        stored: the layers of a file.
        by_name: whether layers are found by name, otherwise in order.
        skip_mismatch: whether to skip layers of other shapes.

    Raises:
        ValueError: layers, weights or shapes do not fit.
    """
    own = weighted_layers(model)
    given = [each for each in stored if each.weights]
    if by_name:
        by = {each.name: each for each in given}
        pairs = [(layer, named, by[layer.name]) for layer, named in own if layer.name in by]
    elif len(own) != len(given):
        raise value_error(
            "Layer count mismatch when loading weights from file. Model expected "
            f"{len(own)} layers, found {len(given)} saved layers",
            expected=[layer.name for layer, _ in own],
            received=[each.name for each in given],
            hint="by_name=True takes the layers that have the same names",
        )
    else:
        pairs = [(layer, named, each) for (layer, named), each in zip(own, given, strict=True)]
    values: list[tuple[Any, Any]] = []
    for number, (layer, named, each) in enumerate(pairs):
        problem, found = _matched(number, layer, named, each)
        if problem is None:
            values += found
        elif skip_mismatch:
            _log.warning("Skipping loading weights for layer %s: %s", layer.name, problem)
        else:
            raise ValueError(problem)
    set_values(values)


def _matched(
    number: int, layer: Any, named: Mapping[str, Any], stored: StoredLayer
) -> tuple[str | None, list[tuple[Any, Any]]]:
    """Returns mismatches, or variables with their values."""
    where = f"layer #{number} (named {layer.name} in the current model, {stored.name} in the file)"
    if len(named) != len(stored.weights):
        return (
            f"Weight count mismatch for {where}. Layer expects {len(named)} weight(s). Received "
            f"{len(stored.weights)} saved weight(s)."
        ), []
    values = dict(stored.weights)
    if not stored.ordered and set(values) == set(named):
        found = [(variable, values[name]) for name, variable in named.items()]
    else:
        variables = keras_order(layer) if stored.ordered else list(named.values())
        found = list(zip(variables, [value for _, value in stored.weights], strict=True))
    for variable, value in found:
        if not variable.shape.is_compatible_with(value.shape):
            return (
                f"Shape mismatch in {where} for weight {variable.op.name}. Weight expects shape "
                f"{tuple(variable.shape.as_list())}. Received saved weight with shape "
                f"{value.shape}."
            ), []
    return None, found


def of_tensorflow(model: Any, tensors: Mapping[str, NDArray[Any]]) -> list[StoredLayer]:
    """A model's weights in a TensorFlow checkpoint, name-based or object-based.

    Keras writes object-based ones (`layer_with_weights-0/kernel/...`).

    Raises:
        ValueError: a variable is missing.
    """
    objects = {
        match["path"]: value
        for key, value in tensors.items()
        if (match := _ATTRIBUTE.fullmatch(key)) and "/.OPTIMIZER_SLOT/" not in key
    }
    found = _values_of_objects(model, objects) if objects else {}
    layers = []
    for layer, named in weighted_layers(model):
        weights = []
        for name, variable in named.items():
            value = found.get(id(variable), tensors.get(variable.op.name))
            if value is None:
                raise value_error(
                    f"the checkpoint has no value for {variable.op.name} of layer {layer.name!r}",
                    received=sorted(objects or tensors)[:12],
                )
            weights.append((name, value))
        layers.append(StoredLayer(layer.name, weights))
    return layers


def _values_of_objects(model: Any, objects: Mapping[str, NDArray[Any]]) -> dict[int, NDArray[Any]]:
    """The values of a model's variables in an object-based checkpoint, by variable id.

    Layers are matched by position; within a layer a variable is matched by its name, or by its
    suffix if sublayers are named differently.
    """
    found: dict[int, NDArray[Any]] = {}
    for number, (layer, named) in enumerate(weighted_layers(model)):
        prefix = "" if layer.name == TOP_LEVEL else f"layer_with_weights-{number}/"
        inside = {
            key[len(prefix) :]: value for key, value in objects.items() if key.startswith(prefix)
        }
        if hasattr(layer, "_network"):
            found |= _values_of_objects(layer, inside)
            continue
        for name, variable in named.items():
            last = name.rsplit("/", 1)[-1]
            keys = [name] if name in inside else [k for k in inside if k.rsplit("/", 1)[-1] == last]
            if len(keys) == 1:
                found[id(variable)] = inside[keys[0]]
    return found
