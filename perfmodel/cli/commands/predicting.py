"""The commands ``predict``, ``explain`` and ``rank`` look at kernels under a calibration, without any device."""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from perfmodel.basics.errors import CalibrationError, KernelError
from perfmodel.basics.tables import grid, kernel_text, seconds, told_apart
from perfmodel.cli import impossible_launches
from perfmodel.cli.commands import printing
from perfmodel.cli.commands.selection import kernel_data, selected
from perfmodel.cli.completion import complete
from perfmodel.cli.hints import on_command_line
from perfmodel.cli.options import (
    Command,
    calibration_option,
    counting_options,
    defaults_from_project_file,
    json_option,
)
from perfmodel.kernels.source_words import SOURCES

if TYPE_CHECKING:
    from perfmodel.kernels.kernel import Kernel
    from perfmodel.modelling.calibration import Calibration
    from perfmodel.modelling.prediction import Prediction


def add(command: Command) -> None:
    for run, name in ((_predict, "predict"), (_explain, "explain"), (_rank, "rank")):
        added = command(run, name, f"perfmodel {name} --device h200 matmul_sq 'tiled_prefetch:*' n:1024")
        calibration_option(added, "left out with --device, or where perfmodel.toml names one")
        counting_options(added, "*")
        shipped_option(added)
        if name == "explain":
            added.add_argument("--compare", action="store_true", help="two kernels: where their difference comes from")
        json_option(added)


def shipped_option(added: argparse.ArgumentParser) -> None:
    """Adds the option that names a device in the place of a calibration, which the project file may name, too."""
    shipped = "predict with what is shipped for this device: part of its name, its key, 'gpu', or 'cpu' at hand"
    complete(added.add_argument("--device", help=shipped), "devices")
    added.set_defaults(of_project=None)
    defaults_from_project_file(added, of_project="calibration")


def _predict(parsed: argparse.Namespace) -> None:
    from perfmodel.modelling.prediction import predict  # keeps start-up quick

    calibration, kernels = loaded(parsed)
    found = [(kernel, predict(calibration, kernel, {})) for kernel in kernels]
    _print(
        parsed,
        calibration,
        lambda: {"predictions": [kernel_data(kernel) | _prediction_data(each) for kernel, each in found]},
        lambda: _prediction_table(found),
    )


def _prediction_data(found: Prediction) -> dict[str, Any]:
    from perfmodel.modelling.prediction import LEVEL  # keeps start-up quick

    low, high = found.interval(LEVEL)
    return {
        "predicted_s": float(found.seconds),
        "predicted_std_s": float(found.std),
        "low_s": float(low),
        "high_s": float(high),
        "distance": float(found.distance),
    }


def _prediction_table(found: list[tuple[Kernel, Prediction]]) -> str:
    from perfmodel.kernels.telling_apart import variants  # keeps start-up quick
    from perfmodel.modelling.prediction import LEVEL

    named = zip(found, variants([kernel for kernel, _ in found]), strict=True)
    labels = [kernel_text(kernel.name, variant, kernel.bound) for (kernel, _), variant in named]
    common, names = told_apart(labels)
    lines = []
    for (_, each), label in zip(found, labels, strict=True):
        low, high = (float(end) for end in each.interval(LEVEL))
        known = [seconds(low), seconds(high) if math.isfinite(high) else "unknown"] if high > low else ["", ""]
        lines.append([names[label], seconds(float(each.seconds)), *known])
    table = grid(["kernel", "predicted", "90 % from", "to"], lines)
    return "\n\n".join(filter(None, [common, table]))


def _explain(parsed: argparse.Namespace) -> None:
    calibration, kernels = loaded(parsed)
    if parsed.compare:
        _compare(parsed, calibration, kernels)
        return
    found = [calibration.explain(kernel) for kernel in kernels]
    advice = [calibration.advise(kernel) for kernel in kernels]
    told = list(zip(found, advice, strict=True))
    named = list(map(kernel_data, kernels))
    _print(
        parsed,
        calibration,
        lambda: {
            "explanations": [
                which | each.as_json() | {"advice": to_do.as_json(), "untried_changes": to_do.untried}
                for which, (each, to_do) in zip(named, told, strict=True)
            ]
        },
        lambda: "\n\n".join(on_command_line(f"{each}\n\n{to_do}") for each, to_do in told),
    )


