"""Sizes that the type of an argument cannot hold are refused wherever sizes are given, and all others are taken."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import KernelError

SOURCE = """
kernel void k(global float *x, int n, uint m, char c, long wide, float f)
{
    for (int j = 0; j < m; j++) x[get_global_id(0)] += j * f + c + n + wide;
}
"""
SIZES: dict[str, Any] = {"n": 1024, "m": 10, "c": 3, "wide": 7}


@cache
def kernel() -> pm.Kernel:
    return pm.Kernel.from_opencl(SOURCE, "k", "(n + 255) // 256 * 256", 256, {"x": "n"})


@cache
def calibration() -> pm.Calibration:
    return pm.Calibration.shipped(device="H200")


WAYS: dict[str, Callable[..., object]] = {
    "predict": lambda **sizes: calibration().predict(kernel(), **sizes),
    "interval": lambda **sizes: calibration().interval(kernel(), 0.9, **sizes),
    "explain": lambda **sizes: calibration().explain(kernel(), **sizes),
    "rank": lambda **sizes: calibration().rank([kernel()], **sizes),
    "update": lambda **sizes: calibration().update(kernel(), 1e-3, **sizes),
    "at": lambda **sizes: kernel().at(**sizes),
    "bind": lambda **sizes: kernel().bind(sizes),
    "feature": lambda **sizes: pm.feature("f_thread_groups").eval(kernel().at(**sizes)),
    "emulate": lambda **sizes: pm.emulate(kernel().at(**sizes)),
}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"n": 2**40}, "n=1099511627776 of kernel 'k' does not fit into int32; declare a wider argument"),
    ({"n": -(2**31) - 1}, "size n=-2147483649 of kernel 'k' is negative"),
    ({"m": 2**32}, "m=4294967296 of kernel 'k' does not fit into uint32; declare a wider argument"),
    ({"m": -1}, "m=-1 of kernel 'k' does not fit into uint32; give 0 or more"),
    ({"c": 128}, "c=128 of kernel 'k' does not fit into int8; declare a wider argument"),
    ({"c": np.int64(-129)}, "c=-129 of kernel 'k' does not fit into int8; declare a wider argument"),
    ({"n": np.array(2**31)}, "n=2147483648 of kernel 'k' does not fit into int32; declare a wider argument"),
]
NO_NUMBERS: list[Any] = [float("nan"), 1.5, None, "a", [[1], [2, 3]], True]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("given", "words"), WRONG)
def test_one_sentence_names_argument_and_type(way: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(KernelError) as caught:
        WAYS[way](**{**SIZES, **given})
    assert str(caught.value) == words


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("given", NO_NUMBERS, ids=repr)
def test_what_is_no_whole_number_is_refused_alike(way: str, given: Any) -> None:
    with pytest.raises(KernelError, match=r"n=.* is not a (whole )?number|takes one number for each size"):
        WAYS[way](**{**SIZES, "n": given})


@pytest.mark.parametrize("way", ["predict", "interval", "bind"])
def test_arrays_are_looked_at_whole(way: str) -> None:
    for given, words in (({"n": [64, 2**40]}, "n=1099511627776 of"), ({"m": np.array([-3, 5])}, "m=-3 of")):
        with pytest.raises(KernelError, match=f"{words} kernel 'k' does not fit into u?int32; "):
            WAYS[way](**{**SIZES, **given})


def test_the_last_that_fits_is_taken() -> None:
    ends: dict[str, Any] = {"n": 2**31 - 1, "m": 2**32 - 1, "c": -128, "wide": -(2**62)}
    assert float(calibration().predict(kernel(), **ends)) > 0
    assert calibration().predict(kernel(), **{**ends, "c": np.array([-128, 127])}).shape == (2,)
    assert kernel().at(**ends).launch().arrays()[0].size == 2**31 - 1
    assert calibration().predict(kernel(), **{**SIZES, "n": np.array([], dtype=np.int64)}).size == 0


def test_catalogued_kernels_are_no_exception() -> None:
    product = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "n:1024", "dtype:float32"])[0]
    for ways in (product.at, lambda n: calibration().predict(product, n=n)):
        with pytest.raises(KernelError, match="n=1099511627776 of kernel 'matmul_sq' does not fit into int32; declare"):
            ways(n=2**40)
    with pytest.raises(KernelError, match="n=1099511627776 of kernel 'matmul_sq' does not fit into int32; declare"):
        calibration().predict(product, n=[64, 2**40])
