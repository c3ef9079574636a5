"""Ctrl-C: obeyed within seconds whatever hangs, at once if it is pressed again, and never lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

import perfmodel as pm
from perfmodel.device import Device
from perfmodel.measuring.campaign import Campaign, ProcessLimits
from perfmodel.measuring.campaign.cluster import Cluster
from perfmodel.measuring.isolation import bench as benches
from perfmodel.measuring.isolation import interruption
from perfmodel.measuring.isolation.bench import bench_of, isolated_timer
from perfmodel.measuring.isolation.interruption import noticed
from perfmodel.measuring.isolation.locks import FOLDER_VARIABLE, held
from perfmodel.measuring.protocol import Protocol
from tests.simulated_campaign import PROTOCOL
from tests.simulated_kernels import kernel, kernels
from tests.simulated_timers import HANGING_VARIABLE, SECONDS_VARIABLE

STEADY = "tests.simulated_timers:steady"
FIVE = Protocol("five", trials=5, dropped=1, statistic="min")
MOST_SECONDS = 5.0


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Gives each test its own benches and locks; the environment of measuring processes is that of their start."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "locks"))
    monkeypatch.setattr(benches, "_benches", {})
    before.clear()
    before.update(psutil.Process().children())
    yield
    for bench in benches._benches.values():
        bench.close()


def press() -> None:
    """Sends Ctrl-C, as a terminal gives it to the process."""
    os.kill(os.getpid(), signal.SIGINT)


def is_noticed() -> bool:
    return signal.getsignal(signal.SIGINT) is not signal.default_int_handler


@contextmanager
def ending() -> Iterator[pytest.ExceptionInfo[KeyboardInterrupt]]:
    """Expects what is within to end by a KeyboardInterrupt."""
    with pytest.raises(KeyboardInterrupt) as raised:
        yield raised


@contextmanager
def interrupted(when: Callable[[], bool]) -> Iterator[None]:
    """Sends Ctrl-C once something is so; what is within ends by a KeyboardInterrupt, soon enough."""
    pressed: list[float] = []

    def wait() -> None:
        end = time.monotonic() + 60
        while not (is_noticed() and when()) and time.monotonic() < end:
            time.sleep(0.01)
        pressed.append(time.monotonic())
        press()

    threading.Thread(target=wait).start()
    with ending():
        yield
    assert time.monotonic() - pressed[0] < MOST_SECONDS
    assert not is_noticed()


before: set[psutil.Process] = set()
"""Processes that other tests' measurements keep."""


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if child not in before]


# --- the flag


def test_an_interruption_within_is_a_flag_and_an_exception_at_the_end() -> None:
    reached = []
    with ending(), noticed() as found:
        press()
        assert found.is_asked()
        reached.append("the end")
    assert reached == ["the end"]
    assert not is_noticed()


def test_without_an_interruption_nothing_happens() -> None:
    with noticed() as found:
        found.check()
    assert not is_noticed()


def test_where_destructors_lose_exceptions_nothing_is_lost() -> None:
    class Interrupted:
        def __del__(self) -> None:
            press()

    with ending(), noticed() as found:
        Interrupted()
        found.check()
        raise AssertionError


def test_what_fails_because_of_an_interruption_is_one() -> None:
    with ending() as raised, noticed():
        press()
        raise ValueError("half of it is missing")
    assert isinstance(raised.value.__context__, ValueError)


def test_a_second_interruption_acts_at_once() -> None:
    with ending(), noticed():
        press()
        press()
        raise AssertionError


def test_where_nothing_looks_an_interruption_is_an_exception_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruption, "PATIENCE_SECONDS", 0.2)
    with ending(), noticed():
        press()
        time.sleep(20)
        raise AssertionError


def test_one_within_another_is_the_other() -> None:
    reached = []
    with ending(), noticed() as outer:
        with noticed() as inner:
            assert inner is outer
            press()
            reached.append("the end")
        raise AssertionError
    assert reached == ["the end"]


def test_other_threads_and_other_handlers_are_left_alone() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with noticed() as found:
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            press()
            assert not found.is_asked()
    finally:
        signal.signal(signal.SIGINT, before)

    def elsewhere() -> None:
        with noticed() as found:
            seen.append((found.is_asked(), signal.getsignal(signal.SIGINT)))

    seen: list[object] = []
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [(False, signal.default_int_handler)]


# --- campaigns


