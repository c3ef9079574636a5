"""Local memory is served by banks: how many cycles a sub-group's access takes them.

A bank gives one word a cycle, to all that ask for it. What is wider than a word goes in passes, each of as many
work-items as fill all banks once: half a sub-group of 32 for 8 bytes each, a quarter for 16; wider vectors are several
accesses of 16 bytes. Two passes of a load from local memory are one where neighbours are at one place two by two, or
each work-item and the next but one are (`benchmarks.bank_places`, on an H200); no store's are, and no load's from
global memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import distinct

Integers = NDArray[np.int64]

WIDEST = 16
"""Bytes that one instruction moves for a work-item at most."""
WORD_BYTES = 4


def share_places(direction: str, space: str, *, is_constant: bool = False) -> bool:
    """Returns whether work-items share what is at one place: what they load from local memory, or of constants."""
    return direction == "load" and (space == "local" or is_constant)


def bank_cycles(
    addresses: Integers,
    item: int,
    banks: int,
    word: int = WORD_BYTES,
    active: NDArray[np.bool_] | None = None,
    *,
    are_shared: bool = False,
    are_copied: bool = False,
) -> tuple[Integers, Integers]:
    """Returns how many cycles accesses take, and how many they would if their words were spread evenly over the banks.

    Args:
        addresses: in bytes, of a sub-group's work-items in a row, shape (R, L).
        item: bytes that each work-item moves.
        banks: how many there are, each of words of `word` bytes.
        active: which of them access anything, shape (R, L); all if left out.
        are_shared: whether work-items share what is at one place (`share_places`).
        are_copied: whether it goes from memory to memory, so that neighbours at one place are one: nobody gets it.

    Returns:
        Two arrays of shape (R,).
    """
    rows, lanes = addresses.shape
    known = np.ones(addresses.shape, bool) if active is None else active
    if are_copied:
        known = known & np.insert(addresses[:, 1:] != addresses[:, :-1], 0, True, axis=1)
    at_once = max(1, banks * word // min(item, WIDEST)) if item > word else lanes
    most = -(-lanes // at_once)
    passes = np.broadcast_to(np.arange(lanes) // at_once, addresses.shape)
    if are_shared and most > 1:
        passes = passes - passes % 2 * _are_one(addresses, known, 2 * at_once)
    group = (np.arange(rows)[:, None] * most + passes)[known]
    first = addresses[known] // word
    cycles, least = (np.zeros(rows, np.int64) for _ in range(2))
    for start in range(0, item, WIDEST):
        steps = np.arange(start // word, max(start // word + 1, min(item, start + WIDEST) // word))
        words = (first[:, None] + steps).ravel()
        if not words.size:
            break
        low = int(words.min())
        span = int(words.max()) - low + 1
        different = distinct(np.repeat(group, len(steps)) * span + (words - low))
        groups, words = different // span, different % span + low
        served = np.bincount(groups * banks + words % banks, minlength=rows * most * banks)
        served = served.reshape(rows, most, banks)
        cycles += served.max(axis=2).sum(axis=1)
        least += (-(-served.sum(axis=2) // banks)).sum(axis=1)
    return cycles, least


def _are_one(addresses: Integers, active: NDArray[np.bool_], lanes: int) -> NDArray[np.bool_]:
    """Returns of each work-item whether so many, two passes, are at one place two by two, in one of two ways."""
    size = addresses.shape[1]
    which = np.arange(size) // lanes
    found = np.zeros(addresses.shape, bool)
    for away in (1, 2):
        partner = np.minimum(np.arange(size) ^ away, size - 1)
        alone = ~(active & active[:, partner])
        alike = np.add.reduceat(~(alone | (addresses == addresses[:, partner])), np.arange(0, size, lanes), axis=1) == 0
        found |= alike[:, which]
    return found
