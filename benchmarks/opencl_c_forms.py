"""Judges how well a shipped model predicts kernels from their OpenCL C, beside the same kernels as Loopy programs.

    python -m benchmarks.opencl_c_forms unified-plus --device h200 \
        --store docs/results/unified-plus-nvidia-h200-e38dd1/measurements.sqlite.xz

Both forms run the same code on the device, so one time serves for both; what differs is who counts: Loopy's view of the
program, or the static analysis of the source. Families that are OpenCL C already, and kernels without statistics for
what data decide in them, are left out and named.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict

import numpy as np

import perfmodel as pm
from perfmodel.basics.statistics import Errors, geometric_mean
from perfmodel.basics.tables import grid
from perfmodel.recipes.recipe import recipe
from perfmodel.recipes.running import kernels_of
from perfmodel.report.tables import ERRORS, error_cells

warnings.simplefilter("ignore")


def main() -> None:
    parser = argparse.ArgumentParser(description="errors of a shipped calibration on two forms of the same kernels")
    parser.add_argument("recipe")
    parser.add_argument("--device", required=True)
    parser.add_argument("--store")
    parser.add_argument("--every", type=int, default=1, help="take every so many kernels only")
    parsed = parser.parse_args()
    chosen = recipe(parsed.recipe)
    calibration = pm.Calibration.shipped(parsed.recipe, device=parsed.device)
    conditions = {"device": parsed.device, "store": parsed.store, "protocol": chosen.protocol}
    sets = kernels_of(chosen, [calibration.model], conditions, [])
    kernels = [kernel for part in sets.values() for kernel in part][:: parsed.every]
    table = pm.measure(kernels, calibration.model, **conditions)
    errors: dict[str, list[tuple[float, float]]] = defaultdict(list)
    left_out: dict[str, str] = {}
    for kernel, seconds, flags in zip(kernels, table[chosen.output], table["flags"], strict=True):
        if flags or not np.isfinite(seconds):
            continue
        try:
            other = kernel.as_opencl()
            if other.program is kernel.program:
                left_out[kernel.name] = "is OpenCL C"
                continue
            both = [float(calibration.predict(form)) for form in (kernel, other)]
        except pm.PerfmodelError as error:
            left_out[kernel.name] = str(error)
            continue
        errors[kernel.name].append((abs(both[0] / seconds - 1), abs(both[1] / seconds - 1)))
    rows = [_row(name, found) for name, found in sorted(errors.items())]
    rows.append(_row("all", [pair for found in errors.values() for pair in found]))
    print(f"{parsed.recipe} on {table.attrs['device']['name']}\n")
    print(grid(["geometric mean error", "kernels", "as Loopy program", "as OpenCL C", "difference"], rows))
    columns = zip(*(pair for found in errors.values() for pair in found), strict=True)
    forms = zip(("as Loopy program", "as OpenCL C"), columns, strict=True)
    print(
        f"\n{grid(['error over all', *ERRORS], [[form, *error_cells(Errors.figures(each))] for form, each in forms])}\n"
    )
    for name, why in left_out.items():
        print(f"left out, {name}: {why}")


def _row(name: str, pairs: list[tuple[float, float]]) -> list[str]:
    loopy, source = (geometric_mean(list(column)) for column in zip(*pairs, strict=True))
    return [name, str(len(pairs)), f"{loopy:.1%}", f"{source:.1%}", f"{100 * (source - loopy):+.1f} points"]


if __name__ == "__main__":
    main()
