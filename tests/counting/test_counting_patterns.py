"""Stride fractions, footprints, bytes, granularity, statistics and bounds: derived by hand, or by enumeration."""

from __future__ import annotations

import warnings
from typing import Any

import islpy
import loopy as lp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perfmodel as pm
from perfmodel.basics.errors import CountingError, FeatureError
from perfmodel.counting.counts import CountingWarning
from perfmodel.vocabulary.stride_fraction import StrideFraction
from tests.counting_kernels import counted, make, tagged

CATEGORIES = ["0", "1", "{1/2}", "{2/2}", "{1/3}", "{2/3}", "{3/3}", "{1/4}", "{2/4}", "{3/4}", "{4/4}"]
CATEGORIES += ["{1/>4}", "{2/>4}", "{3/>4}", "{4/>4}"]


def strided(stride: int, offsets: tuple[int, ...], shape: str) -> pm.Kernel:
    """Returns a kernel whose n work-items each load elements stride*i + offset for every offset, and store one."""
    value = " + ".join(f"a[{stride}*i + {offset}]" for offset in offsets)
    program = make(
        "{[i]: 0 <= i < n}", f"o[i] = {value}", {"a": shape, "o": "n"}, assumptions="n mod 32 = 0 and n >= 32"
    )
    return pm.Kernel(lp.split_iname(program, "i", 32, outer_tag="g.0", inner_tag="l.0"), n=4096)


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5, 8, 16])
@pytest.mark.parametrize("share", [0.25, 0.5, 0.75, 1.0])
def test_the_category_is_stride_and_part_of_the_footprint_used(stride: int, share: float) -> None:
    """2016, section 2.1: of every `stride` cells so many are used, rounded up to parts of the stride, or quarters."""
    used = max(1, round(share * stride))
    kernel = strided(stride, tuple(range(used)), f"{stride}*n")
    parts = min(stride, 4)
    numerator = -(-used * parts // stride)
    expected = "1" if stride == 1 else f"{{{numerator}/{'>4' if stride > 4 else stride}}}"
    found = {c: counted(f"f_mem_access_global_load_asf:{c}", kernel) for c in CATEGORIES}
    assert found == {c: (4096.0 * used if c == expected else 0.0) for c in CATEGORIES}


def test_a_uniform_access_has_stride_0_and_a_column_a_stride_above_4() -> None:
    """Reading a column of a row-major matrix has stride n and uses every cell; one word for all has stride 0."""
    program = make(
        "{[i, j]: 0 <= i, j < n}", "o[i, j] = a[j, i] * s[0]", {"a, o": "n, n", "s": "1"}, assumptions="n mod 16 = 0"
    )
    program = lp.split_iname(program, "i", 16, outer_tag="g.1", inner_tag="l.1")
    kernel = pm.Kernel(lp.split_iname(program, "j", 16, outer_tag="g.0", inner_tag="l.0"), n=256)
    assert counted("f_mem_access_global_load_var:a_asf:{4/>4}", kernel) == 256**2
    assert counted("f_mem_access_global_load_var:s_asf:0", kernel) == 256**2
    assert counted("f_mem_access_global_store_asf:1", kernel) == 256**2


def test_the_stride_decides_at_each_size() -> None:
    """The same column read of matrices with 2, 3, 4 and 8 columns."""
    program = make(
        "{[i, k]: 0 <= i < n and 0 <= k < m}", "o[i] = sum(k, a[i, k])", {"a": "n, m", "o": "n"}, sizes=("n", "m")
    )
    kernel = pm.Kernel(lp.split_iname(program, "i", 32, outer_tag="g.0", inner_tag="l.0"))
    for m, category in ((1, "1"), (2, "{2/2}"), (3, "{3/3}"), (4, "{4/4}"), (8, "{4/>4}")):
        assert counted(f"f_mem_access_global_load_asf:{category}", kernel, n=64, m=m) == 64 * m


@given(st.integers(0, 40), st.floats(0, 1), st.integers(2, 5))
def test_each_access_is_in_one_category(stride: int, utilization: float, divisor: int) -> None:
    everything = [StrideFraction(0, 0), StrideFraction(0, 1)]
    everything += [StrideFraction(k, s) for s in (2, 3, 4, 5) for k in range(1, min(s, 4) + 1)]
    assert sum(bool(f.matches(stride, utilization)) for f in everything) == 1


@pytest.mark.parametrize("wrong", ["2", "{0/2}", "{3/2}", "{5/>4}", "{1/>3}", "half", "{1/5}", "{}"])
def test_other_fractions_are_refused(wrong: str) -> None:
    with pytest.raises(FeatureError, match=r"is no amortized stride fraction|unknown word|cannot be read"):
        pm.feature(f"f_mem_access_global_asf:{wrong}")


# --- bytes, footprints, the smaller of loads and stores


def test_bytes_footprints_and_minima_of_a_five_point_stencil() -> None:
    """A point takes 5 loads and 1 store of 8 bytes; (n+2)^2 cells without the 4 corners are loaded, n^2 are stored."""
    program = make(
        "{[i, j]: 0 <= i, j < n}",
        "o[i, j] = a[i+1, j] + a[i+1, j+2] + a[i, j+1] + a[i+2, j+1] - 4*a[i+1, j+1]",
        {"a": {"shape": "n+2, n+2", "dtype": np.float64}, "o": {"shape": "n, n", "dtype": np.float64}},
    )
    kernel = pm.Kernel(program)
    for n in (1, 7, 100):
        assert counted("f_mem_bytes_global_load", kernel, n=n) == 5 * 8 * n**2
        assert counted("f_mem_bytes_global_store", kernel, n=n) == 8 * n**2
        assert counted("f_mem_footprint_global_load", kernel, n=n) == 8 * ((n + 2) ** 2 - 4)
        assert counted("f_mem_footprint_global_var:o", kernel, n=n) == 8 * n**2
        assert counted("f_mem_footprint_global", kernel, n=n) == 8 * ((n + 2) ** 2 - 4 + n**2)
        assert counted("f_mem_min_global_float64", kernel, n=n) == n**2
        assert counted("f_mem_min_global_float32", kernel, n=n) == 0


def test_loads_and_stores_of_one_array_share_a_footprint() -> None:
    """x[i] = x[2i] touches n + n elements of which ceil(n/2) are the same."""
    kernel = pm.Kernel(make("{[i]: 0 <= i < n}", "x[i] = x[2*i]", {"x": "2*n"}))
    for n in (1, 2, 9, 10):
        assert counted("f_mem_footprint_global_load", kernel, n=n) == 4 * n
        assert counted("f_mem_footprint_global_store", kernel, n=n) == 4 * n
        assert counted("f_mem_footprint_global", kernel, n=n) == 4 * len({*range(n), *range(0, 2 * n, 2)})


def test_widths_and_vectors() -> None:
    """n rows of 4 floats, each loaded and stored as one 128-bit vector."""
    program = lp.make_kernel(
        "{[i, c]: 0 <= i < n and 0 <= c < 4}",
        "o[i, c] = a[i, c]",
        [lp.GlobalArg("a, o", np.float32, shape="n, 4", dim_tags="stride:auto,vec"), lp.ValueArg("n", np.int32)],
        lang_version=(2018, 2),
    )
    kernel = pm.Kernel(tagged(program, c="vec", i="g.0"), n=64)
    assert counted("f_mem_access_global_bits:128_load", kernel) == 64
    assert counted("f_mem_access_global_bits:32", kernel) == 0
    assert counted("f_mem_bytes_global_store", kernel) == 64 * 16
    scalar = pm.Kernel(make("{[i]: 0 <= i < n}", "o[i] = a[i]", {"a, o": {"shape": "n", "dtype": np.float64}}), n=64)
    assert counted("f_mem_access_global_bits:64", scalar) == 128


def test_the_innermost_loop_has_a_stride() -> None:
    """The loop over k in o[i] = sum(k, a[k, i] b[i, k]) steps n elements through a, and one through b."""
    program = make("{[i, k]: 0 <= i, k < n}", "o[i] = sum(k, a[k, i] * b[i, k])", {"a, b": "n, n", "o": "n"})
    kernel = pm.Kernel(tagged(program, i="g.0"), n=50)
    assert counted("f_mem_access_global_var:a_loopstride:50", kernel) == 2500
    assert counted("f_mem_access_global_var:b_loopstride:1", kernel) == 2500
    assert counted("f_mem_access_global_store_loopstride:0", kernel) == 50


def test_private_memory_counts_only_where_it_is_asked_for() -> None:
    program = lp.make_kernel(
        "{[i, j, k]: 0 <= i < n and 0 <= j, k < 4}",
        "for i\nt[j] = a[i] + j {id=t}\no[i] = sum(k, t[k]) {dep=t}\nend",
        [
            lp.GlobalArg("a, o", np.float32, shape="n"),
            lp.TemporaryVariable("t", np.float32, shape=(4,)),
            lp.ValueArg("n", np.int32),
        ],
        lang_version=(2018, 2),
    )
    kernel = pm.Kernel(tagged(program, i="g.0"), n=10)
    assert counted("f_mem_access_private_var:t_store", kernel) == 40
    assert counted("f_mem_access_private_var:t_load", kernel) == 40
    assert counted("f_mem_access_var:t", kernel) == 0


# --- granularity


def test_a_partly_active_subgroup_counts_once() -> None:
    """20 of each group's 64 work-items do an addition: 2 groups, in each 1 sub-group of 32, or 3 of 8."""
    program = make(
        "{[g, l]: 0 <= g < 2 and 0 <= l < 64}",
        "if l < 20\no[64*g + l] = a[64*g + l] + 1\nend",
        {"a, o": "128"},
        sizes=(),
    )
    kernel = pm.Kernel(tagged(program, g="g.0", l="l.0"))
    adds = {g: counted(f"f_op_float32_add_granularity:{g}", kernel) for g in ("workitem", "workgroup")}
    assert adds == {"workitem": 40, "workgroup": 2}
    assert counted("f_op_float32_add_granularity:subgroup", kernel) == 2
    assert counted("f_op_float32_add_granularity:subgroup8", kernel) == 6
    assert counted("f_mem_access_global_load_granularity:subgroup64", kernel) == 2


def test_barriers_by_granularity() -> None:
    (kernel,) = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "n:64"])
    groups, meetings = 16, 2 * 64 // 16
    assert counted("f_sync_barrier_local", kernel) == groups * 256 * meetings
    assert counted("f_sync_barrier_local_granularity:subgroup", kernel) == groups * 8 * meetings
    assert counted("f_sync_barrier_local_granularity:workgroup", kernel) == groups * meetings


