"""Tells what NVIDIA's driver says of the GPUs that CUDA reaches."""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.basics.errors import DeviceError
from perfmodel.device.cuda_driver import CudaDriver, CudaError, cuda_driver, release_of_driver


@dataclass(frozen=True)
class ToldByCuda:
    """Holds what the driver says of one GPU.

    Attributes:
        ordinal: the driver's number of it.
        driver: the driver's release, `version` that of CUDA which it knows.
        capability: NVIDIA's number of the GPU's features, such as ``9.0``.
        shared_bytes: the most that a block may have, dynamic shared memory included.
    """

    ordinal: int
    name: str
    driver: str
    version: str
    capability: str
    units: int
    clock_mhz: int
    memory_bytes: int
    shared_bytes: int
    most_threads: int
    block_sizes: tuple[int, ...]
    warp_size: int
    pci_address: tuple[int, ...]
    vendor: str = "NVIDIA Corporation"


def told_by_cuda() -> list[ToldByCuda]:
    """Returns what the driver says of every GPU; nothing where it, or the package that calls it, is missing."""
    try:
        driver, release = cuda_driver(), release_of_driver()
        return [_told(driver, release, ordinal) for ordinal in range(driver.count())]
    except (DeviceError, CudaError):  # `cuda_driver` says why
        return []


def _told(driver: CudaDriver, release: str, ordinal: int) -> ToldByCuda:
    def told(name: str) -> int:
        return driver.attribute(ordinal, name)

    return ToldByCuda(
        ordinal=ordinal,
        name=driver.name(ordinal),
        driver=release,
        version=driver.version(),
        capability=f"{told('COMPUTE_CAPABILITY_MAJOR')}.{told('COMPUTE_CAPABILITY_MINOR')}",
        units=told("MULTIPROCESSOR_COUNT"),
        clock_mhz=told("CLOCK_RATE") // 1000,
        memory_bytes=driver.memory_bytes(ordinal),
        shared_bytes=told("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        most_threads=told("MAX_THREADS_PER_BLOCK"),
        block_sizes=tuple(told(f"MAX_BLOCK_DIM_{axis}") for axis in "XYZ"),
        warp_size=told("WARP_SIZE"),
        pci_address=tuple(told(f"PCI_{part}_ID") for part in ("DOMAIN", "BUS", "DEVICE")),
    )
