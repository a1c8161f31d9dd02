"""Names of each layer's feature columns, recorded in the graph and saved in checkpoints.

If a checkpoint does not match a model, the error lists added, removed and changed columns. Shapes
do not tell, since a dense layer's kernel holds all columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from estimatorkit.core.graph import Graph, get_default_graph

FEATURE_COLUMNS = "feature_columns"
"""The collection of records: '<layer>: <column>'."""

Notes = Mapping[str, Sequence[str]]


def note_columns(layer: str, names: Iterable[str]) -> None:
    """Records the column names of a layer, such as 'dnn', in the default graph."""
    for name in names:
        get_default_graph().add_to_collection(FEATURE_COLUMNS, f"{layer}: {name}")


def noted_columns(graph: Graph) -> dict[str, list[str]]:
    """Returns the recorded column names by layer."""
    found: dict[str, list[str]] = {}
    for note in graph.get_collection(FEATURE_COLUMNS):
        text = note.decode() if isinstance(note, bytes) else note  # imported graphs have bytes
        layer, _, name = text.partition(": ")
        found.setdefault(layer, []).append(name)
    return found


def changed_columns(saved: Notes, now: Notes) -> str | None:
    """Describes the differences of two `noted_columns`, one line per layer, or returns None."""
    lines = []
    for layer in saved.keys() & now.keys():
        came = [name for name in now[layer] if name not in saved[layer]]
        went = [name for name in saved[layer] if name not in now[layer]]
        changes = [
            f"{what} {names}" for what, names in (("added", came), ("removed", went)) if names
        ]
        if changes:
            lines.append(f"feature columns of {layer!r} changed: {', '.join(changes)}")
    return "\n".join(sorted(lines)) or None


__all__ = ["FEATURE_COLUMNS", "changed_columns", "note_columns", "noted_columns"]
