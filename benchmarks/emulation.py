"""Measures what emulating one work-group costs: at growing sizes, beside the whole grid, and beside oclgrind.

    python -m benchmarks.emulation --out docs/results/emulation.txt
    python -m benchmarks.emulation --beside-oclgrind transpose reduction

The applications are those of Panwar et al., Table II (AES as `table_cipher`), and the whole grid by one group is their
Table III. A whole grid that would take longer than `--most` seconds is estimated from a sample of its groups, and
marked by ≈. oclgrind runs the same group of the same launch ten times, plainly and counting instructions, in turns with
ours; the smallest times of all turns are shown, oclgrind's of its processor, as its threads wait where others run.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

import perfmodel as pm
from perfmodel.basics.tables import grid
from perfmodel.kernels.launch import Launch

APPLICATIONS: dict[str, tuple[str, tuple[dict[str, int], ...]]] = {
    # Tags, and growing sizes of which the first is the source's.
    "matmul (lmem)": (
        "matmul_sq tiled_prefetch:True dtype:float32 lsize_0:16 lsize_1:16",
        ({"n": 1024}, {"n": 2048}, {"n": 4096}),
    ),
    "matmul (gmem)": (
        "matmul_sq tiled_prefetch:False dtype:float32 lsize_0:16 lsize_1:16",
        ({"n": 1024}, {"n": 2048}, {"n": 4096}),
    ),
    "reduction": (
        "reduction dtype:float32 lsize_0:256",
        ({"n": 2**20}, {"n": 2**22}, {"n": 2**24}),
    ),
    "n-body": ("nbody dtype:float32 lsize_0:256", ({"n": 32768}, {"n": 65536}, {"n": 131072})),
    "transpose": (
        "transpose dtype:float32 lsize_0:16 lsize_1:16",
        ({"n": 1024}, {"n": 4096}, {"n": 16384}),
    ),
    "floyd-warshall": (
        "floyd_warshall dtype:int32 lsize_0:16 lsize_1:16",
        ({"n": 192, "k": 96}, {"n": 1920, "k": 96}, {"n": 19200, "k": 96}),
    ),
    "fast walsh": (
        "fast_walsh dtype:float32 lsize_0:256",
        ({"n": 2**20, "step": 512}, {"n": 2**22, "step": 512}, {"n": 2**24, "step": 512}),
    ),
    "table look-ups": (
        "table_cipher table:constant rounds:10 lsize_0:256",
        ({"n": 196608}, {"n": 2**20}, {"n": 2**24}),
    ),
}
REPEATS = 10
BATCH = 64
TURNS = 6
TURNING = 30.0
"""Turns beside oclgrind end after so many seconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description="what emulation costs")
    parser.add_argument("--most", type=float, default=60.0, metavar="S", help="of a whole grid (default: 60)")
    parser.add_argument("--out", type=Path, help="file for the tables")
    parser.add_argument(
        "--beside-oclgrind", nargs="+", choices=APPLICATIONS, metavar="NAME", help="only these, beside oclgrind alone"
    )
    parsed = parser.parse_args()
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    chosen = parsed.beside_oclgrind or APPLICATIONS
    kernels = {name: _kernel(collection, APPLICATIONS[name][0], APPLICATIONS[name][1][0]) for name in chosen}
    tables = [] if parsed.beside_oclgrind else [_growing(kernels, parsed.most)]
    if shutil.which("oclgrind"):
        tables.append(_beside_oclgrind(kernels))
    text = "\n\n".join(tables)
    print(text)
    if parsed.out:
        parsed.out.write_text(text + "\n")


def _kernel(collection: pm.KernelCollection, tags: str, sizes: dict[str, int]) -> pm.Kernel:
    return collection.generate_kernels([*tags.split(), f"n:{sizes['n']}"])[0].at(**sizes)


def _one_group(kernel: pm.Kernel, extrapolate: bool, checks: bool = False) -> float:
    times = [pm.emulate(kernel, checks=checks, extrapolate=extrapolate).emulation.seconds for _ in range(REPEATS)]
    return min(times)


