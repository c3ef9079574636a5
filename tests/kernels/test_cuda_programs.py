"""Whole programs of CUDA, as people write them: of what is not there or not understood, kernels need not know."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from perfmodel import Kernel, emulate, feature
from perfmodel.basics.errors import EmulationError, KernelError, PerfmodelWarning, SourceError
from perfmodel.kernels.cuda_compiler import compiled
from perfmodel.kernels.cuda_declarations import UNNAMED, full_name, outline_of
from perfmodel.kernels.cuda_omissions import code_of_kernel, without

PROGRAM = """#include <cublas_v2.h>
#include <torch/extension.h>
#include <glob.h>
#include <vector>
#include "cufft.h"
#define HOST_DEVICE __host__ __device__
#define LAUNCH(name) m.def(#name, &name, #name);
using std::vector;
static cublasHandle_t handle;
typedef struct { FILE *file; glob_t found; } Loader;
class Table { public: std::string title; void print(std::ostream &out) const; };
template <typename T = float> struct alignas(16) Four {
  T of[4];
  __device__ T sum() const { return of[0] + of[1] + of[2] + of[3]; }
};
HOST_DEVICE int ceil_div(int a, int b) { return (a + b - 1) / b; }
__device__ void reads(texture_of_before<float> t) { t.read(); }
__global__ void broken(cudnnTensor_t x) { x.at(threadIdx.x) = 1; }
template <const int TIMES = 2> __global__ void sums(const Four<float> *x, float *y, uint n) {
  register uint i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = TIMES * x[i].sum() + ceil_div(n, 8);
}
void load(Loader *loader, const char *pattern) { glob(pattern, 0, NULL, &loader->found); }
torch::Tensor launched(torch::Tensor x) { sums<<<1, 64>>>((Four<float> *)x.data_ptr(), nullptr, 64); return x; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { LAUNCH(launched) }
int main() { std::cout << "{" << ceil_div(3, 2) << std::endl; cublasDestroy(handle); }
"""


def test_only_one_kernel_is_left() -> None:
    left = code_of_kernel(outline_of(PROGRAM), "sums<3>").source
    assert len(left) == len(PROGRAM)
    assert left.count("\n") == PROGRAM.count("\n")
    assert all(
        each not in left for each in ("broken", "int main", "launched(torch", "glob(pattern", "PYBIND11_MODULE(")
    )
    assert all(each in left for each in ("ceil_div(int a", "struct alignas(16) Four", "uint n) {", "#define LAUNCH"))


def test_what_a_kernel_needs_is_never_left_out() -> None:
    source = "int a;\n__device__ float f(float x);\n__device__ double f(half x);\n__global__ void g() { f(a); }\n"
    assert without(outline_of(source), [(UNNAMED, 2), (UNNAMED, 3)], "g") is None
    left = without(outline_of(source), [(UNNAMED, 1), (UNNAMED, 2)], "g")
    assert left is not None
    assert left.source.splitlines() == [" " * 6, *source.splitlines()[1:]]
    named = '#line 7 "a.h"\nint a;\n#line 2 "b.cu"\nint b;\n__global__ void g() {}\n'
    left = without(outline_of(named), [("a.h", 7)], "g")
    assert left is not None
    assert left.source == named.replace("int a;", " " * 6)
    assert without(outline_of(named), [("b.cu", 3)], "g") is None


def test_a_declaration_that_branches_share_is_left_out_as_a_whole() -> None:
    source = """template <typename T>
#ifdef WIDE
using Buffer = std::wide<T>;
#else
using Buffer = std::narrow<T>;
#endif
int other;
__global__ void g() {}
"""
    left = without(outline_of(source), [(UNNAMED, 5)], "g")
    assert left is not None
    assert [line.strip() for line in left.source.splitlines()] == [
        *("", "#ifdef WIDE", "", "#else", "", "#endif", "int other;", "__global__ void g() {}")
    ]


def test_what_says_that_it_is_for_the_host_alone_is_left_out() -> None:
    source = """template <typename T> __host__ std::ostream &operator<<(std::ostream &, const struct S<T> &);
__host__ constexpr int twice(int a) { return 2 * a; }
__host__ constexpr __device__ int thrice(int a) { return 3 * a; }
constexpr int four() { return 4; }
__global__ void g() {}
"""
    left = code_of_kernel(outline_of(source), "g").source
    assert [bool(line.strip()) for line in left.splitlines()] == [False, False, True, True, True]


def test_brackets_that_conditions_open() -> None:
    source = """#ifdef WIDE
void f(double x) {
#else
void f(float x) {
#endif
}
#if A
struct S { int a; };
#endif
__global__ void g() {}
"""
    left = code_of_kernel(outline_of(source), "g").source
    assert "void f" not in left
    assert left.splitlines()[6:] == source.splitlines()[6:]


def test_names_have_their_name_spaces() -> None:
    source = 'extern "C" { namespace a::b { namespace { template <int N> __global__ void f() {} } } }'
    assert full_name(source, "f<3>") == "a::b::f<3>"
    assert full_name(source, "b::f<3>") == "b::f<3>"
    assert full_name(source, "g") == "g"


class TestCompiled:
    """These tests need the compiler."""

    @pytest.fixture(autouse=True)
    def _compiler(self) -> None:
        pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

    def test_a_program_with_libraries_that_are_not_there(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kernel = Kernel.from_cuda(PROGRAM, "sums", 1, 64, {"x": 256, "y": 64}, n=60)
        x = np.arange(256, dtype="float32")
        found = emulate(kernel, {"x": x, "y": np.zeros(64, "float32")}).array("y")
        np.testing.assert_array_equal(found[:60], 2 * x.reshape(-1, 4).sum(1)[:60] + 8)

    def test_headers_of_libraries_bring_types(self) -> None:
        source = '#include "cublasLt.h"\ntypedef __nv_bfloat16 real;\n__global__ void f(real *x) { x[0] = x[1]; }'
        given = np.array([0, 0x3F80], "uint16")
        found = emulate(Kernel.from_cuda(source, "f", 1, 1, {"x": 2}), {"x": given}).array("x")
        assert list(found.view("uint16")) == [0x3F80, 0x3F80]

    def test_the_standard_library_for_the_device(self) -> None:
        source = """#include <iostream>
        __global__ void f(float *x, int n) {
          float most = -std::numeric_limits<float>::infinity();
          for (int i = 0; i < n; i++) most = std::isnan(x[i]) ? INFINITY : std::max(most, x[i]);
          x[0] = most;
        }
        int main() { std::cout << 1; }"""
        kernel = Kernel.from_cuda(source, "f", 1, 1, {"x": 3}, n=3)
        assert emulate(kernel, {"x": np.array([1, 5, 2], "float32")}).array("x")[0] == 5

    def test_numbers_of_a_library_and_structs_that_are_written_out(self) -> None:
        source = """#include <iostream>
        #include <cufft.h>
        struct Point {
          float x, y;
          friend inline std::ostream &operator<<(std::ostream &out, const Point &p) { return out << p.x << ' ' << p.y; }
        };
        __global__ void turn(cufftComplex *v, float x, float y) {
          Point p = {x, y};
          int i = threadIdx.x;
          v[i] = cuCmulf(v[i], make_cuComplex(p.x, p.y));
        }"""
        kernel = Kernel.from_cuda(source, "turn", 1, 32, {"v": 64}, x=0.0, y=1.0)
        v = np.tile(np.array([2, 3], np.float32), 32)
        found = emulate(kernel, {"v": v}).array("v")
        np.testing.assert_array_equal(np.ravel(found), np.tile(np.array([-3, 2], np.float32), 32))

    def test_operators_of_the_standard_library(self) -> None:
        source = """#include <functional>
        template <typename Combine> __global__ void f(int *x) { x[0] = Combine()(x[0], x[1]); }"""
        for name, expected in (("multiplies<int>", 35), ("greater<int>", 1), ("bit_xor<int>", 2)):
            kernel = Kernel.from_cuda(source, f"f<std::{name}>", 1, 1, {"x": 2})
            assert emulate(kernel, {"x": np.array([7, 5], "int32")}).array("x")[0] == expected

    def test_cub(self) -> None:
        source = """#include <cub/cub.cuh>
        #include <cub/device/device_reduce.cuh>
        __global__ void f(int *x) {
          typedef cub::BlockReduce<int, 64> Reduce;
          __shared__ typename Reduce::TempStorage kept;
          int sum = Reduce(kept).Sum(x[threadIdx.x]);
          if (threadIdx.x == 0) x[0] = sum;
        }
        void all(int *x, int n, cudaStream_t stream) { cub::DeviceReduce::Sum(nullptr, n, x, x, n, stream); }"""
        found = emulate(Kernel.from_cuda(source, "f", 1, 64, {"x": 64}), {"x": np.arange(64, dtype="int32")})
        assert found.array("x")[0] == 2016

    def test_arrays_of_the_standard_library(self) -> None:
        source = """#include <array>
        constexpr std::array<int, 3> PRIMES{2, 3, 5};
        __global__ void f(int *x) { x[threadIdx.x] = PRIMES[threadIdx.x]; }"""
        found = emulate(Kernel.from_cuda(source, "f", 1, 3, {"x": 3}), {"x": np.zeros(3, "int32")}).array("x")
        assert list(found) == [2, 3, 5]

    def test_libraries_for_the_host_that_are_there(self) -> None:
        """Thrust's headers come with NVIDIA's packages, and not for this compiler."""
        source = """#include <thrust/device_vector.h>
        #include <thrust/sort.h>
        __global__ void f(int *x) { x[0] = 7; }
        void sorted(thrust::device_vector<int> &x) { thrust::sort(x.begin(), x.end()); }"""
        assert emulate(Kernel.from_cuda(source, "f", 1, 1, {"x": 1})).array("x")[0] == 7

    def test_types_of_torch(self) -> None:
        source = """#include <torch/extension.h>
        #include <ATen/cuda/CUDAContext.h>
        __device__ inline at::Half atomicAdd(at::Half *address, at::Half value) { return value; }
        __device__ inline float doubled(float x) { return x * 2.0f; }
        __device__ inline at::Half doubled(at::Half x) { return __hmul(x.operator __half(), at::Half(2.0f)); }
        template <typename T> __global__ void f(const T *x, T *y, float *sum) {
          y[threadIdx.x] = doubled(x[threadIdx.x]);
          atomicAdd(sum, float(x[threadIdx.x]));
        }"""
        x = np.arange(32, dtype="float16")
        for name, given in (("f<at::Half>", x), ("f<float>", x.astype("float32"))):
            kernel = Kernel.from_cuda(source, name, 1, 32, {"x": 32, "y": 32, "sum": 1})
            arrays = {"x": given, "y": np.zeros_like(given), "sum": np.zeros(1, "float32")}
            found = emulate(kernel, arrays)
            np.testing.assert_array_equal(found.array("y").view(given.dtype), 2 * given)
            assert found.array("sum")[0] == 496

    def test_macros_of_macros_say_what_is_for_the_device(self) -> None:
        source = """#include <missing>
        #if defined(__CUDACC__)
        #define BOTH __host__ __device__
        #define BOTH_INLINE BOTH __forceinline__
        #else
        #define BOTH
        #define BOTH_INLINE BOTH inline
        #endif
        BOTH_INLINE int seven() { return 7; }
        void host(std::string &text);
        __global__ void f(int *x) { x[0] = seven(); }"""
        assert emulate(Kernel.from_cuda(source, "f", 1, 1, {"x": 1})).array("x")[0] == 7

    def test_functions_of_numbers_of_two_types(self) -> None:
        """C++'s library computes with doubles there, and where numbers are whole."""
        source = """__global__ void f(double *x, float a, double b, int i, signed char c) {
          x[0] = fmax(a, b); x[1] = std::pow(a, b); x[2] = atan2(b, a); x[3] = fma(a, -0.75, 0.75); x[4] = fmin(i, a);
          x[5] = fabs(i); x[6] = isnan(i); x[7] = hypot(c, i); x[8] = log1p(i); x[9] = lround(c); x[10] = fmax(a, a);
        }"""
        a, b, i, c = np.float32(0.3), 1.7, -5, 3
        kernel = Kernel.from_cuda(source, "f", 1, 1, {"x": 11}, a=float(a), b=b, i=i, c=c)
        wanted = [1.7, float(a) ** b, np.arctan2(b, a), a * -0.75 + 0.75, i, 5, 0, np.hypot(c, i), np.nan, 3, a]
        np.testing.assert_allclose(emulate(kernel).array("x"), wanted, rtol=1e-7)
        assert kernel.counts.operations  # and none of them is a call of what is not there

    def test_structs_that_hold_what_is_for_the_host(self) -> None:
        source = """#include <memory>
        #include <mutex>
        #include <fstream>
        template <int N> class Named;
        class Settings {
          std::vector<float> values;
          std::shared_ptr<Settings> parent;
          std::map<std::string, std::vector<int>> named;
          std::mutex guard;
          std::ofstream log;
        public:
          template <int N> using pointer = std::unique_ptr<Named<N>>;
          float scale;
          void add(float value) { values.push_back(value); guard.lock(); }
          float last() const { return values.back(); }
        };
        __global__ void f(float *x, const Settings *given) { x[threadIdx.x] *= given->scale; }"""
        kernel = Kernel.from_cuda(source, "f", 1, 32, {"x": 32, "given": 4096})
        assert {access.variable for access in kernel.counts.accesses} == {"x", "given"}

    def test_instructions_for_videos_in_assembly(self) -> None:
        """Rotations of before there were funnel shifts."""
        source = """__device__ unsigned rotated(unsigned x, int by) {
          unsigned found;
          asm("{ .reg .u32 low; vshr.u32.u32.u32.clamp low, %1, %3; vshl.u32.u32.u32.clamp.add %0, %1, %2, low; }"
              : "=r"(found) : "r"(x), "r"(by), "r"(32 - by));
          return found;
        }
        __global__ void f(unsigned *x, int by) { x[threadIdx.x] = rotated(x[threadIdx.x], by); }"""
        x = np.arange(64, dtype="uint32") * np.uint32(123456789)
        found = emulate(Kernel.from_cuda(source, "f", 1, 64, {"x": 64}, by=7), {"x": x}).array("x")
        np.testing.assert_array_equal(found, (x << np.uint32(7)) | (x >> np.uint32(25)))

    def test_lanes_that_leave_a_loop_apart_go_through_it_together(self) -> None:
        source = """__global__ void f(const unsigned *of, int *first, int n) {
          int t = threadIdx.x, count = 0;
          for (int k = 0; k < n; k++) {
            if (((of[k] ^ t * 40503u) >> 4) % 16 == 3) {
              if (count == 0) for (int l = 0; l < 4; l++) first[4 * t + l] = k;
              first[4 * t + count] = k;
              if (++count >= 4) break;
            }
          }
        }"""
        of = np.random.default_rng(3).integers(0, 2**32, 300, np.uint32)
        kernel = Kernel.from_cuda(source, "f", 1, 128, {"of": 300, "first": 512}, n=300)
        found = emulate(kernel, {"of": of, "first": np.zeros(512, "int32")}, steps=1500).array("first")
        for t in range(128):
            hits = np.flatnonzero((of ^ np.uint32(t * 40503)) >> 4 & 15 == 3)[:4]
            assert list(found[4 * t : 4 * t + 4]) == [*hits, *[hits[0]] * (4 - len(hits))]

    def test_warps_that_meet_at_different_barriers_are_counted(self) -> None:
        source = """__global__ void f(float *x) {
          __shared__ float kept[64];
          if (threadIdx.x < 32) { kept[threadIdx.x] = x[threadIdx.x]; __syncthreads(); }
          else { __syncthreads(); x[threadIdx.x] = kept[threadIdx.x - 32]; }
        }"""
        kernel = Kernel.from_cuda(source, "f", 1, 64, {"x": 64})
        barriers = kernel.counts_for(32).barriers.subgroup
        assert barriers is not None
        assert float(barriers({})) == 2
        with pytest.raises(EmulationError, match="only some threads of a block come to the barrier"):
            emulate(kernel)

    def test_name_spaces_are_found(self) -> None:
        source = "namespace deep { __global__ void f(int *x) { x[0] = 7; } void call(at::Tensor x) {} }"
        kernel = Kernel.from_cuda(source, "f", 1, 1, {"x": 1})
        assert kernel.name == "f"
        assert emulate(kernel, {"x": np.zeros(1, "int32")}).array("x")[0] == 7

    def test_an_own_header_that_is_not_found(self, tmp_path: Path) -> None:
        file = tmp_path / "some.cu"
        file.write_text('#include "mine.h"\n__global__ void f(int *x) { x[0] = 7; }\n')
        with pytest.warns(PerfmodelWarning, match=r"'f' is compiled without mine.h, not found; give the folders"):
            Kernel.from_cuda(file, "f", 1, 1, {"x": 1})
        file.write_text('#include "mine.h"\n__global__ void f(int *x) { x[0] = SEVEN; }\n')
        with pytest.raises(
            SourceError, match=r'some.cu\(2\): identifier "SEVEN" is undefined; not found: mine.h; give'
        ):
            Kernel.from_cuda(file, "f", 1, 1, {"x": 1})
        (tmp_path / "mine.h").write_text('#ifndef SET\n#error "no"\n#endif\n#define SEVEN 7\n')
        with pytest.raises(SourceError, match=r"mine.h\(2\).*#error"):
            Kernel.from_cuda(file, "f", 1, 1, {"x": 1})
        assert Kernel.from_cuda(file, "f", 1, 1, {"x": 1}, ["-DSET"]).name == "f"

    def test_a_header_that_takes_its_guard_back_stands_where_it_is_included(self, tmp_path: Path) -> None:
        (tmp_path / "wrap.h").write_text('#ifndef WRAP\n#define WRAP\nextern "C" {\n#else\n#undef WRAP\n}\n#endif\n')
        file = tmp_path / "some.cu"
        wrap = '#include "wrap.h"\n'
        file.write_text(f"{wrap}__global__ void f(int *x) {{ x[0] = 7; }}\n{wrap}{wrap}int g();\n{wrap}")
        kernel = Kernel.from_cuda(file, "f", 1, 1, {"x": 1})
        assert emulate(kernel, {"x": np.zeros(1, "int32")}).array("x")[0] == 7

    def test_templates_need_arguments(self) -> None:
        source = "template <typename T, int N = 4> __global__ void f(T *x) { x[0] = N; }"
        with pytest.raises(KernelError, match=r"'f' is a template <typename T, int N = 4>; give it arguments: 'f<…>'"):
            Kernel.from_cuda(source, "f", 1, 1, {"x": 1})
        assert Kernel.from_cuda(source, "f<short>", 1, 1, {"x": 1}).name == "f<short>"
        found = Kernel.from_cuda(source.replace("T,", "T = int,"), None, 1, 1, {"x": 1})
        assert emulate(found, {"x": np.zeros(1, "int32")}).array("x")[0] == 4


ROWS_IN_SHARED = """__constant__ float weights[4];
__global__ void scaled_rows(const float *a, float *out, int width, int height)
{
    __shared__ int row[16];
    __shared__ float values[64 * 16];
    const int x = blockIdx.x * 64 + threadIdx.x;
    if (threadIdx.x < 16) row[threadIdx.x] = min(blockIdx.y * 16 + threadIdx.x, height - 1) * width;
    __syncthreads();
    for (int j = 0; j < 16; j++) values[j * 64 + threadIdx.x] = weights[j & 3] * a[row[j] + x];
    __syncthreads();
    float s = 0;
    for (int j = 0; j < 16; j++) s += values[j * 64 + 63 - threadIdx.x];
    out[blockIdx.y * width + x] = s;
}"""


def test_what_one_shared_array_holds_does_not_place_loads_by_another() -> None:
    width, height = 4096, 1024
    extents = {"a": width * height, "out": width * height // 16}
    grid = (width // 64, height // 16)
    kernel = Kernel.from_cuda(ROWS_IN_SHARED, "scaled_rows", grid, 64, extents, width=width, height=height)
    counted = kernel.as_compiled().as_countable()
    assert feature("f_mem_scattered_global_load_missed_block:32_reach:>8000000").eval(counted) == 0
    assert feature("f_mem_footprint_global_load_block:32_var:{a}").eval(counted) == pytest.approx(4 * width * height)


OF_THE_LIBRARIES = {
    "functions of whole numbers": (
        "#include <cmath>",
        "floor(n) + ceil(n / 2u) + std::sqrt(9) + pow(n, 2u) + pow(2.0f, 3u) + log2(8ll)",
        3 + 1 + 3 + 9 + 8 + 3,
    ),
    "whole numbers that hold pointers, and those of the system": (
        "#include <iostream>",
        "(u_char)(256 + n) + ((uintptr_t)y % 4) + (u_int)n",
        6,
    ),
    "texts in functions for the host": (
        "#include <cstring>\n#include <string>\n"
        "struct Named { char name[8]; Named(const std::string &text) { strncpy(name, text.c_str(), 8); } };\n"
        "__device__ int size_of(Named *named) { return sizeof(*named); }",
        "size_of(nullptr)",
        8,
    ),
    "complex numbers of Thrust": (
        "#include <thrust/complex.h>\ntypedef thrust::complex<float> Complex;",
        "thrust::norm(Complex(1, 2) * Complex(n, -1)) + (Complex(2, 1) + Complex(1, 1)).real()",
        5 * 10 + 3,
    ),
    "roundings of the standard library, and a number of the system's": (
        "#include <cmath>",
        "std::llround(2.6f) + std::rint(2.4) + (MAXFLOAT > 1e38f)",
        3 + 2 + 1,
    ),
    "variables that the driver moves": (
        "__managed__ int total[2] = {4, 5};",
        "total[1] + n",
        8,
    ),
    "what is shared with graphics, and memory that the host manages": (
        "#include <cuda_gl_interop.h>\n#include <cub/util_allocator.cuh>\ncub::CachingDeviceAllocator allocator(true);",
        "n",
        3,
    ),
}


@pytest.mark.parametrize("case", OF_THE_LIBRARIES)
def test_libraries_bring_what_kernels_need_of_them(case: str) -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    head, value, expected = OF_THE_LIBRARIES[case]
    source = f"{head}\n__global__ void f(float *y, unsigned n) {{ y[0] = {value}; }}"
    kernel = Kernel.from_cuda(source, "f", 1, 1, {"y": 1}, n=3)
    found = emulate(kernel, {"y": np.zeros(1, "float32")}).array("y")
    assert found[0] == pytest.approx(expected)


def test_a_compiler_that_takes_too_long_is_ended_and_another_begins() -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    steps = "s = sin(s) * cos(s + a[1]) + pow(s, 1.5);\n" * 1500
    source = f"__global__ void k(double *a) {{ double s = a[0];\n{steps} a[0] = s; }}"
    for _ in range(2):
        with pytest.raises(KernelError, match="compiler takes too long for the kernel; give a smaller one"):
            compiled(source, "k", most_s=1)
    assert ".entry" in compiled("__global__ void k(double *a) { a[0] = 1; }", "k", most_s=1).ptx


def test_minima_and_maxima_of_three_and_packed_differences_in_assembly() -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    source = """__global__ void f(const int *a, const int *b, int *least, unsigned *apart, unsigned *sums) {
      int i = threadIdx.x;
      asm("vmin.s32.s32.s32.max %0, %1, %2, %3;" : "=r"(least[i]) : "r"(a[i]), "r"(b[i]), "r"(-5));
      apart[i] = __vabsdiffu4(a[i], b[i]);
      sums[i] = __vsadu4(a[i], b[i]);
    }"""
    random = np.random.default_rng(1)
    a, b = (random.integers(-(2**31), 2**31, 64).astype("int32") for _ in range(2))
    kernel = Kernel.from_cuda(source, "f", 1, 64, dict.fromkeys(("a", "b", "least", "apart", "sums"), 64))
    found = emulate(kernel, {"a": a, "b": b})
    apart = np.abs(a.view("uint8").astype(int) - b.view("uint8").astype(int)).reshape(64, 4)
    np.testing.assert_array_equal(found.array("least"), np.maximum(np.minimum(a, b), -5))
    np.testing.assert_array_equal(found.array("apart").view("uint8").reshape(64, 4), apart)
    np.testing.assert_array_equal(found.array("sums"), apart.sum(axis=1))
    assert feature("f_op_int32_min").eval(kernel) == 64
