"""Reads and writes files of rows: lines of JSON, CSV, Parquet. Written whole or not at all; read as data of unknown
origin."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, AnyStr

from perfmodel.basics import files
from perfmodel.basics.errors import StoreError, nearest, one_line
from perfmodel.measuring.store.rows import NESTED

Record = dict[str, Any]
LARGEST_FILE = 2**32
"""Bytes that a file of rows may have."""
LONGEST_VALUE = 2**22
MOST_UNPACKED, MOST_TIMES = 2**26, 200
"""Characters that a Parquet file's rows may have: so many, or so many times its bytes; rows of a store pack 50 to 1."""


class FileKind(ABC):
    """A kind of file that rows are written to and read from."""

    @abstractmethod
    def write(self, file: IO[bytes], columns: Sequence[str], records: Sequence[Record]) -> None: ...

    @abstractmethod
    def rows(self, path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Record]]:
        """Yields each row's position, for errors, and its values, nested ones not as texts.

        Raises:
            ValueError: for what is no such file, or a row whose values are not of a file's types.
        """

    def read(self, path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Record]]:
        """Yields the rows with the given columns and ``failure``; others are passed over.

        Raises:
            StoreError: in one sentence.
        """
        wanted = [*columns, "failure"]
        place = ""
        try:
            files.check_file(path)
            if path.stat().st_size > LARGEST_FILE:
                raise ValueError(f"it has more than {LARGEST_FILE} bytes: part it")
            for following, record in self.rows(path, wanted):
                yield following, record
                place = following
        except OSError as error:
            raise StoreError(
                f"{path} cannot be read ({error.strerror or error}): give a file that 'perfmodel store export' wrote"
            ) from error
        except (ValueError, TypeError, OverflowError, RecursionError, csv.Error) as error:
            behind = f", behind {place}" if place else ""
            raise StoreError(
                f"{path} cannot be imported{behind} ({one_line(error)}): give a file as 'perfmodel store export' "
                "writes it; nothing was imported"
            ) from error


class JSONLines(FileKind):
    """One JSON object a line."""

    def write(self, file: IO[bytes], columns: Sequence[str], records: Sequence[Record]) -> None:
        for record in records:
            plain = {name: None if value != value else value for name, value in record.items()}
            file.write(json.dumps(plain).encode() + b"\n")

    def rows(self, path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Record]]:
        with path.open("rb") as file:
            for number, line in enumerate(_lines(file), 1):
                if not line.strip():
                    continue
                record = _parsed(f"line {number}", line.decode("utf-8-sig"))
                if not isinstance(record, dict):
                    raise ValueError(f"line {number} is no JSON object")
                _check_columns(record, columns)
                yield f"line {number}", {name: record[name] for name in columns}


class CSV(FileKind):
    """RFC 4180, UTF-8, with the names of the columns in the first line."""

    def write(self, file: IO[bytes], columns: Sequence[str], records: Sequence[Record]) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text)
        writer.writerow(columns)
        writer.writerows([_flat(record.get(name)) for name in columns] for record in records)
        text.flush()
        text.detach()

    def rows(self, path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Record]]:
        before = csv.field_size_limit(LONGEST_VALUE)
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.DictReader(_lines(file), strict=True)
                _check_columns(reader.fieldnames or [], columns)
                for flat in reader:
                    place = f"line {reader.line_num}"
                    if None in flat or None in flat.values():
                        raise ValueError(f"{place} has not as many values as there are columns")
                    yield place, _nested(place, {name: flat[name] for name in columns})
        finally:
            csv.field_size_limit(before)


def _lines(file: IO[AnyStr]) -> Iterator[AnyStr]:
    number = 0
    while line := file.readline(2 * LONGEST_VALUE):
        number += 1
        if len(line) == 2 * LONGEST_VALUE:
            unit = "bytes" if isinstance(line, bytes) else "characters"
            raise ValueError(f"line {number} is longer than {len(line)} {unit}")
        yield line


