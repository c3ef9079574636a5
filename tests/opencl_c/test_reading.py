"""Reading OpenCL C: typed trees, source locations, preprocessing, refusals, and that nothing hangs or crashes."""

from __future__ import annotations

import contextlib
import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from perfmodel.basics.errors import SourceError
from perfmodel.device import Device
from perfmodel.opencl_c import syntax as sx
from perfmodel.opencl_c import types as ts
from perfmodel.opencl_c.reading import read
from tests.opencl_c.kernel_files import Launch, files, launches
from tests.opencl_c.tree_text import outline, shown

HEAD = """typedef struct { float f[2]; int4 v; } S;
enum { TWO = 2 };
float twice(float x) { return 2 * x; }
__kernel void k(__global float4 *a, __global int *b, __local float *l, S s, int i, uint u, char c, float x,
                float4 v, int4 m, double d, half h, __global S *p, long n, ushort w)
{
"""
EXPRESSIONS = [
    ("b[i] = c + 1", "b[i] = (int(c) + 1:int):int"),
    ("x = i", "x = float(i)"),
    ("v = v * 2", "v = (v * float4(float(2:int))):float4"),
    ("v = x * v", "v = (float4(x) * v):float4"),
    ("m = v < x", "m = (v < float4(x)):int4"),
    ("m = v == 1.0f && m", "m = ((v == float4(1.0:float)):int4 && m):int4"),
    ("i = !x", "i = (!x):int"),
    ("m = !v", "m = (!v):int4"),
    ("v = i ? v : x", "v = (i ? v : float4(x)):float4"),
    ("v = m ? v : a[u]", "v = (m ? v : a[u]):float4"),
    ("x = d * x", "x = float((d * double(x)):double)"),
    ("c += 1.5f", "c += 1.5:float in float"),
    ("c <<= u", "c <<= u in int"),
    ("u += i", "u += uint(i) in uint"),
    ("b += 3", "b += 3:int in global int*"),
    ("i = b - &b[1]", "i = int((b -p &b[1:int]))"),
    ("i = *(b - u)", "i = b[(-long(u)):long]"),
    ("v.xy = v.wz", "v.<0 1> = v.<3 2>"),
    ("v.lo.x = v.s3", "v.<0 1>.<0> = v.<3>"),
    ("a[1].hi.odd = x", "a[1:int].<2 3>.<1> = x"),
    ("a->x += 1", "*a.<0> += float(1:int) in float"),
    ("m[2] = i", "m.<2> = i"),
    ("s.f[1] = (*p).f[0]", "decay(s.f)[1:int] = decay(*p.f)[0:int]"),
    ("p->v.s01 = m.even", "*p.v.<0 1> = m.<0 2>"),
    ("x = l[i++] + --i", "x = (l[i++] + float(--i)):float"),
    ("i = sizeof(S) + TWO", "i = int((32:ulong + ulong(2:int)):ulong)"),
    ("v = (float4)(1, v.xy, x)", "v = float4{float(1:int), v.<0 1>, x}"),
    ("v = (float4)(i)", "v = float4(float(i))"),
    ("m = (int4){1, 2, 3, 4}", "m = int4{1:int, 2:int, 3:int, 4:int}"),
    ("s = (S){{1}, (int4)(5)}", "s = (S){0: float(1:int), 16: int4(5:int)}"),
    ("x = twice(i)", "x = twice(float(i)):float"),
    ("x = fmin(x, 1)", "x = @fmin(x, float(1:int)):float"),
    ("v = fmin(v, x)", "v = @fmin(v, float4(x)):float4"),
    ("v = clamp(v, 0.0f, 1.0f)", "v = @clamp(v, float4(0.0:float), float4(1.0:float)):float4"),
    ("v = ldexp(v, 2)", "v = @ldexp(v, int4(2:int)):float4"),
    ("m = max(m, 3)", "m = @max(m, int4(3:int)):int4"),
    ("v = mix(v, a[0], 0.5f)", "v = @mix(v, a[0:int], float4(0.5:float)):float4"),
    ("i = convert_int_sat_rte(x)", "i = @convert_int_sat_rte(x):int"),
    ("u = as_uint(x)", "u = @as_uint(x):uint"),
    ("v = vload4(i, l)", "v = @vload4(ulong(i), l):float4"),
    ("barrier(CLK_LOCAL_MEM_FENCE)", "@barrier(uint(1:int)):void"),
    ("atomic_add(b, u)", "@atomic_add(b, int(u)):int"),
    ("i = (i = 2, u)", "i = int((i = 2:int, u))"),
    ("x = h", "x = float(h)"),
    ("h = x", "h = half(x)"),
    ("n = u << n", "n = long((u << n):uint)"),
    ("u = u >> c", "u = (u >> int(c)):uint"),
    ("w ^= 0xffff", "w ^= 65535:int in int"),
    ("i = -w", "i = (-int(w)):int"),
    ("i = ~c", "i = (~int(c)):int"),
    ("x = NAN", "x = nan:float"),
    ("d = M_PI", "d = 3.141592653589793:double"),
    ("x = M_PI_F", "x = 3.1415927410125732:float"),
    ("x = 0x1p-3f", "x = 0.125:float"),
    ("u = UINT_MAX", "u = 4294967295:uint"),
    ("m = m << 2", "m = (m << int4(2:int)):int4"),
    ("m <<= i", "m <<= int4(i) in int4"),
    ("m = convert_int4(v) & i", "m = (@convert_int4(v):int4 & int4(i)):int4"),
    ("i = any(v > x)", "i = @any((v > float4(x)):int4):int"),
    ("i = b && !p", "i = (b && (!p):int):int"),
    ("m.x = b == &b[i]", "m.<0> = (b == &b[i]):int"),
    ("v = -v + +v", "v = ((-v):float4 + v):float4"),
    ("(void)i", "i"),
    ("i = 'a' - '\\n'", "i = (97:int - 10:int):int"),
]
REFUSALS: list[tuple[str, tuple[str, ...], str]] = [
    (
        "__kernel void k(__global int *a, int n)\n{\n  int b[n];\n  a[0] = b[0];\n}",
        (),
        "kernel.cl:3:9: variable length arrays are not supported in OpenCL; give the array a constant "
        "length, for instance by a macro",
    ),
    ("struct S { int a : 3; };", (), "kernel.cl:1:16: bit-fields are not supported in OpenCL; use shifts and masks"),
    (
        "int f(int x) { return x ? f(x - 1) : 0; }",
        (),
        "kernel.cl:1:27: functions call themselves, which OpenCL C forbids (f -> f); use a loop",
    ),
    (
        "int g(int x);\nint f(int x) { return g(x); }\nint g(int x) { return f(x); }",
        (),
        "kernel.cl:3:23: functions call themselves, which OpenCL C forbids (f -> g -> f); use a loop",
    ),
    (
        "int f(int x, ...) { return x; }",
        (),
        "kernel.cl:1:5: invalid prototype, variadic arguments are not allowed in OpenCL; give every "
        "argument a parameter",
    ),
    (
        "__kernel void k(__global int *a) { int (*p)(int) = 0; }",
        (),
        "kernel.cl:1:41: pointers to functions are not allowed; call functions by their names",
    ),
    (
        "int f(int x) { return x; }\n__kernel void k(__global int *a) { a[0] = f == 0; }",
        (),
        "kernel.cl:2:43: taking address of function is not allowed; call functions by their names",
    ),
    (
        '__kernel void k(__global int *a) { __asm__("nop"); }',
        (),
        "kernel.cl:1:36: the kernel uses assembly (__asm__), which perfmodel does not support; use built-in functions",
    ),
    (
        '__kernel void k(__global char *a) { char t[3] = "ab"; a[0] = t[0]; }',
        (),
        'kernel.cl:1:49: the kernel uses the string "ab", and perfmodel does not support strings; use an array of char',
    ),
    (
        '__constant char T[] = "ab";',
        (),
        'kernel.cl:1:23: the kernel uses the string "ab", and perfmodel does not support strings; use an array of char',
    ),
    (
        "__kernel void k(__global int *a, int i) { int4 v = 0; a[0] = v[i]; }",
        (),
        "kernel.cl:1:62: a component of a vector is chosen by a variable index; use an array instead",
    ),
    (
        "__kernel void k(__global int *a, int i) { a[0] = i ?: 3; }",
        (),
        "kernel.cl:1:50: perfmodel cannot read the expression 'i ?: 3'; write it with plain operators",
    ),
    (
        "__kernel void k(__global int *a, int i) { a[0] = ({ int x = 1; x; }); }",
        (),
        "kernel.cl:1:50: perfmodel cannot read the expression '({ int x = 1; x; })'; write it with plain operators",
    ),
    (
        "__kernel void k(__global int *a, int i) { switch (i) { case 0: do { a[0]--; case 1: a[0]++; } "
        "while (a[0]); } }",
        (),
        "kernel.cl:1:77: a case stands inside another statement of its switch; put it directly between "
        "the switch's braces",
    ),
    (
        "__kernel void k(__global int *a, int i) { switch (i) { a[0] = 1; case 0: break; } }",
        (),
        "kernel.cl:1:56: a statement stands before the first case of its switch; put it outside",
    ),
    (
        "__kernel void k(__global int *a, int i) { switch (i) { case 0 ... 3: break; } }",
        (),
        "kernel.cl:1:56: a case has a range of values; write them one by one",
    ),
    (
        "__kernel void k(__global int *a, int i) { switch (i) case 0: a[0] = 1; }",
        (),
        "kernel.cl:1:43: the switch has no braces; put its cases between { and }",
    ),
    (
        "int f(int x);\n__kernel void k(__global int *a) { a[0] = f(1); }",
        (),
        "kernel.cl:2:43: the function f is declared, but nothing defines it",
    ),
    (
        "__kernel void k(__global int *a) { a[0] = b; }",
        (),
        "kernel.cl:1:43: use of undeclared identifier 'b'; declare it, or define it by a build option such as -Db=1",
    ),
    (
        "__kernel void k(__global real *a) { }",
        (),
        "kernel.cl:1:26: unknown type name 'real'; define the type, or give it by a build option such as -Dreal=float",
    ),
    (
        "__kernel void k(__global int *a) { a[0] = missing(1); }",
        (),
        "kernel.cl:1:43: use of undeclared identifier 'missing'; declare it, or define it by a build "
        "option such as -Dmissing=1",
    ),
    ("__kernel void k(__global int *a) { a[0] = 1 }", (), "kernel.cl:1:44: expected ';' after expression"),
    ("__kernel void k(__global int *a) { a[0] = 1;", (), "kernel.cl:1:34: the { is never closed: end it with }"),
    (
        "__kernel void k(__global int *a) { a[0] = (1; }",
        (),
        "kernel.cl:1:47: the } stands where a ) should close the ( of line 1",
    ),
    (
        "int table[2] = {1, 2};",
        (),
        "kernel.cl:1:5: program scope variable must reside in constant address space; write __constant before it",
    ),
    ("__constant int T[2];", (), "kernel.cl:1:16: variable in constant address space must be initialized"),
    (
        "struct N { __global struct N *next; };\n__kernel void k(__global struct N *a) { }",
        (),
        "kernel.cl:1:12: N holds pointers to itself, which no host can fill; use indices instead",
    ),
    (
        "__kernel void k(__global int *a) { int b[100000000]; a[0] = b[0]; }",
        (),
        "kernel.cl:1:36: the variable b takes 400000000 bytes; use an argument in global memory",
    ),
    (
        "__kernel void k(__global int *a) { a[0] = as_int(1.0); }",
        (),
        "kernel.cl:1:43: call to 'as_int' is ambiguous; convert the arguments to the very types of one overload",
    ),
    (
        "__kernel void k(__global int *a, char c) { a[0] = as_int(c); }",
        (),
        "kernel.cl:1:51: as_int needs a value of 4 bytes, not char",
    ),
    (
        "__kernel void k(__global int *a) { a[0] = 'ab'; }",
        (),
        "kernel.cl:1:43: 'ab' is no single character; write its number",
    ),
    ("int ä;", (), "kernel.cl:1:5: the character 'ä' stands outside a comment; write it in ASCII"),
    (
        "__kernel void k(__global float4 *a) { a[0] = a[0].xq; }",
        (),
        "kernel.cl:1:50: illegal vector component name 'q'",
    ),
    (
        "__kernel void k(__global float2 *a) { a[0] = a[0].zw; }",
        (),
        "kernel.cl:1:50: vector component access exceeds type '__global float2' (vector of 2 'float' values)",
    ),
    (
        "__kernel void k(__global int *a) { int b[2] = {[0 ... 1] = 3}; a[0] = b[1]; }",
        (),
        "kernel.cl:1:60: this way to name a member is not supported; write its value in order",
    ),
    ("__kernel int k(__global int *a) { return 1; }", (), "kernel.cl:1:14: kernel must have void return type"),
    (
        "kernel void k(global int*a) { static int x = 0; a[0] = x++; }",
        ("-cl-std=CL2.0",),
        "kernel.cl:1:31: the variable x lives in global memory beyond the kernel's run, as static ones "
        "do; perfmodel does not support that: pass it as an argument",
    ),
    (
        "global int x = 1; kernel void k(global int*a) { a[0] = x; }",
        ("-cl-std=CL2.0",),
        "kernel.cl:1:1: the variable x lives in global memory beyond the kernel's run, as static ones "
        "do; perfmodel does not support that: pass it as an argument",
    ),
    (
        "kernel void k(queue_t q) { enqueue_kernel(q, 0, ^{}); }",
        ("-cl-std=CL2.0",),
        "kernel.cl:1:15: the kernel uses enqueueing from the device (queue_t), which perfmodel does not "
        "support; launch kernels from the host",
    ),
    (
        "kernel void k(global int*a) { int (^b)(int) = ^(int x){ return x; }; a[0] = b(1); }",
        ("-cl-std=CL2.0",),
        "kernel.cl:1:31: the type int (__generic ^const __private)(int) is not supported by perfmodel; "
        "use numbers, vectors, pointers, arrays and structs",
    ),
    (
        "kernel void k(read_only pipe int p) { }",
        ("-cl-std=CL2.0",),
        "kernel.cl:1:15: the type read_only pipe int is not supported by perfmodel; use numbers, "
        "vectors, pointers, arrays and structs",
    ),
    ("", ("-O3x",), "the build option '-O3x' is not known; use -D, -U, -I, -w or an option of -cl-"),
    ("", ("-cl-std=CL4",), "there is no standard 'CL4' for -cl-std; use one of CL1.0, CL1.1, CL1.2, CL2.0, CL3.0"),
    ("", ("-D",), "the build option -D needs a value; write it as -DNAME"),
    ("", ("-D1=2",), "the build option -D1=2: #define needs a name"),
    ("", ("foo",), "the build option 'foo' is not known; use -D, -U, -I, -w or an option of -cl-"),
]


