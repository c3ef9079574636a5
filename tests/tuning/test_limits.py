"""Tests what a device has no room for, by limits of NVIDIA's compute capabilities."""

from __future__ import annotations

from dataclasses import replace

import pytest

import perfmodel as pm
from perfmodel.basics.errors import KernelError
from perfmodel.device.facts import device_facts
from perfmodel.device.occupancy import limits_of, limits_of_facts
from perfmodel.kernels.demand import Resources
from perfmodel.kernels.resources import resources
from perfmodel.tuning.limits import Limits

H200 = pm.Calibration.shipped(device="H200").device
HELD = """__kernel void held(__global float *out)
{
    float sums[COUNT];
    for (int i = 0; i < COUNT; i++)
        sums[i] = out[get_global_id(0) + i * 64];
    for (int k = 0; k < 99; k++)
        for (int i = 0; i < COUNT; i++)
            sums[i] = sums[i] * 3 + k;
    for (int i = 0; i < COUNT; i++)
        out[get_global_id(0) + i * 64] = sums[i];
}"""
CUDA = """__global__ void scale(float *a, int n)
{
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = a[i];
    a[i] = n * tile[threadIdx.x];
}"""


def held(count: int, group: int) -> pm.Kernel:
    return pm.Kernel.from_opencl(HELD, "held", 8192, group, {"out": 2**20}, [f"-DCOUNT={count}"])


def cuda() -> pm.Kernel:
    return pm.Kernel.from_cuda(CUDA, "scale", 64, 256, {"a": 64 * 256}, n=3)


def test_limits_of_a_device_are_those_of_its_architecture() -> None:
    assert Limits.of(H200) == Limits(1024, 49152, limits_of("9.0"))
    assert limits_of_facts(device_facts("v100")) == limits_of("7.0")
    assert limits_of_facts(device_facts("k20")) is None  # Kepler is not among them
    assert limits_of_facts(device_facts("mi100")) == limits_of(arch="gfx908")
    assert Limits.of({"name": "AMD EPYC", "kind": "cpu"}).unit is None
    assert Limits.of({"name": "nobody's"}) == Limits(None, None, None)


@pytest.mark.parametrize(("count", "group", "spills"), [(16, 256, False), (300, 64, True), (100, 1024, True)])
def test_values_that_have_no_room_are_said_to_spill(count: int, group: int, spills: bool) -> None:
    """A work-item has 255 registers at most, and of 65,536 one of 1024 work-items has 64."""
    kernel = held(count, group)
    demand = resources(kernel)
    said = Limits.of(H200).spills(kernel, demand)
    assert bool(said) == spills
    if spills:
        assert f"room for {min(255, 65536 // group)}" in said
    assert not Limits.of({}).spills(kernel, demand)


def test_what_the_assembler_says_is_taken() -> None:
    kernel, limits = held(16, 1024), Limits.of(H200)
    known = Resources(registers=64, local_bytes=0, private_bytes=300, source="assembler", spilled_bytes=40)
    assert limits.spills(kernel, known) == "registers spill: 40 bytes"
    assert not limits.spills(kernel, replace(known, spilled_bytes=0))
    limits.check(kernel, known)
    with pytest.raises(KernelError, match="registers"):
        limits.check(kernel, replace(known, registers=80))
    limits.check(kernel, replace(known, registers=80, source="estimate"))


def test_shared_memory_of_cuda_is_that_of_its_architecture() -> None:
    limits = Limits.of(H200)
    most = limits_of("9.0").local_bytes_per_group
    for n_bytes, kernel in ((most, cuda()), (49152, held(16, 64))):
        limits.check(kernel, Resources(32, n_bytes, 0, "estimate"))
        with pytest.raises(KernelError, match=f"bytes of (shared|local) memory, and there are {n_bytes}"):
            limits.check(kernel, Resources(32, n_bytes + 1, 0, "estimate"))


def test_a_rejected_configuration_says_that_it_spills() -> None:
    calibration = pm.Calibration.shipped(device="H200")
    configs = [(16, 64), (400, 64), (16, 2048)]
    tuner = pm.tune(configs, lambda config: held(*config), calibration, workers=1)
    expected = tuner.predicted
    tuner.tell((16, 64), expected[0].seconds)
    _, greedy, large = tuner.predicted
    assert greedy.spills.startswith("registers spill, as a work-item holds about ")
    assert greedy.pruned == "" or greedy.pruned.startswith(f"{greedy.spills}; it is predicted to take ")
    assert "2048 work-items, and the device takes 1024" in large.pruned
    tuner.tell((16, 64), expected[0].seconds / 1e3)
    assert "registers spill" in tuner.predicted[1].pruned
