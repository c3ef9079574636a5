"""Times the kernels on this machine's GPU, by way of CUDA and of OpenCL.

Kernels on random numbers are measured in campaigns, with a store. Those with data are measured in a process of their
own, which is started again where one of them ends it.
"""

from __future__ import annotations

import faulthandler
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import perfmodel as pm
from perfmodel.basics.json_values import reason
from perfmodel.device import CUDA, OPENCL, Device, find_device
from perfmodel.measuring.protocol import PROTOCOLS, run_launch, time_launch

MEASURED = "measured.jsonl"
STORE = "measurements.sqlite"
LIMIT_S = 90
"""So many seconds one kernel with data may take, by way of both runtimes."""
RUNTIMES = (CUDA, OPENCL)


class Timed(Protocol):
    """A kernel at one launch, by way of one runtime or more.

    Attributes:
        has_data: whether its arrays hold something else than random numbers.
    """

    @property
    def name(self) -> str: ...

    @property
    def origin(self) -> str: ...

    @property
    def has_data(self) -> bool: ...

    def kernel(self, runtime: str) -> pm.Kernel: ...

    def contents(self, kernel: pm.Kernel) -> dict[str, np.ndarray]:
        """Returns what the arrays of a kernel of either language hold; nothing where that is random."""

    def difference(self, outputs: Mapping[str, Mapping[str, np.ndarray]]) -> str:
        """Returns where results by way of the runtimes differ; empty where they don't."""


def devices(gpu: str, runtimes: Sequence[str]) -> dict[str, Device]:
    """Returns the devices that runtimes make of a GPU."""
    return {runtime: find_device(gpu, runtime=runtime) for runtime in runtimes}


def measure(wanted: Sequence[Timed], folder: Path, gpu: str, runtimes: Sequence[str], module: str) -> None:
    """Measures what the folder has no times of, and writes a line for each kernel.

    Args:
        module: whose command ``worker`` calls `work`.
    """
    for runtime, device in devices(gpu, runtimes).items():
        print(f"{runtime}: {device.key}, driver {device.driver}, {device.opencl_version}", flush=True)
    _measure_random([case for case in wanted if not case.has_data], folder, gpu, runtimes)
    _measure_with_data([case for case in wanted if case.has_data], folder, gpu, module)


def done(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns what was measured, by the names of kernels."""
    path = folder / MEASURED
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {row["name"]: row for row in map(json.loads, lines)}


def _measure_random(wanted: Sequence[Timed], folder: Path, gpu: str, runtimes: Sequence[str]) -> None:
    known = done(folder)
    left = [case for case in wanted if case.name not in known]
    if not left:
        return
    found: dict[str, list[Any]] = {}
    with pm.Store(folder / STORE) as store:
        for runtime, device in devices(gpu, runtimes).items():
            kernels = [case.kernel(runtime) for case in left]
            campaign = pm.Campaign(kernels, [device], store=store)
            (result,) = campaign.run(progress=False).devices
            found[runtime] = [
                {"seconds": each.seconds if each.seconds == each.seconds else None, "flags": list(each.flags)}
                for each in result.results
            ]
            print(f"{runtime}: {result.new} measured, {result.known} known, {result.stopped}", flush=True)
    for number, case in enumerate(left):
        _write(folder, case, {runtime: found[runtime][number] for runtime in runtimes}, "")


def _measure_with_data(wanted: Sequence[Timed], folder: Path, gpu: str, module: str) -> None:
    while left := [case for case in wanted if case.name not in done(folder)]:
        command = [sys.executable, "-m", module, "worker", str(folder), "--gpu", gpu]
        ended = subprocess.run([*command, "--only", *(case.name for case in left)], check=False)
        still = [case for case in left if case.name not in done(folder)]
        if still and len(still) <= len(left) and ended.returncode:
            print(f"{still[0].name} ended its process ({ended.returncode})", flush=True)
            _write(folder, still[0], {}, f"ended its process ({ended.returncode})")
        elif still:
            return


def work(wanted: Sequence[Timed], folder: Path, gpu: str, runtimes: Sequence[str]) -> None:
    """Measures kernels with data in this process; ends it where one takes too long."""
    for case in wanted:
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        times: dict[str, Any] = {}
        outputs: dict[str, dict[str, Any]] = {}
        why = ""
        for runtime, device in devices(gpu, runtimes).items():
            try:
                kernel = case.kernel(runtime)
                launch, contents = kernel.launch(), case.contents(kernel)
                timing = time_launch(launch, device, PROTOCOLS["unified"], contents)
                times[runtime] = {"seconds": timing.seconds, "flags": list(timing.flags)}
                outputs[runtime] = run_launch(launch, device, contents)
            except Exception as error:
                why += f"{runtime}: {reason(error)} "
        if not why:
            why = case.difference(outputs)
        _write(folder, case, times, why.strip())
        print(f"{case.name}: {times} {why}", flush=True)
        if why.startswith(CUDA):  # whose context may be spoilt
            sys.exit(3)


def _write(folder: Path, case: Timed, times: dict[str, Any], why: str) -> None:
    row = {"name": case.name, "origin": case.origin, "why": why, "times": times}
    with (folder / MEASURED).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
