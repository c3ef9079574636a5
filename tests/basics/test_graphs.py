"""A small graph, and what is reached in it."""

from __future__ import annotations

from perfmodel.basics.graphs import reached

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
