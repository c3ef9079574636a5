"""Provides what the tests share: a device to run on, and a device-free stand-in for measured time."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What a shell starts in the background ignores Ctrl-C, as do all that it starts; tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# What is counted and compiled is kept for this run, by all of its processes, and nothing of it in the user's cache.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="perfmodel-tests-")
    atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)
# The suite has a process for each core; linear algebra in threads beside these only waits for itself.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import perfmodel as pm
from perfmodel.device import Device, find_device
from perfmodel.measuring.campaign import work
from perfmodel.measuring.isolation.child import as_timing
from perfmodel.modelling import advising, explanation
from tests.browser import Page, browser, chromium

# How long an input takes to make says nothing where others use the same cores.
settings.register_profile("shared cores", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared cores")

TESTS = Path(__file__).parent
TIMED = frozenset(
    TESTS / f"{name}.py"
    for name in (
        "cli/test_cli",
        "cli/test_selection",
        "measuring/test_campaign",
        "measuring/test_protocol",
        "measuring/test_reference",
        "modelling/test_calibration",
        "recipes/test_recipe",
        "test_docs",
    )
)
"""Modules whose tests measure."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out modules of which a mark selects nothing: importing all of them takes as long as a hundred tests."""
    if not (collection_path.name.startswith("test_") and collection_path.suffix == ".py"):
        return None
    match config.option.markexpr:
        case "not timed":
            is_left_out = collection_path in TIMED
        case "timed":
            is_left_out = collection_path not in TIMED and "mark.timed" not in collection_path.read_text("utf-8")
        case _:
            is_left_out = False
    return is_left_out or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path in TIMED:
            item.add_marker("timed")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes tests of campaigns go on with disturbed times on a busy machine, rather than wait for better ones."""
    monkeypatch.setattr(work, "WAIT_SECONDS", 0.1)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets explanations predict all that they can, however busy the machine is."""
    monkeypatch.setattr(explanation, "GROWTH_S", 60.0)
    monkeypatch.setattr(advising, "CHANGES_S", 60.0)


@pytest.fixture
def unflagged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes no time doubtful: which of a few short kernels a busy machine flags is chance, and would leave too few."""
    monkeypatch.setattr(
        "perfmodel.measuring.isolation.process.as_timing", lambda said: replace(as_timing(said), flags=())
    )
    monkeypatch.setattr(work, "is_disturbed", lambda seconds, best: False)


@pytest.fixture(scope="session")
def cpu() -> Device:
    """Returns the embedded CPU device, which the lock installs."""
    return find_device("cpu")


class SimulatedTime:
    """A 'measured' time that follows from a formula over features, so that a fit has a known truth."""

    def __init__(self, formula: Callable[[Callable[[str], float]], float]) -> None:
        self.formula = formula

    def eval(self, knl: pm.Kernel) -> float:
        return self.formula(lambda name: pm.feature(name).eval(knl))


@pytest.fixture(scope="session")
def collection() -> pm.KernelCollection:
    return pm.KernelCollection(pm.ALL_GENERATORS)


@pytest.fixture(scope="session")
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Waits until something is so; a machine that is too slow for it within a minute fails."""

    def wait(is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not is_so():
            assert time.monotonic() < end
            time.sleep(0.05)

    return wait


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Gives a page of a browser of its own, or skips the test where there is none."""
    program = chromium()
    if program is None:
        pytest.skip("no Chromium is installed; on Debian: apt-get install chromium")
    with browser(program, tmp_path_factory.mktemp("profile")) as page:
        yield page
