"""Tells which units of a core an instruction keeps busy: how many operations each gets of it, or for how many cycles.

Numbers of operations are those of AMD's and Intel's cores since 2019 (A. Fog, Instruction tables, 2025; uops.info), and
rough on purpose: how long an operation of a unit takes is found out by measuring.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

from perfmodel.x86.instructions import Instruction

UNITS: Mapping[str, str] = {
    "slots": "operations that a core issues",
    "loads": "loads",
    "stores": "stores",
    "floats": "floating-point operations, and products of whole numbers in vectors",
    "shuffles": "instructions that move lanes of vectors",
    "transfers": "values that go between vectors and other registers",
    "divides": "cycles of the unit that divides and draws roots",
    "whole": "whole-number instructions outside of vectors",
    "products": "cycles of products and divisions of whole numbers outside of vectors",
    "gathers": "cycles of instructions that gather lanes",
    "masked": "stores of vectors under a mask, eight numbers at a time",
    "atomics": "atomics",
    "branches": "branches",
    "guesses": "branches that data decide, where a core guesses wrongly",
    "functions": "cycles of functions of vectors",
    "calls": "calls of other functions",
}
"""The units of a core, each with what is counted of it."""
CYCLES = frozenset(("divides", "products", "gathers", "functions"))
"""The units whose operations differ, so that cycles are counted of them: those of one core of 2020."""
_MASKED = re.compile(r"vp?maskmov(ps|pd|d|q)")
_GATHERS = re.compile(r"vp?(gather|scatter)(d|q)(ps|pd|d|q)")
GATHERED = 1.5
"""Cycles for each lane that is gathered; AVX-512 gathers two in that time."""
_WIDE_DIVISIONS = {"vdivps": 3.4, "vdivss": 3.4, "vdivpd": 4.3, "vdivsd": 4.3}
_ROOTS = {"vsqrtps": 4.8, "vsqrtss": 4.8, "vsqrtpd": 8.2, "vsqrtsd": 8.2}
_DIVIDES = {**_WIDE_DIVISIONS, **_ROOTS}
"""Cycles between two of them; vectors of 512 bits take twice as long."""
_WHOLE_DIVISIONS, DIVIDED_IN = ("div", "idiv"), 6.0
"""Divisions of whole numbers outside of vectors, and the cycles between two of them; between two products it is one."""
_SHUFFLES = re.compile(
    "vinsert|vextract|vperm|vp?shuf|vp?unpck|vp?broadcast|vpack|vpmov[sz]x|v?palign|valign|vmovlh|vmovhl|vps[lr]ldq"
    "|vp?compress|vp?expand"
)
_INTO_OTHERS = ("vpextr", "vpinsr", "vextractps", "vmovmsk", "vpmovmsk", "kmov")
_NOTHING = ("nop", "endbr64", "vzeroupper", "int3", "ud2")
_CALCULATED = re.compile(
    r"__ocl_svml_(?P<set>\w)\d_(?P<name>erfc?|[a-z]+?\d*?p?)(?P<single>f?)(?P<lanes>1|2|4|8|16|32)(?P<kind>_\w+)?$"
)
OF_AVX512 = "z"
"""The names of functions for AVX-512 have this letter."""
_FUNCTIONS = {
    "exp": 12, "exp2": 28, "exp10": 31, "expm1": 36, "log": 13, "log2": 27, "log10": 29, "log1p": 40, "sin": 18,
    "cos": 26, "sincos": 35, "sinpi": 10, "cospi": 9, "tan": 35, "sinh": 17, "cosh": 13, "tanh": 31, "pow": 88,
    "pown": 17, "powr": 88, "idiv": 30, "irem": 34, "udiv": 30, "urem": 34, "asin": 14, "acos": 13, "atan": 12,
    "atan2": 22, "erf": 20, "cbrt": 33, "hypot": 8, "sqrt": 5, "rsqrt": 8,
}  # fmt: skip
"""Cycles from one call to the next, of a vector of eight lanes in single precision: roughly those of a Zen 3, in loops
that do nothing else."""
_NATIVE = {
    "exp": 8, "exp2": 8, "exp10": 9, "log": 10, "log2": 12, "log10": 12, "sin": 20, "cos": 20, "tan": 33, "powr": 26,
}  # fmt: skip
"""The same of ``native_`` functions."""
_DOUBLE = {"exp2": 12, "sin": 12, "pow": 36, "pown": 9, "powr": 36}
"""The same of functions of doubles that take another part of what vectors of floats take, for as many bytes."""
PER_CYCLE = 2.0
"""A function counts so many for each cycle of a Zen 3 that those above say; one of vectors of 512 bits that those below
lack counts one."""
_WIDE_FLOATS = {
    "exp": 30, "exp2": 24, "exp10": 32, "expm1": 54, "log": 37, "log2": 43, "log10": 45, "log1p": 59, "sin": 58,
    "cos": 62, "sincos": 75, "tan": 127, "asin": 43, "acos": 44, "atan": 45, "atan2": 95, "sinh": 46, "cosh": 37,
    "tanh": 48, "erf": 94, "cbrt": 49, "hypot": 22, "pow": 102, "powr": 84, "pown": 35, "rsqrt": 20,
}  # fmt: skip
_WIDE_NATIVE = {
    "exp": 22, "exp2": 15, "exp10": 18, "log": 22, "log2": 22, "log10": 22, "sin": 49, "cos": 56, "tan": 90, "powr": 52,
}  # fmt: skip
_WIDE_DOUBLES = {
    "exp": 32, "exp2": 22, "exp10": 31, "expm1": 59, "log": 55, "log2": 54, "log10": 58, "log1p": 64, "sin": 73,
    "cos": 68, "sincos": 93, "tan": 64, "asin": 57, "acos": 59, "atan": 47, "atan2": 94, "sinh": 94, "cosh": 42,
    "tanh": 125, "erf": 82, "cbrt": 57, "hypot": 22, "pow": 105, "powr": 105, "pown": 22, "rsqrt": 19,
}  # fmt: skip
"""The same of vectors of 512 bits, on a Xeon, a Zen 4 and a Zen 5, whose times say nearly the same
(`benchmarks.function_cycles`). Those of ``sincos``, which that has not, are what a few kernels took on a Zen 5. Those
of ``pown`` are for exponents below 8, which nearly all kernels ask for; larger ones take several times as long."""
_USUAL_FUNCTION = 25
_OF_TWO = frozenset(("pow", "pown", "powr", "atan2", "hypot", "fmod", "idiv", "irem", "udiv", "urem"))


def units_of(instructions: Iterable[Instruction]) -> Mapping[str, float]:
    """Returns what instructions ask of the units of a core, by the names of `UNITS`."""
    found: defaultdict[str, float] = defaultdict(float)
    for each in instructions:
        _add(each, found)
    return found


def _add(each: Instruction, found: defaultdict[str, float]) -> None:
    name, is_vector = each.name, bool(each.bytes)
    if name.startswith(_NOTHING):
        return
    if name.startswith("lock") or name in ("cmpxchg", "xadd") or (name == "xchg" and each.stores):
        found["atomics"] += 1
        return
    if each.callee or name == "call":
        _add_call(each, found)
        return
    if gathers := _GATHERS.fullmatch(name):
        lanes = each.bytes / max(_bytes(gathers[2]), _bytes(gathers[3]))
        found["gathers"] += lanes * (GATHERED if each.bytes < 64 else GATHERED / 2)
        return
    if (masked := _MASKED.fullmatch(name)) and each.stores:
        found["masked"] += each.bytes / _bytes(masked[1]) / 8
        return
    if each.stores:
        found["stores"] += 1
    if each.loads:
        found["loads"] += 1
    found["slots"] += 1
    if each.jumps:
        found["branches"] += 1
    elif name in _DIVIDES:
        found["divides"] += _DIVIDES[name] * (2 if each.bytes == 64 else 1)
    elif name.startswith(_INTO_OTHERS):
        found["transfers"] += 1
        found["slots"] += not each.stores
        found["shuffles"] += name.startswith(("vpextr", "vpinsr"))
    elif name.startswith(("vmov", "mov")):
        _add_move(each, found)
    elif name in _WHOLE_DIVISIONS:
        found["products"] += DIVIDED_IN
    elif not is_vector:
        found["products" if name.startswith(("imul", "mul")) else "whole"] += 1
    elif _SHUFFLES.match(name):
        found["shuffles"] += 1
    elif name.startswith("vdpp"):
        found["floats"] += 7
        found["slots"] += 5
    elif not name.startswith(("vp", "vand", "vor", "vxor", "vblend", "vtest")) or name.startswith("vpmul"):
        found["floats"] += 1


def _add_move(each: Instruction, found: defaultdict[str, float]) -> None:
    """Adds a copy, which is a load, a store, or next to nothing, but between the two kinds of registers."""
    if each.loads or each.stores:
        return
    kinds = {register[0] == "v" for register in (*each.reads, *each.writes)}
    if kinds == {True, False}:
        found["transfers"] += 1
    elif each.name in ("movzx", "movsx", "movsxd"):
        found["whole"] += 1


def _add_call(each: Instruction, found: defaultdict[str, float]) -> None:
    found["slots"] += 2
    cycles = function_cycles(each.callee)
    found["functions" if cycles else "calls"] += cycles or 1


@cache
def function_cycles(callee: str) -> float:
    """Returns what a function of vectors takes from one call to the next, `PER_CYCLE` for each cycle of a Zen 3; 0 for
    any other function."""
    calculated = _CALCULATED.match(callee)
    if calculated is None:
        return 0.0
    name, lanes = calculated["name"], int(calculated["lanes"])
    is_native = calculated["kind"] == "_native"
    is_double = not calculated["single"] and name not in ("idiv", "irem", "udiv", "urem")
    wide = _WIDE_DOUBLES if is_double else _WIDE_FLOATS | (_WIDE_NATIVE if is_native else {})
    of_512_bits = lanes / (8 if is_double else 16)
    is_wide = calculated["set"] == OF_AVX512 and of_512_bits >= 1
    if is_wide and name in wide:
        return wide[name] * of_512_bits
    known = (_FUNCTIONS | _DOUBLE if is_double else _FUNCTIONS) | (_NATIVE if is_native else {})
    cycles = float(known.get(name, _USUAL_FUNCTION)) * (1.0 if is_wide else PER_CYCLE)
    if is_double:
        cycles *= 1.3 * max(1.0, lanes / 4)
    elif lanes > 8:
        cycles *= 1.5
    return cycles * (0.7 if lanes == 1 else 1.0)


def arguments_of(callee: str) -> int:
    """Returns how many vectors a function of vectors takes; 1 for any other function."""
    calculated = _CALCULATED.match(callee)
    return 2 if calculated is not None and calculated["name"] in _OF_TWO else 1


def is_of_one(callee: str) -> bool:
    """Returns whether a function of vectors takes single numbers."""
    calculated = _CALCULATED.match(callee)
    return calculated is not None and calculated["lanes"] == "1"


def _bytes(letters: str) -> int:
    return 4 if letters in ("d", "ps") else 8
