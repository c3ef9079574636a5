"""Stores of many blocks to one place contend for it, also where data say which place it is."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel import Kernel, feature

BLOCKS, THREADS = 4096, 128
COMPACTED = """\
extern "C" __global__ void compacted(const int *x, int *out, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int is_kept = x[i] > 0;
    unsigned kept = __ballot_sync(0xffffffff, is_kept);
    int place = __popc(kept & ((1u << (threadIdx.x % 32)) - 1)) + threadIdx.x / 32 * 32;
    if (is_kept) out[blockIdx.x * offset + place] = i;
}"""


@pytest.mark.parametrize(
    ("offset", "least", "most"), [(0, 0.3, 0.4), (THREADS, 0.0, 0.02)]
)  # of two parts of 256 bytes, each store for two thirds of an update's time
def test_stores_of_all_blocks_to_one_place_contend(offset: int, least: float, most: float) -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    n = BLOCKS * THREADS
    x = np.random.default_rng(1).integers(-1, 2, n).astype(np.int32)
    kernel = Kernel.from_cuda(COMPACTED, "compacted", BLOCKS, THREADS, {"x": n, "out": n}, offset=offset)
    observed = kernel.as_observed({"x": x})
    contended = feature("f_mem_contended_global_store_block:512").eval(observed)
    stored = feature("f_mem_transactions_global_store_block:32").eval(observed)
    assert least <= contended / stored <= most


FLAGS = """\
__device__ unsigned variable;
extern "C" __global__ void flags(const unsigned *words, unsigned *array, int times) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < times; k++)
        if (words[(i + 1024 * k) % (BLOCKS * THREADS)]) WHICH = k;
}""".replace("BLOCKS", str(BLOCKS)).replace("THREADS", str(THREADS))


def stores_to_one(part: float, which: str, times: int = 1) -> float:
    """Returns how many stores of a sub-group contend for one number, of which a part of the words decide."""
    n = BLOCKS * THREADS
    words = (np.random.default_rng(1).random(n) < part).astype(np.uint32)
    text, arrays = FLAGS.replace("WHICH", which), {"words": n, "array": 1}
    kernel = Kernel.from_cuda(text, "flags", BLOCKS, THREADS, arrays, times=times)
    return feature("f_mem_contended_global_store_block:512").eval(kernel.as_observed({"words": words}))


def test_flags_are_stored_as_often_as_sub_groups_have_one_and_in_less_time_where_most_do() -> None:
    """A sub-group takes a place for about 0.9 ns alone, and 0.5 ns where all store once (`benchmarks.updates`)."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    few, all_ = stores_to_one(0.002, "*array"), stores_to_one(1.0, "*array")
    subgroups = BLOCKS * THREADS / 32
    assert all_ / subgroups == pytest.approx(0.5 / 0.737, rel=0.1)
    assert few / (subgroups * (1 - 0.998**32)) == pytest.approx(0.9 / 0.737, rel=0.3)
    assert stores_to_one(1.0, "variable") == all_
    assert stores_to_one(1.0, "*array", times=30) / (30 * subgroups) == pytest.approx(0.9 / 0.737, rel=0.1)


@pytest.mark.parametrize(("number", "n_bytes"), [("float", 4), ("double", 8), ("short", 2)])
def test_variables_of_the_program_are_memory_as_arrays_are(number: str, n_bytes: int) -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    n = BLOCKS * THREADS
    text = f"""__device__ {number} variable[{n}];
    extern "C" __global__ void scaled({number} *array) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        WHICH[i] = WHICH[i] * 2 + 1;
    }}"""
    found = []
    for which in ("array", "variable"):
        kernel = Kernel.from_cuda(text.replace("WHICH", which), "scaled", BLOCKS, THREADS, {"array": n})
        names = ("f_mem_footprint_global_load_block:64", "f_mem_footprint_global_store", "f_mem_footprint_global")
        found.append([feature(name).eval(kernel) for name in names])
    assert found[0] == found[1]
    assert found[0][0] == n * n_bytes


NODES, MEAN_LENGTH = 2**18, 12
PUSHED = """\
extern "C" __global__ void pushed(const int *rows, const int *columns, unsigned *sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int e = rows[i]; e < rows[i + 1]; e++) UPDATE
}"""
BY_COMPARISON = """{
    unsigned before = sums[columns[e]], found;
    while ((found = atomicCAS(&sums[columns[e]], before, before + 7)) != before) before = found;
}"""


@pytest.mark.parametrize(
    ("update", "name"),
    [
        ("atomicAdd(&sums[columns[e]], 7u);", "f_mem_contended_global_atomic_block:512"),
        (BY_COMPARISON, "f_mem_contended_global_atomic_block:512"),
        (BY_COMPARISON, "f_mem_retries_global"),
    ],
)
def test_updates_along_rows_contend_as_often_as_their_columns_say(update: str, name: str) -> None:
    """Rows begin with the nodes that most rows have, so that the first iterations say nothing of the others."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    random = np.random.default_rng(2)
    lengths = random.geometric(1 / MEAN_LENGTH, NODES)
    rows = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    popular = random.random(rows[-1]) < 0.1
    columns = np.where(popular, NODES * random.random(rows[-1]) ** 6, random.integers(0, NODES, rows[-1]))
    columns = np.concatenate([np.sort(row) for row in np.split(columns.astype(np.int32), rows[1:-1])])
    kernel = Kernel.from_cuda(
        PUSHED.replace("UPDATE", update),
        "pushed",
        NODES // THREADS,
        THREADS,
        {"rows": NODES + 1, "columns": len(columns), "sums": NODES},
    )
    observed = kernel.as_observed({"rows": rows, "columns": columns})
    if name == "f_mem_retries_global":
        expected, whole = np.bincount(columns).max(), 1.0
    else:
        expected = np.bincount(columns // 128).max() / len(columns)
        whole = feature("f_mem_transactions_global_atomic_passes:32").eval(observed)
    assert feature(name).eval(observed) / whole == pytest.approx(expected, rel=0.5)
