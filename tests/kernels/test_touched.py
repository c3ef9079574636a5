"""Emulated work-groups touch what numpy says of the same addresses."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import perfmodel as pm
from perfmodel.kernels.array_contents import said_of_array

GATHER = """__kernel void gather(__global const float *x, __global const int *index, __global float *out, const int n)
{
    const int i = get_global_id(0);
    out[i] = x[index[i]];
}"""
N, LOCAL, LARGE = 1024, 64, 1 << 16  # 16 groups, all of which are looked at


def gather() -> pm.Kernel:
    return pm.Kernel.from_opencl(GATHER, "gather", "n", LOCAL, {"x": LARGE, "index": "n", "out": "n"}, n=N)


def blocks_of(places: NDArray[Any], size: int, together: int) -> int:
    """Returns the number of distinct blocks in each row of so many places, added up."""
    return sum(len(np.unique(row * 4 // size)) for row in places.reshape(-1, together))


ORDERS: dict[str, Callable[[np.random.Generator], NDArray[Any]]] = {
    "sorted": lambda random: np.sort(random.integers(0, LARGE, N)),
    "near": lambda random: np.arange(N) + random.integers(0, 8, N),
    "anywhere": lambda random: random.integers(0, LARGE, N),
    "one": lambda random: np.full(N, 7),
}


@pytest.mark.parametrize("order", ORDERS)
def test_gathers_touch_what_their_indices_say(order: str) -> None:
    index = ORDERS[order](np.random.default_rng(1)).astype(np.int32)
    kernel = gather().as_countable({"index": index})
    for size in (32, 128):
        found = pm.feature(f"f_mem_transactions_global_load_var:x_block:{size}").eval(kernel)
        assert found == pytest.approx(blocks_of(index, size, 32))
    of_groups = pm.feature("f_mem_footprint_global_load_var:x_granularity:workgroup_block:32").eval(kernel)
    assert of_groups == pytest.approx(32 * blocks_of(index, 32, LOCAL))


@pytest.mark.parametrize("form", ["as_opencl", "as_machine_code"])
def test_words_say_between_which_numbers_indices_lie(form: str) -> None:
    if form == "as_machine_code":
        pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    for most, expected in ((8, N / 32), (LARGE, N)):
        kernel = gather().as_countable({"index": said_of_array("index", f"random:int32:{N}:0:{most}")})
        found = pm.feature("f_mem_transactions_global_load_var:x_block:32").eval(getattr(kernel, form)())
        assert found == pytest.approx(expected, rel=0.02)


def test_without_their_contents_indices_may_be_anywhere() -> None:
    kernel = gather()
    assert kernel.as_countable() is kernel
    assert kernel.as_countable({"x": np.zeros(LARGE, np.float32)}).counts_for(32).unknown_addresses
    found = pm.feature("f_mem_transactions_global_load_var:x_block:32").eval(kernel)
    assert found == pytest.approx(N, rel=0.01)  # a block of its own for each


def test_places_that_ids_decide_are_looked_at_by_themselves() -> None:
    source = """__kernel void twisted(__global const float *x, __global float *out, const int n)
    {
        int i = get_global_id(0), at = i;
        if (i % 3 == 1) at = i ^ 5;
        if (i % 3 == 2) at = (i * i) & 1023;
        out[i] = x[at];
    }"""
    kernel = pm.Kernel.from_opencl(source, "twisted", "n", LOCAL, {"x": "n + 8", "out": "n"}, n=N)
    i = np.arange(N)
    at = np.choose(i % 3, [i, i ^ 5, (i * i) & 1023])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pm.feature("f_mem_transactions_global_load_var:x_block:32").eval(kernel)
    assert found == pytest.approx(blocks_of(at, 32, 32))
    assert pm.feature("f_mem_transactions_global_load_var:x_block:32").eval(kernel.as_compiled()) == found


def test_clamped_places_have_the_strides_of_the_inside() -> None:
    source = """__kernel void border(__global const float *x, __global float *out, const int n)
    {
        const int i = get_global_id(0);
        int left = i - 1;
        if (left < 0) left = 0;
        int right = i + 1;
        if (right > n - 1) right = n - 1;
        out[i] = x[left] + x[right];
    }"""
    kernel = pm.Kernel.from_opencl(source, "border", "n", LOCAL, {"x": "n", "out": "n"}, assumptions="n % 64 == 0")
    loads = [access for access in kernel.counts.accesses if access.variable == "x"]
    assert len(loads) == 2
    for access in loads:
        stride = access.local_strides[0]
        assert stride is not None
        assert float(stride({"n": np.asarray(N)})) == 1
    sizes = np.array([N, 2**20])
    found = pm.feature("f_mem_transactions_global_load_var:x_block:128")
    assert [found.eval(kernel.at(n=int(n))) for n in sizes] == [2 * n / 32 for n in sizes]


def test_constant_tables_are_known_without_data() -> None:
    source = """__constant int steps[4] = {0, 64, 128, 192};
    __kernel void shifted(__global const float *x, __global float *out, const int n)
    {
        const int i = get_global_id(0);
        float total = 0;
        for (int k = 0; k < 4; k++) total += x[i + steps[(k * k) & 3]];
        out[i] = total;
    }"""
    kernel = pm.Kernel.from_opencl(source, "shifted", "n", LOCAL, {"x": "n + 192", "out": "n"}, n=N)
    found = pm.feature("f_mem_transactions_global_load_var:x_block:32").eval(kernel)
    assert found == pytest.approx(4 * N / 8)


def test_observed_kernels_keep_what_was_touched_when_pickled() -> None:
    import pickle

    index = np.arange(N, dtype=np.int32)[::-1].copy()
    kernel = gather().as_countable({"index": index})
    again = pickle.loads(pickle.dumps(kernel))
    name = "f_mem_transactions_global_load_var:x_block:32"
    assert pm.feature(name).eval(again) == pm.feature(name).eval(kernel) == pytest.approx(N / 8)
