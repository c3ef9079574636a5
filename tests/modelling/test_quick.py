"""Predictions of single sizes, which are recorded, and those of arrays: both are what the ordinary way gives."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import perfmodel as pm
from perfmodel.basics.errors import KernelError
from perfmodel.counting.counts import KernelCounts
from perfmodel.modelling.prediction import PredictionWarning, predict
from perfmodel.vocabulary.feature_name import parse_name
from perfmodel.vocabulary.named_features import CountedFeature
from tests.opencl_c.test_families import FAMILIES

SIZES = np.array([1, 2, 5, 13, 40])
STEPS = (1, 16, 256, 512)
ADD = """__kernel void add(__global float *c, __global const float *a, const int n)
{
    const int i = get_global_id(0);
    if (i < n) c[3 * i] = a[n * i];
}"""


@cache
def shipped(model: str) -> pm.Calibration:
    return pm.Calibration.shipped(model, device="H200")


@pytest.fixture(params=["unified-plus", "gpu"])
def calibration(request: pytest.FixtureRequest) -> pm.Calibration:
    return shipped(request.param)


def growing(kernel: pm.Kernel) -> tuple[str, np.ndarray] | None:
    """Returns a size of the kernel with the first values that it may have; None for a kernel that has none."""
    for name in sorted(kernel.sizes, key=lambda each: -kernel.sizes[each]):
        for step in STEPS:
            try:
                kernel.bind({name: SIZES * step})
            except KernelError:
                continue
            return name, SIZES * step
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("calibration", "family"),
    [*(("gpu", family) for family in FAMILIES), *(("unified-plus", family) for family in FAMILIES[::4])],
    indirect=["calibration"],
)
def test_single_sizes_and_arrays_are_predicted_alike(family: str, calibration: pm.Calibration) -> None:
    kernel = next(iter(pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels([family])))
    found = growing(kernel)
    given: list[dict[str, Any]] = [{}] if found is None else [{found[0]: int(size)} for size in found[1]]
    ordinary = [float(predict(calibration, kernel, sizes).seconds) for sizes in given]
    assert [float(calibration.predict(kernel, **sizes)) for sizes in given] == ordinary
    assert [float(calibration.predict(kernel, **sizes)) for sizes in given] == ordinary, "predicted again"
    if found is not None:
        array: dict[str, Any] = {found[0]: found[1]}
        assert calibration.predict(kernel, **array).tolist() == ordinary


def kernel_of_source(**sizes: Any) -> pm.Kernel:
    return pm.Kernel.from_opencl(ADD, "add", "(n + 63) // 64 * 64", 64, {"c": "3 * n", "a": "n * n"}, **sizes)


def test_sizes_far_beyond_are_predicted_alike(calibration: pm.Calibration) -> None:
    kernel = kernel_of_source()
    for n in (1, 63, 64, 65, 2**20 + 1, 2**27 + 3, 2**30 - 1):
        ordinary = calibration.predict(kernel, return_std=True, n=n)[0]
        assert float(calibration.predict(kernel, n=n)) == float(ordinary), n
        assert float(calibration.predict(kernel, n=[n])[0]) == float(ordinary), n


def test_sizes_are_checked_after_a_first_prediction(calibration: pm.Calibration) -> None:
    kernel = next(iter(pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_tiled"])))
    calibration.predict(kernel, n=1024)
    for wrong, said in ((1000, "assumes"), (-16, "negative"), (0.5, "whole number"), (0, "assumes|empty")):
        with pytest.raises(KernelError, match=said):
            calibration.predict(kernel, n=wrong)
    with pytest.raises(KernelError, match="no size 'm'"):
        calibration.predict(kernel, m=1024)
    with pytest.raises(KernelError, match="needs a value for n"):
        calibration.predict(kernel_of_source())
    with pytest.raises(KernelError, match="empty"):
        calibration.predict(kernel_of_source(), n=0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("family", "free", "varied"),
    [("fast_walsh", "n", "step"), ("floyd_warshall", "n", "k"), ("sq_mod", "n", "m"), ("atomic_update", "n", "m")],
)
def test_counts_known_only_by_numbers_are_those_of_the_sizes_at_hand(
    family: str, free: str, varied: str, calibration: pm.Calibration
) -> None:
    """Such a size stays as it was for a while, then changes, comes back, and changes together with the other."""
    kernel = next(iter(pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels([family])))
    large = [4096, 8192, 4096]
    steps = [(n, v) for v in (2, 4) for n in large] + [(8192, 2), (4096, 8)]
    given: list[dict[str, Any]] = [{free: n, varied: v} for n, v in steps]
    ordinary = [float(predict(calibration, kernel, sizes).seconds) for sizes in given]
    assert [float(calibration.predict(kernel, **sizes)) for sizes in given] == ordinary
    assert len(set(ordinary)) >= len(set(large))
    arrays: dict[str, Any] = {name: [sizes[name] for sizes in given] for name in (free, varied)}
    assert calibration.predict(kernel, **arrays).tolist() == ordinary


def test_other_parameters_give_other_predictions(calibration: pm.Calibration) -> None:
    kernel = kernel_of_source(n=4096)
    mine = pickle.loads(pickle.dumps(calibration))
    before = float(mine.predict(kernel))
    assert float(pickle.loads(pickle.dumps(mine)).predict(kernel)) == before
    for name in mine.parameters:
        mine.parameters[name] *= 2
    assert float(mine.predict(kernel)) == float(mine.predict(kernel, return_std=True)[0]) != before


def test_a_kernel_without_counted_work_is_told_of_every_time() -> None:
    model = pm.Model("f_cl_wall_time", "p_launch * f_sync_kernel_launch + p_double * f_op_float64_madd")
    kernel = kernel_of_source(n=4096)
    parameters = {"p_launch": 1e-6, "p_double": 1e-12}
    calibration = pm.Calibration(
        model=model,
        parameters=parameters,
        stderr=parameters,
        covariance=np.zeros((2, 2)),
        residual_std=0.1,
        ranges={},
        device=shipped("unified-plus").device,
        protocol={},
        rows=(),
        report="",
    )
    for _ in range(3):
        with pytest.warns(PredictionWarning, match="launch only"):
            assert float(calibration.predict(kernel)) == 1e-6


def test_a_feature_of_ones_own_is_asked_each_time() -> None:
    class Side:
        def eval(self, knl: pm.Kernel) -> float:
            return float(knl.sizes["n"] ** 0.5)

    model = pm.Model("f_cl_wall_time", "p_side * f_side", {"f_side": Side()})
    calibration = pm.Calibration(
        model=model,
        parameters={"p_side": 1.0},
        stderr={"p_side": 0.0},
        covariance=np.zeros((1, 1)),
        residual_std=0.1,
        ranges={},
        device=shipped("unified-plus").device,
        protocol={},
        rows=(),
        report="",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (16, 64, 16):
            assert float(calibration.predict(kernel_of_source(), n=n)) == n**0.5


class Unrecordable(CountedFeature):
    """A feature of one, by what is no arithmetic."""

    unit = "work-item"

    def values(self, counts: KernelCounts, sizes: Mapping[str, Any]) -> NDArray[np.float64]:
        return np.full_like(counts.work_items(sizes), 1.0)


def unrecordable(text: str) -> pm.Calibration:
    """Returns a calibration of one parameter whose model can't be recorded with all sizes open."""
    features = {"f_one": Unrecordable(parse_name("f_one"))}
    model = pm.Model("f_cl_wall_time", f"p_one * {text} * f_one + p_index * f_op_int32_add_index", features)
    device = shipped("unified-plus").device
    parameters = {"p_one": 1.0, "p_index": 0.0}
    return pm.Calibration(
        model=model,
        parameters=parameters,
        stderr={},
        covariance=np.zeros((2, 2)),
        residual_std=0.1,
        ranges={},
        device=device,
        protocol={},
        rows=(),
        report="",
    )


