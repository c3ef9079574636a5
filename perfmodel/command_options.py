"""Options that several commands share."""

from __future__ import annotations

import argparse
from typing import Any

ARGUMENT_FORMS = "a number; random:DTYPE:SIZE or random:DTYPE:SIZE:LOW:HIGH; zeros:DTYPE:SIZE; SIZE alone; FILE.npy"
TAG_HELP = "generator names and name:value filters; FILE.py:NAME of a kernel of your own, and size:value; or FILE.cl"


class CommandParser(argparse.ArgumentParser):
    """Options may stand between tags.

    A command that `runs_scripts` leaves a script's own arguments to it; one that `passes_on` finds all that it doesn't
    know in ``others``.
    """

    _is_inside = False
    runs_scripts = False
    passes_on = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._is_inside or self._subparsers:  # which argparse does not mix with options
            return super().parse_known_args(args, namespace)
        if self.passes_on:
            found, others = super().parse_known_args(args, namespace)
            found.others = others
            return found, []
        if self.runs_scripts:
            from perfmodel.interception.script import split

            ours, scripts = split(args)
            found, unknown = super().parse_known_args(ours, namespace)
            found.arguments = scripts
            return found, unknown
        self._is_inside = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_inside = False


def tag_options(parser: argparse.ArgumentParser, count: str, name: str = "tags", **options: Any) -> None:
    parser.add_argument(name, nargs=count, metavar="TAG", help=TAG_HELP, **options)


def source_options(parser: argparse.ArgumentParser) -> None:
    """The options that say how a kernel of a ``.cl`` file is launched."""
    group = parser.add_argument_group("for a FILE.cl")
    group.add_argument("--kernel", metavar="NAME", help="which kernel (default: the only one)")
    group.add_argument("--global", dest="global_size", metavar="N,…", help="work-items by axis, such as n,m or 1024")
    group.add_argument("--local", dest="local_size", metavar="N,…", help="work-items of a work-group by axis")
    group.add_argument(
        "--arg", action="append", default=[], metavar="NAME=VALUE", help=f"{ARGUMENT_FORMS}; SIZE may be n*n"
    )
    group.add_argument(
        "--option", action="append", default=[], metavar="OPTION", help="for the compiler: --option=-DT=16"
    )
    group.add_argument("--include", action="append", default=[], metavar="FOLDER", help="where included files lie")
    group.add_argument("--assume", default="", metavar="CONDITION", help="what holds for sizes: 'n %% 16 == 0'")
    group.add_argument(
        "--statistic", action="append", default=[], metavar="NAME=NUMBER", help="what data decide: loop_7=3.5, if_9=0.5"
    )


def condition_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", help="key, part of the name, 'gpu' or 'cpu' (default: the best GPU, else the CPU)")
    parser.add_argument("--store", help="SQLite file that keeps every time (default: beside --out)")
    parser.add_argument("--protocol", help="unified, perflex or quick (default: unified)")


def recipe_options(parser: argparse.ArgumentParser, out: str | None) -> None:
    condition_options(parser)
    parser.add_argument("--out", default=out, help=f"folder for results (default: {out or 'NAME-out'})")
    parser.add_argument(
        "--budget",
        type=float,
        metavar="SECONDS",
        help="measure new kernels for no longer, all families in turn; the next run goes on (default: measure all)",
    )
