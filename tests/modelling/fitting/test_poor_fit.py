"""A fit that explains nothing says so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from perfmodel.basics.errors import FitError
from perfmodel.expression import parse
from perfmodel.modelling.fitting import FitWarning, fit

RANDOM = np.random.default_rng(5)
X = 10 ** RANDOM.uniform(4, 8, 20)
TIMES = 5e-10 * X * (1 + 0.05 * RANDOM.standard_normal(20))


def test_a_fit_that_explains_its_measurements_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(parse("p_a * f_x"), {"f_x": X}, TIMES)


@pytest.mark.parametrize("time", [1e200, 1e-150])
def test_numbers_that_are_no_times_are_refused_by_name(time: float) -> None:
    times = TIMES.copy()
    times[3] = time
    with pytest.raises(FitError, match=r"the output of measurement 'row 3' is \S+, which no kernel takes"):
        fit(parse("p_a * f_x"), {"f_x": X}, times)
    with pytest.raises(FitError, match="which no kernel takes; give times in seconds"):
        fit(parse("p_a * f_x"), {"f_x": X}, np.full(20, time))


@pytest.mark.parametrize("residuals", ["relative", "logarithmic"])
def test_milliseconds_among_seconds_are_told(residuals: str) -> None:
    times = TIMES.copy()
    times[::4] *= 1000
    with pytest.warns(FitWarning, match=r"5 of 20 measurements are off by a factor of over 50, most of all 'row \d+'"):
        fit(parse("p_a * f_x"), {"f_x": X}, times, residuals=residuals)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ["log(p_a * f_x)", "p_a"])
def test_a_model_of_the_wrong_form_is_told(model: str) -> None:
    with pytest.warns(FitWarning, match="the model does not explain the measurements: half of the 20 fitted values"):
        fit(parse(model), {"f_x": X}, TIMES)


def test_a_fit_through_all_points_is_told_and_refused_where_asked() -> None:
    with pytest.warns(FitWarning, match="the model goes through all 2 measurements"):
        result = fit(parse("p_a * f_x + p_b"), {"f_x": X[:2]}, TIMES[:2], nonnegative=False)
    assert "(no standard error: as many parameters as measurements)" in result.report()
    with pytest.raises(FitError, match="the model goes through its only measurement"):
        fit(parse("p_a * f_x"), {"f_x": X[:1]}, TIMES[:1], strict=True)


def test_a_parameter_with_an_error_as_large_as_itself_is_marked() -> None:
    """The second cost is a tenth of the times' scatter: nothing can be said of it but how large it is at most."""
    y = np.where(np.arange(20) == 7, 1e5, 0.0)
    noise = np.zeros(20)
    noise[7] = 3e-5
    times = 5e-10 * X * (1 + 0.3 * np.sin(np.arange(20))) + noise
    result = fit(parse("p_a * f_x + p_b * f_y"), {"f_x": X, "f_y": y}, times)
    sure = result.stderr["p_b"] < abs(result.parameters["p_b"])
    assert sure != any("p_b" in item.parameters for item in result.undetermined)


def test_three_words_for_three_things() -> None:
    columns = {"f_x": X, "f_y": np.ones(20), "f_none": 0 * X, "f_z": X}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        result = fit(
            parse("p_x * f_x + p_held * f_y + p_low * f_y + p_none * f_none"),
            columns,
            TIMES - 1e-6,
            parameters={"p_held": (0.0, 0.0)},
        )
    assert result.mark("p_held") == "(fixed)"
    assert result.mark("p_low").startswith("(at its bound")
    assert result.mark("p_none") == "(undetermined)"
    assert result.mark("p_x") == ""
