"""Values and derivatives at extreme arguments, against arithmetic of 800 digits.

A result is right if it is no further off than if each argument had been off in its last digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp

from perfmodel.expression import parse
from perfmodel.expression.functions import LANGUAGE
from tests.covering import EXAMPLES, examples

DIGITS, STEP = 800, mpmath.mpf(10) ** -100
LAST_DIGITS = 64 * np.finfo(np.float64).eps
SMALLEST = 1e-290
"""The smallest magnitude that is compared: what underflows on the way is not."""

Oracle = Callable[..., Any]


@cache
def power(x: Any, p: Any) -> Any:
    """Returns a power, which the points beside an argument have in common with those beside another."""
    return x**p


def smooth_step(x: Any, p: Any) -> Any:
    return 1 / (1 + mp.exp(-2 * p * x))


def tanh(x: Any) -> Any:
    return 1 - 2 / (1 + mp.exp(2 * x))


ORACLES: dict[str, Oracle] = {
    "tanh": tanh,
    "exp": mp.exp,
    "log": mp.log,
    "sqrt": mp.sqrt,
    "abs": abs,
    "ceil": mp.ceil,
    "floor": mp.floor,
    "min": min,
    "max": max,
    "step": lambda x: mp.mpf(x >= 0),
    "smooth_step": smooth_step,
    "smooth_max": lambda a, b, p: a * smooth_step(a - b, p) + b * smooth_step(b - a, p),
    "overlap": lambda a, b, c, p: (power(a, p) + power(b, p) + power(c, p)) ** (1 / p),
    "saturating": lambda n, a, b, c, a2, c2, n_sat: a * power(n, b) + c if n <= n_sat else a2 * n + c2,
    "group_utilization": lambda n, u: n / u / mp.ceil(n / u),
}
JUMPS = ("ceil", "floor", "step", "group_utilization", "saturating")

wide = st.builds(
    lambda digits, exponent, sign: sign * digits * 10.0**exponent,
    st.floats(1, 10),
    st.integers(-90, 90),
    st.sampled_from((1.0, -1.0)),
)
usual = st.floats(-800, 800).filter(lambda x: abs(x) > 1e-90)
anything = st.one_of(st.just(0.0), wide, usual)
positive = st.one_of(wide, usual).map(abs).filter(bool)
exponent = st.one_of(st.floats(1, 4), st.floats(1, 1e4))
ARGUMENTS: dict[str, tuple[st.SearchStrategy[float], ...]] = {
    "exp": (usual,),
    "log": (positive,),
    "sqrt": (positive,),
    "min": (anything, anything),
    "max": (anything, anything),
    "smooth_step": (anything, anything),
    "smooth_max": (anything, anything, anything),
    "overlap": (positive, positive, positive, exponent),
    "saturating": (
        positive,
        anything,
        st.integers(-12, 12).map(lambda n: n / 4),
        anything,
        anything,
        anything,
        positive,
    ),
    "group_utilization": (positive, positive),
}


def moved(function: Oracle, at: Sequence[Any], place: int) -> tuple[Any, Any]:
    """Returns the function a little below and above one argument, and no more than that."""
    step = STEP * (abs(at[place]) or 1)
    below, above = ([*at[:place], at[place] + sign * step, *at[place + 1 :]] for sign in (-1, 1))
    return function(*below), function(*above)


def slope(function: Oracle, place: int) -> Oracle:
    def derivative(*at: Any) -> Any:
        below, above = moved(function, at, place)
        return (above - below) / (2 * STEP * (abs(at[place]) or 1))

    return derivative


def tolerance(function: Oracle, at: Sequence[Any]) -> Any:
    """Returns how far off a function is where each argument is off in its last digits."""
    reach = sum(abs(at[place] * slope(function, place)(*at)) for place in range(len(at)))
    return LAST_DIGITS * (abs(function(*at)) + reach) + SMALLEST


def assert_right(found: float, function: Oracle, at: Sequence[Any], also: Any = 0) -> None:
    expected, allowed = function(*at), tolerance(function, at) + also
    if abs(expected) > 1e290 or allowed > 1e290:
        assert not math.isnan(found)
    else:
        assert abs(mp.mpf(found) - expected) <= allowed, (found, mp.nstr(expected, 20))


@pytest.mark.parametrize("name", LANGUAGE)
def test_a_function_and_its_derivatives(name: str) -> None:
    oracle, strategies = ORACLES[name], ARGUMENTS.get(name, (anything,))
    parameters = [f"p_{letter}" for letter in "abcdefg"[: len(strategies)]]
    compiled = parse(f"{name}({', '.join(parameters)})").compile()

    @settings(deadline=None, max_examples=examples(10), derandomize=not EXAMPLES)
    @given(st.tuples(*strategies))
    def check(arguments: tuple[float, ...]) -> None:
        given_values = dict(zip(parameters, arguments, strict=True))
        power.cache_clear()
        with mp.workdps(DIGITS):
            at = [mp.mpf(argument) for argument in arguments]
            if name == "group_utilization":  # rounding decides where a wave is full
                assume(at[0] / at[1] < 1e50 and abs(at[0] / at[1] - mp.nint(at[0] / at[1])) > 1e-6)
            assert_right(float(compiled(given_values, {})), oracle, at)
            found = compiled.jacobian(given_values, {})
            for place, derivative in enumerate(found.tolist()):
                if name == "saturating" and place == 2:
                    assume(at[0] < 1e30)
                below, above = moved(oracle, at, place)
                here, step = oracle(*at), STEP * (abs(at[place]) or 1)
                if abs((above - here) - (here - below)) < 1e-6 * (abs(above - below) + step * step):
                    # What many times p changes is small beside the norm itself.
                    also = LAST_DIGITS * here if name == "overlap" and place == 3 else 0
                    assert_right(derivative, slope(oracle, place), at, also)

    check()


@pytest.mark.parametrize(
    ("text", "inputs", "expected"),
    [
        ("tanh(exp(p_a))", {"p_a": 1000.0}, [0.0]),
        ("exp(-exp(p_a))", {"p_a": 1000.0}, [0.0]),
        ("1/(1 + exp(p_a))", {"p_a": 1000.0}, [0.0]),
        ("smooth_step(exp(p_a), p_b)", {"p_a": 1000.0, "p_b": 2.0}, [0.0, 0.0]),
        ("smooth_max(exp(p_a), 1, p_b)", {"p_a": -2000.0, "p_b": 1e300}, [0.0, 0.0]),
        ("min(exp(p_a), p_b)", {"p_a": 1000.0, "p_b": 2.0}, [0.0, 1.0]),
        ("p_b/exp(p_a)", {"p_a": 1000.0, "p_b": 2.0}, [0.0, 0.0]),
        ("exp(p_a)**(-2)", {"p_a": 1000.0}, [0.0]),
        ("tanh(p_a**2)", {"p_a": 1e200}, [0.0]),
        ("step(exp(p_a)) + floor(exp(p_b))*0", {"p_a": 1000.0, "p_b": 1.0}, [0.0, 0.0]),
    ],
)
def test_what_no_longer_changes_has_the_slope_0(text: str, inputs: dict[str, float], expected: list[float]) -> None:
    model = parse(text)
    found = model.compile().jacobian(inputs, {})
    assert dict(zip(model.parameters, found.tolist(), strict=True)) == dict(zip(inputs, expected, strict=True))


@pytest.mark.parametrize(("a", "b"), [(0.46, -1.3e8), (-1.3e8, 0.46)])
def test_the_smaller_one_takes_no_digits_of_the_larger(a: float, b: float) -> None:
    assert float(parse("smooth_max(p_a, p_b, p_c)").compile()({"p_a": a, "p_b": b, "p_c": 1e-3}, {})) == 0.46
