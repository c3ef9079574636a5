"""Adds up what the blocks of a launch touch; at regular addresses, those that do as much touch as much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from perfmodel.ptx.counting.access_addresses import touched_by
from perfmodel.ptx.counting.counted_access import CountedAccess
from perfmodel.ptx.counting.launch import EmulatedLaunch


def fullest(launch: EmulatedLaunch, accesses: Sequence[CountedAccess]) -> int:
    """Returns the emulated block that does most of some accesses."""
    return int(np.argmax(_made(launch, accesses)))


def bytes_of_blocks(launch: EmulatedLaunch, accesses: Sequence[CountedAccess]) -> float:
    """Returns the bytes that each block touches by some accesses, added up over the grid."""
    is_regular = all(each.addresses.noted.is_regular for each in accesses)
    alike = _made(launch, accesses).tolist() if is_regular else range(len(launch.weights))
    addresses = [each.addresses for each in accesses]
    blocks = {each: block for block, each in enumerate(alike)}
    touched = {each: touched_by(addresses, block).bytes for each, block in blocks.items()}
    return float(sum(weight * touched[each] for weight, each in zip(launch.weights, alike, strict=True)))


def _made(launch: EmulatedLaunch, accesses: Sequence[CountedAccess]) -> NDArray[np.int64]:
    """Returns how many of some accesses each emulated block makes."""
    each = [launch.emulation.tally(access.instruction, access.block).by_block()[0] for access in accesses]
    return np.asarray(sum(each), np.int64)
