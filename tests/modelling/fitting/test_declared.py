"""Parameters that are held, bounded and tied: as lmfit has them, and mistakes said in one sentence."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import lmfit
import numpy as np
import pandas as pd
import pytest

import perfmodel as pm
from perfmodel.basics.errors import FitError, ModelStringError
from perfmodel.cli.command_line import main
from perfmodel.expression import parse
from perfmodel.modelling.fitting import FitResult, declared, fit

RANDOM = np.random.default_rng(7)
X, Y, Z = (RANDOM.uniform(1, 10, 40) for _ in range(3))
COLUMNS = {"f_x": X, "f_y": Y, "f_z": Z}
NOISE = 1 + 0.02 * RANDOM.standard_normal(40)
LINEAR = parse("p_a * f_x + p_b * f_y + p_c * f_z + p_d")
TIMES = (2 * X + 0.5 * Y + 4 * Z + 3) * NOISE
CURVED = parse("p_a * f_x ** p_n + p_b * f_y + p_c")
CURVED_TIMES = (2 * X**1.5 + 0.5 * Y + 1) * NOISE

LINEAR_CASES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "held": {"p_d": 3.1},
    "bounded": {"p_b": (0.2, 0.9)},
    "tied": {"p_c": "2 * p_a"},
    "tied to two": {"p_c": "p_a + 4 * p_b"},
    "tied to a sum": {"p_d": "2 * p_a - p_b / 2 + 1"},
    "a chain": {"p_c": "2 * p_a", "p_d": "p_c - p_b"},
    "tied to one that is held": {"p_b": 0.5, "p_d": "6 * p_b"},
    "tied to one held and one fitted": {"p_b": 0.5, "p_d": "6 * p_b + 0.1 * p_a"},
    "a product of ties": {"p_c": "2 * p_a", "p_d": "sqrt(p_c * p_a)"},
}


def by_lmfit(source: str, columns: dict[str, Any], times: Any, said: dict[str, Any], begin: dict[str, float]) -> Any:
    """lmfit's own result for the same model, of which it evaluates the text."""
    parameters = lmfit.Parameters()
    for name, value in begin.items():
        parameters.add(name, value=value)
    for name, each in said.items():
        if isinstance(each, str):
            parameters[name].expr = each
        elif isinstance(each, tuple):
            parameters[name].set(min=each[0], max=each[1])
        else:
            parameters[name].set(value=each, vary=False)

    def residuals(point: lmfit.Parameters) -> Any:
        return eval(source, {"__builtins__": {}}, {**point.valuesdict(), **columns}) / times - 1

    return lmfit.minimize(residuals, parameters, ftol=1e-14, xtol=1e-14)


def agree(ours: FitResult, theirs: Any) -> None:
    for name, parameter in theirs.params.items():
        assert ours.parameters[name] == pytest.approx(parameter.value, rel=1e-5), name
        if np.isfinite(ours.stderr[name]):
            assert ours.stderr[name] == pytest.approx(parameter.stderr, rel=1e-3), name
        else:
            assert not parameter.stderr, name
    assert ours.chi_square == pytest.approx(theirs.chisqr, rel=1e-7)
    assert ours.degrees_of_freedom == theirs.nfree


@pytest.mark.parametrize("said", LINEAR_CASES.values(), ids=LINEAR_CASES)
def test_a_linear_fit_is_that_of_lmfit(said: dict[str, Any]) -> None:
    ours = fit(LINEAR, COLUMNS, TIMES, parameters=said)
    begin = {"p_a": 2.2, "p_b": 0.6, "p_c": 3.5, "p_d": 2.5}
    agree(ours, by_lmfit(LINEAR.source, COLUMNS, TIMES, said, begin))


@pytest.mark.parametrize("said", [{}, {"p_n": 1.4}, {"p_b": "p_a / 4"}, {"p_c": "p_n - p_a / 4", "p_b": (0, 2)}])
def test_a_curved_fit_is_that_of_lmfit(said: dict[str, Any]) -> None:
    ours = fit(CURVED, COLUMNS, CURVED_TIMES, parameters=said)
    begin = {"p_a": 2.1, "p_n": 1.45, "p_b": 0.6, "p_c": 1.2}
    agree(ours, by_lmfit(CURVED.source, COLUMNS, CURVED_TIMES, said, begin))


