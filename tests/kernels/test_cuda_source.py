"""CUDA C++ as kernels: names and types from the source, what the compiler says, and what is missing."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import perfmodel as pm
from perfmodel import Kernel, emulate
from perfmodel.basics.errors import KernelError, SourceError
from perfmodel.kernels import cuda_compiler, cuda_toolkit
from perfmodel.kernels.cuda_declarations import outline_of
from perfmodel.kernels.cuda_omissions import code_of_kernel, without_unmentioned
from perfmodel.kernels.cuda_source import arguments_of, kernels_in
from perfmodel.vocabulary.named_features import feature

SOURCE = """
// __global__ void in_a_comment(int *x) {}
struct Point { float x, y; };
namespace deep {
template <int N, typename T = float> __global__ void __launch_bounds__(256, 2)
scale(const T *__restrict__ x, T *y, unsigned int n, T factor = T(1)) {
  if (threadIdx.x < n) y[threadIdx.x] = N * factor * x[threadIdx.x];
}
}
extern "C" __global__ void
both(float4 *v, double2 d[], const unsigned char *const bytes, long long int n, Point p, bool flag) {
  v[threadIdx.x].x = d[threadIdx.x].y + bytes[n] + p.y + flag;
}
"""


def test_arguments_are_found_in_the_source() -> None:
    assert list(kernels_in(SOURCE)) == ["scale", "both"]
    both = arguments_of(SOURCE, "both")
    assert both is not None
    assert [(each.name, each.is_pointer, each.numbers()) for each in both] == [
        ("v", True, ("float32", 4)),
        ("d", True, ("float64", 2)),
        ("bytes", True, ("uint8", 1)),
        ("n", False, ("int64", 1)),
        ("p", False, None),
        ("flag", False, ("uint8", 1)),
    ]
    scale = arguments_of(SOURCE, "deep::scale<3, double>")
    assert scale is not None
    assert [(each.name, each.numbers()) for each in scale] == [
        ("x", ("float64", 1)),
        ("y", ("float64", 1)),
        ("n", ("uint32", 1)),
        ("factor", ("float64", 1)),
    ]
    assert arguments_of(SOURCE, "nothing") is None


PROGRAM = """#include <cstdint>
#include <cuda_runtime.h>
#include <stdio.h>
#include <vector>
#define CHECK(call) do { cudaError_t e = (call); \\
  if (e) printf("%s {\\n", cudaGetErrorString(e)); } while (0)
