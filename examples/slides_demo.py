"""The demonstration of Stevens' 2018 slides: matrix multiplication, with prefetch or without, by two model strings.

    python examples/slides_demo.py

Small sizes and microbenchmarks are measured, and larger sizes predicted; `perfmodel demo` does more of each.
"""

from __future__ import annotations

import perfmodel as pm

LOAD = "f_mem_access_global_float32_load"
ONE_TERM = "p_madd * f_op_float32_madd"
OVERLAP = f"""
overhead = p_launch * f_sync_kernel_launch
gmem     = p_rows * {LOAD}_lstrides:{{0:0}} + p_columns * {LOAD}_lstrides:{{0:1}}
onchip   = p_madd * f_op_float32_madd + p_local * f_mem_access_local_float32
overhead + smooth_max(gmem, onchip, p_edge)
"""


def main() -> None:
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    measured = [
        kernel
        for tags in (
            ["matmul_sq", "tiled_prefetch:*", "n:128,192,256,320"],
            ["global_copy", "loads:1,2", "n:65536,262144"],
            ["throughput", "op:madd", "n:4096", "m:256,512"],
            ["launch", "groups:16,256"],
        )
        for kernel in collection.generate_kernels(tags)
    ]
    models = {"one term": pm.Model("f_cl_wall_time", ONE_TERM), "overlap": pm.Model("f_cl_wall_time", OVERLAP)}
    table = pm.measure(measured, models.values(), protocol="quick", store="slides.sqlite")
    checks = collection.generate_kernels(["matmul_sq", "tiled_prefetch:*", "n:384,448"])
    times = pm.measure(checks, models.values(), protocol="quick", store="slides.sqlite")["f_cl_wall_time"]
    for name, model in models.items():
        calibration = model.fit(table)
        print(f"\n{name}")
        print("\n".join(calibration.parameter_lines()))
        for kernel, seconds in zip(checks, times, strict=True):
            ratio = float(calibration.predict(kernel)) / seconds
            print(f"  {kernel.variant.split()[1]} n={kernel.sizes['n']}: predicted {ratio:.2f} times the measured time")


if __name__ == "__main__":
    main()
