"""A second driver of the same processor, where Debian's PoCL is installed: it is found, asked, and measured."""

from __future__ import annotations

import pytest

import perfmodel as pm
from perfmodel.device import Device
from perfmodel.device.processor import name_here, processor
from perfmodel.modelling.shipped import calibrated_by


@pytest.fixture(scope="module")
def pocl() -> Device:
    found = [device for device in pm.devices() if "Portable Computing Language" in device.platform]
    if not found:
        pytest.skip("PoCL is not installed")
    return found[0]


def test_it_is_a_processor_with_vectors_and_caches(pocl: Device) -> None:
    assert pocl.kind == "cpu"
    assert name_here() in pocl.name
    known = processor(pocl)
    if known is not None:  # where Linux lists caches
        assert known.lanes in (2, 4, 8, 16)
        assert 2**13 <= known.first < known.second <= known.last


def test_how_it_is_calibrated_is_said(pocl: Device) -> None:
    assert calibrated_by("", pocl.name) == f"cpu --device {pocl.key} --calibrate-only"


def test_times_are_those_of_its_own(pocl: Device, cpu: Device, collection: pm.KernelCollection) -> None:
    model = pm.Model("f_cl_wall_time", "p_byte * f_mem_access_global_load_float32")
    kernels = collection.generate_kernels(["vector_add", "n:2^16"])
    with pm.Store() as store:
        tables = [pm.measure(kernels, model, device=device, store=store, protocol="quick") for device in (pocl, cpu)]
        assert all((table["f_cl_wall_time"] > 0).all() for table in tables)
        assert {device.key for device in store.devices()} == {pocl.key, cpu.key}
