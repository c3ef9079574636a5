"""Options that several commands share."""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from perfmodel.basics.errors import PerfmodelError, nearest
from perfmodel.cli import completion
from perfmodel.kernels.source_words import ARRAY_WORDS, SOURCES

if TYPE_CHECKING:
    from perfmodel.measuring.isolation.process import ProcessLimits

Command = Callable[[Callable[[Any], int | None], str, str], argparse.ArgumentParser]
"""Adds a command, given the function that runs it, its name and an example; returns its parser."""

TAG_HELP = (
    "generator names and name:value filters, of your own FILE.py as well; or FILE.py:NAME of a kernel, or FILE.cl, "
    "FILE.cu or FILE.ptx, and size:value"
)
SOURCE_OPTIONS = {
    "kernel": "--kernel",
    "global_size": "--global",
    "local_size": "--local",
    "grid": "--grid",
    "block_size": "--block",
    "shared_bytes": "--shared",
    "option": "--option",
    "include": "--include",
    "assume": "--assume",
    "statistic": "--statistic",
}
"""Options that only kernels of source files have, by their names in what argparse returns."""


WITHOUT_OWN = ("devices", "doctor", "occupancy", "worker", "completion", "store", "browse", "characterize")
"""Commands that look at no features and no kernels of anybody's own, besides those of the store."""


class SentenceParser(argparse.ArgumentParser):
    """A parser that answers a mistake by one sentence, with what may have been meant."""

    def error(self, message: str) -> NoReturn:
        found = re.match(r"argument (?:SUB)?COMMAND: invalid choice: '(.*?)' \(choose from (.*)\)$", message)
        if found:
            message = _no_command(found[1], re.findall(r"[\w-]+", found[2]), self.prog)
        elif message.startswith("unrecognized arguments: "):
            message = self._unknown(shlex.split(message.partition(": ")[2]))
        example = (self.epilog or "").removeprefix("example: ") if "\n" not in (self.epilog or "") else ""
        if message.endswith("required: COMMAND"):
            message += f" ({self.prog} --help lists them)"
        is_answered = message.endswith("?") or not example
        print(f"{self.prog}: {message}{'' if is_answered else f'; write, for example, {example}'}", file=sys.stderr)
        self.exit(2)

    def _unknown(self, words: Sequence[str]) -> str:
        """Returns what is said of words that no option or argument takes, naming the first."""
        option = next((word for word in words if word.startswith("-")), None)
        if option is None:
            return f"{words[0]!r} is one word more than the command takes"
        name = option.partition("=")[0]
        known = [text for action in self._actions for text in action.option_strings]
        if "--option" in known and re.match("-(D|I|U|cl-|f|W)", option):
            return f"{option} is the compiler's, did you mean '--option={option}'?"
        if name == "--device" and "--predict" in known:
            return "there is no option --device, did you mean '--predict @DEVICE'?"
        return f"there is no option {name}{nearest(name, known)}"


def _no_command(word: str, known: Sequence[str], program: str) -> str:
    if re.search("[:=]", word) or word.endswith((".py", *SOURCES)):
        return f"{word!r} is no command; put one before it, such as perfmodel predict gpu@h200 {word}"
    return f"there is no command {word!r}{nearest(word, known) or f' ({program} --help lists them)'}"


class CommandParser(SentenceParser):
    """A parser of commands whose options may stand between tags.

    A command that `runs_scripts` leaves a script's own arguments to it; one that `passes_on` finds all that it doesn't
    know in ``others``.
    """

    _is_inside = False
    runs_scripts = False
    passes_on = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, unknown = self._parsed(args, namespace)
        if unknown and not self._is_inside and completion.VARIABLE not in os.environ:
            self.error(f"unrecognized arguments: {shlex.join(unknown)}")
        return found, unknown

    def _parsed(self, args: Any, namespace: Any) -> Any:
        if self._is_inside or self._subparsers:  # which argparse does not mix with options
            return super().parse_known_args(args, namespace)
        if completion.VARIABLE in os.environ:  # what stands under the cursor is looked for in one plain pass
            return super().parse_known_args(args, namespace)
        if self.passes_on:
            found, others = super().parse_known_args(args, namespace)
            found.others = others
            return found, []
        if self.runs_scripts:
            from perfmodel.interception.script import split  # keeps start-up quick

            ours, scripts = split(args)
            found, unknown = super().parse_known_args(ours, namespace)
            found.arguments = scripts
            return found, unknown
        self._is_inside = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_inside = False


