"""Compares what changed kernels compute with the original's, at sizes that are quick to run, in a process of its own.

A changed kernel may write anywhere: what it breaks is that process, which is then started anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.collection.verification import can_run, verify_against
from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.isolation.child import as_launch, as_message
from perfmodel.measuring.isolation.process import ChildProcess, ProcessEndedError, ProcessLimits
from perfmodel.measuring.isolation.serving import Answers, Message

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
        self._process: ChildProcess | None = None

    def __enter__(self) -> Comparer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.close()

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
        try:
            if self._process is None:
                opening = {"device": self._device.fingerprint()}
                self._process = ChildProcess(COMPARING, opening, what="a process for it")
            return str(self._process.asked({"launches": message}, "it", ProcessLimits(LIMIT_S))["differs"])
        except ProcessEndedError as ended:
            self._process = None
            return str(ended).partition(":")[0]


def comparing(opening: Message) -> Answers:
    """Returns what runs two launches and says how their results differ; see `perfmodel.measuring.isolation.serving`."""
    device = Device.from_fingerprint(opening["device"])

    def answer(request: Message) -> Message:
        original, changed = map(as_launch, request["launches"])
        return {"differs": _difference(original, changed, device)}

    return answer


COMPARING = f"{__name__}:{comparing.__name__}"


def _difference(original: Launch, changed: Launch, device: Device) -> str:
    try:
        verify_against(original, changed, device)
    except PerfmodelError as error:
        return str(error).split("\n")[0]
    except Exception as error:  # what pyopencl raises of a kernel that cannot be built
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


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
