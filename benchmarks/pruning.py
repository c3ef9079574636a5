"""Judges the configurations found, and the measurements saved, where a model prunes a tuner's search space.

    python -m benchmarks.pruning --device gpu --store pruning.sqlite --out pruning

measures every configuration of `examples/convolution.cl` once (what the store holds is not measured again), predicts
all of them by the calibrations that come along for the device, or for one of its kind, and compares what pruning
chooses with the best of all. Where Kernel Tuner is installed, its own strategies search the same times, in its
simulation mode. With the store, everything is computed anew on any machine: ``--measure-only`` there, the rest here.

No calibration has seen this kernel, its family (`convolution`) or any of its times.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import itertools
import json
import math
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import perfmodel as pm
from perfmodel.basics.errors import CalibrationError
from perfmodel.basics.tables import grid
from perfmodel.device import Device, find_device
from perfmodel.measuring.campaign import Campaign, CampaignResult
from perfmodel.tuning.pruning import Pruned

SOURCE = Path(__file__).parents[1] / "examples" / "convolution.cl"
REACH = 3
"""The filter reaches so many elements to each side, as in the source."""
SIDES = {"cpu": 1024, "gpu": 4096}
"""Pixels of a side of the result, by kind of device."""
PARAMETERS: dict[str, list[int]] = {
    "block_size_x": [8, 16, 32, 64, 128, 256],
    "block_size_y": [1, 2, 4, 8, 16],
    "work_x": [1, 2, 4],
    "work_y": [1, 2, 4],
    "interleaved": [0, 1],
    "use_local": [0, 1],
}
LEAST_ITEMS, MOST_ITEMS = 32, 1024
"""The fewest and the most work-items of a work-group."""
MOST_LOCAL_MEMORY = 48 * 1024
"""The most bytes of local memory of a work-group."""
MODELS = ("unified-plus", "gpu")
COUNTS = (1, 5, 10)
SHARES = (0.05, 0.1)
FACTORS = (1.05, 1.1, 1.25, 1.5, 2.0)
STRATEGIES = (
    *("random_sample", "genetic_algorithm", "simulated_annealing", "greedy_ils", "mls", "diff_evo", "pso"),
    *("firefly_algorithm", "dual_annealing", "bayes_opt"),
)
LEAST_EVALUATIONS = 5
"""A strategy has nothing to learn from fewer measurements."""
MS = 1e3
KERNEL = "convolve"

Configuration = dict[str, int]


def allowed(c: Configuration) -> bool:
    items = c["block_size_x"] * c["block_size_y"]
    width, height = c["block_size_x"] * c["work_x"] + 2 * REACH, c["block_size_y"] * c["work_y"] + 2 * REACH
    fits = not c["use_local"] or 4 * width * height <= MOST_LOCAL_MEMORY
    differs = not c["interleaved"] or c["work_x"] > 1  # from the same without
    return LEAST_ITEMS <= items <= MOST_ITEMS and fits and differs


def space() -> list[Configuration]:
    every = itertools.product(*PARAMETERS.values())
    return [c for values in every if allowed(c := dict(zip(PARAMETERS, values, strict=True)))]


def kernel(configuration: Configuration, side: int) -> pm.Kernel:
    defined = {"image_width": side, "image_height": side, **configuration}
    return pm.Kernel.from_opencl(
        SOURCE,
        "convolve",
        (side // configuration["work_x"], side // configuration["work_y"]),
        (configuration["block_size_x"], configuration["block_size_y"]),
        {"out": side**2, "image": (side + 2 * REACH) ** 2, "weights": (2 * REACH + 1) ** 2},
        [f"-D{name}={value}" for name, value in defined.items()],
        tags={name: str(value) for name, value in configuration.items()},
    )


@dataclass(frozen=True)
class Found:
    """Holds what one search found.

    Attributes:
        measurements: that it took; of a strategy, the median over its seeds.
        saved: the share of all configurations that it did not measure.
        times_best: time of the configuration that it chose over that of the best of all; of a strategy, the median.
        low, high: 10 and 90 % of its seeds found that or better.
    """

    search: str
    limit: str
    measurements: float
    saved: float
    times_best: float
    low: float | None = None
    high: float | None = None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device")
    parser.add_argument("--store", help="file of measurements (default: none is kept)")
    parser.add_argument("--budget", type=float, help="seconds of measuring; called again, it goes on")
    parser.add_argument("--measure-only", action="store_true", help="only put times into the store")
    parser.add_argument("--side", type=int, help="pixels (default: by kind of device)")
    parser.add_argument("--calibration", action="append", help="a calibration's file, besides those that come along")
    parser.add_argument("--seeds", type=int, default=50, help="of each of Kernel Tuner's strategies; 0 for none")
    parser.add_argument("--strategies", default=",".join(STRATEGIES), help="of Kernel Tuner")
    parser.add_argument("--out", help="folder for results.json and table.txt")
    parsed = parser.parse_args()
    configurations = space()
    with pm.Store(parsed.store) as store:
        device, side, result = measured(configurations, parsed, store)
    of_device = result.devices[0]
    print(f"{result}\n(measuring took {result.seconds:.0f} s)\n", flush=True)
    if not result.is_complete:
        print("not every configuration was reached; call this again to go on")
        return 1
    if parsed.measure_only:
        return 0
    times = np.array([each.seconds for each in of_device.results])
    searches, about = [], []
    for model, calibration in calibrations(parsed.calibration, device):
        name = f"{model} of {calibration.device['name']}"
        found, facts = judged(name, calibration, configurations, times, side)
        searches += found
        about.append(facts)
    note = ""
    if not parsed.seeds or importlib.util.find_spec("kernel_tuner") is None:
        note = "Kernel Tuner's strategies are left out: pip install 'perfmodel[tuner]' for them"
    else:
        searches += of_kernel_tuner(configurations, times, side, device, parsed.strategies.split(","), parsed.seeds)
    shown = [described(device, side, times, about), table(searches), *([note] if note else [])]
    print("\n\n".join(shown))
    if parsed.out:
        folder = Path(parsed.out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "table.txt").write_text("\n\n".join(shown) + "\n")
        (folder / "results.json").write_text(
            json.dumps(document(device, side, times, about, searches), indent=1) + "\n"
        )
    return 0


def measured(
    configurations: Sequence[Configuration], parsed: argparse.Namespace, store: pm.Store
) -> tuple[Device, int, CampaignResult]:
    """Returns the device, its side of an image, and times of all configurations; NaN for those that it can't run."""
    device = find_device(parsed.device, store.devices())
    side = parsed.side or SIDES.get(device.kind, SIDES["gpu"])
    kernels = [kernel(configuration, side) for configuration in configurations]
    return device, side, Campaign(kernels, [device], protocol="quick", store=store).run(budget_s=parsed.budget)


