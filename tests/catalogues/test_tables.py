"""Tables in constant memory that data look up, against the bytes and blocks that they have."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm

ITEMS, TURNS, GROUP = 4096, 16, 256
OPENCL = """__constant uint table[{words}] = {{1, 2, 3}};
__constant float weights[25] = {{1}};
__kernel void look(__global const uint *a, __global float *out, const int m)
{{
    const int i = get_global_id(0);
    uint t = a[i];
    float s = 0;
    for (int k = 0; k < m; k++) {{ t = t * 1664525u + table[(t ^ (uint)i * 2654435761u) >> {shift}]; s += weights[k]; }}
    out[i] = t + s;
}}"""
CUDA = """__constant__ unsigned table[{words}];
__constant__ float weights[25];
extern "C" __global__ void look(const unsigned *a, float *out, int m)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned t = a[i];
    float s = 0;
    for (int k = 0; k < m; k++) {{
        t = t * 1664525u + table[(t ^ (unsigned)i * 2654435761u) >> {shift}];
        s += weights[k];
    }}
    out[i] = t + s;
}}"""


def looking(language: str, words: int) -> pm.Kernel:
    """Returns a kernel that looks a table of so many words up all over, and goes through another in order."""
    shift = 32 - words.bit_length() + 1
    if language == "opencl":
        source = OPENCL.format(words=words, shift=shift)
        return pm.Kernel.from_opencl(source, "look", ITEMS, GROUP, {"a": ITEMS, "out": ITEMS}, m=TURNS)
    source = CUDA.format(words=words, shift=shift)
    return pm.Kernel.from_cuda(source, "look", ITEMS // GROUP, GROUP, {"a": ITEMS, "out": ITEMS}, m=TURNS)


@pytest.mark.parametrize("language", ["opencl", "cuda"])
@pytest.mark.parametrize("words", [64, 1024, 4096])
def test_bytes_of_what_data_look_up(language: str, words: int) -> None:
    data = {"a": np.random.default_rng(3).integers(0, 2**32, ITEMS, dtype=np.uint32)}
    kernel = looking(language, words).as_countable(data).as_compiled()
    tables = float(pm.feature("f_mem_tables").eval(kernel))
    assert 0.6 * 4 * words <= tables <= 4 * words  # a group looks 4,096 times, and need not have found all
    lines = float(pm.feature("f_mem_transactions_global_load_block:64_tag:constant").eval(kernel))
    of_table = words * 4 / 64
    at_once = of_table * (1 - (1 - 1 / of_table) ** 32)  # of 32 places, each anywhere
    weights = 1  # all work-items look them up at one place
    assert lines / (ITEMS / 32 * TURNS) - weights == pytest.approx(at_once, rel=0.1, abs=1.01)


def test_tables_that_are_gone_through_in_order_count_nothing() -> None:
    source = OPENCL.format(words=64, shift=26).replace("(t ^ (uint)i * 2654435761u) >> 26", "k")
    kernel = pm.Kernel.from_opencl(source, "look", ITEMS, GROUP, {"a": ITEMS, "out": ITEMS}, m=TURNS)
    assert float(pm.feature("f_mem_tables").eval(kernel.as_compiled())) == 0


WRITTEN_OUT = """__constant__ unsigned table[{words}];
extern "C" __global__ void rounds(const unsigned *a, unsigned *out)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned t = a[i];
    #pragma unroll
    for (int k = 0; k < {turns}; k++)
        t = (t ^ table[t >> {shift}]) * 1664525u + 1013904223u;
    out[i] = t;
}}"""


def test_rounds_that_are_written_out_look_up_as_many_places_as_all_of_them_do_on_average() -> None:
    """The first rounds of a cipher go to few places, as what they encrypt are numbers one after the other."""
    words = 4096
    source = WRITTEN_OUT.format(words=words, shift=32 - words.bit_length() + 1, turns=TURNS)
    kernel = pm.Kernel.from_cuda(source, "rounds", ITEMS // GROUP, GROUP, {"a": ITEMS, "out": ITEMS})
    kernel = kernel.as_countable({"a": np.arange(ITEMS, dtype=np.uint32)})
    name = "f_mem_transactions_global_load_block:64_tag:constant"
    lines = float(pm.feature(name).eval(kernel)) / (ITEMS / 32 * TURNS)
    of_table = words * 4 / 64
    all_over = of_table * (1 - (1 - 1 / of_table) ** 32)
    assert 0.75 * all_over < lines < all_over
    assert 0.6 * 4 * words <= float(pm.feature("f_mem_tables").eval(kernel)) <= 4 * words
