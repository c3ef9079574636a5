"""Learns from the times of a program's launches."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.basics.errors import PerfmodelError
from perfmodel.device.facts import facts_called
from perfmodel.interception.launches import Launches
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.calibration import Calibration
from perfmodel.modelling.learned import Learned, learned_from


def learned(groups: Sequence[Launches], calibration: Calibration) -> Learned:
    """Returns what the measured times of launches say of a calibration: of each kernel at its sizes, the shortest.

    Left out are launches without a time or on another device, and what `learned_from` leaves out.
    """
    timed: list[tuple[str, Kernel, float]] = []
    left_out: dict[str, str] = {}
    for group in groups:
        name = f"{group.first.name} {group.first.global_size}"
        try:
            timed.append((name, group.first.kernel, _time(group, calibration)))
        except PerfmodelError as error:
            left_out[name] = str(error).split("\n")[0]
    return learned_from(calibration, timed, left_out)


def _time(group: Launches, calibration: Calibration) -> float:
    """Returns the seconds of one launch.

    Raises:
        PerfmodelError: there is no time, or it is that of another device.
    """
    here, there = group.first.device, str(calibration.device.get("name"))
    if here != there:
        facts = facts_called(here)
        if facts is None or facts != facts_called(there):
            raise PerfmodelError(f"it ran on {here}, and the calibration is of {there}")
    times = [record.seconds for record in group.records if record.seconds]
    if not times:
        raise PerfmodelError("its queue tells no times")
    return min(times)
