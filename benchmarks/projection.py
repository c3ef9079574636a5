"""Times the decision among ten devices, for each application of Panwar et al., Table II.

    python -m benchmarks.projection

Each decision is made for a kernel that is new to the process but for its source, which has been read.
"""

from __future__ import annotations

from dataclasses import replace

import perfmodel as pm
from perfmodel.basics.tables import grid, seconds
from perfmodel.models.projection import APPLICATIONS

COUNT = 10
REPEATS = 5


def main() -> None:
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    shipped = [pm.DeviceProfile.shipped(name) for name in pm.DeviceProfile.names()]
    profiles = [replace(shipped[i % len(shipped)], name=f"device {i}") for i in range(COUNT)]
    machines = len({profile.machine for profile in profiles})
    rows = []
    for application in APPLICATIONS:
        kernel = application.kernel(application.table, collection)
        first = pm.choose_device(kernel.as_opencl(), profiles)
        choices = [pm.choose_device(kernel.as_opencl(), profiles) for _ in range(REPEATS)]
        best = min(choices, key=lambda choice: choice.cost_s)
        row = [application.name, str(application.table), *map(seconds, (best.cost_s, best.emulated_s, first.cost_s))]
        rows.append([*row, best.device, best.ranked[0].limit])
    print(f"Deciding among {COUNT} devices, for {machines} kinds of which a work-group is emulated\n")
    print(grid(["application", "size", "decision", "of it emulating", "the first time", "chosen", "limited by"], rows))


if __name__ == "__main__":
    main()
