"""Processes that are asked in lines of JSON, as for times on a device: they may hang, crash or eat memory, and are then
replaced."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from typing import IO, Any

from perfmodel.basics.errors import DeviceError, KernelError, MeasurementError
from perfmodel.device import Device
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.isolation import start
from perfmodel.measuring.isolation.child import DEVICE_TIMER, MEASURING, as_message, as_timing
from perfmodel.measuring.isolation.interruption import LOOK_SECONDS
from perfmodel.measuring.isolation.memory import available, resident
from perfmodel.measuring.isolation.serving import Message
from perfmodel.measuring.protocol import Protocol, Timing

START_SECONDS = 120.0
END_SECONDS, CLOSE_SECONDS = 10.0, 1.0
"""Seconds that a process which closed its socket may take to end by itself, and one that is killed."""
MEMORY_SHARE = 0.9

Asked = Callable[[], bool]


def never() -> bool:
    return False


@dataclass(frozen=True)
class ProcessLimits:
    """The limits of one measurement, or of what else a process of its own is asked for.

    Attributes:
        time_s: seconds for compiling a kernel, filling its arrays and all trials.
        memory_bytes: host memory of the process; None for nine tenths of what is free.
    """

    time_s: float = 300.0
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        if not self.time_s > 0:
            raise MeasurementError(f"a time limit of {self.time_s:g} s leaves no time; give more seconds")
        if self.memory_bytes is not None and self.memory_bytes <= 0:
            raise MeasurementError(f"a memory limit of {self.memory_bytes} bytes leaves none; give more bytes")


class ProcessEndedError(Exception):
    """Raised when a process is gone, and with it what it was asked for.

    Attributes:
        was_killed: by somebody else's SIGKILL, as when memory runs out; not necessarily the kernel's fault.
        is_certain: it was ended for a limit that the kernel broke; trying again would break it again.
    """

    def __init__(self, reason: str, *, was_killed: bool = False, is_certain: bool = False) -> None:
        super().__init__(reason)
        self.was_killed, self.is_certain = was_killed, is_certain


class ChildProcess:
    """Starts a process that answers requests, and returns when it is ready.

    Args:
        function: ``module:function``, which makes of the opening what answers requests there.
        what: is started, and `where` it runs, as errors say it.
        is_given_up: asked while it starts; once it says yes, the process is ended.

    Raises:
        DeviceError: the device is not there, or its driver refuses.
        ProcessEndedError: the process ended while it started, or was given up.
    """

    def __init__(
        self, function: str, opening: Message, *, what: str, where: str = "", is_given_up: Asked = never
    ) -> None:
        self.is_usable, self._where = True, where
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, read when the process has ended
        self._channel, theirs = socket.socketpair()
        self._channel.setblocking(False)
        with theirs:
            starting = _starter(os.getpid()).submit(_started, function, theirs.fileno(), self._errors)
            self._process = starting.result()
        said = self.asked(opening, f"the start of {what}", ProcessLimits(START_SECONDS), is_given_up)
        if error := said.get("error"):
            self.close()
            raise DeviceError(error)

    @property
    def pid(self) -> int:
        return self._process.pid

    def asked(self, request: Message, what: str, limits: ProcessLimits, is_given_up: Asked = never) -> dict[str, Any]:
        """Returns the answer to a request; whatever happens instead, no process is left that might still give it.

        Args:
            what: is asked for, as errors say it.
            is_given_up: asked meanwhile; once it says yes, the process is ended.

        Raises:
            ProcessEndedError: it broke a limit, ended its process or was given up; this object is of no more use then.
        """
        try:
            return self._answer(request, what, limits, is_given_up)
        except (EOFError, OSError) as error:
            ended = self._end(what, is_given_up)
            self.close()
            raise ended from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        self.is_usable = False
        self._channel.close()
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):  # a driver may hold a process that is to end; it is left behind
            self._process.wait(CLOSE_SECONDS)
        self._errors.close()

    def _answer(self, request: Message, what: str, limits: ProcessLimits, is_given_up: Asked) -> dict[str, Any]:
        end = time.monotonic() + limits.time_s
        memory = limits.memory_bytes or int(MEMORY_SHARE * (available() + resident(self.pid)))
        waiting, heard = memoryview(json.dumps(request).encode() + b"\n"), bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ | selectors.EVENT_WRITE)
            while not heard.endswith(b"\n"):
                if is_given_up():
                    raise ProcessEndedError(f"{what} was interrupted")
                ready = selector.select(max(0.0, min(LOOK_SECONDS, end - time.monotonic())))
                if not ready:
                    self._check_limits(what, limits, end, memory)
                for _, events in ready:
                    if events & selectors.EVENT_WRITE:  # which a process that is stopped does not read
                        waiting = waiting[self._channel.send(waiting) :]
                    if events & selectors.EVENT_READ:
                        heard += self._received()
                if not waiting:
                    selector.modify(self._channel, selectors.EVENT_READ)
        return dict(json.loads(heard))

    def _received(self) -> bytes:
        if not (part := self._channel.recv(2**16)):
            raise EOFError
        return part

    def _check_limits(self, what: str, limits: ProcessLimits, end: float, memory: int) -> None:
        if time.monotonic() >= end:
            reason = f"{what} took more than {limits.time_s:g} s{self._where}: "
            raise ProcessEndedError(reason + "use smaller sizes, or allow more time", is_certain=True)
        if (used := resident(self.pid)) > memory:
            reason = f"{what} made its process take {used} bytes of memory{self._where}, more than the "
            raise ProcessEndedError(reason + f"{memory} that it may: use smaller sizes", is_certain=True)

    def _end(self, what: str, is_given_up: Asked) -> ProcessEndedError:
        """Returns an error that says how the process ended, by itself or by somebody else."""
        end = time.monotonic() + END_SECONDS
        while (status := self._process.poll()) is None and time.monotonic() < end and not is_given_up():
            time.sleep(0.01)
        if status is None:
            return ProcessEndedError(f"{what} cut off its process{self._where}: check the memory that it accesses")
        if status == -signal.SIGKILL:
            return ProcessEndedError(
                f"{what} had its process killed{self._where}, as happens where memory runs out: use smaller "
                "sizes, or free memory and try again",
                was_killed=True,
            )
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        # What a driver prints when it crashes says nothing of the kernel.
        words = "" if status == -signal.SIGSEGV else self._last_words()
        return ProcessEndedError(
            f"{what} ended its process{self._where} ({how}{f', {words}' if words else ''}): check the memory "
            "that it accesses"
        )

    def _last_words(self) -> str:
        """Returns the last line that the process wrote to its standard error."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 2000))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip()[:200] if lines else ""


