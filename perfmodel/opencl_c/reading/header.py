"""Every OpenCL C source finds this declared: types, constants, feature macros, and the names of the built-ins.

clang's library knows the built-in functions with all their overloads; it wants the types that they are made of, in a
header of the name below.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product

from perfmodel.opencl_c.lowering.builtin_names import ATOMICS, ROUGH, WORK_ITEM, CollectiveFunction, block_access
from perfmodel.opencl_c.reading.macros import Macro, defined
from perfmodel.opencl_c.reading.tokens import NAME, Token, stripped, tokens_of
from perfmodel.opencl_c.types import SCALARS, WIDTHS, Scalar

HEADER_NAME = "opencl-c-base.h"
STANDARDS = {"CL1.0": 100, "CL1.1": 110, "CL1.2": 120, "CL2.0": 200, "CL3.0": 300}

_C_NAMES = {
    "uchar": "unsigned char",
    "ushort": "unsigned short",
    "uint": "unsigned int",
    "ulong": "unsigned long",
}
_NUMBERS = [scalar for scalar in SCALARS.values() if scalar.name != "bool"]

_EXTENSIONS = """
cl_khr_fp64 cl_khr_fp16 cl_khr_byte_addressable_store cl_khr_3d_image_writes
cl_khr_global_int32_base_atomics cl_khr_global_int32_extended_atomics
cl_khr_local_int32_base_atomics cl_khr_local_int32_extended_atomics
cl_khr_int64_base_atomics cl_khr_int64_extended_atomics
cl_khr_subgroups cl_khr_subgroup_extended_types cl_khr_subgroup_non_uniform_vote cl_khr_subgroup_ballot
cl_khr_subgroup_non_uniform_arithmetic cl_khr_subgroup_shuffle cl_khr_subgroup_shuffle_relative
cl_khr_subgroup_clustered_reduce cl_khr_subgroup_rotate cl_khr_integer_dot_product
"""
"""Sources that ask for extensions find these, which are no single maker's."""

_OF_INTEL = """
cl_intel_subgroups cl_intel_subgroups_char cl_intel_subgroups_short cl_intel_subgroups_long
cl_intel_required_subgroup_size
"""
"""Functions of these are there as well, but sources that ask for them take their way for other GPUs."""

_OPTIONAL = """
__opencl_c_fp64 __opencl_c_int64 __opencl_c_generic_address_space __opencl_c_subgroups
__opencl_c_work_group_collective_functions __opencl_c_atomic_order_acq_rel __opencl_c_atomic_order_seq_cst
__opencl_c_atomic_scope_device __opencl_c_atomic_scope_all_devices
__opencl_c_images __opencl_c_3d_image_writes __opencl_c_read_write_images
"""
"""OpenCL C 3.0 has these features where their macros are defined; 2.0 has them all."""

_OVERLOADS = """
__opencl_c_named_address_space_builtins __opencl_subgroup_builtins
__opencl_c_integer_dot_product_input_4x8bit __opencl_c_integer_dot_product_input_4x8bit_packed
"""
"""These make clang's library show built-ins of pointers to each address space, and those of sub-groups."""

_TYPES = """
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef uint cl_mem_fence_flags;
typedef enum memory_scope { memory_scope_work_item, memory_scope_work_group, memory_scope_device,
    memory_scope_all_svm_devices, memory_scope_sub_group } memory_scope;
typedef enum memory_order { memory_order_relaxed, memory_order_acquire = 2, memory_order_release,
    memory_order_acq_rel, memory_order_seq_cst } memory_order;
int printf(__constant const char *format, ...);
"""

