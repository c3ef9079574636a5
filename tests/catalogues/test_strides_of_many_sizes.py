"""Blocks and fresh rounds over arrays of strides, against addresses that are written out one by one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import perfmodel as pm
from perfmodel.vocabulary.named_features import evaluate_all

SIDE, SUBGROUP, SECTOR, ITERATIONS = 16, 32, 32, 33
WALK = f"""__kernel void walk(__global float *out, __global const float *a, const int s, const int t, const int u)
{{
    float sum = 0;
    for (int k = 0; k < {ITERATIONS}; k++) sum += a[s * get_local_id(0) + t * get_local_id(1) + u * k];
    out[get_global_id(0) + {SIDE} * get_global_id(1)] = sum;
}}"""
BLOCKS = "f_mem_transactions_global_load_block:32"
ROUNDS, FRESH = "f_mem_rounds_global", "f_mem_rounds_global_fresh"


def test_strides_count_as_their_addresses_do() -> None:
    """Steps that lie within what others reach, that meet each other, and that lead far beyond all of them."""
    random = np.random.default_rng(3)
    near = random.choice([0, 1, 2, 7, 8, 15, 16, 17, 64, 128, 500, 512, 528], (400, 3))
    strides = near + 8 * random.choice([0, 0, 1, 3, 64, 1000, 4096], near.shape)
    sizes = dict(zip("stu", strides.T, strict=True))
    extents = {"a": f"{SIDE} * (s + t) + {ITERATIONS} * u + 1", "out": str(SIDE**2)}
    kernel = pm.Kernel.from_opencl(WALK, "walk", (SIDE, SIDE), (SIDE, SIDE), extents)
    found = evaluate_all({name: pm.feature(name) for name in (BLOCKS, ROUNDS, FRESH)}, kernel, kernel.bind(sizes))
    sectors = [sectors_of(*each) for each in strides.tolist()]
    assert found[BLOCKS].tolist() == [ITERATIONS * sum(len(set(row)) for row in each[0].tolist()) for each in sectors]
    assert (found[FRESH] / found[ROUNDS]).tolist() == [fresh_part(each) for each in sectors]


def sectors_of(s: int, t: int, u: int) -> NDArray[np.int64]:
    """Returns the sectors of each iteration (axis 0), sub-group and work-item."""
    k, y, x = np.ogrid[:ITERATIONS, :SIDE, :SIDE]
    sectors: NDArray[np.int64] = (4 * (s * x + t * y + u * k) // SECTOR).reshape(ITERATIONS, -1, SUBGROUP)
    return sectors


def fresh_part(sectors: NDArray[np.int64]) -> float:
    steps = [
        not set(after) <= set(before)
        for iteration in range(1, ITERATIONS)
        for before, after in zip(sectors[iteration - 1].tolist(), sectors[iteration].tolist(), strict=True)
    ]
    return sum(steps) / len(steps)
