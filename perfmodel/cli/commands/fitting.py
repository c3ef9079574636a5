"""The commands ``calibrate`` and ``suggest`` fit a model to measurements, or find one for them."""

from __future__ import annotations

import argparse
import shlex
import sys
from itertools import chain
from typing import TYPE_CHECKING, Any

from perfmodel.basics import files
from perfmodel.basics.errors import PerfmodelError
from perfmodel.cli import completion
from perfmodel.cli.commands import printing
from perfmodel.cli.commands.selection import check_writable, sets_to_measure, store_beside
from perfmodel.cli.options import Command, condition_options, json_option, kernel_options, tag_option

if TYPE_CHECKING:
    from perfmodel.modelling.calibration import Calibration
    from perfmodel.modelling.suggestion import Suggestion


PARAMETER_OPTIONS = (
    ("hold", "NAME=VALUE", "hold a parameter at a value; may be given several times"),
    ("bound", "NAME=LOW..HIGH", "keep a parameter between two values, either of which may be left out"),
    ("start", "NAME=VALUE", "let the search for a parameter begin there"),
    ("tie", "NAME=EXPRESSION", "let a parameter follow others: 'p_c=2 * p_a'"),
)


def add(command: Command) -> None:
    added = command(
        _calibrate,
        "calibrate",
        "perfmodel calibrate --device cpu --out cpu.json",
    )
    model = (
        "model string, or @FILE that holds it, to be fitted from nothing to the kernels of --tags (default: the model "
        "of any kernel, which learns from the times of a few)"
    )
    added.add_argument("model", nargs="?", help=model)
    measured = "the feature that a model string gives (default: f_cl_wall_time)"
    added.add_argument("--measured", metavar="FEATURE", help=measured)
    prior = added.add_argument(
        "--prior",
        metavar="CALIBRATION",
        help="without a model: what to begin with (default: what comes along for the device, or is carried over to it)",
    )
    completion.complete(prior, "calibrations")
    few = "without a model and --tags: how many kernels to measure, of all families in turn (default: 400)"
    added.add_argument("--kernels", type=int, metavar="N", help=few)
    kernel_options(added, "+", "--tags", action="append", default=[])
    condition_options(added)
    added.add_argument("--out", default="calibration.json", help="file to write (default: %(default)s)")
    added.add_argument("--strict", action="store_true", help="fail where the measurements leave a parameter open")
    added.add_argument("--free", action="store_true", help="let parameters be negative")
    for option, form, summary in PARAMETER_OPTIONS:
        added.add_argument(f"--{option}", action="append", default=[], metavar=form, help=summary)
    json_option(added)
    added = command(
        _suggest,
        "suggest",
        "perfmodel suggest --measurements dtype:float32 n:1024 --evaluation matmul n:1536 --out model.txt",
    )
    tag_option(added, "+", "--evaluation", action="append", default=[])
    kernel_options(added, "+", "--measurements", action="append", required=True)
    condition_options(added)
    added.add_argument("--out", default="model.txt", help="file to write, for calibrate @FILE (default: %(default)s)")
    added.add_argument("--terms", type=int, default=12, metavar="N", help="at most so many (default: %(default)s)")
    json_option(added)


def _calibrate(parsed: argparse.Namespace) -> None:
    _check_together(parsed)
    check_writable(parsed.out)
    # What was measured is kept, also if the command is interrupted or the fit fails.
    parsed.store = parsed.store or store_beside(parsed.out)
    if parsed.model is None:
        _learn(parsed)
    else:
        _fit(parsed)


def _check_together(parsed: argparse.Namespace) -> None:
    """Refuses options that say nothing of what is asked for."""
    if parsed.model is None:
        given = {f"--{option}": getattr(parsed, option) for option, *_ in PARAMETER_OPTIONS}
        given |= {"--measured": parsed.measured, "--strict": parsed.strict, "--free": parsed.free}
        if wrong := next((option for option, value in given.items() if value), None):
            raise PerfmodelError(f"{wrong} is for a model string, of which there is none; give one, or leave it out")
        if parsed.tags and parsed.kernels is not None:
            raise PerfmodelError("--tags and --kernels both say what to measure; leave one out")
        return
    if not parsed.tags:
        raise PerfmodelError("a model string is fitted to kernels; select them by --tags, such as --tags matmul_sq")
    given = {"--prior": parsed.prior, "--kernels": parsed.kernels}
    if wrong := next((option for option, value in given.items() if value is not None), None):
        raise PerfmodelError(f"{wrong} is for the model that comes along; leave it out, or the model string")


def _learn(parsed: argparse.Namespace) -> None:
    from perfmodel.modelling.calibration import calibration_called  # keeps start-up quick
    from perfmodel.recipes.few_kernels import FEW, learned_here

    prior = calibration_called(parsed.prior) if parsed.prior else None
    kernels = list(chain(*sets_to_measure(parsed, parsed.tags, parsed.device))) if parsed.tags else None
    found = learned_here(
        kernels=kernels or (FEW if parsed.kernels is None else parsed.kernels),
        prior=prior,
        tell=printing.teller(parsed),
        **_conditions(parsed),
    )
    found.after.save(parsed.out)
    named = {"written": parsed.out, "store": parsed.store}
    printing.found(
        parsed,
        lambda: named | {"learned": found.as_json()} | _calibration_data(found.after),
        lambda: f"\n{found}\n\nwritten to {parsed.out}",
    )