def test_a_tie_is_what_the_model_string_would_say() -> None:
    ours = fit(LINEAR, COLUMNS, TIMES, parameters={"p_c": "2 * p_a"})
    written = fit(parse("p_a * f_x + p_b * f_y + 2 * p_a * f_z + p_d"), COLUMNS, TIMES)
    assert {name: ours.parameters[name] for name in written.parameters} == pytest.approx(written.parameters, rel=1e-12)
    assert ours.parameters["p_c"] == 2 * ours.parameters["p_a"]
    assert ours.stderr["p_c"] == pytest.approx(2 * written.stderr["p_a"], rel=1e-9)
    assert ours.predicted == pytest.approx(written.predicted, rel=1e-12)
    assert ours.correlation[0, 2] == pytest.approx(1.0)


def test_parameters_of_lmfit_are_taken_as_they_are() -> None:
    parameters = lmfit.Parameters()
    parameters.add("p_a", value=2.0, min=0, max=9)
    parameters.add("p_b", value=0.5, vary=False)
    parameters.add("p_c", expr="2 * p_a")
    parameters.add("p_d", value=1.0)
    ours = fit(LINEAR, COLUMNS, TIMES, parameters=parameters)
    same = fit(LINEAR, COLUMNS, TIMES, parameters={"p_b": 0.5, "p_c": "2 * p_a", "p_a": (0, 9), "p_d": (None, None)})
    assert ours.parameters == same.parameters


def test_a_start_is_where_the_search_begins() -> None:
    waves = parse("p_a * (1 + sqrt(abs(tanh(p_k * f_x)))) + p_b")
    times = 2 * (1 + np.sqrt(np.tanh(0.3 * X))) + 1
    ours = fit(waves, COLUMNS, times, parameters={"p_k": {"value": 0.3}, "p_a": {"value": 2}, "p_b": {"value": 1}})
    assert ours.parameters == pytest.approx({"p_a": 2, "p_k": 0.3, "p_b": 1}, rel=1e-6)


def test_of_nothing_known_nothing_is_said() -> None:
    absent = {**COLUMNS, "f_x": np.zeros(40)}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ours = fit(parse("p_a * f_x + p_b * f_y + p_c * f_x"), absent, Y, parameters={"p_c": "p_a + p_b"})
    assert "f_x is zero in every measurement" in str(told[0].message)
    assert ours.parameters["p_c"] == pytest.approx(1.0)
    assert np.isnan(ours.stderr["p_c"])
    assert ours.mark("p_c").startswith("(tied to")
    held = fit(LINEAR, COLUMNS, TIMES, parameters={"p_b": 0.5, "p_d": "6 * p_b"})
    assert np.isnan(held.stderr["p_d"])
    assert held.mark("p_b") == "(fixed)"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("source", "said"), [("p_b * f_y + sqrt(p_a)", {}), ("p_b * f_y + p_c + p_a * f_x", {"p_c": "sqrt(p_a)"})]
)
def test_where_there_is_no_slope_nothing_can_be_judged(source: str, said: dict[str, Any]) -> None:
    with pytest.raises(FitError, match=r"slope by 'p_a' is not finite at the fitted 0, .* bound the parameter away"):
        fit(parse(source), COLUMNS, (2 * Y - 1) * NOISE, parameters=said)


def test_a_tie_may_have_no_slope_where_others_stand() -> None:
    ours = fit(
        parse("p_a * f_x + p_b * f_y + 0 * p_c"), COLUMNS, 2 * Y * NOISE, parameters={"p_a": 0, "p_c": "sqrt(p_a)"}
    )
    assert ours.parameters["p_c"] == 0
    assert np.isnan(ours.stderr["p_c"])
    assert np.isfinite(ours.covariance).all()


def test_the_report_says_what_is_tied() -> None:
    report = fit(LINEAR, COLUMNS, TIMES, parameters={"p_c": "2 * p_a", "p_d": 3}).report()
    (line,) = (line for line in report.splitlines() if line.startswith("p_c"))
    assert "+/-" in line
    assert line.endswith("tied: 2 * p_a")


