"""Kernels that hang, crash, don't compile or need too much memory, beside one that is fine.

``perfmodel measure examples/troublesome_kernels.py:hangs examples/troublesome_kernels.py:fine --store times.sqlite
--time-limit 10`` shows what a campaign makes of them.
"""

from __future__ import annotations

import perfmodel as pm
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.opencl_program import OpenCLProgram


def _kernel(name: str, body: str, n: int = 1024) -> pm.Kernel:
    source = f"__kernel void {name}(__global float *a, long n)\n{{\n  {body}\n}}\n"
    return pm.Kernel(OpenCLProgram(source, name, ("n",), (1,), (Array("a", "float32", "n"), Scalar("n", "int64"))), n=n)


fine = _kernel("fine", "a[get_global_id(0)] *= n;")
hangs = _kernel("hangs", "volatile int x = 1; while (x) a[0] += 1;")
crashes = _kernel("crashes", "__global float *b = (__global float *)(size_t)(16 + 0 * n); b[0] = n;")
is_not_c = _kernel("is_not_c", "this is not C;")
too_large = _kernel("too_large", "a[get_global_id(0)] = 1;", n=2**40)
