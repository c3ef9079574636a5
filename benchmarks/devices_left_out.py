"""Judges predictions for devices that no fit has seen, by the published times of tuned spaces.

    python -m benchmarks.devices_left_out FOLDER --table FILE.pkl.xz [--calibration gpu@h200]

The folder holds a tuned space (`benchmarks.published`), the table the features of some of its programs
(`python -m benchmarks.feature_tables FOLDER --table FILE.pkl.xz`). Each device's times are predicted twice: from the
calibration and the specifications of both devices alone, and with the times of the other devices, those of the same
card left out (`perfmodel.tuning.other_devices`). Beside each stand the geometric mean of the relative errors without
any scale and after one (least 0.1 %), the median of predicted / measured, the rank correlation, the part of the best
speed that the best of the 8 programs reaches which are predicted to be the fastest, and how many of the times the 90 %
intervals hold. These were chosen by every second device by name (`perfmodel.modelling.transfer`), so that those and the
others are told apart.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr

from benchmarks.feature_tables import features_of
from benchmarks.published.space import load
from benchmarks.published.spaces import SPACES
from benchmarks.published_searches import FIRST, error, reached
from perfmodel.basics.tables import grid
from perfmodel.device.facts import DeviceFacts, facts_called
from perfmodel.modelling.calibration import Calibration, calibration_called
from perfmodel.modelling.prediction import Prediction
from perfmodel.tuning.other_devices import corrected

Floats = NDArray[np.float64]


def figures(measured: Floats, predicted: Floats, ends: tuple[Floats, Floats] | None = None) -> list[float]:
    """Returns errors without and after one scale, bias, rank correlation, the best of the first few, and coverage."""
    known = np.isfinite(measured)
    times, seconds = measured[known], predicted[known]
    inside = np.mean((times >= ends[0][known]) & (times <= ends[1][known])) if ends else np.nan
    bias = float(np.median(seconds / times))
    errors = error(seconds, times), error(seconds / bias, times)
    rank = float(spearmanr(times, seconds).statistic)
    return [*errors, bias, rank, reached(seconds, times), float(inside)]


def table(rows: dict[str, list[float]]) -> str:
    columns = np.array(list(rows.values()))
    # Of errors the largest is the worst, of the others the smallest.
    worst = [*columns[:, :2].max(axis=0), np.nan, *columns[:, 3:].min(axis=0)]
    every = {**rows, "median": np.median(columns, axis=0).tolist(), "worst": worst}
    header = ["device", "error", "after one scale", "bias", "rank", f"best of {FIRST}", "90 % intervals"]
    return grid(header, [[name, *map(_shown, values, header[1:])] for name, values in every.items()])


def _shown(value: float, column: str) -> str:
    if np.isnan(value):
        return "-"
    return f"{value:.2f}" if column in ("bias", "rank") or column.startswith("best") else f"{value:.1%}"


def interval(calibration: Calibration, features: dict[str, Floats], seconds: Floats, kernel: Any) -> Any:
    return Prediction(calibration=calibration, features=features, seconds=seconds, kernel=kernel, sizes={}).interval(
        0.9
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="judges predictions for devices that no fit has seen")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--calibration", default="gpu@h200")
    parsed = parser.parse_args()
    warnings.simplefilter("ignore")
    published = load(parsed.folder, SPACES)
    counted = pd.read_pickle(parsed.table)
    if "failure" in counted:
        counted = counted[counted["failure"].isna()]
    calibration = calibration_called(parsed.calibration)
    of_program = published.seconds.groupby(published.programs.to_numpy()).median()
    times = {str(name): of_program[name].reindex(counted["row"]).to_numpy(float) for name in of_program}
    facts: dict[str, DeviceFacts] = {}
    for name in times:
        found = facts_called(published.devices[name]["name"])
        if found is None:
            raise SystemExit(f"nothing is known of device {published.devices[name]['name']}")
        facts[name] = found
    there = {name: calibration.on(each) for name, each in facts.items()}
    kernel = published.kernel(int(counted["row"].iloc[0]))
    features = {name: features_of(counted, each) for name, each in there.items()}
    predicted = {
        name: np.asarray(each.model.string.compile()(each.parameters, features[name]), float)
        for name, each in there.items()
    }
    alone, learned = {}, {}
    for name, seconds in predicted.items():
        ends = interval(there[name], features[name], seconds, kernel)
        alone[name] = figures(times[name], seconds, ends)
        others = {other: each for other, each in facts.items() if each.key != facts[name].key}
        learned[name] = figures(times[name], corrected(seconds, facts[name], others, times, predicted))
    print(f"{published.space.name}: {len(counted)} programs of {len(published.distinct)}\n")
    print(f"from {parsed.calibration} and the specifications:\n\n{table(alone)}\n")
    shares = [np.mean([alone[name][-1] for name in sorted(alone)[first::2]]) for first in (0, 1)]
    print(f"90 % intervals hold {shares[0]:.1%} on devices that they were chosen by, {shares[1]:.1%} on the others\n")
    print(f"with the times of the other devices:\n\n{table(learned)}")


if __name__ == "__main__":
    main()
