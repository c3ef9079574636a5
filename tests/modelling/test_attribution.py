"""Predicted times are divided among the parts of models of any form: parts are named, and add up."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.expression import parse
from perfmodel.modelling.attribution import REST, attribute

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


def test_a_part_counts_with_all_that_it_adds_on_its_way() -> None:
    """t**2 grows from nothing to 400 with t, which its slope at the end alone would overstate twofold."""
    parts = attribute(parse("t = p_a*f_x\nt**2 + p_b*f_y"), PARAMETERS, FEATURES)
    assert {p.name: p.contribution for p in parts} == pytest.approx({"t": 400, "p_b": 3})


def test_what_is_there_without_any_part_is_a_rest() -> None:
    parts = attribute(parse("t = p_a*f_x\nt + exp(-t)"), PARAMETERS, FEATURES)
    assert {p.name: p.contribution for p in parts} == pytest.approx({"t": 19, REST: 1}, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    first=st.floats(1e-9, 1.0),
    second=st.floats(1e-9, 1.0),
    third=st.floats(0, 1.0),
    edge=st.floats(0.1, 1e6),
    exponent=st.floats(1, 64),
)
def test_soft_maxima_are_shared_out_whole_and_nobody_owes(
    first: float, second: float, third: float, edge: float, exponent: float
) -> None:
    """A soft maximum falls where its smaller argument grows from far below; the larger one would count over 100 %."""
    costs = {"p_a": first, "p_b": second, "p_c": third, "p_e": edge, "p_n": exponent}
    for string in ("smooth_max(p_a*f_x, p_b*f_x, p_e) + p_c*f_x", "overlap(p_a*f_x, p_b*f_x, p_c*f_x, p_n)"):
        model = parse(string)
        parts = attribute(model, costs, {"f_x": 1.0})
        total = float(model.compile()(costs, {"f_x": 1.0}))
        assert sum(part.contribution for part in parts) == pytest.approx(total, rel=1e-9)
        assert min(part.contribution for part in parts) >= 0


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
