"""Reading OpenCL C: what is read, what is refused, and that nothing hangs or crashes."""

from __future__ import annotations

import contextlib
import random

import numpy as np
import pytest

from perfmodel import Kernel, emulate
from perfmodel.basics.errors import SourceError
from perfmodel.device import Device
from perfmodel.opencl_c import types as ts
from perfmodel.opencl_c.reading import read
from tests.opencl_c.kernel_files import Launch, files, launches
from tests.opencl_c.refusing import refusal
from tests.opencl_c.test_emulation_on_device import DIFFERENT

REFUSALS: list[tuple[str, tuple[str, ...], str]] = [
    (
        "__kernel void k(__global int *a, int n)\n{\n  int b[n];\n  a[0] = b[0];\n}",
        (),
        "kernel.cl:3:9: variable length arrays are not supported in OpenCL; give the array a constant "
        "length, for instance by a macro",
    ),
    (
        "__kernel void k(__global int *a, size_t n) { a[n] = 1; }",
        (),
        "kernel.cl:1:41: 'size_t' (aka 'unsigned long') cannot be used as the type of a kernel parameter; give the "
        "parameter a type of one size on all devices, such as ulong for size_t",
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
        "__kernel void k(__global int4 *a, int i) { a[0].x = (a[1] + 2)[i]; }",
        (),
        "kernel.cl:1:53: a component of a vector that has no place of its own is chosen by a variable; give the "
        "vector a variable",
    ),
    (
        "__kernel void k(__global int *a, int i) { a[0] = i ?: 3; }",
        (),
        "kernel.cl:1:50: perfmodel cannot read the expression 'i ?: 3'; write it with plain operators",
    ),
    (
        "__kernel void k(__global int *a, int i) { a[0] = (({ i++; }), ({ while (i) i--; }), 1); }",
        (),
        "kernel.cl:1:63: statements in braces have no value at their end; write an expression there",
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
        "kernel.cl:1:43: use of undeclared identifier 'missing'; define it, or include the file that does",
    ),
    ("__kernel void k(__global int *a) { a[0] = 1 }", (), "kernel.cl:1:44: expected ';' after expression"),
    ("__kernel void k(__global int *a) { a[0] = 1;", (), "kernel.cl:1:34: the { is never closed: end it with }"),
    (
        "__kernel void k(__global int *a) { a[0] = (1; }",
        (),
        "kernel.cl:1:47: the } stands where a ) should close the ( of line 1",
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
    (
        "kernel void k(read_only int n) { }",
        (),
        "kernel.cl:1:15: access qualifier can only be used for pipe and image type; leave it out: images and pipes "
        "alone have one",
    ),
    (
        "kernel void k(global uint32_t *a) { }",
        (),
        "kernel.cl:1:22: unknown type name 'uint32_t'; give it by the build option -Duint32_t=uint",
    ),
    (
        "kernel void k(global cl_ulong *a) { }",
        (),
        "kernel.cl:1:22: unknown type name 'cl_ulong'; give it by the build option -Dcl_ulong=ulong",
    ),
    (
        "kernel void k(global real2 *a) { }",
        (),
        "kernel.cl:1:22: unknown type name 'real2'; define the type, or give it by -Dreal2=float2",
    ),
    ("", ("-O3x",), "the build option '-O3x' is not known; use -D, -U, -I, -w or an option of -cl-"),
    ("", ("-cl-std=CL4",), "there is no standard 'CL4' for -cl-std; use one of CL1.0, CL1.1, CL1.2, CL2.0, CL3.0"),
    ("", ("-D",), "the build option -D needs a value; write it as -DNAME"),
    ("", ("-D1=2",), "the build option -D1=2: #define needs a name"),
    ("", ("foo",), "the build option 'foo' is not known; use -D, -U, -I, -w or an option of -cl-"),
]


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
    "sum": "int f(int x) { return " + "x + " * 12_000 + "1; }",
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


def test_every_kernel_file_says_what_it_covers() -> None:
    assert len(files()) >= 40
    for file in files():
        assert file.read_text().startswith("// Covers: ")


@pytest.mark.parametrize("launch", [each for each in launches() if each.needs or each.kernel in DIFFERENT], ids=str)
def test_kernels_that_are_not_run_build_on_the_device(launch: Launch, cpu: Device) -> None:
    """The others are run by tests/opencl_c/test_emulation_on_device.py."""
    import pyopencl

    options = [*launch.options, *(f"-I{folder}" for folder in launch.folders)]
    words = [word for option in options for word in (option.split(" ", 1) if option.startswith("-D ") else [option])]
    program = pyopencl.Program(cpu.context(), launch.source).build(words)
    assert launch.kernel in program.kernel_names


def test_functions_beside_may_pass_pointers_as_numbers() -> None:
    source = """uint next(uint x) { return x + 1; }
    uint beside(__global uint *p) { return next(p); }
    __kernel void k(__global uint *c) { c[get_global_id(0)] = next(3); }"""
    assert read(source).kernels == ("k",)


def test_variables_of_the_program_need_not_be_in_constant_memory() -> None:
    text = """
    unsigned int nobody_reads_it;
    static const float table[3] = {1.0f, 2.5f, 4.0f};
    __kernel void look_up(__global float *a) { a[get_global_id(0)] *= table[get_global_id(0) % 3]; }
    """
    kernel = Kernel.from_opencl(text, "look_up", 6, 6, {"a": 6})
    found = emulate(kernel, {"a": np.ones(6, np.float32)}, groups="all").array("a")
    np.testing.assert_array_equal(found, [1, 2.5, 4, 1, 2.5, 4])


def test_pointers_may_have_access_qualifiers_which_mean_nothing() -> None:
    source = """kernel void k(global read_only const float *a, __write_only global float *b, global int read_write c[])
    { b[0] = a[0] + c[0]; }"""
    parameters = read(source).functions["k"].parameters
    assert [str(each.type) for each in parameters] == ["global float*", "global float*", "global int*"]


def test_functions_may_have_names_like_those_of_the_devices_queues() -> None:
    assert "enqueue_task" in read("void enqueue_task(global int *a) { a[0] = 1; }").functions


def test_operators_in_a_row_may_be_thousands() -> None:
    terms = 2000
    row = " + ".join(f"{place % 7 + 1}.0f * a[i + {place}]" for place in range(terms))
    source = f"kernel void k(global float *a, global float *b) {{ int i = get_global_id(0); b[i] = {row}; }}"
    kernel = Kernel.from_opencl(source, "k", 64, 64, {"a": 64 + terms, "b": 64})
    a = np.random.default_rng(0).random(64 + terms, np.float32)
    found = emulate(kernel, {"a": a}).array("b")
    factors = np.arange(terms) % 7 + 1.0
    np.testing.assert_allclose(found, [factors @ a[i : i + terms] for i in range(64)], rtol=1e-4)


OTHERS = """
void send(write_only pipe int p, int x) { write_pipe(p, &x); }
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void piped(__global int *a, write_only pipe int p) { send(p, a[get_global_id(0)]); }
__kernel void parent(__global float *a) { enqueue_kernel(get_default_queue(), 0, ndrange_1D(1), ^{ a[0] = 1; }); }
float moved(float x) { struct { float y; } t = {x}; __asm__("nop"); return t.y; }
__kernel void assembled(__global float *a) { a[get_global_id(0)] = moved(2); }
__kernel void plain(__global float *a) { a[get_global_id(0)] *= 2; }"""


def test_a_kernel_is_read_whatever_other_kernels_of_its_source_use() -> None:
    unit = read(OTHERS, ["-cl-std=CL2.0"], kernels=("plain",))
    assert list(unit.functions) == ["plain"]
    assert unit.kernels == ("piped", "parent", "assembled", "plain")


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        ("parent", "kernel.cl:5:43: the kernel uses enqueueing from the device (enqueue_kernel)"),
        ("assembled", "kernel.cl:6:53: the kernel uses assembly (__asm__)"),
    ],
)
def test_the_kernels_that_use_it_say_why_they_are_refused(kernel: str, reason: str) -> None:
    with pytest.raises(SourceError) as error:
        read(OTHERS, ["-cl-std=CL2.0"], kernels=(kernel,))
    assert str(error.value).startswith(reason)


