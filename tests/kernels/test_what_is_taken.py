"""People may give several things as a kernel or a model, and sizes of any name."""

from __future__ import annotations

import pickle
from typing import Any

import loopy as lp
import numpy as np
import pandas as pd
import pytest

import perfmodel as pm
from perfmodel.basics.errors import FitError, KernelError, ModelStringError
from perfmodel.modelling.estimator import ModelRegressor

NAMES = (
    *("first", "second", "tags", "source", "name", "args", "self", "cls", "kernels", "confidence", "level"),
    *("program", "statistics", "arguments", "global_size", "local_size", "options", "folders", "assumptions"),
    *("calibration", "sizes", "features", "store", "device"),
)


@pytest.fixture(scope="module")
def calibration() -> pm.Calibration:
    return pm.Calibration.shipped("unified-plus", device="H200")


@pytest.fixture(scope="module")
def cheap() -> pm.Calibration:
    """Returns a calibration that asks for little of a kernel."""
    model = pm.Model("f_cl_wall_time", "p_launch + p_mul * f_op_float32_mul + p_group * f_thread_groups")
    sizes = [32, 64, 96, 192, 480, 1024]
    table = pd.DataFrame(
        {
            "f_cl_wall_time": [1e-5 + 1e-9 * n for n in sizes],
            "f_op_float32_mul": [float(n) for n in sizes],
            "f_thread_groups": [n / 32 + n % 7 for n in sizes],
        }
    )
    return model.fit(table)


def program(size: str = "n") -> Any:
    array = lp.GlobalArg("a", np.float32, shape=size)
    made = lp.make_kernel(
        f"{{[i]: 0 <= i < {size}}}", "a[i] = 2*a[i]", [array, lp.ValueArg(size, np.int32)], lang_version=(2018, 2)
    )
    return lp.split_iname(made, "i", 32, outer_tag="g.0", inner_tag="l.0")


def source(size: str) -> str:
    return f"__kernel void f(__global float *a, const int {size}) {{ a[get_global_id(0)] *= {size}; }}"


def test_a_loopy_program_is_taken_as_a_kernel(calibration: pm.Calibration) -> None:
    kernel = pm.Kernel(program(), n=98)
    assert calibration.predict(program(), n=98) == calibration.predict(kernel)
    assert calibration.explain(program(), n=98).seconds == calibration.explain(kernel).seconds
    assert calibration.compare(program(), kernel, n=98).ratio == 1
    assert len(calibration.rank([program(), kernel], n=98)) == len(calibration.rank(program(), n=98)) + 1
    assert pm.feature("f_thread_groups").eval(kernel) == 4
    with pytest.raises(KernelError, match="needs a value for n; give it as n=…"):
        pm.feature("f_thread_groups").eval(program())
    with pytest.raises(KernelError, match="needs a value for n"):
        pm.emulate(program())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([program(), program()], "takes one kernel and not 2; give one at a time, or compare them by rank"),
        ("kernel.cl", "'kernel.cl' is no Kernel; make one of OpenCL C by Kernel.from_opencl"),
        (None, "NoneType is not a kernel; give a Loopy program"),
        (3, "int is not a kernel"),
    ],
)
def test_what_is_no_kernel_is_said(given: Any, words: str, calibration: pm.Calibration) -> None:
    with pytest.raises(KernelError, match=words):
        calibration.predict(given, n=98)
    with pytest.raises(KernelError, match=words):
        calibration.explain(given, n=98)
    with pytest.raises(KernelError, match=words):
        pm.feature("f_thread_groups").eval(given)
    with pytest.raises(KernelError, match=words):
        pm.emulate(given)


