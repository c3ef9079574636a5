"""Preprocessing OpenCL C: macros, conditions, includes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfmodel.opencl_c import syntax as sx
from perfmodel.opencl_c.reading import read
from perfmodel.opencl_c.reading.preprocessing import preprocess
from tests.opencl_c.refusing import refusal


@pytest.mark.parametrize(
    ("source", "options", "value"),
    [
        ("N", ["-DN=3"], 3),
        ("N", ["-D", "N=4"], 4),
        ("N", ["-D N=5"], 5),
        ("N", ["-DN"], 1),
        ("F(2)", ["-DF(x)=(x*3)"], 6),
        ("\n#ifdef N\n1\n#else\n2\n#endif\n", ["-DN=1", "-U", "N"], 2),
        ("__OPENCL_C_VERSION__", [], 120),
        ("__OPENCL_C_VERSION__", ["-cl-std=CL2.0"], 200),
        ("\n#if defined(cl_khr_fp64) && __OPENCL_VERSION__ >= CL_VERSION_1_1 && !defined FOO\n7\n#endif\n", [], 7),
        ("\n#ifdef cl_intel_subgroups\n1\n#else\n2\n#endif\n", [], 2),
        ("\n#ifdef cl_intel_subgroups\n1\n#else\n2\n#endif\n", ["-Dcl_intel_subgroups"], 1),
        ("__FAST_RELAXED_MATH__", ["-cl-fast-relaxed-math", "-w", "-cl-mad-enable"], 1),
        ("__LINE__", [], 1),
        ("\n#define A(x, y) x##y\n#define B A(1, A(2, 3))\nA(4, 5)\n", [], 45),
        ("\n#define V(f, ...) f(__VA_ARGS__)\n#define SUM(a, b, c) a + b + c\nV(SUM, 1, (2, 3), 4)\n", [], 8),
        ("\n#define X X + 1\n#define Y 5\n#undef Y\n#ifndef Y\n9\n#elif 1\n8\n#endif\n", [], 9),
        ("\n#define V(f, rest...) f(rest)\n#define SUM(a, b, c) a + b + c\nV(SUM, 1, (2, 3), 4)\n", [], 8),
        ("\n#define V(rest...) SUM(rest)\n#define SUM(a, b, c) a + b + c\nV(1, 2, 5)\n", [], 8),
        (
            "\n#if 0\ndon't \" #else\n#elif (3 > 2 ? 2 : 0) == 2 && 'a' == 97 && 1 << 4 == 16 && -7 / 2 == -3\n4\n"
            "#endif\n",
            [],
            4,
        ),
        ("\n#if 0x10u != 16 || 010 - 8 || ~0 + 1 || !1\n#else\n5\n#endif\n", [], 5),
        ("\n#if __has_builtin(__builtin_amdgcn_sdot4) || __has_extension(x)\n1\n#else\n8\n#endif\n", [], 8),
        ("\n#define EMPTY\n- EMPTY -1", [], 1),
        ('\n#define F(x) #x\n#define G() 6\nsizeof(F(a "b")) + G( )', [], 12),
    ],
)
def test_preprocessing(source: str, options: list[str], value: int) -> None:
    (table,) = read(f"__constant int t = {source};", options).tables
    assert isinstance(table.initial, sx.Constant | sx.Convert | sx.Binary)
    assert _value(table.initial) == value


def _value(expression: sx.Expression | sx.InitializerList | None) -> int | float:
    while isinstance(expression, sx.Convert):
        expression = expression.operand
    if isinstance(expression, sx.Comma):
        return _value(expression.second)
    if isinstance(expression, sx.Binary):
        return _value(expression.left) + _value(expression.right)
    assert isinstance(expression, sx.Constant)
    return expression.value


def test_only_what_a_kernel_reaches_is_read() -> None:
    source = """
