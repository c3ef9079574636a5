"""Evaluations from version to version, as text and as a chart."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

from perfmodel.report.history import SHOWN, as_html, as_json, as_text, bars, latest_as_text
from tests.measuring.test_store_evaluations import FIRST, SECOND

HOSTILE = replace(SECOND, calibration="<b>.json", kernels="<script>", created="2026-11-22T00:00:00+00:00")


def test_text_has_a_line_for_each() -> None:
    lines = as_text([SECOND, FIRST]).splitlines()
    assert lines[:2] == ["madd.json on H200: matmul_sq n:384", "▅█"]
    assert lines[5].split() == ["26-11-20", "12:00", "0.1.0", "0123456789ab", "2", "10.0%", "20.0%", "15.0%", "within"]
    assert lines[6].split()[-4:] == ["20.0%", "20.0%", "15.0%", "above"]
    assert "perfmodel evaluate --fail-above keeps them" in as_text([])
    many = [replace(FIRST, created=f"2026-11-20T12:00:{number:02d}+00:00") for number in range(SHOWN + 3)]
    assert as_text(many).endswith("3 earlier ones are not listed")
    assert as_json([SECOND])[0]["fails"] is True


def test_one_line_on_the_latest() -> None:
    assert latest_as_text([FIRST]) == "history: the first evaluation of these kernels, 10.0%"
    assert latest_as_text([FIRST, SECOND]) == "history: 20.0% after 10.0%; 2 evaluations since 2026-11-20: ▅█"
    assert bars([replace(FIRST, geometric_mean=0.0)]) == "▁"


def test_the_chart_has_a_mark_for_each_and_the_limit() -> None:
    section = as_html([FIRST, SECOND, HOSTILE])
    first, second = (ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", section))
    marks = first.findall("circle")
    assert [mark.get("class") for mark in marks] == [None, "far"]
    heights = [float(str(mark.get("cy"))) for mark in marks]
    limit = float(str(first.findall("polyline")[0].get("points")).split()[0].split(",")[1])
    base = float(str(first.findall("line")[0].get("y1")))
    # Heights above the axis are in proportion to the errors: 10 %, 20 % and the limit of 15 %.
    assert abs((base - heights[1]) / (base - heights[0]) - 2) < 0.01
    assert abs((base - limit) / (base - heights[0]) - 1.5) < 0.01
    assert len(second.findall("circle")) == 1
    assert "<script>" not in section
    assert "&lt;script&gt;" in section
    assert as_html([]) == ""
