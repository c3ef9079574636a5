"""Tells a processor's architecture by the numbers that it identifies itself with, or by its instructions.

Numbers are those of Linux (arch/x86/include/asm/intel-family.h, arch/x86/kernel/cpu/amd.c).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain
from typing import NamedTuple


class _Identity(NamedTuple):
    vendor: str
    family: int
    models: Collection[int]
    vectors: str


def _intel(vectors: str, *models: int) -> _Identity:
    return _Identity("GenuineIntel", 6, models, vectors)


def _amd(vectors: str, family: int, *models: range) -> _Identity:
    return _Identity("AuthenticAMD", family, tuple(chain(*models)), vectors)


VECTORS = ("avx512f", "avx2", "avx")
"""Instructions of vectors as Linux calls them, the widest first."""
# By their years; what is listed last of a maker's is its newest with such vectors.
IDENTITIES: Mapping[str, _Identity] = {
    "sandy_bridge": _intel("avx", 0x2A, 0x2D),
    "ivy_bridge": _intel("avx", 0x3A, 0x3E),
    "haswell": _intel("avx2", 0x3C, 0x3F, 0x45, 0x46, 0x3D, 0x47, 0x4F, 0x56),
    "skylake": _intel("avx2", 0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6),
    "knights_landing": _intel("avx512f", 0x57),
    "skylake_server": _intel("avx512f", 0x55),
    "rocket_lake": _intel("avx512f", 0xA7),
    "ice_lake_server": _intel("avx512f", 0x6A, 0x6C),
    "raptor_lake": _intel("avx2", 0x97, 0x9A, 0xB7, 0xBA, 0xBF),
    "sapphire_rapids": _intel("avx512f", 0x8F, 0xCF),
    "granite_rapids": _intel("avx512f", 0xAD, 0xAE),
    "arrow_lake": _intel("avx2", 0xC5, 0xC6),
    "zen1": _amd("avx2", 0x17, range(0x30), range(0x50, 0x60)),
    "zen2": _amd("avx2", 0x17, range(0x30, 0x50), range(0x60, 0x80), range(0x90, 0x92), range(0xA0, 0xB0)),
    "zen3": _amd("avx2", 0x19, range(0x10), range(0x20, 0x60)),
    "zen4": _amd("avx512f", 0x19, range(0x10, 0x20), range(0x60, 0xB0)),
    "zen5": _amd("avx512f", 0x1A, range(0x30), range(0x40, 0x50), range(0x60, 0x80)),
}


class Identified(NamedTuple):
    """A key of `perfmodel.device.facts.architectures`, and whether it is a guess."""

    architecture: str
    is_guess: bool


def identified(vendor: str, family: int, model: int, flags: Collection[str]) -> Identified | None:
    """Returns a processor's architecture; None of another maker's, and of one without vectors.

    One whose numbers are not known, or that hides its vectors, as virtual machines may, is taken to be the newest of
    its maker's that has the vectors it shows.

    Args:
        vendor: as the processor says it: ``AuthenticAMD``.
        family, model: likewise, as whole numbers.
        flags: its instructions, as Linux lists them.
    """
    of_maker = {key: each for key, each in IDENTITIES.items() if each.vendor == vendor}
    for key, each in of_maker.items():
        if family == each.family and model in each.models and each.vectors in flags:
            return Identified(key, is_guess=False)
    widest = next((each for each in VECTORS if each in flags), "")
    alike = [key for key, each in of_maker.items() if each.vectors == widest]
    return Identified(alike[-1], is_guess=True) if alike else None
