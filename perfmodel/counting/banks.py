"""Local memory is served by banks: how many cycles a sub-group's access takes them.

A bank gives one word a cycle, to all that ask for it. What is wider than a word goes in passes, each of as many
work-items as fill all banks once: half a sub-group of 32 for 8 bytes each, a quarter for 16; wider vectors are several
accesses of 16 bytes. Neighbours at one address are one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import distinct

Integers = NDArray[np.int64]

WIDEST = 16
"""Bytes that one instruction moves for a work-item at most."""
WORD_BYTES = 4


def bank_cycles(
    addresses: Integers, item: int, banks: int, word: int = WORD_BYTES, active: NDArray[np.bool_] | None = None
) -> tuple[Integers, Integers]:
    """Returns how many cycles accesses take, and how many they would if their words were spread evenly over the banks.

    Args:
        addresses: in bytes, of a sub-group's work-items in a row, shape (R, L).
        item: bytes that each work-item moves.
        banks: how many there are, each of words of `word` bytes.
        active: which of them access anything, shape (R, L); all if left out.

    Returns:
        Two arrays of shape (R,).
    """
    rows = len(addresses)
    places = np.broadcast_to(np.arange(addresses.shape[1]), addresses.shape)
    known = places >= 0 if active is None else active
    last = np.maximum.accumulate(np.where(known, places, -1), axis=1)
    before = np.concatenate([np.full((rows, 1), -1), last[:, :-1]], axis=1)
    is_first = known & ((before < 0) | (addresses != np.take_along_axis(addresses, np.maximum(before, 0), axis=1)))
    at_once = max(1, banks * word // min(item, WIDEST)) if item > word else addresses.shape[1]
    passes = np.maximum(np.cumsum(is_first, axis=1) - 1, 0) // at_once
    most = int(passes.max(initial=0)) + 1
    group = (np.arange(rows)[:, None] * most + passes)[is_first]
    first = addresses[is_first] // word
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