def test_everything_held_is_judged_all_the_same() -> None:
    ours = fit(LINEAR, COLUMNS, TIMES, parameters={"p_a": 2, "p_b": 0.5, "p_c": "2 * p_a", "p_d": 3})
    assert ours.parameters == {"p_a": 2, "p_b": 0.5, "p_c": 4, "p_d": 3}
    assert ours.degrees_of_freedom == 40


MISTAKES: dict[str, tuple[Any, str]] = {
    "a name": ({"p_e": 1}, "something is said of 'p_e', which is no parameter of the model; did you mean"),
    "a list": ([1, 2], "is a dictionary by their names, not list"),
    "a value": ({"p_a": None, "p_b": True}, "the value of 'p_b' is True, which is no number"),
    "not a number": ({"p_a": float("nan")}, "the value of 'p_a' is nan; give a finite number"),
    "infinity": ({"p_a": float("inf")}, "the value of 'p_a' is inf; give a finite number"),
    "three numbers": ({"p_a": (1, 2, 3)}, "'p_a' is given 3 numbers; give its lower and its upper bound"),
    "the order": ({"p_a": (2, 1)}, r"the bounds of 'p_a' are \[2, 1\]; give the lower one first"),
    "bounds of text": ({"p_a": ("0", 1)}, "the lower bound of 'p_a' is '0', which is no number"),
    "a start": ({"p_a": {"value": 3, "min": 0, "max": 1}}, r"the start of 'p_a' is 3, outside its bounds \[0, 1\]"),
    "a word": ({"p_a": {"maximum": 3}}, "'maximum' says nothing of 'p_a'; say value, vary, min, max or expr"),
    "vary": ({"p_a": {"vary": "no", "value": 1}}, "whether 'p_a' is to vary is 'no'; say True or False"),
    "a huge number": ({"p_a": 10**400}, "the value of 'p_a' is inf; give a finite number"),
    "no value": ({"p_a": {"vary": False}}, "'p_a' is not to vary and has no value"),
    "a tie with bounds": ({"p_a": {"expr": "p_b", "max": 1}}, "'p_a' is tied and has bounds; bound the parameters"),
    "a tie to nobody": ({"p_a": "2 * p_x"}, "the tie of 'p_a' is made of 'p_x', which is no parameter of the model"),
    "a tie to a feature": ({"p_a": "p_b * f_x"}, "the tie of 'p_a' names the feature 'f_x'; tie parameters to"),
    "itself": ({"p_a": "p_a + 1"}, "the ties of p_a go round in a circle"),
    "a circle": ({"p_a": "p_b", "p_b": "p_c + p_d", "p_c": "p_a"}, "the ties of p_a, p_b, p_c go round in a circle"),
}


