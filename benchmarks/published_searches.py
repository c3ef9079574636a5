"""Judges searches by the published times of tuned spaces, on devices that nothing here was measured on.

    python -m benchmarks.published_searches FOLDER --table FILE.pkl.xz [--calibration @h200] [--device V100] [--seeds 9]

The folder holds a space with its times, the table the features of its programs (`benchmarks.feature_tables`); programs
that are not in it are left out, in the baselines as well. The calibration is carried over to each device by its
specification. Printed are tables in Markdown of the part of the best speed that searches reach after some measurements:
of all devices the median and the worst, and each device's. They are a search that learns (`perfmodel.tune`), the order
of predictions (`PredictedFirst`), the order of the times of other GPUs, chance, and with ``--seeds`` Kernel
Tuner's strategies, in its simulation mode, the median of all seeds.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

import perfmodel as pm
from benchmarks.pruning import cache_file, simulation
from benchmarks.published.space import Published, load
from benchmarks.published.spaces import SPACES
from perfmodel.device.facts import facts_called
from perfmodel.modelling.calibration import calibration_called
from perfmodel.modelling.intervals import sensitivities
from perfmodel.tuning.pruning import Configuration
from perfmodel.tuning.tuner import Tuner

Floats = NDArray[np.float64]
Reached = dict[int, float]
FIRST = 8
EVALUATIONS = (8, 16, 32, 64)
STRATEGIES = ("random_sample", "genetic_algorithm", "simulated_annealing", "diff_evo", "pso")
"""Searches by neighbours never end where a table holds a sample of a space."""
LEAST = 1e-3
"""Errors are at least this, so that one exact prediction does not make a geometric mean nothing."""


@dataclass(frozen=True)
class Programs:
    """Holds the programs of a space that a table has features of.

    Attributes:
        configurations: one of each program.
        features: by name, a number a program.
        words: logarithms of the registers that a program's values take, shape (programs, 1).
        seconds: a column a device, the median over the configurations of a program.
    """

    configurations: list[dict[str, int]]
    features: dict[str, Floats]
    words: Floats
    seconds: pd.DataFrame

    @classmethod
    def of(cls, published: Published, table: pd.DataFrame, names: Iterable[str]) -> Programs:
        wanted = list(names)
        whole = table[table[wanted].notna().all(axis=1)]
        rows = whole["row"].astype(int).tolist()
        seconds = published.seconds.groupby(published.programs).median().loc[rows].reset_index(drop=True)
        features = {name: whole[name].to_numpy(float) for name in wanted}
        words = np.log((whole["registers"] + whole["private_bytes"] / 4).to_numpy(float))
        return cls([published.configuration(row) for row in rows], features, words[:, np.newaxis], seconds)

    def on(self, device: str) -> tuple[NDArray[np.intp], Floats]:
        """Returns which programs have times on a device, and these."""
        seconds = self.seconds[device].to_numpy(float)
        there = np.flatnonzero(np.isfinite(seconds))
        return there, seconds[there]


@dataclass(frozen=True)
class Predictions:
    """Holds what a calibration says of programs: seconds, and elasticities by its parameters (programs, parameters)."""

    seconds: Floats
    elasticities: Floats

    @classmethod
    def of(cls, calibration: pm.Calibration, features: Mapping[str, Floats]) -> Predictions:
        string, count = calibration.model.string, len(next(iter(features.values())))
        seconds = np.broadcast_to(string.compile()(calibration.parameters, features), count)
        slopes = sensitivities(string, calibration.parameters, features, count)
        return cls(seconds, np.array([np.broadcast_to(each, count) for each in slopes.values()]).T)


def error(predicted: Floats, measured: Floats) -> float:
    """Returns the geometric mean of |predicted / measured - 1|."""
    return float(np.exp(np.log(np.maximum(np.abs(predicted / measured - 1), LEAST)).mean()))


def reached(order: Floats, measured: Floats, count: int = FIRST) -> float:
    """Returns what part of the best speed the first `count` programs of an order reach."""
    return float(measured.min() / measured[np.argsort(order, kind="stable")[:count]].min())


def by_chance(measured: Floats, count: int = FIRST) -> float:
    """Returns what part of the best speed so many programs reach that are chosen by chance: the expected value."""
    total = len(measured)
    left = np.array([math.comb(total - place - 1, count - 1) for place in range(total - count + 1)], float)
    ordered = np.sort(measured)[: len(left)]
    return float((left / left.sum() * ordered[0] / ordered).sum())


def transferred(programs: Programs, published: Published, device: str, there: NDArray[np.intp]) -> Floats:
    """Returns the mean relative rank of programs on all other cards."""
    card = published.devices[device]["name"]
    others = [each for each in programs.seconds if published.devices[str(each)]["name"] != card]
    ranks = [rankdata(programs.seconds[each], nan_policy="omit") / programs.seconds[each].count() for each in others]
    return np.asarray(np.nanmean(np.array(ranks), axis=0)[there])


def searched(programs: Programs, predictions: Predictions, device: str) -> dict[int, tuple[float, float, float]]:
    """Returns what a search that learns reaches after some measurements: the part of the best speed, the error on all
    others, and the part of them that is within the 90 % interval."""
    there, measured = programs.on(device)
    configurations = [
        Configuration(tuple(programs.configurations[place].values()), float(predictions.seconds[place]))
        for place in there
    ]
    taken = {each.config: seconds for each, seconds in zip(configurations, measured, strict=True)}
    tuner = Tuner(configurations, predictions.elasticities[there], further=programs.words[there])
    found = {}
    for count in (each for each in EVALUATIONS if each < len(there)):
        while len(tuner.measured) < count:
            for config in tuner.ask():
                tuner.tell(config, taken[config])
        known = {config for config, _ in tuner.measured}
        rest = [place for place, each in enumerate(configurations) if each.config not in known]
        expected = tuner.predicted
        seconds, std = (np.array([getattr(expected[p], name) for p in rest]) for name in ("seconds", "std_s"))
        inside = np.abs(np.log(seconds / measured[rest])) < 1.645 * std / seconds
        assert tuner.best is not None
        found[count] = (measured.min() / tuner.best[1], error(seconds, measured[rest]), float(inside.mean()))
    return found


def tuned(programs: Programs, device: str, seeds: int, strategies: Sequence[str]) -> dict[str, Reached]:
    """Returns what Kernel Tuner's strategies reach after some measurements, the median over seeds."""
    there, measured = programs.on(device)
    found: dict[str, Reached] = {}
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.json"
        cache.write_text(json.dumps(cache_file([programs.configurations[p] for p in there], measured, device)))
        search = simulation(cache)
        for strategy in strategies:
            runs = [list(search(strategy, max(EVALUATIONS), seed).values()) for seed in range(seeds)]
            found[strategy] = {
                count: float(np.median([measured.min() / min(run[:count], default=math.inf) for run in runs]))
                for count in EVALUATIONS
                if count < len(there)
            }
    return found


