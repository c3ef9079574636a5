"""The commands ``count`` and ``emulate`` say what kernels do."""

from __future__ import annotations

import argparse

from perfmodel.cli.commands import printing
from perfmodel.cli.commands.selection import kernel_data, lists_a_file, selected, with_contents
from perfmodel.cli.options import Command, counting_options, json_option, kernel_options


def add(command: Command) -> None:
    added = command(
        _count,
        "count",
        "perfmodel count my_kernels.py:tiled --at n=256,1024",
    )
    counting_options(added, "+")
    added.add_argument("--subgroup", type=int, default=32, metavar="N", help="work-items of a sub-group (default: 32)")
    json_option(added)
    added = command(
        _emulate,
        "emulate",
        "perfmodel emulate blur.cl --global n,n --local 16,16 --arg n=1024 --arg image=n*n --arg out=n*n",
    )
    kernel_options(added, "+")
    added.add_argument("--groups", default="first", metavar="WHICH", help="first, sample or all (default: first)")
    added.add_argument("--subgroup", type=int, default=32, metavar="N", help="work-items of a sub-group (default: 32)")
    added.add_argument("--transaction", type=int, default=32, metavar="BYTES", help="of global memory (default: 32)")
    added.add_argument("--banks", type=int, default=32, metavar="N", help="of local memory (default: 32)")
    added.add_argument("--no-checks", action="store_true", help="don't look for races and uninitialised memory")
    added.add_argument("--full", action="store_true", help="run all iterations of long loops, instead of extrapolating")
    added.add_argument("--steps", type=int, metavar="N", help="blocks that may be executed (default: two million)")
    added.add_argument("--seed", type=int, default=0, metavar="N", help="of random arrays and groups (default: 0)")
    json_option(added)


def _count(parsed: argparse.Namespace) -> None:
    from perfmodel.kernels.kernel_file import size_points  # keeps start-up quick
    from perfmodel.report.count_table import as_json, count_tables
    from perfmodel.report.count_text import as_text

    if lists_a_file(parsed):
        return
    points = size_points(parsed.at, "=") if parsed.at else ()
    tables = count_tables(selected(parsed, at_sizes=False), points, parsed.subgroup)
    printing.found(parsed, lambda: as_json(tables), lambda: "\n\n\n".join(map(as_text, tables)))


def _emulate(parsed: argparse.Namespace) -> None:
    from perfmodel.kernels.emulation import emulate  # keeps start-up quick
    from perfmodel.opencl_c.emulation import Machine

    machine = Machine(subgroup_size=parsed.subgroup, transaction_bytes=parsed.transaction, banks=parsed.banks)
    chosen = with_contents(parsed)
    profiles = [
        emulate(
            kernel,
            contents,
            groups=parsed.groups,
            machine=machine,
            checks=not parsed.no_checks,
            extrapolate=not parsed.full,
            steps=parsed.steps,
            seed=parsed.seed,
        )
        for kernel, contents in chosen
    ]
    labels = [f"{kernel.label}\n" if len(chosen) > 1 else "" for kernel, _ in chosen]
    printing.found(
        parsed,
        lambda: printing.only(
            [profile.as_json() | kernel_data(kernel) for profile, (kernel, _) in zip(profiles, chosen, strict=True)]
        ),
        lambda: "\n\n\n".join(f"{label}{profile}" for label, profile in zip(labels, profiles, strict=True)),
    )
