"""The report page shows what calibrations say: its data, without a browser."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import PerfmodelError
from perfmodel.cli.command_line import main
from perfmodel.modelling.rows import CALIBRATION
from perfmodel.report import chart_data
from perfmodel.report.ceilings import ceilings
from perfmodel.report.device_comparison import comparisons
from perfmodel.report.page import report_page
from perfmodel.report.reported import ReportedModel, reported
from perfmodel.report.sample import ReportedSample, generated_again, sample
from tests.report.conftest import EPYC, H200, HOSTILE, RESULTS


def test_a_folder_has_all_rows_and_a_calibration_those_of_its_fit(overlap: ReportedModel) -> None:
    saved = json.loads((H200 / "results.json").read_text())
    assert len(overlap.rows) == sum(row["model"] == "overlap" for row in saved["rows"])
    (alone,) = reported([str(H200 / "calibration-overlap.json")])
    assert alone.name == "overlap"
    assert all(row.role == CALIBRATION for row in alone.rows)
    assert len(chart_data.complete(alone.rows)) == sum(r.role == CALIBRATION for r in chart_data.complete(overlap.rows))
    fitted = {(r.variant, *r.sizes.values()): r.measured_s for r in overlap.rows if r.role == CALIBRATION}
    assert {(r.variant, *r.sizes.values()): r.measured_s for r in alone.rows} == fitted


def test_packed_results_without_calibrations_say_what_is_missing() -> None:
    models = reported([str(RESULTS / "perflex-fd-nvidia-h200-e38dd1")])
    assert all(model.rows and model.calibration is None for model in models)
    assert any("calibration-linear.json" in note for model in models for note in model.notes)


def test_what_is_no_calibration_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(PerfmodelError, match=r"has no results\.json; give a folder that reproduce wrote"):
        reported([str(tmp_path)])
    (tmp_path / "results.json").write_text('{"rows": [{"model": "a"}]}')
    with pytest.raises(PerfmodelError, match=r"damaged \(KeyError.*reproduce it again"):
        reported([str(tmp_path)])
    (tmp_path / "results.json").write_text("[")
    with pytest.raises(PerfmodelError, match="cannot be read"):
        reported([str(tmp_path)])
    with pytest.raises(PerfmodelError, match="'nothing@nowhere' names no calibration"):
        reported(["nothing@nowhere"])


def test_kernels_are_generated_again_as_they_were(overlap: ReportedModel, sampled: ReportedSample) -> None:
    """The calibration predicts for the kernels what it predicted when it was made."""
    assert len(sampled.kernels) == sampled.variants == len({(r.kernel, r.variant) for r in overlap.rows})
    assert any("kept=" in variant for _, variant in sampled.kernels)
    assert overlap.calibration
    for row in chart_data.complete(overlap.rows):
        kernel = sampled.kernels[row.kernel, row.variant].at(**row.sizes)
        assert float(overlap.calibration.predict(kernel)) == pytest.approx(row.predicted_s)


def test_kernels_of_no_generator_are_left_out(overlap: ReportedModel) -> None:
    row = overlap.rows[0]
    assert generated_again(row)
    assert generated_again(replace(row, kernel=HOSTILE)) is None
    assert generated_again(replace(row, variant="dtype=float128")) is None
    assert generated_again(replace(row, sizes={"n": 768, "m": 1})) is None
    some = sample([row, replace(row, kernel="mine")])
    assert (len(some.kernels), some.variants, some.refused) == (1, 2, 1)
    assert "1 of 2 variants" in some.sentence


def test_no_more_variants_are_generated_than_asked_for_all_families_in_turn(overlap: ReportedModel) -> None:
    few = sample(overlap.rows, most=4)
    assert len({kernel for kernel, _ in few.kernels}) == len(few.kernels) == 4
    assert not sample(overlap.rows, budget_s=-1).kernels


def test_lines_hold_every_time_and_curves_are_predictions(overlap: ReportedModel, sampled: ReportedSample) -> None:
    found = chart_data.lines(overlap, sampled)
    whole = next(line for line in found if line.kernel == "matmul_sq" and "tiled_prefetch=False" in line.variant)
    own = {r.sizes["n"]: r.measured_s for r in overlap.rows if (r.kernel, r.variant) == (whole.kernel, whole.variant)}
    assert {point[0]: point[1] for point in whole.points} == own
    assert overlap.calibration
    sizes = np.array([point[0] for point in whole.curve])
    assert not (sizes % 16).any()  # what the kernel is made for
    kernel = sampled.kernels[whole.kernel, whole.variant]
    seconds, std = overlap.calibration.predict(kernel, return_std=True, n=sizes)
    assert [point[1] for point in whole.curve] == pytest.approx(seconds)
    assert [point[2] for point in whole.curve] == pytest.approx(std)


def test_lines_of_sizes_that_come_and_go(overlap: ReportedModel) -> None:
    """Kernels of one name need not have the same sizes, nor sizes that a logarithm can be taken of."""
    first = replace(overlap.rows[0], kernel="mine", variant="")
    sizes = [{"n": 1}, {"n": 2}, {"n": 0}, {}, {"n": 4, "m": 1}, {"n": 8, "m": 1}, {"n": 8, "m": 2}]
    rows = tuple(replace(first, sizes=each) for each in sizes)
    found = chart_data.lines(replace(overlap, rows=rows), sample(rows))
    assert {(line.variant, line.size, tuple(p[0] for p in line.points)) for line in found} == {
        *(("", "n", (1, 2)), ("m=1", "n", (4, 8)))
    }
    assert not any(line.curve for line in found)


def test_shares_of_a_breakdown_are_the_whole_time(overlap: ReportedModel, sampled: ReportedSample) -> None:
    found = chart_data.breakdowns(overlap, sampled)
    assert len(found) == len(sampled.kernels)
    for breakdown in found:
        assert sum(share for _, _, share in breakdown.parts) == pytest.approx(1, abs=0.01)
    drawn = chart_data.as_json(chart_data.Charts.of(overlap, sampled))["costs"]
    for breakdown, row in zip(found, drawn["rows"], strict=True):
        positive = sum(share for _, _, share in breakdown.parts if share > 0)  # a rest may be negative
        assert sum(row["shares"]) == pytest.approx(positive, abs=0.01)


def test_what_limits_each_variant_is_said_in_the_words_of_the_model(
    overlap: ReportedModel, sampled: ReportedSample
) -> None:
    assert overlap.calibration is not None
    string = overlap.calibration.model.string
    model = overlap.calibration.model.with_meanings({name: f"the time of {name}" for name in string.terms})
    told = replace(overlap, calibration=replace(overlap.calibration, model=model))
    found = chart_data.breakdowns(told, sampled)
    assert found
    assert {each.mechanism for each in found} == {f"the time of {each.parts[0][0]}" for each in found}
    page = report_page([told])
    assert "the time of" in page
    assert "the time of" not in report_page([overlap])


def test_correlations_are_those_of_the_fit(overlap: ReportedModel) -> None:
    assert overlap.calibration
    names, values = chart_data.correlations(overlap.calibration)
    told = dict(re.findall(r"correlation\((\w+, \w+)\) = ([+-][\d.]+)", overlap.calibration.report))
    assert told
    for pair, value in told.items():
        a, b = pair.split(", ")
        assert values[names.index(a)][names.index(b)] == pytest.approx(float(value), abs=1e-3)


def test_roofs_are_reciprocals_of_parameters(overlap: ReportedModel, sampled: ReportedSample) -> None:
    calibration = overlap.calibration
    assert calibration
    bandwidths, rates = ceilings(calibration)
    assert [(roof.parameter, roof.rate) for roof in rates] == [("p_madd", 2 / calibration.parameters["p_madd"])]
    by_name = {roof.parameter: roof.rate for roof in bandwidths}
    assert by_name["p_direct"] == 4 / calibration.parameters["p_direct"]  # float32
    assert "p_lmem" not in by_name  # local memory
    found = chart_data.roofline(overlap, sampled)
    assert found
    row, intensity, rate = next(
        p for p in found.points if p[0].kernel == "matmul_sq" and p[0].sizes["n"] == 1024 and "kept" not in p[0].variant
    )
    assert row.measured_s
    assert rate == pytest.approx(2 * 1024**3 / row.measured_s)  # a multiply-add is two
    n_bytes = pm.feature("f_mem_bytes_global").eval(sampled.kernels[row.kernel, row.variant].at(n=1024))
    assert intensity == pytest.approx(2 * 1024**3 / n_bytes)


def test_a_model_without_such_parameters_has_no_roofline() -> None:
    calibration = pm.Calibration.shipped("unified-plus", device="H200")
    assert not ceilings(calibration)[1]


def test_calibrations_of_one_model_are_compared() -> None:
    models = reported([str(H200), str(EPYC)])
    assert {model.name for model in models} >= {"overlap on NVIDIA H200", "overlap on AMD EPYC"}
    found = {each.models[0].name: each for each in comparisons(models)}
    compared = found["overlap on NVIDIA H200"]
    first, second = (
        {(r.kernel, r.variant, tuple(r.sizes.values())): r.measured_s for r in model.rows if r.measured_s}
        for model in compared.models
    )
    assert len(compared.kernels) == len(first.keys() & second.keys())
    page = report_page(models)
    assert "Devices compared" in page
    unlike = [*models[:1], *reported(["unified-plus@cpu"])]
    assert not comparisons(unlike)
    assert "No two of these are calibrations of the same model string" in report_page(unlike)


def test_a_parameter_without_a_standard_error_says_why(overlap: ReportedModel) -> None:
    assert overlap.calibration
    name, other, *_ = overlap.calibration.parameters
    errors = {**overlap.calibration.stderr, name: math.nan, other: math.nan}
    without = replace(overlap.calibration, stderr=errors, marks={name: "(fixed)"})
    page = report_page([replace(overlap, calibration=without)])
    lines = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line) for line in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)]
    notes = {line[0]: line[-1] for line in lines if len(line) == 6}
    assert notes[name] == "fixed"
    assert notes[other] == "at a bound, or undetermined"


def test_a_shipped_calibration_says_that_it_has_no_measurements(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert main(["report", "unified-plus@h200", "--out", str(out)]) == 0
    page = out.read_text()
    assert "There are no measurements in this calibration" in page
    assert "p_launch" in page
    assert main(["report", "unified-plus@h200", "--out", str(tmp_path / "missing" / "report.html")]) == 2


def test_the_policy_allows_nothing_but_the_pages_own_style_and_script(overlap: ReportedModel) -> None:
    page = report_page([overlap])
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert policy[1].startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy[1]
    assert not re.search(r"<link|@import|url\(|\ssrc=|\sstyle=|\son\w+=", page)


# What follows runs in a browser.
