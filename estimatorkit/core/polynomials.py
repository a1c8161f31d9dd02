"""Polynomials with integer coefficients, of atoms that are numbered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Terms: TypeAlias = tuple[tuple[tuple[int, ...], int], ...]
"""A polynomial: coefficients other than 0 by the numbers of their atoms, sorted."""


def evaluated(terms: Terms, values: Sequence[int]) -> int:
    """The value of a polynomial, given those of the atoms."""
    total = 0
    for atoms, factor in terms:
        for each in atoms:
            factor *= values[each]
        total += factor
    return total


def added(a: Terms, b: Terms, factor: int = 1) -> Terms:
    """a + factor * b."""
    found = dict(a)
    for atoms, each in b:
        found[atoms] = found.get(atoms, 0) + factor * each
    return tuple(sorted(pair for pair in found.items() if pair[1]))


def multiplied(a: Terms, b: Terms) -> Terms:
    """a * b."""
    found: dict[tuple[int, ...], int] = {}
    for one, x in a:
        for other, y in b:
            atoms = tuple(sorted(one + other))
            found[atoms] = found.get(atoms, 0) + x * y
    return tuple(sorted(pair for pair in found.items() if pair[1]))


def divided(a: Terms, b: Terms) -> tuple[Terms, Terms]:
    """The part of `a` that `b` divides, divided by it, and the rest."""
    whole, rest = [], []
    for atoms, factor in a:
        quotient = None
        if len(b) == 1 and factor % b[0][1] == 0:
            left = list(atoms)
            for each in b[0][0]:
                if each not in left:
                    break
                left.remove(each)
            else:
                quotient = tuple(left), factor // b[0][1]
        if quotient is None:
            rest.append((atoms, factor))
        else:
            whole.append(quotient)
    return tuple(sorted(whole)), tuple(rest)


def negative(terms: Terms) -> Terms:
    """-a."""
    return tuple((atoms, -factor) for atoms, factor in terms)
