"""Every generated kernel computes what its family's numpy reference says, and does as much work as it promises."""

from __future__ import annotations

import pytest

import perfmodel as pm
from perfmodel.device import Device
from perfmodel.verification import verify_family


@pytest.mark.parametrize("family", [generator.name for generator in pm.ALL_GENERATORS])
def test_kernels_compute_their_reference(family: str, collection: pm.KernelCollection, cpu: Device) -> None:
    assert verify_family(collection.generators[family], cpu) > 0


@pytest.mark.parametrize("op", ["madd", "add", "mul", "div", "pow", "sqrt", "rsqrt", "exp", "cos"])
def test_throughput_kernels_do_the_operation_they_name(op: str, collection: pm.KernelCollection) -> None:
    """8 accumulators, m rounds: 8 m operations a work-item; what else there is does not grow with m."""
    small, large = collection.generate_kernels(["throughput", f"op:{op}", "n:256", "m:8,16"])
    count = pm.feature(f"f_op_float32_{op}")
    assert count.eval(large) - count.eval(small) == 256 * 8 * 8
    everything = pm.feature("f_op_float32")
    assert everything.eval(large) - everything.eval(small) == 256 * 8 * 8


def test_unrolled_operations_stay_in_one_loop(collection: pm.KernelCollection) -> None:
    """Loopy may order loops as it likes: a loop for each operation would measure latency, not throughput."""
    (kernel,) = collection.generate_kernels(["throughput", "op:madd", "n:256", "m:8"])
    assert kernel.launch().source.count("for (") == 1
