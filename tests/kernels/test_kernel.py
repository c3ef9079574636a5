"""Kernels: binding sizes, identity, and what is launched."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import loopy as lp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymbolic import var

import perfmodel as pm
from perfmodel.basics.errors import KernelError
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.launch import Launch


def scale(name: str = "scale", assumptions: str = "n >= 1 and n mod 4 = 0", offset: int = 0, **options: Any) -> Any:
    program = lp.make_kernel(
        "{[i, j]: 0 <= i < n and 0 <= j < m}",
        f"o[i, j] = s*a[i, j] + {offset}",
        [
            lp.GlobalArg("a, o", np.float32, shape="n, m"),
            lp.ValueArg("s", np.float32),
            lp.ValueArg("n, m", np.int32),
        ],
        name=name,
        assumptions=assumptions,
        lang_version=(2018, 2),
        **options,
    )
    return lp.split_iname(program, "i", 4, outer_tag="g.0", inner_tag="l.0")


def copy(dimensions: int, **array: Any) -> Any:
    """Returns a program that copies an n x (n+1) x … array, in groups of 2, 3, … work-items along the last, last but
    one … dimension."""
    inames = ["i", "j", "k"][:dimensions]
    bounds = " and ".join(f"0 <= {iname} < n + {axis}" for axis, iname in enumerate(inames))
    shape = ", ".join(f"n + {axis}" for axis in range(dimensions))
    program = lp.make_kernel(
        f"{{[{', '.join(inames)}]: {bounds}}}",
        f"o[{', '.join(inames)}] = a[{', '.join(inames)}]",
        [
            lp.GlobalArg("a", np.float64, shape=shape, **array),
            lp.GlobalArg("o", np.float32, shape=shape, is_input=False),
            lp.ValueArg("n", np.int32),
        ],
        lang_version=(2018, 2),
    )
    for axis, iname in enumerate(reversed(inames)):
        program = lp.split_iname(program, iname, 2 + axis, outer_tag=f"g.{axis}", inner_tag=f"l.{axis}")
    return program


# --- binding


def test_sizes_are_bound_and_bound_again() -> None:
    knl = pm.Kernel(scale(), {"generator": "scaling", "dtype": "float32"}, n=8, s=2.5)
    assert knl.sizes == {"n": 8}
    assert knl.at(n=16, m=3).sizes == {"n": 16, "m": 3}
    assert knl.at(m=3).at(n=4).sizes == {"n": 4, "m": 3}
    assert knl.sizes == {"n": 8}
    assert (knl.name, knl.variant) == ("scaling", "dtype=float32")
    assert repr(knl.at(m=3)) == "Kernel(scaling dtype=float32 m=3 n=8 s=2.5)"
    assert pm.Kernel(scale()).name == "scale"


@settings(deadline=None)
@given(st.sampled_from([int, np.int32, np.int64, np.uint8, float, np.float32]), st.integers(1, 30), st.integers(0, 255))
def test_whole_numbers_of_any_type_bind_alike(kind: Any, quarter: int, m: int) -> None:
    knl = SCALE.at(n=kind(4 * quarter), m=kind(m))
    assert knl.sizes == {"n": 4 * quarter, "m": m}
    assert knl == SCALE.at(n=4 * quarter, m=m)
    assert hash(knl) == hash(SCALE.at(n=4 * quarter, m=m))


SCALE = pm.Kernel(scale())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"k": 4}, "'scale' has no size or argument 'k'; it has s, n, m"),
        ({"n": 4.5}, "size n=4.5 of kernel 'scale' is not a whole number"),
        ({"n": float("nan")}, "size n=nan of kernel 'scale' is not a whole number"),
        ({"n": float("inf")}, "size n=inf of kernel 'scale' is not a whole number"),
        ({"n": 2**70}, "is not a whole number; give an integer below 2"),
        ({"n": "4"}, "n='4' is not a number"),
        ({"n": None}, "n=None is not a number"),
        ({"n": True}, "n=True is not a number"),
        ({"n": np.array([4, 8])}, "is not a number; a kernel is bound to numbers"),
        ({"n": -4, "m": 1}, "size n=-4 of kernel 'scale' is negative"),
        ({"n": 6, "m": 1}, "n=6, m=1 breaks what kernel 'scale' assumes: .*n mod 4|breaks what kernel 'scale' assumes"),
        ({"n": 0, "m": 1}, "n=0, m=1 breaks what kernel 'scale' assumes: "),
    ],
)
def test_values_that_cannot_be_bound(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(KernelError, match=words) as caught:
        pm.Kernel(scale(), None, **arguments)
    assert "\n" not in str(caught.value)
    with pytest.raises(KernelError, match=words):
        SCALE.at(**arguments)


def test_arrays_of_sizes_are_bound_for_counting() -> None:
    bound = SCALE.at(m=7).bind({"n": [[4], [8]]})
    assert {name: size.tolist() for name, size in bound.items()} == {"n": [[4], [8]], "m": 7}
    assert SCALE.at(n=4, m=1).bind({"m": np.array([1.0, 2.0])})["m"].dtype == np.int64


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"n": 4}, "kernel 'scale' needs a value for m; give it as m="),
        ({}, "kernel 'scale' needs a value for n, m; give them as n=…, m=…"),
        ({"n": 4, "m": 1, "mm": 2}, "kernel 'scale' has no size 'mm'; it has n, m; did you mean 'm'"),
        ({"n": 4, "m": 1, "s": 2}, "kernel 'scale' has no size 's'"),
        ({"n": [4, 6, 8], "m": 1}, "n=6, m=1 breaks what kernel 'scale' assumes"),
        ({"n": [[4], [8]], "m": [1, -1]}, "size m=-1 of kernel 'scale' is negative"),
        ({"n": [4, 8.5], "m": 1}, r"size n=\[4, 8.5\] of kernel 'scale' is not a whole number"),
        ({"n": [4, float("nan")], "m": 1}, "is not a whole number"),
        ({"n": [[4], [4, 8]], "m": 1}, "is not a whole number"),
        ({"n": 4, "m": 1 + 0j}, "is not a whole number"),
        ({"n": 4, "m": None}, "size m=None of kernel 'scale' is not a whole number"),
        ({"n": "4", "m": 1}, "size n='4' of kernel 'scale' is not a whole number"),
    ],
)
def test_sizes_that_cannot_be_counted_for(sizes: dict[str, Any], words: str) -> None:
    with pytest.raises(KernelError, match=words):
        SCALE.bind(sizes)


def test_a_broken_assumption_shows_the_assumption() -> None:
    with pytest.raises(KernelError) as caught:
        SCALE.at(n=6, m=1)
    shown = str(caught.value).split("assumes: ")[1]
    assert "n" in shown
    assert "4" in shown


# --- what is no kernel


@pytest.mark.parametrize("wrong", [None, "kernel", 3, lp, {"n": 4}, np.zeros(2)])
def test_other_objects_are_no_programs(wrong: Any) -> None:
    with pytest.raises(KernelError, match=r"is not a kernel; give a Loopy program, as loopy\.make_kernel returns"):
        pm.Kernel(wrong)


def test_a_bare_loopy_kernel_is_no_program() -> None:
    with pytest.raises(KernelError, match="LoopKernel is not a kernel; give a Loopy program"):
        pm.Kernel(scale().default_entrypoint)


def test_one_entry_point_has_to_be_chosen() -> None:
    both = lp.merge([scale("one"), scale("two")]).with_entrypoints(frozenset(["one", "two"]))
    with pytest.raises(KernelError, match=r"has 2 entry points; select one with translation_unit.with_entrypoints"):
        pm.Kernel(both)
    assert pm.Kernel(both.with_entrypoints("one")).name == "one"


def two_launches() -> Any:
    program = lp.make_kernel(
        ["{[i]: 0 <= i < n}", "{[j]: 0 <= j < n}"],
        "a[i] = 1 {id=first}\n... gbarrier {id=wait, dep=first}\nb[j] = a[n - 1 - j] {dep=wait}",
        [lp.GlobalArg("a, b", np.float32, shape="n"), lp.ValueArg("n", np.int32)],
        lang_version=(2018, 2),
    )
    return lp.tag_inames(program, {"i": "g.0", "j": "g.0"})


def global_temporary() -> Any:
    program = lp.make_kernel(
        "{[i]: 0 <= i < n}",
        "<> t[i] = a[i]\nb[i] = t[i]",
        [lp.GlobalArg("a, b", np.float32, shape="n"), lp.ValueArg("n", np.int32)],
        lang_version=(2018, 2),
    )
    return lp.set_temporary_address_space(program, "t", "global")


def no_shape() -> Any:
    return lp.make_kernel(
        "{[i]: 0 <= i < n}",
        "b[i] = a[i]",
        [lp.GlobalArg("a, b", np.float32, shape=None), lp.ValueArg("n", np.int32)],
        lang_version=(2018, 2),
    )


def vector_components() -> Any:
    program = lp.make_kernel(
        "{[i, j]: 0 <= i < n and 0 <= j < 4}",
        "b[i, j] = 2*a[i, j]",
        [lp.GlobalArg("a, b", np.float32, shape="n, 4"), lp.ValueArg("n", np.int32)],
        lang_version=(2018, 2),
    )
    return lp.tag_inames(lp.tag_array_axes(program, "a,b", "C,vec"), {"j": "vec"})


def no_types() -> Any:
    return lp.make_kernel("{[i]: 0 <= i < n}", "b[i] = a[i]", lang_version=(2018, 2))


def out_of_bounds() -> Any:
    return lp.make_kernel(
        "{[i]: 0 <= i < n}",
        "b[i + 1] = 2",
        [lp.GlobalArg("b", np.float32, shape="n"), lp.ValueArg("n", np.int32)],
        lang_version=(2018, 2),
    )


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (two_launches, "becomes 2 device kernels; split it at its global barriers"),
        (global_temporary, r"has temporaries in global memory \(t\); make them arguments"),
        (no_shape, "array 'a' of kernel 'loopy_kernel' has no shape of plain dimensions; give it shape="),
        (vector_components, "array 'a' of kernel 'loopy_kernel' has no shape of plain dimensions"),
        (no_types, "Loopy cannot generate code for kernel 'loopy_kernel': .*type of"),
        (out_of_bounds, "Loopy cannot generate code for kernel 'loopy_kernel': .*out-of-bounds"),
    ],
)
def test_programs_that_cannot_be_launched(program: Any, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KernelError, match=words) as caught:
        pm.Kernel(program(), n=4).launch()
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("offset", "size"), [(3, 19), ("n", 32), (2 * var("n"), 48), (lp.auto, 16)])
def test_offsets_lengthen_arrays(offset: Any, size: int) -> None:
    """A number or sizes; what Loopy leaves to the caller is 0."""
    arrays = [lp.GlobalArg("a", np.float32, shape="n", offset=offset), lp.GlobalArg("out", np.float32, shape="n")]
    program = lp.make_kernel(
        "{[i]: 0 <= i < n}", "out[i] = a[i]", [*arrays, lp.ValueArg("n", np.int32)], lang_version=(2018, 2)
    )
    assert [array.size for array in pm.Kernel(program, n=16).launch().arrays()] == [size, 16]


def test_launches_of_several_device_kernels_are_counted() -> None:
    assert pm.feature("f_sync_kernel_launch").eval(pm.Kernel(two_launches(), n=4)) == 2


# --- identity


def test_equality_is_of_content_and_arguments() -> None:
    assert pm.Kernel(scale(), n=4) == pm.Kernel(scale(), {"generator": "other"}, n=4)
    assert pm.Kernel(scale(), n=4) != pm.Kernel(scale(), n=8)
    assert pm.Kernel(scale(), n=4) != pm.Kernel(scale(offset=1), n=4)
    assert pm.Kernel(scale(), n=4) != pm.Kernel(scale("rescale"), n=4)
    assert pm.Kernel(scale(), n=4) != "scale"
    assert len({pm.Kernel(scale(), n=4), pm.Kernel(scale(), n=4.0), pm.Kernel(scale(), n=8)}) == 2


def test_kernels_survive_pickling() -> None:
    knl = pm.Kernel(scale(), {"generator": "scaling"}, n=8, m=2, s=0.5)
    again = pickle.loads(pickle.dumps(knl))
    assert again == knl
    assert hash(again) == hash(knl)
    assert (again.name, again.sizes, again.launch()) == (knl.name, knl.sizes, knl.launch())
    assert pm.feature("f_op_float32_madd").eval(again) == 16


def contents() -> str:
    """Returns kernels' contents; for the last, Loopy chooses anew in each process which of three instructions it names
    beside a barrier."""
    (nbody,) = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["nbody", "prefetch:True", "n:2048"])
    return " ".join(kernel.program.content for kernel in (pm.Kernel(scale()), pm.Kernel(copy(3)), nbody))


def test_content_is_the_same_in_every_process() -> None:
    script = "from tests.kernels.test_kernel import contents\nprint(contents())"
    root = Path(__file__).resolve().parents[2]
    here = contents()
    for seed in ("6", "9"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "LOOPY_NO_CACHE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=root, env=environment, capture_output=True, text=True, check=False
        )
        assert done.stdout.strip() == here, done.stderr


FULL = """
from loopy.codegen import code_gen_cache
from loopy.schedule import schedule_cache
from tests.kernels.test_kernel import contents
for cache in (code_gen_cache, schedule_cache):
    cache.conn.execute("pragma max_page_count = 1")
