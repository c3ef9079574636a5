"""Times predictions by shipped models: from source text, of kernels predicted before, and over arrays of sizes.

    PERFMODEL_NO_CACHE=1 python -m benchmarks.prediction source
    python -m benchmarks.prediction families [--former FOLDER]
    python -m benchmarks.prediction commands [--former FOLDER]

From source, each kernel is new to the process: reading, counting and evaluation are in its time. Of each family of the
collection, its first kernel is predicted again at the same size, at other sizes, and over an array of sizes; with
FOLDER, a checkout of a former version, by that too, with the ratio of the times. Commands run in processes of
their own, with counts on the disk. All are times of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import perfmodel as pm
from perfmodel.basics.errors import KernelError
from perfmodel.basics.statistics import geometric_mean
from perfmodel.basics.tables import grid

SIDE, KERNELS, SIZES = 4096, 200, 1_000_000
SUM = """__kernel void add(__global float *c, __global const float *a, __global const float *b, const int n)
{
    const int i = get_global_id(0);
    if (i < n) c[i] = a[i] + b[i];
}"""

MODELS = ("unified-plus", "gpu")
STEPS = (1, 16, 256, 512)
"""Sizes grow from the kernel's own by one of these, the first that it takes."""
AGAIN = 200
"""The number of predictions of single sizes, of which the median counts."""
LIMIT = 0.5
"""Arrays of sizes become longer until one takes so many seconds, or has all sizes."""

ROOT = Path(__file__).parent.parent
BLUR = (
    "predict --device h200 examples/blur.cl --global n,n --local 16,16 "
    "--arg image='(n+2)*(n+2)' --arg out='n*n' --arg n=1024"
)
COMMANDS = {
    "help": "--help",
    "predict, OpenCL C": BLUR,
    "the same, not counted before": f"PERFMODEL_NO_CACHE=1 {BLUR}",
    "predict, a collection's kernel": "predict unified-plus@h200 matmul_tiled tiled_prefetch:True tile_rows:4 "
    "tile_cols:4 lsizes:16x16 n:1024",
}

warnings.simplefilter("ignore")


def main() -> None:
    parser = argparse.ArgumentParser(description="times of predictions")
    parser.add_argument("what", choices=["source", "families", "commands"])
    parser.add_argument("families", nargs="*")
    parser.add_argument("--former", help="folder of a checkout of a former version")
    parser.add_argument("--json", action="store_true", help="print the times only")
    parsed = parser.parse_args()
    if parsed.what == "source":
        from_source()
    elif parsed.what == "commands":
        print(commands_table([str(ROOT), *([parsed.former] if parsed.former else [])]))
    elif parsed.json:
        print(json.dumps(of_families(parsed.families)))
    else:
        former = _in(parsed.former, parsed.families) if parsed.former else {}
        print(families_table(of_families(parsed.families), former))


def of_families(chosen: list[str]) -> dict[str, dict[str, float]]:
    """Returns, by family and model, milliseconds at the same size and at others, and sizes of an array a second."""
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    calibrations = {model: pm.Calibration.shipped(model, device="H200") for model in MODELS}
    found = {}
    for family in chosen or sorted(generator.name for generator in pm.ALL_GENERATORS):
        kernel = next(iter(collection.generate_kernels([family])))
        for model, calibration in calibrations.items():
            found[f"{family} {model}"] = _times(partial(calibration.predict, kernel), _growing(kernel))
    return found


def _times(predict: Callable[..., Any], growing: tuple[str, Any] | None) -> dict[str, float]:
    times = {"again": _milliseconds(predict, [{}])}
    if growing is not None:
        name, sizes = growing
        times["other"] = _milliseconds(predict, [{name: int(size)} for size in sizes[1 : 1 + AGAIN]])
        times["sizes"] = _rate(lambda array: predict(**{name: array}), sizes)
    return times


def families_table(times: Mapping[str, Mapping[str, float]], former: Mapping[str, Mapping[str, float]]) -> str:
    """Returns a table with a line for each family and model, and the worst and geometric mean of each column."""
    headers = ["family", "model", "same size (ms)", "other size (ms)", "sizes a second"]
    columns: dict[str, list[float]] = {"again": [], "other": [], "sizes": []}
    if former:
        headers += ["times as fast: same", "other", "array"]
        columns |= {f"{name} ratio": [] for name in ("again", "other", "sizes")}
    rows = []
    for key, own in times.items():
        values = {name: own[name] for name in ("again", "other", "sizes") if name in own}
        for name, before in former.get(key, {}).items():
            values[f"{name} ratio"] = own[name] / before if name == "sizes" else before / own[name]
        for name, value in values.items():
            columns[name].append(value)
        rows.append([*key.split(), *(f"{values[name]:.3g}" if name in values else "-" for name in columns)])
    worst = [max(v) if name in ("again", "other") else min(v) for name, v in columns.items()]
    rows.append(["worst", "", *(f"{value:.3g}" for value in worst)])
    rows.append(["geometric mean", "", *(f"{geometric_mean(v):.3g}" for v in columns.values())])
    return grid(headers, rows)