namespace mine {
template <typename T> __device__ T square(T x) { return x * x; }
}
struct Params { int n; float a; Params() : n(0), a(1) {} };
static float table[] = {1.0f, 2.0f}; // }
__global__ void axpy(const float *x, float *y, uint32_t n, float a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; /* { */
  if (i < n) y[i] = mine::square(a) * x[i] + y[i];
}
void fill(std::vector<float> &v) { for (auto &each : v) each = '}'; }
int main(int argc, char **argv) {
  float *d;
  CHECK(cudaMalloc(&d, 4096));
#ifdef LOUD
  puts("}");
#endif
  std::vector<float> h(1024);
  fill(h);
  axpy<<<4, 256>>>(d, d, 1024, 2.0f);
}
"""

HIP = """#include <hip/hip_runtime.h>
#include <iostream>
#define CHECK(call) do { hipError_t e = call; if (e != hipSuccess) std::cerr << hipGetErrorString(e); } while (0)
template <typename T> __global__ void __launch_bounds__(256) total(const T *__restrict__ x, T *z, int n) {
  HIP_DYNAMIC_SHARED(T, part)
  int i = hipBlockIdx_x * hipBlockDim_x + threadIdx.x;
  T v = i < n ? x[i] : T(0);
  for (int d = warpSize / 2; d; d /= 2) v += __shfl_down(v, d);
  if (threadIdx.x % warpSize == 0) part[threadIdx.x / warpSize] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    T sum = 0;
    for (int k = 0; k < hipBlockDim_x / warpSize; k++) sum += part[k];
    unsafeAtomicAdd(z, sum);
  }
}
int main() {
  float *x, *z;
  CHECK(hipMalloc(&x, 4096));
  hipLaunchKernelGGL(HIP_KERNEL_NAME(total<float>), dim3(4), dim3(256), 32, 0, x, z, 1000);
  total<float><<<4, 256, 32>>>(x, z, 1000);
}
"""


def test_what_a_kernel_mentions_nowhere() -> None:
    source = """#define MADE(name) __device__ int made_##name() { return 1; }
    MADE(one)
    struct Spare { int n; };
    __device__ int spare(Spare of) { return of.n; }
    __device__ int needed() { return made_one(); }
    template <typename T> __global__ void f(T *x) { x[0] = needed(); }"""
    left = without_unmentioned(outline_of(source), "f<int>")
    assert left is not None
    assert "spare" not in left.source.lower()
    assert all(each in left.source for each in ("MADE(one)", "int needed()", "void f("))
    assert without_unmentioned(left, "f<int>") is None


def test_functions_for_the_host_are_taken_out() -> None:
    left = code_of_kernel(outline_of(PROGRAM), "axpy").source
    assert [len(line) for line in left.splitlines()] == [len(line) for line in PROGRAM.splitlines()]
    assert all(each not in left for each in ("int main", "fill(", "<<<", "puts"))
    assert all(each in left for each in ("square", "Params()", "table[]", "axpy(const", "#ifdef LOUD", "#define CHECK"))


class TestCompiled:
    """These tests need the compiler."""

    @pytest.fixture(autouse=True)
    def _compiler(self) -> None:
        pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

    def test_whole_program(self) -> None:
        kernel = Kernel.from_cuda(PROGRAM, "axpy", "n / 256", 256, {"x": "n", "y": "n"}, n=1024, a=3.0)
        given = {"x": np.arange(1024, dtype="float32"), "y": np.ones(1024, "float32")}
        np.testing.assert_array_equal(emulate(kernel, given, groups="all").array("y"), 9 * given["x"] + 1)

    def test_template_in_a_namespace(self) -> None:
        name = "deep::scale<3, double>"
        kernel = Kernel.from_cuda(SOURCE, name, 1, 64, {"x": 64, "y": 64}, n=60, factor=0.5)
        found = emulate(kernel, {"x": np.arange(64.0), "y": np.zeros(64)}).array("y")
        np.testing.assert_array_equal(found, np.where(np.arange(64) < 60, 1.5 * np.arange(64), 0))
        assert kernel.name == name
        assert feature("f_op_float64_mul").eval(kernel) == 120

    def test_a_program_of_hip(self) -> None:
        kernel = Kernel.from_cuda(HIP, "total<float>", "(n + 255) / 256", 256, {"x": "n", "z": 1}, shared=32, n=1000)
        given = {"x": np.arange(1000, dtype="float32"), "z": np.zeros(1, "float32")}
        assert emulate(kernel, given, groups="all").array("z") == [499500]
        assert feature("f_mem_bytes_global_load").eval(kernel) == 4000

    def test_structs_by_value_are_numbers(self) -> None:
        args = {"v": 32, "d": 32, "bytes": 8}
        bits = int(np.float32(2.5).view("int32"))
        kernel = Kernel.from_cuda(SOURCE, "both", 1, 32, args, n=3, p_0=0, p_1=bits, flag=1)
        given = {"v": np.zeros(128, "float32"), "d": np.arange(64.0), "bytes": np.arange(8, dtype="uint8")}
        found = emulate(kernel, given).array("v")
        np.testing.assert_array_equal(found[::4], np.arange(64.0)[1::2] + 3 + 2.5 + 1)

    def test_includes_and_options(self, tmp_path: Path) -> None:
        (tmp_path / "some.h").write_text("#define TIMES WIDTH\n")
        (tmp_path / "some.cu").write_text(
            '#include "some.h"\n__global__ void times(float *x) { x[threadIdx.x] *= TIMES; }\n'
        )
        kernel = Kernel.from_cuda(tmp_path / "some.cu", None, 1, 32, {"x": 32}, ["-DWIDTH=7.0f"])
        found = emulate(kernel, {"x": np.ones(32, "float32")}).array("x")
        np.testing.assert_array_equal(found, np.full(32, 7.0))

    def test_headers_may_include_each_other(self, tmp_path: Path) -> None:
        """Guards end it; lines of what a condition leaves out are those of the file, so that it is found."""
        (tmp_path / "one.h").write_text(
            '// first\n#ifndef ONE_H\n#define ONE_H\n#ifdef NEVER\n#include "two.h"\n#else\n#include "three.h"\n'
            "#endif\nUnknown host(int);\n#define TIMES 3\n#endif\n"
        )
        (tmp_path / "two.h").write_text("#ifndef TWO_H\n#define TWO_H\n" + "int two;\n" * 40 + "#endif\n")
        (tmp_path / "three.h").write_text('#ifndef THREE_H\n#define THREE_H\n#include "one.h"\n#endif\n')
        (tmp_path / "some.cu").write_text(
            '#include "one.h"\n#include "three.h"\n__global__ void times(float *x) { x[threadIdx.x] *= TIMES; }\n'
        )
        kernel = Kernel.from_cuda(tmp_path / "some.cu", None, 1, 32, {"x": 32})
        found = emulate(kernel, {"x": np.ones(32, "float32")}).array("x")
        np.testing.assert_array_equal(found, np.full(32, 3.0))

    def test_a_comment_includes_nothing(self, tmp_path: Path) -> None:
        """A header that says in a comment how it is included does not include itself by that."""
        (tmp_path / "some.h").write_text('/* Write\n#include "some.h"\nto use it. */\n#define TIMES 3\n')
        (tmp_path / "some.cu").write_text(
            '#include "some.h"\n__global__ void times(float *x) { x[threadIdx.x] *= TIMES; }\n'
        )
        kernel = Kernel.from_cuda(tmp_path / "some.cu", None, 1, 32, {"x": 32})
        np.testing.assert_array_equal(emulate(kernel, {"x": np.ones(32, "float32")}).array("x"), np.full(32, 3.0))

    def test_a_kernel_has_the_names_of_its_definition(self) -> None:
        """A prototype may have others, or none."""
        source = """__global__ void add(float *, int);
        __global__ void scale(float *from, int number);
        __global__ void add(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 1; }
        __global__ void scale(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }"""
        for name in ("add", "scale"):
            kernel = Kernel.from_cuda(source, name, 1, 32, {"x": 32}, n=32)
            assert [argument.name for argument in kernel.launch().arguments] == ["x", "n"]

    def test_a_kernel_whose_name_looks_like_an_attribute(self) -> None:
        source = "__global__ void __launch_bounds__(32) __add__(float *x, int n) { if (n > 2) x[threadIdx.x] += 1; }"
        kernel = Kernel.from_cuda(source, "__add__", 1, 32, {"x": 32}, n=32)
        assert [argument.name for argument in kernel.launch().arguments] == ["x", "n"]

    def test_headers_beside_a_folder_are_found_within_those_that_are_given(self, tmp_path: Path) -> None:
        """A header is one file whichever way leads to it; what lies beyond the folders stays outside."""
        (tmp_path / "lib" / "code").mkdir(parents=True)
        (tmp_path / "outside.h").write_text("#define TIMES 5\n")
        (tmp_path / "lib" / "times.h").write_text('#pragma once\n#include "code/base.h"\n#define TIMES 3\n')
        (tmp_path / "lib" / "code" / "base.h").write_text('#pragma once\n#include "../times.h"\nstruct Base {};\n')
        source = tmp_path / "lib" / "code" / "some.cu"
        kernel = "__global__ void times(float *x) { x[threadIdx.x] *= TIMES; }\n"
        source.write_text(f'#include "../times.h"\n#include "../code/base.h"\n{kernel}')
        made = Kernel.from_cuda(source, None, 1, 32, {"x": 32}, folders=[tmp_path / "lib"])
        np.testing.assert_array_equal(emulate(made, {"x": np.ones(32, "float32")}).array("x"), np.full(32, 3.0))
        source.write_text(f'#include "../../outside.h"\n{kernel}')
        with pytest.raises(
            SourceError,
            match=re.escape(
                "not found: ../../outside.h; give their folders (--include, for ../ a folder that holds both"
            ),
        ):
            Kernel.from_cuda(source, None, 1, 32, {"x": 32}, folders=[tmp_path / "lib"])

    @pytest.mark.parametrize(
        ("source", "name", "message"),
        [
            ("__global__ void f(int *x) { x[0] = y; }", "f", 'kernel.cu(1): identifier "y" is undefined'),
            (
                "template <typename T> __global__ void f(Unknown *a, T *b) { b[0] = a[0]; }",
                "f<float>",
                'kernel.cu(1): identifier "Unknown" is undefined',
            ),
            (
                "__global__ void f(int *x) { x[0] = 1; }",
                "g",
                "the source has no kernel 'g' (identifier \"g\" is undefined); it has: f",
            ),
            (
                "__global__ void f(int *x) { } __global__ void g(int *x) { }",
                None,
                "the source has 2 kernels (f, g); name one",
            ),
            ("void f() {}", None, "has no kernel; give a file"),
            ("missing.cu", None, "cannot be read (No such file or directory)"),
        ],
    )
    def test_what_is_wrong_is_one_sentence(self, source: str, name: str | None, message: str) -> None:
        with pytest.raises((SourceError, KernelError)) as refused:
            Kernel.from_cuda(source, name, 1, 32, {"x": 1})
        assert message in str(refused.value)
        assert "\n" not in str(refused.value)

    def test_what_a_kernel_of_cuda_has_not(self) -> None:
        kernel = Kernel.from_cuda("__global__ void f(int *x) { x[threadIdx.x] = 1; }", None, 1, 32, {"x": 32})
        with pytest.raises(KernelError, match="is PTX, which has no form in OpenCL C"):
            kernel.as_opencl()
        with (
            pytest.warns(match="f was not measured"),
            pytest.raises(pm.PerfmodelError, match="choose a device of CUDA"),
        ):
            pm.measure([kernel], pm.Model("f_cl_wall_time", "p_a * f_work_items"), device="cpu")
        with pytest.raises(KernelError, match="has no array 'y'"):
            emulate(kernel, {"y": np.zeros(3)})
        with pytest.raises(KernelError, match="is given 12 bytes"):
            emulate(kernel, {"x": np.zeros(3, "int32")})

    def test_constants_are_given_by_name(self) -> None:
        source = "__constant__ float c[4]; __global__ void f(float *x) { x[threadIdx.x] = c[threadIdx.x & 3]; }"
        kernel = Kernel.from_cuda(source, None, 1, 32, {"x": 32})
        given = np.array([1, 2, 3, 4], "float32")
        np.testing.assert_array_equal(emulate(kernel, {"c": given}).array("x"), np.tile(given, 8))
        with pytest.raises(KernelError, match="has 16 bytes, and is given 20"):
            emulate(kernel, {"c": np.zeros(5, "float32")})

    def test_transfers(self) -> None:
        kernel = Kernel.from_cuda("__global__ void f(int *x) { x[threadIdx.x] = 1; }", None, 1, 32, {"x": 32})
        assert feature("f_transfer_bytes_from").eval(kernel.with_transfers()) == 128

    def test_no_second_compilation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("PERFMODEL_NO_CACHE", raising=False)
        source = "__global__ void again(int *x) { x[threadIdx.x] = 12345; }"
        first = Kernel.from_cuda(source, None, 1, 32, {"x": 32})
        monkeypatch.setattr(cuda_compiler, "_compile", None)
        assert Kernel.from_cuda(source, None, 1, 32, {"x": 32}) == first


@pytest.fixture
def another_compiler() -> Iterator[None]:
    """Forgets the compiler that was found, before and after."""
    cuda_compiler._compiler.cache_clear()
    yield
    cuda_compiler._compiler.cache_clear()


def test_the_compiler_after_a_crash_and_in_a_forked_process(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    monkeypatch.setenv("PERFMODEL_NO_CACHE", "1")
    plain = "__global__ void f(int *x) { x[0] = 1; }"
    crashing = "template <typename T> __global__ void f(Unknown *a, T *b) { b[0] = a[0]; }"
    with pytest.raises(SourceError, match='"Unknown" is undefined'):
        Kernel.from_cuda(crashing, "f<float>", 1, 1, {"a": 1, "b": 1})
    assert Kernel.from_cuda(plain, "f", 1, 1, {"x": 1}).name == "f"
    forked = os.fork()
    if not forked:
        os._exit(0 if Kernel.from_cuda(plain, "f", 1, 1, {"x": 1}).name == "f" else 1)
    assert os.waitpid(forked, 0)[1] == 0
    assert Kernel.from_cuda(plain, "f", 1, 1, {"x": 1}).name == "f"


def test_arrays_are_no_numbers_of_elements() -> None:
    source = 'extern "C" __global__ void k(float *a, int n) { a[threadIdx.x] = n; }'
    with pytest.raises(KernelError, match="argument 'a' of kernel 'k' is given ndarray, not its number of elements"):
        Kernel.from_cuda(source, "k", 1, 64, {"a": np.zeros(64, np.float32)}, n=3)  # type: ignore[dict-item]


def test_missing_compiler(monkeypatch: pytest.MonkeyPatch, another_compiler: None) -> None:
    monkeypatch.setattr(cuda_compiler, "toolkits", lambda: iter([]))
    with pytest.raises(KernelError, match=r"add it by pip install 'perfmodel\[nvidia\]'"):
        Kernel.from_cuda("__global__ void f(int *x) {}", "f", 1, 32, {"x": 1})


@pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH", "PATH"])
def test_compiler_of_a_toolkit(
    monkeypatch: pytest.MonkeyPatch, another_compiler: None, tmp_path: Path, variable: str
) -> None:
    """A machine with a toolkit needs no package; CUDA 13 has the headers of its C++ library in a folder apart."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    packages = {name: _package(name) for name in ("cuda_nvrtc", "cuda_runtime", "cuda_cccl")}
    (tmp_path / "include").mkdir()
    for part in (packages["cuda_runtime"] / "include").iterdir():
        (tmp_path / "include" / part.name).symlink_to(part)
    (tmp_path / "include" / "cccl").symlink_to(packages["cuda_cccl"] / "include")
    (tmp_path / "lib64").symlink_to(packages["cuda_nvrtc"] / "lib")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvcc").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "bin" / "nvcc").chmod(0o755)
    monkeypatch.setattr(cuda_toolkit, "_OF_12", ())
    monkeypatch.setattr(cuda_toolkit, "_OF_13", ())
    monkeypatch.setattr(cuda_toolkit, "_USUAL", tmp_path / "nowhere")
    for each in ("CUDA_HOME", "CUDA_PATH", "PATH"):
        monkeypatch.setenv(each, str(tmp_path / "nowhere"))
    monkeypatch.setenv(variable, str(tmp_path / "bin" if variable == "PATH" else tmp_path))
    monkeypatch.setenv("PERFMODEL_NO_CACHE", "1")
    source = """
    #include <cuda_fp16.h>
    #include <cuda/std/type_traits>
    __global__ void f(__half *x) { x[threadIdx.x] = cuda::std::is_same<int, int>::value; }
    """
    kernel = Kernel.from_cuda(source, None, 1, 32, {"x": 32})
    assert len(kernel.counts_for(32).accesses) == 1
    assert cuda_compiler._compiler().headers == [tmp_path / "include", tmp_path / "include" / "cccl"]


def _package(name: str) -> Path:
    (folder,) = importlib.import_module(f"nvidia.{name}").__path__
    return Path(folder)


def test_headers_for_the_host_are_done_without_where_they_are_not_understood(tmp_path: Path) -> None:
    (tmp_path / "cublas_v2.h").write_text("typedef UnknownOfTheRuntime cublasHandle_t;\n")
    (tmp_path / "common.h").write_text("#include <cublas_v2.h>\nstruct Session { cublasHandle_t handle; };\n")
    kernel = "__global__ void fill(float *a) { a[threadIdx.x] = 1; }\n"
    for included in ("#include <cublas_v2.h>\n", '#include "common.h"\n'):
        text = cuda_compiler.compiled(included + kernel, "fill", [f"-I{tmp_path}"])
        assert ".entry" in text.ptx
