"""Kernels of Triton compute what numpy computes, and are counted and predicted; most from texts that Triton made."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from perfmodel import Calibration, Kernel, emulate
from perfmodel.basics.errors import KernelError, SourceError
from perfmodel.kernels.arguments import Array
from perfmodel.ptx.emulation.narrow_floats import decoded
from perfmodel.vocabulary.named_features import feature
from tests.kernels.triton.case import SHORT, Case
from tests.kernels.triton.cases import CASES
from tests.kernels.triton.texts import PATH, kernel_of
from tests.ptx.executed import executions
from tests.ptx.stored_kernels import load


def check(kernel: Kernel, case: Case) -> None:
    found = emulate(kernel, case.arrays, groups="all")
    for name, wanted in case.wanted().items():
        values: Any = found.array(name).reshape(wanted.shape)
        if case.type:
            values = decoded(values, SHORT[case.type])
        np.testing.assert_allclose(values.astype(float), wanted, rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize("title", CASES)
def test_results_are_those_of_numpy(title: str) -> None:
    check(load(PATH, title), CASES[title])


@pytest.mark.parametrize(
    ("title", "name", "count"),
    [
        ("matmul fp16 nt", "f_op_float16_mma", 128 * 128 * 64),
        ("matmul fp16 nt", "f_op_float16_mma_granularity:subgroup", 128 * 128 * 64 / 32),
        ("matmul fp16 nt", "f_mem_bytes_global_load", 2 * 128 * 64 * 2),
        ("matmul tf32", "f_op_tfloat32_mma", 64**3),
        ("matmul tf32 sm_80", "f_op_tfloat32_mma", 64**3),
        ("matmul bf16 sm_80", "f_op_bfloat16_mma", 64**3),
        ("matmul fp8", "f_op_float8_mma", 64 * 64 * 128),
        ("matmul int8", "f_op_int8_mma", 64 * 64 * 96),
        ("matmul ieee", "f_op_mma", 0),
        ("matmul ieee", "f_op_float32_madd", 64 * 48 * 64),
        ("attention", "f_op_float16_mma", 2 * 2 * 128 * 128 * 64),
        ("attention causal", "f_op_float16_mma", 2 * 2 * 128 * 128 * 64 * 3 / 4),
        ("described_matmul", "f_mem_bytes_global_load", 2 * (3 * 100 * 96 + 2 * 72 * 96)),
        ("described_matmul", "f_mem_bytes_global_store", 2 * 100 * 72),
        ("described_matmul", "f_op_float16_mma", 6 * 64 * 32 * 96),
        ("tiles sm_90", "f_mem_rounds_global_granularity:longest", 6 * 128),
        ("described_matmul", "f_mem_rounds_global_granularity:longest", 3 * 128 * 2 * 3),
        ("tiles sm_90", "f_mem_footprint_global_load", 2 * 100 * 136),
        ("tiles sm_80", "f_mem_bytes_global_load", 2 * 100 * 136),
        ("described_add", "f_mem_bytes_global_atomic", 4 * 24 * 40),
        ("locked_sum", "f_mem_bytes_global_atomic", 2 * 4 * 4),
        ("vector_add", "f_op_float32_add", 3072),
    ],
)
def test_counts_are_those_of_the_algorithm(title: str, name: str, count: float) -> None:
    assert feature(name).eval(load(PATH, title)) == count


@pytest.mark.parametrize("title", ["matmul fp16", "attention sm_80", "described_matmul", "softmax", "cross_entropy"])
def test_counts_are_those_of_computing_all_values(title: str) -> None:
    kernel, arrays = load(PATH, title), CASES[title].arrays
    assert executions(kernel, arrays, True)[:2] == executions(kernel, arrays, False)[:2]


@pytest.mark.parametrize("title", ["matmul fp16", "softmax", "attention sm_80", "scatter_add"])
def test_kernels_are_predicted(title: str) -> None:
    kernel = load(PATH, title).as_observed(CASES[title].arrays)
    assert 1e-6 < float(Calibration.shipped(device="H200").predict(kernel)) < 1e-4


@pytest.mark.parametrize("title", ["matmul fp16", "matmul fp8 sm_89", "rms_norm"])
def test_triton_compiles_without_a_gpu(title: str) -> None:
    pytest.importorskip("triton", reason="the compiler of the extra triton is not installed")
    check(kernel_of(CASES[title]), CASES[title])


def test_missing_triton_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton.backends.compiler", None)
    with pytest.raises(KernelError, match=r"add it by pip install 'perfmodel\[triton\]'"):
        Kernel.from_triton(print, 1)


class TestCalls:
    """Kernels are called as Triton's users call them."""

    @pytest.fixture(autouse=True)
    def _triton(self) -> None:
        pytest.importorskip("triton", reason="the compiler of the extra triton is not installed")

    def add(self, *args: Any, **keywords: Any) -> Kernel:
        from tests.kernels.triton import sources

        return Kernel.from_triton(sources.vector_add, *args, **keywords)

    def test_grids_are_numbers_expressions_and_functions(self) -> None:
        args = ("random:float32:n",) * 3
        for grid in (5, (5,), "(n + BLOCK - 1) // BLOCK", lambda meta: (-(-meta["n"] // meta["BLOCK"]),)):
            assert self.add(grid, args, n=5000, BLOCK=1024).launch().global_size == (5 * 128,)
        assert self.add(5, args, n=5000, BLOCK=1024, num_warps=8).launch().local_size == (256,)

    def test_sizes_may_stay_open(self) -> None:
        kernel = self.add("(n + BLOCK - 1) // BLOCK", ("random:float32:n",) * 3, BLOCK=1024)
        name = feature("f_op_float32_add")
        assert [name.eval(kernel.at(n=n)) for n in (1000, 5000)] == [1024, 5120]

    def test_what_was_compiled_for_multiples_of_16_is_for_them_only(self) -> None:
        kernel = self.add("(n + BLOCK - 1) // BLOCK", ("random:float32:n",) * 3, n=1024, BLOCK=1024)
        assert kernel.at(n=2048).launch()
        with pytest.raises(KernelError, match=r"n=1000 breaks what kernel 'vector_add' assumes: n % 16 == 0"):
            kernel.at(n=1000)

    def test_assumptions_are_compiled_for(self) -> None:
        words = ("random:float32:n",) * 3
        grid, widths = "(n + BLOCK - 1) // BLOCK", []
        for assumptions in ("", "n % 16 == 0"):
            kernel = self.add(grid, words, BLOCK=1024, assumptions=assumptions).at(n=16384)
            wide = feature("f_mem_access_global_load_bits:128").eval(kernel)
            widths.append(wide)
        assert widths == [0, 2 * 16384 / 4]

    def test_arrays_are_given_as_numpy_has_them(self) -> None:
        x = np.arange(2000, dtype="float32")
        kernel = self.add(2, {"x": x, "y": x, "out": np.zeros_like(x), "n": 2000}, BLOCK=1024)
        np.testing.assert_array_equal(emulate(kernel, groups="all").array("out"), 2 * x)
        narrow = self.add(2, (Array("x", "bfloat16", 2000),) * 3, n=2000, BLOCK=1024)
        assert feature("f_op_bfloat16_add").eval(narrow) + feature("f_op_float32_add").eval(narrow) == 2048

    @pytest.mark.parametrize(
        ("args", "keywords", "said"),
        [
            ((), {}, "needs the constant 'BLOCK'; give it as BLOCK="),
            ((1, 2, 3, 4, 5, 6), {"BLOCK": 16}, "takes 5 arguments, and is given 6"),
            ({"z": 1}, {"BLOCK": 16}, "has no argument 'z'"),
            ({"n": 1}, {"BLOCK": 16, "n": 2}, "'n' of kernel 'vector_add' is given twice"),
            ((), {"BLOCK": 16, "blocks": 2}, "has no argument 'blocks'"),
            ((object(),), {"BLOCK": 16}, "argument 'x' cannot be"),
            ((np.zeros(3, "complex64"),), {"BLOCK": 16}, "holds complex64, which Triton's kernels don't take"),
        ],
    )
    def test_what_cannot_be_is_said(self, args: Any, keywords: dict[str, Any], said: str) -> None:
        with pytest.raises(KernelError, match=said):
            self.add(1, args, **keywords)

    @pytest.mark.parametrize(
        ("grid", "keywords", "said"),
        [
            (None, {}, "grid of kernel 'vector_add' cannot be None; write whole numbers or expressions by axis"),
            (2.5, {}, "grid of kernel 'vector_add' cannot be 2.5; give whole numbers"),
            (b"4", {}, "grid of kernel 'vector_add' cannot be b'4'; give whole numbers"),
            (lambda meta: 1 / 0, {}, "the grid of kernel 'vector_add' fails on what is given"),
            (lambda meta: None, {}, "the grid of kernel 'vector_add' fails on what is given"),
            (1, {"assumptions": 3}, "assumption of kernel 'vector_add' cannot be 3; write comparisons"),
            (1, {"num_warps": 3}, "Triton refuses the options num_warps=3 "),
            (1, {"num_warps": "4"}, "Triton refuses the options num_warps='4' "),
            (1, {"tags": 3}, "tags=3 say nothing by name"),
        ],
    )
    def test_launches_that_are_none_are_said(self, grid: Any, keywords: dict[str, Any], said: str) -> None:
        with pytest.raises(KernelError, match=said):
            self.add(grid, ("random:float32:n",) * 3, BLOCK=1024, n=1024, **keywords)

    def test_what_triton_does_not_compile_is_said(self) -> None:
        with pytest.raises(SourceError, match="Triton does not compile 'vector_add'"):
            self.add(1, ("random:float32:n",) * 3, BLOCK=1000, n=1000)
        with pytest.raises(KernelError, match="is none of NVIDIA's that Triton compiles for"):
            self.add(1, (), BLOCK=1024, target="gfx90a")
