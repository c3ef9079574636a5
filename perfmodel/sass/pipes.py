"""Tells which of a multiprocessor's pipes an instruction goes to, by its opcode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from perfmodel.sass.reading import Instruction

_PIPES = {
    "fma": "FFMA FMUL FADD IMAD IMUL HFMA2 HADD2 HMUL2 FSWZADD FFMA32I FMUL32I FADD32I IDP IDP4A",
    "fp64": "DFMA DMUL DADD DSETP DMNMX",
    "special": "MUFU I2F F2I F2F FRND POPC FLO BREV",
    "tensor": "HMMA IMMA DMMA BMMA QMMA HGMMA IGMMA QGMMA BGMMA UTCHMMA UTCQMMA",
    "memory": "LDG STG LD ST LDL STL LDS STS LDSM STSM ATOM ATOMG ATOMS RED REDG LDGSTS UBLKCP UTMALDG UTMASTG SHFL "
    "MATCH CCTL REDUX LDGDEPBAR",
    "constant": "LDC ULDC LDCU",
    "query": "TXQ",
    "texture": "TEX TLD TLD4 TXD TMML SULD SUST SUATOM SURED",
    "control": "BRA BRX JMP EXIT BAR BSSY BSYNC CALL RET WARPSYNC NOP YIELD DEPBAR MEMBAR ERRBAR BREAK BMOV KILL "
    "RPCMOV NANOSLEEP SYNCS WARPGROUP ELECT ACQBULK BPT PREEXIT CGAERRBAR UCGABAR_ARV UCGABAR_WAIT",
}
_WITHIN = {
    **dict.fromkeys(("FFMA", "FMUL", "FADD", "FFMA32I", "FMUL32I", "FADD32I"), "single"),
    **dict.fromkeys(("I2FP", "F2FP"), "convert"),
}
"""These are told apart from what else their pipes do, as other GPUs have other lanes for them."""
CYCLES = {"slots": 1, "query": 25, "single": 1, "fma": 2, "alu": 2, "convert": 2, "fp64": 2, "special": 8}
"""So many cycles of a scheduler an instruction takes of its pipe on a Hopper, whose four schedulers have 32 lanes for
single precision each, half of which multiply whole numbers, 16 for other work on whole numbers and for double
precision, and 4 for special functions and conversions; and of the scheduler itself, or of the texture units of all
four where an image is asked for its size (`benchmarks.pixels`). `benchmarks.issue_rates` measured the others
(docs/results/issue-rates-nvidia-h200-aa3198); the CUDA C++ Programming Guide (throughput of native arithmetic
instructions, compute capability 9.0) has 16 conversions a cycle where 4 were found."""
_TIMES = {
    **dict.fromkeys(("FFMA", "FMUL", "FADD", "FFMA32I", "FMUL32I", "FADD32I", "FSWZADD"), 0.25),
    **dict.fromkeys(("HFMA2", "HADD2", "HMUL2"), 0.25),
    "HADD2.F32": 1.0,
    **dict.fromkeys(("IMAD.WIDE", "IMAD.HI"), 2.0),
}
"""These take so many times their pipe's cycles: single precision spreads over both halves of the lanes and takes
half a cycle of each for half of the instructions, and products of 64 bits are made in two passes."""
_BY_OPCODE = {opcode: pipe for pipe, opcodes in _PIPES.items() for opcode in opcodes.split()}


def pipe_of(instruction: Instruction) -> str:
    """Returns a pipe's name: ``fma``, ``alu``, ``fp64``, ``special``, ``tensor``, ``memory``, ``constant``, ``query``,
    ``texture``, ``uniform`` or ``control``; what is not known by name is taken to be arithmetic of ``alu``."""
    opcode = instruction.opcode
    if opcode in _BY_OPCODE:
        return _BY_OPCODE[opcode]
    return "uniform" if opcode.startswith("U") or opcode in ("S2UR", "R2UR", "VOTEU") else "alu"


def mix_of(code: Iterable[Instruction]) -> dict[str, int]:
    """Returns how many instructions go to each pipe, most first; without those that fill up the code's end."""
    counts = Counter(pipe_of(each) for each in code if each.opcode != "NOP")
    return dict(counts.most_common())


def cycles_by_pipe(code: Iterable[Instruction]) -> dict[str, float]:
    """Returns the cycles that instructions take of each pipe of `CYCLES`; accesses go to pipes of their own, outside of
    the schedulers, and count for none."""
    counts = dict.fromkeys(CYCLES, 0.0)
    for each in code:
        pipe = pipe_of(each)
        if pipe == "memory" or each.opcode == "NOP":
            continue
        counts["slots"] += CYCLES["slots"]
        if within := _WITHIN.get(each.opcode):
            counts[within] += CYCLES[within]
        if pipe in CYCLES:
            counts[pipe] += CYCLES[pipe] * each.of_kind(_TIMES, 1.0)
    return counts
