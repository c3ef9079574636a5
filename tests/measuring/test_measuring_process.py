"""The process in which launches are timed: what goes wrong there is one sentence here, and a new process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

import perfmodel
from perfmodel.basics.errors import DeviceError, KernelError, MeasurementError
from perfmodel.device import Device
from perfmodel.kernels.arguments import Array, LocalArray, Scalar
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.isolation.child import as_launch, as_message
from perfmodel.measuring.isolation.process import MeasuringProcess, ProcessEndedError, ProcessLimits
from perfmodel.measuring.protocol import Protocol
from tests.simulated_kernels import kernel
from tests.simulated_timers import expected

STEADY = "tests.simulated_timers:steady"
FIVE = Protocol("five", trials=5, dropped=1, statistic="min")
ENOUGH = ProcessLimits(60.0)


@pytest.fixture
def process(cpu: Device) -> Iterator[MeasuringProcess]:
    started = MeasuringProcess(cpu, STEADY)
    yield started
    started.close()


def test_a_launch_arrives_as_it_was_sent() -> None:
    launch = Launch(
        source="__kernel void k() {}  // é\n",
        kernel_name="k",
        global_size=(64, 2),
        local_size=(32, 1),
        arguments=(Array("a", "float32", 2**40, True), Scalar("x", "float64", 0.1), LocalArray("l", 64)),
        options=("-DT=1",),
        copied_in=("a",),
        copied_out=(),
    )
    assert as_launch(as_message(launch)) == launch


def test_times_come_back_to_the_last_bit(process: MeasuringProcess) -> None:
    launch = kernel().launch()
    timing = process.time(launch, FIVE, ENOUGH)
    assert timing.trials == expected(launch, FIVE)
    assert (timing.dropped, timing.statistic, timing.flags) == (1, "min", ())


@pytest.mark.parametrize(
    ("name", "words"),
    [("refuse", "kernel 'refuse' is refused"), ("mistake", r"kernel 'mistake' could not be timed \(ZeroDivisionError")],
)
def test_an_error_there_is_an_error_here_and_the_process_goes_on(
    process: MeasuringProcess, name: str, words: str
) -> None:
    with pytest.raises(KernelError, match=words):
        process.time(kernel(name).launch(), FIVE, ENOUGH)
    assert process.is_usable
    assert process.time(kernel().launch(), FIVE, ENOUGH).seconds > 0


@pytest.mark.parametrize(
    ("name", "limits", "words"),
    [
        (
            "hang",
            ProcessLimits(0.5),
            r"kernel 'hang' took more than 0\.5 s on .*: use smaller sizes, or allow more time",
        ),
        ("abort", ENOUGH, r"kernel 'abort' ended its process on .* \(SIGABRT\): check the memory"),
        ("leave", ENOUGH, r"kernel 'leave' ended its process on .* \(exit status 7, the driver has had enough\)"),
        (
            "glutton",
            ProcessLimits(60.0, 2**29),
            r"'glutton' made its process take \d+ bytes of memory .* the 536870912",
        ),
    ],
)
def test_what_ends_the_process_is_told_and_leaves_none_behind(
    process: MeasuringProcess, name: str, limits: ProcessLimits, words: str
) -> None:
    with pytest.raises(ProcessEndedError, match=words) as raised:
        process.time(kernel(name).launch(), FIVE, limits)
    assert "\n" not in str(raised.value)
    assert raised.value.is_certain == (name in ("hang", "glutton"))
    assert not process.is_usable
    assert not psutil.pid_exists(process.pid)


def test_a_process_that_somebody_killed_is_told_from_one_that_crashed(process: MeasuringProcess) -> None:
    threading.Timer(0.3, os.kill, (process.pid, signal.SIGKILL)).start()
    with pytest.raises(ProcessEndedError, match=r"had its process killed on .*, as happens where memory") as raised:
        process.time(kernel("hang").launch(), FIVE, ENOUGH)
    assert raised.value.was_killed
    assert not raised.value.is_certain


def test_a_device_that_is_not_there(cpu: Device) -> None:
    with pytest.raises(DeviceError, match="device far-gpu-123456 is not on this machine"):
        MeasuringProcess(type(cpu)(**{**vars(cpu), "key": "far-gpu-123456"}))


def test_limits_that_leave_nothing() -> None:
    with pytest.raises(MeasurementError, match="a time limit of 0 s leaves no time"):
        ProcessLimits(0.0)
    with pytest.raises(MeasurementError, match="a memory limit of -1 bytes leaves none"):
        ProcessLimits(1.0, -1)


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_hanging_process_ends_after_its_parent(
    is_stopped: bool, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    code = """
import threading
from perfmodel.device import find_device
from perfmodel.measuring.isolation.process import ProcessLimits, MeasuringProcess
from tests.simulated_kernels import kernel
from perfmodel.measuring.protocol import PROTOCOLS
started = []
def start():
    started.append(MeasuringProcess(find_device("cpu"), "tests.simulated_timers:steady"))
starter = threading.Thread(target=start)  # whose end is not that of the process
starter.start()
starter.join()
print(started[0].pid, flush=True)
started[0].time(kernel("hang").launch(), PROTOCOLS["quick"], ProcessLimits(600))
"""
    root = Path(perfmodel.__file__).parents[1]
    with subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(0.2)
        assert psutil.pid_exists(child)
        if is_stopped:
            os.kill(child, signal.SIGSTOP)
        parent.kill()
    eventually(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE)


def test_a_process_that_does_not_read_its_request_breaks_the_time_limit(process: MeasuringProcess) -> None:
    """A request that is longer than what sockets hold is not sent before it is read."""
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.raises(ProcessEndedError, match=r"took more than 0\.5 s"):
        process.time(kernel(body="// " + "x" * 2**22).launch(), FIVE, ProcessLimits(0.5))
    assert not psutil.pid_exists(process.pid)


def test_a_request_of_megabytes_arrives(process: MeasuringProcess) -> None:
    launch = kernel(body="// " + "x" * 2**22).launch()
    assert process.time(launch, FIVE, ENOUGH).trials == expected(launch, FIVE)


def test_nothing_is_left_of_a_launch_that_was_given_up(process: MeasuringProcess) -> None:
    """An answer that came too late would be taken for the next launch's."""
    given_up = threading.Event()
    threading.Timer(0.3, given_up.set).start()
    with pytest.raises(ProcessEndedError, match="kernel 'hang' was interrupted"):
        process.time(kernel("hang").launch(), FIVE, ENOUGH, given_up.is_set)
    assert not process.is_usable
    assert not psutil.pid_exists(process.pid)
