"""Runs programs on an OpenCL device and compares what comes out with what must come out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.programs.program import Array, Arrays, Case, Local
from perfmodel.device import Device
from perfmodel.device.drivers import opencl

GUARD = np.full(256, 0xA5, np.uint8)
"""These bytes stand behind every array, and no kernel may write them."""


@dataclass(frozen=True)
class Outcome:
    """Tells what became of one launch: seconds by the device's clock, and why it is wrong, or nothing."""

    seconds: float
    why: str

    def __str__(self) -> str:
        return self.why or "right"


def run(case: Case, size: str, device: Device, judged: bool = True) -> Outcome:
    """Launches a case once and judges its results; whatever fails is the outcome's reason."""
    try:
        launch = case.launch(size)
        before = case.arrays(size, launch)
        seconds, after = _launched(case, launch.global_size, launch.local_size, before, device)
        if not judged:
            return Outcome(seconds, "")
        with np.errstate(all="ignore"):
            if launch.reference is None and launch.invariant is None:
                return Outcome(seconds, "nothing says what must come out")
            if launch.reference is not None:
                for name, expected in launch.reference(before).items():
                    compare(name, after[name], np.asarray(expected), launch.tolerance, launch.outliers)
            if launch.invariant is not None:
                launch.invariant(before, after)
    except Exception as error:
        return Outcome(float("nan"), f"{type(error).__name__}: {error}"[:1500])
    return Outcome(seconds, "")


def compare(name: str, found: Array, expected: Array, tolerance: float, outliers: float) -> None:
    """Raises AssertionError where an array differs from the expected one."""
    if found.dtype.names:
        for each in found.dtype.names:
            if each in (expected.dtype.names or ()):
                compare(f"{name}.{each}", found[each], expected[each], tolerance, outliers)
        return
    found, expected = found.reshape(-1), expected.reshape(-1)
    assert found.shape == expected.shape, f"{name} has {found.size} elements instead of {expected.size}"
    if found.dtype.kind == "f":
        expected = expected.astype(np.float64)
        finite = np.abs(expected[np.isfinite(expected)])
        scale = float(finite.mean()) if len(finite) else 0.0
        off = ~(np.abs(found - expected) <= tolerance * (np.abs(expected) + scale))
        off &= ~((found == expected) | (np.isnan(found) & np.isnan(expected)))
    else:
        off = found != expected
    wrong = np.flatnonzero(off)
    assert len(wrong) <= outliers * found.size, (
        f"{name}[{wrong[0]}] is {found[wrong[0]]} instead of {expected[wrong[0]]}, "
        f"with {len(wrong)} of {found.size} elements wrong"
    )


def _launched(
    case: Case, global_size: tuple[int, ...], local_size: tuple[int, ...], arguments: Arrays, device: Device
) -> tuple[float, dict[str, Any]]:
    cl = opencl()
    session = device.session()
    kernel = session.kernel(case.text, case.kernel, case.options)
    # Their names are not asked for: a driver that loads a binary, as pyopencl keeps them, does not know them.
    assert kernel.num_args == len(arguments), f"the kernel has {kernel.num_args} arguments, not {len(arguments)}"
    buffers = {}
    for at, (name, value) in enumerate(arguments.items()):
        if isinstance(value, np.ndarray):
            padded = np.concatenate([np.ascontiguousarray(value).reshape(-1).view(np.uint8), GUARD])
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            buffers[name] = cl.Buffer(session.context, flags, hostbuf=padded)
            kernel.set_arg(at, buffers[name])
        elif isinstance(value, Local):
            kernel.set_arg(at, cl.LocalMemory(value.bytes))
        else:
            kernel.set_arg(at, np.asarray(value).tobytes())
    event = cl.enqueue_nd_range_kernel(session.queue, kernel, global_size, local_size)
    started = time.perf_counter()
    event.wait()
    assert event.command_execution_status == cl.command_execution_status.COMPLETE, "the launch failed"
    seconds = (event.profile.end - event.profile.start) * 1e-9 or time.perf_counter() - started
    after = dict(arguments)
    for name, buffer in buffers.items():
        padded = np.empty(buffer.size, np.uint8)
        cl.enqueue_copy(session.queue, padded, buffer)
        buffer.release()
        assert np.array_equal(padded[-len(GUARD) :], GUARD), f"the kernel writes behind {name}"
        after[name] = padded[: -len(GUARD)].view(arguments[name].dtype).reshape(arguments[name].shape)
    return seconds, after
