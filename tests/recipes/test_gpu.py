"""The model of any kernel on a GPU: its sets, and what is shipped of it."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.device import Device
from perfmodel.models import gpu
from perfmodel.models.unified import LABELS
from perfmodel.recipes.recipe import recipe

SQ_MOD = """
kernel void sq_mod(global float *matrix, global float *res, unsigned int m, unsigned int n) {
    size_t current_pos = get_global_id(0);
    unsigned int current_row = current_pos / n;
    unsigned int current_col = current_pos % n;
    res[current_pos] = matrix[current_row * n + current_col] * matrix[current_row * n + current_col]
                     - matrix[current_col];
}
"""


@pytest.mark.parametrize("is_large", [False, True])
def test_no_kernel_that_is_predicted_is_measured_for_the_fit(is_large: bool, collection: pm.KernelCollection) -> None:
    chosen = recipe("gpu")

    def seconds_of(tags: object) -> float:
        return 1e-7 if is_large else 1.0

    measured = {tags[0] for tags in chosen.measurement_tags(seconds_of)}
    judged = {tags[0] for tags in chosen.evaluation_tags(seconds_of)}
    assert judged == {"random_expression", "sq_mod", *LABELS}
    assert measured & judged == {"matmul"}
    shapes = [
        {word for tags in chosen_tags if tags[0] == "matmul" for word in tags if word.startswith("shape:")}
        for chosen_tags in (chosen.measurement_tags(seconds_of), chosen.evaluation_tags(seconds_of))
    ]
    assert shapes[1] == {"shape:skinny"}
    assert not any("skinny" in word for word in shapes[0])


def test_memory_is_no_faster_than_its_specification() -> None:
    shipped = pm.Calibration.shipped("gpu", device="H200")
    bounds = recipe("gpu").fit_options("gpu", Device.from_fingerprint(shipped.device))["parameters"]["p_dram"]
    assert bounds == {"min": pytest.approx(1 / 4.8e12)}
    assert shipped.parameters["p_dram"] >= bounds["min"]
    unknown = Device.from_fingerprint({**shipped.device, "name": "another"})
    assert "p_dram" not in recipe("gpu").fit_options("gpu", unknown)["parameters"]


def test_shipped_predicts_from_source() -> None:
    calibration = pm.Calibration.shipped("gpu", device="H200")
    size = 4096 * 4096
    extents = {"matrix": size, "res": size}
    kernel = pm.Kernel.from_opencl(SQ_MOD, "sq_mod", "m * n", 256, extents, m=4096, n=4096)
    assert 3e-5 < float(calibration.predict(kernel)) < 1.2e-4  # by its machine code
    kernel = kernel.as_compiled()
    explained = calibration.explain(kernel)
    assert explained.seconds == pytest.approx(float(calibration.predict(kernel)))
    # 60 us measured on an H200 (docs/gpu-model.md); the copies of 64 MiB there and back take much longer.
    assert 3e-5 < explained.seconds < 1.2e-4
    assert float(calibration.predict(kernel.with_transfers())) > 50 * explained.seconds
    items = {item.parameter: item for item in explained.items}
    assert items["p_launch"].number == pytest.approx(1)
    assert items["p_i64_div"].seconds > 0
    assert "cost type" in str(explained)


def test_every_term_and_parameter_has_a_meaning_and_the_shipped_calibration_has_the_same() -> None:
    said = recipe("gpu").meanings["gpu"]
    model = pm.Model("f_cl_wall_time", gpu.MODEL, meanings=said)
    assert set(said) == {*model.string.terms, *model.parameters}
    shipped = pm.Calibration.shipped("gpu", device="H200")
    assert shipped.model.meanings == model.meanings, "run python docs/parameter_table.py"


@pytest.mark.parametrize(
    ("tags", "words", "advice"),
    [
        (
            "column_sum result:sum lsize_0:256 n:2048 m:512",
            "one after another: 32 in each work-item",
            "several independent loads",
        ),
        ("local_access direction:load lstride_0:8 n:262144 m:64", "7.9 times the cycles", "padded by one element"),
        ("transpose access:strided_writes n:4096", "16 times the lines", "neighbouring work-items that store"),
        ("atomic_update counters:1 place:hashed n:1048576 m:4", "131 k of them", "combined in local memory"),
        ("private_array start:hashed access:load words:64 m:256 n:262144", "256 bytes", "stay in registers"),
        ("launch groups:16384", "16.4 k work-groups, 256 work-items", "larger work-groups"),
        ("throughput op:pow n:262144 m:128", "100 % of that time for powers", "native_powr"),
        ("throughput dtype:float64 op:madd n:262144 m:128", "double-precision operations", "single precision"),
    ],
)
def test_explanations_name_the_mechanism(collection: pm.KernelCollection, tags: str, words: str, advice: str) -> None:
    (kernel,) = collection.generate_kernels(tags.split())
    found = pm.Calibration.shipped("gpu", device="H200").explain(kernel).mechanism
    assert found is not None
    assert words in found.state
    assert advice in found.advice


def test_loads_of_different_rows_are_named_as_what_they_are() -> None:
    """A sub-group's loads that go to 32 lines each are what limits the sums of rows, and not the few stores."""
    source = """kernel void sums(global const float *a, global float *out, int n) {
        int row = get_global_id(0);
        float sum = 0;
        for (int k = 0; k < n; k++) sum += a[row * n + k];
        out[row] = sum;
    }"""
    sums = pm.Kernel.from_opencl(source, "sums", "n", 128, {"a": "n*n", "out": "n"}, n=4096)
    found = pm.Calibration.shipped("gpu", device="H200").explain(sums).mechanism
    assert found is not None
    assert (found.cost, found.price) == ("l1", "p_l1_global")
    assert found.advice == "neighbouring work-items that load neighbouring elements would help"


def test_arrays_of_sizes_give_what_each_size_gives() -> None:
    calibration = pm.Calibration.shipped("gpu", device="H200")
    source = """__kernel void add(__global float *c, __global const float *a, const int n)
{
    const int i = get_global_id(0);
    if (i < n) c[i] = a[i] + 1.0f;
}"""
    kernel = pm.Kernel.from_opencl(source, "add", "(n + 255) // 256 * 256", 256, {"c": "n", "a": "n"}).as_compiled()
    sizes = np.array([1, 255, 256, 257, 10**6, 2**26])
    many = np.concatenate([np.resize(sizes, 40000), sizes])
    together = calibration.predict(kernel, n=many)[-len(sizes) :]
    alone = [float(calibration.predict(kernel, n=int(n))) for n in sizes]
    assert together == pytest.approx(alone)
