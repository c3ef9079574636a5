"""Tests what a parsed model string tells of itself."""

from __future__ import annotations

import copy
import pickle

import pytest

from perfmodel.basics.errors import ModelStringError
from perfmodel.expression import compile_nodes, parse, to_text

TEXT = """
    overhead = p_launch * f_sync_kernel_launch + p_group * f_thread_groups
    gmem     = p_a * f_mem_access_tag:a_global_float32_load_lstrides:{0:0;1:>15}
             + p_b * f_mem_access_global_float32_load_lstrides:{0:1;1:16}_ratio:<2
    onchip   = p_madd * f_op_float32_madd + p_lmem * f_mem_access_local_float32
    overhead + smooth_max(gmem, onchip, p_edge)
"""


def test_names_are_listed_in_order_of_appearance() -> None:
    model = parse(TEXT)
    assert model.parameters == ("p_launch", "p_group", "p_a", "p_b", "p_madd", "p_lmem", "p_edge")
    assert model.features[:3] == (
        "f_sync_kernel_launch",
        "f_thread_groups",
        "f_mem_access_tag:a_global_float32_load_lstrides:{0:0;1:>15}",
    )
    assert list(model.terms) == ["overhead", "gmem", "onchip"]
    for name in (*model.parameters, *model.features):
        assert TEXT[model.positions[name] :].startswith(name)


def test_one_line_models_have_no_terms() -> None:
    model = parse("p_a*f_x + p_a*f_y")
    assert model.terms == {}
    assert model.parameters == ("p_a",)
    assert list(model.addends()) == ["p_a*f_x", "p_a*f_y"]


def test_addends_keep_the_names_of_terms() -> None:
    model = parse(TEXT)
    assert list(model.addends()) == ["overhead", "smooth_max(gmem, onchip, p_edge)"]
    assert model.addends()["overhead"] is model.terms["overhead"]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("a = p_x + p_y\na", ["a"]),
        ("a = p_x + p_y\nb = a\na + b", ["a", "b"]),
        ("a = p_x + p_y\na - 2*a", ["a", "-(2*a)"]),
        ("p_x - (p_y - (2 + f_z))", ["p_x", "-p_y", "2", "f_z"]),
        ("-(p_x - p_y)", ["-p_x", "p_y"]),
        ("2*(p_x + p_y)", ["2*(p_x + p_y)"]),
        ("p_x*f_y + p_x*f_y", ["p_x*f_y"]),
    ],
)
def test_addends_are_the_outermost_summands(text: str, labels: list[str]) -> None:
    assert list(parse(text).addends()) == labels


def test_summands_with_the_same_text_are_added_up() -> None:
    addends = parse("p_x*f_y + p_x*f_y").compile().addends({"p_x": 2.0}, {"f_y": 3.0})
    assert addends == {"p_x*f_y": 12.0}


def test_terms_are_evaluated_by_name() -> None:
    terms = parse("a = p_x*f_y\nb = a + 1\na*b").compile().terms({"p_x": 2.0}, {"f_y": 3.0})
    assert terms == {"a": 6.0, "b": 7.0}


@pytest.mark.parametrize(
    "text",
    [
        "p_a*f_x + p_b*f_y - 3",
        "(p_a - f_x*p_b)/f_y*exp(f_x)",
        "-(p_a**1)*f_x**2",
        "saturating(f_n, p_a, 0.5, p_c, p_a2, p_c2, 100)",
        "max(f_x, f_y)*p_a + tanh(f_z)",
        "f_x",
    ],
)
def test_linear_models(text: str) -> None:
    assert parse(text).is_linear


@pytest.mark.parametrize(
    "text",
    [
        "p_a*p_b*f_x",
        "p_a*f_x + p_a*p_a",
        "f_x/p_a",
        "p_a**2",
        "f_x**p_a",
        "step(f_x - p_a)",
        "floor(p_a)",
        "max(p_a, f_x)",
        "abs(p_a)",
        "saturating(f_n, 1, 1, 1, 1, 1, p_sat)",
        "overlap(p_a*f_x, p_b*f_y, 1)",
        TEXT,
    ],
)
def test_nonlinear_models(text: str) -> None:
    assert not parse(text).is_linear


@pytest.mark.parametrize(
    ("text", "parameter", "derivative"),
    [
        ("p_a*f_x + p_b*f_y", "p_a", "f_x"),
        ("p_a*f_x + 3", "p_a", "f_x"),
        ("a = p_a*f_x\na + 2*a", "p_a", "3*f_x"),
        ("-p_a/f_x", "p_a", "-(1/f_x)"),
        ("p_a**2*f_x", "p_a", "f_x*(2*p_a)"),
        ("exp(p_a)", "p_a", "exp(p_a)"),
        ("floor(p_a)*f_x", "p_a", "0"),
    ],
)
def test_derivatives_are_written_briefly(text: str, parameter: str, derivative: str) -> None:
    assert to_text(parse(text).derivative(parameter)) == derivative


