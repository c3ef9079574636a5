"""Sorts the addresses of one execution by sub-groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from perfmodel.ptx.counting.loop_steps import subgroups_of
from perfmodel.ptx.emulation.lanes import Lanes, Mask
from perfmodel.ptx.emulation.recording import NOWHERE

Array = NDArray[np.int64]


def by_subgroups(lanes: Lanes, mask: Mask, addresses: Array, width: int, unit: int, *, in_place: bool) -> Array:
    """Returns the addresses of the lanes that take part in one execution, a row for each sub-group.

    Args:
        width: lanes of a sub-group, and columns of the result.
        unit: addresses are bytes from the last multiple of so many at or before those of a row's first lane.
        in_place: whether a lane's column is its place in the sub-group, with `NOWHERE` in those of lanes that do not
            take part; if not, these are at the end of the rows.
    """
    if mask.columns is None:
        blocks, within, subgroups = 1, mask.within, subgroups_of(lanes, mask, width)
    else:
        blocks, within, subgroups = lanes.count, mask.columns, mask.columns // width
    starts = np.flatnonzero(np.diff(subgroups, prepend=-1))
    rows = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(within)))
    found = addresses.reshape(blocks, -1)
    found = found - (found[:, starts] // unit * unit)[:, rows]
    if len(within) == len(starts) * width:
        return found.reshape(-1, width)
    table = np.full((blocks, len(starts), width), NOWHERE)
    table[:, rows, within % width if in_place else np.arange(len(rows)) - starts[rows]] = found
    return table.reshape(-1, width)


def others_met(lanes: Lanes, executions: Sequence[tuple[Mask, Array]], width: int) -> float:
    """Returns how many lanes of other sub-groups of its block go to the place where most of a sub-group's lanes go, for
    each of these, in one execution, on average."""
    per_block = -(-lanes.per_block // width)
    found: list[Array] = []
    for mask, addresses in executions:
        places, numbers = np.unique(addresses, return_inverse=True)
        own, times = np.unique(subgroups_of(lanes, mask, width) * len(places) + numbers, return_counts=True)
        subgroups, numbers = np.divmod(own, len(places))
        _, of_block = np.unique(subgroups // per_block * len(places) + numbers, return_inverse=True)
        together = np.bincount(of_block, weights=times)[of_block]
        most = np.lexsort((times, subgroups))[np.flatnonzero(np.diff(subgroups, append=-1))]
        found.append(together[most] / times[most] - 1)
    return float(np.concatenate(found).mean()) if found else 0.0


def in_tiles(offsets: Array, row_bytes: int) -> Array:
    """Returns where bytes of an image lie in memory, by where they would lie row by row.

    NVIDIA's GPUs keep images in tiles of 64 bytes by 8 rows, whose sectors of 32 bytes have 16 of two rows each (Linux
    kernel, drm_fourcc.h, on the sector layout of block-linear surfaces).
    """
    y, x = np.divmod(offsets, row_bytes)
    tile = y // 8 * -(-row_bytes // 64) + x // 64
    within = x % 64 // 32 * 256 + y % 8 // 2 * 64 + x % 32 // 16 * 32 + y % 2 * 16 + x % 16
    return np.asarray(tile * 512 + within)
