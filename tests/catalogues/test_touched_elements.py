"""Footprints of elements that data place, against the blocks that numpy counts."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm

SOURCE = """__kernel void f(__global const int *at, __global float *y)
{
    y[at[get_global_id(0)]] = 1.0f;
}
"""
ITEMS, GROUP = 65536, 256


@pytest.mark.parametrize("block", [1, 2, 4, 32])
def test_elements_that_data_place_are_touched_as_a_whole(block: int) -> None:
    at = np.random.default_rng(1).permutation(ITEMS).astype(np.int32)
    kernel = pm.Kernel.from_opencl(SOURCE, "f", ITEMS, GROUP, {"at": ITEMS, "y": ITEMS}).as_countable({"at": at})
    found = pm.feature(f"f_mem_footprint_global_store_granularity:workgroup_block:{block}").eval(kernel)
    parts = np.arange(4) if block < 4 else np.zeros(1, int)
    touched = (4 * at.reshape(-1, GROUP, 1) + parts) // block
    assert found == pytest.approx(sum(len(np.unique(group)) for group in touched) * block, rel=0.02)


WINDOWS = """__kernel void f(__read_only image2d_t from, __global float *y, int step)
{
    const sampler_t near = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
    const int2 at = (int2)(get_global_id(0), get_global_id(1));
    float sum = 0;
    for (int u = -3; u <= 3; u++)
        for (int v = -3; v <= 3; v++)
            for (int du = -1; du <= 1; du++)
                for (int dv = -1; dv <= 1; dv++)
                    sum += read_imagef(from, near, at + (int2)(u * step + du, v * step + dv)).x;
    y[at.y * get_global_size(0) + at.x] = sum;
}
"""


@pytest.mark.parametrize("granularity", ["", "_granularity:workgroup"])
def test_no_more_is_touched_of_an_image_than_it_has(granularity: str) -> None:
    n, group = 256, 16
    given: dict[str, int | str] = {"from": f"image:r:uint8:{n}:{n}", "y": n * n}
    kernel = pm.Kernel.from_opencl(WINDOWS, "f", (n, n), (group, group), given, step=1).as_compiled()
    found = pm.feature(f"f_mem_footprint_global_load_var:from{granularity}_block:32").eval(kernel)
    assert found <= n * n * (1 if not granularity else (n // group) ** 2)


RECORDS = """typedef struct { float a[10]; float2 b; float c[6]; } record;

__kernel void f(__global record *r, int width)
{
    const int x = get_global_id(0), y = get_global_id(1);
    const int left = max(x - 1, 0), right = min(x + 1, width - 1);
    r[y * width + x].b = (float2)(r[y * width + left].a[3], r[y * width + right].a[3]);
}
"""


@pytest.mark.parametrize("block", [32, 64, 128])
def test_stores_to_a_field_of_records_touch_its_blocks_whatever_else_is_loaded(block: int) -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="needs the extra nvidia")
    side, item = 512, 72
    kernel = pm.Kernel.from_opencl(RECORDS, "f", (side, side), (16, 16), {"r": side * side}, width=side)
    found = pm.feature(f"f_mem_footprint_global_store_block:{block}").eval(kernel.as_machine_code().as_compiled())
    touched = np.unique((item * np.arange(side * side)[:, None] + [40, 47]) // block)
    assert found == pytest.approx(len(touched) * block, rel=0.3 if block == 64 else 0.1)
