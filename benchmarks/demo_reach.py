"""Judges the demonstration's models beyond the sizes of a fit, from fewer sizes, and for the other variant.

    python -m benchmarks.demo_reach --device h200 --store docs/results/demo-nvidia-h200-e38dd1/measurements.sqlite.xz

One term is fitted to whole multiplications of one variant, overlap to those of both, to the accesses of the one with
prefetch by themselves, and to microbenchmarks. "Fewer sizes" takes the two smallest of the whole multiplications.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import perfmodel as pm
from perfmodel.basics.errors import FitError
from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import grid
from perfmodel.device import find_device
from perfmodel.modelling.rows import CALIBRATION, EVALUATION
from perfmodel.models.matmul_demo import BOTH, NO_FETCH, PREFETCH, MatmulDemo, is_whole
from perfmodel.recipes.running import kernels_of
from perfmodel.report.tables import ERRORS, error_cells

warnings.simplefilter("ignore")
SHOWN = {PREFETCH: "one term, prefetch", NO_FETCH: "one term, no fetch", BOTH: "overlap, both at once"}


class Reach:
    """Holds the demonstration's kernels and times on one device."""

    def __init__(self, device: str | None, path: str, protocol: str) -> None:
        self.recipe = MatmulDemo()
        self.models = {name: pm.Model(self.recipe.output, string) for name, string in self.recipe.models.items()}
        self.notes: list[str] = []
        with pm.Store(path) as store:
            here = find_device(device, store.devices())
            conditions: dict[str, Any] = {"device": here, "store": store, "protocol": protocol}
            kernels = kernels_of(self.recipe, self.models.values(), conditions, self.notes)
            tables = {
                role: pm.measure(of_role, self.models.values(), **conditions) for role, of_role in kernels.items()
            }
        self.name, self.output = here.name, self.recipe.output
        self.kernels, self.tables = kernels, tables
        known = np.isfinite(tables[CALIBRATION][self.output].to_numpy(dtype=float))
        if not known.all():
            self.notes.append(f"{(~known).sum()} of {known.size} kernels to calibrate with have no time in the store")
        self.sizes = sorted({kernel.sizes["n"] for kernel in kernels[CALIBRATION] if is_whole(kernel)})

    def lines(self, model: str, largest: int) -> list[list[str]]:
        """Returns errors of a model that saw no whole multiplication beyond a size, a line a variant and range of
        sizes."""
        kernels = self.kernels[CALIBRATION]
        fitted = [
            self.recipe.is_fitted_to(model, kernel) and (not is_whole(kernel) or kernel.sizes["n"] <= largest)
            for kernel in kernels
        ]
        whole = len({k.sizes["n"] for k, is_fitted in zip(kernels, fitted, strict=True) if is_fitted and is_whole(k)})
        try:
            calibration = self.models[model].fit(self.tables[CALIBRATION][fitted])
        except FitError as refusal:
            return [[SHOWN[model], str(whole), "", str(refusal).partition(";")[0], *[""] * len(ERRORS), ""]]
        found: dict[tuple[str, str], list[float]] = {}
        times = self.tables[EVALUATION][self.output]
        for kernel, time in zip(self.kernels[EVALUATION], times, strict=True):
            where = "within the sizes fitted" if kernel.sizes["n"] <= self.sizes[-1] else "beyond"
            error = abs(float(calibration.predict(kernel)) / time - 1)
            found.setdefault((self.recipe.label(kernel), where), []).append(error)
        return [
            [SHOWN[model], str(whole), label, where, *error_cells(Errors.figures(errors)), str(len(errors))]
            for (label, where), errors in found.items()
        ]

    def table(self) -> str:
        every: Sequence[int] = (self.sizes[-1], self.sizes[1])
        lines = [line for largest in every for model in SHOWN for line in self.lines(model, largest)]
        return grid(["model, calibrated for", "whole sizes", "predicts", "at sizes", *ERRORS, "times"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device")
    parser.add_argument("--store", required=True)
    parser.add_argument("--protocol", default=MatmulDemo.protocol)
    parsed = parser.parse_args()
    reach = Reach(parsed.device, parsed.store, parsed.protocol)
    print(f"Matrix multiplication on {reach.name}, n = {reach.sizes[0]} … {reach.sizes[-1]} fitted\n\n{reach.table()}")
    print("".join(f"\nnote: {note}" for note in reach.notes), end="\n" if reach.notes else "")


if __name__ == "__main__":
    main()
