"""Whole grids of many kernels: what the emulation leaves in memory is what a real device does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from numpy.typing import NDArray

from perfmodel.device import Device
from perfmodel.opencl_c.emulation import Argument, LocalBytes, emulate
from perfmodel.opencl_c.lowering import lower
from perfmodel.opencl_c.reading import read
from tests.opencl_c.kernel_files import Launch, launches
from tests.opencl_c.tally import argument

DIFFERENT = {
    "integer_functions": "the CPU device's mad_sat of uint4 wraps around where it should saturate",
}
"""Kernels for which a device may rightly or wrongly give something else."""


def on_device(device: Device, launch: Launch, arguments: dict[str, Argument]) -> dict[str, NDArray[Any]]:
    context, queue = device.context(), device.queue()
    options = [*launch.options, *(f"-I{folder}" for folder in launch.folders)]
    if not launch.is_optimized:  # without, one of the CPU devices gets collective functions of some work-items wrong
        options.append("-cl-opt-disable")
    kernel = cl.Kernel(cl.Program(context, launch.source).build(options), launch.kernel)
    buffers: dict[str, cl.Buffer] = {}
    for position, (name, given) in enumerate(arguments.items()):
        if isinstance(given, LocalBytes):
            kernel.set_arg(position, cl.LocalMemory(given.size))
        elif "array" in launch.arguments[position]:
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            buffers[name] = cl.Buffer(context, flags, hostbuf=given)
            kernel.set_arg(position, buffers[name])
        else:
            kernel.set_arg(position, given)
    cl.enqueue_nd_range_kernel(queue, kernel, launch.global_size, launch.local_size)
    results = {}
    for name, buffer in buffers.items():
        results[name] = np.empty_like(arguments[name])
        cl.enqueue_copy(queue, results[name], buffer)
    queue.finish()
    return results


@pytest.mark.parametrize("launch", launches(), ids=str)
def test_a_kernel_does_what_it_does_on_a_device(launch: Launch, cpu: Device) -> None:
    if launch.needs and launch.needs not in cpu.context().devices[0].extensions:
        pytest.skip(f"the device has no {launch.needs}")
    if launch.kernel in DIFFERENT:
        pytest.xfail(DIFFERENT[launch.kernel])
    random = np.random.default_rng(0)
    arguments = {given["name"]: argument(given, random) for given in launch.arguments}
    unit = read(launch.source, launch.options, launch.folders)
    found = emulate(lower(unit, launch.kernel), launch.global_size, launch.local_size, arguments, groups="all")
    for name, expected in on_device(cpu, launch, arguments).items():
        actual = found.array(name)
        if launch.is_exact:
            np.testing.assert_array_equal(actual, expected, err_msg=name)
        else:
            np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-4, err_msg=name)
    assert not found.findings
