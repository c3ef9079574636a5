"""Compares what machine code takes of a core, and what it waits for, with what kernels do by their source."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.driver_code import TARGET, driver_code
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.x86.object_code import Binaries, Functions
from perfmodel.x86.units import function_cycles
from tests.x86.core_kernels import PRODUCT, core, kernel, lanes, needs_driver

pytestmark = needs_driver


def test_code_is_that_which_is_executed_and_not_a_debugger_s() -> None:
    """Intel's compiler keeps ids where debuggers find them if it tells lines, by calls that each work-item makes."""
    text = """__local float t[64]; size_t l = get_local_id(0);
    t[l] = b[l]; barrier(CLK_LOCAL_MEM_FENCE); a[get_global_id(0)] = t[63 - l]; barrier(CLK_LOCAL_MEM_FENCE);
    b = 0;"""
    made = driver_code(f"__kernel void k(__global float *a, __global const float *b) {{\n{text}\n}}\n", "k", ())
    assert made is not None
    executed, lined = (Functions(Binaries(each, made.binaries.lined)) for each in made.binaries)
    assert sum(map(len, executed.values())) < sum(map(len, lined.values()))
    calls = [[each.callee for code in found.values() for each in code if each.callee] for found in (executed, lined)]
    assert not any("tls" in callee for callee in calls[0])
    assert any("tls" in callee for callee in calls[1])
    assert core("calls", kernel(text)) == 0


def test_functions_that_are_called() -> None:
    text = "size_t i = get_global_id(0); a[i] = {function}(b[i]);"
    assert core("functions", kernel(text.format(function="exp"))) > 5 * 4096 / lanes()
    assert core("functions", kernel(text.format(function="fabs"))) == 0
    assert core("divides", kernel(text.format(function="sqrt"))) > 0


def test_waits_are_those_of_sums_that_wait_for_themselves() -> None:
    many = "size_t i = get_global_id(0); float s = a[i]; for (int j = 0; j < n; j++) s = s * b[i] + 1; a[i] = s;"
    one_by_one = core("waits", kernel(many, local=lanes(), items=lanes()))
    assert (
        64 * 1.5 < one_by_one < 64 * 4
    )  # a multiply-add has its result after four cycles, in which little else is done
    assert (
        core("waits", kernel("size_t i = get_global_id(0); a[i] = b[i];", local=lanes(), items=lanes()))
        < one_by_one / 3
    )


