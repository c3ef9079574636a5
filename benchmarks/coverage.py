"""Counts how many measured times lie in their 68 and 90 % intervals, by model and device, from committed results.

    python -m benchmarks.coverage

Left out are families of the measurement set (variants or sizes where each family shows parameters of its own), each
predicted by a fit to the others and judged by intervals that the others' errors give. Held out is the recipe's
evaluation set, judged by the calibration's own intervals. Projections are not fitted: of the projection study, each
application is left out of the standard deviation that it is judged by. ``benchmarks.leave_family_out`` has a line a
family, and ``benchmarks.unseen_kernels`` kernels of families that no recipe knows.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from perfmodel.basics.tables import grid, percent
from perfmodel.modelling.intervals import LEVELS

RESULTS = Path(__file__).parents[1] / "docs" / "results"
PROJECTION = "projection-nvidia-h200-and-xeon"


def main() -> None:
    lines = [line for folder in sorted(RESULTS.iterdir()) for line in _of_recipe(folder)]
    lines += _of_projection(_read(RESULTS / PROJECTION / "results.json.gz"))
    header = ["recipe on device: model", "left out", "times", *_parts("left out"), "times", *_parts("held out")]
    print(grid(header, lines))


def _parts(where: str) -> list[str]:
    return [f"{where}: in {level} %" for level in LEVELS]


def _of_recipe(folder: Path) -> Iterator[list[str]]:
    found = next((file for name in ("results.json", "results.json.gz") if (file := folder / name).exists()), None)
    content = _read(found) if found else {}
    for model, known in content.get("intervals", {}).items():
        if known is None:
            continue
        held_out = content["summary"][model]["covered"]
        yield [
            f"{folder.name}: {model}",
            f"{known['groups']} {known['held_out']}",
            str(known["count"]),
            *(percent(known["covered"][level]) for level in LEVELS),
            *([str(held_out["count"]), *(percent(held_out[level]) for level in LEVELS)] if held_out else ["-"] * 3),
        ]


def _of_projection(content: dict[str, Any]) -> Iterator[list[str]]:
    rows = [row for row in content["rows"] if row["measured_s"] and row["predicted_s"]]
    for device in dict.fromkeys(row["device"] for row in rows):
        chosen = [row for row in rows if row["device"] == device]
        errors = np.log([row["measured_s"] / row["predicted_s"] for row in chosen])
        families = np.array([row["kernel"] for row in chosen])
        parts = []
        for probability in LEVELS.values():
            reach = NormalDist().inv_cdf((1 + probability) / 2)
            inside = [
                np.abs(errors[families == family]) <= reach * np.sqrt(np.mean(errors[families != family] ** 2))
                for family in sorted(set(families.tolist()))
            ]
            parts.append(percent(float(np.mean(np.concatenate(inside)))))
        deviation = float(np.sqrt(np.mean(errors**2)))
        name = f"projection on {device}, ln(measured / projected) {deviation:.2f}"
        yield [name, f"{len(set(families.tolist()))} applications", str(len(chosen)), *parts, "-", "-", "-"]


def _read(path: Path) -> dict[str, Any]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found: dict[str, Any] = json.loads(text)
    return found


if __name__ == "__main__":
    main()
