"""The cache-aware static model: its published form by hand, and its sets."""

from __future__ import annotations

import math

import pytest

import perfmodel as pm
from perfmodel.models import cache_aware
from perfmodel.recipes.recipe import recipe


def utilization(work_items: int, lanes: int) -> float:
    """Returns U(nWG, nXU) as restored from the slides."""
    low, high = work_items // lanes, math.ceil(work_items / lanes)
    return low / high + (work_items % lanes) / lanes * (high - low) / high


@pytest.mark.parametrize("group", [16, 31, 32, 33, 48, 64, 100, 256])
def test_the_published_form_by_hand(collection: pm.KernelCollection, group: int) -> None:
    """One load and one store of neighbours, one division: t = (base + W t + classes) / U."""
    n = group * 1000
    (kernel,) = collection.generate_kernels(["work_group_size", f"lsize_0:{group}", f"n:{n}"])
    model = pm.Model("f_cl_wall_time", cache_aware.AWARE)
    prices = dict.fromkeys(model.parameters, 0.0)
    prices |= {"p_lanes": 32.0, "p_base": 1e-9, "p_base_fixed": 2e-6, "p_load_continuous": 3e-9}
    prices |= {"p_store_continuous": 5e-9}
    for name in cache_aware.SATURATING:
        prices |= {f"p_{name}_b": 0.5, f"p_{name}_saturated": 8.0}
    prices |= {"p_division_a": 7e-9, "p_division_c": 1e-9}
    counted = model.counted(kernel)
    values = {name: float(found.eval(counted)) for name, found in model.features.items()}
    division = (7e-9 * 1**0.5 + 1e-9) * n
    whole = (2e-6 + n * 1e-9 + division + n * 8e-9) / utilization(group, 32)
    assert float(model.string.compile()(prices, values)) == pytest.approx(whole)


def test_transfers_are_added_beside_the_kernel(collection: pm.KernelCollection) -> None:
    (kernel,) = collection.generate_kernels(["vector_add", "n:1048576"])
    model = pm.Model("f_cl_wall_time", cache_aware.AWARE)
    prices = dict.fromkeys(model.parameters, 0.0) | {"p_lanes": 32.0, "p_to": 1e-10, "p_to_latency": 1e-5}
    prices |= {"p_from": 2e-10, "p_from_latency": 3e-5, "p_base_fixed": 1e-6}
    for name in cache_aware.SATURATING:
        prices |= {f"p_{name}_b": 1.0, f"p_{name}_saturated": 8.0}
    times = []
    for each in (kernel, kernel.with_transfers()):
        counted = model.counted(each)
        values = {name: float(found.eval(counted)) for name, found in model.features.items()}
        times.append(float(model.string.compile()(prices, values)))
    assert times[0] == pytest.approx(1e-6)
    assert times[1] == pytest.approx(1e-6 + 8 * 2**20 * 1e-10 + 2e-5 + 4 * 2**20 * 2e-10 + 3e-5)


@pytest.mark.parametrize("is_large", [False, True])
def test_no_family_that_is_predicted_is_measured_for_the_fit(is_large: bool) -> None:
    chosen = recipe("cache-aware")

    def seconds_of(tags: object) -> float:
        return 1e-7 if is_large else 1.0

    measured = {word for tags in chosen.measurement_tags(seconds_of) for word in tags}
    judged = [tags[0] for tags in chosen.evaluation_tags(seconds_of)]
    assert set(judged) == {"random_expression", "sq_mod"}
    assert not measured & set(judged)
