"""Launches that cannot happen are refused by whatever looks at a kernel's sizes, in the same words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import loopy as lp
import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import KernelError
from perfmodel.report.count_table import count_tables

TILED = "__kernel void tiled(__global float *a, const int n) { a[get_global_id(1) * n + get_global_id(0)] = 1.0f; }"
NO_GROUPS = r"at n=1000, which is no whole number of work-groups along axis 0; choose other sizes"


def tiled(local: Any = (16, 16)) -> pm.Kernel:
    return pm.Kernel.from_opencl(TILED, "tiled", ("n", "n"), local, {"a": "n*n"})


def inner() -> pm.Kernel:
    """Returns a Loopy program of one work-group for every 16 of n, without an assumption on n."""
    program = lp.make_kernel(
        "{[i]: 0 <= i < n}", "a[i] = 1.0f", [lp.GlobalArg("a", np.float32, "n"), "..."], lang_version=(2018, 2)
    )
    program = lp.add_dtypes(program, {"n": np.int32})
    return pm.Kernel(lp.split_iname(program, "i", 16, outer_tag="g.0", inner_tag="l.0"))


@pytest.fixture(scope="module")
def calibration() -> pm.Calibration:
    return pm.Calibration.shipped("unified-plus", device="H200")


USES: dict[str, Callable[[pm.Calibration, pm.Kernel, int], object]] = {
    "predict": lambda calibration, kernel, n: calibration.predict(kernel, n=n),
    "predict arrays": lambda calibration, kernel, n: calibration.predict(kernel, n=[1024, n, 1008, 7]),
    "explain": lambda calibration, kernel, n: calibration.explain(kernel, n=n),
    "compare": lambda calibration, kernel, n: calibration.compare(kernel.at(n=16), kernel, n=n),
    "rank": lambda calibration, kernel, n: calibration.rank([kernel, kernel], n=n),
    "feature": lambda calibration, kernel, n: pm.feature("f_thread_groups").eval(kernel.at(n=n)),
    "count": lambda calibration, kernel, n: count_tables([kernel], [{"n": n}]),
    "choose device": lambda calibration, kernel, n: pm.choose_device(kernel.at(n=n), [calibration]),
    "measure": lambda calibration, kernel, n: kernel.at(n=n).launch(),
    "emulate": lambda calibration, kernel, n: pm.emulate(kernel.at(n=n)),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_half_a_work_group_is_refused(use: Callable[..., object], calibration: pm.Calibration) -> None:
    with pytest.raises(KernelError, match=NO_GROUPS):
        use(calibration, tiled(), 1000)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_launch_of_nothing_is_refused(use: Callable[..., object], calibration: pm.Calibration) -> None:
    for kernel in (tiled(), inner()):
        with pytest.raises(KernelError, match=r"at n=0, which is empty along axis 0"):
            use(calibration, kernel, 0)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_no_device_takes_such_work_groups(use: Callable[..., object], calibration: pm.Calibration) -> None:
    with pytest.raises(KernelError, match="no device takes work-groups of more than 65536 work-items"):
        use(calibration, tiled(("n", 1)), 2**30)


def test_the_first_size_that_cannot_be_launched_is_named(calibration: pm.Calibration) -> None:
    sizes = np.full((300, 200), 512)
    sizes[100:, 50] = 1016
    with pytest.raises(KernelError, match=r"1016 × 1016 work-items in groups of 16 × 16 at n=1016, which is no whole"):
        calibration.predict(tiled(), n=sizes)


def test_sizes_beyond_64_bits_are_no_smaller_ones(calibration: pm.Calibration) -> None:
    kernel = pm.Kernel.from_opencl(TILED, "tiled", ("n*n*n*n", 1), (16, 1), {"a": "n"})
    with pytest.raises(KernelError, match=f"launched with {2**64} × 1 work-items .* at n=65536, more than"):
        calibration.predict(kernel, n=[16, 2**16])  # in 64 bits, this is 0


def test_remainders_that_loopy_rounds_up_stay_fine(calibration: pm.Calibration) -> None:
    groups = calibration.predict(inner(), n=[1, 15, 16, 1000])
    assert groups.shape == (4,)
    assert pm.feature("f_thread_groups").eval(inner().at(n=1000)) == 63
