"""The command ``survey`` takes a folder of kernels through all that perfmodel does with kernels."""

from __future__ import annotations

import argparse
import json
import sys
from fnmatch import fnmatch
from pathlib import Path

from perfmodel.basics.errors import SurveyError, nearest
from perfmodel.cli.commands import printing
from perfmodel.cli.commands.selection import check_writable
from perfmodel.cli.options import (
    Command,
    device_option,
    effort_option,
    json_option,
    limit_options,
    limits_of,
    predict_option,
    protocol_option,
)


def add(command: Command) -> None:
    added = command(
        _survey,
        "survey",
        "perfmodel survey my-kernels --launch gpu --device gpu --predict unified-plus@h200 --measure",
    )
    added.add_argument("folder", metavar="FOLDER", help="has a file survey.json, as docs/surveys.md describes it")
    added.add_argument(
        "names", nargs="*", metavar="CASE", help="cases by name or pattern, such as 'spmv_*' (default: all)"
    )
    added.add_argument("--launch", metavar="NAME", help="which launch of the cases, such as cpu or gpu")
    device_option(added, "builds the kernels and runs them: key, part of the name, 'gpu' or 'cpu' (default: none)")
    predict_option(added)
    added.add_argument("--measure", action="store_true", help="time the kernels on the device as well")
    added.add_argument(
        "--without", default="", metavar="STAGE,…", help="stages to leave out, such as equal, which emulates all groups"
    )
    effort_option(added)
    protocol_option(added, "quick")
    limit_options(added, 60.0, "one stage of a case")
    added.add_argument("--jobs", type=int, default=1, metavar="N", help="cases at a time (default: 1)")
    added.add_argument("--out", metavar="FILE", help="a line of JSON for each case, as soon as it is done")
    json_option(added)


def _survey(parsed: argparse.Namespace) -> int:
    from perfmodel.counting.usual_budget import checked  # these keep start-up quick
    from perfmodel.device import find_device
    from perfmodel.measuring.campaign import protocol_called
    from perfmodel.modelling.calibration import calibration_called
    from perfmodel.report.survey_table import as_text
    from perfmodel.surveying import load_cases, survey
    from perfmodel.surveying.survey import CaseOutcome

    cases = load_cases(parsed.folder, parsed.launch)
    for pattern in parsed.names:
        if not any(fnmatch(case.name, pattern) for case in cases):
            raise SurveyError(f"no case is called {pattern!r}{nearest(pattern, [case.name for case in cases])}")
    if parsed.names:
        cases = [case for case in cases if any(fnmatch(case.name, pattern) for pattern in parsed.names)]
    if parsed.jobs < 1:
        raise SurveyError(f"--jobs {parsed.jobs} runs nothing; give 1 or more")
    if parsed.counting_budget is not None:
        checked(parsed.counting_budget)
    if parsed.predict:
        calibration_called(parsed.predict)
    if parsed.device:
        find_device(parsed.device)
    protocol = protocol_called(parsed.protocol or "quick").name
    limits = limits_of(parsed)
    if parsed.out:
        check_writable(parsed.out)
        Path(parsed.out).write_text("", encoding="utf-8")

    def told(outcome: CaseOutcome) -> None:
        if parsed.out:
            with Path(parsed.out).open("a", encoding="utf-8") as file:
                file.write(json.dumps(outcome.as_json()) + "\n")
        failed = next((stage for stage in outcome.stages if stage.failure), None)
        mistakes = [each for stage in outcome.stages for each in stage.values.get("findings", ())]
        said = f"{failed.name} failed: {failed.failure}" if failed else "; ".join(["all stages done", *mistakes])
        print(f"{outcome.case.name}: {said}", file=sys.stderr, flush=True)

    found = survey(
        cases,
        device=parsed.device or "",
        calibration=parsed.predict or "",
        measured=parsed.measure,
        without=[stage.strip() for stage in parsed.without.split(",") if stage.strip()],
        protocol=protocol,
        effort=parsed.counting_budget,
        limits=limits,
        jobs=parsed.jobs,
        on_case=told,
    )
    printing.found(parsed, found.as_json, lambda: as_text(found))
    return 1 if found.failures else 0