def body(source: str, options: Sequence[str] = ()) -> sx.Compound:
    """Returns the body of the last function of a source."""
    found = list(read(source, options).functions.values())[-1].body
    assert found is not None
    return found


def kernel_body(statements: str, options: Sequence[str] = ()) -> sx.Compound:
    return body(f"__kernel void k(__global int *a, int n) {{\n{statements}\n}}", options)


def refusal(source: str, options: Sequence[str] = (), folders: Sequence[Path] = ()) -> SourceError:
    with pytest.raises(SourceError) as caught:
        read(source, options, folders)
    return caught.value


# --- expressions and statements


@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS, ids=[text for text, _ in EXPRESSIONS])
def test_expressions_have_types_and_conversions(text: str, expected: str) -> None:
    statement = body(f"{HEAD}{text};\n}}").statements[-1]
    assert isinstance(statement, sx.Evaluate)
    assert shown(statement.expression) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int i = 1, j; ;", "{private int i = 1:int; private int j;}"),
        ("if (n) a[0] = 1; else ;", "{if n a[0:int] = 1:int; else {}}"),
        ("for (;;) break;", "{for ( | - | -) break;}"),
        (
            "for (int i = 0, j = 2; i < n; i++, j--) { continue; }",
            "{for ({private int i = 0:int; private int j = 2:int;} | (i < n):int | (i++, j--)) {continue;}}",
        ),
        ("for (; n < ';'; ) n++;", "{for ( | (n < 59:int):int | -) n++;}"),
        ("for (n = 1; ; ++n) return;", "{for (n = 1:int; | - | ++n) return -;}"),
        ("while (n--) ;", "{for ( | n-- | -) {}}"),
        ("do { n = 1; } while (!n);", "{do ( | (!n):int | -) {n = 1:int;}}"),
        (
            "switch (n) { case 1: case -2: n = 1; default: break; case 'b': { n = 2; } n = 3; }",
            "{switch n {[1, -2]: n = 1:int; [None]: break; [98]: {n = 2:int;} n = 3:int;}}",
        ),
        ("#pragma unroll 4\nfor (;;) ;", "{for[4] ( | - | -) {}}"),
        ("#pragma unroll\n\nwhile (n) n--;", "{for[0] ( | n | -) n--;}"),
        ("#define F 3\n#pragma unroll (F * 2)\ndo n--; while (n);", "{do[6] ( | n | -) n--;}"),
        ("#pragma nounroll\nfor (;;) ;", "{for[1] ( | - | -) {}}"),
        ('_Pragma("unroll 2") for (;;) ;', "{for[2] ( | - | -) {}}"),
        ("__attribute__((opencl_unroll_hint(5))) for (;;) ;", "{for[5] ( | - | -) {}}"),
        ("__attribute__((opencl_unroll_hint)) for (;;) ;", "{for[0] ( | - | -) {}}"),
        ("#pragma unroll UNKNOWN\nfor (;;) ;", "{for ( | - | -) {}}"),
        ("#pragma unroll 2\nn = 1; for (;;) ;", "{n = 1:int; for ( | - | -) {}}"),
        ("if (n) goto end; n = 2; end: n = 1;", "{if n goto end; n = 2:int; end: n = 1:int;}"),
        ("__local int t[2][3]; t[n][1] = 0;", "{local int[3][2] t; decay(decay(t)[n])[1:int] = 0:int;}"),
    ],
)
def test_statements(text: str, expected: str) -> None:
    assert outline(kernel_body(text)) == expected


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("int t[3] = {1, [2] = 5}", "{0: 1:int, 8: 5:int}"),
        ("int t[2][2] = {1, 2, 3}", "{0: 1:int, 4: 2:int, 8: 3:int}"),
        ("int t[2][2] = {{1}, {[1] = 4}}", "{0: 1:int, 12: 4:int}"),
        ("float t[] = {-1, 1 / 2.0f, 1u << 3}", "{0: -1.0:float, 4: 0.5:float, 8: 8.0:float}"),
        ("float2 t[2] = {(float2)(1, 2), (float2)(3)}", "{0: float2{1.0:float, 2.0:float}, 8: float2(3.0:float)}"),
        (
            "struct { char c; struct { short s[2]; int i; } in; } t = {1, {{2, 3}, 4}}",
            "{0: 1:char, 4: 2:short, 6: 3:short, 8: 4:int}",
        ),
        (
            "struct { char c; int i[2]; } t[2] = {1, 2, 3, {.i = {[1] = 7}}}",
            "{0: 1:char, 4: 2:int, 8: 3:int, 20: 7:int}",
        ),
        ("union { float f; uint u; } t = {3}", "{0: 3.0:float}"),
        ("union { float f; uint u; } t = {.u = 3}", "{0: 3:uint}"),
        ("struct { int a; union { int b; float c; }; int d; } t = {1, {2}, 3}", "{0: 1:int, 4: 2:int, 8: 3:int}"),
        ("struct { int a; union { int b; float c; }; int d; } t = {.c = 2, 3}", "{4: 2.0:float, 8: 3:int}"),
        ("struct { int a; struct { int b[3]; } in; } t = {.in.b[1] = 2, .a = 1}", "{0: 1:int, 8: 2:int}"),
        ("struct __attribute__((packed)) { char c; int i; } t = {1, 2}", "{0: 1:char, 1: 2:int}"),
    ],
)
def test_initial_values_of_tables(declaration: str, expected: str) -> None:
    (table,) = read(f"__constant {declaration};").tables
    assert isinstance(table.initial, sx.InitializerList)
    assert (table.name, table.space) == ("t", "constant")
    assert shown(table.initial) == expected


