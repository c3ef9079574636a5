"""The docs' front page in a real browser: on a desk and on a phone, light and dark, without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import Page
from tests.report.test_report_page import SCREENSHOTS

DOCS = Path(__file__).parents[1] / "docs"
SCREENS = {"desk": 1280, "phone": 380}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the front page by itself: without the pages that it leads to, whose links `make docs` checks."""
    source, site = (tmp_path_factory.mktemp(name) for name in ("docs", "site"))
    for name in ("index.md", "conf.py", "formulas.py"):
        shutil.copy(DOCS / name, source)
    for name in ("images", "static"):
        shutil.copytree(DOCS / name, source / name)
    command = [sys.executable, "-m", "sphinx", "-Q", "-b", "html"]
    subprocess.run([*command, str(source), str(site)], check=True)
    return site / "index.html"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_it_fits_and_asks_nobody_else(chrome: Page, index: Path, screen: str, theme: str, tmp_path: Path) -> None:
    chrome.emulate(SCREENS[screen], 900, theme)
    chrome.open(index)
    assert all(address.startswith(("file:", "data:")) for address in chrome.requested())
    assert chrome.complaints() == []
    assert chrome.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert chrome.evaluate("[...document.images].filter(i => i.offsetWidth).every(i => i.complete && i.naturalWidth)")
    assert chrome.evaluate("document.querySelectorAll('#four-doors li strong').length") == 4
    assert chrome.evaluate("document.querySelector('#four-doors').getBoundingClientRect().width > 300")
    background = chrome.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
    assert (background < 80) == (theme == "dark")
    chrome.screenshot(Path(os.environ.get(SCREENSHOTS, tmp_path)) / f"front-{screen}-{theme}.png")
