"""All launches of a program, in their order, as a sequence and as tables."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, overload

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import KernelError
from perfmodel.interception.copies import CopyRecord
from perfmodel.interception.cupy_patches import CUPY_PATCHES
from perfmodel.interception.launches import Launches, predicted
from perfmodel.interception.patches import PATCHES
from perfmodel.interception.program_times import ProgramTimes, program_times
from perfmodel.interception.queued import Queued
from perfmodel.interception.record import LaunchRecord, named
from perfmodel.interception.report import as_text
from perfmodel.modelling.calibration import Calibration

if TYPE_CHECKING:
    import pandas as pd


class LaunchLog(Sequence[LaunchRecord]):
    """Records the launches made within ``with`` blocks of it; see `perfmodel.intercept`.

    Attributes:
        copies: of arrays between host and device, and on the device, in their order.
    """

    def __init__(
        self, contents: bool | Literal["first"] = False, limit_bytes: int = 256 * 2**20, profiles: bool = False
    ) -> None:
        if contents not in (True, False, "first"):
            raise KernelError(f"contents={contents!r} cannot be kept; give True, False or 'first'")
        if isinstance(limit_bytes, bool) or not isinstance(limit_bytes, int) or limit_bytes < 0:
            raise KernelError(f"limit_bytes={limit_bytes!r} is no number of bytes; give a whole one")
        if not isinstance(profiles, bool):
            raise KernelError(f"profiles={profiles!r} is neither True nor False; give one of them")
        self.contents, self.limit_bytes, self.profiles = contents, limit_bytes, profiles
        self.copies: list[CopyRecord] = []
        self._records: list[LaunchRecord] = []
        self._running: deque[Queued] = deque()
        self._began = self._ended = 0.0
        self._kept: set[tuple[object, ...]] = set()

    def __enter__(self) -> LaunchLog:
        self._began = self._began or time.perf_counter()
        PATCHES.open(self)
        CUPY_PATCHES.open(self)
        return self

    def __exit__(self, *_: object) -> None:
        CUPY_PATCHES.close(self)
        PATCHES.close(self)
        self._ended = time.perf_counter()
        self._let_go()

    def wants_contents(self, record: LaunchRecord) -> bool:
        """Returns True if contents are to be kept of a launch that is about to happen."""
        if self.contents == "first":
            if record.key in self._kept:
                return False
            self._kept.add(record.key)
        return bool(self.contents)

    def add(self, record: LaunchRecord) -> None:
        self._records.append(record)
        self._running.append(record)
        self._let_go()

    def add_copy(self, record: CopyRecord) -> None:
        self.copies.append(record)
        self._running.append(record)
        self._let_go()

    def _let_go(self) -> None:
        """Takes the times of launches that have ended, so that no more events are kept than are needed."""
        with suppress(IndexError):  # another thread was faster
            while self._running[0].has_ended():
                self._running.popleft()

    @overload
    def __getitem__(self, index: int) -> LaunchRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[LaunchRecord]: ...
    def __getitem__(self, index: int | slice) -> LaunchRecord | list[LaunchRecord]:
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[LaunchRecord]:
        return iter(list(self._records))

    def groups(self) -> list[Launches]:
        """Returns launches of the same kernel at the same sizes together, in the order of the first of each."""
        groups: dict[object, Launches] = {}
        for record in self:
            groups.setdefault(record.key, Launches([])).records.append(record)
        return list(groups.values())

    def times(self, calibrations: Iterable[Calibration] | Mapping[str, Calibration] = ()) -> ProgramTimes:
        """Returns kernels and copies with their totals and shares, measured and predicted, and the time line.

        Args:
            calibrations: of the devices to predict for; named by their devices if not by a mapping.
        """
        ended = max(self._ended, self._began)
        return program_times(self.groups(), self.copies, dict(named(calibrations)), self._began, ended - self._began)

    def table(self) -> pd.DataFrame:
        """Returns a DataFrame with a row for each launch, in order; waits for those that still run, if their time is
        measured."""
        import pandas as pd  # slow to import

        columns = (
            *("kernel", "global_size", "local_size", "global_offset", "argument_bytes", "measured_s", "device"),
            "problem",
        )
        rows = [
            (r.name, r.global_size, r.local_size, r.global_offset, r.n_bytes, r.seconds, r.device, r.problem)
            for r in self
        ]
        frame = pd.DataFrame(rows, columns=list(columns))
        return frame.astype({"measured_s": "float64"})

    def predict(
        self, calibration: Calibration, statistics: Mapping[str, Mapping[str, float]] | None = None
    ) -> pd.DataFrame:
        """Returns a DataFrame with a row for each kernel and its sizes: the predicted seconds of one launch and, if
        known, the measured.

        What cannot be predicted has the reason in ``problem``.

        Args:
            statistics: for kernels by name, as for `LaunchRecord.kernel_with`.
        """
        import pandas as pd  # slow to import

        columns = (
            *("kernel", "global_size", "local_size", "sizes", "launches", "predicted_s", "measured_s", "device"),
            "problem",
        )
        rows = []
        for group in self.groups():
            first = group.first
            seconds, problem = predicted(group, calibration, (statistics or {}).get(first.name))
            place = (first.name, first.global_size, first.local_size, group.sizes)
            rows.append((*place, len(group.records), seconds, group.seconds, first.device, problem))
        frame = pd.DataFrame(rows, columns=list(columns))
        return frame.astype({"predicted_s": "float64", "measured_s": "float64"})

    def __repr__(self) -> str:
        names = dict.fromkeys(record.name for record in self)
        return brief(self, f"{len(self):,} launched", *names)

    def __str__(self) -> str:
        return as_text(self.times())
