"""The report page: its data against calibrations, and the page itself in a real browser."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.tables import sizes_text
from perfmodel.cli.command_line import main
from perfmodel.modelling.rows import CALIBRATION, Row
from perfmodel.report import chart_data
from perfmodel.report.ceilings import ceilings
from perfmodel.report.device_comparison import comparisons
from perfmodel.report.page import report_page
from perfmodel.report.reported import ReportedModel, reported
from perfmodel.report.sample import Sample, generated_again, sample
from tests.browser import Page, browser, chromium

RESULTS = Path(__file__).parents[2] / "docs" / "results"
H200, EPYC = RESULTS / "demo-nvidia-h200-e38dd1", RESULTS / "demo-amd-epyc-eb6565"
HOSTILE = "</script><img src=x onerror=alert(1)>"
SCREENSHOTS = "PERFMODEL_SCREENSHOTS"
"""Names a folder, docs/images, for which the tests make the pictures of the docs."""


@pytest.fixture(scope="module")
def overlap() -> ReportedModel:
    return next(model for model in reported([str(H200)]) if model.name == "overlap")


@pytest.fixture(scope="module")
def sampled(overlap: ReportedModel) -> Sample:
    return sample(overlap.rows, budget_s=math.inf)


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


def test_kernels_are_generated_again_as_they_were(overlap: ReportedModel, sampled: Sample) -> None:
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


def test_lines_hold_every_time_and_curves_are_predictions(overlap: ReportedModel, sampled: Sample) -> None:
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


def test_shares_of_a_breakdown_are_the_whole_time(overlap: ReportedModel, sampled: Sample) -> None:
    found = chart_data.breakdowns(overlap, sampled)
    assert len(found) == len(sampled.kernels)
    for breakdown in found:
        assert sum(share for _, _, share in breakdown.parts) == pytest.approx(1, abs=0.01)
    drawn = chart_data.as_json(chart_data.Charts.of(overlap, sampled))["costs"]
    for breakdown, row in zip(found, drawn["rows"], strict=True):
        positive = sum(share for _, _, share in breakdown.parts if share > 0)  # a rest may be negative
        assert sum(row["shares"]) == pytest.approx(positive, abs=0.01)


def test_what_limits_each_variant_is_said_in_the_words_of_the_model(overlap: ReportedModel, sampled: Sample) -> None:
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


def test_roofs_are_reciprocals_of_parameters(overlap: ReportedModel, sampled: Sample) -> None:
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


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium is installed; on Debian: apt-get install chromium")
    with browser(program, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report_page(reported([str(H200), str(EPYC)])))
    return path


def opened(chrome: Page, file: Path, width: int = 1100, theme: str = "light", script: bool = True) -> Page:
    chrome.emulate(width, 900, theme, script)
    chrome.open(file)
    return chrome


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_opens_from_a_file_without_a_complaint_or_a_request(chrome: Page, file: Path, theme: str) -> None:
    page = opened(chrome, file, theme=theme)
    assert page.requested() == [file.resolve().as_uri()]
    assert page.complaints() == []
    shown = "[...document.querySelectorAll('figure[data-chart]')].filter(f => !f.closest('[hidden]'))"
    drawn = page.evaluate(f"{shown}.map(f => [f.dataset.chart, f.querySelectorAll('svg path, svg rect').length])")
    assert {name for name, _ in drawn} == {
        *("predicted", "residuals", "sizes", "costs", "correlations", "roofline", "devices")
    }
    assert all(marks > 0 for _, marks in drawn)


CONTRASTS = """(() => {
  document.querySelectorAll('details').forEach((details) => { details.open = true; });
  document.querySelectorAll('article').forEach((article) => { article.hidden = false; });
  dispatchEvent(new Event('beforeprint'));
  document.querySelector('figure svg').focus();
  document.querySelector('figure svg').dispatchEvent(new KeyboardEvent('keydown', {key: 'Home'}));
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = numbers(colour).map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const parts = numbers(getComputedStyle(each).backgroundColor);
      if (parts.length === 3 || parts[3] === 1) return getComputedStyle(each).backgroundColor;
    }
    return 'rgb(255, 255, 255)';
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!text || ['SCRIPT', 'NOSCRIPT', 'OPTION'].includes(element.tagName)) continue;
    if (!element.getClientRects().length) continue;
    const style = getComputedStyle(element), isDrawn = element instanceof SVGElement;
    const colour = isDrawn ? style.fill : style.color;
    const isOnBar = element.classList.contains('on-bar');
    const grounds = [isOnBar ? getComputedStyle(element.parentElement).color : behind(element)];
    if (element.classList.contains('direct'))
      for (const kind of ['band', 'wide-band']) {
        const band = document.querySelector('figure .' + kind);
        grounds.push(getComputedStyle(band).fill);
      }
    for (const ground of grounds) found.set(colour + ' on ' + ground, [text.slice(0, 40), ratio(colour, ground)]);
  }
  const marks = [...document.querySelectorAll('.filled, .hollow, .line, .median')].flatMap((mark) => {
    const style = getComputedStyle(mark), colour = mark.matches('.filled') ? style.fill : style.stroke;
    return [[mark.getAttribute('class'), ratio(colour, behind(mark))]];
  });
  return {texts: [...found.entries()], marks};
})()"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_marks_have_the_contrast_of_wcag_aa(chrome: Page, file: Path, theme: str) -> None:
    found = opened(chrome, file, theme=theme).evaluate(CONTRASTS)
    assert len(found["texts"]) > 10
    assert {pair: value for pair, value in found["texts"] if value[1] < 4.5} == {}
    assert len(found["marks"]) > 50
    assert [mark for mark in found["marks"] if mark[1] < 3] == []


