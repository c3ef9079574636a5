"""Builds programs in processes side by side, and says how long each took.

NVIDIA's driver keeps what it built in a folder, from which the measuring process takes it. That folder is a new one
here, so that every time is that of a program which was never built before.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from perfmodel.basics.errors import KernelError
from perfmodel.device import Device
from perfmodel.kernels.launch import Launch

FOLDER = "CUDA_CACHE_PATH"


@contextmanager
def nothing_built() -> Iterator[None]:
    """Lets the driver keep what it builds in a new folder, which is removed in the end; before the driver is loaded."""
    before = os.environ.get(FOLDER)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            os.environ.pop(FOLDER)
            if before is not None:
                os.environ[FOLDER] = before


def built(launches: Sequence[Launch], device: Device, jobs: int) -> list[float]:
    """Returns the seconds that each program took to build, until it failed if it did."""
    context = multiprocessing.get_context("spawn")  # a driver that is loaded can't be forked
    with ProcessPoolExecutor(jobs, context, _open, (device.fingerprint(),)) as pool:
        return list(pool.map(_built, launches))


_device: Device | None = None


def _open(fingerprint: Mapping[str, Any]) -> None:
    global _device
    _device = Device.from_fingerprint(fingerprint)
    _device.session()


def _built(launch: Launch) -> float:
    assert _device is not None
    started = time.perf_counter()
    with suppress(KernelError):  # the campaign meets it again, and keeps the reason
        _device.session().kernel(launch.source, launch.kernel_name, launch.options)
    return time.perf_counter() - started