RIGHT = "__kernel void right(__global float *a) { a[get_global_id(0)] *= 2; }\n"
MISTAKEN = (
    "__kernel void wrong(__global int *a) { a[0] = ADAPTIVE_SIZE; }",
    "__kernel void wrong(__global int *a) { a[0] = amd_bitalign(a[1], a[2], a[3]); }",
    "__kernel void wrong(__global cfloat_t *a) { a[0] = 1; }",
    "__kernel void wrong(__global int *a) { a[0] = 1 + ; if }",
    "__kernel int wrong(__global int *a) { return a[0]; }",
    "cfloat_t helper(int x) { return x; } __kernel void wrong(__global int *a) { a[0] = helper(1).x; }",
    "cfloat_t helper(int x); __kernel void wrong(__global int *a) { a[0] = helper(1); }",
    "int helper(int x) { return x + ADAPTIVE_SIZE; } __kernel void wrong(__global int *a) { a[0] = helper(1); }",
    "__kernel void wrong(__global int *a) { a[0] = 1; } __kernel void wrong(__global int *a) { a[0] = 2; }",
    "__kernel void wrong(__global int *a) { a[0] = 1; } __kernel void wrong(__global int *a) const ;",
)


@pytest.mark.parametrize("mistaken", MISTAKEN)
def test_a_kernel_is_read_whatever_mistakes_are_in_others(mistaken: str) -> None:
    for source in (RIGHT + mistaken, f"{mistaken}\n{RIGHT}"):
        unit = read(source, kernels=("right",))
        assert list(unit.functions) == ["right"]
        assert set(unit.kernels) == {"right", "wrong"}
        for kernels in (("wrong",), None):
            with pytest.raises(SourceError):
                read(source, kernels=kernels)


def test_places_stay_what_they_are_where_functions_are_taken_out() -> None:
    shorter = "kernel k(){} "
    with pytest.raises(SourceError) as error:
        read(shorter + MISTAKEN[0] + RIGHT, kernels=("wrong",))
    assert str(error.value).startswith(f"kernel.cl:1:{len(shorter) + MISTAKEN[0].index('ADAPTIVE_SIZE') + 1}: use of")
    right = read(shorter + RIGHT, kernels=("right",)).functions["right"]
    assert right.place.column == len(shorter) + RIGHT.index("right") + 1


def test_who_calls_a_mistaken_function_is_refused_for_that_mistake() -> None:
    for mistaken, reason in (
        (MISTAKEN[5], "kernel.cl:1:1: unknown type name 'cfloat_t'"),
        (MISTAKEN[7], "kernel.cl:1:32: use of undeclared identifier 'ADAPTIVE_SIZE'"),
    ):
        with pytest.raises(SourceError) as error:
            read(mistaken, kernels=("wrong",))
        assert str(error.value).startswith(reason)


@pytest.mark.parametrize(
    "outside", ["struct pair { cfloat_t x; };", "typedef cfloat_t number;", "__constant int table[] = {ADAPTIVE_SIZE};"]
)
def test_mistakes_outside_of_functions_are_everyones(outside: str) -> None:
    with pytest.raises(SourceError, match=r"cfloat_t|ADAPTIVE_SIZE"):
        read(f"{outside}\n{RIGHT}", kernels=("right",))
