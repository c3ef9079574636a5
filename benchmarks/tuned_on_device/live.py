"""Searches for a fast program on the device, and lets Kernel Tuner's strategies search the times of a store.

A search ends when a program is within 3 % of the best of all that it may choose from. It costs what its programs took
to build and to run, all trials, and what was predicted and chosen before and meanwhile.
"""

from __future__ import annotations

import importlib.util
import json
import math
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import perfmodel as pm
from benchmarks.pruning import cache_file, simulation
from benchmarks.published_searches import STRATEGIES
from benchmarks.tuned_on_device.building import nothing_built
from benchmarks.tuned_on_device.measuring import kernel
from benchmarks.tuned_on_device.programs import PROTOCOL, Values, configuration
from perfmodel.basics.tables import grid, seconds
from perfmodel.device import find_device
from perfmodel.measuring.store import Measurement, Store
from perfmodel.tuning.searching import search

NEAR = 1.03
SEARCHES = (*STRATEGIES, "firefly_algorithm", "bayes_opt")
MOST = 200
"""Simulated searches end after so many programs, or half of all: some never do where all were tried."""
BY_CHANCE = "by chance"


@dataclass(frozen=True)
class Found:
    """Holds what one search cost until it was near the best.

    Attributes:
        runs: programs measured; infinite where it never came near.
        building_s, running_s: seconds of these.
        further_s: all others: predicting, choosing, allocating.
        times_best: time of the program found over that of the best.
    """

    runs: float
    building_s: float
    running_s: float
    further_s: float
    times_best: float

    @property
    def seconds(self) -> float:
        return self.building_s + self.running_s + self.further_s


def live(
    rows: Mapping[Values, Measurement], side: int, device: str, calibration: pm.Calibration, jobs: int, batch: int
) -> Found:
    """Runs `perfmodel.tune` from an empty store until it is near the best of the measured times, or at its end."""
    best = min(row.seconds for row in rows.values())
    started = time.perf_counter()
    tuner = pm.tune(list(rows), lambda each: kernel(each, side), calibration, workers=jobs)
    print(f"{len(rows)} programs predicted ({time.perf_counter() - started:.0f} s)", flush=True)
    running = cost = 0.0
    runs = 0
    with nothing_built(), tempfile.TemporaryDirectory() as folder, Store(Path(folder, "live.sqlite")) as store:
        steps = search(
            tuner, lambda each: kernel(each, side), find_device(device), store, protocol=PROTOCOL, batch=batch
        )
        for step in steps:
            runs += 1
            row = store.get(step.key)
            if row is not None:
                running += sum(row.trials)
                cost += row.conditions["cost_s"]
            print(
                f"{runs:4} {step.after_s:6.1f} s  {seconds(step.seconds):>10}  {configuration(step.config)}", flush=True
            )
            if step.seconds <= NEAR * best:
                break
    whole = time.perf_counter() - started
    found = min(each for _, each in tuner.measured)
    return Found(
        runs=runs, building_s=cost - running, running_s=running, further_s=whole - cost, times_best=found / best
    )


def simulated(rows: Mapping[Values, Measurement], built: Mapping[Values, float], seeds: int) -> dict[str, list[Found]]:
    """Returns what searches by measured times would have cost, of each strategy that is there a search a seed."""
    times = {each: row.seconds for each, row in rows.items()}

    def found(order: Sequence[Values]) -> Found:
        best = min(times.values())
        near = next((place + 1 for place, each in enumerate(order) if times[each] <= NEAR * best), None)
        measured = order[:near]
        building = sum(built.get(each, math.nan) for each in measured)
        running = sum(sum(rows[each].trials) for each in measured)
        reached = min((times[each] for each in measured), default=math.inf)
        return Found(
            runs=math.inf if near is None else near,
            building_s=building,
            running_s=running,
            further_s=0.0,
            times_best=reached / best,
        )

    def chance(_: Any, count: int, seed: int) -> dict[Values, float]:
        return {each: times[each] for each in random.Random(seed).sample(list(times), count)}

    def every(name: str, one: Callable[[Any, int, int], Mapping[Values, float]]) -> list[Found]:
        return [found(list(one(name, min(MOST, len(times) // 2), seed))) for seed in range(seeds)]

    searches = {BY_CHANCE: every(BY_CHANCE, chance)}
    if importlib.util.find_spec("kernel_tuner") is None:
        return searches
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.json"
        cache.write_text(json.dumps(cache_file(list(map(configuration, times)), np.array(list(times.values())), "")))
        one = simulation(cache)
        return searches | {f"Kernel Tuner: {name}": every(name, one) for name in SEARCHES}


def table(own: Found | None, others: Mapping[str, Sequence[Found]]) -> str:
    """Returns a row a search, medians of its seeds, the cheapest first; no costs where half of the seeds never came
    near the best."""
    head = ["search", "near the best", "runs", "building", "running", "further", "seconds"]
    rows = [] if own is None else [_row("perfmodel.tune", [own])]
    rows += [_row(name, found) for name, found in sorted(others.items(), key=lambda each: _seconds(each[1]))]
    return grid(head, rows)


def _row(name: str, every: Sequence[Found]) -> list[str]:
    near = sum(math.isfinite(each.runs) for each in every)
    runs, *parts = (
        float(np.median([getattr(each, part) for each in every]))
        for part in ("runs", "building_s", "running_s", "further_s", "seconds")
    )
    shown = [f"{runs:.0f}", *(f"{part:.1f} s" for part in parts)] if math.isfinite(runs) else ["-"] * 5
    return [name, f"{near} of {len(every)}", *shown]


def _seconds(every: Sequence[Found]) -> float:
    return float(np.median([each.seconds if math.isfinite(each.runs) else math.inf for each in every]))


def saved(own: Found, file: Path) -> None:
    file.write_text(json.dumps(asdict(own)) + "\n")


def kept(file: Path) -> Found | None:
    return Found(**json.loads(file.read_text())) if file.exists() else None
