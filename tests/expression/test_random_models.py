"""Random models against two independent oracles: Python's own evaluation of the text, and sympy's derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from perfmodel.basics.errors import ModelStringError
from perfmodel.expression import ModelString, parse, to_text
from tests.covering import EXAMPLES, examples

PARAMETERS = {"p_a": 1.37, "p_b": 0.61, "p_c": 2.93}
FEATURES = {"f_x": np.array([0.73, 2.91, 5.37]), "f_y": np.array([11.3, 0.41, 2.89])}
SMOOTH = ("tanh", "exp", "log", "sqrt", "smooth_step", "smooth_max", "overlap", "saturating")
ALL = (*SMOOTH, "abs", "ceil", "floor", "min", "max", "step", "group_utilization")
NEEDS_POSITIVE = ("overlap", "log", "sqrt", "group_utilization")
ARITY = {"smooth_step": 2, "smooth_max": 3, "min": 2, "max": 3, "group_utilization": 2, "overlap": 3}
EXPONENTS = ("2", "0.5", "-1", "p_a", "(p_b + 1)", "2 ** p_b")


def _smooth_step(x: Any, p: Any) -> Any:
    return (np.tanh(p * x) + 1) / 2


def _group_utilization(groups: Any, units: Any) -> Any:
    low, high = np.floor(groups / units), np.ceil(groups / units)
    return low / high + (groups % units / units) * (high - low) / high


REFERENCE: dict[str, Any] = {
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "min": lambda *x: np.min(np.broadcast_arrays(*x), axis=0),
    "max": lambda *x: np.max(np.broadcast_arrays(*x), axis=0),
    "step": lambda x: np.where(x < 0, 0.0, 1.0),
    "smooth_step": _smooth_step,
    "smooth_max": lambda a, b, p: a * _smooth_step(a - b, p) + b * _smooth_step(b - a, p),
    "overlap": lambda *x: sum(resource ** x[-1] for resource in x[:-1]) ** (1 / x[-1]),
    "saturating": lambda n, a, b, c, a2, c2, n_sat: np.where(n <= n_sat, a * n**b + c, a2 * n + c2),
    "group_utilization": _group_utilization,
}


@st.composite
def models(draw: st.DrawFn, functions: tuple[str, ...], depth: int = 3) -> str:
    """Draws texts whose meaning depends on precedence, as operands are bracketed at random."""

    def inner() -> str:
        return draw(models(functions, depth - 1))

    def positive() -> str:
        return f"(0.1 + abs({inner()}))"

    kinds = ["leaf"] if depth == 0 else ["leaf", "sum", "product", "power", "negation", "brackets", "call", "call"]
    match draw(st.sampled_from(kinds)):
        case "leaf":
            return draw(st.sampled_from([*PARAMETERS, *FEATURES, "0.5", "1.0", "2", "3.25"]))
        case "sum":
            return f"{inner()} {draw(st.sampled_from('+-'))} {inner()}"
        case "product":
            return f"{inner()} {draw(st.sampled_from('*/'))} {inner()}"
        case "power":
            return f"{positive()} ** {draw(st.sampled_from(EXPONENTS))}"
        case "negation":
            return f"-{inner()}"
        case "brackets":
            return f"({inner()})"
    name = draw(st.sampled_from(functions))
    arguments = [positive() if name in NEEDS_POSITIVE else inner() for _ in range(ARITY.get(name, 1))]
    if name == "overlap":
        arguments.append(draw(st.sampled_from(["p_c", "2", "p_a**2 + 1"])))
    if name == "saturating":
        arguments = [positive(), inner(), draw(st.sampled_from(EXPONENTS)), inner(), inner(), inner(), inner()]
    return f"{name}({', '.join(arguments)})"


def parsed(text: str) -> ModelString:
    """Returns the model, with every parameter and feature in it; examples with impossible constants are left out."""
    try:
        return parse(f"{text} + 0*(p_a + p_b + p_c + f_x + f_y)")
    except ModelStringError:
        assume(False)
        raise


def tame(values: NDArray[np.float64]) -> bool:
    return bool(np.all(np.isfinite(values)) and np.all(np.abs(values) < 1e8))


random_models = settings(
    max_examples=examples(50),
    deadline=None,
    derandomize=not EXAMPLES,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@random_models
@given(models(ALL))
def test_evaluation_agrees_with_python(text: str) -> None:
    model = parsed(text)
    with np.errstate(all="ignore"):
        scope = {"__builtins__": {}} | REFERENCE | {k: np.float64(v) for k, v in PARAMETERS.items()} | FEATURES
        expected = np.broadcast_to(eval(text, scope), (3,))
    assume(tame(expected))
    np.testing.assert_allclose(model.compile()(PARAMETERS, FEATURES), expected, rtol=1e-6, atol=1e-6)


@random_models
@given(models((*SMOOTH, "abs")))
def test_derivatives_agree_with_sympy(text: str) -> None:
    model = parsed(text)
    jacobian = model.compile().jacobian(PARAMETERS, FEATURES)
    assert jacobian.shape == (3, 3)
    expression = model.to_sympy()
    symbols = [sympy.Symbol(name, real=True) for name in (*PARAMETERS, *FEATURES)]
    for parameter in PARAMETERS:
        derivative = sympy.diff(expression, sympy.Symbol(parameter, real=True))
        with np.errstate(all="ignore"):
            values = sympy.lambdify(symbols, derivative, "numpy")(*PARAMETERS.values(), *FEATURES.values())
        expected = np.broadcast_to(values, (3,))
        assume(np.isrealobj(expected))
        if tame(expected) and tame(model.compile()(PARAMETERS, FEATURES)):
            row = jacobian[model.parameters.index(parameter)]
            np.testing.assert_allclose(row, expected, rtol=1e-6, atol=1e-6)


@random_models
@given(models(ALL))
def test_derivatives_agree_with_differences(text: str) -> None:
    model = parsed(text)
    evaluate = model.compile()
    jacobian = evaluate.jacobian(PARAMETERS, FEATURES)
    for name, value in PARAMETERS.items():
        rows = [evaluate(PARAMETERS | {name: value + step}, FEATURES) for step in (-2e-6, -1e-6, 0, 1e-6, 2e-6)]
        far = (rows[4] - rows[0]) / 4e-6
        near = (rows[3] - rows[1]) / 2e-6
        one_sided = (rows[3] - rows[2]) / 1e-6
        scale = 1 + np.abs(near) + np.max(np.abs(rows), axis=0)
        smooth = np.isfinite(far) & (np.abs(far - near) < 1e-5 * scale) & (np.abs(one_sided - near) < 1e-3 * scale)
        row = jacobian[model.parameters.index(name)]
        error = np.abs(row - near) / scale
        assert np.all(error[smooth & (scale < 1e6)] < 1e-4), (name, row, near)


@random_models
@given(models(ALL))
def test_text_is_read_back_as_the_same_model(text: str) -> None:
    model = parsed(text)
    again = parse(to_text(model.value))
    assert to_text(again.value) == to_text(model.value)
    np.testing.assert_array_equal(again.compile()(PARAMETERS, FEATURES), model.compile()(PARAMETERS, FEATURES))


@random_models
@given(models(ALL))
def test_linear_models_are_what_their_derivatives_say(text: str) -> None:
    """An affine model equals its value at 0 plus its Jacobian times the parameters."""
    model = parsed(text)
    assume(model.is_linear)
    evaluate = model.compile()
    zero = dict.fromkeys(PARAMETERS, 0.0)
    weights = np.array([PARAMETERS[name] for name in model.parameters])
    expected = evaluate(zero, FEATURES) + weights @ evaluate.jacobian(zero, FEATURES)
    assume(tame(expected))
    np.testing.assert_allclose(evaluate(PARAMETERS, FEATURES), expected, rtol=1e-9, atol=1e-9)


@random_models
@given(models(ALL), models(ALL), models(ALL))
def test_addends_sum_to_the_value(first: str, second: str, third: str) -> None:
    try:
        model = parse(f"one = {first}\ntwo = {second}\none - ({third} - two) + 0*p_a*f_x*f_y - one")
    except ModelStringError:
        assume(False)
        raise
    parameters, features = PARAMETERS, FEATURES
    value = model.compile()(parameters, features)
    addends = model.compile().addends(parameters, features)
    assume(all(tame(addend) for addend in addends.values()))
    assert {"one", "-one", "two"} <= set(addends)
    np.testing.assert_allclose(sum(addends.values()), value, rtol=1e-9, atol=1e-6)
