"""Explanations: growth with size, trust, and where the difference between two kernels comes from."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import perfmodel as pm
from perfmodel.basics.errors import CalibrationError, KernelError
from perfmodel.modelling import advising, explanation
from perfmodel.modelling.comparison import Comparison
from perfmodel.modelling.explanation import Explanation
from tests.conftest import SimulatedTime

MADD, BYTES, LAUNCH = "f_op_float32_madd", "f_mem_access_global_float32", "f_sync_kernel_launch"
MODEL = f"""
overhead = p_launch * {LAUNCH}
gmem     = p_access * {BYTES}
onchip   = p_madd * {MADD}
overhead + gmem + onchip
"""
TRUTH = {"p_launch": 1e-4, "p_access": 1e-10, "p_madd": 5e-11}


def true_time(count: Any) -> float:
    return float(TRUTH["p_launch"] * count(LAUNCH) + TRUTH["p_access"] * count(BYTES) + TRUTH["p_madd"] * count(MADD))


def generated(*tags: str) -> list[pm.Kernel]:
    return pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(list(tags))


@pytest.fixture(scope="module")
def calibration() -> pm.Calibration:
    kernels = [
        *generated("matmul_sq", "tiled_prefetch:*", "n:64,128,256"),
        *generated("global_copy", "loads:1,2", "n:65536,262144"),
        *generated("launch", "groups:4,256"),
    ]
    noise = iter(np.random.default_rng(3).normal(1.0, 0.02, len(kernels)))
    model = pm.Model("f_sim", MODEL, features={"f_sim": SimulatedTime(lambda count: true_time(count) * next(noise))})
    return model.fit(pm.measure(kernels, model))


@pytest.fixture(scope="module")
def tiled() -> pm.Kernel:
    return generated("matmul_sq", "tiled_prefetch:True", "n:256")[0]


def test_growth_is_what_predictions_say(calibration: pm.Calibration, tiled: pm.Kernel) -> None:
    (growth,) = calibration.explain(tiled, n=128).growth
    one, two = calibration.predict(tiled, n=[128, 256])
    assert (growth.size, growth.value) == ("n", 128)
    assert growth.times == pytest.approx(two / one)
    assert growth.exponent == pytest.approx(math.log2(two / one))
    assert "twice n takes" in str(calibration.explain(tiled, n=128))


def test_what_there_was_no_time_for_is_said(
    calibration: pm.Calibration, tiled: pm.Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = calibration.explain(tiled)
    assert whole.hurried == ()
    assert "to save time" not in str(whole)
    monkeypatch.setattr(explanation, "GROWTH_S", 0.0)
    found = calibration.explain(tiled)
    assert (found.growth, found.hurried) == ((), ("n",))
    assert "how it grows with n is known only in part, to save time (kernel.with_budget(10), --effort 10)" in str(found)
    assert found.as_json()["hurried"] == ["n"]
    monkeypatch.setattr(advising, "CHANGES_S", 0.0)
    advice = calibration.advise(tiled)
    assert not any(change.kernel for change in advice.changes)
    assert advice.untried > 0
    assert f"{advice.untried} other changes were not predicted, to save time" in str(advice)


def test_growth_names_the_size_from_which_something_else_limits(calibration: pm.Calibration, tiled: pm.Kernel) -> None:
    """The launch is all at n = 16; a cube of operations overtakes it at some doubling."""
    found = calibration.explain(tiled, n=16)
    (growth,) = found.growth
    assert found.bottleneck == growth.limit == "overhead"
    assert growth.change
    value, limit = growth.change
    assert limit != "overhead"
    assert calibration.explain(tiled, n=value).bottleneck == limit
    assert calibration.explain(tiled, n=value // 2).bottleneck == "overhead"
    assert f"limited by {limit} from n={value} on" in str(found)


def test_sizes_that_change_nothing_share_a_line(calibration: pm.Calibration) -> None:
    text = "__kernel void k(__global float *a, int n, int by, int to) { a[get_global_id(0)] += by * to; }"
    args = {"a": "n"}
    kernel = pm.Kernel.from_opencl(text, "k", "n", 64, args=args, n=1 << 20, by=3, to=5)
    lines = [line.strip() for line in str(calibration.explain(kernel)).splitlines()]
    assert "twice by or to takes as long, however often it is doubled" in lines
    assert [line.split(" takes")[0] for line in lines if line.startswith("twice")] == ["twice n", "twice by or to"]


def test_the_parts_of_the_uncertainty_are_those_of_the_prediction(
    calibration: pm.Calibration, tiled: pm.Kernel
) -> None:
    seconds, std = calibration.predict(tiled, return_std=True)
    trust = calibration.explain(tiled).trust
    assert trust.residual_std == calibration.residual_std
    low, high = calibration.interval(tiled, 0.6827)
    assert 2 * float(std) == pytest.approx(float(high - low))
    assert low < seconds < high
    assert trust.doubtful in calibration.parameters
    known = replace(calibration, covariance=np.zeros_like(calibration.covariance))
    assert (known.explain(tiled).trust.parameter_std, known.explain(tiled).trust.doubtful) == (0.0, "")


def test_within_the_measurements_there_is_no_distance(calibration: pm.Calibration, tiled: pm.Kernel) -> None:
    trust = calibration.explain(tiled, n=256).trust
    assert (trust.distance, trust.extrapolation, trust.unpriced) == (0.0, {}, ())
    assert trust.verdict == "it lies within what was measured"


def test_distance_counts_doublings_of_the_work_that_takes_the_time(
    calibration: pm.Calibration, tiled: pm.Kernel
) -> None:
    """Operations are eight times those of the largest kernel measured at n = 512, and take most of the time."""
    found = calibration.explain(tiled, n=512)
    assert found.trust.extrapolation[MADD] == pytest.approx(8)
    share = found.costs[0].share
    assert found.bottleneck == "onchip"
    assert found.trust.dependence[MADD] == pytest.approx(share, rel=1e-3)
    rest = sum(
        abs(found.trust.dependence[name]) * math.log2(factor)
        for name, factor in found.trust.extrapolation.items()
        if name != MADD
    )
    assert found.trust.distance == pytest.approx(3 * share + rest, rel=1e-3)
    assert found.trust.verdict == f"it lies {found.trust.distance:.1f} doublings of work beyond the measurements"
    assert f"{MADD} is 8 times outside its range in the fit" in str(found)
    assert found.extrapolation == found.trust.extrapolation


def test_a_step_is_no_slope_of_what_lies_outside_the_measurements() -> None:
    """Whole sub-groups and work-groups are steps: one work-item more would take many times what its part is."""
    source = "kernel void f(global float *x, long n) { long i = get_global_id(0); if (i < n) x[i] += 1; }"
    kernel = pm.Kernel.from_opencl(source, "f", "n", 256, {"x": "n"}, n=2**40)
    trust = pm.Calibration.shipped(device="H200").explain(kernel).trust
    assert "f_thread_groups" in trust.dependence
    assert all(abs(each) < 1.01 for each in trust.dependence.values())


def test_what_was_never_measured_is_said_to_cost_nothing(calibration: pm.Calibration, tiled: pm.Kernel) -> None:
    free = {**calibration.parameters, "p_madd": 0.0}
    unseen = replace(calibration, parameters=free, ranges={**calibration.ranges, MADD: (0.0, 0.0)})
    found = unseen.explain(tiled)
    assert found.trust.unpriced == (MADD,)
    assert math.isinf(found.extrapolation[MADD])
    assert f"the measurements had nothing of {MADD}, which therefore costs nothing here" in str(found)


def test_a_difference_is_the_sum_of_those_of_its_costs(calibration: pm.Calibration) -> None:
    first, second = generated("matmul_sq", "tiled_prefetch:*", "n:256")
    found = calibration.compare(first, second, n=128)
    one, two = (float(calibration.predict(kernel, n=128)) for kernel in (first, second))
    assert found.ratio == pytest.approx(two / one)
    assert sum(each.seconds for each in found.differences) == pytest.approx(two - one)
    assert [abs(each.seconds) for each in found.differences] == sorted(
        (abs(each.seconds) for each in found.differences), reverse=True
    )
    assert found.differences[0].name == "gmem"  # the variants differ in accesses, not in operations
    assert {each.name: each.seconds for each in found.differences}["onchip"] == pytest.approx(0.0, abs=1e-12)
    assert "the second takes" in str(found)
    assert list(found.to_frame()["seconds"]) == [each.seconds for each in found.differences]
    back = calibration.compare(second, first, n=128)
    assert back.ratio == pytest.approx(1 / found.ratio)


def test_kernels_that_are_compared_may_have_other_sizes(calibration: pm.Calibration, tiled: pm.Kernel) -> None:
    copy = generated("global_copy", "loads:1", "n:65536")[0]
    found = calibration.compare(tiled.at(n=64), copy)
    assert (found.first.sizes, found.second.sizes) == ({"n": 64}, {"n": 65536})
    with pytest.raises(KernelError, match="no kernel has a size 'm'; give one that they have"):
        calibration.compare(tiled, copy, m=3)


def refuse(constant: str) -> None:
    raise AssertionError(constant)


def test_dictionaries_are_json_without_nan(calibration: pm.Calibration, tiled: pm.Kernel) -> None:
    unknown = np.full_like(calibration.covariance, np.nan)
    blind = replace(calibration, covariance=unknown, residual_std=math.nan, held_out=None)
    for each in (calibration, blind):
        found = json.loads(json.dumps(each.explain(tiled, n=512).as_json(), allow_nan=False), parse_constant=refuse)
        assert found["sizes"] == {"n": 512}
        assert found["costs"][0]["name"] == "onchip"
        assert found["trust"]["verdict"]
        assert found["growth"][0]["exponent"] > 2
    assert found["std"] is None
    compared = calibration.compare(tiled, tiled.at(n=64)).as_json()
    assert json.loads(json.dumps(compared, allow_nan=False))["ratio"] < 1


@pytest.mark.parametrize("kind", ["explanation", "comparison", "calibration"])
def test_notebooks_show_tables_in_which_nothing_is_markup(
    kind: str, calibration: pm.Calibration, tiled: pm.Kernel
) -> None:
    hostile = pm.Kernel(tiled.program, {**tiled.tags, "note": "<script>alert(1)</script>"}, None, n=256)
    shown: dict[str, Any] = {
        "explanation": calibration.explain(hostile),
        "comparison": calibration.compare(hostile, tiled),
        "calibration": replace(calibration, device={"name": "<script>alert(1)</script>"}),
    }
    html = shown[kind]._repr_html_()
    assert html.count("<table>") == html.count("</table>") == 1
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_axes_are_taken_and_given(calibration: pm.Calibration, tiled: pm.Kernel) -> None:
    import matplotlib.pyplot as plt

    found: list[Explanation | Comparison] = [calibration.explain(tiled), calibration.compare(tiled, tiled.at(n=64))]
    for each in found:
        _, mine = plt.subplots()
        assert each.plot(mine) is mine
        assert mine.patches
        assert each.plot() is not mine
    _, mine = plt.subplots()
    assert calibration.plot(mine) is mine
    assert sum(np.size(line.get_xdata()) for line in mine.get_lines()) >= len(calibration.rows)
    plt.close("all")
    with pytest.raises(CalibrationError, match="has not kept its measurements; plot one that you calibrated"):
        calibration.to_ship().plot()


def test_frames_have_what_the_calibration_has(calibration: pm.Calibration, tiled: pm.Kernel) -> None:
    rows, parameters = calibration.to_frame(), calibration.parameter_frame()
    assert list(rows["measured_s"]) == [row.measured_s for row in calibration.rows]
    assert {"kernel", "variant", "sizes", "predicted_s", "flags"} <= set(rows.columns)
    assert dict(parameters["value"]) == calibration.parameters
    assert list(parameters["unit"]) == list(calibration.units.values())
    costs = calibration.explain(tiled).to_frame()
    assert costs["share"].sum() == pytest.approx(1.0)