@pytest.mark.parametrize("wrong", ["warp", "subgroup0", "subgroup99999", "{}"])
def test_other_granularities_are_refused(wrong: str) -> None:
    with pytest.raises(FeatureError, match="granularity:subgroup64"):
        pm.feature(f"f_op_float32_add_granularity:{wrong}")


# --- what data decide


def sparse() -> Any:
    """Returns a sparse matrix times a vector: the length of a row is known only when the kernel runs."""
    return make(
        ["{[i]: 0 <= i < n}", "{[j]: 0 <= j < length}"],
        "for i\n<> length = lengths[i]\no[i] = sum(j, v[i, j] * x[j])\nend",
        {"o": "n", "x": "n", "v": "n, n", "lengths": {"shape": "n", "dtype": np.int32}},
    )


def test_an_expected_trip_count_takes_the_place_of_a_bound_from_data() -> None:
    kernel = pm.Kernel(sparse(), statistics={"j": 7.5}, n=1000)
    assert counted("f_op_float32_madd", kernel) == 7500
    assert counted("f_mem_access_global_var:v", kernel) == 7500
    assert counted("f_mem_access_global_var:lengths", kernel) == 1000
    assert kernel.at(n=10).counts is kernel.counts


def test_a_probability_takes_the_place_of_a_predicate_on_data() -> None:
    program = make("{[i]: 0 <= i < n}", "if a[i] > 0\no[i] = a[i] * a[i] {id=square}\nend", {"a, o": "n"})
    for key in ("a[i] > 0", "square"):
        kernel = pm.Kernel(program, statistics={key: 0.25}, n=400)
        assert counted("f_op_float32_mul", kernel) == 100
        assert counted("f_mem_access_global_store", kernel) == 100


