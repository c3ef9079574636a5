"""Says how often updates and stores of different blocks meet at one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from perfmodel.counting.contention import Contention, contention_of, waiting_in_turn
from perfmodel.ptx.counting.access_addresses import AccessAddresses, Array
from perfmodel.ptx.emulation.lanes import WARP, Lanes, Mask
from perfmodel.ptx.emulation.recording import NOWHERE


def contention(access: AccessAddresses, item: int, *, are_updates: bool, are_repeated: bool) -> Contention | None:
    """Returns how often threads of different blocks meet at numbers of so many bytes.

    Updates that a warp makes at once count as often as a sector takes them one after the other. Those that are repeated
    until they succeed count each at first; those that are made again are of those who met before.
    """
    executions = access.noted.scattered or access.looked_at
    if access.lanes.count < 2 or not executions:
        return None
    if are_repeated:
        executions = list(_first_of(access.lanes, executions))
    addresses = np.concatenate([own for _, own in executions])
    index = np.concatenate([mask.index for mask, _ in executions])
    if are_updates and not are_repeated:
        number = np.repeat(np.arange(len(executions)), [len(own) for _, own in executions])
        waiting = waiting_in_turn(addresses, number * access.lanes.total + index // WARP, item)
        addresses, index = addresses[waiting], index[waiting]
    return contention_of(addresses, access.lanes.block_of[index], item, are_updates)


def _first_of(lanes: Lanes, executions: Sequence[tuple[Mask, Array]]) -> Iterator[tuple[Mask, Array]]:
    """Yields the executions in which some lanes go elsewhere than the last time."""
    last = np.full(lanes.total, NOWHERE)
    for mask, own in executions:
        if (last[mask.index] != own).any():
            yield mask, own
        last[mask.index] = own