class MeasuringProcess(ChildProcess):
    """Starts a measuring process, and returns when it is ready.

    Args:
        timer: names what times launches there, as ``module:function`` of a `Device`; for simulations.
    """

    def __init__(self, device: Device, timer: str = DEVICE_TIMER, is_given_up: Asked = never) -> None:
        opening = {"device": device.fingerprint(), "timer": timer}
        what, where = "a measuring process", f" on {device.key}"
        super().__init__(MEASURING, opening, what=what, where=where, is_given_up=is_given_up)

    def time(self, launch: Launch, protocol: Protocol, limits: ProcessLimits, is_given_up: Asked = never) -> Timing:
        """Times a launch in the measuring process.

        Raises:
            KernelError: as `time_launch`.
            ProcessEndedError: as `asked`.
        """
        request = {"launch": as_message(launch), "protocol": asdict(protocol)}
        answer = self.asked(request, f"kernel {launch.kernel_name!r}", limits, is_given_up)
        if answer["spoilt"]:
            self.close()
        if "error" in answer:
            raise KernelError(answer["error"])
        return as_timing(answer["timing"])


@cache
def _starter(_: int) -> ThreadPoolExecutor:
    """Returns the thread of this process (its number is the argument) that starts others.

    On Linux, what ends with its parent ends with the thread that started it; this one lives as long as the process.
    """
    return ThreadPoolExecutor(1, "perfmodel starter")


def _started(function: str, channel: int, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        start.command("perfmodel.measuring.isolation", str(channel), str(os.getpid()), function),
        pass_fds=[channel],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        env=start.environment(),
        start_new_session=True,  # Ctrl-C is for the parent, which may let this finish
    )
