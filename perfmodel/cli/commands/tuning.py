"""The command ``tune`` searches for the fastest configuration of a kernel, led by predictions."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.basics.errors import CalibrationError, PerfmodelError
from perfmodel.basics.tables import grid, percent, seconds, wrapped
from perfmodel.cli.arguments import pairs
from perfmodel.cli.commands import printing
from perfmodel.cli.commands.selection import check_measurable
from perfmodel.cli.options import (
    Command,
    defaults_from_project_file,
    device_option,
    json_option,
    limit_options,
    limits_of,
    predict_option,
    protocol_option,
    source_options,
)

if TYPE_CHECKING:
    from perfmodel.device import Device
    from perfmodel.modelling.calibration import Calibration
    from perfmodel.tuning.pruning import Configuration
    from perfmodel.tuning.searching import Step
    from perfmodel.tuning.tuner import Tuner

SHOWN = 10
Config = dict[str, Any]


def add(command: Command) -> None:
    added = command(
        _tune,
        "tune",
        "perfmodel tune scale.cl --global 'n//{work}' --local '{group}' --arg n=65536 --arg a=n --param group=64,128 "
        "--param work=1,2,4 --store tune.sqlite",
    )
    added.add_argument("source", metavar="FILE.cl", help="or FILE.cu, or FILE.cl:KERNEL")
    group = added.add_argument_group("the configurations, whose values are macros, and {NAME} in options")
    group.add_argument(
        "--param", action="append", default=[], metavar="NAME=A,B,…", help="values of a parameter: work=1,2,4"
    )
    group.add_argument("--space", type=Path, metavar="FILE.json", help='the same as {"work": [1, 2, 4], …}')
    group.add_argument(
        "--where", action="append", default=[], metavar="CONDITION", help="what holds for all: 'group * work <= 512'"
    )
    source_options(added)
    added.add_argument("--store", help="SQLite file that keeps every time; what it has is not measured")
    device_option(added)
    predict_option(added)
    protocol_option(added, "quick")
    added.add_argument("--batch", type=int, default=1, metavar="N", help="measure so many, then learn (default: 1)")
    added.add_argument("--evaluations", type=int, metavar="N", help="no more than so many configurations")
    added.add_argument("--budget", type=float, metavar="SECONDS", help="begin no further batch after so long")
    added.add_argument(
        "--better", type=float, metavar="PART", help="stop where nothing faster by this part is likely (default: 0.03)"
    )
    added.add_argument("--doubt", type=float, metavar="PART", help="with no more than this probability (default: 0.05)")
    added.add_argument("--workers", type=int, metavar="N", help="processes that predict (default: one a processor)")
    added.add_argument("--dry-run", action="store_true", help="only predict, and say what would be measured first")
    limit_options(added, 300.0, "one configuration")
    json_option(added)
    defaults_from_project_file(added, "device", "store", "protocol")


def _tune(parsed: argparse.Namespace) -> int:
    """Runs a search; returns exit status 1 where nothing ran."""
    from perfmodel.cli.tuned_source import tuned_kernel  # keeps start-up quick
    from perfmodel.device import find_device
    from perfmodel.kernels.program import runtime_of
    from perfmodel.measuring.store import Store
    from perfmodel.tuning.searching import search
    from perfmodel.tuning.space import space
    from perfmodel.tuning.tuner import BETTER, DOUBT, tune

    _check_limits(parsed)
    parameters = _parameters(parsed)
    configs: list[Config] = [dict(each) for each in space(parameters, parsed.where)]
    kernel = tuned_kernel(parsed.source, parsed)
    first = kernel(configs[0])
    check_measurable(first, parsed)
    is_predicted_only = parsed.dry_run and parsed.predict
    device = None if is_predicted_only else find_device(parsed.device, (), runtime_of([first.program]))
    calibration = _calibration(parsed.predict, device)
    printing.teller(parsed)(f"predicting {len(configs):,} configurations by {calibration.device.get('name')}")
    tuner = tune(
        configs,
        kernel,
        calibration,
        better=BETTER if parsed.better is None else parsed.better,
        doubt=DOUBT if parsed.doubt is None else parsed.doubt,
        workers=parsed.workers,
    )
    steps: list[Step[Config]] = []
    if not parsed.dry_run:
        assert device is not None
        with Store(parsed.store) as store:
            for step in search(
                tuner,
                kernel,
                device,
                store,
                protocol=parsed.protocol or "quick",
                batch=parsed.batch,
                evaluations=parsed.evaluations,
                budget_s=parsed.budget,
                limits=limits_of(parsed),
            ):
                steps.append(step)
                print(_line(step), file=sys.stderr if parsed.json else None, flush=True)
    key = None if device is None else device.key
    printing.found(parsed, lambda: _data(tuner, steps, key), lambda: _text(tuner, steps))
    return 0 if parsed.dry_run or tuner.best else 1


def _check_limits(parsed: argparse.Namespace) -> None:
    """Refuses options by which nothing could be measured, or kept."""
    from perfmodel.measuring.campaign import check_budget  # keeps start-up quick

    if not parsed.store and not parsed.dry_run:
        raise PerfmodelError("tune keeps its times in a store; give --store FILE, or store in perfmodel.toml")
    for option, given in (("--batch", parsed.batch), ("--evaluations", parsed.evaluations)):
        if given is not None and given < 1:
            raise PerfmodelError(f"{option} {given} measures nothing; give 1 or more")
    check_budget(parsed.budget)


def _parameters(parsed: argparse.Namespace) -> dict[str, list[int | str]]:
    """Returns the values of each parameter, of the file of ``--space`` and of ``--param``.

    Raises:
        PerfmodelError: for a parameter, which is a macro, that is called as an argument of the kernel is.
    """
    from perfmodel.tuning.space import parameters_in  # keeps start-up quick

    found: dict[str, list[int | str]] = dict(parameters_in(parsed.space)) if parsed.space else {}
    for name, words in pairs(parsed.param, "--param").items():
        values = [word.strip() for word in words.split(",")]
        are_numbers = all(word.lstrip("-").isdecimal() for word in values)
        found[name] = [int(word) for word in values] if are_numbers else list(values)
    if both := sorted(set(found) & set(pairs(parsed.arg, "--arg"))):
        raise PerfmodelError(
            f"{both[0]!r} is a parameter of the tuning, a macro, and an argument of the kernel; rename one"
        )
    return found


def _calibration(named: str | None, device: Device | None) -> Calibration:
    """Returns the calibration that is named; else what is shipped for the device, or for one of its kind."""
    from perfmodel.modelling.calibration import Calibration, calibration_called  # keeps start-up quick

    if named:
        return calibration_called(named)
    assert device is not None
    try:
        return Calibration.shipped(device=device.name)
    except CalibrationError:
        return Calibration.shipped(device=device.kind)


def _words(config: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in config.items())


def _line(step: Step[Config]) -> str:
    known = "" if step.is_new else ", from the store"
    return f"{_words(step.config)}: {step.failure.splitlines()[0] if step.failure else seconds(step.seconds)}{known}"


def _data(tuner: Tuner[Config], steps: Sequence[Step[Config]], device: str | None) -> dict[str, Any]:
    return {
        "device": device,
        "best": None if tuner.best is None else {"configuration": tuner.best[0], "seconds": tuner.best[1]},
        "probability_of_better": tuner.probability_of_better,
        "done": tuner.is_done,
        "measured": [
            {"configuration": each.config, "seconds": each.seconds, "failure": each.failure, "new": each.is_new}
            for each in steps
        ],
        "expected": [
            {"configuration": each.config, "seconds": each.seconds, "reason": each.pruned} for each in tuner.predicted
        ],
    }


def _text(tuner: Tuner[Config], steps: Sequence[Step[Config]]) -> str:
    every = tuner.predicted
    taken = {_words(config): time for config, time in tuner.measured}
    order = sorted(every, key=lambda each: (taken.get(_words(each.config), math.inf), _expected(each)))
    lines = [
        [_words(each.config), seconds(taken.get(_words(each.config))), seconds(each.seconds)]
        for each in order[:SHOWN]
        if not each.unpredicted
    ]
    parts = [grid(["configuration", "measured", "expected"], lines), _summary(tuner, steps)]
    if tuner.best is not None:
        options = " ".join(f"-D{name}={value}" for name, value in tuner.best[0].items())
        parts.append(f"best: {seconds(tuner.best[1])} with {options}")
    return "\n\n".join([*parts, *_reasons(every)])


def _expected(each: Configuration[Config]) -> float:
    return math.inf if math.isnan(each.seconds) else each.seconds


def _summary(tuner: Tuner[Config], steps: Sequence[Step[Config]]) -> str:
    every = tuner.predicted
    if not steps:
        return f"{len(every):,} configurations, none of them measured"
    new = sum(each.is_new for each in steps)
    why = "nothing faster is likely to be left" if tuner.is_done else "a limit was reached"
    return wrapped(
        f"{len(steps)} of {len(every):,} configurations measured, {new} of them now; {why} (the probability of one "
        f"that is faster by {percent(tuner.better)}: {percent(tuner.probability_of_better)})"
    )


def _reasons(every: Sequence[Configuration[Config]]) -> list[str]:
    """Returns the reasons why configurations need no measurement, each with how many there are."""
    from perfmodel.measuring.campaign.result import grouped  # keeps start-up quick

    reasons = grouped({_words(each.config): each.pruned for each in every if each.pruned})
    if not reasons:
        return []
    lines = [f"  {len(labels):,}, such as {labels[0]}: {reason}" for reason, labels in reasons.items()]
    return ["\n".join(["not worth measuring:", *lines])]
