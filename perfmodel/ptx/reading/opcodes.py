"""The instructions that are understood, with the words that may stand behind each, as the PTX ISA manual names them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfmodel.ptx.types import TYPES, Type

ROUNDING = frozenset(("rn", "rz", "rm", "rp"))
_WHOLE_ROUNDING = frozenset(("rni", "rzi", "rmi", "rpi"))
_COMPARED = frozenset(
    ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
)
_JOINED = frozenset(("and", "or", "xor"))
_CACHING = frozenset(
    (
        *("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first"),
        *("L1::evict_last", "L1::no_allocate", "L2::64B", "L2::128B", "L2::256B", "L2::evict_first", "L2::evict_last"),
        *("L2::evict_normal", "weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "cta", "cluster", "gpu"),
        *("sys", "L2::cache_hint"),
    )
)
_SPACES = frozenset(("global", "shared", "shared::cta", "local", "const", "param", "param::entry", "param::func"))
_FLOAT = ROUNDING | {"ftz", "sat"}
_APPROXIMATE = ROUNDING | {"approx", "full", "ftz"}
_VECTORS = frozenset(("v2", "v4", "v8"))
_VIDEO = frozenset(("sat", "add", "min", "max"))
_ATOMIC = frozenset(("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas", "noftz"))
_SHAPE = re.compile(r"m\d+n\d+(?:k\d+)?|x[124]|n\d+")
_MATRICES = frozenset(
    ("sync", "aligned", "row", "col", "trans", "satfinite", "shared", "shared::cta", "global", "a", "b")
)
_MATRICES |= {"c", "d", "rn"}
_BULK = _CACHING | _SPACES | {"shared::cluster", "tensor", "tile", "bulk_group", "commit_group", "wait_group", "read"}
_BULK |= {
    "add",
    "min",
    "max",
    "and",
    "or",
    "xor",
    "noftz",
    "mbarrier::complete_tx::bytes",
    "prefetch",
    *(f"{rank}d" for rank in range(1, 6)),
}
_TENSOR = frozenset(
    ("shared", "shared::cta", "global", "global_address", "rank", "elemtype", "swizzle_mode", "box_dim")
)
_TENSOR |= {"interleave_layout", "fill_mode", "swizzle_atomicity", "global_dim", "global_stride", "element_stride"}
_BARRIER = frozenset(("shared", "shared::cta", "arrive", "noinc", "expect_tx", "parity", "release", "acquire", "cta"))
_BARRIER |= {"relaxed"}
_ACTIONS = ("init", "inval", "arrive", "expect_tx", "try_wait", "test_wait")
_NONE: frozenset[str] = frozenset()

_OF_SEVERAL_WORDS = {"wmma": 1, "wgmma": 1, "mbarrier": 1, "tensormap": 1}
_COPIES = (("async", "bulk"), ("async", "mbarrier"), ("reduce", "async", "bulk"))
_IMAGES = _VECTORS | {"1d", "2d", "3d", "a1d", "a2d"}
_SURFACES = frozenset(("b", "p", "trap", "clamp", "zero"))
OPCODES: Mapping[str, frozenset[str]] = {
    # Whole numbers and floats.
    "add": _FLOAT | {"cc"},
    "sub": _FLOAT | {"cc"},
    "addc": frozenset(("cc",)),
    "subc": frozenset(("cc",)),
    "mul": _FLOAT | {"lo", "hi", "wide"},
    "mad": _FLOAT | {"lo", "hi", "wide", "cc"},
    "madc": frozenset(("lo", "hi", "cc")),
    "mul24": frozenset(("lo", "hi")),
    "mad24": frozenset(("lo", "hi")),
    "fma": _FLOAT | {"relu"},
    "div": _APPROXIMATE,
    "rem": _NONE,
    "abs": frozenset(("ftz",)),
    "neg": frozenset(("ftz",)),
    "min": frozenset(("ftz", "NaN", "xorsign", "abs")),
    "max": frozenset(("ftz", "NaN", "xorsign", "abs")),
    "sad": _NONE,
    "rcp": _APPROXIMATE,
    "sqrt": _APPROXIMATE,
    "rsqrt": _APPROXIMATE,
    "sin": _APPROXIMATE,
    "cos": _APPROXIMATE,
    "lg2": _APPROXIMATE,
    "ex2": _APPROXIMATE,
    "tanh": _APPROXIMATE,
    "copysign": _NONE,
    "testp": frozenset(("finite", "infinite", "number", "notanumber", "normal", "subnormal")),
    # Bits.
    **dict.fromkeys(("and", "or", "xor", "not", "cnot", "shl", "shr", "popc", "clz", "brev", "bfe", "bfi"), _NONE),
    "bfind": frozenset(("shiftamt",)),
    "fns": _NONE,
    "lop3": _NONE,
    "prmt": frozenset(("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")),
    "shf": frozenset(("l", "r", "wrap", "clamp")),
    **dict.fromkeys(("vshl", "vshr"), frozenset(("wrap", "clamp", "add", "min", "max"))),
    **{f"v{name}{parts}": _VIDEO for name in ("add", "sub", "absdiff", "min", "max") for parts in ("", "2", "4")},
    **dict.fromkeys(("vavrg2", "vavrg4"), _VIDEO),
    "dp4a": _NONE,
    "dp2a": frozenset(("lo", "hi")),
    # Comparison, choice, moves and conversion.
    "setp": _COMPARED | _JOINED | {"ftz"},
    "set": _COMPARED | _JOINED | {"ftz"},
    "selp": _NONE,
    "slct": frozenset(("ftz",)),
    "mov": _NONE,
    "cvt": _WHOLE_ROUNDING | _FLOAT | {"pack", "rna", "satfinite", "relu"},
    "cvta": _SPACES | {"to"},
    "isspacep": _SPACES,
    # Memory.
    "ld": _CACHING | _SPACES | _VECTORS,
    "ldu": _SPACES | _VECTORS,
    "tex": _IMAGES | {"level"},
    "tld4": _IMAGES | {"r", "g", "b", "a"},
    "suld": _IMAGES | _SURFACES,
    "sust": _IMAGES | _SURFACES,
    **dict.fromkeys(("txq", "suq"), frozenset(("width", "height", "depth", "channel_order"))),
    "cp": _CACHING | _SPACES | {"async", "commit_group", "wait_group", "wait_all"},
    "st": _CACHING | _SPACES | _VECTORS,
    "atom": _CACHING | _SPACES | _ATOMIC | _VECTORS,
    "red": _CACHING | _SPACES | _ATOMIC | _VECTORS,
    "prefetch": _CACHING | _SPACES | {"L1", "L2", "tensormap"},
    "prefetchu": frozenset(("L1",)),
    "createpolicy": _CACHING | {"fractional", "range", "cvt", "L2", "global", "L2::evict_unchanged"},
    "membar": frozenset(("cta", "gl", "gpu", "sys")),
    "fence": _CACHING
    | _SPACES
    | {"sc", "proxy", "alias", "async", "async::generic", "mbarrier_init", "shared::cluster", "tensormap::generic"},
    # Matrices. Words of these opcodes may be shapes, too.
    **dict.fromkeys(("ldmatrix", "stmatrix", "mma", "wmma.load", "wmma.store", "wmma.mma"), _MATRICES),
    "wgmma.mma_async": _MATRICES,
    **dict.fromkeys(("wgmma.fence", "wgmma.commit_group", "wgmma.wait_group"), frozenset(("sync", "aligned"))),
    # Copies of tiles, and barriers that wait for them.
    **dict.fromkeys(("cp.async.bulk", "cp.reduce.async.bulk"), _BULK),
    "tensormap.replace": _TENSOR | {"tile", "b1024"},
    "tensormap.cp_fenceproxy": _TENSOR | _CACHING | {"tensormap::generic", "sync", "aligned"},
    "cp.async.mbarrier": _BARRIER,
    **{f"mbarrier.{action}": _BARRIER for action in _ACTIONS},
    # Work-items together.
    "bar": frozenset(("sync", "red", "arrive", "warp", "cta", "popc", "and", "or")),
    "barrier": frozenset(("sync", "red", "arrive", "cta", "aligned", "popc", "and", "or")),
    "shfl": frozenset(("sync", "up", "down", "bfly", "idx")),
    "vote": frozenset(("sync", "all", "any", "uni", "ballot")),
    "match": frozenset(("sync", "any", "all")),
    "redux": frozenset(("sync", "add", "min", "max", "and", "or", "xor")),
    "activemask": _NONE,
    "elect": frozenset(("sync",)),
    # Control flow.
    "bra": frozenset(("uni",)),
    "brx": frozenset(("idx", "uni")),
    "call": frozenset(("uni",)),
    "ret": frozenset(("uni",)),
    "exit": _NONE,
    "trap": _NONE,
    "brkpt": _NONE,
    "nanosleep": _NONE,
    "griddepcontrol": frozenset(("launch_dependents", "wait")),
    "setmaxnreg": frozenset(("inc", "dec", "sync", "aligned")),
}


def parts_of(text: str) -> tuple[str, tuple[str, ...], tuple[Type, ...]] | str:
    """Returns an instruction's opcode, modifiers and types; or the part that is not understood."""
    opcode, *words = text.split(".")
    count = _OF_SEVERAL_WORDS.get(opcode, 0)
    if opcode == "cp":
        count = next((len(own) for own in _COPIES if tuple(words[: len(own)]) == own), 0)
    opcode, words = ".".join((opcode, *words[:count])), words[count:]
    known = OPCODES.get(opcode)
    if known is None:
        return opcode
    modifiers: list[str] = []
    types: list[Type] = []
    for word in words:
        if word in TYPES:
            types.append(TYPES[word])
        elif word in known or (known is _MATRICES and _SHAPE.fullmatch(word)):
            modifiers.append(word)
        else:
            return f".{word}"
    return opcode, tuple(modifiers), tuple(types)
