"""A warp that runs alone takes the cycles for a trip through a loop that an H200 took (`benchmarks.warps_alone`)."""

from __future__ import annotations

import pytest

import perfmodel as pm
from benchmarks.warps_alone import BLOCKS, kernel_of
from perfmodel.sass.toolchain import is_installed

pytestmark = pytest.mark.skipif(not is_installed(), reason="NVIDIA's assembler and disassembler are not installed")

WARP = 32
MEASURED = {
    "16 in a chain": 71,
    "64 in four chains": 77,
    "one of two ways": 102,
    "four branches, not taken": 133,
    "four conditions on a chain": 62,
    "a call": 86,
    "calls in turn": 214,
    "int / int": 167,
    "long / long": 356,
    "float / float": 71,
    "logf": 97,
    "exp of doubles": 172,
    "log of doubles": 308,
    "counts of bits": 115,
    "shared memory": 130,
    "shuffles": 122,
    "barriers": 38,
}


@pytest.mark.parametrize("name", MEASURED)
def test_a_warp_alone_takes_the_cycles_that_an_h200_took(name: str) -> None:
    trips, kernel = kernel_of(name, WARP)
    operations = float(pm.feature("f_issue_alone").eval(kernel.as_compiled()))
    assert 4 * operations / (BLOCKS * WARP) / trips == pytest.approx(MEASURED[name], rel=0.08)


def test_code_beyond_what_is_kept_near_the_schedulers_is_fetched() -> None:
    """Four warps of each of the four schedulers took 25,600 cycles for a trip through 64 KB of multiply-adds."""
    trips, kernel = kernel_of("4,096 in four chains", 16 * WARP)
    cycles = float(pm.feature("f_issue_slots").eval(kernel.as_compiled())) / (4 * BLOCKS * trips)
    assert cycles == pytest.approx(25_600, rel=0.08)


def test_all_warps_of_a_block_wait_until_the_last_has_come_to_a_barrier() -> None:
    """A tree of sums, with seven barriers a trip, took 16 warps 536 cycles of 1.98 GHz, and one warp 276."""
    trips, kernel = kernel_of("a tree in shared memory", 16 * WARP)
    took = trips * 536 / 1.98e9
    assert float(pm.Calibration.shipped("gpu", device="h200").predict(kernel)) == pytest.approx(took, rel=0.2)
