"""A calibration learns from the times of a program's launches, and is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import perfmodel as pm
from perfmodel.device import Device
from perfmodel.interception.launches import Launches
from perfmodel.interception.learning import learned
from perfmodel.modelling.calibration import Calibration
from tests.interception.test_run_command import PROGRAM, run

SOURCE = "__kernel void scale(__global float *a, const float f) { a[get_global_id(0)] *= f; }"
H200 = "NVIDIA H200"


def kernel(n: int) -> pm.Kernel:
    return pm.Kernel.from_opencl(SOURCE, "scale", n, 128, {"a": n}, f=2.0)


def launches(n: int, *seconds: float | None, device: str = H200) -> Launches:
    common: dict[str, Any] = {"kernel": kernel(n), "device": device, "name": "scale", "global_size": (n,)}
    return Launches([SimpleNamespace(seconds=time, **common) for time in seconds])  # type: ignore[misc]


@pytest.fixture(scope="module")
def carried_over() -> Calibration:
    return Calibration.shipped(device="a100")


def test_predictions_come_nearer_to_the_shortest_time_of_each_kernel(carried_over: Calibration) -> None:
    name = str(carried_over.device["name"])
    sizes = (2**20, 2**22, 2**24)
    times = [1.4 * float(carried_over.predict(kernel(n))) for n in sizes]
    found = learned(
        [launches(n, 5 * time, time, device=name) for n, time in zip(sizes, times, strict=True)], carried_over
    )
    assert (found.kernels, found.left_out) == (3, {})
    assert found.errors[0] == pytest.approx(1 - 1 / 1.4)
    assert found.errors[1] < 0.5 * found.errors[0]
    for n, time in zip(sizes, times, strict=True):
        assert abs(float(found.after.predict(kernel(n))) / time - 1) < 0.15
    changes = [abs(after / before - 1) for before, after in found.changed.values()]
    assert changes
    assert changes[0] > 0.05
    assert found.before is carried_over
    first = next(iter(found.changed))
    assert f"{first} " in str(found)
    assert "learned from 3 kernels: errors of 28.6% become" in str(found)


def test_what_teaches_nothing_is_left_out_with_its_reason() -> None:
    calibration = Calibration.shipped(device="H200")
    time = float(calibration.predict(kernel(2**20)))
    found = learned(
        [launches(2**20, None), launches(2**21, time, device="Other GPU"), launches(2**22, 1000.0)], calibration
    )
    assert found.after is calibration
    assert list(found.left_out) == [f"scale ({2**power},)" for power in (20, 21, 22)]
    reasons = list(found.left_out.values())
    assert reasons[0] == "its queue tells no times"
    assert reasons[1] == "it ran on Other GPU, and the calibration is of NVIDIA H200"
    assert "times as long as predicted, beyond the interval of 99.9%" in reasons[2]
    assert str(found).startswith("nothing was learned")
    assert found.as_json()["kernels"] == 0
    assert not found.changed


def test_the_command_keeps_what_it_learned(cpu: Device, tmp_path: Path) -> None:
    shipped = Calibration.shipped(device="intel-xeon")
    replace(shipped, device={**shipped.device, "name": cpu.name}).save(tmp_path / "first.json")
    kept = tmp_path / "kept.json"
    rows = []
    for _ in range(2):
        words = ["--predict", str(tmp_path / "first.json"), "--learn", str(kept)]
        done = run("--json", *words, str(PROGRAM), "65536")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout.splitlines()[-1])
        said = found["learned"]
        assert said["kernels"] + len(said["left_out"]) == len(found["launches"])
        rows.append(len(Calibration.load(kept).rows))
        assert rows[-1] - (rows[-2] if rows[1:] else len(shipped.rows)) == said["kernels"]


def test_learning_needs_something_to_begin_with(tmp_path: Path) -> None:
    done = run(str(PROGRAM), "--learn", str(tmp_path / "none.json"))
    assert done.returncode == 2
    assert "say by --predict which calibration is to learn" in done.stderr
    done = run(str(PROGRAM), "--predict", "@h200", "--learn", str(tmp_path / "no" / "where.json"))
    assert done.returncode == 2
    assert "give a file in a folder that is there" in done.stderr
    assert not done.stdout
