"""Short ways to write Loopy kernels and to ask for their counts, for the tests of counting; and a hard kernel."""

from __future__ import annotations

from typing import Any

import loopy as lp
import numpy as np

import perfmodel as pm
from perfmodel.counting.counts import KernelCounts

STEPS = """
__kernel void steps(__global float *a, int n) {
    int i = get_global_id(0);
    float s = 0;
    for (int k = 0; k < i % 1000 + (i / 64) % 7 * 50; k++) s = s * 0.5f + 1.0f;
    a[i] = s;
}"""
"""The loop of this OpenCL C kernel ends at remainders by large numbers, which make hard sets."""


def make(domains: Any, instructions: str, arrays: dict[str, Any], **options: Any) -> Any:
    """Makes a Loopy program; `arrays` maps "a, b" to a shape or to options of GlobalArg, other names to sizes."""
    arguments: list[Any] = []
    for name, given_ in arrays.items():
        spec = {"shape": given_} if isinstance(given_, str) else dict(given_)
        arguments.append(lp.GlobalArg(name, spec.pop("dtype", np.float32), **spec))
    sizes = [lp.ValueArg(name, np.int32) for name in options.pop("sizes", ("n",))]
    return lp.make_kernel(domains, instructions, [*arguments, *sizes], lang_version=(2018, 2), **options)


def counted(name: str, kernel: pm.Kernel, **sizes: int) -> float:
    return pm.feature(name).eval(kernel.at(**sizes))


def tagged(program: Any, **tags: str) -> Any:
    return lp.tag_inames(program, tags)


def is_whole(counts: KernelCounts, sizes: Any) -> bool:
    """Returns True if every count is a whole number that is not negative."""
    executions = [counts.barriers, *(o.executions for o in counts.operations), *(a.executions for a in counts.accesses)]
    values = [float(c(sizes)) for e in executions for c in (e.workitem, e.subgroup, e.workgroup) if c is not None]
    values += [float(a.footprint(sizes)) for a in counts.accesses if a.footprint is not None]
    values += [float(f.elements(sizes)) for f in counts.footprints if f.elements is not None]
    return all(value >= 0 and value == int(value) for value in values)
