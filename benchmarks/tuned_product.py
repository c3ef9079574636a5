"""Times predictions of a tuned matrix product: each configuration is read, counted and predicted for the first time.

    python -m benchmarks.tuned_product [--sample 100] [--model gpu] [--seed 1]

The space has 17,956 configurations, of which a sample is taken; nothing comes from the cache of counts. The times are
the processor's, of one process in which configurations share what is the same, and of others that start anew.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import time
import warnings
from pathlib import Path

import numpy as np

import perfmodel as pm

SOURCE = Path(__file__).with_suffix(".cl")
SIDE = 4096
DEPTH, AT_ONCE = 32, 2
"""Steps of a tile along the sum, and how many of them are unrolled."""

Configuration = dict[str, int]


def space() -> list[Configuration]:
    """Returns every configuration that divides its tiles evenly."""
    found = []
    tiles, groups, widths = (16, 32, 64, 128), (8, 16, 32), (1, 2, 4, 8)
    for m, n, *shapes, vm, vn in itertools.product(tiles, tiles, *[groups] * 4, widths, widths):
        of_m, of_n, of_a, of_b = shapes
        items = of_m * of_n
        if any(m % (each * vm) for each in (of_m, of_a)) or any(n % (each * vn) for each in (of_n, of_b)):
            continue
        if DEPTH % (items // of_a) or DEPTH % (items // of_b):
            continue
        names = ("MWG", "NWG", "MDIMC", "NDIMC", "MDIMA", "NDIMB", "VWM", "VWN")
        values = dict(zip(names, (m, n, *shapes, vm, vn), strict=True))
        for a, b in itertools.product((0, 1), repeat=2):
            found.append({**values, "KWG": DEPTH, "KWI": AT_ONCE, "SA": a, "SB": b})
    return found


def kernel(configuration: Configuration, side: int = SIDE) -> pm.Kernel:
    m, n = (side // configuration[f"{axis}WG"] * configuration[f"{axis}DIMC"] for axis in "MN")
    return pm.Kernel.from_opencl(
        SOURCE,
        "product",
        (m, n),
        (configuration["MDIMC"], configuration["NDIMC"]),
        {
            "a": side**2 // configuration["VWM"],
            "b": side**2 // configuration["VWN"],
            "c": side**2 // configuration["VWM"],
        },
        [f"-D{name}={value}" for name, value in configuration.items()],
        tags={name: str(value) for name, value in configuration.items()},
        m=side,
        n=side,
        k=side,
        alpha=1.0,
        beta=1.0,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="times of predictions of a tuned matrix product")
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--model", default="gpu")
    parser.add_argument("--seed", type=int, default=1)
    parsed = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["PERFMODEL_NO_CACHE"] = "1"
    every = space()
    chosen = random.Random(parsed.seed).sample(every, parsed.sample)
    calibration = pm.Calibration.shipped(parsed.model, device="H200")
    taken = []
    for configuration in [chosen[0], *chosen]:  # the first one imports modules, and does not count
        started = time.process_time()
        calibration.predict(kernel(configuration))
        taken.append(time.process_time() - started)
    shown = ", ".join(f"{q} %: {np.percentile(taken[1:], q):.3f} s" for q in (50, 95, 100))
    print(f"{parsed.sample} of {len(every):,} configurations, each for the first time: {shown}")
    worst = chosen[int(np.argmax(taken[1:]))]
    print("longest:", " ".join(f"{name}={value}" for name, value in worst.items()))


if __name__ == "__main__":
    main()
