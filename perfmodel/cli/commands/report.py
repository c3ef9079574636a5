"""The command ``report`` writes calibrations as one HTML page that works offline."""

from __future__ import annotations

import argparse
from itertools import chain

from perfmodel.basics import files
from perfmodel.basics.errors import PerfmodelError
from perfmodel.cli import completion
from perfmodel.cli.commands.selection import selected_sets
from perfmodel.cli.options import Command, kernel_options

SUMMARY = "write one HTML page of calibrations: times, errors, costs, parameters, a roofline, devices compared"
PURPOSE = "kernels of the calibrations that no installed generator makes, to explain them too: "
EXAMPLE = "perfmodel report madd.json unified-plus@h200 demo-out --out report.html"


def add(command: Command) -> None:
    added = command(run, "report", SUMMARY, EXAMPLE)
    calibrations = added.add_argument(
        "calibrations",
        nargs="+",
        metavar="CAL",
        help="a calibration's file, MODEL@DEVICE of a shipped one, or a folder that reproduce wrote",
    )
    completion.complete(calibrations, completion.calibrations)
    kernel_options(added, "+", "--kernels", action="append", default=[], purpose=PURPOSE)
    added.add_argument("--out", default="report.html", help="file to write (default: %(default)s)")


def run(parsed: argparse.Namespace) -> None:
    """Writes the report page of the calibrations that the command line names.

    Raises:
        PerfmodelError: for what is no calibration or folder of results, and where the page cannot be written.
    """
    from perfmodel.report.page import report_page  # keeps start-up quick
    from perfmodel.report.reported import reported

    models = reported(parsed.calibrations)
    content = report_page(models, list(chain(*selected_sets(parsed, parsed.kernels))))
    try:
        files.write(parsed.out, content)
    except OSError as error:
        raise PerfmodelError(f"report {parsed.out} cannot be written ({error.strerror}); give another path") from error
    print(f"written to {parsed.out}")
