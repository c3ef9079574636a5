"""Finds the addresses that the work-items of a group access, as far as strides or the first groups' addresses tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.counts import AccessCount, KernelCounts
from perfmodel.features.memory_access import ZERO, Floats, Sizes

MOST = 4096
"""The addresses of so many work-items are looked at."""


def of_group(
    counts: KernelCounts, access: AccessCount, sizes: Sizes, of_places: Callable[[NDArray[np.int64], int], float]
) -> Floats | None:
    """Averages a function of the addresses of a group's work-items in one execution of an access; None where they are
    not known.

    Args:
        of_places: a number, from addresses in bytes and the bytes of an access; the least one in the first block.
    """
    item = access.bits // 8
    extents = [extent(sizes) for extent in counts.local_size]
    strides = [access.local_strides.get(axis, ZERO) for axis in range(len(extents))]
    if None in strides:
        if access.places is None:
            return None
        return np.asarray(np.mean([of_places(np.asarray(group, np.int64), item) for group in access.places]))
    steps = [stride(sizes) for stride in strides if stride is not None]
    columns = np.broadcast_arrays(*extents, *steps, np.asarray(0.0))[:-1]
    if not columns:
        return np.asarray(of_places(np.zeros(1, np.int64), item))
    rows, inverse = np.unique(np.stack([c.ravel() for c in columns], axis=1), axis=0, return_inverse=True)
    rank = len(extents)
    found = [of_places(_affine(row[:rank], row[rank:] * item), item) for row in rows.astype(np.int64)]
    return np.asarray(found)[inverse.ravel()].reshape(columns[0].shape)


def _affine(extents: Sequence[Any], steps: Sequence[Any]) -> NDArray[np.int64]:
    linear = np.arange(min(int(np.prod(extents)), MOST), dtype=np.int64)
    addresses, rest = np.zeros_like(linear), linear
    for extent, step in zip(extents, steps, strict=True):
        addresses, rest = addresses + rest % extent * step, rest // extent
    return _from_least(addresses)


def _from_least(addresses: NDArray[np.int64]) -> NDArray[np.int64]:
    least: NDArray[np.int64] = addresses - addresses.min()
    return least
