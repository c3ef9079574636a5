"""Kernels of one source, once as CUDA C++ and once as OpenCL C, have the same features and the same predicted time."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from benchmarks.cuda_kernels.twins import TWINS, Twin
from perfmodel import Calibration
from perfmodel.vocabulary.named_features import feature

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

OF_COMPILERS = ("_index", "_uint64_", "_branch_if_", "_held_registers", "_distinct")
"""Features with these words are index arithmetic, of which a compiler leaves less than the source has; branches, of
which it adds some: before loops that may have no turn, and for the turns that are left of unrolled ones; registers, of
which addresses and unrolled loops take more than the source shows; and accesses side by side, which PTX has as several
executions of one where they stand in one place of the source, so that only the part of them that is fresh compares."""

VECTORS = "tiled product"
"""The assembler makes vectors of neighbouring loads from shared memory, where a loop over them is unrolled."""

UNROLLED = {"triangle": 0.54, "row sums": 0.52}
"""Loops of these have 16 loads under way through CUDA and 4 through OpenCL; an H200 takes so much of the time."""

LOADS = "f_mem_access_global_load_granularity:subgroup"
TOUCHED = "f_mem_footprint_global_load_block:32"


@cache
def calibration() -> Calibration:
    return Calibration.shipped(device="H200")


@pytest.fixture
def is_by_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfmodel.sass.machine_code.is_installed", lambda: False)


@pytest.mark.usefixtures("is_by_text")
@pytest.mark.parametrize("name", TWINS)
def test_twins_have_the_same_features(name: str) -> None:
    cuda, opencl = TWINS[name].cuda().as_compiled(), TWINS[name].opencl().as_compiled()
    differing = {}
    for each in calibration().model.features:
        words = (*OF_COMPILERS, *["_local_"] * (name == VECTORS), *["_waits_", "_fresh", "_again"] * (name in UNROLLED))
        if not any(word in each for word in words):
            one, other = (float(feature(each).eval(kernel)) for kernel in (cuda, opencl))
            # of a loop's last turns, which a compiler takes out of it, neighbours are no longer in step
            apart = 0.02 + ("_class:" in each) * 0.01 * float(feature(LOADS).eval(opencl))
            apart += ("_revisited_" in each) * 1e-3 * float(feature(TOUCHED).eval(opencl))
            if one != pytest.approx(other, rel=0.02, abs=apart):
                differing[each] = one, other
    assert not differing


@pytest.mark.usefixtures("is_by_text")
@pytest.mark.parametrize("name", TWINS)
def test_twins_take_the_same_predicted_time(name: str) -> None:
    forms = TWINS[name].cuda(), TWINS[name].opencl().as_compiled()  # by the source
    cuda, opencl = (float(calibration().predict(kernel)) for kernel in forms)
    if name == VECTORS:  # measured on an H200
        assert cuda / opencl == pytest.approx(0.80, rel=0.15)
    elif name in UNROLLED:
        assert cuda / opencl == pytest.approx(UNROLLED[name], rel=0.15)
    else:
        assert cuda == pytest.approx(opencl, rel=0.02)


@pytest.mark.parametrize("name", sorted(TWINS.keys() - UNROLLED.keys() - {VECTORS}))
def test_machine_code_takes_about_the_time_that_its_text_says(name: str) -> None:
    forms = TWINS[name].cuda(), TWINS[name].opencl().as_compiled()  # by the source
    cuda, opencl = (float(calibration().predict(kernel)) for kernel in forms)
    assert cuda == pytest.approx(opencl, rel=0.12)


def test_neighbouring_loads_from_shared_memory_are_one_of_a_vector() -> None:
    cuda, opencl = (kernel.as_compiled() for kernel in (TWINS[VECTORS].cuda(), TWINS[VECTORS].opencl()))
    bytes_, loads = feature("f_mem_bytes_local_load"), feature("f_mem_access_local_load")
    assert bytes_.eval(cuda) == bytes_.eval(opencl)
    # of 16 turns, those along the rows of one tile are 4 loads of 16 bytes; those down the columns of the other stay
    assert loads.eval(cuda) / loads.eval(opencl) == pytest.approx((4 + 16) / 32)


RUNS = Twin(
    body="""KERNEL twin(GLOBAL const unsigned char *x, GLOBAL int *z, int n) {
         GLOBAL const unsigned char *s = x + ID_X * n;
         int runs = 0, i = 0;
         while (i < n) {
           int run = 1;
           while (i + run < n && s[i + run] == s[i]) run++;
           i += run;
           runs++;
         }
         z[ID_X] = runs;
       }""",
    grid=("32",),
    block=(64,),
    args={"x": "2048 * n", "z": "2048"},
    sizes={"n": 96},
)


def test_places_that_follow_from_given_data_are_those_that_blocks_touch() -> None:
    """Data decide how far a loop has come, which no operand of its addresses shows."""
    x = np.random.default_rng(3).integers(0, 2, 2048 * 96, np.uint8)
    cuda, opencl = (kernel.as_countable({"x": x}) for kernel in (RUNS.cuda(), RUNS.opencl()))
    touched = feature("f_mem_footprint_global_load_granularity:workgroup_block:32")
    assert float(touched.eval(cuda)) == pytest.approx(float(touched.eval(opencl)), rel=0.02)


def test_gathers_of_given_places_jump_about_in_both_languages() -> None:
    """Blocks touch a little of every page of the array, so that memory has to bring what others had before."""
    twin = TWINS["gather"]
    at = np.random.default_rng(19).integers(0, twin.sizes["n"], 4194304, np.int32)
    cuda, opencl = (kernel.as_countable({"at": at}) for kernel in (twin.cuda(), twin.opencl()))
    jumping = feature("f_mem_scattered_global_load_missed_block:32_reach:>8000000")
    assert float(jumping.eval(cuda)) == pytest.approx(32 * 4194304, rel=0.01)
    assert float(calibration().predict(cuda)) == pytest.approx(float(calibration().predict(opencl)), rel=0.02)
