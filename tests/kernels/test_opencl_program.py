"""Kernels given as OpenCL C: what they are launched with, what they refuse, and how they are read from files."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import CountingError, KernelError, SourceError
from perfmodel.device import Device
from perfmodel.kernels.arguments import Array, LocalArray, Scalar
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.measuring.protocol import PROTOCOLS, run_launch, time_launch
from perfmodel.vocabulary.named_features import evaluate

# Each group adds up its part of a's rows in local memory.
ROW_SUMS = """
__kernel void row_sums(__global const float *a, __global float *sums, const float factor, const int n, const int m)
{
    __local float part[WIDTH];
    const int l = get_local_id(0), row = get_global_id(1);
    part[l] = 0;
    for (int column = l; column < m && row < n; column += WIDTH)
        part[l] += a[row * m + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l == 0 && row < n) {
        float sum = 0;
        for (int k = 0; k < WIDTH; ++k)
            sum += part[k];
        sums[row] = factor * sum;
    }
}
"""
GIVEN: dict[str, Any] = {
    "source": ROW_SUMS,
    "name": "row_sums",
    "global_size": (4, "(n + 2) // 3 * 1"),
    "local_size": (4, 1),
    "arguments": (
        Array("a", np.float32, "n * m"),
        Array("sums", "float32", "n", is_output=True),
        Scalar("factor", np.float32),
        Scalar("n", "int32"),
        Scalar("m", np.int32),
    ),
    "options": ("-DWIDTH=4",),
    "assumptions": "n % 3 == 0 and m % 2 == 0",
}


def program(**changes: Any) -> OpenCLProgram:
    return OpenCLProgram(**{**GIVEN, **changes})


def scaling(**changes: Any) -> OpenCLProgram:
    """Returns a program of a = 2 a, in groups of four."""
    source = "__kernel void scale(__global float *a, const int n) { a[get_global_id(0)] *= 2; }"
    arguments = (Array("a", "float32", "n", is_output=True), Scalar("n", "int32"))
    given = {"source": source, "name": "scale", "global_size": "n", "local_size": 4, "arguments": arguments}
    return OpenCLProgram(**{**given, **changes})


def test_it_is_bound_like_any_kernel() -> None:
    knl = pm.Kernel(program(), {"generator": "sums", "width": "4"}, n=6)
    assert knl.sizes == {"n": 6}
    assert knl.at(m=8).sizes == {"n": 6, "m": 8}
    assert repr(knl.at(m=8, factor=0.5)) == "Kernel(sums width=4 factor=0.5 m=8 n=6)"
    assert pm.Kernel(program()).name == "row_sums"
    assert program().arguments == ("factor", "n", "m")
    assert knl.bind({"m": [[2], [4]]})["m"].shape == (2, 1)


def test_a_launch_follows_from_the_sizes() -> None:
    launch = pm.Kernel(program(global_size=(4, "n")), n=6, m=10, factor=3).launch()
    assert (launch.source, launch.kernel_name, launch.options) == (ROW_SUMS, "row_sums", ("-DWIDTH=4",))
    assert (launch.global_size, launch.local_size) == ((4, 6), (4, 1))
    assert launch.arguments == (
        Array("a", "float32", 60, False),
        Array("sums", "float32", 6, True),
        Scalar("factor", "float32", 3),
        Scalar("n", "int32", 6),
        Scalar("m", "int32", 10),
    )
    assert pm.Kernel(program(), n=6, m=10).launch().arguments[2] == Scalar("factor", "float32", 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n * n // 16", 85),  # from left to right, as Python reads it; pymbolic has 74
        ("n * n % m", 4),
        ("(n + 15) // 16 * 16", 48),
        ("-(-n // m)", 8),
        ("n - m - 2", 30),
        (" n*(m - 1)\n", 148),
        (12, 12),
        (np.int64(12), 12),
    ],
)
def test_expressions_are_pythons(text: str, value: int) -> None:
    arguments = (Array("a", "float32", text, is_output=True), Scalar("n", "int32"), Scalar("m", "int32"))
    launch = pm.Kernel(scaling(arguments=arguments, global_size=4), n=37, m=5).launch()
    assert launch.arrays()[0].size == value


def test_it_computes(cpu: Device) -> None:
    a = np.random.default_rng(1).uniform(0.5, 1.5, (6, 10)).astype(np.float32)
    launch = pm.Kernel(program(global_size=(4, "n")), n=6, m=10, factor=3.5).launch()
    np.testing.assert_allclose(run_launch(launch, cpu, {"a": a})["sums"], 3.5 * a.sum(axis=1), rtol=1e-5)


def test_it_is_equal_by_all_that_the_device_is_given() -> None:
    same = program(
        global_size=[4, " (n + 2) // 3 * 1"],
        local_size=["4", np.int64(1)],
        options=["-DWIDTH=4"],
        arguments=[Array("a", "f4", "n * m"), Array("sums", np.dtype("f4"), "n", True), *GIVEN["arguments"][2:]],
    )
    assert same.content == program().content
    assert pm.Kernel(same, n=6) == pm.Kernel(program(), n=6)
    assert hash(pm.Kernel(same, n=6)) == hash(pm.Kernel(program(), n=6))
    changes: list[dict[str, Any]] = [
        {"source": ROW_SUMS + " "},
        {"name": "other"},
        {"global_size": (4, "n")},
        {"local_size": (2, 1)},
        {"options": ("-DWIDTH=4", "-cl-mad-enable")},
        {"arguments": (Array("a", "float32", "n * m + 1"), *GIVEN["arguments"][1:])},
        {"arguments": (*GIVEN["arguments"][:2], Scalar("factor", "float64"), *GIVEN["arguments"][3:])},
    ]
    contents = {program(**change).content for change in changes}
    assert len(contents | {program().content}) == len(changes) + 1


def test_it_travels_to_other_processes() -> None:
    knl = pm.Kernel(program(), n=6, m=10)
    twin = pickle.loads(pickle.dumps(knl))
    assert (twin, twin.launch()) == (knl, knl.launch())
    with pytest.raises(KernelError, match="n % 3 == 0"):
        twin.at(n=7)
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).program.content)"
    run = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(knl), capture_output=True, check=True)
    assert run.stdout.decode().strip() == knl.program.content


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": None}, "kernel 'row_sums' has no source; give the text"),
        ({"name": 3}, "kernel 3 has no source; give the text of its OpenCL C and its name"),
        ({"options": "-DWIDTH=4"}, "options '-DWIDTH=4' of kernel 'row_sums' are no strings; give a list"),
        ({"options": [4]}, r"options \[4\] of kernel 'row_sums' are no strings"),
        ({"local_size": 4}, "kernel 'row_sums' has 2 axes of work-items and 1 of work-groups; give 1 to 3"),
        ({"global_size": (), "local_size": ()}, "kernel 'row_sums' has 0 axes of work-items and 0 of work-groups"),
        ({"global_size": [1] * 4, "local_size": [1] * 4}, "has 4 axes of work-items and 4 of work-groups"),
        ({"assumptions": "k > 4"}, "assumption of kernel 'row_sums' needs 'k', which is no size of it"),
        ({"assumptions": "factor > 4"}, "assumption of kernel 'row_sums' needs 'factor', which is no size of it"),
        (
            {"assumptions": "n mod 16 = 0"},
            "assumption of kernel 'row_sums' cannot be 'n mod 16 = 0'; write comparisons",
        ),
        ({"assumptions": "n > 4 or n < 2"}, "assumption of kernel 'row_sums' cannot be 'n > 4 or n < 2'; write"),
        ({"assumptions": "n"}, "assumption of kernel 'row_sums' cannot be 'n'; write comparisons"),
        ({"arguments": [GIVEN["arguments"][3]] * 2}, "kernel 'row_sums' has two arguments 'n'; rename one of them"),
        (
            {"arguments": ["n"]},
            "argument 'n' of kernel 'row_sums' is no Array, Image, Sampler, Scalar, Struct or LocalArray; give one",
        ),
        ({"arguments": [Scalar(np.int32, "n")]}, "is no Array, Image, Sampler, Scalar, Struct or LocalArray; give one"),  # type: ignore[arg-type]
        (
            {"arguments": [Scalar("n", "whole")]},
            "argument 'n' of kernel 'row_sums' has dtype 'whole'; give one of int8",
        ),
        ({"arguments": [Scalar("n", None)]}, "argument 'n' of kernel 'row_sums' has dtype None; give one of"),
        (
            {"arguments": [Array("a", "bool", 4)]},
            "argument 'a' of kernel 'row_sums' has dtype 'bool'; give one of int8",
        ),
        (
            {"arguments": [Array("a", [("x", "f4")], 4)]},
            "argument 'a' of kernel 'row_sums' has dtype .*; give one of int8",
        ),
    ],
)
def test_what_cannot_be_a_kernel(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(KernelError, match=words) as caught:
        program(**changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(",
        "n /2",
        "n ** 2",
        "n(2)",
        "n.real()",
        "n[m]",
        "n[0:1]",
        "(n + 1)[0]",
        "1.5 * n",
        "n if n else 1",
        "n, n",
        "True",
        "'n'",
        "n; n",
        "n\n+ 1",
        "n\0",
        "+n",
        "~n",
        "n << 2",
        "(n := 3)",
        "__import__('os').getpid()",
        "[k for k in (1,)]",
        "(" * 1000 + "n" + ")" * 1000,
        "n + " * 100_000 + "n",
        None,
        1.5,
        True,
    ],
)
def test_what_is_no_expression(text: Any) -> None:
    for changes in ({"global_size": text}, {"local_size": [text]}, {"assumptions": f"n > {text}"}):
        with pytest.raises(KernelError, match=r" of kernel 'scale' cannot be .*; write ") as caught:
            scaling(**changes)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 250


def test_expressions_have_only_sizes() -> None:
    with pytest.raises(
        KernelError, match=r"^extent of array 'a' of kernel 'row_sums' needs 'factor', .*\(it has n, m\)"
    ):
        program(arguments=(Array("a", "float32", "factor"), *GIVEN["arguments"][1:]))
    with pytest.raises(KernelError, match=r"^global size of kernel 'scale' needs 'nn', .*; did you mean 'n'\? "):
        scaling(global_size="nn")


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"n": -3, "m": 2}, "size n=-3 of kernel 'row_sums' is negative"),
        ({"n": 7, "m": 2}, "^n=7 breaks what kernel 'row_sums' assumes: n % 3 == 0$"),
        ({"n": 6, "m": 3}, "^m=3 breaks what kernel 'row_sums' assumes: m % 2 == 0$"),
        ({"n": 6, "k": 2}, "kernel 'row_sums' has no size or argument 'k'; it has factor, n, m"),
        ({"n": 2.5}, "size n=2.5 of kernel 'row_sums' is not a whole number"),
    ],
)
def test_sizes_that_break_an_assumption(sizes: dict[str, Any], words: str) -> None:
    with pytest.raises(KernelError, match=words):
        pm.Kernel(program()).at(**sizes)


def test_assumptions_hold_for_every_size_of_an_array() -> None:
    knl = pm.Kernel(program(assumptions="n % (2 * m) == 0"))
    assert knl.bind({"n": [12, 24], "m": [[1], [3]]})
    with pytest.raises(KernelError, match=r"^n=12, m=4 breaks what kernel 'row_sums' assumes: n % \(2 \* m\) == 0$"):
        knl.bind({"n": [24, 12], "m": [3, 4]})
    with pytest.raises(KernelError, match=r"^n=4, m=0 breaks what kernel 'row_sums' assumes"):
        knl.at(n=4, m=0)


@pytest.mark.parametrize(
    ("changes", "sizes", "words"),
    [
        (
            {},
            {"n": 6},
            "6 work-items in groups of 4 at n=6, which is no whole number of work-groups along axis 0; choose",
        ),
        (
            {"global_size": "8 // n"},
            {"n": 0},
            r"global size of kernel 'scale' \(8 // n\) divides by zero at n=0; choose",
        ),
        ({"global_size": "8 % n"}, {"n": 0}, r"global size of kernel 'scale' \(8 % n\) divides by zero at n=0; choose"),
        (
            {"global_size": 6},
            {"n": 6},
            "kernel 'scale' is launched with 6 work-items in groups of 4, which is no whole number",
        ),
        ({}, {}, "kernel 'scale' needs a value for n; give it as n="),
        ({}, {"n": 0}, "launched with 0 work-items in groups of 4 at n=0, which is empty along axis 0"),
        ({"global_size": "n - 8"}, {"n": 4}, "launched with -4 work-items in groups of 4 at n=4, which is empty"),
        ({"local_size": "n - 4"}, {"n": 4}, "launched with 4 work-items in groups of 0 at n=4, which is empty"),
        ({"global_size": 4}, {"n": 0}, "array 'a' of kernel 'scale' has no element at n=0"),
        ({"local_size": "n"}, {"n": 2**30}, "no device takes work-groups of more than 65536 work-items, so use a"),
        ({"global_size": "n*n*n"}, {"n": 2**22}, "more than 18446744073709551615 along axis 0; use smaller sizes"),
    ],
)
def test_sizes_that_cannot_be_launched(changes: dict[str, Any], sizes: dict[str, int], words: str) -> None:
    kernel = pm.Kernel(scaling(**changes)).at(**sizes)
    with pytest.raises(KernelError, match=words):
        kernel.launch()
    with pytest.raises(KernelError, match=words):
        pm.feature("f_thread_groups").eval(kernel)


@pytest.mark.parametrize(
    ("changes", "n", "words"),
    [
        ({"local_size": 2**14}, 2**14, "has work-groups of .* work-items, more than .* allows"),
        ({"name": "other"}, 4, "the source has no kernel 'other'; it has scale"),
        ({"source": "__kernel void scale("}, 4, "kernel 'scale' does not compile on"),
        ({"arguments": (Scalar("n", "int32"),)}, 4, "kernel 'scale' takes 2 arguments, not 1"),
    ],
)
def test_launches_that_the_device_refuses(changes: dict[str, Any], n: int, words: str, cpu: Device) -> None:
    launch = pm.Kernel(scaling(**changes), n=n).launch()
    with pytest.raises(KernelError, match=words):
        time_launch(launch, cpu, PROTOCOLS["quick"])


def test_it_is_counted_like_any_kernel() -> None:
    knl = pm.Kernel(program(global_size=(4, "n")), n=6, m=10)
    counts = {
        "f_mem_access_global_float32_load": 60,  # each element once
        "f_mem_access_local_float32_store": 6 * (4 + 10),
        "f_op_float32_add": 60 + 6 * 4,
        "f_op_float32_mul": 6,
        "f_sync_barrier_local": 4 * 6,
        "f_thread_groups": 6,
        "f_mem_footprint_global_float32_load_var:{a}": 4 * 60,
    }
    assert {name: pm.feature(name).eval(knl) for name in counts} == counts


def test_a_list_of_arguments_has_to_be_the_sources() -> None:
    knl = pm.Kernel(scaling(arguments=(Array("b", "float32", "n"), Scalar("n", "int32"))), n=8)
    with pytest.raises(KernelError, match="has the arguments a, n in its source, but b, n beside it; name them as in"):
        _ = knl.counts


def test_what_has_no_symbolic_counts_is_counted_at_its_sizes() -> None:
    knl = pm.Kernel(scaling(local_size="n"))
    with pytest.raises(CountingError, match="depends on n; to count it, give the local size as numbers"):
        _ = knl.counts
    load = pm.feature("f_mem_access_global_load")
    assert [load.eval(knl.at(n=n)) for n in (8, 12)] == [8, 12]
    np.testing.assert_array_equal(evaluate(load, knl, knl.bind({"n": [[8], [12]]})), [[8], [12]])


HEADER = "#pragma once\n#define TWICE(x) (2 * (x))\n"
SCALE = """
#include "twice.h"
#include "twice.h"
typedef struct { float x; int tag; } point;
__kernel void scale(__global float4 *v, __global point *p, __local float *tmp, const float by, const int n)
{
    const int i = get_global_id(0);
    tmp[get_local_id(0)] = by;
    if (i < n) v[i] = TWICE(v[i]) * tmp[get_local_id(0)];
}
"""


def test_it_is_read_from_a_file(tmp_path: Path, cpu: Device) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "twice.h").write_text(HEADER)
    path = tmp_path / "scale.cl"
    path.write_text(SCALE)
    given: dict[str, Any] = {"args": {"v": "n", "p": 4, "tmp": 64}, "folders": [tmp_path / "inc"]}
    knl = pm.Kernel.from_opencl(path, "scale", "(n + 15) // 16 * 16", 16, **given, n=20, by=3.0)
    assert knl.launch().arguments == (
        Array("v", "float32", 80, True),
        Array("p", "uint8", 32, False),
        LocalArray("tmp", 64),
        Scalar("by", "float32", 3.0),
        Scalar("n", "int32", 20),
    )
    arrays: dict[str, Any] = {"v": np.arange(80, dtype=np.float32), "p": np.zeros(32, np.uint8)}
    np.testing.assert_array_equal(run_launch(knl.launch(), cpu, arrays)["v"], 6 * arrays["v"])
    assert pm.feature("f_mem_bytes_global").eval(knl) == 2 * 16 * 20


def test_a_macro_may_name_an_included_file(tmp_path: Path, cpu: Device) -> None:
    (tmp_path / "twice.h").write_text(HEADER)
    by_macro = "#define TEXT(x) #x\n#define FILE(x) TEXT(x)\n#include FILE(FOLDER/twice.h)\n"
    given: dict[str, Any] = {"args": {"v": "n", "p": 4, "tmp": 64}, "options": [f"-DFOLDER={tmp_path}"]}
    source = SCALE.replace('#include "twice.h"\n', by_macro)
    knl = pm.Kernel.from_opencl(source, "scale", 32, 16, **given, folders=[tmp_path], n=20, by=3.0)
    arrays: dict[str, Any] = {"v": np.arange(80, dtype=np.float32), "p": np.zeros(32, np.uint8)}
    np.testing.assert_array_equal(run_launch(knl.launch(), cpu, arrays)["v"], 6 * arrays["v"])
    with pytest.raises(SourceError, match=r"lies outside the folders given|not in the folders that are given"):
        pm.Kernel.from_opencl(source, "scale", 32, 16, **given, n=20, by=3.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"args": {"v": "n", "p": 4}}, "needs the number of bytes a work-group of its argument 'tmp'; give it in args"),
        ({"args": {"tmp": 4, "p": 4}}, "needs the number of elements of its argument 'v'; give it in args, as"),
        (
            {"args": {}},
            "needs the number of elements of its arguments 'v', 'p' and the number of bytes a work-group of its "
            "argument 'tmp'; give them in args, as {'v': …",
        ),
        ({"args": {"w": 4}}, r"kernel 'scale' has no argument 'w' \(it has v, p, tmp, by, n\)"),
        ({"name": "scael"}, "the source has no kernel 'scael'; did you mean 'scale'"),
        (
            {"source": "nowhere.cl"},
            r"source file nowhere.cl cannot be read \(No such file or directory\); give the path",
        ),
        ({"source": SCALE}, "kernel.cl:2:.*twice.h"),
        ({"source": "__kernel void scale(int n) { n = m; }"}, r"kernel.cl:1:34: use of undeclared identifier 'm'"),
        ({"source": SCALE, "folders": ["nowhere"]}, "twice.h"),
    ],
)
def test_files_that_make_no_kernel(changes: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {
        "source": SCALE.replace('#include "twice.h"', "#define TWICE(x) x"),
        "name": "scale",
        "global_size": 16,
        "local_size": 16,
        "args": {"v": 1, "p": 1, "tmp": 1},
    }
    given |= changes
    source, name = given.pop("source"), given.pop("name")
    with pytest.raises(KernelError, match=words) as caught:
        pm.Kernel.from_opencl(source, name, **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("family", "constant"), [("matmul", ("n",)), ("matmul", ("l", "n")), ("row_softmax", ("n",))])
def test_assumptions_hold_where_some_sizes_are_numbers(family: str, constant: tuple[str, ...]) -> None:
    """Loops over tiles can be counted only of sizes that are multiples of these, whichever sizes are numbers."""
    kernel = next(iter(pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels([family]))).as_compiled()
    numbers = {name: kernel.sizes[name] for name in constant}
    counted = []
    for counts in (kernel.counts_at({}, 32), kernel.counts_at(numbers, 32)):
        operations = [*counts.operations, *(counts.index_operations or ())]
        counted.append(sorted((o.kind, o.dtype, float(o.executions.workitem(kernel.sizes))) for o in operations))
    assert counted[0] == counted[1]
