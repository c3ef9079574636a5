"""Finds the cycles that functions of vectors of 512 bits take on processors, from one call to the next.

    python -m benchmarks.function_cycles \
        --times docs/results/cpu-intel-xeon-processor-0b3c4a/measurements.sqlite.xz intel-xeon-processor-0b3c4a - \
        --times docs/results/cpu-amd-epyc-aead93/measurements.sqlite.xz amd-epyc-aead93 \
            docs/results/cpu-amd-epyc-aead93/facts.json \
        --times docs/results/cpu-amd-epyc-8a9d3e/special-functions.sqlite.xz amd-epyc-8a9d3e \
            docs/results/cpu-amd-epyc-8a9d3e/facts.json

Kernels of the family ``special_functions`` do nothing else, and stores have their times. They are counted as the
machine code that Intel's driver makes of them for AVX-512. For each is sought how many cycles a call has to take for
the calibration that comes along, carried over to the processor, to say what was measured. The table has these cycles by
processor, their geometric mean, which `perfmodel.x86.units` has, and what that has now.
"""

from __future__ import annotations

import argparse
import os
import warnings
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

import perfmodel as pm
from perfmodel.basics.tables import grid
from perfmodel.device import find_device
from perfmodel.device.facts import device_facts
from perfmodel.kernels.driver_code import TARGET
from perfmodel.measuring.store import Store
from perfmodel.x86.units import OF_AVX512, function_cycles

FAMILY = "special_functions"
TAGS = (FAMILY, "dtype:*", "form:plain,native", "function:*", "m:64", "n:2^16")
PRICE, MOST = "p_core_functions", 1000.0
SUFFIXES = {"float32": "f16", "float64": "8"}


def callee(kernel: pm.Kernel) -> str:
    """Returns what a kernel calls for vectors of 512 bits."""
    variant = kernel.tags
    kind = "_native" if variant["form"] == "native" else ""
    return f"__ocl_svml_{OF_AVX512}0_{variant['function']}{SUFFIXES[variant['dtype']]}{kind}"


def cycles_of(kernel: pm.Kernel, seconds: float, calibration: pm.Calibration) -> float:
    """Returns the cycles of a call with which a calibration says that a kernel takes so many seconds; nan for no
    number of them, or if the kernel calls no function."""
    counted, price = kernel.as_core_code(), calibration.parameters[PRICE]
    if not pm.feature("f_core_functions").eval(counted):
        return float("nan")

    def off(times: float) -> float:
        changed = replace(calibration, parameters={**calibration.parameters, PRICE: price * times})
        return float(changed.predict(counted)) - seconds

    if off(0) > 0 or off(MOST) < 0:
        return float("nan")
    return float(brentq(off, 0, MOST, xtol=1e-4)) * function_cycles(callee(kernel))


def main() -> None:
    parser = argparse.ArgumentParser(description="cycles of functions of vectors, by times of processors")
    parser.add_argument("--times", action="append", nargs=3, required=True, metavar=("STORE", "DEVICE", "FACTS"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ[TARGET] = "skx"
    base = pm.Calibration.shipped("cpu", "intel-xeon-processor-0b3c4a")
    kernels = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels([*TAGS])
    model = pm.Model("f_cl_wall_time", "p_launch * f_sync_kernel_launch")
    found = []
    for store, name, facts in arguments.times:
        calibration = base if facts == "-" else base.on(device_facts(facts))
        with Store(store, read_only=True) as times:
            device = find_device(name, times.devices())
            seconds = pm.measure(kernels, model, device=device, store=times, progress=False)["f_cl_wall_time"]
        found.append([cycles_of(kernel, took, calibration) for kernel, took in zip(kernels, seconds, strict=True)])
    lines = []
    for kernel, each in zip(kernels, np.array(found).T, strict=True):
        if not np.isnan(each).all():
            mean, now = float(np.exp(np.nanmean(np.log(each)))), function_cycles(callee(kernel))
            lines.append([callee(kernel), *(f"{number:.1f}" for number in (*each, mean, now))])
    print(grid(["function", *(name for _, name, _ in arguments.times), "mean", "now"], lines))


if __name__ == "__main__":
    main()
