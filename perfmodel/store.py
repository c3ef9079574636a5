"""Every measurement ever taken, in one SQLite file that several processes may write at once."""

from __future__ import annotations

import hashlib
import json
import lzma
import math
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from perfmodel.device import Device
from perfmodel.errors import DeviceError, PerfmodelError, StoreError
from perfmodel.measurement import Protocol, reduced

APPLICATION_ID = 0x706D6F64  # "pmod": tells a store from other programs' SQLite files
BUSY_SECONDS = 60.0
KEYS_A_QUERY = 500


@dataclass(frozen=True)
class Measurement:
    """One launch's times and all that is needed to know what they are of.

    Attributes:
        key: as `measurement_key` makes it.
        kernel: the kernel's name, for people.
        content: hash of the program.
        device: the device's fingerprint.
        trials: seconds, all of them; the first `dropped` do not count.
        created: UTC, ISO 8601.
        versions: of the packages that took part.
    """

    key: str
    kernel: str
    content: str
    sizes: dict[str, int]
    tags: dict[str, str]
    device: dict[str, Any]
    protocol: dict[str, Any]
    trials: tuple[float, ...]
    dropped: int
    statistic: str
    flags: tuple[str, ...]
    created: str
    versions: dict[str, str]

    @property
    def seconds(self) -> float:
        return reduced(self.trials, self.dropped, self.statistic)


COLUMNS = tuple(field.name for field in fields(Measurement))
JSON_TYPES = {
    "sizes": dict,
    "tags": dict,
    "device": dict,
    "protocol": dict,
    "versions": dict,
    "trials": list,
    "flags": list,
}


