"""Makes CUDA C++ of OpenCL C, as far as a header and three changes of the text go; what is left is the compiler's to
refuse."""

from __future__ import annotations

import re
from collections.abc import Sequence

HEADER = r"""
typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned long ulong;
#define __kernel extern "C" __global__
#define kernel __kernel
#define __global
#define __constant __constant__
#define __private
#define restrict __restrict__
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define M_PI_F 3.14159265358979323846f
#define M_SQRT1_2_F 0.70710678118654752440f
#define M_1_PI_F 0.31830988618379067154f
#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define MAXFLOAT 3.402823466e38f
#define barrier(flags) __syncthreads()
#define mem_fence(flags) __threadfence_block()
#define OPENCL static __device__ __forceinline__
OPENCL int get_global_id(int d) {
    return d == 0 ? blockIdx.x * blockDim.x + threadIdx.x
         : d == 1 ? blockIdx.y * blockDim.y + threadIdx.y : blockIdx.z * blockDim.z + threadIdx.z;
}
OPENCL int get_local_id(int d) { return d == 0 ? threadIdx.x : d == 1 ? threadIdx.y : threadIdx.z; }
OPENCL int get_group_id(int d) { return d == 0 ? blockIdx.x : d == 1 ? blockIdx.y : blockIdx.z; }
OPENCL int get_local_size(int d) { return d == 0 ? blockDim.x : d == 1 ? blockDim.y : blockDim.z; }
OPENCL int get_num_groups(int d) { return d == 0 ? gridDim.x : d == 1 ? gridDim.y : gridDim.z; }
OPENCL int get_global_size(int d) { return get_num_groups(d) * get_local_size(d); }
template <typename T> OPENCL T mad(T a, T b, T c) { return a * b + c; }
template <typename T> OPENCL T clamp(T x, T low, T high) { return min(max(x, low), high); }
template <typename T> OPENCL T mix(T a, T b, T t) { return a + (b - a) * t; }
OPENCL float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x; }
OPENCL float degrees(float x) { return x * 57.29577951308232f; }
OPENCL float radians(float x) { return x * 0.017453292519943295f; }
OPENCL uint rotate(uint x, uint n) { return __funnelshift_l(x, x, n); }
OPENCL int popcount(uint x) { return __popc(x); }
OPENCL int popcount(int x) { return __popc(x); }
OPENCL int clz(int x) { return __clz(x); }
OPENCL int clz(uint x) { return __clz(x); }
OPENCL int mad24(int a, int b, int c) { return __mul24(a, b) + c; }
OPENCL int mul24(int a, int b) { return __mul24(a, b); }
OPENCL uint mul_hi(uint a, uint b) { return __umulhi(a, b); }
OPENCL int mul_hi(int a, int b) { return __mulhi(a, b); }
OPENCL float as_float(uint x) { return __uint_as_float(x); }
OPENCL float as_float(int x) { return __int_as_float(x); }
OPENCL uint as_uint(float x) { return __float_as_uint(x); }
OPENCL uint as_uint(int x) { return x; }
OPENCL int as_int(float x) { return __float_as_int(x); }
OPENCL int as_int(uint x) { return x; }
#define native_exp __expf
#define native_log __logf
#define native_sin __sinf
#define native_cos __cosf
#define native_sqrt __fsqrt_rn
#define native_recip(x) __fdividef(1.0f, x)
#define native_divide __fdividef
#define native_rsqrt rsqrtf
#define half_exp __expf
#define convert_int(x) ((int)(x))
#define convert_uint(x) ((uint)(x))
#define convert_float(x) ((float)(x))
#define convert_int_rte(x) __float2int_rn(x)
#define convert_int_rtz(x) ((int)(x))
#define atomic_add(p, v) atomicAdd(p, v)
#define atomic_sub(p, v) atomicSub(p, v)
#define atomic_inc(p) atomicAdd(p, 1)
#define atomic_dec(p) atomicSub(p, 1)
#define atomic_min(p, v) atomicMin(p, v)
#define atomic_max(p, v) atomicMax(p, v)
#define atomic_or(p, v) atomicOr(p, v)
#define atomic_and(p, v) atomicAnd(p, v)
#define atomic_xor(p, v) atomicXor(p, v)
#define atomic_xchg(p, v) atomicExch(p, v)
OPENCL int atomic_cmpxchg(volatile int *p, int c, int v) { return atomicCAS((int *)p, c, v); }
OPENCL uint atomic_cmpxchg(volatile uint *p, uint c, uint v) { return atomicCAS((uint *)p, c, v); }
#define VECTOR2(T) \
    OPENCL T##2 operator+(T##2 a, T##2 b) { return make_##T##2(a.x + b.x, a.y + b.y); } \
    OPENCL T##2 operator-(T##2 a, T##2 b) { return make_##T##2(a.x - b.x, a.y - b.y); } \
    OPENCL T##2 operator*(T##2 a, T##2 b) { return make_##T##2(a.x * b.x, a.y * b.y); } \
    OPENCL T##2 operator*(T##2 a, T b) { return make_##T##2(a.x * b, a.y * b); } \
    OPENCL T##2 operator*(T a, T##2 b) { return b * a; } \
    OPENCL T##2 &operator+=(T##2 &a, T##2 b) { return a = a + b; } \
    OPENCL T##2 &operator-=(T##2 &a, T##2 b) { return a = a - b; } \
    OPENCL T##2 &operator*=(T##2 &a, T b) { return a = a * b; }
#define VECTOR4(T) \
    OPENCL T##4 operator+(T##4 a, T##4 b) { return make_##T##4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); } \
    OPENCL T##4 operator-(T##4 a, T##4 b) { return make_##T##4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w); } \
    OPENCL T##4 operator*(T##4 a, T##4 b) { return make_##T##4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); } \
    OPENCL T##4 operator*(T##4 a, T b) { return make_##T##4(a.x * b, a.y * b, a.z * b, a.w * b); } \
    OPENCL T##4 operator*(T a, T##4 b) { return b * a; } \
    OPENCL T##4 &operator+=(T##4 &a, T##4 b) { return a = a + b; } \
    OPENCL T##4 &operator-=(T##4 &a, T##4 b) { return a = a - b; } \
    OPENCL T##4 &operator*=(T##4 &a, T b) { return a = a * b; }
VECTOR2(float) VECTOR2(double) VECTOR2(int) VECTOR2(uint)
VECTOR4(float) VECTOR4(double) VECTOR4(int) VECTOR4(uint)
OPENCL float dot(float2 a, float2 b) { return a.x * b.x + a.y * b.y; }
OPENCL float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
OPENCL float length(float2 a) { return sqrtf(dot(a, a)); }
"""
"""OpenCL C's words in CUDA's; on NVIDIA's GPUs its `mad` is fused by the compiler, as here."""

