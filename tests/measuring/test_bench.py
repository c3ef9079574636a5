"""Batches on one device: what disturbs them, what fails in them, and when a driver is given up."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path

import pytest

from perfmodel.device import Device
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.isolation import bench as benches
from perfmodel.measuring.isolation.bench import ATTEMPTS, FAILURES_IN_A_ROW, KILLED_ATTEMPTS, Bench, Task
from perfmodel.measuring.isolation.locks import FOLDER_VARIABLE, held
from perfmodel.measuring.isolation.process import Asked, ProcessEndedError, ProcessLimits
from perfmodel.measuring.isolation.reference import NAME
from perfmodel.measuring.protocol import Protocol, Timing
from tests.simulated_kernels import kernel
from tests.simulated_timers import BROKEN_VARIABLE, expected

STEADY = "tests.simulated_timers:steady"
FIVE = Protocol("five", trials=5, dropped=1, statistic="min")
ENOUGH = ProcessLimits(60.0)


@pytest.fixture(autouse=True)
def own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "locks"))


def task(name: str = "fine", n: int = 64) -> Task:
    return Task(f"{name} {n}", kernel(name, n).launch())


def test_others_go_on_after_kernels_that_fail_in_every_way(cpu: Device) -> None:
    names = ["hang", "fine", "abort", "refuse", "leave", "mistake", "fine"]
    tasks = [task(name, 64 + place) for place, name in enumerate(names)]
    batch = Bench(cpu, STEADY).measure(tasks, FIVE, ProcessLimits(1.0), 1e6)
    assert [each.key for each in batch.done] == [each.key for each in tasks]
    assert [each.timing is not None for each in batch.done] == [name == "fine" for name in names]
    assert all(bool(each.reason) == (each.timing is None) for each in batch.done)
    assert batch.stopped == ""
    assert batch.around_s == batch.best_s == 1e-3


def test_a_batch_ends_with_its_time_but_not_before_its_first_task(cpu: Device) -> None:
    bench = Bench(cpu, STEADY)
    tasks = [task(n=64 + n) for n in range(5)]
    assert len(bench.measure(tasks, FIVE, ENOUGH, 0.0).done) == 1
    assert len(bench.measure(tasks, FIVE, ENOUGH, 1e6).done) == 5


def test_many_kernels_in_a_row_that_end_their_process_are_the_drivers_fault(cpu: Device) -> None:
    tasks = [task("abort", 64 + n) for n in range(FAILURES_IN_A_ROW + 3)]
    batch = Bench(cpu, STEADY).measure([task(), *tasks], FIVE, ENOUGH, 1e6)
    assert len(batch.done) == 1 + FAILURES_IN_A_ROW
    assert all(each.reason for each in batch.done[1:])
    assert batch.stopped.startswith(f"{FAILURES_IN_A_ROW} kernels in a row ended their process on {cpu.key}")
    assert "look at the driver by `perfmodel doctor`, then run again to go on" in batch.stopped


def test_a_driver_that_runs_nothing_any_more_is_given_up_at_once(
    cpu: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BROKEN_VARIABLE, str(tmp_path / "broken"))
    bench = Bench(cpu, STEADY)
    assert bench.measure([task()], FIVE, ENOUGH, 1e6).stopped == ""
    (tmp_path / "broken").touch()
    batch = bench.measure([task(), task("fine", 65)], FIVE, ENOUGH, 1e6)
    assert batch.stopped.startswith(f"not even a small kernel runs on {cpu.key}")
    assert len(batch.done) <= 1


class Scripted:
    """A measuring process that follows a script: what each kernel's launch takes, or raises."""

    def __init__(self, script: list[float | Exception]) -> None:
        self.script = script
        self.is_usable = True

    def __call__(self, device: Device, timer: str, is_given_up: Asked) -> Scripted:
        return self

    def time(self, launch: Launch, protocol: Protocol, limits: ProcessLimits, is_given_up: Asked) -> Timing:
        step = 1e-3 if launch.kernel_name == NAME else self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        return Timing((step,) * 5, 1, "min")

    def close(self) -> None:
        pass


def ended(**how: bool) -> ProcessEndedError:
    return ProcessEndedError("it ended its process", **how)