@pytest.mark.parametrize(
    ("statistics", "words"),
    [
        ({}, r"loop over 'j' .*'length'|depends on length.*statistics=\{'j': …\}"),
        ({"jj": 3.0}, "no loop variable, predicate or instruction 'jj' to have statistics of; did you mean 'j'"),
        ({"j": -1.0}, "statistic of 'j' is -1"),
        ({"j": float("nan")}, "statistic of 'j' is nan"),
    ],
)
def test_missing_and_wrong_statistics_are_named(statistics: dict[str, float], words: str) -> None:
    with pytest.raises(CountingError, match=words):
        _ = pm.Kernel(sparse(), statistics=statistics, n=10).counts


def test_a_probability_is_at_most_one() -> None:
    program = make("{[i]: 0 <= i < n}", "if a[i] > 0\no[i] = 1\nend", {"a, o": "n"})
    with pytest.raises(CountingError, match="give one from 0 to 1"):
        _ = pm.Kernel(program, statistics={"a[i] > 0": 1.5}, n=10).counts


# --- without barvinok


@pytest.fixture
def without_barvinok(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(islpy.Set, "card")
    monkeypatch.setenv("PERFMODEL_NO_CACHE", "1")


@pytest.mark.usefixtures("without_barvinok")
@pytest.mark.parametrize("prefetch", ["True", "False"])
def test_boxes_are_counted_exactly_without_barvinok(prefetch: str) -> None:
    """All domains of a tiled matrix multiplication are boxes."""
    (kernel,) = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(
        ["matmul_sq", f"tiled_prefetch:{prefetch}", "n:64"]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kernel.counts.exact
    assert counted("f_op_float32_madd", kernel) == 64**3
    assert counted("f_sync_barrier_local", kernel) == (0 if prefetch == "False" else 64**2 * 8)


@pytest.mark.usefixtures("without_barvinok")
def test_other_domains_are_bounded_from_above_and_said_to_be() -> None:
    program = make("{[i, j]: 0 <= j <= i < n}", "o[i, j] = a[i, j] + 1", {"a, o": "n, n"})
    kernel = pm.Kernel(program, n=10)
    with pytest.warns(CountingWarning, match="bounds from above: the installed islpy cannot count") as caught:
        counts = kernel.counts
    assert len(caught) == 1
    assert not counts.exact
    assert counted("f_op_float32_add", kernel) == 100 >= 55


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), st.integers(1, 7))
def test_bounds_are_never_below_the_count(n: int, step: int) -> None:
    program = make("{[i, j]: 0 <= i < n and 0 <= j < n - i}", "o[i, j] = a[i, j] + 1", {"a, o": "n, n"})
    program = lp.split_iname(program, "j", step)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.delattr(islpy.Set, "card")
        patch.setenv("PERFMODEL_NO_CACHE", "1")
        bound = counted("f_op_float32_add", pm.Kernel(program, n=n))
    assert bound >= n * (n + 1) // 2


