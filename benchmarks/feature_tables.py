"""Counts published kernels once, and keeps what a model asks of them in a table.

    python -m benchmarks.feature_tables FOLDER --table FILE.pkl.xz [--sample 400] [--seed 1] [--jobs 2]

The folder holds a tuned space or launches of textbook kernels, with their times (`benchmarks.published`); the table is
a pickled data frame with a row a program or launch: which one (`row`), its parameters or its case, its demand on local
memory and registers, and every feature that the models name on the devices that the folder has times of, with the
vectors and caches of each. What the file already has is not counted again, so an interrupted run goes on. A prediction
of a whole space for any of these devices is then one evaluation of the model over the table. Programs of a space are
counted by their source, as `perfmodel.tune` does it, launches as `perfmodel predict` does it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import perfmodel as pm
from benchmarks.published.space import load
from benchmarks.published.spaces import SPACES
from benchmarks.published.textbook import launches
from perfmodel.basics.errors import PerfmodelError
from perfmodel.device.facts import facts_called
from perfmodel.kernels.resources import resources
from perfmodel.modelling.prediction import feature_values

GPU = "H200"
SAVED_EVERY_S = 60
Row = dict[str, Any]


def counted(kernel: pm.Kernel, calibrations: Iterable[pm.Calibration]) -> Row:
    """Returns a kernel's demand and the features that calibrations' models name; the reason where there are none."""
    launch = kernel.launch()
    row: Row = {"group_items": prod(launch.local_size), "groups": prod(launch.global_size) // prod(launch.local_size)}
    try:
        demand = resources(kernel)
        row |= {"local_bytes": demand.local_bytes, "registers": demand.registers}
        row["private_bytes"] = demand.private_bytes
        for calibration in calibrations:
            for name, value in feature_values(calibration, kernel, {}).items():
                is_other = row.setdefault(name, float(value)) != float(value)
                row |= {_own(name, calibration): float(value)} if is_other else {}
    except PerfmodelError as error:
        row["failure"] = str(error)
    return row


def features_of(table: pd.DataFrame, calibration: pm.Calibration) -> dict[str, NDArray[np.float64]]:
    """Returns the features of a table's rows that a calibration's model names, as they are counted for its device.

    Raises:
        SystemExit: the table lacks one of them.
    """
    found = {}
    for name in calibration.model.features:
        own = _own(name, calibration)
        if own not in table and name not in table:
            device = calibration.device["key"]
            raise SystemExit(f"the table lacks {name} of {device}; count it anew: python -m benchmarks.feature_tables")
        values = table[own].fillna(table[name]) if own in table else table[name]
        found[name] = values.to_numpy(float)
    return found


def _own(name: str, calibration: pm.Calibration) -> str:
    """Returns the column of a feature where it is another on a device than on the first, as by machine code."""
    return f"{name} on {calibration.device['key']}"


@dataclass(frozen=True)
class Source:
    """Says what there is to count: the number of each row, what is said of it, and its kernel; and on what devices."""

    devices: list[str]
    rows: list[int]
    said: Callable[[int], Row]
    kernel: Callable[[int], pm.Kernel]


def known_devices(described: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns the keys of the devices of which anything is known."""
    found = [facts.key for each in described.values() if (facts := facts_called(each.get("name", "")))]
    return list(dict.fromkeys(found))


def source(folder: Path) -> Source:
    """Returns what a folder holds: programs of a space, or launches."""
    if (folder / "launches.json").exists():
        every = list(launches(folder / "launches.json"))
        described = json.loads((folder / "devices.json").read_text())["devices"]
        return Source(
            known_devices(described),
            list(range(len(every))),
            lambda row: {"case": every[row].case, "size": every[row].size, "weight": every[row].weight},
            lambda row: every[row].observed,
        )
    published = load(folder, SPACES)
    model = pm.Calibration.shipped(device=GPU).model
    return Source(
        known_devices(published.devices),
        published.distinct,
        published.configuration,
        lambda row: model.counted(published.kernel(row)),
    )


def counted_rows(source: Source, chosen: Iterable[int], calibrations: list[pm.Calibration], jobs: int) -> Iterator[Row]:
    """Yields what is counted of some rows, as it comes."""
    global _work
    _work = source, calibrations
    try:
        if jobs == 1:
            yield from map(_row, chosen)
        else:
            with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
                for done in as_completed([pool.submit(_row, row) for row in chosen]):
                    yield done.result()
    finally:
        _work = None


_work: tuple[Source, list[pm.Calibration]] | None = None


def _row(row: int) -> Row:
    assert _work is not None
    source, calibrations = _work
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {"row": row, **source.said(row), **counted(source.kernel(row), calibrations)}
    return found | {"counting_s": time.process_time() - started}


def save(table: pd.DataFrame, file: Path) -> None:
    """Writes a table so that an interruption leaves the one before."""
    new = file.with_name(f"new-{file.name}")
    table.to_pickle(new)
    new.replace(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="counts programs of a published kernels once, for all devices")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--sample", type=int, help="so many programs by chance; all if left out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", nargs="+", help="whose calibrations' models name the features")
    parsed = parser.parse_args()
    found_there = source(parsed.folder)
    every = found_there.rows
    wanted = random.Random(parsed.seed).sample(every, len(every))[: parsed.sample]
    table = pd.read_pickle(parsed.table) if parsed.table.exists() else pd.DataFrame({"row": []})
    calibrations = [pm.Calibration.shipped(device=device) for device in parsed.device or found_there.devices]
    if not {name for each in calibrations for name in each.model.features} <= set(table):
        table = table[:0]  # other features are asked for than it has
    known = set(table["row"])
    missing = [row for row in wanted if row not in known]
    print(f"{parsed.folder.name}: {len(every):,} rows, {len(known):,} known, {len(missing):,} to count", flush=True)
    found: list[Row] = []
    started = saved = time.monotonic()
    for row in counted_rows(found_there, missing, calibrations, parsed.jobs):
        found.append(row)
        if time.monotonic() - saved > SAVED_EVERY_S:
            save(pd.concat([table, pd.DataFrame(found)], ignore_index=True), parsed.table)
            saved = time.monotonic()
            print(f"{len(found):,} counted in {saved - started:.0f} s", flush=True)
    save(pd.concat([table, pd.DataFrame(found)], ignore_index=True), parsed.table)
    print(f"{len(found):,} counted in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
