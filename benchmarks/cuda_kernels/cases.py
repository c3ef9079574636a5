"""The kernels: twins of one text, kernels of the collection's generators, and programs with data, in OpenCL C and as
the PTX that NVIDIA's compiler makes of the same text."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cuda_kernels.opencl_as_cuda import OPTIONS, as_cuda
from benchmarks.cuda_kernels.twins import CUDA as CUDA_WORDS
from benchmarks.cuda_kernels.twins import TWINS, Twin
from benchmarks.programs import named
from benchmarks.programs.checking import compare
from benchmarks.programs.judging import HALVES, half_of
from benchmarks.programs.program import Case as Program
from benchmarks.programs.program import Local
from perfmodel import Kernel, KernelCollection
from perfmodel.collection.collection import ALL_GENERATORS
from perfmodel.device import CUDA, OPENCL
from perfmodel.kernels.arguments import scalars_of
from perfmodel.kernels.launch import PTX, Launch
from perfmodel.kernels.ptx_program import PtxProgram
from perfmodel.measuring.isolation.child import as_launch, as_message
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.types import Pointer

FOLDER = Path(__file__).parent
COMPILED = FOLDER / "kernels.jsonl.xz"
GENERATED = FOLDER / "generated.txt"
"""A line selects a kernel of a generator, in words of `perfmodel measure`."""

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Case:
    """A kernel at one launch.

    Attributes:
        origin: what it comes from: ``twin``, ``generator`` or ``program``.
        text: returns it as CUDA C++, and the kernel's name there.
        arrays: returns what its arrays hold; random numbers without.
        any_order: arrays that depend on the order in which threads run.
        tolerance, outliers: how far results of the two languages may be apart, see `benchmarks.programs.program`.
    """

    name: str
    origin: str
    opencl: Callable[[], Kernel]
    text: Callable[[], tuple[str, str]]
    arrays: Callable[[], Arrays] | None = None
    any_order: tuple[str, ...] = ()
    tolerance: float = 1e-4
    outliers: float = 0.0

    def contents(self, kernel: Kernel) -> dict[str, NDArray[Any]]:
        """Returns what the arrays of a kernel of either language hold, in its types; nothing where it is random."""
        given = self.arrays() if self.arrays else {}
        plain = {name: np.ascontiguousarray(array).reshape(-1).view(np.uint8) for name, array in given.items()}
        return {each.name: plain[each.name].view(each.dtype) for each in kernel.launch().arrays()} if given else {}

    @property
    def has_data(self) -> bool:
        return self.arrays is not None

    def kernel(self, runtime: str) -> Kernel:
        """Returns the kernel for a runtime, for CUDA of the PTX as it was compiled."""
        return as_kernel(self.name, compiled_launches()[self.name]) if runtime == CUDA else self.opencl()

    def difference(self, outputs: Mapping[str, Arrays]) -> str:
        """Returns where the two languages' results differ; empty where they don't."""
        one, other = (outputs[runtime] for runtime in (CUDA, OPENCL))
        for name in one:
            if name not in self.any_order:
                try:
                    with np.errstate(all="ignore"):
                        compare(name, one[name], other[name].view(one[name].dtype), self.tolerance, self.outliers)
                except AssertionError as error:
                    return f"results differ: {error}"
        return ""


def cases() -> list[Case]:
    """Returns all cases, those of one origin together."""
    return [*_twins(), *_generated(), *_programs()]


def compiled_cases(names: Sequence[str]) -> list[Case]:
    """Returns the cases of these names that were compiled, or all of them where no name is given."""
    compiled = compiled_launches()
    return [case for case in cases() if case.name in compiled and (not names or case.name in names)]


def compile_all(tell: Callable[[str], None]) -> int:
    """Compiles all cases that the compiler takes and writes their launches; returns how many these are."""
    from perfmodel.kernels.cuda_compiler import compiled
    from perfmodel.ptx.code import code_of

    lines = []
    for case in cases():
        text, name = case.text()
        try:
            found = compiled(text, name, OPTIONS)
            code_of(found.ptx, found.name)
        except Exception as error:
            tell(f"{case.name}: {' '.join(str(error).split())[:150]}")
            continue
        launch = replace(case.opencl().launch(), source=found.ptx, kernel_name=found.name, options=(), language=PTX)
        lines.append(json.dumps({"name": case.name, "launch": as_message(launch)}) + "\n")
    COMPILED.write_bytes(lzma.compress("".join(lines).encode(), preset=9))
    return len(lines)


@cache
def compiled_launches() -> dict[str, Launch]:
    """Returns the launches of PTX by the names of their cases, those that were compiled."""
    rows = map(json.loads, lzma.decompress(COMPILED.read_bytes()).decode().splitlines())
    return {row["name"]: as_launch(row["launch"]) for row in rows}


def as_kernel(name: str, launch: Launch) -> Kernel:
    """Returns the kernel of a launch of PTX."""
    grid = [total // block for total, block in zip(launch.global_size, launch.local_size, strict=True)]
    arguments = launch.arguments
    program = PtxProgram(
        launch.source, launch.kernel_name, name, grid, launch.local_size, arguments, launch.shared_bytes
    )
    values = {scalar.name: scalar.value for argument in arguments for scalar in scalars_of(argument)}
    return Kernel(program, {"generator": name}, None, **values)


def _twins() -> Iterable[Case]:
    for name, twin in TWINS.items():
        yield Case(name=f"twin {name}", origin="twin", opencl=twin.opencl, text=_text_of(twin), arrays=_DATA.get(name))


def _text_of(twin: Twin) -> Callable[[], tuple[str, str]]:
    return lambda: (CUDA_WORDS + twin.body, "twin")


def _random(low: int, high: int, count: int) -> NDArray[np.int32]:
    return np.random.default_rng(19).integers(low, high, count, np.int32)


def _gathered() -> Arrays:
    count, extent = 4194304, TWINS["gather"].sizes["n"]
    return {"at": _random(0, extent, count), "x": np.ones(extent, np.float32), "z": np.zeros(count, np.float32)}


def _binned() -> Arrays:
    return {"x": _random(0, 1 << 30, TWINS["histogram"].sizes["n"]), "h": np.zeros(256, np.int32)}


_DATA: dict[str, Callable[[], Arrays]] = {"gather": _gathered, "histogram": _binned}


def _generated() -> Iterable[Case]:
    collection = KernelCollection(ALL_GENERATORS)
    families: Counter[str] = Counter()
    for line in GENERATED.read_text(encoding="utf-8").splitlines():
        words = line.split()
        families[words[0]] += 1

        @cache
        def kernel(words: tuple[str, ...] = tuple(words)) -> Kernel:
            (found,) = collection.generate_kernels(list(words))
            return found

        def text(kernel: Callable[[], Kernel] = kernel) -> tuple[str, str]:
            program = kernel().as_opencl().program
            return as_cuda(program.source, program.name, program.options), program.name  # type: ignore[attr-defined]

        yield Case(f"{words[0]} {families[words[0]]}", "generator", kernel, text)


def _programs() -> Iterable[Case]:
    """Yields the programs by which models were validated; the others are for the end."""
    for program in named([]):
        launch = program.launch("gpu") if half_of(program.name) == HALVES[0] else None
        if launch is None or any(isinstance(each, Local) for each in launch.arguments.values()):
            continue

        def arrays(program: Program = program) -> Arrays:
            values = program.arrays("gpu", program.launch("gpu"))
            return {name: each for name, each in values.items() if isinstance(each, np.ndarray) and each.ndim}

        def opencl(program: Program = program, arrays: Callable[[], Arrays] = arrays) -> Kernel:
            launch, held = program.launch("gpu"), arrays()
            lowered = lowered_kernel(program.text, program.kernel, program.options)
            types = {each.name: each.type for each in lowered.parameters}
            pointers = {name: type_ for name, type_ in types.items() if isinstance(type_, Pointer)}
            extents = {name: held[name].nbytes // type_.target.size for name, type_ in pointers.items()}
            scalars = {name: value for name, value in launch.arguments.items() if name not in pointers}
            return Kernel.from_opencl(
                program.text, program.kernel, launch.global_size, launch.local_size, extents, program.options, **scalars
            )

        def text(program: Program = program) -> tuple[str, str]:
            return as_cuda(program.text, program.kernel, program.options), program.kernel

        yield Case(
            name=program.name,
            origin="program",
            opencl=opencl,
            text=text,
            arrays=arrays,
            any_order=program.any_order,
            tolerance=launch.tolerance,
            outliers=launch.outliers,
        )
