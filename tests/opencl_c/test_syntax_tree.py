"""The typed tree of a source: expressions and statements, their types and places."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass

import pytest

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c import syntax as sx
from perfmodel.opencl_c import types as ts
from perfmodel.opencl_c.reading import read
from tests.opencl_c.kernel_files import Launch, launches
from tests.opencl_c.refusing import refusal
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


def body(source: str, options: Sequence[str] = ()) -> sx.Compound:
    """Returns the body of the last function of a source."""
    found = list(read(source, options).functions.values())[-1].body
    assert found is not None
    return found


def kernel_body(statements: str, options: Sequence[str] = ()) -> sx.Compound:
    return body(f"__kernel void k(__global int *a, int n) {{\n{statements}\n}}", options)


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


# --- initial values


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


# --- whole kernels


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
