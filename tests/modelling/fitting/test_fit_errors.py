"""Measurements and requests that cannot serve: one sentence that names the culprit and the remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfmodel.basics.errors import FitError
from perfmodel.expression import parse
from perfmodel.modelling.fitting import fit, nonlinear

X = np.arange(1.0, 6.0)
LABELS = [f"matmul n={size}" for size in (128, 256, 512, 1024, 2048)]


def with_value(row: int, value: float) -> np.ndarray:
    changed = X.copy()
    changed[row] = value
    return changed


@pytest.mark.parametrize(
    ("value", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf"), (0.0, "0"), (-1e-5, "-1e-05")]
)
def test_times_must_be_positive_and_finite(value: float, shown: str) -> None:
    with pytest.raises(FitError) as error:
        fit(parse("p_a * f_x"), {"f_x": X}, with_value(2, value), labels=LABELS)

    assert str(error.value) == (
        f"the output of measurement 'matmul n=512' is {shown} where relative residuals need a positive finite time;"
        " measure it again or leave it out"
    )


def test_absolute_residuals_take_zero_and_negative_outputs() -> None:
    result = fit(parse("p_a * f_x + p_b"), {"f_x": X}, 2 * X - 4, residuals="absolute", nonnegative=False)

    assert result.parameters == pytest.approx({"p_a": 2.0, "p_b": -4.0})


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_feature_values_must_be_finite(value: float) -> None:
    with pytest.raises(FitError, match=r"feature 'f_x' of measurement 'row 3' is (nan|inf); gather it again"):
        fit(parse("p_a * f_x"), {"f_x": with_value(3, value)}, X)


ARRAYS: dict[str, tuple[str, dict[str, Any], Any, dict[str, Any], str]] = {
    "empty": ("p_a * f_x", {"f_x": X[:0]}, X[:0], {}, "no measurement to fit to; check the tags"),
    "two-dimensional": ("p_a * f_x", {"f_x": X}, X[None], {}, r"outputs have shape \(1, 5\); give one time"),
    "lengths": ("p_a * f_x", {"f_x": X[:3]}, X, {}, r"'f_x' has shape \(3,\) where the outputs have shape \(5,\)"),
    "missing": ("p_a * f_bytes", {"f_byte": X}, X, {}, "no column for feature 'f_bytes'; did you mean 'f_byte'"),
    "nothing near": ("p_a * f_x", {"f_bytes": X}, X, {}, "no column for feature 'f_x'; gather it first"),
    "labels": ("p_a * f_x", {"f_x": X}, X, {"labels": LABELS[:2]}, "2 labels for 5 measurements; give one label"),
    "few": ("p_a * f_x + p_b", {"f_x": X[:1]}, X[:1], {}, "1 measurement cannot fix 2 parameters; add measurements"),
    "no parameter": ("2 * f_x", {"f_x": X}, X, {}, "the model has no parameter to fit; evaluate it as it is"),
    "bound name": (
        *("p_madd * f_x", {"f_x": X}, X, {"parameters": {"p_mad": (0, 1)}}),
        "something is said of 'p_mad', which is no parameter of the model; did you mean 'p_madd'",
    ),
    "bound order": (
        *("p_a * f_x", {"f_x": X}, X, {"parameters": {"p_a": (2, 1)}}),
        r"the bounds of 'p_a' are \[2, 1\]; give the lower one first",
    ),
    "start name": (
        *("p_a * f_x", {"f_x": X}, X, {"parameters": {"p_edge": {"value": 1}}}),
        "something is said of 'p_edge', which is no parameter of the model; its parameters are p_a",
    ),
    "start outside": (
        *("p_a * f_x", {"f_x": X}, X, {"parameters": {"p_a": {"value": -1}}}),
        r"the start of 'p_a' is -1, outside its bounds \[0, inf\]; move either",
    ),
    "division by zero": (
        *("p_a * f_x / f_y", {"f_x": X, "f_y": with_value(1, 0.0)}, X, {}),
        "no finite value for measurement 'row 1'; check the features it divides by",
    ),
    "outside the domain": (
        *("log(p_a * f_x)", {"f_x": -X}, X, {}),
        "no finite value for measurement 'row 0' at any starting point; give a start or bounds",
    ),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_requests_that_cannot_be_met(case: str) -> None:
    source, columns, output, options, message = ARRAYS[case]

    with pytest.raises(FitError, match=message) as error:
        fit(parse(source), columns, output, **options)

    assert "\n" not in str(error.value)


def test_absent_parameters_need_no_measurements() -> None:
    with pytest.warns(UserWarning, match="f_y is zero"):
        result = fit(parse("p_a * f_x + p_b * f_y"), {"f_x": X[:1], "f_y": 0 * X[:1]}, X[:1])

    assert result.parameters == pytest.approx({"p_a": 1.0, "p_b": 0.0})


def test_a_fit_that_needs_more_evaluations_than_allowed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nonlinear, "_SEARCH_EVALUATIONS", 2)
    monkeypatch.setattr(nonlinear, "_FINAL_EVALUATIONS", 2)
    x = np.linspace(1.0, 30.0, 40)
    output = 2 + np.sin(x)

    with pytest.raises(FitError, match=r"did not converge from any of .* starting points .* give a start near"):
        fit(parse("p_a + p_b * exp(-p_c * f_x) + p_d * f_x ** p_e"), {"f_x": x}, output)


@pytest.mark.filterwarnings("ignore::perfmodel.modelling.fitting.FitWarning")
def test_a_fit_that_ends_nearer_to_the_minimum_than_noise_can_tell_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver may crawl along a flat valley for ever: no smaller tolerance is met, and no measurement could tell."""
    model, x = parse("p_a + p_b * exp(-p_c * f_x) + p_d * f_x ** p_e"), np.linspace(1.0, 30.0, 40)
    output = (2 + 3 * np.exp(-0.2 * x)) * np.exp(0.1 * np.random.default_rng(1).normal(size=40))
    found = fit(model, {"f_x": x}, output)
    for limit in ("_SEARCH_EVALUATIONS", "_FINAL_EVALUATIONS"):
        monkeypatch.setattr(nonlinear, limit, 18)

    stopped = fit(model, {"f_x": x}, output)

    assert "number of function evaluations" in stopped.message
    assert stopped.chi_square == pytest.approx(found.chi_square, rel=1e-4)
    assert stopped.predicted == pytest.approx(found.predicted, rel=1e-3)
