"""The result of an `input_fn`: a dataset and the mapping to features and labels, or tensors.

An `input_fn` is called in a new graph. If all its results come from a single dataset, that is
extracted (`dataset`), so that one built model can run on many datasets. Otherwise (queues,
placeholders, initializable iterators, tables) the model is built in that graph, each time.
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
    """The result of an `input_fn`.

    Attributes:
        graph: the graph it was called in, which has a global step.
        features, labels: nested structures of tensors of that graph; labels may be None.
        dataset: the dataset, if features and labels depend on nothing else.
        key: equal for inputs that can share a model; None without a dataset.
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
        """Calls an `input_fn`.

        Args:
            call: calls it.
            mode: a `ModeKeys`.
            seed: the graph's seed.
            make_global_step: creates the graph's global step.

        Raises:
            ValueError: the result is a tuple that does not have two items.
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
        # Feature keys of mixed types cannot be sorted, so there is no order to unpack them in.
        parts = [features, labels] if _is_ordered(features) and _is_ordered(labels) else []
        dataset = _dataset_of([each for each in flatten(parts, True) if each is not None])
        if dataset is None or dataset._plan.tensors() or _collections(graph) != before:
            return ModelInput(graph, features, labels, None, None)
        specs = [(str(each), each.dtype.name) for each in flatten_spec(dataset.element_spec)]
        structure = map_structure(_places, [features, labels])
        return ModelInput(graph, features, labels, dataset, repr((mode, specs, structure)))

    def rebuilt(self, graph: Graph) -> tuple[Iterator, Any, Any]:
        """Creates an iterator in the current graph, and features and labels from its elements."""
        if self.dataset is None:
            raise ValueError("the input has no dataset")
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
    """Splits the result of an `input_fn`; there are no labels for PREDICT.

    Raises:
        ValueError: it is a tuple that does not have two items.
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
    """The dataset of the one-shot iterator whose next element has all these tensors."""
    if not leaves or not all(isinstance(each, Tensor) for each in leaves):
        return None
    op = leaves[0].op
    if role_of(op) is not Role.ELEMENT or any(each.op is not op for each in leaves):
        return None
    found: Dataset | None = op.graph.get_operation_by_name(op.attrs["iterator"]).attrs["_dataset"]
    return found


def _places(part: Any) -> Any:
    """The positions of a tensor, or of a composite's components, in an element."""
    if part is None or isinstance(part, Tensor):
        return part if part is None else part.value_index
    return type(part).__name__, [each.value_index for each in flatten(part, True)]


def _collections(graph: Graph) -> dict[str, int]:
    return {key: len(graph.get_collection(key)) for key in graph.get_all_collection_keys()}


__all__ = ["ModelInput", "features_and_labels"]
