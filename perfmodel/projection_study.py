"""Studies how well devices are chosen by projection: applications measured on several devices, beside what is
projected.

Times come from the store, or are measured where a device is here. A device of which the store has times takes part
wherever it is. A CPU with fewer compute units is a device of its own, measured by a process of its own, as its driver
lets the thread that waits for a kernel work along otherwise.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.campaign import protocol_called
from perfmodel.characterization import characterize
from perfmodel.collection import ALL_GENERATORS, KernelCollection
from perfmodel.device import Device, devices, find_device
from perfmodel.device_choice import Choice, choose_device
from perfmodel.device_profile import DeviceProfile
from perfmodel.errors import DeviceError, MeasurementError
from perfmodel.feature_table import measure
from perfmodel.isolation import start
from perfmodel.model import Model
from perfmodel.profile import emulate
from perfmodel.projection_summary import always, time_errors
from perfmodel.store import Store, looked_into

if TYPE_CHECKING:
    from perfmodel.kernel import Kernel

OUTPUT = "f_cl_wall_time"
LONGEST_EMULATION = 20.0
"""Whole launches are emulated in no more than so many seconds."""
WORKERS = "CL_CONFIG_CPU_TBB_NUM_WORKERS"
"""An environment variable of Intel's OpenCL driver: the number of threads that work, the calling one among them."""
FIGURE_6 = ("Reduction", "MatMul (lmem)")
FIGURE_7 = "MatMul (lmem)"


@dataclass(frozen=True)
class Application:
    """A kernel of Table II of Panwar et al.

    Attributes:
        tags: that select it. size: the name of its size.
        sizes: that are looked at; `table` is the paper's.
    """

    name: str
    tags: str
    size: str
    sizes: tuple[int, ...]
    table: int

    def kernel(self, size: int, collection: KernelCollection) -> Kernel:
        """Returns the kernel at a size, with counts from emulating the first work-group."""
        (found,) = collection.generate_kernels([*self.tags.split(), f"{self.size}:{size}"])
        return found.emulated()


@dataclass(frozen=True)
class Case:
    """One application at one size, by device: seconds that were measured, and projected from some work-groups."""

    application: str
    size: int
    is_table: bool
    transfers: bool
    measured: Mapping[str, float]
    predicted: Mapping[str, float]
    limits: Mapping[str, str] = field(default_factory=dict)
    predicted_std: Mapping[str, float] = field(default_factory=dict)
    cost_s: float = 0.0

    @property
    def chosen(self) -> str:
        return min(self.predicted, key=self.predicted.__getitem__)

    @property
    def fastest(self) -> str:
        return min(self.measured, key=self.measured.__getitem__)

    @property
    def penalty(self) -> float:
        """The relative time lost by the choice, (T(B) - T(A)) / T(A), of the chosen device B and the fastest, A
        (section V-B)."""
        best = self.measured[self.fastest]
        return (self.measured[self.chosen] - best) / best

    @cached_property
    def relative_error(self) -> float:
        names = list(self.measured)
        return relative_error([self.measured[n] for n in names], [self.predicted[n] for n in names])


def relative_error(actual: Sequence[float], projected: Sequence[float]) -> float:
    """Returns the distance of the vectors of times on several devices, each of unit length, by the largest possible
    (section V-B).

    0 where all ratios between devices are right; 1 where the vectors are orthogonal.
    """
    one, two = (np.asarray(each, dtype=np.float64) / np.linalg.norm(each) for each in (actual, projected))
    return float(np.linalg.norm(one - two) / math.sqrt(2))


@dataclass(frozen=True)
class Emulated:
    """Holds what emulating the whole launch costs beside one work-group, and what it changes (Table III, Figure 4).

    Attributes:
        is_estimate: whether the whole would take too long, and its time is that of a sample.
        error_size: the size that relative errors are of: the largest that the whole is emulated at.
    """

    application: str
    size: int
    work_groups: int
    one_s: float
    all_s: float
    is_estimate: bool
    error_size: int
    error_one: float
    error_all: float


@dataclass(frozen=True)
class Findings:
    """Holds all results of the study.

    Attributes:
        devices: fingerprints by name. profiles: where each profile is from.
        emulated: Table III. costs: Figures 6 and 7, by application: size, seconds of one group, of all.
    """

    devices: Mapping[str, Mapping[str, Any]]
    profiles: Mapping[str, str]
    cases: tuple[Case, ...]
    emulated: tuple[Emulated, ...]
    costs: Mapping[str, tuple[tuple[int, float, float], ...]]
    notes: tuple[str, ...]

    def of(self, transfers: bool, only_table: bool = False) -> list[Case]:
        return [c for c in self.cases if c.transfers == transfers and (c.is_table or not only_table)]

    def summary(self) -> dict[str, Any]:
        """Returns how often the fastest device was chosen, what a wrong choice cost, and errors, beside those of no
        choice."""
        found: dict[str, Any] = {}
        for transfers in (False, True):
            for only_table in (True, False):
                chosen = self.of(transfers, only_table)
                name = f"{'table' if only_table else 'all'} sizes, {'with' if transfers else 'without'} transfers"
                if not chosen:
                    continue
                found[name] = {
                    "cases": len(chosen),
                    "fastest_chosen": sum(case.chosen == case.fastest for case in chosen),
                    "largest_penalty": max(case.penalty for case in chosen),
                    "mean_penalty": float(np.mean([case.penalty for case in chosen])),
                    "mean_relative_error": float(np.mean([case.relative_error for case in chosen])),
                    "largest_relative_error": max(case.relative_error for case in chosen),
                    "mean_cost_s": float(np.mean([case.cost_s for case in chosen])),
                    "always": always(chosen),
                    "time_errors": time_errors(chosen),
                }
        if self.emulated:
            found["emulation"] = {
                "relative_error_one_group": float(np.mean([each.error_one for each in self.emulated])),
                "relative_error_all_groups": float(np.mean([each.error_all for each in self.emulated])),
            }
        return found