def _compare(parsed: argparse.Namespace, calibration: Calibration, kernels: list[Kernel]) -> None:
    if len(kernels) != 2:
        raise KernelError(f"--compare takes two kernels, and the tags select {len(kernels)}; choose by more tags")
    found = calibration.compare(*kernels)
    _print(parsed, calibration, found.as_json, found.__str__)


def _rank(parsed: argparse.Namespace) -> None:
    calibration, kernels = loaded(parsed)
    found = calibration.rank(kernels)
    _print(parsed, calibration, lambda: {"ranking": found.as_json()}, found.__str__)


def loaded(parsed: argparse.Namespace) -> tuple[Calibration, list[Kernel]]:
    """Returns the calibration that a command names, or its --device, and the kernels that it selects."""
    from perfmodel.kernels.remembered_program import remembering  # keeps start-up quick
    from perfmodel.modelling.calibration import calibration_called
    from perfmodel.modelling.transfer import warn_of

    calibration = calibration_called(_calibration_name(parsed))
    warn_of(calibration)
    _tell_of_another_processor(calibration)
    with remembering():
        kernels = selected(parsed)
    impossible_launches.tell(calibration, kernels)
    return calibration, kernels


def _tell_of_another_processor(calibration: Calibration) -> None:
    """Warns where times are those of a processor that is not this machine's."""
    from perfmodel.device.cpuinfo import name_here  # keeps start-up quick
    from perfmodel.device.processor_here import facts_here
    from perfmodel.modelling.prediction import PredictionWarning
    from perfmodel.modelling.transfer import facts_of

    here, there = name_here(), calibration.device.get("name")
    if "carried_over_from" in calibration.device:
        return  # it is this machine's, or was asked for by its name
    if calibration.device.get("kind") != "cpu" or not here:
        return
    facts, facts_there = facts_here(), facts_of(calibration)
    is_another_generation = bool(facts and facts_there and facts.architecture != facts_there.architecture)
    if here != there or is_another_generation:
        known = "predict for that by --device cpu, or " if facts else ""
        which = f"another {here}" if here == there else here
        warnings.warn(
            f"these are times of {there}, and this machine has {which}; {known}calibrate that by 'perfmodel calibrate "
            "--device cpu', and give the calibration that it writes",
            PredictionWarning,
            stacklevel=2,
        )


def _calibration_name(parsed: argparse.Namespace) -> str:
    """Returns the name or file of the calibration; with --device, or the project's, the first word is one of the
    kernel's."""
    name: str | None = parsed.calibration
    if parsed.of_project and parsed.device is None and not (name and _names_calibration(name)):
        if name is None:
            raise KernelError(
                f"{parsed.of_project} of perfmodel.toml predicts kernels, and none is named; name one, such as "
                "matmul_sq n=1024"
            )
        parsed.tags.insert(0, name)
        return str(parsed.of_project)
    if name is None and parsed.device is None:
        raise CalibrationError(
            "no calibration is named, and no kernel; name both, as in gpu@h200 matmul_sq n=1024 or --device h200 "
            "matmul_sq n=1024"
        )
    if name is None:
        raise KernelError(
            f"--device {parsed.device} predicts kernels, and none is named; put one behind it: --device "
            f"{parsed.device} matmul_sq n=1024"
        )
    if parsed.device is None:
        if not parsed.tags and _names_calibration(name):
            raise CalibrationError(f"{name} predicts kernels, and none is named; put one behind it: matmul_sq n=1024")
        if not parsed.tags or (name.rpartition(":")[0] or name).endswith((".py", *SOURCES)):
            raise CalibrationError(
                f"{name!r} names no calibration; put one before the kernel, such as gpu@h200, or give a device by "
                "--device"
            )
        return name
    if _names_calibration(name):
        raise CalibrationError(f"{name!r} and --device {parsed.device} each name a calibration; leave out one of them")
    parsed.tags.insert(0, name)
    return f"@{parsed.device}"


def _names_calibration(word: str) -> bool:
    return "@" in word or word.endswith(".json")


def _print(
    parsed: argparse.Namespace,
    calibration: Calibration,
    data: Callable[[], dict[str, Any]],
    shown: Callable[[], str],
) -> None:
    printing.found(parsed, lambda: {"device": calibration.device.get("key"), **data()}, shown)
