"""Structs by value hold pointers to arrays, which are named after the words of four bytes where the pointers begin."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from perfmodel import Kernel, emulate, feature
from perfmodel.basics.errors import PerfmodelError
from perfmodel.kernels.arguments import Scalar, Struct
from perfmodel.kernels.ptx_program import PtxProgram
from perfmodel.measuring.isolation.child import as_launch, as_message

SOURCE = """
struct Rows { const float *x; float *y; int n; };
__global__ void twice(Rows p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.n) p.y[i] = 2 * p.x[i];
}
__global__ void twice_plain(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}

struct Outer { int n; struct { const float *x; double *y; } in; float by; };
__global__ void nested(Outer p, int *count) {
  int i = threadIdx.x;
  if (i < p.n) { p.in.y[i] = p.by * p.in.x[i]; atomicAdd(count, 1); }
}

template <typename T, int N> struct Accessor {
  T *data; int sizes[N]; long strides[N];
  __device__ T &at(int i, int j) const { return data[i * strides[0] + j * strides[1]]; }
};
template <typename T> __global__ void copied(Accessor<T, 2> from, Accessor<T, 2> to) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < from.sizes[1]) for (int i = 0; i < from.sizes[0]; ++i) to.at(i, j) = from.at(i, j);
}

struct Many { float *part[3]; int count; };
__global__ void summed(Many p, float *out) {
  float sum = 0;
  for (int k = 0; k < p.count; ++k) sum += p.part[k][threadIdx.x];
  out[threadIdx.x] = sum;
}
__global__ void summed_in_place(const __grid_constant__ Many p, float *out) {
  float sum = 0;
  for (int k = 0; k < p.count; ++k) sum += p.part[k][threadIdx.x];
  out[threadIdx.x] = sum;
}

struct Graph { const int *next; int *steps; long n; };
__global__ void followed(Graph p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, count = 0;
  if (i >= p.n) return;
  for (int at = i; at != 0; at = p.next[at]) ++count;
  p.steps[i] = count;
}
__global__ void followed_plain(const int *next, int *steps, long n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, count = 0;
  if (i >= n) return;
  for (int at = i; at != 0; at = next[at]) ++count;
  steps[i] = count;
}

