"""Floating-point arguments decide conditions by their values."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import CountingError
from perfmodel.vocabulary.named_features import evaluate

STEP = "x = x * 2.0f + 1.0f;"
HELPERS = """\
int is_zero(const float v) { return v == 0.0f; }
float limited(float v) { return fmin(fmax(v, -1.0f), 1.0f); }
"""


def kernel(body: str, parameters: str) -> pm.Kernel:
    source = f"""{HELPERS}
__kernel void k(__global float *a, const int n, {parameters}) {{
  int i = get_global_id(0);
  float x = a[i];
  {body}
  a[i] = x;
}}"""
    return pm.Kernel.from_opencl(source, "k", "n", 64, {"a": "n"}, assumptions="n % 64 == 0", n=128)


def madds(knl: pm.Kernel) -> float:
    return float(pm.feature("f_op_float32_madd").eval(knl)) / 128


SCALARS = "const float beta, const double wide"


@pytest.mark.parametrize(
    ("condition", "beta", "holds"),
    [
        ("beta == 0.0f", 0.0, True),
        ("beta == 0.0f", 1e-30, False),
        ("is_zero(beta)", -0.0, True),
        ("!is_zero(beta)", 0.5, True),
        ("beta", 0.5, True),
        ("beta <= 0 || wide > 1e300", 2.0, False),
        ("beta > 1 && wide < 1", 2.0, True),
        ("(beta > 1 ? beta * 0.5f : -beta) >= 1", 2.0, True),
        ("limited(beta) == 1.0f", 3.0, True),
        ("sqrt(beta) > 1.5f", 4.0, True),
        ("(int)beta == 3", 3.9, True),
        ("isnan(beta)", float("nan"), True),
        ("beta == 0.1f", 0.1, True),  # in single precision
        ("beta == 0.1", 0.1, False),
        ("n * beta > 256", 2.0, False),
        ("n * beta >= 256", 2.0, True),
    ],
)
def test_a_condition_on_an_argument_follows_from_its_value(condition: str, beta: float, holds: bool) -> None:
    assert madds(kernel(f"if ({condition}) {{ {STEP} }}", SCALARS).at(beta=beta, wide=0.0)) == holds


@pytest.mark.parametrize(("beta", "holds"), [((0.0, 0.0), False), ((0.0, 0.5), True)])
def test_components_of_a_vector_decide_too(beta: tuple[float, float], holds: bool) -> None:
    decided = kernel(f"if (!(is_zero(beta.x) && is_zero(beta.y))) {{ {STEP} }}", "const float2 beta")
    assert madds(decided.at(beta=beta)) == holds
    with pytest.raises(CountingError, match=r"depends on the argument beta_0 and beta_1, .*; give it as beta_0="):
        madds(decided)


def test_what_an_argument_leaves_out_is_neither_accessed_nor_a_branch_of_data() -> None:
    knl = kernel("if (beta != 0) x += a[n + i];", SCALARS)
    loads = pm.feature("f_mem_access_global_load")
    assert [loads.eval(knl.at(beta=beta)) for beta in (0.0, 1.0)] == [128, 256]
    assert {branch.divergence for branch in knl.at(beta=1.0).counts.branches} == {"none"}


def test_counts_with_an_argument_are_still_functions_of_the_sizes() -> None:
    knl = kernel(f"if (beta > 0) for (int p = 0; p < n; p++) {{ {STEP} }}", SCALARS).at(beta=1.0)
    sizes = np.array([64, 128, 640])
    assert evaluate(pm.feature("f_op_float32_madd"), knl, knl.bind({"n": sizes})).tolist() == (sizes**2).tolist()


def test_a_loop_of_floating_point_numbers_is_followed() -> None:
    knl = kernel(f"for (float t = 0; t < beta; t += 0.25f) {{ {STEP} }}", SCALARS)
    assert madds(knl.at(beta=2.0)) == 8


def test_a_value_that_is_missing_is_asked_for_by_name() -> None:
    knl = kernel(f"if (beta > wide) {{ {STEP} }}", SCALARS)
    with pytest.raises(CountingError, match=r"depends on the argument beta, which has no value; give it as beta=…"):
        knl.at(wide=1.0).counts  # noqa: B018


def test_data_beside_an_argument_still_need_statistics() -> None:
    knl = kernel(f"if (a[i] > beta) {{ {STEP} }}", SCALARS)
    with pytest.raises(CountingError, match="depends on data"):
        knl.program.counts_for(None, {**knl.sizes, "beta": 1.0})


def test_an_observed_kernel_still_follows_the_argument() -> None:
    knl = kernel(f"if (a[i] > 0) {{ {STEP} }} if (beta == 0) {{ {STEP} }}", SCALARS).at(beta=0.0)
    observed = knl.as_observed()
    assert [madds(observed.at(beta=beta)) for beta in (0.0, 1.0)] == [2, 1]


def test_an_argument_that_decides_nothing_shares_the_counts() -> None:
    knl = kernel(f"x = x * beta; if (wide > 0) {{ {STEP} }}", SCALARS)
    assert knl.at(beta=1.0, wide=1.0).counts is knl.at(beta=2.0, wide=1.0).counts
    assert knl.at(wide=1.0).counts is not knl.at(wide=-1.0).counts


def test_a_kernel_counted_as_compiled_follows_the_argument() -> None:
    knl = kernel(f"if (beta == 0) {{ {STEP} }}", SCALARS)
    assert [madds(knl.at(beta=beta).as_compiled()) for beta in (0.0, 1.0)] == [1, 0]
