"""Compares what changed kernels compute with the original's, at sizes that are quick to run, in a process of its own.

A changed kernel may write anywhere: what it breaks is that process, which is then started anew.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.collection.verification import can_run
from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel
from perfmodel.measuring.isolation import start
from perfmodel.measuring.isolation.child import as_message

SMALL = (37, 64, 100, 128, 256, 512, 1024, 4096)
"""Sizes that are tried, in this order: some of them no multiples of anything."""
POINTS = 2
MOST_ELEMENTS = 2**24
"""Kernels whose arrays have more elements together are not run for this."""
LIMIT_S = 60.0
"""Seconds that both kernels may take at one size, compiling included."""


class Comparer:
    """Runs kernels beside an original on a device, each once, within a ``with`` block."""

    def __init__(self, original: Kernel, device: Device) -> None:
        self._original, self._device = original, device
        self._known: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Comparer:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def difference(self, kernel: Kernel) -> str:
        """Returns why a kernel may not stand for the original: it differs, or cannot be run; empty if it may."""
        content = kernel.program.content
        if content not in self._known:
            self._known[content] = self._difference(kernel)
        return self._known[content]

    def _difference(self, kernel: Kernel) -> str:
        points = list(itertools.islice(_points(self._original, kernel, self._device), POINTS))
        if not points:
            return f"there is no small size at which both run on {self._device.name}"
        for first, second in points:
            try:
                message = [as_message(each.launch()) for each in (first, second)]
            except PerfmodelError as error:
                return str(error).split("\n")[0]
            if why := self._asked(message):
                return why
        return ""

    def _asked(self, message: list[dict[str, Any]]) -> str:
        """Returns the other process's answer; where there is none, how it ended."""
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(LIMIT_S, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:
            answer = b""
        is_late = not timer.is_alive()
        timer.cancel()
        if answer.endswith(b"\n"):
            return str(json.loads(answer)["differs"])
        self._end()
        if is_late:
            return f"it took more than {LIMIT_S:g} s"
        return "it crashed its process, as kernels do that access memory beyond their arrays"

    def _started(self) -> subprocess.Popen[bytes]:
        device = json.dumps(self._device.fingerprint())
        return subprocess.Popen(
            start.command("perfmodel.tuning.improving.child", device, str(os.getpid())),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=start.environment(),
        )

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _points(original: Kernel, kernel: Kernel, device: Device) -> Iterator[tuple[Kernel, Kernel]]:
    """Yields both kernels at some small sizes, and at their own where these are small, or the only ones."""
    points = [{name: min(value, most) for name, value in original.sizes.items()} for most in SMALL]
    for number, sizes in enumerate([*points, original.sizes]):
        try:
            pair = original.at(**sizes), kernel.at(**sizes)
            elements = sum(array.size for array in pair[0].launch().arrays())
            fits = all(can_run(each, device) for each in pair)
        except KernelError:
            continue
        if fits and elements <= MOST_ELEMENTS and sizes not in points[:number]:
            yield pair