print(contents())
"""


def test_a_full_cache_of_loopys_costs_no_code(tmp_path: Path) -> None:
    """Loopy generates what it cannot keep all the same: kernels must not go missing as a disk is full."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "LOOPY_NO_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", FULL],
        cwd=Path(__file__).resolve().parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == contents(), done.stderr


def test_kernels_do_not_share_the_callers_tags() -> None:
    tags = {"dtype": "float32"}
    knl = pm.Kernel(scale(), tags)
    tags["dtype"] = "float64"
    assert knl.variant == "dtype=float32"


# --- launches


@pytest.mark.parametrize(
    ("dimensions", "global_size", "local_size", "elements"),
    [(1, (6,), (2,), 5), (2, (6, 6), (2, 3), 30), (3, (8, 6, 8), (2, 3, 4), 210)],
)
def test_launch_shapes_by_dimension(
    dimensions: int, global_size: tuple[int, ...], local_size: tuple[int, ...], elements: int
) -> None:
    launch = pm.Kernel(copy(dimensions), n=5).launch()
    assert launch.global_size == global_size
    assert launch.local_size == local_size
    assert launch.arguments == (
        Array("a", "float64", elements, is_output=False),
        Array("o", "float32", elements, is_output=True),
        Scalar("n", "int32", 5),
    )
    assert f"void __attribute__ ((reqd_work_group_size({local_size[0]}" in launch.source
    assert launch.kernel_name == "loopy_kernel"


