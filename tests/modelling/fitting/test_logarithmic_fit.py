"""Logarithmic residuals: symmetric in factors, and not bent by measurements that the model cannot explain."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from perfmodel.basics.errors import FitError
from perfmodel.expression import parse
from perfmodel.modelling.fitting import fit

Floats = NDArray[np.float64]
COST = 3e-12


def measured(factors: Floats) -> tuple[dict[str, Floats], Floats]:
    work = np.geomspace(1e5, 1e9, len(factors))
    return {"f_work_items": work}, 1e-5 + COST * work * factors


@pytest.mark.parametrize("text", ["p_launch + p_item * f_work_items", "overlap(p_launch, p_item * f_work_items, p_o)"])
def test_exact_measurements_are_fitted_exactly(text: str) -> None:
    model = parse(text)
    work = np.geomspace(1e5, 1e9, 40)
    truth = {"p_launch": 1e-5, "p_item": COST, "p_o": 3.0}
    columns = {"f_work_items": work}
    output = np.asarray(model.compile()({name: truth[name] for name in model.parameters}, columns))
    result = fit(model, columns, output, residuals="logarithmic")
    assert result.parameters == pytest.approx({name: truth[name] for name in model.parameters}, rel=1e-6)


@pytest.mark.parametrize("factor", [5.0, 0.2])
def test_a_fifth_of_the_measurements_does_not_bend_the_rest(factor: float) -> None:
    """Kernels of a kind that the model has no term for, all of them slower, or all faster, than it can say."""
    columns, output = measured(np.where(np.arange(40) % 5 == 2, factor, 1.0))
    model = parse("p_item * f_work_items")
    robust = fit(model, columns, output - 1e-5, residuals="logarithmic").parameters["p_item"]
    relative = fit(model, columns, output - 1e-5).parameters["p_item"]
    assert robust == pytest.approx(COST, rel=0.04)
    assert abs(robust / COST - 1) < abs(relative / COST - 1)


def test_too_long_and_too_short_by_a_factor_weigh_alike() -> None:
    """Half of the measurements are doubled and half are halved: the fit lies at their geometric mean."""
    columns, output = measured(np.where(np.arange(40) % 2, 2.0, 0.5))
    result = fit(parse("p_item * f_work_items"), columns, output - 1e-5, residuals="logarithmic")
    assert result.parameters["p_item"] == pytest.approx(COST, rel=0.01)
    assert result.residuals == "logarithmic"


def test_times_that_have_no_logarithm_are_refused() -> None:
    columns, output = measured(np.ones(10))
    output[3] = 0.0
    with pytest.raises(FitError, match="'row 3' is 0 where logarithmic residuals need a positive finite time"):
        fit(parse("p_item * f_work_items"), columns, output, residuals="logarithmic")
