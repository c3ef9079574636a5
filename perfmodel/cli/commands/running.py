"""The command ``run`` runs a program that uses pyopencl or CuPy, and records its launches."""

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
        "perfmodel run my_program.py 1024 --predict @h200",
    )
    added.runs_scripts = True  # type: ignore[attr-defined]
    added.usage = "%(prog)s [-h] [--json] [--predict CALIBRATION]… [--learn FILE] [--emulate] SCRIPT [ARGUMENT ...]"
    added.add_argument(
        "script", metavar="SCRIPT", help="a Python file, and its own arguments; after -- all are its own"
    )
    json_option(added, "print one line of JSON at the end instead of the table")
    predict_option(added, "; several times for several devices", action="append", default=[])
    learning.learn_option(added)
    added.add_argument("--emulate", action="store_true", help="emulate the first work-group of each kernel as well")


def _run(parsed: argparse.Namespace) -> None:
    from perfmodel.interception import intercept  # keeps start-up quick
    from perfmodel.interception.report import as_json, as_text
    from perfmodel.interception.script import check_script, make_drivers_visible, run_script
    from perfmodel.modelling.calibration import calibration_called

    check_script(parsed.script)
    calibrations = {name: calibration_called(name) for name in parsed.predict}
    student = learning.student(parsed)
    make_drivers_visible()
    log = intercept("first" if parsed.emulate else False, profiles=True)
    with warnings.catch_warnings():
        warnings.showwarning = _python_shows_warning
        status = run_script(parsed.script, parsed.arguments, log)
    times = log.times(calibrations)
    learned = student.learned(log.groups()) if student else None
    printing.found(
        parsed,
        lambda: as_json(times, parsed.emulate) | ({"learned": learned.as_json()} if learned else {}),
        lambda: "\n\n".join([as_text(times, parsed.emulate), *([str(learned)] if learned else [])]),
    )
    if status:
        raise SystemExit(status)
