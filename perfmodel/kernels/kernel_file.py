"""Loads kernels that a user's own Python file defines: ``path.py:name`` instead of tags."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import re
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from perfmodel.basics.errors import KernelError, nearest
from perfmodel.basics.files import check_file
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram


def is_kernel_file(argument: str) -> bool:
    """Returns True if a command's argument names a Python file rather than a tag."""
    return split(argument)[0].endswith(".py")


def definitions(module: types.ModuleType) -> dict[str, str]:
    """Returns what a file defines, each name with what it is: a Loopy program, a kernel, or a function."""
    return {name: kind for name, value in _values(module).items() if (kind := _kind(value))}


SIZE = re.compile(r"([^\W\d]\w*)[:=](\d{1,19}(?:,\d{1,19})*)", re.ASCII)
"""``n=1024`` or ``n:256,512``: people have both in mind."""


def size_points(pairs: Iterable[str], mark: str) -> list[dict[str, int]]:
    """Returns all combinations of sizes that ``n=1024`` or ``n:256,512`` give; an empty one for no pairs.

    Args:
        mark: the one that an error names.

    Raises:
        KernelError: for anything that is not such a pair, and for a name given twice.
    """
    choices: dict[str, list[int]] = {}
    for pair in pairs:
        found = SIZE.fullmatch(pair)
        if found is None:
            is_word = mark == ":" and not re.search("[:=]", pair)
            apart = ", and select generators apart from kernels of files" if is_word else ""
            raise KernelError(
                f"{pair!r} gives no size; write name{mark}value or name{mark}a,b with whole numbers of up to 19 "
                f"digits{apart}"
            )
        name, values = found.groups()
        if name in choices:
            raise KernelError(f"size {name!r} is given twice; write all its values as {name}{mark}a,b")
        choices[name] = list(dict.fromkeys(map(int, values.split(","))))
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


def split(argument: str) -> tuple[str, str]:
    """Returns an argument's path and name; the name is empty where there is none."""
    if argument.endswith(".py"):
        return argument, ""
    path, _, name = argument.rpartition(":")
    return path, name


_loaded: dict[str, tuple[object, types.ModuleType]] = {}


def loaded(path: str) -> types.ModuleType:
    """Runs a Python file and returns it as a module; it may import its neighbours. One that is unchanged runs once.

    Raises:
        KernelError: for a file that cannot be run.
    """
    module = types.ModuleType(f"kernel file {path}")
    module.__file__ = path
    place = str(Path(path).resolve())
    try:
        check_file(Path(path))
        state = Path(path).stat()
        source = Path(path).read_bytes()
    except OSError as error:
        raise KernelError(f"kernel file {path} cannot be read ({error.strerror}); give a Python file") from error
    version = (state.st_mtime_ns, state.st_size, path)
    if place in _loaded and _loaded[place][0] == version:
        return _loaded[place][1]
    sys.modules[module.__name__] = module  # where dataclasses look for the names of their fields' types
    _guarded(Path(path), lambda: exec(compile(source, path, "exec"), module.__dict__))
    _loaded[place] = (version, module)
    return module


def kernel_called(module: types.ModuleType, path: Path, name: str) -> Kernel:
    """Returns the kernel that a file defines by a name, or that its function of this name gives.

    Raises:
        KernelError: for a name that is no kernel.
    """
    values = _values(module)
    if not name:
        raise KernelError(f"{path} needs the name of a kernel; write {path}:NAME ({_known(values)})")
    if name not in values:
        raise KernelError(f"{path} defines no kernel {name!r}{nearest(name, values)} ({_known(values)})")
    value = values[name]
    if inspect.isfunction(value):
        value = _guarded(path, value)
    if isinstance(value, Kernel):
        return value
    if not isinstance(value, OpenCLProgram) and not _is_loopy_program(value):
        raise KernelError(
            f"{path}:{name} gives a {type(value).__name__}, which is no kernel; make it a Loopy program or a "
            "perfmodel.Kernel, or a function without arguments that returns one"
        )
    return Kernel(value, {"generator": f"{path.name}:{name}"})


def maker_called(path: str, name: str) -> Callable[..., Any] | None:
    """Returns the function of a file that gives a kernel, its own exceptions as one sentence; None for another value.

    Raises:
        KernelError: for a file that cannot be run.
    """
    value = _values(loaded(path)).get(name)
    if not inspect.isfunction(value):
        return None

    @functools.wraps(value)
    def made(**arguments: Any) -> Any:
        return _guarded(Path(path), lambda: value(**arguments))

    return made


def _values(module: types.ModuleType) -> dict[str, Any]:
    """Returns the file's public names that are, or may give, a kernel; of its functions those that can be called
    bare."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType | type) and _is_own(value, module)
    }


def _is_own(value: Any, module: types.ModuleType) -> bool:
    if not inspect.isroutine(value):
        return True
    if not inspect.isfunction(value) or value.__module__ != module.__name__:
        return False
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return all(p.kind in optional or p.default is not p.empty for p in inspect.signature(value).parameters.values())


def _guarded(path: Path, call: Callable[[], Any]) -> Any:
    """Returns what the user's code gives; its own exception becomes one sentence, what it prints goes to standard
    error."""
    try:
        with contextlib.redirect_stdout(sys.stderr), _importing_beside(path):
            return call()
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        message = " ".join(str(error).split()) or "no message"
        if isinstance(error, SyntaxError):
            lines, message = [error.lineno if error.filename == str(path) else None], error.msg
        place = f" (line {lines[-1]})" if lines and lines[-1] else ""
        raise KernelError(f"{path} raises {type(error).__name__}: {message}{place}; correct it") from error


@contextlib.contextmanager
def _importing_beside(path: Path) -> Iterator[None]:
    """Lets the file import its neighbours, as when Python runs it."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _known(values: dict[str, Any]) -> str:
    kernels = [name for name, value in values.items() if _kind(value)]
    return f"it has {', '.join(kernels)}" if kernels else "it has none"


def _kind(value: Any) -> str:
    """Returns a word for a value that may give a kernel; empty for anything else."""
    if inspect.isfunction(value):
        return "function"
    if isinstance(value, Kernel | OpenCLProgram):
        return "kernel"
    return "Loopy program" if _is_loopy_program(value) else ""


def _is_loopy_program(value: Any) -> bool:
    # Where nothing imported loopy, nothing can be a program of its.
    loopy = sys.modules.get("loopy")
    return loopy is not None and isinstance(value, loopy.TranslationUnit)
