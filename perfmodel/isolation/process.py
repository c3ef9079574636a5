"""A process of its own for timing on one device: it may hang, crash or eat memory, and is then replaced."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from typing import Any

from perfmodel.device import Device
from perfmodel.errors import DeviceError, KernelError, MeasurementError
from perfmodel.isolation.child import DEVICE_TIMER, as_message, as_timing
from perfmodel.isolation.memory import available, resident
from perfmodel.measurement import Launch, Protocol, Timing

START_SECONDS = 120.0
LOOK_SECONDS = 0.25
MEMORY_SHARE = 0.9


@dataclass(frozen=True)
class Limits:
    """What one measurement may take.

    Attributes:
        time_s: seconds for compiling a kernel, filling its arrays and all trials.
        memory_bytes: host memory of the measuring process; None for nine tenths of what is free.
    """

    time_s: float = 300.0
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        if not self.time_s > 0:
            raise MeasurementError(f"a time limit of {self.time_s:g} s leaves no time; give more seconds")
        if self.memory_bytes is not None and self.memory_bytes <= 0:
            raise MeasurementError(f"a memory limit of {self.memory_bytes} bytes leaves none; give more bytes")


class ProcessEndedError(Exception):
    """The measuring process is gone, and with it what it was timing.

    Attributes:
        was_killed: by somebody else's SIGKILL, as when memory runs out; not necessarily the kernel's fault.
        is_certain: it was ended for a limit that the kernel broke; trying again would break it again.
    """

    def __init__(self, reason: str, *, was_killed: bool = False, is_certain: bool = False) -> None:
        super().__init__(reason)
        self.was_killed, self.is_certain = was_killed, is_certain


class MeasuringProcess:
    """Starts the process, and returns when it is ready.

    Args:
        timer: names what times launches there, as ``module:function`` of a `Device`; for simulations.

    Raises:
        DeviceError: the device is not there, or its driver refuses.
        ProcessEndedError: the process ended while it started.
    """

    def __init__(self, device: Device, timer: str = DEVICE_TIMER) -> None:
        self.device = device
        self.is_usable = True
        ours, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, read when the process has ended
        command = [sys.executable, "-m", "perfmodel.isolation.child", str(theirs.fileno()), str(os.getpid())]
        with theirs:
            self._process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,  # Ctrl-C is for the campaign, which lets this finish
            )
        self._channel = Connection(ours.detach())
        opening = {"device": device.fingerprint(), "timer": timer}
        if error := self._asked(opening, "the start of a measuring process", Limits(START_SECONDS)).get("error"):
            self.close()
            raise DeviceError(error)

    @property
    def pid(self) -> int:
        return self._process.pid

    def time(self, launch: Launch, protocol: Protocol, limits: Limits) -> Timing:
        """Times a launch there.

        Raises:
            KernelError: as `time_launch`.
            ProcessEndedError: it broke a limit or ended its process; this object is of no more use then.
        """
        request = {"launch": as_message(launch), "protocol": asdict(protocol)}
        answer = self._asked(request, f"kernel {launch.kernel_name!r}", limits)
        if answer.get("spoilt"):
            self.close()
        if "error" in answer:
            raise KernelError(answer["error"])
        return as_timing(answer["timing"])

    def kill(self) -> None:
        """Ends the process, also from another thread than the one that waits for it."""
        with suppress(OSError):
            self._process.kill()

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        self.is_usable = False
        self._channel.close()
        self.kill()
        with suppress(subprocess.TimeoutExpired):  # a driver may hold a process that is to end; it is left behind
            self._process.wait(10)
        self._errors.close()

    def _asked(self, request: Mapping[str, Any], what: str, limits: Limits) -> dict[str, Any]:
        end = time.monotonic() + limits.time_s
        memory = limits.memory_bytes or int(MEMORY_SHARE * (available() + resident(self.pid)))
        try:
            self._channel.send_bytes(json.dumps(request).encode())
            while not self._channel.poll(max(0.0, min(LOOK_SECONDS, end - time.monotonic()))):
                if time.monotonic() >= end:
                    reason = f"{what} took more than {limits.time_s:g} s on {self.device.key}: "
                    raise ProcessEndedError(reason + "use smaller sizes, or allow more time", is_certain=True)
                if (used := resident(self.pid)) > memory:
                    reason = f"{what} made its process take {used} bytes of memory on {self.device.key}, more than the "
                    raise ProcessEndedError(reason + f"{memory} that it may: use smaller sizes", is_certain=True)
            return dict(json.loads(self._channel.recv_bytes()))
        except ProcessEndedError:
            self.close()
            raise
        except (EOFError, OSError) as error:
            ended = self._end(what)
            self.close()
            raise ended from error

    def _end(self, what: str) -> ProcessEndedError:
        """How the process ended by itself, or by somebody else."""
        try:
            status = self._process.wait(10)
        except subprocess.TimeoutExpired:
            return ProcessEndedError(
                f"{what} cut off its process on {self.device.key}: check the memory that it accesses"
            )
        if status == -signal.SIGKILL:
            return ProcessEndedError(
                f"{what} had its process killed on {self.device.key}, as happens where memory runs out: use smaller "
                "sizes, or free memory and try again",
                was_killed=True,
            )
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        # What a driver prints when it crashes says nothing of the kernel.
        words = "" if status == -signal.SIGSEGV else self._last_words()
        return ProcessEndedError(
            f"{what} ended its process on {self.device.key} ({how}{f', {words}' if words else ''}): check the memory "
            "that it accesses"
        )

    def _last_words(self) -> str:
        """The last line that the process wrote to its standard error."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 2000))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip()[:200] if lines else ""