_OF_COMPILERS = """
__SIZE_TYPE__ unsigned long
__PTRDIFF_TYPE__ long
__INTPTR_TYPE__ long
__UINTPTR_TYPE__ unsigned long
__INT8_TYPE__ signed char
__INT16_TYPE__ short
__INT32_TYPE__ int
__INT64_TYPE__ long
__UINT8_TYPE__ unsigned char
__UINT16_TYPE__ unsigned short
__UINT32_TYPE__ unsigned int
__UINT64_TYPE__ unsigned long
__INTPTR_WIDTH__ 64
__SIZE_WIDTH__ 64
__INT_WIDTH__ 32
__LONG_WIDTH__ 64
__CHAR_BIT__ 8
__INT_MAX__ 2147483647
__LONG_MAX__ 0x7fffffffffffffffL
__FLT_MAX__ 0x1.fffffep127f
__FLT_MIN__ 0x1.0p-126f
__FLT_EPSILON__ 0x1.0p-23f
__builtin_expect(value, likely) (value)
__builtin_assume(condition) ((void)0)
__builtin_unreachable() ((void)0)
__builtin_popcount(bits) ((int)popcount((uint)(bits)))
__builtin_clz(bits) ((int)clz((uint)(bits)))
__builtin_ctz(bits) (31 - (int)clz((uint)(bits) & -(uint)(bits)))
"""
"""Clang, of which drivers are made, has these in every language: own headers of sources make types of some."""
_CONSTANTS = """
CHAR_BIT 8
SCHAR_MAX 127
SCHAR_MIN (-128)
CHAR_MAX 127
CHAR_MIN (-128)
UCHAR_MAX 255
SHRT_MAX 32767
SHRT_MIN (-32768)
USHRT_MAX 65535
INT_MAX 2147483647
INT_MIN (-2147483647 - 1)
UINT_MAX 0xffffffffU
LONG_MAX 0x7fffffffffffffffL
LONG_MIN (-0x7fffffffffffffffL - 1)
ULONG_MAX 0xffffffffffffffffUL
FLT_DIG 6
FLT_MANT_DIG 24
FLT_MAX_10_EXP 38
FLT_MAX_EXP 128
FLT_MIN_10_EXP (-37)
FLT_MIN_EXP (-125)
FLT_RADIX 2
FLT_MAX 0x1.fffffep127f
FLT_MIN 0x1.0p-126f
FLT_EPSILON 0x1.0p-23f
DBL_DIG 15
DBL_MANT_DIG 53
DBL_MAX_10_EXP 308
DBL_MAX_EXP 1024
DBL_MIN_10_EXP (-307)
DBL_MIN_EXP (-1021)
DBL_RADIX 2
DBL_MAX 0x1.fffffffffffffp1023
DBL_MIN 0x1.0p-1022
DBL_EPSILON 0x1.0p-52
HALF_DIG 3
HALF_MANT_DIG 11
HALF_MAX_10_EXP 4
HALF_MAX_EXP 16
HALF_MIN_10_EXP (-4)
HALF_MIN_EXP (-13)
HALF_RADIX 2
HALF_MAX 0x1.ffcp15h
HALF_MIN 0x1.0p-14h
HALF_EPSILON 0x1.0p-10h
FP_ILOGB0 (-2147483647 - 1)
FP_ILOGBNAN 2147483647
MAXFLOAT 0x1.fffffep127f
HUGE_VALF __builtin_huge_valf()
HUGE_VAL __builtin_huge_val()
INFINITY __builtin_inff()
NAN __builtin_nanf("")
NULL ((void*)0)
CLK_LOCAL_MEM_FENCE 1
CLK_GLOBAL_MEM_FENCE 2
CLK_IMAGE_MEM_FENCE 4
CLK_NORMALIZED_COORDS_FALSE 0
CLK_NORMALIZED_COORDS_TRUE 1
CLK_ADDRESS_NONE 0
CLK_ADDRESS_CLAMP_TO_EDGE 2
CLK_ADDRESS_CLAMP 4
CLK_ADDRESS_REPEAT 6
CLK_ADDRESS_MIRRORED_REPEAT 8
CLK_FILTER_NEAREST 0x10
CLK_FILTER_LINEAR 0x20
CLK_R 0x10B0
CLK_A 0x10B1
CLK_RG 0x10B2
CLK_RA 0x10B3
CLK_RGB 0x10B4
CLK_RGBA 0x10B5
CLK_BGRA 0x10B6
CLK_SNORM_INT8 0x10D0
CLK_SNORM_INT16 0x10D1
CLK_UNORM_INT8 0x10D2
CLK_UNORM_INT16 0x10D3
CLK_SIGNED_INT8 0x10D7
CLK_SIGNED_INT16 0x10D8
CLK_SIGNED_INT32 0x10D9
CLK_UNSIGNED_INT8 0x10DA
CLK_UNSIGNED_INT16 0x10DB
CLK_UNSIGNED_INT32 0x10DC
CLK_HALF_FLOAT 0x10DD
CLK_FLOAT 0x10DE
__IMAGE_SUPPORT__ 1
ATOMIC_VAR_INIT(X) (X)
ATOMIC_FLAG_INIT 0
"""

