"""Campaigns with simulated times: plans, budgets, resuming, failures, several devices, interruptions."""

from __future__ import annotations

import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import perfmodel as pm
from benchmarks.campaigns import Instant
from perfmodel.basics.errors import DeviceError, MeasurementError, PerfmodelError, StoreError
from perfmodel.basics.tables import memory
from perfmodel.device import Device
from perfmodel.measuring.campaign import LOST, STOPPED, Campaign, CampaignResult, DeviceResult
from perfmodel.measuring.campaign.plan import duration
from perfmodel.measuring.campaign.result import Result, grouped
from perfmodel.measuring.campaign.run import Run
from perfmodel.measuring.campaign.work import DeviceWork
from perfmodel.measuring.isolation import bench
from perfmodel.measuring.isolation.bench import FAILURES_IN_A_ROW, Batch
from perfmodel.measuring.isolation.locks import FOLDER_VARIABLE
from perfmodel.measuring.isolation.process import ProcessLimits
from tests.kill_campaigns import kill_campaigns
from tests.simulated_campaign import PROTOCOL, all_kernels, expected_rows
from tests.simulated_kernels import kernel, kernels
from tests.simulated_timers import HANGS_VARIABLE, SECONDS_VARIABLE

STEADY = "tests.simulated_timers:steady"
ROOT = Path(pm.__file__).parents[1]


