"""A program that uses pyopencl, as others have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from perfmodel.device import Device
from perfmodel.device.drivers import opencl

SCALE = """
__kernel void scale(__global float *a, const float factor, const int n)
{
    const int i = get_global_id(0);
    if (i < n)
        a[i] *= factor;
}
__kernel void row_sums(__global const float4 *a, __global float *sums, __local float *part)
{
    const int l = get_local_id(0), r = get_group_id(0);
    const float4 v = a[get_global_id(0)];
    part[l] = v.x + v.y + v.z + v.w;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l == 0) {
        float sum = 0;
        for (int k = 0; k < get_local_size(0); ++k)
            sum += part[k];
        sums[r] = sum;
    }
}
__kernel void positions(__global int *a, const int2 shift, const ulong big)
{
    a[get_global_id(0)] = get_global_id(0) + shift.x + shift.y + (int)big;
}
"""
NUMBERS = np.arange(16, dtype=np.float32)


class Bench:
    """A context, a queue and the kernels above, as a program would have them."""

    def __init__(self, device: Device) -> None:
        self.cl = cl = opencl()
        self.context, self.queue = device.context(), device.queue()
        self.program = cl.Program(self.context, SCALE).build(["-DUNUSED=1"])
        self.scale = self.program.scale

    def buffer(self, data: Any, flags: int = 0) -> Any:
        flags = flags or self.cl.mem_flags.READ_WRITE
        return self.cl.Buffer(self.context, flags | self.cl.mem_flags.COPY_HOST_PTR, hostbuf=np.ascontiguousarray(data))

    def read(self, buffer: Any, dtype: Any = np.float32) -> Any:
        data = np.empty(buffer.size // np.dtype(dtype).itemsize, dtype)
        self.cl.enqueue_copy(self.queue, data, buffer)
        return data
