"""Tests what times a tuned product on a device: programs are checked and measured, searches cost what they cost."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.published.spaces import SPACES
from benchmarks.tuned_on_device import judging, live, measuring, programs
from benchmarks.tuned_on_device.__main__ import main
from perfmodel.device import find_device
from perfmodel.measuring.store import Measurement, Store
from tests.measuring.stores import measurement

SIDE = 256
SMALL = [(16, 16, 32, 8, 8, 8, 8, 2, 1, 1, 0, 0), (16, 32, 32, 8, 8, 8, 8, 2, 2, 1, 1, 0)]


def test_programs_are_all_different_and_chosen_by_seed() -> None:
    every = programs.by_chance(10**6, 1)
    assert len(set(every)) == len(every) == 9180
    assert programs.by_chance(20, 3) == programs.by_chance(20, 3) != programs.by_chance(20, 4)
    assert {programs.values(programs.configuration(each)) for each in every[:50]} == set(every[:50])


def test_published_times_are_those_of_programs(tmp_path: Path) -> None:
    """Two rows of one program, which differ in what does nothing, and one that a device lacks."""
    other = {"STRM": 0, "STRN": 0, "PRECISION": 32}
    rows = [programs.configuration(SMALL[0]) | other, programs.configuration(SMALL[0]) | other | {"MDIMA": 16}]
    rows.append(programs.configuration(SMALL[1]) | other)
    pd.DataFrame(rows)[sorted(SPACES["gemm"].parameters)].to_csv(tmp_path / "configurations.csv.gz", index=False)
    pd.DataFrame({"A": [1.0, 3.0, 4.0], "B": [5.0, 5.0, None]}).to_csv(tmp_path / "times.csv.gz", index=False)
    (tmp_path / "devices.json").write_text('{"A": {"name": "A"}, "B": {"name": "B"}}')
    found = programs.published_times(tmp_path, 5, 1)
    assert found.index.tolist() == [SMALL[0]]
    assert found.iloc[0].tolist() == [2.0, 5.0]


def test_programs_are_measured_judged_and_searched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is done twice: what is in the store is not measured again, nor is a search run again."""
    store, device = tmp_path / "times.sqlite", find_device("cpu")

    def run(command: str, *options: str) -> str:
        usual = ["--side", str(SIDE), "--sample", "2", "--jobs", "1", *options]
        monkeypatch.setattr(sys, "argv", ["tuned_on_device", command, str(store), *usual])
        main()
        return capsys.readouterr().out

    monkeypatch.setattr("benchmarks.tuned_on_device.__main__.by_chance", lambda count, seed: SMALL)
    monkeypatch.setattr(live, "SEARCHES", [])
    assert "2 measured" in run("measure", "--device", "cpu")
    assert "2 known from the store" in run("measure", "--device", "cpu")
    assert set(measuring.building_times(store)) == set(SMALL)
    with Store(store) as opened:
        found = programs.measured(opened, device, SIDE)
        assert not programs.measured(opened, device, 2 * SIDE)
    assert set(found) == set(SMALL)
    judged = {line[:28].strip(): line.split()[-1] for line in run("judge").splitlines() if line}
    assert judged["programs"] == "2"
    assert float(judged["best of the first 8"]) == 1
    assert judged["within 30 %"] in ("0.0%", "50.0%", "100.0%")
    first = run("live", "--seeds", "1")
    assert "2 programs predicted" in first
    assert "predicted" not in (again := run("live", "--seeds", "1"))
    assert "perfmodel.tune" in again
    assert again.splitlines()[-6:] == first.splitlines()[-6:]


def row(milliseconds: float) -> Measurement:
    return replace(measurement(), trials=(milliseconds / 1e3,) * 3, dropped=0)


def test_a_search_costs_what_its_programs_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SEARCHES", ["random_sample"])
    chosen = programs.by_chance(40, 1)
    rows = {each: row(10 + place) for place, each in enumerate(chosen)}
    found = live.simulated(rows, dict.fromkeys(chosen, 2.0), 3)
    assert len(found) == 2
    for each in chain.from_iterable(found.values()):
        assert each.building_s == pytest.approx(2 * min(each.runs, 20))
        assert (each.times_best <= 1.03) == (each.runs < 21)
        assert each.running_s >= 0.03 * min(each.runs, 20)
    order = next(iter(found.values()))[0]
    assert order.seconds == order.building_s + order.running_s


def test_devices_that_are_alike_are_seen() -> None:
    chosen = programs.by_chance(30, 1)
    times = {each: 1e-3 * (1 + place) for place, each in enumerate(chosen)}
    own = list(times.values())
    published = pd.DataFrame({"same": [2 * each for each in own], "other": own[::-1]})
    published.index = pd.Index(chosen, tupleize_cols=False)
    shown = judging.likeness(times, published)
    (same,) = (line for line in shown.splitlines() if line.startswith("same") and " to " in line)
    assert same.split()[1:6] == ["2.00", "2.00", "to", "2.00", "0.1%"]
    assert "-1.00" in shown