def campaign(store: pm.Store, cpu: Device, *of: pm.Kernel, scheduler: str | None = None) -> Campaign:
    return Campaign(
        of,
        [cpu],
        protocol=PROTOCOL,
        store=store,
        timer=STEADY,
        limits=ProcessLimits(3600),
        scheduler=scheduler,
    )


@pytest.mark.parametrize("scheduler", [None, "local"])
def test_a_driver_that_hangs_at_its_start(
    scheduler: str | None, cpu: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HANGING_VARIABLE, str(tmp_path))
    with pm.Store() as store:
        with interrupted(lambda: bool(children())):
            campaign(store, cpu, *kernels(3), scheduler=scheduler).run(progress=False)
        assert len(store) == len(store.failures()) == 0
        assert children() == []
        monkeypatch.delenv(HANGING_VARIABLE)
        assert campaign(store, cpu, *kernels(3), scheduler=scheduler).run(progress=False).devices[0].new == 3


@pytest.mark.parametrize("scheduler", [None, "local"])
def test_a_measuring_process_that_is_stopped(
    scheduler: str | None, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measured kernels are there, and undisturbed; the others are measured by the next run."""
    monkeypatch.setenv(SECONDS_VARIABLE, "0.02")
    with pm.Store() as store:
        assert campaign(store, cpu, *kernels(3), scheduler=scheduler).run(progress=False).is_complete

        def stopped() -> bool:
            running = children()
            if len(running) != 1:  # it begins a moment after interruptions are noticed
                return False
            time.sleep(0.5)
            running[0].suspend()
            time.sleep(0.3)
            return True

        with interrupted(stopped):
            campaign(store, cpu, *kernels(100), scheduler=scheduler).run(progress=False)
        assert children() == []
        assert 3 < len(store) < 100
        assert {row.flags for row in store} == {()}
        assert store.failures() == {}
        assert campaign(store, cpu, *kernels(100), scheduler=scheduler).run(progress=False).is_complete


def test_where_other_signals_take_longer_than_a_wait(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal handled for longer than a wait lasts does not make the wait endless: Ctrl-C needs no patience."""
    monkeypatch.setattr(interruption, "PATIENCE_SECONDS", 30.0)
    monkeypatch.setattr("perfmodel.measuring.campaign.this_machine.GRACE_SECONDS", 0.1)
    before = signal.signal(signal.SIGALRM, lambda number, frame: time.sleep(2 * interruption.LOOK_SECONDS))
    try:

        def alarmed() -> bool:
            if not children():
                return False
            time.sleep(0.5)
            for _ in range(5):  # one of them at least falls into a wait
                os.kill(os.getpid(), signal.SIGALRM)
                time.sleep(0.3)
            return True

        with pm.Store() as store, interrupted(alarmed):
            campaign(store, cpu, kernel("hang")).run(progress=False)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_device_that_another_program_holds(cpu: Device) -> None:
    with pm.Store() as store, held(cpu), interrupted(lambda: True):
        campaign(store, cpu, *kernels(3)).run(progress=False)


def test_a_scheduler_that_does_not_answer(cpu: Device) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent, interrupted(lambda: True):
        Cluster(f"tcp://127.0.0.1:{silent.getsockname()[1]}")


def test_a_timer_by_itself(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device can be used again afterwards, and gives no time of the launch that was ended."""
    monkeypatch.setattr(benches, "DEVICE_TIMER", STEADY)
    monkeypatch.setattr(benches.bench_of, "__defaults__", (STEADY,))
    with interrupted(lambda: bool(children())), isolated_timer(cpu, ProcessLimits(3600)) as timer:
        timer(kernel("hang").launch(), FIVE)
    assert children() == []
    with isolated_timer(cpu) as timer:
        assert timer(kernel().launch(), FIVE).seconds > 0
    assert bench_of(cpu)._timer == STEADY


def test_nothing_is_waited_for_twice(cpu: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second Ctrl-C ends what the first one waits for, and leaves no process behind."""
    monkeypatch.setattr("perfmodel.measuring.campaign.this_machine.GRACE_SECONDS", 600.0)
    with pm.Store() as store:
        campaign(store, cpu, *kernels(3)).run(progress=False)
        again = threading.Timer(1.0, press)
        with interrupted(lambda: bool(children())):
            again.start()
            campaign(store, cpu, kernel("hang")).run(progress=False)
        assert children() == []
