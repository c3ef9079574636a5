"""Features that are nearly collinear under noise: what a fit says of their parameters is true, or it says nothing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from perfmodel.expression import parse
from perfmodel.modelling.fitting import FitResult, FitWarning, fit

MODEL = parse("p_a * f_x + p_b * f_y + p_c * f_z")
TRUTH = 5e-10
SEEDS = 40


def fitted(difference: float, seed: int, noise: float = 0.05) -> FitResult:
    """Fits three costs of 5e-10 s each; f_y differs from f_x by a fraction of about `difference`."""
    random = np.random.default_rng(seed)
    x, z = 10 ** random.uniform(4, 8, (2, 20))
    y = x * np.exp(difference * random.standard_normal(20))
    times = TRUTH * (x + y + z) * (1 + noise * random.standard_normal(20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return fit(MODEL, {"f_x": x, "f_y": y, "f_z": z}, times)


def undetermined(result: FitResult) -> set[str]:
    return {name for item in result.undetermined for name in item.parameters}


@pytest.mark.parametrize("difference", [1e-6, 1e-4, 1e-3, 1e-2])
def test_neither_of_two_nearly_equal_features_has_a_price_of_its_own(difference: float) -> None:
    for seed in range(SEEDS):
        result = fitted(difference, seed)
        assert {"p_a", "p_b"} <= undetermined(result), seed
        assert np.isnan([result.stderr["p_a"], result.stderr["p_b"]]).all()
        for name in ("p_a", "p_b"):
            low, high = result.limits[name]
            assert 0 <= low <= TRUTH <= high < 5 * TRUTH, (seed, name)
        assert result.parameters["p_a"] + result.parameters["p_b"] == pytest.approx(2 * TRUTH, rel=0.2)
        assert "p_c" not in undetermined(result)


@pytest.mark.parametrize("difference", [0.03, 0.1, 0.3, 1.0])
def test_what_is_called_determined_is_within_its_error(difference: float) -> None:
    """No more than a few of a hundred are beyond three standard errors, or beyond their 95 % limits at a bound."""
    wrong, determined = 0, 0
    for seed in range(SEEDS):
        result = fitted(difference, seed)
        for name in set(MODEL.parameters) - undetermined(result):
            determined += 1
            if name in result.at_bound:
                low, high = result.limits[name]
                wrong += not low <= TRUTH <= high
            else:
                wrong += abs(result.parameters[name] - TRUTH) > 3 * result.stderr[name]
    assert determined > SEEDS
    assert wrong <= 0.05 * determined


def test_the_warning_names_those_that_make_up_for_each_other() -> None:
    x = np.arange(1.0, 21.0)
    wiggle = 1 + 1e-5 * np.cos(x)
    with pytest.warns(FitWarning, match="p_a, p_b: they are nearly collinear: the measurements fix what they add up"):
        fit(
            parse("p_a * f_x + p_b * f_y + p_c"),
            {"f_x": x, "f_y": x * wiggle},
            3 * x * (1 + 0.01 * np.sin(7 * x)) + 5,
        )


def test_a_parameter_that_is_at_its_bound_for_certain_leaves_the_others_as_they_are() -> None:
    x = np.arange(1.0, 41.0)
    columns = {"f_x": x, "f_y": np.ones(40)}
    times = (3 * x - 2) * (1 + 0.001 * np.sin(5 * x))
    free = fit(parse("p_a * f_x + p_b * f_y"), columns, times)
    held = fit(parse("p_a * f_x"), {"f_x": x}, times)
    assert free.at_bound == ("p_b",)
    assert free.stderr["p_a"] == pytest.approx(held.stderr["p_a"], rel=1e-9)


def test_predictions_know_that_a_price_is_not_known() -> None:
    """The covariance of prices that only their sum fixes gives their sum a small error, and each a large one."""
    result = fitted(1e-4, 3)
    together = np.array([1.0, 1.0, 0.0])
    alone = np.array([1.0, 0.0, 0.0])
    error = {
        name: float(np.sqrt(slope @ result.covariance @ slope)) for name, slope in (("both", together), ("one", alone))
    }
    assert error["both"] < 0.2 * TRUTH
    assert error["one"] > 0.3 * TRUTH
