"""Measures a large store: its file's size, and seconds to open it, to look rows up and to put them.

``python -m benchmarks.store`` prints the figures; ``--rows`` says of how many rows.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from perfmodel.basics.tables import grid, seconds
from perfmodel.measuring.store import Measurement, Store
from perfmodel.report.store_tables import n_bytes

ROW = Measurement(
    key="",
    kernel="matmul_sq",
    content="c" * 64,
    sizes={"n": 1024},
    tags={"variant": "tiled", "dtype": "float32"},
    device={"key": "device-abcdef", "driver": "1.0", "name": "device", "compute_units": 132},
    protocol={"name": "unified", "trials": 30, "dropped": 4, "statistic": "min"},
    trials=tuple(1e-3 + index * 1e-7 for index in range(30)),
    dropped=4,
    statistic="min",
    flags=(),
    created="2026-11-20T12:00:00+00:00",
    versions={"perfmodel": "0.1.0"},
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.sqlite")
        with Store(path) as store:
            started = time.perf_counter()
            for first in range(0, rows, 1000):
                store.put_many(row(index) for index in range(first, min(first + 1000, rows)))
            filling = time.perf_counter() - started
        keys = [key(index) for index in range(rows)]
        numbers = random.Random(0)
        lines = [["rows", str(rows)], ["file", n_bytes(path.stat().st_size)]]
        lines.append(["put_many of 1,000, each", seconds(filling / (rows / 1000))])
        lines.append(["open and close", seconds(median(lambda: Store(path).close(), 7))])
        with Store(path) as store:
            lines.append(["get", seconds(median(lambda: store.get(numbers.choice(keys)), 1000))])
            lines.append(["get of a key that is not there", seconds(median(lambda: store.get("0" * 64), 1000))])
            lines.append(["get_many of 500", seconds(median(lambda: store.get_many(numbers.sample(keys, 500)), 20))])
            new = (row(rows + index) for index in range(300))
            lines.append(["put", seconds(median(lambda: store.put(next(new)), 300))])
            lines.append(["devices", seconds(median(store.devices, 20))])
            lines.append(["iterate over all", seconds(median(lambda: sum(1 for _ in store), 1))])
            lines.append(["check", seconds(median(store.check, 1))])
    print(grid(["", "median"], lines))


def key(index: int) -> str:
    return hashlib.sha256(str(index).encode()).hexdigest()


def row(index: int) -> Measurement:
    """Returns a row of 30 trials as a clock of nanoseconds gives them, and a device with all that drivers say."""
    trials = tuple((1_000_000 + (index * 7919 + trial * 104_729) % 100_000) / 1e9 for trial in range(30))
    fields = vars(ROW) | {"key": key(index), "sizes": {"n": index}, "trials": trials}
    device = {f"property_{number}": "value" for number in range(30)} | ROW.device
    return Measurement(
        **fields | {"device": device, "conditions": {"host": "node1", "cost_s": 0.123, "reference_s": 3e-3}}
    )


def median(run: Callable[[], object], times: int) -> float:
    """Returns the median seconds of a run."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
