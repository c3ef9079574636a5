"""Each function against its published formula, and where formulas meet the limits of floating point."""

from __future__ import annotations

import math
import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.expression import parse
from perfmodel.expression.functions import LANGUAGE
from tests.covering import examples


def value(text: str, **inputs: float) -> float:
    """Returns the model's value for inputs by name; parameters and features alike."""
    return float(parse(text).compile()(inputs, inputs))


def slope(text: str, parameter: str, **inputs: float) -> float:
    model = parse(text)
    return float(model.compile().jacobian(inputs, inputs)[model.parameters.index(parameter)])


def test_the_language_has_exactly_its_functions() -> None:
    assert " ".join(LANGUAGE) == (
        "tanh exp log sqrt abs ceil floor min max step smooth_step smooth_max overlap saturating group_utilization"
    )


@pytest.mark.parametrize(
    ("text", "x", "expected"),
    [
        ("tanh(p_x)", 0.5, math.tanh(0.5)),
        ("exp(p_x)", 2.0, math.exp(2.0)),
        ("log(p_x)", 5.0, math.log(5.0)),
        ("sqrt(p_x)", 2.25, 1.5),
        ("abs(p_x)", -3.0, 3.0),
        ("ceil(p_x)", 1.2, 2.0),
        ("floor(p_x)", -1.2, -2.0),
        ("min(p_x, 2, -1)", 3.0, -1.0),
        ("max(p_x, 2, -1)", 3.0, 3.0),
        ("step(p_x)", 0.0, 1.0),
        ("step(p_x)", -1e-9, 0.0),
        ("smooth_step(p_x, 2)", 0.3, (math.tanh(0.6) + 1) / 2),
        ("smooth_max(p_x, 2, 0.5)", 1.0, (math.tanh(-0.5) + 1) / 2 + 2 * (math.tanh(0.5) + 1) / 2),
        ("overlap(p_x, 4, 2)", 3.0, 5.0),
        ("overlap(p_x, 4, 2, 1)", 3.0, 9.0),
        ("saturating(p_x, 2, 0.5, 1, 3, 7, 16)", 16.0, 9.0),
        ("saturating(p_x, 2, 0.5, 1, 3, 7, 16)", 17.0, 58.0),
    ],
)
def test_values(text: str, x: float, expected: float) -> None:
    assert value(text, p_x=x) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("units", [1, 3, 80, 132])
def test_group_utilization_is_full_only_for_whole_waves(units: int) -> None:
    groups = np.arange(1, 5 * units)
    low, high = groups // units, -(-groups // units)
    expected = low / high + (groups % units / units) * (high - low) / high
    found = parse("group_utilization(f_g, p_u)").compile()({"p_u": units}, {"f_g": groups})
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert set(groups[found == 1.0]) == set(groups[groups % units == 0])


def test_group_utilization_of_no_groups_is_zero() -> None:
    assert value("group_utilization(f_g, 80)", f_g=0.0) == 0.0


resources = st.floats(min_value=0.0, max_value=1e12, allow_subnormal=False)


@settings(deadline=None, max_examples=examples(50))
@given(resources, resources, resources, st.floats(min_value=1.0, max_value=1e6))
def test_overlap_and_its_derivatives_agree_with_exact_arithmetic(a: float, b: float, c: float, p: float) -> None:
    inputs = {"p_a": a, "p_b": b, "p_c": c, "p_p": p}
    text = "overlap(p_a, p_b, p_c, p_p)"
    with mpmath.workdps(60):
        exact = [mpmath.mpf(x) for x in (a, b, c)]
        largest = max(exact)
        if largest == 0:
            assert value(text, **inputs) == 0
            return
        powers = [(x / largest) ** p for x in exact]
        norm = mpmath.fsum(powers) ** (1 / mpmath.mpf(p))
        expected = float(largest * norm)
        by_a = float((exact[0] / largest / norm) ** (mpmath.mpf(p) - 1))
        logs = mpmath.fsum(w * mpmath.log(x / largest) for w, x in zip(powers, exact, strict=True) if x > 0)
        total = mpmath.fsum(powers)
        by_p = float(largest * norm * (logs / total - mpmath.log(total) / p) / p)
    assert value(text, **inputs) == pytest.approx(expected, rel=1e-9)
    assert slope(text, "p_a", **inputs) == pytest.approx(by_a, rel=1e-6, abs=1e-9)
    assert slope(text, "p_p", **inputs) == pytest.approx(by_p, rel=1e-6, abs=1e-12 * expected)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_overlap_runs_from_the_sum_to_the_maximum_at_any_scale(scale: float) -> None:
    inputs = {"p_a": 1.0 * scale, "p_b": 2.0 * scale}
    assert value("overlap(p_a, p_b, p_p)", p_p=1.0, **inputs) == pytest.approx(3.0 * scale)
    assert value("overlap(p_a, p_b, p_p)", p_p=1e300, **inputs) == 2.0 * scale
    assert slope("overlap(p_a, p_b, p_p)", "p_b", p_p=1e300, **inputs) == 1.0
    assert slope("overlap(p_a, p_b, p_p)", "p_a", p_p=1e300, **inputs) == 0.0
    assert slope("overlap(p_a, p_b, p_p)", "p_p", p_p=1e300, **inputs) == 0.0


