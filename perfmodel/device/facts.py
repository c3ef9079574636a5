"""A device is described by facts of its specification, so that calibrations of others can be carried over to it.

What `known_devices.json` holds is public: data sheets for devices, programming guides, white papers and microbenchmarks
of others for their architectures; what is a guess says so.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.documents import DocumentKind
from perfmodel.basics.errors import DeviceError, nearest
from perfmodel.basics.tables import grid

FILE = DocumentKind(
    name="device",
    refusal="no description of a device",
    writer="'perfmodel device new'",
    mend="make it again by 'perfmodel device new' or restore the file",
    again="make it again",
    format="perfmodel-device",
    version=1,
    error=DeviceError,
)
KNOWN = Path(__file__).with_name("known_devices.json")

# What each fact is, with its unit. A unit of a GPU is a compute unit, of a processor a core.
GPU_FACTS: Mapping[str, tuple[str, str]] = {
    "units": ("", "compute units"),
    "clock": ("Hz", "clock that it boosts to"),
    "dram_bandwidth": ("B/s", "bytes that memory can move"),
    "l2_bytes": ("B", "bytes that the last-level cache holds"),
    "subgroup": ("", "work-items of a warp or wavefront"),
    "f32_lanes": ("", "single-precision results a clock and unit"),
    "f64_lanes": ("", "double-precision results a clock and unit"),
    "i32_lanes": ("", "whole-number results a clock and unit"),
    "special_lanes": ("", "results of the special-function units a clock and unit"),
    "convert_lanes": ("", "conversions between whole numbers and floats a clock and unit"),
    "issue_lanes": ("", "work-items whose instructions are issued a clock and unit"),
    "load_clocks": ("", "cycles of local memory's banks that a load of 32 work-items takes at least, however narrow"),
    "fetch_clocks": ("", "cycles of a first-level cache that their load from global memory takes at least likewise"),
    "local_bandwidth": ("B", "bytes of local memory a clock and unit"),
    "l1_bandwidth": ("B", "bytes of the first-level cache a clock and unit"),
    "lookups": ("", "lines that a first-level cache looks up a clock and unit"),
    "l1_bytes": ("B", "bytes that a first-level cache holds"),
    "memory_units": ("", "units of a compute unit that serve loads: 1 where one is first-level cache and local memory"),
    "loaded_bytes": ("B", "bytes that a first-level cache keeps of loads from global memory"),
    "l2_bandwidth": ("B", "bytes of the last-level cache a clock and unit"),
    "op_latency": ("clocks", "from an operation to one that needs its result"),
    "local_latency": ("clocks", "until local memory answers"),
    "l1_latency": ("clocks", "until a first-level cache answers"),
    "l2_latency": ("clocks", "until the last-level cache answers"),
    "dram_latency": ("clocks", "until memory answers"),
    "launch": ("s", "launch of an empty kernel"),
    "dispatch": ("s", "from asking for a launch until it begins, by the host's clock"),
    "resident_items": ("", "work-items that a unit holds at a time"),
    "resident_groups": ("", "work-groups that a unit holds at a time, at most"),
    "registers": ("", "registers of 32 bits of a unit"),
    "item_registers": ("", "registers of 32 bits that compilers give a work-item, at most"),
    "moved_steps": ("", "instructions of straight code from which the maker's compiler moves sums to conditions"),
    "local_bytes": ("B", "bytes of local memory of a unit"),
    "group_items": ("", "work-items of a work-group, at most"),
    "group_local_bytes": ("B", "bytes of local memory of a work-group, at most"),
}
CPU_FACTS: Mapping[str, tuple[str, str]] = {
    "units": ("", "cores"),
    "clock": ("Hz", "clock that all cores reach together"),
    "dram_bandwidth": ("B/s", "bytes that memory can move"),
    "l3_bytes": ("B", "bytes that the cache holds that cores share"),
    "subgroup": ("", "lanes of a vector with single precision"),
    "f32_lanes": ("", "single-precision operations a clock and core, a multiply-add as two"),
    "i32_lanes": ("", "whole-number additions a clock and core"),
    "divide_lanes": ("", "single-precision divisions a clock and core"),
    "gather_lanes": ("", "lanes that a core loads from places apart in a clock"),
    "issue": ("", "instructions a clock and core"),
    "l1_bandwidth": ("B", "bytes that a core loads from its first cache in a clock"),
    "store_bandwidth": ("B", "bytes that a core stores in a clock"),
    "l2_bandwidth": ("B", "bytes that come from a core's second cache in a clock"),
    "l1_bytes": ("B", "bytes that a core's first cache holds"),
    "l2_bytes": ("B", "bytes that a core's second cache holds"),
    "window": ("", "operations that a core has under way at most, of which the first is not done"),
    "op_latency": ("clocks", "from a multiply-add to one that adds to its result"),
    "atomic_latency": ("clocks", "until an atomic is done on a line that a core has to itself"),
    "l2_latency": ("clocks", "until a core's second cache answers"),
    "l3_latency": ("clocks", "until the cache answers that cores share"),
    "dram_latency": ("clocks", "until memory answers"),
    "core_bandwidth": ("B/s", "bytes that one core can draw from memory by itself"),
    "launch": ("s", "launch of an empty kernel"),
    "dispatch": ("s", "from asking for a launch until it begins, by the host's clock"),
    "wake": ("s", "until other cores begin, whose threads slept"),
}
BY_KIND = {"gpu": GPU_FACTS, "cpu": CPU_FACTS}
OWN = ("units", "clock", "dram_bandwidth", "l2_bytes", "l3_bytes")
"""Facts that a device has of itself; the others are its architecture's."""


