"""Says what a program took on its device: kernels and copies, totals and shares, measured beside predicted."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.json_values import plain
from perfmodel.basics.notebook import ShownAsText
from perfmodel.basics.tables import grid, memory, percent, seconds, wrapped
from perfmodel.interception.copies import WORDS, CopyRecord
from perfmodel.interception.launches import Launches
from perfmodel.interception.queued import Queued
from perfmodel.interception.time_line import Event, time_line
from perfmodel.modelling.calibration import Calibration


@dataclass
class TimedLine:
    """Launches of one kernel at the same sizes, or copies in one direction.

    Attributes:
        predicted: the seconds of all of it by the name of a calibration, None for what cannot be predicted.
        problems: why something is not known, as sentences.
    """

    records: Sequence[Queued]
    predicted: Mapping[str, float | None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    launches: Launches | None = None

    @property
    def words(self) -> str:
        """The kernel's name, or what is copied where."""
        first = self.records[0]
        return WORDS[first.direction] if isinstance(first, CopyRecord) else self.launches.first.name  # type: ignore[union-attr]

    @cached_property
    def times(self) -> list[float]:
        """The seconds of those whose time is known."""
        return [seconds for seconds in (record.seconds for record in self.records) if seconds is not None]

    @property
    def each(self) -> float | None:
        """The median of the times that are known, in seconds."""
        return statistics.median(self.times) if self.times else None

    @property
    def total(self) -> float | None:
        """The seconds of all together; those whose time is not known count as the others' mean."""
        return sum(self.times) / len(self.times) * len(self.records) if self.times else None

    @property
    def n_bytes(self) -> int:
        """The bytes of a launch's arrays, or of all copies together."""
        if self.launches is not None:
            return self.launches.first.n_bytes
        return sum(record.n_bytes for record in self.records if isinstance(record, CopyRecord))


@dataclass
class ProgramTimes(ShownAsText):
    """Holds the kernels and copies of a program.

    Attributes:
        lines: kernels in the order of their first launches, then copies.
        calibrations: the names of those that predict.
        program_s: the seconds of the program, by the host's clock.
        began_s: when it began, by `time.perf_counter`.
    """

    lines: list[TimedLine]
    calibrations: tuple[str, ...]
    program_s: float
    began_s: float

    @property
    def total(self) -> float | None:
        """The seconds of all that is measured; None if nothing is."""
        known = [line.total for line in self.lines if line.total is not None]
        return sum(known) if known else None

    def predicted_total(self, name: str) -> float | None:
        """Returns the predicted seconds of all that is predicted by one calibration; None if nothing is."""
        known = [each for line in self.lines if (each := line.predicted.get(name)) is not None]
        return sum(known) if known else None

    def problems(self) -> list[str]:
        """Returns what is not known, each sentence once."""
        return list(dict.fromkeys(problem for line in self.lines for problem in line.problems))

    @cached_property
    def events(self) -> list[Event]:
        """All launches and copies in the order in which they began.

        The device's clock is set by the host's: no command is queued before the program asked for it.
        """
        records = [(line.words, record) for line in self.lines for record in line.records]
        ahead: dict[str, float] = {}
        for _, record in records:
            if record.span is not None:
                offset = record.asked_s - record.span.queued
                ahead[record.device] = max(ahead.get(record.device, offset), offset)
        found = []
        for words, record in records:
            seconds = record.seconds
            if seconds is not None:
                start = record.asked_s if record.span is None else record.span.start + ahead[record.device]
                found.append(Event(words, start - self.began_s, seconds))
        return sorted(found, key=lambda event: event.start)

    def __str__(self) -> str:
        if not self.lines:
            return "no launches"
        parts = [_measured(self), _predicted(self) if self.calibrations else "", time_line(self.events)]
        return "\n\n".join(filter(None, parts))

    def __repr__(self) -> str:
        return brief(self, f"{len(self.lines)} kernels and copies", f"{self.program_s:.3g} s")

    def as_json(self) -> dict[str, Any]:
        """Returns totals, kernels, copies and the time line as values that JSON can hold."""
        total = self.total
        return {
            "program_s": self.program_s,
            "device_s": total,
            "predicted_s": {name: self.predicted_total(name) for name in self.calibrations},
            "launches": [plain(self._kernel(line)) for line in self.lines if line.launches],
            "copies": [plain(self._copies(line)) for line in self.lines if not line.launches],
            "events": [
                {"what": event.words, "start_s": event.start, "seconds": event.seconds} for event in self.events
            ],
        }

    def _copies(self, line: TimedLine) -> dict[str, Any]:
        return {"what": line.words, "copies": len(line.records), "bytes": line.n_bytes, **self._times(line)}

    def _times(self, line: TimedLine) -> dict[str, Any]:
        total = self.total
        return {
            "device": line.records[0].device,
            "measured_s": line.each,
            "measured_total_s": line.total,
            "share": line.total / total if line.total is not None and total else None,
            "predicted": {
                name: {"seconds": None if each is None else each / len(line.records), "total_s": each}
                for name, each in line.predicted.items()
            },
            "problems": line.problems,
        }

    def _kernel(self, line: TimedLine) -> dict[str, Any]:
        assert line.launches is not None
        first = line.launches.first
        return {
            "kernel": first.name,
            "launches": len(line.records),
            "global_size": first.global_size,
            "local_size": first.local_size,
            "global_offset": first.global_offset,
            "sizes": line.launches.sizes,
            "argument_bytes": first.n_bytes,
            **self._times(line),
        }


