"""The stages that a case of a survey goes through, each by itself: its time, and why it failed if it did."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.basics.json_values import plain, reason
from perfmodel.counting.counts import SUBGROUP_SIZE
from perfmodel.kernels.emulation import emulate
from perfmodel.kernels.kernel import Kernel
from perfmodel.measuring.isolation.locks import held
from perfmodel.measuring.isolation.serving import Answers, Message
from perfmodel.measuring.protocol import PROTOCOLS, run_launch, time_launch
from perfmodel.surveying.case import Case
from perfmodel.surveying.cases import LANGUAGES

STAGES = ("read", "counted", "predicted", "emulated", "built", "equal", "measured")
"""The stages stand in the order in which they run: drivers, which may crash, come last."""
ON_A_DEVICE = frozenset({"built", "equal", "measured"})
NEEDS = {
    "counted": {"read"},
    "predicted": {"read"},
    "emulated": {"read"},
    "equal": {"read", "emulated", "built"},
    "measured": {"read", "built"},
}
"""Stages that make no sense where one of these failed."""
MOST_FINDINGS = 8
"""So many of the mistakes that an emulation finds are kept."""
TOLERANCES = {"float16": 2e-2, "float32": 1e-3, "float64": 1e-9}
"""So far may floats of the emulation and of a device differ, relative to the element or a thousandth of the largest."""


@dataclass(frozen=True)
class Stage:
    """Holds what became of one stage of a case.

    Attributes:
        seconds: that it took. processor_seconds: of these, what the processor did for it; None if the stage was ended.
        failure: why it failed, in one sentence; empty if it didn't.
        left_out: why it was not tried; empty if it was.
        values: what it found, such as ``predicted_s``.
    """

    name: str
    seconds: float
    failure: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    processor_seconds: float | None = None
    left_out: str = ""

    @property
    def succeeded(self) -> bool:
        return not self.failure and not self.left_out


def left_after(stages: Sequence[str], done: Stage) -> list[str]:
    """Returns the stages that are left once one is done: the later ones, without those that need it if it failed."""
    later = [name for name in stages if name != done.name]
    return [name for name in later if done.succeeded or done.name not in NEEDS.get(name, ())]


def running(opening: Message) -> Answers:
    """Returns what runs stages of a case by their names; see `perfmodel.measuring.isolation.serving`."""
    told: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in opening["case"].items()
    }
    language = LANGUAGES[Path(told["source"]).suffix]
    stages = CaseStages(language(**{**told, "folder": Path(told["folder"])}), **opening["options"])
    return lambda request: dict(plain(asdict(stages.run(request["stage"]))))


RUNNING = f"{__name__}:{running.__name__}"


class CaseStages:
    """Runs the stages of one case.

    Args:
        device: the key of the device that builds and runs; empty for none.
        calibration: what predicts: a file, or the name of a shipped one; empty for none.
        protocol: how launches are timed.
        effort: how many times the usual work counting may take.
    """

    def __init__(
        self,
        case: Case,
        device: str = "",
        calibration: str = "",
        protocol: str = "quick",
        effort: float | None = None,
    ) -> None:
        self.case, self._device_key, self._calibration_name = case, device, calibration
        self._protocol, self._effort = PROTOCOLS[protocol], effort

    def run(self, stage: str) -> Stage:
        """Runs one stage; whatever goes wrong is its failure."""
        steps: dict[str, Callable[[], dict[str, Any]]] = {
            "read": self._read,
            "counted": self._counted,
            "predicted": self._predicted,
            "emulated": self._emulated,
            "built": self._built,
            "equal": self._equal,
            "measured": self._measured,
        }
        started, worked = time.perf_counter(), time.process_time()
        failure, values = "", {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values = steps[stage]()
        except PerfmodelError as error:
            failure = _told(error)
        except Exception as error:  # which would be a mistake of perfmodel's, and is reported as one
            failure = f"perfmodel failed: {reason(error)}"
        return Stage(
            name=stage,
            seconds=time.perf_counter() - started,
            failure=failure,
            values=values,
            processor_seconds=time.process_time() - worked,
        )

    @cached_property
    def _plain(self) -> Kernel:
        kernel = self.case.as_kernel()
        return kernel if self._effort is None else kernel.with_budget(self._effort)

    @cached_property
    def _countable(self) -> Kernel:
        """The kernel, counted on the case's data where these decide what it does."""
        return self._plain.as_countable(self.case.sampled)

    @cached_property
    def _device(self) -> Any:
        from perfmodel.device import find_device  # drivers may crash, and no stage before needs one

        return find_device(self._device_key)

    def _read(self) -> dict[str, Any]:
        self._plain.launch()
        return {}

    def _counted(self) -> dict[str, Any]:
        kernel = self._countable
        counts, sizes = kernel.counts_for(SUBGROUP_SIZE), kernel.sizes
        executions = [each.executions for each in counts.operations] + [each.executions for each in counts.accesses]
        values = [float(each.workitem(sizes)) for each in executions]
        if not all(math.isfinite(value) and value >= 0 for value in values):
            raise KernelError(f"kernel {kernel.name!r} has counts that are no numbers; report this")
        return {"observed": kernel.is_observed, "sampled": counts.sampled}

    def _predicted(self) -> dict[str, Any]:
        from perfmodel.modelling.calibration import calibration_called  # slow to import
        from perfmodel.modelling.prediction import LEVEL, predict

        found = predict(calibration_called(self._calibration_name), self._countable, {})
        low, high = (float(end) for end in found.interval(LEVEL))
        return {"predicted_s": float(found.seconds), "low_s": low, "high_s": high}

    def _emulated(self) -> dict[str, Any]:
        found = emulate(self._plain, self.case.sampled, groups="sample", extrapolate=True)
        # A race has one finding for each statement that takes part; here one says enough of each place.
        by_place = {(each.kind, each.place): str(each) for each in reversed(found.findings)}
        return {
            "groups": len(found.emulated_groups),
            "findings": [*reversed(by_place.values())][:MOST_FINDINGS],
            "extrapolated": found.is_extrapolated,
        }

    def _built(self) -> dict[str, Any]:
        self.case.build(self._device)
        return {}

    def _equal(self) -> dict[str, Any]:
        launch = self._plain.launch()
        arrays = self.case.host_arrays(self._plain)
        found = run_launch(self.case.uncontracted(launch), self._device, arrays)
        emulated = emulate(self._plain, self.case.arrays, groups="all")
        races = sorted({each.kind for each in emulated.findings})
        for name in [name for name in found if name not in self.case.any_order]:
            element = self.case.contents[name].dtype
            ours, theirs = (
                np.ascontiguousarray(array).reshape(-1).view(np.uint8).view(element)
                for array in (emulated.array(name), found[name])
            )
            if difference := _difference(ours, theirs, int(name in self.case.any_rounding)):
                told = f" (the emulation found: {', '.join(races)})" if races else ""
                raise KernelError(f"array {name!r} of kernel {self.case.kernel!r} differs {difference}{told}")
        return {}

    def _measured(self) -> dict[str, Any]:
        arrays = self.case.host_arrays(self._plain)
        with held(self._device):
            timing = time_launch(self._plain.launch(), self._device, self._protocol, arrays)
        return {"measured_s": timing.seconds, "flags": list(timing.flags)}


