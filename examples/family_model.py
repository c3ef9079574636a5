"""A model that is made for one family of kernels: transposition, by its own accesses and nothing else.

    python examples/family_model.py

Each access of the kernels is measured alone, by work removal; no whole kernel is, but those that are predicted.
"""

from __future__ import annotations

import perfmodel as pm

COPY = "f_mem_access_global_float32"
MODEL = f"""
overhead = p_launch * f_sync_kernel_launch + p_group * f_thread_groups
along    = p_load * {COPY}_load_lstrides:{{0:1}} + p_store * {COPY}_store_lstrides:{{0:1}}
across   = p_strided_load * {COPY}_load_lstrides:{{0:>1}} + p_strided_store * {COPY}_store_lstrides:{{0:>1}}
overhead + along + across
"""


def main() -> None:
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    model = pm.Model("f_cl_wall_time", MODEL)
    kernels = collection.generate_kernels(["transpose", "access:strided_reads,strided_writes", "n:880"])
    singles = [
        single.at(n=n) for n in (240, 400, 560, 720) for kernel in kernels for single in kernel.with_each_access()
    ]
    launches = collection.generate_kernels(["launch", "groups:64,1024,4096"])
    table = pm.measure([*singles, *launches], model, protocol="quick", store="family.sqlite")
    calibration = model.fit(table)
    print("\n".join(calibration.parameter_lines()))
    times = pm.measure(kernels, model, protocol="quick", store="family.sqlite")["f_cl_wall_time"]
    for kernel, seconds in zip(kernels, times, strict=True):
        print(f"{kernel!r}: predicted {float(calibration.predict(kernel)):.3g} s, measured {seconds:.3g} s")


if __name__ == "__main__":
    main()
