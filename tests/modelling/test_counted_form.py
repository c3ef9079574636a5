"""Compares predictions by machine code, where it is known, with those by the source."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.kernels.arguments import Argument, Array, Scalar
from perfmodel.kernels.driver_code import TARGET, intel_processor
from perfmodel.kernels.opencl_program import OpenCLProgram

SOURCE = """__kernel void sums(__global float *a, __global const float *b, int n) {
    size_t i = get_global_id(0);
    float s = 0;
    for (int j = 0; j < n; j++)
        s += b[j] * a[i];
    a[i] = s;
}"""


@pytest.fixture(scope="module")
def here() -> pm.Calibration:
    if intel_processor() is None:
        pytest.skip("Intel's driver for processors is not here")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pm.Calibration.shipped(device="cpu")


def sums(n: int = 256) -> pm.Kernel:
    arguments: list[Argument] = [
        Array("a", "float32", 65536, is_output=True),
        Array("b", "float32", "n"),
        Scalar("n", "int32"),
    ]
    return pm.Kernel(OpenCLProgram(SOURCE, "sums", 65536, 64, arguments), {}, None, n=n)


def test_this_machine_s_processor_is_predicted_by_machine_code(here: pm.Calibration) -> None:
    by_code, by_source = here.predict(sums()), here.predict(sums().as_compiled())
    assert by_code != by_source
    assert by_code == here.predict(sums().as_core_code())


def test_a_few_sizes_are_predicted_one_by_one_and_many_by_their_source(here: pm.Calibration) -> None:
    few, many = np.arange(1, 5) * 64, np.arange(1, 33) * 64
    one_by_one = [float(here.predict(sums(int(n)))) for n in few]
    assert np.allclose(here.predict(sums(), n=few), one_by_one)
    assert np.allclose(here.predict(sums(), n=many), here.predict(sums().as_compiled(), n=many))


def test_processors_that_are_not_here_are_predicted_by_the_source(here: pm.Calibration) -> None:
    other = pm.Calibration.shipped(device="intel-xeon-processor-0b3c4a")
    if other.device["name"] == here.device["name"]:
        pytest.skip("it is here")
    assert other.predict(sums()) == other.predict(sums().as_compiled())


def test_code_for_another_processor_is_asked_for(here: pm.Calibration, monkeypatch: pytest.MonkeyPatch) -> None:
    other = pm.Calibration.shipped(device="xeon_platinum_8480")
    monkeypatch.setenv(TARGET, "skx")
    assert other.predict(sums()) == other.predict(sums().as_core_code()) != other.predict(sums().as_compiled())


def test_what_no_family_had_by_its_source_has_a_price_as_machine_code(here: pm.Calibration) -> None:
    source = "kernel void f(global int *a, uint m) { size_t i = get_global_id(0); a[i] = a[i] / m + a[i % m]; }"
    kernel = pm.Kernel.from_opencl(source, "f", 65536, 64, {"a": 65536}, m=1000)
    compiled, ranges = kernel.as_compiled(), here.ranges.items()
    unseen = [name for name, (_, high) in ranges if high == 0 and pm.feature(name).eval(compiled) > 0]
    assert unseen
    low, high = (float(end) for end in here.interval(kernel))
    assert high < 10 * low
    assert here.explain(kernel).trust.unpriced == ()


def generated() -> pm.Kernel:
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    (kernel,) = collection.generate_kernels(["scale_add", "dtype:float32", "stride:1", "lsize_0:256", "n:1048576"])[:1]
    return kernel


def test_kernels_of_generators_are_predicted_by_this_machine_s_code_too(here: pm.Calibration) -> None:
    kernel = generated()
    assert here.predict(kernel) == here.predict(kernel.as_core_code()) != here.predict(kernel.as_compiled())


def test_kernels_of_generators_are_predicted_for_gpus_as_fits_count_them() -> None:
    gpu, kernel = pm.Calibration.shipped(device="h200"), generated()
    assert gpu.predict(kernel) == gpu.predict(kernel.as_compiled())


@pytest.mark.parametrize(("device", "is_by_code"), [("v100", True), ("mi100", False)])
def test_gpus_known_by_specification_are_predicted_by_code_where_it_is_nvidia_s(device: str, is_by_code: bool) -> None:
    gpu = pm.Calibration.shipped(device=device)
    by_code, by_source = (gpu.predict(form) for form in (sums().as_machine_code(), sums().as_compiled()))
    assert by_code != by_source
    assert gpu.predict(sums()) == (by_code if is_by_code else by_source)


def test_fits_that_saw_no_machine_code_predict_by_the_source(here: pm.Calibration) -> None:
    ranges = {name: (0.0, 0.0) if name.startswith("f_core_") else ends for name, ends in here.ranges.items()}
    other = replace(here, ranges=ranges)
    assert other.predict(sums()) == other.predict(sums().as_compiled())
