"""The commands ``measure`` and ``worker``: campaigns, and the Dask workers that take part in them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from perfmodel.command_options import tag_options
from perfmodel.errors import PerfmodelError

if TYPE_CHECKING:
    from perfmodel.kernel import Kernel

Command = Callable[[Callable[[Any], int | None], str, str, str], argparse.ArgumentParser]
Selected = Callable[[Sequence[str], str | None], Sequence["Kernel"]]


def add(command: Command, selected: Selected) -> None:
    """Registers both with the command line.

    Args:
        command: adds one, by what runs it, its name, summary and example.
        selected: the kernels that tags select, with sizes for a device where tags leave them to it.
    """
    added = command(
        lambda parsed: _measure(parsed, selected),
        "measure",
        "measure kernels on devices, each in a process of its own, and keep every time in a store",
        "perfmodel measure matmul_sq n:512,1024 --store times.sqlite --devices gpu,cpu --dry-run",
    )
    tag_options(added, "+")
    added.add_argument("--store", required=True, help="SQLite file that keeps every time; what it has is not measured")
    added.add_argument(
        "--devices",
        metavar="A,B,…",
        help="keys, parts of names, 'nvidia*', 'gpu', or 'all' (default: the best one here)",
    )
    added.add_argument("--protocol", default="unified", help="unified, perflex or quick (default: %(default)s)")
    added.add_argument("--dry-run", action="store_true", help="only say how many, how long and how much memory")
    added.add_argument("--retry", action="store_true", help="again what failed before, or was disturbed or noisy")
    added.add_argument("--budget", type=float, metavar="SECONDS", help="begin no further kernel after so long")
    added.add_argument(
        "--time-limit", type=float, default=300.0, metavar="SECONDS", help="for one kernel (default: %(default)g)"
    )
    added.add_argument("--memory-limit", type=float, metavar="GIB", help="for one kernel (default: what is free)")
    added.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a Dask cluster whose workers measure; 'local' starts one here"
    )
    added.add_argument("--json", action="store_true", help="print one JSON document instead")
    added = command(
        _worker,
        "worker",
        "start a Dask worker that measures on this machine's devices, for campaigns with --scheduler",
        "perfmodel worker tcp://10.0.0.1:8786 --no-dashboard --death-timeout 60",
    )
    added.add_argument("address", metavar="ADDRESS", help="of the scheduler, as `dask scheduler` prints it")
    added.passes_on = True  # type: ignore[attr-defined]
    added.usage = "%(prog)s [-h] ADDRESS [OPTION OF `dask worker` ...]"


def _measure(parsed: argparse.Namespace, selected: Selected) -> int:
    """Exit status 1 where kernels are left that were neither measured nor found to fail."""
    from perfmodel.campaign import Campaign, Limits

    devices = list(filter(None, parsed.devices.split(","))) if parsed.devices else None
    memory = None if parsed.memory_limit is None else int(parsed.memory_limit * 2**30)
    campaign = Campaign(
        selected(parsed.tags, None if parsed.scheduler or not devices else devices[0]),
        devices,
        protocol=parsed.protocol,
        store=parsed.store,
        scheduler=parsed.scheduler,
        limits=Limits(parsed.time_limit, memory),
        retry=parsed.retry,
    )
    if parsed.dry_run:
        plan = campaign.plan()
        print(json.dumps(plan.as_dict()) if parsed.json else plan)
        return 0
    result = campaign.run(budget_s=parsed.budget)
    print(json.dumps(result.as_dict()) if parsed.json else result)
    return 0 if result.is_complete else 1


def _worker(parsed: argparse.Namespace) -> None:
    """Becomes a ``dask worker`` that advertises the devices, one measurement at a time on each."""
    from perfmodel.campaign.cluster import resources
    from perfmodel.device import find_device

    advertised = resources()
    if not advertised:
        find_device()  # says why there is none
    try:
        import distributed.cli.dask_worker as dask_worker
    except ImportError as error:
        raise PerfmodelError("workers need the package 'distributed'; `pip install 'perfmodel[cluster]'`") from error
    command = [
        *(sys.executable, "-m", dask_worker.__name__, parsed.address),
        *("--resources", ",".join(f"{name}={count:g}" for name, count in advertised.items())),
        *("--nworkers", "1", "--nthreads", str(len(advertised))),
        *parsed.others,
    ]
    os.execv(command[0], command)
