"""Prints one recipe's errors over several devices, as the last column of the unified model's Table 1 has them.

    python -m benchmarks.cross_device unified docs/results/unified-*/results.json.gz

From committed results alone: for each test kernel, the geometric mean over devices of each device's geometric mean; and
mean, maximum and share within 30 % of all its errors.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

from perfmodel.basics.statistics import Errors, geometric_mean
from perfmodel.basics.tables import grid, percent
from perfmodel.modelling.rows import Row
from perfmodel.report.tables import ERRORS, error_cells


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("results", nargs="+", type=Path)
    parsed = parser.parse_args()
    errors: dict[str, dict[str, list[float]]] = {}
    for file in parsed.results:
        document = json.loads(gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes())
        for row in (Row(**each) for each in document["rows"]):
            if row.model == parsed.model and row.role == "evaluation":
                errors.setdefault(row.label, {}).setdefault(document["device"]["name"], []).append(row.error)
    devices = list(dict.fromkeys(device for of_label in errors.values() for device in of_label))
    lines = []
    for label, by_device in errors.items():
        means = [geometric_mean(by_device[device]) for device in devices]
        every = [error for found in by_device.values() for error in found]
        lines.append(
            [label, *map(percent, means), percent(geometric_mean(means)), *error_cells(Errors.figures(every))[1:]]
        )
    print(f"{parsed.model}, geometric mean errors by device and over devices\n")
    print(grid(["test kernel", *devices, "over devices", *ERRORS[1:]], lines))


if __name__ == "__main__":
    main()
