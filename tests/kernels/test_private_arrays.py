"""Private arrays of CUDA kernels are in memory where NVIDIA's assembler has them, not where the text declares them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

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


DIGITS = """
__global__ void k(const unsigned *keys, unsigned *counts, int each)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned mine[16];
    for (int d = 0; d < 16; d++) mine[d] = 0;
    for (int j = 0; j < each; j++) mine[keys[i * each + j] >> 28]++;
    for (int d = 0; d < 16; d++) counts[16 * i + d] = mine[d];
}
"""


def digits_of(keys: NDArray[Any] | None) -> float:
    """Returns the sectors that a sub-group touches when it counts one digit of each of its work-items."""
    kernel = pm.Kernel.from_cuda(DIGITS, "k", 8, 64, {"keys": 512 * 64, "counts": 512 * 16}, each=64)
    kernel = kernel if keys is None else kernel.as_observed({"keys": keys})
    first = 512 / 32 * 16  # of the zeros that are stored at first, a sub-group's side by side
    sectors = float(pm.feature("f_mem_transactions_scratch_store_block:32").eval(kernel)) - 4 * first
    return sectors / (512 / 32 * 64)


def test_places_in_private_arrays_are_as_far_apart_as_data_say() -> None:
    spread = np.random.default_rng(1).integers(0, 2**32, 512 * 64, np.uint32)
    rows = (spread.reshape(512, 64)[:32] >> 28).T
    sectors = np.mean([len({(digit, lane // 8) for lane, digit in enumerate(row)}) for row in rows])
    assert digits_of(spread) == pytest.approx(float(sectors), rel=0.03)
    assert digits_of(np.full(512 * 64, 5 << 28, np.uint32)) == 4
    assert digits_of(None) == pytest.approx(16 * (1 - (15 / 16) ** 8) * 4)  # where nobody says it, anywhere


@pytest.mark.parametrize("first", [0, 1, 3])
def test_work_items_that_do_not_take_part_leave_their_words_out(first: int) -> None:
    """Two of the eight work-items that share a sector are left: as many sectors are loaded, and not as many words."""
    keys, loaded = np.full(512 * 64, 5 << 28, np.uint32), []
    for condition in ("", f"if (i % 4 != {first}) return;"):
        source = DIGITS.replace("unsigned mine", f"{condition} unsigned mine")
        kernel = pm.Kernel.from_cuda(source, "k", 8, 64, {"keys": 512 * 64, "counts": 512 * 16}, each=64)
        seen = kernel.as_observed({"keys": keys})
        loaded.append(float(pm.feature("f_mem_transactions_scratch_load_block:32").eval(seen)))
    assert loaded[0] == loaded[1]


def test_a_sub_group_whose_first_work_items_do_not_take_part_touches_the_sectors_of_the_others() -> None:
    source = DIGITS.replace("unsigned mine", "if (i % 32 < 24) return; unsigned mine")
    keys = np.full(512 * 64, 5 << 28, np.uint32)
    kernel = pm.Kernel.from_cuda(source, "k", 8, 64, {"keys": 512 * 64, "counts": 512 * 16}, each=64)
    stored = pm.feature("f_mem_transactions_scratch_store_block:32").eval(kernel.as_observed({"keys": keys}))
    assert stored == 512 / 32 * (16 + 64)  # of each of the zeros and of the counts, one
