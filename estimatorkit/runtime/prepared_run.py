"""`PreparedRun`: plans a run once, then converts feeds and packs results on each call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from estimatorkit.core import nest
from estimatorkit.core.composite import is_composite
from estimatorkit.core.conversion import as_array
from estimatorkit.core.dtypes import resource, string
from estimatorkit.core.errors import explain, type_error, value_error
from estimatorkit.core.graph import Graph
from estimatorkit.core.tensor import Operation, Tensor, as_operation
from estimatorkit.lazy import Port
from estimatorkit.runtime.state import State
from estimatorkit.runtime.xla.timeline import Trace

_step_checks = Port("step_checks")

FetchFunction = Callable[[Any], tuple[Sequence[Any], Callable[[list[Any]], Any]]]
FeedFunction = Callable[[Any, Any], Iterable[tuple[Any, Any]]]


class _Conversion(NamedTuple):
    fetch: FetchFunction
    feed: FeedFunction | None
    feed_keys: Callable[[Any], Sequence[Any]] | None


_conversions: dict[type, _Conversion] = {}


def register_session_run_conversion_functions(
    tensor_type: type,
    fetch_function: FetchFunction,
    feed_function: FeedFunction | None = None,
    feed_function_for_partial_run: Callable[[Any], Sequence[Any]] | None = None,
) -> None:
    """Registers how sessions fetch and feed objects of a type
    (`tensorflow.python.client.session.register_session_run_conversion_functions`).

    Args:
        tensor_type: the type; its subclasses are converted as well.
        fetch_function: takes such an object; returns the tensors to fetch, and a function from the
            list of their values to the result.
        feed_function: takes such an object and its value in `feed_dict`; returns pairs of a tensor
            and its value.
        feed_function_for_partial_run: takes such an object; returns the tensors that it feeds.

    Raises:
        ValueError: the type is registered already.
    """
    for registered in _conversions:
        if issubclass(tensor_type, registered):
            raise ValueError(f"{tensor_type} has already been registered so ignore it.")
    _conversions[tensor_type] = _Conversion(
        fetch_function, feed_function, feed_function_for_partial_run
    )


_fetched: dict[str, Callable[[State, Any], Any]] = {}


def register_fetched(op_type: str, convert: Callable[[State, Any], Any]) -> None:
    """Registers what sessions return for outputs of an op type, given their state and the value."""
    _fetched[op_type] = convert


class ConvertedFetch:
    """A composite of the tensors that are fetched for an object of a registered type."""

    def __init__(self, fetched: Any, convert: FetchFunction) -> None:
        self._tensors, self._from_values = convert(fetched)

    def _components(self) -> Sequence[Any]:
        return self._tensors


def converted_fetch(fetched: Any) -> Any:
    """The fetch; a `ConvertedFetch` if its type is registered."""
    conversion = _conversion(fetched)
    return fetched if conversion is None else ConvertedFetch(fetched, conversion.fetch)


def converted_feeds(feed_dict: Mapping[Any, Any] | None) -> Mapping[Any, Any] | None:
    """The feeds, with objects of registered types replaced by tensors and their values."""
    if not _conversions or not feed_dict:
        return feed_dict
    made: dict[Any, Any] = {}
    for key, value in feed_dict.items():
        conversion = _conversion(key)
        if conversion is None or conversion.feed is None:
            made[key] = value
        else:
            made.update(conversion.feed(key, value))
    return made


def converted_feed_keys(feeds: Sequence[Any]) -> list[Any]:
    """The keys of feeds, with objects of registered types replaced by tensors."""
    made: list[Any] = []
    for key in feeds:
        conversion = _conversion(key)
        if conversion is None or conversion.feed_keys is None:
            made.append(key)
        else:
            made.extend(conversion.feed_keys(key))
    return made


def _conversion(value: Any) -> _Conversion | None:
    for registered, conversion in _conversions.items():
        if isinstance(value, registered):
            return conversion
    return None


class Fetches:
    """The tensors and operations in a nested structure of fetches.

    Composite values (sparse tensors, `IndexedSlices`) are replaced by their tensors.

    Attributes:
        tensors: the tensors, each once.
        targets: the operations.
    """

    def __init__(self, graph: Graph, structure: Any) -> None:
        self._structure = structure
        leaves = [converted_fetch(leaf) for leaf in nest.flatten(structure)]
        if any(leaf is None for leaf in leaves):
            places = ", ".join(_places_of_none(structure, "fetches"))
            raise type_error(
                'Argument `fetch` = None has invalid type "NoneType". Cannot be None',
                received=f"None as {places}" if places else None,
            )
        parts = [
            [_fetch(graph, part) for part in leaf._components()]
            if is_composite(leaf)
            else [_fetch(graph, leaf)]
            for leaf in leaves
        ]
        every = [part for own in parts for part in own]
        self.tensors = list(dict.fromkeys(each for each in every if isinstance(each, Tensor)))
        self.targets = [each for each in every if isinstance(each, Operation)]
        place = {tensor: position for position, tensor in enumerate(self.tensors)}
        self._positions = [[place.get(each) for each in own] for own in parts]  # type: ignore[arg-type]
        self._composites = [leaf if is_composite(leaf) else None for leaf in leaves]
        # The two usual forms, a single fetch and a flat list, are packed without walking the
        # structure.
        plain = not any(map(is_composite, leaves))
        self._single = plain and not nest.is_nested(structure)
        self._flat_list = plain and type(structure) is list and len(leaves) == len(structure)
        self._flat_list = self._flat_list and not any(map(nest.is_nested, structure))
        self._flat_positions = [own[0] if own else None for own in self._positions]

    @property
    def operations(self) -> list[Operation]:
        """The producers of the tensors, and the targets."""
        return [*(tensor.op for tensor in self.tensors), *self.targets]

    def pack(self, results: Sequence[Any]) -> Any:
        """Packs the values of `tensors` into the structure of the fetches; None for operations."""
        if self._single:
            return results[0] if self.tensors else None
        if self._flat_list:
            return [None if at is None else results[at] for at in self._flat_positions]
        leaves = []
        for composite, positions in zip(self._composites, self._positions, strict=True):
            values = [None if at is None else results[at] for at in positions]
            leaves.append(values[0] if composite is None else composite._from_values(values))
        return nest.pack_sequence_as(self._structure, leaves)


class Feeds:
    """The tensors that the keys of a `feed_dict` refer to."""

    def __init__(self, graph: Graph, keys: Sequence[Any]) -> None:
        self._keys = [_FeedKey(graph, key) for key in keys]
        self.tensors = [tensor for key in self._keys for tensor in key.tensors]

    def convert(self, values: Sequence[Any]) -> list[Any]:
        """Converts one value per key to arrays for `tensors`."""
        converted: list[Any] = []
        for key, value in zip(self._keys, values, strict=True):
            key.convert_into(converted, value)
        return converted


class PreparedRun:
    """A planned run: converts feeds, runs the plan, packs the results."""

    def __init__(
        self,
        graph: Graph,
        state: State,
        fetches: Any,
        feed_keys: Sequence[Any],
        optimize: bool,
    ) -> None:
        self.fetches = Fetches(graph, fetches)
        self.feeds = Feeds(graph, feed_keys)
        asked = self.fetches.tensors
        given = graph, asked, self.fetches.targets, self.feeds.tensors
        self._checks = _step_checks.checks_of_run(*given)
        self._converted = [
            (at, _fetched[each.op.type])
            for at, each in enumerate(asked)
            if each.op.type in _fetched
        ]
        self._state = state
        watched = dict.fromkeys(tensor for check in self._checks for tensor in check.tensors)
        self._watched = list(watched)
        self.runner = state.runner(
            [*asked, *self._watched], self.fetches.targets, self.feeds.tensors, optimize
        )

    def __call__(self, feed_dict: Mapping[Any, Any] | None, trace: Trace | None = None) -> Any:
        """Runs with the values of a `feed_dict` that has the prepared keys."""
        values = self.feeds.convert(list(feed_dict.values())) if feed_dict else []
        results = self.runner.run(values, trace)
        if self._checks:
            seen = dict(zip(self._watched, results[-len(self._watched) :], strict=True))
            for check in self._checks:
                check.check([np.asarray(seen[tensor])[None] for tensor in check.tensors])
        for at, convert in self._converted:
            results[at] = convert(self._state, results[at])
        return self.fetches.pack(results)


class _FeedKey:
    """A key of a `feed_dict`: a tensor, a composite, or a nested structure of these."""

    def __init__(self, graph: Graph, key: Any) -> None:
        self._nested = nest.is_nested(key)
        self._key = key
        leaves = nest.flatten(key)
        self._composite = [is_composite(leaf) for leaf in leaves]
        parts = [
            [_feed(graph, part) for part in leaf._components()]
            if is_composite(leaf)
            else [_feed(graph, leaf)]
            for leaf in leaves
        ]
        self._converters = [[_FeedConverter(tensor) for tensor in own] for own in parts]
        self.tensors = [tensor for own in parts for tensor in own]
        self._one = self._converters[0][0] if not self._nested and not self._composite[0] else None

    def convert_into(self, converted: list[Any], value: Any) -> None:
        if self._one is not None:
            converted.append(self._one(value))
            return
        values = nest.flatten_up_to(self._key, value) if self._nested else [value]
        for own, composite, each in zip(self._converters, self._composite, values, strict=True):
            if not composite:
                converted.append(own[0](each))
                continue
            if not isinstance(each, tuple) or len(each) < len(own):
                raise type_error(
                    "a sparse value must be fed as its components",
                    expected="SparseTensorValue(indices, values, dense_shape), or a tuple of these",
                    received=repr(each)[:200],
                )
            converted.extend(convert(part) for convert, part in zip(own, each, strict=False))


class _FeedConverter:
    """Converts a fed value to an array, and checks its shape if that has changed."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._dtype = tensor.dtype.numpy_dtype
        self._is_string = tensor.dtype is string
        self._seen: tuple[int, ...] | None = None

    def __call__(self, value: Any) -> Any:
        # `isinstance` of `jax.Array` takes as long as the rest.
        is_array = type(value) is np.ndarray or isinstance(value, jax.Array)
        if is_array and value.dtype == self._dtype and not self._is_string:
            array = value
        else:
            array = self._array(value)
        if array.shape != self._seen:
            if not self._tensor.shape.is_compatible_with(array.shape):
                raise value_error(
                    f"Cannot feed value of shape {array.shape} for Tensor "
                    f"{self._tensor.name!r}, which has shape {str(self._tensor.shape)!r}",
                    made_at=self._tensor.op.source,
                )
            self._seen = array.shape
        return array

    def _array(self, value: Any) -> Any:
        if hasattr(value, "_fed_value"):
            value = value._fed_value()
        if self._is_string:
            return as_array(value, string)
        if isinstance(value, (Tensor, Operation)):
            raise TypeError(
                "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include "
                f"Python scalars, strings, lists and numpy arrays. Got {value}."
            )
        try:
            return np.asarray(value, self._dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise (TypeError if isinstance(error, OverflowError) else type(error))(
                explain(
                    f"Type of feed value {str(value)[:80]} with type {type(value)} is not "
                    f"compatible with Tensor type {self._dtype}: {error}",
                    expected=f"{self._tensor.dtype.name} of shape {self._tensor.shape}",
                    received=repr(value)[:200],
                    made_at=self._tensor.op.source,
                )
            ) from error


def _places_of_none(structure: Any, name: str) -> Iterator[str]:
    """Where a structure has None, as Python would subscript it."""
    if structure is None:
        yield name
    elif isinstance(structure, Mapping):
        for key, each in structure.items():
            yield from _places_of_none(each, f"{name}[{key!r}]")
    elif isinstance(structure, list | tuple):
        for place, each in enumerate(structure):
            yield from _places_of_none(each, f"{name}[{place}]")


def _fetch(graph: Graph, leaf: Any) -> Tensor | Operation:
    try:
        found = graph.as_graph_element(leaf)
    except TypeError as error:
        raise TypeError(
            f"Fetch argument {leaf!r} has invalid type {type(leaf).__name__}, must be a string "
            f"or Tensor. {_in_brackets(error)}"
        ) from error
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"Fetch argument {leaf!r} cannot be interpreted as a Tensor. {_in_brackets(error)}"
        ) from error
    if not graph.is_fetchable(found):
        raise ValueError(f"Operation {as_operation(found).name} has been marked as not fetchable.")
    return value_of(found)


