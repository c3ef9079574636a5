"""Devices ranked for a kernel: who is chosen, how sure that is, what is refused, and the command."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.basics.errors import DeviceError
from perfmodel.cli.command_line import main
from perfmodel.device.facts import device_facts
from perfmodel.modelling.choosing import probability_fastest
from perfmodel.projection.device_choice import DeviceLike
from perfmodel.projection.device_profile import DeviceProfile
from tests.projection.test_device_profile import GPU, kernel

ROOT = Path(__file__).parents[2]
FAST = replace(GPU, name="fast", global_read={4: ((1.0, 80e9),)}, global_write={4: ((1.0, 20e9),)})


def test_the_faster_device_comes_first() -> None:
    choice = pm.choose_device(kernel("axpy", 4096), [GPU, FAST])
    assert [each.device for each in choice.ranked] == ["fast", "hand"]
    assert choice.device == "fast"
    assert choice.ranked[1].limit == "global_memory"
    assert choice.seconds == pytest.approx(float(FAST.calibration().predict(kernel("axpy", 4096).as_emulated())))
    assert 0 < choice.emulated_s < choice.cost_s
    assert choice.as_json()["device"] == "fast"
    assert "limited by" in str(choice)


def test_transfers_can_turn_the_choice() -> None:
    """A device beyond a slow connection is worth it only where the data are there already."""
    far = replace(FAST, name="far", to_device=replace(GPU.to_device, bandwidth=1e8))
    assert pm.choose_device(kernel("axpy", 4096), [GPU, far]).device == "far"
    choice = pm.choose_device(kernel("axpy", 4096), [GPU, far], transfers=True)
    assert choice.device == "hand"
    assert choice.ranked[1].limit == "transfer"


def test_arrays_decide() -> None:
    source = """
    __kernel void f(__global const int *turns, __global float *y)
    {
        const int turn_count = turns[get_global_id(0)];
        float a = 0.5f;
        for (int k = 0; k < turn_count; ++k)
            a = a * 0.5f + 1.0f;
        y[get_global_id(0)] = a;
    }"""
    by_data = pm.Kernel.from_opencl(source, "f", 4096, 64, {"turns": 4096, "y": 4096})
    computing = replace(
        GPU, name="computing", instructions={"float32": 1e12, "int32": 5e8}, global_read={4: ((1.0, 1e9),)}
    )
    chosen = {
        turns: pm.choose_device(by_data, [GPU, computing], {"turns": np.full(4096, turns, np.int32)}).device
        for turns in (0, 500)
    }
    assert chosen == {0: "hand", 500: "computing"}


def test_arrays_that_are_too_small_are_said() -> None:
    source = "kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }"
    twice = pm.Kernel.from_opencl(source, "twice", 1024, 256, {"x": 1024})
    with pytest.warns(
        pm.PerfmodelWarning, match="'twice' leaves its arrays: .* of 'x', which has 12; give larger ones"
    ):
        pm.choose_device(twice, ["H200"], {"x": np.zeros(3, np.float32)})


def test_calibrations_take_part_from_static_counts() -> None:
    calibration = GPU.calibration()
    known = replace(calibration, device={"name": "calibrated", "key": "", "kind": "gpu"})
    choice = pm.choose_device(kernel("axpy", 4096), [GPU, known])
    times = {each.device: each.seconds for each in choice.ranked}
    assert times["calibrated"] == pytest.approx(times["hand"])
    shipped = pm.choose_device(kernel("axpy", 4096), ["H200", "unified-plus@H200"])
    assert {each.device for each in shipped.ranked} == {"H200", "NVIDIA H200"}


def test_devices_are_profiles_files_names_or_a_mapping(tmp_path: Path) -> None:
    GPU.save(tmp_path / "profile.json")
    GPU.calibration().save(tmp_path / "calibration.json")
    given_: dict[str, DeviceLike] = {
        "a": str(tmp_path / "profile.json"),
        "b": tmp_path / "calibration.json",
        "c": "c2050",
        "d": GPU,
    }
    choice = pm.choose_device(kernel("axpy", 4096), given_)
    times = {each.device: each.seconds for each in choice.ranked}
    assert set(times) == set("abcd")
    assert times["a"] == times["d"] == pytest.approx(times["b"])


def test_a_device_that_cannot_run_it_is_left_out() -> None:
    source = "__kernel void twice(__global double *y) { y[get_global_id(0)] *= 2.0; }"
    twice = pm.Kernel.from_opencl(source, "twice", 4096, 64, {"y": 4096})
    choice = pm.choose_device(twice, [GPU, "H200"])
    assert choice.device == "H200"
    assert "float64" in choice.refused["hand"]
    with pytest.raises(DeviceError, match=r"no device can be chosen for kernel 'twice' .*float64"):
        pm.choose_device(twice, [GPU])


def test_a_calibration_without_transfers_is_left_out_where_they_count() -> None:
    choice = pm.choose_device(kernel("axpy", 4096), [GPU, "unified-plus@H200"], transfers=True)
    assert "no cost of transfers" in choice.refused["NVIDIA H200"]


@pytest.mark.filterwarnings("ignore::perfmodel.modelling.transfer.CarriedOverWarning")
def test_a_small_kernel_goes_where_a_launch_begins_first() -> None:
    devices = ["rx_480", "i7-6700k", "gtx_1080"]
    small, large = kernel("axpy", 4096), kernel("axpy", 2**26)
    alone, waited = (pm.choose_device(small, devices, dispatch=dispatch) for dispatch in (False, True))
    facts = {device_facts(key).name: device_facts(key).facts["dispatch"] for key in devices}
    before = {each.device: each for each in alone.ranked}
    for each in waited.ranked:
        seconds, source = facts[each.device]
        assert each.seconds == pytest.approx(before[each.device].seconds + seconds)
        assert each.terms["dispatch"] == seconds
        spread = seconds * (0.7 if source == "guess" else 0.3)
        assert each.std_s == pytest.approx(np.hypot(before[each.device].std_s, spread))
    assert waited.ranked[-1].device == "Radeon RX 480"
    assert waited.ranked[-1].limit == "dispatch"
    assert pm.choose_device(large, devices, dispatch=True).device == pm.choose_device(large, devices).device


def test_a_device_without_facts_is_left_out_where_the_host_waits() -> None:
    choice = pm.choose_device(kernel("axpy", 4096), [GPU, "gpu@h200"], dispatch=True)
    assert choice.device == "NVIDIA H200"
    assert "no facts tell how long a launch takes to begin" in choice.refused["hand"]


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        ([], "there is no device to choose"),
        ([GPU, GPU], "two devices are called 'hand'"),
        (["H2000"], "did you mean 'h200'"),
        (["nowhere.json"], "cannot be read"),
        ([3], "3 is no device"),
    ],
)
def test_what_is_no_device_is_named(devices: list[Any], words: str) -> None:
    with pytest.raises(DeviceError, match=words):
        pm.choose_device(kernel("axpy", 4096), devices)


@settings(max_examples=20, deadline=None)
@given(
    seconds=st.lists(st.floats(1e-6, 1e-5), min_size=2, max_size=4),
    errors=st.lists(st.floats(0.05, 0.8), min_size=4, max_size=4),
)
def test_confidence_is_the_share_of_random_times(seconds: list[float], errors: list[float]) -> None:
    std = [each * time for each, time in zip(errors, seconds, strict=False)]
    spread = np.sqrt(np.log1p((np.array(std) / seconds) ** 2))
    drawn = np.log(seconds) + spread * np.random.default_rng(1).standard_normal((40_000, len(seconds)))
    assert probability_fastest(seconds, std) == pytest.approx(float((drawn.argmin(axis=1) == 0).mean()), abs=0.015)


def test_confidence_at_its_ends() -> None:
    assert probability_fastest([1.0], [0.5]) == pytest.approx(1)
    assert probability_fastest([1.0, 1.0], [0.2, 0.2]) == pytest.approx(0.5)
    assert probability_fastest([1.0, 2.0], [0.0, 0.0]) == pytest.approx(1)
    assert probability_fastest([2.0, 1.0], [0.0, 0.0]) == pytest.approx(0)


def test_the_command_ranks_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "axpy.cl"
    source.write_text(
        "__kernel void axpy(__global const float *x, __global float *y, const int n) "
        "{ y[get_global_id(0)] += 2 * x[get_global_id(0)]; }"
    )
    options = ["--global", "n", "--local", "64", "--arg", "n=1048576", "--arg", "x=n", "--arg", "y=n"]
    assert main(["project", str(source), *options, "--device", "C2050,H200"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("axpy n=1048576: ")
    assert shown.index("\nH200") < shown.index("\nC2050")
    assert main(["project", str(source), *options, "--device", "H200", "--dispatch", "--json"]) == 0
    (alone,) = json.loads(capsys.readouterr().out)["ranked"]
    assert alone["terms"]["dispatch"] == device_facts("h200")["dispatch"]
    assert main(["project", str(source), *options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {each["device"] for each in document["ranked"]} == set(DeviceProfile.names())
    assert main(["project", str(source), *options, "--device", "H2000"]) == 2
    assert "no device profile 'H2000'" in capsys.readouterr().err


def test_the_example_of_dask_decides_without_dask() -> None:
    spec = importlib.util.spec_from_file_location("dask_devices", ROOT / "examples" / "dask_devices.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["dask_devices"] = example
    spec.loader.exec_module(example)

    class Future:
        def add_done_callback(self, done: Any) -> None:
            self.done = done

    class Client:
        def __init__(self) -> None:
            self.asked: list[dict[str, int]] = []

        def submit(self, run: Any, kernel: pm.Kernel, resources: dict[str, int], pure: bool) -> Future:
            self.asked.append(resources)
            return Future()

    router, client = example.Router({"fast": FAST, "hand": replace(GPU, name="hand")}), Client()
    sent = example.submit(client, router, [kernel("axpy", 4096)] * 12)
    # The first goes to the faster device, and the slower one helps where others wait.
    assert client.asked[0] == {"fast": 1}
    assert {device for device, _ in sent} == {"fast", "hand"}
    for _, future in sent:
        future.done(future)
    assert all(each == pytest.approx(0, abs=1e-12) for each in router.busy_s.values())