def test_tables_inside_functions_are_tables_of_the_unit() -> None:
    unit = read("__kernel void k(__global int *a) { __constant int t[2] = {1, 2}; a[0] = t[1]; }")
    assert [table.name for table in unit.tables] == ["t"]
    assert unit.functions["k"].body is not None
    assert len(unit.functions["k"].body.statements) == 1


def test_what_a_function_says_of_itself() -> None:
    source = """
        typedef struct { int n; } S;
        float f(const float *x, int y[3]);
        float f(const float *x, int y[3]) { return *x; }
        __attribute__((reqd_work_group_size(8, 2 * 2, 1))) kernel void k(global float4 *restrict a, constant int *b,
                                                                         local S *c, S d) { }
    """
    unit = read(source)
    assert unit.kernels == ("k",)
    assert list(unit.functions) == ["f", "k"]
    k = unit.functions["k"]
    assert k.work_group == (8, 4, 1)
    assert k.result == ts.VOID
    assert [str(parameter.type) for parameter in k.parameters] == ["global float4*", "constant int*", "local S*", "S"]
    assert all(parameter.space == "private" for parameter in k.parameters)
    assert [str(parameter.type) for parameter in unit.functions["f"].parameters] == ["private float*", "private int*"]
    assert unit.functions["f"].work_group is None


