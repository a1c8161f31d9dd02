"""The losses that a graph has collected, and their sum."""

from __future__ import annotations

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.math import elementwise


def add_loss(loss: Tensor, loss_collection: str = GraphKeys.LOSSES) -> None:
    """Adds a loss that you computed yourself to the collection of losses."""
    get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Tensor]:
    """Returns the losses collected so far, only those whose name matches the regex `scope`."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Tensor]:
    """Returns the losses that the regularizers of variables added to the graph."""
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(
    scope: str | None = None, name: str = "total_regularization_loss"
) -> Tensor:
    """Returns the sum of `get_regularization_losses`; 0 if there are none."""
    found = get_regularization_losses(scope)
    return elementwise.add_n(found, name) if found else convert_to_tensor(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """Returns the sum of all losses collected so far.

    Args:
        add_regularization_losses: whether to include the regularization losses.
        name: the operation's name.
        scope: a regular expression that names of losses must match.

    Raises:
        ValueError: there is no loss.
    """
    found = get_losses(scope)
    if add_regularization_losses:
        found += get_regularization_losses(scope)
    return elementwise.add_n(found, name)
