"""Compares quotients of polynomials with those of numbers."""

from __future__ import annotations

import itertools

import pytest

from perfmodel.counting.symbolic import Polynomial, name, number, quotient, remainder

BOUNDS = {"x": (0, 15), "y": (0, 7), "z": (-2, 3)}
SIZES = [range(least, most + 1) for least, most in BOUNDS.values()]


@pytest.mark.parametrize("divisor", [4, 6, 8, 16, 24, 32, 64, 128])
@pytest.mark.parametrize("weights", [(1, 16, 0), (1, 16, 128), (1, 16, 64), (3, 48, -96), (1, 12, 0), (4, 64, 8)])
@pytest.mark.parametrize("constant", [0, 3, -5])
def test_quotients_are_those_of_numbers(weights: tuple[int, ...], divisor: int, constant: int) -> None:
    terms = (name(each).scaled(weight) for each, weight in zip(BOUNDS, weights, strict=True))
    value = sum(terms, number(constant))
    assert isinstance(value, Polynomial)
    whole, rest = (each(value, number(divisor), BOUNDS) for each in (quotient, remainder))
    for point in itertools.product(*SIZES):
        at = dict(zip(BOUNDS, point, strict=True))
        given = value.at(at)
        assert given is not None
        assert (whole.at(at), rest.at(at)) == divmod(given, divisor)


def test_what_is_too_small_for_a_quotient_is_left_out() -> None:
    flat = name("y").scaled(16) + name("x")
    assert str(quotient(flat, number(64), BOUNDS)) == "floor((y)/(4))"
    assert str(quotient(flat + number(5), number(64), BOUNDS)) == "floor((5 + 16*y + x)/(64))"