def calibrations(files: Sequence[str] | None, device: Device) -> list[tuple[str, pm.Calibration]]:
    """Returns the calibrations of the files, and of each model the one that comes along for this device, or else its
    kind."""
    found = [(Path(file).stem, pm.Calibration.load(file)) for file in files or ()]
    for model in MODELS:
        for wanted in (device.key, device.name, device.kind):
            with contextlib.suppress(CalibrationError):
                found.append((model, pm.Calibration.shipped(model, wanted)))
                break
        else:
            print(f"no calibration of {model} comes along for {device.key}, nor one for its kind")
    return found


def judged(
    name: str, calibration: pm.Calibration, configurations: Sequence[Configuration], times: np.ndarray, side: int
) -> tuple[list[Found], dict[str, Any]]:
    """Returns what pruning by this calibration finds, and what is to be said of its predictions."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = pm.prune(
            range(len(configurations)), lambda i: calibration.predict(kernel(configurations[i], side).as_compiled())
        )
    took = time.perf_counter() - started
    predicted = np.full(len(configurations), math.nan)
    for candidate in whole.kept:
        predicted[candidate.config] = candidate.seconds
    both = np.isfinite(times) & np.isfinite(predicted)
    errors = np.abs(predicted[both] / times[both] - 1)
    facts = {
        "model": name,
        "predicted": int(np.isfinite(predicted).sum()),
        "predict_s": took,
        "rank_correlation": float(spearmanr(predicted[both], times[both]).statistic),
        "median_error": float(np.median(errors)),
    }

    def pruned(**limits: Any) -> Pruned[int]:
        return pm.prune(range(len(configurations)), lambda i: predicted[i], **limits)

    found = [_found(name, limit, pruned(top_k=count), times) for limit, count in limits_of(len(configurations)).items()]
    found += [_found(name, f"within {factor:g}", pruned(within=factor), times) for factor in FACTORS]
    return found, facts


def limits_of(total: int) -> dict[str, int]:
    """Returns the numbers of measurements that are compared, by their names."""
    shares = {f"{share:.0%}": math.ceil(share * total) for share in SHARES}
    return {**{str(count): count for count in COUNTS}, **shares}


def _found(name: str, limit: str, pruned: Pruned[int], times: np.ndarray) -> Found:
    """Returns what pruning finds, going on as `PredictedFirst` does where all that is kept fails."""
    order = [candidate.config for candidate in (*pruned.kept, *pruned.left_out)]
    count = len(pruned)
    while not np.isfinite(times[order[:count]]).any():
        count += 1
    times_best = float(np.nanmin(times[order[:count]]) / np.nanmin(times))
    return Found(search=name, limit=limit, measurements=count, saved=1 - count / len(times), times_best=times_best)


def of_kernel_tuner(
    configurations: Sequence[Configuration],
    times: np.ndarray,
    side: int,
    device: Device,
    strategies: Sequence[str],
    seeds: int,
) -> list[Found]:
    """Returns what Kernel Tuner's strategies find with as many measurements, in its simulation mode."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.json"
        cache.write_text(json.dumps(cache_file(configurations, times, device.name)))
        search = simulation(cache)
        for strategy in strategies:
            for limit, count in limits_of(len(configurations)).items():
                if count < LEAST_EVALUATIONS:
                    continue
                runs = [search(strategy, count, seed) for seed in range(seeds)]
                ratios = [min(run.values(), default=math.inf) / np.nanmin(times) for run in runs]
                measurements = statistics.median(map(len, runs))
                low, middle, high = (float(q) for q in np.quantile(ratios, [0.1, 0.5, 0.9], method="nearest"))
                saved = 1 - measurements / len(times)
                found.append(
                    Found(
                        search=f"Kernel Tuner: {strategy}",
                        limit=limit,
                        measurements=measurements,
                        saved=saved,
                        times_best=middle,
                        low=low,
                        high=high,
                    )
                )
            print(f"Kernel Tuner's {strategy}: {seeds} seeds each", file=sys.stderr, flush=True)
    return found


