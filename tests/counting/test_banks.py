"""Cycles of local memory's banks are those that an H200 took for a sub-group's access (benchmarks.bank_places)."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel.counting.banks import bank_cycles

LANE = np.arange(32)
SIDE_BY_SIDE, ONE_PLACE = LANE, LANE * 0
MEASURED = [
    # Bytes of each, places in items, cycles of loads and of stores.
    (4, ONE_PLACE, 1, 1),
    (4, SIDE_BY_SIDE, 1, 1),
    (8, ONE_PLACE, 1, 2),
    (8, SIDE_BY_SIDE, 2, 2),
    (8, LANE % 2 * 16, 2, 4),
    (8, LANE % 2, 1, 2),
    (8, LANE % 4 * 16, 8, 8),
    (8, LANE // 8 * 16, 4, 4),
    (8, LANE // 8, 1, 2),
    (8, LANE // 2 * 16, 16, 16),
    (16, ONE_PLACE, 2, 4),
    (16, SIDE_BY_SIDE, 4, 4),
    (16, LANE % 2 * 8, 4, 8),
    (16, LANE % 2, 2, 4),
    (16, LANE % 4 * 8, 16, 16),
    (16, LANE // 16 * 8, 2, 4),
    (16, LANE // 8 * 8, 4, 4),
    (16, LANE // 8, 2, 4),
    (16, LANE % 16, 4, 4),
    (16, LANE // 2, 2, 4),
]


@pytest.mark.parametrize(("item", "places", "loads", "stores"), MEASURED)
def test_wide_accesses_go_in_passes_that_loads_share(item: int, places: np.ndarray, loads: int, stores: int) -> None:
    addresses = (places * item)[None]
    assert bank_cycles(addresses, item, 32, are_shared=True)[0] == loads
    assert bank_cycles(addresses, item, 32)[0] == stores


def test_who_takes_no_part_keeps_no_passes_apart() -> None:
    addresses, active = (LANE % 2 * 128)[None], (LANE < 24)[None]
    addresses[:, 24:] = 16 * LANE[24:]
    assert bank_cycles(addresses, 16, 32, active=active, are_shared=True)[0] == 4
    assert bank_cycles(addresses, 16, 32, are_shared=True)[0] == 2 + 1 + 1 + 1
