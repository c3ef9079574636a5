"""Kernels of Numba compute what numpy computes, and are counted and predicted; most from texts that Numba made."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from perfmodel import Calibration, Kernel, emulate
from perfmodel.basics.errors import KernelError, SourceError
from perfmodel.vocabulary.named_features import feature
from tests.kernels.numba.cases import CASES
from tests.kernels.numba.texts import PATH, kernel_of
from tests.ptx.stored_kernels import load


def check(kernel: Kernel, title: str) -> None:
    case = CASES[title]
    arrays = {name: value.T if np.isfortran(value) else value for name, value in case.arrays.items()}
    found = emulate(kernel, arrays, groups="all")
    for name, wanted in case.wanted().items():
        values = found.array(name)
        is_f = np.isfortran(case.arguments[name])
        values = values.reshape(wanted.T.shape).T if is_f else values.reshape(wanted.shape)
        np.testing.assert_allclose(values, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("title", CASES)
def test_results_are_those_of_numpy(title: str) -> None:
    check(load(PATH, title), title)


def test_counts_are_those_of_the_algorithm() -> None:
    kernel = load(PATH, "matmul")
    assert feature("f_op_float32_madd").eval(kernel) == 9 * 256 * 64
    assert feature("f_sync_barrier_local").eval(kernel) == 9 * 256 * 8
    assert feature("f_mem_bytes_global_load").eval(load(PATH, "axpy")) == 2 * 4 * 1000


def test_kernels_are_predicted() -> None:
    assert 1e-6 < float(Calibration.shipped(device="H200").predict(load(PATH, "matmul"))) < 1e-4


def test_missing_numba_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(KernelError, match=r"add it by pip install 'perfmodel\[numba\]'"):
        Kernel.from_numba(print, 1, 1)


class TestCalls:
    """Kernels are called as Numba's users call them."""

    @pytest.fixture(autouse=True)
    def _numba(self) -> None:
        pytest.importorskip("numba.cuda", reason="the compiler of the extra numba is not installed")

    @pytest.mark.parametrize("title", ["options", "strided"])
    def test_numba_compiles_without_a_gpu(self, title: str) -> None:
        check(kernel_of(title), title)

    def axpy(self, *args: Any, **keywords: Any) -> Kernel:
        from tests.kernels.numba import sources

        return Kernel.from_numba(sources.axpy, *args, **keywords)

    def test_sizes_may_stay_open(self) -> None:
        words = {"a": 2.5, "x": "random:float32:n", "y": "random:float32:n"}
        kernel = self.axpy("(n + 255) // 256", 256, words)
        loads = feature("f_mem_bytes_global_load")
        assert [loads.eval(kernel.at(n=n)) for n in (1000, 5000)] == [8000, 40000]

    def test_what_a_kernel_names_is_compiled_anew(self) -> None:
        program = (
            "import sys, numpy as np; from perfmodel import Kernel, emulate\n"
            "FACTOR = int(sys.argv[1])\n"
            "def scale(x):\n    x[0] = FACTOR\n"
            "kernel = Kernel.from_numba(scale, 1, 1, [np.zeros(1)])\n"
            "print(emulate(kernel).array('x')[0])"
        )
        for factor in (2, 3):
            ended = subprocess.run([sys.executable, "-c", program, str(factor)], capture_output=True, text=True)
            assert ended.stdout.strip() == f"{factor}.0", ended.stderr

    @pytest.mark.parametrize(
        ("args", "keywords", "said"),
        [
            ((1.0, 2, 3, 4), {}, "takes 3 arguments, and is given 4"),
            ({"z": 1}, {}, "has no argument 'z'"),
            ({"a": 1}, {"a": 2}, "'a' of kernel 'axpy' is given twice"),
            ((1.0, "random:float32:n", "random:float32:n"), {"m": 2}, "has no argument 'm'"),
            ((object(),), {}, "argument 'a' cannot be"),
        ],
    )
    def test_what_cannot_be_is_said(self, args: Any, keywords: dict[str, Any], said: str) -> None:
        with pytest.raises(KernelError, match=said):
            self.axpy(1, 256, args, **keywords)

    @pytest.mark.parametrize("given", [None, 2.5, b"4", object()])
    def test_launches_that_are_none_are_said(self, given: Any) -> None:
        arguments = (1.0, "random:float32:n", "random:float32:n")
        with pytest.raises(KernelError, match=r"grid of kernel 'axpy' cannot be .*; give whole"):
            self.axpy(given, 256, arguments)
        with pytest.raises(KernelError, match=r"block of kernel 'axpy' cannot be .*; give whole"):
            self.axpy(1, given, arguments)

    def test_what_numba_does_not_compile_is_said(self) -> None:
        with pytest.raises(SourceError, match="Numba does not compile 'axpy'"):
            self.axpy(1, 256, (1.0, 2.0, 3.0))
        with pytest.raises(KernelError, match="is no kernel of Numba"):
            Kernel.from_numba(3, 1, 1)