def program_times(
    groups: Sequence[Launches],
    copies: Sequence[CopyRecord],
    calibrations: Mapping[str, Calibration],
    began_s: float,
    program_s: float,
) -> ProgramTimes:
    """Returns what a program took, predicted by some calibrations as well."""
    lines = [_of_launches(group, calibrations) for group in groups]
    by_way: dict[tuple[str, str], list[CopyRecord]] = {}
    for copy in copies:
        by_way.setdefault((copy.direction, copy.device), []).append(copy)
    lines += [_of_copies(each, calibrations) for each in by_way.values()]
    return ProgramTimes(lines, tuple(calibrations), program_s, began_s)


def _of_launches(group: Launches, calibrations: Mapping[str, Calibration]) -> TimedLine:
    problems = [group.first.problem] if group.first.problem else []
    found: dict[str, float | None] = {}
    for name, calibration in calibrations.items():
        try:
            found[name] = group.first.predict(calibration) * len(group.records)
        except PerfmodelError as error:
            found[name] = None
            problems.append(str(error).split("\n")[0])
    return TimedLine(group.records, found, list(dict.fromkeys(problems)), group)


def _of_copies(copies: Sequence[CopyRecord], calibrations: Mapping[str, Calibration]) -> TimedLine:
    found: dict[str, float | None] = {}
    for name, calibration in calibrations.items():
        predict = copying_by(calibration)
        times = [predict(copy) for copy in copies]
        found[name] = None if None in times else sum(time for time in times if time is not None)
    return TimedLine(copies, found)


def copying_by(calibration: Calibration) -> Callable[[CopyRecord], float | None]:
    """Returns what predicts copies: by the prices of transfers, if the calibration has them (``f_transfer_bytes_to``).

    It is what the copy adds to a launch, whichever that is: copies and kernels take turns.
    """
    compiled = calibration.model.string.compile()
    launch = {name: np.asarray(0.0 if "transfer" in name else 1.0) for name in calibration.model.features}
    alone = float(compiled(calibration.parameters, launch))

    def predicted(copy: CopyRecord) -> float | None:
        by_name = {f"f_transfer_bytes_{copy.direction}": copy.n_bytes, f"f_transfers_{copy.direction}": 1}
        moved = {name: np.asarray(float(value)) for name, value in by_name.items() if name in launch}
        return float(compiled(calibration.parameters, {**launch, **moved})) - alone if moved else None

    return predicted


def _measured(found: ProgramTimes) -> str:
    total = found.total
    lines = []
    for line in found.lines:
        share = percent(line.total / total) if line.total is not None and total else "-"
        times = [seconds(line.each), seconds(line.total), share]
        lines.append([*_place(line), memory(line.n_bytes), *times])
    lines.append(["total", "", "", "", "", "", seconds(total), "100.0%" if total else "-"])
    table = grid(["kernel", "times", "global", "local", "bytes", "each", "total", "share"], lines)
    if total is None:
        return f"{table}\n\nno times: the queues were made without profiling"
    works = f"the device worked {seconds(total)} of the program's {seconds(found.program_s)}"
    return f"{table}\n\n{works} ({percent(total / found.program_s)})"


def _place(line: TimedLine) -> list[str]:
    """Returns what was launched or copied, how often, and in which groups."""
    if line.launches is None:
        return [line.words, str(len(line.records)), "", ""]
    first = line.launches.first
    groups = _sizes(first.local_size) if first.local_size else "any"
    return [first.name, str(len(line.records)), _sizes(first.global_size), groups]


def _predicted(found: ProgramTimes) -> str:
    """Returns a table of measured and predicted times: one device's with shares, several devices' side by side."""
    totals = {name: found.predicted_total(name) for name in found.calibrations}
    several = len(totals) > 1
    lines = []
    for line in found.lines:
        cells = [_named(line, found), str(len(line.records)), seconds(line.total)]
        for name, total in totals.items():
            predicted = line.predicted.get(name)
            cells.append(seconds(predicted))
            if not several:
                each = None if predicted is None else predicted / len(line.records)
                share = percent(predicted / total) if predicted is not None and total else "-"
                cells += [seconds(each), share]
        lines.append(cells)
    last = ["total", "", seconds(found.total)]
    for total in totals.values():
        last += [seconds(total)] + ([] if several else ["", "100.0%" if total else "-"])
    header = ["kernel", "times", "measured", *totals, *([] if several else ["each", "share"])]
    table = grid(header, [*lines, last])
    left_out = [line.words for line in found.lines if None in line.predicted.values()]
    if not left_out:
        return table
    return f"{table}\n\n{wrapped('not in the predicted total: ' + ', '.join(dict.fromkeys(left_out)))}"


def _named(line: TimedLine, found: ProgramTimes) -> str:
    """Returns the words of a line, with the global size where a kernel was launched at several."""
    same = [each for each in found.lines if each.launches and each.words == line.words]
    if line.launches is None or len(same) < 2:
        return line.words
    return f"{line.words} {_sizes(line.launches.first.global_size)}"


def _sizes(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))
