"""Registers and local memory that kernels hold are compared with declarations counted by hand, in every form."""

import pytest

import perfmodel as pm
from perfmodel.collection.collection import ALL_GENERATORS, KernelCollection
from perfmodel.kernels.resources import resources

SOURCE = """__kernel void f(__global float *a, __local float *given, const int n)
{
    __local float declared[64];
    float own[16];
    const int l = get_local_id(0);
    for (int k = 0; k < 16; ++k) own[k] = a[k * n + get_global_id(0)];
    declared[l] = own[3];
    given[l] = own[5];
    barrier(CLK_LOCAL_MEM_FENCE);
    float total = 0;
    for (int k = 0; k < 16; ++k) total += own[k] * declared[k] + given[k];
    a[get_global_id(0)] = total;
}"""


@pytest.mark.parametrize("form", ["as it stands", "as compiled", "emulated"])
def test_what_a_kernel_holds_is_the_same_in_each_form(form: str) -> None:
    kernel = pm.Kernel.from_opencl(SOURCE, "f", "n", 64, {"a": "16 * n", "given": "4 * 64"}, n=1024)
    forms = {"as it stands": kernel, "as compiled": kernel.as_compiled(), "emulated": kernel.as_emulated()}
    chosen = forms[form]
    assert pm.feature("f_held_local").eval(chosen) == 4 * 64 + 4 * 64
    registers = pm.feature("f_held_registers").eval(chosen)
    assert 16 + 4 < registers < 16 + 4 + 12  # the array, the compiler's own, and some values
    assert registers == resources(kernel).registers


def test_tiles_of_loopy_kernels_are_held_in_local_memory() -> None:
    tags = ["matmul_sq", "tiled_prefetch:True", "lsize_0:16", "lsize_1:16", "n:256"]
    (kernel,) = KernelCollection(ALL_GENERATORS).generate_kernels(tags)
    local = pm.feature("f_held_local")
    assert local.eval(kernel) == local.eval(kernel.as_compiled()) == 2 * 16 * 16 * 4


def test_a_group_holds_what_the_launch_provides_by_size() -> None:
    source = """__kernel void f(__global float *a, __local float *part, int n, int m)
    { part[get_local_id(0)] = a[get_global_id(0)]; a[get_global_id(0)] = part[0]; }"""
    kernel = pm.Kernel.from_opencl(source, "f", "n", 64, {"a": "n", "part": "4 * m"}, n=1024)
    assert [pm.feature("f_held_local").eval(kernel.at(m=m)) for m in (64, 128)] == [256, 512]


HOLDING = """__kernel void f(__global float4 *a, __global float *out, const int n)
{{
    const int i = get_global_id(0);
    const int shifts[16] = {{0, 1, 2, 3, 3, 3, 2, 1, 0, -1, -2, -3, -3, -3, -2, -1}};
    float4 own[16];
    for (int k = 0; k < 16; ++k) own[k] = a[k * n + i + {shift}];
    float total = 0;
    for (int k = 0; k < 16; ++k) total += {value} * own[15 - k].x;
    out[i] = total;
}}"""


@pytest.mark.parametrize("form", ["as it stands", "as compiled"])
def test_tables_of_numbers_and_components_that_nothing_reads_take_no_registers(form: str) -> None:
    def held(shift: str, value: str) -> float:
        source = HOLDING.format(shift=shift, value=value)
        kernel = pm.Kernel.from_opencl(source, "f", "n", 64, {"a": "16 * n + 8", "out": "n"}, n=1024)
        return float(pm.feature("f_held_registers").eval(kernel if form == "as it stands" else kernel.as_compiled()))

    assert held("shifts[k]", "own[k].x") == held("3", "own[k].x") < 16 + 4 + 16
    assert held("3", "own[k].z") - held("3", "own[k].x") == 16
    assert held("3", "length(own[k])") - held("3", "own[k].x") >= 48
