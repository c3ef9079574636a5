"""A campaign of simulated times in a process of its own, to be killed; prints the key of each row once it is stored.

``python -m tests.simulated_campaign STORE COUNT [MILLISECONDS]``; with MILLISECONDS, the process kills itself so long
after some write has begun.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import perfmodel as pm
from perfmodel.device import Device, find_device
from perfmodel.measuring.campaign import Campaign
from perfmodel.measuring.protocol import Protocol
from perfmodel.measuring.store import Failure, Measurement, Store, measurement_key
from tests.simulated_kernels import kernel, kernels
from tests.simulated_timers import expected

PROTOCOL = Protocol("simulated", trials=8, dropped=2, statistic="min")
TROUBLE = ("abort", "refuse")


def all_kernels(count: int) -> list[pm.Kernel]:
    """Returns so many kernels that are fine, and among them some that fail."""
    found = kernels(count)
    for place, name in enumerate(TROUBLE):
        found.insert((place + 1) * count // (len(TROUBLE) + 1), kernel(name))
    return found


def expected_rows(count: int, device: Device) -> dict[str, tuple[float, ...]]:
    """Returns the trials that a whole campaign leaves, by key; none for kernels that fail."""
    rows = {}
    for each in all_kernels(count):
        key = measurement_key(each.program.content, each.sizes, device.fingerprint(), PROTOCOL)
        rows[key] = () if each.name in TROUBLE else expected(each.launch(), PROTOCOL)
    return rows


class Telling(Store):
    """Says what is stored; kills its process in the midst of a write, if it is told to."""

    kill_after_s: float | None = None
    writes_left = 0

    def put_many(self, measurements: Iterable[Measurement], failures: Iterable[Failure] = ()) -> None:
        measurements, failures = list(measurements), list(failures)
        if self.kill_after_s is not None and measurements:
            self.writes_left -= 1
            if self.writes_left < 0:
                threading.Thread(target=_killed, args=(self.kill_after_s,)).start()
        super().put_many(measurements, failures)
        for key in [*(row.key for row in measurements), *(row.key for row in failures)]:
            print(key)
        sys.stdout.flush()


def _killed(after_s: float) -> None:
    end = time.perf_counter() + after_s
    while time.perf_counter() < end:
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    path, count, *after = sys.argv[1:]
    store = Telling(Path(path))
    with store:
        if after:
            store.kill_after_s = float(after[0]) / 1e3
            store.writes_left = random.Random(after[0]).randrange(5)
        campaign = Campaign(
            all_kernels(int(count)),
            [find_device("cpu")],
            protocol=PROTOCOL,
            store=store,
            timer="tests.simulated_timers:steady",
        )
        print(campaign.run(progress=False), file=sys.stderr)


if __name__ == "__main__":
    main()
