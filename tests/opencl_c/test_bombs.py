"""Sources that are small and would grow without end: each is refused in one sentence that names the limit."""

from __future__ import annotations

import resource

import pytest

import perfmodel as pm
from perfmodel.basics.errors import CountingError, SourceError
from perfmodel.opencl_c.reading import read


def kernel(body: str, before: str = "") -> str:
    return f"{before}__kernel void f(__global int *a, const int n) {{ {body} }}"


def doubling(macro: str, first: str, count: int) -> str:
    """Returns macros that are each made of twice the one before."""
    twice = [f"#define m{i} {macro.format(f'm{i - 1}')}\n" for i in range(1, count)]
    return (
        f"#define C(x, y) x##y\n#define D(x, y) C(x, y)\n#define S(x) #x\n#define T(x) S(x)\n#define m0 {first}\n"
        + ("".join(twice))
    )


BOMBS = {
    "pasted": (kernel("m24;", doubling("D({0}, {0})", "a", 25)), "macros multiply one another|they multiply"),
    "a string in a string": (kernel("m39;", doubling("T({0})", '"\\\\"', 40)), "paste more than 1000000 characters"),
    "a chain": (
        kernel("a0", "".join(f"#define a{i} a{i + 1}\n" for i in range(5000))),
        "the macro a300 comes out of more than 300 others",
    ),
    "declarations": (kernel("".join(f"int v{i};" for i in range(20_000))), "more than 10000 statements and variables"),
    "one declaration": (
        kernel("int " + ", ".join(f"v{i}" for i in range(20_000)) + ";"),
        "more than 10000 statements and variables",
    ),
    "brackets": (kernel("{" * 20_000 + "}" * 20_000), "nested more than 120 deep"),
    "branches in branches": (kernel("if (n) " * 20_000 + ";"), "more than 1500 tokens"),
    "a zero in front of a shift": (kernel("a[0] = " + "-~" * 20_000 + "n;"), "more than 1500 tokens"),
}


@pytest.mark.parametrize(("source", "words"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused(source: str, words: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SourceError, match=words) as caught:
        read(source)
    assert caught.value.line
    assert "\n" not in str(caught.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


@pytest.mark.parametrize(
    ("statement", "words"),
    [("a[{0}] = a[n] + a[{0}];", "13500 accesses to memory"), ("if (n > {0}) a[0] = n;", "4500 loops and branches")],
)
def test_more_than_can_be_counted_is_said(statement: str, words: str) -> None:
    source = kernel("".join(statement.format(i) for i in range(4500)))
    with pytest.raises(CountingError, match=f"has {words} in its source, more than the"):
        _ = pm.Kernel.from_opencl(source, "f", 16, 16, {"a": 4500}, n=1).counts
