"""A kernel's machine code: registers, spills, size, and loads in flight: ``f_code_registers``, ``f_code_flight``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from perfmodel.basics.errors import FeatureError, KernelError, PerfmodelError
from perfmodel.counting.counts import KernelCounts
from perfmodel.features.occupancy import NamedFeature
from perfmodel.kernels.kernel import as_kernel
from perfmodel.kernels.program import EmulatesItself
from perfmodel.kernels.resources import resources
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import FeatureFamily, only_word

if TYPE_CHECKING:
    from perfmodel.kernels.kernel import Kernel
    from perfmodel.sass.machine_code import MachineCode

REGISTERS = "registers"
QUANTITIES: dict[str, tuple[str, Callable[[Any], int]]] = {
    REGISTERS: ("register", lambda code: code.registers),
    "spills": ("byte", lambda code: code.spill_store_bytes + code.spill_load_bytes),
    "bytes": ("byte", lambda code: code.code_bytes),
    "flight": ("load", lambda code: code.loads_in_flight),
}
"""The words of names: each with its unit, and how machine code says it."""


class MachineCodeFeature(NamedFeature):
    """A number that a kernel's machine code says, as NVIDIA's assembler makes it of CUDA and PTX.

    Registers of other kernels are estimated from their source, as they are of PTX where the assembler isn't installed.
    """

    def __init__(self, name: FeatureName, word: str) -> None:
        super().__init__(name)
        self.word = word
        self.unit, _ = QUANTITIES[word]

    def eval(self, knl: Kernel) -> float:
        kernel = as_kernel(knl)
        is_ptx = isinstance(kernel.program, EmulatesItself)
        try:
            code = _machine_code(kernel.program) if is_ptx else None
            if code is not None:
                _, said = QUANTITIES[self.word]
                return float(said(code))
            if self.word == REGISTERS:
                return float(resources(kernel).registers or 0)
            why = "pip install 'perfmodel[nvidia]' adds NVIDIA's assembler" if is_ptx else "only CUDA and PTX have it"
            raise KernelError(f"its machine code is not known; {why}")
        except PerfmodelError as error:
            raise FeatureError(f"feature {self.name!r} is not defined for kernel {kernel.name!r}: {error}") from error


def _machine_code(program: Any) -> MachineCode | None:
    from perfmodel.sass.machine_code import machine_code_here  # slow to import, and only for PTX

    return machine_code_here(program.text, program.entry)


class MachineCodeFamily(FeatureFamily):
    prefix = ("code",)
    summary = "what NVIDIA's assembler makes of CUDA and PTX: registers, bytes spilled, bytes of code, loads in flight"
    examples = tuple(f"f_code_{word}" for word in QUANTITIES)

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        return ()  # a search over features looks at counts, which know nothing of machine code

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> MachineCodeFeature:
        return MachineCodeFeature(name, only_word(name, words, QUANTITIES, self.examples))
