"""The command ``doctor`` says whether the times of devices can be trusted."""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING

from perfmodel.basics.errors import MeasurementError, PerfmodelError
from perfmodel.cli.commands import printing
from perfmodel.cli.options import Command, device_option, json_option

if TYPE_CHECKING:
    from perfmodel.device import Device
    from perfmodel.measuring.doctor import Diagnosis, Witness

EXAMPLE = "perfmodel doctor --device gpu --seconds 10"
ALL = "all"


def add(command: Command) -> None:
    added = command(run, "doctor", EXAMPLE)
    device_option(added, "keys, parts of names, 'gpu', 'cpu', or 'all' (default: the best GPU, else the CPU)", "A,B,…")
    added.add_argument(
        "--seconds", type=float, default=5.0, metavar="S", help="for which each is watched (default: %(default)g)"
    )
    json_option(added)


def run(parsed: argparse.Namespace) -> int:
    """Examines one device after the other and prints what was found; status 1 if the times of one can't be trusted.

    Raises:
        PerfmodelError: no such device, no such number of seconds, or devices that could not be examined.
    """
    from perfmodel.report.diagnosis_table import as_text  # keeps start-up quick

    if not (math.isfinite(parsed.seconds) and parsed.seconds > 0):
        raise MeasurementError(f"a device can't be watched for {parsed.seconds:g} s; give --seconds above 0")
    diagnoses: list[Diagnosis] = []
    failures: list[str] = []
    for device in _chosen(parsed.device.split(",") if parsed.device else [None]):
        print(f"{device.key}: watched for {parsed.seconds:g} s …", file=sys.stderr, flush=True)
        try:
            diagnoses.append(_diagnosis(device, parsed.seconds))
        except PerfmodelError as error:  # the others are examined all the same
            failures.append(str(error))
            continue
        if not parsed.json:
            print(f"{as_text(diagnoses[-1])}\n", flush=True)
    if parsed.json:
        printing.document(printing.only([diagnosis.as_json() for diagnosis in diagnoses]))
    if failures:
        raise MeasurementError("; ".join(failures))
    return 0 if all(diagnosis.trusted for diagnosis in diagnoses) else 1


def _chosen(selectors: list[str | None]) -> list[Device]:
    """Returns the devices that are named, each once; the default one for None."""
    from perfmodel.device import OPENCL, devices, find_device  # keeps start-up quick

    if ALL in selectors:
        # Each GPU once: what is examined is the same for both runtimes.
        of_opencl = [device for device in devices() if device.runtime == OPENCL]
        return of_opencl or [find_device()]  # which says what to do where there is none
    return list(dict.fromkeys(map(find_device, selectors)))


def _diagnosis(device: Device, watch_s: float) -> Diagnosis:
    from perfmodel.measuring.doctor import examine  # keeps start-up quick
    from perfmodel.measuring.doctor.driver_claims import driver_claims
    from perfmodel.measuring.isolation.bench import isolated_timer

    claims = driver_claims(device)
    witnesses = _witnesses(device, claims.address)
    with isolated_timer(device) as timer:
        return examine(device, timer, watch_s=watch_s, claimed_step_s=claims.step_s, witnesses=witnesses)


def _witnesses(device: Device, address: tuple[int, int, int] | None) -> list[Witness]:
    from perfmodel.measuring.doctor.gpu_state import GpuState  # keeps start-up quick
    from perfmodel.measuring.doctor.machine_load import MachineLoad

    if device.kind == "cpu":
        return [MachineLoad()]
    return [GpuState(address)] if "nvidia" in device.vendor.lower() else []
