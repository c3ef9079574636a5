"""A source without macros and with each statement on a line of its own does what it did."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c.reading.written_apart import written_apart

SOURCE = """
#define EACH(k, n) for (int k = 0; k < n; k++) { if (k % 3 == 1) continue;
#define END }
#define TEXT "a;{b}"
#ifdef WIDTH
__kernel void sums(__global float *a, __global const float *b) {
    int i = get_global_id(0); float s = 0; char first = ';';
    __constant char *text = TEXT;
#pragma unroll 2
    EACH(x, WIDTH) EACH(y, 4) s += b[(i + x * 4 + y) & 63] * text[0]; END END
    do { s += first; } while (s < 0);
    a[i] = s; }
#endif
"""


def computed(source: str, options: list[str]) -> np.ndarray:
    kernel = pm.Kernel.from_opencl(source, "sums", 64, 16, {"a": 64, "b": 64}, options=options)
    given = {"b": np.random.default_rng(1).uniform(0, 1, 64).astype(np.float32)}
    return np.asarray(pm.emulate(kernel, given, groups="all").array("a"))


def test_it_computes_the_same() -> None:
    text = written_apart(SOURCE, ["-DWIDTH=5"])
    assert computed(text, []).tolist() == computed(SOURCE, ["-DWIDTH=5"]).tolist()


def test_statements_have_lines_of_their_own() -> None:
    lines = written_apart(SOURCE, ["-DWIDTH=5"]).split("\n")
    assert not any("EACH" in line or "WIDTH" in line for line in lines)
    assert sum(line.lstrip().startswith("for") for line in lines) == 2
    assert "#pragma unroll 2" in lines
    assert any('"a;{b}"' in line for line in lines)
    assert written_apart("\n".join(lines)).split("\n") == lines


def test_what_cannot_be_read_has_its_place() -> None:
    with pytest.raises(SourceError, match="never closed"):
        written_apart("#if 1\nint x;\n")
