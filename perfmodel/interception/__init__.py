"""Launches of any program that uses pyopencl or CuPy, recorded without changing it: profiled, emulated and predicted.

`intercept` is the way in. What a kernel's arguments were set to is noted (`given`, by `patches`), each launch becomes a
`LaunchRecord`, each copy a `CopyRecord`, and records are kept in a `LaunchLog`. A record gives a `Kernel`, which
predicts; `program_times` puts all together.
"""

from __future__ import annotations

from typing import Literal

from perfmodel.interception.arguments import InterceptionWarning, LaunchArgument
from perfmodel.interception.log import LaunchLog
from perfmodel.interception.record import LaunchRecord

__all__ = ["InterceptionWarning", "LaunchArgument", "LaunchLog", "LaunchRecord", "intercept"]


def intercept(
    contents: bool | Literal["first"] = False, limit_bytes: int = 256 * 2**20, profiles: bool = False
) -> LaunchLog:
    """Records every launch and copy that this process makes by pyopencl or CuPy within a ``with`` block.

    >>> with perfmodel.intercept() as log:
    ...     run_my_application()
    >>> print(log)
    >>> print(log.times([perfmodel.Calibration.shipped(device="h200")]))
    >>> log[0].predict(perfmodel.Calibration.shipped("unified-plus", device="h200"))

    Programs do what they do without it: the same results, events, exceptions and order. Arguments that were set before
    the block and kernels built from binaries are recorded as far as they are known.

    Args:
        contents: whether arrays are copied before each launch that may read them, as emulation needs; ``"first"``
            copies for the first of all launches of the same kernel at the same sizes only.
        limit_bytes: no contents are kept of a launch whose arrays have more bytes together.
        profiles: whether queues that are made within the block tell times although the program did not ask for that.

    Raises:
        KernelError: for options that are none of these.
        DeviceError: pyopencl does not load (when the block is entered).
    """
    return LaunchLog(contents, limit_bytes, profiles)
