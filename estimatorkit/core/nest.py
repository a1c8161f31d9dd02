"""Nested structures: dicts, named tuples, `attrs` classes, lists and tuples of leaves.

`flatten` and `pack_sequence_as` are inverses and visit dicts in sorted key order, as in `tf.nest`.
Everything else (arrays, tensors, strings, None) is a leaf. In `tf.data`, unlike in `Session.run`, a
list is a leaf that becomes an array: `flatten(..., lists_are_leaves=True)`. With
`expand_composites`, composite values such as sparse tensors are structures of their tensors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from estimatorkit.core.composite import is_composite, with_components
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.lazy import listing


def is_namedtuple(value: object) -> bool:
    """Returns whether `value` is a named tuple."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def is_attrs(value: object) -> bool:
    """Returns whether `value` is an instance of a class defined with the `attrs` library."""
    return hasattr(type(value), "__attrs_attrs__")


def is_nested(
    value: object, *, lists_are_leaves: bool = False, expand_composites: bool = False
) -> bool:
    """Returns whether `value` is a structure rather than a leaf."""
    if isinstance(value, list):
        return not lists_are_leaves
    if isinstance(value, (tuple, Mapping)) or is_attrs(value):
        return True
    return expand_composites and is_composite(value)


def _sorted_keys(structure: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(structure)
    except TypeError as error:
        raise type_error(
            "the keys of a nested dict cannot be sorted",
            expected="keys of one type, for example all strings",
            received=[type(key).__name__ for key in structure],
        ) from error


def _children(structure: Any) -> list[Any]:
    if isinstance(structure, Mapping):
        return [structure[key] for key in _sorted_keys(structure)]
    if is_attrs(structure):
        return [getattr(structure, field.name) for field in structure.__attrs_attrs__]
    return list(structure._components() if is_composite(structure) else structure)


def _rebuild(structure: Any, children: Sequence[Any]) -> Any:
    if isinstance(structure, Mapping):
        by_key = dict(zip(_sorted_keys(structure), children, strict=True))
        ordered = {key: by_key[key] for key in structure}
        if isinstance(structure, defaultdict):
            return defaultdict(structure.default_factory, ordered)
        return ordered if type(structure) is dict else type(structure)(ordered)  # type: ignore[call-arg]
    if is_namedtuple(structure) or is_attrs(structure):
        return type(structure)(*children)
    if is_composite(structure):
        return with_components(structure, children)
    return type(structure)(children)


def flatten(
    structure: Any, expand_composites: bool = False, *, lists_are_leaves: bool = False
) -> list[Any]:
    """Returns the leaves of `structure` in order; for a single leaf, `[leaf]`."""
    return list(_leaves(structure, lists_are_leaves, expand_composites))


def _leaves(structure: Any, lists_are_leaves: bool, expand_composites: bool) -> Iterator[Any]:
    if is_nested(structure, lists_are_leaves=lists_are_leaves, expand_composites=expand_composites):
        for child in _children(structure):
            yield from _leaves(child, lists_are_leaves, expand_composites)
    else:
        yield structure


def pack_sequence_as(
    structure: Any,
    flat_sequence: Sequence[Any],
    expand_composites: bool = False,
    *,
    lists_are_leaves: bool = False,
) -> Any:
    """Builds a structure like `structure` with the leaves `flat_sequence`.

    Raises:
        ValueError: the number of leaves differs.
    """
    kinds = {"lists_are_leaves": lists_are_leaves, "expand_composites": expand_composites}
    count = len(flatten(structure, **kinds))
    if count != len(flat_sequence):
        raise value_error(
            "the flat sequence does not match the structure",
            expected=f"{count} leaves",
            received=f"{len(flat_sequence)} values",
        )
    values = iter(flat_sequence)

    def build(part: Any) -> Any:
        if is_nested(part, **kinds):
            # Children are visited in sorted order, as flatten does, whatever the dict's own order.
            return _rebuild(part, [build(child) for child in _children(part)])
        return next(values)

    return build(structure)


def packer(structure: Any, *, lists_are_leaves: bool = False) -> Callable[[Sequence[Any]], Any]:
    """The function that packs leaves into a structure, for many sequences of them.

    A None in `structure` is no leaf: it stays None. The number of leaves is not checked. It takes a
    tenth of the time of `pack_sequence_as` for a dict of 15 leaves.
    """

    def of(part: Any) -> Callable[[Iterator[Any]], Any]:
        if part is None:
            return lambda rest: None
        if not is_nested(part, lists_are_leaves=lists_are_leaves):
            return next
        builds = [of(child) for child in _children(part)]
        if type(part) is dict and list(part) == _sorted_keys(part):
            named = list(zip(part, builds, strict=True))
            return lambda rest: {key: build(rest) for key, build in named}
        return lambda rest: _rebuild(part, [build(rest) for build in builds])

    build = of(structure)
    return lambda leaves: build(iter(leaves))


def map_structure(
    func: Callable[..., Any],
    *structures: Any,
    check_types: bool = True,
    expand_composites: bool = False,
    lists_are_leaves: bool = False,
) -> Any:
    """Applies `func` to corresponding leaves; the result has the structure of the first argument.

    Raises:
        ValueError: the structures have different nesting.
    """
    kinds = {"lists_are_leaves": lists_are_leaves, "expand_composites": expand_composites}
    first = structures[0]
    for other in structures[1:]:
        assert_same_structure(first, other, check_types, **kinds)
    columns = [flatten(each, **kinds) for each in structures]
    return pack_sequence_as(
        first, [func(*leaves) for leaves in zip(*columns, strict=True)], **kinds
    )


def assert_same_structure(
    nest1: Any,
    nest2: Any,
    check_types: bool = True,
    expand_composites: bool = False,
    *,
    lists_are_leaves: bool = False,
) -> None:
    """Raises ValueError if two structures differ in nesting or keys.

    Args:
        nest1, nest2: the structures.
        check_types: without effect; lists and tuples, and all dict classes, are equivalent.
        expand_composites: treat composites as structures.
        lists_are_leaves: treat lists as leaves.
    """
    kinds = {"lists_are_leaves": lists_are_leaves, "expand_composites": expand_composites}
    nested = [is_nested(each, **kinds) for each in (nest1, nest2)]
    if nested == [False, False]:
        return
    same = nested == [True, True] and isinstance(nest1, Mapping) == isinstance(nest2, Mapping)
    if same and isinstance(nest1, Mapping):
        same = set(nest1) == set(nest2)
    elif same and (is_composite(nest1) or is_composite(nest2)):
        same = type(nest1) is type(nest2)
    elif same:
        same = len(nest1) == len(nest2)
    if not same:
        raise value_error(
            "The two structures don't have the same nested structure",
            expected=nest1,
            received=nest2,
        )
    for one, other in zip(_children(nest1), _children(nest2), strict=True):
        assert_same_structure(one, other, check_types, **kinds)


def flatten_up_to(shallow: Any, deep: Any) -> list[Any]:
    """Flattens `deep` down to the depth of `shallow`.

    Raises:
        ValueError: `deep` does not have the structure of `shallow`.
    """
    if not is_nested(shallow):
        return [deep]
    if not is_nested(deep) and not hasattr(deep, "__len__"):
        raise value_error(
            "a nested structure is expected", expected=shallow, received=repr(deep)[:200]
        )
    if isinstance(shallow, Mapping):
        parts = [(shallow[key], deep[key]) for key in _sorted_keys(shallow)]
    else:
        if len(shallow) != len(deep):
            raise value_error(
                "the two structures differ in length",
                expected=len(shallow),
                received=len(deep),
            )
        parts = list(zip(shallow, deep, strict=True))
    return [leaf for one, other in parts for leaf in flatten_up_to(one, other)]


def expand(structure: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """Flattens a structure including composites.

    Returns:
        The leaves, and a function that builds the structure from other leaves.
    """

    def rebuild(leaves: Sequence[Any]) -> Any:
        return pack_sequence_as(structure, leaves, expand_composites=True)

    return flatten(structure, expand_composites=True), rebuild


__dir__ = listing(__name__, "expand", "packer")