def test_what_decides_a_predicate_is_loaded_and_compared_by_all() -> None:
    """All 400 work-items load and compare a[i]; a quarter of them go on, to two statements under one condition."""
    program = make("{[i]: 0 <= i < n}", "if a[i] > 0\no[i] = b[i]*2\np[i] = b[i] + 1\nend", {"a, b, o, p": "n"})
    kernel = pm.Kernel(program, statistics={"a[i] > 0": 0.25}, n=400)
    assert counted("f_mem_access_global_var:a", kernel) == 400
    assert counted("f_op_float32_compare", kernel) == 400
    assert counted("f_mem_access_global_var:b", kernel) == 200
    assert counted("f_mem_footprint_global_var:a", kernel) == 1600


def test_a_loop_that_starts_where_data_say_has_no_known_strides() -> None:
    """Rows of a sparse matrix: neighbours read w where their rows begin, which no stride describes."""
    program = make(
        ["{[i]: 0 <= i < n}", "{[j]: lo <= j < hi}"],
        "for i\n<> lo = starts[i]\n<> hi = starts[i + 1]\no[i] = sum(j, w[j])\nend",
        {"o": "n", "w": "n*n", "starts": {"shape": "n + 1", "dtype": np.int32}},
    )
    kernel = pm.Kernel(lp.split_iname(program, "i", 64, outer_tag="g.0", inner_tag="l.0"), statistics={"j": 7}, n=640)
    assert counted("f_mem_access_global_var:w", kernel) == 7 * 640
    with pytest.raises(FeatureError, match=r"w\[j\].* has not got a constant stride"):
        counted("f_mem_access_global_var:w_lstrides:{0:0}", kernel)