def commands_table(folders: list[str]) -> str:
    """Returns a table of commands with the milliseconds that they take by the versions in some folders."""
    rows = []
    for name, arguments in COMMANDS.items():
        of_folders = [_of_command(arguments, folder) for folder in folders]
        ratio = [f"{of_folders[-1] / of_folders[0]:.2f}"] if len(folders) > 1 else []
        rows.append([name, *(f"{taken * 1e3:.0f}" for taken in of_folders), *ratio])
    return grid(["command", "ms", *(["former, ms", "times as fast"] if len(folders) > 1 else [])], rows)


def _of_command(arguments: str, folder: str) -> float:
    """Returns the least time of several runs, after one that leaves counts on the disk."""
    words = shlex.split(arguments)
    settings = dict(word.split("=") for word in words if word.startswith("PERFMODEL_"))
    environment = {**os.environ, "PYTHONPATH": folder, **settings}
    taken = []
    for _ in range(8):
        before = os.times()
        command = [sys.executable, "-m", "perfmodel", *words[len(settings) :]]
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        of_child = after.children_user - before.children_user + after.children_system - before.children_system
        taken.append(of_child)
    return min(taken[1:])


def _in(folder: str, families: list[str]) -> dict[str, dict[str, float]]:
    """Returns the times by the version in another folder, which this file measures."""
    code = f"""if True:
        import runpy, sys
        sys.path.insert(0, {folder!r})
        sys.argv = [{__file__!r}, "families", *{families!r}, "--json"]
        runpy.run_path({__file__!r}, run_name="__main__")"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": folder}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


def _growing(kernel: pm.Kernel) -> tuple[str, Any] | None:
    """Returns the largest size of a kernel that can grow, with many values of it; None for a kernel without one."""
    for name in sorted(kernel.sizes, key=lambda each: -kernel.sizes[each]):
        for step in STEPS:
            sizes = kernel.sizes[name] + step * np.arange(2**20 // step * 8)
            try:
                kernel.bind({name: sizes})
            except KernelError:
                continue
            return name, sizes
    return None


def _milliseconds(predict: Callable[..., Any], sizes: list[dict[str, int]]) -> float:
    """Returns the median; a kernel that takes long is asked a few times only."""
    predict(**sizes[0])
    taken: list[float] = []
    for place in range(AGAIN):
        started = time.process_time()
        predict(**sizes[place % len(sizes)])
        taken.append(time.process_time() - started)
        if sum(taken) > LIMIT and place >= 4:
            break
    return float(np.median(taken)) * 1e3


def _rate(predict: Callable[[Any], object], sizes: Any) -> float:
    count = 8
    while True:
        chosen = np.resize(sizes, count)
        started = time.process_time()
        predict(chosen)
        taken = time.process_time() - started
        if taken > LIMIT or count >= SIZES:
            return count / taken
        count = min(SIZES, count * 8)


def from_source() -> None:
    calibration = pm.Calibration.shipped(device="H200")
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    for name in ("realistic", "unrestricted"):
        # Other seeds than those that the recipe predicts.
        tags = ["random_expression", f"set:{name}", f"seed:20001..{20000 + KERNELS}", f"n:{SIDE}"]
        sources = [kernel.launch().source for kernel in collection.generate_kernels(tags)]
        taken = [_seconds(calibration, source) for source in sources][2:]  # the first ones import modules
        shown = ", ".join(f"{q} %: {np.percentile(taken, q) * 1e3:.1f} ms" for q in (25, 50, 75, 95))
        print(f"{name}, {len(taken)} kernels from source: mean {np.mean(taken) * 1e3:.1f} ms; {shown}")
    kernel = pm.Kernel.from_opencl(SUM, "add", "(n + 255) // 256 * 256", 256, {"c": "n", "a": "n", "b": "n"})
    sizes = np.random.default_rng(1).integers(1, 2**28, SIZES)
    calibration.predict(kernel, n=sizes[:10])
    started = time.process_time()
    calibration.predict(kernel, n=sizes)
    print(f"{SIZES} sizes of one kernel: {SIZES / (time.process_time() - started):.3g} a second")


def _seconds(calibration: pm.Calibration, source: str) -> float:
    extents = {"elements": SIDE * SIDE, "xxx": 128, "result": SIDE * SIDE}
    started = time.process_time()
    calibration.predict(pm.Kernel.from_opencl(source, "random_expression", (SIDE, SIDE), (256, 1), extents))
    return time.process_time() - started


if __name__ == "__main__":
    main()
