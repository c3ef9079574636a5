"""The headers of C and C++ that ``.cu`` files include, with what kernels need of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfmodel.kernels.cuda_torch import HALVES, OF_TORCH

_WHOLE = "".join(
    f"typedef {'unsigned ' if sign else 'signed ' * (name == 'char')}{name} {sign}int{bits}_t;\n"
    for name, bits in (("char", 8), ("short", 16), ("int", 32), ("long long", 64))
    for sign in ("", "u")
)
_WHOLE += "namespace std { " + "".join(f"using ::{sign}int{bits}_t; " for bits in (8, 16, 32, 64) for sign in ("", "u"))
_WHOLE += "}\n"
_WHOLE += "typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint;\n"
_WHOLE += "typedef unsigned long ulong; typedef int64_t intptr_t; typedef uint64_t uintptr_t;\n"
_WHOLE += "typedef long off_t; typedef long off64_t; typedef long ssize_t; typedef long long time_t;\n"
_WHOLE += "typedef unsigned char u_char; typedef unsigned short u_short; typedef unsigned int u_int;\n"
_WHOLE += "".join(f"typedef uint{bits}_t u_int{bits}_t;\n" for bits in (8, 16, 32, 64))
_LIMITS = """
#ifndef INT_MAX
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ull
#endif
"""
_LIMITS_OF_FLOATS = """
#define FLT_DIG 6
#define DBL_DIG 15
#define FLT_MANT_DIG 24
#define DBL_MANT_DIG 53
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define RAND_MAX 2147483647
"""
_OF_BITS = "".join(  # as NVIDIA's headers, which may come along, have them for the runtime compiler
    f"typedef {sign}int{bits}_t {sign}int_fast{bits}_t; typedef {sign}int{bits}_t {sign}int_least{bits}_t;\n"
    f"#define {sign.upper()}INT{bits}_C(X) (({sign}int_least{bits}_t) (X))\n"
    for bits in (8, 16, 32, 64)
    for sign in ("", "u")
)
_OF_BITS += "typedef int64_t intmax_t; typedef uint64_t uintmax_t;\n"
_OF_BITS += "".join(
    f"#define INT{bits}_MIN {signed}_MIN\n#define INT{bits}_MAX {signed}_MAX\n#define UINT{bits}_MAX {unsigned}_MAX\n"
    for bits, signed, unsigned in (
        (8, "SCHAR", "UCHAR"),
        (16, "SHRT", "USHRT"),
        (32, "INT", "UINT"),
        (64, "LLONG", "ULLONG"),
    )
)
_OF_BITS += "".join(f"#define INT{name}_MAX LLONG_MAX\n#define UINT{name}_MAX ULLONG_MAX\n" for name in ("MAX", "PTR"))
_OF_BITS += "#define SIZE_MAX ULLONG_MAX\n"
_INTEGERS = f"#ifndef INT_TYPES\n#define INT_TYPES\n{_LIMITS}{_WHOLE}{_OF_BITS}#endif\n"
_MATH = """
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_E 2.7182818284590452354
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define M_LOG2E 1.4426950408889634074
#define M_LN2 0.69314718055994530942
#define M_1_PI 0.31830988618379067154
#define M_2_SQRTPI 1.12837916709551257390
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VALF INFINITY
#define MAXFLOAT 3.402823466e+38f
"""
_OF_ONE_NUMBER = {
    "double": (
        *("sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logb", "sin", "cos", "tan", "asin", "acos"),
        *("atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "tgamma", "lgamma", "cbrt", "fabs"),
        *("floor", "ceil", "round", "trunc", "rint", "nearbyint"),
    ),
    "long": ("lround", "lrint"),
    "long long": ("llround", "llrint"),
    "int": ("ilogb",),
    "bool": ("isnan", "isinf", "isfinite", "signbit"),
}
"""C++'s library takes whole numbers for these as doubles, and returns such types; the runtime compiler finds them
ambiguous."""
_OF_TWO_NUMBERS = ("fmax", "fmin", "fmod", "atan2", "hypot", "copysign", "fdim", "remainder", "nextafter")
"""It takes numbers of two types for these as doubles, likewise."""
_MATH += "template <typename T> struct OfWholeNumbers {};\ntemplate <typename T> struct OfNumbers {};\n"
_MATH += "".join(
    f"template <> struct OfWholeNumbers<{name}> {{ typedef double type; }};\n"
    f"template <> struct OfNumbers<{name}> {{ typedef double type; }};\n"
    for name in (
        *(f"{sign}{width}" for width in ("char", "short", "int", "long", "long long") for sign in ("", "unsigned ")),
        *("signed char", "bool"),
    )
)
_MATH += "".join(f"template <> struct OfNumbers<{name}> {{ typedef double type; }};\n" for name in ("float", "double"))
_MATH += "".join(
    "template <typename T, typename = typename OfWholeNumbers<T>::type> __host__ __device__ inline "
    f"{result} {name}(T x) {{ return {name}(static_cast<double>(x)); }}\n"
    for result, names in _OF_ONE_NUMBER.items()
    for name in names
)
_MATH += "".join(
    f"template <{', '.join(f'typename {t}' for t in types)}, "
    f"{', '.join(f'typename = typename OfNumbers<{t}>::type' for t in types)}> __host__ __device__ inline "
    f"double {name}({', '.join(f'{t} {t.lower()}' for t in types)}) "
    f"{{ return {name}({', '.join(f'static_cast<double>({t.lower()})' for t in types)}); }}\n"
    for name, types in (*((name, "XY") for name in _OF_TWO_NUMBERS), ("fma", "XYZ"))
)
_MATH += "".join(
    f"template <{types}> __host__ __device__ inline typename OfWholeNumbers<{whole}>::type pow({x} x, {y} y) "
    "{ return pow(static_cast<double>(x), static_cast<double>(y)); }\n"
    for types, whole, x, y in (
        ("typename T, typename U", "T", "T", "U"),
        ("typename T", "T", "float", "T"),
        ("typename T", "T", "double", "T"),
    )
)
_MATH += "".join(
    f"__host__ __device__ inline double pow({x} x, {y} y) "
    "{ return pow(static_cast<double>(x), static_cast<double>(y)); }\n"
    for x, y in (("float", "double"), ("double", "float"))
)
_MATH += "namespace std { " + " ".join(
    f"using ::{name};"
    for name in (
        *(name for names in _OF_ONE_NUMBER.values() for name in names),
        *_OF_TWO_NUMBERS,
        *("abs", "pow", "fma", "sqrtf", "expf", "logf", "fabsf", "fmaxf", "fminf", "exp2f", "log2f", "log10f"),
        *("sinf", "cosf", "tanf", "asinf", "acosf", "atanf", "atan2f", "sinhf", "coshf", "tanhf", "powf", "floorf"),
        *("ceilf", "roundf", "truncf", "fmodf", "fmaf", "hypotf", "cbrtf", "copysignf"),
    )
)
_MATH += " }\n"
_OF_NVIDIA = """#pragma once
#include <cuda/std/array>
#include <cuda/std/limits>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>
namespace std { using namespace cuda::std; }
"""
_CUB = "#pragma once\n" + "".join(
    f"#include <cub/{part}.cuh>\n"
    for part in (
        *(f"block/block_{each}" for each in ("load", "store", "reduce", "scan", "exchange", "shuffle", "histogram")),
        *(f"block/block_{each}" for each in ("discontinuity", "radix_sort", "merge_sort", "adjacent_difference")),
        *(f"warp/warp_{each}" for each in ("reduce", "scan", "load", "store", "exchange", "merge_sort")),
    )
)
"""CUB's functions for blocks and warps: the file itself has others, for the host."""
_ALGORITHM = """#pragma once
namespace std {
template <typename T> __host__ __device__ constexpr const T &max(const T &a, const T &b) { return a < b ? b : a; }
template <typename T> __host__ __device__ constexpr const T &min(const T &a, const T &b) { return b < a ? b : a; }
template <typename T> __host__ __device__ void swap(T &a, T &b) { T c = a; a = b; b = c; }
}
"""
_FUNCTIONAL = "#pragma once\nnamespace std {\n"
_FUNCTIONAL += "".join(
    f"template <typename T> struct {name} {{ __host__ __device__ constexpr {result} operator()(const T &a, const T &b) "
    f"const {{ return a {sign} b; }} }};\n"
    for result, signs in (
        ("T", {"plus": "+", "minus": "-", "multiplies": "*", "divides": "/", "modulus": "%"}),
        ("T", {"bit_and": "&", "bit_or": "|", "bit_xor": "^"}),
        ("bool", {"less": "<", "greater": ">", "less_equal": "<=", "greater_equal": ">=", "equal_to": "=="}),
        ("bool", {"not_equal_to": "!=", "logical_and": "&&", "logical_or": "||"}),
    )
    for name, sign in signs.items()
)
_FUNCTIONAL += """
template <typename A, typename R> struct unary_function { typedef A argument_type; typedef R result_type; };
template <typename A, typename B, typename R> struct binary_function {
  typedef A first_argument_type; typedef B second_argument_type; typedef R result_type; };
}
"""
_HANDLES = """
#ifndef HOST_HANDLES
#define HOST_HANDLES
typedef struct cublasContext *cublasHandle_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cudnnContext *cudnnHandle_t;
typedef int cublasStatus_t, cublasOperation_t, cublasMath_t, cublasComputeType_t, cudnnStatus_t;
#endif
"""
"""Handles that functions of the host pass on, as headers of kernels may declare some of these."""
_CUFFT = """#include <cuComplex.h>
#ifndef CUFFT_FORWARD
#define CUFFT_FORWARD -1
#define CUFFT_INVERSE 1
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;
typedef int cufftHandle, cufftResult, cufftType;
#endif
"""
_OF_OPENGL = """#ifndef TYPES_OF_OPENGL
#define TYPES_OF_OPENGL
typedef unsigned int GLuint, GLenum, GLbitfield;
typedef unsigned char GLubyte, GLboolean;
typedef unsigned short GLushort;
typedef int GLint, GLsizei;
typedef short GLshort;
typedef char GLchar;
typedef signed char GLbyte;
typedef float GLfloat, GLclampf;
typedef double GLdouble, GLclampd;
typedef void GLvoid;
typedef struct cudaGraphicsResource *cudaGraphicsResource_t;
#endif
"""
"""Kernels may take numbers by the names that OpenGL has for them."""
_STREAMS = """#ifndef STREAMS
#define STREAMS
namespace std {
struct ostream { template <typename T> __host__ __device__ ostream &operator<<(const T &) { return *this; } };
struct istream { template <typename T> __host__ __device__ istream &operator>>(T &) { return *this; } };
constexpr char endl = '\\n';
}
#endif
"""
"""Structs that kernels compute with may say how they are written out."""
_TEXTS = """#ifndef TEXT_FUNCTIONS
#define TEXT_FUNCTIONS
extern "C" {
__device__ unsigned long strlen(const char *);
__device__ char *strcpy(char *, const char *);
__device__ char *strncpy(char *, const char *, unsigned long);
__device__ char *strcat(char *, const char *);
__device__ int strcmp(const char *, const char *);
__device__ int strncmp(const char *, const char *, unsigned long);
}
#endif
"""
"""Structs that kernels point to may have functions for the host that call these."""
_STRING = """#pragma once
#include <cstring>
namespace std {
struct string {
  __host__ __device__ string(const char * = "") {}
  __host__ __device__ const char *c_str() const { return ""; }
  __host__ __device__ unsigned long size() const { return 0; }
  __host__ __device__ unsigned long length() const { return 0; }
  unsigned long words[4];
};
}
"""
"""Structs that kernels point to may be made of strings on the host."""
_COMPLEX = """#pragma once
#include <cuda/std/complex>
namespace thrust {
using ::cuda::std::complex; using ::cuda::std::abs; using ::cuda::std::arg; using ::cuda::std::norm;
using ::cuda::std::conj; using ::cuda::std::polar; using ::cuda::std::exp; using ::cuda::std::log;
using ::cuda::std::pow; using ::cuda::std::sqrt;
}
"""
"""Thrust's complex numbers are those of CUDA's own standard library, by another name."""
_ONE_ABS = """#pragma once
#define abs abs_of_nvidia
#include <cuda/std/complex>
#undef abs
namespace cuda { namespace std {
template <typename T> __host__ __device__ T abs(const complex<T> &z) { return abs_of_nvidia(z); }
} }
"""
"""Sources that use all of std see the magnitudes of CUDA's own standard library beside those that compilers know."""
_UNMASKED = "#pragma once\n" + "".join(
    f"template <typename T> __device__ __forceinline__ T __shfl{way}(T value, {type_} to, int width = warpSize) "
    f"{{ return __shfl{way}_sync(__activemask(), value, to, width); }}\n"
    for way, type_ in (("", "int"), ("_up", "unsigned"), ("_down", "unsigned"), ("_xor", "int"))
)
_UNMASKED += "".join(
    f"__device__ __forceinline__ {type_} __{name}(int holds) {{ return __{name}_sync(__activemask(), holds); }}\n"
    for name, type_ in (("ballot", "unsigned"), ("any", "int"), ("all", "int"))
)
_OF_HOST: Mapping[str, Mapping[str, int]] = {
    "": {
        "mutex": 5,
        "recursive_mutex": 5,
        "condition_variable": 6,
        "thread": 1,
        "exception_ptr": 1,
        "ifstream": 65,
        "ofstream": 64,
        "fstream": 66,
        "stringstream": 49,
        "istringstream": 48,
        "ostringstream": 47,
    },
    "template <typename T>": {"shared_ptr": 2, "weak_ptr": 2, "function": 4, "future": 2},
    "template <typename T, typename D = void>": {"unique_ptr": 1, "vector": 3, "list": 3, "deque": 10},
    "template <typename T, typename C = void, typename A = void>": {"set": 6, "multiset": 6, "queue": 10, "stack": 10},
    "template <typename T, typename H = void, typename E = void, typename A = void>": {"unordered_set": 7},
    "template <typename K, typename T, typename C = void, typename A = void>": {"map": 6, "multimap": 6},
    "template <typename K, typename T, typename H = void, typename E = void, typename A = void>": {"unordered_map": 7},
}
"""Words that types of the host's library take, by their parameters: what kernels are given may hold such. Nothing can
be asked of them, as functions that do so are for the host, and are left out."""
_HOST_TYPES = "".join(
    f"{parameters} struct {name} {{ __host__ __device__ {name}() {{}} unsigned long words[{words}]; }};\n"
    for parameters, names in _OF_HOST.items()
    for name, words in names.items()
)
NAMES_OF_HOST_TYPES = tuple(name for names in _OF_HOST.values() for name in names)
_LAUNCHES = """#pragma once
__device__ inline void cudaGridDependencySynchronize() {}
__device__ inline void cudaTriggerProgrammaticLaunchCompletion() {}
"""
"""Kernels that wait for the end of one before, or let the next one begin: alone, they wait for nothing."""
_EMPTY = (
    *(
        "stdio.h",
        "time.h",
        "unistd.h",
        "getopt.h",
        "sys/time.h",
        "errno.h",
        "cstdio",
    ),
    *("ctime", "vector", "map", "set"),
    *("memory", "numeric", "random", "chrono", "thread", "stdexcept", "exception", "omp.h"),
    *("cuda_profiler_api.h", "sys/types.h", "sys/stat.h", "sys/mman.h", "sys/resource.h", "sys/ioctl.h", "sys/wait.h"),
    *(f"{name}.h" for name in ("ctype", "dirent", "fcntl", "libgen", "locale", "malloc", "memory", "pthread", "sched")),
    *(f"{name}.h" for name in ("semaphore", "setjmp", "signal", "stdarg", "strings", "values", "wchar", "xmmintrin")),
    *(f"{name}.h" for name in ("emmintrin", "immintrin", "x86intrin", "io", "conio", "process", "direct", "execinfo")),
)
_ALLOCATIONS = "#pragma once\nnamespace std { using ::malloc; using ::free; }\n"
ONE_ABS = "one_abs.h"
"""The header that leaves one function for the magnitude of a number."""
HOST_TYPES = "host_types.h"
"""The header with types of C++'s library that are for the host."""
UNMASKED = "unmasked.h"
"""The header with the functions of warps as they were before architectures that need masks."""
HEADERS: Mapping[str, str] = {
    **dict.fromkeys(_EMPTY, "#pragma once\n"),
    **dict.fromkeys(("stddef.h", "cstddef"), "#pragma once\n"),
    **dict.fromkeys(("stdint.h", "cstdint", "inttypes.h"), _INTEGERS),
    **dict.fromkeys(
        ("limits.h", "climits", "float.h", "cfloat"), f"{_LIMITS}#ifndef FLT_DIG\n{_LIMITS_OF_FLOATS}#endif\n"
    ),
    **dict.fromkeys(("math.h", "cmath"), f"#ifndef M_PI\n{_MATH}#endif\n"),
    **dict.fromkeys(("type_traits", "limits", "utility", "tuple", "array"), _OF_NVIDIA),
    **dict.fromkeys(("iostream", "ostream", "istream", "fstream", "sstream", "iomanip"), _STREAMS),
    **dict.fromkeys(("stdlib.h", "cstdlib"), _ALLOCATIONS),
    **dict.fromkeys(("string.h", "cstring"), _TEXTS),
    "string": _STRING,
    "algorithm": _ALGORITHM,
    "thrust/complex.h": _COMPLEX,
    ONE_ABS: _ONE_ABS,
    UNMASKED: _UNMASKED,
    HOST_TYPES: f"#pragma once\nnamespace std {{\n{_HOST_TYPES}}}\n",
    "functional": _FUNCTIONAL,
    "cub/cub.cuh": _CUB,
    "cuda_device_runtime_api.h": _LAUNCHES,
    **dict.fromkeys(("assert.h", "cassert"), "#ifndef assert\n#define assert(condition) ((void)0)\n#endif\n"),
}
"""Headers of C and C++ that files include for the host, with what kernels need of them."""

