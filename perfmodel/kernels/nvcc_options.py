"""Leaves those options of nvcc out that say nothing of a kernel, and that NVIDIA's runtime compiler does not know."""

from __future__ import annotations

import re
from collections.abc import Sequence

_OF_HOST = re.compile(
    "-O[0-4]|--?optimize|--?(expt-)?extended-lambda|--?expt-relaxed-constexpr|-(c|g|pg|m64|m32|shared|cubin|ptx|fatbin|run)"
    "|--(compile|debug|profile|shared|keep|resource-usage|no-host-device-initializer-list)|-Wno-deprecated-gpu-targets"
    "|-l(?!ineinfo$).+|-L.+|-t[0-9]+"
)
"""Options without a value, for the host's compiler, the linker and the order of nvcc's steps."""
_WITH_VALUE = re.compile(
    "-Xcompiler|--compiler-options|-ccbin|--compiler-bindir|-gencode|--generate-code|-code|--gpu-code|-Xlinker"
    "|--linker-options|-Xcudafe|-o|--output-file|-x|-t|--threads|-cudart|--cudart|--?default-stream|--library"
)
"""Options of the same kind that a value follows, behind an equals sign or as the next word."""


def of_runtime_compiler(options: Sequence[str]) -> list[str]:
    """Returns the options that the runtime compiler is given for these of nvcc."""
    words = [word for option in options for word in (option.split() if _splits(option) else [option])]
    found: list[str] = []
    is_value = False
    for word in words:
        name, equals, _ = word.partition("=")
        if is_value:
            is_value = False
        elif _WITH_VALUE.fullmatch(name):
            is_value = not equals
        elif not _OF_HOST.fullmatch(name):
            found.append(word)
    return found


def _splits(option: str) -> bool:
    """Returns whether an option and its value are one word here, as on a line of a makefile."""
    return bool(_WITH_VALUE.fullmatch(option.split(" ", 1)[0]))
