"""The report says everything a reader of the numbers needs, and nothing the fit does not know."""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pytest

from perfmodel.expression import parse
from perfmodel.modelling.fitting import FitResult, FitWarning, fit


@pytest.fixture(scope="module")
def result() -> FitResult:
    n = np.linspace(100.0, 2000.0, 30)
    noise = 1 + 0.01 * np.random.default_rng(3).standard_normal(30)
    noise[7] = 1.25
    columns = {"f_madds": n**3, "f_bytes": n**2, "f_absent": 0 * n, "f_groups": n}
    model = parse("p_madd * f_madds + p_byte * f_bytes + p_none * f_absent + p_zero * f_groups")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return fit(model, columns, (1e-12 * n**3 + 2e-10 * n**2 - 1e-9 * n) * noise, labels=[f"n={x:.0f}" for x in n])


def test_values_standard_errors_and_percentages(result: FitResult) -> None:
    value, error = result.parameters["p_madd"], result.stderr["p_madd"]

    assert f"p_madd =  {value:.6e} +/- {error:.2e} ({error / value:.2%})" in result.report()


def test_bounds_and_undetermined_parameters_are_marked(result: FitResult) -> None:
    report = result.report()

    assert re.search(r"p_zero = +0\.0+e\+00 \(at its bound, between 0 and \S+\)", report)
    assert re.search(r"p_none = +0\.0+e\+00 \(undetermined\)", report)
    assert "undetermined p_none: f_absent is zero in every measurement" in report


def test_strong_correlations_are_listed_once(result: FitResult) -> None:
    value = result.correlation[0, 1]

    assert value < -0.5
    listed = re.findall(r"correlation\((\w+), (\w+)\)", result.report())
    assert len({frozenset(pair) for pair in listed}) == len(listed)
    assert f"correlation(p_madd, p_byte) = {value:+.3f}" in result.report()


def test_the_worst_row_comes_first_with_its_label(result: FitResult) -> None:
    after = result.report().split("relative errors, largest first:\n")[1].splitlines()

    assert after[0].endswith(result.labels[7])
    assert f"{result.relative_errors[7]:+.2%}" in after[0]


def test_the_summary_counts_measurements_and_freedom(result: FitResult) -> None:
    assert "30 measurements, 28 degrees of freedom" in result.report()
    assert result.report().startswith("linear least squares, relative residuals, solved directly")


def test_a_nonlinear_fit_tells_how_hard_it_searched() -> None:
    x = np.linspace(1.0, 10.0, 20)
    nonlinear = fit(parse("p_a * (1 - exp(-p_b * f_x))"), {"f_x": x}, 3 * (1 - np.exp(-0.3 * x)))

    assert nonlinear.starts > 1
    assert f"{nonlinear.starts} starts, {nonlinear.nfev} evaluations" in nonlinear.report()


def test_a_result_survives_pickling(result: FitResult) -> None:
    assert pickle.loads(pickle.dumps(result)).report() == result.report()
