"""Measures how near each family of kernels comes to the device's own peaks, which microbenchmarks measure.

    python -m benchmarks.family_fractions --device gpu --store families.sqlite --out families.md

A peak is the best rate that one family reaches: bytes of distinct memory by `global_copy`, operations of a kind by
`throughput`, accesses to local memory by `local_access`, barriers by `barrier`, work-groups by `launch`. A kernel's
fraction is the time that its busiest resource would need at its peak, divided by the kernel's time.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

import perfmodel as pm
from perfmodel.collection.collection import ALL_GENERATORS, KernelCollection
from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.tags import GROUPS_FIT
from perfmodel.device import find_device
from perfmodel.modelling.baselines import DEMANDS, Work

MEMORY, LOCAL, GROUPS = DEMANDS
BARRIER = "barriers"
PEAKS = {MEMORY: "global_copy", LOCAL: "local_access", BARRIER: "barrier", GROUPS: "launch"}
MOST_VARIANTS = 24


class One:
    """A feature that is one for any kernel, also for one that can't be counted."""

    def eval(self, knl: pm.Kernel) -> float:
        return 1.0


TIME_ONLY = pm.Model("f_cl_wall_time", "p_one * f_one", features={"f_one": One()})


@dataclass(frozen=True)
class Run:
    kernel: pm.Kernel
    seconds: float
    demands: Mapping[str, float]


def kernels_of(generator: KernelGenerator) -> list[pm.Kernel]:
    """Returns every choice in single precision, with groups that fit, at the listed sizes; too many choices have
    defaults."""
    choices = [tag for tag in generator.tags if not tag.is_open and tag.name not in ("dtype", GROUPS_FIT.name)]
    every = [f"{tag.name}:*" for tag in choices]
    if np.prod([len(tag.values) for tag in choices]) > MOST_VARIANTS:
        every = []
    if generator.name == PEAKS[MEMORY]:
        every.append("n:2^26")
    if generator.name == "throughput":
        every = ["op:*"]
    return KernelCollection([generator]).generate_kernels([generator.name, *every])


def demands(kernel: pm.Kernel) -> dict[str, float]:
    """Returns a kernel's demands by resource; of source that can't be counted, memory alone, each array once."""
    work = Work.of(kernel)
    if work is None:
        return {MEMORY: float(sum(a.size * np.dtype(a.dtype).itemsize for a in kernel.launch().arrays()))}
    barriers = pm.feature("f_sync_barrier_local").eval(kernel)
    return {**work.demands, **work.operations, BARRIER: barriers}


def peaks(runs: Mapping[str, list[Run]]) -> dict[str, float]:
    """Returns the highest rate of each resource, in its units per second."""
    found = {
        resource: max(run.demands[resource] / run.seconds for run in runs[family]) for resource, family in PEAKS.items()
    }
    for run in runs["throughput"]:
        for kind in (name for name in run.demands if name not in PEAKS):
            found[kind] = max(found.get(kind, 0.0), run.demands[kind] / run.seconds)
    return found


def fraction(run: Run, peak: Mapping[str, float]) -> tuple[float, str]:
    """Returns the fraction of the busiest resource's peak, and its name; operations of all kinds share one."""
    parts: dict[str, float] = defaultdict(float)
    for resource, demand in run.demands.items():
        name = resource if resource in PEAKS else "operations"
        parts[name] += demand / peak[resource] / run.seconds if resource in peak else 0.0
    name = max(parts, key=parts.__getitem__)
    return parts[name], name


def table(runs: Mapping[str, list[Run]], peak: Mapping[str, float]) -> Iterable[str]:
    yield "| family | kernels | fraction of peak | of | best kernel | time |"
    yield "|---|---|---|---|---|---|"
    for family, family_runs in runs.items():
        (best, of), run = max(((fraction(r, peak), r) for r in family_runs), key=lambda pair: pair[0])
        label = " ".join([run.kernel.variant, *(f"{name}={value}" for name, value in run.kernel.sizes.items())])
        yield f"| `{family}` | {len(family_runs)} | {best:.0%} | {of} | {label} | {run.seconds * 1e3:.3g} ms |"


def main() -> None:
    parser = argparse.ArgumentParser(description="each family's best fraction of the device's measured peaks")
    for name in ("--device", "--store", "--out"):
        parser.add_argument(name)
    parsed = parser.parse_args()
    device = find_device(parsed.device)
    by_family = {g.name: kernels_of(g) for g in ALL_GENERATORS}
    everything = list(itertools.chain.from_iterable(by_family.values()))
    measured = pm.measure(everything, TIME_ONLY, device=device, store=parsed.store, protocol="unified")
    seconds = iter(measured["f_cl_wall_time"])
    runs = {
        family: [Run(k, t, demands(k)) for k, t in zip(kernels, seconds, strict=False) if not np.isnan(t)]
        for family, kernels in by_family.items()
    }
    peak = peaks(runs)
    command = " ".join(["python -m benchmarks.family_fractions", *sys.argv[1:]])
    lines = [
        f"Device {device.name}, driver {device.driver}; `{command}`.",
        "",
        "Peaks: " + ", ".join(f"{name} {rate:.3g}/s" for name, rate in peak.items()) + ".",
        "",
        *table({family: r for family, r in runs.items() if r}, peak),
        "",
        *(f"`{family}` did not run." for family, r in runs.items() if not r),
    ]
    text = "\n".join(lines)
    print(text)
    if parsed.out:
        with open(parsed.out, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text.rstrip() + "\n")


if __name__ == "__main__":
    main()
