"""Meanings: what terms and parameters stand for, declared, checked, kept, and said of a kernel with its numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import CalibrationError, FitError, ModelStringError
from perfmodel.modelling.meaning import Physical, filled
from perfmodel.modelling.readings import readings
from perfmodel.report.page import report_page
from perfmodel.report.reported import reported

MODEL = """
overhead = p_launch * f_sync_kernel_launch
work     = p_madd * f_op_float32_madd + p_add * f_op_float32_add + p_mul * f_op_float32_mul
copied   = p_byte * f_mem_bytes_global
overhead + max(work, copied)
"""
WORK = pm.Meaning(
    "operations of the arithmetic units",
    {"{:.3g} of them a work-item": "(f_op_float32_madd + f_op_float32_add) / f_work_items"},
    "fewer operations would help",
)
PRICES = {"p_launch": 5e-6, "p_madd": 1e-11, "p_add": 4e-11, "p_mul": 4e-11, "p_byte": 1e-13}


def calibrated(meanings: dict[str, Any], text: str = MODEL, **prices: float) -> pm.Calibration:
    """Returns a calibration of a model string by known prices."""
    import pandas as pd

    random = np.random.default_rng(0)
    names = ("f_sync_kernel_launch", "f_op_float32_madd", "f_op_float32_add", "f_op_float32_mul", "f_mem_bytes_global")
    table = pd.DataFrame({name: 10 ** random.uniform(5, 8, 40) for name in names})
    table["f_sync_kernel_launch"] = 1.0
    table["f_mem_bytes_global"] *= 500.0  # of which half takes longer than the work
    model = pm.Model("f_cl_wall_time", text, meanings=meanings)
    parameters = {**PRICES, **prices}
    table["f_cl_wall_time"] = model.string.compile()(parameters, {name: table[name] for name in names})
    return replace(model.fit(table), parameters=parameters, device={"name": "NVIDIA H200", "key": "h", "kind": "gpu"})


def kernel(*tags: str) -> pm.Kernel:
    (found,) = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(list(tags))
    return found


@pytest.fixture(scope="module")
def product() -> pm.Kernel:
    return kernel("matmul_sq", "tiled_prefetch:True", "n:256")


def test_the_mechanism_has_the_numbers_of_the_kernel(product: pm.Kernel) -> None:
    """A product of n x n matrices does n multiply-adds in each of n x n work-items."""
    found = calibrated({"work": WORK}).explain(product, n=512)
    assert found.mechanism is not None
    assert (found.mechanism.cost, found.mechanism.price) == ("work", "")
    assert [(figure.text, figure.value) for figure in found.mechanism.figures] == [("512 of them a work-item", 512.0)]
    sentence = "operations of the arithmetic units: 512 of them a work-item; fewer operations would help"
    assert str(found.mechanism) == sentence
    lines = str(found).splitlines()
    assert lines[0].endswith("limited by work:")
    assert [line.strip() for line in lines[1:3]] == sentence.replace("; ", ";\n").splitlines()
    assert lines[3].endswith("operations of the arithmetic units")
    assert sentence in found._repr_html_()
    said = json.loads(json.dumps(found.as_json()))["mechanism"]
    assert said["figures"] == [{"text": "512 of them a work-item", "value": 512.0}]
    assert said["advice"] == "fewer operations would help"


def test_features_that_only_meanings_name_are_no_features_of_the_model(product: pm.Kernel) -> None:
    model = calibrated({"work": WORK}).model
    assert "f_work_items" not in model.features
    assert list(model.further_features) == ["f_work_items"]
    assert "f_work_items" not in model.columns


def test_a_model_without_words_for_what_limits_says_its_name_only(product: pm.Kernel) -> None:
    found = calibrated({"copied": "bytes that memory moves"}).explain(product)
    assert (found.bottleneck, found.mechanism, found.as_json()["mechanism"]) == ("work", None, None)
    assert str(found).splitlines()[0].endswith("limited by work")


def test_the_dearest_price_of_a_term_is_the_mechanism_within_it(product: pm.Kernel) -> None:
    said = {"work": WORK, "p_madd": pm.Meaning("multiply-adds", advice="tensor units would help"), "p_add": "sums"}
    found = calibrated(said).explain(product).mechanism
    assert found is not None
    assert found.price == "p_madd"
    assert str(found) == (
        "operations of the arithmetic units, 100 % of that time for multiply-adds: 256 of them a work-item; "
        "tensor units would help"
    )
    alone = calibrated({"p_madd": "multiply-adds"}).explain(product).mechanism
    assert alone is not None
    assert str(alone) == "multiply-adds"


def test_the_dearest_price_is_found_under_an_overlap_and_a_maximum() -> None:
    """No price is proportional to such a term, but the longest one is what it is made of."""
    source = """kernel void each(global float *a, int n) {
        int i = get_global_id(0);
        a[i] = (a[i] + 1.5f) * 2.5f;
    }"""
    each = pm.Kernel.from_opencl(source, "each", "n", 256, {"a": "n"}, n=2**20)
    sum_ = "p_madd * f_op_float32_madd + p_add * f_op_float32_add + p_mul * f_op_float32_mul"
    assert sum_ in MODEL
    text = MODEL.replace(sum_, f"overlap({sum_.replace(' +', ',')}, 4)")
    said = {"work": "operations", "p_madd": "multiply-adds", "p_add": "sums", "p_mul": "products"}
    found = calibrated(said, text, p_add=1e-9, p_mul=4e-9).explain(each).mechanism
    assert str(found) == "operations, 100 % of that time for products"


def test_a_price_that_is_less_than_half_of_its_term_is_none() -> None:
    source = """kernel void each(global float *a, int n) {
        int i = get_global_id(0);
        float x = a[i];
        a[i] = (x + 1.5f) * (x * x + 2.5f);
    }"""
    each = pm.Kernel.from_opencl(source, "each", "n", 256, {"a": "n"}, n=2**20)
    kinds = ("add", "mul", "madd")
    assert [float(pm.feature(f"f_op_float32_{kind}").eval(each)) for kind in kinds] == [2**20] * 3
    said = {"work": "operations"} | {f"p_{kind}": kind for kind in kinds}
    same = calibrated(said, p_add=4e-9, p_mul=4e-9, p_madd=4e-9)
    assert str(same.explain(each).mechanism) == "operations"
    dear = replace(same, parameters={**same.parameters, "p_mul": 9e-9})
    assert str(dear.explain(each).mechanism) == "operations, 53 % of that time for mul"


@pytest.mark.parametrize(("n", "advice"), [(64, "a larger product"), (256, "fewer operations")])
def test_the_first_advice_that_applies_is_given(product: pm.Kernel, n: int, advice: str) -> None:
    said = pm.Meaning("operations", advice={"a larger product": "100 * 100 - f_work_items", "fewer operations": ""})
    found = calibrated({"work": said}, p_launch=0.0).explain(product, n=n).mechanism
    assert found is not None
    assert found.advice == advice


def test_figures_may_name_terms_and_parameters(product: pm.Kernel) -> None:
    said = pm.Meaning("operations", {"{:.3g} times the copies": "work / copied", "{:.2g} ps": "1e12 * p_madd"})
    calibration = calibrated({"work": said})
    found = calibration.explain(product)
    assert found.mechanism is not None
    assert [figure.value for figure in found.mechanism.figures] == pytest.approx(
        [found.terms["work"] / found.terms["copied"], 10.0]
    )


def test_a_number_that_is_not_finite_or_cannot_be_counted_is_left_out(product: pm.Kernel) -> None:
    figures = {
        "{} conflicts": "f_mem_bytes_local / f_op_float64",
        "{} indices": "f_op_int32_mul_index",  # of kernels counted as compiled only
        "{} operations": "f_op_float32_madd",
    }
    found = calibrated({"work": pm.Meaning("operations", figures)}).explain(product).mechanism
    assert found is not None
    assert [figure.text for figure in found.figures] == ["1.678e+07 operations"]


def test_a_saved_calibration_says_the_same(product: pm.Kernel, tmp_path: Path) -> None:
    said = {
        "work": pm.Meaning("operations", {"{:si}": "f_work_items"}, {"less": "f_work_items - 1", "none": ""}),
        "p_madd": pm.Meaning(
            "multiply-adds", reads={"{:.1f} T/s": "1e-12 / p_madd"}, physical={"H200": (0, 67, "sheet")}, lacks="x"
        ),
        "overhead": "launching",
    }
    calibration = calibrated(said)
    calibration.save(tmp_path / "c.json")
    loaded = pm.Calibration.load(tmp_path / "c.json")
    assert loaded.model.meanings == calibration.model.meanings
    assert str(loaded.explain(product)) == str(calibration.explain(product))
    assert readings(loaded) == readings(calibration)


def test_a_file_with_other_things_for_meanings_is_damaged(tmp_path: Path) -> None:
    calibrated({"work": WORK}).save(tmp_path / "c.json")
    for wrong in ({"work": "text"}, {"work": {"words": 3}}, {"work": {"word": "a"}}, {"wrk": {"words": "a"}}, [1]):
        content = json.loads((tmp_path / "c.json").read_text())
        content["model"]["meanings"] = wrong
        (tmp_path / "wrong.json").write_text(json.dumps(content))
        with pytest.raises(CalibrationError, match="is damaged"):
            pm.Calibration.load(tmp_path / "wrong.json")


@pytest.mark.parametrize(
    ("meanings", "message"),
    [
        ({"wrk": "operations"}, "'wrk', which is no term or parameter of the model; did you mean 'work'"),
        ({"p_mad": "operations"}, "did you mean 'p_madd'"),
        ({"work": 3}, "the meaning of 'work' is 3; give a text or a Meaning"),
        ([("work", "operations")], "meanings are a dictionary by terms and parameters, not list"),
        ({"work": pm.Meaning("a", reads={"{} s": "p_madd"})}, "'work' is a term, which has no physical value"),
        ({"p_madd": pm.Meaning("a", reads={"{} s": "f_work_items"})}, "what 'p_madd' reads names the feature"),
    ],
)
def test_what_cannot_be_said_is_refused_in_a_sentence(meanings: Any, message: str) -> None:
    with pytest.raises(FitError, match=message) as caught:
        pm.Model("f_cl_wall_time", MODEL, meanings=meanings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("f_work_items / 0", "the meaning of 'work' cannot be read: in 'f_work_items/0', the divisor is 0"),
        ("wrk / f_work_items", "unknown name 'wrk'.*did you mean 'work'"),
        ("p_mad * f_work_items", "the model has no parameter 'p_mad'; did you mean 'p_madd'"),
        ("f_work_item", "in the meaning of 'work', .*f_work_item"),
        ("f_cl_wall_time", "in the meaning of 'work', 'f_cl_wall_time' is known only by running the kernel"),
        ("", "the meaning of 'work' cannot be read: the model string is empty"),
    ],
)
def test_an_expression_that_cannot_be_read_is_shown_in_its_place(expression: str, message: str) -> None:
    with pytest.raises(ModelStringError, match=message):
        pm.Model("f_cl_wall_time", MODEL, meanings={"work": pm.Meaning("operations", {"{} a": expression})})


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: pm.Meaning(""), "a meaning's words are ''; give a text"),
        (lambda: pm.Meaning("a", {"no place": "f_work_items"}), "'no place' has no one place for a number"),
        (lambda: pm.Meaning("a", {"{} and {}": "f_work_items"}), "has no one place for a number"),
        (lambda: pm.Meaning("a", {"{0.__class__}": "f_work_items"}), "has no one place for a number"),
        (lambda: pm.Meaning("a", {"{:99999999d}": "f_work_items"}), "has no one place for a number"),
        (lambda: pm.Meaning("a", {"{}": 3}), "the figures of meaning 'a' are no texts"),  # type: ignore[dict-item]
        (lambda: pm.Meaning("a", reads={"{} s": "p_a", "{} ms": "p_a"}), "needs one unit"),
        (lambda: pm.Meaning("a", physical={"H200": (1, 2, "sheet")}), "needs one unit"),
        (lambda: pm.Meaning("a", reads={"{}": "p_a"}, physical={"H200": (2, 1, "sheet")}), "its lowest and highest"),
        (lambda: pm.Meaning("a", reads={"{}": "p_a"}, physical={"H200": 5}), "its lowest and highest"),  # type: ignore[dict-item]
    ],
)
def test_a_meaning_is_checked_where_it_is_written(made: Callable[[], pm.Meaning], message: str) -> None:
    with pytest.raises(FitError, match=message):
        made()


@pytest.mark.parametrize(
    ("template", "value", "text"),
    [
        ("{:.3g} rounds", 511.9, "512 rounds"),
        ("{:.2g} %", 0.7575, "0.76 %"),
        ("{:.3g} waves", 12345.0, "12345 waves"),
        ("{:.3g}", 1.5e9, "1.5e+09"),
        ("{:.0f} %", 12.4, "12 %"),
        ("{:si}B", 134217728.0, "134 MB"),
        ("{:si}B", 12.0, "12 B"),
        ("{:si} of them", 131072.0, "131 k of them"),
        ("{:si} of them", 12.0, "12 of them"),
        ("{}", 1234.56, "1235"),
    ],
)
def test_numbers_in_texts(template: str, value: float, text: str) -> None:
    assert filled(template, value) == text


def test_parameters_read_in_units_that_people_know() -> None:
    rate = {"{:.3g} T/s": "1e-12 / p_madd"}
    calibration = calibrated(
        {
            "p_madd": pm.Meaning("multiply-adds", reads=rate, physical={"H200": (0.09, 0.11, "sheet")}, lacks="clocks"),
            "p_byte": pm.Meaning(
                "bytes",
                reads={"{:.1f} TB/s": "1e-12 / p_byte"},
                physical={"h200": Physical(4.2, 4.8, "sheet")},
                lacks="a",
            ),
            "p_launch": pm.Meaning("launches", reads={"{:.0f} µs": "1e6 * p_launch"}, physical={"A100": (1, 2, "a")}),
        }
    )
    found = {each.parameter: each for each in readings(calibration)}
    assert list(found) == list(calibration.parameters)
    assert found["p_madd"].value.startswith("0.1 T/s")
    assert (found["p_madd"].physical, found["p_madd"].off, found["p_madd"].lacks) == ("0.09 to 0.11 T/s", 1.0, "")
    assert found["p_byte"].off == pytest.approx(10 / 4.8)
    assert (found["p_byte"].source, found["p_byte"].lacks) == ("sheet", "a")
    assert found["p_launch"].value.startswith("5 µs")
    assert math.isnan(found["p_launch"].off)
    assert found["p_launch"].physical == found["p_add"].words == ""


def test_a_parameter_that_nothing_determines_has_no_value() -> None:
    calibration = calibrated({"p_byte": pm.Meaning("bytes", reads={"{:.1f} TB/s": "1e-12 / p_byte"})})
    unsure = replace(calibration, marks={"p_byte": "(undetermined, between 0 and 1)"})
    assert {each.parameter: each.value for each in readings(unsure)}["p_byte"] == "undetermined"


def test_the_report_says_what_terms_and_parameters_stand_for(tmp_path: Path) -> None:
    calibration = calibrated(
        {"work": WORK, "p_madd": pm.Meaning("multiply-adds", reads={"{:.1f} ps": "1e12 * p_madd"})}
    )
    calibration.save(tmp_path / "c.json")
    page = report_page(reported([str(tmp_path / "c.json")]))
    assert "What the parameters stand for" in page
    assert "10.0 ps" in page
    assert "<td class=text>operations of the arithmetic units</td><td class=text>fewer operations would help" in page
    without = calibrated({})
    without.save(tmp_path / "without.json")
    assert "stand for" not in report_page(reported([str(tmp_path / "without.json")]))