def _text(error: Exception) -> str:
    """An error's message; the text of a KeyError would be its repr."""
    return str(error.args[0]) if isinstance(error, KeyError) else str(error)


def _in_brackets(error: Exception) -> str:
    """An error message with its first line in brackets."""
    first, line_end, rest = _text(error).partition("\n")
    return f"({first}){line_end}{rest}"


def _feed(graph: Graph, key: Any) -> Tensor:
    try:
        found = cast(Tensor, graph.as_graph_element(key, allow_operation=False))
    except (TypeError, ValueError, KeyError) as error:
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {_text(error)}") from error
    if not graph.is_feedable(found):
        raise value_error(
            f"Tensor {found.name} may not be fed",
            made_at=found.op.source,
            hint="if its value was used to build the graph: tf.placeholder_with_default(value, [])",
        )
    return cast(Tensor, value_of(found))


def value_of(element: Tensor | Operation) -> Tensor | Operation:
    """The element; for a variable's handle ('w:0'), its value ('w/read:0')."""
    if isinstance(element, Tensor) and element.dtype is resource:
        return element.graph.get_tensor_by_name(f"{element.op.name}/read:0")
    return element


def structure_key(fetches: Any) -> Any:
    """A hashable key for a nested structure of fetches."""
    if isinstance(fetches, Mapping):
        return (type(fetches), *((key, structure_key(value)) for key, value in fetches.items()))
    if isinstance(fetches, (list, tuple)):
        return (type(fetches), *map(structure_key, fetches))
    if nest.is_attrs(fetches):
        return (type(fetches), *map(structure_key, nest.flatten(fetches)))
    if isinstance(fetches, Hashable):
        return fetches
    raise TypeError(
        f"Fetch argument {fetches!r} has invalid type {type(fetches).__name__}, must be a string "
        "or Tensor."
    )
