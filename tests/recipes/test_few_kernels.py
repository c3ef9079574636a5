"""A device is calibrated by the times of a few kernels, against times that were measured of others."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import perfmodel as pm
from perfmodel.basics.errors import CalibrationError
from perfmodel.cli.command_line import main
from perfmodel.collection.collection import ALL_GENERATORS, KernelCollection
from perfmodel.device import Device
from perfmodel.kernels.driver_code import intel_processor
from perfmodel.recipes.few_kernels import learned_here

ROOT = Path(__file__).parents[2]
EPYC = ROOT / "docs" / "results" / "cpu-amd-epyc-eb6565"
pytestmark = pytest.mark.filterwarnings("ignore:data decide")
STORE = EPYC / "measurements.sqlite.xz"
KEY = "amd-epyc-eb6565"
FAMILIES = """\
windows border:skipped dtype:float32,uint8 index:* loops:written_out reach:1 lsizes:8x8,32x8,64x4,256x1 n:512
records kind:* index:* bounce:* lsize_0:64 n:2^12,2^16,2^21
vector_functions function:* width:* m:16,64 n:2^12,2^14,2^16"""


@pytest.fixture(scope="module")
def prior() -> pm.Calibration:
    """Returns the Xeon's calibration, carried over by what a machine with this EPYC tells of itself."""
    return pm.Calibration.shipped(device="intel-xeon").on(str(EPYC / "facts.json"))


def errors(calibration: pm.Calibration, kernels: list[pm.Kernel], seconds: list[float]) -> float:
    ratios = [float(calibration.predict(each)) / time for each, time in zip(kernels, seconds, strict=True)]
    return math.exp(float(np.mean(np.log(np.abs(np.array(ratios) - 1)))))


