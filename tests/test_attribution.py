"""Where a predicted time goes, for models of any form: the parts are named, and add up."""

from __future__ import annotations

import pytest

from perfmodel.attribution import REST, attribute
from perfmodel.expression import parse

PARAMETERS = {"p_a": 2.0, "p_b": 1.0, "p_c": 0.5, "p_n": 8.0, "p_e": 50.0, "p_rate": 4.0}
FEATURES = {"f_x": 10.0, "f_y": 3.0}

CASES = {
    "a number in front": ("2*p_a*f_x + p_b*f_y", {"p_a": 40, "p_b": 3}),
    "a sum of features": ("p_a*(f_x + f_y) + p_b*f_y", {"p_a": 26, "p_b": 3}),
    "a quotient": ("p_a*f_x/2 + p_b*f_y", {"p_a": 10, "p_b": 3}),
    "a rate": ("f_x/p_rate + p_b*f_y", {"p_rate": 2.5, "p_b": 3}),
    "a function of a feature": ("p_a*ceil(f_x/3) + p_b*f_y", {"p_a": 8, "p_b": 3}),
    "a term without parameters": ("t = 7*f_x\nt + p_b*f_y", {"t": 70, "p_b": 3}),
    "terms under a maximum": ("a = p_a*f_x\nb = p_b*f_y\nmax(a, b)", {"a": 20, "b": 0}),
    "the overlap written out": (
        "a = p_a*f_x\nb = p_b*f_y\na*smooth_step(a - b, p_e) + b*smooth_step(b - a, p_e)",
        {"a": 20, "b": 0},
    ),
    "a norm": ("overlap(p_a*f_x, p_b*f_y, p_n)", {"p_a": 20, "p_b": 0}),
    "terms within terms": ("a = p_a*f_x\nb = a + p_b*f_y\nb + p_c*f_y", {"a": 20, "p_b": 3, "p_c": 1.5}),
    "a square root": ("sqrt((p_a*f_x)**2 + (p_b*f_y)**2)", {"p_a": 20**2 / (20**2 + 9) ** 0.5}),
    "a constant": ("p_a*f_x + 5", {"p_a": 20, "5": 5}),
}


@pytest.mark.parametrize(("source", "expected"), CASES.values(), ids=CASES)
def test_parts_are_named_and_add_up(source: str, expected: dict[str, float]) -> None:
    model = parse(source)
    parts = attribute(model, PARAMETERS, FEATURES)
    found = {part.name: part.contribution for part in parts}
    for name, contribution in expected.items():
        assert found[name] == pytest.approx(contribution, abs=0.02), name
    total = float(model.compile()(PARAMETERS, FEATURES))
    assert sum(found.values()) == pytest.approx(total, rel=0.01)
    assert [p.contribution for p in parts] == sorted((p.contribution for p in parts), reverse=True)


def test_what_the_parts_leave_is_a_rest() -> None:
    """p_a * f_x ** p_c is not homogeneous of degree one in what its exponent belongs to, but in p_a it is."""
    parts = attribute(parse("t = p_a*f_x\nt**2 + p_b*f_y"), PARAMETERS, FEATURES)
    assert {p.name: p.contribution for p in parts} == pytest.approx({"t": 800, "p_b": 3, REST: -400})


PRODUCTS = {
    "a cost times a part that is missed": (
        "filled = f_x/p_rate\nmissed = filled/(1 + filled)\ndram = p_a*missed*f_y\ndram + p_b*f_y",
        {"dram": 2 * 2.5 / 3.5 * 3, "p_b": 3},
    ),
    "costs behind a common factor": (
        "near = f_x/p_rate\nwaits = (p_a*near + p_b)*f_y\nlatency = waits/f_x\nlatency + p_c*f_y",
        {"p_a": 2 * 2.5 * 3 / 10, "p_b": 0.3, "p_c": 1.5},
    ),
    "two times multiplied": ("t = p_a*f_x\nu = p_b*f_y\nt*u + p_c*f_y", {"p_a*f_x*(p_b*f_y)": 60, "p_c": 1.5}),
}


@pytest.mark.parametrize(("source", "expected"), PRODUCTS.values(), ids=PRODUCTS)
def test_what_is_multiplied_with_a_cost_is_no_part_of_its_own(source: str, expected: dict[str, float]) -> None:
    """Every part is a time by itself, factors around it included, so that in a sum it is what it contributes."""
    parts = attribute(parse(source), PARAMETERS, FEATURES)
    assert {part.name: part.contribution for part in parts} == pytest.approx(expected)
    assert {part.name: part.value for part in parts} == pytest.approx(expected)
