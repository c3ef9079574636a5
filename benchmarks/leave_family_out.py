"""How well a recipe's last model predicts each family of its measurement set from a fit to all the others.

    python -m benchmarks.leave_family_out unified-plus --device h200 \
        --store docs/results/unified-plus-nvidia-h200-e38dd1/measurements.sqlite.xz

Times come from the store; kernels that it lacks are measured if the device is here, and left out otherwise.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import perfmodel as pm
from perfmodel.device import Device
from perfmodel.recipe import CALIBRATION, kernels_of, recipe
from perfmodel.report.tables import grid
from perfmodel.summary import BAND, geometric_mean

warnings.simplefilter("ignore")


def main() -> None:
    parser = argparse.ArgumentParser(description="cross-validation of a recipe's model over families of kernels")
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
    families, seconds = table["kernel"].to_numpy(), table[chosen.output].to_numpy(dtype=np.float64)
    everything = np.zeros(len(table))
    lines = []
    for family in sorted(set(families)):
        inside = families == family
        fitted = model.fit(table[~inside], **options)
        columns = {feature: table[feature].to_numpy(dtype=np.float64)[inside] for feature in model.features}
        predicted = model.string.compile()(fitted.parameters, columns)
        everything[inside] = np.abs(predicted / seconds[inside] - 1)
        lines.append([family, *_summary(everything[inside])])
    lines.append(["all", *_summary(everything)])
    print(f"{name} on {table.attrs['device']['name']}\n")
    print(grid(["family left out", "kernels", "geometric mean error", "within 30 %"], lines))


def _summary(errors: np.ndarray) -> list[str]:
    return [str(len(errors)), f"{geometric_mean(errors.tolist()):.1%}", f"{np.mean(errors <= BAND):.0%}"]


if __name__ == "__main__":
    main()
