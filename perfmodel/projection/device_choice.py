"""Chooses the device that runs a kernel fastest, by projection from devices' profiles or by calibrated models."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import hypot
from pathlib import Path
from typing import Any, TypeAlias

from perfmodel.basics import json_values
from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.errors import CountingError, DeviceError, FeatureError
from perfmodel.basics.notebook import ShownAsText
from perfmodel.basics.tables import grid, kernel_text, seconds
from perfmodel.device.facts import FILE as FACTS
from perfmodel.device.facts import Fact, facts_called
from perfmodel.kernels.emulated_program import EmulatedProgram
from perfmodel.kernels.kernel import Kernel, as_kernel
from perfmodel.kernels.transfers import WithTransfers
from perfmodel.modelling.attribution import attribute
from perfmodel.modelling.calibration import Calibration
from perfmodel.modelling.calibration_file import FILE as CALIBRATION
from perfmodel.modelling.choosing import probability_fastest
from perfmodel.modelling.prediction import feature_values, predicted
from perfmodel.modelling.transfer import GUESSED_SPREAD, OWN_SPREAD, facts_of
from perfmodel.projection.device_profile import DeviceProfile
from perfmodel.vocabulary.named_features import Feature, feature, number

LIMITS = ("compute", "global_memory", "local_memory", "groups")
"""The terms of a profile's model string that hide behind the largest of them."""

DeviceLike: TypeAlias = str | Path | DeviceProfile | Calibration


@dataclass(frozen=True)
class DeviceCandidate:
    """Holds the time that one device is predicted to take.

    Attributes:
        std_s: standard deviation of the prediction.
        limit: the component of a profile's projection that takes longest, or the largest share of a calibration's.
        terms: seconds of every named term of the model.
    """

    device: str
    seconds: float
    std_s: float
    limit: str
    terms: Mapping[str, float]

    def after(self, waited: Fact) -> DeviceCandidate:
        """Returns the same for a host that waits so many seconds until the launch begins."""
        std = waited.value * (GUESSED_SPREAD if waited.source == "guess" else OWN_SPREAD)
        return replace(
            self,
            seconds=self.seconds + waited.value,
            std_s=hypot(self.std_s, std),
            limit="dispatch" if waited.value > self.terms.get(self.limit, self.seconds) else self.limit,
            terms={"dispatch": waited.value, **self.terms},
        )


@dataclass(frozen=True)
class Choice(ShownAsText):
    """Devices from the fastest predicted to the slowest.

    Attributes:
        ranked: the first one is chosen.
        refused: devices that can't run the kernel, or say nothing of it, with the reason.
        confidence: the probability that the chosen device is the fastest, if predictions err independently.
        cost_s: seconds that deciding took.
        emulated_s: how many of these were emulation.
    """

    kernel: str
    ranked: tuple[DeviceCandidate, ...]
    refused: Mapping[str, str]
    confidence: float
    cost_s: float
    emulated_s: float

    @property
    def device(self) -> str:
        """The name of the chosen device."""
        return self.ranked[0].device

    @property
    def seconds(self) -> float:
        """The predicted seconds on the chosen device."""
        return self.ranked[0].seconds

    def as_json(self) -> dict[str, Any]:
        """Returns the chosen device and all others, as values that JSON can hold."""
        found: dict[str, Any] = json_values.plain({"device": self.device, **asdict(self)})
        return found

    def __repr__(self) -> str:
        chosen = f"{self.device} of {number_of(len(self.ranked), 'device')}"
        return brief(self, chosen, f"{self.seconds:.4g} s", f"sure to {self.confidence:.0%}", self.kernel)

    def __str__(self) -> str:
        rows = [
            [each.device, seconds(each.seconds), seconds(each.std_s), f"{each.seconds / self.seconds:.2f}", each.limit]
            for each in self.ranked
        ]
        lines = [
            f"{self.kernel}: {self.device}, the fastest with a probability of {self.confidence:.0%}",
            f"decided in {seconds(self.cost_s)}, of which emulating took {seconds(self.emulated_s)}",
            "",
            grid(["device", "predicted", "standard deviation", "times the best", "limited by"], rows),
        ]
        lines += [f"left out: {name}: {reason}" for name, reason in self.refused.items()]
        return "\n".join(lines)


