"""Lines of a cache that strides touch, through CUDA: single sectors fill as many lines as there are of them."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm

pytest.importorskip("nvidia.cuda_nvrtc", reason="needs the extra nvidia")

ITEMS, BLOCK = 1 << 16, 256
SOURCE = """
__global__ void at_stride(float *a, unsigned stride)
{
    size_t i = blockIdx.x * 256 + threadIdx.x;
    a[i * stride] = 1;
}
"""


@pytest.mark.parametrize("stride", [1, 3, 8, 16, 24, 32, 40, 64, 320])
@pytest.mark.parametrize("size", [32, 64, 128, 256])
def test_blocks_that_strides_touch_are_those_of_all_addresses(stride: int, size: int) -> None:
    kernel = pm.Kernel.from_cuda(SOURCE, "at_stride", ITEMS // BLOCK, BLOCK, {"a": ITEMS * stride}, stride=stride)
    touched = len(np.unique(np.arange(ITEMS) * stride * 4 // size)) * size
    # Gaps are known in blocks of 64 bytes and in lines of 128: sectors of 32 are as many as there can be.
    expected = pytest.approx(touched, rel=0.02) if size > 32 or stride in (1, 3, 8, 16, 32, 64, 320) else None
    found = pm.feature(f"f_mem_footprint_global_store_block:{size}").eval(kernel)
    assert expected is None or found == expected


LABELLED = """
__global__ void labelled(const int *label, float *a)
{
    size_t i = blockIdx.x * 256 + threadIdx.x;
    a[i * 128 + label[i]] = 1;
}
"""


@pytest.mark.parametrize(("labels", "pairs"), [(1, 1), (128, 1), (64, 0.5)])
def test_pairs_of_lines_are_known_of_stores_that_data_lead_to(labels: int, pairs: float) -> None:
    at = np.random.default_rng(3).integers(0, labels, ITEMS).astype(np.int32)
    at[1::2] -= 128 if pairs < 1 else 0  # two of them to each pair of lines
    kernel = pm.Kernel.from_cuda(LABELLED, "labelled", ITEMS // BLOCK, BLOCK, {"label": ITEMS, "a": ITEMS * 128})
    seen = kernel.as_observed({"label": at})
    for size in (128, 256):
        touched = np.unique((np.arange(ITEMS) * 128 + at) * 4 // size)
        found = pm.feature(f"f_mem_footprint_global_store_block:{size}").eval(seen)
        assert found == pytest.approx(len(touched) * size, rel=0.05)
