"""Launches of one kernel at the same sizes, together."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfmodel.basics.errors import PerfmodelError
from perfmodel.interception.record import LaunchRecord
from perfmodel.modelling.calibration import Calibration


@dataclass
class Launches:
    """Launches of the same kernel on the same device with the same sizes and values."""

    records: list[LaunchRecord]

    @property
    def first(self) -> LaunchRecord:
        return self.records[0]

    @property
    def seconds(self) -> float | None:
        """The median of the times that are known, in seconds; None if none is."""
        times = [record.seconds for record in self.records]
        known = [time for time in times if time is not None]
        return statistics.median(known) if known else None

    @property
    def sizes(self) -> dict[str, Any]:
        """The scalar arguments by name."""
        return {each.name: _plain(each.value) for each in self.first.arguments if each.kind == "scalar"}


def predicted(
    group: Launches, calibration: Calibration, statistics: Mapping[str, float] | None = None
) -> tuple[float | None, str]:
    """Returns the predicted seconds of one launch, or None and the reason."""
    try:
        return group.first.predict(calibration, statistics), ""
    except PerfmodelError as error:
        return None, str(error).split("\n")[0]


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
