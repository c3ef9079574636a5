"""Flattened indices, such as ``i * n + j``, are taken apart here, by the products of sizes in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfmodel.counting.symbolic import ZERO, Monomial, Polynomial, is_coordinate, quotient_of

MOST_STEP = 16
"""No index moves further before a remainder is taken, and no divisor of which several are counted is larger."""


def divided(value: Polynomial, by: int) -> Polynomial | None:
    """Returns a number of bytes as one of elements, if it is a whole one."""
    if any(c % by for c in value.terms.values()):
        return None
    return Polynomial({monomial: c // by for monomial, c in value.terms.items()})


def is_scattered(index: Polynomial) -> bool:
    """Returns whether an index jumps about in its array, by several remainders or a large multiple's, as hashes do.

    Isl would take minutes for what such an access touches.
    """
    moving = {
        atom
        for monomial in index.terms
        for atom, _ in monomial
        if not isinstance(atom, str) and not _is_size(atom) and (atom.denominator.constant or 0) > MOST_STEP
    }
    return len(moving) > 1 or any(_jumps(atom.numerator, atom.denominator.constant or 1) for atom in moving)


def _jumps(value: Polynomial, divisor: int) -> bool:
    steps = [min(c % divisor, -c % divisor) for monomial, c in value.terms.items() if not _is_of_sizes(monomial)]
    return any(step > MOST_STEP and divisor % step for step in steps) or is_scattered(value)


def weights_of(index: Polynomial) -> list[Monomial]:
    """Returns the products of sizes that coordinates are multiplied with in a flattened index."""
    found = dict.fromkeys(_parts(monomial)[0] for monomial in index.terms if not _is_of_sizes(monomial))
    return list(found)


def by_weight(index: Polynomial, weights: Sequence[Monomial], has_rows: bool = True) -> dict[Monomial, Polynomial]:
    """Returns a flattened index as coordinates: what is multiplied with each of these products of sizes.

    With `has_rows`, what has sizes alone belongs to the largest of them that it is a multiple of.
    """
    found: dict[Monomial, Polynomial] = {}
    for monomial, c in index.terms.items():
        weight, rest = _parts(monomial)
        if _is_of_sizes(monomial):
            multiples = [(w, r) for w in weights if (r := quotient_of(monomial, w)) is not None] if has_rows else []
            weight, rest = max(multiples, key=lambda part: len(part[0]), default=((), monomial))
        found[weight] = found.get(weight, ZERO) + Polynomial({rest: c})
    return found


def _is_of_sizes(monomial: Monomial) -> bool:
    return all(_is_size(atom) for atom, _ in monomial)


def _parts(monomial: Monomial) -> tuple[Monomial, Monomial]:
    """Returns the sizes in a product, and all else."""
    sizes = tuple(part for part in monomial if _is_size(part[0]))
    return sizes, tuple(part for part in monomial if part not in sizes)


def _is_size(atom: Any) -> bool:
    """Returns whether an atom is the same for all work-items and iterations; it is no coordinate, no counter."""
    if isinstance(atom, str):
        return not is_coordinate(atom)
    return not any(map(is_coordinate, atom.numerator.names() | atom.denominator.names()))


def row_of(weights: list[Monomial]) -> str:
    """Returns how many elements a row has: the smallest product of sizes that moves to another one."""
    longer = [weight for weight in weights if weight]
    return (Polynomial({longer[-1]: 1}).isl() or "1") if longer else "1"


def interior(pieces: Sequence[Polynomial], names: Sequence[str]) -> list[Polynomial]:
    """Returns the pieces of an address that most coordinates move.

    Where an index is clamped to a border, only these few work-items do not move; the others are the inside.
    """
    moving = [sum(piece.coefficient(name) != ZERO for name in names) for piece in pieces]
    return [piece for piece, number in zip(pieces, moving, strict=True) if number == max(moving)]
