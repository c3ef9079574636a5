"""A small graph, and what is reached in it."""

from __future__ import annotations

import random

import pytest

from perfmodel.basics.graphs import dominates, immediate_dominators, reached

GRAPH = {1: [2, 3], 2: [4], 3: [4, 1], 4: [], 5: [1]}


def test_what_is_reached_has_its_start_and_ends_in_circles() -> None:
    asked: list[int] = []

    def following(node: int) -> list[int]:
        asked.append(node)
        return GRAPH[node]

    assert reached([1], following) == {1, 2, 3, 4}
    assert sorted(asked) == [1, 2, 3, 4]
    assert reached([2, 5], GRAPH.__getitem__) == {1, 2, 3, 4, 5}
    assert reached([], following) == set()


@pytest.mark.parametrize("seed", range(40))
def test_a_node_dominates_those_that_nothing_reaches_without_it(seed: int) -> None:
    chance = random.Random(seed)
    graph = {node: chance.choices(range(10), k=chance.randrange(4)) for node in range(10)}
    before = {node: [each for each in graph if node in graph[each]] for node in graph}
    found = immediate_dominators(0, graph.__getitem__, before.__getitem__)
    assert found.keys() == reached([0], graph.__getitem__)
    for above in found:
        without = set() if above == 0 else reached([0], lambda n, a=above: [e for e in graph[n] if e != a])  # type: ignore[misc]
        assert {below for below in found if dominates(found, above, below)} == found.keys() - (without - {above})