_GROUP = re.compile(r"__attribute__\s*\(\(\s*reqd_work_group_size\(([^)]*)\)\s*\)\)")
_POINTER_TO_LOCAL = re.compile(r"\b(?:__local|local)\b(?=[\w\s]*\*)")
_POINTER_TO_CONSTANT = re.compile(r"\b(?:__constant|constant)\b(?=[\w\s]*\*)")
_KERNEL = re.compile(r"^[ \t]*(?:__kernel|kernel)\b(?:\s|__launch_bounds__\([^)]*\)|void)*(\w+)\s*\(", re.M)
_VECTOR = re.compile(r"\((float|double|int|uint|uchar)([248])\)\s*\(")


OPTIONS = ("-default-device",)
"""Options that the compiler has to be given with the text: functions without a word are for the device."""


def as_cuda(source: str, kernel: str, options: Sequence[str] = ()) -> str:
    """Returns one kernel of a source as CUDA C++, with what it may use.

    Args:
        options: OpenCL's, of which macros are taken.
    """
    macros = [option[2:].replace("=", " ", 1) for option in options if option.startswith("-D")]
    text = _GROUP.sub(lambda match: f"__launch_bounds__({'*'.join(match[1].split(','))})", source)
    text = "".join(f"#define {macro}\n" for macro in macros) + _alone(text, kernel)
    text = _POINTER_TO_CONSTANT.sub("const", _POINTER_TO_LOCAL.sub("", text))
    text = re.sub(r"\b(?:__local|local)\b(?!_)", "__shared__", text)
    text = re.sub(r"\bglobal\b", "", text)
    text = _VECTOR.sub(r"make_\1\2(", text)
    text = re.sub(r"^#pragma OPENCL.*$", "", text, flags=re.M)
    return f"{HEADER}{text}"


def _alone(source: str, kernel: str) -> str:
    """Returns a source without its other kernels."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", lambda match: "\n" * match[0].count("\n"), source, flags=re.S)
    for match in reversed(list(_KERNEL.finditer(text))):
        if match[1] != kernel:
            end = _end(text, text.index("{", match.end()))
            text = text[: match.start()] + "\n" * text.count("\n", match.start(), end) + text[end:]
    return text


def _end(text: str, opening: int) -> int:
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place + 1
    return len(text)
