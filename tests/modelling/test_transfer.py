"""Calibrations carried over to devices that were never measured, against data sheets."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import CalibrationError, DeviceError
from perfmodel.device.facts import DeviceFacts, device_facts, known_devices, new_device
from perfmodel.device.processor_here import facts_here
from perfmodel.modelling.meaning import Meaning
from perfmodel.modelling.transfer import facts_of

SHIPPED = pm.Calibration.shipped("gpu", device="H200")
CPU = pm.Calibration.shipped("cpu", device="intel-xeon")
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
    """Returns a kernel as generators make them: those of others are less sure everywhere, which hides what differs."""
    return pm.Kernel.from_opencl(
        MADDS, "madds", ITEMS, 256, {"x": ITEMS}, a=0.5, tags={"generator": "madds", "op": "madd"}
    )


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
    kernel = madds()

    def width(calibration: pm.Calibration) -> float:
        low, high = calibration.interval(kernel)
        return float(np.log(high / low))

    there = SHIPPED.on("rtx_4090")
    assert width(there) > 1.15 * width(SHIPPED)
    assert width(SHIPPED.on("mi100")) > 1.3 * width(there)  # another maker's
    assert width(CPU.on("i7-6700k")) > 1.2 * width(CPU)
    assert there.device["carried_over_from"] == SHIPPED.device["key"]
    assert "nothing was measured" in there.report


def test_the_farther_an_architecture_the_wider_the_interval() -> None:
    widths = []
    for device in ("gh200", "a100", "v100", "k20"):
        low, high = SHIPPED.on(device).interval(madds())
        widths.append(float(np.log(high / low)))
    assert all(after > 0.95 * before for before, after in pairwise(widths))
    assert widths[-1] > 1.5 * widths[0]


def test_what_is_a_fact_is_sure_and_what_is_guessed_is_not() -> None:
    there = SHIPPED.on("a100")
    relative = {name: there.stderr[name] / there.parameters[name] for name in ("p_units", "p_f32", "p_launch")}
    assert relative["p_units"] == 0 < relative["p_f32"] < relative["p_launch"]
    learned = there.update(copy(2**24), 1e-4)
    assert learned.parameters["p_units"] == there.parameters["p_units"] == 108
    assert learned.parameters["p_launch"] != there.parameters["p_launch"]


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
    with pytest.raises(CalibrationError, match="cpu says nothing of A100"):
        CPU.on("a100")
    unknown = replace(CPU, device={**CPU.device, "specification": device_facts("i7_6700k").as_json() | {"facts": {}}})
    with pytest.raises(DeviceError, match="lacks units"):
        unknown.on("i7_6700k")
    unnamed = replace(CPU, device={"name": "AMD EPYC", "key": "amd-epyc", "kind": "cpu"})
    with pytest.raises(CalibrationError, match="nothing is known of the specification of AMD EPYC"):
        unnamed.on("i7_6700k")
    with pytest.raises(CalibrationError, match="no calibration for 'abacus'"):
        pm.Calibration.shipped(device="abacus")
    with pytest.raises(CalibrationError, match="did you mean 'a10'"):
        pm.Calibration.shipped(device="a10x")


# Cores × clock × lanes × 2 in FLOP/s, and the memory's bytes a second, of data sheets.
PROCESSORS = {"i7-6700k": (512e9, 34.1e9), "e5-2697-v2": (576e9, 59.7e9), "epyc_7742": (5.73e12, 205e9)}


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_processors_peaks_bound_what_is_predicted(name: str) -> None:
    peak, bandwidth = PROCESSORS[name]
    there = pm.Calibration.shipped(device=name)
    assert 0.4 * peak < 8.0 * STEPS * ITEMS / float(there.predict(madds())) < peak
    assert 0.5 * bandwidth < 8.0 * 2**28 / float(there.predict(copy())) < bandwidth


def test_vectors_and_caches_of_another_processor_stand_in_its_model() -> None:
    there = CPU.on("i7_6700k")
    features = there.model.features
    assert {"f_mem_missed_keeps:32768_width:8", "f_mem_missed_keeps:8388608_width:8"} <= set(features)
    assert not any("width:16" in name or "subgroup16" in name for name in features)
    assert set(there.ranges) == set(features)
    assert there.parameters["p_units"] == 4
    assert CPU.on("xeon_gold_6148").on("i7_6700k").parameters == pytest.approx(there.parameters)
    itself = CPU.on(DeviceFacts.from_json(CPU.device["specification"]))
    assert itself.parameters == pytest.approx(CPU.parameters)
    assert itself.model == CPU.model


def described(folder: Path, told: str) -> DeviceFacts:
    """Returns the facts of a processor of two cores that Linux describes so."""
    (folder / "cpuinfo").write_text("".join(f"processor\t: {n}\ncore id\t: {n}\n{told}\n\n" for n in range(2)))
    found = facts_here(folder / "cpuinfo", folder / "none", range(2))
    assert found is not None
    return found


ZEN_5 = "vendor_id : AuthenticAMD\ncpu family : 26\nmodel : {model}\nmodel name : AMD EPYC\nflags : avx avx2 avx512f"


def test_a_processor_at_hand_is_predicted_by_its_facts(tmp_path: Path) -> None:
    """Zen 5 does as many operations a clock as the Xeon, and its clock is taken to be lower."""
    here = described(tmp_path, ZEN_5.format(model=2))
    there = CPU.on(here)
    assert there.parameters["p_f32"] / CPU.parameters["p_f32"] == pytest.approx(4.1 / 3.8)
    assert there.predict(madds()) > 1.05 * CPU.predict(madds())
    faster = here.with_facts("driver", clock=5e9, units=4)
    assert CPU.on(faster).predict(madds()) < 0.6 * CPU.predict(madds())
    assert "f_mem_missed_keeps:1048576_width:16" in there.model.features


def test_what_is_guessed_of_a_processor_at_hand_widens_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfmodel.modelling.counted_form.intel_processor", lambda: None)  # all by the source

    def width(calibration: pm.Calibration, kernel: pm.Kernel) -> float:
        low, high = calibration.interval(kernel)
        return float(np.log(high / low))

    here = described(tmp_path, ZEN_5.format(model=2))
    sure = here.with_facts("driver", clock=here["clock"], dram_bandwidth=here["dram_bandwidth"])
    unknown = described(tmp_path, ZEN_5.format(model=192))
    for kernel in (madds(), copy()):
        assert width(CPU, kernel) < width(CPU.on(sure), kernel) < width(CPU.on(here), kernel)
        assert width(CPU.on(here), kernel) <= width(CPU.on(unknown), kernel)
    alike = "vendor_id : GenuineIntel\ncpu family : 6\nmodel : {model}\nmodel name : Xeon\nflags : avx avx2 avx512f"
    same, newer = (CPU.on(described(tmp_path, alike.format(model=model))) for model in (173, 250))
    assert {facts_of(each).architecture for each in (same, newer)} == {"granite_rapids"}  # type: ignore[union-attr]
    assert width(CPU, madds()) < width(same, madds()) <= width(newer, madds())
    relative = {name: same.stderr[name] / same.parameters[name] for name in ("p_f32", "p_memory", "p_launch")}
    assert min(relative["p_memory"], relative["p_launch"]) > 0.6  # nobody tells these
    assert 0.15 < relative["p_f32"] < 0.3  # a clock is guessed within a line of processors


def test_what_was_carried_over_is_saved_with_its_model(tmp_path: Path) -> None:
    there = CPU.on("e5-2697-v2")
    there.save(tmp_path / "there.json")
    loaded = pm.Calibration.load(tmp_path / "there.json")
    assert loaded == there
    assert loaded.on("i7_6700k").parameters == pytest.approx(CPU.on("i7_6700k").parameters)


def test_every_known_processor_gets_a_calibration() -> None:
    processors = [each for each in known_devices() if each.kind == "cpu"]
    times = {each.key: float(CPU.on(each).predict(copy(2**28))) for each in processors}
    assert len(times) > 50
    assert all(1e-3 < time < 0.2 for time in times.values())
    assert times["i7_2600k"] > times["i7_6700k"] > times["xeon_gold_6148"] > times["epyc_9654"]


def test_processors_and_gpus_are_chosen_among(tmp_path: Path) -> None:
    """One work-item that adds up is a processor's, and four million are a GPU's."""
    alone = """__kernel void sum(__global float *x, const int n)
    {
        float s = 0;
        for (int i = 0; i < n; i++) s += x[i];
        x[0] = s;
    }"""
    one = pm.Kernel.from_opencl(alone, "sum", 1, 1, {"x": "n"}, n=2**20)
    devices = ["gtx_1080", "k20", "i7-6700k"]
    choice = pm.choose_device(one, devices)
    assert choice.device == "Core i7-6700K"
    assert pm.choose_device(madds(), devices).device == "GeForce GTX 1080"
    mine = new_device("mine", "skylake", units=400, clock=4e9, dram_bandwidth=1e12, l3_bytes=2**25)
    mine.save(tmp_path / "mine.json")
    assert pm.choose_device(madds(), [*devices, str(tmp_path / "mine.json")]).device == "mine"


def test_a_calibration_can_say_what_its_device_is() -> None:
    facts = device_facts("h200").with_facts("driver", units=66)
    half = SHIPPED.with_device(facts).on("h200")
    assert half.parameters["p_f32"] == pytest.approx(SHIPPED.parameters["p_f32"] / 2)


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


LOOKUPS = """__kernel void lookups(__global float *x)
{
    __local float shared[512];
    const int l = get_local_id(0);
    shared[l] = x[get_global_id(0)];
    shared[l + 256] = l;
    barrier(CLK_LOCAL_MEM_FENCE);
    float s = 0;
    #pragma unroll 1
    for (int k = 0; k < 4096; k += 8)
        s += TAKE(0) + TAKE(1) + TAKE(2) + TAKE(3) + TAKE(4) + TAKE(5) + TAKE(6) + TAKE(7);
    x[get_global_id(0)] = s;
}"""


@pytest.mark.parametrize(("key", "bytes_a_clock"), [("a100", 128), ("rtx_2080_ti", 64), ("rtx_a4000", 64)])
def test_loads_of_words_come_at_the_rate_of_the_units_that_do_them(key: str, bytes_a_clock: int) -> None:
    """White papers give a multiprocessor of the A100 32 units for loads and stores, Turing's and GA10x's 16, although
    the latter's local memory has twice Turing's bandwidth."""
    facts = device_facts(key)
    kernel = pm.Kernel.from_opencl(LOOKUPS, "lookups", ITEMS, 256, {"x": ITEMS}, ["-DTAKE(j)=shared[(l+j*17+k)&511]"])
    seconds = float(SHIPPED.on(key).predict(kernel))
    least = 4 * 4096 * ITEMS / (facts["units"] * facts["clock"] * bytes_a_clock)
    assert 0.9 * least < seconds < 2 * least


CONVERSIONS = """__kernel void conversions(__global float *x)
{
    const int i = get_global_id(0);
    int j = i;
    float s = 0;
    for (int k = 0; k < 4096; k++) { s += (float)j; j = j * 3 + 1; }
    x[i] = s;
}"""


@pytest.mark.parametrize(
    ("key", "lanes"), [("v100", 16), ("rtx_a4000", 16), ("gtx_1080_ti", 32), ("h100", 64), ("mi50", 16)]
)
def test_conversions_come_at_the_rate_of_the_units_that_do_them(key: str, lanes: int) -> None:
    there, facts = SHIPPED.on(key), device_facts(key)
    kernel = pm.Kernel.from_opencl(CONVERSIONS, "conversions", ITEMS, 256, {"x": ITEMS}, tags={"op": "convert"})
    a_clock = STEPS * ITEMS / float(there.predict(kernel)) / (facts["units"] * facts["clock"])
    assert 0.25 * lanes < a_clock < 1.1 * lanes


def test_a_wavefront_of_64_takes_as_long_for_half_as_many() -> None:
    """A group of 32 on GCN has half a wavefront, and RDNA's waves of 32 are whole."""

    def times_as_long(key: str) -> float:
        groups = [pm.Kernel.from_opencl(MADDS, "madds", ITEMS, size, {"x": ITEMS}, a=0.5) for size in (32, 64)]
        small, whole = (float(SHIPPED.on(key).predict(each)) for each in groups)
        return small / whole

    assert times_as_long("mi50") > 1.6
    assert times_as_long("w6600") < 1.4
