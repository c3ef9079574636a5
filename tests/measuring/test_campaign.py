"""Measuring many kernels: the table, the store behind it, and what happens to kernels that fail."""

from __future__ import annotations

import lzma
import math
from dataclasses import replace
from pathlib import Path

import pytest

import perfmodel as pm
from perfmodel.basics.errors import DeviceError, MeasurementError
from perfmodel.device import Device
from perfmodel.measuring.campaign import NOT_HERE, STOPPED
from perfmodel.measuring.protocol import PROTOCOLS, Protocol
from perfmodel.measuring.store import measurement_key
from perfmodel.modelling.feature_table import MeasurementWarning

SHORT = Protocol("short", trials=4, dropped=1, statistic="min")
MADDS = "p_madd * f_op_float32_madd"


@pytest.fixture(scope="module")
def kernels() -> list[pm.Kernel]:
    return pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "tiled_prefetch:*", "n:64,128"])


def test_a_row_a_kernel_and_a_column_a_feature(kernels: list[pm.Kernel], cpu: Device) -> None:
    table = pm.measure(kernels, pm.Model("f_cl_wall_time", MADDS), device=cpu, protocol=SHORT)
    assert list(table["f_op_float32_madd"]) == [64**3, 128**3, 64**3, 128**3]
    assert (table["f_cl_wall_time"] > 0).all()
    assert list(table["sizes"]) == [{"n": 64}, {"n": 128}] * 2
    assert table.attrs["device"]["key"] == cpu.key
    assert table.attrs["protocol"]["trials"] == 4


def test_a_second_run_measures_nothing(kernels: list[pm.Kernel], cpu: Device, tmp_path: Path) -> None:
    """The store's rows are still the first run's: the same trials, to the nanosecond."""
    model = pm.Model("f_cl_wall_time", MADDS)
    first = pm.measure(kernels, model, device=cpu, protocol=SHORT, store=tmp_path / "times.sqlite")
    with pm.Store(tmp_path / "times.sqlite") as store:
        before = list(store)
    again = pm.measure(kernels, model, device=cpu, protocol=SHORT, store=tmp_path / "times.sqlite")
    with pm.Store(tmp_path / "times.sqlite") as store:
        assert list(store) == before
    assert list(again["f_cl_wall_time"]) == list(first["f_cl_wall_time"])
    assert len(before) == 4
    assert all(len(row.trials) == 4 for row in before)
    assert {row.versions["loopy"] for row in before}


def test_other_protocols_sizes_and_programs_are_other_measurements(
    kernels: list[pm.Kernel], cpu: Device, tmp_path: Path
) -> None:
    model = pm.Model("f_cl_wall_time", MADDS)
    other = Protocol("short", trials=5, dropped=1, statistic="min")
    with pm.Store(tmp_path / "times.sqlite") as store:
        pm.measure(kernels[:1], model, device=cpu, protocol=SHORT, store=store)
        pm.measure(kernels[:1], model, device=cpu, protocol=other, store=store)
        assert len(store) == 2
        pm.measure(kernels, model, device=cpu, protocol=SHORT, store=store)
        assert len(store) == 5


def test_the_same_kernel_twice_is_measured_once(kernels: list[pm.Kernel], cpu: Device, tmp_path: Path) -> None:
    with pm.Store(tmp_path / "times.sqlite") as store:
        table = pm.measure(
            [kernels[0], kernels[0]], pm.Model("f_cl_wall_time", MADDS), store=store, protocol=SHORT, device=cpu
        )
        assert len(store) == 1
    assert table["f_cl_wall_time"].nunique() == 1


def test_a_kernel_that_fails_is_flagged_and_the_others_go_on(
    kernels: list[pm.Kernel], cpu: Device, tmp_path: Path
) -> None:
    """46,336 squared floats are 8.6 GB an array: more than any allocation here, so that it fails before it starts."""
    impossible = kernels[0].at(n=46336)
    model = pm.Model("f_cl_wall_time", MADDS)
    with pm.Store(tmp_path / "times.sqlite") as store:
        with pytest.warns(MeasurementWarning, match=r"n=46336.*was not measured"):
            table = pm.measure([impossible, kernels[0]], model, device=cpu, protocol=SHORT, store=store)
        assert len(store) == 1
    assert math.isnan(table["f_cl_wall_time"].iloc[0])
    assert table["flags"].iloc[0][0].startswith("failed: ")
    assert set(table["flags"].iloc[1]) <= {"noisy", "disturbed"}


def test_nothing_measured_is_an_error(kernels: list[pm.Kernel], cpu: Device) -> None:
    model = pm.Model("f_cl_wall_time", MADDS)
    with pytest.raises(MeasurementError, match="there is no kernel to measure"):
        pm.measure([], model, device=cpu)
    with pytest.warns(MeasurementWarning), pytest.raises(MeasurementError, match="no kernel could be measured"):
        pm.measure([kernels[0].at(n=46336)], model, device=cpu, protocol=SHORT)


