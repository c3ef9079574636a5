"""The command ``run`` runs a program that uses pyopencl, and records its launches."""

from __future__ import annotations

import argparse
import warnings

from perfmodel.cli.commands import learning, printing
from perfmodel.cli.options import Command, json_option, predict_option

_python_shows_warning = warnings.showwarning


def add(command: Command) -> None:
    added = command(
        _run,
        "run",
        "run a Python script that uses pyopencl, and list the kernels that it launched",
        "perfmodel run my_program.py 1024 --predict unified-plus@h200",
    )
    added.runs_scripts = True  # type: ignore[attr-defined]
    added.usage = "%(prog)s [-h] [--json] [--predict CALIBRATION] [--learn FILE] [--emulate] SCRIPT [ARGUMENT ...]"
    added.add_argument(
        "script", metavar="SCRIPT", help="a Python file, and its own arguments; after -- all are its own"
    )
    json_option(added, "print one line of JSON at the end instead of the table")
    predict_option(added)
    learning.learn_option(added)
    added.add_argument("--emulate", action="store_true", help="emulate the first work-group of each kernel as well")


def _run(parsed: argparse.Namespace) -> None:
    from perfmodel.interception import intercept  # keeps start-up quick
    from perfmodel.interception.report import as_json, as_text
    from perfmodel.interception.script import check_script, make_drivers_visible, run_script
    from perfmodel.modelling.calibration import calibration_called

    check_script(parsed.script)
    calibration = calibration_called(parsed.predict) if parsed.predict else None
    student = learning.student(parsed)
    make_drivers_visible()
    log = intercept(contents="first" if parsed.emulate else False)
    with warnings.catch_warnings():
        warnings.showwarning = _python_shows_warning
        status = run_script(parsed.script, parsed.arguments, log)
    told = (log.groups(), calibration, parsed.emulate)
    learned = student.learned(log.groups()) if student else None
    printing.found(
        parsed,
        lambda: as_json(*told) | ({"learned": learned.as_json()} if learned else {}),
        lambda: "\n\n".join([as_text(*told), *([str(learned)] if learned else [])]),
    )
    if status:
        raise SystemExit(status)
