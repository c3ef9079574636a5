"""Times fits: the analytic Jacobian against lmfit's finite differences on the same scaled problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from perfmodel.expression import ModelString, parse
from perfmodel.modelling.fitting import fit
from perfmodel.modelling.fitting.nonlinear import Coordinates
from perfmodel.modelling.fitting.problem import Problem, pose

COSTS = {
    "p_load": 4e-12,
    "p_store": 6e-12,
    "p_madd": 1e-13,
    "p_local": 1e-12,
    "p_edge": 2e4,
    "p_o": 4.0,
    "p_launch": 4e-6,
}
MODEL = parse("""
    memory = p_load * f_loads + p_store * f_stores
    onchip = smooth_max(p_madd * f_madds, p_local * f_local, p_edge)
    p_launch + overlap(memory, onchip, p_o)
""")


def measurements(model: ModelString, count: int) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float64]]:
    random = np.random.default_rng(0)
    sizes = 10 ** random.uniform(6, 10, count)
    factors = {"f_loads": 1.0, "f_stores": 0.5, "f_madds": 50.0, "f_local": 5.0}
    columns = {name: factor * sizes * 10 ** random.uniform(-1, 1, count) for name, factor in factors.items()}
    exact = model.compile()(COSTS, columns)
    return columns, exact * (1 + 0.01 * random.standard_normal(count))


def local_fit(problem: Problem, *, analytic: bool) -> float:
    """Runs one local fit from a point off the solution, in the scaled coordinates that `fit` uses; returns the sum of
    squares."""
    import lmfit

    names = problem.free
    start = {name: COSTS[name] * (1.5 if i % 2 else 0.7) for i, name in enumerate(names)}
    coordinates = Coordinates.of(problem, start)
    parameters = lmfit.Parameters()
    bounds = zip(names, coordinates.inner(start), coordinates.lower, coordinates.upper, strict=True)
    for name, value, lower, upper in bounds:
        parameters.add(name, value=value, min=lower, max=upper)

    def inner(point: Any) -> NDArray[np.float64]:
        return np.array([parameter.value for parameter in point.values()])

    def residuals(point: Any) -> NDArray[np.float64]:
        return problem.residuals(coordinates.outer(inner(point)))

    def jacobian(point: Any) -> NDArray[np.float64]:
        return problem.jacobian(coordinates.outer(inner(point))) * coordinates.slopes(inner(point))

    options = {"jac": jacobian} if analytic else {}
    return float(lmfit.minimize(residuals, parameters, "least_squares", x_scale="jac", **options).chisqr)


@pytest.mark.parametrize("count", [100, 10_000])
@pytest.mark.parametrize("analytic", [True, False], ids=["analytic", "finite differences"])
@pytest.mark.benchmark(group="one local fit")
def test_local_fit(benchmark: Any, analytic: bool, count: int) -> None:
    columns, times = measurements(MODEL, count)
    problem = pose(MODEL, columns, times, parameters={}, nonnegative=True, residuals="relative", labels=None)
    expected = 1e-4 * count

    squares = benchmark(local_fit, problem, analytic=analytic)

    assert squares == pytest.approx(expected, rel=0.5)


@pytest.mark.parametrize("count", [100, 10_000])
@pytest.mark.benchmark(group="whole fit from the default starts")
def test_whole_fit(benchmark: Any, count: int) -> None:
    columns, times = measurements(MODEL, count)

    result = benchmark.pedantic(fit, (MODEL, columns, times), rounds=3, warmup_rounds=1)

    assert result.chi_square == pytest.approx(1e-4 * count, rel=0.5)


@pytest.mark.benchmark(group="linear fit")
def test_linear_fit(benchmark: Any) -> None:
    model = parse("p_load * f_loads + p_store * f_stores + p_madd * f_madds + p_launch")
    columns, times = measurements(model, 10_000)

    result = benchmark(fit, model, columns, times)

    assert result.method == "linear"
