"""Tests a search that measures on a device, with simulated times: it keeps them, goes on, and stops at its limits."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import perfmodel as pm
from perfmodel.device import find_device
from perfmodel.measuring.protocol import Protocol
from perfmodel.measuring.store import Store
from perfmodel.tuning.searching import Step, search

SOURCE = """__kernel void scale(__global float *a)
{
    for (int i = 0; i < WORK; i++)
        a[(get_group_id(0) * WORK + i) * get_local_size(0) + get_local_id(0)] *= 2.0f;
}"""
N = 2**12
ONCE = Protocol("once", trials=2, dropped=1, statistic="min")
CONFIGS = [(group, work) for group in (8, 16, 32, 64) for work in (1, 2, 4, 8)]
Config = tuple[int, int]


def kernel(config: Config) -> pm.Kernel:
    group, work = config
    return pm.Kernel.from_opencl(SOURCE, "scale", N // work, group, {"a": N}, [f"-DWORK={work}"])


def run(store: Store, most: int | None, configs: list[Config] | None = None, batch: int = 2) -> list[Step[Config]]:
    tuner = pm.tune(configs or CONFIGS, kernel, pm.Calibration.shipped(device="H200"), workers=1)
    return list(search(tuner, kernel, find_device("cpu"), store, protocol=ONCE, batch=batch, evaluations=most))


def test_what_the_store_has_is_not_measured_again(tmp_path: Path) -> None:
    with Store(tmp_path / "times.sqlite") as store:
        first = run(store, 3)
        assert len(first) == len(store) == 3
        assert all(step.is_new and step.seconds == store_seconds(store, step.key) for step in first)
        again = run(store, 5)
        assert [(step.config, step.seconds) for step in again[:3]] == [(step.config, step.seconds) for step in first]
        assert [step.is_new for step in again] == [False] * 3 + [True] * 2
        assert len({step.config for step in again}) == 5 == len(store)
        assert all(earlier.after_s <= later.after_s for earlier, later in pairwise(again))


def store_seconds(store: Store, key: str) -> float:
    found = store.get(key)
    assert found is not None
    return found.seconds


def test_failures_are_steps_with_their_reason() -> None:
    large = SOURCE.replace("{", "{ __local float much[1 << 20]; much[a[0] > 0] = 1; a[1] = much[a[2] > 1];", 1)

    def launched(config: Config) -> pm.Kernel:
        return kernel(config) if config[1] == 1 else pm.Kernel.from_opencl(large, "scale", N, 8, {"a": N}, ["-DWORK=1"])

    calibration = pm.Calibration.shipped(device="H200")
    tuner = pm.tune([(8, 1), (8, 2)], kernel, calibration, better=0.0, doubt=1e-9, workers=1)
    with Store(None) as store:
        steps = list(search(tuner, launched, find_device("cpu"), store, protocol=ONCE))
    failed = [step for step in steps if step.failure]
    assert [step.config for step in failed] == [(8, 2)]
    assert math.isinf(failed[0].seconds)
    assert "local memory" in failed[0].failure


def test_a_budget_leaves_one_batch() -> None:
    tuner = pm.tune(CONFIGS, kernel, pm.Calibration.shipped(device="H200"), workers=1)
    with Store(None) as store:
        steps = list(search(tuner, kernel, find_device("cpu"), store, protocol=ONCE, batch=2, budget_s=0))
    assert len(steps) == 2