class Parquet(FileKind):
    """A Parquet file, by pyarrow, which comes with the extra ``parquet``."""

    def write(self, file: IO[bytes], columns: Sequence[str], records: Sequence[Record]) -> None:
        pyarrow, parquet = _pyarrow()
        arrays = {name: _column(pyarrow, name, [record.get(name) for record in records]) for name in columns}
        parquet.write_table(pyarrow.table(arrays), file, write_page_checksum=True)

    def rows(self, path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Record]]:
        pyarrow, parquet = _pyarrow()
        most = max(MOST_UNPACKED, MOST_TIMES * path.stat().st_size)
        number = unpacked = 0
        with path.open("rb") as opened:
            try:
                for flat in _unpacked_rows(pyarrow, parquet, opened, columns, most):
                    number += 1
                    unpacked += sum(len(value) for value in flat.values() if isinstance(value, str))
                    if unpacked > most:
                        raise ValueError(_too_large(most))
                    yield f"row {number}", _nested(f"row {number}", flat)
            except (pyarrow.ArrowException, OSError) as error:  # of which the latter is no file's, but pyarrow's own
                raise ValueError(str(error)) from error


def _unpacked_rows(
    pyarrow: Any, parquet: Any, opened: IO[bytes], columns: Sequence[str], most: int
) -> Iterator[Record]:
    """Yields one row after the other, so that a text that many rows have is not in memory as often."""
    plain = parquet.ParquetFile(opened, page_checksum_verification=True)
    groups = [plain.metadata.row_group(i).total_byte_size for i in range(plain.metadata.num_row_groups)]
    if sum(groups) > most:
        raise ValueError(_too_large(most))
    _check_columns(plain.schema_arrow.names, columns)
    texts = [field.name for field in plain.schema_arrow if pyarrow.types.is_string(field.type)]
    file = parquet.ParquetFile(opened, read_dictionary=texts, page_checksum_verification=True)
    for batch in file.iter_batches(1000, columns=list(columns)):
        for row in range(len(batch)):
            yield {name: batch.column(name)[row].as_py() for name in columns}


def _too_large(most: int) -> str:
    return f"it unpacks to more than {most} bytes: part it"


KINDS: dict[str, FileKind] = {".parquet": Parquet(), ".csv": CSV(), ".jsonl": JSONLines()}


def kind_of(path: Path) -> FileKind:
    """Returns the kind of file that a name stands for, by its ending.

    Raises:
        StoreError: for other endings.
    """
    if path.suffix not in KINDS:
        raise StoreError(
            f"{path} ends in {path.suffix!r}, which is no kind of table file{nearest(path.suffix, KINDS)}: give a name "
            f"in {', '.join(KINDS)}"
        )
    return KINDS[path.suffix]


@contextmanager
def replacing(path: Path, force: bool) -> Iterator[IO[bytes]]:
    """Opens a file to write to, which gets its name once all of it is on disk.

    Raises:
        StoreError: where there is such a file already, unless by `force`, or it can't be written.
    """
    there = StoreError(f"{path} is there already: give another name, or --force to replace it")
    if path.exists() and not force:
        raise there
    try:
        with files.replacing(path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if path.exists() and not force:
                raise there
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written ({error.strerror or error}): give a file in a folder that is there and has space"
        ) from error


def _check_columns(there: Iterable[str], wanted: Sequence[str]) -> None:
    if missing := [name for name in wanted if name not in there]:
        raise ValueError(f"it has no column {', '.join(missing)}")


def _flat(value: Any) -> Any:
    """Returns a value as a text or number; a missing one is empty."""
    if value is None or value != value:
        return ""
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list | tuple) else value


def _nested(place: str, flat: Record) -> Record:
    """Returns the values of a row of texts and numbers."""
    found = dict(flat)
    for name in flat:
        if name in NESTED:
            found[name] = _parsed(f"{name} of {place}", flat[name])
        elif name == "dropped" and isinstance(flat[name], str):
            if not re.fullmatch(r"[0-9]{1,9}", flat[name]):
                raise ValueError(f"dropped of {place} is {flat[name][:40]!r}, no number")
            found[name] = int(flat[name])
    return found


def _parsed(what: str, text: Any) -> Any:
    if not isinstance(text, str) or len(text) > 2 * LONGEST_VALUE:
        raise ValueError(f"{what} is no text of JSON")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} is no JSON, {error}") from error


def _column(pyarrow: Any, name: str, values: list[Any]) -> Any:
    if name == "seconds":
        return pyarrow.array(values, pyarrow.float64())
    if name == "dropped" or (name.startswith("size_") and all(-(2**63) <= (v or 0) < 2**63 for v in values)):
        return pyarrow.array(values, pyarrow.int64())
    return pyarrow.array([str(_flat(value)) for value in values], pyarrow.string())


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # an optional dependency
        import pyarrow.parquet
    except ImportError as error:
        raise StoreError(
            "Parquet files need pyarrow: install it by 'pip install perfmodel[parquet]', or give a .csv or .jsonl file"
        ) from error
    return pyarrow, pyarrow.parquet
