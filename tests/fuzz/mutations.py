"""Mutations of inputs: of any bytes, and of JSON and protocol buffers along their structure.

Most flipped bytes of a structured input are refused by its parser; what lies behind sees values of
wrong types, sizes and names only if the structure stays intact.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from estimatorkit.storage.wire import encoded_varint, fields

NUMBERS = (
    0,
    1,
    -1,
    2,
    127,
    255,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    1 << 32,
    (1 << 62),
    (1 << 63) - 1,
)
_TEXTS = ("", "/", "../x", "\0", "a" * 300, "\ud800", "nan", "1e999", "-1", "é")
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0.5, 1e300, -0.0, [], {}, [[]], [None], {"": None}),
    *(*NUMBERS, 1 << 64, 10**400, *_TEXTS),
)
_TOKENS = (b'"', b"'", b",", b"\n", b"\r", b":", b"- ", b"{", b"[", b"&a ", b"*a", b"\0", b"\xff")


def mutated_bytes(data: bytes, random: Random, other: bytes) -> bytes:
    """One to four changes: flips, replaces, removes or repeats bytes, or splices with `other`."""
    result = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(result) + 1)
        size = min(random.choice((1, 1, 2, 4, 8, 16, 100)), len(result) - at)
        match random.randrange(8):
            case 0 if size:
                result[at] ^= 1 << random.randrange(8)
            case 1 if size:
                result[at : at + 1] = random.choice((b"\0", b"\1", b"\x7f", b"\x80", b"\xff"))
            case 2:
                del result[at : at + size]
            case 3:
                result[at:at] = result[at : at + size] * random.choice((1, 2, 50))
            case 4:
                width = random.choice((2, 4, 8))
                number = random.choice(NUMBERS) & (1 << 8 * width) - 1
                order: Any = random.choice(("little", "big"))
                result[at : at + width] = number.to_bytes(width, order)
            case 5:
                result[at:at] = random.choice(_TOKENS)
            case 6 if random.random() < 0.3:
                del result[at:]
            case _ if other:
                start = random.randrange(len(other))
                result[at : at + size] = other[start : start + random.choice((1, 8, 64, 512))]
    return bytes(result)


def mutated_json(data: bytes, random: Random, other: bytes) -> bytes:
    """Replaces, removes, wraps or copies values of a JSON text."""
    try:
        root = [json.loads(data)]
    except (ValueError, RecursionError):
        return mutated_bytes(data, random, other)
    for _ in range(random.choice((1, 1, 2, 3))):
        places = list(_places(root))
        holder, key = random.choice(places)
        match random.randrange(6):
            case 0:
                source, name = random.choice(places)
                holder[key] = copy.deepcopy(source[name])
            case 1:
                holder[key] = random.choice(([holder[key]], {"": holder[key]}))
            case 2 if holder is not root:
                del holder[key]
            case 3 if isinstance(holder, dict):
                holder[random.choice(_TEXTS)] = holder.pop(key)
            case _:
                holder[key] = copy.deepcopy(random.choice(_VALUES))
    return json.dumps(root[0] if root else None).encode()


def _places(holder: Any) -> Any:
    """Yields the (container, key or index) of all values below a container."""
    for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
        yield holder, key
        if isinstance(value, (dict, list)):
            yield from _places(value)


def mutated_proto(data: bytes, random: Random, other: bytes) -> bytes:
    """Changes one field of a protocol buffer, at any depth."""
    try:
        found = list(fields(data))
    except ValueError:
        return mutated_bytes(data, random, other)
    if not found:
        return data + random.choice((b"", b"\x08\x01", b"\x0a\x00"))
    at = random.randrange(len(found))
    number, value = found[at]
    choice = random.randrange(12)
    if choice == 0:
        del found[at]
    elif choice == 1:
        found.insert(random.randrange(len(found) + 1), found[at])
    elif choice == 2:
        found[at] = (random.choice(found)[0], value)
    elif choice == 3:
        found[at] = (number, random.choice(found)[1])
    elif isinstance(value, int):
        found[at] = (number, random.choice((*NUMBERS, value + 1, random.randrange(100))))
    elif choice == 4 or not value:
        new = random.choice(_TEXTS).encode(errors="replace")
        found[at] = (number, random.choice((new, value + value, other[:100])))
    elif choice == 5:
        found[at] = (number, mutated_bytes(value, random, other))
    else:
        found[at] = (number, mutated_proto(value, random, other))
    return b"".join(_encoded(*each) for each in found)


def _encoded(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return encoded_varint(number << 3) + encoded_varint(value & (1 << 64) - 1)
    return encoded_varint(number << 3 | 2) + encoded_varint(len(value)) + value


MUTATORS: dict[str, Callable[[bytes, Random, bytes], bytes]] = {
    "bytes": mutated_bytes,
    "json": mutated_json,
    "proto": mutated_proto,
}


def mutated(kind: str, data: bytes, random: Random, seeds: Sequence[bytes]) -> bytes:
    """A mutation of an input; every fifth of its bytes, whatever its kind."""
    chosen = MUTATORS["bytes" if random.random() < 0.2 else kind]
    return chosen(data, random, random.choice(seeds) if seeds else b"")
