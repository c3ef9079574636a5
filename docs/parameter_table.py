"""Writes what terms and parameters of the models of any kernel mean: python docs/parameter_table.py

The words go from `perfmodel.models.gpu_terms`, `gpu_parameters`, `gpu_waits` and `cpu_terms` into the calibrations that
come along, and from these, with their values, into gpu-model.md and cpu-model.md. To be run when any of them has
changed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from perfmodel.modelling.calibration import Calibration, Model
from perfmodel.modelling.readings import Reading, readings
from perfmodel.recipes.recipe import recipe

DOCS = Path(__file__).parent
MODELS = {"gpu": "nvidia-h200-e38dd1", "cpu": "intel-xeon-processor-0b3c4a"}
"""The device of the calibration that each model's page shows."""
TABLE = re.compile(r"(<!-- table: .*? -->\n).*(<!-- end of table -->)", re.DOTALL)


def with_words(calibration: Calibration, model: str) -> Calibration:
    """Returns a calibration with what its recipe says of its terms and parameters now, and of the device's numbers in
    a string that is the same."""
    meanings, declared = recipe(model).meanings[model], calibration.model.declared
    written = Model(calibration.model.output_name, recipe(model).models[model], parameters=declared, meanings=meanings)
    same = written if written == calibration.model else calibration.model.with_meanings(meanings)
    return replace(calibration, model=same)


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
    for model, device in MODELS.items():
        file, page = DOCS.parent / "models" / f"{model}@{device}.json", DOCS / f"{model}-model.md"
        calibration = with_words(Calibration.load(file), model)
        calibration.save(file)
        page.write_text(with_table(page.read_text(encoding="utf-8"), calibration), encoding="utf-8")


if __name__ == "__main__":
    main()
