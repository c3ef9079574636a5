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


SUMS = """__kernel void f(__global const float *restrict a, __global float *restrict out, const int n)
{{
    __local float tile[256];
    const int l = get_local_id(0), i = get_group_id(0) * {results} * 64 + l;
    for (int k = l; k < 256; k += 64) tile[k] = a[i + k];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sums[{results}] = {{0}};
    {pragma}
    for (int k = 0; k < {taps}; ++k)
        #pragma unroll
        for (int r = 0; r < {results}; ++r) sums[r] += tile[l + k + r * 64] * 0.1f;
    #pragma unroll
    for (int r = 0; r < {results}; ++r) {condition} out[i + r * 64] = sums[r];
}}"""


@pytest.mark.parametrize(
    ("results", "taps", "pragma", "condition", "words"),
    [
        (2, 9, "#pragma unroll", "if (i + r * 64 < n)", 2 * 9),
        (3, 9, "#pragma unroll", "if (i + r * 64 < n)", 3 * 9),
        (1, 9, "#pragma unroll", "if (i + r * 64 < n)", 0),  # a single sum waits for no other
        (2, 9, "#pragma unroll", "", 0),  # no branch to move sums to
        (2, 9, "#pragma unroll 1", "if (i + r * 64 < n)", 0),  # sums go around a loop
        # A sum loads an element and its own place, multiplies, adds and stores.
        (2, 1600, "#pragma unroll", "if (i + r * 64 < n)", 2 * 1600),  # 16,000 instructions are written out
        (2, 1700, "#pragma unroll", "if (i + r * 64 < n)", 0),  # 17,000 are more than LLVM's 16,384
    ],
)
def test_sums_that_are_moved_to_their_conditions_keep_all_that_they_load(
    results: int, taps: int, pragma: str, condition: str, words: int
) -> None:
    source = SUMS.format(results=results, taps=taps, pragma=pragma, condition=condition)
    kernel = pm.Kernel.from_opencl(source, "f", 2**12, 64, {"a": 2**16, "out": 2**16}, n=2**12)
    for form in (kernel, kernel.as_compiled()):
        assert pm.feature("f_held_moved").eval(form) == words
    steps = pm.feature("f_held_steps").eval(kernel)
    # With its address a load is two instructions.
    assert steps == (results * taps * 6 if words else 0)
