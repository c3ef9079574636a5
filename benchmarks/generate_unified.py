"""Times the generation of the whole unified-model measurement set: programs, OpenCL C, and symbolic counts.

    python -m benchmarks.generate_unified

Each run is a process of its own: the first with an empty cache, the others with what it left there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUN = "--run"


def generate() -> None:
    start = time.perf_counter()
    import perfmodel as pm
    from perfmodel.models.unified import LARGE, measurement_classes

    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    kernels = [kernel for tags in measurement_classes(LARGE).values() for kernel in collection.generate_kernels(tags)]
    built = time.perf_counter()
    programs = {id(kernel.program): kernel for kernel in kernels}
    for kernel in kernels:
        kernel.launch()
    launched = time.perf_counter()
    for kernel in programs.values():
        _ = kernel.counts
    counted = time.perf_counter()
    print(
        f"{len(kernels)} kernels of {len(programs)} programs: {counted - start:.1f} s "
        f"(building {built - start:.1f} s, OpenCL C {launched - built:.1f} s, counts {counted - launched:.1f} s)"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        environment = {k: v for k, v in os.environ.items() if k not in ("PERFMODEL_NO_CACHE", "LOOPY_NO_CACHE")}
        for name in ("empty cache", "cached", "cached"):
            print(f"{name}: ", end="", flush=True)
            subprocess.run(
                [sys.executable, "-m", "benchmarks.generate_unified", RUN],
                check=True,
                env={**environment, "XDG_CACHE_HOME": cache},
                cwd=Path(__file__).parent.parent,
            )


if __name__ == "__main__":
    generate() if RUN in sys.argv else main()