@pytest.mark.parametrize("group", [(3, 4, 5), (5, 7, 1), (16, 12, 1), (33, 1, 1)])
def test_subgroups_of_groups_of_any_shape(group: tuple[int, int, int]) -> None:
    """The count is that of the sub-groups with a work-item inside, by numpy."""
    program = make("{[i, j, k]: 0 <= i, j, k < n}", "o[i, j, k] = a[i, j, k] + 1", {"a, o": "n, n, n"})
    for axis, (iname, size) in enumerate(zip("kji", group, strict=True)):
        program = lp.split_iname(program, iname, size, outer_tag=f"g.{axis}", inner_tag=f"l.{axis}")
    n = 9
    k, j, i = np.meshgrid(*(np.arange(n),) * 3, indexing="ij")
    groups = [v // s for v, s in zip((k, j, i), group, strict=True)]
    lanes = k % group[0] + group[0] * (j % group[1] + group[1] * (i % group[2]))
    for width in (8, 16, 32):
        expected = len(set(zip(*(g.ravel() for g in groups), (lanes // width).ravel(), strict=True)))
        assert counted(f"f_op_float32_add_granularity:subgroup{width}", pm.Kernel(program, n=n)) == expected


def test_integer_comparisons_and_bitwise_complements_count() -> None:
    arrays = {"a, c, o": {"shape": "n", "dtype": np.int32}, "big": {"shape": "n", "dtype": np.int64}}
    program = make("{[i]: 0 <= i < n}", "big[i] = c[i] + if(a[i] < 3, 1, 2)\no[i] = a[i] & ~c[i]", arrays)
    kernel = pm.Kernel(program, n=10)
    assert counted("f_op_int32_compare", kernel) == 10
    assert counted("f_op_int32_bitwise", kernel) == 20


def test_a_vectors_footprint_is_that_of_its_components() -> None:
    program = lp.make_kernel(
        "{[i, c]: 0 <= i < n and 0 <= c < 4}",
        "o[i, c] = a[i, c]",
        [lp.GlobalArg("a, o", np.float32, shape="n, 4", dim_tags="stride:auto,vec"), lp.ValueArg("n", np.int32)],
        lang_version=(2018, 2),
    )
    kernel = pm.Kernel(tagged(program, c="vec", i="g.0"), n=64)
    assert counted("f_mem_footprint_global_load", kernel) == 64 * 16


@pytest.mark.parametrize(
    ("index", "array", "category"),
    [
        (["i, 0"], {"shape": "n, 2"}, "{1/2}"),
        (["0, i"], {"shape": "2, n", "order": "F"}, "{1/2}"),
        (["i, 0"], {"shape": "n, 4"}, "{1/4}"),
        (["i, 0", "i, 1"], {"shape": "n, 3"}, "{2/3}"),
        (["i, 0", "i, 2", "i, 1"], {"shape": "n, 3"}, "{3/3}"),
        (["i"], {"shape": "n", "strides": (2,)}, "{1/2}"),
        (["i"], {"shape": "n", "strides": (7,)}, "{1/>4}"),
        (["i, 0"], {"shape": "n, n"}, "{1/>4}"),
        (["i, 3", "i, 4"], {"shape": "n, n"}, "{1/>4}"),
    ],
)
def test_gaps_along_other_axes_are_gaps_too(index: list[str], array: dict[str, Any], category: str) -> None:
    """One member of every structure: the same memory is touched, however many axes the array is said to have."""
    value = " + ".join(f"a[{i}]" for i in index)
    program = make(
        "{[i]: 0 <= i < n}", f"o[i] = {value}", {"a": array, "o": "n"}, assumptions="n mod 16 = 0 and n >= 16"
    )
    kernel = pm.Kernel(lp.split_iname(program, "i", 16, outer_tag="g.0", inner_tag="l.0"), n=64)
    found = {c: counted(f"f_mem_access_global_load_asf:{c}", kernel) for c in CATEGORIES}
    assert found == {c: (64.0 * len(index) if c == category else 0.0) for c in CATEGORIES}
