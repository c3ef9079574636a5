"""Measures how long a device's driver takes from being asked for a launch until it begins, and until the host knows it
to be done.

    python -m benchmarks.dispatch [--device cpu] [--launches 5000]

One kernel that does nothing is launched and waited for again and again. The first line is the fact ``dispatch`` of
`perfmodel.device.facts`: the driver's own events, from when the launch was queued until it started, as clpeak measures
it. The second is the host's clock from before the call until after waiting.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from perfmodel.basics.tables import grid, seconds
from perfmodel.device import find_device
from perfmodel.device.drivers import opencl

EMPTY = "__kernel void empty(void) {}"
GROUP = 64
FIRST = 100
"""The first launches are left out, as drivers put things off until then."""


def main() -> None:
    parser = argparse.ArgumentParser(description="measures what lies between asking for a launch and its beginning")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--launches", type=int, default=5000)
    parsed = parser.parse_args()
    device, cl = find_device(parsed.device), opencl()
    session = device.session()
    kernel = session.kernel(EMPTY, "empty", ())
    until_begun, until_known = [], []
    for _ in range(FIRST + parsed.launches):
        asked = time.perf_counter()
        event = cl.enqueue_nd_range_kernel(session.queue, kernel, (GROUP,), (GROUP,))
        event.wait()
        until_known.append(time.perf_counter() - asked)
        until_begun.append((event.profile.start - event.profile.queued) * 1e-9)
    rows = [
        [name, *(seconds(float(np.quantile(times[FIRST:], part))) for part in (0.5, 0.1, 0.9))]
        for name, times in (("until it begins", until_begun), ("until it is known to be done", until_known))
    ]
    print(grid([device.name, "median", "10 %", "90 %"], rows))


if __name__ == "__main__":
    main()
