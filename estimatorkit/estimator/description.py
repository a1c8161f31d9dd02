"""A trained model as people read it: `summary`, and the HTML that notebooks show.

`describe` reads the newest checkpoint; nothing is built, and no input is needed. What belongs to
optimizers is known by its name: TensorFlow's slots are called after their variables.
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
        name: below its layer.
        shape: its dimensions.
        dtype: its type's name.
        trained: whether an optimizer changes it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    trained: bool

    @property
    def count(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Description:
    """What a model folder holds.

    Attributes:
        title: what to call the model.
        checkpoint: the checkpoint's path; '' where there is none.
        step: its global step.
        layers: variables by layer, in the order of the checkpoint.
        slots: what optimizers keep, as (name, number of variables, number of values).
        columns: the feature columns' names by part of the model.
    """

    title: str
    checkpoint: str
    step: int | None
    layers: Mapping[str, Sequence[VariableRow]]
    slots: Sequence[tuple[str, int, int]]
    columns: Mapping[str, Sequence[str]]

    @property
    def parameters(self) -> int:
        """Values of all variables but the optimizers'."""
        return sum(row.count for rows in self.layers.values() for row in rows)

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Layer, variable, shape, dtype and count, as texts; the layer where it is a new one."""
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
        """What is to be said besides the variables: names and values."""
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
    """Describes the newest checkpoint of a model folder.

    Args:
        model_dir: the folder; there may be no checkpoint yet.
        title: what to call the model; by default the folder's name.
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
    """The optimizer's name for what it keeps in a variable; None where the model owns it."""
    for owner in names:
        if variable.startswith(f"{owner}/"):
            return variable[len(owner) + 1 :]
        if f"/{owner}/" in variable:  # Keras: training/Adam/dense/kernel/m
            return variable.rpartition("/")[2]
    if variable != "global_step" and _OPTIMIZERS.search(variable):
        return variable.rpartition("/")[2]
    return None


def shape_text(shape: Sequence[int]) -> str:
    """`3 x 4`; 'scalar' for no dimension."""
    return " x ".join(map(str, shape)) or "scalar"


def summary(estimator: Estimator, print_fn: Callable[[str], Any] = print) -> None:
    """Prints an estimator's newest checkpoint: variables by layer, and what else is in it.

    Args:
        estimator: an estimator.
        print_fn: takes each line.
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
    """A description as HTML: the variables, then the other facts."""
    head = ("layer", "variable", "shape", "dtype", "count")
    variables = html_table(head, description.rows()) if description.layers else ""
    return variables + html_table((), description.facts())


def estimator_html(estimator: Estimator) -> str:
    """What a notebook shows of an estimator."""
    description = describe(estimator.model_dir)
    return f"<p><code>{escape(repr(estimator))}</code></p>\n" + description_html(description)


__all__ = [
    *("Description", "VariableRow", "describe", "description_html", "estimator_html"),
    *("lines", "shape_text", "summary"),
]
