"""Device profiles: files, the projection's formulas against numbers computed by hand, and what can't be a profile."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.basics.errors import DeviceError
from perfmodel.cli.command_line import main
from perfmodel.device import find_device
from perfmodel.measuring.store import Store
from perfmodel.projection.characterization import _Microbenchmarks
from perfmodel.projection.device_profile import DeviceProfile, Transfer

GPU = DeviceProfile(
    name="hand",
    kind="gpu",
    source="made up",
    compute_units=4,
    subgroup_size=32,
    transaction_bytes=32,
    banks=32,
    instructions={"float32": 1e9, "float32_div": 1e8, "int32": 5e8},
    global_read={4: ((0.5, 4e9), (1.0, 8e9))},
    global_write={4: ((1.0, 2e9),)},
    local=((1.0, 128e9),),
    launch_s=1e-6,
    group_s=1e-9,
    to_device=Transfer(1e9, 1e-5),
    from_device=Transfer(2e9, 2e-5),
    resident_items=1024,
)

SOURCES = {
    # One multiply-add, one load and one store a work-item.
    "axpy": (
        "__kernel void axpy(__global const float *x, __global float *y) "
        "{ y[get_global_id(0)] = 2.0f * x[get_global_id(0)] + 1.0f; }",
        {"x": "n", "y": "n"},
    ),
    "divide": (
        "__kernel void divide(__global float *y, const int n) "
        "{ float a = y[get_global_id(0)]; for (int k = 0; k < 64; ++k) a = 1.0f / a; y[get_global_id(0)] = a; }",
        {"y": "n"},
    ),
}


def kernel(name: str, n: int) -> pm.Kernel:
    source, arrays = SOURCES[name]
    source = source.replace(", const int n", "")
    return pm.Kernel.from_opencl(
        source.replace(")", ", const int n)", 1),
        name,
        "n",
        64,
        arrays,
        n=n,
    )


def test_a_streaming_kernel_by_hand() -> None:
    """4,096 work-items fill the device: 512 transactions each way, at 8 and 2 GB/s."""
    explained = GPU.calibration().explain(kernel("axpy", 4096).as_emulated())
    reading, writing = 512 * 32 / 8e9, 512 * 32 / 2e9
    assert explained.terms["global_memory"] == pytest.approx(reading + writing)
    assert explained.terms["compute"] == pytest.approx(4096 / 1e9)
    assert explained.terms["local_memory"] == 0
    assert explained.terms["groups"] == pytest.approx(64e-9)
    assert explained.seconds == pytest.approx(1e-6 + reading + writing)
    assert explained.std == pytest.approx(math.sinh(GPU.residual_std) * explained.seconds, rel=1e-3)
    assert explained.bottleneck == "global_memory"


def test_a_smaller_launch_gets_less_throughput_and_whole_groups_a_unit() -> None:
    """320 work-items are 5/64 of those that fit, throughput rises by 4 GB/s to a half; 5 groups take 2 rounds of 4."""
    terms = GPU.calibration().explain(kernel("axpy", 320).as_emulated()).terms
    share = (320 / 4096) * 2 * 0.5
    assert terms["global_memory"] == pytest.approx(40 * 32 / (8e9 * share) + 40 * 32 / 2e9 / (320 / 4096))
    assert terms["compute"] == pytest.approx(320 / 1e9 * 8 / 5)


def test_slow_operations_have_their_own_throughput() -> None:
    explained = GPU.calibration().explain(kernel("divide", 4096).as_emulated())
    assert explained.terms["compute"] == pytest.approx(64 * 4096 / 1e8)
    assert explained.bottleneck == "compute"


def test_bank_conflicts_by_hand(collection: pm.KernelCollection) -> None:
    """A stride of 8 puts four words of each sub-group in each of four banks: 8 cycles a sub-group, of 32 words of 4
    bytes each."""
    times = {}
    for stride in (1, 8):
        tags = ["local_access", "direction:load", f"lstride_0:{stride}", "dtype:float32", "lsize_0:64", "n:4096", "m:4"]
        (each,) = collection.generate_kernels(tags)
        times[stride] = GPU.calibration().explain(each.as_emulated()).terms["local_memory"]
    loads = 4 * 16 * 4096 / 32
    assert times[8] - times[1] == pytest.approx(7 * loads * 128 / 128e9, rel=0.05)


def test_transfers_by_hand() -> None:
    explained = GPU.calibration().explain(kernel("axpy", 4096).as_emulated().with_transfers())
    assert explained.terms["transfer"] == pytest.approx(4 * 4096 / 1e9 + 1e-5 + 4 * 4096 / 2e9 + 2e-5)
    assert explained.bottleneck == "transfer"


def test_words_of_eight_bytes_have_their_own_throughput() -> None:
    wide = replace(
        GPU,
        instructions={**GPU.instructions, "float64": 1e9},
        global_read={4: ((1.0, 8e9),), 8: ((1.0, 16e9),)},
        global_write={4: ((1.0, 2e9),), 8: ((1.0, 4e9),)},
    )
    source = """
    __kernel void copy(__global const double *x, __global double *y) { y[get_global_id(0)] = x[get_global_id(0)]; }"""
    copy = pm.Kernel.from_opencl(source, "copy", 4096, 64, {"x": 4096, "y": 4096})
    terms = wide.calibration().explain(copy.as_emulated()).terms
    assert terms["global_memory"] == pytest.approx(8 * 4096 / 16e9 + 8 * 4096 / 4e9)
    narrow = wide.calibration().explain(kernel("axpy", 4096).as_emulated()).terms
    assert narrow["global_memory"] == pytest.approx(4 * 4096 / 8e9 + 4 * 4096 / 2e9)


def test_a_processor_hands_out_groups_itself() -> None:
    cpu = replace(GPU, kind="cpu", banks=0, resident_items=0, subgroup_size=16, transaction_bytes=64)
    explained = cpu.calibration().explain(kernel("axpy", 4096).as_emulated())
    assert explained.terms["launch"] == pytest.approx(1e-6 + 64e-9)
    assert "groups" not in explained.terms


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 64).map(lambda each: 64 * each),
    what=st.sampled_from(("instructions", "global_read", "global_write", "local", "to_device", "from_device")),
    factor=st.floats(1, 100),
    name=st.sampled_from(sorted(SOURCES)),
)
def test_more_throughput_never_takes_longer(n: int, what: str, factor: float, name: str) -> None:
    before: Any = getattr(GPU, what)
    if what == "instructions":
        after: Any = {name: factor * rate for name, rate in before.items()}
    elif what == "local":
        after = tuple((share, factor * rate) for share, rate in before)
    elif what.startswith("global"):
        after = {word: tuple((share, factor * rate) for share, rate in curve) for word, curve in before.items()}
    else:
        after = Transfer(factor * before.bandwidth, before.latency)
    faster = replace(GPU, **{what: after})
    measured = kernel(name, n).as_emulated().with_transfers()
    slow, fast = (float(each.calibration().predict(measured)) for each in (GPU, faster))
    assert fast <= slow * (1 + 1e-12)


def test_the_model_can_be_replaced() -> None:
    calibration = GPU.calibration()
    string = calibration.model.string.source.replace("max(compute,", "(compute +").replace(
        "local_memory, groups)", "0)"
    )
    assert string != calibration.model.string.source
    overlapping = calibration.model.string.source.replace(
        "max(compute, global_memory, local_memory, groups)", "overlap(compute, global_memory, local_memory, groups, 3)"
    )
    model = pm.Model("f_cl_wall_time", overlapping)
    assert model.parameters == calibration.model.parameters
    other = replace(calibration, model=model)
    assert float(other.predict(kernel("axpy", 4096).as_emulated())) > float(
        calibration.predict(kernel("axpy", 4096).as_emulated())
    )


def test_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    GPU.save(tmp_path / "p.json")
    loaded = DeviceProfile.load(tmp_path / "p.json")
    assert loaded == GPU
    loaded.calibration().save(tmp_path / "c.json")
    assert pm.Calibration.load(tmp_path / "c.json") == loaded.calibration()


@pytest.mark.parametrize("name", DeviceProfile.names())
def test_shipped_profiles_load_and_say_where_they_are_from(name: str) -> None:
    profile = DeviceProfile.shipped(name.lower())
    assert profile.name == name
    assert profile.source.startswith(("specification", "measured"))
    assert float(profile.calibration().predict(kernel("axpy", 4096).as_emulated())) > 0


def test_the_papers_devices_have_the_numbers_of_table_i() -> None:
    table = {"HD5870": (20, 64, 32), "HD7970": (32, 64, 32), "C1060": (30, 64, 16), "C2050": (14, 128, 32)}
    for name, numbers in table.items():
        profile = DeviceProfile.shipped(name)
        assert (profile.compute_units, profile.transaction_bytes, profile.banks) == numbers
    assert 2 * DeviceProfile.shipped("C2050").instructions["float32"] == 1030e9
    assert 2 * DeviceProfile.shipped("HD5870").instructions["float32"] == 2720e9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "tpu"}, "'tpu'; write gpu or cpu"),
        ({"source": ""}, "no source"),
        ({"compute_units": 0}, "compute_units=0"),
        ({"launch_s": -1.0}, "launch_s=-1.0"),
        ({"instructions": {"float32": 1e9}}, "no throughput of int32"),
        ({"instructions": {"float32": 1e9, "int32": 1e9, "flaot64": 1.0}}, "'flaot64'; did you mean 'float64'"),
        ({"instructions": {"float32": 1e9, "int32": 1e9, "float64_div": 1.0}}, "none of float64"),
        ({"instructions": {"float32": 1e9, "int32": 0.0}}, "int32 of 0.0"),
        ({"global_read": {8: ((1.0, 1e9),)}}, "words of \\[8\\] bytes"),
        ({"local": ((0.5, 1e9),)}, "rise to 1"),
        ({"local": ((0.5, 1e9), (0.4, 1e9), (1.0, 1e9))}, "rise to 1"),
        ({"local": ((1.0, math.inf),)}, "not above 0"),
        ({"to_device": Transfer(0, 0)}, "bytes a second"),
        ({"occupancy": "cc:9.0", "resident_items": 0}, "no resident_items"),
    ],
)
def test_what_can_be_no_device_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(DeviceError, match=words):
        replace(GPU, **change)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is damaged"),
        ("{}", "is no device profile"),
        ('{"format": "perfmodel-device-profile", "version": 7}', "version 7 and this perfmodel reads 1"),
        ('{"format": "perfmodel-device-profile", "version": 1}', "is damaged"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(DeviceError, match=f"p.json.*{words}"):
        DeviceProfile.load(path)


def test_a_missing_file_or_name_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"nowhere\.json cannot be read"):
        DeviceProfile.load(tmp_path / "nowhere.json")
    with pytest.raises(DeviceError, match="did you mean 'h200'"):
        DeviceProfile.shipped("h20")
    with pytest.raises(DeviceError, match="cannot be written"):
        GPU.save(tmp_path / "no" / "p.json")


def test_microbenchmarks_give_back_what_a_device_takes() -> None:
    """Times that follow from a known device lead to its profile."""
    bench = _Microbenchmarks(replace(find_device("cpu"), compute_units=2))
    for key, each in bench.kernels.items():
        groups, to, back = (
            pm.feature(name).eval(each) for name in ("f_thread_groups", "f_transfer_bytes_to", "f_transfer_bytes_from")
        )
        loads, stores, local = (
            pm.feature(f"f_mem_bytes_{name}").eval(each) for name in ("global_load", "global_store", "local")
        )
        seconds = 1e-6 + 1e-8 * groups if key[0] == "launch" else 1e-6
        if key[0] in ("load", "store"):
            seconds += loads / 10e9 + stores / 5e9
        elif key[0] == "local":
            seconds += local / 50e9
        elif key[0] == "op":
            seconds += pm.feature(f"f_op_{key[1].partition('_')[0]}").eval(each) / 7e9
        elif key[0] == "copied":
            seconds += (to / 2e9 + 1e-5) * (to > 0) + back / 4e9 + 2e-5
        bench.times[key] = seconds
    profile = bench.profile("simulated")
    assert profile.instructions["float32"] == pytest.approx(7e9, rel=1e-3)
    assert profile.instructions["int64_div"] == pytest.approx(7e9, rel=1e-3)
    assert profile.global_read[4][-1][1] == pytest.approx(10e9, rel=1e-3)
    assert profile.global_write[8][-1][1] == pytest.approx(5e9, rel=1e-3)
    assert profile.local[-1][1] == pytest.approx(50e9, rel=1e-3)
    assert profile.group_s == pytest.approx(1e-8)
    assert profile.to_device.bandwidth == pytest.approx(2e9)
    assert profile.to_device.latency == pytest.approx(1e-5)
    assert profile.from_device.bandwidth == pytest.approx(4e9)


def test_a_store_without_the_times_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Store(tmp_path / "empty.sqlite").close()
    out = str(tmp_path / "p.json")
    assert (
        main(["characterize", "--device", "nothing-like-it", "--store", str(tmp_path / "empty.sqlite"), "--out", out])
        == 2
    )
    assert "no device is called 'nothing-like-it'" in capsys.readouterr().err


def test_the_file_has_the_documented_fields(tmp_path: Path) -> None:
    GPU.save(tmp_path / "p.json")
    content = json.loads((tmp_path / "p.json").read_text())
    documented = (Path(__file__).parents[2] / "docs" / "projection.md").read_text()
    for name in content:
        assert f"`{name}`" in documented, name
