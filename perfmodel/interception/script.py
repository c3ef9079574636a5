"""Runs somebody's script as Python would, its launches recorded."""

from __future__ import annotations

import os
import runpy
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path

from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.files import check_file
from perfmodel.device.drivers import LOADER_VARIABLES, SYSTEM_FOLDER, drivers
from perfmodel.interception.log import LaunchLog

FLAGS, VALUED = ("--json", "--emulate"), ("--predict", "--learn", "--load")


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits the command line into the arguments of ``perfmodel run``, the script's path among them, and the script's
    own.

    Options of both may follow the path: those known here are taken, up to ``--``, after which all are the script's.
    """
    ours: list[str] = []
    scripts: list[str] = []
    waiting = list(arguments)[::-1]
    has_path = False
    while waiting:
        word = waiting.pop()
        if word == "--":
            break
        if has_path and word not in (*FLAGS, *VALUED) and not word.startswith(tuple(f"{each}=" for each in VALUED)):
            scripts.append(word)
            continue
        ours.append(word)
        if word in VALUED and waiting:
            ours.append(waiting.pop())
        elif not word.startswith("-"):
            has_path = True
    rest = waiting[::-1]
    if not has_path and rest:
        ours += ["--", rest.pop(0)]
    return ours, [*scripts, *rest]


def check_script(path: str) -> None:
    """Refuses a script that Python cannot run.

    Raises:
        PerfmodelError: the file is not there, cannot be read or is no Python.
    """
    try:
        check_file(path)
        source = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PerfmodelError(f"script {path!r} cannot be read ({reason}); give a Python file") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        place = f", line {error.lineno}" if error.lineno else ""
        raise PerfmodelError(f"script {path!r} is not Python ({error.msg}{place}); give a Python file") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise PerfmodelError(f"script {path!r} is not Python ({error}); give a Python file") from error


def run_script(path: str, arguments: Sequence[str], log: LaunchLog) -> int:
    """Runs a script as ``__main__``; returns the status it exits with, after showing its error as Python does."""
    argv, search_path = sys.argv, sys.path[:]
    sys.argv = [path, *arguments]
    sys.path[:0] = [str(Path(path).resolve().parent)]
    threads = set(threading.enumerate())
    try:
        with log:
            try:
                runpy.run_path(path, run_name="__main__")
            finally:
                for thread in set(threading.enumerate()) - threads:
                    if not thread.daemon:  # Python waits for them as well before it ends
                        thread.join()
    except SystemExit as exit_:
        if exit_.code is None or isinstance(exit_.code, int):
            return exit_.code or 0
        print(exit_.code, file=sys.stderr)
        return 1
    except BaseException as error:
        _show(error, path)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    finally:
        sys.argv, sys.path[:] = argv, search_path
        sys.stdout.flush()
    return 0


def make_drivers_visible() -> None:
    """Gives a script the drivers that came with Python packages, where no driver is installed for all programs."""
    if not any(map(os.environ.get, LOADER_VARIABLES)) and not any(SYSTEM_FOLDER.glob("*.icd")):
        drivers()


def _show(error: BaseException, path: str) -> None:
    """Prints the traceback from the script on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != path:
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames or error.__traceback__)
