"""Computes occupancy: how many work-groups a GPU's multiprocessor holds at a time, and which resource decides it.

The limits of NVIDIA's compute capabilities and of AMD's architectures, and where each number is from, are in
``device/occupancy_limits.json``. The calculation is NVIDIA's own (``cuda_occupancy.h``) and, with AMD's numbers, that
of LLVM's AMDGPU back end (Karan Kumar, "Influencing Parameters", 1. Occupancy).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, SupportsIndex

from perfmodel.basics import json_values
from perfmodel.basics.brief import brief
from perfmodel.basics.errors import DeviceError, KernelError, nearest
from perfmodel.basics.notebook import ShownAsText
from perfmodel.device.device import Device, find_device
from perfmodel.device.facts import DeviceFacts, architectures

FILE = Path(__file__).parent / "occupancy_limits.json"
CHECKED_WARPS = 4
"""A launch is refused as if a group's warps came in fours, on every NVIDIA device; see ``cuda_occupancy.h``."""

WARPS, GROUPS, REGISTERS, SCALARS, LOCAL = "warps", "blocks", "registers", "scalar registers", "shared memory"
AMD_WORDS = {
    WARPS: "wavefronts",
    GROUPS: "work-groups",
    REGISTERS: "vector registers",
    SCALARS: "scalar registers",
    LOCAL: "local memory",
}


@dataclass(frozen=True)
class ScalarRegisters:
    """The scalar registers of one SIMD, which a wavefront's work-items share; `unit` is how many are given out at
    once."""

    registers: int
    unit: int
    per_wave: int


@dataclass(frozen=True)
class OccupancyLimits:
    """Holds what one multiprocessor (AMD: compute unit, or work-group processor) has room for at a time.

    Attributes:
        name: ``compute capability 8.6``, or an architecture as ``gfx90a``.
        unit: what it is called.
        wave_sizes: work-items of a warp or wavefront, the default first.
        waves, groups: warps, and work-groups.
        items_per_group: of the largest work-group.
        registers: of 32 bits, in all partitions together; a warp's are in one of them.
        register_unit: registers are given to a warp in multiples of it.
        registers_per_item: at most.
        registers_per_group: at most; None where only their sum counts.
        partitions: parts that have warp slots and registers of their own.
        local_bytes, local_bytes_per_group: of shared memory, in all and at most for one work-group.
        local_unit: it is given out in multiples of so many bytes.
        local_reserved: bytes that the driver takes for each work-group besides.
        scalar: None where scalar registers never decide.
    """

    name: str
    unit: str
    wave_sizes: tuple[int, ...]
    waves: int
    groups: int
    items_per_group: int
    registers: int
    register_unit: int
    registers_per_item: int
    registers_per_group: int | None
    partitions: int
    local_bytes: int
    local_bytes_per_group: int
    local_unit: int
    local_reserved: int = 0
    scalar: ScalarRegisters | None = None

    @property
    def is_amd(self) -> bool:
        return self.registers_per_group is None

    def word(self, resource: str) -> str:
        """Returns the vendor's word for a resource."""
        return AMD_WORDS[resource] if self.is_amd else resource


@dataclass(frozen=True)
class Occupancy(ShownAsText):
    """Tells how full a multiprocessor is with work-groups of one kind.

    Attributes:
        blocks: work-groups at a time.
        warps, threads: theirs.
        occupancy: warps, as a part of those that the multiprocessor has room for.
        limits: blocks that each resource alone would let in; None where it sets none.
        limited_by: the resources that let in the fewest.
        block, registers, shared, scalar_registers: as given: threads, registers of a thread, bytes of a block, scalar
            registers of a wavefront.
    """

    device: OccupancyLimits
    block: int
    registers: int
    shared: int
    scalar_registers: int
    blocks: int
    warps: int
    threads: int
    occupancy: float
    limits: Mapping[str, int | None]
    limited_by: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Returns the occupancy as values that JSON can hold."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: json_values.plain(value) for name, value in found.items()} | {"device": asdict(self.device)}

    def __repr__(self) -> str:
        limits = ", ".join(self.limited_by) or "nothing"
        return brief(
            self,
            self.device.name,
            f"{self.blocks} blocks of {self.block}",
            f"{self.occupancy:.3g}",
            f"limited by {limits}",
        )

    def __str__(self) -> str:
        word = self.device.word
        active = [
            (f"active {word(GROUPS)}", f"{self.blocks}"),
            (f"active {word(WARPS)}", f"{self.warps} of {self.device.waves}"),
            ("active threads", f"{self.threads}"),
            ("occupancy", f"{self.occupancy:.4f}"),
        ]
        room = [
            (
                f"  {word(resource)}",
                f"{'any' if most is None else most}{'  (decides)' if resource in self.limited_by else ''}",
            )
            for resource, most in self.limits.items()
        ]
        width = max(len(name) for name, _ in (*active, *room))
        shown = [f"{name:<{width}}  {value}" for name, value in (*active, *room)]
        given = f"{self.device.name}: {self.block} threads, {self.registers} registers, {self.shared} bytes"
        title = f"{word(GROUPS)} that each resource has room for"
        return "\n".join([given, "", *shown[: len(active)], "", title, *shown[len(active) :]])


