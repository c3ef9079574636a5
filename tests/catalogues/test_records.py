"""Fields of a record share its blocks, wherever it lies; work-groups that walk through an array meet where they are."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm

ITEMS, RECORDS = 2**16, 2**22
SCATTERED = "f_mem_scattered_global_load_missed_keeps:50000000_block:32_reach:>8000000"
LOADED = "f_mem_footprint_global_load_granularity:workgroup_block:32"
FIELDS = """
__global__ void fields(const TYPE *a, float *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, h = i * 2654435761u;
    const TYPE *p = a + (size_t)((h ^ (h >> 15)) & (RECORDS - 1)) * PARTS;
    float s = 0;
    for (int j = 0; j < PARTS; j++) s += SUM;
    out[i] = s;
}
"""
WALK = """
__kernel void walk(__global int *rows, __global int *columns)
{
    atomic_add(&rows[get_group_id(1)], 1);
    atomic_add(&columns[get_group_id(0)], 1);
}
"""


def fields(type_: str, parts: int) -> pm.Kernel:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    parts_of = {"float": "p[j]", "float4": "p[j].x + p[j].y + p[j].z + p[j].w"}[type_]
    text = FIELDS.replace("TYPE", type_).replace("RECORDS", str(RECORDS)).replace("PARTS", str(parts))
    return pm.Kernel.from_cuda(
        text.replace("SUM", parts_of), "fields", ITEMS // 256, 256, {"a": RECORDS * parts, "out": ITEMS}
    )


@pytest.mark.parametrize(
    ("type_", "parts", "sectors"),
    [("float", 2, 1), ("float", 8, 1), ("float", 16, 2), ("float4", 1, 1), ("float4", 4, 2)],
)
def test_fields_of_a_record_share_its_sectors(type_: str, parts: int, sectors: int) -> None:
    alone, kernel = fields("float", 1), fields(type_, parts)
    assert pm.feature(LOADED).eval(kernel) == pytest.approx(sectors * pm.feature(LOADED).eval(alone))
    wanted = sectors * pm.feature(SCATTERED).eval(alone)
    assert pm.feature(SCATTERED).eval(kernel) == pytest.approx(wanted, rel=0.1)


ROWS = """
__global__ void rows(float4 *a, float *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, h = i / N * 2654435761u;
    float4 *p = a + (size_t)((h ^ (h >> 15)) & (ROWS - 1)) * N + i % N;
    ACCESS
}
"""
ROW_ACCESSES = {"load": "float4 x = *p; out[i] = x.x + x.y + x.z + x.w;", "store": "*p = make_float4(i, i, i, i);"}


@pytest.mark.parametrize("direction", ROW_ACCESSES)
@pytest.mark.parametrize(("together", "part"), [(1, 1.0), (2, 1.0), (4, 1 / 3), (8, 0.0), (16, 0.0)])
def test_rows_leave_out_what_lines_have_beside_them(direction: str, together: int, part: float) -> None:
    """A sector that is alone in its line leaves out three others, half a line one for each, a whole line none."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    text = ROWS.replace("ACCESS", ROW_ACCESSES[direction]).replace("N", str(together))
    rows = 4 * RECORDS // together
    text = text.replace("ROWS", str(rows))
    kernel = pm.Kernel.from_cuda(text, "rows", ITEMS // 256, 256, {"a": rows * together, "out": ITEMS})
    name = f"f_mem_scattered_global_{direction}_missed_block:32"
    sectors = ITEMS * max(16, 32 // together)  # neighbours that share one are at the same place
    assert pm.feature(name).eval(kernel) == pytest.approx(sectors, rel=0.02)
    gaps = pm.feature(f"{name}_gaps").eval(kernel)
    assert gaps == pytest.approx(part * sectors, rel=0.02, abs=1)
    whole = pm.feature(f"{name}_gaps_whole").eval(kernel)
    assert whole == (0 if together == 1 else gaps)


@pytest.mark.parametrize("times", [4, 64, 1000])
def test_sums_in_memory_are_stored_again_and_again(times: int) -> None:
    """Only what is stored first is fresh, whether a compiler writes the loop out or not."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    text = """__global__ void sums(float *a, const float *b)
    {
        const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        for (int k = 0; k < TIMES; k++) a[i * 4] += b[k];
    }""".replace("TIMES", str(times))
    kernel = pm.Kernel.from_cuda(text, "sums", ITEMS // 256, 256, {"a": 4 * ITEMS, "b": times})
    sectors = pm.feature("f_mem_transactions_global_store_block:32").eval(kernel)
    assert sectors == pytest.approx(times * ITEMS / 2)
    fresh = pm.feature("f_mem_transactions_global_store_block:32_fresh").eval(kernel)
    assert fresh <= sectors / min(times, 50)


def test_atomics_that_work_groups_walk_with() -> None:
    """Groups of a row begin one after the other: they come to a place of `rows` together, and through `columns` again
    and again."""
    kernel = pm.Kernel.from_opencl(WALK, "walk", (4096, 512), (64, 1), {"rows": 512, "columns": 64})
    walked = pm.feature("f_mem_contended_global_atomic_block:512_walked").eval(kernel)
    in_rows = 64 * 2 * 128  # groups of a row, sub-groups that each update once, and places of 512 bytes
    assert walked == in_rows
    assert pm.feature("f_mem_contended_global_atomic_block:512").eval(kernel) == 512 * 64 * 2
    single = pm.Kernel.from_opencl(WALK, "walk", (4096, 1), (64, 1), {"rows": 1, "columns": 64})
    assert pm.feature("f_mem_contended_global_atomic_block:512_walked").eval(single) == 64 * 2


@pytest.mark.parametrize("part", [0.25, 0.5, 1.0])
def test_passes_of_atomics_that_a_part_of_the_work_items_makes(part: float) -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    source = """__global__ void sums(const int *x, float *out) {
      __shared__ float own;
      if (threadIdx.x == 0) own = 0;
      __syncthreads();
      if (x[blockIdx.x * 256 + threadIdx.x] == 0) atomicAdd(&own, 1.0f);
      __syncthreads();
      if (threadIdx.x == 0) out[blockIdx.x] = own;
    }"""
    x = (np.random.default_rng(3).random(ITEMS) >= part).astype(np.int32)
    kernel = pm.Kernel.from_cuda(source, "sums", ITEMS // 256, 256, {"x": ITEMS, "out": ITEMS // 256})
    passes = pm.feature("f_mem_transactions_local_atomic_banks:32")
    every = passes.eval(kernel.as_observed({"x": np.zeros_like(x)}))
    assert passes.eval(kernel.as_observed({"x": x})) == pytest.approx(part * every, rel=0.1)
