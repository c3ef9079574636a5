"""Compares the rules by which loads are under way together with the machine code of small kernels.

    python -m benchmarks.loads_under_way --out docs/results/loads-under-way.txt

Each kernel is a loop that changes one thing: places, counters, operations, conditions, types, values that stay. Its one
text is both CUDA C++ and OpenCL C. NVRTC and NVIDIA's assembler make machine code of it (the extras nvidia and sass;
no GPU is needed), which one warp goes through alone, each load taking 2,000 cycles; the waits of an iteration stand
beside those that perfmodel counts from the same PTX, and from OpenCL C.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import perfmodel as pm
from benchmarks.cuda_kernels.twins import Twin
from perfmodel.basics.tables import grid
from perfmodel.kernels.ptx_program import PtxProgram
from perfmodel.sass.machine_code import MachineCode, machine_code_here
from perfmodel.sass.waiting import GLOBAL, waits_of_trip

RAW = argparse.RawDescriptionHelpFormatter
ITERATIONS, ITEMS = 960, 4096
"""All copies that compilers make of a body go into so many iterations."""
FRAME = """
KERNEL twin(GLOBAL const {type} *RESTRICT a, GLOBAL const {type} *RESTRICT b, GLOBAL {type} *RESTRICT c, int m, int n)
{{
    const int i = ID_X, lid = ITEM_X, group = GROUP_X;
    {type} s = 0;
    {before}
    {loop}
    c[i] = s;
    {after}
}}
"""
RESTRICT = {"cuda": "__restrict__", "opencl": "restrict"}
UP, OPERATION = "for (int j = 0; j < m; j++) ", "x = x * x + 1.5f;"


@dataclass(frozen=True)
class Looping:
    """A loop with what stands around it; `loads` are those of global memory in an iteration."""

    loop: str
    loads: int = 1
    type: str = "float"
    before: str = ""
    after: str = ""

    def text(self, language: str) -> str:
        text = FRAME.format(type=self.type, before=self.before, loop=self.loop, after=self.after)
        return text.replace("RESTRICT", RESTRICT[language])


def loops() -> Iterator[tuple[str, Looping]]:
    """Iterates over the loops by what they show."""
    places = {
        "column": "j * n + i",
        "row": "i * m + j",
        "row of all": "j",
        "row of a work-group": "group * m + j",
        "apart, from one's own": "i + 16 * j",
        "column of every other": "2 * j * n + i",
        "row whose place is asked for": "ID_X * m + j",
    }
    for name, place in places.items():
        yield name, Looping(UP + f"s += a[{place}];")
    yield "up to an end", Looping("for (int j = 0; j <= m - 1; j++) s += a[j * n + i];")
    yield "unsigned counter", Looping("for (unsigned j = 0; j < m; j++) s += a[j * n + i];")
    yield "steps of a number", Looping("for (int j = lid; j < 64 * m; j += 64) s += a[j];")
    yield "condition on the counter", Looping(UP + "if (i + j < n) s += a[j * n + i];")
    yield "vector by matrix", Looping(UP + "s += a[i * m + j] * b[j];", 2)
    yield "matrix by matrix", Looping(UP + "s += a[i * m + j] * b[j * n + group];", 2)
    for number in (2, 3, 4, 6, 8):
        sums = " + ".join(f"a[j * n + i + {each}]" for each in range(number))
        yield f"{number} neighbours", Looping(UP + f"s += {sums};", number)
        apart = " + ".join(f"a[j * n + i + {each} * m]" for each in range(number))
        yield f"{number} places apart", Looping(UP + f"s += {apart};", number)
    for number in (1, 4, 8, 12, 16, 32, 48):
        operations = number * OPERATION
        yield f"{number} operations", Looping(UP + f"{{ float x = a[j * n + i]; {operations} s += x; }}")
    for number in (1, 8, 24):
        operations = number * OPERATION
        yield (
            f"{number} operations, if what is loaded says so",
            Looping(UP + f"{{ float x = a[j * n + i]; if (x > 0) {{ {operations} s += x; }} }}"),
        )
        yield (
            f"a load and {number} operations, if the counter says so",
            Looping(UP + f"if (i + j < n) {{ float x = a[j * n + i]; {operations} s += x; }}"),
        )
        yield (
            f"a load and {number} operations, if what is loaded says so",
            Looping(UP + f"{{ float x = a[j * n + i]; if (x > 0) {{ x = b[j * n + i]; {operations} s += x; }} }}", 2),
        )
    yield "doubles", Looping(UP + "s += a[j * n + i];", type="double")
    for number in (2, 4, 6, 8, 12, 16):
        held = [f"u{each}" for each in range(number)]
        yield (
            f"{number} values that stay",
            Looping(
                UP + "{ float x = a[j * n + i]; s += x; " + "".join(f"{each} += x;" for each in held) + " }",
                before="".join(f"float {each} = c[i + n];" for each in held),
                after="".join(f"c[i + {place} * n] = {each};" for place, each in enumerate(held, 1)),
            ),
        )
    for number in (8, 16, 32, 64):
        inner = f"for (int l = 0; l < {number}; l++) s += a[(j * {number} + l) * n + i];"
        yield f"{number} iterations within", Looping(UP + inner, number)


def of_machine(looping: Looping, code: MachineCode) -> float:
    """Returns the waits of an iteration in the loop of a kernel's machine code that loads most."""
    found = max((piece for piece in code.pieces if piece.loop), key=lambda piece: piece.memory.loads)
    if found.loop is None or not found.memory.loads:
        raise ValueError(f"the machine code of {looping.loop!r} has no loop that loads")
    return waits_of_trip(found.loop.own, GLOBAL) * looping.loads / found.memory.loads