def _growing(kernels: dict[str, pm.Kernel], most: float) -> str:
    rows = []
    for name, kernel in kernels.items():
        for number, sizes in enumerate(APPLICATIONS[name][1]):
            sized = kernel.at(**sizes)
            groups = prod(sized.launch().global_size) // prod(sized.launch().local_size)
            one, full = _one_group(sized, True), _one_group(sized, False)
            row = [name, " ".join(f"{key}={value}" for key, value in sizes.items()), str(groups)]
            row += [f"{1e3 * one:.1f}", f"{1e3 * full:.1f}"]
            if number == 0:
                whole, mark = _whole(sized, groups, most)
                row += [f"{mark}{whole:.2f}", f"{mark}{whole / full:.0f}"]
            rows.append(row)
    width = max(map(len, rows))
    rows = [[*row, *[""] * (width - len(row))] for row in rows]
    header = ["application", "sizes", "groups", "one group, ms", "all turns, ms", "whole grid, s", "ratio"]
    return "Emulation without checks; loops are extrapolated, or all turns are run\n\n" + grid(header, rows)


def _whole(kernel: pm.Kernel, groups: int, most: float) -> tuple[float, str]:
    """Returns the seconds of the whole grid, and a mark if they are an estimate."""
    sample = pm.emulate(kernel, groups="sample", checks=False).emulation
    estimate = sample.seconds / len(sample.groups) * groups
    if estimate > most:
        return estimate, "≈"
    return pm.emulate(kernel, groups="all", checks=False).emulation.seconds, ""


def _beside_oclgrind(kernels: dict[str, pm.Kernel]) -> str:
    """Compares one group each with oclgrind, of launches as large as the source's; and ours where many groups share a
    run."""
    rows = []
    for name, kernel in kernels.items():
        launch = kernel.launch()
        counts = [total // items for total, items in zip(launch.global_size, launch.local_size, strict=True)]
        many = list(np.ndindex(*counts[::-1]))[:BATCH]
        one_group = replace(launch, global_size=launch.local_size)
        turns: list[tuple[float, ...]] = []
        began = time.perf_counter()
        while len(turns) < TURNS and time.perf_counter() - began < TURNING:
            batch = pm.emulate(kernel, groups=[place[::-1] for place in many], checks=False).emulation
            turns.append(
                (
                    _oclgrind(one_group, ()),
                    _oclgrind(one_group, ("--inst-counts",)),
                    _one_group(kernel, True),
                    _one_group(kernel, False),
                    batch.seconds / len(batch.groups),
                )
            )
        plain, counting, one, full, shared = map(min, zip(*turns, strict=True))
        sizes = " ".join(f"{key}={value}" for key, value in kernel.sizes.items())
        row = [name, sizes, *(f"{1e3 * seconds:.2f}" for seconds in (plain, counting, one, full, shared))]
        rows.append([*row, *(f"{counting / seconds:.1f}" for seconds in (one, full, shared))])
    header = ["application", "sizes", "oclgrind", "counting", "one", "all turns", f"of {BATCH}"]
    header += ["counting / one", "/ all turns", f"/ of {BATCH}"]
    return "Milliseconds a work-group, beside oclgrind on the same group\n\n" + grid(header, rows)


def _oclgrind(launch: Launch, options: tuple[str, ...]) -> float:
    environment = {k: v for k, v in os.environ.items() if k != "OCL_ICD_VENDORS"} | {"PYOPENCL_NO_CACHE": "1"}
    done = subprocess.run(
        ["oclgrind", *options, sys.executable, "-m", "benchmarks.oclgrind_timer"],
        input=pickle.dumps([launch] * REPEATS),
        capture_output=True,
        check=True,
        env=environment,
    )
    (line,) = [line for line in done.stdout.decode().splitlines() if line.startswith("seconds ")]
    return float(min(json.loads(line.removeprefix("seconds "))))


if __name__ == "__main__":
    main()
