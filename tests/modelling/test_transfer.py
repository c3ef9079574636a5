"""Calibrations carried over to devices that were never measured, against data sheets."""

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import CalibrationError, DeviceError
from perfmodel.device.facts import device_facts, known_devices, new_device
from perfmodel.modelling.meaning import Meaning

SHIPPED = pm.Calibration.shipped("gpu", device="H200")
ITEMS, STEPS = 2**22, 4096
MADDS = """__kernel void madds(__global float *x, const float a)
{
    const int i = get_global_id(0);
    float s = x[i], t = x[i] + 1, u = x[i] + 2, v = x[i] + 3;
    for (int k = 0; k < 4096; k++) { s = s * a + t; t = t * a + u; u = u * a + v; v = v * a + s; }
    x[i] = s + t + u + v;
}"""
COPY = "__kernel void copy(__global const float *x, __global float *y) { y[get_global_id(0)] = x[get_global_id(0)]; }"


def madds() -> pm.Kernel:
    return pm.Kernel.from_opencl(MADDS, "madds", ITEMS, 256, {"x": ITEMS}, a=0.5)


def copy(n: int = 2**28) -> pm.Kernel:
    return pm.Kernel.from_opencl(COPY, "copy", n, 256, {"x": n, "y": n})


# Peaks and bandwidths of data sheets.
SHEETS = {"v100": (14.1e12, 0.897e12), "a100": (19.5e12, 1.555e12), "rtx_4090": (82.6e12, 1.008e12)}


@pytest.mark.parametrize("key", SHEETS)
def test_peaks_of_data_sheets_bound_what_is_predicted(key: str) -> None:
    peak, bandwidth = SHEETS[key]
    there = SHIPPED.on(key)
    computed = 8.0 * STEPS * ITEMS / float(there.predict(madds()))
    assert 0.5 * peak < computed < 1.1 * peak
    moved = 8.0 * 2**28 / float(there.predict(copy()))
    assert 0.6 * bandwidth < moved < 1.01 * bandwidth


def test_the_same_device_keeps_its_prices() -> None:
    there = SHIPPED.on("h200")
    assert there.parameters == pytest.approx(SHIPPED.parameters)
    assert float(there.predict(madds())) == pytest.approx(float(SHIPPED.predict(madds())))


def test_every_known_gpu_gets_a_calibration() -> None:
    gpus = [each for each in known_devices() if each.kind == "gpu"]
    times = {each.key: float(SHIPPED.on(each).predict(copy(2**24))) for each in gpus}
    assert all(1e-6 < time < 1e-2 for time in times.values())
    assert times["k20"] > times["v100"] > times["h100"] >= times["h200"]


def test_intervals_are_wider_than_where_was_measured() -> None:
    def width(calibration: pm.Calibration) -> float:
        low, high = calibration.interval(madds())
        return float(np.log(high / low))

    there = SHIPPED.on("rtx_4090")
    assert width(there) > 1.2 * width(SHIPPED)
    assert there.device["carried_over_from"] == SHIPPED.device["key"]
    assert "nothing was measured" in there.report


def test_a_device_that_is_named_needs_no_calibration() -> None:
    assert pm.Calibration.shipped(device="a100").device["name"] == "A100 PCIe 40 GB"
    assert pm.Calibration.shipped("unified-plus", device="H200").device["key"] == "nvidia-h200-e38dd1"
    choice = pm.choose_device(madds(), ["k20", "v100", "rtx_4090"])
    assert choice.device == "GeForce RTX 4090"


def test_what_cannot_be_carried_over_is_refused() -> None:
    with pytest.raises(DeviceError, match="'a101' is known; did you mean"):
        SHIPPED.on("a101")
    with pytest.raises(CalibrationError, match="gpu says nothing of Core i7-6700K"):
        SHIPPED.on("i7_6700k")
    with pytest.raises(CalibrationError, match="does not say what its parameters scale with"):
        pm.Calibration.shipped("unified-plus", device="H200").on("a100")
    with pytest.raises(CalibrationError, match="nothing is known of the specification of AMD EPYC"):
        pm.Calibration.shipped("cpu", device="cpu").on("i7_6700k")
    with pytest.raises(CalibrationError, match=r"i7-6700K was never calibrated, .*; calibrate there"):
        pm.Calibration.shipped(device="i7_6700k")
    with pytest.raises(CalibrationError, match="no calibration for 'abacus'"):
        pm.Calibration.shipped(device="abacus")
    with pytest.raises(CalibrationError, match="did you mean 'a10'"):
        pm.Calibration.shipped(device="a10x")


def test_facts_of_ones_own_count() -> None:
    half = device_facts("h200").with_facts("guess", dram_bandwidth=2.4e12)
    assert SHIPPED.on(half).parameters["p_dram"] == pytest.approx(2 * SHIPPED.parameters["p_dram"])
    mine = new_device("mine", "hopper", units=66, clock=1.98e9, dram_bandwidth=4.8e12, l2_bytes=5e7)
    assert SHIPPED.on(mine).parameters["p_f32"] == pytest.approx(2 * SHIPPED.parameters["p_f32"])


def test_what_a_parameter_scales_with_is_checked() -> None:
    model = "p_a * f_work_items"
    with pytest.raises(pm.PerfmodelError, match="names 'p_a'; a device has facts"):
        pm.Model("f_cl_wall_time", model, meanings={"p_a": Meaning("work", scales="p_a * f_device_clock")})
    with pytest.raises(pm.PerfmodelError, match="cannot be read"):
        pm.Model("f_cl_wall_time", model, meanings={"p_a": Meaning("work", scales="1 /")})


def test_a_search_leaves_out_what_the_device_cannot_launch() -> None:
    source = """__kernel void k(__global float *x)
    {
        __local float tile[SIDE * SIDE];
        tile[get_local_id(0)] = x[get_global_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        x[get_global_id(0)] = tile[SIDE - 1];
    }"""

    def kernel(side: int) -> pm.Kernel:
        return pm.Kernel.from_opencl(source, "k", 2**20, 256, {"x": 2**20}, [f"-DSIDE={side}"])

    tuner = pm.tune([16, 32, 128], kernel, SHIPPED.on("rtx_3090"))
    reasons = {each.config: each.pruned for each in tuner.predicted}
    assert "65536 bytes of local memory, and there are 49152" in reasons[128]
    assert set(tuner.ask(3)) == {16, 32}
