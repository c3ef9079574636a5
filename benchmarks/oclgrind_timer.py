"""Times pickled launches on oclgrind, which starts this as a process of its own, for `benchmarks.emulation`."""

from __future__ import annotations

import json
import pickle
import sys
import time

import pyopencl as cl

from perfmodel.kernels.launch import Launch
from tests.oclgrind_runner import arguments_of


def main() -> None:
    (platform,) = [p for p in cl.get_platforms() if p.name == "Oclgrind"]
    queue = cl.CommandQueue(cl.Context(platform.get_devices()))
    launches: list[Launch] = pickle.load(sys.stdin.buffer)
    seconds = []
    for launch in launches:
        program = cl.Program(queue.context, launch.source).build(list(launch.options))
        kernel = getattr(program, launch.kernel_name)
        arguments = arguments_of(launch, queue)  # which have to live until the kernel has run
        kernel.set_args(*arguments)
        began = time.process_time()
        cl.enqueue_nd_range_kernel(queue, kernel, launch.global_size, launch.local_size)
        queue.finish()
        seconds.append(time.process_time() - began)
    print("seconds", json.dumps(seconds), flush=True)


if __name__ == "__main__":
    main()
