"""Checks programs on an OpenCL device, writes them as a folder for `perfmodel survey`, or judges what it found."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.programs import named
from benchmarks.programs.checking import run
from benchmarks.programs.exporting import export
from benchmarks.programs.judging import HALVES, as_text, judged
from benchmarks.programs.program import SIZES
from perfmodel.basics.tables import seconds
from perfmodel.device import find_device


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.programs", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    checked = commands.add_parser("check", help="run kernels and compare their results with numpy's")
    checked.add_argument("names", nargs="*", metavar="NAME", help="cases or groups (default: all)")
    checked.add_argument("--device", default="cpu", help="part of the device's name, or 'cpu' or 'gpu' (default: cpu)")
    checked.add_argument("--size", choices=SIZES, default="cpu", help="of the launches (default: cpu)")
    checked.add_argument("--unjudged", action="store_true", help="launch only, without comparing results")
    exported = commands.add_parser("export", help="write sources, data and survey.json into a folder")
    exported.add_argument("folder", type=Path)
    exported.add_argument("names", nargs="*", metavar="NAME", help="cases or groups (default: all)")
    exported.add_argument("--size", choices=SIZES, action="append", help="of the launches (default: both)")
    judge = commands.add_parser("judge", help="compare predictions with measured times, one half of the programs")
    judge.add_argument("files", nargs="+", type=Path, metavar="SURVEY.jsonl", help="of perfmodel survey --out")
    judge.add_argument("--half", choices=HALVES, default=HALVES[0], help="final is for the end (default: validation)")
    judge.add_argument("--worst", type=int, default=20, metavar="N", help="programs to list (default: 20)")
    parsed = parser.parse_args()
    if parsed.command == "judge":
        print(as_text(*judged(parsed.files, parsed.half), parsed.worst))
        return 0
    try:
        selected = named(parsed.names)
    except KeyError as error:
        parser.error(error.args[0])
    if parsed.command == "export":
        print(export(selected, parsed.folder, parsed.size or SIZES))
        return 0
    device = find_device(parsed.device)
    wrong = 0
    for case in selected:
        outcome = run(case, parsed.size, device, not parsed.unjudged)
        wrong += bool(outcome.why)
        print(f"{case.group:12} {case.name:28} {seconds(outcome.seconds):>10}  {outcome}", flush=True)
    print(f"{len(selected)} kernels, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
