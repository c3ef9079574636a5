"""Throw hostile OpenCL C at all that reads it: ``python tests/fuzz_opencl_c.py --count 10000 --seed 1``.

Mutated test kernels and generated ones. Whatever the source, it is read, lowered, counted and emulated, or one of
these refuses it with an error of one sentence; those of a source say where. Sources run in worker processes, so that
a crash or a hang is seen too. Exits with status 1 if there was any violation, of which the sources are saved.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from perfmodel.basics.errors import CountingError, EmulationError, KernelError, SourceError
from perfmodel.counting.counts import CountingWarning
from perfmodel.kernels.arguments import Scalar as ScalarArgument
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_file import declared_arguments
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation import Argument, Image, LocalBytes, Random, Zeros, emulate
from perfmodel.opencl_c.lowering import lower
from perfmodel.opencl_c.reading import read
from perfmodel.opencl_c.types import Image as ImageType
from perfmodel.opencl_c.types import Pointer, Record, Scalar, Vector, element_of
from tests.opencl_c.kernel_files import launches
from tests.opencl_c.random_kernels import RandomChooser, random_kernel

HARD_LIMIT_S = 10.0
"""Seconds of the processor after which a worker is replaced."""

SLOW_S = 2.0
STEPS = 20_000
LENGTH = 64
LONGEST_MESSAGE = 600

TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
NUMBER = re.compile(r"\b\d[\w.]*\b")
NUMBERS = ("0", "1", "2", "-1", "3u", "07", "0x7fffffff", "4294967296", "0xffffffffffffffffUL", "1e30f", "0.0", "1.5")
TYPES = (
    *("char", "uchar", "short", "int", "uint", "long", "ulong", "float", "double", "half", "bool", "size_t", "void"),
    *("int2", "float3", "float4", "uchar16", "int *", "__global int *", "float4 *", "volatile int", "struct s"),
)
TYPE = re.compile(r"\b(?:u?(?:char|short|int|long)|float|double|half|bool|size_t|void)(?:2|3|4|8|16)?\b")
WORDS = (
    *("if", "else", "for", "while", "do", "return", "break", "continue", "switch", "case 1:", "default:", "goto x;"),
    *("{", "}", "(", ")", "[", "]", ";", ",", "*", "&", "->", ".", "?", ":", "=", "+=", "<<", "%", "/", "!", "~", "&&"),
    *("__global", "__local", "__constant", "const", "volatile", "static", "sizeof", "typedef", "struct", "union"),
    *("barrier(1)", "get_global_id(0)", "get_local_id(1)", "get_group_id(3)", "vload4(0, ", "atomic_add(", "fract("),
    *("x:", "sub_group_reduce_add(", "work_group_broadcast(", "sub_group_ballot(", "get_sub_group_id()", "printf("),
    *("async_work_group_copy(", "read_imagef(", "write_imagef(", "__read_only image2d_t im", "sampler_t s", "event_t"),
    *("#define X", "#if 1\n", "#endif\n", "#include <x>", '"', "'", "//", "/*", "*/", "\\\n", "__attribute__((x))"),
)
ODD = "\x00\r\x1b\x7féπ𝒳\u2028'\"\\`$@#"


@dataclass(frozen=True)
class Source:
    kind: str
    text: str
    options: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()


IMAGES = """
__constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
__kernel void k(__read_only image2d_t from, __write_only image2d_t to, sampler_t given, __global float4 *a)
{
    const int x = get_global_id(0), y = get_global_id(1);
    float4 v = read_imagef(from, nearest, (int2)(x - 1, y)) + read_imagef(from, given, (float2)(x + 0.5f, 0.3f * y));
    if (x < get_image_width(from))
        write_imagef(to, (int2)(x, y), v);
    a[x] = v + read_imagef(from, (int2)(x & 3, y & 3));
}
"""

_ORIGINALS = [
    (
        "\n".join(line for line in launch.source.splitlines() if not line.startswith("// launch:")) + "\n",
        launch.options,
        launch.folders,
    )
    for launch in launches()
] + [(IMAGES, (), ())]


# --- sources


def by_bytes(rng: random.Random, text: str) -> str:
    for _ in range(rng.randrange(1, 5)):
        place = rng.randrange(len(text) + 1)
        new = rng.choice(["", rng.choice(text or " "), chr(rng.randrange(32, 127)), rng.choice(ODD)])
        text = text[:place] + new + text[place + rng.randrange(0, 2) :]
    return text


def by_tokens(rng: random.Random, text: str) -> str:
    tokens = TOKEN.findall(text)
    for _ in range(rng.randrange(1, 4)):
        places = [place for place, token in enumerate(tokens) if not token.isspace()] or [0]
        one, other = rng.choice(places), rng.choice(places)
        match rng.randrange(5):
            case 0:
                tokens[one], tokens[other] = tokens[other], tokens[one]
            case 1:
                tokens[one] = ""
            case 2:
                tokens[one] = tokens[other]
            case 3:
                tokens.insert(one, tokens[other])
            case _:
                tokens[one] = rng.choice(WORDS)
    return "".join(tokens)


def by_lines(rng: random.Random, text: str) -> str:
    lines = text.splitlines()
    for _ in range(rng.randrange(1, 3)):
        one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(4):
            case 0:
                lines[one], lines[other] = lines[other], lines[one]
            case 1:
                lines[one] = ""
            case 2:
                lines.insert(one, lines[other])
            case _:
                lines = [*lines[:one], *rng.choice(_ORIGINALS)[0].splitlines()[5:9], *lines[one:]]
    return "\n".join(lines) + "\n"


def by_brackets(rng: random.Random, text: str) -> str:
    places = [place for place, character in enumerate(text) if character in "{}()[];,"]
    place = rng.choice(places)
    return text[:place] + rng.choice(("", text[place] * 2, rng.choice("{}()[];"))) + text[place + 1 :]


def by_pattern(pattern: re.Pattern[str], values: tuple[str, ...]) -> Callable[[random.Random, str], str]:
    def mutation(rng: random.Random, text: str) -> str:
        for _ in range(rng.randrange(1, 3)):
            found = list(pattern.finditer(text))
            if not found:
                return text
            match = rng.choice(found)
            text = text[: match.start()] + rng.choice(values) + text[match.end() :]
        return text

    return mutation


MUTATIONS: dict[str, Callable[[random.Random, str], str]] = {
    "bytes": by_bytes,
    "tokens": by_tokens,
    "lines": by_lines,
    "brackets": by_brackets,
    "numbers": by_pattern(NUMBER, NUMBERS),
    "types": by_pattern(TYPE, TYPES),
}


def source_of(seed: int, index: int) -> Source:
    """Returns the source of this number: the same for the same numbers, in every process."""
    rng = random.Random(seed * 1_000_003 + index)
    if rng.random() < 0.15:
        text = random_kernel(RandomChooser(rng)).source
        kind, mutate = rng.choice([("generated", None), *((f"generated {k}", m) for k, m in MUTATIONS.items())])
        return Source(kind, mutate(rng, text) if mutate else text)
    text, options, folders = rng.choice(_ORIGINALS)
    kind = rng.choice(list(MUTATIONS))
    for _ in range(rng.choice((1, 1, 2))):
        text = MUTATIONS[kind](rng, text) or "\n"
    return Source(kind, text, options, folders)


# --- what is done with them


class ViolationError(Exception):
    """An error that says too little or too much."""


def outcome(source: Source, rng: random.Random) -> tuple[str, ...]:
    """Returns how far a source got, of ``read``, ``lowered``, ``counted`` and ``emulated``, and who refused it."""
    reached: list[str] = []
    try:
        unit = read(source.text, source.options, source.folders)
        reached.append("read")
        for name in unit.kernels[:2]:
            kernel = lower(unit, name)
            reached.append("lowered")
            shape = rng.choice((((16,), (8,)), ((8, 4), (4, 2)), ((6, 3, 2), (3, 1, 2))))
            count(source, kernel, shape, rng, reached)
            run(kernel, shape, rng, reached)
    except SourceError as error:
        check(error)
        if not error.line or not error.column or error.line > source.text.count("\n") + 2:
            raise ViolationError(f"no place in {error}") from error
        reached.append("refused by SourceError")
    except KernelError as error:
        check(error)
        reached.append(f"refused by {type(error).__name__}")
    return tuple(reached)


def count(source: Source, kernel: low.LoweredKernel, shape: Any, rng: random.Random, reached: list[str]) -> None:
    extents = {
        parameter.name: rng.choice((LENGTH, 1024))
        for parameter in kernel.parameters
        if isinstance(parameter.type, Pointer)
    }
    try:
        arguments = declared_arguments(kernel, extents)
        program = OpenCLProgram(
            source.text,
            kernel.name,
            shape[0],
            shape[1],
            arguments,
            [*source.options, *(f"-I{f}" for f in source.folders)],
        )
        scalars = [argument for argument in arguments if isinstance(argument, ScalarArgument)]
        bound = {each.name: rng.choice((0, 1, 2, 5, 16)) for each in scalars if np.dtype(each.dtype).kind in "iu"}
        counted = Kernel(program).at(**bound)
        counts, sizes = counted.counts_for(8), counted.bind({})
        for operation in counts.operations:
            float(operation.executions.workitem(sizes))
        for access in counts.accesses:
            float(access.executions.workitem(sizes))
        reached.append("counted")
    except CountingError as error:
        check(error)
        reached.append("not counted")
    except KernelError as error:  # arguments that no Kernel can be given
        check(error)
        reached.append("not bound")


def run(kernel: low.LoweredKernel, shape: Any, rng: random.Random, reached: list[str]) -> None:
    arguments = {parameter.name: argument(parameter, rng) for parameter in kernel.parameters}
    try:
        found = emulate(kernel, shape[0], shape[1], arguments, steps=STEPS, extrapolate=rng.random() < 0.3)
        for finding in found.findings:
            check(KernelError(str(finding)))
        reached.append("emulated")
    except EmulationError as error:
        check(error)
        reached.append("not emulated")
    except KernelError as error:  # the grid does not fit
        check(error)
        reached.append("not launched")


def argument(parameter: low.Parameter, rng: random.Random) -> Argument:
    type_ = parameter.type
    match type_:
        case Pointer() if type_.space == "local":
            return LocalBytes(rng.choice((0, 64, 1024)))
        case Pointer():
            is_number = isinstance(type_.target, Scalar | Vector)
            length = rng.choice((1, LENGTH, LENGTH))
            return Random(length, high=10.0) if is_number and rng.random() < 0.8 else Zeros(length)
        case Scalar():
            return rng.choice((0, 1, 2, 5, 16)) if not type_.is_float else rng.choice((0.0, 1.5, -2.0))
        case Vector():
            return np.arange(type_.width).astype(element_of(type_).numpy)
        case ImageType():
            return Image(np.ones((5,) * type_.axes, rng.choice((np.float32, np.uint8))))
        case Record():
            return bytes(min(type_.size, 4096))  # larger ones are refused
    return 0


def check(error: Exception) -> None:
    """Checks that an error is one sentence."""
    message = str(error)
    if not message.strip() or "\n" in message or len(message) > LONGEST_MESSAGE:
        raise ViolationError(f"no sentence: {message[:300]!r}") from error


def tried(seed: int, index: int) -> tuple[str, tuple[str, ...], str]:
    """Tries one source; returns its kind, how far it got, and a traceback if that is a violation."""
    source = source_of(seed, index)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CountingWarning)  # what data decide is observed, and some counts are estimates
        try:
            return source.kind, outcome(source, random.Random(index)), ""
        except Exception:
            return source.kind, (), traceback.format_exc()


# --- many of them


def work(connection: Connection, seed: int) -> None:
    while (index := connection.recv()) is not None:
        connection.send(tried(seed, index))


class Worker:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.index: int | None = None
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, self.seed), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, index: int | None) -> None:
        self.index, self.began = index, self.seconds()
        self.connection.send(index)

    def seconds(self) -> float:
        """Returns the seconds of the processor that the worker has had: other processes do not make a source slow."""
        with suppress(OSError):
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def result(self) -> tuple[str, tuple[str, ...], str] | None:
        """Returns what came out, None while it runs; a worker that crashed or hangs is replaced."""
        assert self.index is not None
        trouble = ""
        if self.connection.poll(0.002):
            try:
                found: tuple[str, tuple[str, ...], str] = self.connection.recv()
                return found
            except EOFError:
                self.process.join()
                trouble = f"the process crashed with exit code {self.process.exitcode}"
        elif self.seconds() - self.began > HARD_LIMIT_S:
            trouble = f"took more than {HARD_LIMIT_S:g} s"
            self.process.kill()
            self.process.join()
        if not trouble:
            return None
        self.start()
        return source_of(self.seed, self.index).kind, (), trouble


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first source, to repeat one with --count 1")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--save", type=Path, default=Path(tempfile.gettempdir()) / "fuzz_opencl_c")
    options = parser.parse_args()
    os.environ.setdefault("PERFMODEL_NO_CACHE", "1")  # for the processes that are started, too
    waiting = iter(range(options.first, options.first + options.count))
    totals: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    violations: Counter[str] = Counter()
    slowest, slow, began = (0.0, 0), 0, time.monotonic()
    workers = [Worker(options.seed) for _ in range(options.workers)]
    busy = workers[: options.count]
    for worker in busy:
        worker.give(next(waiting))
    while busy:
        for worker in list(busy):
            found = worker.result()
            if found is None:
                continue
            kind, reached, trouble = found
            index = worker.index
            assert index is not None
            slowest = max(slowest, (worker.seconds() - worker.began, index))
            slow += worker.seconds() - worker.began > SLOW_S
            kinds[kind] += 1
            totals.update(set(reached))
            if trouble:
                summary = trouble.strip().splitlines()[-1][:200]
                violations[summary] += 1
                options.save.mkdir(exist_ok=True)
                path = options.save / f"{options.seed}-{index}.cl"
                path.write_text(source_of(options.seed, index).text, encoding="utf-8", errors="replace")
                path.with_suffix(".txt").write_text(trouble)
                print(f"violation by source {index} ({kind}), saved as {path}: {summary}", flush=True)
            following = next(waiting, None)
            worker.give(following)
            if following is None:
                busy.remove(worker)
    seconds = time.monotonic() - began
    print(f"count {options.count}, seed {options.seed}, {options.count / seconds:.0f} sources a second")
    print(", ".join(f"{kind} {number}" for kind, number in sorted(kinds.items())))
    for step, number in totals.most_common():
        print(f"{step:28} {number:8}")
    print(f"slowest: source {slowest[1]} with {slowest[0]:.1f} s, {slow} over {SLOW_S:g} s")
    print(f"violations: {violations.total()}")
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main())
