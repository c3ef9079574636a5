"""Counts of machine code are those of its listing, as often as kernels execute it."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.kernels.ptx_program import PtxProgram
from perfmodel.sass.machine_code import MachineCode, machine_code_here
from perfmodel.sass.pipes import cycles_by_pipe
from perfmodel.sass.toolchain import is_installed

WARPS = 64
SIZES = {"m": 4096, "n": 32 * WARPS}
pytestmark = pytest.mark.skipif(not is_installed(), reason="NVIDIA's assembler and disassembler are not installed")


def kernel(body: str, m: int = SIZES["m"], more: str = "") -> pm.Kernel:
    """Returns a kernel of one block of 128 threads for each four warps; ``x`` has m elements for each thread."""
    text = f"""
    {more}
    __global__ void f(const float *__restrict__ x, const int *__restrict__ k, float *out, int m, int n)
    {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        float r = 0, w = i;
        {body}
        out[i] = r + w;
    }}"""
    arguments = {"x": "n*m", "k": "m", "out": "n"}
    found = pm.Kernel.from_cuda(text, "f", "n/128", 128, arguments)
    return found.at(n=SIZES["n"], m=m)


def counted(knl: pm.Kernel, name: str) -> float:
    return float(pm.feature(name).eval(knl.as_compiled()))


def listed(knl: pm.Kernel) -> MachineCode:
    assert isinstance(knl.program, PtxProgram)
    found = machine_code_here(knl.program.text, knl.program.entry)
    assert found is not None
    return found


def test_straight_code_is_issued_once_by_each_warp() -> None:
    knl = kernel("r = x[i] * w + 3.0f;")
    code = listed(knl).instructions
    end = next(number for number, each in enumerate(code) if each.opcode == "EXIT")
    for pipe, cycles in cycles_by_pipe(code[: end + 1]).items():
        assert counted(knl, f"f_issue_{pipe}") == WARPS * cycles
    assert counted(knl, "f_issue_known") == 1


@pytest.mark.parametrize(
    "body",
    [
        "for (int j = 0; j < m; j++) r += x[j * n + i];",
        "for (int j = 0; j < m; j++) r += w / (j + 1.5f);",
        "for (int j = 0; j < m; j++) for (int l = 0; l < 5; l++) r += x[l * n + i] * w;",
    ],
)
def test_an_iteration_takes_what_the_loop_of_most_copies_has(body: str) -> None:
    few, many = kernel(body), kernel(body, m=2 * SIZES["m"])
    loops = [piece for piece in listed(few).pieces if piece.loop is not None and piece.loop.depth == 1]
    main = max(loops, key=lambda piece: len(piece.loop.own))  # type: ignore[union-attr]
    own = [each for each in main.loop.own if not each.calls]  # type: ignore[union-attr]
    slope = (counted(many, "f_issue_slots") - counted(few, "f_issue_slots")) / WARPS / SIZES["m"]
    whole = cycles_by_pipe(own)["slots"]
    copies = min((1, 4, 16), key=lambda number: abs(whole / number - slope))
    assert slope == pytest.approx(whole / copies, rel=0.15)  # ways to slow divisions are left out


def test_sixteen_loads_of_a_column_are_one_wait() -> None:
    knl = kernel("for (int j = 0; j < m; j++) r += x[j * n + i];")
    waits = counted(knl, "f_mem_waits_global_granularity:longest") / SIZES["n"]
    assert waits == pytest.approx(SIZES["m"] / 16, rel=0.15)  # additions hide some of it
    assert pm.feature("f_mem_waits_global_granularity:longest").eval(knl) / SIZES["n"] == pytest.approx(waits, rel=0.2)


def test_loads_that_follow_each_other_wait_one_by_one() -> None:
    knl = kernel("int at = i % m; for (int j = 0; j < m; j++) at = k[at]; r = at;")
    assert counted(knl, "f_mem_waits_global_granularity:longest") / SIZES["n"] == pytest.approx(SIZES["m"], rel=0.05)


def test_operations_that_follow_each_other_take_four_cycles_each() -> None:
    chain, apart = (
        kernel(f"float u = w + 1, v = w + 2; for (int j = 0; j < m; j++) {{ {body} }} r = u + v;")
        for body in ("w = w * w + u; w = w * w + v;", "w = w * w + r; u = u * u + r; v = v * v + r;")
    )
    one, other = (counted(each, "f_issue_alone") / SIZES["n"] / SIZES["m"] for each in (chain, apart))
    assert one == pytest.approx(2, rel=0.15)
    assert other < 1.5  # three, side by side


def test_the_longest_group_is_known_beside_the_others() -> None:
    """A block in so many goes round its loop most often; what it does beside the loop is the same for all."""
    one_in_four = "int turns = blockIdx.x % 4 ? m / 16 : m; for (int j = 0; j < turns; j++) r = r * w + 1;"
    assert counted(kernel("r = x[i];"), "f_issue_longest") == pytest.approx(1, rel=0.01)
    assert counted(kernel(one_in_four), "f_issue_longest") == pytest.approx(1 / (0.25 + 0.75 / 16), rel=0.05)
    assert counted(kernel("r = x[i];"), "f_issue_uneven") == pytest.approx(0, abs=0.01)
    turns = np.array([1, 1 / 16, 1 / 16, 1 / 16])
    differences = np.diff(np.tile(turns, 99))
    apart = np.sqrt((differences**2).mean() / 2) / turns.mean()
    assert counted(kernel(one_in_four), "f_issue_uneven") == pytest.approx(apart, rel=0.1)


def test_work_that_changes_over_the_launch_is_shared_out() -> None:
    """Compute units take blocks in turn, so that each has some of those that do much and of those that do little."""
    first_half = "int turns = blockIdx.x < gridDim.x / 2 ? m : m / 16; for (int j = 0; j < turns; j++) r = r * w + 1;"
    turns = np.array([1, 1 / 16])
    assert counted(kernel(first_half), "f_issue_uneven") < turns.std() / turns.mean() / 2


def test_only_what_is_compiled_is_known() -> None:
    knl = kernel("r = x[i];")
    assert pm.feature("f_issue_known").eval(knl) == pm.feature("f_issue_slots").eval(knl) == 0
    opencl = pm.Kernel.from_opencl(
        "__kernel void f(__global float *x) { x[get_global_id(0)] = 1; }", "f", 128, 128, {"x": 128}
    )
    assert counted(opencl, "f_issue_known") == counted(opencl, "f_issue_alone") == 0


def test_without_the_assembler_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    knl = kernel("for (int j = 0; j < m; j++) r += x[j * n + i];")
    monkeypatch.setattr("perfmodel.sass.machine_code.is_installed", lambda: False)
    assert counted(knl, "f_issue_known") == 0
    assert counted(knl, "f_mem_waits_global") == pm.feature("f_mem_waits_global").eval(knl)


def test_tiles_that_are_copied_in_the_background_are_waited_for_by_the_text() -> None:
    body = "__shared__ float t[128]; __pipeline_memcpy_async(&t[threadIdx.x], &x[i], 4); __pipeline_commit();"
    knl = kernel(body + "__pipeline_wait_prior(0); r = t[threadIdx.x ^ 1];", more="#include <cuda_pipeline.h>")
    assert counted(knl, "f_issue_known") == 0
