"""Accesses that go another way than through the caches of global memory have tags: images, and tables in constant
memory."""

from __future__ import annotations

import pytest

import perfmodel as pm

N = 64
SOURCE = """
__constant float weights[4] = {0.1f, 0.2f, 0.3f, 0.4f};
__constant sampler_t at = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;

__kernel void k(__read_only image2d_t photo, __write_only image2d_t out, __constant float *given,
                __global const float *a, const int n)
{
    const int x = get_global_id(0), y = get_global_id(1);
    float4 total = 0;
    for (int u = 0; u < 3; u++)
        total += weights[(x + u) % 4] * read_imagef(photo, at, (int2)(x + u, y));
    write_imagef(out, (int2)(x, y), total + given[x % 2] + a[x] * a[y]);
}
"""
ARGUMENTS: dict[str, int | str] = {
    "photo": "image:rgba:unorm8:n:n",
    "out": "image:rgba:float32:n:n",
    "given": 4,
    "a": "n",
}
LOADS, STORES = "f_mem_access_global_load", "f_mem_access_global_store"

# Of each work-item: pixels, numbers of a table of the program, one of a table that is given, two of an array.
COUNTS = {
    f"{LOADS}": 3 + 3 + 1 + 2,
    f"{LOADS}_tag:image": 3,
    f"{LOADS}_tag:constant": 3,
    f"{LOADS}_var:photo": 3,
    f"{LOADS}_var:weights": 3,
    f"{LOADS}_var:given": 1,
    f"{LOADS}_var:given_tag:constant": 0,
    f"{LOADS}_var:a_tag:image": 0,
    f"{STORES}": 1,
    f"{STORES}_tag:image": 1,
    f"{STORES}_tag:constant": 0,
    "f_mem_bytes_global_load_tag:image": 3 * 4,
    "f_mem_bytes_global_store_tag:image": 16,
    "f_mem_bytes_global_load_tag:constant": 3 * 4,
    # Sub-groups are two rows of 16 work-items, at all four places of the table.
    "f_mem_access_global_load_tag:constant_granularity:subgroup": 3 / 32,
    "f_mem_transactions_global_load_block:4_tag:constant": 3 * 4 / 32,
}


@pytest.fixture(scope="module")
def kernel() -> pm.Kernel:
    return pm.Kernel.from_opencl(SOURCE, "k", ("n", "n"), (16, 4), ARGUMENTS, n=N)


@pytest.mark.parametrize("name", COUNTS)
def test_images_and_tables_have_tags(kernel: pm.Kernel, name: str) -> None:
    for form in (kernel, kernel.as_compiled(), kernel.as_emulated()):
        assert pm.feature(name).eval(form) == COUNTS[name] * N * N


@pytest.mark.parametrize(("flags", "mixed"), [("CLK_FILTER_LINEAR", 3), ("CLK_FILTER_NEAREST", 0)])
def test_pixels_that_a_sampler_mixes_are_told(flags: str, mixed: int) -> None:
    source = SOURCE.replace("CLK_FILTER_NEAREST", flags).replace("(int2)(x + u, y)", "(float2)(x + u, y)", 1)
    found = pm.Kernel.from_opencl(source, "k", ("n", "n"), (16, 4), ARGUMENTS, n=N)
    assert pm.feature(f"{LOADS}_tag:filtered").eval(found) == mixed * N * N
    assert pm.feature(f"{LOADS}_tag:image").eval(found) == 3 * N * N
