"""Judges how well a calibration predicts kernels of families that no recipe knows.

    python -m benchmarks.unseen_kernels third CALIBRATION.json --device gpu --store unseen.sqlite

None of their times ever entered a fit.
"""

from __future__ import annotations

import argparse
import warnings
from importlib import import_module

import numpy as np

import perfmodel as pm
from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import grid, seconds
from perfmodel.modelling.intervals import LEVELS
from perfmodel.report.tables import ERRORS, error_cells

warnings.simplefilter("ignore")


def main() -> None:
    parser = argparse.ArgumentParser(description="errors of a calibration on kernels that no recipe knows")
    parser.add_argument("set", choices=("second", "third"), help="of kernels, in benchmarks/unseen")
    parser.add_argument("calibration")
    parser.add_argument("--device")
    parser.add_argument("--store")
    parsed = parser.parse_args()
    calibration = pm.Calibration.load(parsed.calibration)
    programs = import_module(f"benchmarks.unseen.{parsed.set}").programs()
    named = [(name, pm.Kernel(program, {"generator": name}, n=n)) for name, program, sizes in programs for n in sizes]
    kernels = [kernel for _, kernel in named]
    table = pm.measure(kernels, calibration.model, device=parsed.device, store=parsed.store)
    rows, errors = [], []
    inside: dict[str, list[bool]] = {level: [] for level in LEVELS}
    for (name, kernel), time, flags in zip(named, table["f_cl_wall_time"], table["flags"], strict=True):
        predicted = float(calibration.predict(kernel))
        if not np.isfinite(time) or flags:
            rows.append([name, str(kernel.sizes["n"]), seconds(time), seconds(predicted), ", ".join(flags)[:40]])
            continue
        errors.append(abs(predicted / time - 1))
        for level, probability in LEVELS.items():
            low, high = calibration.interval(kernel, probability)
            inside[level].append(bool(low <= time <= high))
        rows.append([name, str(kernel.sizes["n"]), seconds(time), seconds(predicted), f"{predicted / time - 1:+.0%}"])
    print(grid(["kernel", "n", "measured", "predicted", "error"], rows))
    names, device = len({name for name, _ in named}), table.attrs["device"]["name"]
    print(f"\n{len(errors)} times of {names} kernels on {device}\n")
    parts = [f"{100 * np.mean(each):.1f} %" for each in inside.values()]
    line = ["all", *error_cells(Errors.figures(errors)), f"{np.median(errors):.1%}", *parts]
    print(grid(["error", *ERRORS, "median", "in 68 %", "in 90 %"], [line]))


if __name__ == "__main__":
    main()
