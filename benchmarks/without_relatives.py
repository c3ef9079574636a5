"""Predicts the test kernels by unified-plus without the families of its measurement set that are near them.

    python -m benchmarks.without_relatives --device h200 \
        --store docs/results/unified-plus-nvidia-h200-e38dd1/measurements.sqlite.xz

None of the test kernels' own families is in the set, but skinny matrix multiplication is one shape of a family that is;
pairwise distances have n-body's loop over all positions, and resampling has convolution's windows.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter

import numpy as np

import perfmodel as pm
from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import grid
from perfmodel.device import Device
from perfmodel.modelling.rows import CALIBRATION, EVALUATION
from perfmodel.models.unified_plus import UnifiedPlus
from perfmodel.recipes.running import kernels_of
from perfmodel.report.tables import ERRORS, error_cells

warnings.simplefilter("ignore")
MATMUL = ("matmul", "matmul_sq", "matmul_tiled", "batched_matmul")
LEFT_OUT = {
    "nothing": (),
    "matrix multiplications": MATMUL,
    "these, pairwise and resample": (*MATMUL, "pairwise", "resample"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device")
    parser.add_argument("--store")
    parsed = parser.parse_args()
    recipe = UnifiedPlus()
    ((name, expression),) = recipe.models.items()
    model = pm.Model(recipe.output, expression)
    conditions = {"device": parsed.device, "store": parsed.store, "protocol": recipe.protocol}
    kernels = kernels_of(recipe, [model], conditions, [])
    table, judged = (pm.measure(kernels[role], model, **conditions) for role in (CALIBRATION, EVALUATION))
    reasons = Counter(flag for flags in table["flags"] for flag in flags)
    fitted = table[[not flags for flags in table["flags"]]]
    print(f"{name} on {table.attrs['device']['name']}\n")
    print(f"{len(fitted)} of {len(table)} kernels are fitted; of the other {len(table) - len(fitted)}:")
    print("".join(f"  {count} {reason}\n" for reason, count in reasons.most_common()))
    options = recipe.fit_options(name, Device.from_fingerprint(table.attrs["device"]))
    times = judged[recipe.output].to_numpy(dtype=np.float64)
    labels = [recipe.label(kernel) for kernel in kernels[EVALUATION]]
    lines = []
    for what, families in LEFT_OUT.items():
        part = fitted[~fitted["kernel"].isin(families)]
        calibration = model.fit(part, **options)
        errors = {label: [] for label in dict.fromkeys(labels)}  # type: dict[str, list[float]]
        for label, kernel, time in zip(labels, kernels[EVALUATION], times, strict=True):
            errors[label].append(abs(float(calibration.predict(kernel)) / time - 1))
        lines += [[f"{what}: {label}", str(len(part)), *error_cells(Errors.figures(e))] for label, e in errors.items()]
        every = [error for of_label in errors.values() for error in of_label]
        lines.append([f"{what}: all", str(len(part)), *error_cells(Errors.figures(every))])
    print(grid(["left out: error on", "kernels", *ERRORS], lines))


if __name__ == "__main__":
    main()
