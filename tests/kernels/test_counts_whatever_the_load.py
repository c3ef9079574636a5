"""Counts are the same however busy the machine is: how much is looked at follows from work, never from time."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import perfmodel as pm

ITEMS, GROUP = 2**16, 64
BUSY = slice(20_000, 26_000)
"""The work-items with much to do."""
LONGEST = 3000
OPENCL = """__kernel void rows(__global const int *begin, __global const float *x, __global float *out)
{
    const int i = get_global_id(0);
    float s = 0;
    for (int k = begin[i]; k < begin[i + 1]; k++) s += x[k] * 0.5f;
    out[i] = s;
}"""
CUDA = """__global__ void rows(const int *begin, const float *x, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int k = begin[i]; k < begin[i + 1]; k++) s += x[k] * 0.5f;
    out[i] = s;
}"""
FEATURES = (
    "f_op_float32_madd",
    "f_mem_access_global_load",
    "f_mem_rounds_global_granularity:longest",
    "f_mem_footprint_global_load_block:64",
)


def opencl(begin: np.ndarray) -> pm.Kernel:
    return pm.Kernel.from_opencl(OPENCL, "rows", ITEMS, GROUP, sizes(begin)).as_compiled().as_observed({"begin": begin})


def cuda(begin: np.ndarray) -> pm.Kernel:
    return pm.Kernel.from_cuda(CUDA, "rows", ITEMS // GROUP, GROUP, sizes(begin)).as_observed({"begin": begin})


def sizes(begin: np.ndarray) -> dict[str, int]:
    return {"begin": ITEMS + 1, "x": int(begin[-1]), "out": ITEMS}


def uneven_rows() -> np.ndarray:
    """Rows of which a tenth have nearly all the work, so that a small sample does not know it."""
    lengths = np.ones(ITEMS, np.int64)
    lengths[BUSY] = 200
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def one_long_row() -> np.ndarray:
    """Rows of which a sample does not meet the longest."""
    lengths = np.full(ITEMS, 4)
    lengths[41234] = LONGEST
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def counted(made: Callable[[np.ndarray], pm.Kernel], begin: np.ndarray) -> list[float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.PerfmodelWarning)
        kernel = made(begin)
        return [float(pm.feature(name).eval(kernel)) for name in FEATURES]


@pytest.mark.parametrize(("made", "rows"), [(opencl, uneven_rows), (cuda, uneven_rows), (cuda, one_long_row)])
def test_a_machine_that_seems_to_be_slow_counts_the_same(
    made: Callable[[np.ndarray], pm.Kernel], rows: Callable[[], np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = rows()
    usual = counted(made, begin)
    ticks = itertools.count(0, 10)  # ten seconds go by whenever somebody looks at a clock
    for clock in ("perf_counter", "monotonic", "process_time", "thread_time"):
        monkeypatch.setattr(time, clock, lambda: float(next(ticks)))
    assert counted(made, begin) == usual


def test_a_budget_is_work_at_a_nominal_speed() -> None:
    """A small budget leaves a small sample, and so other counts than a large one, each time the same ones."""
    begin = uneven_rows()

    def within(budget: float) -> list[float]:
        return counted(lambda rows: cuda(rows).with_budget(budget), begin)

    small, exact = within(0.001), float(begin[-1])
    assert within(0.001) == small
    assert abs(within(4)[0] - exact) < abs(small[0] - exact)
