"""One call of OpenCL C's functions counts as these operations, in the kinds of the feature family ``op``."""

from __future__ import annotations

from collections.abc import Mapping

Count = tuple[str, int, int]
"""A count is a kind, how often it happens per component, and how often besides."""

_DOT: tuple[Count, ...] = (("madd", 1, -1), ("mul", 0, 1))
_SIGNS = ("uu_uint", "ss_int", "us_int", "su_int")
_FAST_LENGTH: tuple[Count, ...] = (*_DOT, ("sqrt", 0, 1))
_FAST_NORMALIZE: tuple[Count, ...] = (*_DOT, ("rsqrt", 0, 1), ("mul", 1, 0))
# What must not overflow on the way divides by the largest component first, as NVIDIA's library does.
_LARGEST: tuple[Count, ...] = (("fabs", 1, 0), ("max", 1, -1), ("compare", 1, 1))
_LENGTH: tuple[Count, ...] = (*_LARGEST, ("div", 1, 0), *_FAST_LENGTH, ("mul", 0, 1))
_NORMALIZE: tuple[Count, ...] = (*_LENGTH, ("div", 1, 0))
_EACH_COMPARED: tuple[Count, ...] = (("compare", 1, 0),)
_EACH_BITWISE: tuple[Count, ...] = (("bitwise", 1, 0),)

_ONE: tuple[Count, ...] = (("native", 1, 0),)
_SCALED: tuple[Count, ...] = (("native", 1, 0), ("mul", 1, 0))

OPERATIONS: Mapping[str, tuple[Count, ...]] = {
    # One instruction of a GPU's special-function units, or several.
    **dict.fromkeys(("native_exp2", "native_log2", "native_sin", "native_cos"), _ONE),
    **dict.fromkeys(("native_exp", "native_exp10", "native_log", "native_log10"), _SCALED),
    "native_powr": (("native", 2, 0), ("mul", 1, 0)),
    "native_tan": (("native", 2, 0), ("div", 1, 0)),
    # Plain arithmetic.
    "fma": (("madd", 1, 0),),
    "mad": (("madd", 1, 0),),
    "mad24": (("madd", 1, 0),),
    "mad_hi": (("madd", 1, 0),),
    "mad_sat": (("madd", 1, 0),),
    "mul24": (("mul", 1, 0),),
    "mul_hi": (("mul", 1, 0),),
    "divide": (("div", 1, 0),),
    "recip": (("div", 1, 0),),
    "add_sat": (("add", 1, 0),),
    "sub_sat": (("add", 1, 0),),
    "abs_diff": (("add", 1, 0), ("abs", 1, 0)),
    "hadd": (("add", 1, 0), ("shift", 1, 0)),
    "rhadd": (("add", 2, 0), ("shift", 1, 0)),
    "fdim": (("add", 1, 0), ("max", 1, 0)),
    "fmax": (("max", 1, 0),),
    "fmin": (("min", 1, 0),),
    "max": (("max", 1, 0),),
    "min": (("min", 1, 0),),
    "maxmag": (("fabs", 2, 0), ("max", 1, 0)),
    "minmag": (("fabs", 2, 0), ("min", 1, 0)),
    "clamp": (("min", 1, 0), ("max", 1, 0)),
    "degrees": (("mul", 1, 0),),
    "radians": (("mul", 1, 0),),
    "mix": (("add", 1, 0), ("madd", 1, 0)),
    "step": _EACH_COMPARED,
    "sign": _EACH_COMPARED,
    "smoothstep": (("add", 2, 0), ("div", 1, 0), ("min", 1, 0), ("max", 1, 0), ("mul", 2, 0), ("madd", 1, 0)),
    # Powers, whatever their exponent; NVIDIA's library takes twice the instructions of `pow` for `pown`.
    "pow": (("pow", 1, 0),),
    "pown": (("pow", 2, 0),),
    "powr": (("log", 1, 0), ("exp", 1, 0), ("mul", 1, 0)),
    # Vectors as a whole.
    "dot": _DOT,
    "dot_acc_sat": (("madd", 1, 0),),
    **dict.fromkeys((f"dot_4x8packed_{signs}" for signs in _SIGNS), (("mul", 0, 1), ("madd", 0, 3))),
    **dict.fromkeys((f"dot_acc_sat_4x8packed_{signs}" for signs in _SIGNS), (("madd", 0, 4),)),
    "length": _LENGTH,
    "fast_length": _FAST_LENGTH,
    "distance": (("add", 1, 0), *_LENGTH),
    "fast_distance": (("add", 1, 0), *_FAST_LENGTH),
    "normalize": _NORMALIZE,
    "fast_normalize": _FAST_NORMALIZE,
    "cross": (("mul", 0, 3), ("madd", 0, 3)),
    # Calls with two results: the second one comes with the first; a cosine of what a sine has reduced is a polynomial.
    "fract.0": (("floor", 1, 0), ("add", 1, 0), ("min", 1, 0)),
    "fract.1": (),
    "modf.0": (("trunc", 1, 0), ("add", 1, 0)),
    "modf.1": (),
    "sincos.0": (("sin", 1, 0),),
    "sincos.1": (("madd", 6, 0),),
    "frexp.0": (("frexp", 1, 0),),
    "frexp.1": (),
    "remquo.0": (("remquo", 1, 0),),
    "remquo.1": (),
    "lgamma_r.0": (("lgamma", 1, 0),),
    "lgamma_r.1": (),
    # Tests and bits.
    **dict.fromkeys(("isequal", "isnotequal", "isgreater", "isgreaterequal", "isless", "islessequal"), _EACH_COMPARED),
    **dict.fromkeys(("islessgreater", "isordered", "isunordered", "isnormal"), _EACH_COMPARED),
    **dict.fromkeys(("signbit", "copysign", "any", "all", "select", "bitselect"), _EACH_BITWISE),
    "rotate": (("shift", 1, 0),),
    "upsample": (("shift", 1, 0), ("bitwise", 1, 0)),
    # Constants and moved components.
    "nan": (),
    "shuffle": (),
    "shuffle2": (),
}
"""This table has all built-ins that count as another operation than their own name; prefixes that it lacks change
nothing."""


def widened(dtype: str) -> str:
    """Returns the type in whose registers compilers compute whole numbers of 8 and 16 bits."""
    return {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}.get(dtype, dtype)


def operations_of(name: str, width: int = 1) -> Mapping[str, int]:
    """Returns the operations that one call does for one work-item, by kind.

    Args:
        width: components of its widest argument.
    """
    base = name.removeprefix("native_").removeprefix("half_")
    total: dict[str, int] = {}
    for kind, each, besides in OPERATIONS.get(name) or OPERATIONS.get(base, ((base, 1, 0),)):
        total[kind] = total.get(kind, 0) + each * width + besides
    return {kind: times for kind, times in total.items() if times}


def has_reciprocal(divisor: float) -> bool:
    """Returns whether a float of 32 bits and its reciprocal are normal numbers, neither of them close to the limits."""
    return 2.0**-125 <= abs(divisor) <= 2.0**125
