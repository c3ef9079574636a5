"""Studies how well devices are chosen by projection: applications measured on several devices, beside what is
projected.

Times come from the store, or are measured where a device is here. A device of which the store has times takes part
wherever it is. A CPU with fewer compute units is a device of its own, measured by a process of its own, as its driver
lets the thread that waits for a kernel work along otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perfmodel.basics.errors import MeasurementError
from perfmodel.collection.collection import ALL_GENERATORS, KernelCollection
from perfmodel.device import Device
from perfmodel.kernels.emulation import emulate
from perfmodel.kernels.kernel import Kernel
from perfmodel.measuring.store import Store
from perfmodel.modelling.calibration import Model
from perfmodel.modelling.feature_table import measure
from perfmodel.models.projection_cases import ProjectionCase, always, time_errors
from perfmodel.projection.characterization import characterize
from perfmodel.projection.device_choice import Choice, choose_device
from perfmodel.projection.device_profile import DeviceProfile

OUTPUT = "f_cl_wall_time"
LONGEST_EMULATION = 20.0
"""Whole launches are emulated in no more than so many seconds."""
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
        return found.as_emulated()


@dataclass(frozen=True)
class EmulationCost:
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
class ProjectionFindings:
    """Holds all results of the study.

    Attributes:
        devices: fingerprints by name. profiles: where each profile is from.
        emulated: Table III. costs: Figures 6 and 7, by application: size, seconds of one group, of all.
    """

    devices: Mapping[str, Mapping[str, Any]]
    profiles: Mapping[str, str]
    cases: tuple[ProjectionCase, ...]
    emulated: tuple[EmulationCost, ...]
    costs: Mapping[str, tuple[tuple[int, float, float], ...]]
    notes: tuple[str, ...]

    def of(self, transfers: bool, only_table: bool = False) -> list[ProjectionCase]:
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


class DeviceStudy:
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
    ) -> list[ProjectionCase]:
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

    def emulation(
        self, cases: Sequence[ProjectionCase], profiles: Mapping[str, DeviceProfile], longest: float
    ) -> list[EmulationCost]:
        """Compares emulating one work-group with emulating the whole launch, for each application at the size of the
        table."""
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
            kernel = self.kernels[application.name, smaller.size, False].as_opencl().as_emulated(groups="all")
            started = time.perf_counter()
            choice = choose_device(kernel, {device: profiles[device] for device in smaller.measured})
            machines = len({profiles[device].machine for device in smaller.measured})
            if not is_estimate:
                whole = choice.emulated_s / machines if choice.emulated_s else time.perf_counter() - started
            full = _case(application.name, smaller.size, False, False, smaller.measured, choice)
            found.append(
                EmulationCost(
                    application=application.name,
                    size=case.size,
                    work_groups=groups,
                    one_s=one,
                    all_s=whole,
                    is_estimate=is_estimate,
                    error_size=smaller.size,
                    error_one=smaller.relative_error,
                    error_all=full.relative_error,
                )
            )
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


def _case(
    name: str, size: int, is_table: bool, transfers: bool, measured: Mapping[str, float], choice: Choice
) -> ProjectionCase:
    ranked = {each.device: each for each in choice.ranked}
    own = {device: time_ for device, time_ in measured.items() if device in ranked}
    return ProjectionCase(
        application=name,
        size=size,
        is_table=is_table,
        transfers=transfers,
        measured=own,
        predicted={device: ranked[device].seconds for device in own},
        limits={device: ranked[device].limit for device in own},
        predicted_std={device: ranked[device].std_s for device in own},
        cost_s=choice.cost_s,
    )
