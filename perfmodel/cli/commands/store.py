"""The command ``store`` shows what a store holds, moves rows into files and out of them, and checks whether it is
sound."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.basics.errors import PerfmodelError, StoreError
from perfmodel.cli.commands import printing
from perfmodel.cli.options import Command, json_option, source_options, subcommands

if TYPE_CHECKING:
    from perfmodel.measuring.store import Store
    from perfmodel.measuring.store.store import Counts

MOST_KEYS = 8


def add(command: Command) -> None:
    plain = subcommands(command, "store", "ls times.sqlite")

    def subcommand(run: Callable[[Any], int | None], name: str, summary: str, example: str) -> argparse.ArgumentParser:
        added = plain(run, name, summary, example)
        target = "made if it is not there" if name in ("import", "merge") else "SQLite file; may be compressed by xz"
        added.add_argument("store", metavar="STORE", help=target)
        return added

    added = subcommand(_ls, "ls", "say what a store holds", "times.sqlite --device h200 --kernel matmul")
    added.add_argument("--device", default="", metavar="TEXT", help="only of devices with this in their key or name")
    added.add_argument("--kernel", default="", metavar="TEXT", help="only of kernels with this in their name")
    json_option(added)
    added = subcommand(_show, "show", "show one row in full", "times.sqlite 9599609512")
    added.add_argument("key", metavar="KEY-PREFIX", help="the beginning of the row's key, as of a table's column key")
    json_option(added)
    added = subcommand(_history, "history", "show evaluations from version to version", "times.sqlite")
    json_option(added)
    added = subcommand(_export, "export", "write all rows to a file", "times.sqlite times.parquet")
    added.add_argument("file", metavar="FILE", help="whose name ends in .parquet, .csv or .jsonl")
    added.add_argument("--force", action="store_true", help="replace a file that is there")
    json_option(added)
    added = subcommand(
        _import,
        "import",
        "add the rows of a file that export wrote, or that Kernel Tuner did",
        "times.sqlite cache.json --source scale.cl --global n --local {block_size_x} --arg n=4096 --arg a=n",
    )
    added.add_argument("file", metavar="FILE", help=".parquet, .csv or .jsonl of export; .json of Kernel Tuner")
    json_option(added)
    group = added.add_argument_group("for a file of Kernel Tuner")
    group.add_argument("--device", help="that the times are of: its key or name (default: the name in the file)")
    group.add_argument("--name", help="of the kernel, without --source (default: the name in the file)")
    group.add_argument(
        "--runs", type=int, default=7, metavar="N", help="whose mean a time is, if not in the file (default: 7)"
    )
    group.add_argument(
        "--source",
        metavar="FILE.cl",
        help="whose kernel was tuned: parameters are macros to it, and {NAME} in the options below is one's value",
    )
    source_options(added)
    added = subcommand(_merge, "merge", "add the rows of another store", "all.sqlite times.sqlite")
    added.add_argument("source", metavar="OTHER", help="store that is only read")
    json_option(added)
    added = subcommand(_check, "check", "look for damage; the status is 1 if there is any", "times.sqlite")
    json_option(added)
    added = subcommand(_vacuum, "vacuum", "write a store's file anew without gaps", "times.sqlite")
    json_option(added)


def _ls(parsed: argparse.Namespace) -> None:
    from perfmodel.report.store_tables import as_json, contents_text, groups_of  # keeps start-up quick

    with _read(parsed.store) as store:
        groups = groups_of(store, parsed.device, parsed.kernel)
        printing.found(parsed, lambda: as_json(store, groups), lambda: contents_text(store, groups))


def _show(parsed: argparse.Namespace) -> None:
    from perfmodel.report.store_tables import row_as_json, row_text  # keeps start-up quick

    with _read(parsed.store) as store:
        keys = store.keys_beginning(parsed.key, MOST_KEYS + 1)
        if not keys:
            raise StoreError(f"{store.name} has no row whose key begins with {parsed.key!r}: see column key of a table")
        if len(keys) > 1:
            more = " …" if len(keys) > MOST_KEYS else ""
            raise StoreError(
                f"several rows of {store.name} begin with {parsed.key!r}: give more of one of "
                f"{', '.join(keys[:MOST_KEYS])}{more}"
            )
        row = store.get(keys[0]) or store.failures(keys).get(keys[0])
        if row is None:
            raise StoreError(f"row {keys[0]} of {store.name} is damaged: measure it again")
    printing.found(parsed, lambda: row_as_json(row), lambda: row_text(row))


def _history(parsed: argparse.Namespace) -> None:
    from perfmodel.report.history import as_json, as_text  # keeps start-up quick

    with _read(parsed.store) as store:
        evaluations = store.evaluations()
    printing.found(parsed, lambda: {"evaluations": as_json(evaluations)}, lambda: as_text(evaluations))


def _export(parsed: argparse.Namespace) -> None:
    from perfmodel.measuring.store import export  # keeps start-up quick

    with _read(parsed.store) as store:
        rows = export(store, parsed.file, parsed.force)
    written = {"written": parsed.file, "rows": rows}
    printing.found(parsed, lambda: written, lambda: f"{rows} rows written to {parsed.file}")


def _import(parsed: argparse.Namespace) -> None:
    from perfmodel.measuring.store import import_file  # keeps start-up quick
    from perfmodel.tuning.kernel_tuner_files import import_kernel_tuner

    if not parsed.file.endswith(".json"):
        with _target(parsed.store) as store:
            counts = import_file(store, parsed.file)
        _show_counts(counts, parsed)
        return
    kernel = None
    if parsed.source:
        from perfmodel.cli.tuned_source import tuned_kernel  # slow to import, and needed for sources only

        kernel = tuned_kernel(parsed.source, parsed)
    with _target(parsed.store) as store:
        done = import_kernel_tuner(store, parsed.file, kernel, parsed.device, parsed.name, parsed.runs)
    data = asdict(done.counts) | {"device": done.device.key, "protocol": asdict(done.protocol)}
    of = f"device {done.device.key}, protocol {done.protocol.name}: the mean of {done.protocol.trials} runs"
    printing.found(parsed, lambda: data, lambda: f"{done.counts} ({parsed.store})\n{of}")


def _merge(parsed: argparse.Namespace) -> None:
    from perfmodel.measuring.store import merge  # keeps start-up quick

    with _read(parsed.source) as source, _target(parsed.store) as target:
        counts = merge(target, source)
    _show_counts(counts, parsed)


def _show_counts(counts: Counts, parsed: argparse.Namespace) -> None:
    printing.found(parsed, lambda: asdict(counts), lambda: f"{counts} ({parsed.store})")


def _check(parsed: argparse.Namespace) -> int:
    if not Path(parsed.store).exists():
        _read(parsed.store)
    try:
        with _read(parsed.store) as store:
            problems, number, schema = store.check(), len(store), store.schema
    except StoreError as error:
        problems, number, schema = [str(error)], 0, 0
    proof = "each as it was put" if schema > 1 else "as far as schema 1 can tell, which has no checksums"
    printing.found(
        parsed,
        lambda: {"store": parsed.store, "measurements": number, "problems": problems},
        lambda: "\n".join(problems) or f"store {parsed.store} is sound: {number} measurements, {proof}",
    )
    return 1 if problems else 0


def _vacuum(parsed: argparse.Namespace) -> None:
    from perfmodel.report.store_tables import n_bytes  # keeps start-up quick

    _read(parsed.store).close()
    with _target(parsed.store) as store:
        before, after = store.vacuum()
    data = {"store": parsed.store, "bytes_before": before, "bytes": after}
    printing.found(parsed, lambda: data, lambda: f"{parsed.store}: {n_bytes(before)} before, {n_bytes(after)} now")


def _read(path: str) -> Store:
    """Opens a store that has to be there, for reading only."""
    from perfmodel.measuring.store import Store  # keeps start-up quick

    return Store(path, read_only=True)


@contextmanager
def _target(path: str) -> Iterator[Store]:
    """Yields a store, made where there is none; an error leaves no empty one behind."""
    from perfmodel.measuring.store import Store  # keeps start-up quick

    is_new = not Path(path).exists()
    try:
        with Store(path) as store:
            yield store
    except PerfmodelError:
        if is_new:
            Path(path).unlink(missing_ok=True)
        raise