def test_structs_are_laid_out_as_devices_do() -> None:
    unit = read("""
        typedef struct { char c; double d; float3 v; union { int i; short s[3]; }; } A;
        struct __attribute__((packed)) B { char c; int i; };
        typedef struct { int x; } __attribute__((aligned(16))) C;
        __kernel void k(__global A *a, __global struct B *b, __global C *c) { }
    """)
    a, b, c = (unit.records[name] for name in ("A", "B", "C"))
    assert [(field.name, field.offset) for field in a.fields] == [("c", 0), ("d", 8), ("v", 16), ("i", 32), ("s", 32)]
    assert (a.size, a.alignment) == (48, 16)
    assert (b.size, b.alignment, b.field("i").offset) == (5, 1, 1)
    assert (c.size, c.alignment) == (16, 16)


def test_generic_pointers_keep_their_space() -> None:
    source = "int f(int *p) { return *p; } kernel void k(global int *a) { a[0] = f(a); }"
    (statement,) = body(source, ["-cl-std=CL2.0"]).statements
    assert isinstance(statement, sx.Evaluate)
    assert shown(statement.expression) == "a[0:int] = f(generic_int*(a)):int"
    assert refusal(source).line == 1


def test_arrays_as_parameters_are_pointers() -> None:
    text = "int f(int x[4]) { int *p = x + 1, *q = 1 ? x : p, *r = x; return *x + x[1] + (x++, *p); }"
    declared = (
        "private private int* p = (x + 1:int);",
        "private private int* q = (1:int ? x : p):private int*;",
        "private private int* r = x;",
        "return ((*x + x[1:int]):int + (x++, *p)):int;",
    )
    assert outline(body(text)) == f"{{{' '.join(declared)}}}"


