"""Predictions by counts from some work-groups say how far these may be from all of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.modelling.prediction import SAMPLED, Prediction, predict
from tests.counting_kernels import STEPS

ROWS = """
__kernel void rows(__global const int *start, __global const float *v, __global float *out, int n) {
    int i = get_global_id(0);
    float s = 0;
    for (int k = start[i]; k < start[i + 1]; k++) s += v[k] * 2.0f;
    out[i] = s;
}"""
N, SEEDS = 25_600, 10


@pytest.fixture(scope="module")
def calibration() -> pm.Calibration:
    return pm.Calibration.shipped("unified-plus", device="H200")


def rows(seed: int) -> tuple[pm.Kernel, dict[str, np.ndarray]]:
    """Returns a product with a sparse matrix, whose rows are of very different lengths, and longer towards the end."""
    lengths = np.random.default_rng(seed).geometric(1 / 5, N) * (1 + np.arange(N) // (N // 10))
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    extents: dict[str, int | str] = {"start": "n + 1", "v": int(start[-1]), "out": "n"}
    return pm.Kernel.from_opencl(ROWS, "rows", "n", 64, extents, n=N), {"start": start}


def errors(calibration: pm.Calibration) -> Iterator[float]:
    """Yields by how many standard errors predictions from a sample are off those from all groups."""
    for matrix in range(2):
        kernel, arrays = rows(matrix)
        every = predict(calibration, kernel.as_observed(arrays, groups="all"), {})
        assert every.sampling == 0
        for seed in range(SEEDS):
            some = predict(calibration, kernel.as_observed(arrays, seed=seed), {})
            yield float(np.log(some.seconds / every.seconds) / some.sampling)


def test_standard_errors_are_those_of_samples(calibration: pm.Calibration) -> None:
    off = np.array(list(errors(calibration)))
    assert 0.6 <= np.sqrt(np.mean(off**2)) <= 1.5
    assert np.mean(np.abs(off) <= 1.645) >= 0.75  # of 90 %


def test_intervals_are_wider_by_what_a_sample_leaves_open(calibration: pm.Calibration) -> None:
    kernel = pm.Kernel.from_opencl(STEPS, "steps", "n", 64, {"a": "n"}, n=N)
    counted = predict(calibration, kernel, {})
    assert counted.sampling == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampled = predict(calibration, kernel.with_budget(0.01), {})
    assert 0.01 < sampled.sampling < 0.5
    assert abs(np.log(sampled.seconds / counted.seconds)) < 3 * sampled.sampling

    def width(prediction: Prediction) -> float:
        low, high = prediction.interval(0.6827)
        return float(np.log(high / low)) / 2

    assert width(sampled) ** 2 == pytest.approx(
        width(replace(sampled, kernel=kernel)) ** 2 + float(sampled.sampling) ** 2 + SAMPLED**2, rel=0.05
    )


def test_arrays_of_sizes_have_a_standard_error_each(calibration: pm.Calibration) -> None:
    kernel, arrays = rows(0)
    observed = kernel.as_observed(arrays)
    found = predict(calibration, observed, {"n": [N // 2, N]})
    assert found.sampling.shape == (2,)
    assert found.sampling[1] == pytest.approx(float(predict(calibration, observed, {}).sampling))


def test_the_usual_budget_changes_nothing_of_an_observed_kernel() -> None:
    kernel, arrays = rows(0)
    observed, h200 = kernel.as_observed(arrays), pm.Calibration.shipped(device="H200")
    assert h200.predict(observed.with_budget(1)) == h200.predict(observed)