def _fit(parsed: argparse.Namespace) -> None:
    from perfmodel.modelling.calibration import Model  # keeps start-up quick
    from perfmodel.modelling.feature_table import measure

    model = Model(parsed.measured or "f_cl_wall_time", _text(parsed.model), parameters=_parameters(parsed))
    kernels = list(chain(*sets_to_measure(parsed, parsed.tags, parsed.device)))
    table = measure(kernels, model, **_conditions(parsed))
    calibration = model.fit(table, strict=parsed.strict, nonnegative=not parsed.free)
    calibration.save(parsed.out)
    named = {"written": parsed.out, "store": parsed.store}
    printing.found(
        parsed, lambda: named | _calibration_data(calibration), lambda: f"{calibration}\n\nwritten to {parsed.out}"
    )


def _parameters(parsed: argparse.Namespace) -> dict[str, Any]:
    """Returns what the options say of parameters, as `Model` takes it."""
    found: dict[str, Any] = {}
    for option, form, _ in PARAMETER_OPTIONS:
        for text in getattr(parsed, option):
            name, equals, value = (part.strip() for part in text.partition("="))
            if not equals or not name or not value:
                raise PerfmodelError(f"--{option} {text!r} is not {form}; write it so")
            said = _said(option, text, value)
            if name in found and not (option == "start" and found[name].keys() == {"min", "max"}):
                raise PerfmodelError(f"--{option} {text!r} is not all that is said of {name}; leave one of the two out")
            found[name] = found.get(name, {}) | said
    return found


def _said(option: str, text: str, value: str) -> dict[str, Any]:
    if option == "tie":
        return {"expr": value}
    try:
        if option == "bound":
            low, dots, high = value.partition("..")
            if not dots:
                raise ValueError("no dots")
            return {"min": float(low) if low else None, "max": float(high) if high else None}
        return {"value": float(value), "vary": option == "start"}
    except ValueError as error:
        form = "LOW..HIGH" if option == "bound" else "a number"
        raise PerfmodelError(f"--{option} {text!r}: {value!r} is not {form}; write 1e-12, or 0..1e-9") from error


def _suggest(parsed: argparse.Namespace) -> None:
    from perfmodel.modelling.calibration import Model  # keeps start-up quick
    from perfmodel.modelling.feature_table import measure
    from perfmodel.modelling.suggestion import OUTPUT, check_terms, suggest
    from perfmodel.modelling.suggestion.report import as_file, as_text

    check_writable(parsed.out)
    check_terms(parsed.terms)
    parsed.store = parsed.store or store_beside(parsed.out)
    sets = sets_to_measure(parsed, [*parsed.measurements, *parsed.evaluation], parsed.device)
    count = len(parsed.measurements)
    kernels, checks = list(chain(*sets[:count])), list(chain(*sets[count:]))
    table = measure([*kernels, *checks], Model(OUTPUT, "p_time"), **_conditions(parsed))
    found = suggest(
        kernels,
        table.iloc[: len(kernels)],
        evaluation=(checks, table.iloc[len(kernels) :]) if checks else None,
        terms=parsed.terms,
        tell=printing.teller(parsed),
    )
    command = shlex.join(["perfmodel", *sys.argv[1:]])
    files.write(parsed.out, as_file(found, command))
    named = {"written": parsed.out, "store": parsed.store}
    printing.found(
        parsed, lambda: named | _suggestion_data(found), lambda: f"\n{as_text(found)}\n\nwritten to {parsed.out}"
    )


def _conditions(parsed: argparse.Namespace) -> dict[str, Any]:
    return {"device": parsed.device, "store": parsed.store, "protocol": parsed.protocol or "unified"}


def _calibration_data(calibration: Calibration) -> dict[str, Any]:
    return {
        "model": calibration.model.string.source,
        "output": calibration.model.output_name,
        "device": calibration.device.get("key"),
        "protocol": calibration.protocol.get("name"),
        "parameters": {
            name: {"value": value, "stderr": calibration.stderr[name], "unit": calibration.units[name]}
            for name, value in calibration.parameters.items()
        },
        "declared": {name: said.given for name, said in calibration.model.declared.items()},
        "residual_std": calibration.residual_std,
        "kernels": len(calibration.rows) - len(calibration.left_out),
        "left_out": [
            {"kernel": row.kernel, "variant": row.variant, "sizes": row.sizes, "flags": row.flags}
            for row in calibration.left_out
        ],
        "undetermined": calibration.undetermined,
    }


def _suggestion_data(found: Suggestion) -> dict[str, Any]:
    return {
        **_calibration_data(found.calibration),
        "typical_error": found.chosen.error,
        "typical_error_by_group": found.error_by_group,
        "path": [{"terms": step.terms, "typical_error": step.error} for step in found.path],
        "evaluation": [
            row.values(("kernel", "variant", "sizes", "measured_s", "predicted_s")) for row in found.evaluation
        ],
    }


def _text(argument: str) -> str:
    if not argument.startswith("@"):
        return argument
    try:
        files.check_file(argument[1:])
        with open(argument[1:], encoding="utf-8") as file:  # noqa: PTH123
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise PerfmodelError(f"model file {argument[1:]!r} cannot be read ({error}); give a text file") from error
