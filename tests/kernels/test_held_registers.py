"""Threads of PTX hold as many registers as NVIDIA's assembler gives them, where it is installed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import perfmodel as pm
from perfmodel.kernels.ptx_program import PtxProgram

nvcc = pytest.importorskip("nvidia.cuda_nvcc", reason="needs the extra nvidia")

VALUES, BLOCK = 48, 1024
# All values are loaded before the first sum in the text, and live at once there.
SOURCE = f"""
__global__ void BOUNDS k(const double *a, double *out)
{{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    double own[{VALUES}], s = 0;
    #pragma unroll
    for (int j = 0; j < {VALUES}; j++) own[j] = a[i + j * {BLOCK}];
    #pragma unroll
    for (int j = 0; j < {VALUES}; j++) s += own[j] * own[{VALUES} - 1 - j] * own[(j * 7) % {VALUES}];
    out[i] = s;
}}
"""


def kernel(bounds: str) -> pm.Kernel:
    return pm.Kernel.from_cuda(SOURCE.replace("BOUNDS", bounds), "k", 4, 256, {"a": BLOCK * (VALUES + 1), "out": BLOCK})


def held(bounds: str = "") -> float:
    return float(pm.feature("f_held_registers").eval(kernel(bounds)))


def test_registers_are_those_that_the_assembler_gives_out(tmp_path: Path) -> None:
    program = kernel("").program
    assert isinstance(program, PtxProgram)
    (tmp_path / "k.ptx").write_text(program.text)
    assembler = Path(next(iter(nvcc.__path__)), "bin", "ptxas")
    done = subprocess.run(
        [assembler, "-arch=sm_90", "-v", "k.ptx", "-o", "k.cubin"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    told = re.search(r"Used (\d+) registers", done.stdout + done.stderr)
    assert told is not None
    assert held() == int(told[1])


def test_threads_of_large_blocks_have_room_in_a_compute_unit() -> None:
    assert held("__launch_bounds__(1024)") <= 65536 / 1024 < held()


def test_values_that_live_at_once_are_counted_without_an_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfmodel.sass.toolchain.held", lambda *_: None)
    assert held("__launch_bounds__(1024)") >= 2 * VALUES