def test_literals_may_be_of_single_precision() -> None:
    text = "float x = 0.1 * n;"
    assert "(0.1:double * double(n)):double" in outline(kernel_body(text))
    assert "(float(0.1:double) * float(n)):float" in outline(kernel_body(text, ["-cl-single-precision-constant"]))


def test_work_group_barriers_are_barriers() -> None:
    text = "work_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_work_group);"
    assert outline(kernel_body(text, ["-cl-std=CL2.0"])) == "{@barrier(uint(1:int)):void;}"


def test_constants_of_the_language() -> None:
    names = "INT_MIN LONG_MAX UCHAR_MAX CHAR_BIT FLT_EPSILON MAXFLOAT DBL_MAX INFINITY M_PI_2_F HALF_MAX"
    (table,) = read(f"__constant double t[] = {{{', '.join(names.split())}}};").tables
    assert isinstance(table.initial, sx.InitializerList)
    values = [leaf.value if isinstance(leaf, sx.Constant) else None for _, leaf in table.initial.leaves]
    assert values[:4] == [-(2**31), 2.0**63, 255, 8]
    assert values[4:8] == [2.0**-23, (2 - 2.0**-23) * 2.0**127, (2 - 2.0**-52) * 2.0**1023, math.inf]
    assert values[8:] == [1.5707963705062866, 65504]


