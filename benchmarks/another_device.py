"""Judges predictions for a device that was never measured by times that it took all the same.

``python -m benchmarks.another_device STORE --device KEY --as h100`` predicts the kernels of the recipe of the device's
kind by the calibration that comes along, carried over to the specification of ``h100``, or to one in a file, and
compares with the times that a store has of the device: as it is, and once some of these times were learned from. Errors
of a calibration of the device itself stand beside them (``--own FILE``, as ``perfmodel reproduce gpu`` writes it),
though that one has seen the times.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import perfmodel as pm
from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import grid, percent
from perfmodel.device import find_device
from perfmodel.measuring.store import Store
from perfmodel.modelling.predictor import CalibratedModel
from perfmodel.modelling.summary import is_within
from perfmodel.recipes.recipe import recipe
from perfmodel.recipes.running import kernels_of

LEAST_S = 20e-6
LEARNED = (1, 8, 32, 400)


def rows_of(store: Path, name: str) -> tuple[list[pm.Kernel], NDArray[np.float64]]:
    """Returns the recipe's kernels that a store has times of 20 us and more of, without flags, and these times."""
    with Store(store, read_only=True) as times:
        device = find_device(name, times.devices())
        chosen = recipe(device.kind)
        models = [pm.Model(chosen.output, string) for string in chosen.models_on(device, []).values()]
        found = kernels_of(chosen, models, {"device": device, "store": times, "protocol": chosen.protocol}, [])
        kernels = [each for part in found.values() for each in part]
        table = pm.measure(kernels, models[0], device=device, store=times, protocol=chosen.protocol, progress=False)
    seconds = table[chosen.output].to_numpy(dtype=np.float64)
    good = [not flags and second >= LEAST_S for flags, second in zip(table["flags"], seconds, strict=True)]
    return [kernel for kernel, is_good in zip(kernels, good, strict=True) if is_good], seconds[good]


def line(
    name: str, calibration: pm.Calibration, kernels: Sequence[pm.Kernel], seconds: NDArray[np.float64]
) -> list[str]:
    found = CalibratedModel(name, calibration).predict(kernels)
    ratios = np.array([each.seconds for each in found]) / seconds
    errors = Errors.of(np.abs(ratios - 1))
    assert errors is not None  # there are kernels
    shares = (errors.within_30_percent, np.mean((ratios >= 0.5) & (ratios <= 2)))
    covered = [is_within(second, each.interval_90) for each, second in zip(found, seconds.tolist(), strict=True)]
    figures = (errors.geometric_mean, errors.mean, errors.maximum, *shares, np.mean(covered))
    return [name, str(errors.count), *(percent(float(each)) for each in figures)]


def main() -> None:
    parser = argparse.ArgumentParser(description="predictions for a device that was never measured")
    parser.add_argument("store", type=Path)
    parser.add_argument("--device", required=True, help="whose times the store has")
    parser.add_argument(
        "--as", dest="known", required=True, help="its key among 'perfmodel devices --known', or a file"
    )
    parser.add_argument("--own", type=Path, help="a calibration of the device itself")
    parser.add_argument("--sample", type=int, default=400, help="kernels that are predicted, by chance (default: 400)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    kernels, seconds = rows_of(arguments.store, arguments.device)
    order = np.random.default_rng(arguments.seed).permutation(len(kernels))
    learned, judged = np.split(order[: max(LEARNED) + arguments.sample], [max(LEARNED)])
    rest = [kernels[i] for i in judged]
    carried = pm.Calibration.shipped(device=arguments.known)
    lines = [line("from its specification", carried, rest, seconds[judged])]
    for count in LEARNED:
        some = learned[:count]
        better = carried.update([kernels[i] for i in some], seconds[some])
        lines.append(line(f"and {count} of its times", better, rest, seconds[judged]))
    if arguments.own:
        lines.append(line("calibrated by them", pm.Calibration.load(arguments.own), rest, seconds[judged]))
    header = [
        "predicted",
        "kernels",
        "geometric mean",
        "mean",
        "maximum",
        "within 30 %",
        "factor of 2",
        "in 90 % interval",
    ]
    print(grid(header, lines))


if __name__ == "__main__":
    main()
