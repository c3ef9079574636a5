"""Specifications of devices: what comes along, what people describe, and what is refused."""

import json
from pathlib import Path

import pytest

from perfmodel.basics.errors import DeviceError
from perfmodel.device.facts import (
    BY_KIND,
    DeviceFacts,
    architectures,
    device_facts,
    facts_called,
    known_devices,
    new_device,
)

# Peaks of data sheets: single precision in TFLOP/s, a multiply-add as two, at the boost clock.
PEAKS = {
    "k40": 4.29,
    "gtx_titan_x": 6.6,
    "p100": 9.3,
    "gtx_1080_ti": 11.3,
    "v100": 14.1,
    "rtx_2080_ti": 13.4,
    "a100": 19.5,
    "rtx_3090": 35.6,
    "rtx_4090": 82.6,
    "h100": 67,
    "h200": 67,
    "hd_7970": 3.79,
    "vega_64": 12.66,
    "mi100": 23.1,
    "mi250x": 23.9,
    "mi300x": 163.4,
    "arc_a770": 19.66,
}


def test_every_known_device_has_all_facts() -> None:
    found = known_devices()
    assert len({each.key for each in found}) == len(found) > 100
    for each in found:
        assert set(each.facts) == set(BY_KIND[each.kind])
        assert each.architecture in architectures()
    assert {each.vendor for each in found} == {"NVIDIA", "AMD", "Intel", "Arm", "Fujitsu"}


# Single precision of all cores at a clock that makers or lists of computers give with the peak, in GFLOP/s.
CPU_PEAKS = {
    "xeon_e5_2670": (2.6e9, 332.8),
    "xeon_e5_2697_v2": (2.7e9, 518.4),
    "xeon_e5_2680_v3": (2.5e9, 960),
    "i7_6700k": (4.0e9, 512),
    "xeon_gold_6148": (2.4e9, 3072),
    "epyc_7601": (2.2e9, 1126.4),
    "epyc_7742": (2.25e9, 4608),
    "epyc_9654": (2.4e9, 7372.8),
    "xeon_phi_7210": (1.3e9, 5324.8),
    "a64fx": (2.2e9, 6758.4),
}


@pytest.mark.parametrize("key", CPU_PEAKS)
def test_cores_and_lanes_of_a_processor_make_its_peak(key: str) -> None:
    found = device_facts(key)
    clock, peak = CPU_PEAKS[key]
    assert 1e-9 * found["units"] * found["f32_lanes"] * clock == pytest.approx(peak, rel=0.001)


def test_facts_of_processors_go_together() -> None:
    for each in (each for each in known_devices() if each.kind == "cpu"):
        assert each["l1_bytes"] < each["l2_bytes"]
        assert each["l2_latency"] <= each["l3_latency"] < each["dram_latency"]
        assert each["core_bandwidth"] <= each["dram_bandwidth"] <= 200 * each["core_bandwidth"]
        assert each["divide_lanes"] < each["f32_lanes"]
        assert each["l2_bandwidth"] <= each["l1_bandwidth"]