@pytest.mark.parametrize(
    ("script", "is_timed", "left"),
    [
        ([ended(), 2.0], True, 0),
        ([ended(), ended(), 2.0], False, 1),
        ([ended(is_certain=True), 2.0], False, 1),
        ([*[ended(was_killed=True)] * (KILLED_ATTEMPTS - 1), 2.0], True, 0),
        ([*[ended(was_killed=True)] * KILLED_ATTEMPTS, 2.0], False, 1),
    ],
)
def test_how_often_a_kernel_is_tried(
    script: list[float | Exception], is_timed: bool, left: int, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Scripted(script)
    monkeypatch.setattr(benches, "MeasuringProcess", process)
    (done,) = Bench(cpu).measure([task()], FIVE, ENOUGH, 1e6).done
    assert (done.timing is not None) == is_timed
    assert len(process.script) == left


@pytest.mark.parametrize("kinds", list(itertools.product(("crash", "kill", "limit"), repeat=KILLED_ATTEMPTS)))
def test_a_kernel_that_always_fails_is_given_up_in_whatever_order_it_does(
    kinds: tuple[str, ...], cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice by itself, once by a limit, or four times in all; a crash and a kill once made it go on for ever."""
    how: dict[str, dict[str, bool]] = {"crash": {}, "kill": {"was_killed": True}, "limit": {"is_certain": True}}
    process = Scripted([ended(**how[kind]) for kind in kinds])
    monkeypatch.setattr(benches, "MeasuringProcess", process)
    (done,) = Bench(cpu).measure([task()], FIVE, ENOUGH, 1e6).done
    assert done.timing is None
    tried = kinds[: len(kinds) - len(process.script)]
    assert tried[-1] == "limit" or tried.count("crash") == ATTEMPTS or len(tried) == KILLED_ATTEMPTS
    assert tried.count("crash") <= ATTEMPTS


def test_a_batch_carries_the_slower_of_the_references_around_it(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slowing(Scripted):
        def time(self, launch: Launch, protocol: Protocol, limits: ProcessLimits, is_given_up: Asked) -> Timing:
            if launch.kernel_name != NAME:
                self.slow = True
            return Timing(((2e-3 if getattr(self, "slow", False) else 1e-3),) * 5, 1, "min")

    monkeypatch.setattr(benches, "MeasuringProcess", Slowing([]))
    batch = Bench(cpu).measure([task()], FIVE, ENOUGH, 1e6)
    assert (batch.best_s, batch.around_s) == (1e-3, 2e-3)


def test_one_measurement_at_a_time_whoever_asks(cpu: Device) -> None:
    bench = Bench(cpu, STEADY)
    bench.measure([task()], FIVE, ENOUGH, 1e6)
    seen: list[float] = []

    def measure() -> None:
        assert bench.measure([task()], FIVE, ENOUGH, 1e6).done
        seen.append(time.monotonic())

    with held(cpu):
        other = threading.Thread(target=measure)
        other.start()
        other.join(0.3)
        assert not seen
        released = time.monotonic()
    other.join()
    assert seen[0] >= released


def test_accelerators_are_measured_side_by_side_and_processors_alone(cpu: Device) -> None:
    first, second = (type(cpu)(**{**vars(cpu), "key": key, "kind": "gpu"}) for key in ("gpu-1", "gpu-2"))
    with held(first), held(second):
        for blocked in (first, second, cpu):
            with pytest.raises(Exception, match="another program measures"), held(blocked, lambda: True):
                pass
    with held(cpu), pytest.raises(Exception, match="another program measures"), held(first, lambda: True):
        pass
    part = type(cpu)(**{**vars(cpu), "key": f"{cpu.key}/1"})
    with held(part), pytest.raises(Exception, match="another program measures"), held(cpu, lambda: True):
        pass


def test_an_interrupted_batch_ends_after_its_launch(cpu: Device) -> None:
    bench = Bench(cpu, STEADY)
    threading.Timer(0.5, bench.interrupt).start()
    batch = bench.measure([task("hang"), task()], FIVE, ProcessLimits(2.0), 1e6)
    assert [each.key for each in batch.done] == ["hang 64"]


@pytest.mark.parametrize(("how", "reason"), [({}, None), ({"is_certain": True}, "it ended its process")])
def test_an_interruption_after_a_crash_is_not_the_drivers_fault(
    how: dict[str, bool], reason: str | None, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is said of a kernel that would have been tried again; of one that broke a limit, that."""

    class Interrupting(Scripted):
        def time(self, launch: Launch, protocol: Protocol, limits: ProcessLimits, is_given_up: Asked) -> Timing:
            if launch.kernel_name == NAME and not self.script:
                bench.interrupt()
                raise ended()
            return super().time(launch, protocol, limits, is_given_up)

    bench = Bench(cpu)
    monkeypatch.setattr(benches, "MeasuringProcess", Interrupting([ended(**how)]))
    batch = bench.measure([task(), task(n=65)], FIVE, ENOUGH, 1e6)
    assert [each.reason for each in batch.done] == ([] if reason is None else [reason])


def test_times_are_those_of_the_timer(cpu: Device) -> None:
    tasks = [task(n=64 + n) for n in range(40)]
    batch = Bench(cpu, STEADY).measure(tasks, FIVE, ENOUGH, 1e6)
    assert [each.timing.trials for each in batch.done if each.timing] == [expected(t.launch, FIVE) for t in tasks]
