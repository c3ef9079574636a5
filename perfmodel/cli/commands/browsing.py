"""The command ``browse`` serves a store as a page, on this machine only."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfmodel.basics.errors import PerfmodelError
from perfmodel.cli.options import Command, defaults_from_project_file

EXAMPLE = "perfmodel browse times.sqlite"


def add(command: Command) -> None:
    added = command(run, "browse", EXAMPLE)
    added.add_argument("store", nargs="?", metavar="STORE", help="SQLite file (default: store in perfmodel.toml)")
    added.add_argument(
        "--port", type=int, default=8917, help="of this machine; 0 for a free one (default: %(default)s)"
    )
    defaults_from_project_file(added, "store")


def run(parsed: argparse.Namespace) -> None:
    """Serves the page until Ctrl-C.

    Raises:
        PerfmodelError: no store is named or can be read, or the port is taken.
    """
    from perfmodel.report.browsing.server import serve  # keeps start-up quick

    if not parsed.store:
        raise PerfmodelError("browse shows a store; name its file, or give store in perfmodel.toml")
    serve(Path(parsed.store), parsed.port, lambda address: print(f"{address} (Ctrl-C ends it)", flush=True))