def test_derivatives_of_shared_terms_stay_linear_in_size() -> None:
    lines = ["t0 = p_x*f_y + p_z", *(f"t{i + 1} = tanh(t{i})*t{i} + p_{i}" for i in range(12))]
    model = parse("\n".join([*lines, "t12"]))
    text = "".join(to_text(model.derivative(name)) for name in model.parameters)
    assert len(text) < 200 * len(model.source)


def test_derivative_by_an_unknown_parameter_is_an_error() -> None:
    with pytest.raises(ModelStringError, match="no parameter 'p_madd'; did you mean 'p_mad'"):
        parse("p_mad*f_x").derivative("p_madd")


def test_models_are_values() -> None:
    model = parse(TEXT)
    assert model == parse(TEXT) != parse("p_a")
    assert len({model, parse(TEXT)}) == 1
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert copied == model
        assert copied.parameters == model.parameters
    assert repr(parse("p_a")) == "ModelString(source='p_a')"
    assert model.compile() is model.compile()


def test_sympy_form_uses_the_published_formula() -> None:
    import sympy

    a, b, p = sympy.symbols("f_a f_b p_e", real=True)
    published = a * (sympy.tanh(p * (a - b)) + 1) / 2 + b * (sympy.tanh(p * (b - a)) + 1) / 2
    assert sympy.simplify(parse("smooth_max(f_a, f_b, p_e)").to_sympy() - published) == 0


def test_an_expression_may_name_a_models_terms() -> None:
    model = parse("work = p_a * f_x + p_b\nwork + p_c * f_y")
    found = model.parsed("work / f_z")
    assert (tuple(found.parameters), tuple(found.features)) == (("p_a", "p_b"), ("f_x", "f_z"))
    (value,) = compile_nodes([found.value])({"p_a": 2.0, "p_b": 1.0}, {"f_x": 3.0, "f_z": 7.0})
    assert value == 1.0
    assert tuple(model.parsed("half = work / 2\nhalf * 2").parameters) == ("p_a", "p_b")
    with pytest.raises(ModelStringError, match="the model has no parameter 'p_d'"):
        model.parsed("work * p_d")
    with pytest.raises(ModelStringError, match=r"unknown name 'wrk'.*did you mean 'work'"):
        model.parsed("wrk")
    with pytest.raises(ModelStringError, match="the exponent contains a feature"):
        model.parsed("2 ** work")


def test_numbers_of_a_device_are_replaced_by_anothers() -> None:
    written = "p_a * f_x_width:${subgroup=16} + ${subgroup=16} * f_y_keeps:${l1_bytes=32768}_width:${subgroup=16}"
    model = parse(written)
    assert model.source == "p_a * f_x_width:16 + 16 * f_y_keeps:32768_width:16"
    assert model == parse(model.source)
    assert pickle.loads(pickle.dumps(model)).written == written
    other = model.with_numbers({"subgroup": 8, "l1_bytes": 49152.0, "clock": 3.6e9})
    assert other.source == "p_a * f_x_width:8 + 8 * f_y_keeps:49152_width:8"
    assert other.with_numbers({"subgroup": 16, "l1_bytes": 32768}).written == written
    assert model.names_in(other) == {
        "f_x_width:16": "f_x_width:8",
        "f_y_keeps:32768_width:16": "f_y_keeps:49152_width:8",
    }
    compiled, features = other.compile(), {"f_x_width:8": 1.0, "f_y_keeps:49152_width:8": 2.0}
    assert compiled({"p_a": 3.0}, features) == 19


@pytest.mark.parametrize(
    ("facts", "message"),
    [({"sub_group": 8}, "no fact 'subgroup'; did you mean 'sub_group'"), ({"subgroup": 8.5}, "give a whole number")],
)
def test_numbers_that_no_device_can_have_are_refused(facts: dict[str, float], message: str) -> None:
    with pytest.raises(ModelStringError, match=message):
        parse("p_a * f_x_width:${subgroup=16}").with_numbers(facts)


@pytest.mark.parametrize("written", ["p_a * f_x_width:${subgroup}", "p_a * f_x_width:$16", "p_a * ${x=1.5}"])
def test_a_number_of_a_device_that_says_too_little_is_refused(written: str) -> None:
    with pytest.raises(ModelStringError, match="begins no number of a device"):
        parse(written)