def choose_device(
    kernel: Kernel,
    devices: Sequence[DeviceLike] | Mapping[str, DeviceLike],
    arrays: Mapping[str, Any] | None = None,
    transfers: bool = False,
    dispatch: bool = False,
) -> Choice:
    """Ranks devices by what a kernel is predicted to take on them (Panwar et al., section IV).

    >>> choose_device(kernel, ["H200", "my-cpu.json", Calibration.shipped("unified-plus", device="cpu")]).device

    Profiles project from one emulated work-group; calibrations predict from the counts of the kernel's source or, where
    data decide, from statistics of some work-groups.

    Args:
        devices: names of shipped profiles, keys of devices whose specification comes along (``"a100"``; see
            `Calibration.on`), files of these (``perfmodel device new``), of profiles or calibrations, ``MODEL@DEVICE``
            of a shipped calibration, profiles, or calibrations; a mapping names them.
        arrays: contents of array arguments; see `perfmodel.emulate`.
        transfers: whether inputs have to be copied to the device before, and outputs from it after.
        dispatch: whether the host waits until the launch begins, as nothing else is under way; what that takes is a
            fact of each device (``perfmodel device show a100``), added to its own time.

    Raises:
        DeviceError: for devices that are none, are named twice, or none of which can run the kernel.
        KernelError: for a kernel that can't be counted or emulated.
    """
    kernel, known = as_kernel(kernel), named_devices(devices)
    started = time.perf_counter()
    decision = _Decision(kernel, arrays, transfers, dispatch)
    candidates, refused = [], {}
    for name, device in known.items():
        try:
            candidates.append(decision.candidate(name, device))
        except FeatureError as error:
            refused[name] = str(error)
    if not candidates:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
        raise DeviceError(f"no device can be chosen for kernel {kernel.name!r} ({reasons})")
    ranked = tuple(sorted(candidates, key=lambda each: each.seconds))
    confidence = probability_fastest([each.seconds for each in ranked], [each.std_s for each in ranked])
    cost = time.perf_counter() - started
    label = kernel_text(kernel.name, kernel.variant, kernel.sizes)
    return Choice(
        kernel=label, ranked=ranked, refused=refused, confidence=confidence, cost_s=cost, emulated_s=decision.emulated_s
    )


def named_devices(devices: Sequence[DeviceLike] | Mapping[str, DeviceLike]) -> dict[str, DeviceProfile | Calibration]:
    """Returns profiles and calibrations by the names that they are given by, or their own.

    Raises:
        DeviceError: for none, for what is no device, or for two of one name.
    """
    if isinstance(devices, str | Path | DeviceProfile | Calibration):
        devices = [devices]
    given = devices.items() if isinstance(devices, Mapping) else [("", device) for device in devices]
    found: dict[str, DeviceProfile | Calibration] = {}
    for name, device in given:
        loaded = device_called(device)
        name = name or (loaded.name if isinstance(loaded, DeviceProfile) else str(loaded.device.get("name", device)))
        if name in found:
            raise DeviceError(f"two devices are called {name!r}; give a mapping that names each")
        found[name] = loaded
    if not found:
        raise DeviceError(f"there is no device to choose; give some of {', '.join(DeviceProfile.names())}")
    return found


def device_called(device: DeviceLike) -> DeviceProfile | Calibration:
    """Returns the profile or calibration that is meant; see `choose_device`."""
    if isinstance(device, DeviceProfile | Calibration):
        return device
    if not isinstance(device, str | Path):
        raise DeviceError(f"{device!r} is no device; give a profile, a calibration, or the name of one")
    if isinstance(device, Path) or device.endswith(".json"):
        written = _format(Path(device))
        if written == FACTS.format:
            return Calibration.shipped(device=str(device))
        return Calibration.load(device) if written == CALIBRATION.format else DeviceProfile.load(device)
    if "@" in device:
        from perfmodel.modelling.calibration import calibration_called  # slow to import

        return calibration_called(device)
    if device not in DeviceProfile.names() and facts_called(device):
        return Calibration.shipped(device=device)
    return DeviceProfile.shipped(device)


def _format(path: Path) -> str:
    try:
        content = json_values.read(path)
    except (OSError, ValueError):
        return ""  # which loading a profile tells
    return str(content.get("format")) if isinstance(content, dict) else ""


