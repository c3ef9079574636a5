"""The fit finds, names and explains what the measurements cannot say."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.basics.errors import FitError
from perfmodel.expression import parse
from perfmodel.modelling.fitting import FitResult, FitWarning, Undetermined, fit

X = np.arange(1.0, 11.0)
NOISE = 1 + 0.01 * np.random.default_rng(0).standard_normal(10)


def quietly(source: str, columns: dict[str, np.ndarray], output: np.ndarray) -> FitResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return fit(parse(source), columns, output)


def test_a_determined_fit_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fit(parse("p_a * f_x + p_b"), {"f_x": X}, (3 * X + 2) * NOISE, strict=True)

    assert result.undetermined == ()


def test_an_absent_feature_leaves_its_parameter_at_zero_and_the_others_untouched() -> None:
    columns = {"f_x": X, "f_y": np.zeros(10)}
    with pytest.warns(FitWarning, match="do not determine p_b: f_y is zero in every measurement"):
        result = fit(parse("p_a * f_x + p_b * f_y"), columns, 3 * X * NOISE)
    alone = fit(parse("p_a * f_x"), {"f_x": X}, 3 * X * NOISE)

    assert result.parameters["p_b"] == 0.0
    assert np.isnan(result.stderr["p_b"])
    assert result.parameters["p_a"] == pytest.approx(alone.parameters["p_a"], rel=1e-12)
    assert result.stderr["p_a"] == pytest.approx(alone.stderr["p_a"], rel=1e-9)


def test_a_number_given_for_a_parameter_is_fixed_though_no_measurement_shows_it() -> None:
    columns = {"f_x": X, "f_y": np.zeros(10)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fit(parse("p_a * f_x + p_b * f_y"), columns, 3 * X * NOISE, parameters={"p_b": 0.25})

    assert result.parameters["p_b"] == 0.25
    assert result.mark("p_b") == "(fixed)"
    assert result.undetermined == ()


def test_a_parameter_is_absent_only_if_all_its_places_are() -> None:
    columns = {"f_x": X, "f_y": np.zeros(10), "f_z": np.zeros(10)}
    result = quietly("p_a * (f_x + f_y) + p_b * (f_y + 2 * f_z) * exp(-p_c) + p_d * f_z", columns, 3 * X)

    assert {item.parameters[0]: item.reason for item in result.undetermined} == {
        "p_b": "f_y and f_z are zero in every measurement",
        "p_c": "f_y and f_z are zero in every measurement",
        "p_d": "f_z is zero in every measurement",
    }


def test_strict_refuses_with_the_same_sentence() -> None:
    with pytest.raises(FitError, match="p_b: f_y is zero in every measurement; add measurements that do"):
        fit(parse("p_a * f_x + p_b * f_y"), {"f_x": X, "f_y": 0 * X}, 3 * X, strict=True)


def test_collinear_features_are_named_with_the_combination_that_is_fixed() -> None:
    result = quietly("p_a * f_x + p_b * f_y + p_c", {"f_x": X, "f_y": 2 * X}, (3 * X + 5) * NOISE)

    (item,) = result.undetermined
    assert item.parameters == ("p_a", "p_b")
    assert "the measurements fix only p_a + 2 p_b" in item.reason
    assert result.parameters["p_a"] + 2 * result.parameters["p_b"] == pytest.approx(3, rel=0.02)
    assert np.isnan([result.stderr["p_a"], result.stderr["p_b"]]).all()
    assert result.stderr["p_c"] > 0


def test_collinear_parameters_share_evenly_in_scaled_units() -> None:
    result = quietly("p_a * f_x + p_b * f_y", {"f_x": X, "f_y": 1e9 * X}, 3 * X)

    assert result.parameters == pytest.approx({"p_a": 1.5, "p_b": 1.5e-9})


def test_independent_collinear_groups_are_told_apart() -> None:
    z = X**2
    columns = {"f_a": X, "f_b": 3 * X, "f_c": z, "f_d": z / 7, "f_e": np.sqrt(X)}
    source = "p_a * f_a + p_b * f_b + p_c * f_c + p_d * f_d + p_e * f_e"

    result = quietly(source, columns, (X + z + np.sqrt(X)) * NOISE)

    assert {frozenset(item.parameters) for item in result.undetermined} == {
        frozenset({"p_a", "p_b"}),
        frozenset({"p_c", "p_d"}),
    }
    assert result.stderr["p_e"] > 0


def test_three_columns_in_one_plane_form_one_group() -> None:
    columns = {"f_a": X, "f_b": X**2, "f_c": X + X**2}
    result = quietly("p_a * f_a + p_b * f_b + p_c * f_c + p_d", columns, (X + X**2 + 1) * NOISE)

    (item,) = result.undetermined
    assert item.parameters == ("p_a", "p_b", "p_c")
    assert result.degrees_of_freedom == 10 - 3


@settings(max_examples=40, deadline=None)
@given(st.floats(-8, 8), st.floats(-8, 8), st.integers(0, 10**6))
def test_collinearity_does_not_depend_on_units(first: float, second: float, seed: int) -> None:
    counts = np.random.default_rng(seed).integers(1, 10**9, 12).astype(float)
    columns = {"f_a": counts * 10**first, "f_b": counts * 10**second, "f_c": np.arange(12.0) ** 2}
    result = quietly("p_a * f_a + p_b * f_b + p_c * f_c + p_d", columns, counts * 1e-9 + 1)

    assert [item.parameters for item in result.undetermined] == [("p_a", "p_b")]


def test_nearly_collinear_features_are_determined_with_wide_standard_errors() -> None:
    random = np.random.default_rng(1)
    n = np.linspace(100.0, 1000.0, 40)
    columns = {"f_a": n**3, "f_b": n**3 + n**2}
    output = 2 * (n**3 + n**2) * (1 + 0.01 * random.standard_normal(40))

    result = fit(parse("p_a * f_a + p_b * f_b"), columns, output, nonnegative=False, strict=True)

    assert result.stderr["p_a"] > 0.1
    assert abs(result.correlation[0, 1]) > 0.99


def test_covariance_with_collinear_parameters_still_gives_the_variance_of_predictions() -> None:
    both = quietly("p_a * f_x + p_b * f_y", {"f_x": X, "f_y": 2 * X}, 3 * X * NOISE)
    one = fit(parse("p_a * f_x"), {"f_x": X}, 3 * X * NOISE)

    gradient = np.array([1.0, 2.0])
    assert gradient @ both.covariance @ gradient == pytest.approx(one.covariance[0, 0], rel=1e-9)


def test_a_term_hidden_behind_a_larger_one_is_said_to_be() -> None:
    columns = {"f_x": X, "f_y": np.ones(10)}
    model = parse("max(p_a * f_x, p_b * f_y)")
    with pytest.warns(FitWarning, match="p_b: at the fitted values"):
        result = fit(model, columns, 3 * X * NOISE, parameters={"p_b": (0, 1)})

    hidden = Undetermined(("p_b",), "at the fitted values its term is hidden behind a larger one")
    assert result.undetermined == (hidden,)
    assert result.parameters["p_a"] == pytest.approx(3, rel=0.02)


def test_an_edge_far_from_every_measurement_is_undetermined() -> None:
    x = np.array([1.0, 2.0, 4.0, 1000.0, 2000.0, 4000.0])
    columns = {"f_x": x, "f_y": np.array([1000.0, 2000.0, 4000.0, 1.0, 2.0, 4.0])}
    result = quietly("smooth_max(p_a * f_x, p_b * f_y, p_edge)", columns, np.maximum(3 * x, 5 * columns["f_y"]))

    (item,) = result.undetermined
    assert item.parameters == ("p_edge",)
    assert "similar size" in item.reason
    assert result.parameters["p_a"] == pytest.approx(3.0)
    assert result.parameters["p_b"] == pytest.approx(5.0)


def test_a_product_of_parameters_is_collinear_near_the_fit() -> None:
    result = quietly("p_a * (p_b * f_x) + p_c", {"f_x": X}, (3 * X + 2) * NOISE)

    (item,) = result.undetermined
    assert item.parameters == ("p_a", "p_b")
    assert "collinear near the fitted values" in item.reason
    assert result.parameters["p_a"] * result.parameters["p_b"] == pytest.approx(3, rel=0.05)


def test_a_cost_that_would_be_negative_is_zero_and_marked() -> None:
    result = fit(parse("p_a * f_x + p_b"), {"f_x": X}, (3 * X - 2) * NOISE)

    assert result.at_bound == ("p_b",)
    assert result.parameters["p_b"] == 0.0
    assert result.undetermined == ()
    assert result.degrees_of_freedom == 9
