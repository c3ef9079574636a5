"""Predictions corrected by times of other devices, against errors that are known."""

import numpy as np
import pytest

from perfmodel.basics.errors import PerfmodelError
from perfmodel.device.facts import device_facts
from perfmodel.tuning.other_devices import corrected, likeness

TURING, OTHER_TURING, AMPERE, KEPLER = map(device_facts, ("rtx_2080_ti", "titan_rtx", "rtx_3090", "k20"))


def test_devices_of_one_architecture_are_alike() -> None:
    assert likeness(TURING, OTHER_TURING) == 1
    assert 1 > likeness(TURING, AMPERE) == likeness(AMPERE, TURING) > likeness(TURING, KEPLER) > 0
    assert likeness(TURING, device_facts("i7_6700k")) == 0


def test_errors_that_like_devices_share_are_taken_out() -> None:
    rng = np.random.default_rng(3)
    predicted = rng.uniform(1, 9, 200)
    wrong = np.exp(rng.normal(0.3, 0.4, 200))
    there = predicted * 0.7
    found = corrected(predicted, TURING, {"t": OTHER_TURING}, {"t": there * wrong}, {"t": there})
    assert np.std(np.log(found / (predicted * wrong))) < 0.1 * 0.4
    assert np.median(found / (predicted * wrong)) == pytest.approx(1, abs=0.05)
    unlike = corrected(predicted, TURING, {"k": KEPLER}, {"k": there * wrong}, {"k": there})
    assert np.std(np.log(unlike / predicted)) < 0.1


def test_what_did_not_run_elsewhere_stays_as_predicted_but_for_the_scale() -> None:
    there = np.array([2.0, np.nan, 2.0])
    found = corrected([1.0, 1.0, 1.0], TURING, {"t": OTHER_TURING}, {"t": there}, {"t": np.ones(3)})
    assert found[0] == found[1] == pytest.approx(2 ** (1 / 1.1))
    nothing = corrected([1.0, 1.0, 1.0], TURING, {"t": OTHER_TURING}, {"t": np.full(3, np.nan)}, {"t": np.ones(3)})
    assert nothing.tolist() == [1, 1, 1]


def test_each_device_needs_a_time_for_each_kernel() -> None:
    with pytest.raises(PerfmodelError, match="'t' has not one measured and one predicted time"):
        corrected([1.0, 1.0], TURING, {"t": OTHER_TURING}, {"t": [1.0]}, {"t": [1.0, 1.0]})
    with pytest.raises(PerfmodelError, match="'t' has not one"):
        corrected([1.0, 1.0], TURING, {"t": OTHER_TURING}, {}, {})