def measurement_key(
    content: str, sizes: Mapping[str, int], device: Mapping[str, Any], protocol: Protocol | Mapping[str, Any]
) -> str:
    """What makes two measurements the same: program, sizes, device with its driver, and how the time was taken.

    Args:
        device: a fingerprint; its ``key`` and ``driver`` count.
        protocol: everything but its name counts.

    Returns:
        64 hexadecimal digits, the same in every process and for every order of the mappings.
    """
    how = dict(asdict(protocol) if isinstance(protocol, Protocol) else protocol)
    how.pop("name", None)
    identity = {
        "content": content,
        "sizes": {name: int(size) for name, size in sizes.items()},
        "device": [device["key"], device["driver"]],
        "protocol": how,
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(
        """CREATE TABLE measurement (
            number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kernel TEXT NOT NULL, content TEXT NOT NULL,
            sizes TEXT NOT NULL, tags TEXT NOT NULL, device TEXT NOT NULL, protocol TEXT NOT NULL,
            trials TEXT NOT NULL, dropped INTEGER NOT NULL, statistic TEXT NOT NULL, flags TEXT NOT NULL,
            created TEXT NOT NULL, versions TEXT NOT NULL)"""
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


# Step i takes a file of schema version i to i + 1; files of every published version are kept in the tests.
MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_create,)
SCHEMA_VERSION = len(MIGRATIONS)


class Store:
    """A store of measurements; `path` None keeps it in memory.

    A file is made where there is none, but never its folder, and a file that is no sound store is left as it is.
    A file or folder without write permission is opened for reading, as is one that xz has compressed, ``….xz``. Each
    `put` is on disk when it returns.

    Raises:
        StoreError: from every method, in one sentence with the path and what to do.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._name = "the store in memory" if path is None else f"store {self.path}"
        self._read_only = False
        self._unpacked: Any = None
        with self._explained():
            self._connection = self._connected()
            # A damaged byte must not hide which row it is in.
            self._connection.text_factory = lambda text: text.decode("utf-8", "replace")
            try:
                self._migrate()
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the last process to do so leaves a single file that can be copied or committed."""
        with self._explained():
            self._connection.close()
        if self._unpacked is not None:
            self._unpacked.close()

    def get(self, key: str) -> Measurement | None:
        return self.get_many([key]).get(key)

    def get_many(self, keys: Iterable[str]) -> dict[str, Measurement]:
        """The measurements of those keys that are there."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, Measurement] = {}
        for start in range(0, len(wanted), KEYS_A_QUERY):
            part = wanted[start : start + KEYS_A_QUERY]
            rows = self._rows(f"WHERE key IN ({', '.join('?' * len(part))})", part)
            found.update((row[0], self._decoded(row)) for row in rows)
        return found

    def put(self, measurement: Measurement) -> None:
        """Write one measurement; one of the same key is replaced, in its place, so that nothing is there twice."""
        if self._unpacked is not None:
            raise StoreError(f"{self._name} is compressed and only read: unpack it by 'xz -dk' and give that file")
        if self._read_only:
            raise StoreError(f"{self._name} may not be written: copy it to a folder that you may write")
        try:
            _check_times(measurement)
        except (ValueError, PerfmodelError) as error:
            raise StoreError(
                f"kernel {measurement.kernel!r} cannot be put into {self._name}, {error}: measure it again"
            ) from error
        updates = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS)
        with self._explained():
            self._connection.execute(
                f"INSERT INTO measurement ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
                f"ON CONFLICT (key) DO UPDATE SET {updates}",
                [_encoded(name, getattr(measurement, name)) for name in COLUMNS],
            )

    def __len__(self) -> int:
        with self._explained():
            return int(self._connection.execute("SELECT count(*) FROM measurement").fetchone()[0])

    def __iter__(self) -> Iterator[Measurement]:
        """All measurements, in the order in which they were first put."""
        for row in self._rows("ORDER BY number"):
            yield self._decoded(row)

    def devices(self) -> list[Device]:
        """The devices that measurements are of, each once, with the driver of its last one."""
        with self._explained():
            rows = self._connection.execute(
                "SELECT device FROM measurement GROUP BY device ORDER BY max(number)"
            ).fetchall()
        found: dict[str, Device] = {}
        for (text,) in rows:
            with suppress(ValueError, TypeError, DeviceError):  # what is damaged or too little to go by: see `check`
                device = Device.from_fingerprint(json.loads(text))
                found[device.key] = device
        return list(found.values())

    def check(self) -> list[str]:
        """What is wrong with the file or with single rows, a sentence each; empty when all is well."""
        problems: list[str] = []
        try:
            with self._explained():
                answers = [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check")]
            problems.extend(f"{self._name} is damaged: {answer}" for answer in answers if answer != "ok")
            for row in self._rows("ORDER BY number"):
                try:
                    self._decoded(row)
                except StoreError as error:
                    problems.append(str(error))
        except StoreError as error:
            problems.append(str(error))
        return problems

    def _connected(self) -> sqlite3.Connection:
        if self.path is None:
            return sqlite3.connect(":memory:", isolation_level=None)
        if self.path.is_dir():
            raise StoreError(f"{self._name} is a folder: give the path of a file in it")
        if not self.path.parent.is_dir():
            raise StoreError(f"{self._name} cannot be made, its folder is not there: make the folder first")
        if self.path.suffix == ".xz":
            return self._decompressed(self.path)
        mode = "mode=rwc"
        has_log = Path(f"{self.path}-wal").exists()
        if self.path.exists():
            if not has_log:
                self._check_whole(self.path)
            self._read_only = not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))
            if self._read_only:  # without a writer's log beside it, the file is read as it lies
                mode = "mode=ro" if has_log else "immutable=1"
        address = f"file:{quote(str(self.path.absolute()))}?{mode}"
        return sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_SECONDS)

    def _decompressed(self, path: Path) -> sqlite3.Connection:
        """A copy that is only read, and gone when the store is closed."""
        self._read_only = True
        self._unpacked = tempfile.NamedTemporaryFile(suffix=".sqlite")  # noqa: SIM115, closed with the store
        try:
            with lzma.open(path) as packed:
                shutil.copyfileobj(packed, self._unpacked)
        except (lzma.LZMAError, EOFError) as error:
            raise StoreError(f"{self._name} {_explanation(f'malformed, {error}')}") from error
        self._unpacked.flush()
        self._check_whole(Path(self._unpacked.name))
        return sqlite3.connect(f"file:{quote(self._unpacked.name)}?immutable=1", uri=True, isolation_level=None)

    def _check_whole(self, path: Path) -> None:
        """Refuse what SQLite would take for sound and write to: a single byte, or a last page that was cut off."""
        with path.open("rb") as file:
            header = file.read(18)
        page_size = int.from_bytes(header[16:18], "big")
        if header and not header.startswith(b"SQLite format 3\0"):
            raise StoreError(f"{self._name} {_explanation('file is not a database')}")
        if page_size > 1 and path.stat().st_size % page_size:
            raise StoreError(f"{self._name} {_explanation('malformed, its end is missing')}")

    def _migrate(self) -> None:
        """Bring the file to the present schema, one step after the other, or say why it cannot be used."""
        self._connection.execute("BEGIN")  # one view of a file that another process may just be making
        version = self._version()
        answer = str(self._connection.execute("PRAGMA quick_check(1)").fetchone()[0])  # 5 ms for 10,000 rows
        if answer != "ok":
            raise StoreError(f"{self._name} {_explanation('malformed, ' + answer.splitlines()[-1])}")
        self._connection.execute("COMMIT")
        if self._read_only and version == SCHEMA_VERSION:
            return
        if self._read_only:
            raise StoreError(f"{self._name} is of an older schema and may not be written: copy it to a folder of yours")
        if version != SCHEMA_VERSION:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                for step in MIGRATIONS[self._version() :]:  # asked again: another process may have done it meanwhile
                    step(self._connection)
                self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.rollback()
                raise
        self._use_write_ahead_log()

    def _version(self) -> int:
        """The file's schema version, zero for an empty file; errors for what is no store of ours."""
        version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
        owner = int(self._connection.execute("PRAGMA application_id").fetchone()[0])
        is_empty = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if owner != APPLICATION_ID and not (is_empty and owner == version == 0):
            raise StoreError(f"{self._name} is another program's SQLite file: give another path")
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self._name} has schema version {version} and this perfmodel knows {SCHEMA_VERSION}: "
                "install a newer perfmodel to read it, or give another path"
            )
        return version

    def _use_write_ahead_log(self) -> None:
        """Readers and a writer side by side; a file system that cannot do it keeps SQLite's ordinary journal."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:  # SQLite does not wait by itself for this change
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _rows(self, clause: str, values: Iterable[str] = ()) -> list[tuple[Any, ...]]:
        with self._explained():
            query = f"SELECT {', '.join(COLUMNS)} FROM measurement {clause}"
            return self._connection.execute(query, tuple(values)).fetchall()

    def _decoded(self, row: tuple[Any, ...]) -> Measurement:
        values = dict(zip(COLUMNS, row, strict=True))
        try:
            for name, kind in JSON_TYPES.items():
                culprit = name
                values[name] = json.loads(values[name])
                if not isinstance(values[name], kind):
                    raise ValueError(f"not a {kind.__name__}")
            culprit = "trials"
            values["trials"] = tuple(float(seconds) for seconds in values["trials"])
            culprit = "flags"
            values["flags"] = tuple(values["flags"])
            if not all(isinstance(flag, str) for flag in values["flags"]):
                raise ValueError("not all are text")
            culprit = "dropped"
            if values["dropped"] < 0:
                raise ValueError("less than none")
            measurement = Measurement(**values)
            _check_times(measurement)
            return measurement
        except (ValueError, TypeError, PerfmodelError) as error:
            raise StoreError(
                f"row {values['key']} of {self._name} is damaged ({culprit}: {error}): measure it again and put it"
            ) from error

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn SQLite's errors into a StoreError that says what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self._name} {_explanation(str(error))}") from error
        except UnicodeDecodeError as error:  # from a damaged schema, whose text SQLite quotes
            raise StoreError(f"{self._name} {_explanation('malformed text')}") from error
        except OSError as error:
            raise StoreError(f"{self._name} {_explanation(f'unable to open, {error.strerror}')}") from error


def _check_times(measurement: Measurement) -> None:
    if not all(0 < seconds < math.inf for seconds in (*measurement.trials, measurement.seconds)):
        raise ValueError("its trials are not all positive times")


def _encoded(name: str, value: Any) -> Any:
    return json.dumps(value, sort_keys=True, default=_plain) if name in JSON_TYPES else value


def _plain(value: Any) -> Any:
    """numpy's numbers as Python's."""
    return value.item()


def _explanation(text: str) -> str:
    remedies = {
        "not a database": "is no SQLite file: give another path, it was left as it is",
        "malformed": "is damaged: restore it from a copy, or move it away to begin a new one",
        "disk I/O": "could not be read or written: free space on its disk and check the disk's health",
        "full": "could not be written, its disk is full: free space and run again, what was measured before is kept",
        "locked": "is locked by another process for too long: wait for that process or end it",
        "readonly": "may not be written: copy it to a folder that you may write",
        "unable to open": "cannot be opened: check that you may read it and write its folder",
        "closed": "is closed: open it again",
    }
    unknown = "cannot be used: restore it from a copy, or move it away to begin a new one"
    return next((remedy for sign, remedy in remedies.items() if sign in text), unknown) + f" ({text})"
