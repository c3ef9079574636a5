"""Sub-groups of a work-group that store to the same sectors at once are told from those that store to others."""

from __future__ import annotations

import pytest

import perfmodel as pm

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

SIDE = 512
SOURCE = """
extern "C" __global__ void turned(float *out)
{
    const int y = blockIdx.x * blockDim.x + threadIdx.x, x = blockIdx.y * blockDim.y + threadIdx.y;
    out[PLACE] = x;
}
"""


@pytest.mark.parametrize("place", ["y * SIDE + x", "x * SIDE + y", "(y * SIDE + x) * 2"])
@pytest.mark.parametrize("group", [(16, 16), (8, 8), (32, 2), (1, 64)])
def test_sectors_of_a_work_group_are_counted_once(place: str, group: tuple[int, int]) -> None:
    text = SOURCE.replace("PLACE", place).replace("SIDE", str(SIDE))
    grid = SIDE // group[0], SIDE // group[1]
    kernel = pm.Kernel.from_cuda(text, "turned", grid, group, {"out": 2 * SIDE * SIDE})
    expected = {"": 0, "_joint": 0}
    lanes = [(number % group[0], number // group[0]) for number in range(group[0] * group[1])]
    places = [eval(place, {"y": y, "x": x, "SIDE": SIDE}) * 4 // 32 for y, x in lanes]
    expected["_joint"] = len(set(places)) * grid[0] * grid[1]
    of_subgroups = [set(places[start : start + 32]) for start in range(0, len(places), 32)]
    expected[""] = sum(map(len, of_subgroups)) * grid[0] * grid[1]
    for word, wanted in expected.items():
        found = pm.feature(f"f_mem_transactions_global_store_block:32{word}").eval(kernel)
        assert float(found) == pytest.approx(wanted, rel=0.01)
