"""Measures what a campaign costs beside measuring, and what a Dask cluster does when some of its workers are killed.

``python -m benchmarks.campaigns`` (a minute on two cores). Times are simulated: measuring processes run, but nothing
is asked of a device.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

import perfmodel
from perfmodel.basics.provenance import versions
from perfmodel.device import Device, find_device
from perfmodel.measuring.campaign import Campaign, ProcessLimits
from perfmodel.measuring.campaign.run import Run
from perfmodel.measuring.campaign.work import DeviceWork
from perfmodel.measuring.isolation.bench import Batch, Measured
from perfmodel.measuring.isolation.locks import FOLDER_VARIABLE
from perfmodel.measuring.protocol import Timing
from perfmodel.measuring.store import Store
from tests.simulated_campaign import PROTOCOL, all_kernels, expected_rows
from tests.simulated_kernels import kernels
from tests.simulated_timers import SECONDS_VARIABLE

ROOT = Path(perfmodel.__file__).parents[1]
STEADY = "tests.simulated_timers:steady"


def overhead(count: int, folder: Path) -> None:
    """Prints the seconds that a campaign takes for a measurement where the measurement itself takes none."""
    many = kernels(count)
    with Store(folder / "overhead.sqlite") as store:
        campaign = Campaign(many, [find_device("cpu")], protocol=PROTOCOL, store=store, timer=STEADY)
        campaign.plan()
        started = time.perf_counter()
        campaign.run(progress=False)
        took = time.perf_counter() - started
        assert len(store) == count
    print(f"overhead: {1e3 * took / count:.2f} ms a measurement ({count} measurements in {took:.1f} s, start included)")
    started = time.perf_counter()
    Campaign(many, [find_device("cpu")], protocol=PROTOCOL, store=folder / "overhead.sqlite", timer=STEADY).run()
    print(f"resuming a complete campaign of {count}: {time.perf_counter() - started:.2f} s")


@contextmanager
def cluster(workers: int, folder: Path, seconds: float) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Starts a scheduler and workers in processes of their own, as on machines of their own: each has its own device
    locks."""
    address = f"tcp://127.0.0.1:{_free_port()}"
    environment = os.environ | {SECONDS_VARIABLE: str(seconds), "PYTHONPATH": str(ROOT)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    with ExitStack() as stack:
        started: list[subprocess.Popen[bytes]] = []

        def start(*command: str, **variables: str) -> None:
            process = subprocess.Popen([sys.executable, "-m", *command], env=environment | variables, **quiet)  # type: ignore[call-overload]
            stack.callback(_killed, process)
            started.append(process)

        start("distributed.cli.dask_scheduler", "--host", address, "--no-dashboard")
        for number in range(workers):
            options = ("--no-dashboard", "--death-timeout", "60", "--local-directory", str(folder / f"dask-{number}"))
            locks = {FOLDER_VARIABLE: str(folder / f"locks-{number}")}
            start("perfmodel", "worker", address, *options, **locks)
        yield address, started[1:]


class Instant:
    """An executor whose devices take no time at all, so that only the campaign's own process is seen."""

    name = "nowhere"

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices = devices

    def chosen(self, selectors: object, store: Store, runtime: str) -> list[Device]:
        return list(self._devices)

    def has(self, device: Device) -> bool:
        return True

    def capacity(self, device: Device) -> int:
        return 2

    def submit(self, device: Device, timer: str, *arguments: Any) -> Future[Batch]:
        tasks, protocol, *_ = arguments
        timing = Timing((1e-3,) * protocol.trials, protocol.dropped, protocol.statistic)
        done = tuple(Measured(task.key, timing, "", 0.1) for task in tasks)
        future: Future[Batch] = Future()
        future.set_result(Batch(done=done, around_s=1e-3, best_s=1e-3, place="nowhere", versions=versions()))
        return future

    def does_without(self, batch: Batch) -> bool:
        return False

    def close(self, is_interrupted: bool) -> None:
        pass


def capacity(n_devices: int, count: int, folder: Path) -> None:
    """Prints the rows a second that one campaign's process takes, whatever measures them."""
    some = find_device("cpu")
    many = [replace(some, key=f"device-{number:04}", kind="gpu") for number in range(n_devices)]
    with Store(folder / "capacity.sqlite") as store:
        work = [DeviceWork(device, kernels(count), PROTOCOL, store, True, False) for device in many]
        started = time.perf_counter()
        Run(work, Instant(many), PROTOCOL, ProcessLimits(), STEADY, None).measure(progress=False)
        took = time.perf_counter() - started
        assert len(store) == n_devices * count
        size = store.n_bytes
    memory = psutil.Process().memory_info().rss
    rows = n_devices * count
    print(
        f"one campaign's process: {rows / took:.0f} rows a second ({n_devices} devices with {count} kernels each in "
        f"{took:.0f} s), {memory / rows:.0f} bytes of memory and {size / rows:.0f} of the store a row"
    )


def _free_port() -> int:
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _killed(process: subprocess.Popen[bytes]) -> None:
    """Kills a process with all that it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def killed_workers(workers: int, kills: int, count: int, folder: Path, seconds: float = 0.05) -> list[str]:
    """Runs a campaign of which some workers are killed while they measure; returns what is wrong afterwards."""
    import threading

    from distributed import Client

    path = folder / "cluster.sqlite"
    with cluster(workers, folder, seconds) as (address, processes), Client(address) as client:
        client.wait_for_workers(workers, timeout=120)
        with Store(path) as store:
            campaign = Campaign(
                all_kernels(count), ["cpu"], protocol=PROTOCOL, store=store, scheduler=client, timer=STEADY
            )
            alone = (count + 2) * seconds
            timers = [
                threading.Timer(2.0 + 0.3 * alone / workers * (1 + number), _killed, (process,))
                for number, process in enumerate(processes[:kills])
            ]
            for timer in timers:
                timer.start()
            started = time.perf_counter()
            result = campaign.run(progress=False)
            took = time.perf_counter() - started
            was_killed = [process.poll() is not None for process in processes].count(True)
            rows = {row.key: row.trials for row in store} | dict.fromkeys(store.failures(), ())
            problems = store.check()
    if was_killed != kills:
        problems.append(f"{was_killed} workers were killed while it ran, not {kills}")
    if rows != expected_rows(count, find_device("cpu")):
        problems.append(f"{len(rows)} rows that are not those of an undisturbed campaign")
    if not result.is_complete:
        problems.append(str(result))
    print(
        f"{workers} Dask workers, {was_killed} killed: {count + 2} kernels in {took:.1f} s (one after the other "
        f"{alone:.1f} s), problems: {problems or 'none'}"
    )
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=2000, help="measurements to see the overhead of")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--devices", type=int, default=1000, help="simulated, to see what one campaign can take")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        overhead(parsed.count, Path(folder))
        capacity(parsed.devices, 50, Path(folder))
        return bool(killed_workers(parsed.workers, parsed.kills, 1200, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
