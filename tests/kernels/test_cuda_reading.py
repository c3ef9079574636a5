"""Files of CUDA C++ as people write them: what a kernel does without is left out, and what cannot be read is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from perfmodel import Kernel, emulate
from perfmodel.basics.errors import PerfmodelError


@pytest.fixture(autouse=True)
def _compiler() -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")


def numbers_of(source: str | Path, name: str = "f", count: int = 1, **options: Any) -> NDArray[Any]:
    """Returns what a kernel of one block writes into its only array, of so many whole numbers."""
    kernel = Kernel.from_cuda(source, name, 1, count, {"x": count}, **options)
    return emulate(kernel, {"x": np.zeros(count, "int32")}).array("x")


KERNEL = "__global__ void f(int *x) { x[threadIdx.x] = VALUE; }\n"

READ = {
    "members for the host": (
        """#include <memory>
        #include <string>
        #include <vector>
        struct Shape {
          static std::vector<int> known;
          typedef std::shared_ptr<Shape> Pointer;
          int n, extents[4];
          Shape() : n{2}, extents{3, 4} {}
          explicit Shape(const std::vector<int> &of) : n(of.size()) { for (int i = 0; i < n; i++) extents[i] = of[i]; }
          __host__ void resize(std::vector<int> &to) { to.resize(n); }
          std::string text() const { return std::to_string(n); } int host(std::vector<int> of) { return of.size(); }
          template <typename Stream> friend Stream &operator<<(Stream &out, const std::vector<Shape> &all) {
            return out << all.size();
          }
          __host__ __device__ int size() const { return extents[0] * extents[1]; }
          struct Host { int kept; int name(std::vector<int> of) { return of[0]; } };
          __host__ ~Shape() = default;
        };""",
        "Shape().size()",
        12,
    ),
    "pairs of a header that stands for nothing": (
        """#include <vector>
        typedef std::pair<int, int> Shape;
        __device__ int area(const Shape of) { return of.first * of.second; }""",
        "area(Shape(3, 4))",
        12,
    ),
    "members for the host of a template": (
        """#include <vector>
        template <typename T, int N> class Vector {
         public:
          Vector(const std::vector<T> &of) : values{of[0]} { copied(of); } Vector() = default;
          __device__ T sum() const { T s = 0; for (int i = 0; i < N; i++) s += values[i] + i; return s; }
         private: T values[N] = {};
          void copied(const std::vector<T> &of);
        };""",
        "(Vector<int, 4>().sum())",
        6,
    ),
    "calls of macros without a semicolon": (
        """#include <iostream>
        #define PRINTED(Type) \\
          std::ostream &operator<<(std::ostream &out, const Type &one) { return out << one.missing; }
        #define TWICE_OF(name) __device__ int name(int n) { return 2 * n; }
        #define BOTH(name) TWICE_OF(name)
        #define LAUNCHED(N) template void launched<N>(int *);
        struct One { int n; };
        template <int N> void launched(int *);
        PRINTED(One)
        BOTH(twice)
        void host() { std::cout << One{1}; }
        LAUNCHED(1)
        LAUNCHED(2)
        PRINTED(One)""",
        "twice(4)",
        8,
    ),
    "a macro that bounds launches": (
        "#define BOUNDED(n) __launch_bounds__(n)\n__global__ void BOUNDED(64) g(int *x);\n",
        "5",
        5,
    ),
    "operators of types that it does without": (
        """struct Number { int n; };
        struct Unknown : public missing::Base { int n; };
        __host__ __device__ inline Unknown operator+(const Unknown &a, const Number &b) { return a.plus(b); }
        __host__ __device__ inline Number operator+(const Number &a, const Number &b) { return {a.n + b.n}; }""",
        "(Number{1} + Number{2}).n",
        3,
    ),
    "tables for the host": (
        """#include <array>
        struct Choice { const char *name; int times; };
        constexpr std::array<Choice, 1> choices = { Choice{.name = std::string("all"), .times = 3} };
        constexpr Missing one{1}, other[2] = {};
        constexpr int halved(int n) { return n / 2; }
        constexpr int TIMES = halved(8);
        static __device__ const int weights[] = {TIMES, halved(6)};""",
        "weights[threadIdx.x] + TIMES",
        8,
    ),
    "types of OpenGL": (
        """#include <GL/glew.h>
        #include <GLFW/glfw3.h>
        #include <cuda_gl_interop.h>
        GLFWwindow *window;
        __device__ GLubyte level(GLfloat of) { return GLubyte(of); }
        void draw(GLuint buffer) { glBindBuffer(GL_ARRAY_BUFFER, buffer); }""",
        "level(7.5f)",
        7,
    ),
    "what compilers for a host define": (
        """#include <vector>
        void host(std::vector<int> &of);
        #if defined(__linux__) && defined(__NVCC__)
        #define OF_DEVICE __device__
        #else
        #error "compile by nvcc on Linux"
        #endif
        OF_DEVICE int seven() { return 7; }""",
        "seven()",
        7,
    ),
    "words of GCC's": (
        """#include <missing>
        __inline__ __device__ int next_of(int n) {
          int found;
          __asm__ __volatile__("add.s32 %0, %1, 1;" : "=r"(found) : "r"(n));
          return found;
        }""",
        "next_of(3)",
        4,
    ),
    "headers for the host that the toolkit has": (
        "#include <driver_functions.h>\n#include <vector>\nvoid host(std::vector<int> &of) { of.clear(); }",
        "7",
        7,
    ),
    "functions of warps without a mask": (
        """#include <vector>
        __device__ int all_of(int n) { for (int d = 16; d; d /= 2) n += __shfl_down(n, d); return __shfl(n, 0); }""",
        "all_of(3) + __popc(__ballot(1)) + __any(0) + 10 * __all(1) - __shfl_xor(2, 1, 16)",
        3 * 32 + 1 + 10 - 2,
    ),
    "lambdas for the host and the device": (
        """#include <vector>
        template <typename F> __device__ int twice(F of) { return of(1) + of(2); }
        template <typename F> __global__ void each(F of, int *x) { x[0] = of(3); }
        void host(int *x) { each<<<1, 1>>>([=] __host__ __device__(int n) { return n; }, x); }
        __device__ int three() { return twice([] __host__ __device__(int n) { return n; }); }""",
        "three()",
        3,
    ),
    "classes of functions of old libraries": (
        """#include <functional>
        struct Twice : public std::unary_function<int, int> {
          __device__ int operator()(int n) const { return 2 * n; } };
        struct Sum : std::binary_function<int, int, int> {
          __device__ result_type operator()(int a, int b) const { return a + b; } };""",
        "Sum()(Twice()(3), 1)",
        7,
    ),
    "quotients that PyTorch rounds up": (
        "#include <ATen/ATen.h>\n#include <THC/THCDeviceUtils.cuh>",
        "THCCeilDiv(9, 4) + 10 * at::ceil_div(8, 4)",
        23,
    ),
    "what PyTorch adds up in": (
        "#include <ATen/OpMathType.h>",
        "int(sizeof(at::acc_type<at::Half, true>) + 10 * sizeof(at::opmath_type<double>))",
        84,
    ),
    "limits of whole numbers": (
        "#include <climits>\n#include <cfloat>",
        "USHRT_MAX + SHRT_MIN + CHAR_BIT + (LONG_MAX > INT_MAX) + (ULLONG_MAX > LLONG_MAX) + FLT_DIG",
        65535 - 32768 + 8 + 1 + 1 + 6,
    ),
    "limits of whole numbers by their bits": (
        "#include <cstdint>",
        "UINT8_MAX + INT16_MAX + (UINT32_MAX > INT32_MAX) + (INT64_MIN < INT32_MIN) + (UINT64_C(1) << 4) "
        "+ sizeof(uint_fast16_t) + sizeof(int_least16_t)",
        255 + 32767 + 1 + 1 + 16 + 2 + 2,
    ),
    "functions of C++'s library by C's names": ("#include <cmath>", "int(std::cosf(0.0f) + std::asinh(0.0))", 1),
}


@pytest.mark.parametrize("case", READ)
def test_what_a_kernel_does_without_is_left_out(case: str) -> None:
    head, value, expected = READ[case]
    assert numbers_of(f"{head}\n#define VALUE {value}\n{KERNEL}") == [expected]


def test_a_type_keeps_what_takes_room_in_it() -> None:
    """A field whose type is unknown has a size, so that what lies behind it has another place without it."""
    source = "struct Pair { std::vector<int> first; int second; };\n__global__ void f(Pair *x) { x->second = 1; }"
    with pytest.raises(PerfmodelError, match="vector"):
        Kernel.from_cuda(source, "f", 1, 1, {"x": 1})
    source = "struct Pair { FIELD(first) int second; };\n__global__ void f(Pair *x) { x->second = 1; }"
    with pytest.raises(PerfmodelError):
        Kernel.from_cuda(source, "f", 1, 1, {"x": 1})


def test_a_kernel_that_is_defined_outside_of_its_name_space() -> None:
    source = "namespace deep { __global__ void f(int *x); }\n__global__ void deep::f(int *x) { x[0] = 7; }"
    assert numbers_of(source) == [7]


def test_headers_that_include_each_other_often_are_read_once(tmp_path: Path) -> None:
    """Each of 24 headers includes the two below it, which would be 2 ** 24 of the last."""
    for level in range(24):
        below = "".join(f'#include "level{level - step}.h"\n' for step in (1, 2) if level >= step)
        guard = ("#pragma once\n", "") if level % 2 else (f"#ifndef LEVEL{level}\n", "#endif\n")
        define = "" if level % 2 else f"#define LEVEL{level}\n"
        own = f"{guard[0]}{below}{define}static const int level{level} = {level};\n{guard[1]}"
        (tmp_path / f"level{level}.h").write_text(own)
    (tmp_path / "some.cu").write_text(f'#include "level23.h"\n#define VALUE level23 + level0\n{KERNEL}')
    assert numbers_of(tmp_path / "some.cu") == [23]


def test_libraries_of_programs_are_never_looked_into(tmp_path: Path) -> None:
    (tmp_path / "spdlog").mkdir()
    (tmp_path / "spdlog" / "spdlog.h").write_text("namespace {{ not C++ at all\n")
    (tmp_path / "some.cu").write_text(
        f'#include "spdlog/spdlog.h"\n#include <fmt/core.h>\nvoid host() {{ spdlog::info("all"); }}\n'
        f"#define VALUE 3\n{KERNEL}"
    )
    assert numbers_of(tmp_path / "some.cu") == [3]


def test_a_header_under_a_condition_that_does_not_hold_is_included_later(tmp_path: Path) -> None:
    (tmp_path / "once.h").write_text("#pragma once\n#define ONE 1\n")
    (tmp_path / "guarded.h").write_text("#ifndef GUARDED\n#define GUARDED\n#define TWO 2\n#endif\n")
    both = '#include "once.h"\n#include "guarded.h"\n'
    (tmp_path / "some.cu").write_text(
        f"#ifdef NEVER\n{both}#else\n{both}#endif\n{both}#define VALUE ONE + TWO\n{KERNEL}"
    )
    assert numbers_of(tmp_path / "some.cu") == [3]


REFUSED = {
    "a prototype": (
        "__global__ void f(int *x);\n",
        "kernel 'f' is declared in the source without a body; give the file",
    ),
    "a function that is elsewhere": (
        "extern __device__ int other(int n);\n__global__ void f(int *x) { x[0] = other(3); }",
        "function 'other' has no body in the text; give one that has it, as by an #include of the file that defines it",
    ),
    "a function that calls itself": (
        "namespace deep { __device__ __noinline__ int sum(int n) { return n > 0 ? n + sum(n - 1) * n : 0; } }\n"
        "__global__ void f(int *x) { x[0] = deep::sum(x[1]); }",
        "function 'sum' calls itself, in PTX; write it as a loop",
    ),
    "memory of its own": (
        "__global__ void f(int *x) { int *p = new int[x[0]]; p[x[1]] = 1; x[0] = p[x[2]]; delete[] p; }",
        "memory that threads allocate ('malloc') is not emulated; give the kernel an array",
    ),
    "launches of its own": (
        "__global__ void g(int *x) { x[0] = 1; }\n__global__ void f(int *x) { g<<<1, 1>>>(x); }",
        "kernel 'f' launches kernels itself, which is not emulated",
    ),
    "a type that its library's stand-in has not": (
        "#include <torch/extension.h>\n__global__ void f(torch::Unknown<float> x, int *y) { y[0] = x[0]; }\n"
        "namespace host { void f(int *x) { ::f<<<1, 1>>>(x, x); } }",
        'namespace "torch" has no member "Unknown"',
    ),
    "references to textures": (
        "texture<float, 2, cudaReadModeElementType> image;\n__global__ void f(float *x) { x[0] = tex2D(image, 1, 2); }",
        'identifier "image" is undefined: references to textures are gone since CUDA 12, and textures are not emulated',
    ),
    "two of a name": (
        "__global__ void f(int *x) { x[0] = 1; }\n__global__ void f(float *x) { x[0] = 1; }",
        "the source has several kernels 'f'; name one with the types of its arguments, of 'f(int *)', 'f(float *)'",
    ),
    "what a build defines": (
        "#include <strings.h>\n__global__ void f(int *x) { x[0] = WIDTH; }",
        'identifier "WIDTH" is undefined; if builds define it, give the option -DWIDTH=…',
    ),
    "a type that a build defines": (
        "__global__ void f(real *x) { x[0] = 1; }",
        'identifier "real" is undefined; if builds define it, give the option -Dreal=…',
    ),
    "a type under a condition": (
        "#include <fft.h>\n#if PRECISION == 1\ntypedef float real;\n"
        "#elif PRECISION == 2\ntypedef double real;\n#endif\n"
        "__global__ void f(real *x) { x[0] = 1; }",
        "identifier \"real\" is undefined: it is defined under '#if PRECISION == 1', which does not hold; give the",
    ),
    "a name space that is not there": (
        "#include <glm/glm.hpp>\n__global__ void f(glm::vec3 *x) { x[0].x = 1; }",
        '"glm" is no class or name space that is known; not found: glm/glm.hpp; give their folders (--include)',
    ),
    "a condition": (
        "#ifndef GUARD\n#define GUARD\n#if WITH_CUDA > 1\n__global__ void f(int *x) { x[0] = 1; }\n#endif\n#endif\n",
        "kernel 'f' of the source stands under '#if WITH_CUDA > 1', which does not hold; give the option -D… for it",
    ),
    "a mistake before the kernel": (
        "``` 7\n__global__ void f(int *x) { x[0] = 1; }",
        "kernel.cu(1): unrecognized token",
    ),
}


def test_one_of_several_kernels_of_a_name() -> None:
    source = """namespace deep {
    __global__ void f(int *__restrict__ x);
    __global__ void f(float *x, const unsigned int number) { x[0] = number; }
    __global__ void f(int x[]) { x[0] = 1; }
    template <int N> __global__ void f(int *x, const int *) { x[0] = N; }
    }"""
    kernel = Kernel.from_cuda(source, "f(float *, unsigned)", 1, 1, {"x": 1}, number=7)
    assert emulate(kernel, {"x": np.zeros(1, "float32")}).array("x") == [7]
    assert numbers_of(source, "deep::f(int *)") == [1]
    kernel = Kernel.from_cuda(source, "f<3>(int *, const int *)", 1, 1, {"x": 1, "argument_1": 1})
    assert emulate(kernel, {"x": np.zeros(1, "int32")}).array("x") == [3]


def test_a_template_that_is_defined_for_some_arguments_apart() -> None:
    source = """template <typename T> __global__ void f(int *x, T y);
    template <> __global__ void f<float>(int *x, float y) { x[0] = 2 * y; }
    template <typename T> __global__ void f(int *x, T y) { x[0] = y; }
    template __global__ void f<short>(int *, short);"""
    for name, expected in (("f<float>", 14), ("f<short>", 7)):
        assert numbers_of(source, name, y=7) == [expected]


def test_a_template_needs_all_of_its_arguments() -> None:
    source = "template <int N, typename T> __global__ void f(T *x, T y) { x[0] = N; }"
    with pytest.raises(
        PerfmodelError, match=r"'f<3>' of the source is a template with further arguments; give them all"
    ):
        Kernel.from_cuda(source, "f<3>", 1, 1, {"x": 1})


@pytest.mark.parametrize(("options", "expected"), [([], 7), (["-DTILES"], 4)])
def test_a_kernel_that_is_a_template_only_where_a_condition_holds(options: list[str], expected: int) -> None:
    source = """
    #ifdef TILES
    template <int N = 4> __global__ void f(int *x) { x[0] = N; }
    #else
    __global__ void f(int *x) { x[0] = 7; }
    #endif
    """
    assert numbers_of(source, options=options) == [expected]


@pytest.mark.parametrize(
    ("condition", "is_first"),
    [
        ("#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 750)", False),
        ("#if __CUDA_ARCH__ >= 800", True),
        ("#ifdef __CUDA_ARCH__", True),
        ("#ifndef __CUDA_ARCH__", False),
        ("#if 0", False),
        ("#if defined __CUDA_ARCH__ \\\n && 1", True),
        ("#if __CUDA_ARCH__ < 700\n#elif __CUDA_ARCH__ >= 900", True),
        ("#if __CUDA_ARCH__ < 700\n#elif 0", False),
    ],
)
def test_arguments_are_those_of_the_kernel_that_the_architecture_chooses(condition: str, is_first: bool) -> None:
    source = f"""{condition}
    __global__ void f(int *x, int first, int both) {{ x[0] = first; }}
    #else
    __global__ void f(int *x, int both, int second) {{ x[0] = second; }}
    #endif
    """
    found = numbers_of(source, both=3, first=8) if is_first else numbers_of(source, both=3, second=8)
    assert found == [8]


@pytest.mark.parametrize("mask", [1, 2**62, 2**63, 2**63 + 1, 2**64 - 1])
def test_masks_of_all_64_bits(mask: int) -> None:
    source = "__global__ void f(int *x, unsigned long long mask) { x[0] = __popcll(mask); x[1] = mask >> 63; }"
    assert numbers_of(source, count=2, mask=mask).tolist() == [mask.bit_count(), mask >> 63]


def test_whole_numbers_have_the_names_that_a_host_gives_them() -> None:
    names = [f"{sign}int{bits}_t" for bits in (8, 16, 32, 64) for sign in ("", "u", "u_")]
    sizes = " + ".join(f"sizeof({name})" for name in [*names, "u_char", "ushort", "ssize_t"])
    assert numbers_of(f"__global__ void f(int *x) {{ x[0] = {sizes}; }}") == [3 * (1 + 2 + 4 + 8) + 1 + 2 + 8]


def test_headers_by_ways_of_windows(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "value.h").write_text("#define VALUE 3\n")
    (tmp_path / "some.cu").write_text(f'#include "parts\\value.h"\n{KERNEL}')
    assert numbers_of(tmp_path / "some.cu") == [3]


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_read_is_said_in_a_sentence(case: str) -> None:
    source, message = REFUSED[case]
    with pytest.raises(PerfmodelError, match=re.escape(message)) as refused:
        Kernel.from_cuda(source, "f", 1, 1, {"x": 1})
    assert "\n" not in str(refused.value)


def test_pointers_within_structs() -> None:
    """A struct may be given as numbers; kernels that go to where one of them points are told what to give."""
    source = """struct Rows { float *data; long n; };
    __global__ void f(Rows of, int *x) { if (threadIdx.x < of.n) x[threadIdx.x] = of.data[threadIdx.x]; }"""
    numbers: dict[str, Any] = {f"of_{place}": value for place, value in enumerate((0, 0, 1, 0))}
    kernel = Kernel.from_cuda(source, "f", 1, 32, {"x": 32}, **numbers)
    with pytest.raises(PerfmodelError, match=r"one for each pointer in a struct, at its first word: args={'of_0': …}"):
        emulate(kernel)
    assert emulate(kernel.at(of_2=0), {"x": np.zeros(32, "int32")}).array("x").sum() == 0


def test_options_of_nvcc_for_the_host_count_for_nothing() -> None:
    of_host = ["-O3", "--extended-lambda", "--expt-relaxed-constexpr", "-Xcompiler", "-fPIC", "-Xcompiler=-Wall", "-c"]
    linked = ["-gencode arch=compute_80,code=sm_80", "-lcublas", "-L/usr/lib", "-o", "program", "--threads=4"]
    assert numbers_of(KERNEL, options=[*of_host, "-DVALUE=7", *linked, "-std=c++17", "-lineinfo"]).tolist() == [7]
    with pytest.raises(PerfmodelError, match="--no-such-option"):
        numbers_of(KERNEL, options=["-DVALUE=7", "--no-such-option"])


def test_tensors_that_pytorch_passes_by_value() -> None:
    """A launch passes the address of the elements, then how many there are along each axis, then the steps."""
    text = """#include <torch/extension.h>
    template <typename scalar_t>
    __global__ void rows(const torch::PackedTensorAccessor32<scalar_t, 3, torch::RestrictPtrTraits> x,
                         at::PackedTensorAccessor64<scalar_t, 1> y)
    {
        const int i = threadIdx.x;
        if (i >= x.size(1)) return;
        auto plane = x[1];
        gpuAtomicAdd(&y[i], plane[i][0] + 10 * x[0][i][2] + 100 * plane.size(1) + 1000 * x.stride(0) + y.data()[0]);
    }"""
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    sizes = {f"x_{2 + k}": number for k, number in enumerate((*x.shape, 12, 3, 1))}
    kernel = Kernel.from_cuda(text, "rows<float>", 1, 32, {"x_0": 24, "y_0": 4}).at(**sizes, y_4=1, y_5=0)
    y = emulate(kernel, {"x_0": x.ravel(), "y_0": np.zeros(4, np.float32)}, groups="all").array("y_0")
    np.testing.assert_array_equal(y, x[1, :, 0] + 10 * x[0, :, 2] + 100 * 3 + 1000 * 12)
