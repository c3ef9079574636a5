"""A kernel of one's own in a ``.cl`` file: counted, looked into, predicted.

    python examples/own_opencl_kernel.py

The same from the command line:

    perfmodel explain --device h200 examples/blur.cl --global n,n --local 16,16 --arg n=2048 \
        --arg 'out=n*n' --arg 'image=(n+2)*(n+2)'
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import perfmodel as pm


def main() -> None:
    blur = pm.Kernel.from_opencl(
        Path(__file__).with_name("blur.cl"),
        "blur",
        ("n", "n"),
        (16, 16),
        {"out": "n*n", "image": "(n+2)*(n+2)"},
        assumptions="n % 16 == 0",
        n=2048,
    )
    loads = pm.feature("f_mem_access_global_float32_load").eval(blur)
    print(f"{loads / 2048**2:g} loads a pixel")
    print(pm.emulate(blur.at(n=64)))
    calibration = pm.Calibration.shipped(device="H200")
    print("seconds on an H200:", calibration.predict(blur, n=np.array([1024, 2048, 4096])))
    print(calibration.explain(blur))


if __name__ == "__main__":
    main()
