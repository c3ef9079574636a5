"""Takes a kernel's source and what is said beside it as people give them, and refuses what can be none of these."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perfmodel.basics.brief import shortened
from perfmodel.basics.errors import KernelError, SourceError
from perfmodel.kernels.arguments import Argument
from perfmodel.kernels.source_words import source_text

_LONGEST_SHOWN = 60


class Language(NamedTuple):
    """A language that kernels are written in: its name, how its kernels begin, and what reads them."""

    name: str
    kernels: str
    marks: re.Pattern[str]
    constructor: str
    ending: str


OPENCL_C = Language(
    name="OpenCL C",
    kernels="__kernel",
    marks=re.compile(r"\b__kernel\b|\bkernel\s+void\b"),
    constructor="from_opencl",
    ending=".cl",
)
CUDA = Language(
    name="CUDA C++",
    kernels="__global__",
    marks=re.compile(r"\b__global__\b"),
    constructor="from_cuda",
    ending=".cu",
)
PTX = Language(
    name="PTX",
    kernels=".entry",
    marks=re.compile(r"^\s*(?:\.\w+\s+)*\.entry\b", re.MULTILINE),
    constructor="from_ptx",
    ending=".ptx",
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def is_text(source: Any) -> bool:
    """Returns True for the text of a source, and False for the path of its file."""
    return isinstance(source, str) and ("{" in source or "\n" in source)


def given_text(source: str | Path, language: Language) -> tuple[str, Path | None]:
    """Returns the text of a source, and its file where it is one.

    Raises:
        KernelError: for what is neither, and for a file that cannot be read.
    """
    if not isinstance(source, str | Path) or not str(source).strip() or str(source) == ".":
        raise KernelError(
            f"{shortened(repr(source), _LONGEST_SHOWN)} is no source; give the text of {language.name}, or the path of "
            f"a {language.ending} file"
        )
    if isinstance(source, str) and is_text(source):
        return source, None
    shown = shortened(str(source), _LONGEST_SHOWN)
    try:
        return source_text(Path(source)), Path(source)
    except OSError as error:
        raise KernelError(
            f"source file {shown} cannot be read ({error.strerror}); give the path of a {language.ending} file"
        ) from error
    except ValueError as error:
        raise KernelError(f"source file {shown} is no text in UTF-8; save it so") from error


@contextmanager
def read_as(language: Language, text: str) -> Iterator[None]:
    """Reads a text as one language, and says so where it is refused and has kernels of another only.

    Raises:
        KernelError: in the place of an error, where that is so.
    """
    try:
        yield
    except (SourceError, KernelError) as error:
        plain = _COMMENT.sub(" ", text)
        others = [each for each in (OPENCL_C, CUDA, PTX) if each != language and each.marks.search(plain)]
        if not others or language.marks.search(plain):
            raise
        (other, *_) = others
        raise KernelError(
            f"the source is {other.name}, as it has {other.kernels}, and is read as {language.name}; give it to "
            f"{other.constructor}, or as a {other.ending} file"
        ) from error


def check_list(what: str, given: Any, example: str) -> None:
    """Refuses what is no list of words or paths."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise KernelError(f"{what}={shortened(repr(given), _LONGEST_SHOWN)} is no list; write {what}=[{example!r}]")
    for each in given:
        if not isinstance(each, str | Path):
            raise KernelError(
                f"{what} have {shortened(repr(each), _LONGEST_SHOWN)}, which is no text; write {example!r}"
            )


def given_args(
    kernel: str, args: Mapping[str, Any] | Sequence[Argument] | None
) -> Mapping[str, Any] | Sequence[Argument]:
    """Returns what is said of arguments: nothing, where nothing is given.

    Raises:
        KernelError: for what says nothing of arguments.
    """
    if args is None:
        return {}
    if isinstance(args, str | bytes) or not isinstance(args, Mapping | Sequence):
        raise KernelError(
            f"args={shortened(repr(args), _LONGEST_SHOWN)} of kernel {kernel!r} says nothing of arguments; give the "
            "elements of arrays by name, as args={'x': 'n'}"
        )
    return args


def check_elements(kernel: str, array: str, given: Any, what: str = "elements") -> None:
    """Refuses what is no number of elements of an array, such as the array itself."""
    if isinstance(given, bool) or not isinstance(given, str | int | np.integer):
        raise KernelError(
            f"argument {array!r} of kernel {kernel!r} is given {type(given).__name__}, not its number of {what}; give "
            "the number in args, and the array itself by kernel.as_observed(…)"
        )


def check_all_given(kernel: str, missing: Mapping[str, str]) -> None:
    """Refuses arrays of which nothing is said, all of them at once.

    Args:
        missing: what has to be said of each, by their names: a number of ``elements``, say.
    """
    if not missing:
        return
    by_unit = {unit: [repr(name) for name, other in missing.items() if other == unit] for unit in missing.values()}
    needed = " and ".join(
        f"the number of {unit} of its argument{'s' * (len(names) > 1)} {', '.join(names)}"
        for unit, names in by_unit.items()
    )
    given = "them" if len(missing) > 1 else "it"
    words = ", ".join(f"{name!r}: …" for name in missing)
    raise KernelError(f"kernel {kernel!r} needs {needed}; give {given} in args, as {{{words}}}")
