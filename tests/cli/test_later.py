"""A package that is put off is imported when something of it is used, and not before."""

from __future__ import annotations

import subprocess
import sys

import pytest

from perfmodel.cli.command_line import main

PROGRAMS = {
    "an attribute": "import wave as w; assert is_off('wave'); w.open; assert not is_off('wave')",
    "an attribute of one that was imported since": "import wave as w; from wave import Error; assert w.Error is Error",
    "a name": "from wave import Error; assert not is_off('wave')",
    "a module within": "import xml; import xml.dom; assert xml.dom.Node",
    "a name of a module that the package imports": "import unittest as u; assert is_off('unittest')\n"
    "from unittest.case import TestCase; assert TestCase is u.TestCase is sys.modules['unittest.case'].TestCase",
    "what was imported before": "",
}


@pytest.mark.parametrize("use", PROGRAMS)
def test_it_is_imported_when_it_is_used(use: str) -> None:
    program = (
        "import sys; from perfmodel.cli import later\n"
        "def is_off(name): return name not in sys.modules\n"
        "import json; mine = json\n"
        "later.put_off('wave', 'xml', 'unittest', 'json', 'nothing_of_this_name')\n"
        f"{PROGRAMS[use]}\n"
        "assert sys.modules['json'] is mine\n"
        "try:\n    import nothing_of_this_name\n"
        "except ModuleNotFoundError: print('missing')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == "missing\n"


def test_a_program_that_is_run_finds_packages_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    put_off: list[str] = []
    monkeypatch.setattr("perfmodel.cli.later.put_off", lambda *names: put_off.extend(names))
    assert main(["run", "nothing.py"]) == 2
    assert put_off == []
    assert main(["kernels", "nothing"]) == 2
    assert "loopy" in put_off
