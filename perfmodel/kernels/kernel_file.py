"""Loads kernels that a user's own Python file defines: ``path.py:name`` instead of tags."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import re
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from perfmodel.basics.errors import KernelError, nearest
from perfmodel.basics.files import check_file
from perfmodel.kernels.kernel import Kernel


def is_kernel_file(argument: str) -> bool:
    """Returns True if a command's argument names a Python file rather than a tag."""
    return _split(argument)[0].endswith(".py")


def kernels_from_files(arguments: Sequence[str]) -> list[Kernel]:
    """Returns the kernels of ``path.py:name`` arguments, at every combination of the ``size:values`` beside them.

    Raises:
        KernelError: for a file that cannot be run, a name that is no kernel in it, or a wrong size.
    """
    points = size_points([a for a in arguments if not is_kernel_file(a)], ":")
    asked = [_split(argument) for argument in arguments if is_kernel_file(argument)]
    files = {file: _defined(Path(file)) for file, _ in dict.fromkeys(asked)}
    kernels = [_kernel(Path(file), files[file], name) for file, name in asked]
    return [kernel.at(**point) for kernel in kernels for point in points]


def definitions(argument: str) -> dict[str, str]:
    """Returns what the file ``path.py`` defines, each name with what it is: a Loopy program, a kernel, or a function.

    Raises:
        KernelError: for a file that cannot be run.
    """
    return {name: kind for name, value in _defined(Path(argument)).items() if (kind := _kind(value))}


def size_points(pairs: Iterable[str], mark: str) -> list[dict[str, int]]:
    """Returns all combinations of sizes that ``name<mark>value`` or ``name<mark>a,b`` give; an empty one for no pairs.

    Raises:
        KernelError: for anything that is not such a pair, and for a name given twice.
    """
    choices: dict[str, list[int]] = {}
    for pair in pairs:
        name, found, values = pair.partition(mark)
        if not found or not name.isidentifier() or not re.fullmatch(r"\d{1,19}(,\d{1,19})*", values, re.ASCII):
            raise KernelError(f"{pair!r} gives no size; write name{mark}value or name{mark}a,b with whole numbers")
        if name in choices:
            raise KernelError(f"size {name!r} is given twice; write all its values as {name}{mark}a,b")
        choices[name] = list(dict.fromkeys(map(int, values.split(","))))
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


def _split(argument: str) -> tuple[str, str]:
    """Returns an argument's path and name; the name is empty where there is none."""
    if argument.endswith(".py"):
        return argument, ""
    path, _, name = argument.rpartition(":")
    return path, name


def _kernel(path: Path, values: dict[str, Any], name: str) -> Kernel:
    if not name:
        raise KernelError(f"{path} needs the name of a kernel; write {path}:NAME ({_known(values)})")
    if name not in values:
        raise KernelError(f"{path} defines no kernel {name!r}{nearest(name, values)} ({_known(values)})")
    value = values[name]
    if inspect.isfunction(value):
        value = _guarded(path, value)
    if isinstance(value, Kernel):
        return value
    if not _is_loopy_program(value):
        raise KernelError(
            f"{path}:{name} gives a {type(value).__name__}, which is no kernel; make it a Loopy program or a "
            "perfmodel.Kernel, or a function without arguments that returns one"
        )
    return Kernel(value, {"generator": f"{path.name}:{name}"})


def _defined(path: Path) -> dict[str, Any]:
    """Returns the file's public names that are, or may give, a kernel; of its functions those that can be called
    bare."""
    module = types.ModuleType(f"kernel file {path}")
    module.__file__ = str(path)
    try:
        check_file(path)
        source = path.read_bytes()
    except OSError as error:
        raise KernelError(f"kernel file {path} cannot be read ({error.strerror}); give a Python file") from error
    sys.modules[module.__name__] = module  # where dataclasses look for the names of their fields' types
    _guarded(path, lambda: exec(compile(source, str(path), "exec"), module.__dict__))
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
    if isinstance(value, Kernel):
        return "kernel"
    return "Loopy program" if _is_loopy_program(value) else ""


def _is_loopy_program(value: Any) -> bool:
    # Where nothing imported loopy, nothing can be a program of its.
    loopy = sys.modules.get("loopy")
    return loopy is not None and isinstance(value, loopy.TranslationUnit)
