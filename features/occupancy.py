"""Features that scale a whole model: how full a kernel's work-groups make a GPU's multiprocessors, and which kernel it
is.

``f_occupancy_cc:9.0`` (Karan Kumar, "Influencing Parameters", 1. Occupancy), ``f_kernel_name:{matvec}``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from perfmodel.basics.errors import FeatureError, KernelError, PerfmodelError
from perfmodel.counting.counts import KernelCounts
from perfmodel.device.occupancy import OccupancyLimits, limits_of, occupancy
from perfmodel.kernels.program import EmulatesItself
from perfmodel.kernels.resources import ResourceEstimate, estimate, resources
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import FeatureFamily, by_role, unknown_word

if TYPE_CHECKING:
    from perfmodel.kernels.kernel import Kernel


class NamedFeature:
    """A feature of a whole kernel, which is none of its counts; equal where the names are."""

    unit: str

    def __init__(self, name: FeatureName) -> None:
        self.name = name.text

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.name == getattr(other, "name", None)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class OccupancyFeature(NamedFeature):
    """Warps that a multiprocessor holds of a kernel, as a part of those that it has room for: above 0, up to 1.

    Work-group size and local memory are the kernel's own. Registers are those given by the name, as a driver reports
    them, or else estimated from the source; of CUDA and PTX, what NVIDIA's assembler says, where it is installed.
    """

    unit = "occupancy"

    def __init__(self, name: FeatureName, limits: OccupancyLimits, registers: int | None) -> None:
        super().__init__(name)
        self.limits, self.registers = limits, registers

    def eval(self, knl: Kernel) -> float:
        sizes = knl.bind({})
        try:
            block = prod(int(extent(sizes)) for extent in knl.counts.local_size)
            needed, shared = self._needed(knl, {name: int(size) for name, size in sizes.items()})
            # An estimate above what a thread can have is of a kernel whose registers spill to memory.
            registers = self.registers or min(needed, self.limits.registers_per_item)
            return occupancy(limits=self.limits, block=block, registers=registers, shared=shared).occupancy
        except PerfmodelError as error:
            raise FeatureError(f"feature {self.name!r} is not defined for kernel {knl.name!r}: {error}") from error

    def _needed(self, knl: Kernel, sizes: dict[str, int]) -> tuple[int, int]:
        """Returns the registers of a thread and the bytes of local memory that a kernel needs."""
        if isinstance(knl.program, EmulatesItself):
            told = resources(knl)
            return told.registers or 1, told.local_bytes
        estimated = _estimated(_ByContent(knl))
        shared = estimated.local_bytes.at(sizes)
        if shared is None:
            raise KernelError("its local memory is not known")
        return estimated.registers, shared


class KernelNameFeature(NamedFeature):
    """1 for kernels of this name (that of their generator, if they have one), 0 for others."""

    unit = "kernel"

    def __init__(self, name: FeatureName, wanted: str) -> None:
        super().__init__(name)
        self.wanted = wanted

    def eval(self, knl: Kernel) -> float:
        return float(knl.name == self.wanted)


class OccupancyFamily(FeatureFamily):
    prefix = ("occupancy",)
    summary = "active warps of a multiprocessor, as a part of those that it has room for (Kumar, occupancy)"
    examples = ("f_occupancy_cc:9.0", "f_occupancy_arch:gfx90a", "f_occupancy_cc:8.6_registers:32")

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        return ()  # it is of one device, which a search over features doesn't know

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> OccupancyFeature:
        found = by_role(name, words, self.role)
        if "device" not in found:
            raise FeatureError(f"feature {name.text!r} is of one kind of device; write cc:9.0 or arch:gfx90a")
        device, given = found["device"], found.get("registers")
        try:
            limits = limits_of(device.condition) if device.key == "cc" else limits_of(arch=device.condition)
        except PerfmodelError as error:
            raise FeatureError(f"feature {name.text!r}: {error}", device.offset) from error
        if given is None:
            return OccupancyFeature(name, limits, None)
        text = given.condition or ""
        if not (text.isdecimal() and text.isascii() and 0 < int(text) <= limits.registers_per_item):
            raise FeatureError(
                f"registers:{text} is no number of registers of {limits.name}; write one from 1 to "
                f"{limits.registers_per_item}",
                given.offset,
            )
        return OccupancyFeature(name, limits, int(text))

    def role(self, name: FeatureName, word: Word) -> tuple[str, Word]:
        if word.condition and word.key in ("cc", "arch"):
            return "device", word
        if word.condition and word.key == "registers":
            return "registers", word
        raise unknown_word(name, word, ("cc", "arch", "registers"))


class KernelNameFamily(FeatureFamily):
    prefix = ("kernel",)
    summary = "1 for kernels of this name and 0 for others: a weight of one kernel's own (Kumar, adjusting weight)"
    examples = ("f_kernel_name:{matvec}",)

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        return ()  # what is known by name explains no other kernel

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> KernelNameFeature:
        if len(words) != 1 or words[0].key != "name" or not (words[0].condition or "").strip():
            raise FeatureError(f"feature {name.text!r} needs one name; write f_kernel_name:{{matvec}}")
        return KernelNameFeature(name, (words[0].condition or "").strip())


class _ByContent:
    """Makes a kernel a key of what follows from its program alone."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.content = kernel.program.content

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByContent) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.content)


@lru_cache(maxsize=256)
def _estimated(key: _ByContent) -> ResourceEstimate:
    try:
        return estimate(key.kernel.program.as_opencl())
    except PerfmodelError:
        raise
    except Exception as error:  # Loopy's code generation fails in many ways
        raise KernelError(f"its registers can't be estimated ({type(error).__name__}: {error})") from error
