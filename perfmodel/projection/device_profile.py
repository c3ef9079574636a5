"""A device profile says what a device is capable of, measured or by its specification (Panwar et al., section IV-B).

A profile is all that projecting needs of a device: `DeviceProfile.calibration` makes a model string of it, over the
features of every kernel, with the profile's numbers as parameters. docs/projection.md describes file and string.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel.basics import json_values
from perfmodel.basics.brief import brief
from perfmodel.basics.documents import DocumentKind
from perfmodel.basics.errors import DeviceError, nearest
from perfmodel.device import Device
from perfmodel.device.occupancy import condition_of_device
from perfmodel.modelling.calibration import Calibration, Model
from perfmodel.opencl_c.emulation import Machine

FILE = DocumentKind(
    name="device profile",
    refusal="no device profile",
    writer="'perfmodel characterize'",
    mend="measure it again by 'perfmodel characterize' or restore the file",
    again="measure it again",
    format="perfmodel-device-profile",
    version=1,
    error=DeviceError,
)
FOLDER = Path(__file__).parent / "device_profiles"
RESIDUAL_STD: Mapping[str, float] = {"gpu": 0.27, "cpu": 0.85}
"""Root mean squares of ln(measured / projected) by kind of device: of the eight applications of the projection study on
an NVIDIA H200 and on a processor (`python -m benchmarks.coverage` leaves each application out in turn)."""
"""Relative standard deviation of a projection where nothing better is known."""
WORDS = (4, 8)
"""Bytes of the words that global memory is measured with."""

# Types that are computed in the units of another, and the slow operations that have a throughput of their own.
TYPES = {
    "float32": ("float32", "float16"),
    "float64": ("float64",),
    "int32": ("int32", "uint32", "int16", "uint16", "int8", "uint8"),
    "int64": ("int64", "uint64"),
}
SLOW: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "float": {"div": ("div",), "special": ("special", "pow")},
    "int": {"div": ("div", "mod")},
}

Curve = tuple[tuple[float, float], ...]
"""Throughput in bytes a second by occupancy, a part from 0 to 1: rising occupancies, the last of them 1."""


@dataclass(frozen=True)
class Transfer:
    """Copies between host and device in one direction: bytes a second, and seconds for each copy besides."""

    bandwidth: float
    latency: float


@dataclass(frozen=True)
class DeviceProfile:
    """The capabilities of a device, as projections need them.

    Attributes:
        key: of the OpenCL device that was measured; empty where none was.
        kind: ``gpu`` or ``cpu``. A GPU hands out work-groups while others work, and keeps several to a compute unit; a
            CPU's compute units each do one work-group after the other, and hand them out themselves.
        source: where the numbers are from.
        clock_mhz: 0 where it is not known.
        subgroup_size: work-items of a warp or wavefront; of a CPU, lanes of a vector.
        transaction_bytes: the aligned blocks in which global memory is accessed.
        banks: of local memory, each a word of four bytes a cycle; 0 where local memory is cached memory without banks.
        resident_items: work-items that a compute unit holds at a time; 0 for one work-group, of any size.
        occupancy: the condition of ``f_occupancy``, as ``cc:9.0``, where registers and local memory limit residency.
        instructions: operations a second of the whole device, by type (``float32``) and slow kind (``float32_div``).
        global_read, global_write: coalesced throughput by bytes of a word.
        local: throughput of local memory without conflicts, bytes a second of the whole device.
        cached: how much faster global memory is read while a kernel's arrays have at most so many bytes: pairs of bytes
            and a factor of the throughput beyond all caches. Empty where caches were not looked at.
        launch_s: seconds of an empty launch. group_s: seconds for each work-group, all compute units together.
        to_device, from_device: copies from and to the host.
        residual_std: standard deviation of ln(measured / projected).
    """

    name: str
    kind: str
    source: str
    compute_units: int
    subgroup_size: int
    transaction_bytes: int
    banks: int
    instructions: Mapping[str, float]
    global_read: Mapping[int, Curve]
    global_write: Mapping[int, Curve]
    local: Curve
    launch_s: float
    group_s: float
    to_device: Transfer
    from_device: Transfer
    key: str = ""
    clock_mhz: int = 0
    resident_items: int = 0
    occupancy: str = ""
    residual_std: float = RESIDUAL_STD["gpu"]
    cached: Curve = ()
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        _check(self)

    @property
    def machine(self) -> Machine:
        """The machine that a kernel is emulated for."""
        return Machine(self.subgroup_size, self.transaction_bytes, self.banks or Machine().banks)

    @property
    def model_string(self) -> str:
        """The projection over features, with the profile's numbers as parameters; see docs/projection.md."""
        return _Strings(self).model()

    def calibration(self) -> Calibration:
        """Returns the projection as a calibration, which predicts and explains as any other; its model may be
        replaced."""
        return self._calibration

    @cached_property
    def _calibration(self) -> Calibration:
        model = Model("f_cl_wall_time", self.model_string)
        known = self.parameters()
        parameters = {name: known[name] for name in model.parameters}
        count = len(parameters)
        return Calibration(
            model=model,
            parameters=parameters,
            stderr=dict.fromkeys(parameters, math.nan),
            covariance=np.zeros((count, count)),
            residual_std=self.residual_std,
            ranges={},
            device={"name": self.name, "key": self.key, "kind": self.kind},
            protocol={},
            rows=(),
            report=f"the device profile {self.name}: {self.source}",
        )

    def parameters(self) -> dict[str, float]:
        """Returns the parameters of `model_string`: seconds for each operation, transaction, byte, launch and so on."""
        found = {f"p_{name}": 1 / rate for name, rate in self.instructions.items()}
        for direction, curves in (("read", self.global_read), ("write", self.global_write)):
            for word, curve in curves.items():
                found[_cost(direction, word)] = self.transaction_bytes / curve[-1][1]
        # A cycle gives a word of each bank.
        found["p_local"] = (self.machine.banks * self.machine.bank_bytes if self.banks else 1) / self.local[-1][1]
        found |= {"p_launch": self.launch_s, "p_group": self.group_s}
        for direction, transfer in (("to", self.to_device), ("from", self.from_device)):
            found |= {f"p_{direction}": 1 / transfer.bandwidth, f"p_{direction}_latency": transfer.latency}
        return found

    def as_json(self) -> dict[str, Any]:
        """Returns the device profile as values that JSON can hold."""
        found: dict[str, Any] = json_values.plain({"format": FILE.format, "version": FILE.version, **asdict(self)})
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the profile as JSON; see `perfmodel.basics.files.replacing`.

        Raises:
            DeviceError: if the file cannot be written.
        """
        FILE.save(path, self.as_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DeviceProfile:
        """Reads a device profile from a file that `save` wrote.

        Raises:
            DeviceError: if the file is missing, damaged, or of another version.
        """
        content = FILE.load(Path(path))
        known = {f.name for f in fields(cls)}
        try:
            values = {name: value for name, value in content.items() if name in known}
            for name in ("global_read", "global_write"):
                values[name] = {int(word): _curve(curve) for word, curve in values[name].items()}
            values["local"] = _curve(values["local"])
            values["cached"] = _curve(values.get("cached", ()))
            for name in ("to_device", "from_device"):
                values[name] = Transfer(float(values[name]["bandwidth"]), float(values[name]["latency"]))
            values["instructions"] = {str(name): float(rate) for name, rate in values["instructions"].items()}
            values["notes"] = tuple(map(str, values.get("notes", ())))
            for each in fields(cls):
                if each.type in _PLAIN and not isinstance(values.get(each.name, each.default), _PLAIN[each.type]):
                    raise TypeError(f"{each.name} is {values[each.name]!r}")
            return cls(**values)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FILE.damaged(path, error) from error

    @classmethod
    def shipped(cls, name: str) -> DeviceProfile:
        """Returns a profile that comes with perfmodel, by its name in any case; see `names`.

        Raises:
            DeviceError: if there is none.
        """
        found = {each.lower(): each for each in cls.names()}
        if name.lower() not in found:
            raise DeviceError(
                f"no device profile {name!r} comes with perfmodel{nearest(name.lower(), found)} (there are "
                f"{', '.join(cls.names())}); measure one by 'perfmodel characterize', or give a file"
            )
        return _loaded(FOLDER / f"{found[name.lower()]}.json")

    @staticmethod
    def names() -> tuple[str, ...]:
        """Returns the profiles that come with perfmodel."""
        return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))

    def __hash__(self) -> int:
        return hash((self.name, self.key, self.source))

    def __repr__(self) -> str:
        return brief(self, self.name, self.kind, f"{self.compute_units} compute units")


class _Strings:
    """The parts of a profile's model string.

    Named terms hold no others, so that `Calibration.explain` tells them apart.
    """

    def __init__(self, profile: DeviceProfile) -> None:
        self.profile = profile

    def model(self) -> str:
        profile = self.profile
        lines = {
            "compute": self.compute(),
            "global_memory": f"({self.directed('read', 'load')} + {self.directed('write', 'store')}){self.cached()}",
            "local_memory": self.local(),
            "launch": "p_launch * f_sync_kernel_launch",
            "transfer": "p_to * f_transfer_bytes_to + p_to_latency * f_transfers_to"
            " + p_from * f_transfer_bytes_from + p_from_latency * f_transfers_from",
        }
        groups = "p_group * f_thread_groups"
        if profile.kind == "cpu":
            lines["launch"] += f" + {groups}"
            overlapped = "max(compute, global_memory, local_memory)"
        else:
            lines["groups"] = groups
            overlapped = "max(compute, global_memory, local_memory, groups)"
        terms = [f"{name} = {value}" for name, value in lines.items()]
        return "\n".join([*terms, f"launch + {overlapped} + transfer"])

    @property
    def rounds(self) -> str:
        """Returns the factor by which the compute unit with most work-groups takes longer than if all had equally
        many."""
        units = self.profile.compute_units
        return f"(ceil(f_thread_groups / {units}) * {units} / f_thread_groups)"

    @property
    def occupancy(self) -> str:
        """Returns the resident work-items as a part of those that the device has room for."""
        profile = self.profile
        if not profile.resident_items:
            return f"f_thread_groups / {profile.compute_units}"
        launched = f"f_work_items / {profile.compute_units * profile.resident_items}"
        return f"min(f_occupancy_{profile.occupancy}, {launched})" if profile.occupancy else launched

    def share(self, curve: Curve) -> str:
        """Returns the part of a curve's last throughput at the kernel's occupancy: straight between points, and from
        0."""
        parts: list[str] = []
        before, low = 0.0, 0.0
        peak = curve[-1][1]
        for occupancy, throughput in curve:
            share = throughput / peak
            width, rise = occupancy - before, share - low
            if abs(rise) > 1e-9:
                start = f"max({self.occupancy} - {before:.6g}, 0)" if before else self.occupancy
                sign = "-" if rise < 0 else "+" if parts else ""
                parts.append(f"{sign} {abs(rise) / width:.6g} * min({start}, {width:.6g})".strip())
            before, low = occupancy, share
        return f"({' '.join(parts)})"

    def compute(self) -> str:
        terms = []
        for base, members in TYPES.items():
            if base not in self.profile.instructions:
                continue
            slow = {
                kind: names
                for kind, names in SLOW[base.rstrip("0123456789")].items()
                if f"{base}_{kind}" in self.profile.instructions
            }
            apart = [f"f_op_{member}_{name}" for member in members for names in slow.values() for name in names]
            plain = " + ".join(f"f_op_{member}" for member in members)
            terms.append(f"p_{base} * ({' - '.join([plain, *apart])})")
            for kind, names in slow.items():
                own = " + ".join(f"f_op_{member}_{name}" for member in members for name in names)
                terms.append(f"p_{base}_{kind} * ({own})")
        return f"{self.rounds} * ({' + '.join(terms)})"

    def directed(self, direction: str, access: str) -> str:
        """Returns the seconds of global memory in one direction, wide words by their own throughput."""
        profile = self.profile
        curves = profile.global_read if direction == "read" else profile.global_write
        granularity = "" if profile.subgroup_size == 32 else f"_granularity:subgroup{profile.subgroup_size}"
        whole = f"f_mem_transactions_global_{access}_block:{profile.transaction_bytes}{granularity}"
        wide = f"f_mem_transactions_global_{access}_bits:64_block:{profile.transaction_bytes}{granularity}"
        if WORDS[1] not in curves:
            return f"{_cost(direction, WORDS[0])} * {whole} / {self.share(curves[WORDS[0]])}"
        return (
            f"{_cost(direction, WORDS[0])} * ({whole} - {wide}) / {self.share(curves[WORDS[0]])}"
            f" + {_cost(direction, WORDS[1])} * {wide} / {self.share(curves[WORDS[1]])}"
        )

    def cached(self) -> str:
        """Returns the factor by which caches that hold a kernel's arrays divide the time of global memory."""
        parts, beyond = "", 1.0
        for n_bytes, factor in reversed(self.profile.cached):
            sign = "-" if factor < beyond else "+"
            parts += f" {sign} {abs(factor - beyond):.6g} * step({n_bytes:.10g} - f_mem_arrays_global)"
            beyond = factor
        return f" / (1{parts})" if parts else ""

    def local(self) -> str:
        profile = self.profile
        if not profile.banks:
            return f"p_local * f_mem_bytes_local / {self.share(profile.local)}"
        granularity = "" if profile.subgroup_size == 32 else f"_granularity:subgroup{profile.subgroup_size}"
        cycles = f"f_mem_transactions_local_banks:{profile.banks}{granularity}"
        return f"{self.rounds} * p_local * {cycles}"


