"""The command line: thin; each command is a few calls of the library, in a module of `perfmodel.cli.commands`."""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.version import VERSION
from perfmodel.cli import completion, hints, later, own_parts, project_file
from perfmodel.cli.options import CommandParser, SentenceParser, added_command
from perfmodel.cli.summaries import SUMMARIES, summary_of

DESCRIPTION = "Black-box performance models of OpenCL kernels: declare, calibrate, predict, explain, rank."
TRACEBACK_VARIABLE = "PERFMODEL_TRACEBACK"
"""An environment variable; while it is set, a defect of perfmodel shows its traceback."""
GARBAGE = 100_000
"""So many new objects are looked through for garbage at once: imports make many, all of which stay; looking through
them as often as usual is a fifth of a short command's time."""
MODULES = {
    "listings": ("devices", "kernels", "features"),
    "specifications": ("device",),
    "doctor": ("doctor",),
    "store": ("store",),
    "browsing": ("browse",),
    "counting": ("count", "emulate"),
    "occupancy": ("occupancy",),
    "verification": ("verify",),
    "measuring": ("measure", "worker"),
    "fitting": ("calibrate", "suggest"),
    "predicting": ("predict", "explain", "rank"),
    "improving": ("improve",),
    "tuning": ("tune",),
    "projection": ("project", "characterize"),
    "running": ("run",),
    "evaluating": ("evaluate",),
    "surveying": ("survey",),
    "reproducing": ("reproduce", "demo"),
    "report": ("report",),
    "completing": ("completion",),
}
"""The commands of each module of `perfmodel.cli.commands`: to run one, only its own is imported."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns its status, or 2 after one sentence on standard error for anything a user can mend.

    Status 1 means that the command did its work, and that what it found is not as it should be; 130 that it was
    interrupted.
    """
    gc.set_threshold(GARBAGE)
    first = next(iter(sys.argv[1:] if arguments is None else arguments), "")
    if first != "run":  # a program that is run finds packages as they are
        later.put_off("loopy", "pymbolic")
    parser = command_parser("" if completion.VARIABLE in os.environ else first)
    if completion.VARIABLE in os.environ:
        completion.answer(parser)
    _prepare_streams_and_cache()
    if first.startswith("-") and first.partition("=")[0] not in ("-h", "--help", "--version"):
        parser.error(f"{first} stands before the command; write it behind, as in perfmodel predict --device h200 …")
    parsed = parser.parse_args(arguments)
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    try:
        project_file.fill(parsed)
        with own_parts.loaded(getattr(parsed, "load", None)):
            return parsed.run(parsed) or 0
    except PerfmodelError as error:
        print(f"perfmodel: {hints.on_command_line(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = getattr(parsed, "store", None)
        print(f"perfmodel: interrupted{f'; what was measured is kept in {kept}' if kept else ''}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
    except OSError as error:
        print(f"perfmodel: {error.strerror or error}; free some space or write elsewhere", file=sys.stderr)
        return 2
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        what = f"{type(error).__name__}: {error}"
        print(
            f"perfmodel: this is a defect of perfmodel ({what}); report it with what {TRACEBACK_VARIABLE}=1 shows",
            file=sys.stderr,
        )
        return 2
    return 0


def command_parser(first: str = "") -> argparse.ArgumentParser:
    """Returns the parser of all commands.

    Args:
        first: the first word of a command line; what is not needed for it is left out.
    """
    parser = SentenceParser(
        prog="perfmodel",
        usage="%(prog)s [-h] [--version] COMMAND ...",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"perfmodel {VERSION}")
    if first in ("-h", "--help"):
        parser.epilog = _grouped()
        return parser
    # The commands are listed by group for help, which argparse itself can't.
    commands = parser.add_subparsers(
        prog=parser.prog, metavar="COMMAND", required=True, parser_class=CommandParser, help=argparse.SUPPRESS
    )

    def command(run: Callable[[Any], int | None], name: str, example: str) -> argparse.ArgumentParser:
        return added_command(commands, run, name, summary_of(name), example)

    own = [module for module, names in MODULES.items() if first in names]
    for module in own or MODULES:
        importlib.import_module(f"perfmodel.cli.commands.{module}").add(command)
    return parser


def _grouped() -> str:
    """Returns every command with its summary, under what people want to do."""
    import shutil  # keeps start-up quick
    import textwrap

    width = max(len(name) for names in SUMMARIES.values() for name in names) + 4
    columns = max(shutil.get_terminal_size().columns - 2, width + 20)
    blocks = []
    for title, summaries in SUMMARIES.items():
        lines = [
            textwrap.fill(summary, columns, initial_indent=f"  {name}".ljust(width), subsequent_indent=" " * width)
            for name, summary in summaries.items()
        ]
        blocks.append("\n".join([f"{title}:", *lines]))
    return "\n\n".join([*blocks, "'perfmodel COMMAND --help' says more, with an example."])


def _prepare_streams_and_cache() -> None:
    """Makes output that can't be encoded, and a home in which nothing can be written, end no command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    try:
        os.makedirs(cache, exist_ok=True)  # noqa: PTH103
        writable = os.access(cache, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    if not writable:  # loopy's caches don't take no for an answer
        import tempfile  # keeps start-up quick

        os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="perfmodel-cache-")


def _show_warning(message: Warning | str, *_: Any) -> None:
    """Prints a warning in one line, without the line of code that caused it."""
    print(f"perfmodel: warning: {hints.on_command_line(str(message))}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