class Fact(NamedTuple):
    """A number, and where it comes from: ``specification``, ``driver``, ``microbenchmark`` or ``guess``."""

    value: float
    source: str


@dataclass(frozen=True, repr=False)
class DeviceFacts:
    """Facts of a device, each a number with where it comes from.

    Attributes:
        key: a short name in lower case: ``a100``.
        name: as its maker calls it.
        kind: ``gpu`` or ``cpu``.
        architecture: a key of `architectures`, whose facts stand for those that the device has not of itself.
        facts: by name, as in `GPU_FACTS` or `CPU_FACTS`; all of them.
    """

    key: str
    name: str
    kind: str
    vendor: str
    architecture: str
    facts: Mapping[str, Fact]

    def __post_init__(self) -> None:
        if self.kind not in BY_KIND:
            raise DeviceError(f"device {self.key!r} is of kind {self.kind!r}; give gpu or cpu")
        wanted = BY_KIND[self.kind]
        if missing := [name for name in wanted if name not in self.facts]:
            raise DeviceError(f"device {self.key!r} lacks {', '.join(missing)}; give all facts of a {self.kind}")
        for name, fact in self.facts.items():
            if name not in wanted:
                raise DeviceError(
                    f"device {self.key!r} has an unknown fact {name!r}"
                    f"{nearest(name, wanted) or '; it has ' + ', '.join(wanted)}"
                )
            if not isinstance(fact.value, int | float) or not 0 < fact.value < math.inf:
                raise DeviceError(f"fact {name!r} of device {self.key!r} is {fact.value!r:.40}; give a positive number")

    def __getitem__(self, name: str) -> float:
        return float(self.facts[name].value)

    def values(self) -> dict[str, float]:
        """Returns the facts as features of model strings: ``f_device_units`` and so on."""
        return {f"f_device_{name}": self[name] for name in self.facts}

    def with_facts(self, source: str, **changed: float) -> DeviceFacts:
        """Returns the device with other numbers.

        Args:
            source: where they come from.
            changed: by name.

        Raises:
            DeviceError: for a fact that there is not, and a number that is not positive.
        """
        return replace(self, facts={**self.facts, **{name: Fact(value, source) for name, value in changed.items()}})

    def guessed(self) -> tuple[str, ...]:
        """Returns the names of the facts that are guesses."""
        return tuple(name for name, fact in self.facts.items() if fact.source == "guess")

    def as_json(self) -> dict[str, Any]:
        """Returns the device as values that JSON can hold."""
        found = {name: getattr(self, name) for name in ("key", "name", "kind", "vendor", "architecture")}
        facts = {name: list(fact) for name, fact in self.facts.items()}
        return {"format": FILE.format, "version": FILE.version, **found, "facts": facts}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the device as JSON.

        Raises:
            DeviceError: if the file cannot be written.
        """
        FILE.save(path, self.as_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DeviceFacts:
        """Reads a device from a file that `save` wrote.

        Raises:
            DeviceError: if the file is missing, damaged, or another.
        """
        return cls.from_json(FILE.load(Path(path)), path)

    @classmethod
    def from_json(cls, content: Mapping[str, Any], path: str | os.PathLike[str] = "") -> DeviceFacts:
        """Makes a device of what `as_json` returned; facts that it lacks are its architecture's, as those are which
        came after the file was written.

        Args:
            path: the file that it stands in.

        Raises:
            DeviceError: for anything else.
        """
        try:
            facts = {str(name): Fact(float(value), str(source)) for name, (value, source) in content["facts"].items()}
            texts = {name: str(content[name]) for name in ("key", "name", "kind", "vendor", "architecture")}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FILE.damaged(path, error) from error
        return cls(**texts, facts={**_of_architecture(texts["architecture"]), **facts})

    def __repr__(self) -> str:
        return brief(self, self.name, self.architecture, number_of(len(self.facts), "fact"))

    def __str__(self) -> str:
        wanted = BY_KIND[self.kind]
        known = [(name, self.facts[name]) for name in BY_KIND[self.kind]]
        rows = [[wanted[name][1], name, shown(name, self.kind, fact.value), fact.source] for name, fact in known]
        return f"{self.name} ({architectures()[self.architecture]})\n\n{grid(['what', 'fact', 'value', 'from'], rows)}"


def known_devices() -> tuple[DeviceFacts, ...]:
    """Returns the devices that come along, in the order of their makers and years."""
    return tuple(_known().values())


def keys_of_known() -> list[str]:
    """Returns the keys of the devices that come along."""
    return [*_known()]


def architectures() -> dict[str, str]:
    """Returns what each architecture is called, by its key."""
    return {key: each["words"] for key, each in _data()["architectures"].items()}


def years_apart(first: DeviceFacts, second: DeviceFacts) -> int:
    """Returns how many years lie between the architectures of two devices."""
    known = _data()["architectures"]
    years = [int(known[each.architecture]["year"]) for each in (first, second)]
    return abs(years[0] - years[1])


def device_facts(device: str | os.PathLike[str]) -> DeviceFacts:
    """Returns the facts of a device that comes along, by its key or name, or that a file describes.

    >>> device_facts("a100")["dram_bandwidth"]

    Raises:
        DeviceError: if there is no such device, or more than one, and as `DeviceFacts.load` does.
    """
    if str(device).endswith(".json"):
        return DeviceFacts.load(device)
    found = facts_called(str(device))
    if found is None:
        raise DeviceError(
            f"no device {str(device)!r} is known{nearest(str(device), keys_of_known())}; 'perfmodel devices --known' "
            f"lists them, and 'perfmodel device new' describes another"
        )
    return found


def facts_called(name: str) -> DeviceFacts | None:
    """Returns a device that comes along, by its key or its name, as a driver or people write it; None if none is."""
    wanted = _words(name)
    exact = [each for each in known_devices() if each.key == name.lower() or _words(each.name) == wanted]
    if exact:
        return exact[0]
    within = [each for each in known_devices() if wanted and _words(each.key.replace("_", " ")) <= wanted]
    return max(within, key=lambda each: len(each.key), default=None)


def new_device(key: str, architecture: str, **facts: float) -> DeviceFacts:
    """Returns a device that is described by a few numbers; its architecture's facts stand for all others.

    >>> new_device("my_gpu", "ada", units=60, clock=2.4e9, dram_bandwidth=5e11, l2_bytes=4e7)

    Args:
        architecture: a key of `architectures`.
        facts: those that the architecture does not have (``units``, ``clock``, ``dram_bandwidth`` and the last-level
            cache, ``l2_bytes`` of a GPU, ``l3_bytes`` of a processor), and any others.

    Raises:
        DeviceError: for an architecture that is not known, a fact that is missing or that there is not.
    """
    known = _data()["architectures"]
    if architecture not in known:
        raise DeviceError(
            f"no architecture {architecture!r} is known{nearest(architecture, known)}; {', '.join(known)}"
        )
    return _device(key, {"name": key, "architecture": architecture, "facts": facts})


def shown(name: str, kind: str, value: float) -> str:
    """Returns a fact with its unit, in a form for people."""
    unit = BY_KIND[kind][name][0]
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale and unit:
            return f"{value / scale:.4g} {prefix}{unit}"
    if unit == "s":
        return f"{value * 1e6:.3g} µs"
    return f"{value:.4g} {unit}".rstrip()


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(KNOWN.read_text(encoding="utf-8"))
    return content


@lru_cache(maxsize=1)
def _known() -> dict[str, DeviceFacts]:
    return {key: _device(key, each) for key, each in _data()["devices"].items()}


def _of_architecture(key: str) -> dict[str, Fact]:
    """Returns the facts that all devices of an architecture share; none of one that is not known."""
    family = _data()["architectures"].get(key, {})
    guessed, measured = family.get("guessed", ()), family.get("measured", ())
    sources = dict.fromkeys(guessed, "guess") | dict.fromkeys(measured, "microbenchmark")
    return {name: Fact(value, sources.get(name, "specification")) for name, value in family.get("facts", {}).items()}


def _device(key: str, described: Mapping[str, Any]) -> DeviceFacts:
    family = _data()["architectures"][described["architecture"]]
    facts = _of_architecture(described["architecture"])
    unsure = described.get("unsure", ())
    for name, value in described["facts"].items():
        facts[name] = Fact(value, "guess" if name in unsure else "specification")
    return DeviceFacts(
        key=key,
        name=described["name"],
        kind=family["kind"],
        vendor=family["vendor"],
        architecture=described["architecture"],
        facts=facts,
    )


def _words(name: str) -> frozenset[str]:
    """Returns the words of a device's name that tell it from others; a Kepler's board, K20m or K20c, does not."""
    makers = {"nvidia", "geforce", "tesla", "amd", "radeon", "intel", "quadro", "gpu", "graphics", "r", "tm", "core"}
    lines = {"xeon", "epyc", "ryzen"}
    plain = re.sub(r"\b(k\d0)[cm]\b", r"\1", name.lower().replace("_", " "))
    return frozenset(re.findall(r"[a-z]+|\d+[a-z]*", plain)) - makers - lines
