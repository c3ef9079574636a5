"""Every generated kernel computes what its family's numpy reference says, and does as much work as it promises."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.device import Device
from perfmodel.measurement import run_launch

# Every variant of every family, at sizes small enough to check: one line a family.
SMALL = {
    "matmul_sq": (
        ["matmul_sq", "dtype:*", "tiled_prefetch:*", "lsize_0:8,16", "lsize_1:8,16", "n:32,48"],
        ["matmul_sq", "dtype:*", "tiled_prefetch:*", "groups_fit:False", "lsize_0:8,16", "lsize_1:4", "n:7,30,45"],
    ),
    "tile_access": (["tile_access", "dtype:*", "pattern:*", "lsize:8,16", "n:16,48"],),
    "global_copy": (["global_copy", "dtype:*", "stride:*", "loads:*", "lsize:64", "n:64,320"],),
    "arithmetic": (["arithmetic", "dtype:*", "op:*", "lsize:64", "n:128", "m:8,16"],),
    "empty": (["empty", "lsize:*", "n:1024"],),
}


def test_every_family_is_checked(collection: pm.KernelCollection) -> None:
    assert set(SMALL) == set(collection.generators)


@pytest.mark.parametrize("family", SMALL)
def test_kernels_compute_their_reference(family: str, collection: pm.KernelCollection, cpu: Device) -> None:
    random = np.random.default_rng(7)
    kernels = [kernel for tags in SMALL[family] for kernel in collection.generate_kernels(tags)]
    for kernel in kernels:
        launch = kernel.launch()
        arrays = {a.name: random.uniform(0.5, 1.5, a.size).astype(a.dtype) for a in launch.arrays()}
        expected = collection.generators[family].reference(kernel, arrays)
        found = run_launch(launch, cpu, arrays)
        assert set(expected) == {a.name for a in launch.arrays() if a.is_output}
        for name, values in expected.items():
            tolerance = 3e-5 if values.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(found[name], values, rtol=tolerance, err_msg=repr(kernel))


@pytest.mark.parametrize("op", ["madd", "add", "mul", "div", "pow", "sqrt", "rsqrt", "exp", "cos"])
def test_arithmetic_kernels_do_the_operation_they_name(op: str, collection: pm.KernelCollection) -> None:
    """8 accumulators, m rounds: 8 m operations a work-item; what else there is does not grow with m."""
    small, large = collection.generate_kernels(["arithmetic", f"op:{op}", "n:256", "m:8,16"])
    count = pm.feature(f"f_op_float32_{op}")
    assert count.eval(large) - count.eval(small) == 256 * 8 * 8
    everything = pm.feature("f_op_float32")
    assert everything.eval(large) - everything.eval(small) == 256 * 8 * 8


def test_unrolled_operations_stay_in_one_loop(collection: pm.KernelCollection) -> None:
    """Loopy may order loops as it likes: a loop for each operation would measure latency, not throughput."""
    (kernel,) = collection.generate_kernels(["arithmetic", "op:madd", "n:256", "m:8"])
    assert kernel.launch().source.count("for (") == 1