# --- source locations


def test_places_are_those_of_the_users_file() -> None:
    source = (
        "#define ADD(x, y) ((x) + \\\n  (y))\n/* two\nlines */ __kernel void k(__global int *a)\n"
        "{\n  /**/ a[0] = ADD(1,\n a[2]) * 3;\n}\n"
    )
    unit = read(source, file="mine.cl")
    k = unit.functions["k"]
    assert str(k.place) == "mine.cl:4:24"
    assert str(k.parameters[0].place) == "mine.cl:4:26"
    assert k.body is not None
    (statement,) = k.body.statements
    assert str(statement.place) == "mine.cl:6:8"
    assert isinstance(statement, sx.Evaluate)
    assign = statement.expression
    assert isinstance(assign, sx.Assign)
    assert isinstance(assign.value, sx.Binary)
    product = assign.value
    assert (product.right.place.line, product.right.place.column) == (7, 10)
    assert isinstance(product.left, sx.Binary)
    assert (product.left.place.line, product.left.place.column) == (6, 15)
    assert str(product.left.right.place) == "mine.cl:7:2"


def test_faults_in_includes_are_placed_there(tmp_path: Path) -> None:
    (tmp_path / "bad.h").write_text("\n\nint f(int x) { return y; }\n")
    fault = refusal('int g(int x) { return x; }\n#include "bad.h"\n', folders=[tmp_path])
    assert (Path(fault.file).name, fault.line, fault.column) == ("bad.h", 3, 23)


