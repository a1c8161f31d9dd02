"""Ports: functions of modules that build on `Dataset`, which its methods call (see `core.ports`).

A dataset of files or arrays thus imports the graph's core only if a function is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from estimatorkit.lazy import Port

if TYPE_CHECKING:
    from estimatorkit.data.dataset import Dataset
    from estimatorkit.data.iterator_ops import Iterator
    from estimatorkit.data.plan import Plan


class _FileLists(Protocol):
    def list_files(
        self, file_pattern: Any, shuffle: bool | None = None, seed: Any = None
    ) -> Dataset:
        """A dataset of the files that match patterns."""


class _Mixing(Protocol):
    def sample_from_datasets(
        self,
        datasets: Sequence[Dataset],
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
    ) -> Dataset:
        """A dataset that draws from datasets at random."""

    def choose_from_datasets(
        self,
        datasets: Sequence[Dataset],
        choice_dataset: Dataset,
        stop_on_empty_dataset: bool = False,
    ) -> Dataset:
        """A dataset that takes from datasets by their numbers."""

    def Counter(self, start: Any = 0, step: Any = 1, dtype: Any = ...) -> Dataset:
        """The infinite sequence `start`, `start + step`, ..."""

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
    ) -> Callable[[Dataset], Dataset]:
        """Drops elements at random to reach a target distribution of classes."""


class _TracedFunctions(Protocol):
    def bound(self, plan: Plan, state: Any) -> Plan:
        """A plan with its tensor arguments evaluated."""

    def dataset_function(self, function: Callable[[Any], Any], element_spec: Any) -> Any:
        """Traces a function of an element."""


class _Iterators(Protocol):
    def make_one_shot_iterator(self, dataset: Dataset) -> Iterator:
        """An iterator that needs no initialization."""

    def make_initializable_iterator(
        self, dataset: Dataset, shared_name: str | None = None
    ) -> Iterator:
        """An iterator with an `initializer`."""


class _Values(Protocol):
    def reduce_dataset(
        self, dataset: Dataset, initial_state: Any, reduce_func: Callable[..., Any]
    ) -> Any:
        """The state after all elements."""

    def Cardinality(self, count: int) -> Any:
        """A number of elements, which a session can fetch."""

    def single_element(self, dataset: Dataset) -> Any:
        """The only element."""


list_files = cast("_FileLists", Port("list_files"))
experimental = cast("_Mixing", Port("data_experimental"))
traced_functions = cast("_TracedFunctions", Port("traced_functions"))
iterator_ops = cast("_Iterators", Port("iterator_ops"))
dataset_values = cast("_Values", Port("dataset_values"))
