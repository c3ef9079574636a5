"""Generated kernels do as much work as they promise, and published sets of them are complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

import perfmodel as pm
from perfmodel.models.unified import LARGE, SMALL, evaluation_kernels, measurement_classes


@pytest.mark.parametrize("op", ["madd", "add", "mul", "div", "pow", "sqrt", "rsqrt", "exp", "cos"])
def test_throughput_kernels_do_the_operation_they_name(op: str, collection: pm.KernelCollection) -> None:
    """32 accumulators, m rounds: 32 m operations a work-item; what else there is does not grow with m."""
    small, large = collection.generate_kernels(["throughput", f"op:{op}", "n:256", "m:64,128"])
    count = pm.feature(f"f_op_float32_{op}")
    assert count.eval(large) - count.eval(small) == 256 * 32 * 64
    everything = pm.feature("f_op_float32")
    assert everything.eval(large) - everything.eval(small) == 256 * 32 * 64


def test_unrolled_operations_stay_in_one_loop(collection: pm.KernelCollection) -> None:
    """Loopy may order loops as it likes: a loop for each operation would measure latency, not throughput."""
    (kernel,) = collection.generate_kernels(["throughput", "op:madd", "n:256", "m:64"])
    assert kernel.launch().source.count("for (") == 1


@pytest.mark.parametrize(
    ("name", "number"),
    {
        # Shapes, strides, operations or configurations, times work-groups, times sizes, as 2016, section 4.1 has them.
        "matrix multiplication": 4 * 3 * 4,
        "naive matrix multiplication": 3 * 4,
        "vector scale and add": 3 * 3 * 4,
        "transpose": 3 * 3 * 4,
        "stride-1 global access": 3 * 3 * 9,
        "stride-2 filled global access": 3 * 4,
        "stride-3 filled global access": 3 * 4,
        "arithmetic operations": 5 * 3 * 3 * 3,
        "empty kernel": 3 * 6,
    }.items(),
)
def test_the_unified_measurement_set_is_the_published_one(
    name: str, number: int, collection: pm.KernelCollection
) -> None:
    assert len(collection.generate_kernels(measurement_classes(LARGE)[name])) == number


def test_the_unified_test_kernels_are_none_of_the_measurement_set(collection: pm.KernelCollection) -> None:
    def kernels(sets: Mapping[str, Sequence[str]]) -> list[pm.Kernel]:
        return [kernel for tags in sets.values() for kernel in collection.generate_kernels(tags)]

    for sizes in (LARGE, SMALL):
        tests, measured = kernels(evaluation_kernels(sizes)), kernels(measurement_classes(sizes))
        assert len(tests) == 4 * 4
        assert not set(map(repr, tests)) & set(map(repr, measured))
