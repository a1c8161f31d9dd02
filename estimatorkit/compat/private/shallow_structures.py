"""`tensorflow.python.util.nest`: flattens and maps structures as deep as a shallower one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimatorkit.core.nest import (
    flatten,
    flatten_up_to as leaves_up_to,
    is_namedtuple,
    is_nested,
    pack_sequence_as,
)


def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Checks that `input_tree` has at least the structure of `shallow_tree`.

    Args:
        shallow_tree: a structure; its leaves match any part of `input_tree`.
        input_tree: a structure.
        check_types: whether sequences must be of the same type.
        expand_composites: whether sparse tensors and other composites are structures too.

    Raises:
        TypeError: `input_tree` has a leaf instead of a structure, or a structure of another type.
        ValueError: lengths or keys differ.
    """
    if not is_nested(shallow_tree, expand_composites=expand_composites):
        return
    if not is_nested(input_tree, expand_composites=expand_composites):
        raise TypeError(
            "If shallow structure is a sequence, input must also be a sequence. Input has type: "
            f"{type(input_tree)}."
        )
    mappings = isinstance(shallow_tree, Mapping) and isinstance(input_tree, Mapping)
    if check_types and not mappings and not _same_type(shallow_tree, input_tree):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has type "
            f"{type(input_tree)}, while shallow structure has type {type(shallow_tree)}."
        )
    if not hasattr(shallow_tree, "__len__"):  # a composite, or an instance of an attrs class
        return
    if len(shallow_tree) != len(input_tree):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure has length "
            f"{len(input_tree)}, while shallow structure has length {len(shallow_tree)}."
        )
    if mappings:
        missing = sorted(set(shallow_tree) - set(input_tree))
        if missing:
            raise ValueError(
                "The shallow_tree's keys are not a subset of the input_tree's keys. The "
                "shallow_tree has the following keys that are not in the input_tree: "
                f"{missing}."
            )
        pairs = [(shallow_tree[key], input_tree[key]) for key in shallow_tree]
    else:
        pairs = list(zip(shallow_tree, input_tree, strict=True))
    for one, other in pairs:
        assert_shallow_structure(one, other, check_types, expand_composites)


def _same_type(one: Any, other: Any) -> bool:
    if is_namedtuple(one) and is_namedtuple(other):
        same: bool = type(one).__name__ == type(other).__name__ and one._fields == other._fields
        return same
    return isinstance(other, type(one))


def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[Any]:
    """The parts of `input_tree` at the leaves of `shallow_tree`, from left to right.

    See `assert_shallow_structure`.
    """
    assert_shallow_structure(shallow_tree, input_tree, check_types, expand_composites)
    return leaves_up_to(shallow_tree, input_tree)


def map_structure_up_to(
    shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any
) -> Any:
    """Maps the parts of the inputs at the leaves of `shallow_tree`; returns its structure.

    Args:
        shallow_tree: see `assert_shallow_structure`.
        func: takes one part of each input.
        inputs: structures.
        kwargs: `check_types` and `expand_composites`, see `assert_shallow_structure`.

    Raises:
        ValueError: there are no inputs.
    """
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    flat = [flatten_up_to(shallow_tree, each, **kwargs) for each in inputs]
    return pack_sequence_as(shallow_tree, [func(*parts) for parts in zip(*flat, strict=True)])


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """A dict with the leaves of keys and values as its keys and values.

    Raises:
        TypeError: `dictionary` is not a mapping.
        ValueError: a key and its value differ in their number of leaves, or a key occurs twice.
    """
    if not isinstance(dictionary, Mapping):
        raise TypeError(
            "FlattenDictItems: 'dict' must be a dictionary or collection.Mapping type object, "
            f"instead of '{type(dictionary).__name__}'."
        )
    found: dict[Any, Any] = {}
    for key, value in dictionary.items():
        keys, values = ([key], [value])
        if is_nested(key):
            keys, values = flatten(key), flatten(value)
        if len(keys) != len(values):
            raise ValueError(
                f"Could not flatten dictionary. Key had {len(keys)} elements, but value had "
                f"{len(values)} elements. Key: {keys}, value: {values}."
            )
        for each, leaf in zip(keys, values, strict=True):
            if each in found:
                raise ValueError(f"Cannot flatten dict because this key is not unique: {each}")
            found[each] = leaf
    return found