def by_text(kernel: pm.Kernel) -> pm.Kernel:
    """Returns a kernel as the rules of its text count it: PTX as it stands, OpenCL C as compiled."""
    return kernel if isinstance(kernel.program, PtxProgram) else kernel.as_compiled()


def of_rules(kernel: pm.Kernel, looping: Looping) -> float:
    """Returns the waits of an iteration that perfmodel counts, those outside of the loop apart."""
    waits = float(pm.feature("f_mem_waits_global").eval(by_text(kernel))) / ITEMS
    return (waits - bool(looping.before)) / ITERATIONS


def compared() -> Iterator[tuple[str, float, float, float]]:
    """Iterates over the loops' names, and waits of an iteration: of machine code, by rules from PTX, from OpenCL C."""
    for name, looping in loops():
        twins = {
            language: Twin(
                body=looping.text(language),
                grid=(f"{ITEMS // 64}",),
                block=(64,),
                args={"a": "n * m * 64 + 16 * m", "b": "n * m * 64", "c": "n * 20"},
                sizes={"n": ITEMS, "m": ITERATIONS},
            )
            for language in RESTRICT
        }
        cuda = twins["cuda"].cuda()
        code = assembled_here(cuda)
        yield name, of_machine(looping, code), of_rules(cuda, looping), of_rules(twins["opencl"].opencl(), looping)


def assembled_here(kernel: pm.Kernel) -> MachineCode:
    """Returns what NVIDIA's assembler makes of a kernel of CUDA C++; ends the program where it is not installed."""
    assert isinstance(kernel.program, PtxProgram)
    code = machine_code_here(kernel.program.text, kernel.program.entry)
    if code is None:
        raise SystemExit("NVIDIA's assembler is not here: install the extras nvidia and sass of perfmodel")
    return code


def report(title: str, rows: Sequence[tuple[str, float, float, float]], shown: Callable[[float], float]) -> str:
    """Returns a table of loops by machine code and by the rules from PTX and OpenCL C, and how near these come."""
    table = [[name, *(f"{shown(value):.1f}" for value in each)] for name, *each in rows]
    lines = [title, "", grid(["loop", "machine code", "from PTX", "from OpenCL C"], table), ""]
    for place, way in ((2, "PTX"), (3, "OpenCL C")):
        off = [abs(math.log(float(row[place]) / float(row[1]))) for row in rows]
        near = sum(each <= math.log(1.5) for each in off)
        mean = math.exp(sum(off) / len(off))
        lines.append(f"from {way}: {near} of {len(off)} within a factor of 1.5, {mean:.2f} on geometric average")
    return "\n".join(lines)


def tell(title: str, compared: Iterable[tuple[str, float, float, float]], shown: Callable[[float], float]) -> None:
    """Prints the report of a comparison, and writes it to the file that the command line names."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__, formatter_class=RAW)
    parser.add_argument("--out", type=Path, help="where to write the table as well")
    out: Path | None = parser.parse_args().out
    text = report(title, list(compared), shown)
    print(text)
    if out is not None:
        out.write_text(text + "\n")


def main() -> None:
    tell("Iterations whose loads share a wait", compared(), lambda waits: 1 / waits)


if __name__ == "__main__":
    main()