@pytest.mark.parametrize("key", PEAKS)
def test_lanes_and_clocks_make_the_peak_of_the_data_sheet(key: str) -> None:
    found = device_facts(key)
    assert 2e-12 * found["units"] * found["clock"] * found["f32_lanes"] == pytest.approx(PEAKS[key], rel=0.02)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA A100-SXM4-80GB", "a100_80gb"),
        ("NVIDIA A100-PCIE-40GB", "a100"),
        ("Tesla V100-PCIE-32GB", "v100"),
        ("Tesla V100-SXM2-16GB", "v100_sxm2"),
        ("NVIDIA GeForce RTX 3080", "rtx_3080"),
        ("NVIDIA GeForce RTX 3060 Laptop GPU", "rtx_3060_laptop"),
        ("GeForce GTX 1080 Ti", "gtx_1080_ti"),
        ("GeForce GTX 1080", "gtx_1080"),
        ("Tesla K20m", "k20"),
        ("Tesla K20c", "k20"),
        ("v100", "v100"),
        ("Intel(R) Core(TM) i7-6700K CPU @ 4.00GHz", "i7_6700k"),
        ("i7-6700k", "i7_6700k"),
        ("Intel(R) Xeon(R) CPU E5-2697 v2 @ 2.70GHz", "xeon_e5_2697_v2"),
        ("e5-2697-v2", "xeon_e5_2697_v2"),
        ("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", "xeon_gold_6148"),
        ("AMD EPYC 7742 64-Core Processor", "epyc_7742"),
        ("AMD Ryzen 9 5950X 16-Core Processor", "ryzen_5950x"),
        ("AMD EPYC", None),
        ("an abacus", None),
        ("pthread-something", None),
        ("", None),
    ],
)
def test_names_of_drivers_are_known(name: str, key: str | None) -> None:
    found = facts_called(name)
    assert (found.key if found else None) == key


def test_a_device_is_described_by_a_few_numbers(tmp_path: Path) -> None:
    found = new_device("mine", "ada", units=60, clock=2.4e9, dram_bandwidth=5e11, l2_bytes=4e7, l2_latency=250)
    assert (found["units"], found["l2_latency"], found["local_bandwidth"]) == (60, 250, 128)
    assert "l2_bandwidth" in found.guessed()
    assert "l2_latency" not in found.guessed()
    found.save(tmp_path / "mine.json")
    assert device_facts(tmp_path / "mine.json") == found
    assert repr(found) == "DeviceFacts(mine, ada, 35 facts)"
    assert "500 GB/s" in str(found)
    assert found.with_facts("driver", units=61).facts["units"] == (61, "driver")


def test_a_file_from_before_a_fact_was_added_has_its_architectures(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    new_device("mine", "ada", units=60, clock=2.4e9, dram_bandwidth=5e11, l2_bytes=4e7).save(path)
    content = json.loads(path.read_text())
    del content["facts"]["dispatch"], content["facts"]["clock"]
    path.write_text(json.dumps(content))
    with pytest.raises(DeviceError, match="lacks clock; "):
        DeviceFacts.load(path)
    content["facts"]["clock"] = [2.4e9, "driver"]
    path.write_text(json.dumps(content))
    assert DeviceFacts.load(path).facts["dispatch"] == device_facts("rtx_4090").facts["dispatch"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"clock": 0}, "positive number"),
        ({"clock": float("nan")}, "positive number"),
        ({"clocks": 1e9}, "did you mean 'clock'"),
        ({"l2_bytes": None}, "positive number"),
    ],
)
def test_wrong_facts_are_refused(changed: dict[str, float], message: str) -> None:
    facts = {"units": 60, "clock": 2.4e9, "dram_bandwidth": 5e11, "l2_bytes": 4e7}
    with pytest.raises(DeviceError, match=message):
        new_device("mine", "ada", **facts | changed)


def test_what_is_missing_or_unknown_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="lacks clock, dram_bandwidth, l2_bytes"):
        new_device("mine", "ada", units=60)
    with pytest.raises(DeviceError, match="'adda' is known; did you mean 'ada'"):
        new_device("mine", "adda", units=60)
    with pytest.raises(DeviceError, match="did you mean 'a100'"):
        device_facts("a10000")
    with pytest.raises(DeviceError, match="cannot be read"):
        device_facts(tmp_path / "none.json")
    content = device_facts("a100").as_json()
    damages: list[dict[str, object]] = [{"facts": 3}, {"facts": {"units": 4}}, {"facts": {}}, {"kind": "abacus"}]
    for damage in damages:
        (tmp_path / "damaged.json").write_text(json.dumps(content | damage))
        with pytest.raises(DeviceError):
            DeviceFacts.load(tmp_path / "damaged.json")
