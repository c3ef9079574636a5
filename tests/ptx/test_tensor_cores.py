"""Products of matrices by tensor cores, and floats that numpy lacks, are what numpy computes."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel import emulate
from perfmodel.vocabulary.named_features import feature
from tests.ptx.stored_kernels import load
from tests.ptx.tensor_cases import CASES, PATH


@pytest.mark.parametrize("title", CASES)
def test_results_are_those_of_numpy(title: str) -> None:
    case = CASES[title]
    found = emulate(load(PATH, title), case.arrays, groups="all")
    for name, wanted in case.wanted().items():
        values = found.array(name).reshape(wanted.shape).astype(float)
        np.testing.assert_allclose(values, wanted, rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize(
    ("title", "name", "count"),
    [
        ("wmma f16 32x8x16 float cr", "f_op_float16_mma", 128 * 16 * 32),
        ("wmma bf16 16x16x16 float rc", "f_op_bfloat16_mma", 64 * 32 * 32),
        ("wmma tf32 16x16x8 float rc", "f_op_tfloat32_mma", 64 * 32 * 16),
        ("wmma s8 16x16x16 int rc", "f_op_int8_mma", 64 * 32 * 32),
        ("wmma f64 8x8x4 double rc", "f_op_float64_mma", 32 * 16 * 8),
        ("wmma f64 8x8x4 double rc", "f_op_float64_mma_carried", 8 * 32 * 2),
        ("mma halves", "f_op_float16_mma", 16 * 8 * 8),
        ("ldmatrix", "f_mem_bytes_local_load", 2 * 512),
        ("bulk copies", "f_mem_bytes_global_load", 2 * 3 * 256),
        ("bulk copies", "f_mem_bytes_global_store", 2 * 3 * 256),
        ("bulk copies", "f_mem_footprint_global_load", 2 * 3 * 256),
        ("bulk copies", "f_mem_transactions_global_load_block:32", 2 * 3 * 8),
        ("bfloat16", "f_op_bfloat16_madd", 128),
    ],
)
def test_counts_are_those_of_the_algorithm(title: str, name: str, count: float) -> None:
    assert feature(name).eval(load(PATH, title)) == count
