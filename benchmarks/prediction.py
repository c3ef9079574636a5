"""Times predictions by the shipped cache-aware model, from source text and over arrays of sizes.

    PERFMODEL_NO_CACHE=1 python -m benchmarks.prediction

Each kernel is new to the process: reading, counting and evaluation are in its time.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

import perfmodel as pm

SIDE, KERNELS, SIZES = 4096, 200, 1_000_000
SUM = """__kernel void add(__global float *c, __global const float *a, __global const float *b, const int n)
{
    const int i = get_global_id(0);
    if (i < n) c[i] = a[i] + b[i];
}"""

warnings.simplefilter("ignore")


def main() -> None:
    calibration = pm.Calibration.shipped("cache-aware", device="H200")
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    for name in ("realistic", "unrestricted"):
        # Other seeds than those that the recipe predicts.
        tags = ["random_expression", f"set:{name}", f"seed:20001..{20000 + KERNELS}", f"n:{SIDE}"]
        sources = [kernel.launch().source for kernel in collection.generate_kernels(tags)]
        taken = [_seconds(calibration, source) for source in sources][2:]  # the first ones import modules
        shown = ", ".join(f"{q} %: {np.percentile(taken, q) * 1e3:.1f} ms" for q in (25, 50, 75, 95))
        print(f"{name}, {len(taken)} kernels from source: mean {np.mean(taken) * 1e3:.1f} ms; {shown}")
    kernel = pm.Kernel.from_opencl(SUM, "add", "(n + 255) // 256 * 256", 256, {"c": "n", "a": "n", "b": "n"})
    sizes = np.random.default_rng(1).integers(1, 2**28, SIZES)
    calibration.predict(kernel, n=sizes[:10])
    started = time.perf_counter()
    calibration.predict(kernel, n=sizes)
    print(f"{SIZES} sizes of one kernel: {SIZES / (time.perf_counter() - started):.3g} a second")


def _seconds(calibration: pm.Calibration, source: str) -> float:
    extents = {"elements": SIDE * SIDE, "xxx": 128, "result": SIDE * SIDE}
    started = time.perf_counter()
    calibration.predict(pm.Kernel.from_opencl(source, "random_expression", (SIDE, SIDE), (256, 1), extents))
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
