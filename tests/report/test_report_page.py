"""The report page itself, in a real browser."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from perfmodel.basics.tables import sizes_text
from perfmodel.modelling.rows import CALIBRATION, Row
from perfmodel.report import chart_data
from perfmodel.report.page import report_page
from perfmodel.report.reported import ReportedModel, reported
from tests.browser import Page
from tests.report.conftest import EPYC, H200, HOSTILE

SCREENSHOTS = "PERFMODEL_SCREENSHOTS"
"""Names a folder, docs/images, for which the tests make the pictures of the docs."""


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