def _error(model: ReportedModel) -> float:
    """Returns the geometric mean error over the times that no fit has seen."""
    return math.exp(np.mean([math.log(row.error) for row in model.rows if row.role != CALIBRATION]))


TIP = "(() => { const tip = document.querySelector('.tip'); return tip.hidden ? null : tip.innerText; })()"
RING = """(() => { const box = document.querySelector('article:not([hidden]) figure svg .ring').getBoundingClientRect();
           return [box.x + box.width / 2, box.y + box.height / 2]; })()"""
FIRST = "document.querySelector('article:not([hidden]) figure svg')"


def test_hover_and_keys_show_kernel_size_and_times(chrome: Page, file: Path) -> None:
    page = opened(chrome, file)
    page.evaluate(
        "[...document.querySelectorAll('.models label')]"
        ".find((label) => label.textContent.trim() === 'overlap on NVIDIA H200').click()"
    )
    page.evaluate(f"{FIRST}.scrollIntoView({{block: 'center'}})")
    assert page.evaluate(TIP) is None
    page.evaluate(f"{FIRST}.focus()")
    page.press("End")
    told = page.evaluate(TIP)
    assert re.search(
        r"matmul_sq n=5120\n.*tiled_prefetch=False.*\nmeasured 53.5 ms, predicted 50.7 ms \(−5.37 %\)", told
    )
    x, y = page.evaluate(RING)
    page.press("Escape")
    assert page.evaluate(TIP) is None
    page.move_to(x + 2, y + 1)
    assert page.evaluate(TIP) == told
    page.move_to(2, 2)
    assert page.evaluate(TIP) is None


@pytest.mark.parametrize("chart", ["residuals", "sizes", "costs", "correlations", "roofline", "devices"])
def test_every_chart_tells_of_each_of_its_marks(chrome: Page, file: Path, chart: str) -> None:
    page = opened(chrome, file)
    images = f"[...document.querySelectorAll('figure[data-chart={chart}] .plot svg')]"
    drawn = f"{images}.find((image) => !image.closest('[hidden]'))"
    page.evaluate(f"{drawn}.focus()")
    told = set()
    for _ in range(200):
        page.press("ArrowRight")
        told.add(text := page.evaluate(TIP))
        assert text
        if len(told) > 3:
            break
    assert len(told) > 3


def shown_marks(page: Page, chart: str) -> int:
    """Returns how many different marks a chart tells of."""
    page.evaluate(f"{DRAWN % chart}.focus()")
    told: list[str] = []
    for _ in range(400):
        page.press("ArrowRight")
        told.append(page.evaluate(TIP))
        if len(told) > 1 and told[-1] == told[0]:
            break
    return len(told) - 1


DRAWN = "[...document.querySelectorAll('figure[data-chart=%s] .plot svg')].find((image) => !image.closest('[hidden]'))"
SWITCH = """[...[...document.querySelectorAll('figure[data-chart=%s]')].find((f) => !f.closest('[hidden]'))
            .querySelectorAll('.legend button')].find((button) => button.textContent === '%s')"""


@pytest.mark.parametrize("chart", ["predicted", "roofline"])
def test_the_legend_hides_and_shows_families(chrome: Page, file: Path, chart: str) -> None:
    page = opened(chrome, file)
    page.evaluate(
        "[...document.querySelectorAll('.models label')]"
        ".find((label) => label.textContent.trim() === 'overlap on NVIDIA H200').click()"
    )
    every = shown_marks(page, chart)
    switch = SWITCH % (chart, "matmul_sq")
    assert page.evaluate(f"{switch}.getAttribute('aria-pressed')") == "true"
    page.evaluate(f"{switch}.click()")
    assert page.evaluate(f"{switch}.getAttribute('aria-pressed')") == "false"
    fewer = shown_marks(page, chart)
    assert 1 < fewer < every
    page.evaluate(f"{switch}.click()")
    assert shown_marks(page, chart) == every
    assert page.complaints() == []


