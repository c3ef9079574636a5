"""A source as NVIDIA's compiler is given it, which is changed until it takes the kernel that is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from perfmodel.kernels import thrust_headers
from perfmodel.kernels.cuda_declarations import Outline, outline_of
from perfmodel.kernels.cuda_host import (
    HEADERS,
    HOST_TYPES,
    NAMES_OF_HOST_TYPES,
    ONE_ABS,
    PRE_INCLUDED,
    UNMASKED,
    is_for_the_host,
    stand_in,
)
from perfmodel.kernels.cuda_omissions import (
    code_of_kernel,
    with_plain_lambdas,
    without,
    without_refusals,
    without_unmentioned,
)
from perfmodel.kernels.hip_headers import HIP_HEADERS

_OF_THE_SYSTEM = ("-D__linux__=1", "-D__linux=1", "-D__unix__=1")
"""Compilers for the host define these, by which sources choose between systems."""
_WORDS_OF_GCC = (
    *("-D__extension__=", "-Dregister=", "-D__asm__=asm", "-D__asm=asm", "-D__volatile__=volatile"),
    *("-D__inline__=inline", "-D__inline=inline", "-D__const=const", "-D__signed__=signed"),
)
_OF_NVCC = "-D__NVCC__=1"
_OF_HOST = "|".join(NAMES_OF_HOST_TYPES)
_INCLUDED_BY_OTHERS: Mapping[re.Pattern[str], Sequence[str]] = {
    # names of std, or std itself
    re.compile(r'"std"|^qualified name is not allowed'): ("limits", "utility", "algorithm", "functional"),
    re.compile('more than one instance of overloaded function "abs"'): (ONE_ABS,),
    re.compile(
        rf'namespace "std" has no member (?:\w+ )?"(?:{_OF_HOST})"|"cuda::std::\w+::(?:{_OF_HOST})<.*not allowed'
    ): (HOST_TYPES,),
    re.compile(r'namespace "std" has no member (?:\w+ )?"string"'): ("string",),
    re.compile(r'identifier "__(?:shfl(?:_up|_down|_xor)?|ballot|any|all)" is undefined'): (UNMASKED,),
}
"""Headers that programs have without including them themselves, by the compiler's words where one is missing."""
_ONLY_FOR_THE_HOST = "explicitly marked as a __host__ function"
_OF_LAMBDAS = "annotation on lambda"
_MISTAKE = re.compile(r"^/?(.*?)\((\d+)\): (?:catastrophic )?error\b:?\s*(.*)$", re.MULTILINE)
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_OF_THE_TOOLKIT = {"cuda_runtime.h", "cuda.h", "device_launch_parameters.h"}
_NOT_FOUND = re.compile(r'cannot open source file "([^"]*)"')


def absent_headers(source: str, folders: Sequence[Path]) -> list[str]:
    """Returns the headers that a source includes and that lie in none of the folders, or are for the host alone."""
    known = HEADERS.keys() | HIP_HEADERS.keys() | _OF_THE_TOOLKIT
    return [
        each
        for each in dict.fromkeys(_INCLUDED.findall(source))
        if each not in known and (is_for_the_host(each) or not any((folder / each).is_file() for folder in folders))
    ]


def _included_first(headers: Iterable[str]) -> list[str]:
    return [f"--pre-include={header}" for header in headers]


class _Mistake(NamedTuple):
    file: str
    line: int
    words: str


