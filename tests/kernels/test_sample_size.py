"""Samples grow until they show the mean of work-groups of which few have nearly all the work."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.kernels.sample_size import large_enough

ITEMS, GROUP, TURNS = 2**18, 256, 400
BUSY = slice(90_000, 110_000)
"""The work-items with much to do, a thirteenth of all."""
OPENCL = """__kernel void rows(__global const int *turns, __global float *out)
{
    const int i = get_global_id(0);
    float s = i;
    for (int k = 0; k < turns[i]; k++) s = s * 0.5f + 1.0f;
    out[i] = s;
}"""
CUDA = """__global__ void rows(const int *turns, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = i;
    for (int k = 0; k < turns[i]; k++) s = s * 0.5f + 1.0f;
    out[i] = s;
}"""


def opencl(turns: np.ndarray) -> pm.Kernel:
    kernel = pm.Kernel.from_opencl(OPENCL, "rows", ITEMS, GROUP, {"turns": ITEMS, "out": ITEMS})
    return kernel.as_compiled().as_countable({"turns": turns})


def cuda(turns: np.ndarray) -> pm.Kernel:
    kernel = pm.Kernel.from_cuda(CUDA, "rows", ITEMS // GROUP, GROUP, {"turns": ITEMS, "out": ITEMS})
    return kernel.as_compiled().as_countable({"turns": turns})


@pytest.mark.parametrize("made", [opencl, cuda])
def test_groups_that_differ_are_sampled_until_their_mean_is_known(made: Callable[[np.ndarray], pm.Kernel]) -> None:
    turns = np.ones(ITEMS, np.int32)
    turns[BUSY] = TURNS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.PerfmodelWarning)
        kernel = made(turns)
    counted = float(pm.feature("f_op_float32_madd").eval(kernel))
    assert counted == pytest.approx(float(turns.sum()), rel=0.15)  # a group of 16 parts: off by up to a half


@pytest.mark.parametrize("made", [opencl, cuda])
def test_a_sample_has_as_many_groups_as_are_asked_for(made: Callable[[np.ndarray], pm.Kernel]) -> None:
    turns = np.ones(ITEMS, np.int32)
    few, many = (
        len(pm.emulate(made(turns), {"turns": turns}, groups="sample", samples=samples).emulated_groups)
        for samples in (16, 64)
    )
    assert 3 * few < many


@pytest.mark.parametrize(
    ("seconds", "can_be_cut", "asked"),
    [(0.001, True, [16]), (0.001, False, [4, 16]), (1.0, True, [16]), (1.0, False, [4])],
)
def test_few_groups_have_to_do_where_they_take_long_and_loops_cannot_be_cut(
    seconds: float, can_be_cut: bool, asked: list[int]
) -> None:
    parts: list[int] = []

    def emulated(samples: int) -> int:
        parts.append(samples)
        return samples

    large_enough("sample", emulated, np.ones, lambda samples: samples * seconds, 1.0, can_be_cut)
    assert parts == asked


@pytest.mark.parametrize(
    ("odd_one", "can_be_cut", "asked"),
    [(2.0, True, [16]), (100.0, True, [16, 64]), (1.0, False, [4, 16]), (100.0, False, [4, 16, 64])],
)
def test_a_mean_in_doubt_is_worth_more_time(odd_one: float, can_be_cut: bool, asked: list[int]) -> None:
    parts: list[int] = []

    def emulated(samples: int) -> int:
        parts.append(samples)
        return samples

    def work(samples: int) -> np.ndarray:
        return np.append(np.ones(samples - 1), odd_one)

    large_enough("sample", emulated, work, lambda samples: samples * 0.025, 1.0, can_be_cut)
    assert parts == asked