def cache_file(configurations: Sequence[Mapping[str, int]], times: np.ndarray, device: str) -> dict[str, Any]:
    """Returns the times as a cache file of Kernel Tuner, which simulates searches by it."""
    nothing = {"compile_time": 0, "verification_time": 0, "benchmark_time": 0}
    entries = {}
    for configuration, seconds in zip(configurations, times.tolist(), strict=True):
        if math.isfinite(seconds):
            entry = {**configuration, "time": seconds * MS, "times": [seconds * MS], **nothing}
        else:
            entry = {**configuration, "time": "RuntimeFailedConfig", **nothing}
        entries[",".join(map(str, configuration.values()))] = entry
    return {
        "device_name": device,
        "kernel_name": KERNEL,
        "problem_size": [1, 1],
        "tune_params_keys": list(configurations[0]),
        "tune_params": {name: sorted({each[name] for each in configurations}) for name in configurations[0]},
        "objective": ["time"],
        "cache": entries,
    }


def simulation(cache: Path) -> Callable[[Any, int, int], dict[tuple[int, ...], float]]:
    """Returns a search by a strategy with so many measurements, from a seed: the seconds that it found, by the values
    of each configuration that it measured, in that order; infinite for those that failed."""
    import kernel_tuner
    from constraint import FunctionConstraint

    document = json.loads(cache.read_text())
    parameters = document["tune_params"]
    known = {tuple(each[name] for name in parameters) for each in document["cache"].values()}

    def search(strategy: Any, count: int, seed: int) -> dict[tuple[int, ...], float]:
        random.seed(seed)  # tune_kernel has a seed, but most strategies draw from these
        np.random.seed(seed)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            results, _ = kernel_tuner.tune_kernel(
                KERNEL,
                f"__kernel void {KERNEL}(void) {{}}",
                tuple(document["problem_size"]),
                [],
                dict(parameters),
                restrictions=[FunctionConstraint(lambda *values: values in known)],
                strategy=strategy,
                strategy_options={"max_fevals": count},
                cache=str(cache),
                simulation_mode=True,
                quiet=True,
            )
        found: dict[tuple[int, ...], float] = {}
        for result in results:
            taken = math.inf if "__error__" in result else result["time"] / MS
            found.setdefault(tuple(result[name] for name in parameters), taken)
        return found

    return search


def document(
    device: Device, side: int, times: np.ndarray, about: Sequence[dict[str, Any]], searches: Sequence[Found]
) -> dict[str, Any]:
    """Returns the content of results.json."""
    return {
        "command": f"python -m benchmarks.pruning --device {device.kind} --store …",
        "perfmodel": pm.__version__,
        "device": {"name": device.name, "driver": device.driver, "key": device.key},
        "side": side,
        "configurations": len(times),
        "failed": int(np.isnan(times).sum()),
        "best": space()[int(np.nanargmin(times))],
        "best_s": float(np.nanmin(times)),
        "models": list(about),
        "searches": [asdict(each) for each in searches],
    }


def described(device: Device, side: int, times: np.ndarray, about: Sequence[dict[str, Any]]) -> str:
    best, worst = np.nanmin(times) * MS, np.nanmax(times) * MS
    lines = [
        f"{len(times)} configurations of {SOURCE.name} at {side} x {side} on {device.name}, driver {device.driver}:",
        f"the best takes {best:.4g} ms, the median {np.nanmedian(times) * MS:.4g} ms, the worst {worst:.4g} ms, "
        f"{int(np.isnan(times).sum())} fail",
    ]
    lines += [
        f"{each['model']}: rank correlation {each['rank_correlation']:.3f}, "
        f"median error {each['median_error']:.1%}, {each['predicted']} predicted in {each['predict_s']:.0f} s"
        for each in about
    ]
    return "\n".join(lines)


def table(searches: Sequence[Found]) -> str:
    rows = [
        [
            *(each.search, each.limit, f"{each.measurements:g}", f"{each.saved:.1%}", f"{each.times_best:.3f}"),
            "" if each.low is None else f"{each.low:.3f} to {each.high:.3f}",
        ]
        for each in searches
    ]
    return grid(["search", "limit", "measurements", "saved", "chosen / best", "10 to 90 % of seeds"], rows)


if __name__ == "__main__":
    sys.exit(main())
