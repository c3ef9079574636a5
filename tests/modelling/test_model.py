"""Models: declared, checked, printed."""

from __future__ import annotations

import pytest

import perfmodel as pm
from perfmodel.basics.errors import FeatureError, ModelStringError
from perfmodel.modelling.units import parameter_units

SLIDES = "p_madd * f_op_float32_madd + p_mem * f_mem_access_global_float32_load_lstrides:{0:1;1:16}_ratio:<2"


def test_the_slides_model_is_read() -> None:
    model = pm.Model("f_cl_wall_time_nvidia_geforce", SLIDES)
    assert model.parameters == ("p_madd", "p_mem")
    assert list(model.features) == [
        "f_op_float32_madd",
        "f_mem_access_global_float32_load_lstrides:{0:1;1:16}_ratio:<2",
    ]
    assert model.is_linear


def test_an_unknown_feature_is_shown_in_its_place() -> None:
    with pytest.raises(ModelStringError) as caught:
        pm.Model("f_cl_wall_time", "overhead = p_l * f_sync_kernel_launch\noverhead + p_m * f_op_float32_mad")
    assert caught.value.line == 2
    assert "'mad'" in str(caught.value)
    assert "'madd'" in str(caught.value)
    lines = str(caught.value).splitlines()
    assert lines[-2][lines[-1].index("^") :].startswith("mad")


def test_a_time_can_only_be_an_output() -> None:
    with pytest.raises(ModelStringError, match="can be the output of a model, not an input"):
        pm.Model("f_cl_wall_time", "p_a * f_cl_wall_time")


def test_an_output_must_be_a_feature() -> None:
    with pytest.raises(FeatureError, match="no feature family knows 'f_clwalltime'"):
        pm.Model("f_clwalltime", "p_a * f_thread_groups")


class InnerProducts:
    """A custom feature: any object with eval(knl)."""

    def eval(self, knl: pm.Kernel) -> float:
        return float(knl.sizes["n"] ** 2)


def test_a_custom_feature_is_any_object_with_eval() -> None:
    model = pm.Model("f_cl_wall_time", "p_dot * f_inner_products", features={"f_inner_products": InnerProducts()})
    (kernel,) = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "n:64"])
    assert model.features["f_inner_products"].eval(kernel) == 64**2


def test_a_feature_that_is_given_must_be_used() -> None:
    with pytest.raises(FeatureError, match="'f_inner_products' is given but not used"):
        pm.Model("f_cl_wall_time", "p_a * f_thread_groups", features={"f_inner_products": InnerProducts()})


def test_latex_names_the_terms() -> None:
    model = pm.Model("f_cl_wall_time", "gmem = p_a * f_thread_groups\nsmooth_max(gmem, p_b * f_work_items, p_edge)")
    assert "gmem" in model.latex
    assert model._repr_latex_().startswith("$")


@pytest.mark.parametrize(
    ("expression", "units"),
    {
        "linear": (SLIDES, {"p_madd": "s/operation", "p_mem": "s/access"}),
        "overlap": (
            "a = p_l * f_sync_kernel_launch\nsmooth_max(a, p_g * f_thread_groups, p_edge)",
            {"p_l": "s/launch", "p_g": "s/work-group", "p_edge": "1/s"},
        ),
        "norm": ("overlap(p_a * f_work_items, p_b, p_n)", {"p_a": "s/work-item", "p_b": "s", "p_n": ""}),
        "shared": ("p_a * (f_op_float32_add + f_op_float32_mul)", {"p_a": "s/operation"}),
        "mixed": ("p_a * (f_op_float32_add + f_thread_groups)", {"p_a": ""}),
        "product of parameters": ("p_a * p_b * f_work_items", {"p_a": "", "p_b": ""}),
        "inside a function": ("f_work_items * exp(p_a)", {"p_a": ""}),
    }.values(),
)
def test_units_follow_from_the_features(expression: str, units: dict[str, str]) -> None:
    model = pm.Model("f_cl_wall_time", expression)
    assert parameter_units(model.string, model.features) == units