# --- preprocessing


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
        ("__FAST_RELAXED_MATH__", ["-cl-fast-relaxed-math", "-w", "-cl-mad-enable"], 1),
        ("__LINE__", [], 1),
        ("\n#define A(x, y) x##y\n#define B A(1, A(2, 3))\nA(4, 5)\n", [], 45),
        ("\n#define V(f, ...) f(__VA_ARGS__)\n#define SUM(a, b, c) a + b + c\nV(SUM, 1, (2, 3), 4)\n", [], 8),
        ("\n#define X X + 1\n#define Y 5\n#undef Y\n#ifndef Y\n9\n#elif 1\n8\n#endif\n", [], 9),
        (
            "\n#if 0\ndon't \" #else\n#elif (3 > 2 ? 2 : 0) == 2 && 'a' == 97 && 1 << 4 == 16 && -7 / 2 == -3\n4\n"
            "#endif\n",
            [],
            4,
        ),
        ("\n#if 0x10u != 16 || 010 - 8 || ~0 + 1 || !1\n#else\n5\n#endif\n", [], 5),
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
    assert "looked in no folder: give one by -I or folders" in refusal('#include "a.h"').reason
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


# --- refusals


@pytest.mark.parametrize(("source", "options", "message"), REFUSALS, ids=[message for _, _, message in REFUSALS])
def test_refusals_name_the_culprit_and_its_place(source: str, options: tuple[str, ...], message: str) -> None:
    assert str(refusal(source, options)) == message


# --- garbage

