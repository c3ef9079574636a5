"""The commands ``reproduce`` and ``demo`` run recipes and studies, and judge them."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.basics import json_values
from perfmodel.basics.errors import PerfmodelError
from perfmodel.cli import completion
from perfmodel.cli.commands import printing
from perfmodel.cli.commands.projection import study_options
from perfmodel.cli.options import Command, json_option, recipe_options

if TYPE_CHECKING:
    from perfmodel.modelling.calibration import Calibration
    from perfmodel.recipes.recipe import Recipe
    from perfmodel.recipes.study import Study


def add(command: Command) -> None:
    added = command(
        _reproduce,
        "reproduce",
        "perfmodel reproduce unified --device gpu --store times.sqlite --out unified --budget 540",
    )
    name = added.add_argument("recipe", metavar="NAME", help="a recipe's or study's name; a wrong one lists them")
    completion.complete(name, "recipes")
    recipe_options(added, None)
    added.add_argument(
        "--calibrate-only",
        action="store_true",
        help="only fit a recipe's models; do not judge them",
    )
    json_option(added)
    study_options(added)
    added = command(
        _reproduce,
        "demo",
        "perfmodel demo --device gpu",
    )
    added.set_defaults(recipe="demo", calibrate_only=False)
    recipe_options(added, "demo-out")
    json_option(added)


def _reproduce(parsed: argparse.Namespace) -> None:
    from perfmodel.recipes.recipe import recipe  # keeps start-up quick
    from perfmodel.recipes.study import studies

    command = shlex.join(["perfmodel", *sys.argv[1:]])
    own = studies()
    with printing.only_document(parsed):
        if parsed.recipe in own:
            if parsed.calibrate_only:
                raise PerfmodelError(
                    f"study {parsed.recipe!r} has no models of its own to calibrate; leave --calibrate-only out"
                )
            data = _studied(own[parsed.recipe], parsed, command)
        else:
            data = _run(recipe(parsed.recipe, beside=own), parsed, command)
    if parsed.json:
        printing.document(data)


def _studied(study: Study, parsed: argparse.Namespace, command: str) -> dict[str, Any]:
    from perfmodel.recipes.study import StudyOptions  # keeps start-up quick

    if "device" in parsed.from_project_file:  # a study is of all devices unless the command says otherwise
        parsed.device = None
    folder = Path(parsed.out or f"{study.name}-out")
    parsed.store = parsed.store or str(folder / "perfmodel.sqlite")
    devices, protocol = parsed.device, parsed.protocol or "quick"
    options = StudyOptions(
        out=folder,
        store=parsed.store,
        devices=devices,
        protocol=protocol,
        measure_only=parsed.measure_only,
        command=command,
    )
    study.reproduce(options)
    results = folder / "results.json"
    return {
        "recipe": study.name,
        "store": parsed.store,
        "written": [] if parsed.measure_only else sorted(str(path) for path in folder.iterdir() if path.is_file()),
        "summary": json_values.read(results).get("summary") if results.exists() else None,
    }


def _run(chosen: Any, parsed: argparse.Namespace, command: str) -> dict[str, Any]:
    from perfmodel import report  # keeps start-up quick
    from perfmodel.device import find_device
    from perfmodel.measuring.campaign.campaign import check_budget, protocol_called
    from perfmodel.measuring.store import Store, looked_into
    from perfmodel.recipes import running

    folder = Path(parsed.out or f"{chosen.name}-out")
    parsed.store = parsed.store or str(folder / "perfmodel.sqlite")
    check_budget(parsed.budget)
    protocol_called(parsed.protocol or "unified")
    with looked_into(parsed.store) as known:
        device = find_device(parsed.device, known.devices())
    report.prepared(folder)
    with Store(parsed.store) as store:
        print(f"device {device.key}: {device.name}, {device.platform}, driver {device.driver}")
        if not device.is_here:
            print(f"it is not on this machine; all times are those of {parsed.store}")
        conditions = {
            "device": device,
            "store": store,
            "protocol": parsed.protocol,
            "budget_s": parsed.budget,
            "tell": printing.teller(parsed),
        }
        if parsed.calibrate_only:
            found, notes = running.calibrate(chosen, **conditions)
            return _calibrated(chosen, parsed, found, notes)
        outcome = running.run(chosen, command=command, **conditions)
    printing.text(lambda: f"\n{report.weights(outcome)}\n\n{report.text(outcome)}\n")
    written = [str(path) for path in report.write(outcome, folder)]
    print("\n".join(f"written: {path}" for path in written))
    return {
        "recipe": chosen.name,
        "device": device.key,
        "protocol": outcome.protocol,
        "store": parsed.store,
        "written": written,
        "summary": outcome.summary,
        "notes": outcome.notes,
    }


def _calibrated(
    chosen: Recipe, parsed: argparse.Namespace, found: Mapping[str, Calibration], notes: Sequence[str]
) -> dict[str, Any]:
    """Writes calibrations into the folder of results, and prints them; returns what ``--json`` says."""
    written = []
    for name, calibration in found.items():
        path = Path(parsed.out or f"{chosen.name}-out") / f"calibration-{name}.json"
        calibration.save(path)
        written.append(str(path))
    printing.text(lambda: "".join(f"\n{calibration}\n" for calibration in found.values()))
    print("\n".join([*(f"note: {note}" for note in notes), *(f"written: {path}" for path in written)]))
    first = next(iter(found.values()))
    return {
        "recipe": chosen.name,
        "device": first.device.get("key"),
        "protocol": first.protocol,
        "store": parsed.store,
        "written": written,
        "summary": None,
        "notes": notes,
    }
