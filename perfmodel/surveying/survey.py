"""Runs the cases of a survey, each in a process of its own with limits, and sums up what became of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import SurveyError, nearest
from perfmodel.basics.json_values import plain
from perfmodel.measuring.isolation.process import ChildProcess, ProcessEndedError, ProcessLimits
from perfmodel.surveying.case import Case
from perfmodel.surveying.stages import ON_A_DEVICE, RUNNING, STAGES, Stage, left_after


@dataclass(frozen=True)
class Times:
    """Holds what a case takes, in seconds, as far as it was predicted and measured.

    Attributes:
        low, high: the ends of the interval that it was predicted in; no high where nothing bounds it.
    """

    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    measured: float | None = None

    @property
    def ratio(self) -> float | None:
        """The predicted by the measured time."""
        return None if self.predicted is None or self.measured is None else self.predicted / self.measured

    @property
    def is_covered(self) -> bool:
        """True where the measured time lies in the interval."""
        if self.measured is None or self.low is None:
            return False
        return self.low <= self.measured and (self.high is None or self.measured <= self.high)


@dataclass(frozen=True)
class CaseOutcome:
    """Holds what became of a case, stage by stage."""

    case: Case
    stages: tuple[Stage, ...]

    def stage(self, name: str) -> Stage | None:
        """Returns a stage by its name; None for one that was not asked for, or made no sense after another failed."""
        return next((stage for stage in self.stages if stage.name == name), None)

    def succeeded(self, name: str) -> bool:
        stage = self.stage(name)
        return stage is not None and stage.succeeded

    @property
    def times(self) -> Times:
        """Seconds that the case takes."""
        found: dict[str, float] = {}
        for name in ("predicted", "measured"):
            if (stage := self.stage(name)) is not None and stage.succeeded:
                found |= stage.values
        return Times(found.get("predicted_s"), found.get("low_s"), found.get("high_s"), found.get("measured_s"))

    @property
    def error(self) -> float | None:
        """The relative error of the predicted time, of a case that was predicted and measured."""
        ratio = self.times.ratio
        return None if ratio is None else abs(ratio - 1)

    def as_json(self) -> dict[str, Any]:
        """Returns the outcome as values that JSON can hold."""
        found: dict[str, Any] = plain(
            {
                "name": self.case.name,
                "group": self.case.group,
                "launch": self.case.launch,
                "stages": {stage.name: {**asdict(stage), "name": None} for stage in self.stages},
                "error": self.error,
            }
        )
        for stage in found["stages"].values():
            del stage["name"]
        return found


class Survey:
    """Holds the outcomes of a survey's cases, in order, and the stages that were asked for."""

    def __init__(self, outcomes: Sequence[CaseOutcome], stages: Sequence[str]) -> None:
        self.outcomes, self.stages = tuple(outcomes), tuple(stages)

    @property
    def groups(self) -> dict[str, list[CaseOutcome]]:
        """The outcomes by the group of their cases."""
        found: dict[str, list[CaseOutcome]] = {}
        for outcome in self.outcomes:
            found.setdefault(outcome.case.group, []).append(outcome)
        return found

    @property
    def failures(self) -> list[tuple[Case, Stage]]:
        """The stages that failed, with their cases."""
        return [(each.case, stage) for each in self.outcomes for stage in each.stages if stage.failure]

    @property
    def left_out(self) -> list[tuple[Case, Stage]]:
        """The stages that were not tried as the device runs no such kernels, with their cases."""
        return [(each.case, stage) for each in self.outcomes for stage in each.stages if stage.left_out]

    def as_json(self) -> dict[str, Any]:
        """Returns the survey as values that JSON can hold."""
        return {"stages": list(self.stages), "cases": [outcome.as_json() for outcome in self.outcomes]}

    def __repr__(self) -> str:
        return brief(self, f"{len(self.outcomes)} cases", f"{len(self.failures)} stages failed")


