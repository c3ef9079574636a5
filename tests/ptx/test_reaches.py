"""Places near work-items' own ones are not taken to lie anywhere, nor to be the few that a sample shows."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

SIDE = 2048
SOURCE = """
extern "C" __global__ void near(const float *a, float *out)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned own = (y * SIDE + x) * 2654435761u;
    own ^= own >> 15;
    out[y * SIDE + x] = a[min(y + (int)(own / 3 % 3), SIDE - 1) * SIDE + min(x + (int)(own % 3), SIDE - 1)];
}
""".replace("SIDE", str(SIDE))


def test_the_sectors_of_neighbours_places_are_those_of_the_array() -> None:
    near = pm.Kernel.from_cuda(
        SOURCE, "near", (SIDE // 16, SIDE // 16), (16, 16), {"a": SIDE * SIDE, "out": SIDE * SIDE}
    )
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.uint32)
    own = (y * np.uint32(SIDE) + x) * np.uint32(2654435761)
    own ^= own >> np.uint32(15)
    places = np.minimum(y + own // 3 % 3, SIDE - 1).astype(np.int64) * SIDE + np.minimum(x + own % 3, SIDE - 1)
    touched = 32 * len(np.unique(places // 8))
    of_groups = (x // 16 + y // 16 * (SIDE // 16)).astype(np.int64) * SIDE * SIDE + places // 8
    each = 32 * len(np.unique(of_groups))
    assert float(pm.feature("f_mem_footprint_global_load_block:32").eval(near)) == pytest.approx(touched, rel=0.05)
    found = float(pm.feature("f_mem_footprint_global_load_granularity:workgroup_block:32").eval(near))
    assert found == pytest.approx(each, rel=0.05)
    assert float(pm.feature("f_mem_scattered_global_load_missed_keeps:50000000_block:32").eval(near)) == 0


PLANES = """
extern "C" __global__ void colours(const int *at, const float *table, float *out, int plane)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 8; k++) {
        const int place = at[8 * i + k];
        sum += table[place] + table[place + plane] + table[place + 2 * plane];
    }
    out[i] = sum;
}
"""


def test_planes_of_a_table_are_looked_up_beside_each_other() -> None:
    """Work-groups share what caches keep of a table only if all of its planes find room."""
    items, plane = 2**16, 40_000
    at = np.random.default_rng(3).integers(0, plane, 8 * items).astype(np.int32)
    arrays = {"at": 8 * items, "table": 3 * plane, "out": items}
    kernel = pm.Kernel.from_cuda(PLANES, "colours", items // 256, 256, arrays, plane=plane).as_countable({"at": at})
    of_groups = at.reshape(-1, 8 * 256)
    sectors = [np.unique(places[:, None] + plane * np.arange(3) >> 3).size for places in of_groups[:16]]
    wanted = 32 * float(np.mean(sectors)) * len(of_groups)
    loaded = "f_mem_footprint_global_load_var:table_granularity:workgroup_block:32_beyond:{}"
    for kept, expected in ((200_000, wanted), (600_000, 0)):
        found = pm.feature(loaded.format(kept)).eval(kernel.as_compiled())
        assert float(found) == pytest.approx(expected, rel=0.1)
