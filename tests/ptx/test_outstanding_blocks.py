"""Blocks whose loops are much longer than others', as arrays that are given say, are met by a sample."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel import Kernel, feature

ROWS, BLOCK, LONGEST = 2**16, 128, 3000
SUMS = """\
extern "C" __global__ void sums(const int *begin, const int *column, const float *x, float *y) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int k = begin[row]; k < begin[row + 1]; k++) s += x[column[k]];
    y[row] = s;
}"""
IN_PLACE = """\
extern "C" __global__ void in_place(int *begin, int *x) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = begin[row]; k < begin[row + 1]; k++) x[(k * 7919) & 0xffff] += k;
}"""
WIDE = """\
extern "C" __global__ void wide(const int *begin, const float *x, float *y, int columns) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    int column = blockIdx.y * 32 + threadIdx.x;
    float s = 0;
    for (int k = begin[row]; k < begin[row + 1]; k++) s += x[k * columns + column];
    y[row * columns + column] = s;
}"""


def begins(longest: int) -> np.ndarray:
    """Rows of 0 to 7 numbers, but for one of them."""
    lengths = np.random.default_rng(1).integers(0, 8, ROWS)
    lengths[41234] = longest
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def rounds(kernel: Kernel, items: int) -> float:
    """Returns how often the work-item with most iterations loads in a row."""
    return feature("f_mem_rounds_global_granularity:longest").eval(kernel) / items


@pytest.mark.parametrize(("longest", "least", "most"), [(LONGEST, LONGEST / 4, 3 * LONGEST), (7, 1, 40)])
def test_longest_row_of_a_matrix_is_counted(longest: int, least: float, most: float) -> None:
    begin = begins(longest)
    arrays = {"begin": ROWS + 1, "column": int(begin[-1]), "x": 4096, "y": ROWS}
    kernel = Kernel.from_cuda(SUMS, "sums", ROWS // BLOCK, BLOCK, arrays)
    column = np.random.default_rng(2).integers(0, 4096, int(begin[-1])).astype(np.int32)
    assert least < rounds(kernel.as_observed({"begin": begin, "column": column}), ROWS) < most


def test_one_long_row_stands_for_itself_alone() -> None:
    begin = begins(LONGEST)
    kernel = Kernel.from_cuda(
        SUMS, "sums", ROWS // BLOCK, BLOCK, {"begin": ROWS + 1, "column": 2**20, "x": 4096, "y": ROWS}
    )
    loads = feature("f_mem_access_global_load").eval(kernel.as_observed({"begin": begin}))
    assert loads == pytest.approx(2 * begin[-1] + 2 * ROWS, rel=0.3)


def test_ends_of_loops_that_are_loaded_anew_are_foreseen() -> None:
    begin = begins(50 * LONGEST)
    kernel = Kernel.from_cuda(IN_PLACE, "in_place", ROWS // BLOCK, BLOCK, {"begin": ROWS + 1, "x": 2**16})
    found = kernel.as_observed({"begin": begin})
    assert rounds(found, ROWS) > 50 * LONGEST
    assert feature("f_mem_access_global_store").eval(found) == pytest.approx(begin[-1], rel=0.2)


def test_blocks_along_other_axes_are_not_looked_at_one_by_one() -> None:
    begin, columns = begins(LONGEST), 2048
    sizes = {"begin": ROWS + 1, "x": int(begin[-1]) * columns, "y": ROWS * columns}
    kernel = Kernel.from_cuda(WIDE, "wide", (ROWS // 8, columns // 32), (32, 8), sizes, columns=columns)
    assert rounds(kernel.as_observed({"begin": begin}), ROWS * columns) > LONGEST / 16
