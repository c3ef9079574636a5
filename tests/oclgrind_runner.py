"""Runs pickled launches one after the other on oclgrind's device; a process of its own, started by `oclgrind`."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pyopencl as cl

from perfmodel.kernels.arguments import Array, LocalArray, Scalar
from perfmodel.kernels.launch import Launch


def arguments_of(launch: Launch, queue: cl.CommandQueue) -> list[Any]:
    """Returns arguments of a launch, with arrays full of ones."""
    arguments: list[Any] = []
    for argument in launch.arguments:
        if isinstance(argument, LocalArray):
            arguments.append(cl.LocalMemory(argument.size))
        elif isinstance(argument, Scalar):
            arguments.append(argument.number)
        elif isinstance(argument, Array):
            host = np.ones(max(argument.size, 1), argument.dtype)
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            arguments.append(cl.Buffer(queue.context, flags, hostbuf=host))
    return arguments


def run(launch: Launch, queue: cl.CommandQueue) -> None:
    # Without optimisation each access of the source is one in the simulator: no merged loads, no unrolled loops.
    program = cl.Program(queue.context, launch.source).build(["-cl-opt-disable", *launch.options])
    kernel = getattr(program, launch.kernel_name)
    kernel(queue, launch.global_size, launch.local_size, *arguments_of(launch, queue))
    queue.finish()


def main() -> None:
    (platform,) = [p for p in cl.get_platforms() if p.name == "Oclgrind"]
    queue = cl.CommandQueue(cl.Context(platform.get_devices()))
    for launch in pickle.load(sys.stdin.buffer):
        run(launch, queue)


if __name__ == "__main__":
    main()