_OF_OTHERS = re.compile(r"^(std\w+\.h$|[^.]+$|hip|roc|rccl|mu(sa|blas)|sycl|metal|arm_|sys/|windows\.h)")
_OF_LIBRARIES = re.compile(
    r"^(cu(blas|fft|rand|sparse|solver|dnn|tensor|pti)|nccl|nvml|nvtx|nvTools|mpi\.h|helper_|bits/|sys/|GL/"
    r"|(torch|ATen|c10|pybind11|opencv2?|gtest|thrust|Eigen|boost|benchmark)/)"
)

_FOR_THE_HOST = re.compile(
    r"(^|.*/)((cu(blas|fft|sparse|solver|dnn|pti)\w*|nccl|nvml|nvToolsExt\w*"
    r"|cuda_(gl|egl|vdpau|d3d\d+)_interop|cuda\w*GL)\.h(pp)?|cub/(device/\w+|util_allocator)\.cuh)$"
)


_FOR_GRAPHICS = re.compile(
    r"^(?:.*/)?(?:(?:GL|GLES\d*|GLUT|OpenGL|GLFW|glad|KHR|X11|imgui|SDL2?)/.*|w?glew\.h|glad\.h|(?:free)?glut\w*\.h"
    r"|glfw3?\w*\.h|w?glext\.h|imgui\w*\.h|[wW]indows\.h|SDL\w*\.h|d3d\w*\.h|stb_\w+\.h)$"
)


