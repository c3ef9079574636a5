"""Writes what the GPU model's terms and parameters mean: python docs/parameter_table.py

The words go from `perfmodel.models.gpu_terms` into the calibration that comes along, and from it, with its values, into
gpu-model.md. To be run when either has changed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from perfmodel.modelling.calibration import Calibration
from perfmodel.modelling.readings import Reading, readings
from perfmodel.recipes.recipe import recipe

MODEL, DEVICE = "gpu", "nvidia-h200-e38dd1"
FILE = Path(__file__).parent.parent / "models" / f"{MODEL}@{DEVICE}.json"
PAGE = Path(__file__).parent / "gpu-model.md"
TABLE = re.compile(r"(<!-- table: .*? -->\n).*(<!-- end of table -->)", re.DOTALL)


def with_words(calibration: Calibration) -> Calibration:
    """Returns a calibration with what its recipe says of its terms and parameters now."""
    return replace(calibration, model=calibration.model.with_meanings(recipe(MODEL).meanings[MODEL]))


def as_markdown(calibration: Calibration) -> str:
    """Returns a line for each parameter: its value, and that of the device."""
    lines = [
        "| parameter | stands for | value | physical value | off | as of; what is missing |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *map(_line, readings(calibration))]) + "\n"


def _line(reading: Reading) -> str:
    off = "" if reading.off != reading.off else "–" if reading.off == 1 else f"{100 * (reading.off - 1):+.0f} %"
    remarks = "; ".join(filter(None, [reading.source, reading.lacks and f"missing: {reading.lacks}"]))
    cells = [f"`{reading.parameter}`", reading.words, reading.value, reading.physical, off, remarks]
    return f"| {' | '.join(cells)} |"


def with_table(page: str, calibration: Calibration) -> str:
    """Returns the page with the table of a calibration in its place."""
    return TABLE.sub(lambda found: found[1] + as_markdown(calibration) + found[2], page)


def main() -> None:
    calibration = with_words(Calibration.load(FILE))
    calibration.save(FILE)
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), calibration), encoding="utf-8")


if __name__ == "__main__":
    main()
