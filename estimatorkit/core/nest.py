"""Nested structures: dicts, named tuples, lists and tuples of leaves.

`flatten` and `pack_sequence_as` are inverse to each other and visit dicts in the order of their
sorted keys, as `tf.nest` does. Everything else (arrays, tensors, strings, None) is a leaf.
`tf.data` differs from `Session.run` in one point: there a list is a value (it becomes an array), so
`flatten(..., lists_are_leaves=True)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from estimatorkit.core.errors import explain


def is_namedtuple(value: object) -> bool:
    """Whether `value` is an instance of a class made by `collections.namedtuple`."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def is_nested(value: object, *, lists_are_leaves: bool = False) -> bool:
    """Whether `value` is a structure rather than a leaf."""
    if isinstance(value, list):
        return not lists_are_leaves
    return isinstance(value, (tuple, Mapping))


def _sorted_keys(structure: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(structure)
    except TypeError as error:
        raise TypeError(
            explain(
                "the keys of a nested dict cannot be sorted",
                expected="keys of one kind, for example all strings",
                received=[type(key).__name__ for key in structure],
            )
        ) from error


def _children(structure: Any) -> list[Any]:
    if isinstance(structure, Mapping):
        return [structure[key] for key in _sorted_keys(structure)]
    return list(structure)


def _rebuild(structure: Any, children: Sequence[Any]) -> Any:
    if isinstance(structure, Mapping):
        by_key = dict(zip(_sorted_keys(structure), children, strict=True))
        ordered = {key: by_key[key] for key in structure}
        return ordered if type(structure) is dict else type(structure)(ordered)  # type: ignore[call-arg]
    if is_namedtuple(structure):
        return type(structure)(*children)
    return type(structure)(children)


def flatten(structure: Any, *, lists_are_leaves: bool = False) -> list[Any]:
    """Returns the leaves of `structure` from left to right; a leaf by itself gives `[leaf]`."""
    return list(_leaves(structure, lists_are_leaves))


def _leaves(structure: Any, lists_are_leaves: bool) -> Iterator[Any]:
    if is_nested(structure, lists_are_leaves=lists_are_leaves):
        for child in _children(structure):
            yield from _leaves(child, lists_are_leaves)
    else:
        yield structure


def pack_sequence_as(structure: Any, flat: Sequence[Any], *, lists_are_leaves: bool = False) -> Any:
    """Puts the values of `flat` where the leaves of `structure` are.

    Raises:
        ValueError: `flat` has another number of values than `structure` has leaves.
    """
    count = len(flatten(structure, lists_are_leaves=lists_are_leaves))
    if count != len(flat):
        raise ValueError(
            explain(
                "the flat sequence does not fit the structure",
                expected=f"{count} leaves",
                received=f"{len(flat)} values",
            )
        )
    values = iter(flat)

    def build(part: Any) -> Any:
        if is_nested(part, lists_are_leaves=lists_are_leaves):
            # Children are visited in sorted order, as flatten does, whatever the dict's own order.
            return _rebuild(part, [build(child) for child in _children(part)])
        return next(values)

    return build(structure)


def map_structure(
    function: Callable[..., Any], *structures: Any, lists_are_leaves: bool = False
) -> Any:
    """Applies `function` to the leaves of equally nested structures, keeping the structure of the
    first.

    Raises:
        ValueError: the structures have different nesting.
    """
    first = structures[0]
    for other in structures[1:]:
        assert_same_structure(first, other, lists_are_leaves=lists_are_leaves)
    columns = [flatten(each, lists_are_leaves=lists_are_leaves) for each in structures]
    return pack_sequence_as(
        first,
        [function(*leaves) for leaves in zip(*columns, strict=True)],
        lists_are_leaves=lists_are_leaves,
    )


def assert_same_structure(first: Any, second: Any, *, lists_are_leaves: bool = False) -> None:
    """Raises ValueError where the two structures differ in nesting or keys."""
    nested = [is_nested(each, lists_are_leaves=lists_are_leaves) for each in (first, second)]
    if nested == [False, False]:
        return
    same = nested == [True, True] and isinstance(first, Mapping) == isinstance(second, Mapping)
    if same and isinstance(first, Mapping):
        same = set(first) == set(second)
    elif same:
        same = len(first) == len(second)
    if not same:
        raise ValueError(
            explain("two structures are not nested alike", expected=first, received=second)
        )
    for one, other in zip(_children(first), _children(second), strict=True):
        assert_same_structure(one, other, lists_are_leaves=lists_are_leaves)


def flatten_up_to(shallow: Any, deep: Any) -> list[Any]:
    """What stands in `deep` in place of the leaves of `shallow`, from left to right.

    Raises:
        ValueError: `deep` has not the structure of `shallow`.
    """
    if not is_nested(shallow):
        return [deep]
    if not is_nested(deep) and not hasattr(deep, "__len__"):
        raise ValueError(
            explain("a nested structure is expected", expected=shallow, received=repr(deep)[:200])
        )
    if isinstance(shallow, Mapping):
        parts = [(shallow[key], deep[key]) for key in _sorted_keys(shallow)]
    else:
        if len(shallow) != len(deep):
            raise ValueError(
                explain(
                    "the two structures differ in length",
                    expected=len(shallow),
                    received=len(deep),
                )
            )
        parts = list(zip(shallow, deep, strict=True))
    return [leaf for one, other in parts for leaf in flatten_up_to(one, other)]