def occupancy_condition(device: Device) -> str:
    """Returns what kind of GPU a device is, as its driver says or, where that can't be asked, its shipped profile.

    Raises:
        DeviceError: as `perfmodel.device.occupancy.condition_of_device`, where no shipped profile tells either.
    """
    try:
        return condition_of_device(device)
    except DeviceError:
        for name in DeviceProfile.names():
            profile = DeviceProfile.shipped(name)
            if profile.key == device.key and profile.occupancy:
                return profile.occupancy
        raise


def _cost(direction: str, word: int) -> str:
    return f"p_{direction}" if word == WORDS[0] else f"p_{direction}_{word}"


def _check(profile: DeviceProfile) -> None:
    """Raises DeviceError for numbers that no device can have."""

    def refuse(what: str, remedy: str) -> DeviceError:
        return DeviceError(f"device profile {profile.name!r} has {what}; {remedy}")

    if profile.kind not in ("gpu", "cpu"):
        raise refuse(f"the kind {profile.kind!r}", "write gpu or cpu")
    if not profile.source:
        raise refuse("no source", "say where its numbers are from")
    for name in ("compute_units", "subgroup_size", "transaction_bytes"):
        if getattr(profile, name) < 1:
            raise refuse(f"{name}={getattr(profile, name)}", "give a number above 0")
    for name in ("launch_s", "group_s", "residual_std", "banks", "resident_items"):
        if not 0 <= getattr(profile, name) < math.inf:
            raise refuse(f"{name}={getattr(profile, name)}", "give a number that is not negative")
    known = [*TYPES, *(f"{base}_{kind}" for base in TYPES for kind in SLOW[base.rstrip("0123456789")])]
    for name, rate in profile.instructions.items():
        if name not in known:
            raise refuse(f"a throughput of {name!r}{nearest(name, known)}", f"known are {', '.join(known)}")
        if name.split("_")[0] not in profile.instructions:
            raise refuse(f"a throughput of {name} and none of {name.split('_')[0]}", "give both")
        if not 0 < rate < math.inf:
            raise refuse(f"a throughput of {name} of {rate}", "give operations a second")
    for what in ("float32", "int32"):
        if what not in profile.instructions:
            raise refuse(f"no throughput of {what}", "give operations a second")
    for what, by_word in (("global_read", profile.global_read), ("global_write", profile.global_write)):
        if WORDS[0] not in by_word or set(by_word) - set(WORDS):
            raise refuse(f"{what} for words of {list(by_word)} bytes", "give it for 4 bytes, and for 8 if you like")
    curves = [*profile.global_read.values(), *profile.global_write.values(), profile.local]
    for curve in curves:
        occupancies = [point[0] for point in curve]
        if (
            not curve
            or occupancies[-1] != 1
            or not all(a < b for a, b in zip([0.0, *occupancies], occupancies, strict=False))
        ):
            raise refuse(f"a throughput at the occupancies {occupancies}", "let them rise to 1")
        if not all(0 < point[1] < math.inf for point in curve):
            raise refuse("a throughput that is not above 0", "give bytes a second")
    bounds = [n_bytes for n_bytes, _ in profile.cached]
    if bounds != sorted(set(bounds)) or not all(0 < n_bytes < math.inf > f > 0 for n_bytes, f in profile.cached):
        raise refuse(f"cached={profile.cached}", "give pairs of rising bytes and a factor above 0")
    for transfer in (profile.to_device, profile.from_device):
        if not (0 < transfer.bandwidth < math.inf and 0 <= transfer.latency < math.inf):
            raise refuse(f"{transfer}", "give bytes a second and seconds")
    if profile.occupancy and not profile.resident_items:
        raise refuse("an occupancy and no resident_items", "give both")


_PLAIN: Mapping[Any, Any] = {"str": str, "int": int, "float": int | float}
"""The type, or types, that a file may have for a field of this type."""


def _curve(points: Any) -> Curve:
    return tuple((float(occupancy), float(throughput)) for occupancy, throughput in points)


@lru_cache(maxsize=64)
def _loaded(path: Path) -> DeviceProfile:
    return DeviceProfile.load(path)
