"""Judges the processor model by the test kernels of the 2016 paper, by their source and by their machine code.

``python -m benchmarks.kernels_by_code --store STORE`` measures them on the processor at hand, unless the store has
their times, and predicts them by the calibration that comes along, carried over to it: by the machine code that the
driver makes of them, as `perfmodel predict` does, and by their source alone.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

import perfmodel as pm
from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import grid, percent
from perfmodel.device import find_device
from perfmodel.measuring.store import Store
from perfmodel.modelling.rows import EVALUATION
from perfmodel.recipes.recipe import recipe
from perfmodel.recipes.running import kernels_of


def main() -> None:
    parser = argparse.ArgumentParser(description="the test kernels of the 2016 paper on this processor")
    parser.add_argument("--store", type=Path, required=True)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen, device = recipe("cpu"), find_device("cpu")
    calibration = pm.Calibration.shipped(device="cpu")
    with Store(arguments.store) as times:
        options = {"device": device, "store": times, "protocol": chosen.protocol}
        kernels = kernels_of(chosen, [calibration.model], options, [], (EVALUATION,))[EVALUATION]
        table = pm.measure(
            kernels, calibration.model, device=device, store=times, protocol=chosen.protocol, progress=False
        )
    seconds = table[chosen.output].to_numpy(dtype=np.float64)
    forms = {"source": [each.as_compiled() for each in kernels], "code": kernels}
    ways = {way: np.array([float(calibration.predict(each)) for each in some]) / seconds for way, some in forms.items()}
    lines = [
        [kernel.name, " ".join(f"{name}={size}" for name, size in kernel.sizes.items()), f"{1e3 * measured:.3g}"]
        + [f"{ratios[place]:.2f}" for ratios in ways.values()]
        for place, (kernel, measured) in enumerate(zip(kernels, seconds.tolist(), strict=True))
    ]
    print(grid(["kernel", "sizes", "measured, ms", *(f"by {way}" for way in ways)], lines), end="\n\n")
    told = []
    for way, ratios in ways.items():
        errors = Errors.of(np.abs(ratios - 1))
        assert errors is not None  # there are kernels
        figures = (errors.geometric_mean, errors.mean, errors.maximum, errors.within_30_percent)
        told.append([way, *map(percent, figures)])
    print(grid(["predicted by", "geometric mean", "mean", "maximum", "within 30 %"], told))


if __name__ == "__main__":
    main()
