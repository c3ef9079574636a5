"""Runs a cluster whose workers own different devices: each kernel goes to the one that is predicted to be the fastest.

    python -m pip install distributed
    python examples/dask_devices.py

Every worker is started with the device that it owns as a resource (`dask worker … --resources "H200=1"`; below, a
local cluster stands for that). The scheduler's side knows profiles only: it needs neither the devices nor their
drivers. `route` is all of the decision; it works without Dask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import perfmodel as pm


@dataclass
class Router:
    """Sends kernels to devices, by when each would be done: what is waiting there counts, as predicted.

    Attributes:
        devices: what workers own, as `perfmodel.choose_device` takes it, by the names of the resources.
        busy_s: predicted seconds of what was sent to each device and is not done.
    """

    devices: Mapping[str, Any]
    busy_s: dict[str, float] = field(default_factory=dict)

    def route(self, kernel: pm.Kernel, arrays: Mapping[str, Any] | None = None) -> tuple[str, float]:
        """Returns the device that is done first, inputs and outputs copied, and the seconds that the kernel takes
        there."""
        choice = pm.choose_device(kernel, self.devices, arrays, transfers=True)
        best = min(choice.ranked, key=lambda each: self.busy_s.get(each.device, 0.0) + each.seconds)
        self.busy_s[best.device] = self.busy_s.get(best.device, 0.0) + best.seconds
        return best.device, best.seconds

    def done(self, device: str, seconds: float) -> None:
        """Notes that a kernel which was sent to a device for so many seconds has been run."""
        self.busy_s[device] = max(0.0, self.busy_s[device] - seconds)


def run(kernel: pm.Kernel) -> float:
    """Runs on a worker; returns the seconds that the kernel takes there."""
    table = pm.measure(kernel, pm.Model("f_cl_wall_time", "p_time"), protocol="quick", progress=False)
    return float(table["f_cl_wall_time"].iloc[0])


def submit(client: Any, router: Router, kernels: Sequence[pm.Kernel]) -> list[tuple[str, Any]]:
    """Sends each kernel to a worker that owns its device; returns the devices and Dask's futures."""
    sent = []
    for kernel in kernels:
        device, seconds = router.route(kernel)
        future = client.submit(run, kernel, resources={device: 1}, pure=False)
        future.add_done_callback(lambda _, device=device, seconds=seconds: router.done(device, seconds))
        sent.append((device, future))
    return sent


def main() -> None:
    from distributed import Client, SpecCluster, Worker
    from distributed.scheduler import Scheduler

    names = ("H200", "Xeon-2")  # here both workers run on what this machine has; on a cluster, on what they own
    workers = {
        name: {"cls": Worker, "options": {"nthreads": 1, "resources": {name: 1}, "dashboard_address": None}}
        for name in names
    }
    scheduler = {"cls": Scheduler, "options": {"dashboard_address": None}}
    router = Router({name: name for name in names})
    generated = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(
        ["reduction", "dtype:float32", "n:1024,2^20,2^24"]
    )
    kernels = [kernel.as_opencl() for kernel in generated]
    with SpecCluster(scheduler=scheduler, workers=workers) as cluster, Client(cluster) as client:
        for kernel, (device, future) in zip(kernels, submit(client, router, kernels), strict=True):
            print(f"{kernel!r} went to {device} and took {future.result():.3g} s")


if __name__ == "__main__":
    main()
