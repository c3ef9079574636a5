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
