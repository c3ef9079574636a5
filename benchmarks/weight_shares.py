"""Prints what each weight of a linear recipe contributes to its predictions of one test kernel, and how surely.

    python -m benchmarks.weight_shares unified convolution --device h200 \
        --store docs/results/unified-plus-nvidia-h200-e38dd1/measurements.sqlite.xz

Shares are of the measured time, with the standard error that the fit gives the weight.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import perfmodel as pm
from perfmodel.basics.tables import grid, percent, sizes_text
from perfmodel.device import Device
from perfmodel.modelling.rows import CALIBRATION, EVALUATION
from perfmodel.recipes.recipe import recipe
from perfmodel.recipes.running import kernels_of
from perfmodel.vocabulary.named_features import evaluate_all

warnings.simplefilter("ignore")
LEAST = 0.01
"""Share of the measured time below which a weight is not shown."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recipe")
    parser.add_argument("kernel", help="name of a test kernel's generator")
    parser.add_argument("--device")
    parser.add_argument("--store")
    parsed = parser.parse_args()
    chosen = recipe(parsed.recipe)
    name, expression = list(chosen.models.items())[-1]
    model = pm.Model(chosen.output, expression)
    conditions = {"device": parsed.device, "store": parsed.store, "protocol": chosen.protocol}
    sets = kernels_of(chosen, [model], conditions, [])
    table = pm.measure(sets[CALIBRATION], model, **conditions)
    calibration = model.fit(table, **chosen.fit_options(name, Device.from_fingerprint(table.attrs["device"])))
    judged = [kernel for kernel in sets[EVALUATION] if kernel.name == parsed.kernel]
    times = pm.measure(judged, model, **conditions)[chosen.output]
    weights = list(calibration.parameters)
    at = model.string.compile()
    fitted = {feature: table[column].to_numpy(dtype=np.float64) for feature, column in model.columns.items()}
    print(f"{name} on {table.attrs['device']['name']}: {parsed.kernel}, shares of the measured time\n")
    lines = []
    for kernel, time in zip(judged, times, strict=True):
        values = evaluate_all(model.features, kernel, kernel.bind({}))
        columns = {feature: np.array([float(values[feature])]) for feature in model.features}
        nothing = dict.fromkeys(weights, 0.0)
        shares = {w: float(at({**nothing, w: calibration.parameters[w]}, columns)[0]) / time for w in weights}
        unit = {w: float(at({**nothing, w: 1.0}, columns)[0]) / time for w in weights}
        whole = sum(shares.values())
        size = sizes_text(kernel.sizes)
        lines.append([size, "all", percent(whole), "", "", percent(abs(whole - 1))])
        for weight in sorted(weights, key=lambda w: -abs(shares[w])):
            if abs(shares[weight]) < LEAST:
                break
            std = unit[weight] * calibration.stderr[weight]
            used = str(np.count_nonzero(at({**nothing, weight: 1.0}, fitted)))
            without = percent(abs(whole - shares[weight] - 1))
            lines.append([size, weight, percent(shares[weight]), f"± {percent(std)}", used, without])
    header = ["size", "weight", "share", "standard error", "fitted kernels that have it", "error, or error without it"]
    print(grid(header, lines))


if __name__ == "__main__":
    main()
