"""Variables of the program in global memory: all work-items of all groups see them, and a launch changes them."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.counting.counts import CountingWarning
from perfmodel.device import Device
from perfmodel.measuring.protocol import run_launch

SOURCE = """
global int counter = 3;
global float table[64];
global float scale = 2.5f;
global struct { int a; float b; } pair = {1, 4.0f};
static int hidden;
int next(void) { static int calls = 10; return atomic_inc((global int *)&calls); }
kernel void k(global float *out, global int *seen)
{
    const int i = get_global_id(0), l = get_local_id(0);
    if (get_group_id(0) == 0)
        table[l] = scale * l + pair.b;
    atomic_add(&counter, 1);
    hidden = 7;
    next();
    barrier(CLK_GLOBAL_MEM_FENCE);
    out[i] = get_group_id(0) == 0 ? table[63 - l] : pair.a;
    if (i == 0) {
        seen[0] = counter > 3;
        seen[1] = hidden;
        seen[2] = next() > 10;
    }
}"""


def kernel() -> pm.Kernel:
    return pm.Kernel.from_opencl(SOURCE, "k", 128, 64, {"out": 128, "seen": 3}, ["-cl-std=CL2.0"])


def test_they_hold_what_a_device_has_in_them(cpu: Device) -> None:
    found = pm.emulate(kernel(), groups="all")
    arrays = {"out": np.zeros(128, np.float32), "seen": np.zeros(3, np.int32)}
    expected = run_launch(kernel().launch(), cpu, arrays)
    np.testing.assert_array_equal(found.array("out"), expected["out"])
    assert found.array("seen").tolist() == expected["seen"].tolist() == [1, 7, 1]


def test_each_emulation_begins_with_their_initial_values() -> None:
    source = "global int n = 5; kernel void k(global int *a) { a[0] = n; n += 1; }"
    knl = pm.Kernel.from_opencl(source, "k", 1, 1, {"a": 1}, ["-cl-std=CL2.0"])
    assert [int(pm.emulate(knl).array("a")[0]) for _ in range(2)] == [5, 5]


@pytest.mark.parametrize(
    ("name", "count"), [("f_mem_access_global_float32_store", 64 + 128), ("f_op_float32_madd", 64)]
)
def test_they_are_counted_as_global_memory(name: str, count: int) -> None:
    assert pm.feature(name).eval(kernel()) == count
    assert pm.feature(name).eval(kernel().as_machine_code()) == count


def test_what_they_decide_is_observed() -> None:
    source = """global int places[64] = {1};
    kernel void k(global float *a) { if (places[get_local_id(0)]) a[get_global_id(0)] += 1; }"""
    knl = pm.Kernel.from_opencl(source, "k", 1024, 64, {"a": 1024}, ["-cl-std=CL2.0"])
    with pytest.warns(CountingWarning):
        assert pm.feature("f_op_float32_add").eval(knl) == 1024 / 64


def test_a_number_in_constant_memory_is_a_constant_of_the_code() -> None:
    source = """__constant int TURNS = 12; __constant float BY = 0.5f * 3;
    kernel void k(global float *a) {
        float s = a[get_global_id(0)];
        for (int i = 0; i < TURNS; i++) s = s * BY + 1.0f;
        a[get_global_id(0)] = s;
    }"""
    knl = pm.Kernel.from_opencl(source, "k", 1024, 64, {"a": 1024})
    assert pm.feature("f_op_float32_madd").eval(knl) == 1024 * 12
    assert pm.feature("f_mem_access_global_int32_load").eval(knl) == 0
    a = np.linspace(0, 1, 1024, dtype=np.float32)
    expected = a.copy()
    for _ in range(12):
        expected = expected * np.float32(1.5) + np.float32(1)
    np.testing.assert_allclose(pm.emulate(knl, {"a": a}, groups="all").array("a"), expected, rtol=1e-5)
