"""A campaign says how far it is: lines with an estimate where there is no terminal."""

from __future__ import annotations

from typing import Any

import pytest

from perfmodel.basics.progress import Progress
from perfmodel.measuring.campaign.progress import show


class Work:
    failed, passes = 0, 0

    def __init__(self, done: int) -> None:
        self.done = done


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    now = {"s": 0.0}
    monkeypatch.setattr("time.monotonic", lambda: now["s"])
    return now


def told(shown: bool | None, clock: dict[str, float], steps: list[tuple[float, int]]) -> None:
    work: Any
    with Progress(40, shown) as bar:
        for clock["s"], done in steps:
            work = Work(done)
            show(bar, [work])


def test_a_line_says_now_and_then_what_is_done_and_left(
    clock: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    told(None, clock, [(1, 1), (9, 4), (11, 5), (12, 6), (22, 10), (40, 12), (90, 40)])
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "measuring: 5 of 40, about 77 s left",
        "measuring: 10 of 40, about 66 s left",
        "measuring: 12 of 40, about 93 s left",
        "measuring: 40 of 40",
    ]


def test_minutes_are_said_as_such_and_nothing_where_nothing_is_done(
    clock: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    told(None, clock, [(20, 0), (60, 4)])
    assert capsys.readouterr().err.splitlines() == ["measuring: 0 of 40", "measuring: 4 of 40, about 9 min left"]


def test_nothing_is_said_where_that_is_asked_for(clock: dict[str, float], capsys: pytest.CaptureFixture[str]) -> None:
    told(False, clock, [(20, 1), (60, 4)])
    assert capsys.readouterr().err == ""
