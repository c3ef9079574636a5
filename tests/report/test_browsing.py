"""A store as a page: what it shows, who is answered, and the page itself in a real browser while rows come in."""

from __future__ import annotations

import os
import shutil
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import perfmodel as pm
from perfmodel.basics.errors import StoreError
from perfmodel.cli.command_line import main
from perfmodel.measuring.store import Failure, Measurement
from perfmodel.report.browsing import page
from perfmodel.report.browsing.contents import StoreView, Wanted, versions_of
from perfmodel.report.browsing.server import serve
from tests.browser import Page
from tests.measuring.test_store_evaluations import FIRST, SECOND

pytest.importorskip("tornado", reason="the optional extra browse is not installed")

DEMO = Path(__file__).parents[2] / "docs" / "results" / "demo-nvidia-h200-e38dd1"
HOSTILE = "<img src=x onerror=alert(1)>"
SCREENSHOTS = "PERFMODEL_SCREENSHOTS"


def row(kernel: str, n: int, seconds: float, device: str = "abacus", **others: object) -> Measurement:
    found = Measurement(
        key=f"{kernel}-{n}-{device}-{others.get('created', '')}",
        kernel=kernel,
        content="0" * 64,
        sizes={"n": n},
        tags={"generator": kernel, "prefetch": "True"},
        device={"key": device, "name": device.title(), "driver": "1.0"},
        protocol={"name": "quick"},
        trials=(seconds * 1.1, seconds, seconds),
        dropped=1,
        statistic="min",
        flags=(),
        created="2026-01-01T00:00:00+00:00",
        versions={"perfmodel": "0.1.0"},
    )
    return replace(found, **others)  # type: ignore[arg-type]