__constant int used[2] = {1, 2}, other[2] = {3, 4};
int f(int x) { return used[x]; }
int broken(int x) { return x ?: 2; }
__attribute__((overloadable)) int twice(int x) { return 2 * x; }
__attribute__((overloadable)) float twice(float x) { return 2 * x; }
__kernel void first(__global int *a) { a[0] = f(a[1]) + twice(a[2]) + twice(2.0f); }
__kernel void second(__global int *a) { a[0] = broken(a[1]); }
"""
    unit = read(source, kernels=["first"])
    assert list(unit.functions) == ["first", "f", "twice", "twice__2"]
    assert [table.name for table in unit.tables] == ["used"]
    assert unit.kernels == ("first", "second")
    assert refusal(source).line == 4


def test_sources_and_sums_may_be_long() -> None:
    terms = " + ".join(f"(a[{i}] * {i} - 1)" for i in range(140))
    helpers = "".join(f"int f{i}(int x) {{ return x + {i}; }} /* {'a' * 2000} */\n" for i in range(1200))
    unit = read(f"{helpers}__kernel void k(__global int *a) {{ a[0] = {terms} + f7(a[1]); }}", kernels=["k"])
    assert list(unit.functions) == ["k", "f7"]


def test_includes_come_from_the_given_folders_alone(tmp_path: Path) -> None:
    inner, secret = tmp_path / "inner", tmp_path / "secret.h"
    (inner / "deep").mkdir(parents=True)
    secret.write_text("int secret(int x) { return x; }\n")
    (inner / "a.h").write_text('#pragma once\n#include "deep/b.h"\n')
    (inner / "deep" / "b.h").write_text('#include "c.h"\n#include "../a.h"\n')
    (inner / "deep" / "c.h").write_text("int c(int x) { return x; }\n")
    (inner / "link.h").symlink_to(secret)
    for options, folders in (([], [inner]), ([f"-I{inner}"], []), (["-I", str(inner)], [])):
        assert list(read('#include "a.h"\n#include <a.h>\n', options, folders).functions) == ["c"]
    named = f"#define NAME(x) #x\n#define PATH(x) NAME(x)\n#include PATH({inner}/a.h)\n"
    assert list(read(f"{named}{named}", [], [inner]).functions) == ["c"]
    assert "lies outside the folders given" in refusal(f'#include "{secret}"', folders=[inner]).reason
    assert "is not in the folders that are given: give its own by -I or folders" in refusal('#include "a.h"').reason
    assert "did you mean 'a.h'?" in refusal('\n #include "aa.h"', folders=[inner]).reason
    for name in (str(secret), "../secret.h", "link.h", "deep/../../secret.h"):
        fault = refusal(f'\n#include "{name}"', folders=[inner])
        assert fault.line == 2
        assert re.search("cannot be included|lies outside", fault.reason)


def test_an_include_of_itself_ends(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text('#include "a.h"\n')
    assert "may include itself" in refusal('#include "a.h"', folders=[tmp_path]).reason


@pytest.mark.parametrize(
    ("source", "place", "reason"),
    [
        ("\n#define F(a, b) a\nint x = F(1);", (3, 9), "1 argument is given to the macro F, which takes 2"),
        ("#define F(a) a\nint x = F(1;", (2, 9), "the call of the macro F is never closed by ')'"),
        ("#if 1\n#else\n#else\n#endif", (3, 2), "#else belongs to no #if"),
        ("\n#endif", (2, 2), "#endif belongs to no #if"),
        ("\n\n#ifdef A", (3, 2), "the condition is never closed: end it with #endif"),
        ("#if 1 / 0\n#endif", (1, 2), "in the condition '1 / 0', the divisor is 0"),
        ("#if 1 +\n#endif", (1, 2), "in the condition '1 +', a value is missing"),
        ("#if 1.5\n#endif", (1, 2), "in the condition '1.5', '1.5' is no integer"),
        ("#if (1\n#endif", (1, 2), "in the condition '( 1', a ')' is missing"),
        ("#if\n#endif", (1, 2), "in the condition '', a value is missing"),
        ("#define\n", (1, 2), "#define needs a name"),
        ("#define F(a\n", (1, 9), "the parameters of the macro F are not closed by ')'"),
        ("#error too bad", (1, 2), "the source stops by itself: #error too bad"),
        ("#inlcude <x>", (1, 2), "there is no directive #inlcude; did you mean 'include' or 'ifndef'?"),
        ("#include x", (1, 2), '#include names no file: write #include "file" or #include <file>'),
        ("int a; /* b", (1, 8), "the comment is never closed: end it with */"),
        ("\n int a = 'b;", (2, 10), "the ' is never closed on its line"),
    ],
)
def test_faults_of_preprocessing(source: str, place: tuple[int, int], reason: str) -> None:
    fault = refusal(source)
    assert (fault.line, fault.column, fault.reason) == (*place, reason)


def test_faults_in_includes_are_placed_there(tmp_path: Path) -> None:
    (tmp_path / "bad.h").write_text("\n\nint f(int x) { return y; }\n")
    fault = refusal('int g(int x) { return x; }\n#include "bad.h"\n', folders=[tmp_path])
    assert (Path(fault.file).name, fault.line, fault.column) == ("bad.h", 3, 23)


def test_rounds_that_are_written_out_are_no_bomb() -> None:
    """Steps of hashes are macros of macros, hundreds of them: eight tokens for each character of the source."""
    macros = "#define ROL(x, n) (((x) << (n)) | ((x) >> (32 - (n))))\n#define F(x, y, z) (((x) & (y)) ^ (~(x) & (z)))\n"
    macros += "#define R(a, b, c, n) a += F(b, c, a) + n; a = ROL(a, n) + b\n"
    steps = "".join(f"R(x, y, z, {n % 31 + 1});\nR(y, z, x, 3);\n" for n in range(700))
    body = f"uint x = a[0], y = a[1], z = a[2];\n{steps}a[0] = x;"
    source = f"{macros}__kernel void f(__global uint *a) {{ {body} }}"
    made = preprocess(source, "f.cl", {}, []).text
    assert made.count("<<") == 1400
    assert len(made) > 4 * len(source)
