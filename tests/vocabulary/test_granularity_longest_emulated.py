"""``granularity:longest`` of emulated kernels: of all loops together, what one sub-group or work-group does."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from benchmarks.cuda_kernels.twins import Twin

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

EITHER = """
KERNEL twin(GLOBAL const float *a, GLOBAL float *c, GLOBAL const int *ends, int first, int m, int n)
{
    const int i = ID_X, end = ends[i];
    float s = 0;
    if (GROUP_X < first)
        for (int j = 0; j < m; j++) s += a[j * n + i];
    else
        for (int j = 0; j < end; j++) s -= a[j * n + i];
    c[i] = s;
}
"""
N, MOST = 1024, 256


@pytest.mark.parametrize("language", ["cuda", "opencl"])
@pytest.mark.parametrize("m", [64, 512])
def test_work_items_that_go_through_one_of_two_loops_are_as_long_as_the_longer(language: str, m: int) -> None:
    ends = (np.random.default_rng(m).integers(0, MOST // 16 + 1, N) * 16).astype(np.int32)
    twin = Twin(
        body=EITHER,
        grid=("n // 64",),
        block=(64,),
        args={"a": "512 * n", "c": "n", "ends": "n"},
        sizes={"n": N},
    )
    kernel = (twin.cuda() if language == "cuda" else twin.opencl()).at(first=8, m=m)
    given = {"ends": ends}
    emulated = kernel.as_observed(given) if language == "cuda" else kernel.as_emulated(given, groups="all")
    found = pm.feature("f_mem_access_global_load_var:a_granularity:longest").eval(emulated)
    assert found == N * max(m, int(ends[8 * 64 :].max()))