@pytest.mark.parametrize(("said", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(said: Any, sentence: str) -> None:
    with pytest.raises(FitError, match=sentence) as raised:
        declared(said, LINEAR)
    assert "\n" not in str(raised.value)
    with pytest.raises(FitError, match=sentence):
        fit(LINEAR, COLUMNS, TIMES, parameters=said)


@pytest.mark.parametrize("tie", ["2 *", "__import__('os')", "p_b if p_c else p_d", "", "3", "p_b p_c", "lambda: p_b"])
def test_a_tie_is_of_the_model_language(tie: str) -> None:
    with pytest.raises(ModelStringError, match="the tie of 'p_a' cannot be read: "):
        declared({"p_a": tie}, LINEAR)


NAME = "f_op_float32_madd"
MADD = f"p_madd * {NAME} + p_launch * f_sync_kernel_launch + p_twice * f_op_float32_add"


def table() -> pd.DataFrame:
    counts = np.linspace(1e6, 1e9, 12)
    frame = pd.DataFrame({NAME: counts, "f_sync_kernel_launch": 1.0, "f_op_float32_add": counts[::-1]})
    return frame.assign(f_cl_wall_time=1e-12 * counts + 5e-6 + 2e-12 * counts[::-1])


def test_a_model_carries_what_is_known_of_its_parameters(tmp_path: Path) -> None:
    said = {"p_launch": 5e-6, "p_madd": (0, 1e-9), "p_twice": "2 * p_madd"}
    model = pm.Model("f_cl_wall_time", MADD, parameters=said)
    found = model.fit(table())
    assert found.parameters == pytest.approx({"p_madd": 1e-12, "p_launch": 5e-6, "p_twice": 2e-12})
    lines = dict(line.split(maxsplit=1) for line in found.parameter_lines())
    assert lines["p_twice"].endswith("= 2 * p_madd")
    assert lines["p_launch"].endswith("(fixed)")
    found.save(tmp_path / "madd.json")
    saved = json.loads((tmp_path / "madd.json").read_text())
    assert saved["model"]["parameters"] == {"p_madd": [0, 1e-9], "p_launch": 5e-6, "p_twice": "2 * p_madd"}
    loaded = pm.Calibration.load(tmp_path / "madd.json")
    assert loaded == found
    assert loaded.model.declared == model.declared
    assert loaded.model.fit(table()).parameters == found.parameters
    # What is said in a fit comes first, None takes back, and the model stays as it is.
    freed = model.fit(table(), parameters={"p_launch": None, "p_twice": (0, 1)})
    assert list(freed.model.declared) == ["p_madd", "p_twice"]
    assert list(model.declared) == ["p_madd", "p_launch", "p_twice"]
    assert freed.model == model
    assert freed != found


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "madd.json"
    pm.Model("f_cl_wall_time", MADD, parameters={"p_launch": 5e-6}).fit(table()).save(file)
    for wrong in ({"p_x": 1}, {"p_launch": "p_madd *"}, {"p_launch": {"vary": False}}, [1], {"p_madd": [1]}):
        content = json.loads(file.read_text())
        content["model"]["parameters"] = wrong
        (tmp_path / "wrong.json").write_text(json.dumps(content))
        with pytest.raises(pm.PerfmodelError):
            pm.Calibration.load(tmp_path / "wrong.json")


def test_the_calibrations_that_come_along_are_written_as_they_are() -> None:
    for file in (Path(__file__).parents[2] / "models").glob("*@*.json"):
        content = json.loads(file.read_text())
        assert "parameters" not in content["model"]
        assert pm.Calibration.load(file).as_json() == content


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("perfmodel.modelling.feature_table.measure", lambda kernels, model, **conditions: table())
    monkeypatch.chdir(tmp_path)


def test_on_the_command_line(measured: None, capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "--hold",
        "p_launch=5e-6",
        "--bound",
        "p_madd=..1e-9",
        "--start",
        "p_madd=1e-11",
        "--tie",
        "p_twice=2*p_madd",
    ]
    arguments = ["calibrate", MADD, "--tags", "matmul_sq", "n:64", "--device", "cpu", *options, "--out", "madd.json"]
    assert main([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["declared"] == {
        "p_madd": {"value": 1e-11, "min": None, "max": 1e-9},
        "p_launch": 5e-6,
        "p_twice": "2*p_madd",
    }
    assert document["parameters"]["p_twice"]["value"] == pytest.approx(2e-12)
    assert pm.Calibration.load("madd.json").model.declared["p_launch"].held == 5e-6


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--hold", "p_launch"], "--hold 'p_launch' is not NAME=VALUE; write it so"),
        (["--hold", "p_launch=much"], "--hold 'p_launch=much': 'much' is not a number"),
        (["--bound", "p_launch=1e-6"], "--bound 'p_launch=1e-6': '1e-6' is not LOW..HIGH"),
        (["--bound", "p_launch=2..1"], "the bounds of 'p_launch' are [2, 1]; give the lower one first"),
        (
            ["--start", "p_launch=3", "--bound", "p_launch=0..1"],
            "the start of 'p_launch' is 3, outside its bounds [0, 1]",
        ),
        (
            ["--hold", "p_launch=1", "--tie", "p_launch=p_madd"],
            "is not all that is said of p_launch; leave one of the two",
        ),
        (["--hold", "p_lunch=1"], "something is said of 'p_lunch', which is no parameter of the model; did you mean"),
        (["--tie", "p_madd=p_twice", "--tie", "p_twice=p_madd"], "the ties of p_madd, p_twice go round in a circle"),
        (["--tie", "p_madd=2 *"], "the tie of 'p_madd' cannot be read"),
    ],
)
def test_mistakes_on_the_command_line(
    options: list[str], sentence: str, measured: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", MADD, "--tags", "matmul_sq", "n:64", "--device", "cpu", *options]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(Path().iterdir())
