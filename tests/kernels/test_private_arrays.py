"""Private arrays of CUDA kernels are in memory where NVIDIA's assembler has them, not where the text declares them."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.kernels.ptx_program import PtxProgram
from perfmodel.sass.toolchain import held

pytest.importorskip("nvidia.cuda_nvcc", reason="needs the extra nvidia")

N, W = 64, 66
SORTED = """
    float window[9];
    int n = 0;
    for (int y = j - 1; y < j + 2; y++)
        for (int x = i - 1; x < i + 2; x++) window[n++] = a[y * W + x];
    for (int u = 1; u < 9; u++)
        for (int v = u; v > 0 && window[v - 1] > window[v]; v--) {
            const float t = window[v]; window[v] = window[v - 1]; window[v - 1] = t;
        }
    out[j * W + i] = window[4];
"""
COUNTED = """
    int counters[64];
    for (int u = 0; u < 64; u++) counters[u] = 0;
    for (int x = 0; x < W; x++) counters[(int)(64 * a[j * W + x])]++;
    out[j * W + i] = counters[i - 1];
"""
HEAD = """
__global__ void k(const float *a, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x + 1, j = blockIdx.y * blockDim.y + threadIdx.y + 1;
"""


def kernel_of(body: str) -> pm.Kernel:
    source = (HEAD + body + "}").replace("W", str(W))
    kernel = pm.Kernel.from_cuda(source, "k", [N // 16, N // 16], [16, 16], {"a": W * W, "out": W * W})
    return kernel.as_observed({"a": np.random.default_rng(3).random(W * W, dtype=np.float32)})


@pytest.mark.parametrize(("body", "is_kept"), [(SORTED, True), (COUNTED, False)], ids=["sorted", "counted"])
def test_arrays_of_which_branches_tell_the_place_are_where_the_assembler_keeps_them(body: str, is_kept: bool) -> None:
    kernel = kernel_of(body)
    program = kernel.program
    assert isinstance(program, PtxProgram)
    assert "st.local" in program.text
    found = held(program.text, program.entry)
    assert found is not None
    assert (found.stack_bytes == 0) == is_kept
    for name in ("f_mem_scratch", "f_mem_access_scratch_load", "f_mem_access_scratch_store", "f_mem_waits_scratch"):
        assert (pm.feature(name).eval(kernel) == 0) == is_kept, name


def test_nothing_is_known_of_texts_that_the_assembler_does_not_take() -> None:
    assert held(".version 8.0\n.target sm_90\nnonsense", "k") is None
