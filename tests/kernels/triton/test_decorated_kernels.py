"""Kernels under Triton's decorators get the constants and options that these say."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perfmodel import Kernel, emulate
from perfmodel.basics.errors import KernelError, SourceError

ARRAYS = ("random:float32:4096",) * 2


@pytest.fixture
def kernels() -> ModuleType:
    pytest.importorskip("triton", reason="the compiler of the extra triton is not installed")
    from tests.kernels.triton import decorated

    return decorated


@pytest.mark.parametrize(("n", "threads"), [(1000, 64), (4000, 256)])
def test_heuristics_set_constants_and_options(kernels: Any, n: int, threads: int) -> None:
    x = np.arange(4096, dtype=np.float32)
    kernel = Kernel.from_triton(kernels.doubled, 1, [x, np.zeros_like(x)], n=n)
    assert kernel.launch().local_size == (threads,)
    np.testing.assert_array_equal(emulate(kernel).array("y")[:n], 2 * x[:n])


def test_a_constant_may_be_an_option_too(kernels: Any) -> None:
    tensor = SimpleNamespace(dtype="torch.float32", shape=(4096,), element_size=lambda: 4)
    kernel = Kernel.from_triton(kernels.asked, 1, [tensor, tensor], num_warps=8)
    assert kernel.launch().local_size == (256,)


def test_heuristics_that_ask_for_more_than_is_known(kernels: Any) -> None:
    with pytest.raises(KernelError, match=r"the heuristic for 'IS_WIDE' of kernel 'asked' fails on what is given"):
        Kernel.from_triton(kernels.asked, 1, ARRAYS, num_warps=4)
    kernel = Kernel.from_triton(kernels.asked, 1, ARRAYS, num_warps=4, IS_WIDE=False)
    x = np.arange(4096, dtype=np.float32)
    np.testing.assert_array_equal(emulate(kernel, {"x": x}).array("y")[:128], x[:128] + 2)


def test_the_only_configuration_of_an_autotuner_is_taken(kernels: Any) -> None:
    kernel = Kernel.from_triton(kernels.tuned_once, lambda meta: (4096 // meta["BLOCK"],), ARRAYS, n=4096)
    assert kernel.launch().global_size == (8 * 64,)
    wide = Kernel.from_triton(kernels.tuned_once, "n // BLOCK", ARRAYS, n=4096, BLOCK=1024, num_warps=4)
    assert wide.launch().global_size == (4 * 128,)


def test_an_autotuner_tells_its_first_configuration(kernels: Any) -> None:
    with pytest.raises(KernelError, match=r"the first of its autotuner's 2 configurations is BLOCK=256, num_warps=4"):
        Kernel.from_triton(kernels.tuned, "n // BLOCK", ARRAYS, n=4096)


def test_errors_in_functions_that_a_kernel_calls_are_told(kernels: Any) -> None:
    with pytest.raises(SourceError, match=r"unexpected keyword argument 'nothing'.* \(line 2 of it\)"):
        Kernel.from_triton(kernels.calls_wrong, 1, ["random:float32:16"])