class _Decision:
    """Holds one kernel's features, each evaluated once for all devices."""

    def __init__(self, kernel: Kernel, arrays: Mapping[str, Any] | None, transfers: bool, dispatch: bool) -> None:
        self.kernel, self.arrays = kernel, arrays
        self.transfers, self.dispatch = transfers, dispatch
        self.emulated_s = 0.0
        self._emulated: Kernel | None = None
        self._program: EmulatedProgram | None = None
        self._counted: Kernel | None = None
        self._values: dict[str, float] = {}

    def candidate(self, name: str, device: DeviceProfile | Calibration) -> DeviceCandidate:
        waited = _dispatch(device) if self.dispatch else None
        found = self._projected(name, device) if isinstance(device, DeviceProfile) else self._predicted(name, device)
        return found.after(waited) if waited else found

    def _predicted(self, name: str, device: Calibration) -> DeviceCandidate:
        if self.transfers and not any(each.startswith("f_transfer") for each in device.model.features):
            raise FeatureError("the calibration's model has no cost of transfers; decide without them, or by a profile")
        kernel = self._of_source()
        features = feature_values(device, kernel, {})
        found = predicted(device, kernel, {}, features)
        string = device.model.string
        parts = attribute(string, device.parameters, features)
        terms = string.compile().terms(device.parameters, features)
        return DeviceCandidate(
            device=name,
            seconds=float(found.seconds),
            std_s=float(found.std),
            limit=parts[0].name if parts else "",
            terms={name: float(value) for name, value in terms.items()},
        )

    def _projected(self, name: str, profile: DeviceProfile) -> DeviceCandidate:
        kernel, program = self._of_emulation()
        started = time.perf_counter()
        program.prepare(profile.machine, {size: kernel.sizes[size] for size in program.sizes})
        self.emulated_s += time.perf_counter() - started
        self._check_types(profile)
        calibration = profile.calibration()
        values = {name: self._value(name, each) for name, each in calibration.model.features.items()}
        compiled = calibration.model.string.compile()
        seconds = float(compiled(calibration.parameters, values))
        terms = {name: float(term) for name, term in compiled.terms(calibration.parameters, values).items()}
        limit = max((term for term in LIMITS if term in terms), key=terms.__getitem__)
        # What nothing hides behind limits by itself.
        limit = max((limit, "launch", "transfer"), key=terms.__getitem__)
        return DeviceCandidate(
            device=name, seconds=seconds, std_s=profile.residual_std * seconds, limit=limit, terms=terms
        )

    def _check_types(self, profile: DeviceProfile) -> None:
        for dtype in ("float64", "int64"):
            name = f"f_op_{dtype}"
            if dtype not in profile.instructions and self._value(name, feature(name)):
                raise FeatureError(
                    f"the kernel computes in {dtype}, of which the profile has no throughput; measure it by "
                    "'perfmodel characterize'"
                )

    def _value(self, name: str, found: Feature) -> float:
        if name not in self._values:
            self._values[name] = number(found, self._of_emulation()[0])
        return self._values[name]

    def _of_emulation(self) -> tuple[Kernel, EmulatedProgram]:
        if self._emulated is None or self._program is None:
            kernel = self.kernel if _emulation_of(self.kernel) else self.kernel.as_emulated(self.arrays)
            kernel.bind({})
            self._program = _emulation_of(kernel)
            has_transfers = kernel.program is not self._program
            self._emulated = kernel.with_transfers() if self.transfers and not has_transfers else kernel
        assert self._program is not None
        return self._emulated, self._program

    def _of_source(self) -> Kernel:
        """Returns the kernel counted from its source, with statistics of its data where that is not enough."""
        if self._counted is None:
            kernel = self.kernel.as_opencl() if _emulation_of(self.kernel) else self.kernel
            try:
                kernel.counts_for()
            except CountingError:
                kernel = kernel.as_observed(self.arrays)
            self._counted = kernel.with_transfers() if self.transfers else kernel
        return self._counted


def _dispatch(device: DeviceProfile | Calibration) -> Fact:
    """Returns how long a host waits until a launch begins on a device."""
    facts = facts_called(device.name) if isinstance(device, DeviceProfile) else facts_of(device)
    if facts is None:
        raise FeatureError(
            "no facts tell how long a launch takes to begin there; decide without that, or by a calibration that says "
            "what its device is (calibration.with_device(facts))"
        )
    return facts.facts["dispatch"]


def _emulation_of(kernel: Kernel) -> EmulatedProgram | None:
    """Returns the program of a kernel that is emulated, with or without transfers; None for others."""
    program = kernel.program.program if isinstance(kernel.program, WithTransfers) else kernel.program
    return program if isinstance(program, EmulatedProgram) else None