def test_unknown_protocols_and_devices_are_named(kernels: list[pm.Kernel]) -> None:
    model = pm.Model("f_cl_wall_time", MADDS)
    with pytest.raises(MeasurementError, match=r"no protocol 'unifeid'; did you mean 'unified'\?"):
        pm.measure(kernels, model, protocol="unifeid")
    with pytest.raises(DeviceError, match="quantum"):
        pm.measure(kernels, model, device="quantum")
    with pytest.raises(DeviceError, match="no such brand"):
        pm.measure(kernels, pm.Model("f_cl_wall_time_no_such_brand", MADDS))


def test_a_device_that_is_elsewhere_has_the_times_of_the_store(
    kernels: list[pm.Kernel], cpu: Device, tmp_path: Path
) -> None:
    path, model = tmp_path / "times.sqlite", pm.Model("f_cl_wall_time", MADDS)
    elsewhere = replace(cpu, key="far-gpu-123456", name="Far GPU", kind="gpu")
    with pm.Store(path) as store:
        pm.measure(kernels[:2], model, device=cpu, protocol=SHORT, store=store)
        for row in list(store):
            key = measurement_key(row.content, row.sizes, elsewhere.fingerprint(), SHORT)
            store.put(replace(row, key=key, device=elsewhere.fingerprint(), trials=(1.0, 2.0, 3.0, 4.0), flags=()))
        assert store.devices() == [cpu, elsewhere]
    table = pm.measure(kernels, model, device="far gpu", protocol=SHORT, store=path)
    assert table.attrs["device"]["key"] == elsewhere.key
    assert list(table["f_cl_wall_time"][:2]) == [2.0, 2.0]
    assert table["f_cl_wall_time"][2:].isna().all()
    assert list(table["flags"]) == [(), (), (NOT_HERE,), (NOT_HERE,)]
    assert pm.measure(kernels[:1], model, device="cpu", protocol=SHORT, store=path).attrs["device"]["key"] == cpu.key
    with pytest.raises(MeasurementError, match="no kernel could be measured; the first one not in the store"):
        pm.measure(kernels[2:], model, device=elsewhere, protocol=SHORT, store=path)
    with pytest.raises(DeviceError, match=f"no device is called 'abacus'; there are .*{elsewhere.key}"):
        pm.measure(kernels, model, device="abacus", store=path)


def test_what_a_store_can_not_keep_is_not_measured(kernels: list[pm.Kernel], cpu: Device, tmp_path: Path) -> None:
    plain, packed, model = tmp_path / "t.sqlite", tmp_path / "t.sqlite.xz", pm.Model("f_cl_wall_time", MADDS)
    first = pm.measure(kernels[:2], model, device=cpu, protocol=SHORT, store=plain)
    packed.write_bytes(lzma.compress(plain.read_bytes()))
    remedy = r"t\.sqlite\.xz is compressed and only read: unpack it by 'xz -dk' and give that file"
    for retry in (False, True):
        with pytest.warns(MeasurementWarning, match=f"2 kernels were not measured: store .*{remedy}"):
            table = pm.measure(kernels, model, device=cpu, protocol=SHORT, store=packed, retry=retry)
        assert list(table["f_cl_wall_time"][:2]) == list(first["f_cl_wall_time"])
        assert list(table["flags"][2:]) == [(STOPPED,), (STOPPED,)]
    with pytest.warns(MeasurementWarning), pytest.raises(MeasurementError, match=f"no kernel .*; store .*{remedy}"):
        pm.measure(kernels[2:], model, device=cpu, protocol=SHORT, store=packed)


def test_an_empty_kernel_is_about_the_launch_and_not_too_near_to_it(cpu: Device) -> None:
    kernels = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["launch", "groups:4"])
    table = pm.measure(kernels, pm.Model("f_cl_wall_time", "p_l * f_sync_kernel_launch"), device=cpu, protocol=SHORT)
    assert "near-launch-overhead" not in table["flags"].iloc[0]


def test_published_protocols_are_presets() -> None:
    assert (PROTOCOLS["unified"].trials, PROTOCOLS["unified"].dropped, PROTOCOLS["unified"].statistic) == (30, 4, "min")
    assert (PROTOCOLS["perflex"].trials, PROTOCOLS["perflex"].statistic) == (60, "mean")


def test_wall_time_is_a_feature_like_any_other(kernels: list[pm.Kernel]) -> None:
    assert 0 < pm.feature("f_cl_wall_time").eval(kernels[0]) < 1