_OF_PROGRAMS = re.compile(
    r"^(?:.*/)?(?:(?:fmt|spdlog|nlohmann|yaml-cpp|gtest|gmock|catch2|benchmark|CLI|glog|gflags|rapidjson|cereal)/.*"
    r"|(?:json|catch|doctest|cxxopts|argparse|CLI11)\.h(?:pp)?)$"
)
"""Libraries of whole programs: what they write and read, their options and tests."""


def is_for_the_host(header: str) -> bool:
    """Returns whether a header is one of NVIDIA's for functions of the host, which its runtime compiler may not
    understand: kernels get on without it, even if it is there."""
    return bool(_FOR_THE_HOST.match(header)) or is_never_read(header)


def is_never_read(header: str) -> bool:
    """Returns whether a header is one of a library for programs or for windows and what is drawn in them, large and
    for the host."""
    return is_for_graphics(header) or bool(_OF_PROGRAMS.match(header))


def is_for_graphics(header: str) -> bool:
    """Returns whether a header is one of a library for windows and what is drawn in them."""
    return bool(_FOR_GRAPHICS.match(header))


def is_of_a_library(header: str) -> bool:
    """Returns whether a header is one of C, C++ or a library for the host, of which kernels need nothing."""
    return bool(_OF_LIBRARIES.match(header) or _OF_OTHERS.match(header)) or is_never_read(header)


def may_be_needed(header: str) -> bool:
    """Returns whether a kernel may need a header, one that is neither of C and C++ nor of another maker's platform."""
    return not _OF_OTHERS.match(header)


def stand_in(header: str) -> str:
    """Returns what stands in the place of a header that is not there: what libraries bring for kernels."""
    if re.match(r"(torch|ATen|c10|THC)/", header):
        return OF_TORCH
    if is_for_graphics(header):
        return _OF_OPENGL
    if header.startswith("cufft"):
        return _CUFFT
    return HALVES + _HANDLES if re.match(r"(cublas|cudnn)", header) else ""


PRE_INCLUDED = ("stdint.h", "limits.h", "math.h", "assert.h", "cuda_device_runtime_api.h")
"""Headers that others, which are not there, would have brought."""
