"""Non-linear models: true costs recovered from the default start, over decades of time and both regimes of overlap."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from perfmodel.expression import ModelString, parse
from perfmodel.modelling.fitting import FitResult, FitWarning, fit
from perfmodel.modelling.fitting.declared import Given
from perfmodel.modelling.fitting.nonlinear import Coordinates
from perfmodel.modelling.fitting.problem import pose
from tests.covering import examples

Columns = dict[str, NDArray[np.float64]]

NOISE = 0.01
COSTS = {"p_mem": 1e-11, "p_flop": 2e-12, "p_launch": 4e-6}
SMOOTH = parse("smooth_max(p_mem * f_bytes, p_flop * f_flops, p_edge) + p_launch")
OVERLAP = parse("overlap(p_mem * f_bytes, p_flop * f_flops, p_o) + p_launch")
MAXIMUM = parse("max(p_mem * f_bytes, p_flop * f_flops) + p_launch")


def columns_of(seed: int, count: int = 80) -> Columns:
    """Returns counts for times from 10 microseconds to 0.1 s, memory or arithmetic up to 30 times the other."""
    random = np.random.default_rng(seed)
    sizes = 10 ** np.linspace(6, 10, count)
    balance = 10 ** random.uniform(-1.5, 1.5, count)
    return {"f_bytes": np.round(sizes), "f_flops": np.round(sizes * balance * COSTS["p_mem"] / COSTS["p_flop"])}


def noisy(seed: int, exact: NDArray[np.float64]) -> NDArray[np.float64]:
    return exact * (1 + NOISE * np.random.default_rng(seed + 1000).standard_normal(exact.size))


def starts(values: Mapping[str, float]) -> Given:
    """Returns the point at which the search begins."""
    return {name: {"value": value} for name, value in values.items()}


def fitted(
    model: ModelString, columns: Columns, output: NDArray[np.float64], parameters: Given | None = None
) -> FitResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return fit(model, columns, output, parameters=parameters)


def assert_costs(result: FitResult) -> None:
    assert result.method == "nonlinear"
    for name, value in COSTS.items():
        assert abs(result.parameters[name] - value) < 4.5 * result.stderr[name], name
        assert result.stderr[name] < 0.15 * value, name
    assert result.chi_square < 1.6 * NOISE**2 * len(result.measured)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("model", [SMOOTH, OVERLAP, MAXIMUM], ids=["smooth_max", "overlap", "max"])
def test_full_overlap_is_recovered(model: ModelString, seed: int) -> None:
    columns = columns_of(seed)
    exact = MAXIMUM.compile()(COSTS, columns)

    assert_costs(fitted(model, columns, noisy(seed, exact)))


@pytest.mark.parametrize("edge", [3e1, 1e3, 3e4, 1e6])  # the first is softer than a fit takes it to be unasked
def test_smooth_overlap_is_recovered_whatever_the_edge(edge: float) -> None:
    columns = columns_of(7)
    exact = SMOOTH.compile()({**COSTS, "p_edge": edge}, columns)

    result = fitted(SMOOTH, columns, noisy(7, exact), {"p_edge": (1.0, None)} if edge < 1e3 else None)

    assert_costs(result)
    if edge < 1e5:
        assert abs(result.parameters["p_edge"] - edge) < 4.5 * result.stderr["p_edge"]


@pytest.mark.parametrize("exponent", [1.0, 1.4, 3.0, 10.0])
def test_partial_overlap_is_recovered_from_sum_to_maximum(exponent: float) -> None:
    columns = columns_of(8)
    exact = OVERLAP.compile()({**COSTS, "p_o": exponent}, columns)

    result = fitted(OVERLAP, columns, noisy(8, exact))

    assert_costs(result)
    assert 1 <= result.parameters["p_o"] <= 64
    assert result.parameters["p_o"] == pytest.approx(exponent, rel=0.35)


def test_many_costs_under_nested_overlaps_are_fitted_as_well_as_from_the_truth() -> None:
    model = parse("""
        memory = p_load * f_loads + p_store * f_stores
        onchip = smooth_max(p_madd * f_madds, p_local * f_local, p_edge)
        p_launch + overlap(memory, onchip, p_o)
    """)
    truth = {
        "p_load": 4e-12,
        "p_store": 6e-12,
        "p_madd": 1e-13,
        "p_local": 1e-12,
        "p_edge": 2e4,
        "p_o": 4.0,
        "p_launch": 4e-6,
    }
    for seed in range(5):
        random = np.random.default_rng(seed)
        sizes = 10 ** random.uniform(6, 10, 100)
        factors = {"f_loads": 1.0, "f_stores": 0.5, "f_madds": 50.0, "f_local": 5.0}
        columns = {name: factor * sizes * 10 ** random.uniform(-1, 1, 100) for name, factor in factors.items()}
        output = noisy(seed, model.compile()(truth, columns))
        truth = {name: truth[name] for name in model.parameters}

        assert (
            fitted(model, columns, output).chi_square
            <= 1.001 * fit(model, columns, output, parameters=starts(truth)).chi_square
        )


@pytest.mark.parametrize(
    ("source", "truth"),
    [
        ("p_1 * (1 - exp(-p_2 * f_x))", {"p_1": 3e-3, "p_2": 5e-8}),
        ("p_1 * f_x / (1 + p_2 * f_x)", {"p_1": 1e-9, "p_2": 2e-7}),
        ("p_1 * f_x ** p_2 + p_3", {"p_1": 4e-12, "p_2": 1.3, "p_3": 1e-3}),
        ("p_1 * f_x * (1 + p_2 * smooth_step(f_x - p_3, p_4))", {"p_1": 1e-9, "p_2": 1.5, "p_3": 2e7, "p_4": 1e-6}),
        ("p_1 * f_x / sqrt(1 + (f_x / p_2) ** 2)", {"p_1": 1e-9, "p_2": 1.5e7}),
        (
            "saturating(f_x / 1e6, p_1, p_2, p_3, p_4, p_5, 25.5)",
            {"p_1": 2e-3, "p_2": 0.5, "p_3": 1e-3, "p_4": 1e-4, "p_5": 0.02},
        ),
    ],
)
def test_shapes_of_other_kinds_are_found_without_a_start(source: str, truth: dict[str, float]) -> None:
    model = parse(source)
    columns = {"f_x": np.linspace(1e6, 5e7, 50)}
    exact = model.compile()(truth, columns)

    result = fit(model, columns, exact)

    assert result.parameters == pytest.approx(truth, rel=1e-3)


def test_the_end_of_a_saturating_range_is_found_between_two_measurements() -> None:
    groups = np.arange(1.0, 41.0)
    model = parse("saturating(f_groups, p_a, p_b, p_c, p_a2, p_c2, p_end)")
    truth = {"p_a": 2e-4, "p_b": 0.5, "p_c": 1e-4, "p_a2": 1e-6, "p_c2": 8e-4, "p_end": 17.3}
    columns = {"f_groups": groups}

    with pytest.warns(FitWarning, match="p_end: it is a threshold"):
        result = fit(model, columns, model.compile()(truth, columns))

    assert 17 <= result.parameters.pop("p_end") < 18
    assert result.parameters == pytest.approx({name: truth[name] for name in result.parameters}, rel=1e-3)


def test_a_given_start_leads_to_its_own_minimum() -> None:
    x = np.linspace(0.0, 10.0, 60)
    model = parse("p_a * exp(-((f_x - p_m) / 0.5) ** 2) + p_b")
    output = 2 + 5 * np.exp(-(((x - 8) / 0.5) ** 2))

    result = fit(model, {"f_x": x}, output, parameters=starts({"p_a": 4.0, "p_m": 7.5, "p_b": 1.0}))

    assert result.parameters == pytest.approx({"p_a": 5.0, "p_m": 8.0, "p_b": 2.0}, rel=1e-6)


def test_a_parameter_driven_against_a_bound_ends_exactly_on_it() -> None:
    columns = columns_of(9)
    exact = MAXIMUM.compile()(COSTS | {"p_launch": 0.0}, columns)

    result = fitted(OVERLAP, columns, 0.9 * exact - 1e-7)

    assert result.parameters["p_launch"] == 0.0
    assert "p_launch" in result.at_bound
    assert np.isnan(result.stderr["p_launch"])


def test_a_fixed_exponent_of_one_is_the_linear_model() -> None:
    columns = columns_of(10)
    total = parse("p_mem * f_bytes + p_flop * f_flops + p_launch")
    output = noisy(10, total.compile()(COSTS, columns))

    fixed = fit(OVERLAP, columns, output, parameters={"p_o": 1})
    linear = fit(total, columns, output)

    assert {name: fixed.parameters[name] for name in COSTS} == pytest.approx(linear.parameters, rel=1e-6)
    assert {name: fixed.stderr[name] for name in COSTS} == pytest.approx(linear.stderr, rel=1e-5)


def test_covariance_is_that_of_the_jacobian_by_finite_differences() -> None:
    columns = columns_of(11)
    output = noisy(11, OVERLAP.compile()({**COSTS, "p_o": 2.5}, columns))
    result = fit(OVERLAP, columns, output)
    slopes = []
    for name, value in result.parameters.items():
        up, down = ({**result.parameters, name: value * (1 + step)} for step in (1e-6, -1e-6))
        difference = OVERLAP.compile()(up, columns) - OVERLAP.compile()(down, columns)
        slopes.append(difference / (2e-6 * output))
    relative = np.array(list(result.parameters.values()))
    normal = np.array(slopes) @ np.array(slopes).T
    expected = np.linalg.inv(normal) * result.reduced_chi_square * np.outer(relative, relative)

    np.testing.assert_allclose(result.covariance, expected, rtol=1e-4)


@pytest.mark.parametrize("model", [SMOOTH, OVERLAP], ids=["smooth_max", "overlap"])
def test_the_solver_sees_the_true_slopes_in_its_own_coordinates(model: ModelString) -> None:
    columns = columns_of(14)
    values = {name: {**COSTS, "p_edge": 2e3, "p_o": 3.0}[name] for name in model.parameters}
    output = model.compile()(values, columns) * 1.1
    problem = pose(model, columns, output, parameters={}, nonnegative=True, residuals="relative", labels=None)
    coordinates = Coordinates.of(problem, {name: 0.7 * value for name, value in values.items()})
    point = coordinates.inner(values)
    assert coordinates.logarithmic.any()
    assert not coordinates.logarithmic.all()

    slopes = problem.jacobian(coordinates.outer(point)) * coordinates.slopes(point)

    for i in range(len(point)):
        step = 1e-6 * np.eye(len(point))[i]
        ends = (problem.residuals(coordinates.outer(point + sign * step)) for sign in (1, -1))
        np.testing.assert_allclose(slopes[:, i], np.subtract(*ends) / 2e-6, rtol=1e-5, atol=1e-8)
    assert coordinates.outer(point) == pytest.approx(values, rel=1e-12)


def test_fits_are_reproducible_to_the_last_bit() -> None:
    columns = columns_of(12)
    output = noisy(12, OVERLAP.compile()({**COSTS, "p_o": 2.5}, columns))

    assert fit(OVERLAP, columns, output).parameters == fit(OVERLAP, columns, output).parameters


@settings(max_examples=examples(4), deadline=None)
@given(st.floats(-9, 9), st.floats(-9, 9), st.randoms(use_true_random=False))
@pytest.mark.parametrize("model", [SMOOTH, OVERLAP], ids=["smooth_max", "overlap"])
def test_units_and_order_change_nothing_else(model: ModelString, time: float, feature: float, random: Random) -> None:
    columns = columns_of(13)
    shape = {"p_edge": 2e3, "p_o": 3.0}
    output = noisy(13, model.compile()({**COSTS, **shape}, columns))
    order = np.argsort([random.random() for _ in output])
    expected = fit(model, columns, output)
    changed = {"f_bytes": columns["f_bytes"][order] * 10**feature, "f_flops": columns["f_flops"][order]}

    result = fit(model, changed, output[order] * 10**time)

    units = {"p_mem": 10 ** (time - feature), "p_flop": 10**time, "p_launch": 10**time, "p_edge": 10**-time, "p_o": 1}
    for name, value in expected.parameters.items():
        assert result.parameters[name] == pytest.approx(value * units[name], rel=1e-5), name
        assert result.stderr[name] == pytest.approx(expected.stderr[name] * units[name], rel=1e-4), name