def added_command(
    commands: Any, run: Callable[[Any], int | None], name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    """Adds a command to those of a parser, its example below its help."""
    added: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary}.", epilog=f"example: {example}"
    )
    added.set_defaults(run=run)
    if name not in WITHOUT_OWN:
        files = added.add_argument(
            "--load", action="append", metavar="FILE.py", help="features and generators of yours"
        )
        completion.complete(files, "python_files")
    return added


def subcommands(command: Command, name: str, example: str) -> Callable[..., argparse.ArgumentParser]:
    """Adds a command that by itself only shows its help, and returns what adds one of its subcommands: given what it
    runs, its name, summary and example."""

    def show_help(_: Any) -> int:
        parser.print_help()
        return 2

    parser = command(show_help, name, f"perfmodel {name} {example}")
    commands = parser.add_subparsers(metavar="SUBCOMMAND", parser_class=CommandParser)

    def add(run: Callable[[Any], int | None], word: str, summary: str, example: str) -> argparse.ArgumentParser:
        return added_command(commands, run, word, summary, f"perfmodel {name} {word} {example}")

    return add


def tag_option(
    parser: argparse.ArgumentParser, count: str, name: str = "tags", purpose: str = "", **options: Any
) -> None:
    """Adds an argument that takes the words of one selection of kernels; the purpose stands first in its help."""
    added = parser.add_argument(name, nargs=count, metavar="TAG", help=f"{purpose}{TAG_HELP}", **options)
    completion.complete(added, "tags")


def kernel_options(
    parser: argparse.ArgumentParser, count: str, name: str = "tags", with_cuda: bool = True, **options: Any
) -> None:
    """Adds the arguments that select kernels, for `perfmodel.cli.commands.selection`."""
    tag_option(parser, count, name, **options)
    parser.add_argument(
        "--at", nargs="+", action="extend", metavar="SIZE=VALUE", help="sizes, n=1024 or n=256,512 (default: the tags')"
    )
    source_options(parser, with_cuda)


def counting_options(parser: argparse.ArgumentParser, count: str) -> None:
    """Adds the arguments that select kernels, and how long counting one of them may take."""
    kernel_options(parser, count)
    effort_option(parser)


def effort_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--effort",
        type=float,
        dest="counting_budget",
        metavar="TIMES",
        help="how many times the usual work counting a kernel may take, before some work-groups stand for all",
    )


def calibration_option(parser: argparse.ArgumentParser, unless: str = "") -> None:
    """Adds the argument that names a calibration; `unless` says when it is not given."""
    added = parser.add_argument(
        "calibration",
        metavar="CALIBRATION",
        help="file that calibrate or demo wrote, or MODEL@DEVICE of a shipped one, such as gpu@h200; @h200 for the "
        f"model that is the default there{'; ' if unless else ''}{unless}",
        nargs="?" if unless else None,
    )
    completion.complete(added, "calibrations")


def predict_option(parser: argparse.ArgumentParser, how_often: str = "", **options: Any) -> None:
    """Adds the option of commands that predict beside what they do otherwise; `how_often` ends its help."""
    added = parser.add_argument(
        "--predict",
        metavar="CALIBRATION",
        help=f"a calibration's file, or a shipped one: MODEL@DEVICE, or @DEVICE for the default there{how_often}",
        **options,
    )
    completion.complete(added, "calibrations")


def limit_options(parser: argparse.ArgumentParser, seconds: float, what: str) -> None:
    """Adds the limits of processes for `limits_of`; the arguments name the default and what one limit is for."""
    parser.add_argument(
        "--time-limit", type=float, default=seconds, metavar="SECONDS", help=f"for {what} (default: %(default)g)"
    )
    parser.add_argument("--memory-limit", type=float, metavar="GIB", help=f"for {what} (default: what is free)")


