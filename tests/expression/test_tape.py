"""Compiled evaluation: shapes, long arrays, sharing, and inputs that are missing or wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from perfmodel.basics.errors import FeatureError, FitError
from perfmodel.expression import compile_nodes, parse
from perfmodel.expression.tape import BLOCK, Tape

MODEL = parse("work = p_a*f_x + p_b*f_y\nwork + sqrt(work)*p_a - min(f_x, work)")
PARAMETERS = {"p_a": 2.0, "p_b": 3.0}


def expected(x: ArrayLike, y: ArrayLike) -> Any:
    work = 2.0 * np.asarray(x) + 3.0 * np.asarray(y)
    return work + np.sqrt(work) * 2.0 - np.minimum(x, work)


@pytest.mark.parametrize("size", [0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_blocks_join_seamlessly(size: int) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.random(size), rng.random(size)
    kept = x.copy()
    found = MODEL.compile()(PARAMETERS, {"f_x": x, "f_y": y})
    np.testing.assert_array_equal(found, expected(x, y))
    np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize(
    ("x_shape", "y_shape", "shape"),
    [((), (), ()), ((3,), (), (3,)), ((4, 1), (3,), (4, 3)), ((1,), (1, 1), (1, 1)), ((0, 2), (1,), (0, 2))],
)
def test_features_broadcast(x_shape: tuple[int, ...], y_shape: tuple[int, ...], shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.random(x_shape), rng.random(y_shape)
    features = {"f_x": x, "f_y": y}
    found = MODEL.compile()(PARAMETERS, features)
    assert found.shape == shape
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.broadcast_to(expected(x, y), shape))
    assert MODEL.compile().jacobian(PARAMETERS, features).shape == (2, *shape)
    assert MODEL.compile().terms(PARAMETERS, features)["work"].shape == shape


def test_results_have_the_inputs_shape_even_where_they_do_not_depend_on_it() -> None:
    model = parse("p_a + p_b*f_x + 0*f_y")
    features: dict[str, ArrayLike] = {"f_x": 1.0, "f_y": np.zeros((2, 3))}
    np.testing.assert_array_equal(model.compile().jacobian(PARAMETERS, features), np.ones((2, 2, 3)))
    assert all(addend.shape == (2, 3) for addend in model.compile().addends(PARAMETERS, features).values())


def test_scalars_give_plain_floats() -> None:
    assert float(MODEL.compile()(PARAMETERS, {"f_x": 4, "f_y": 0})) == 8 + np.sqrt(8) * 2 - 4


def test_integers_and_strided_arrays_are_taken() -> None:
    x = np.arange(20).reshape(4, 5)[:, ::2]
    found = MODEL.compile()(PARAMETERS, {"f_x": x, "f_y": [1, 2, 3]})
    np.testing.assert_array_equal(found, expected(x, np.array([1, 2, 3])))


def test_parameters_may_be_arrays_for_sampling() -> None:
    samples = np.array([[1.0], [2.0]])
    found = parse("p_a*f_x").compile()({"p_a": samples}, {"f_x": np.array([3.0, 4.0])})
    np.testing.assert_array_equal(found, [[3.0, 4.0], [6.0, 8.0]])


def test_unused_names_are_ignored() -> None:
    assert parse("p_a").compile()(PARAMETERS, {"f_other": "text"}) == 2.0


def test_results_are_independent_of_later_calls() -> None:
    compiled = MODEL.compile()
    first = compiled(PARAMETERS, {"f_x": np.ones(5), "f_y": np.ones(5)})
    kept = first.copy()
    compiled(PARAMETERS, {"f_x": np.zeros(5), "f_y": np.zeros(5)})
    np.testing.assert_array_equal(first, kept)


def test_several_expressions_share_their_common_parts() -> None:
    """tanh of the same argument is taken once, however often it is written."""
    model = parse("tanh(p_a*f_x) + tanh(p_a*f_x)*p_b")
    tape = Tape([model.value, model.derivative("p_a"), model.derivative("p_b")])
    assert sum(step.apply is np.tanh for step in tape.instructions) == 1
    value, by_a, by_b = compile_nodes([model.value, model.derivative("p_a"), model.derivative("p_b")])(
        PARAMETERS, {"f_x": 0.25}
    )
    t = np.tanh(0.5)
    assert (value, by_a, by_b) == pytest.approx((4 * t, 4 * (1 - t * t) * 0.25, t))


def test_the_same_expression_may_be_asked_for_twice() -> None:
    x = np.arange(3.0)
    model = parse("p_a*f_x")
    feature = parse("f_x").value
    rows = compile_nodes([model.value, feature, model.value, parse("p_a").value])(PARAMETERS, {"f_x": x})
    np.testing.assert_array_equal(rows, [2 * x, x, 2 * x, [2, 2, 2]])


def test_missing_and_wrong_inputs_are_named() -> None:
    compiled = MODEL.compile()
    with pytest.raises(FitError, match="parameter 'p_b' has no value: give one; did you mean 'p_bb'"):
        compiled({"p_a": 1.0, "p_bb": 1.0}, {"f_x": 1.0, "f_y": 1.0})
    with pytest.raises(FeatureError, match="feature 'f_y' has no value"):
        compiled.jacobian(PARAMETERS, {"f_x": 1.0})
    with pytest.raises(FeatureError, match="feature 'f_x' is not a number or an array of numbers"):
        compiled(PARAMETERS, {"f_x": "many", "f_y": 1.0})
    with pytest.raises(FeatureError, match=r"do not broadcast: give f_x \(2,\), f_y \(3,\) one shape"):
        compiled(PARAMETERS, {"f_x": np.ones(2), "f_y": np.ones(3)})