class Attempt:
    """A kernel's source without functions for the host, with headers and options beside it.

    Args:
        absent: headers that are nowhere, or for the host alone; others stand in for them.
        folders: of the headers that come with the compiler.

    Attributes:
        outline: the source as it is compiled next; `headers` by their names, and `options` as well.
    """

    def __init__(
        self, source: str, name: str, options: Sequence[str], absent: Sequence[str], folders: Sequence[str]
    ) -> None:
        self.source, self.name = source, name
        self.outline = code_of_kernel(outline_of(source), name)
        self.headers = {**HEADERS, **{each: stand_in(each) for each in absent}}
        self.options = [*options, "-default-device", *_WORDS_OF_GCC, *_OF_THE_SYSTEM]
        self.options += _included_first(PRE_INCLUDED)
        self._folders = tuple(folder.lstrip("/") for folder in folders)
        self._of_the_host: set[str] = set()  # headers that come with the compiler, but are not for it

    @property
    def not_found(self) -> list[str]:
        """The headers that are not there, and that the kernel does without."""
        return [header for header in self.headers if header not in HEADERS and header not in self._of_the_host]

    def mend(self, log: str) -> bool:
        """Changes something about what the compiler's words say it doesn't understand; returns whether there was
        something to change."""
        mistakes = [_Mistake(file, int(line), words) for file, line, words in _MISTAKE.findall(log)]
        remedies = (
            self._without_missing_headers,
            self._without_headers_of_the_host,
            self._without_thrust,
            self._with_what_others_include,
            self._with_plain_lambdas,
            self._without_refusals,
            self._without_mistakes,
        )
        return any(remedy(mistakes) for remedy in remedies)

    def shorten(self) -> bool:
        """Leaves out what the kernel doesn't mention, after the compiler crashed; returns whether there was such."""
        return self._take(without_unmentioned(self.outline, self.name))

    def _without_missing_headers(self, mistakes: Sequence[_Mistake]) -> bool:
        return self._replace([header for each in mistakes for header in _NOT_FOUND.findall(each.words)])

    def _without_headers_of_the_host(self, mistakes: Sequence[_Mistake]) -> bool:
        within = [
            each.file.rpartition("/")[2]
            for each in mistakes
            if is_for_the_host(each.file) or (_ONLY_FOR_THE_HOST in each.words and each.file.startswith(self._folders))
        ]
        new = [header for header in within if header not in self.headers]
        self._of_the_host.update(new)
        return self._replace(new)

    def _without_thrust(self, mistakes: Sequence[_Mistake]) -> bool:
        """Replaces what a header of the compiler's own needs of Thrust."""
        named = (each for each in _INCLUDED.findall(self.outline.source) if each.startswith("thrust/"))
        thrust = [each for each in named if each not in self.headers and each not in thrust_headers.UNDERSTOOD]
        if not thrust or not any(each.file.startswith(self._folders) for each in mistakes):
            return False
        self.headers.update(dict.fromkeys(thrust, thrust_headers.FUNCTIONS))
        return True

    def _with_what_others_include(self, mistakes: Sequence[_Mistake]) -> bool:
        for words, headers in _INCLUDED_BY_OTHERS.items():
            options = _included_first(headers)
            if options[0] not in self.options and any(words.search(each.words) for each in mistakes):
                self.options += options
                return True
        return False

    def _with_plain_lambdas(self, mistakes: Sequence[_Mistake]) -> bool:
        return any(_OF_LAMBDAS in each.words for each in mistakes) and self._take(
            outline_of(with_plain_lambdas(self.outline.source))
        )

    def _without_refusals(self, mistakes: Sequence[_Mistake]) -> bool:
        refused = self.headers.keys() > HEADERS.keys() and any("#error directive" in each.words for each in mistakes)
        return refused and self._take(outline_of(without_refusals(self.outline.source)))

    def _without_mistakes(self, mistakes: Sequence[_Mistake]) -> bool:
        if self._take(without(self.outline, [(each.file, each.line) for each in mistakes], self.name)):
            return True
        if "__NVCC__" not in self.source or _OF_NVCC in self.options:
            return False
        self.options.append(_OF_NVCC)
        self.outline = code_of_kernel(outline_of(self.source), self.name)
        return True

    def _replace(self, headers: Sequence[str]) -> bool:
        self.headers.update({each: stand_in(each) for each in headers})
        return bool(headers)

    def _take(self, outline: Outline | None) -> bool:
        if outline is None or outline.source == self.outline.source:
            return False
        self.outline = outline
        return True
