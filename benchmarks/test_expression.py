"""Times parsing and compiled evaluation: ``pytest benchmarks/test_expression.py``, one core."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from perfmodel.expression import ModelString, parse

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

ELEMENTS = 1_000_000
MULTI_LINE = """
    overhead = p_launch * f_sync_kernel_launch + p_group * f_thread_groups
    gmem     = p_a * f_mem_access_tag:a_global_float32_load_lstrides:{0:0;1:>15}
             + p_b * f_mem_access_global_float32_load_lstrides:{0:1;1:16}_ratio:<2
    onchip   = p_madd * f_op_float32_madd + p_lmem * f_mem_access_local_float32
    overhead + smooth_max(gmem, onchip, p_edge)
"""
TWO_RESOURCES = """
    overhead = p_launch*f_sync_kernel_launch + p_group*f_thread_groups
    gmem = p_a*f_mem_access_global_float32_load + p_b*f_mem_access_global_float32_store
    onchip = p_madd*f_op_float32_madd + p_lmem*f_mem_access_local_float32
    overhead + smooth_max(gmem, onchip, p_edge)
"""
P_NORM = TWO_RESOURCES.replace("smooth_max", "overlap")
PARAMETERS = {
    "p_launch": 5e-6,
    "p_group": 1e-9,
    "p_a": 3e-12,
    "p_b": 4e-12,
    "p_madd": 2e-13,
    "p_lmem": 1e-12,
    "p_edge": 1e5,
}


def features(model: ModelString, elements: int) -> dict[str, np.ndarray]:
    """Returns counts of a thousand to ten million, so that neither resource always wins."""
    rng = np.random.default_rng(1)
    return {name: np.floor(10 ** rng.uniform(3, 7, elements)) for name in model.features}


def _record_rate(benchmark: BenchmarkFixture) -> None:
    if benchmark.stats:  # None with --benchmark-disable
        benchmark.extra_info["evaluations_per_s"] = ELEMENTS / benchmark.stats.stats.min


def test_parse(benchmark: BenchmarkFixture) -> None:
    model = benchmark(parse, MULTI_LINE)
    assert len(model.parameters) == 7


def test_parse_and_compile(benchmark: BenchmarkFixture) -> None:
    point = dict.fromkeys(parse(MULTI_LINE).features, 1.0)

    def fresh() -> float:
        return float(parse(MULTI_LINE).compile().jacobian(PARAMETERS, point)[0])

    assert benchmark(fresh) == 1.0


@pytest.mark.parametrize("text", [TWO_RESOURCES, P_NORM], ids=["smooth_max", "overlap"])
def test_evaluate(benchmark: BenchmarkFixture, text: str) -> None:
    model = parse(text)
    values = features(model, ELEMENTS)
    parameters = PARAMETERS | ({"p_edge": 3.0} if text is P_NORM else {})
    result = benchmark(model.compile(), parameters, values)
    _record_rate(benchmark)
    assert np.all(result > 0)


@pytest.mark.parametrize("text", [TWO_RESOURCES, P_NORM], ids=["smooth_max", "overlap"])
def test_jacobian(benchmark: BenchmarkFixture, text: str) -> None:
    model = parse(text)
    values = features(model, ELEMENTS)
    parameters = PARAMETERS | ({"p_edge": 3.0} if text is P_NORM else {})
    result = benchmark(model.compile().jacobian, parameters, values)
    _record_rate(benchmark)
    assert result.shape == (7, ELEMENTS)


def test_evaluate_one_fit_table(benchmark: BenchmarkFixture) -> None:
    """Times the many short calls of a fit: value and Jacobian of 60 measurements."""
    model = parse(TWO_RESOURCES)
    values = features(model, 60)
    compiled = model.compile()
    benchmark(lambda: (compiled(PARAMETERS, values), compiled.jacobian(PARAMETERS, values)))
