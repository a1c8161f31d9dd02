"""Human-readable descriptions of trained models: `summary`, and HTML for notebooks.

`describe` reads the latest checkpoint, without building the model. Optimizer slots are recognized
by name, as TensorFlow names them after their variables.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from estimatorkit.html import html_table
from estimatorkit.storage.checkpoint import latest_checkpoint, read_checkpoint, read_contents

if TYPE_CHECKING:
    from estimatorkit.estimator.estimator import Estimator

_OPTIMIZERS = re.compile(r"(^|/)(beta[12]_power|learning_rate|iter|decay|momentum|rho)(_\d+)?$")
_MOVING = re.compile(r"(^|/)moving_(mean|variance)$")


@dataclass(frozen=True)
class VariableRow:
    """A variable.

    Attributes:
        name: its name within the layer.
        shape: its dimensions.
        dtype: the name of its dtype.
        trained: whether an optimizer updates it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    trained: bool

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Description:
    """The contents of a model folder.

    Attributes:
        title: the model's title.
        checkpoint: the checkpoint's path, or ''.
        step: its global step.
        layers: variables by layer, in checkpoint order.
        slots: optimizer slots, as (name, number of variables, number of values).
        columns: the names of feature columns, by part of the model.
    """

    title: str
    checkpoint: str
    step: int | None
    layers: Mapping[str, Sequence[VariableRow]]
    slots: Sequence[tuple[str, int, int]]
    columns: Mapping[str, Sequence[str]]

    @property
    def parameters(self) -> int:
        """The number of elements of all variables except optimizer slots."""
        return sum(row.count for rows in self.layers.values() for row in rows)

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Table rows: layer (if it changes), variable, shape, dtype and count."""
        return [
            (
                "" if number else layer,
                row.name + ("" if row.trained else " (not trained)"),
                shape_text(row.shape),
                row.dtype,
                f"{row.count:,}",
            )
            for layer, rows in self.layers.items()
            for number, row in enumerate(rows)
        ]

    def facts(self) -> list[tuple[str, str]]:
        """Further facts, as names and values."""
        kept = sum(count for _, _, count in self.slots)
        slots = ", ".join(f"{name}: {values:,} in {number}" for name, number, values in self.slots)
        facts = [
            ("checkpoint", os.path.basename(self.checkpoint) or "none yet"),
            ("global step", "none" if self.step is None else f"{self.step:,}"),
            ("parameters", f"{self.parameters:,}"),
        ]
        if kept:
            facts.append(("optimizer slots", f"{kept:,} ({slots} variables)"))
        for part, names in self.columns.items():
            facts.append((f"columns of {part}", ", ".join(names)))
        return facts


def describe(model_dir: str | os.PathLike[str], title: str | None = None) -> Description:
    """Describes the latest checkpoint of a model folder.

    Args:
        model_dir: the folder, which may not have a checkpoint yet.
        title: the model's title; the folder's name by default.
    """
    name = title or os.path.basename(os.path.abspath(model_dir))
    path = latest_checkpoint(model_dir)
    if path is None:
        return Description(name, "", None, {}, (), {})
    contents = read_contents(path)
    owners = sorted(contents, key=len)
    slots: dict[str, list[int]] = {}
    layers: dict[str, list[VariableRow]] = {}
    for variable, entry in contents.items():
        count = math.prod(entry.shape)
        slot = _slot_of(variable, owners)
        if slot is not None:
            slots.setdefault(slot, []).append(count)
        elif variable != "global_step":
            layer, _, last = variable.rpartition("/")
            row = VariableRow(
                last, tuple(entry.shape), str(entry.dtype), _MOVING.search(variable) is None
            )
            layers.setdefault(layer, []).append(row)
    checkpoint = read_checkpoint(path, [])
    return Description(
        name,
        path,
        checkpoint.step,
        layers,
        [(slot, len(counts), sum(counts)) for slot, counts in sorted(slots.items())],
        checkpoint.state.get("columns", {}),
    )


def _slot_of(variable: str, names: Sequence[str]) -> str | None:
    """The name of the slot that a variable is; None for the model's own variables."""
    for owner in names:
        if variable.startswith(f"{owner}/"):
            return variable[len(owner) + 1 :]
        if f"/{owner}/" in variable:  # Keras: training/Adam/dense/kernel/m
            return variable.rpartition("/")[2]
    if variable != "global_step" and _OPTIMIZERS.search(variable):
        return variable.rpartition("/")[2]
    return None


def shape_text(shape: Sequence[int]) -> str:
    """Formats a shape as `3 x 4` or 'scalar'."""
    return " x ".join(map(str, shape)) or "scalar"


def summary(estimator: Estimator, print_fn: Callable[[str], Any] = print) -> None:
    """Prints the contents of an estimator's latest checkpoint: variables by layer, and more.

    Args:
        estimator: an estimator.
        print_fn: called with each line.
    """
    for line in lines(describe(estimator.model_dir, repr(estimator))):
        print_fn(line)


def lines(description: Description) -> list[str]:
    """A description as lines of text."""
    table = [("layer", "variable", "shape", "dtype", "count"), *description.rows()]
    widths = [max(len(row[place]) for row in table) for place in range(5)]
    found = [description.title]
    if len(table) > 1:
        for number, (*texts, count) in enumerate(table):
            cells = [text.ljust(width) for text, width in zip(texts, widths, strict=False)]
            found.append("  ".join([*cells, count.rjust(widths[4])]).rstrip())
            if number == 0:
                found.append("-" * (sum(widths) + 8))
        found.append("-" * (sum(widths) + 8))
    facts = description.facts()
    width = max(len(name) for name, _ in facts)
    return [*found, *(f"{name.ljust(width)}  {value}" for name, value in facts)]


# -- HTML


def description_html(description: Description) -> str:
    """A description as HTML."""
    head = ("layer", "variable", "shape", "dtype", "count")
    variables = html_table(head, description.rows()) if description.layers else ""
    return variables + html_table((), description.facts())


def estimator_html(estimator: Estimator) -> str:
    """The HTML of an estimator, for notebooks."""
    description = describe(estimator.model_dir)
    return f"<p><code>{escape(repr(estimator))}</code></p>\n" + description_html(description)


__all__ = [
    "Description",
    "VariableRow",
    "describe",
    "description_html",
    "estimator_html",
    "lines",
    "shape_text",
    "summary",
]
