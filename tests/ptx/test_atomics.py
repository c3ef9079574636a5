"""Atomics of CUDA's threads that meet at one place take a pass each, in shared and in global memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perfmodel import Kernel, feature
from perfmodel.ptx.emulation.atomics import update

N = 256 * 16
HISTOGRAM = Path(__file__).parent / "texts" / "histogram.ptx"
TO_GLOBAL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry bins(.param .u64 keys, .param .u64 out)
{
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [keys];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.s32 %r3, %r2, 256, %r1;
    mul.wide.u32 %rd3, %r3, 4;
    add.u64 %rd4, %rd1, %rd3;
    ld.global.u32 %r4, [%rd4];
    mul.wide.u32 %rd5, %r4, 4;
    add.u64 %rd6, %rd2, %rd5;
    red.global.add.u32 [%rd6], 1;
    red.global.add.u32 [%rd2], %r1;
    ret;
}
"""


@pytest.fixture(name="keys")
def a_few_bins_with_most() -> np.ndarray:
    return (np.random.default_rng(3).random(N) ** 3 * 64).astype(np.int32)


def test_shared_memory_takes_the_most_at_a_bank(keys: np.ndarray) -> None:
    keys_of, out, n = (f"_Z9histogramPKiPii_param_{number}" for number in range(3))
    kernel = Kernel.from_ptx(HISTOGRAM, None, N // 256, 256, {keys_of: N, out: 64}).at(**{n: N})
    met = [np.bincount(own % 32, minlength=32).max() for own in keys.reshape(-1, 32)]
    found = feature("f_mem_transactions_local_atomic_banks:32").eval(kernel.as_observed({keys_of: keys}))
    assert found == pytest.approx(sum(met))


def test_global_memory_takes_the_most_at_a_place_of_each_sector(keys: np.ndarray) -> None:
    kernel = Kernel.from_ptx(TO_GLOBAL, None, N // 256, 256, {"keys": N, "out": 64})
    met = [np.bincount(own, minlength=64).reshape(8, 8).max(axis=1).sum() for own in keys.reshape(-1, 32)]
    found = feature("f_mem_contended_global_atomic_block:512").eval(kernel.as_observed({"keys": keys}))
    assert found == pytest.approx(sum(met) + N / 32)  # what all have for one place is added up first


@pytest.mark.parametrize(("type_", "passes"), [("u32", 1), ("f32", 32), ("u64", 32)])
def test_only_whole_numbers_of_32_bits_are_added_up_first(type_: str, passes: int) -> None:
    text = f""".version 8.0
.target sm_80
.address_size 64
.visible .entry sums(.param .u64 out)
{{
    .reg .b64 %rd<3>;
    .reg .{type_.replace("u", "b")} %x1;
    ld.param.u64 %rd1, [out];
    ld.global.{type_} %x1, [%rd1+64];
    red.global.add.{type_} [%rd1], %x1;
    ret;
}}
"""
    kernel = Kernel.from_ptx(text, None, 4, 128, {"out": 64})
    assert feature("f_mem_contended_global_atomic_block:512").eval(kernel) == 16 * passes
    assert feature("f_mem_transactions_global_atomic_passes:32").eval(kernel) == 16 * passes


@pytest.mark.parametrize("values", [2, 50])
def test_exchanges_go_one_after_the_other(values: int) -> None:
    random = np.random.default_rng(values)
    cells = random.integers(0, values, 5, np.uint32)
    places, expected, new = (random.integers(0, top, 500) for top in (5, values, values))
    wanted, one_by_one = cells.copy(), []
    for place, old, value in zip(places, expected, new, strict=True):
        one_by_one.append(wanted[place])
        wanted[place] = value if wanted[place] == old else wanted[place]
    found = update(cells, places, "cas", expected.astype(np.uint32), new.astype(np.uint32), True)
    np.testing.assert_array_equal(found, one_by_one)
    np.testing.assert_array_equal(cells, wanted)