def limits_of(parsed: argparse.Namespace) -> ProcessLimits:
    """Returns the limits that the options of `limit_options` give.

    Raises:
        PerfmodelError: for limits that leave nothing.
    """
    from perfmodel.measuring.isolation.process import ProcessLimits  # keeps start-up quick

    if parsed.memory_limit is not None and not 0 < parsed.memory_limit < math.inf:
        raise PerfmodelError(f"a memory limit of {parsed.memory_limit:g} GiB is none; give --memory-limit above 0")
    memory = None if parsed.memory_limit is None else int(parsed.memory_limit * 2**30)
    return ProcessLimits(parsed.time_limit, memory)


def json_option(parser: argparse.ArgumentParser, summary: str = "print one JSON document instead") -> None:
    parser.add_argument("--json", action="store_true", help=summary)


def source_options(parser: argparse.ArgumentParser, with_cuda: bool = True) -> None:
    """Adds the options that say how a kernel of a file of source is launched.

    Args:
        with_cuda: whether --grid, --block and --shared are added, for files of CUDA.
    """
    group = parser.add_argument_group("for a FILE.cl, FILE.cu or FILE.ptx")
    group.add_argument("--kernel", metavar="NAME", help="which kernel (default: the only one)")
    group.add_argument("--global", dest="global_size", metavar="N,…", help="work-items by axis, such as n,m or 1024")
    group.add_argument("--local", dest="local_size", metavar="N,…", help="work-items of a work-group by axis")
    if with_cuda:
        group.add_argument("--grid", metavar="N,…", help="of CUDA: blocks by axis, such as '(n+255)/256'")
        group.add_argument("--block", dest="block_size", metavar="N,…", help="of CUDA: threads of a block by axis")
        group.add_argument("--shared", dest="shared_bytes", metavar="BYTES", help="of CUDA: dynamic shared memory")
    else:
        parser.set_defaults(grid=None, block_size=None, shared_bytes=None)
    group.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"a number, a struct as JSON, or an array: {ARRAY_WORDS}; SIZE may be n*n",
    )
    group.add_argument(
        "--option", action="append", default=[], metavar="OPTION", help="for the compiler: --option=-DT=16"
    )
    group.add_argument("--include", action="append", default=[], metavar="FOLDER", help="where included files lie")
    group.add_argument("--assume", default="", metavar="CONDITION", help="what holds for sizes: 'n %% 16 == 0'")
    group.add_argument(
        "--statistic", action="append", default=[], metavar="NAME=NUMBER", help="what data decide: loop_7=3.5, if_9=0.5"
    )


DEVICE_HELP = "key, part of the name, 'gpu' or 'cpu' (default: the best GPU, else the CPU)"


def device_option(parser: argparse.ArgumentParser, summary: str = DEVICE_HELP, form: str = "DEVICE") -> None:
    completion.complete(parser.add_argument("--device", metavar=form, help=summary), "devices")
    defaults_from_project_file(parser, "device")


def protocol_option(parser: argparse.ArgumentParser, default: str) -> None:
    added = parser.add_argument("--protocol", help=f"unified, perflex or quick (default: {default})")
    completion.complete(added, completion.PROTOCOLS)


def condition_options(
    parser: argparse.ArgumentParser, store: str = "beside --out", protocol: str = "unified", device: str = DEVICE_HELP
) -> None:
    """Adds the options that say where and how kernels are measured; the arguments name the defaults in the help."""
    device_option(parser, device)
    parser.add_argument("--store", help=f"SQLite file that keeps every time (default: {store})")
    protocol_option(parser, protocol)
    defaults_from_project_file(parser, "device", "store", "protocol")


def defaults_from_project_file(parser: argparse.ArgumentParser, *keys: str, **others: str) -> None:
    """Takes options that are not given from the project file; see `perfmodel.cli.project_file.fill`.

    Args:
        keys: of the file, which are the names of the options as well.
        others: by the name of an option, the key of the file.
    """
    parser.set_defaults(project_defaults={key: key for key in keys} | others)


def recipe_options(parser: argparse.ArgumentParser, out: str | None) -> None:
    condition_options(parser)
    parser.add_argument(
        "--out", default=out, metavar="FOLDER", help=f"folder for results (default: {out or 'NAME-out'})"
    )
    parser.add_argument(
        "--budget",
        type=float,
        metavar="SECONDS",
        help="measure new kernels for no longer, all families in turn; the next run goes on (default: measure all)",
    )
