"""Reads and emulates PTX texts with random mistakes: each is run, or refused by an error of perfmodel's own.

Call it by ``python -m tests.fuzz_ptx --count 5000 --seed 1``.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from perfmodel.basics.errors import PerfmodelError
from perfmodel.ptx.code import Code
from perfmodel.ptx.emulation.emulation import emulate
from perfmodel.ptx.emulation.launch import Buffer, Given, Launch
from perfmodel.ptx.inlining import kernel_of
from perfmodel.ptx.reading.reader import read
from tests.kernels.triton.texts import PATH
from tests.ptx import tensor_cases
from tests.ptx.stored_kernels import stored

TEXTS = [path.read_text() for path in sorted((Path(__file__).parent / "ptx" / "texts").glob("*.ptx"))]
TEXTS += [stored(tensor_cases.PATH)[title][0] for title in ("bulk copies", "wmma f16 16x16x16 float rr", "float8")]
TEXTS += [stored(PATH)["described_sum"][0].partition(".section")[0]]
WORDS = [
    *"{}[]();,:.@!|+-%=<>",
    "%r1",
    "%rd1",
    "%p1",
    "0",
    "1",
    "-1",
    "4294967296",
    "0f7F800000",
    ".reg",
    ".f64",
    ".s8",
]
SLOWEST = 20.0
"""No text may take more seconds."""


def mutated(chance: random.Random) -> str:
    """Returns a text with one to five mistakes."""
    text = chance.choice(TEXTS)
    for _ in range(chance.randint(1, 5)):
        place = chance.randrange(len(text))
        lines = text.splitlines()
        match chance.randrange(7):
            case 0:
                text = text[:place] + text[place + chance.randint(1, 20) :]
            case 1:
                text = text[:place] + chance.choice(WORDS) + text[place:]
            case 2:
                text = text[:place] + chr(chance.randrange(32, 127)) + text[place + 1 :]
            case 3:
                line = chance.randrange(len(lines))
                lines[line] = chance.choice(lines)
                text = "\n".join(lines)
            case 4:
                del lines[chance.randrange(len(lines))]
                text = "\n".join(lines)
            case 5:
                words = text.split(" ")
                words[chance.randrange(len(words))] = chance.choice(words)
                text = " ".join(words)
            case _:
                text = text[:place]
        text = text or TEXTS[0]
    return text


def run(text: str) -> str:
    """Reads a text and emulates its kernels; returns what came of it: ``run``, or the kind of refusal.

    Raises:
        Exception: anything but an error of perfmodel's own is a defect.
    """
    try:
        module = read.__wrapped__(text)
        for entry in module.entries:
            code = Code(kernel_of(module, entry))
            given: list[Given] = [
                Buffer(f"a{place}", 4096) if variable.n_bytes == 8 else (40).to_bytes(4, "little")
                for place, variable in enumerate(code.kernel.parameters)
            ]
            emulate(code, Launch((2,), (32,), tuple(given), 1024), "all", steps=2000)
    except PerfmodelError as error:
        if "\n" in str(error):
            raise AssertionError(f"the message is more than one line: {error}") from error
        return type(error).__name__
    return "run"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parsed = parser.parse_args()
    told: dict[str, int] = {}
    for number in range(parsed.count):
        text = mutated(random.Random(f"{parsed.seed} {number}"))
        started = time.monotonic()
        try:
            came = run(text)
        except Exception:
            Path("fuzz-ptx-failure.ptx").write_text(text)
            print(f"text {number} of seed {parsed.seed} is in fuzz-ptx-failure.ptx", file=sys.stderr)
            raise
        told[came] = told.get(came, 0) + 1
        assert time.monotonic() - started < SLOWEST, f"text {number} takes too long"
    print(f"{parsed.count} texts: {', '.join(f'{count} {came}' for came, count in sorted(told.items()))}")


if __name__ == "__main__":
    main()
