"""Judges how well a recipe's models predict each family of their measurement set from a fit to all the others.

    python -m benchmarks.leave_family_out unified-plus --device h200 \
        --store docs/results/unified-plus-nvidia-h200-e38dd1/measurements.sqlite.xz

Beside the errors stand the parts of the times that lie in intervals of 68 and 90 %, made from the errors of the other
families (see perfmodel/modelling/intervals.py). Times come from the store; kernels that it lacks are measured if the
device is here, and left out otherwise.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import perfmodel as pm
from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import grid
from perfmodel.device import Device
from perfmodel.modelling.intervals import LEVELS, LeftOutErrors, coverage, left_out_errors
from perfmodel.modelling.rows import CALIBRATION
from perfmodel.recipes.recipe import recipe
from perfmodel.recipes.running import kernels_of
from perfmodel.report.tables import ERRORS, error_cells

warnings.simplefilter("ignore")


def main() -> None:
    parser = argparse.ArgumentParser(description="cross-validation of a recipe's models over families of kernels")
    parser.add_argument("recipe")
    parser.add_argument("--device")
    parser.add_argument("--store")
    parsed = parser.parse_args()
    chosen = recipe(parsed.recipe)
    name, expression = list(chosen.models.items())[-1]
    model = pm.Model(chosen.output, expression)
    conditions = {"device": parsed.device, "store": parsed.store, "protocol": chosen.protocol}
    kernels = kernels_of(chosen, [model], conditions, [])[CALIBRATION]
    table = pm.measure(kernels, model, **conditions)
    table = table[[not flags for flags in table["flags"]]]
    options = chosen.fit_options(name, Device.from_fingerprint(table.attrs["device"]))
    calibration = model.fit(table, **options)
    known = calibration.held_out
    assert known is not None
    columns = {feature: table[column].to_numpy(dtype=np.float64) for feature, column in model.columns.items()}
    posed = {"parameters": {}, "nonnegative": True, "residuals": "relative", **options}
    found = left_out_errors(
        model.string,
        columns,
        table[chosen.output].to_numpy(dtype=np.float64),
        table["kernel"].tolist(),
        table["variant"].tolist(),
        calibration.parameters,
        **{option: posed[option] for option in ("parameters", "nonnegative", "residuals")},
    )
    inside = {level: np.full(len(table), np.nan) for level in LEVELS}
    for level, probability in LEVELS.items():
        inside[level][found.known] = coverage(found, known.slope, probability)
    lines = [_line(str(family), found, inside, found.groups == family) for family in sorted(set(found.groups.tolist()))]
    lines.append(_line("all", found, inside, np.ones(len(table), dtype=bool)))
    print(f"{name} on {table.attrs['device']['name']}\n")
    print(grid([f"error on {found.held_out} left out", "times", *ERRORS, "in 68 %", "in 90 %"], lines))
    if unknown := int((~found.known).sum()):
        print(f"\n{unknown} times could not be predicted so, as no other of the {found.held_out} has what they have")


def _line(name: str, found: LeftOutErrors, inside: dict[str, np.ndarray], chosen: np.ndarray) -> list[str]:
    rows = chosen & found.known
    errors = np.abs(np.exp(-found.logarithms[rows]) - 1)
    parts = [f"{100 * np.mean(each[rows]):.1f} %" if rows.any() else "-" for each in inside.values()]
    return [name, str(int(rows.sum())), *error_cells(Errors.figures(errors.tolist())), *parts]


if __name__ == "__main__":
    main()
