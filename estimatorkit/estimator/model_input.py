"""What an `input_fn` gave: a dataset and how its elements become features and labels, or tensors.

An `input_fn` is called in a graph of its own. Where all it gave comes from one dataset, that is
taken out of the graph (`dataset`), so that a model built once can be run on one dataset after
another. Whatever else it gave (queues, placeholders, iterators with an initializer, tables) stays
in its graph, where the model is then built, anew each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.graph import Graph
from estimatorkit.core.nest import flatten, map_structure, pack_sequence_as
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Tensor
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.iterator_ops import Iterator, make_one_shot_iterator, named_iterator
from estimatorkit.data.spec import flatten as flatten_spec
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.train.global_steps import get_or_create_global_step


@dataclass(frozen=True)
class ModelInput:
    """What an `input_fn` gave.

    Attributes:
        graph: the graph it was called in, which has a global step (see `of`).
        features, labels: tensors of that graph, in their structures; labels may be None.
        dataset: the dataset they come from, where nothing else of the graph is needed.
        key: equal for inputs that one model can be built for; None without a dataset.
    """

    graph: Graph
    features: Any
    labels: Any
    dataset: Dataset | None
    key: Any

    @staticmethod
    def of(
        call: Callable[[], Any],
        mode: str,
        seed: int | None,
        make_global_step: Callable[[Graph], Any] = get_or_create_global_step,
    ) -> ModelInput:
        """What an `input_fn` gives.

        Args:
            call: calls it.
            mode: a `ModeKeys`.
            seed: of the graph.
            make_global_step: makes the graph's global step.

        Raises:
            ValueError: it is a tuple of other than two parts.
        """
        graph = Graph()
        graph.seed = seed
        with graph.as_default():
            make_global_step(graph)
            before = _collections(graph)
            result = call()
            if isinstance(result, Dataset):
                result = make_one_shot_iterator(result).get_next()
            features, labels = features_and_labels(result, mode)
        # Features of several kinds of keys have no order in which they could be taken apart.
        parts = [features, labels] if _is_ordered(features) and _is_ordered(labels) else []
        dataset = _dataset_of([each for each in flatten(parts, True) if each is not None])
        if dataset is None or dataset._plan.tensors() or _collections(graph) != before:
            return ModelInput(graph, features, labels, None, None)
        specs = [(str(each), each.dtype.name) for each in flatten_spec(dataset.element_spec)]
        structure = map_structure(_places, [features, labels])
        return ModelInput(graph, features, labels, dataset, repr((mode, specs, structure)))

    def rebuilt(self, graph: Graph) -> tuple[Iterator, Any, Any]:
        """The iterator of another graph, and features and labels made from its elements."""
        if self.dataset is None:
            raise ValueError("the input has no dataset of its own")
        with graph.as_default():
            iterator = named_iterator(self.dataset.element_spec, "OneShotIterator")
            outputs = next(iter(flatten(iterator.get_next(), True))).op.outputs
        structure = [self.features, self.labels]
        leaves = [
            each if each is None else outputs[each.value_index] for each in flatten(structure, True)
        ]
        features, labels = pack_sequence_as(structure, leaves, True)
        return iterator, features, labels


def features_and_labels(result: Any, mode: str) -> tuple[Any, Any]:
    """The two parts of what an `input_fn` gave; no labels for PREDICT.

    Raises:
        ValueError: it is a tuple of other than two parts.
    """
    if isinstance(result, (list, tuple)) and not hasattr(result, "_fields"):
        if len(result) != 2:
            raise ValueError("input_fn should return (features, labels) as a len 2 tuple.")
        features, labels = result
        return features, None if mode == ModeKeys.PREDICT else labels
    return result, None


def _is_ordered(part: Any) -> bool:
    return not isinstance(part, Mapping) or len({type(key) for key in part}) < 2


def _dataset_of(leaves: list[Any]) -> Dataset | None:
    """The dataset of the one-shot iterator whose next element all these are parts of."""
    if not leaves or not all(isinstance(each, Tensor) for each in leaves):
        return None
    op = leaves[0].op
    if role_of(op) is not Role.ELEMENT or any(each.op is not op for each in leaves):
        return None
    found: Dataset | None = op.graph.get_operation_by_name(op.attrs["iterator"]).attrs["_dataset"]
    return found


def _places(part: Any) -> Any:
    """Which of an element's tensors a tensor is, or those of which a composite is made."""
    if part is None or isinstance(part, Tensor):
        return part if part is None else part.value_index
    return type(part).__name__, [each.value_index for each in flatten(part, True)]


def _collections(graph: Graph) -> dict[str, int]:
    return {key: len(graph.get_collection(key)) for key in graph.get_all_collection_keys()}


__all__ = ["ModelInput", "features_and_labels"]
