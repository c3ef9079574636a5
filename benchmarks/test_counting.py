"""Times counting against Loopy's own statistics, and evaluates counts over a million sizes.

Conditions of the first counts, for Loopy's statistics and ours alike: Loopy's caches are off (`loopy.CacheMode`) and
those in memory are cleared, every round gets a program made anew, and one round before the first warms up what a
process needs once. Ours are not looked up on disk.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import loopy as lp
import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import perfmodel as pm
from perfmodel.counting import cache
from perfmodel.counting.cache import loopy_key
from perfmodel.counting.loopy.counts import count_loopy
from perfmodel.counting.quasipolynomial import from_isl
from perfmodel.generators.matmul import SquareMatmul
from perfmodel.vocabulary import named_features as vocabulary

SIZES = 16 * np.arange(1, 1_000_001)
PROPERTIES = (
    *("f_op_float32", "f_op_float32_madd", "f_op_float32_add", "f_op_float32_mul", "f_op_float32_div"),
    *("f_op_float32_special", "f_sync_barrier_local", "f_sync_kernel_launch", "f_thread_groups"),
    *("f_mem_access_local_float32", "f_mem_access_local_float32_load", "f_mem_access_local_float32_store"),
    *("f_mem_access_global_float32_load", "f_mem_access_global_float32_store"),
    *(f"f_mem_access_global_float32_load_lstrides:{{0:{s}}}" for s in ("0", "1", "2", "3", "4", ">4")),
    *(f"f_mem_access_global_float32_store_lstrides:{{0:{s}}}" for s in ("1", "2", ">2")),
    *(f"f_mem_access_global_float32_load_lstrides:{{0:{s}}}_afr:1" for s in ("1", "2", ">2")),
    *(f"f_mem_access_global_float32_load_lstrides:{{0:{s}}}_afr:>1" for s in ("1", "2", ">2")),
    "f_mem_access_global_float32_load_lstrides:{0:1;1:>15}_gstrides:{0:16}",
)


def matmul(prefetch: bool, groups_fit: str = "True") -> Any:
    variant = {"dtype": "float32", "lsize_0": "16", "lsize_1": "16", "groups_fit": groups_fit}
    return SquareMatmul().program({**variant, "tiled_prefetch": str(prefetch)})


def stencil() -> Any:
    program = lp.make_kernel(
        "{[i, j]: 0 <= i, j < n}",
        "o[i, j] = a[i + 1, j] + a[i + 1, j + 2] - 4*a[i + 1, j + 1] + a[i, j + 1] + a[i + 2, j + 1]",
        [
            lp.GlobalArg("a", np.float32, shape="n + 2, n + 2"),
            lp.GlobalArg("o", np.float32, shape="n, n"),
            lp.ValueArg("n", np.int32),
        ],
        assumptions="n >= 1 and n mod 16 = 0",
        lang_version=(2018, 2),
    )
    program = lp.split_iname(program, "i", 16, outer_tag="g.1", inner_tag="l.1")
    return lp.split_iname(program, "j", 16, outer_tag="g.0", inner_tag="l.0")


PROGRAMS: dict[str, Callable[[], Any]] = {
    "matmul tiled": lambda: matmul(True),
    "matmul": lambda: matmul(False),
    "stencil": stencil,
}


def loopy_statistics(program: Any) -> None:
    lp.get_op_map(program, subgroup_size=32, count_redundant_work=True)
    lp.get_mem_access_map(program, subgroup_size=32, count_redundant_work=True)
    lp.get_synchronization_map(program, subgroup_size=32)


def prepared_loopy_statistics(program: Any) -> None:
    """Computes the three maps of a program that was preprocessed once, as a careful user would do."""
    loopy_statistics(lp.preprocess_program(lp.infer_unknown_types(program)))


def fresh(make: Callable[[], Any]) -> Any:
    program = make()
    lp.clear_in_mem_caches()
    return program


def median_time(count: Callable[[Any], object], make: Callable[[], Any], rounds: int = 7) -> float:
    times = []
    for _ in range(rounds + 1):
        program = fresh(make)
        start = time.perf_counter()
        count(program)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def median(benchmark: BenchmarkFixture) -> float:
    return float(benchmark.stats.stats.median)  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_first_count(name: str, benchmark: BenchmarkFixture) -> None:
    make = PROGRAMS[name]
    with lp.CacheMode(False):
        counts = benchmark.pedantic(  # type: ignore[no-untyped-call]
            lambda program: count_loopy(program, {}, 32),
            setup=lambda: ((fresh(make),), {}),
            rounds=7,
            warmup_rounds=1,
        )
        loopy, prepared = median_time(loopy_statistics, make), median_time(prepared_loopy_statistics, make)
    assert counts.exact
    benchmark.extra_info["Loopy's time / ours"] = loopy / median(benchmark)
    benchmark.extra_info["Loopy's time, preprocessed once / ours"] = prepared / median(benchmark)


@pytest.mark.filterwarnings("ignore")
def test_cached_count(benchmark: BenchmarkFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache.ENTRIES, "folder", lambda: tmp_path)
    monkeypatch.delenv("PERFMODEL_NO_CACHE", raising=False)
    program = matmul(True)
    expected = cache.cached_counts(partial(loopy_key, program), {}, 32, lambda: count_loopy(program, {}, 32))

    def missing() -> Any:
        raise AssertionError("the counts are not found")

    found = benchmark.pedantic(  # type: ignore[no-untyped-call]
        lambda program: cache.cached_counts(partial(loopy_key, program), {}, 32, missing),
        setup=lambda: ((matmul(True),), {}),  # a program made anew has no hash yet
        rounds=20,
    )
    assert found == expected
    with lp.CacheMode(False):
        loopy = median_time(loopy_statistics, lambda: matmul(True), rounds=3)
    benchmark.extra_info["Loopy's time / ours"] = loopy / median(benchmark)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("groups_fit", ["True", "False"])
@pytest.mark.parametrize("whose", ["loopy", "perfmodel"])
def test_one_count_at_a_million_sizes(whose: str, groups_fit: str, benchmark: BenchmarkFixture) -> None:
    """Evaluates additions by sub-groups, as each package counts them; perfmodel evaluates Loopy's polynomial, too."""
    program = matmul(True, groups_fit)
    operations = lp.get_op_map(program, subgroup_size=32, count_redundant_work=True)
    polynomial = next(p for op, p in operations.items() if op.dtype.numpy_dtype == np.float32)
    ours = count_loopy(program, {}, 32).operations[0].executions.subgroup
    count = from_isl(polynomial.pwqpolynomial) if whose == "loopy" else ours
    assert count is not None
    values = benchmark(lambda: count({"n": SIZES}))
    some = SIZES[::1000].tolist()
    start = time.perf_counter()
    theirs = [polynomial.eval_with_dict({"n": n}) for n in some]
    per_size = (time.perf_counter() - start) / len(some)
    np.testing.assert_allclose(values[::1000], np.array(theirs, dtype=np.float64), rtol=1e-12)
    benchmark.extra_info["count"] = str(count)
    benchmark.extra_info["eval_with_dict's time for a size / ours"] = per_size / (median(benchmark) / len(SIZES))


@pytest.mark.parametrize("name", PROGRAMS)
def test_thirty_properties_at_a_million_sizes(name: str, benchmark: BenchmarkFixture) -> None:
    kernel = pm.Kernel(PROGRAMS[name]())
    features = {name: pm.feature(name) for name in PROPERTIES}
    bound = kernel.bind({"n": SIZES})
    found = benchmark.pedantic(  # type: ignore[no-untyped-call]
        lambda: vocabulary.evaluate_all(features, kernel, bound), rounds=5, warmup_rounds=1
    )
    assert len(found) == 30
    benchmark.extra_info["seconds"] = median(benchmark)
