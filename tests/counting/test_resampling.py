"""The standard error of what follows from a sample of work-groups is that of other samples."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel.counting.resampling import deviation, weights


def test_replicas_are_balanced() -> None:
    found = np.array(weights(16))
    assert found.shape == (8, 16)
    assert (found[:, 0::2] + found[:, 1::2] == 4).all()  # of two neighbours, one weighs more
    signs = found[:, 0::2] - 2
    assert (signs.T @ signs == 8 * np.eye(8)).all()


def test_samples_without_pairs_have_no_replicas() -> None:
    assert weights(1) == weights(0) == weights(7) == []


def test_the_deviation_of_a_mean_is_that_of_differences_between_neighbours() -> None:
    values = np.random.default_rng(1).normal(1000.0, 3.0, 16)
    means = [np.asarray(np.average(values, weights=each)) for each in weights(16)]
    expected = np.sqrt(np.sum((values[0::2] - values[1::2]) ** 2)) / 16 / values.mean()
    assert deviation(values.mean(), means) == pytest.approx(expected, rel=1e-3)
    assert deviation(values.mean(), []) == 0
