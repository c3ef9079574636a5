"""Passes of atomics, against what a reader would count one work-item at a time."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.counting.atomics import bank_passes, expected_passes, sector_passes

SUBGROUPS = st.lists(st.lists(st.one_of(st.none(), st.integers(0, 40)), min_size=8, max_size=8), min_size=1, max_size=4)


def at_sectors(places: list[int]) -> int:
    met = Counter(places)
    return sum(max(met[place] for place in met if place // 32 == sector) for sector in {at // 32 for at in places})


def at_banks(places: list[int], item: int, banks: int) -> int:
    """Returns the cycles of banks, of passes of so few work-items that each bank could serve one."""
    at_once = len(places) or 1 if item == 4 else banks * 4 // item
    passes = [places[start : start + at_once] for start in range(0, len(places), at_once)]
    served = [Counter(word % banks for at in own for word in range(at // 4, (at + item) // 4)) for own in passes]
    return sum(max(each.values()) for each in served)


@settings(max_examples=60, deadline=None)
@given(SUBGROUPS, st.sampled_from([4, 8]), st.sampled_from([4, 32]))
def test_passes_are_the_most_at_one_place(rows: list[list[int | None]], item: int, banks: int) -> None:
    active = np.array([[each is not None for each in row] for row in rows])
    addresses = np.array([[item * (each or 0) for each in row] for row in rows])
    taking = [[item * each for each in row if each is not None] for row in rows]
    assert sector_passes(addresses, 32, active).tolist() == [at_sectors(own) for own in taking]
    assert bank_passes(addresses, item, banks, active=active).tolist() == [at_banks(own, item, banks) for own in taking]


@settings(deadline=None)
@given(SUBGROUPS)
def test_those_that_are_tried_again_ask_until_each_has_had_its_turn(rows: list[list[int | None]]) -> None:
    """One of those who meet at a place succeeds in each round, and all others of it ask for their sector again."""
    active = np.array([[each is not None for each in row] for row in rows])
    addresses = np.array([[4 * (each or 0) for each in row] for row in rows])
    expected = []
    for row in rows:
        left = [4 * each for each in row if each is not None]
        asked = 0
        while left:
            asked += at_sectors(left)
            for place in set(left):
                left.remove(place)
        expected.append(asked)
    assert sector_passes(addresses, 32, active, are_tried_again=True).tolist() == expected


def test_work_items_that_go_anywhere_meet_in_few_places_only() -> None:
    one, sector, many = expected_passes(np.array([1, 8, 2**24]), 32)
    assert one == 32
    assert 7 < sector < 9  # the most of 32 balls in 8 boxes
    assert abs(many - 32) < 0.1  # sectors of their own