def test_the_legend_hides_what_a_fit_has_seen(chrome: Page, file: Path) -> None:
    page = opened(chrome, file)
    every = shown_marks(page, "predicted")
    page.evaluate(f"{SWITCH % ('predicted', 'hollow: in the fit')}.click()")
    unseen = page.evaluate(
        "(() => { const data = JSON.parse(document.getElementById('data').textContent);"
        " return data.models[data.chosen].points.filter((p) => !p[5]).length; })()"
    )
    assert shown_marks(page, "predicted") == unseen < every


def test_what_is_beyond_an_axis_is_an_arrow_at_its_end(chrome: Page, tmp_path: Path) -> None:
    (model,) = reported([str(H200 / "calibration-overlap.json")])
    first, second, *others = model.rows
    far = [replace(first, predicted_s=1000.0 * (first.measured_s or 1)), replace(second, predicted_s=1e-9)]
    (tmp_path / "far.html").write_text(report_page([replace(model, rows=(*far, *others))]))
    page = opened(chrome, tmp_path / "far.html")
    figure = "document.querySelector('figure[data-chart=residuals]')"
    assert page.evaluate(f"{figure}.querySelector('.legend').innerText") == "off by more than 10 times, beyond the axis"
    drawn = page.evaluate(
        f"[...{figure}.querySelectorAll('.plot path')].map((path) => path.getAttribute('d')).join('')"
    )
    assert len([part for part in drawn.split("M") if part.count("L") == 2 and pointed(part)]) == 2


def pointed(path: str) -> bool:
    """Returns True for a triangle that points along the axis: two of its corners lie above each other."""
    corners = [tuple(map(float, corner.split(","))) for corner in path.rstrip("Z").split("L")]
    return corners[1][0] == corners[2][0]


def test_the_theme_follows_the_system_until_it_is_chosen(chrome: Page, file: Path) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light, dark = (opened(chrome, file, theme=theme).evaluate(paper) for theme in ("light", "dark"))
    assert light != dark
    press = "document.getElementById('theme').click(); document.getElementById('theme').innerText"
    assert chrome.evaluate(press) == "Theme: light"
    assert chrome.evaluate(paper) == light
    assert chrome.evaluate(press) == "Theme: dark"
    assert chrome.evaluate(paper) == dark
    chrome.emulate(1100, 900, "light")
    assert chrome.evaluate(paper) == dark
    assert chrome.evaluate(press) == "Theme: system"
    assert chrome.evaluate(paper) == light


def test_the_best_model_is_shown_first_and_another_by_its_button(chrome: Page, file: Path) -> None:
    page = opened(chrome, file)
    shown = "[...document.querySelectorAll('article:not([hidden]) > h2')].map((title) => title.textContent)"
    best, seen = min((_error(model), model.name) for model in reported([str(H200), str(EPYC)]))[1], page.evaluate(shown)
    assert seen == [best]
    page.evaluate("document.querySelector('.models input').focus()")
    page.evaluate("document.querySelector('.models input').click()")
    assert page.evaluate(shown) == ["one-term-prefetch on NVIDIA H200"]
    assert page.complaints() == []


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_scrolls_sideways_and_text_is_large_enough(chrome: Page, file: Path, width: int) -> None:
    page = opened(chrome, file, width)
    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    models = page.evaluate("document.querySelectorAll('.models input').length")
    for model in range(models):
        page.evaluate(f"document.querySelectorAll('.models input')[{model}].click()")
        assert page.evaluate("document.documentElement.scrollWidth") == width
    smallest = "Math.min(...[...document.querySelectorAll('%s')].map(e => parseFloat(getComputedStyle(e).fontSize)))"
    assert page.evaluate(smallest % "p, td, th, dd, figcaption, button, summary, .legend span") >= 16
    assert page.evaluate(smallest % "svg text, pre") >= 14
    scale = page.evaluate(f"{FIRST}.getBoundingClientRect().width / {FIRST}.viewBox.baseVal.width")
    assert scale == pytest.approx(1, abs=0.03)


KEPT = """(() => {
    const kept = [];
    URL.createObjectURL = (blob) => { kept.push(blob); return "#"; };
    document.querySelectorAll("article:not([hidden]) .save button").forEach((each) => each.click());
    return Promise.all(kept.map(async (blob) => [blob.type, await blob.text()]));
})()"""
"""Returns what the buttons of the shown model would save, instead of saving it."""


