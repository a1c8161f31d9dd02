"""Types that a session takes in `fetches` and `feed_dict` besides tensors and operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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
    """Lets sessions fetch and feed objects of a type
    (`tensorflow.python.client.session.register_session_run_conversion_functions`).

    Args:
        tensor_type: the type; its subclasses are converted as well.
        fetch_function: takes such an object; returns the tensors to fetch, and a function that
            makes the result of the list of their values.
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


class ConvertedFetch:
    """A composite of the tensors that are fetched for an object of a registered type."""

    def __init__(self, fetched: Any, convert: FetchFunction) -> None:
        self._tensors, self._from_values = convert(fetched)

    def _components(self) -> Sequence[Any]:
        return self._tensors


def converted_fetch(fetched: Any) -> Any:
    """What is fetched; a `ConvertedFetch` where its type is registered."""
    conversion = _conversion(fetched)
    return fetched if conversion is None else ConvertedFetch(fetched, conversion.fetch)


def converted_feeds(feed_dict: Mapping[Any, Any] | None) -> Mapping[Any, Any] | None:
    """The feeds, with tensors and their values in place of objects of registered types."""
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
    """The keys of feeds, with tensors in place of objects of registered types."""
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