_DOUBLING = "".join(f"#define A{k} A{k - 1} A{k - 1}\n" for k in range(1, 40))
_DEEP_MACROS = "#define F(x) x\nint y = " + "F(" * 5000 + "1" + ")" * 5000
_DEEP_STRUCTS = "typedef struct { int a; } S0;" + "".join(
    f"typedef struct {{ S{k - 1} a, b; }} S{k};" for k in range(1, 35)
)
GARBAGE = {
    "parentheses": "int f(int x) { return " + "(" * 100_000 + "x" + ")" * 100_000 + "; }",
    "minus": "int f(int x) { return " + "- " * 1400 + "x; }",
    "many minus": "int f(int x) { return " + "- " * 100_000 + "x; }",
    "sizeof": "int f(int x) { return " + "sizeof " * 1490 + "x; }",
    "casts": "int f(int x) { return " + "(int)" * 50_000 + "x; }",
    "ifs": "int f(int x) { " + "if (x) " * 300 + "; }",
    "elses": "int f(int x) { " + "if (x) { } else " * 100_000 + "; }",
    "sum": "int f(int x) { return " + "x + " * 500 + "1; }",
    "conditionals": "int f(int x) { return " + "x ? 1 : " * 400 + "1; }",
    "pointers": "int f(int " + "*" * 1400 + "x) { return 1; }",
    "declarations": "x;" * 100_000,
    "open brackets": "(" * 100 + "x;" * 100_000,
    "doubling macros": f"#define A0 x x\n{_DOUBLING}A39",
    "doubling nothing": f"#define A0\n{_DOUBLING}A39",
    "nested macros": _DEEP_MACROS,
    "nested conditions": "#if 1\n" * 10_000,
    "nested structs": f"{_DEEP_STRUCTS} __kernel void k(__global S34 *a) {{ }}",
    "condition": "#if " + "(" * 100_000 + "1\n#endif",
    "too long": "int x;\n" * 200_000,
    "huge array": "__kernel void k(void) { int a[1 << 30][1 << 30]; }",
    "zero byte": "int a\0b;",
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_refused(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    fault = refusal(GARBAGE[name])
    assert fault.line > 0
    assert "\n" not in fault.reason
    assert capfd.readouterr() == ("", "")


def test_truncated_and_altered_kernels_are_read_or_refused(capfd: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(1)
    for file in files():
        source = file.read_text()
        for _ in range(6):
            at = chance.randrange(len(source))
            length = chance.randrange(1, 12)
            letters = "".join(chance.choice("(){}[];*&#\\\"'/.,=<>x0 \n") for _ in range(chance.randrange(4)))
            for text in (source[:at], source[:at] + letters + source[at + length :]):
                with contextlib.suppress(SourceError):
                    read(text, ["-DTILE=8", "-DN=16", "-DREAL=float", "-DWIDTH=4"], [file.parent / "include"])
    assert capfd.readouterr() == ("", "")


def test_random_bytes_are_read_or_refused() -> None:
    chance = random.Random(2)
    for _ in range(200):
        text = "".join(map(chr, chance.choices(range(256), k=chance.randrange(200))))
        with contextlib.suppress(SourceError):
            read(text)


# --- kernels


@pytest.mark.parametrize("launch", launches(), ids=str)
def test_kernels_are_read(launch: Launch) -> None:
    unit = read(launch.source, launch.options, launch.folders, launch.file.name)
    kernel = unit.functions[launch.kernel]
    assert kernel.is_kernel
    assert [parameter.name for parameter in kernel.parameters] == [given["name"] for given in launch.arguments]
    for parameter, given in zip(kernel.parameters, launch.arguments, strict=True):
        assert isinstance(parameter.type, ts.Pointer) == ("array" in given or "local_bytes" in given)


@pytest.mark.parametrize("launch", launches(), ids=str)
def test_types_of_kernels_fit_together(launch: Launch) -> None:
    unit = read(launch.source, launch.options, launch.folders, launch.file.name)
    lines = launch.source.count("\n") + 1
    for function in unit.functions.values():
        for node in nodes_of(function.body):
            if isinstance(node, sx.Return):
                assert (node.value.type if node.value else ts.VOID) == function.result
            if isinstance(node, sx.Node) and node.place.file == launch.file.name:
                assert 0 < node.place.line <= lines
            assert_fits(node)


def nodes_of(value: object) -> Iterator[object]:
    """Yields a statement or expression and all that it consists of."""
    if isinstance(value, tuple) and not isinstance(value, sx.Place):
        for part in value:
            yield from nodes_of(part)
    elif isinstance(value, sx.Declare):
        yield value
        yield from nodes_of(value.variable.initial)
    elif (
        is_dataclass(value)
        and type(value).__module__ == sx.__name__
        and not isinstance(value, sx.Variable | sx.Function)
    ):
        yield value
        for field in fields(value):
            yield from nodes_of(getattr(value, field.name))


def assert_fits(node: object) -> None:
    match node:
        case sx.Shift():
            assert isinstance(node.type, ts.Pointer)
            assert node.type == node.pointer.type
        case sx.Binary() if node.operator not in ("<<", ">>"):
            assert node.left.type == node.right.type
        case sx.Binary():
            assert node.type == node.left.type
        case sx.Assign():
            assert node.type == node.target.type == node.value.type
        case sx.CompoundAssign() if not isinstance(node.type, ts.Pointer) and node.operator not in ("<<", ">>"):
            assert node.computed == node.value.type
        case sx.Conditional():
            assert node.type == node.then.type == node.otherwise.type
        case sx.Call():
            assert node.type == node.function.result
            assert [argument.type for argument in node.arguments] == [one.type for one in node.function.parameters]
        case sx.Convert():
            assert node.type != node.operand.type
        case sx.VectorLiteral():
            assert isinstance(node.type, ts.Vector)
            assert sum(ts.width_of(part.type) for part in node.parts) == node.type.width
            assert all(ts.element_of(part.type) == node.type.element for part in node.parts)
        case sx.Swizzle():
            assert ts.element_of(node.type) == ts.element_of(node.vector.type)
            assert ts.width_of(node.type) == len(node.components)
        case sx.Dereference():
            assert isinstance(node.pointer.type, ts.Pointer)
            assert node.type == node.pointer.type.target
        case sx.Member():
            assert isinstance(node.record.type, ts.Record)
            assert node.type == node.record.type.field(node.name).type
        case sx.Declare() if node.variable.initial is not None:
            assert node.variable.initial.type == node.variable.type


def test_every_kernel_file_says_what_it_covers() -> None:
    assert len(files()) >= 40
    for file in files():
        assert file.read_text().startswith("// Covers: ")


@pytest.mark.parametrize("launch", launches(), ids=str)
def test_kernels_build_on_the_device(launch: Launch, cpu: Device) -> None:
    import pyopencl

    options = [*launch.options, *(f"-I{folder}" for folder in launch.folders)]
    words = [word for option in options for word in (option.split(" ", 1) if option.startswith("-D ") else [option])]
    program = pyopencl.Program(cpu.context(), launch.source).build(words)
    assert launch.kernel in program.kernel_names


@pytest.mark.parametrize(
    ("body", "name", "column"),
    [
        ("int i = i + 1;", "i", 9),
        ("int i = 1, j = j;", "j", 16),
        ("int i = 3; { int i = i; }", "i", 22),
        ("for (int i = i; i < 3; i++) ;", "i", 14),
        ("int x[2] = {1, x[0]};", "x", 16),
        ("float4 v = (float4)(v.x);", "v", 21),
    ],
)
def test_a_variable_in_its_own_initial_value_has_none_yet(body: str, name: str, column: int) -> None:
    with pytest.raises(SourceError, match=f"'{name}' is used in its own initial value") as caught:
        read(f"__kernel void f(void) {{\n{body}\n}}")
    assert (caught.value.line, caught.value.column) == (2, column)


def test_the_size_of_a_variable_is_known_in_its_initial_value() -> None:
    assert read("__kernel void f(__global int *a) { int i = sizeof(i); int j = i; a[0] = j; }").kernels
