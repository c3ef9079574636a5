"""Kernels of one source, once as CUDA C++ and once as OpenCL C, have the same features and the same predicted time."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.cuda_kernels.twins import TWINS
from perfmodel import Calibration
from perfmodel.vocabulary.named_features import feature

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

SAME_BY_COMPILER = ("_index", "_uint64_")
"""Features with these words are index arithmetic, of which a compiler leaves less than the source has."""


@cache
def calibration() -> Calibration:
    return Calibration.shipped(device="H200")


@pytest.mark.parametrize("name", TWINS)
def test_twins_have_the_same_features(name: str) -> None:
    cuda, opencl = TWINS[name].cuda().as_compiled(), TWINS[name].opencl().as_compiled()
    differing = {}
    for each in calibration().model.features:
        if not any(word in each for word in SAME_BY_COMPILER):
            one, other = (float(feature(each).eval(kernel)) for kernel in (cuda, opencl))
            if one != pytest.approx(other, rel=0.02, abs=0.02):
                differing[each] = one, other
    assert not differing


@pytest.mark.parametrize("name", TWINS)
def test_twins_take_the_same_predicted_time(name: str) -> None:
    cuda, opencl = (float(calibration().predict(kernel)) for kernel in (TWINS[name].cuda(), TWINS[name].opencl()))
    assert cuda == pytest.approx(opencl, rel=0.02)
