"""Kernels with the copies between host and device that belong to their launch."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import FeatureError

NAMES = ("f_transfer_bytes_to", "f_transfer_bytes_from", "f_transfers_to", "f_transfers_from")


def features(kernel: pm.Kernel) -> list[float]:
    return [float(pm.feature(name).eval(kernel)) for name in NAMES]


def test_what_is_loaded_goes_there_and_what_is_stored_comes_back(collection: pm.KernelCollection) -> None:
    (kernel,) = collection.generate_kernels(["vector_add", "n:1048576"])
    assert features(kernel) == [0, 0, 0, 0]
    moved = kernel.with_transfers()
    assert features(moved) == [8 * 2**20, 4 * 2**20, 2, 1]
    assert features(moved.at(n=2**22)) == [8 * 2**22, 4 * 2**22, 2, 1]
    assert pm.feature("f_mem_bytes_global").eval(moved) == pm.feature("f_mem_bytes_global").eval(kernel)
    launch = moved.launch()
    assert (len(launch.copied_in), len(launch.copied_out)) == (2, 1)


def test_an_array_that_is_changed_goes_both_ways() -> None:
    source = "__kernel void k(__global float *a) { a[get_global_id(0)] += 1.0f; }"
    kernel = pm.Kernel.from_opencl(source, "k", 1024, 64, {"a": 1024}).with_transfers()
    assert features(kernel) == [4096, 4096, 1, 1]


@pytest.mark.parametrize("form", ["as_observed", "as_countable"])
def test_data_that_decide_how_often_do_not_decide_what_is_copied(form: str) -> None:
    source = """__kernel void k(__global const int *turns, __global float *out) {
        int i = get_global_id(0);
        for (int k = 0; k < turns[i]; k++) out[i] += 1.0f;
    }"""
    kernel = pm.Kernel.from_opencl(source, "k", 64, 64, {"turns": 64, "out": 64})
    given = getattr(kernel, form)({"turns": np.full(64, 3, np.int32)}).with_transfers()
    launch = given.launch()
    assert (launch.copied_in, launch.copied_out) == (("turns", "out"), ("out",))
    assert features(given) == [512, 256, 2, 1]


def test_it_is_another_measurement(collection: pm.KernelCollection) -> None:
    (kernel,) = collection.generate_kernels(["vector_add", "n:4096"])
    moved = kernel.with_transfers()
    assert moved != kernel
    assert moved.program.content != kernel.program.content
    assert moved.tags["transfers"] == "True"
    assert moved == kernel.with_transfers()


def test_a_direction_is_to_or_from() -> None:
    for name in ("f_transfer_bytes", "f_transfer_bytes_up", "f_transfers_to_from"):
        with pytest.raises(FeatureError, match=r"to|from"):
            pm.feature(name)


@pytest.mark.timed
def test_copies_take_time(collection: pm.KernelCollection) -> None:
    (kernel,) = collection.generate_kernels(["vector_add", "n:4194304"])
    model = pm.Model("f_cl_wall_time", "p_byte * f_transfer_bytes_to")
    table = pm.measure([kernel, kernel.with_transfers()], model, device="cpu", protocol="quick")
    without, moved = table["f_cl_wall_time"]
    assert moved > without
