"""Which feature columns a model's layers have: noted in its graph, remembered in its checkpoints.

Where a checkpoint does not fit a model, the error can say which columns came, went or changed: the
shapes of variables alone do not tell, since a dense layer's kernel holds all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from estimatorkit.core.graph import Graph, get_default_graph

FEATURE_COLUMNS = "feature_columns"
"""The collection of the notes: texts '<layer>: <column>'."""

Notes = Mapping[str, Sequence[str]]


def note_columns(layer: str, names: Iterable[str]) -> None:
    """Notes the columns of a layer of the default graph.

    Args:
        layer: for example 'dnn'.
        names: the columns' names.
    """
    for name in names:
        get_default_graph().add_to_collection(FEATURE_COLUMNS, f"{layer}: {name}")


def noted_columns(graph: Graph) -> dict[str, list[str]]:
    """The columns' names of each layer that has been noted."""
    found: dict[str, list[str]] = {}
    for note in graph.get_collection(FEATURE_COLUMNS):
        text = note.decode() if isinstance(note, bytes) else note  # graph files hold bytes
        layer, _, name = text.partition(": ")
        found.setdefault(layer, []).append(name)
    return found


def changed_columns(saved: Notes, now: Notes) -> str | None:
    """What is different: one line a layer; None if nothing is, or nothing is known.

    Args:
        saved: what `noted_columns` gave when the model was saved.
        now: what it gives.
    """
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