def test_a_sequential_kernel_is_one_work_item() -> None:
    program = lp.make_kernel(
        "{[i]: 0 <= i < n}",
        "o[i] = 1",
        [lp.GlobalArg("o", np.float32, shape="n"), lp.ValueArg("n", np.int32)],
        lang_version=(2018, 2),
    )
    launch = pm.Kernel(program, n=5).launch()
    assert (launch.global_size, launch.local_size) == ((1,), (1,))


def test_scalars_that_are_no_sizes_run_as_one_unless_bound() -> None:
    def scalars(launch: Launch) -> dict[str, float]:
        return {a.name: a.number.item() for a in launch.arguments if isinstance(a, Scalar)}

    assert scalars(SCALE.at(n=4, m=2).launch()) == {"s": 1, "n": 4, "m": 2}
    assert scalars(SCALE.at(n=4, m=2, s=0.5).launch()) == {"s": 0.5, "n": 4, "m": 2}


@pytest.mark.parametrize(
    ("array", "elements"),
    [
        ({"strides": "10, 1"}, 4 * 10 + 6),  # 5 rows of 6, each of 10
        ({"strides": "1, 7"}, 5 * 7 + 5),  # 6 columns of 5, each of 7
        ({"order": "F"}, 30),
    ],
)
def test_strided_arrays_reach_to_their_last_element(array: dict[str, Any], elements: int) -> None:
    arguments = pm.Kernel(copy(2, **array), n=5).launch().arguments
    assert arguments[0] == Array("a", "float64", elements, is_output=False)