def test_overlap_of_unused_resources_has_finite_derivatives() -> None:
    text = "overlap(p_a*f_x, p_b*f_y, p_p)"
    idle = {"p_a": 2.0, "p_b": 3.0, "p_p": 4.0, "f_x": 0.0, "f_y": 0.0}
    assert [slope(text, name, **idle) for name in ("p_a", "p_b", "p_p")] == [0.0, 0.0, 0.0]
    one = idle | {"f_y": 5.0}
    assert [slope(text, name, **one) for name in ("p_a", "p_b", "p_p")] == [0.0, 5.0, 0.0]
    unset = idle | {"p_a": 0.0, "p_b": 0.0, "f_x": 1.0, "f_y": 1.0}
    assert slope(text, "p_a", **unset) == pytest.approx(2 ** (1 / 4 - 1))
    assert slope(text, "p_a", **unset | {"p_p": 1.0}) == 1.0


def test_smooth_max_becomes_the_maximum() -> None:
    assert value("smooth_max(p_a, p_b, p_edge)", p_a=1e-3, p_b=2e-20, p_edge=1e9) == 1e-3
    assert value("smooth_max(p_a, p_b, p_edge)", p_a=2e-20, p_b=1e-3, p_edge=1e300) == 1e-3


@pytest.mark.parametrize(
    ("text", "inputs", "parameter", "expected"),
    [
        ("sqrt(p_a*f_x)", {"p_a": 2.0, "f_x": 0.0}, "p_a", 0.0),
        ("(p_a*f_x)**0.5", {"p_a": 2.0, "f_x": 0.0}, "p_a", 0.0),
        ("p_a*f_x**p_b", {"p_a": 2.0, "p_b": 0.5, "f_x": 0.0}, "p_b", 0.0),
        ("min(p_a/f_x, p_b)", {"p_a": 1.0, "p_b": 3.0, "f_x": 0.0}, "p_a", 0.0),
        ("min(p_a/f_x, p_b)", {"p_a": 1.0, "p_b": 3.0, "f_x": 0.0}, "p_b", 1.0),
        ("saturating(f_n, p_a, p_b, 1, p_c, 0, 4)", {"p_a": 1.0, "p_b": -1.0, "p_c": 1.0, "f_n": 0.0}, "p_c", 0.0),
        ("max(p_a, p_b, 1)", {"p_a": 2.0, "p_b": 3.0}, "p_b", 1.0),
        ("max(p_a, p_b, 1)", {"p_a": 2.0, "p_b": 3.0}, "p_a", 0.0),
        ("abs(p_a)", {"p_a": -2.0}, "p_a", -1.0),
        ("p_a*step(p_a - 1) + floor(p_a) + ceil(p_a)", {"p_a": 2.5}, "p_a", 1.0),
        ("p_a**0 + p_a**1", {"p_a": 0.0}, "p_a", 1.0),
    ],
)
def test_derivatives_at_zeros_and_branches(
    text: str, inputs: dict[str, float], parameter: str, expected: float
) -> None:
    assert slope(text, parameter, **inputs) == expected


def test_impossible_operations_give_inf_or_nan_without_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert value("1/f_x + p_a", f_x=0.0, p_a=1.0) == math.inf
        assert math.isnan(value("log(p_a)", p_a=-1.0))
        assert math.isnan(value("overlap(p_a, 1, 2.5)", p_a=-1.0))
        assert value("exp(p_a)", p_a=1e6) == math.inf
