"""A program that uses pyopencl and knows nothing of perfmodel; `perfmodel run docs/pyopencl_program.py` profiles it.

It smooths a row of numbers a few times and adds them up: `python docs/pyopencl_program.py [N]`.
"""

import sys

import numpy as np
import pyopencl as cl
import pyopencl.array

SOURCE = """
__kernel void smooth(__global const float *old, __global float *new, const int n)
{
    const int i = get_global_id(0);
    if (i > 0 && i < n - 1)
        new[i] = (old[i - 1] + 2 * old[i] + old[i + 1]) / 4;
}
"""


def main(n: int) -> float:
    context = cl.Context(cl.get_platforms()[0].get_devices())
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    smooth = cl.Program(context, SOURCE).build().smooth
    old = cl.array.to_device(queue, np.linspace(0, 1, n, dtype=np.float32))
    new = old.copy()
    for _ in range(4):
        smooth(queue, (n,), (64,), old.data, new.data, np.int32(n))
        old, new = new, old
    return float(cl.array.sum(2 * old).get())


if __name__ == "__main__":
    print(f"sum: {main(int(sys.argv[1]) if len(sys.argv) > 1 else 4096):.1f}")
