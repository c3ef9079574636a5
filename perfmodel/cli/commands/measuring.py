"""The commands ``measure`` and ``worker`` run campaigns, and the Dask workers that take part in them."""

from __future__ import annotations

import argparse
import os

from perfmodel.basics.errors import PerfmodelError
from perfmodel.cli.commands import printing
from perfmodel.cli.commands.selection import sets_to_measure
from perfmodel.cli.options import (
    Command,
    defaults_from_project_file,
    device_option,
    json_option,
    kernel_options,
    limit_options,
    limits_of,
    protocol_option,
)


def add(command: Command) -> None:
    added = command(
        _measure,
        "measure",
        "perfmodel measure matmul_sq n:512,1024 --store times.sqlite --device gpu,cpu --dry-run",
    )
    kernel_options(added, "+")
    added.add_argument("--store", help="SQLite file that keeps every time; what it has is not measured")
    device_option(
        added, "keys, parts of names, 'nvidia*', 'gpu', 'cuda:0', or 'all' (default: the best one here)", "A,B,…"
    )
    protocol_option(added, "unified")
    added.add_argument("--dry-run", action="store_true", help="only say how many, how long and how much memory")
    added.add_argument("--retry", action="store_true", help="again what failed before, or was disturbed or noisy")
    added.add_argument("--budget", type=float, metavar="SECONDS", help="begin no further kernel after so long")
    limit_options(added, 300.0, "one kernel")
    added.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a Dask cluster whose workers measure; 'local' starts one here"
    )
    json_option(added)
    defaults_from_project_file(added, "device", "store", "protocol")
    added = command(
        _worker,
        "worker",
        "perfmodel worker tcp://10.0.0.1:8786 --no-dashboard --death-timeout 60",
    )
    added.add_argument("address", metavar="ADDRESS", help="of the scheduler, as `dask scheduler` prints it")
    added.passes_on = True  # type: ignore[attr-defined]
    added.usage = "%(prog)s [-h] ADDRESS [OPTION OF `dask worker` ...]"


def _measure(parsed: argparse.Namespace) -> int:
    """Runs a campaign; returns exit status 1 where kernels are left that were neither measured nor found to fail."""
    from perfmodel.measuring.campaign import Campaign  # keeps start-up quick

    if not parsed.store:
        raise PerfmodelError("measure keeps its times in a store; give --store FILE, or store in perfmodel.toml")
    devices = list(filter(None, parsed.device.split(","))) if parsed.device else None
    limits = limits_of(parsed)
    (kernels,) = sets_to_measure(parsed, [parsed.tags], None if parsed.scheduler or not devices else devices[0])
    campaign = Campaign(
        kernels,
        devices,
        protocol=parsed.protocol or "unified",
        store=parsed.store,
        scheduler=parsed.scheduler,
        limits=limits,
        retry=parsed.retry,
    )
    if parsed.dry_run:
        plan = campaign.plan()
        printing.found(parsed, plan.as_json, plan.__str__)
        return 0
    result = campaign.run(budget_s=parsed.budget)
    printing.found(parsed, result.as_json, result.__str__)
    return 0 if result.is_complete else 1


def _worker(parsed: argparse.Namespace) -> None:
    """Becomes a ``dask worker`` that advertises the devices, one measurement at a time on each."""
    from perfmodel.device import find_device  # keeps start-up quick
    from perfmodel.measuring.campaign.cluster import check_encrypted, resources
    from perfmodel.measuring.isolation import start

    advertised = resources()
    if not advertised:
        find_device()  # says why there is none
    try:
        import distributed.cli.dask_worker as dask_worker  # an optional dependency
    except ImportError as error:
        raise PerfmodelError("workers need the package 'distributed'; `pip install 'perfmodel[cluster]'`") from error
    check_encrypted(parsed.address)
    command = [
        *start.command(dask_worker.__name__, parsed.address),
        *("--resources", ",".join(f"{name}={count:g}" for name, count in advertised.items())),
        *("--nworkers", "1", "--nthreads", str(len(advertised))),
        *parsed.others,
    ]
    os.execve(command[0], command, start.environment())