def test_charts_and_times_can_be_taken_away(chrome: Page, file: Path) -> None:
    page = opened(chrome, file)
    saved = page.evaluate(KEPT)
    pictures = [text for kind, text in saved if kind == "image/svg+xml"]
    assert len(pictures) == page.evaluate("document.querySelectorAll('article:not([hidden]) .plot svg').length") > 3
    for text in pictures:
        picture = ElementTree.fromstring(text)
        assert float(picture.attrib["width"]) > 100
        drawn = [each for each in picture.iter() if each.tag.endswith("path") and each.attrib.get("d")]
        assert all(each.attrib["fill"] == "none" or each.attrib["fill"].startswith("rgb") for each in drawn)
    (times,) = (text for kind, text in saved if kind == "text/csv")
    header, *lines = csv.reader(times.splitlines())
    assert header == ["kernel", "variant", "sizes", "measured_s", "predicted_s", "role", "flags"]
    (shown,) = (model for model in reported([str(H200), str(EPYC)]) if model.name == page.evaluate(SHOWN))
    rows = chart_data.complete(shown.rows)
    assert sorted(float(line[3]) for line in lines) == pytest.approx(
        sorted(row.measured_s or 0 for row in rows), rel=1e-3
    )
    assert page.complaints() == []


SHOWN = "document.querySelector('article:not([hidden]) h2').textContent"


def test_what_is_furthest_off_is_named_on_the_chart(chrome: Page, tmp_path: Path, overlap: ReportedModel) -> None:
    rows = [
        replace(row, predicted_s=(row.predicted_s or 0) * (2 if i < 5 else 1)) for i, row in enumerate(overlap.rows)
    ]
    path = tmp_path / "far.html"
    path.write_text(report_page([replace(overlap, rows=tuple(rows))]))
    page = opened(chrome, path)
    named = page.evaluate("[...document.querySelectorAll('.outlier text')].map((each) => each.textContent)")
    far = {f"{row.kernel} {sizes_text(row.sizes)}" for row in rows[:5]}
    assert len(named) == 3
    assert set(named) <= far


def test_without_javascript_the_tables_are_there(chrome: Page, file: Path) -> None:
    page = opened(chrome, file, script=False)
    text = page.evaluate("document.body.innerText")
    assert "Charts need JavaScript" in text
    assert page.evaluate("document.querySelectorAll('article:not([hidden]) table').length") > 20
    assert page.evaluate("document.querySelectorAll('figure svg').length") == 0
    chrome.emulate(1100, 900)


def test_hostile_names_are_only_text(chrome: Page, tmp_path: Path, overlap: ReportedModel) -> None:
    assert overlap.calibration
    rows = tuple(
        Row(kernel=HOSTILE, variant=f"{HOSTILE}=1", sizes={HOSTILE: n}, measured_s=n * 1e-6, predicted_s=n * 1.1e-6)
        for n in (1, 2, 4)
    )
    named = {**overlap.calibration.device, "name": HOSTILE, "driver": HOSTILE}
    hostile = replace(overlap.calibration, rows=rows, device=named, report=HOSTILE, created=HOSTILE)
    hostile.save(tmp_path / "hostile.json")
    (tmp_path / "report.html").write_text(report_page(reported([str(tmp_path / "hostile.json")])))
    page = opened(chrome, tmp_path / "report.html")
    assert page.complaints() == []
    assert page.requested() == [(tmp_path / "report.html").resolve().as_uri()]
    assert page.evaluate("document.querySelectorAll('img, iframe, object, a').length") == 0
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    page.evaluate(f"{FIRST}.focus()")
    page.press("Home")
    assert HOSTILE in page.evaluate(TIP)


@pytest.mark.skipif(SCREENSHOTS not in os.environ, reason=f"{SCREENSHOTS} names no folder for pictures")
def test_pictures_of_the_docs(chrome: Page, tmp_path: Path) -> None:
    file, folder = tmp_path / "report.html", Path(os.environ.get(SCREENSHOTS, ""))
    file.write_text(report_page(reported([str(H200)])))
    folder.mkdir(parents=True, exist_ok=True)
    parts: dict[str, tuple[dict[str, Any], int, str]] = {
        "light": ({"width": 1100, "height": 900, "theme": "light"}, 1560, "header"),
        "dark": ({"width": 1100, "height": 900, "theme": "dark"}, 1560, "article:not([hidden]) section:nth-of-type(3)"),
        "phone": ({"width": 360, "height": 780, "theme": "light", "scale": 2}, 1180, "header"),
    }
    for name, (screen, height, first) in parts.items():
        chrome.emulate(**screen)
        chrome.open(file)
        top = chrome.evaluate(f"document.querySelector({json.dumps(first)}).getBoundingClientRect().top + scrollY")
        clip = {"x": 0, "y": top, "width": screen["width"], "height": height}
        chrome.screenshot(folder / f"report-{name}.png", clip)
        assert (folder / f"report-{name}.png").stat().st_size < 300_000
