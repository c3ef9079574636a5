"""Changed kernels do the same: Loopy programs transformed, and OpenCL C launched or built in another way."""

from __future__ import annotations

from typing import Any

import loopy as lp
import numpy as np
import pytest

import perfmodel as pm
from perfmodel.collection.verification import verify_against
from perfmodel.device import Device
from perfmodel.kernels.changes.loops import Loops
from perfmodel.kernels.changes.of_loopy import transformed
from perfmodel.kernels.changes.of_opencl import (
    with_other_groups,
    with_other_launches,
    with_other_numbers,
    with_padded_tiles,
)
from perfmodel.kernels.kernel import Kernel

pytestmark = pytest.mark.filterwarnings("ignore::Warning:loopy.*")

TILED = """
__kernel void transpose(__global float *out, __global const float *a, const int n)
{
    __local float tile[T][T];
    int x = get_local_id(0), y = get_local_id(1);
    tile[y][x] = a[get_global_id(1) * n + get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[(get_group_id(0) * T + y) * n + get_group_id(1) * T + x] = tile[x][y];
}
"""
WRONG = TILED.replace("= tile[x][y];", "= tile[y][x];")
STRIDED = """
__kernel void add(__global float *x, const int n)
{
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        x[i] += 1;
}
"""


def program(domain: str, instruction: str, *arrays: Any, **options: Any) -> Any:
    return lp.make_kernel(
        domain,
        instruction,
        [*arrays, lp.ValueArg("n", np.int32)],
        assumptions="n >= 3",
        lang_version=(2018, 2),
        **options,
    )


def array(names: str, shape: str, is_input: bool = True) -> Any:
    return lp.GlobalArg(names, np.float32, shape=shape, is_input=is_input)


def matmul() -> Any:
    return program(
        "{[i, j, k]: 0 <= i < n and 0 <= j < n and 0 <= k < n}",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        array("a,b", "n, n"),
        array("c", "n, n", is_input=False),
    )


def stencil() -> Any:
    return program(
        "{[i, j]: 0 <= i < n and 0 <= j < n}",
        "v[i, j] = u[i, j] + u[i + 1, j] + u[i, j + 1]",
        array("u", "n + 1, n + 1"),
        array("v", "n, n", is_input=False),
    )


def loops(made: Any) -> Loops:
    return Loops(made.default_entrypoint)


def test_loops_that_may_run_side_by_side() -> None:
    assert loops(matmul()).independent() == ["j", "i"]
    row = "{[i]: 1 <= i < n}"
    assert loops(program(row, "x[i] = x[i - 1] + 1", array("x", "n"))).independent() == []
    assert loops(program(row, "x[i] = 2 * x[i]", array("x", "n"))).independent() == ["i"]
    assert loops(program(row, "x[2 * i] = 1", array("x", "2 * n"))).independent() == []
    table = "{[i, j]: 0 <= i < n and 0 <= j < n}"
    assert loops(program(table, "t[j, i] = x[i, j]", array("x,t", "n, n"))).independent() == ["i", "j"]
    assert loops(program(table, "s[i] = sum(j, x[i, j])", array("x", "n, n"), array("s", "n"))).independent() == ["i"]


def test_what_work_items_share() -> None:
    split = lp.split_iname(matmul(), "i", 16, outer_tag="g.1", inner_tag="l.1")
    found = loops(lp.split_iname(split, "j", 16, outer_tag="g.0", inner_tag="l.0"))
    assert found.is_parallel
    assert found.sequential() == ["k"]
    assert found.read_only() == ["a", "b"]
    assert found.is_shared("a", "k")
    assert found.swept("a", "k") == ["i_inner", "k"]
    assert found.outside("a", "k") == ["i_outer", "j_outer", "k"]
    assert (found.length("k"), found.length("i_inner")) == (None, 16)