NAMED = pm.Kernel(program(), n=98)
ANYTHING: Any = [0]
ELSE: Any = 1.5
COLLECTION = pm.KernelCollection(pm.ALL_GENERATORS)
MODEL = pm.Model("f_cl_wall_time", "p_a * f_thread_groups")
MISTAKEN: dict[str, tuple[Any, str]] = {
    "a device by number": (lambda: pm.Calibration.shipped(device=3), "3 does not name a device"),  # type: ignore
    "a feature by number": (lambda: pm.feature(3), "3 is no feature's name"),  # type: ignore[arg-type]
    "a list of features": (lambda: pm.feature(["f_op"]), "is no feature's name"),  # type: ignore[arg-type]
    "one generator": (lambda: pm.KernelCollection(pm.ALL_GENERATORS[0]), "is no list of generators"),  # type: ignore
    "an array without a name": (lambda: pm.emulate(NAMED, ANYTHING), "are not by name; give a dictionary"),
    "a group by a word": (lambda: pm.emulate(NAMED, groups=[0, ELSE]), "1.5 is no group's id"),
    "a seed below zero": (lambda: pm.emulate(NAMED, groups="sample", seed=-1), "seed=-1 begins no"),
    "tags by number": (lambda: COLLECTION.generate_kernels([*ANYTHING]), "are no tags; give a list of strings"),
    "no tags": (lambda: COLLECTION.generate_kernels(None), "None are no tags"),  # type: ignore[arg-type]
    "devices of a campaign as a text": (lambda: pm.Campaign([NAMED], "cpu"), "'cpu' are a text; give a list of them"),
    "a device of a measurement by number": (lambda: pm.measure(NAMED, MODEL, device=3), "3 names no device"),  # type: ignore
    "a protocol by number": (lambda: pm.measure(NAMED, MODEL, protocol=3), "no protocol 3"),  # type: ignore[arg-type]
    "a store of a measurement by number": (lambda: pm.measure(NAMED, MODEL, store=3), "3 is no path of a store"),  # type: ignore
    "a budget in words": (lambda: pm.measure(NAMED, MODEL, budget_s="1"), "a budget of '1' is none"),  # type: ignore
    "a store by number": (lambda: pm.Store(3), "3 is no path of a store"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", MISTAKEN)
def test_what_is_of_another_type_is_said(what: str) -> None:
    call, words = MISTAKEN[what]
    with pytest.raises(pm.PerfmodelError, match=words) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_a_parsed_model_string_is_taken_as_its_text() -> None:
    model = pm.Model("f_cl_wall_time", "p_a * f_thread_groups + p_b")
    assert pm.Model("f_cl_wall_time", model.string) == model
    features = np.array([[1.0], [2.0], [3.0], [4.0]])
    fitted = ModelRegressor(model.string).fit(features, [3.0, 5.0, 7.0, 9.0])
    assert fitted.parameters_ == pytest.approx({"p_a": 2.0, "p_b": 1.0})
    assert fitted.predict(features) == pytest.approx([3, 5, 7, 9])


@pytest.mark.parametrize("size", [None, 10**30])
def test_sizes_that_are_none_are_said_by_what_comes_along(size: Any) -> None:
    source = "kernel void f(global float *x, int n) { int i = get_global_id(0); if (i < n) x[i] += 1; }"
    kernel = pm.Kernel.from_opencl(source, "f", "(n + 255) // 256 * 256", 256, {"x": "n"}, n=1000)
    with pytest.raises(KernelError, match=r"^(size )?n=\w+ (is not|of kernel 'f' is not) a (whole )?number"):
        pm.Calibration.shipped(device="H200").predict(kernel, n=size)


@pytest.mark.parametrize("given", [None, 3, b"p_a", ["p_a"]])
def test_what_is_no_model_string_is_said(given: Any) -> None:
    with pytest.raises(ModelStringError, match="a model string is text, not"):
        pm.Model("f_cl_wall_time", given)
    with pytest.raises((ModelStringError, FitError), match="a model string is text, not"):
        ModelRegressor(given).fit([[1.0]], [1.0])


@pytest.mark.parametrize("name", NAMES)
def test_a_size_may_have_any_name(name: str, cheap: pm.Calibration) -> None:
    size: Any = {name: 64}
    loopy = pm.Kernel(program(name), **size)
    in_c = pm.Kernel.from_opencl(source(name), "f", name, 32, {"a": name}).at(**size)
    for kernel in (loopy, in_c, loopy.as_opencl(), in_c.with_transfers(), pickle.loads(pickle.dumps(loopy))):
        assert kernel.sizes == size
        assert cheap.predict(kernel, **size) == cheap.predict(kernel)
        assert cheap.explain(kernel, **size).sizes == size
        assert cheap.rank([kernel], **size)[0].kernel.sizes == size
        assert cheap.compare(kernel, kernel.at(**{name: 128}), **size).ratio == 1
        assert pm.feature("f_thread_groups").eval(kernel) == 2
        kernel.launch()
    assert pm.emulate(in_c).work_groups == 2
    assert in_c.as_observed().sizes == in_c.as_emulated().sizes == size


def test_a_size_may_be_called_kernel(cheap: pm.Calibration) -> None:
    kernel = pm.Kernel(program("kernel"), kernel=64)  # which OpenCL C itself has no variable called
    assert cheap.predict(kernel, kernel=64) == cheap.predict(kernel)


def test_tags_and_statistics_may_be_named() -> None:
    kernel = pm.Kernel(program(), tags={"generator": "doubling"}, n=64)
    assert (kernel.name, kernel.sizes) == ("doubling", {"n": 64})