def test_an_array_without_elements_is_refused() -> None:
    with pytest.raises(KernelError, match=r"at n=0, which is empty along axis 1"):
        pm.Kernel(copy(2, strides="10, 1"), n=0).launch()


def test_offsets_left_to_loopy_are_zero() -> None:
    program = lp.add_dtypes(
        lp.make_kernel("{[i, j]: 0 <= i, j < n}", "a[i, j] = b[j, i]", lang_version=(2018, 2)),
        {"a": np.float32, "b": np.float32},
    )
    shifted = lp.make_kernel(
        "{[i]: 0 <= i < n}",
        "o[i] = a[i]",
        [lp.GlobalArg("a", np.float32, shape="n", offset=lp.auto), lp.GlobalArg("o", np.float32, shape="n"), ...],
        lang_version=(2018, 2),
    )
    assert [a.size for a in pm.Kernel(program, n=5).launch().arrays()] == [25, 25]
    arguments = pm.Kernel(shifted, n=5).launch().arguments
    assert Scalar("a_offset", "int32", 0) in arguments


def test_an_array_too_large_for_its_index_is_refused() -> None:
    limit = 2**31 - 1
    assert pm.Kernel(copy(1), n=limit).launch().arrays()[0].size == limit
    with pytest.raises(
        KernelError, match=r"array 'a' .* has 4295032832 elements, more than its 31-bit index reaches; make"
    ):
        pm.Kernel(copy(2), n=2**16).launch()
    wide = copy(2).with_kernel(copy(2).default_entrypoint.copy(index_dtype=lp.to_loopy_type(np.int64)))
    assert pm.Kernel(wide, n=2**17).launch().arrays()[0].size == 2**17 * (2**17 + 1)


def test_a_size_too_large_for_its_argument_is_refused() -> None:
    program = lp.make_kernel(
        "{[i]: 0 <= i < n}",
        "o[0] = o[0] + 1 {inames=i}",
        [lp.GlobalArg("o", np.float32, shape="1"), lp.ValueArg("n", np.int32)],
        lang_version=(2018, 2),
    )
    assert pm.Kernel(program, n=2**31 - 1).launch().arguments[1] == Scalar("n", "int32", 2**31 - 1)
    with pytest.raises(KernelError, match="n=2147483648 of kernel 'loopy_kernel' does not fit into int32; declare"):
        pm.Kernel(program, n=2**31)


def test_a_program_for_another_target_becomes_opencl() -> None:
    program = lp.make_kernel(
        "{[i]: 0 <= i < n}",
        "o[i] = 1",
        [lp.GlobalArg("o", np.float32, shape="n"), lp.ValueArg("n", np.int32)],
        target=lp.CTarget(),
        lang_version=(2018, 2),
    )
    assert "__kernel" in pm.Kernel(program, n=4).launch().source