FOOTPRINT = "f_mem_footprint_global_load_granularity:workgroup_block:32"
HALVES = """__kernel void halves(__global float *b, __global const float *a, const int n, const int m)
{
    const int i = get_global_id(0);
    float sum = 0.0f;
    for (int j = 0; 2 * j < m; j++) sum += a[m * i + j];
    for (int k = 0; k < n * m; k++) sum = 0.5f * sum + 1.0f;
    b[i] = sum;
}"""


def test_arrays_whose_rows_are_numbers_are_predicted_by_counts_of_all_sizes() -> None:
    """All of each row is touched at the second m: rows of 4096 elements and one long row are the same there."""
    tags = ["access_pattern", "gstride_0:0", "loopstride:tile_0", "lsizes:16x16", "n:4096", "m:64"]
    (kernel,) = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(tags)
    calibration = unrecordable(FOOTPRINT)
    several = [float(calibration.predict(kernel.at(m=m))) for m in (64, 256, 16, 32)]
    assert several == calibration.predict(kernel, m=[64, 256, 16, 32]).tolist()


def test_counts_with_some_sizes_as_numbers_have_the_footprints_of_all_as_numbers() -> None:
    """Its second loop can't be counted with both sizes open."""
    kernel = pm.Kernel.from_opencl(HALVES, "halves", "n", 64, {"b": "n", "a": "n * m"}, n=256, m=64)
    calibration = unrecordable(FOOTPRINT)
    ordinary = [float(calibration.predict(kernel, return_std=True, m=m)[0]) for m in (64, 128, 256)]
    assert calibration.predict(kernel, m=[64, 128, 256]).tolist() == ordinary
    assert [float(calibration.predict(kernel, m=m)) for m in (64, 128, 256)] == ordinary
