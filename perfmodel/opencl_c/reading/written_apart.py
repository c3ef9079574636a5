"""Writes OpenCL C without macros, each statement on a line of its own, so that lines tell its parts apart.

A compiler's debugging information knows one place for all that a macro stands for, which may be several loops.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from perfmodel.opencl_c.reading.build_options import BuildOptions
from perfmodel.opencl_c.reading.header import predefined
from perfmodel.opencl_c.reading.preprocessing import preprocess

_MARK = re.compile(r'"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'|[(){};]")
_PRAGMAS = {0: "#pragma unroll\n", 1: "#pragma nounroll\n"}


def written_apart(source: str, options: Sequence[str] = ()) -> str:
    """Returns the source as it is once its macros are expanded, with a line for each statement.

    Raises:
        SourceError: for what cannot be read, see `perfmodel.opencl_c.reading.preprocessing.preprocess`.
    """
    build = BuildOptions.of(options)
    found = preprocess(source, "", build.macros(predefined(build.standard)), build.folders)
    pragmas = {offset: _PRAGMAS.get(factor, f"#pragma unroll {factor}\n") for offset, factor in found.unrolls}
    edges = [0, *sorted({*pragmas, *_ends(found.text)}), len(found.text)]
    lines = [pragmas.get(start, "") + found.text[start:end].strip() for start, end in pairwise(edges)]
    return "\n".join(line for line in lines if line)


def _ends(text: str) -> list[int]:
    """Returns where statements, and the braces around them, end."""
    found, depth = [], 0
    for mark in _MARK.finditer(text):
        match mark[0]:
            case "(":
                depth += 1
            case ")":
                depth -= 1
            case "{" | "}" | ";" if not depth:
                found.append(mark.end())
    return found