def test_a_few_times_of_each_family_make_others_of_the_same_device_better(
    prior: pm.Calibration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfmodel.modelling.counted_form.intel_processor", lambda: None)  # all by the source
    lines = [line.split() for line in FAMILIES.splitlines()]
    some = pm.KernelCollection(ALL_GENERATORS).sample_kernels(lines, 90)
    assert {kernel.name for kernel in some} == {"windows", "records", "vector_functions"}
    table = pm.measure(some, pm.Model("f_cl_wall_time", "p_time"), device=KEY, store=STORE, progress=False)
    known = np.flatnonzero(np.isfinite(table["f_cl_wall_time"]))
    learned, judged = ([some[i] for i in known[start::2]] for start in (0, 1))
    found = pm.calibrate(KEY, learned, prior=prior, store=STORE)
    times = [float(table["f_cl_wall_time"].iloc[i]) for i in known[1::2]]
    assert errors(found, judged, times) < 0.7 * errors(prior, judged, times)
    assert found.device["key"] == KEY
    assert "carried_over_from" not in found.device  # and no warning that nothing was measured there
    assert found.device["specification"]["key"] == "amd-epyc"
    assert found.protocol["name"] == "unified"
    assert f"learned from {len(learned)} kernels" in found.report


def test_a_calibration_of_the_device_itself_learns_what_another_day_changed() -> None:
    own = pm.Calibration.shipped(device="intel-xeon")  # fitted to thousands, which are as good as of another day here
    some = pm.KernelCollection(ALL_GENERATORS).sample_kernels([FAMILIES.splitlines()[0].split()], 12)
    times = pm.measure(some, pm.Model("f_cl_wall_time", "p_time"), device=KEY, store=STORE)["f_cl_wall_time"].tolist()
    found = pm.calibrate(KEY, some, prior=own, store=STORE)
    assert errors(found, some, times) < 0.6 * errors(own.update(some, times), some, times)


def test_what_was_learned_today_is_not_forgotten_at_once(prior: pm.Calibration) -> None:
    some = pm.KernelCollection(ALL_GENERATORS).sample_kernels([FAMILIES.splitlines()[0].split()], 24)
    first = pm.calibrate(KEY, some[:23], prior=prior, store=STORE)
    again = pm.calibrate(KEY, some[23:], prior=first, store=STORE)
    assert again.rows[-1].measured_s is not None
    assert again.parameters == first.update(some[23], again.rows[-1].measured_s).parameters
    assert len(again.rows) == 24


def test_a_kernel_without_a_time_is_left_out_with_its_reason(prior: pm.Calibration) -> None:
    windows = pm.KernelCollection(ALL_GENERATORS).sample_kernels([FAMILIES.splitlines()[0].split()], 8)
    text = "__kernel void f(__global int *x) { x[get_global_id(0)] = 1; }"
    unknown = pm.Kernel.from_opencl(text, "f", 64, 64, {"x": 64})
    found = learned_here(KEY, [*windows, unknown], prior=prior, store=STORE)
    assert found.kernels == 8
    assert list(found.left_out) == ["f"]


def test_errors_name_the_culprit_and_the_remedy(prior: pm.Calibration) -> None:
    with pytest.raises(CalibrationError, match=r"0 kernels teach nothing; give 1 or more"):
        pm.calibrate(KEY, 0, prior=prior, store=STORE)
    with pytest.raises(CalibrationError, match="calibration of NVIDIA H200, and AMD EPYC is no gpu; give one of a cpu"):
        pm.calibrate(KEY, 4, prior=pm.Calibration.shipped(device="h200"), store=STORE)


@pytest.mark.skipif(intel_processor() is None, reason="Intel's driver for processors is not here")
def test_the_processor_at_hand_learns_what_machine_code_takes(
    cpu: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags = FAMILIES.splitlines()[2].replace("m:16,64 n:2^12,2^14,2^16", "m:64 n:2^16")
    some = KernelCollection(ALL_GENERATORS).generate_kernels(tags.split())[:8]
    here = pm.Calibration.shipped(device="cpu")
    dearer = {name: value * 1.5 if "_core_" in name else value for name, value in here.parameters.items()}
    changes = []

    def measured(kernels: list[pm.Kernel], *arguments: Any, **options: Any) -> pd.DataFrame:
        """Returns the table of these kernels with times that no load of the machine changes."""
        table = pm.measure(kernels, *arguments, **options)
        return table.assign(f_cl_wall_time=[0.8 * float(here.predict(each)) for each in kernels])

    monkeypatch.setattr("perfmodel.recipes.few_kernels.measure", measured)
    for prior in (here, replace(here, parameters=dearer)):
        found = learned_here("cpu", some, prior=prior, store=tmp_path / "times.sqlite", protocol="quick")
        assert found.kernels + len(found.left_out) == len(some)
        changes.append(found.after.parameters["p_core_slots"] / prior.parameters["p_core_slots"])
    assert changes[1] < 0.98 * changes[0]  # the same times, to those who expected more


def test_the_command_calibrates_the_device_at_hand(
    cpu: Device, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, store = str(tmp_path / "here.json"), ["--store", str(tmp_path / "times.sqlite")]
    few = ["calibrate", "--device", "cpu", "--protocol", "quick", "--kernels", "4", *store, "--out", out]
    assert main([*few, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["written"] == out
    assert said["device"] == cpu.key
    assert said["learned"]["kernels"] + len(said["learned"]["left_out"]) == 4
    assert main(["predict", out, "vector_add", "n:2^20"]) == 0
    assert "carried over" not in capsys.readouterr().err
    # A kernel of one's own is learned from as well, on top of that.
    source = tmp_path / "scale.cl"
    source.write_text("__kernel void scale(__global float *x) { x[get_global_id(0)] *= 2; }")
    own = ["--tags", str(source), "--global", "1048576", "--local", "128", "--arg", "x=1048576"]
    assert (
        main(["calibrate", "--prior", out, "--device", "cpu", "--protocol", "quick", *store, *own, "--out", out]) == 0
    )
    assert "learned from 1 kernel:" in capsys.readouterr().out
    assert len(pm.Calibration.load(out).rows) == said["learned"]["kernels"] + 1
