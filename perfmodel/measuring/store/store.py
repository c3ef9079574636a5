"""Keeps a store's rows by key, each on disk when `put` returns."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.errors import DeviceError, PerfmodelWarning, StoreError
from perfmodel.basics.notebook import MOST_ROWS, table, titled
from perfmodel.device import Device
from perfmodel.measuring.store.documents import document_number, put_document
from perfmodel.measuring.store.evaluations import StoredEvaluation, insert, read
from perfmodel.measuring.store.opening import explained, opened, shown
from perfmodel.measuring.store.rows import (
    COLUMNS,
    SHARED,
    Failure,
    Measurement,
    Row,
    checksum,
    decoded,
    document,
    encoded,
)

KEYS_A_QUERY = 500
LONGEST_PATH = 72
TABLE: dict[type, str] = {Measurement: "measurement", Failure: "failure"}


class StoreWarning(PerfmodelWarning):
    """Warns of damaged rows of a store that were left out; measured again and put, they are sound."""


@dataclass(frozen=True)
class Counts:
    """Holds what adding rows to a store did.

    Attributes:
        added: measurements that were not there before.
        failures: failures that were not there before.
        known: rows that were left out because their keys were there.
    """

    added: int
    failures: int
    known: int

    def __str__(self) -> str:
        return f"{self.added} measurements and {self.failures} failures added, {self.known} rows were there"


@dataclass(frozen=True)
class Group:
    """A number of rows of one device, protocol and kernel; of failures, of one reason too."""

    device: dict[str, Any]
    protocol: dict[str, Any]
    kernel: str
    reason: str
    count: int


class Store:
    """A store of measurements, and of kernels that could not be measured; `path` None keeps it in memory.

    A file is made where there is none, but never its folder, and a file that is no sound store is left as it is. One
    of an earlier schema is brought to the present one. A file or folder without write permission is opened for
    reading, as is one that xz has compressed, ``….xz``. Each `put` is on disk when it returns.

    Args:
        read_only: never write to the file, not even to bring it to the present schema; it has to be there.

    Attributes:
        schema: version of the file's tables.

    Raises:
        StoreError: from every method, in one sentence with the path and what to do.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, read_only: bool = False) -> None:
        if not isinstance(path, str | os.PathLike | None):
            raise StoreError(f"{path!r:.40} is no path of a store; give one, or none for a store in memory")
        self.path = None if path is None else Path(path)
        self.name = "the store in memory" if path is None else f"store {self.path}"
        self._opened = opened(self.path, self.name, read_only)
        self.schema = self._opened.schema

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            held = number_of(len(self), "measurement")
        except StoreError:
            held = "closed, or damaged"
        where = "in memory" if self.path is None else str(self.path)
        return brief(self, where if len(where) <= LONGEST_PATH else f"…{where[-LONGEST_PATH:]}", held)

    def _repr_html_(self) -> str:
        counts: dict[tuple[str, ...], list[int]] = {}
        for group in self.groups():
            device, protocol = (str(each.get("name") or "") for each in (group.device, group.protocol))
            counts.setdefault((device, protocol, group.kernel), [0, 0])[bool(group.reason)] += group.count
        rows = [[*names, *map(str, numbers)] for names, numbers in counts.items()]
        more = f"<p>and {len(rows) - MOST_ROWS} more</p>" if len(rows) > MOST_ROWS else ""
        header = ["device", "protocol", "kernel", "measurements", "failures"]
        return titled(repr(self), "", table(header, rows[:MOST_ROWS])) + more

    def close(self) -> None:
        """Closes the file; the last process to do so leaves a single file that can be copied or committed."""
        with explained(self.name):
            self._opened.close()

    def get(self, key: str) -> Measurement | None:
        """Returns the measurement of that key; an error if it is damaged."""
        for row in self._selected(Measurement, "WHERE key = ?", [key]):
            return self._decoded(Measurement, row)
        return None

    def get_many(self, keys: Iterable[str]) -> dict[str, Measurement]:
        """Returns the measurements of those keys that are there; damaged ones are left out, with a `StoreWarning`."""
        return self._sound(Measurement, list(dict.fromkeys(keys)))

    def failures(self, keys: Iterable[str] | None = None) -> dict[str, Failure]:
        """Returns the failures of those keys that have one, or all; damaged ones are left out, with a
        `StoreWarning`."""
        return self._sound(Failure, self._keys(Failure) if keys is None else list(dict.fromkeys(keys)))

    def all_failures(self) -> Iterator[Failure]:
        """Yields all failures, in the order in which they were first put; an error at one that is damaged."""
        for row in self._all_rows(Failure):
            yield self._decoded(Failure, row)

    def keys(self) -> list[str]:
        """Returns the keys of all measurements, in the order in which they were first put."""
        return self._keys(Measurement)

    def keys_beginning(self, prefix: str, most: int = 10) -> list[str]:
        """Returns keys of measurements and failures that begin so, in their order, and no more than `most`."""
        query = " UNION ".join(f"SELECT key FROM {table} WHERE key >= ? AND key < ?" for table in TABLE.values())
        with explained(self.name):
            rows = self._connection.execute(
                f"{query} ORDER BY key LIMIT ?", [*[prefix, f"{prefix}\U0010ffff"] * 2, most]
            )
            return [str(row[0]) for row in rows]

    def put(self, measurement: Measurement) -> None:
        """Writes one measurement; one of the same key is replaced where it is, so that nothing is there twice."""
        self.put_many([measurement])

    def put_many(self, measurements: Iterable[Measurement], failures: Iterable[Failure] = ()) -> None:
        """Writes all rows or, where one can't be written, none.

        A measurement replaces a measurement or failure of its key; a failure replaces only a failure.
        """
        measured, failed = self._all_encoded(measurements), self._all_encoded(failures)
        with self._writing():
            self._write(measured, failed)

    def add(self, measurements: Iterable[Measurement], failures: Iterable[Failure] = ()) -> Counts:
        """Writes the rows whose keys are not there, all or none; of two rows with one key, the first is written.

        A measurement replaces a failure, and a damaged row does not count as one that is there.
        """
        measurements, failures = list(measurements), list(failures)
        measured, failed = self._all_encoded(_firsts(measurements)), self._all_encoded(_firsts(failures))
        with self._writing():
            has_time = self.get_many(measured)
            measured = {key: row for key, row in measured.items() if key not in has_time}
            has_failed = self.failures(failed)
            written = self._write(measured, {key: row for key, row in failed.items() if key not in has_failed})
        return Counts(len(measured), written, len(measurements) + len(failures) - len(measured) - written)

    def put_evaluations(self, evaluations: Iterable[StoredEvaluation]) -> None:
        """Writes evaluations to the store's history, all or none; those that are there stay as they are."""
        with self._writing():
            for each in evaluations:
                try:
                    insert(self._connection, each)
                except ValueError as error:
                    raise StoreError(f"an evaluation cannot be put into {self.name} ({error})") from error

    def evaluations(self) -> list[StoredEvaluation]:
        """Returns the history of evaluations, the earliest first; damaged ones are left out, see `check`."""
        with explained(self.name):
            return [each for each in read(self._connection) if isinstance(each, StoredEvaluation)]

    def __len__(self) -> int:
        """Returns the number of measurements."""
        with explained(self.name):
            return int(self._connection.execute("SELECT count(*) FROM measurement").fetchone()[0])

    def __iter__(self) -> Iterator[Measurement]:
        """Yields all measurements, in the order in which they were first put; an error at one that is damaged."""
        for row in self._all_rows(Measurement):
            yield self._decoded(Measurement, row)

    def devices(self) -> list[Device]:
        """Returns the devices that measurements are of, each once, with the driver of its last one."""
        with explained(self.name):
            rows = self._connection.execute(
                "SELECT number, text, (SELECT max(number) FROM measurement WHERE device = document.number) AS last "
                "FROM document WHERE last IS NOT NULL ORDER BY last"
            ).fetchall()
        found: dict[str, Device] = {}
        for number, text, _ in rows:
            with suppress(ValueError, TypeError, DeviceError):  # what is damaged or too little to go by: see `check`
                if document_number(text) == number:
                    device = Device.from_fingerprint(document("device", text))
                    found[device.key] = device
        return list(found.values())

    def groups(self) -> list[Group]:
        """Returns how many rows there are of each device, protocol and kernel, and of failures, of each reason."""
        found = []
        for rows_of, reason in (("measurement", "''"), ("failure", "reason")):
            with explained(self.name):
                rows = self._connection.execute(
                    f"SELECT device, protocol, kernel, {reason}, count(*) FROM {rows_of} GROUP BY 1, 2, 3, 4 "
                    "ORDER BY min(number)"
                ).fetchall()
            texts = self._texts({number for row in rows for number in row[:2]})
            for device, protocol, kernel, why, count in rows:
                try:
                    of_device = document("device", texts.get(device))
                    of_protocol = document("protocol", texts.get(protocol))
                    found.append(
                        Group(device=of_device, protocol=of_protocol, kernel=str(kernel), reason=str(why), count=count)
                    )
                except (ValueError, TypeError) as error:
                    raise StoreError(f"{self.name} has damaged rows: see what 'perfmodel store check' says") from error
        return found

    def costs(self, device_key: str) -> dict[str, float]:
        """Returns the seconds that measuring one kernel of each name took on a device, on average; of trials, if that
        is all."""
        device = "SELECT number FROM document WHERE json_valid(text) AND json_extract(text, '$.key') = ?"
        took = "coalesce(json_extract(conditions, '$.cost_s'), (SELECT sum(value) FROM json_each(trials)))"
        with explained(self.name):
            rows = self._connection.execute(
                f"SELECT kernel, avg({took}) FROM measurement WHERE device IN ({device}) AND json_valid(trials) "
                "AND json_valid(conditions) GROUP BY kernel",
                (device_key,),
            ).fetchall()
        return {str(kernel): float(seconds) for kernel, seconds in rows if seconds is not None}

    def check(self) -> list[str]:
        """Returns what is wrong with the file or with single rows, a sentence each; empty when all is well."""
        problems: list[str] = []
        try:
            with explained(self.name):
                answers = [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check")]
            problems.extend(f"{self.name} is damaged: {shown(answer)}" for answer in answers if answer != "ok")
            kinds: tuple[type[Measurement | Failure], ...] = (Measurement, Failure)
            for kind in kinds:
                for row in self._all_rows(kind):
                    try:
                        self._decoded(kind, row)
                    except StoreError as error:
                        problems.append(str(error))
            with explained(self.name):
                damaged = [each for each in read(self._connection) if isinstance(each, ValueError)]
            problems.extend(f"an evaluation of {self.name} is damaged ({shown(each)})" for each in damaged)
        except StoreError as error:
            problems.append(str(error))
        return problems

    def vacuum(self) -> tuple[int, int]:
        """Writes the file anew, without gaps and without documents that no row has any more.

        Returns:
            Bytes of the file before and after.
        """
        with explained(self.name):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = self.n_bytes
        used = " UNION ".join(f"SELECT {name} FROM {table}" for name in SHARED for table in TABLE.values())
        with self._writing():
            self._connection.execute(f"DELETE FROM document WHERE number NOT IN ({used})")
        with explained(self.name):
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return before, self.n_bytes

    @property
    def n_bytes(self) -> int:
        """The bytes of the file, with its log; zero in memory."""
        files = [] if self.path is None else [self.path, Path(f"{self.path}-wal")]
        return sum(file.stat().st_size for file in files if file.exists())

    @property
    def refusal(self) -> str:
        """A sentence that says why nothing can be put into the store, and what to do; empty where it can."""
        return f"{self.name} {self._opened.refusal}" if self._opened.refusal else ""

    @property
    def _connection(self) -> Any:
        return self._opened.connection

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Runs one transaction; waits for other writers at its beginning, so that it can't be refused in its midst."""
        if self.refusal:
            raise StoreError(self.refusal)
        with explained(self.name):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.rollback()
                raise

    def _write(self, measured: dict[str, list[Any]], failed: dict[str, list[Any]]) -> int:
        """Writes the measurements, and the failures whose keys have none; returns how many of these there were."""
        for key, stored in measured.items():
            self._insert(Measurement, stored)
            self._connection.execute("DELETE FROM failure WHERE key = ?", (key,))
        written = 0
        for key, stored in failed.items():
            if not self._connection.execute("SELECT 1 FROM measurement WHERE key = ?", (key,)).fetchone():
                self._insert(Failure, stored)
                written += 1
        return written

    def _insert(self, kind: type, stored: Sequence[Any]) -> None:
        names = (*COLUMNS[kind], "checksum")
        row = dict(zip(names, (*stored, checksum(kind, stored)), strict=True))
        row |= {name: put_document(self._connection, row[name]) for name in SHARED}
        updates = ", ".join(f"{name} = excluded.{name}" for name in names)
        self._connection.execute(
            f"INSERT INTO {TABLE[kind]} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "
            f"ON CONFLICT (key) DO UPDATE SET {updates}",
            list(row.values()),
        )

    def _all_encoded(self, rows: Iterable[Measurement | Failure]) -> dict[str, list[Any]]:
        """Returns values by key; of two rows with one key, the last."""
        found = {}
        for row in rows:
            try:
                found[row.key] = encoded(row)
            except ValueError as error:
                raise StoreError(
                    f"kernel {shown(row.kernel)!r} cannot be put into {self.name} ({shown(error)}): measure it again"
                ) from error
        return found

    def _keys(self, kind: type) -> list[str]:
        with explained(self.name):
            return [row[0] for row in self._connection.execute(f"SELECT key FROM {TABLE[kind]} ORDER BY number")]

    def _sound(self, kind: type[Row], wanted: Sequence[str]) -> dict[str, Row]:
        """Returns the rows of these keys, without damaged ones, which a warning names."""
        found: dict[str, Row] = {}
        damaged: list[str] = []
        for start in range(0, len(wanted), KEYS_A_QUERY):
            part = wanted[start : start + KEYS_A_QUERY]
            for row in self._selected(kind, f"WHERE key IN ({', '.join('?' * len(part))})", part):
                try:
                    found[row[0]] = self._decoded(kind, row)
                except StoreError as error:
                    damaged.append(str(error))
        if damaged:
            warnings.warn("; ".join(damaged), StoreWarning, stacklevel=3)
        return found

    def _all_rows(self, kind: type) -> Iterator[tuple[Any, ...]]:
        """Yields all rows, in pages, so that little is held at a time, and the store may be written in between."""
        last = -(2**63)
        while True:
            with explained(self.name):
                numbers = self._connection.execute(
                    f"SELECT number FROM {TABLE[kind]} WHERE number > ? ORDER BY number LIMIT {KEYS_A_QUERY}", (last,)
                ).fetchall()
            if not numbers:
                return
            following = numbers[-1][0]
            if not isinstance(following, int) or following <= last:
                raise StoreError(f"{self.name} is damaged: restore it from a copy, its rows are out of order")
            yield from self._selected(kind, "WHERE number > ? AND number <= ? ORDER BY number", [last, following])
            last = following

    def _selected(self, kind: type, clause: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Returns rows as they are stored, with the texts of their documents, and their checksums at the end.

        Rows that share a document share its text, so that a long one takes no more memory than it does in the file.
        """
        columns = (*COLUMNS[kind], "checksum")
        places = [columns.index(name) for name in SHARED]
        with explained(self.name):
            rows = self._connection.execute(
                f"SELECT {', '.join(columns)} FROM {TABLE[kind]} {clause}", tuple(values)
            ).fetchall()
        texts = self._texts({row[place] for row in rows for place in places})
        return [
            tuple(texts.get(value) if place in places else value for place, value in enumerate(row)) for row in rows
        ]

    def _texts(self, numbers: Iterable[Any]) -> dict[Any, Any]:
        """Returns the documents of these numbers, as far as they are there."""
        found: dict[Any, Any] = {}
        wanted = [number for number in numbers if isinstance(number, int)]
        for start in range(0, len(wanted), KEYS_A_QUERY):
            part = wanted[start : start + KEYS_A_QUERY]
            with explained(self.name):
                found |= dict(
                    self._connection.execute(
                        f"SELECT number, text FROM document WHERE number IN ({', '.join('?' * len(part))})", part
                    ).fetchall()
                )
        return found

    def _decoded(self, kind: type[Row], row: Sequence[Any]) -> Row:
        *stored, digest = row
        try:
            found = decoded(kind, stored)
            if checksum(kind, stored) != digest:
                raise ValueError("its checksum is that of other values")
        except (ValueError, TypeError) as error:
            what = f"row {shown(stored[0])} of {self.name}"
            raise StoreError(f"{what} is damaged ({shown(error)}): measure it again and put it") from error
        return found


def _firsts(rows: Iterable[Row]) -> list[Row]:
    """Returns the first of the rows with each key."""
    found: dict[str, Row] = {}
    for row in rows:
        found.setdefault(row.key, row)
    return list(found.values())