def crossover(cases: Iterable[Case], gpu: str, cpu: str, predicted: bool) -> int | None:
    """Returns the smallest size from which on one device is always faster than the other; None if it never is."""
    found: int | None = None
    for case in sorted(cases, key=lambda each: each.size):
        times = case.predicted if predicted else case.measured
        is_first = found is None
        if times[gpu] >= times[cpu]:
            found = None
        elif is_first:
            found = case.size
    return found


class Study:
    """One run over applications and devices."""

    def __init__(self, applications: Sequence[Application], store: Store, protocol: str) -> None:
        self.applications, self.store, self.protocol = applications, store, protocol
        self.collection = KernelCollection(ALL_GENERATORS)
        self.kernels: dict[tuple[str, int, bool], Kernel] = {}
        for application in applications:
            for size in application.sizes:
                kernel = application.kernel(size, self.collection)
                self.kernels[application.name, size, False] = kernel
                self.kernels[application.name, size, True] = kernel.with_transfers()

    def measured(self, device: Device) -> dict[tuple[str, int, bool], float]:
        """Returns the seconds on a device of those cases that it can run and that have a time."""
        model = Model(OUTPUT, "p_time")
        table = measure(list(self.kernels.values()), model, device=device, store=self.store, protocol=self.protocol)
        times = zip(self.kernels, table[OUTPUT], strict=True)
        return {key: float(found) for key, found in times if np.isfinite(found)}

    def profile(self, device: Device) -> DeviceProfile:
        """Returns a device's profile: one measured here or in the store, or else one that is shipped for it.

        What only a driver tells, how registers and local memory limit residency, is the shipped one's elsewhere.

        Raises:
            MeasurementError: if there is none.
        """
        shipped = [DeviceProfile.shipped(name) for name in DeviceProfile.names()]
        own = next((each for each in shipped if each.key == device.key), None)
        try:
            found = characterize(device, store=self.store)
        except MeasurementError:
            if own is None:
                raise
            return own
        if device.is_here or own is None:
            return found
        return replace(found, occupancy=own.occupancy, resident_items=own.resident_items)

    def cases(
        self, times: Mapping[str, Mapping[tuple[str, int, bool], float]], profiles: Mapping[str, DeviceProfile]
    ) -> list[Case]:
        found = []
        tables = {application.name: application.table for application in self.applications}
        for (name, size, transfers), kernel in self.kernels.items():
            measured = {
                device: own[name, size, transfers] for device, own in times.items() if (name, size, transfers) in own
            }
            if len(measured) < 2:
                continue
            choice = choose_device(kernel, {device: profiles[device] for device in measured}, transfers=transfers)
            found.append(_case(name, size, size == tables[name], transfers, measured, choice))
        return found

    def emulation(self, cases: Sequence[Case], profiles: Mapping[str, DeviceProfile], longest: float) -> list[Emulated]:
        """Returns one work-group beside the whole launch, of each application at the size of the table."""
        found = []
        for application in self.applications:
            at = [case for case in cases if case.application == application.name and not case.transfers]
            case = next((case for case in at if case.is_table), None)
            if case is None:
                continue
            one, whole, groups = emulation_seconds(self.kernels[application.name, case.size, False])
            is_estimate = whole > longest
            smaller = case
            if is_estimate:  # what it changes is seen at the largest size that is short enough
                for each in sorted(at, key=lambda each: -each.size):
                    if emulation_seconds(self.kernels[application.name, each.size, False])[1] <= longest / 2:
                        smaller = each
                        break
                else:
                    continue
            kernel = self.kernels[application.name, smaller.size, False].as_opencl().emulated(groups="all")
            started = time.perf_counter()
            choice = choose_device(kernel, {device: profiles[device] for device in smaller.measured})
            machines = len({profiles[device].machine for device in smaller.measured})
            if not is_estimate:
                whole = choice.emulated_s / machines if choice.emulated_s else time.perf_counter() - started
            full = _case(application.name, smaller.size, False, False, smaller.measured, choice)
            errors = smaller.relative_error, full.relative_error
            found.append(Emulated(application.name, case.size, groups, one, whole, is_estimate, smaller.size, *errors))
        return found

    def costs(self, names: Sequence[str]) -> dict[str, tuple[tuple[int, float, float], ...]]:
        """Returns what emulation costs over the sizes of some applications: size, seconds of one group, of all."""
        return {
            application.name: tuple(
                (size, *emulation_seconds(self.kernels[application.name, size, False])[:2])
                for size in application.sizes
            )
            for application in self.applications
            if application.name in names
        }


