"""Instructions are for values, or for indices that addresses and counters take up."""

import pytest

import perfmodel as pm
from perfmodel import Kernel

DECODED = """\
extern "C" __global__ void decoded(const float *x, float *y, long long n) {
    long long q = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    int row = 1;
    while ((long long)row * (row - 1) * (row + 4) / 3 <= q) row++;
    y[q] = x[row];
}"""
STEPPING = """\
extern "C" __global__ void stepping(const float *x, float *y, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int k = 0; k < m; k++) s += x[k * 256 + i];
    y[i] = s;
}"""
CIPHER = """\
extern "C" __global__ void cipher(const unsigned *table, const unsigned *x, unsigned *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = x[i];
    y[i] = table[(v >> 24) & 0x3f] + table[(v >> 9) & 0x3f];
}"""
GATHERED = """\
extern "C" __global__ void gathered(const int *at, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[3 * at[i] + 1];
}"""
RANKED = """\
extern "C" __global__ void ranked(const int *x, int *y, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, own = x[i], place = 0;
    for (int k = 0; k < m; k++) place += x[k] < own ? 1 : 0;
    y[place] = own;
}"""

NONCE = """\
extern "C" __global__ void nonce(unsigned *y, unsigned key) {
    unsigned v = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 64; k++) v = (__funnelshift_l(v, v, 7) ^ key) + k;
    if (v == 0) y[v & 0xff] = 1;
}"""

BORDERED = """\
extern "C" __global__ void bordered(const float *x, float *y, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int k = 0; k < m; k++) if (i + k >= 128 && i + k < n) s += x[k] * x[i + k];
    y[i] = s;
}"""


def count(kernel: Kernel, *kinds: str) -> float:
    return sum(float(pm.feature(f"f_op_{kind}").eval(kernel)) for kind in kinds)


def test_what_a_loop_computes_for_its_condition_alone_is_no_index() -> None:
    kernel = Kernel.from_cuda(DECODED, "decoded", 4, 64, {"x": 64, "y": 256}, n=256)
    assert count(kernel, "int64_mul", "uint64_mul", "int64_madd") > 2 * 256 * 4
    assert count(kernel, "int64_mul_index", "int64_madd_index") == 0


def test_counters_and_steps_of_addresses_are_indices() -> None:
    kernel = Kernel.from_cuda(STEPPING, "stepping", 4, 64, {"x": "256*m", "y": 256}, m=100)
    wholes = [f"{dtype}_{kind}" for dtype in ("int32", "uint32", "int64", "uint64") for kind in ("add", "mul", "madd")]
    assert count(kernel, *wholes) == 0
    assert count(kernel, *(f"{each}_index" for each in wholes)) > 0


def test_bits_of_data_that_look_something_up_are_values() -> None:
    kernel = Kernel.from_cuda(CIPHER, "cipher", 4, 64, {"table": 64, "x": 256, "y": 256})
    bits = ("uint32_shift", "uint32_bitwise", "int32_bitwise", "uint64_bitwise", "int64_bitwise")
    assert count(kernel, *bits) >= 2 * 256


def test_places_in_arrays_that_follow_from_data_are_indices() -> None:
    kernel = Kernel.from_cuda(GATHERED, "gathered", 4, 64, {"at": 256, "x": 1024, "y": 256})
    assert count(kernel, "int32_mul", "int32_madd", "int32_add", "int64_mul", "int32_bitwise", "int32_shift") == 0


def test_comparisons_of_data_and_what_they_add_up_to_are_values_where_that_is_a_place() -> None:
    kernel = Kernel.from_cuda(RANKED, "ranked", 4, 64, {"x": 256, "y": 256}, m=100)
    assert count(kernel, "int32_compare") == 256 * 100
    assert count(kernel, "int32_add", "uint32_add") == 256 * 100 / 2  # one instruction adds two of them


def test_what_turns_bits_round_is_no_index_though_it_ends_in_a_condition_and_an_address() -> None:
    kernel = Kernel.from_cuda(NONCE, "nonce", 4, 64, {"y": 256}, key=3)
    kinds = ("int32_shift", "uint32_shift", "int32_bitwise", "uint32_bitwise", "int32_add", "uint32_add")
    assert count(kernel, *kinds) >= 64 * 2 * 256
    assert count(kernel, *(f"{each}_index" for each in kinds)) <= 8 * 256


def test_comparisons_that_a_loop_makes_beside_its_end_are_no_indices() -> None:
    """Machine code has two for each iteration, and one of the end for four, which PTX writes out."""
    kernel = Kernel.from_cuda(BORDERED, "bordered", 4, 64, {"x": 512, "y": 256}, m=100, n=300)
    assert count(kernel, "int32_compare", "uint32_compare") == pytest.approx((2 + 1 / 4) * 256 * 100, rel=0.05)
