"""Private arrays that begin with constants and are only loaded from are tables, which are there once for all."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.device import Device
from perfmodel.measuring.protocol import run_launch

SOURCE = """
int weight(int i) { int w[5] = {1, 2, 4, 2, 1}; return w[i % 5]; }
kernel void k(global int *out, global const int *at, const int n)
{
    int scores[3][5] = {{5, -4, -4, -4, 1}, {-4, 5, -4, 2, 1}, {1, 2, 3, 4, 5}};
    float steps[4] = {1, 2, 3};
    int sum = scores[1][1];
    for (int i = 0; i < n; i++) {
        sum += scores[at[i] % 3][at[i + 1] % 5] + (int)steps[at[i] & 3] + weight(at[i]) + weight(at[i + 1]);
    }
    out[get_global_id(0)] = sum;
}"""
N = 8


def kernel(source: str = SOURCE) -> pm.Kernel:
    return pm.Kernel.from_opencl(source, "k", 256, 64, {"out": 256, "at": 32}, n=N)


def test_they_hold_what_a_device_has_in_them(cpu: Device) -> None:
    at = np.random.default_rng(0).integers(0, 60, 32).astype(np.int32)
    found = pm.emulate(kernel(), {"at": at}, groups="all")
    arrays = {"at": at, "out": np.zeros(256, np.int32)}
    np.testing.assert_array_equal(found.array("out"), run_launch(kernel().launch(), cpu, arrays)["out"])
    assert not found.findings


def test_they_take_no_memory_of_a_work_item() -> None:
    for each in (kernel(), kernel().as_machine_code()):
        assert pm.feature("f_mem_scratch").eval(each) == 0
        assert pm.feature("f_mem_access_global_load_tag:constant").eval(each) >= 256 * N * 3


@pytest.mark.parametrize(
    "used",
    [
        "scores[at[i]][0]++;",
        "scores[at[i] % 3][1] += i;",
        "*(&scores[0][0] + i) = 3;",
        "int *p = scores[i % 3]; p[at[i] % 5] = i;",
        "int c = scores[0][0] = i;",
    ],
)
def test_what_a_kernel_may_write_to_is_none(used: str) -> None:
    written = kernel(SOURCE.replace("sum += scores", f"{used} sum += scores"))
    assert pm.feature("f_mem_scratch").eval(written) >= 256 * 4 * 15


@pytest.mark.parametrize(("first", "is_table"), [("1, 2, 3, 4, 5, 6", False), ("1, 2, 3, 4, 5, 6, 7", True)])
def test_what_begins_with_hardly_anything_but_zeros_is_none(first: str, is_table: bool) -> None:
    """NVIDIA's OpenCL has 40 numbers of which three are not 0 in private memory."""
    source = f"""kernel void k(global int *out, global const int *at, const int n)
    {{ int x[40] = {{{first}}}; out[get_global_id(0)] = x[at[n] % 40]; }}"""
    assert pm.feature("f_mem_scratch").eval(kernel(source)) == (0 if is_table else 256 * 4 * 40)


def test_vectors_are_tables() -> None:
    source = """kernel void k(global int *out, global const int *at, const int n)
    { int2 x[4] = {(int2)(1, 2), (int2)(3, 4), (int2)(5, 6), (int2)(7, 8)}; out[get_global_id(0)] = x[at[n] & 3].y; }"""
    assert pm.feature("f_mem_scratch").eval(kernel(source)) == 0
    at = np.full(32, 2, np.int32)
    assert pm.emulate(kernel(source), {"at": at}).array("out")[0] == 6


def test_what_begins_with_an_unknown_number_is_none() -> None:
    unknown = kernel(SOURCE.replace("{{5, -4", "{{n, -4"))
    assert pm.feature("f_mem_scratch").eval(unknown) >= 256 * 4 * 15
