"""Feature tables of several models, and which of their rows take part in a fit."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import perfmodel as pm
from perfmodel.basics import side_by_side
from perfmodel.basics.errors import FitError, KernelError
from perfmodel.counting.counts import CountingWarning
from perfmodel.modelling import by_programs
from perfmodel.modelling.estimator import ModelRegressor
from perfmodel.modelling.feature_table import feature_columns
from perfmodel.modelling.fitting import FitWarning
from tests.conftest import SimulatedTime

LOADS = "f_mem_access_global_float32_load"
SOURCE = """
kernel void twice(global const float *x, global float *o, const int n)
{
    int i = get_global_id(0);
    o[i] = x[i] * x[i] + x[i];
}
"""


@pytest.fixture(scope="module")
def kernels() -> list[pm.Kernel]:
    """Returns kernels whose source loads one element three times, which a compiler loads once."""
    of_size = pm.Kernel.from_opencl(SOURCE, "twice", "n", 64, {"x": "n", "o": "n"}, n=1024)
    return [of_size.at(n=1024 * factor) for factor in (1, 2, 4, 8, 16)]


def models() -> tuple[pm.Model, pm.Model]:
    """Returns one model of kernels as written, and one of kernels as compiled: it names index arithmetic."""
    time = SimulatedTime(lambda count: 1e-9 * count(LOADS))
    written = pm.Model("f_sim", f"p_load * {LOADS}", {"f_sim": time})
    compiled = pm.Model("f_sim", f"p_load * {LOADS} + p_index * f_op_int32_mul_index", {"f_sim": time})
    return written, compiled


@pytest.mark.parametrize("is_reversed", [False, True])
def test_each_model_is_fitted_to_counts_of_its_own_form(kernels: list[pm.Kernel], is_reversed: bool) -> None:
    written, compiled = models()
    table = pm.measure(kernels, [compiled, written] if is_reversed else [written, compiled])
    assert table[written.columns[LOADS]].iloc[0] == 3 * 1024
    assert table[compiled.columns[LOADS]].iloc[0] == 1024
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = {model: model.fit(table) for model in (written, compiled)}
    assert fitted[written].parameters["p_load"] == pytest.approx(1e-9)
    assert fitted[compiled].parameters["p_load"] == pytest.approx(3e-9)
    for calibration in fitted.values():
        for kernel, seconds in zip(kernels, table["f_sim"], strict=True):
            assert calibration.predict(kernel) == pytest.approx(seconds)


def test_a_model_does_not_take_counts_of_another_form(kernels: list[pm.Kernel]) -> None:
    written, compiled = models()
    with pytest.raises(FitError, match=f"the table has no column '{LOADS}@compiled'"):
        compiled.fit(pm.measure(kernels, written))


def test_an_estimator_reads_the_columns_of_its_form(kernels: list[pm.Kernel]) -> None:
    table = pm.measure(kernels, list(models()))
    for expression, price in ((f"p_load * {LOADS}", 1e-9), (f"p_load * {LOADS} + 0 * f_op_int32_mul_index", 3e-9)):
        estimator = ModelRegressor(expression).fit(table, table["f_sim"])
        assert estimator.parameters_["p_load"] == pytest.approx(price)
        np.testing.assert_allclose(estimator.predict(table), table["f_sim"])


@pytest.fixture
def launches() -> tuple[pm.Model, pd.DataFrame]:
    model = pm.Model(
        "f_sim", "p_item * f_work_items", {"f_sim": SimulatedTime(lambda count: 1e-9 * count("f_work_items"))}
    )
    kernels = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["launch", "groups:4,16,64,256"])
    return model, pm.measure(kernels, model)


def test_what_is_left_out_of_a_fit_is_named(launches: tuple[pm.Model, pd.DataFrame]) -> None:
    model, table = launches
    table["flags"] = [("near-launch-overhead",), (), (), ()]
    with pytest.warns(FitWarning, match="1 of 4 measurements take no part in the fit: launch .*near-launch-overhead"):
        assert len(model.fit(table).left_out) == 1


def test_disturbed_times_serve_where_too_few_would_be_left(launches: tuple[pm.Model, pd.DataFrame]) -> None:
    """One parameter and two times, one of them disturbed: without it, the fit would go through the other exactly."""
    model, table = launches
    table = table.iloc[:2].copy()
    table["flags"] = [("disturbed",), ()]
    with pytest.warns(FitWarning, match="1 of 2 times are noisy or disturbed, and take part in the fit all the same"):
        calibration = model.fit(table)
    assert calibration.left_out == ()
    assert np.isfinite(calibration.stderr["p_item"])


def test_a_fit_to_one_time_is_told_and_its_predictions_claim_nothing(
    launches: tuple[pm.Model, pd.DataFrame],
) -> None:
    model, table = launches
    with pytest.warns(FitWarning, match="the model goes through its only measurement"):
        calibration = model.fit(table.iloc[:1])
    kernel = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["launch", "groups:4"])[0]
    assert tuple(map(float, calibration.interval(kernel))) == (0, np.inf)
    for shown in (calibration, calibration.explain(kernel), calibration.compare(kernel, kernel)):
        assert "nan" not in str(shown)
    assert "as long as the first" in str(calibration.compare(kernel, kernel))
    assert "1 times" not in str(calibration.compare(kernel, kernel))


def test_marks_of_parameters_say_which_it_is(launches: tuple[pm.Model, pd.DataFrame]) -> None:
    _, table = launches
    output = SimulatedTime(lambda count: 1e-9 * count("f_work_items"))
    model = pm.Model(
        "f_sim",
        "p_item * f_work_items + p_launch * f_sync_kernel_launch + p_held * f_thread_groups + p_load * " + LOADS,
        {"f_sim": output},
    )
    kernels = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["launch", "groups:4,16,64,256"])
    table = pm.measure(kernels, model)
    table["f_sim"] -= [1e-8, -1e-8, 1e-8, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        calibration = model.fit(table, parameters={"p_held": (1e-15, 1e-15)})
    marks = {
        name: line.partition("(")[2] for name, line in zip(model.parameters, calibration.parameter_lines(), strict=True)
    }
    assert marks["p_held"] == "fixed)"
    assert marks["p_load"] == "undetermined)"
    assert marks["p_launch"].startswith(("at its bound", "undetermined"))
    assert marks["p_item"] == ""


DECIDED = """
kernel void chosen(global float *x, const int n)
{
    int i = get_global_id(0);
    if (x[i] > THRESHOLD)
        x[i] = x[i] * x[i];
}
"""


def of_many_programs() -> list[pm.Kernel]:
    """Returns kernels of five programs, at two sizes each, of which data decide what they do."""
    programs = [DECIDED.replace("THRESHOLD", f"0.{digit}f") for digit in range(1, 6)]
    return [pm.Kernel.from_opencl(text, "chosen", "n", 64, {"x": "n"}, n=n) for n in (512, 1024) for text in programs]


def test_counting_in_several_processes_gives_the_same_and_warns_here(monkeypatch: pytest.MonkeyPatch) -> None:
    written, compiled = models()
    with pytest.warns(CountingWarning, match="data decide"):
        here = feature_columns(of_many_programs(), [written, compiled])
    assert len(set(here[written.columns[LOADS]])) > 1
    monkeypatch.setattr(by_programs, "FEWEST_APART", 2)
    monkeypatch.setattr(side_by_side, "processors", lambda: 3)
    with pytest.warns(CountingWarning, match="data decide"):
        assert feature_columns(of_many_programs(), [written, compiled]) == here
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        feature_columns(of_many_programs(), [written, compiled])
    assert len({str(each.message) for each in said}) == len(said)  # each text once, however many kernels it is of


def test_a_kernel_that_cannot_be_counted_is_named_by_the_process_that_asked(
    kernels: list[pm.Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_programs, "FEWEST_APART", 2)
    monkeypatch.setattr(side_by_side, "processors", lambda: 2)
    bad = pm.Kernel.from_opencl(SOURCE.replace("twice", "open"), "open", "n", 64, {"x": "n", "o": "n"})
    with pytest.raises(KernelError, match="'open' needs a value for n"):
        feature_columns([*kernels, bad], models())
