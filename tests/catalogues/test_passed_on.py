"""Atomics on lines that go from core to core are told from those on lines that a core has to itself."""

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import FeatureError
from perfmodel.device.facts import device_facts

SOURCE = """__kernel void count(__global const int *keys, __global int *bins, const int n)
{
    atomic_inc(&bins[keys[get_global_id(0)]]);
}"""
N, GROUP, LINE = 1 << 16, 256, 16
ALL, BUSIEST = (f"f_mem_passed_on_global_atomic_block:64{word}" for word in ("", "_busiest"))


def counted(bins: int, n: int = N) -> pm.Kernel:
    keys = np.random.default_rng(0).integers(0, bins, n).astype(np.int32)
    kernel = pm.Kernel.from_opencl(SOURCE, "count", "n", GROUP, {"keys": "n", "bins": bins}, n=n)
    return kernel.as_countable({"keys": keys})


@pytest.mark.parametrize("lines", [1, 4, 64])
def test_few_lines_are_always_with_another_core(lines: int) -> None:
    kernel = counted(lines * LINE)
    assert pm.feature(ALL).eval(kernel) == pytest.approx(N, rel=0.05)
    assert pm.feature(BUSIEST).eval(kernel) == pytest.approx(N / lines, rel=0.2)


def test_of_many_lines_each_is_there_seldom() -> None:
    kernel = counted(1 << 22)
    assert pm.feature(ALL).eval(kernel) < 0.01 * N
    assert pm.feature(BUSIEST).eval(kernel) < 100


def test_a_single_work_group_passes_nothing_on() -> None:
    assert pm.feature(ALL).eval(counted(1, GROUP)) == 0
    assert pm.feature(BUSIEST).eval(counted(1, GROUP)) == 0


@pytest.mark.parametrize("word", ["store_block:64", "atomic", "atomic_block:64_walked"])
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises(FeatureError, match="passed_on"):
        pm.feature(f"f_mem_passed_on_global_{word}")


def test_an_atomic_on_its_own_line_takes_what_facts_of_a_processor_say() -> None:
    xeon = pm.Calibration.shipped("cpu", device="intel-xeon-processor-0b3c4a")

    def clocks(key: str) -> float:
        facts = device_facts(key)
        return xeon.on(facts).parameters["p_core_atomics"] * facts["units"] * facts["clock"]

    assert clocks("epyc_9654") / clocks("epyc_9755") == pytest.approx(8 / 19)
