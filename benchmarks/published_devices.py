"""Judges the choice among devices for textbook kernels by published times.

    python -m benchmarks.published_devices FOLDER --table FILE.pkl.xz [--calibration @h200 @intel-xeon]

The folder holds launches, times and the devices' specifications; the table the launches' features
(`benchmarks.feature_tables`). A GPU's calibration is carried over to each GPU, a processor's to each processor, by
their specifications. The device that is predicted fastest for each case is compared with the fastest of all, beside
baselines that know the specifications: always the device that is best on average, the highest peak, and the roofline
with each device's smallest time. Times are of the host's clock: the second line of predictions adds what the devices'
facts say of how long a launch takes to begin, and in the third a launch takes each device's smallest time, as in the
roofline's.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import perfmodel as pm
from benchmarks.feature_tables import features_of
from benchmarks.published.textbook import launches
from benchmarks.published_searches import table
from perfmodel.device.facts import facts_called
from perfmodel.modelling.calibration import calibration_called
from perfmodel.modelling.prediction import Prediction, PredictionWarning
from perfmodel.modelling.transfer import facts_of

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
    single = [
        name for name in table if str(name).startswith("f_op_float32_") and not re.search("_index| on ", str(name))
    ]
    operations = sum(table[name] * (2 if "_madd" in str(name) else 1) for name in single) * 32
    moved = table["f_mem_footprint_global_load_brought_block:64"] + table["f_mem_footprint_global_store_block:64"]
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


@dataclass(frozen=True)
class Predicted:
    """Holds the times of each case on each device, and between which they are expected with a probability of 90 %."""

    seconds: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame


def predictions(
    table: pd.DataFrame, there: Mapping[str, pm.Calibration], kernel: pm.Kernel, launches: Mapping[str, float] | None
) -> Predicted:
    """Returns the times that each device's calibration predicts.

    Args:
        kernel: any; intervals ask of what sample counts are.
        launches: what a launch takes on each device, where that is known better than by its calibration.
    """
    found: dict[str, tuple[pd.Series, ...]] = {}
    for name, calibration in there.items():
        known = calibration if launches is None else with_launch(calibration, launches[name])
        features = features_of(table, known)
        seconds = np.asarray(known.model.string.compile()(known.parameters, features), float)
        ends = Prediction(calibration=known, features=features, seconds=seconds, kernel=kernel, sizes={}).interval(0.9)
        found[name] = tuple(of_cases(table, each) for each in (seconds, *ends))
    return Predicted(*(pd.DataFrame({name: each[i] for name, each in found.items()}) for i in range(3)))


def dispatch(calibration: pm.Calibration) -> float:
    """Returns how long a launch takes to begin, by the facts of a calibration's device."""
    facts = facts_of(calibration)
    assert facts is not None  # it was carried over by them
    return facts["dispatch"]


def with_launch(calibration: pm.Calibration, seconds: float) -> pm.Calibration:
    """Returns a calibration in which a launch takes so long, as surely as before."""
    scale = np.array([seconds / each if name == "p_launch" else 1.0 for name, each in calibration.parameters.items()])
    parameters = {**calibration.parameters, "p_launch": seconds}
    return replace(calibration, parameters=parameters, covariance=calibration.covariance * np.outer(scale, scale))


def by_kind(predicted: Predicted, measured: pd.DataFrame, kinds: Mapping[str, str]) -> list[list[str]]:
    """Returns lines on each kind of device: times, median of predicted / measured, how many are within a factor of two
    and in their intervals."""
    rows = []
    for kind in ("all", *dict.fromkeys(kinds.values())):
        columns = [name for name in measured if name in predicted.seconds and kind in ("all", kinds[str(name)])]
        times = measured.loc[predicted.seconds.index, columns]
        ratios = (predicted.seconds[columns] / times).to_numpy()
        inside = ((times >= predicted.low[columns]) & (times <= predicted.high[columns])).to_numpy()
        known = np.isfinite(ratios)
        shares = [((ratios > 0.5) & (ratios < 2))[known].mean(), inside[known].mean()]
        rows.append([kind, str(known.sum()), f"{np.median(ratios[known]):.2f}", *(f"{share:.0%}" for share in shares)])
    return rows


def carried_over(
    calibrations: Iterable[pm.Calibration], devices: Mapping[str, Mapping[str, Any]]
) -> dict[str, pm.Calibration]:
    """Returns for each device that is known the calibration of its kind, carried over to it."""
    of_kind = {str(each.device["kind"]): each for each in calibrations}
    facts = {name: facts_called(str(each["name"])) for name, each in devices.items()}
    return {name: of_kind[each.kind].on(each) for name, each in facts.items() if each and each.kind in of_kind}


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
    parser.add_argument("--calibration", nargs="+", default=["@h200", "@intel-xeon"], help="one of each kind of device")
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
    features = features[pd.MultiIndex.from_frame(features[CASE]).isin(measured.index)]
    least = {str(name): float(each) for name, each in measured.min().items()}
    kinds = {name: str(devices[name]["kind"]) for name in least}
    there = carried_over([calibration_called(name) for name in parsed.calibration], {n: devices[n] for n in least})
    kernel = next(launches(parsed.folder / "launches.json")).kernel
    begun = {name: each.parameters["p_launch"] + dispatch(each) for name, each in there.items()}
    notes = []
    launched = {"predictions": None, "predictions and dispatch": begun, "predictions and smallest time": least}
    for name, known in launched.items():
        predicted = predictions(features, there, kernel, known)
        rows[name] = predicted.seconds.idxmin(axis=1)
        head = [name, "times", "median of predicted / measured", "within a factor of two", "in 90 % intervals"]
        notes.append(table(head, by_kind(predicted, measured, kinds)))
    large = [case for case in measured.index if case[1] in ("medium", "large")]
    for title, cases in ((f"{len(measured)} cases", list(measured.index)), (f"{len(large)} medium and large", large)):
        head = [title, "fastest", "within 10 %", "mean", "geometric mean", "largest"]
        print(table(head, [[name, *judged(chosen.loc[cases], measured)] for name, chosen in rows.items()]) + "\n")
    print("\n\n".join(notes))


if __name__ == "__main__":
    main()