_MATHEMATICAL = {
    "E": "2.718281828459045235360287471352662",
    "LOG2E": "1.442695040888963407359924681001892",
    "LOG10E": "0.434294481903251827651128918916605",
    "LN2": "0.693147180559945309417232121458177",
    "LN10": "2.302585092994045684017991454684364",
    "PI": "3.141592653589793238462643383279503",
    "PI_2": "1.570796326794896619231321691639751",
    "PI_4": "0.785398163397448309615660845819876",
    "1_PI": "0.318309886183790671537767526745029",
    "2_PI": "0.636619772367581343075535053490057",
    "2_SQRTPI": "1.128379167095512573896158903121545",
    "SQRT2": "1.414213562373095048801688724209698",
    "SQRT1_2": "0.707106781186547524400844362104849",
}

_FEATURES = """
CL_VERSION_1_0 100
CL_VERSION_1_1 110
CL_VERSION_1_2 120
CL_VERSION_2_0 200
CL_VERSION_3_0 300
__OPENCL_VERSION__ 300
__ENDIAN_LITTLE__ 1
FP_FAST_FMAF 1
FP_FAST_FMA 1
__kernel_exec(X,typen) __kernel __attribute__((work_group_size_hint(X,1,1))) __attribute__((vec_type_hint(typen)))
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


BUILTINS = (
    _names(
        """
    acos acosh acospi asin asinh asinpi atan atan2 atanh atanpi atan2pi cbrt ceil copysign cos cosh cospi erfc erf
    exp exp2 exp10 expm1 fabs fdim floor fma fmax fmin fmod fract frexp hypot ilogb ldexp lgamma lgamma_r log log2
    log10 log1p logb mad maxmag minmag modf nan nextafter pow pown powr remainder remquo rint rootn round rsqrt sin
    sincos sinh sinpi sqrt tan tanh tanpi tgamma trunc
    abs abs_diff add_sat hadd rhadd clamp clz ctz mad_hi mad_sat max min mul_hi rotate sub_sat upsample popcount
    mad24 mul24
    degrees mix radians step smoothstep sign
    cross dot distance length normalize fast_distance fast_length fast_normalize
    isequal isnotequal isgreater isgreaterequal isless islessequal islessgreater isfinite isinf isnan isnormal
    isordered isunordered signbit any all bitselect select
    barrier work_group_barrier sub_group_barrier mem_fence read_mem_fence write_mem_fence atomic_work_item_fence
    read_imagef read_imagei read_imageui read_imageh write_imagef write_imagei write_imageui write_imageh
    get_image_width get_image_height get_image_depth get_image_dim get_image_array_size
    get_image_channel_data_type get_image_channel_order
    async_work_group_copy async_work_group_strided_copy wait_group_events prefetch printf
    shuffle shuffle2 vload_half vstore_half vstore_half_rte vstore_half_rtz vstore_half_rtp vstore_half_rtn
    """
    )
    | {f"{kind}_{name}" for kind in ("half", "native") for name in ROUGH}
    | WORK_ITEM
)

_BUILTIN_PATTERN = re.compile(
    r"""as_\w+ | convert_[a-z]+\d*(?:_sat)?(?:_rt[eznp])?
    | vload(?:2|3|4|8|16) | vstore(?:2|3|4|8|16)
    | vloada?_half(?:2|3|4|8|16)? | vstorea?_half(?:2|3|4|8|16)?(?:_rt[eznp])?
    | dot_acc_sat | dot(?:_acc_sat)?_4x8packed_(?:uu_uint|ss_int|us_int|su_int)
    | atom(?:ic)?_(?:add|sub|xchg|inc|dec|cmpxchg|min|max|and|or|xor)
    | atomic_(?:fetch_(?:add|sub|or|xor|and|min|max)|load|store|exchange|compare_exchange_(?:strong|weak)
        |flag_test_and_set|flag_clear)(?:_explicit)? | atomic_init""",
    re.VERBOSE,
)


def is_builtin(name: str) -> bool:
    known = name in BUILTINS or _BUILTIN_PATTERN.fullmatch(name) or CollectiveFunction.of(name) or block_access(name)
    return bool(known)


@cache
def predefined(standard: str) -> dict[str, Macro]:
    """Returns the macros that a compiler defines by itself; they are not to be changed."""
    lines = [line for text in (_CONSTANTS, _OF_COMPILERS, _FEATURES) for line in text.strip().splitlines()]
    lines.append(f"__OPENCL_C_VERSION__ {STANDARDS[standard]}")
    lines += [f"{name} 1" for name in (_EXTENSIONS + (_OPTIONAL if standard == "CL3.0" else "")).split()]
    for name, value in _MATHEMATICAL.items():
        lines += [f"M_{name} {value}", f"M_{name}_F {value}f", f"M_{name}_H {value}h"]
    macros = [
        defined(stripped(list(tokens_of(line, ""))), Token(kind=NAME, text="define", file="", line=0, column=0))
        for line in lines
    ]
    return {macro.name: macro for macro in macros}


@cache
def _typedefs() -> str:
    # clang's library shows the built-ins of an extension only where its macro is there.
    lines = [f"#define {name} 1" for name in (_EXTENSIONS + _OF_INTEL + _OPTIONAL + _OVERLOADS).split()]
    lines += [f"typedef {c_name} {name};" for name, c_name in _C_NAMES.items()] + [_TYPES]
    lines += [
        f"typedef {scalar.name} {scalar.name}{width} __attribute__((ext_vector_type({width})));"
        for scalar, width in product(_NUMBERS, WIDTHS)
    ]
    return "\n".join(lines)


@cache
def _reinterpretations(name: str) -> str:
    """Returns the overloads of ``as_<name>``, one from every type of the same size."""
    sized: list[tuple[str, int]] = []
    for scalar in _NUMBERS:
        sized += [(f"{scalar.name}{_written(width)}", _bytes(scalar, width)) for width in (1, *WIDTHS)]
    size = dict(sized).get(name)
    overloads = [f"{name} __attribute__((overloadable)) as_{name}({one});" for one, bytes_ in sized if bytes_ == size]
    return "\n".join(overloads)


@cache
def _of_intel(name: str) -> str:
    """Returns the overloads of an ``intel_sub_group_…`` function, which clang's library does not know."""
    head, types = "__attribute__((overloadable))", [scalar.name for scalar in _NUMBERS]
    vectors = [f"{type_}{_written(width)}" for type_ in types for width in (1, *WIDTHS)]
    if name.endswith(("shuffle", "shuffle_xor")):
        return "\n".join(f"{one} {head} {name}({one}, uint);" for one in vectors)
    if name.endswith(("shuffle_up", "shuffle_down")):
        return "\n".join(f"{one} {head} {name}({one}, {one}, uint);" for one in vectors)
    access = block_access(name)
    if access is None:
        return ""
    is_store, width = access
    suffix = next((end for end in _BLOCK_TYPES if f"_{end}" in name), "ui")
    element = _BLOCK_TYPES[suffix]
    vector = f"{element}{_written(width)}"
    lines = []
    for space in ("__global", "__local"):
        if is_store:
            lines.append(f"void {head} {name}({space} {element} *, {vector});")
        else:
            lines.append(f"{vector} {head} {name}(const {space} {element} *);")
    return "\n".join(lines)