@pytest.mark.parametrize("make", [matmul, stencil])
def test_transformed_programs_compute_the_same(make: Any, cpu: Device) -> None:
    kernel = Kernel(make(), n=64)
    before = kernel.at(n=64).launch()
    first = list(transformed(kernel, kernel.program))  # type: ignore[arg-type]
    assert len(first) >= 6
    assert all("(n a multiple of 64)" in each.words for each in first)
    grouped = next(each for each in first if each.words.startswith("work-groups of 16 × 16 along j and i"))
    second = list(transformed(grouped.kernel, grouped.kernel.program))  # type: ignore[arg-type]
    assert any("through local memory" in each.words for each in second)
    for each in [*first, *second]:
        verify_against(before, each.kernel.launch(), cpu)


def test_the_lines_make_the_program() -> None:
    kernel = Kernel(matmul(), n=64)
    grouped = next(iter(transformed(kernel, kernel.program)))  # type: ignore[arg-type]
    for changed in transformed(grouped.kernel, grouped.kernel.program):  # type: ignore[arg-type]
        names = {"lp": lp, "program": matmul()}
        exec("\n".join([*grouped.code, *changed.code]), names)
        assert Kernel(names["program"], n=64) == changed.kernel


def test_sizes_that_are_no_multiples_are_not_taken_to_be() -> None:
    kernel = Kernel(matmul(), n=100)
    for each in transformed(kernel, kernel.program):  # type: ignore[arg-type]
        assert "multiple" not in each.words
        assert each.kernel.at(n=37).launch().arrays()[0].size == 37 * 37


def tiled(n: int = 64) -> Kernel:
    return pm.Kernel.from_opencl(TILED, "transpose", ("n", "n"), (16, 16), {"out": "n*n", "a": "n*n"}, ["-DT=16"], n=n)


def test_numbers_and_the_groups_that_go_with_them(cpu: Device) -> None:
    kernel = tiled()
    found = {each.words: each.kernel for each in with_other_numbers(kernel, kernel.program)}  # type: ignore[arg-type]
    assert list(found) == [
        "-DT=8 instead of 16",
        "-DT=8 instead of 16, in work-groups of 8 × 8",
        "-DT=32 instead of 16",
        "-DT=32 instead of 16, in work-groups of 32 × 32",
    ]
    for side in (8, 32):
        same = found[f"-DT={side} instead of 16, in work-groups of {side} × {side}"]
        verify_against(kernel.launch(), same.launch(), cpu)
    with pytest.raises(pm.PerfmodelError, match=r"computes out\[\d+\] = .*, the original .* elements differ\)$"):
        verify_against(kernel.launch(), Kernel(kernel.program.as_opencl().with_source(WRONG), n=64).launch(), cpu)


def test_padded_tiles_and_other_groups() -> None:
    kernel = tiled()
    (padded,) = with_padded_tiles(kernel, kernel.program)  # type: ignore[arg-type]
    assert "tile[T][(T) + 1];" in padded.kernel.launch().source
    groups = [each.kernel.launch().local_size for each in with_other_groups(kernel, kernel.program)]  # type: ignore[arg-type]
    assert (32, 8) in groups
    assert all(len(group) == 2 for group in groups)


def test_other_launches_only_where_loops_take_steps_of_all_work_items(cpu: Device) -> None:
    kernel = pm.Kernel.from_opencl(STRIDED, "add", 1024, 64, {"x": "n"}, n=100_000)
    found = list(with_other_launches(kernel, kernel.program))  # type: ignore[arg-type]
    assert [each.kernel.launch().global_size for each in found] == [(2048,), (4096,), (512,)]
    assert found[0].words == "twice the work-items (2048)"
    for each in found:
        verify_against(kernel.launch(), each.kernel.launch(), cpu)
    other = pm.Kernel.from_opencl(STRIDED.replace("get_global_size(0)", "1024"), "add", 1024, 64, {"x": "n"}, n=4096)
    assert not list(with_other_launches(other, other.program))  # type: ignore[arg-type]
