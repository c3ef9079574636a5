"""Takes what is for the host out of a ``.cu`` file: its functions, and headers that kernels don't need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_OF_DEVICE = re.compile(r"\b(?:__device__|__global__|constexpr)\b")
_TYPE = re.compile(r"\b(?:struct|class|union|enum)\b")

_WHOLE = "".join(
    f"typedef {'unsigned ' if sign else 'signed ' * (name == 'char')}{name} {sign}int{bits}_t;\n"
    for name, bits in (("char", 8), ("short", 16), ("int", 32), ("long long", 64))
    for sign in ("", "u")
)
_LIMITS = """
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807ll
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define RAND_MAX 2147483647
"""
_MATH = """
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_E 2.7182818284590452354
#define M_SQRT2 1.41421356237309504880
"""
_EMPTY = (
    *(
        "stdio.h",
        "stdlib.h",
        "string.h",
        "time.h",
        "unistd.h",
        "getopt.h",
        "sys/time.h",
        "errno.h",
        "cstdio",
        "cstdlib",
    ),
    *("cstring", "ctime", "iostream", "fstream", "sstream", "iomanip", "string", "vector", "map", "set", "array"),
    *("memory", "algorithm", "numeric", "functional", "random", "chrono", "thread", "stdexcept", "exception", "omp.h"),
    *("cuda_profiler_api.h", "sys/types.h", "sys/stat.h"),
)
HEADERS: Mapping[str, str] = {
    **dict.fromkeys(_EMPTY, "#pragma once\n"),
    **dict.fromkeys(("stddef.h", "cstddef"), "#pragma once\n"),
    **dict.fromkeys(("stdint.h", "cstdint", "inttypes.h"), f"#ifndef INT_TYPES\n#define INT_TYPES\n{_WHOLE}#endif\n"),
    **dict.fromkeys(("limits.h", "climits", "float.h", "cfloat"), f"#ifndef INT_MAX\n{_LIMITS}#endif\n"),
    **dict.fromkeys(("math.h", "cmath"), f"#ifndef M_PI\n{_MATH}#endif\n"),
    **dict.fromkeys(("assert.h", "cassert"), "#ifndef assert\n#define assert(condition) ((void)0)\n#endif\n"),
}
"""Headers of C and C++ that files include for the host, with what kernels need of them."""


def device_code(source: str) -> str:
    """Returns a source without the bodies and heads of functions for the host alone; lines keep their numbers."""
    plain = _blank(source, _SKIPPED)
    plain = _blank(plain, _DIRECTIVE)
    kept = list(source)
    directives = {place for match in _DIRECTIVE.finditer(_blank(source, _SKIPPED)) for place in range(*match.span())}
    for start, end in _host_functions(plain):
        for place in range(start, end):
            if kept[place] != "\n" and place not in directives:
                kept[place] = " "
    return "".join(kept)


def _blank(text: str, pattern: re.Pattern[str]) -> str:
    """Returns a text with blanks in the place of what matches."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _host_functions(plain: str) -> Iterator[tuple[int, int]]:
    """Yields where functions for the host begin and end, in a text without comments, strings and directives."""
    start = place = 0
    while place < len(plain):
        mark = plain[place]
        if mark in ";}":
            start = place = place + 1
        elif mark == "(":
            place = _closing(plain, place, "()")
        elif mark == "{":
            head = plain[start:place]
            if re.search(r"\bnamespace\b", head) or re.fullmatch(r"\s*extern\s*", head):
                start = place = place + 1
                continue
            end = _closing(plain, place, "{}")
            is_function = "(" in head and "=" not in re.sub(r"\(.*\)", "", head, flags=re.DOTALL)
            if is_function and not _OF_DEVICE.search(head):
                yield start, end
            if is_function or not (_TYPE.search(head) or "=" in head):
                start = end
            place = end
        else:
            place += 1


def _closing(text: str, opening: int, pair: str) -> int:
    """Returns the place behind the bracket that closes one."""
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] == pair[0]) - (text[place] == pair[1])
        if depth == 0:
            return place + 1
    return len(text)