def unlearned(
    programs: Programs,
    predictions: Predictions,
    published: Published,
    device: str,
    seeds: int,
    strategies: Sequence[str] = STRATEGIES,
) -> dict[str, Reached]:
    """Returns what part of the best speed every search but `perfmodel.tune` reaches, by its name and measurements."""
    there, measured = programs.on(device)
    counts = [count for count in EVALUATIONS if count < len(there)]
    orders = {"`PredictedFirst`": predictions.seconds[there]}
    if len({each["name"] for each in published.devices.values()}) > 1:
        orders["times of the other GPUs"] = transferred(programs, published, device, there)
    found = {name: {count: reached(order, measured, count) for count in counts} for name, order in orders.items()}
    found["by chance"] = {count: by_chance(measured, count) for count in counts}
    if seeds and importlib.util.find_spec("kernel_tuner"):
        found |= {
            f"Kernel Tuner, `{name}`": parts for name, parts in tuned(programs, device, seeds, strategies).items()
        }
    return found


def over_devices(found: Mapping[str, Mapping[str, Reached]]) -> list[list[str]]:
    """Returns a row a search: the median and the worst of all devices, by measurements."""
    rows = []
    for search in next(iter(found.values())):
        parts = [[each[search].get(count, math.nan) for each in found.values()] for count in EVALUATIONS]
        rows.append([search, *(f"{np.nanmedian(part):.3f} / {np.nanmin(part):.3f}" for part in parts)])
    return rows


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description="judges searches by published times of tuned spaces")
    parser.add_argument("folder")
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--calibration", default="@h200", help="a file, or one that comes along")
    parser.add_argument("--device", action="append", help="a column of the times; all if left out")
    parser.add_argument("--seeds", type=int, default=0, help="of Kernel Tuner's strategies; 0 for none")
    parser.add_argument("--strategies", default=",".join(STRATEGIES), help="of Kernel Tuner")
    parsed = parser.parse_args()
    warnings.simplefilter("ignore")
    published, features = load(parsed.folder, SPACES), pd.read_pickle(parsed.table)
    calibration = calibration_called(parsed.calibration)
    devices = parsed.device or [str(name) for name in published.seconds]
    facts = {device: facts_called(published.devices[device]["name"]) for device in devices}
    there = {device: calibration.on(known) if known else calibration for device, known in facts.items()}
    names = dict.fromkeys(name for each in there.values() for name in each.model.features)
    programs = Programs.of(published, features, names)
    predictions = {device: Predictions.of(each, programs.features) for device, each in there.items()}
    print(f"{published.space.name}: {len(programs.configurations):,} of {len(published.distinct):,} programs\n")
    learned = {device: searched(programs, predictions[device], device) for device in devices}
    found = {
        device: {
            "`perfmodel.tune`": {count: part for count, (part, *_) in learned[device].items()},
            **unlearned(programs, predictions[device], published, device, parsed.seeds, parsed.strategies.split(",")),
        }
        for device in devices
    }
    head = [f"median / worst of {len(devices)} devices after", *map(str, EVALUATIONS)]
    print(table(head, over_devices(found)), flush=True)
    rows = [
        [device, search, *(f"{part:.3f}" for part in parts.values())]
        for device, each in found.items()
        for search, parts in each.items()
    ]
    print(f"\n{table(['device', 'search', *map(str, EVALUATIONS)], rows)}", flush=True)
    rows = [
        [device, *(f"{off:.0%} / {inside:.0%}" for _, off, inside in learned[device].values())] for device in devices
    ]
    print("\nerror on all others, and those in the 90 % interval, after so many measurements:\n")
    print(table(["`perfmodel.tune`", *map(str, EVALUATIONS)], rows))


if __name__ == "__main__":
    main()
