"""Starts Python processes: nothing that lies in the working folder is run, and perfmodel is this one.

`python -m` looks for modules in the working folder first, and an empty entry of PYTHONPATH stands for it too, so that a
file `numpy.py` in somebody's download folder would be taken for numpy.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]

# Loads this perfmodel, wherever it lies, then runs a module. What the new process would not find by itself is looked
# for last, so that it can't stand in for an installed package.
_START = """
import importlib.util, runpy, sys
sys.path += [entry for entry in {entries!r} if entry not in sys.path]
spec = importlib.util.spec_from_file_location("perfmodel", {package!r})
sys.modules["perfmodel"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["perfmodel"])
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""


def command(module: str, *arguments: str) -> list[str]:
    """Returns the command that runs a module as ``python -m`` does; `environment` belongs to it."""
    package = str(PACKAGE / "__init__.py")
    code = _START.format(entries=_entries(), package=package, module=module)
    return [sys.executable, "-P", "-c", code, *arguments]


def environment() -> dict[str, str]:
    """Returns environment variables with which a process does not look for modules in its working folder."""
    named = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if Path(entry).is_absolute()]
    return {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(named)}


def _entries() -> list[str]:
    """Returns the folders in which this process finds modules, but for the working folder; that of perfmodel in any
    case."""
    try:
        here = os.path.realpath(os.curdir)
    except OSError:  # it was removed
        here = ""
    absolute = [entry for entry in sys.path if isinstance(entry, str) and Path(entry).is_absolute()]
    root = str(PACKAGE.parent)
    return [*(entry for entry in absolute if os.path.realpath(entry) != here), root]
