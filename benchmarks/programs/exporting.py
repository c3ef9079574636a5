"""Writes programs as a folder of .cl files, arrays and a survey.json, for `perfmodel survey`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.programs.program import FOLDER, Case, Local, Random, Zeros


def export(cases: Iterable[Case], folder: Path, sizes: Sequence[str]) -> Path:
    """Writes cases with their launches at some sizes into a folder, and returns the file that describes them."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    described = []
    for case in cases:
        shutil.copyfile(FOLDER / case.source, folder / case.source)
        described.append(
            {
                "name": case.name,
                "group": case.group,
                "source": case.source,
                "kernel": case.kernel,
                "options": list(case.options),
                "folders": [],
                "any_order": list(case.any_order),
                "any_rounding": list(case.any_rounding),
                "launches": {size: _launch(case, size, folder) for size in sizes},
            }
        )
    file = folder / "survey.json"
    file.write_text(
        json.dumps({"format": "perfmodel-survey", "version": 1, "cases": described}, indent=1) + "\n", encoding="utf-8"
    )
    return file


def _launch(case: Case, size: str, folder: Path) -> dict[str, Any]:
    launch = case.launch(size)
    return {
        "global": list(launch.global_size),
        "local": list(launch.local_size),
        "arguments": {
            name: _said(value, f"data/{case.name}_{size}_{name}.npy", folder)
            for name, value in launch.arguments.items()
        },
    }


def _said(value: Any, file: str, folder: Path) -> Any:
    match value:
        case Local():
            return {"local_bytes": value.bytes}
        case Zeros():
            dtype = np.dtype(value.dtype)
            plain = dtype.names is None
            return f"zeros:{dtype.name}:{value.size}" if plain else f"zeros:uint8:{value.size * dtype.itemsize}"
        case Random():
            return f"random:{np.dtype(value.dtype).name}:{value.size}:{value.low!r}:{value.high!r}"
        case np.void():
            return {name: value[name].item() for name in value.dtype.names or ()}
        case np.ndarray():
            np.save(folder / file, np.ascontiguousarray(value))
            return file
        case _:
            return value.item()
