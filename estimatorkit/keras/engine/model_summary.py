"""Text descriptions of models: `summary`'s table, and DOT graphs (`plot_model`)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimatorkit.core.errors import value_error
from estimatorkit.interop.graphviz import render
from estimatorkit.keras.engine.model import Model
from estimatorkit.keras.engine.sequential import Sequential
from estimatorkit.layers.engine.call_record import LayerCall, record_of
from estimatorkit.storage.atomic_files import write_durably

_UNITS = ("Byte", "KB", "MB", "GB", "TB", "PB")
_BREAKS = ("),", "},", "],", "',")


def summary(
    model: Any,
    line_length: int | None = None,
    positions: Sequence[float] | None = None,
    print_fn: Callable[[str], Any] | None = None,
    expand_nested: bool = False,
    show_trainable: bool = False,
    layer_range: Sequence[str] | None = None,
) -> None:
    """Prints a model's layers, the shapes of their outputs and their numbers of parameters.

    Args:
        model: a built model.
        line_length: characters of a line; 65, or 98 if layers are not a plain sequence.
        positions: where columns end, in characters or as parts of a line.
        print_fn: takes each line; `print` by default.
        expand_nested: whether the layers of models within are shown.
        show_trainable: whether a column shows which layers are trained.
        layer_range: names, or regular expressions, of the first and the last layer to show.

    Raises:
        ValueError: the model is not built, or a layer of the range is not there.
    """
    if not model.built and not model.weights:
        raise value_error(
            f"This model has not yet been built: {model.name!r}",
            hint="build it first by calling `build()` or by calling the model on a batch",
        )
    table = _Table(model, line_length, positions, show_trainable)
    for line in table.lines(expand_nested, layer_range):
        (print_fn or print)(line)


class _Table:
    """The lines of a summary; arguments as for `summary`."""

    def __init__(
        self,
        model: Any,
        line_length: int | None,
        positions: Sequence[float] | None,
        show_trainable: bool,
    ) -> None:
        self._model = model
        self._connected = not _is_chain(model)
        length = line_length or (98 if self._connected else 65)
        ends = list(positions or ([0.3, 0.6, 0.70, 1.0] if self._connected else [0.45, 0.85, 1.0]))
        if ends[-1] <= 1:
            ends = [int(length * part) for part in ends]
        self._titles = ["Layer (type)", "Output Shape", "Param #"]
        if self._connected:
            self._titles.append("Connected to")
        self._shows_trainable = show_trainable
        if show_trainable:
            length += 11
            ends.append(length)
            self._titles.append("Trainable")
        self._length = length
        self._ends = [int(end) for end in ends]
        network = model._network
        self._steps = set() if network is None else {id(step) for step in network.steps}

    def lines(self, expand_nested: bool, layer_range: Sequence[str] | None) -> Iterator[str]:
        """The table, followed by the totals."""
        model, rule = self._model, "_" * self._length
        yield f'Model: "{model.name}"'
        yield rule
        yield from self._row(self._titles)
        yield "=" * self._length
        for layer in _within(_layers_of(model), layer_range):
            yield from self._layer(layer, 0, False, expand_nested)
        yield "=" * self._length
        trained, frozen = model.trainable_weights, model.non_trainable_weights
        yield f"Total params: {_size([*trained, *frozen])}"
        yield f"Trainable params: {_size(trained)}"
        yield f"Non-trainable params: {_size(frozen)}"
        yield rule

    def _layer(self, layer: Any, level: int, last: bool, expand: bool) -> Iterator[str]:
        fields = [f"{layer.name} ({_kind(layer)})", self._shape(layer), _count(layer)]
        if self._connected:
            fields.append(str(self._connections(layer)))
        if self._shows_trainable:
            fields.append("Y" if layer.trainable else "N")
        yield from self._row(fields, level)
        inner = _layers_of(layer) if expand and hasattr(layer, "layers") else []
        if inner:
            yield from self._rule("¯", level + 1)
            for each in inner:
                yield from self._layer(each, level + 1, each is inner[-1], expand)
            yield from self._rule("¯", level)
        elif not last:
            yield from self._rule(" ", level)

    def _rule(self, character: str, level: int) -> Iterator[str]:
        yield "|" * level + character * (self._length - 2 * level) + "|" * level

    def _row(self, fields: Sequence[str], level: int = 0) -> Iterator[str]:
        """Lays fields out in their columns, on as many lines as needed."""
        left = list(fields)
        while any(left):
            line = "|" * level + " "
            start = 0
            for column, end in enumerate(self._ends[: len(left)]):
                last = column == len(self._ends) - 1
                width = end - start - (0 if last else 3) - (level if column == 0 else 0)
                piece = _piece(left[column], width)
                left[column] = left[column][len(piece) :]
                line = (line + piece + ("" if last else "  ")).ljust(end - (level if last else 0))
                start = end
            yield line + "|" * level

    def _shape(self, layer: Any) -> str:
        if not layer._calls and getattr(layer, "_network", None) is None:
            return "multiple"
        if self._model._network is None:
            return "multiple"
        try:
            shape = layer.output_shape
        except AttributeError:
            return "multiple"
        return str([shape] if type(layer).__name__ == "InputLayer" else shape)

    def _connections(self, layer: Any) -> list[str]:
        found = []
        for call in layer._calls:
            if id(call) in self._steps:
                found += [_place(tensor) for tensor in call.input_tensors]
        return found


def _kind(layer: Any) -> str:
    """A layer's class name; Keras's name for functional models."""
    return "Functional" if type(layer) is Model else type(layer).__name__


def _place(tensor: Any) -> str:
    """Formats a tensor as layer[call][output]."""
    call = record_of(tensor.graph).calls.get(tensor)
    if call is None:
        return f"{tensor.op.name}[0][{tensor.value_index}]"
    numbers = {id(each): number for number, each in enumerate(call.layer._calls)}
    outputs = call.outputs if isinstance(call.outputs, (list, tuple)) else [call.outputs]
    index = next((number for number, each in enumerate(outputs) if each is tensor), 0)
    return f"{call.layer.name}[{numbers[id(call)]}][{index}]"


def _piece(text: str, width: int) -> str:
    """The part of a text that fits a line, broken after an item if possible."""
    fitting = text[:width]
    ends = [fitting.find(each) + len(each) for each in _BREAKS if each in fitting]
    return fitting[: min(ends)] if ends else fitting


def _layers_of(model: Any) -> list[Any]:
    if isinstance(model, Sequential) or getattr(model, "_network", None) is None:
        return list(model.layers)
    return list(model._network.layers)


def _within(layers: list[Any], layer_range: Sequence[str] | None) -> list[Any]:
    if layer_range is None:
        return layers
    if len(layer_range) != 2:
        raise ValueError(f"layer_range must have two entries, received {layer_range!r}")
    places = [
        [number for number, each in enumerate(layers) if re.match(name, each.name)]
        for name in layer_range
    ]
    if not all(places):
        raise value_error(
            "Passed layer_names do not match the layer names in the model",
            expected=[each.name for each in layers],
            received=list(layer_range),
        )
    return layers[places[0][0] : places[1][-1] + 1]


def _is_chain(model: Any) -> bool:
    """Whether each layer's only input is the previous layer's output."""
    network = model._network
    if network is None or isinstance(model, Sequential):
        return True
    if len(network.input_tensors) != 1:
        return False
    current, seen = network.input_tensors[0], set()
    for step in network.steps:
        if not isinstance(step, LayerCall) or id(step.layer) in seen:
            return False
        taken = step.input_tensors
        if len(taken) != 1 or taken[0] is not current:
            return False
        seen.add(id(step.layer))
        current = step.outputs
    return True


def _count(layer: Any) -> str:
    if not layer.built and not layer.weights:
        return "0 (unused)"
    return str(sum(int(np.prod(each.shape.as_list())) for each in layer.weights))


def _size(variables: Sequence[Any]) -> str:
    counts = [int(np.prod(each.shape.as_list())) for each in variables]
    size = float(
        sum(count * variable.dtype.size for count, variable in zip(counts, variables, strict=True))
    )
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    return f"{sum(counts)} ({size:.2f} {_UNITS[unit]})"


# -- graphs


def model_to_dot(
    model: Any,
    show_shapes: bool = False,
    show_dtype: bool = False,
    show_layer_names: bool = True,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 96,
    subgraph: bool = False,
    layer_range: Sequence[str] | None = None,
    show_layer_activations: bool = False,
    show_trainable: bool = False,
) -> str:
    """A model's layers and how they are connected, as text in DOT, Graphviz's language.

    Args:
        model: a built model.
        show_shapes, show_dtype, show_layer_names, show_layer_activations, show_trainable: what is
            said of each layer.
        rankdir: 'TB' from top to bottom, 'LR' from left to right.
        expand_nested: whether the layers of models within are shown.
        dpi: of pictures.
        subgraph: accepted for compatibility only.
        layer_range: see `summary`.

    Returns:
        The text; `tf.keras.utils.model_to_dot` gives an object of pydot.
    """

    def label(layer: Any) -> str:
        parts = [f"{layer.name}: {_kind(layer)}" if show_layer_names else _kind(layer)]
        if show_layer_activations and hasattr(layer, "activation"):
            parts.append(getattr(layer.activation, "__name__", "none"))
        if show_dtype:
            parts.append(str(layer.dtype))
        if show_trainable:
            parts.append("trainable" if layer.trainable else "not trainable")
        if show_shapes and layer._calls:
            parts.append(f"output: {layer.output_shape}")
        return "\\n".join(parts)

    lines = ["digraph model {", f"  rankdir={_quoted(rankdir)}; dpi={int(dpi)};"]
    lines.append("  node [shape=box];")
    _draw(model, lines, label, expand_nested, "", layer_range)
    return "\n".join([*lines, "}", ""])


def _draw(
    model: Any,
    lines: list[str],
    label: Callable[[Any], str],
    expand: bool,
    path: str,
    layer_range: Sequence[str] | None = None,
) -> None:
    """Appends the DOT lines of a model nested at a path of names."""
    indent = "  " * (path.count("/") + 1)

    def node(layer: Any) -> str:
        return _quoted(path + layer.name)

    layers = _within(_layers_of(model), layer_range)
    shown = {id(layer) for layer in layers}
    for layer in layers:
        if expand and hasattr(layer, "layers"):
            lines.append(f"{indent}subgraph {_quoted(f'cluster_{path}{layer.name}')} {{")
            lines.append(f"{indent}  label={_quoted(layer.name)};")
            _draw(layer, lines, label, expand, f"{path}{layer.name}/")
            lines.append(f"{indent}}}")
        lines.append(f"{indent}{node(layer)} [label={_quoted(label(layer))}];")
    network = model._network
    steps = [] if network is None else network.steps
    edges: dict[str, None] = {}
    for step in steps:
        if not isinstance(step, LayerCall) or id(step.layer) not in shown:
            continue
        for tensor in step.input_tensors:
            call = record_of(tensor.graph).calls.get(tensor)
            if call is not None and id(call.layer) in shown:
                edges[f"{indent}{node(call.layer)} -> {node(step.layer)};"] = None
    lines += edges


def _quoted(text: str) -> str:
    return '"' + str(text).replace('"', '\\"') + '"'


def plot_model(
    model: Any,
    to_file: str | os.PathLike[str] = "model.png",
    show_shapes: bool = False,
    show_dtype: bool = False,
    show_layer_names: bool = True,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 96,
    layer_range: Sequence[str] | None = None,
    show_layer_activations: bool = False,
    show_trainable: bool = False,
) -> None:
    """Writes a picture of a model (`tf.keras.utils.plot_model`).

    Args:
        model: a built model.
        to_file: a name in `.dot` makes the text; others (`.png`, `.svg`, `.pdf`) need pygraphviz
            (extra `plot`).
        show_shapes, show_dtype, show_layer_names, rankdir, expand_nested, dpi, layer_range,
            show_layer_activations, show_trainable: see `model_to_dot`.

    Raises:
        ImportError: it is not installed.
        ValueError: the kind of file is unknown.
    """
    text = model_to_dot(
        model,
        show_shapes,
        show_dtype,
        show_layer_names,
        rankdir,
        expand_nested,
        dpi,
        False,
        layer_range,
        show_layer_activations,
        show_trainable,
    )
    path = Path(os.fspath(to_file))
    kind = path.suffix.removeprefix(".").lower() or "png"
    if kind == "dot":
        write_durably(path, text.encode())
        return
    write_durably(path, render(text, kind))


__all__ = ["model_to_dot", "plot_model", "summary"]