ROWS = [
    *(row("matmul", n, 1e-9 * n**2) for n in (64, 128)),
    *(row("matmul", n, 2e-9 * n**2, "babbage") for n in (64, 128)),
    row("copy", 64, 1e-6),
    row("copy", 64, 3e-6, created="2026-02-01T00:00:00+00:00", versions={"perfmodel": "0.2.0"}),
    row(HOSTILE, 8, 1e-6, flags=("noisy",)),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with pm.Store(tmp_path / "times.sqlite") as store:
        first = ROWS[0]
        kept = {name: getattr(first, name) for name in Failure.__dataclass_fields__ if hasattr(first, name)}
        store.put_many(ROWS, [Failure(**{**kept, "key": "failed", "reason": f"it took too long {HOSTILE}"})])
        hostile = replace(SECOND, calibration=f"{HOSTILE}.json", created="2026-11-22T12:00:00+00:00")
        store.put_evaluations([FIRST, SECOND, hostile])
    shutil.copy(DEMO / "calibration-overlap.json", tmp_path)
    (tmp_path / "other.json").write_text("{}")
    return tmp_path / "times.sqlite"


def test_filters_select_by_name_tag_and_size(path: Path) -> None:
    view = StoreView(path)

    def shown(words: str, **others: str) -> list[tuple[str, str]]:
        return [(line.kernel, line.sizes) for line in view.lines(Wanted(words, **others))]

    assert shown("matmul") == [("matmul", "n=64"), ("matmul", "n=128")]
    assert shown("mat n=64") == shown("prefetch=True matmul n:64") == [("matmul", "n=64")]
    assert shown("n:64,128 prefetch:*", device="babbage") == [("matmul", "n=64"), ("matmul", "n=128")]
    assert shown("prefetch=False") == shown("colour=blue") == []
    assert len(shown("")) == 4


def test_devices_and_versions_stand_side_by_side(path: Path) -> None:
    view = StoreView(path)
    assert list(view.devices()) == ["abacus", "babbage"]
    for line in view.lines(Wanted("matmul", device="abacus", other="babbage")):
        assert line.ratio == pytest.approx(2)
    new, old = view.versions()
    assert (old, new) == ("perfmodel 0.1.0, driver 1.0", "perfmodel 0.2.0, driver 1.0")
    assert versions_of(ROWS[0]) == old
    (copy,) = view.lines(Wanted("copy", version=old, other_version=new))
    assert copy.ratio == pytest.approx(3)
    assert "the second is 3 times the first" in page.content(view, Wanted("copy", version=old, other_version=new))
    (newest,) = view.lines(Wanted("copy"))
    assert newest.first is not None
    assert newest.first.seconds == pytest.approx(3e-6)


def test_new_rows_are_seen_and_nothing_is_written(path: Path) -> None:
    view = StoreView(path)
    before = path.read_bytes()
    assert not view.refresh()
    assert path.read_bytes() == before
    with pm.Store(path) as store:
        store.put(row("matmul", 256, 1e-4))
        stamp = view.stamp
        assert view.refresh()
        assert view.stamp != stamp
    assert len(view.lines(Wanted("matmul"))) == 3


def test_what_others_wrote_is_escaped_and_calibrations_are_found(path: Path) -> None:
    view = StoreView(path)
    assert view.calibrations() == ["calibration-overlap.json"]
    shown = page.whole(view, Wanted(words=HOSTILE, calibration="calibration-overlap.json"))
    assert "<img" not in shown
    assert "Calibration calibration-overlap.json" in shown
    assert "p_madd" in shown
    assert shown.count("<circle") > 10
    assert shown.count('class="history"') == 2
    assert "madd.json on H200: matmul_sq n:384" in shown
    assert "it took too long" in shown
    assert "Calibration" not in page.content(view, Wanted(calibration="../secret.json"))


@pytest.fixture
def address(path: Path) -> Iterator[str]:
    """Returns the address at which the store is served meanwhile."""
    told: list[str] = []
    stops: list[Callable[[], None]] = []
    thread = threading.Thread(target=lambda: serve(path, 0, told.append, stops.append), daemon=True)
    thread.start()
    end = time.monotonic() + 20
    while not (told and stops):
        assert time.monotonic() < end, "the page is not served"
        time.sleep(0.01)
    yield told[0]
    stops[0]()
    thread.join(10)
    assert not thread.is_alive()


def status(address: str, method: str = "GET", **headers: str) -> int:
    request = urllib.request.Request(address, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_only_this_machine_is_answered_and_only_asked(address: str) -> None:
    assert address.startswith("http://127.0.0.1:")
    assert status(address) == 200
    assert status(f"{address}page.css") == status(f"{address}page.js") == 200
    assert status(address, Host="somebody.example") == 404
    assert status(address, "POST") == 405
    assert status(f"{address}times.sqlite") == 404


def test_a_port_that_is_taken_and_a_store_that_is_not_there(
    address: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = int(address.rstrip("/").rpartition(":")[2])
    assert main(["browse", str(path), "--port", str(port)]) == 2
    assert f"port {port} cannot be had" in capsys.readouterr().err
    assert main(["browse", "nothing.sqlite"]) == 2
    assert "nothing.sqlite is not there" in capsys.readouterr().err
    with pytest.raises(StoreError):
        serve(Path(__file__), 0, print)


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_the_page_fits_asks_nobody_else_and_is_live(
    width: int, theme: str, address: str, path: Path, chrome: Page, tmp_path: Path
) -> None:
    chrome.emulate(width, 900, theme)
    chrome.open(f"{address}?words=matmul&calibration=calibration-overlap.json")
    until(lambda: chrome.evaluate("document.getElementById('live').textContent"))
    assert chrome.evaluate("document.documentElement.scrollWidth") <= width
    rows = "document.querySelectorAll('section table.numbers')[0].querySelectorAll('tbody tr').length"
    assert chrome.evaluate(rows) == 2
    with pm.Store(path) as store:
        store.put(row("matmul", 512, 1e-4))
        until(lambda: chrome.evaluate(rows) == 3)
    chrome.evaluate(
        "(() => { const f = document.querySelector('form'); f.words.value = 'copy'; f.requestSubmit(); })()"
    )
    until(lambda: "words=copy" in chrome.evaluate("location.search") and chrome.evaluate(rows) == 1)
    assert all(each.startswith(address) for each in chrome.requested())
    assert chrome.complaints() == []
    chrome.screenshot(Path(os.environ.get(SCREENSHOTS, tmp_path)) / f"browse-{theme}.png")
