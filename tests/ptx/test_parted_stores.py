"""Stores to a record are parted by loads that cannot go before them."""

from __future__ import annotations

import pytest

from perfmodel import Kernel, feature

ITEMS = 2**14
SOURCE = """
extern "C" __global__ void put(float *RESTRICT a, const float *RESTRICT b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    #pragma unroll
    for (int j = 0; j < WORDS; j++) a[i * APART + j] = b[j * n + i];
}
"""


def parted(words: int, apart: int, restrict: bool) -> float:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    text = SOURCE.replace("RESTRICT", "__restrict__" if restrict else "")
    text = text.replace("WORDS", str(words)).replace("APART", str(apart))
    extents = {"a": ITEMS * apart, "b": ITEMS * words}
    kernel = Kernel.from_cuda(text, "put", ITEMS // 256, 256, extents, n=ITEMS)
    return float(feature("f_mem_parted_sectors").eval(kernel.as_compiled())) / ITEMS


@pytest.mark.parametrize(
    ("words", "apart", "expected"),
    [
        (8, 8, 8.0),  # a work-item has a sector to itself, and stores to it eight times
        (4, 4, 2.0),  # two share one
        (3, 8, 3.0),
        (1, 8, 0.0),  # nothing comes between
    ],
)
def test_sectors_that_are_filled_field_by_field_are_parted(words: int, apart: int, expected: float) -> None:
    assert parted(words, apart, restrict=False) == pytest.approx(expected)
    assert parted(words, apart, restrict=True) == 0