def emulation_seconds(kernel: Kernel) -> tuple[float, float, int]:
    """Returns the seconds of emulating one work-group, with long loops extrapolated, and the whole launch, from a
    sample; and its groups.

    Groups of a sample run together, as all would.
    """
    plain = kernel.as_opencl()
    one = min(emulate(plain, checks=False, extrapolate=True).emulation.seconds for _ in range(3))
    sample = emulate(plain, groups="sample", checks=False)
    share = sample.emulation.seconds / len(sample.emulation.groups)
    return one, share * sample.work_groups, sample.work_groups


def _case(name: str, size: int, is_table: bool, transfers: bool, measured: Mapping[str, float], choice: Choice) -> Case:
    ranked = {each.device: each for each in choice.ranked}
    own = {device: time_ for device, time_ in measured.items() if device in ranked}
    return Case(
        name,
        size,
        is_table,
        transfers,
        own,
        {device: ranked[device].seconds for device in own},
        {device: ranked[device].limit for device in own},
        {device: ranked[device].std_s for device in own},
        choice.cost_s,
    )


# --- the command


def reproduce(
    applications: Sequence[Application], published: Mapping[str, Any], parsed: argparse.Namespace, command: str
) -> None:
    """Measures what is missing, projects, prints the tables, and writes results and plots."""
    from perfmodel import report

    folder = Path(parsed.out or "projection-out")
    parsed.store = parsed.store or str(folder / "perfmodel.sqlite")
    protocol = parsed.protocol or "quick"
    protocol_called(protocol)
    with looked_into(parsed.store) as known:
        chosen = chosen_devices(parsed.devices or parsed.device, known)
    report.prepared(folder)
    with Store(parsed.store) as store:
        study = Study(applications, store, protocol)
        for device in chosen:
            if _is_part(device) and not parsed.measure_only:
                _in_own_process(device, parsed.store, protocol)
        times, profiles, notes = {}, {}, []
        for device in chosen:
            print(f"{device.key}: {device.name}{'' if device.is_here else ', known from the store only'} …", flush=True)
            profile = study.profile(device)
            found = study.measured(device)
            if missing := len(study.kernels) - len(found):
                notes.append(f"{missing} of {len(study.kernels)} times are missing on {device.key}")
            times[device.key], profiles[device.key] = found, profile
        if parsed.measure_only:
            print(f"{sum(map(len, times.values()))} times are in {parsed.store}")
            return
        if len(chosen) < 2:
            raise DeviceError(
                f"there is nothing to choose with {chosen[0].key} alone; give more devices, as {chosen[0].key}/1 for a "
                "part of it, or a store that has times of another one"
            )
        cases = study.cases(times, profiles)
        findings = Findings(
            {device.key: device.fingerprint() for device in chosen},
            {name: profile.source for name, profile in profiles.items()},
            tuple(cases),
            tuple(study.emulation(cases, profiles, LONGEST_EMULATION)),
            study.costs(dict.fromkeys((*FIGURE_6, FIGURE_7))),  # type: ignore[arg-type]
            tuple(notes),
        )
    from perfmodel.report.projection_tables import text, write

    shown = text(findings, published)
    print(f"\n{shown}\n")
    for path in write(findings, published, command, protocol, folder, shown):
        print(f"written: {path}")


def chosen_devices(selectors: str | None, store: Store) -> list[Device]:
    """Returns the devices that are named, separated by commas; or all here, parts of processors, and all of the
    store."""
    stored = store.devices()
    if selectors:
        return list(dict.fromkeys(find_device(each, stored) for each in selectors.split(",") if each))
    found: dict[str, Device] = {}
    for device in [*devices(), *stored]:
        found.setdefault(device.key, device)
        if device.kind == "cpu" and device.is_here and not _is_part(device):
            units = device.compute_units // 2
            while units >= 1:
                part = device.with_units(units)
                found.setdefault(part.key, part)
                units //= 2
    return list(found.values())


def _is_part(device: Device) -> bool:
    return "/" in device.key


def _in_own_process(device: Device, store: str, protocol: str) -> None:
    """Measures on a part of a processor with as many threads as it has compute units."""
    arguments = ["reproduce", "projection", "--devices", device.key, "--store", store, "--protocol", protocol]
    done = subprocess.run(
        start.command("perfmodel", *arguments, "--measure-only"),
        env=start.environment() | {WORKERS: str(device.compute_units)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MeasurementError(f"measuring on {device.key} failed: {done.stderr.strip().splitlines()[-1:]}; see above")