def _told(error: PerfmodelError) -> str:
    """Returns an error in one line: its first one, and of a compiler's log that follows the first mistake."""
    first, *log = (" ".join(line.split()) for line in str(error).split("\n"))
    mistakes = (line for line in log if "error" in line)
    return f"{first} {next(mistakes, log[0])}" if first.endswith(":") and log else first


def _difference(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], off: int) -> str:
    """Returns where two arrays differ and how; empty where they don't. Whole numbers may be off by so much."""
    if names := theirs.dtype.names:
        told = (f"in .{name} {said}" for name in names if (said := _difference(ours[name], theirs[name], off)))
        return next(told, "")
    ours, theirs = ours.reshape(-1), theirs.reshape(-1)
    if theirs.dtype.kind != "f":
        wrong = ours != theirs
        if off:
            wrong &= np.abs(ours.astype(float) - theirs.astype(float)) > off
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            wide, expected = ours.astype(float), theirs.astype(float)
            finite = np.where(np.isfinite(expected), np.abs(expected), 0)
            limit = TOLERANCES[theirs.dtype.name] * np.maximum(finite, 1e-3 * np.max(finite, initial=0))
            wrong = (wide != expected) & ~(np.isnan(wide) & np.isnan(expected)) & ~(np.abs(wide - expected) <= limit)
    if not wrong.any():
        return ""
    first = int(np.argmax(wrong))
    return (
        f"in {int(wrong.sum())} of {wrong.size} numbers, first in number {first}: {ours[first]} emulated, "
        f"{theirs[first]} on the device"
    )
