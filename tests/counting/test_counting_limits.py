"""Errors tell what cannot be counted, or has no pattern."""

from __future__ import annotations

from typing import Any

import loopy as lp
import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import CountingError, FeatureError
from tests.counting_kernels import counted, make, tagged


def indirect() -> pm.Kernel:
    program = make(
        "{[i]: 0 <= i < n}",
        "o[i] = a[idx[i]] + b[i]",
        {"a, b, o": "n", "idx": {"shape": "n", "dtype": np.int32}},
    )
    return pm.Kernel(lp.split_iname(program, "i", 4, outer_tag="g.0", inner_tag="l.0"), n=8)


def test_indirect_accesses_are_counted_and_their_index_too() -> None:
    assert counted("f_mem_access_global_float32_load", indirect()) == 16
    assert counted("f_mem_access_global_int32_load_lstrides:{0:1}_afr:1", indirect()) == 8


@pytest.mark.parametrize(
    ("name", "lacking"),
    [
        ("f_mem_access_global_float32_load_lstrides:{0:1}", "a constant stride along axis 0"),
        ("f_mem_access_global_float32_load_gstrides:{0:4}", "a constant stride along axis 0"),
        ("f_mem_access_global_float32_afr:1", "a footprint"),
    ],
)
def test_an_indirect_access_has_no_pattern(name: str, lacking: str) -> None:
    with pytest.raises(
        FeatureError, match=rf"'{name}' is not defined for the load 'a\[idx.*{lacking}.*exclude it by var"
    ):
        counted(name, indirect())


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("f_mem_access_var:b_lstrides:{0:1}", 8),
        ("f_mem_access_int32_lstrides:{0:1}", 8),
        ("f_mem_access_store_afr:1", 8),
        ("f_mem_access_load_lstrides:{0:1;1:3}", 0),
        ("f_mem_access_load_lstrides:{0:1}_gstrides:{1:3}", 0),
    ],
)
def test_an_unknown_pattern_matters_only_where_all_other_conditions_hold(name: str, count: int) -> None:
    assert counted(name, indirect()) == count


def test_an_index_held_in_a_register_has_no_known_stride() -> None:
    program = make(
        "{[i]: 0 <= i < n}",
        "<> k = idx[i]\no[i] = a[k]",
        {"a, o": "n", "idx": {"shape": "n", "dtype": np.int32}},
    )
    kernel = pm.Kernel(lp.split_iname(program, "i", 4, outer_tag="g.0", inner_tag="l.0"), n=8)
    with pytest.raises(FeatureError, match="constant stride along axis 0"):
        counted("f_mem_access_var:a_lstrides:{0:0}", kernel)


@pytest.mark.parametrize("index", ["i*i", "(i % 3)", "(i // 2)"])
def test_a_nonlinear_index_has_no_stride(index: str) -> None:
    program = make("{[i]: 0 <= i < n}", f"o[i] = a[{index}]", {"a": "n*n", "o": "n"})
    kernel = pm.Kernel(tagged(program, i="g.0"), n=8)
    assert counted("f_mem_access_var:a", kernel) == 8
    with pytest.raises(FeatureError, match="constant stride along axis 0"):
        counted("f_mem_access_var:a_gstrides:{0:1}", kernel)


def with_callee() -> Any:
    callee = lp.make_function("{[i]: 0 <= i < 4}", "y[i] = 2*x[i]", name="twice", lang_version=(2018, 2))
    caller = lp.make_kernel(
        ["{[i]: 0 <= i < n}", "{[l, m]: 0 <= l, m < 4}"],
        "[l]: o[i, l] = twice([m]: a[i, m])",
        [lp.GlobalArg("a, o", np.float32, shape="n, 4"), lp.ValueArg("n", np.int32)],
        name="caller",
        lang_version=(2018, 2),
    )
    return lp.merge([caller, callee])


def with_c_instruction() -> Any:
    return lp.make_kernel(
        "{[i]: 0 <= i < n}",
        [lp.CInstruction("i", "o[i] = 2;", assignees="o[i]", id="raw")],
        [lp.GlobalArg("o", np.float32, shape="n"), lp.ValueArg("n", np.int32)],
        lang_version=(2018, 2),
    )


def with_bound_from_data() -> Any:
    return make(
        ["{[i]: 0 <= i < n}", "{[j]: 0 <= j < length}"],
        "for i\n<> length = lengths[i]\no[i] = sum(j, a[j])\nend",
        {"a, o": "n", "lengths": {"shape": "n", "dtype": np.int32}},
    )


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (with_callee, r"'caller' calls other kernels \(twice\), which are not counted; inline them"),
        (with_c_instruction, "'raw' is CInstruction, whose work can't be seen; write it as Loopy assignments"),
        (
            with_bound_from_data,
            "the loop over 'j' .* depends on length, known only when the kernel runs; give the expected trip count",
        ),
        (
            lambda: make("{[i]: 0 <= i < n}", "if a[i] > 0\no[i] = 1 {id=set}\nend", {"a, o": "n"}),
            r"'set' runs only if a\[i\] > 0, which depends on data; give the probability",
        ),
        (
            lambda: make("{[i]: 0 <= i < n}", "o[i] = mystery(o[i])", {"o": "n"}),
            "unknown; call only functions that Loopy knows|Loopy cannot analyse",
        ),
        (lambda: make("{[i]: 0 <= i}", "o[i] = 1", {"o": "n"}), "bound the loop|Loopy cannot analyse"),
    ],
)
def test_what_cannot_be_counted_says_why(program: Any, words: str) -> None:
    with pytest.raises(CountingError, match=words) as caught:
        _ = pm.Kernel(program()).counts
    assert "\n" not in str(caught.value)
