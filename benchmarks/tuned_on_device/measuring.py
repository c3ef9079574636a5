"""Times programs of the tuned product into a store, once some of them were found to compute what they should."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import perfmodel as pm
from benchmarks import tuned_product
from benchmarks.tuned_on_device.building import built
from benchmarks.tuned_on_device.programs import PROTOCOL, Values, configuration
from perfmodel.device import Device
from perfmodel.measuring.campaign import Campaign
from perfmodel.measuring.protocol import run_launch

CHECKED, CHECKED_SIDE = 6, 256


def kernel(of: Values, side: int) -> pm.Kernel:
    return tuned_product.kernel(configuration(of), side)


def check(programs: Sequence[Values], device: Device) -> None:
    """Compares the products of a few programs with numpy's.

    Raises:
        SystemExit: if one is another.
    """
    random = np.random.default_rng(1)
    a, b, c = (random.random((CHECKED_SIDE, CHECKED_SIDE), np.float32) for _ in range(3))
    expected = c + b.T @ a
    for each in programs:
        got = run_launch(kernel(each, CHECKED_SIDE).launch(), device, {"a": a, "b": b, "c": c.copy()})["c"]
        off = np.abs(got / expected - 1).max()
        if not off < 1e-4:
            raise SystemExit(f"{configuration(each)} computes no product: it is off by {off:.1e}")


def measure(programs: Sequence[Values], device: Device, side: int, store: Path, jobs: int, budget_s: float) -> None:
    """Builds and times programs; prints what that took. What the store has is not measured again."""
    started = time.monotonic()
    kernels = [kernel(each, side) for each in programs]
    print(f"{len(kernels)} kernels ({time.monotonic() - started:.0f} s)", flush=True)
    started = time.monotonic()
    known = building_times(store)
    missing = [(each, of) for each, of in zip(programs, kernels, strict=True) if each not in known]
    if missing:
        took = built([of.launch() for _, of in missing], device, jobs)
        known |= {each: seconds for (each, _), seconds in zip(missing, took, strict=True)}
        file(store).write_text(json.dumps({",".join(map(str, each)): seconds for each, seconds in known.items()}))
        middle, most = np.median(took), max(took)
        print(
            f"{len(took)} programs built by {jobs} processes ({time.monotonic() - started:.0f} s): {middle:.2f} s the "
            f"median, {most:.2f} s the longest",
            flush=True,
        )
    started = time.monotonic()
    check(programs[:: max(1, len(programs) // CHECKED)], device)
    print(f"some products of side {CHECKED_SIDE} are numpy's ({time.monotonic() - started:.0f} s)", flush=True)
    print(Campaign(kernels, [device], protocol=PROTOCOL, store=store).run(budget_s=budget_s))


def building_times(store: Path) -> dict[Values, float]:
    """Returns the seconds that programs took to build, by what lies beside a store."""
    if not file(store).exists():
        return {}
    found = json.loads(file(store).read_text())
    return {tuple(map(int, key.split(","))): seconds for key, seconds in found.items()}


def file(store: Path) -> Path:
    return store.with_name(f"{store.name.split('.')[0]}.built.json")