@cache
def _of_atomics(operation: str) -> str:
    """Returns the overloads of an ``atomic_…`` function, of which clang's library has those of 32 bits alone.

    NVIDIA's compiler has those of 64 bits as well. Where one is declared, clang looks for no others.
    """
    lines = []
    for one in ("int", "uint", "long", "ulong", *(("float",) if operation == "xchg" else ())):
        others = f", {one}" * ATOMICS[operation]
        for space in ("__global", "__local"):
            lines.append(f"{one} __attribute__((overloadable)) atomic_{operation}(volatile {space} {one} *{others});")
    return "\n".join(lines)


_CLASSIC = ATOMICS.keys() - {"load", "store"}
"""Atomics of OpenCL C 1.2; those of 2.0 are of types of their own."""
_BLOCK_TYPES = {"uc": "uchar", "us": "ushort", "ui": "uint", "ul": "ulong"}


def header(source: str) -> str:
    """Returns the header for `source`, with those of the functions of many overloads that the source names."""
    used = sorted(set(re.findall(r"\bas_(\w+)\s*\(", source)))
    of_intel = sorted(set(re.findall(r"\bintel_sub_group_\w+", source)))
    atomics = [name for name in sorted(set(re.findall(r"\batomic_(\w+)\s*\(", source))) if name in _CLASSIC]
    parts = (*map(_reinterpretations, used), *map(_of_intel, of_intel), *map(_of_atomics, atomics))
    return "\n".join([_typedefs(), *parts])


def _written(width: int) -> str:
    return "" if width == 1 else str(width)


def _bytes(scalar: Scalar, width: int) -> int:
    return scalar.size * (4 if width == 3 else width)