def occupancy(
    compute_capability: str | float | None = None,
    *,
    arch: str | None = None,
    device: str | Device | None = None,
    limits: OccupancyLimits | None = None,
    block: int,
    registers: int,
    shared: int = 0,
    scalar_registers: int = 0,
    wave_size: int | None = None,
) -> Occupancy:
    """Computes how many blocks, and so warps, one multiprocessor holds at a time.

    >>> occupancy("8.6", block=320, registers=10, shared=1024).occupancy
    0.8333333333333334

    Args:
        compute_capability: of an NVIDIA device: ``"8.6"``. This, `arch`, `device` or `limits`, and one of them only.
        arch: of an AMD device: ``"gfx90a"``, or a family such as ``"rdna2"``.
        device: one of this machine, that tells which of these it is.
        block: threads of a block (work-items of a work-group).
        registers: of 32 bits for each thread.
        shared: bytes of shared (local) memory for each block; what the driver takes besides is added.
        scalar_registers: for each wavefront, on AMD's GCN and CDNA; with those that a trap handler takes.
        wave_size: 64 for kernels of RDNA that are compiled so.

    Raises:
        DeviceError: for a device that is not known, or has no such limits.
        KernelError: for a launch that no device of this kind can do.
    """
    given = [what for what in (compute_capability, arch, device, limits) if what is not None]
    if len(given) != 1:
        raise DeviceError("occupancy is of one device; give a compute capability, an architecture or a device")
    if limits is None:
        limits = limits_of_device(device) if device is not None else limits_of(compute_capability, arch)
    if wave_size is not None:
        if wave_size not in limits.wave_sizes:
            raise KernelError(
                f"{limits.name} has no warps of {wave_size} threads; give {' or '.join(map(str, limits.wave_sizes))}"
            )
        limits = replace(limits, wave_sizes=(wave_size,))
    wanted = {"block": block, "registers": registers, "shared": shared, "scalar_registers": scalar_registers}
    for name, number in wanted.items():
        if isinstance(number, bool) or not isinstance(number, SupportsIndex):
            raise KernelError(f"{name} is {number!r}, which is no whole number; give one")
    numbers = {name: int(number) for name, number in wanted.items()}
    _check(limits, **numbers)
    found = _resident(limits, **numbers)
    fewest = min(most for most in found.values() if most is not None)
    if fewest == 0:
        raise _too_large(limits, numbers)
    warps = _up(numbers["block"], limits.wave_sizes[0]) * fewest
    return Occupancy(
        limits,
        **numbers,
        blocks=fewest,
        warps=warps,
        threads=fewest * numbers["block"],
        occupancy=warps / limits.waves,
        limits=found,
        limited_by=tuple(resource for resource, most in found.items() if most == fewest),
    )


def limits_of(compute_capability: str | float | None = None, arch: str | None = None) -> OccupancyLimits:
    """Returns the limits of an NVIDIA compute capability, or of an AMD architecture or family.

    Raises:
        DeviceError: for one that is not known, with the nearest.
    """
    nvidia, amd = _data()["nvidia"], _data()["amd"]
    if arch is None:
        known = nvidia["compute_capabilities"]
        name = str(compute_capability)
        if name not in known:
            raise DeviceError(f"no limits of compute capability {name} are known; there are {', '.join(known)}")
        return _limits(f"compute capability {name}", {**nvidia["common"], **known[name]})
    name = arch.lower().partition(":")[0]
    known = amd["architectures"]
    if name not in known:
        raise DeviceError(
            f"no limits of architecture {arch!r} are known{nearest(name, known)}; there are {', '.join(known)}"
        )
    return _limits(name, {**amd["common"], **amd["families"][known[name]], "registers_per_group": None})


def limits_of_facts(facts: DeviceFacts) -> OccupancyLimits | None:
    """Returns the limits of a device that is known by its specification; None where those of its architecture are
    not."""
    words = architectures()[facts.architecture]
    found = re.search(r"compute capability (?P<capability>[\d.]+)|(?P<arch>gfx\w+)", words)
    with suppress(DeviceError):
        return limits_of(found["capability"], found["arch"]) if found else None
    return None


def limits_of_device(device: str | Device | None) -> OccupancyLimits:
    """Returns the limits of a device of this machine, by what its driver says of itself.

    Raises:
        DeviceError: for a device that is not here, or that is no GPU of NVIDIA's or AMD's.
    """
    kind, _, value = condition_of_device(find_device(device)).partition(":")
    return limits_of(value) if kind == "cc" else limits_of(arch=value)