def survey(
    cases: Sequence[Case],
    *,
    device: str = "",
    calibration: str = "",
    measured: bool = False,
    without: Sequence[str] = (),
    protocol: str = "quick",
    effort: float | None = None,
    limits: ProcessLimits | None = None,
    jobs: int = 1,
    on_case: Callable[[CaseOutcome], None] = lambda outcome: None,
) -> Survey:
    """Takes cases through their stages and returns what became of each.

    Args:
        device: one that builds the kernels and runs them, as `perfmodel.device.find_device` takes it, by way of OpenCL
            or CUDA as their language asks for; without it they are not built and compared.
        calibration: what predicts them: a file, or the name of a shipped one; without it they are not predicted.
        measured: whether they are also timed on the device, by the named `protocol`.
        without: stages to leave out, such as ``equal``, for which all work-groups are emulated.
        effort: how many times the usual work counting a kernel may take, see `perfmodel.Kernel.with_budget`.
        limits: of every stage of a case (60 s, if nothing is said), and of its process's memory.
        jobs: so many cases at a time; a GPU measures one of them at a time.
        on_case: called with each outcome as soon as it is there, so that a survey that is interrupted loses nothing.

    Raises:
        SurveyError: for options that contradict each other.
    """
    if measured and not device:
        raise SurveyError("a survey that measures needs a device; give one")
    if measured and jobs > 1 and _is_processor(device):
        raise SurveyError(f"{jobs} jobs would disturb each other's times on a processor; measure with one")
    for stage in without:
        if stage not in STAGES:
            raise SurveyError(f"a survey has no stage {stage!r}{nearest(stage, STAGES)}; leave out one of its own")
    stages = [
        stage
        for stage in STAGES
        if (stage not in ON_A_DEVICE or device)
        and (stage != "predicted" or calibration)
        and (stage != "measured" or measured)
        and stage not in without
    ]
    if not stages:
        raise SurveyError("a survey without any stage does nothing; leave out fewer")
    found_devices = {runtime: _device_of(device, runtime) for runtime in {case.runtime for case in cases} if device}

    def outcome(case: Case) -> CaseOutcome:
        key, why = found_devices.get(case.runtime, ("", ""))
        options = {"device": key, "calibration": calibration, "protocol": protocol, "effort": effort}
        tried = [stage for stage in stages if not (why and stage in ON_A_DEVICE)]
        done = list(_stages(case, tried, options, limits or ProcessLimits(60.0)))
        return CaseOutcome(case, (*done, *(Stage(stage, 0.0, left_out=why) for stage in stages if stage not in tried)))

    found: list[CaseOutcome] = []
    with ThreadPoolExecutor(jobs) as executor:
        try:
            for each in executor.map(outcome, cases):
                found.append(each)
                on_case(each)
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise
    return Survey(found, stages)


def _device_of(selector: str, runtime: str) -> tuple[str, str]:
    """Returns the key of the device that a selector names for a runtime, or why there is none."""
    from perfmodel.device import find_device  # drivers may crash, and surveys that measure nothing need none

    found = find_device(selector, runtime=runtime)
    return (found.key, "") if found.runtime == runtime else ("", f"{found.key} runs no kernels by way of {runtime}")


def _is_processor(device: str) -> bool:
    from perfmodel.device import find_device  # drivers may crash, and surveys that measure nothing need none

    return find_device(device).kind == "cpu"


def _stages(case: Case, stages: Sequence[str], options: Mapping[str, Any], limits: ProcessLimits) -> Iterator[Stage]:
    """Yields the stages of a case; a process that a stage ends is replaced for the next ones."""
    opening = {"case": {**asdict(case), "folder": str(case.folder.resolve())}, "options": options}
    left, process = list(stages), None
    try:
        while left:
            started = time.monotonic()
            try:
                process = process or ChildProcess(RUNNING, opening, what="a process for it")
                stage = Stage(**process.asked({"stage": left[0]}, "it", limits))
            except ProcessEndedError as ended:
                process, stage = None, Stage(left[0], time.monotonic() - started, str(ended))
            left = left_after(left, stage)
            yield stage
    finally:
        if process is not None:
            process.close()
