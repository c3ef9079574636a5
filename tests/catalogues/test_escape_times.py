"""Floats that nothing but a condition is made of are operations as any other, in OpenCL C and in CUDA: those of a
fractal, whose iterations are counted in numpy."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from benchmarks.cuda_kernels.twins import Twin

ITEMS, MOST = 4096, 60
TWIN = Twin(
    body="""KERNEL twin(GLOBAL int *out, int n) {
        const int i = ID_X;
        const float x = (float)(i & 63) * 0.04f - 2.0f, y = (float)(i >> 6) * 0.04f - 1.25f;
        float u = 0, v = 0;
        int k = 0;
        while (k < 60 && u * u + v * v < 4.0f) {
            const float t = u * u - v * v + x;
            v = 2.0f * u * v + y;
            u = t;
            k++;
        }
        out[i] = k;
    }""",
    grid=("n // 64",),
    block=(64,),
    args={"out": "n"},
    sizes={"n": ITEMS},
)
KINDS = ("add", "mul", "madd", "compare")


def iterations() -> int:
    """Returns the iterations of all work-items."""
    ids = np.arange(ITEMS)
    x, y = (ids & 63).astype(np.float32) * np.float32(0.04) - 2, (ids >> 6).astype(np.float32) * np.float32(0.04) - 1.25
    u, v, total = np.zeros_like(x), np.zeros_like(x), 0
    with np.errstate(all="ignore"):
        for _ in range(MOST):
            inside = u * u + v * v < 4
            total += int(inside.sum())
            u, v = np.where(inside, u * u - v * v + x, u), np.where(inside, 2 * u * v + y, v)
    return total


@pytest.mark.filterwarnings("ignore::perfmodel.basics.errors.PerfmodelWarning")
@pytest.mark.parametrize("language", ["opencl", "cuda"])
def test_operations_that_decide_when_a_loop_ends_count(language: str) -> None:
    kernel = (TWIN.opencl() if language == "opencl" else TWIN.cuda()).as_countable({})
    made = sum(float(pm.feature(f"f_op_float32_{kind}").eval(kernel)) for kind in KINDS)
    # Two squares, two sums and a comparison for the condition; two more sums, a product, a sum and what doubles it.
    assert 5 * iterations() < made < 13 * iterations()
