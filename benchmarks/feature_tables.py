"""Counts published kernels once, and keeps what a model asks of them in a table.

    python -m benchmarks.feature_tables FOLDER --table FILE.pkl.xz [--sample 400] [--seed 1] [--jobs 2]

The folder holds a tuned space or launches of textbook kernels, with their times (`benchmarks.published`); the table is
a pickled data frame with a row a program or launch: which one (`row`), its parameters or its case, its demand on local
memory and registers, and every feature that the model names. What the file already has is not counted again, so an
interrupted run goes on. A prediction of a whole space for any device is then one evaluation of the model over the
table.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import pandas as pd

import perfmodel as pm
from benchmarks.published.space import load
from benchmarks.published.spaces import SPACES
from benchmarks.published.textbook import launches
from perfmodel.basics.errors import PerfmodelError
from perfmodel.kernels.resources import resources
from perfmodel.modelling.prediction import feature_values

SAVED_EVERY_S = 60
Row = dict[str, Any]


def counted(kernel: pm.Kernel, calibration: pm.Calibration) -> Row:
    """Returns a kernel's demand and the features that a calibration's model names; the reason where there are none."""
    launch = kernel.launch()
    row: Row = {"group_items": prod(launch.local_size), "groups": prod(launch.global_size) // prod(launch.local_size)}
    try:
        demand = resources(kernel)
        row |= {"local_bytes": demand.local_bytes, "registers": demand.registers}
        row["private_bytes"] = demand.private_bytes
        row |= {name: float(value) for name, value in feature_values(calibration, kernel, {}).items()}
    except PerfmodelError as error:
        row["failure"] = str(error)
    return row


@dataclass(frozen=True)
class Source:
    """Says what there is to count: the number of each row, what is said of it, and its kernel."""

    rows: list[int]
    said: Callable[[int], Row]
    kernel: Callable[[int], pm.Kernel]


def source(folder: Path) -> Source:
    """Returns what a folder holds: programs of a space, or launches."""
    if (folder / "launches.json").exists():
        every = list(launches(folder / "launches.json"))
        return Source(
            list(range(len(every))),
            lambda row: {"case": every[row].case, "size": every[row].size, "weight": every[row].weight},
            lambda row: every[row].observed,
        )
    published = load(folder, SPACES)
    return Source(published.distinct, published.configuration, published.kernel)


def counted_rows(source: Source, chosen: Iterable[int], calibration: pm.Calibration, jobs: int) -> Iterator[Row]:
    """Yields what is counted of some rows, as it comes."""
    global _work
    _work = source, calibration
    try:
        if jobs == 1:
            yield from map(_row, chosen)
        else:
            with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
                for done in as_completed([pool.submit(_row, row) for row in chosen]):
                    yield done.result()
    finally:
        _work = None


_work: tuple[Source, pm.Calibration] | None = None


def _row(row: int) -> Row:
    assert _work is not None
    source, calibration = _work
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {"row": row, **source.said(row), **counted(source.kernel(row), calibration)}
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
    parser.add_argument("--device", default="H200", help="whose calibration's model names the features")
    parsed = parser.parse_args()
    found_there = source(parsed.folder)
    every = found_there.rows
    wanted = random.Random(parsed.seed).sample(every, len(every))[: parsed.sample]
    table = pd.read_pickle(parsed.table) if parsed.table.exists() else pd.DataFrame({"row": []})
    known = set(table["row"])
    missing = [row for row in wanted if row not in known]
    print(f"{parsed.folder.name}: {len(every):,} rows, {len(known):,} known, {len(missing):,} to count", flush=True)
    calibration = pm.Calibration.shipped(device=parsed.device)
    found: list[Row] = []
    started = saved = time.monotonic()
    for row in counted_rows(found_there, missing, calibration, parsed.jobs):
        found.append(row)
        if time.monotonic() - saved > SAVED_EVERY_S:
            save(pd.concat([table, pd.DataFrame(found)], ignore_index=True), parsed.table)
            saved = time.monotonic()
            print(f"{len(found):,} counted in {saved - started:.0f} s", flush=True)
    save(pd.concat([table, pd.DataFrame(found)], ignore_index=True), parsed.table)
    print(f"{len(found):,} counted in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
