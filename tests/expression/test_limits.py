"""Hostile strings: each limit has its message, and nothing but `ModelStringError` ever comes out."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perfmodel.basics.errors import ModelStringError
from perfmodel.expression import ModelString, parse
from perfmodel.expression.tokens import MAX_LENGTH
from tests.covering import examples

MODEL = """
overhead = p_launch*f_launches + p_group*f_groups:{0:1;1:>15}_ratio:<2
work = overlap(p_a*f_x, p_b*f_y, p_p)   # comment
overhead + smooth_max(work, (p_c**2 - 1e-3)*f_z, p_edge) + saturating(f_n, p_a, 0.5, 0, 1, 2, 100)
"""


def bomb(levels: int) -> str:
    """Returns a model of 2**levels uses of one feature in a few lines."""
    lines = ["t0 = p_x*f_y", *(f"t{level + 1} = t{level} + t{level}" for level in range(levels))]
    return "\n".join([*lines, f"t{levels}"])


REFUSED = {
    "length": ("p_x + " + "1" * MAX_LENGTH, f"longer than {MAX_LENGTH} characters"),
    "name": ("p_x*f_" + "a" * 500, "longer than 500 characters"),
    "chain": ("p_x" + "+1" * 2_500, "more than 5000 operations, numbers and names"),
    "sharing": (bomb(40), "written out, with terms instead of their names, the model has more than 100000 parts"),
    "brackets": ("(" * 65 + "p_x" + ")" * 65, "nested more than 64 levels deep"),
    "open brackets": ("(" * 20_000, "nested more than 64 levels deep"),
    "signs": ("-" * 65 + "p_x", "nested more than 64 levels deep"),
    "calls": ("tanh(" * 65 + "p_x" + ")" * 65, "nested more than 64 levels deep"),
    "tower": ("p_x" + "**p_x" * 65, "nested more than 64 levels deep"),
    "exponent": ("p_x**65", "the exponent 65 is not between -64 and 64"),
    "negative exponent": ("f_x**-(8*9)", "the exponent -72 is not between -64 and 64"),
    "exponent of exponents": ("p_x**2**64", "the exponent 1.84467e+19 is not between -64 and 64"),
    "feature as exponent": ("2**f_x", "in '2**f_x', the exponent contains a feature"),
    "feature in an exponent's term": ("a = p_x*f_y\n2**a", "the exponent contains a feature"),
    "feature as saturating's power": ("saturating(f_n, 1, f_n, 1, 1, 1, 1)", "the exponent contains a feature"),
    "forgotten overlap parameter": ("overlap(p_a*f_a, f_b, f_c)", "the exponent contains a feature"),
    "overlap below 1": ("overlap(f_a, f_b, 0.5)", "the exponent 0.5 is not between 1 and 64"),
    "constant divisor": ("p_x/(1 - 1)", "in 'p_x/(1 - 1)', the divisor is 0"),
    "constant division": ("0/0 + p_x", "in '0/0', the divisor is 0"),
    "constant overflow": ("p_x*(1e200*1e200)", "in '1e+200*1e+200', the value is not finite"),
    "constant power": ("p_x + (1e10**64)", "in '10000000000**64', the value is not finite"),
    "constant function": ("p_x + exp(1000)", "in 'exp(1000)', the value is not finite"),
    "constant logarithm": ("p_x + log(0)", "in 'log(0)', the value is not finite"),
    "complex root": ("p_x + (-8)**(1/3)", "in '(-8)**(1/3)', the value is not a real number"),
    "complex function": ("a = 2 - 3\np_x + sqrt(a)", "in 'sqrt(a)', the value is not a real number"),
    "complex term": ("a = sqrt(0 - 1)\na*p_x", "in 'sqrt(0 - 1)', the value is not a real number"),
    "constant term": ("a = 1/3\nb = a - a\np_x/b", "in 'p_x/b', the divisor is 0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_limits_have_messages(case: str) -> None:
    text, words = REFUSED[case]
    with pytest.raises(ModelStringError) as caught:
        parse(text)
    assert words in caught.value.reason


ACCEPTED = {
    "chain": "p_x" + "+1" * 2_499,
    "sharing": bomb(14),
    "brackets": "(" * 64 + "p_x" + ")" * 64,
    "exponent": "p_x**64 + f_x**-64",
    "parameter as exponent": "f_x**(p_b + 1)",
    "many parameters": "*".join(f"p_{index}" for index in range(2_000)),
    "many resources": f"overlap({','.join(f'p_{index}' for index in range(1_000))}, 2)",
    "deep terms": "t0 = p_x\n" + "\n".join(f"t{i + 1} = tanh(t{i})" for i in range(900)) + "\nt900",
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_models_at_the_limits_work_in_every_way(case: str) -> None:
    model = parse(ACCEPTED[case])
    parameters = dict.fromkeys(model.parameters, 1.0)
    features = dict.fromkeys(model.features, 1.0)
    compiled = model.compile()
    assert compiled(parameters, features) > 0
    assert compiled.jacobian(parameters, features).shape == (len(model.parameters),)
    assert compiled.addends(parameters, features)
    assert model.latex()
    assert repr(model.value)


def test_shared_terms_cost_no_more_than_their_definition() -> None:
    model = parse(bomb(14))
    assert model.compile()({"p_x": 2.0}, {"f_y": 3.0}) == 6.0 * 2**14
    assert model.compile().jacobian({"p_x": 2.0}, {"f_y": 3.0}).tolist() == [3.0 * 2**14]


@settings(deadline=None, max_examples=examples(100))
@given(st.text() | st.text(alphabet="pfabt_019.:;,{}<>=+-*/() \n#e"))
@example("p_a\x00")
@example("\ud800")
def test_arbitrary_text_gives_a_model_or_a_model_string_error(text: str) -> None:
    _parse_and_use(text)


@settings(deadline=None, max_examples=examples(100))
@given(st.data())
def test_damaged_models_give_a_model_or_a_model_string_error(data: st.DataObject) -> None:
    text = MODEL
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = start + data.draw(st.sampled_from([0, 0, 1, 2, 9]))
        text = text[:start] + data.draw(st.text(max_size=3) | st.sampled_from("()*+-/:={}\n#_19epf,")) + text[stop:]
    _parse_and_use(text)


def _parse_and_use(text: str) -> None:
    try:
        model = parse(text)
    except ModelStringError as error:
        place = (error.line, error.column)
    else:
        place = (1, 1)
        _use(model)
    assert (1, 1) <= place <= (text.count("\n") + 1, len(text) + 1)


def _use(model: ModelString) -> None:
    parameters = dict.fromkeys(model.parameters, 0.5)
    features = dict.fromkeys(model.features, 2.0)
    assert model.compile()(parameters, features).shape == ()
    assert model.compile().jacobian(parameters, features).shape == (len(model.parameters),)
    assert model.latex()
