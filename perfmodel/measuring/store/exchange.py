"""Exchanges a store's rows as tables: DataFrames, and files that other programs and other stores read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.basics.errors import StoreError, one_line
from perfmodel.measuring.protocol import reduced
from perfmodel.measuring.store import formats
from perfmodel.measuring.store.rows import COLUMNS, Failure, Measurement, encoded, measurement_key
from perfmodel.measuring.store.store import Counts, Store

if TYPE_CHECKING:
    import pandas as pd

LONGEST_ROW = 2**22
"""Characters of a line of a file: thirty times a measurement of ten thousand trials."""


def to_frame(store: Store) -> pd.DataFrame:
    """Returns all measurements in their order, then all failures, a row each.

    Columns are the fields of `Measurement`; ``failure``, the reason, empty for a measurement; and what follows from
    these: ``seconds`` (NaN for a failure), ``device_key``, ``driver``, and ``size_n`` for each size ``n``.

    Raises:
        StoreError: for damaged rows.
    """
    import pandas as pd  # slow to import

    records = [record | _derived(record) for record in _records(store)]
    return pd.DataFrame(records, columns=_columns(records))


def export(store: Store, path: str | os.PathLike[str], force: bool = False) -> int:
    """Writes the table of `to_frame` to a ``.parquet``, ``.csv`` or ``.jsonl`` file, which is whole or not there.

    Nested values are JSON texts in Parquet and CSV.

    Args:
        force: replace a file that is there.

    Returns:
        The number of rows written.

    Raises:
        StoreError: for damaged rows, a file that is there, an unknown ending, or a disk that is full.
    """
    target = Path(path)
    kind = formats.kind_of(target)
    records = [record | _derived(record) for record in _records(store)]
    with formats.replacing(target, force) as file:
        kind.write(file, _columns(records), records)
    return len(records)


def import_file(store: Store, path: str | os.PathLike[str]) -> Counts:
    """Adds the rows of a file as `export` writes it; rows of known keys stay as they are.

    The file is taken for data of unknown origin: each value is checked, the key of each row has to be that of its
    content, sizes, device and protocol, and derived columns are passed over.

    Raises:
        StoreError: for the first row that is wrong, with its number; nothing is written then.
    """
    source = Path(path)
    measurements: list[Measurement] = []
    failures: list[Failure] = []
    for place, record in formats.kind_of(source).read(source, COLUMNS[Measurement]):
        try:
            row = _row(record)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise StoreError(
                f"{place} of {source} is no row of a store ({one_line(error)}): correct or remove it; nothing was "
                "imported"
            ) from error
        if isinstance(row, Measurement):
            measurements.append(row)
        else:
            failures.append(row)
    return store.add(measurements, failures)


def merge(target: Store, source: Store | str | os.PathLike[str]) -> Counts:
    """Adds the rows of one store to another; of two measurements with one key, the target's stays.

    A measurement replaces a failure. The source is not written to; its damaged rows are left out, with a
    `StoreWarning`.

    Raises:
        StoreError: if one of them can't be read or written; nothing is added then.
    """
    if not isinstance(source, Store):
        with Store(source, read_only=True) as opened:
            return merge(target, opened)
    found = source.get_many(keys := source.keys())
    counts = target.add([found[key] for key in keys if key in found], source.failures().values())
    target.put_evaluations(source.evaluations())
    return counts


def _records(store: Store) -> list[dict[str, Any]]:
    """Returns each row as the values that a file of lines holds: of a failure, no times."""
    no_times = {"trials": (), "dropped": 0, "statistic": "", "flags": ()}
    rows: list[tuple[Measurement | Failure, dict[str, Any]]] = [(row, {"failure": ""}) for row in store]
    rows += [(row, {**no_times, "failure": row.reason}) for row in store.all_failures()]
    names = (*COLUMNS[Measurement], "failure")
    return [{n: others[n] if n in others else getattr(row, n) for n in names} for row, others in rows]


def _derived(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values that follow from a row, for people; no import believes them."""
    is_measured = not record["failure"]
    return {
        "seconds": reduced(record["trials"], record["dropped"], record["statistic"]) if is_measured else float("nan"),
        "device_key": record["device"].get("key", ""),
        "driver": record["device"].get("driver", ""),
        **{f"size_{name}": size for name, size in record["sizes"].items()},
    }


def _columns(records: list[dict[str, Any]]) -> list[str]:
    fixed = [*COLUMNS[Measurement], "failure", "seconds", "device_key", "driver"]
    return list(dict.fromkeys(fixed + [name for record in records for name in record]))


def _row(record: Mapping[str, Any]) -> Measurement | Failure:
    """Returns the row that a record describes.

    Raises:
        ValueError, TypeError: what is wrong with it.
    """
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
    }
    reason = values.pop("failure")
    row: Measurement | Failure
    if not isinstance(reason, str):
        raise ValueError("failure: no text")
    if reason:
        if values["trials"] or values["dropped"] or values["statistic"] or values["flags"]:
            raise ValueError("failure: a row with times has none")
        row = Failure(**{name: values[name] for name in COLUMNS[Failure] if name != "reason"}, reason=reason)
    else:
        row = Measurement(**values)
    if sum(len(value) for value in encoded(row) if isinstance(value, str)) > LONGEST_ROW:
        raise ValueError(f"it is longer than {LONGEST_ROW} characters")
    missing = {"key", "driver"} - row.device.keys()
    if missing or not isinstance(row.device["key"], str) or not isinstance(row.device["driver"], str):
        raise ValueError("device: it has to have a key and a driver, which are texts")
    if measurement_key(row.content, row.sizes, row.device, row.protocol) != row.key:
        raise ValueError(
            "key: not that of its content, sizes, device and protocol; "
            "perfmodel.measuring.store.measurement_key makes it"
        )
    return row