struct Biased { float *x; const float *bias; void *spare; };
__global__ void biased(Biased p) { p.x[threadIdx.x] += p.bias ? p.bias[threadIdx.x] : 4.0f; }
"""
X = np.random.default_rng(1).random(1000, dtype="float32")


@pytest.fixture(autouse=True)
def _compiler() -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")


def twice(grid: int | str = "(p_4 + 255) / 256", **more: Any) -> Kernel:
    return Kernel.from_cuda(SOURCE, "twice", grid, 256, {"p_0": "p_4", "p_2": "p_4"}, **more)


class TestResults:
    def test_two_pointers_and_a_count(self) -> None:
        profile = emulate(twice(p_4=1000), {"p_0": X}, groups="all")
        np.testing.assert_array_equal(profile.array("p_2"), 2 * X)
        np.testing.assert_array_equal(profile.array("p_0"), X)
        accesses = twice(p_4=1000).counts_for(32).accesses
        assert {(each.variable, each.direction) for each in accesses} == {("p_0", "load"), ("p_2", "store")}

    def test_a_struct_in_a_struct(self) -> None:
        """Elements have the types that the code accesses."""
        bits = int(np.float32(2.5).view("int32"))
        kernel = Kernel.from_cuda(SOURCE, "nested", 1, 32, {"p_2": 32, "p_4": "p_0", "count": 1}, p_0=20, p_6=bits)
        given = {"p_2": X[:32], "count": np.zeros(1, "int32")}
        profile = emulate(kernel, given)
        assert profile.array("p_4").dtype == "float64"
        np.testing.assert_array_equal(profile.array("p_4"), 2.5 * X[:20])
        assert profile.array("count") == 20

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_an_accessor_of_a_tensor(self, dtype: str) -> None:
        name = {"float32": "copied<float>", "float64": "copied<double>"}[dtype]
        kernel = Kernel.from_cuda(SOURCE, name, 1, 64, {"from_0": "from_2 * from_3", "to_0": "from_2 * from_3"})
        strides = {"from_4": 50, "from_5": 0, "from_6": 1, "from_7": 0, "to_4": 1, "to_5": 0, "to_6": 10, "to_7": 0}
        x = X[:500].astype(dtype)
        profile = emulate(kernel.at(from_2=10, from_3=50, **strides), {"from_0": x})
        np.testing.assert_array_equal(profile.array("to_0").reshape(50, 10), x.reshape(10, 50).T)

    @pytest.mark.parametrize("name", ["summed", "summed_in_place"])
    def test_an_array_of_pointers(self, name: str) -> None:
        args = {"p_0": 32, "p_2": 32, "p_4": 32, "out": 32}
        kernel = Kernel.from_cuda(SOURCE, name, 1, 32, args, p_6=2, p_7=0)
        given = {f"p_{2 * k}": X[32 * k : 32 * k + 32] for k in range(3)}
        np.testing.assert_allclose(emulate(kernel, given).array("out"), X[:32] + X[32:64], rtol=1e-6)
        loads = [each for each in kernel.counts_for(32).accesses if each.direction == "load" and each.variable != "p_4"]
        assert {"p_0", "p_2"} <= {each.variable for each in loads}

    @pytest.mark.parametrize(("bias", "added"), [(32, X[:32]), (0, np.float32(4))])
    def test_null_pointers(self, bias: int, added: Any) -> None:
        kernel = Kernel.from_cuda(SOURCE, "biased", 1, 32, {"p_0": 32, "p_2": bias})
        given = {"p_0": np.ones(32, "float32")} | ({"p_2": X[:32]} if bias else {})
        np.testing.assert_array_equal(emulate(kernel, given).array("p_0"), 1 + added)

    def test_an_array_may_have_a_type_of_its_own(self) -> None:
        kernel = Kernel.from_cuda(SOURCE, "twice", 1, 256, {"p_0": "zeros:uint32:p_4", "p_2": 10}, p_4=10)
        assert emulate(kernel).array("p_0").sum() == 0
        given = {"p_0": X[:10].view("uint32")}
        np.testing.assert_array_equal(emulate(kernel, given).array("p_2"), 2 * X[:10])
        with pytest.raises(PerfmodelError, match="'p_0' holds 10 numbers of uint32, 40 bytes, and is given 80 bytes"):
            emulate(kernel, {"p_0": np.zeros(10)})

    def test_classes_of_fewer_bytes_than_a_word(self) -> None:
        source = """
        struct Nothing {}; struct Two { unsigned char most; bool is_doubled; }; struct Three { unsigned char r, g, b; };
        __global__ void k(float *x, Nothing how, Two by, Three colour, Nothing last) {
          x[threadIdx.x] = (by.is_doubled ? 2 : 1) * min(threadIdx.x, by.most) + colour.g;
        }"""
        kernel = Kernel.from_cuda(source, "k", 1, 32, {"x": 32}, by_0=0x0105, colour_0=0x0700)
        expected = 2 * np.minimum(np.arange(32), 5) + 7
        np.testing.assert_array_equal(emulate(kernel, groups="all").array("x"), expected)
        np.testing.assert_array_equal(emulate(kernel.at(how_0=0), groups="all").array("x"), expected)

    def test_words_of_a_ptx_text(self) -> None:
        program = twice().program
        assert isinstance(program, PtxProgram)
        text = program.text
        entry = text[text.index(".entry ") + 7 :].partition("(")[0]
        word = f"{entry}_param_0"
        numbers: dict[str, Any] = {f"{word}_4": 1000}
        kernel = Kernel.from_ptx(text, entry, 4, 256, {f"{word}_0": 1000, f"{word}_2": 1000}, **numbers)
        np.testing.assert_array_equal(emulate(kernel, {f"{word}_0": X}, groups="all").array(f"{word}_2"), 2 * X)


class TestCounts:
    @pytest.mark.parametrize(
        "name",
        [
            "f_op_float32_add",
            "f_mem_bytes_global_load",
            "f_mem_bytes_global_store",
            "f_mem_footprint_global_load",
            "f_mem_transactions_global_load_block:32",
            "f_branch_granularity:subgroup",
        ],
    )
    def test_are_those_of_plain_arguments(self, name: str) -> None:
        plain = Kernel.from_cuda(SOURCE, "twice_plain", "(n + 255) / 256", 256, {"x": "n", "y": "n"})
        for n in (1000, 100_000):
            assert feature(name).eval(twice(p_4=n)) == feature(name).eval(plain.at(n=n))

    def test_are_those_of_given_data(self) -> None:
        given = np.maximum(np.arange(1000, dtype="int32") - 100, 0)
        kernel = Kernel.from_cuda(SOURCE, "followed", 4, 256, {"p_0": "p_4", "p_2": "p_4"}, p_4=1000, p_5=0)
        plain = Kernel.from_cuda(SOURCE, "followed_plain", 4, 256, {"next": "n", "steps": "n"}, n=1000)
        loaded = feature("f_mem_bytes_global_load")
        found = loaded.eval(kernel.as_observed({"p_0": given}))
        assert found == loaded.eval(plain.as_observed({"next": given}))
        assert found == 4 * np.ceil(np.arange(1000) / 100).sum()

    def test_sizes_of_a_struct_are_sizes(self) -> None:
        kernel = twice()
        assert kernel.program.sizes == ("p_4",)
        assert feature("f_mem_bytes_global_store").eval(kernel.at(p_4=512)) == 2048


class TestLaunches:
    def test_bytes_hold_addresses(self) -> None:
        (struct,) = twice(p_4=7).launch().arguments
        assert isinstance(struct, Struct)
        assert [(each.name, each.size, each.is_output) for each in struct.arrays] == [
            ("p_0", 7, False),
            ("p_2", 7, True),
        ]
        held = struct.contents_with({"p_0": 0x7F0000000100, "p_2": 0x7F0000000200})
        assert np.frombuffer(held[:16], "uint64").tolist() == [0x7F0000000100, 0x7F0000000200]
        assert np.frombuffer(held[16:20], "int32") == 7
        assert (len(held), struct.contents[:16]) == (24, bytes(16))

    def test_messages_and_copies(self) -> None:
        launch = twice(p_4=7).launch()
        assert as_launch(json.loads(json.dumps(as_message(launch)))) == launch
        assert [array.name for array in launch.arrays()] == ["p_0", "p_2"]

    def test_structs_without_pointers_are_what_they_were(self) -> None:
        """Times in stores are found by what programs declare, as text."""
        struct = Struct("p", (Scalar("p_0", "int32"),), (0,), 4)
        assert repr(struct) == "Struct(name='p', fields=(Scalar(name='p_0', dtype='int32'),), offsets=(0,), n_bytes=4)"


ALL = {"p_0": 10, "p_2": 10}


@pytest.mark.parametrize(
    ("args", "numbers", "message"),
    [
        (
            {},
            {"p_4": 3},
            r"follows pointers in structs \(p_0, p_2\); give an array for each: args={'p_0': …, 'p_2': …}",
        ),
        ({"p_0": 10}, {"p_4": 3}, r"follows a pointer in a struct \(p_2\); give an array for each: args={'p_2': …}"),
        (
            {"p_0": 10},
            {"p_2": 0, "p_3": 0, "p_4": 3},
            "nothing lies; give its arrays, one for each pointer in a struct",
        ),
        ({"p_0": 10, "p_2": 0}, {"p_4": 3}, "nothing lies; give its arrays, one for each pointer in a struct"),
        ({"p": 10}, {}, r"argument 'p' of kernel 'twice' is a struct of 24 bytes; give the arrays of its pointers by"),
        ({"p_1": 10}, {}, "'p_1' .* no pointer can begin at byte 4 of a struct of 24; give it to a word at a multiple"),
        ({"p_5": 10}, {}, "no pointer can begin at byte 20 of a struct of 24; .*, as p_0 and p_2"),
        ({"p_9": 10}, {}, r"has no argument 'p_9'"),
        ({"p_0": X}, {}, "'p_0' of kernel 'twice' is given ndarray, not the number of elements"),
        ({"p_0": "zeros:float99:3"}, {}, "'float99' is no type of numbers"),
        ({"p_0": "zeros:3"}, {}, "'p_0'=zeros:3 is not understood; write"),
        ({"p_0": "m"}, {}, "'p_0' of kernel 'twice' needs 'm', which is no size of it"),
        (ALL, {"p_1": 0, "p_4": 3}, "has no size or argument 'p_1'"),
        (ALL, {"p_4": 11}, "accesses byte 40 of 'p_0', which has 40"),
    ],
)
def test_what_is_wrong_is_one_sentence(args: dict[str, Any], numbers: dict[str, Any], message: str) -> None:
    with pytest.raises(PerfmodelError, match=message) as refused:
        emulate(Kernel.from_cuda(SOURCE, "twice", 1, 256, args, **numbers))
    assert "\n" not in str(refused.value)


def test_pointers_that_are_found_nowhere() -> None:
    """The message names the struct alone, as the code looks the pointer up."""
    numbers: dict[str, Any] = {f"p_{k}": int(k == 6) for k in range(8)}
    kernel = Kernel.from_cuda(SOURCE, "summed", 1, 32, {"out": 32}, **numbers)
    with pytest.raises(PerfmodelError, match=r"pointers in structs at the words where these begin: args={'p_0': …}"):
        emulate(kernel)


def test_counting_needs_the_arrays_too() -> None:
    with pytest.raises(PerfmodelError, match=r"follows a pointer in a struct \(p_2\)"):
        feature("f_op_float32_add").eval(Kernel.from_cuda(SOURCE, "twice", 1, 256, {"p_0": 10}, p_4=3))
