"""Looks into a store that may be written meanwhile: rows by filters, two devices or versions side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfmodel.basics import json_values
from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.tables import sizes_text
from perfmodel.collection.tags import parted
from perfmodel.measuring.store import Failure, Measurement, Store, StoredEvaluation
from perfmodel.modelling.calibration_file import FILE

LARGEST_CALIBRATION = 2**24
"""Bytes; larger files beside a store are not looked into."""


@dataclass(frozen=True)
class Wanted:
    """Holds what a visitor asks for.

    Attributes:
        words: filters by name, tag and size, such as ``matmul_sq prefetch=True n:512,1024``.
        device, other: keys of devices; the first column, and the one beside it.
        version, other_version: of perfmodel or a package, as `versions_of` writes them; empty for the newest.
        calibration: the name of a file beside the store.
    """

    words: str = ""
    device: str = ""
    other: str = ""
    version: str = ""
    other_version: str = ""
    calibration: str = ""


@dataclass(frozen=True)
class KernelLine:
    """A kernel at its sizes, with its times in the two columns; None where there is none."""

    kernel: str
    variant: str
    sizes: str
    first: Measurement | None
    second: Measurement | None

    @property
    def ratio(self) -> float | None:
        """The second time over the first."""
        if self.first is None or self.second is None or not self.first.seconds > 0:
            return None
        return self.second.seconds / self.first.seconds


class StoreView:
    """A view of a store's file that reads rows once, and only those that are new."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows: dict[str, Measurement] = {}
        self._failures: tuple[Failure, ...] = ()
        self.evaluations: tuple[StoredEvaluation, ...] = ()
        self._state: tuple[object, ...] = ()
        self.refresh()

    def refresh(self) -> bool:
        """Reads what is new; returns whether there was anything.

        Raises:
            StoreError: the file can't be read as a store.
        """
        state = tuple(_stamp(Path(f"{self.path}{ending}")) for ending in ("", "-wal"))
        if state == self._state:
            return False
        with Store(self.path, read_only=True) as store:
            known = set(store.keys())
            self._rows = {key: row for key, row in self._rows.items() if key in known}
            missing = sorted(known - self._rows.keys())
            found = store.get_many(missing)
            self._rows.update(found)
            failures, evaluations = tuple(store.all_failures()), tuple(store.evaluations())
        changed = bool(missing) or (failures, evaluations) != (self._failures, self.evaluations) or not self._state
        self._failures, self.evaluations, self._state = failures, evaluations, state
        return changed

    @property
    def failures(self) -> tuple[Failure, ...]:
        return self._failures

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def stamp(self) -> str:
        """Text that changes with what the store holds."""
        newest = max((row.created for row in self._rows.values()), default="")
        return f"{len(self._rows)}-{len(self._failures)}-{len(self.evaluations)}-{newest}"

    def devices(self) -> dict[str, str]:
        """Returns the names of devices by key, the one with most rows first."""
        counts = Counter(str(row.device.get("key", "")) for row in self._rows.values())
        names = {str(row.device.get("key", "")): str(row.device.get("name", "")) for row in self._rows.values()}
        return {key: names[key] for key, _ in counts.most_common()}

    def versions(self) -> list[str]:
        """Returns the versions that rows were measured by, the newest rows' first."""
        newest: dict[str, str] = {}
        for row in self._rows.values():
            text = versions_of(row)
            newest[text] = max(newest.get(text, ""), row.created)
        return sorted(newest, key=lambda text: newest[text], reverse=True)

    def lines(self, wanted: Wanted) -> list[KernelLine]:
        """Returns the kernels that filters select, with the newest times of either column."""
        chosen = [row for row in self._rows.values() if fits(row, wanted.words.split())]
        first = _newest(chosen, wanted.device, wanted.version)
        has_second = bool(wanted.other or wanted.other_version)
        second = _newest(chosen, wanted.other or wanted.device, wanted.other_version) if has_second else {}
        places = dict.fromkeys([*first, *second])
        found = [KernelLine(*place[:3], first.get(place), second.get(place)) for place in places]
        return sorted(found, key=lambda line: (line.kernel, line.variant, _sizes(line)))

    def calibrations(self) -> list[str]:
        """Returns the names of files beside the store that are calibrations."""
        found = []
        for path in sorted(self.path.parent.glob("*.json")):
            try:
                content = json_values.read_bytes(path, LARGEST_CALIBRATION)[:400]
            except (OSError, PerfmodelError, ValueError):
                continue
            if f'"{FILE.format}"'.encode() in content:
                found.append(path.name)
        return found


def versions_of(row: Measurement) -> str:
    """Returns what measured a row, and the driver, as text."""
    names = ("perfmodel", "loopy", "pyopencl")
    found = [f"{name} {row.versions[name]}" for name in names if name in row.versions]
    return ", ".join([*found, f"driver {row.device.get('driver', 'unknown')}"])


def fits(row: Measurement, words: Iterable[str]) -> bool:
    """Returns whether a row has all tags, sizes and parts of names that words ask for."""
    for word in words:
        name, mark, values = parted(word)
        if not mark:
            if name.lower() not in f"{row.kernel} {' '.join(row.tags.values())}".lower():
                return False
            continue
        has = {**row.tags, **{size: str(value) for size, value in row.sizes.items()}}.get(name)
        if has is None or (values != "*" and has not in values.split(",")):
            return False
    return True


def _newest(rows: Sequence[Measurement], device: str, version: str) -> dict[tuple[str, str, str, str], Measurement]:
    """Returns the newest row of each kernel, its sizes and protocol, of one device and version."""
    found: dict[tuple[str, str, str, str], Measurement] = {}
    for row in sorted(rows, key=lambda row: row.created):
        if device in ("", row.device.get("key")) and version in ("", versions_of(row)):
            variant = " ".join(f"{name}={value}" for name, value in row.tags.items() if name != "generator")
            found[row.kernel, variant, sizes_text(row.sizes), str(row.protocol.get("name", ""))] = row
    return found


def _sizes(line: KernelLine) -> tuple[int, ...]:
    row = line.first or line.second
    return tuple(row.sizes.values()) if row else ()


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
