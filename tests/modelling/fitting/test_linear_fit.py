"""Linear models: against numpy's and scipy's solvers and textbook formulas, on costs decades apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import nnls

from perfmodel.expression import parse
from perfmodel.modelling.fitting import FitResult, fit

Columns = dict[str, NDArray[np.float64]]

THREE_COSTS = parse("p_madd * f_madds + p_byte * f_bytes + p_launch")
TRUE_COSTS = {"p_madd": 1e-12, "p_byte": 3e-11, "p_launch": 5e-6}


def kernels(seed: int, count: int = 60) -> tuple[Columns, NDArray[np.float64]]:
    """Returns counts of kernels from microseconds to milliseconds and their times with 2 % noise."""
    random = np.random.default_rng(seed)
    sizes = np.logspace(1, 4, count) ** 2
    columns = {
        "f_madds": np.round(1000 * sizes * random.uniform(0.3, 3, count)),
        "f_bytes": np.round(30 * sizes * random.uniform(0.3, 3, count)),
    }
    exact = THREE_COSTS.compile()(TRUE_COSTS, columns)
    return columns, exact * (1 + 0.02 * random.standard_normal(count))


def relative_design(columns: Columns, times: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([columns["f_madds"], columns["f_bytes"], np.ones_like(times)], axis=1) / times[:, None]


def deviations(result: FitResult, truth: dict[str, float]) -> NDArray[np.float64]:
    return np.array([abs(result.parameters[name] - value) / result.stderr[name] for name, value in truth.items()])


@pytest.mark.parametrize("seed", range(20))
def test_costs_eight_orders_of_magnitude_apart_come_back_within_their_standard_errors(seed: int) -> None:
    result = fit(THREE_COSTS, *kernels(seed))

    assert result.method == "linear"
    assert result.at_bound == ()
    assert (deviations(result, TRUE_COSTS) < 4.5).all()
    assert max(result.stderr[name] / value for name, value in TRUE_COSTS.items()) < 0.05


def test_standard_errors_are_as_wide_as_the_spread_of_repeated_fits() -> None:
    scores = np.concatenate([deviations(fit(THREE_COSTS, *kernels(seed)), TRUE_COSTS) for seed in range(100, 200)])

    assert np.mean(scores < 1) == pytest.approx(0.68, abs=0.09)


def test_values_and_covariance_are_those_of_weighted_least_squares() -> None:
    columns, times = kernels(1)
    design = relative_design(columns, times)
    expected, squares, _, _ = np.linalg.lstsq(design, np.ones_like(times), rcond=None)
    covariance = np.linalg.inv(design.T @ design) * squares[0] / (len(times) - 3)

    result = fit(THREE_COSTS, columns, times)

    np.testing.assert_allclose(list(result.parameters.values()), expected, rtol=1e-10)
    np.testing.assert_allclose(result.covariance, covariance, rtol=1e-8)
    np.testing.assert_allclose(list(result.stderr.values()), np.sqrt(np.diag(covariance)), rtol=1e-8)
    assert result.chi_square == pytest.approx(squares[0], rel=1e-10)
    assert result.degrees_of_freedom == len(times) - 3
    np.testing.assert_allclose(result.relative_errors, design @ expected - 1, atol=1e-12)


def test_absolute_residuals_are_weighted_alike_and_reported_in_seconds() -> None:
    columns, times = kernels(2)
    design = relative_design(columns, times) * times[:, None]
    expected, squares, _, _ = np.linalg.lstsq(design / design.max(axis=0), times, rcond=None)

    result = fit(THREE_COSTS, columns, times, residuals="absolute", nonnegative=False)

    np.testing.assert_allclose(list(result.parameters.values()), expected / design.max(axis=0), rtol=1e-9)
    assert result.chi_square == pytest.approx(squares[0], rel=1e-9)


def test_a_constant_part_of_the_model_is_no_parameter() -> None:
    columns, times = kernels(3)
    offset = fit(parse("p_madd * f_madds + p_byte * f_bytes + 5e-6"), columns, times)
    pinned = fit(THREE_COSTS, columns, times, parameters={"p_launch": (5e-6, 5e-6)})

    assert offset.parameters == pytest.approx({name: pinned.parameters[name] for name in ("p_madd", "p_byte")})
    assert pinned.parameters["p_launch"] == 5e-6
    assert offset.degrees_of_freedom == pinned.degrees_of_freedom == len(times) - 2


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(0, 3))
def test_nonnegative_fits_agree_with_nnls(seed: int, parameters: int, negative: int) -> None:
    random = np.random.default_rng(seed)
    design = random.uniform(0.1, 1, (20, parameters))
    truth = random.uniform(0.1, 1, parameters)
    truth[:negative] *= -0.3
    output = design @ truth + 0.1 * random.standard_normal(20) + 1
    model = parse(" + ".join(f"p_{i} * f_{i}" for i in range(parameters)))
    columns = {f"f_{i}": design[:, i] for i in range(parameters)}
    expected, norm = nnls(design, output)

    result = fit(model, columns, output, residuals="absolute")

    np.testing.assert_allclose(list(result.parameters.values()), expected, rtol=1e-8, atol=1e-10)
    assert result.chi_square == pytest.approx(norm**2, rel=1e-9)
    assert result.at_bound == tuple(f"p_{i}" for i in range(parameters) if expected[i] == 0)


def test_a_bound_is_kept_exactly_and_counts_as_known() -> None:
    columns, times = kernels(4)
    limited = fit(THREE_COSTS, columns, times, parameters={"p_byte": (None, 2.7e-11)})
    known = fit(THREE_COSTS, columns, times, parameters={"p_byte": (2.7e-11, 2.7e-11)})

    assert limited.parameters["p_byte"] == 2.7e-11
    assert limited.at_bound == ("p_byte",)
    assert np.isnan(limited.stderr["p_byte"])
    assert not limited.covariance[1].any()
    assert limited.parameters == pytest.approx(known.parameters, rel=1e-10)
    assert limited.stderr["p_madd"] == pytest.approx(known.stderr["p_madd"], rel=1e-10)


def test_bounds_may_allow_negative_values_for_one_parameter_only() -> None:
    x = np.arange(1.0, 11.0)
    result = fit(parse("p_a * f_x + p_b"), {"f_x": x}, 3 * x - 2, parameters={"p_b": (None, None)})

    assert result.parameters == pytest.approx({"p_a": 3.0, "p_b": -2.0})


def test_a_fit_without_spare_measurements_has_values_but_no_standard_errors() -> None:
    result = fit(parse("p_a * f_x + p_b"), {"f_x": np.array([1.0, 2.0])}, np.array([3.0, 4.0]))

    assert result.parameters == pytest.approx({"p_a": 1.0, "p_b": 2.0})
    assert result.degrees_of_freedom == 0
    assert np.isnan(list(result.stderr.values())).all()


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(60)))
def test_the_order_of_measurements_does_not_matter(order: list[int]) -> None:
    columns, times = kernels(5)
    expected = fit(THREE_COSTS, columns, times)
    shuffled = fit(THREE_COSTS, {name: column[order] for name, column in columns.items()}, times[order])

    assert shuffled.parameters == pytest.approx(expected.parameters, rel=1e-10)
    assert shuffled.stderr == pytest.approx(expected.stderr, rel=1e-8)


@settings(max_examples=30, deadline=None)
@given(st.floats(-9, 9), st.floats(-9, 9))
def test_units_of_time_and_features_only_change_units_of_parameters(time: float, feature: float) -> None:
    columns, times = kernels(6)
    expected = fit(THREE_COSTS, columns, times)
    scaled = fit(THREE_COSTS, columns | {"f_bytes": columns["f_bytes"] * 10**feature}, times * 10**time)

    units = {"p_madd": 10**time, "p_byte": 10 ** (time - feature), "p_launch": 10**time}
    for name, unit in units.items():
        assert scaled.parameters[name] == pytest.approx(expected.parameters[name] * unit, rel=1e-9)
        assert scaled.stderr[name] == pytest.approx(expected.stderr[name] * unit, rel=1e-7)
    assert scaled.chi_square == pytest.approx(expected.chi_square, rel=1e-9)