@pytest.mark.parametrize("target", ["core-avx2", "skx"])
def test_what_a_comparison_lets_through_waits_for_it(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products, a sum, a comparison and what it masks follow each other, and then the next iteration."""
    monkeypatch.setenv(TARGET, target)
    text = """size_t i = get_global_id(0); float x = a[i], y = b[i];
    for (int j = 0; j < n; j++) {
        float u = x * x, v = y * y;
        if (u + v <= 4.0f) { y = 2 * x * y + 0.5f; x = u - v - 0.3f; }
    }
    a[i] = x + y;"""
    assert core("waits", kernel(text, local=16, items=16)) > 64 * 4.5


def test_chains_of_functions_wait_for_each_and_others_do_not() -> None:
    text = "size_t i = get_global_id(0); float s = a[i]; for (int j = 0; j < n; j++) s {}; a[i] = s;"
    chain, sums = (
        core("waits", kernel(text.format(step), local=lanes(), items=lanes())) / 64
        for step in ("= exp(-s)", "+= exp(b[j] * a[i])")
    )
    assert 20 < chain < 80  # an exponential has its result after some 35 cycles
    assert sums < chain / 2


@pytest.mark.parametrize("target", ["core-avx2", "skx"])
def test_loops_that_are_too_short_for_vectors_of_their_own_go_by_one(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler makes vectors of a loop's iterations where work-items have none, and leaves those that fill none."""
    monkeypatch.setenv(TARGET, target)
    body = """int i = get_global_id(0); float s = 0;
for (int j = 0; j < {turns}; j++)
    s += a[i * 1024 + j] * b[i * 16 + j];
a[i] = s;"""
    loads = [core("loads", kernel(body.replace("{turns}", "n"), (1, 1), (64, 1)).at(n=n)) for n in (2, 3)]
    one = (loads[1] - loads[0]) / 64
    assert 1 <= one <= 3  # of an iteration: no vector loop beside is taken as well


def test_shorter_vectors_do_what_longer_ones_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler makes a loop over 16 iterations, one over four, and one over single ones."""
    monkeypatch.setenv(TARGET, "skx")
    body = """int i = get_global_id(0); float s = 0;
for (int j = 0; j < n; j++)
    s += a[i * 1024 + j] * b[i * 16 + j];
a[i] = s;"""
    loads = {n: core("loads", kernel(body, (1, 1), (64, 1)).at(n=n)) / 64 for n in (64, 68, 71)}
    assert loads[68] - loads[64] == pytest.approx(2, rel=0.1)
    assert loads[71] - loads[68] == pytest.approx(6, rel=0.1)


def test_a_core_s_order_is_that_of_its_machine_code() -> None:
    """Work-items that fill no vector go through all of a loop one after the other, and fetch lines again."""
    body = """size_t i = get_global_id(0); float s = 0;
for (int j = 0; j < 1024; j++)
    s += b[j * 64 + i];
a[i] = s;"""
    few, many = (kernel(body, local, 64) for local in (1, 64))
    fetched = [float(pm.feature("f_mem_missed_keeps:16384").eval(each)) for each in (few, many)]
    assert fetched[0] == pytest.approx(64 * 1024 * 64, rel=0.1)  # a line for each work-item and row
    assert fetched[1] == pytest.approx(64 * 1024 * 64 / lanes(), rel=0.1)


def test_kernels_without_a_driver_s_code_have_none() -> None:
    other = pm.Kernel(
        OpenCLProgram("__kernel void k(__global float *a, int n) { a[n] = missing(n); }", "k", 64, 64,
                      [Array("a", "float32", 128, is_output=True), Scalar("n", "int32")]),
        {}, None, n=1,
    )  # fmt: skip
    with pytest.raises(pm.PerfmodelError):
        core("slots", other.as_core_code())
    assert core("known", kernel("a[get_global_id(0)] = 1;").as_compiled()) == 1
    plain = pm.Kernel(kernel("a[get_global_id(0)] = 1;").program.as_opencl(), {}, None, n=64)
    assert core("known", plain) == 0


def test_each_instruction_has_its_line() -> None:
    head = "__kernel void k(__global float *a, __global const float *b)\n"
    source = f"{head}{{\n size_t i = get_global_id(0);\n a[i] =\n exp(b[i]);\n}}\n"
    made = driver_code(source, "k", ())
    assert made is not None
    found = Functions(made.binaries)["k"]
    assert {each.line for each in found} <= {0, *range(1, 7)}
    assert any("exp" in each.callee and each.line == 5 for each in found)
    stores = [each for each in found if each.stores and "rsp" not in each.stores and each.line in (4, 5)]
    assert stores
    assert all(each.addressed for each in stores)


def test_code_is_made_for_the_processor_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    own = lanes()
    for target, expected in (("skx", 16), ("core-avx2", 8)):
        monkeypatch.setenv(TARGET, target)
        assert lanes() == expected
    monkeypatch.delenv(TARGET)
    assert lanes() == own


def test_counts_of_core_code_are_those_of_the_compiled_kernel_beside_it() -> None:
    made = kernel(PRODUCT.format(turns="n", pragma=""))
    for name in ("f_op_float32_madd", "f_mem_access_global_load_float32"):
        assert np.allclose(pm.feature(name).eval(made), pm.feature(name).eval(made.as_compiled()))


def test_chains_that_go_on_around_a_short_loop_are_waited_for_in_it() -> None:
    text = """size_t i = get_global_id(0); float s = a[i];
    for (int k = 0; k < n; k++) {{ {begin} for (int j = 0; j < n / 32; j++) s = s * b[i + 64 * j] + 1; {end} }}
    a[i] = s;"""
    texts = (text.format(begin="", end=""), text.format(begin="s = b[k];", end="a[i + 64 * k] = s;"))
    on, anew = (core("waits", kernel(each, local=lanes(), items=lanes())) for each in texts)
    assert on > 2 * anew


RECORDS = """__local double3 t[64];
size_t i = get_global_id(0), own = get_local_id(0);
t[own] = (double3)(b[i], b[i + 1], b[i + 2]);
barrier(CLK_LOCAL_MEM_FENCE);
double3 at = t[own], sum = 0;
for (int j = 0; j < n; j++) {
    double3 way = t[j] - at;
    sum += way * rsqrt(dot(way, way) + 1.0);
}
a[i] = sum.x + sum.y + sum.z;"""


def test_a_loop_over_records_with_functions_of_single_numbers_goes_one_by_one() -> None:
    """The records are as long as vectors are, and so is the counter's step."""
    roots = core("functions", kernel(RECORDS))
    assert roots >= 4096 * 64 * function_cycles("__ocl_svml_z0_rsqrt8") / 8


def test_remainders_of_64_bits_are_taken_one_after_the_other() -> None:
    """No processor has an instruction that divides vectors of them."""
    found = core("products", kernel("size_t i = get_global_id(0); a[i] = (i * 77) % (size_t)(n + get_local_id(0));"))
    assert 6 * 4096 <= found <= 9 * 4096
