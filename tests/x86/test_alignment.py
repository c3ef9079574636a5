"""Compares alignments of two sequences with the best one that brute force finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
import pytest

from perfmodel.x86.alignment import FEW, LIKE, RARE, SAME, Item, aligned, paired

Pairing: TypeAlias = Callable[[Sequence[Item], Sequence[Item]], list[int | None]]


def score(one: str, other: str, pairs: list[tuple[int, int]]) -> int:
    """Returns what some pairs of letters are worth: a letter is the same by and large as in the other case."""
    total = 0
    for a, b in pairs:
        if one[a] == other[b]:
            total += RARE if one.count(one[a]) <= FEW else SAME
        elif one[a].lower() == other[b].lower():
            total += LIKE
        else:
            return -1
    return total


def best(one: str, other: str) -> int:
    """Returns the highest score of all ways to pair two texts in order."""
    return max(
        score(one, other, list(zip(chosen, places, strict=True)))
        for count in range(min(len(one), len(other)) + 1)
        for chosen in combinations(range(len(one)), count)
        for places in combinations(range(len(other)), count)
    )


def found(one: str, other: str, pairing: Pairing = aligned) -> list[tuple[int, int]]:
    pairs = pairing([(each.lower(), each) for each in one], [(each.lower(), each) for each in other])
    assert len(pairs) == len(one)
    return [(a, b) for a, b in enumerate(pairs) if b is not None]


@pytest.mark.parametrize("seed", range(12))
def test_the_best_alignment_is_found(seed: int) -> None:
    random = np.random.default_rng(seed)
    one, other = ("".join(random.choice(list("abAB"), random.integers(0, 8))) for _ in range(2))
    pairs = found(one, other)
    assert [b for _, b in pairs] == sorted({b for _, b in pairs})
    assert score(one, other, pairs) == best(one, other)


def test_what_was_put_in_between_has_no_pair() -> None:
    text = "the quick brown fox jumps over the lazy dog"
    assert found(text, "the quick and dirty brown fox jumps over the lazy dog")[:5] == [(n, n) for n in range(5)]
    assert [b - a for a, b in found(text[10:], text)] == [10] * len(text[10:])


def test_long_sequences_are_paired_near_the_diagonal() -> None:
    random = np.random.default_rng(0)
    one = "".join(random.choice(list("abcdefgh"), 9000))
    other = one[:4000] + "".join(random.choice(list("xyz"), 500)) + one[4000:]
    assert found(one, other) == [(n, n if n < 4000 else n + 500) for n in range(9000)]


def test_a_part_that_has_moved_is_paired_with_itself() -> None:
    assert found("abcdefghijklmnopqrst", "abcdefghopqrstijklmn", paired) == [
        *((n, n) for n in range(8)),
        *((n, n + 6) for n in range(8, 14)),
        *((n, n - 6) for n in range(14, 20)),
    ]