def condition_of_device(device: Device) -> str:
    """Returns the condition that tells `f_occupancy` which GPU a device is: ``cc:9.0``, ``arch:gfx90a``.

    Raises:
        DeviceError: for a processor, and for a GPU whose driver does not tell, or is not here.
    """
    if device.kind == "cpu":
        raise DeviceError(
            f"device {device.key} is a processor, which has no multiprocessors to fill: each core runs one work-group "
            "at a time; give --compute-capability or --arch of a GPU"
        )
    if device.name.lower().startswith("gfx"):
        return f"arch:{device.name.lower().partition(':')[0]}"
    if device.compute_capability:
        return f"cc:{device.compute_capability}"
    if device.is_here:
        raw = device.session().raw
        with suppress(Exception):  # no attribute of this driver: pyopencl raises one of several errors
            return f"cc:{raw.compute_capability_major_nv}.{raw.compute_capability_minor_nv}"
    raise DeviceError(
        f"device {device.key} does not tell its compute capability or architecture; give --compute-capability or --arch"
    )


def _resident(
    limits: OccupancyLimits, block: int, registers: int, shared: int, scalar_registers: int
) -> dict[str, int | None]:
    """Returns how many blocks each resource has room for, 0 where one of them is too large already."""
    warps = _up(block, limits.wave_sizes[0])
    asked = _rounded(registers * limits.wave_sizes[0], limits.register_unit)
    slots = limits.registers // limits.partitions // asked * limits.partitions
    most = limits.registers_per_group
    is_refused = most is not None and asked * _rounded(warps, CHECKED_WARPS) > most
    groups = limits.groups
    if limits.is_amd and warps == 1:  # which needs no barrier
        groups = limits.waves
    found: dict[str, int | None] = {
        WARPS: limits.waves // warps,
        GROUPS: groups,
        REGISTERS: 0 if is_refused else slots // warps,
    }
    if (scalar := limits.scalar) is not None:
        by_scalars = scalar.registers // _rounded(scalar_registers, scalar.unit) if scalar_registers else None
        found[SCALARS] = None if by_scalars is None else by_scalars * limits.partitions // warps
    bytes_taken = _rounded(shared + limits.local_reserved, limits.local_unit)
    found[LOCAL] = limits.local_bytes // bytes_taken if bytes_taken else None
    return found


def blocks_at(limits: OccupancyLimits, block: int, registers: int, shared: int, scalar_registers: int = 0) -> int:
    """Returns active blocks as in `occupancy`, but 0 for what can't be launched: for curves that go beyond."""
    try:
        _check(limits, block, registers, shared, scalar_registers)
    except KernelError:
        return 0
    found = _resident(limits, block, registers, shared, scalar_registers)
    return min(most for most in found.values() if most is not None)


def _check(limits: OccupancyLimits, block: int, registers: int, shared: int, scalar_registers: int) -> None:
    of_scalars = limits.scalar.per_wave if limits.scalar else 0
    bounds = (
        ("a block", block, 1, limits.items_per_group, "threads", "block"),
        ("a thread", registers, 1, limits.registers_per_item, "registers", "registers"),
        ("a block", shared, 0, limits.local_bytes_per_group, "bytes of shared memory", "shared"),
        ("a wavefront", scalar_registers, 0, of_scalars or scalar_registers, "scalar registers", "scalar_registers"),
    )
    for owner, number, least, most, what, option in bounds:
        if not least <= number <= most:
            raise KernelError(
                f"{owner} of {number} {what} cannot be launched on {limits.name}; give {option} from {least} to {most}"
            )


def _too_large(limits: OccupancyLimits, numbers: Mapping[str, int]) -> KernelError:
    warps = _up(numbers["block"], limits.wave_sizes[0])
    asked = _rounded(numbers["registers"] * limits.wave_sizes[0], limits.register_unit)
    taken = asked * (warps if limits.is_amd else _rounded(warps, CHECKED_WARPS))
    return KernelError(
        f"a block of {numbers['block']} threads with {numbers['registers']} registers each takes {taken} of "
        f"{limits.registers_per_group or limits.registers} registers on {limits.name}; give fewer of either"
    )


@cache
def _data() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return loaded


def _limits(name: str, values: Mapping[str, Any]) -> OccupancyLimits:
    scalar = values.get("scalar")
    of_type = {
        **values,
        "wave_sizes": tuple(values["wave_sizes"]),
        "scalar": ScalarRegisters(**scalar) if scalar else None,
    }
    return OccupancyLimits(name=name, **of_type)


def _up(number: int, unit: int) -> int:
    return -(-number // unit)


def _rounded(number: int, unit: int) -> int:
    return _up(number, unit) * unit
