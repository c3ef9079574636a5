"""Decides which device should run a kernel, from one emulated work-group, without any of the devices.

python examples/device_selection.py
"""

from __future__ import annotations

import numpy as np

import perfmodel as pm

SOURCE = """
__kernel void escape(__global int *steps, __global const float *x, const int n, const int limit)
{
    const int i = get_global_id(0);
    float a = x[i], b = 0.0f;
    int step = 0;
    while (step < limit && a * a + b * b < 4.0f) {
        const float c = a * a - b * b + x[i];
        b = 2.0f * a * b;
        a = c;
        ++step;
    }
    steps[i] = step;
}
"""


def main() -> None:
    n = 2**20
    kernel = pm.Kernel.from_opencl(SOURCE, "escape", n, 256, {"steps": n, "x": n}, n=n, limit=200)
    arrays = {"x": np.linspace(-2.5, 1.0, n, dtype=np.float32)}
    for transfers in (False, True):
        choice = pm.choose_device(kernel, ["H200", "HD7970", "C2050"], arrays, transfers=transfers)
        print(f"{'with' if transfers else 'without'} copying arrays: {choice.device}")
        print(choice)


if __name__ == "__main__":
    main()