@pytest.fixture(autouse=True)
def own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "locks"))


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves no measuring process of another test, whose environment it would have."""
    monkeypatch.setattr(bench, "_benches", {})


def campaign(count: int, store: object, cpu: Device, **options: object) -> Campaign:
    options = {"devices": [cpu], "protocol": PROTOCOL, "timer": STEADY} | options
    return Campaign(all_kernels(count), store=store, **options)  # type: ignore[arg-type]


def stored(store: pm.Store) -> dict[str, tuple[float, ...]]:
    return {row.key: row.trials for row in store} | dict.fromkeys(store.failures(), ())


def test_every_kernel_has_a_time_or_a_reason(cpu: Device) -> None:
    with pm.Store() as store:
        result = campaign(50, store, cpu).run(progress=False)
        assert stored(store) == expected_rows(50, cpu)
        assert all(row.conditions["cost_s"] > 0 for row in store)
    assert result.is_complete
    (found,) = result.devices
    assert (found.new, found.known, found.unmeasured) == (50, 0, 0)
    assert "52 kernels: 50 measured, 0 known from the store, 2 failed" in str(result)
    assert "failed: refuse n=64: kernel 'refuse' is refused: ask for less" in str(result)
    assert result.as_json()["devices"][0]["failed"]["refuse n=64"] == "kernel 'refuse' is refused: ask for less"


def test_a_campaign_is_resumed_and_added_to(cpu: Device, tmp_path: Path) -> None:
    path = tmp_path / "times.sqlite"
    campaign(20, path, cpu).run(progress=False)
    with pm.Store(path) as store:
        before = list(store)
    (found,) = campaign(30, path, cpu).run(progress=False).devices
    assert (found.new, found.known) == (10, 22)
    with pm.Store(path) as store:
        assert list(store)[: len(before)] == before
        assert stored(store) == expected_rows(30, cpu)


def test_a_plan_says_how_many_how_long_and_how_much_memory(cpu: Device, tmp_path: Path) -> None:
    path = tmp_path / "times.sqlite"
    plan = campaign(20, path, cpu).plan()
    (share,) = plan.shares
    assert (share.kernels, share.known, share.missing, share.seconds) == (22, 0, 22, None)
    assert (share.largest_bytes, share.largest) == (4 * 83, "fine n=83")
    assert "time: not known, as nothing was measured on this device before" in str(plan)
    campaign(10, path, cpu).run(progress=False)
    with pm.Store(path) as store:
        mean = sum(row.conditions["cost_s"] for row in store) / 10
    (share,) = campaign(20, path, cpu).plan().shares
    assert (share.known, share.failed, share.missing, share.like) == (10, 2, 10, 10)
    assert share.seconds == pytest.approx(10 * mean)
    huge = kernel("huge", n=2**36)
    (share,) = Campaign([huge], [cpu], protocol=PROTOCOL, store=path, timer=STEADY).plan().shares
    assert "takes 274877906944 bytes, more than one allocation" in share.impossible["huge n=68719476736"]
    assert share.like == 0
    assert share.seconds == pytest.approx(mean)
    with pm.Store(path) as store:
        assert len(store) == 10  # a plan measures nothing


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "1 s"), (40, "40 s"), (180, "3 min"), (7800, "2 h 10 min")])
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(("count", "words"), [(0, "0 B"), (332, "332 B"), (196608, "192 KiB"), (3 * 2**29, "1.5 GiB")])
def test_memory(count: int, words: str) -> None:
    assert memory(count) == words


def test_failures_are_tried_again_only_if_asked(cpu: Device) -> None:
    with pm.Store() as store:
        campaign(4, store, cpu).run(progress=False)
        first = store.failures()
        assert (campaign(4, store, cpu).run(progress=False).devices[0].new, store.failures()) == (0, first)
        for failure in first.values():
            store.put_many([], [replace(failure, reason="a reason of long ago")])
        campaign(4, store, cpu, retry=True).run(progress=False)
        assert {failure.reason for failure in store.failures().values()} == {each.reason for each in first.values()}


def test_a_budget_takes_families_in_turn(cpu: Device, monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    monkeypatch.setenv(SECONDS_VARIABLE, "0.01")
    mixed = [*kernels(200, "one"), *kernels(200, "two")]
    with pm.Store() as store:
        chosen = Campaign(mixed, [cpu], protocol=PROTOCOL, store=store, timer=STEADY)
        (found,) = chosen.run(progress=False, budget_s=0.8).devices
        names = [row.kernel for row in store]
        assert 0 < found.new < 400
        assert found.unmeasured == 400 - found.new
        assert abs(names.count("one") - names.count("two")) <= 1
        assert "not measured" in str(found.results) or not CampaignResult([found], 1.0).is_complete
        assert chosen.run(progress=False, budget_s=0).devices[0].new == 0
        (found,) = chosen.run(progress=False).devices
        assert (found.unmeasured, len(store)) == (0, 400)


def test_a_driver_that_fails_again_and_again_stops_its_device_with_a_sentence(cpu: Device, fresh: None) -> None:
    with pm.Store() as store:
        bad = kernels(FAILURES_IN_A_ROW + 40, "abort")
        result = Campaign(bad, [cpu], protocol=PROTOCOL, store=store, timer=STEADY).run(progress=False)
        (found,) = result.devices
        assert found.stopped.startswith(f"{FAILURES_IN_A_ROW} kernels in a row ended their process")
        assert not result.is_complete
        assert len(store.failures()) == FAILURES_IN_A_ROW
        assert [result.flags for result in found.results[FAILURES_IN_A_ROW:]] == [(STOPPED,)] * 40
    assert "stopped: 5 kernels in a row" in str(result)


def test_several_devices_are_measured_in_one_campaign(cpu: Device) -> None:
    half = cpu.with_units(1)
    with pm.Store() as store:
        result = campaign(10, store, cpu, devices=[cpu, half, cpu]).run(progress=False)
        assert [each.device for each in result.devices] == [cpu, half]
        assert stored(store) == expected_rows(10, cpu) | expected_rows(10, half)


def test_devices_by_the_form_of_their_keys(cpu: Device) -> None:
    start = cpu.key[:5]
    for selectors in (["all"], [f"{start}*"], ["all", cpu.key, "cpu"]):
        (found,) = Campaign(kernels(1), selectors, protocol=PROTOCOL, timer=STEADY).plan().shares
        assert found.device == cpu
    with pytest.raises(DeviceError, match=r"no device's key matches 'xyz\*'; there are"):
        Campaign(kernels(1), ["xyz*"]).plan()


def test_what_cannot_be_a_campaign(cpu: Device, tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="there is no kernel to measure"):
        Campaign([])
    with pytest.raises(MeasurementError, match=r"no protocol 'unifeid'; did you mean 'unified'\?"):
        Campaign(kernels(1), protocol="unifeid")
    with pytest.raises(DeviceError, match="quantum"):
        Campaign(kernels(1), ["quantum"]).plan()
    with pytest.raises(StoreError, match="its folder is not there"):
        Campaign(kernels(1), store=tmp_path / "none" / "times.sqlite").run()
    with pytest.raises(MeasurementError, match="a budget of -1 s is none"):
        Campaign(kernels(1), [cpu]).run(budget_s=-1)
    with pytest.raises(PerfmodelError, match="'a b' is no Dask scheduler's address; give one such as tcp://"):
        Campaign(kernels(1), scheduler="a b").run()


def test_two_campaigns_that_write_one_store_at_once(tmp_path: Path, cpu: Device) -> None:
    path = tmp_path / "times.sqlite"
    command = [sys.executable, "-m", "tests.simulated_campaign", str(path), "120"]
    both = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    with pm.Store(path) as store:
        assert store.check() == []
        assert stored(store) == expected_rows(120, cpu)


def test_an_interrupted_campaign_keeps_what_it_has(
    tmp_path: Path, cpu: Device, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    path = tmp_path / "times.sqlite"
    command = [sys.executable, "-m", "tests.simulated_campaign", str(path), "300"]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {SECONDS_VARIABLE: "0.02"},
    )
    assert process.stdout is not None
    first = process.stdout.readline().strip()
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read().split()
    process.wait()
    assert process.returncode != 0
    with pm.Store(path) as store:
        assert {first, *rest} <= set(stored(store))  # what was stored may not have been said any more
        assert stored(store).items() <= expected_rows(300, cpu).items()
        assert 0 < len(store) < 300


def test_a_store_that_can_no_longer_be_written_ends_the_campaign_with_a_sentence(
    cpu: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: None
) -> None:
    """The disk is full after the first batch: SQLite is told so by a limit on the number of pages."""
    monkeypatch.setenv(SECONDS_VARIABLE, "0.01")
    path = tmp_path / "times.sqlite"
    with pm.Store(path) as store:
        limited = store._connection.execute("PRAGMA page_count").fetchone()[0] + 20
        store._connection.execute(f"PRAGMA max_page_count = {limited}")
        with pytest.raises(
            StoreError, match="disk is full: free space and run again, what was measured before is kept"
        ):
            campaign(300, store, cpu).run(progress=False)
        before = stored(store)
        assert 0 < len(before) < 302
    with pm.Store(path) as store:
        assert store.check() == []
        assert stored(store) == before
        campaign(300, store, cpu).run(progress=False)
        assert stored(store) == expected_rows(300, cpu)


def test_a_damaged_row_is_measured_again(cpu: Device, tmp_path: Path) -> None:
    path = tmp_path / "times.sqlite"
    campaign(5, path, cpu).run(progress=False)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE measurement SET trials = replace(trials, '1', '2') WHERE number = 2")
    connection.commit()
    connection.close()
    with pm.Store(path) as store:
        assert len(store.check()) == 1
        with pytest.warns(UserWarning, match=r"is damaged \(its checksum"):
            campaign(5, store, cpu).run(progress=False)
        assert store.check() == []
        assert stored(store) == expected_rows(5, cpu)


def test_batches_that_do_not_come_back_are_lost_and_no_failure(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed.scheduler import KilledWorker

    def lost(*arguments: object) -> Batch:
        raise KilledWorker("batch", "tcp://far:1", 3)

    monkeypatch.setattr("perfmodel.measuring.campaign.this_machine.measure_batch", lost)
    with pm.Store() as store:
        result = Campaign(kernels(3), [cpu], protocol=PROTOCOL, store=store, timer=STEADY).run(progress=False)
        assert [each.flags for each in result.devices[0].results] == [(LOST,)] * 3
        assert not result.is_complete
        assert len(store) == len(store.failures()) == 0


def test_a_place_without_room_is_asked_now_and_then(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfmodel.measuring.campaign.run.LOST_SECONDS", 1.0)
    asked: list[Device] = []

    class Full(Instant):
        def capacity(self, device: Device) -> int:
            asked.append(device)
            return 0

    with pm.Store() as store:
        work = DeviceWork(cpu, kernels(3), PROTOCOL, store, True, False)
        Run([work], Full([cpu]), PROTOCOL, ProcessLimits(), STEADY, None).measure(progress=False)
        assert {each.flags for each in work.results().results} == {(STOPPED,)}
    assert 1 < len(asked) < 30


def test_reasons_that_differ_in_names_and_numbers_are_one() -> None:
    failures = {"a": "kernel 'a' needs 5 bytes", "b": "kernel 'b' needs 17 bytes", "c": "kernel 'c' hangs"}
    assert grouped(failures) == {"kernel 'a' needs 5 bytes": ["a", "b"], "kernel 'c' hangs": ["c"]}


def test_doubtful_times_are_counted(cpu: Device) -> None:
    rows = (Result(1.0, ("noisy",), "k"), Result(1.0, ("noisy", "disturbed"), "l"), Result(math.nan, (LOST,), "m"))
    found = DeviceResult(device=cpu, results=rows, labels=("k", "l", "m"), new=2, known=0)
    assert found.doubtful == {"noisy": 2, "disturbed": 1}
    assert "  doubtful: 1 disturbed, 2 noisy" in str(CampaignResult([found], 1.0))


@pytest.mark.parametrize(("limit_s", "grace_s", "failed"), [(3.0, 60.0, {"hang"}), (3600.0, 0.5, set())])
def test_a_hanging_kernel_can_be_interrupted(
    limit_s: float,
    grace_s: float,
    failed: set[str],
    cpu: Device,
    fresh: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[[Callable[[], bool]], None],
) -> None:
    """The campaign ends with what it is at, or without it if that takes too long, and keeps what it had."""
    monkeypatch.setenv(HANGS_VARIABLE, str(tmp_path / "hangs"))

    def interrupt() -> None:
        eventually((tmp_path / "hangs").exists)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("perfmodel.measuring.campaign.this_machine.GRACE_SECONDS", grace_s)
    mixed = [*kernels(3), kernel("hang"), *kernels(40, "later")]
    with pm.Store() as store:
        chosen = Campaign(mixed, [cpu], protocol=PROTOCOL, store=store, timer=STEADY, limits=ProcessLimits(limit_s))
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            chosen.run(progress=False)
        assert {row.kernel for row in store} == {"fine"}
        assert {failure.kernel for failure in store.failures().values()} == failed


def test_a_few_kills_and_interrupts_at_random_moments() -> None:
    """`python -m tests.kill_campaigns --kills 100 --interrupts 50` does many; see docs/campaigns.md."""
    seed = int.from_bytes(os.urandom(4), "big")
    tally = kill_campaigns(kills=2, seed=seed, count=60, each=3, interrupts=1)
    assert tally.problems == [], seed
    assert (tally.kills, tally.interrupts) == (2, 1)
