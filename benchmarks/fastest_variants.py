"""Judges how often a calibration names the fastest variant of the kernels that recipes are judged by.

    python -m benchmarks.fastest_variants cpu@amd-epyc perflex-matmul perflex-dg perflex-fd --device amd-epyc-eb6565 \
        --store docs/results/unified-plus-amd-epyc-eb6565/measurements.sqlite.xz

Times come from the store; sizes at which it has not got all variants are left out.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

import perfmodel as pm
from perfmodel.basics.tables import grid, percent
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.calibration import calibration_called
from perfmodel.modelling.rows import EVALUATION
from perfmodel.recipes.recipe import recipe
from perfmodel.recipes.running import kernels_of

warnings.simplefilter("ignore")


def main() -> None:
    parser = argparse.ArgumentParser(description="how often the fastest variant is named")
    parser.add_argument("calibration")
    parser.add_argument("recipes", nargs="+")
    parser.add_argument("--device")
    parser.add_argument("--store")
    parsed = parser.parse_args()
    calibration = calibration_called(parsed.calibration)
    lines = [line for name in parsed.recipes for line in _lines(calibration, name, parsed.device, parsed.store)]
    print(grid(["recipe", "kernel", "sizes", "variants", "named rightly", "slower by", "mean error", "±30 %"], lines))


def _lines(calibration: pm.Calibration, name: str, device: str | None, store: str | None) -> list[list[str]]:
    chosen = recipe(name)
    expression = next(iter(chosen.models.values()))
    conditions: dict[str, Any] = {"device": device, "store": store, "protocol": chosen.protocol}
    kernels = kernels_of(chosen, [pm.Model(chosen.output, expression)], conditions, [])[EVALUATION]
    launches = pm.Model(chosen.output, "p_launch * f_sync_kernel_launch")
    times = pm.measure(kernels, launches, budget_s=0, **conditions)[chosen.output]
    at: dict[tuple[str, tuple[tuple[str, int], ...]], list[tuple[Kernel, float]]] = {}
    for kernel, seconds in zip(kernels, times, strict=True):
        at.setdefault((kernel.name, tuple(kernel.sizes.items())), []).append((kernel, float(seconds)))
    variants = max(map(len, at.values()))
    whole = {key: found for key, found in at.items() if len(found) == variants and all(s > 0 for _, s in found)}
    return [
        _line(calibration, name, family, [each for key, each in whole.items() if key[0] == family], variants)
        for family in sorted({family for family, _ in whole})
    ]


def _line(
    calibration: pm.Calibration, name: str, family: str, sizes: list[list[tuple[Kernel, float]]], variants: int
) -> list[str]:
    slower, errors = [], []
    for found in sizes:
        measured = np.array([seconds for _, seconds in found])
        predicted = np.array([float(calibration.predict(kernel)) for kernel, _ in found])
        slower.append(measured[predicted.argmin()] / measured.min() - 1)
        errors += (np.abs(predicted - measured) / measured).tolist()
    right = sum(each == 0 for each in slower)
    wrong = ", ".join(percent(float(each)) for each in sorted(slower) if each > 0)
    within = percent(float(np.mean(np.array(errors) <= 0.3)))
    return [name, family, str(len(sizes)), str(variants), str(right), wrong, percent(float(np.mean(errors))), within]


if __name__ == "__main__":
    main()
