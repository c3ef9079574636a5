"""Judges the choice among devices for textbook kernels by published times.

    python -m benchmarks.published_devices FOLDER --table FILE.pkl.xz [--calibration @h200]

The folder holds launches, times and the devices' specifications; the table the launches' features
(`benchmarks.feature_tables`). The calibration is carried over to each GPU by its specification; processors have no
predictions. The device that is predicted fastest for each case is compared with the fastest of all, beside baselines
that know the specifications: always the device that is best on average, the highest peak, and the roofline with each
device's smallest time. What launching takes on each device's host, which no specification has, is its smallest time in
the second line of predictions, as in the roofline's.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import perfmodel as pm
from benchmarks.published_searches import table
from perfmodel.device.facts import facts_called
from perfmodel.modelling.calibration import calibration_called
from perfmodel.modelling.prediction import PredictionWarning

NO_LAUNCHES = ("kmeans/invert_mapping", "dwt/c_CopySrcToComponents")
"""The times of these hold more than a launch."""
HALVES = ("gem/",)
"""The times of these are half a launch."""
CASE = ["case", "size"]


def of_cases(table: pd.DataFrame, seconds: Any) -> pd.Series:
    """Returns the mean time of each case's launches, from a time for each row of the table."""
    found = (table["weight"] * np.asarray(seconds)).groupby([table[name] for name in CASE]).sum()
    halved = [case.startswith(HALVES) for case, _ in found.index]
    return pd.Series(np.where(halved, found / 2, found), found.index)


def rooflines(table: pd.DataFrame, devices: Mapping[str, Mapping[str, Any]], least: pd.Series) -> pd.DataFrame:
    """Returns the larger of operations / peak and bytes / bandwidth, plus each device's smallest time."""
    single = [name for name in table if str(name).startswith("f_op_float32_") and "_index" not in str(name)]
    operations = sum(table[name] * (2 if "_madd" in str(name) else 1) for name in single) * 32
    moved = table["f_mem_footprint_global_block:64"]
    return pd.DataFrame(
        {
            name: of_cases(
                table,
                np.maximum(operations / each["fp32_peak_gflops"], moved / each["bandwidth_gb_s"]) / 1e9 + least[name],
            )
            for name, each in devices.items()
            if name in least
        }
    )


def predictions(
    table: pd.DataFrame, calibration: pm.Calibration, devices: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """Returns the times that the calibration predicts, carried over to each GPU, without launches."""
    features = {name: table[name].to_numpy(float) for name in calibration.model.features}
    found = {}
    for name, each in devices.items():
        facts = facts_called(str(each["name"]))
        if facts is not None and facts.kind == "gpu":
            there = calibration.on(facts)
            seconds = there.model.string.compile()({**there.parameters, "p_launch": 0.0}, features)
            found[name] = of_cases(table, seconds)
    return pd.DataFrame(found)


def judged(chosen: pd.Series, measured: pd.DataFrame) -> list[str]:
    """Returns how often the chosen devices are the fastest, or within a tenth of it, and how much slower they are."""
    every = measured.loc[chosen.index]
    taken = every.to_numpy()[np.arange(len(every)), every.columns.get_indexer(pd.Index(chosen))]
    slower = taken / every.min(axis=1).to_numpy()
    shares = [f"{np.mean(slower <= limit):.0%}" for limit in (1, 1.1)]
    return [*shares, f"{slower.mean():.2f}", f"{np.exp(np.log(slower).mean()):.2f}", f"{slower.max():.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description="judges the choice among devices for textbook kernels")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--calibration", default="@h200")
    parsed = parser.parse_args()
    warnings.simplefilter("ignore", PredictionWarning)
    features = pd.read_pickle(parsed.table)
    times = pd.read_csv(parsed.folder / "times.csv.gz")
    measured = times[~times["case"].isin(NO_LAUNCHES)].pivot_table(index=CASE, columns="device", values="median_s")
    devices = json.loads((parsed.folder / "devices.json").read_text())["devices"]
    peaks = {name: devices[name]["fp32_peak_gflops"] for name in measured}
    on_average = str((measured.T / measured.min(axis=1)).T.mean().idxmin())
    rows = {
        f"always {on_average}, best on average of these": pd.Series(on_average, measured.index),
        "highest peak": pd.Series(max(peaks, key=lambda name: peaks[name]), measured.index),
        "roofline and smallest time": rooflines(features, devices, measured.min()).loc[measured.index].idxmin(axis=1),
    }
    calibration = calibration_called(parsed.calibration)
    predicted = predictions(features, calibration, {str(name): devices[str(name)] for name in measured})
    predicted = predicted.loc[predicted.index.intersection(measured.index)]
    launches = pd.Series(calibration.parameters["p_launch"], measured.columns)
    launched = {"predictions": launches, "predictions and smallest time": measured.min()}
    notes = []
    for name, launch in launched.items():
        seconds = predicted + launch[predicted.columns]
        rows[name] = seconds.idxmin(axis=1)
        ratios = (seconds / measured.loc[predicted.index, predicted.columns]).to_numpy()
        ratios = ratios[np.isfinite(ratios)]
        within = np.mean((ratios > 0.5) & (ratios < 2))
        notes.append(f"{name}: {within:.0%} of {len(ratios)} times of GPUs are within a factor of two")
    large = [case for case in measured.index if case[1] in ("medium", "large")]
    for title, cases in ((f"{len(measured)} cases", list(measured.index)), (f"{len(large)} medium and large", large)):
        head = [title, "fastest", "within 10 %", "mean", "geometric mean", "largest"]
        print(table(head, [[name, *judged(chosen.loc[cases], measured)] for name, chosen in rows.items()]) + "\n")
    print("\n".join(notes))


if __name__ == "__main__":
    main()
