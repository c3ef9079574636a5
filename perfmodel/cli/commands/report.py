"""The command ``report`` writes calibrations as one HTML page that works offline."""

from __future__ import annotations

import argparse
import os
from itertools import chain
from typing import TYPE_CHECKING

from perfmodel.basics import files
from perfmodel.basics.errors import PerfmodelError
from perfmodel.cli import completion
from perfmodel.cli.commands import printing
from perfmodel.cli.commands.selection import selected_sets, store_beside
from perfmodel.cli.options import Command, condition_options, json_option, kernel_options, tag_option

if TYPE_CHECKING:
    from perfmodel.measuring.store import StoredEvaluation

DEVICE = "of --evaluate: key, part of the name, 'gpu' or 'cpu' (default: the calibration's)"
PURPOSE = "kernels of the calibrations that no installed generator makes, to explain them too: "
EXAMPLE = "perfmodel report madd.json unified-plus@h200 demo-out --out report.html"


def add(command: Command) -> None:
    added = command(run, "report", EXAMPLE)
    calibrations = added.add_argument(
        "calibrations",
        nargs="+",
        metavar="CAL",
        help="a calibration's file, MODEL@DEVICE of a shipped one, or a folder that reproduce wrote",
    )
    completion.complete(calibrations, "calibrations")
    kernel_options(added, "+", "--kernels", action="append", default=[], purpose=PURPOSE)
    held_out = "kernels that the calibrations were not fitted to, measured or from --store, to judge them by: "
    tag_option(added, "+", "--evaluate", purpose=held_out, action="append", default=[])
    condition_options(added, store="none", protocol="the calibration's", device=DEVICE)
    added.add_argument("--out", default="report.html", help="file to write (default: %(default)s)")
    json_option(added, "print what the page shows as one JSON document, instead of writing it")


def run(parsed: argparse.Namespace) -> None:
    """Writes the report page of the calibrations that the command line names.

    Raises:
        PerfmodelError: for what is no calibration or folder of results, and where the page cannot be written.
    """
    from perfmodel.report.page import report_json, report_page  # keeps start-up quick
    from perfmodel.report.reported import reported, with_held_out

    models = reported(parsed.calibrations)
    sets = selected_sets(parsed, [*parsed.kernels, *parsed.evaluate])
    own, held_out = sets[: len(parsed.kernels)], list(chain(*sets[len(parsed.kernels) :]))
    if held_out:
        device = parsed.device or os.environ.get("PERFMODEL_DEVICE")
        models = with_held_out(models, held_out, device=device, store=parsed.store, protocol=parsed.protocol)
    given = [*chain(*own), *held_out]
    history = _history(parsed)
    if parsed.json:
        printing.document(report_json(models, given, history))
        return
    content = report_page(models, given, history)
    try:
        files.write(parsed.out, content)
    except OSError as error:
        raise PerfmodelError(f"report {parsed.out} cannot be written ({error.strerror}); give another path") from error
    print(f"written to {parsed.out}")


def _history(parsed: argparse.Namespace) -> list[StoredEvaluation]:
    """Returns the evaluations of the calibrations that --store keeps, or the store beside one of them."""
    from perfmodel.measuring.store import Store  # keeps start-up quick

    beside = [store_beside(name) for name in parsed.calibrations if name.endswith(".json")]
    names = [os.path.basename(name) for name in parsed.calibrations]  # noqa: PTH119
    found = []
    for path in [parsed.store] if parsed.store else beside:
        if os.path.isfile(path):  # noqa: PTH113
            with Store(path, read_only=True) as store:
                found += [each for each in store.evaluations() if each.calibration in names]
    return found
