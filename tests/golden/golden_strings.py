"""The strings that `make_string_hashes.py` hashes with TensorFlow, and the tests with this package.

They are made by a generator of our own (a linear congruence), so that no library's change of its
random numbers changes them.
"""

from __future__ import annotations

KEY = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
NUM_BUCKETS = (1 << 61) - 1
LITERAL = 160
"""How many values the golden file holds as they are; the rest by a checksum."""


def hashed_strings(count: int = 10_000) -> list[bytes]:
    """Empty, each length from 1 to 300 in turn, all bytes; and words that are not ASCII."""
    state = 12345
    strings = []
    for number in range(count - 4):
        made = bytearray()
        for _ in range(number % 301):
            state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
            made.append(state >> 56)
        strings.append(bytes(made))
    return [*strings, "größer".encode(), "数据".encode(), b"a\0", b"a"]
