"""Compares times taken on several devices of one host at once with those taken on each alone.

``python -m benchmarks.several_devices --devices 'nvidia*'`` measures the same kernels on each device alone, again
alone, and then on all at once, each time into a new store, and compares the times kernel by kernel.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import perfmodel as pm
from perfmodel.device import OPENCL, Device
from perfmodel.measuring.campaign import Campaign, CampaignResult
from perfmodel.measuring.campaign.this_machine import ThisMachine

# Short and long kernels, of every resource that several devices could share: launches, memory, arithmetic.
TAGS = (
    ("launch", "groups:16,1024,16384"),
    ("matmul_sq", "tiled_prefetch:*", "n:512,1024,2048"),
    ("global_copy", "stride:1,2,4", "loads:1,2,4", "n:1048576,16777216"),
    ("arithmetic", "op:*", "n:512,1024", "k:256"),
    ("barrier", "n:1048576", "m:64,256"),
    ("transpose", "*", "n:1024,2048,4096"),
)


def kernels() -> list[pm.Kernel]:
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    return [kernel for tags in TAGS for kernel in collection.generate_kernels([tag for tag in tags if tag != "*"])]


def measured(devices: list[Device], store: Path, scheduler: str | None = None) -> CampaignResult:
    started = time.perf_counter()
    result = Campaign(kernels(), devices, store=store, scheduler=scheduler).run(progress=False)
    took = time.perf_counter() - started
    where = scheduler or "this machine's processes"
    print(f"{len(result.devices[0].results)} kernels each on {len(devices)} by {where}: {took:.1f} s", flush=True)
    print(result, flush=True)
    return result


def times(result: CampaignResult) -> np.ndarray:
    """Returns the seconds by device and kernel."""
    return np.array([[row.seconds for row in each.results] for each in result.devices])


def compared(what: str, some: np.ndarray, others: np.ndarray) -> None:
    """Prints the ratios of times, for kernels of all lengths and for those above 50 µs."""
    for label, chosen in (("all", some > 0), ("over 50 µs", (some > 5e-5) & (others > 5e-5))):
        ratios = (some / others)[chosen & (others > 0)]
        low, middle, high = np.percentile(ratios, [5, 50, 95])
        within = np.mean(np.abs(ratios - 1) < 0.02)
        print(
            f"{what}, {label}: {ratios.size} times, median ratio {middle:.4f}, 5 to 95 % from {low:.4f} to {high:.4f}, "
            f"{100 * within:.1f} % within 2 %"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--devices", default="all", help="keys, separated by commas (default: all of one kind)")
    parser.add_argument("--out", default=".", help="folder for the stores")
    parser.add_argument("--cluster", action="store_true", help="once more, by a Dask cluster on this machine")
    parsed = parser.parse_args()
    with pm.Store() as store:
        devices = ThisMachine().chosen(parsed.devices.split(","), store, OPENCL)
    print(", ".join(device.key for device in devices))
    folder = Path(parsed.out)
    alone = np.vstack([times(measured([each], folder / f"alone-{i}.sqlite")) for i, each in enumerate(devices)])
    again = np.vstack([times(measured([each], folder / f"again-{i}.sqlite")) for i, each in enumerate(devices)])
    together = times(measured(devices, folder / "together.sqlite"))
    compared("alone again / alone", again, alone)
    compared("all at once / alone", together, alone)
    if parsed.cluster:
        compared("by Dask workers / alone", times(measured(devices, folder / "cluster.sqlite", "local")), alone)
    return 0


if __name__ == "__main__":
    sys.exit(main())
