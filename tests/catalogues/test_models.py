"""The catalogue's recipes: what they measure, and what they keep from the fit."""

from __future__ import annotations

import pytest

import perfmodel as pm
from perfmodel.kernels.kernel import Kernel
from perfmodel.recipes.recipe import Recipe, TagFilter, recipe

PERFLEX = [f"perflex-{computation}{plus}" for computation in ("matmul", "dg", "fd") for plus in ("", "-plus")]
# Seconds of the kernel that tells a device that wants small sizes.
SMALL, LARGE = 1.0, 1e-6


def both_sets(chosen: Recipe, probe: float, collection: pm.KernelCollection) -> tuple[list[Kernel], list[Kernel]]:
    def generated(filters: list[TagFilter]) -> list[Kernel]:
        return [kernel for tags in filters for kernel in collection.generate_kernels(tags)]

    return (
        generated(list(chosen.measurement_tags(lambda tags: probe))),
        generated(list(chosen.evaluation_tags(lambda tags: probe))),
    )


@pytest.mark.parametrize("probe", [SMALL, LARGE])
@pytest.mark.parametrize("name", PERFLEX)
def test_perflex_recipes_measure_no_whole_kernel_that_they_predict(
    name: str, probe: float, collection: pm.KernelCollection
) -> None:
    measured, predicted = both_sets(recipe(name), probe, collection)
    families = {kernel.name for kernel in predicted}
    own = [kernel for kernel in measured if kernel.name in families]
    assert own
    assert all("kept" in kernel.tags for kernel in own)
    # The content has the name, so that only kernels of the same name can be alike.
    assert not {kernel.program.content for kernel in own} & {kernel.program.content for kernel in predicted}
    labels = {recipe(name).label(kernel) for kernel in predicted}
    assert labels >= {label for errors in recipe(name).published.values() for label in errors}
    for label in labels:
        assert len({str(kernel.sizes) for kernel in predicted if recipe(name).label(kernel) == label}) >= 4


@pytest.mark.parametrize("name", [name for name in PERFLEX if not name.endswith("-plus")])
def test_published_models_price_every_access_of_their_kernels(name: str, collection: pm.KernelCollection) -> None:
    """Each global access falls under exactly one of the patterns that the linear model has a parameter for."""
    chosen = recipe(name)
    model = pm.Model("f_cl_wall_time", chosen.models["linear"])
    patterns = [feature for name, feature in model.features.items() if name.startswith("f_mem_access_global")]
    everything = pm.feature("f_mem_access_global")
    _, predicted = both_sets(chosen, SMALL, collection)
    for kernel in predicted:
        assert sum(pattern.eval(kernel) for pattern in patterns) == everything.eval(kernel)
