"""Baselines: the roofline against values computed by hand, the forest's promises, and life without scikit-learn."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import loopy as lp
import numpy as np
import pytest

import perfmodel as pm
from perfmodel.modelling.baselines import RandomForest, Roofline, fit_baselines
from perfmodel.modelling.predictor import Predictor


def elementwise(instruction: str, name: str) -> pm.Kernel:
    """Returns a kernel over float32 arrays of n elements, one work-item each, in groups of 128."""
    program = lp.make_kernel(
        "{[i]: 0 <= i < n}",
        instruction,
        [lp.GlobalArg("a, b, out", np.float32, shape=lp.auto), lp.ValueArg("n", np.int32)],
        name=name,
        assumptions="n >= 1 and n mod 128 = 0",
        lang_version=(2018, 2),
    )
    return pm.Kernel(lp.split_iname(program, "i", 128, outer_tag="g.0", inner_tag="l.0"))


@pytest.fixture(scope="module")
def add() -> pm.Kernel:
    """Returns a kernel of 12 bytes and an addition an element."""
    return elementwise("out[i] = a[i] + b[i]", "add")


@pytest.fixture(scope="module")
def divide() -> pm.Kernel:
    """Returns a kernel of 8 bytes and a division an element."""
    return elementwise("out[i] = a[i] / a[i]", "divide")


@pytest.fixture(scope="module")
def both() -> pm.Kernel:
    """Returns a kernel of 12 bytes, an addition and a division an element."""
    return elementwise("out[i] = a[i] / b[i] + b[i]", "both")


@pytest.fixture(scope="module")
def gather() -> pm.Kernel:
    """Returns a kernel whose data decide which bytes it reads."""
    program = lp.make_kernel(
        "{[i]: 0 <= i < n}",
        "out[i] = a[index[i]]",
        [
            lp.GlobalArg("a", np.float32, shape=("n",)),
            lp.GlobalArg("out", np.float32, shape=("n",)),
            lp.GlobalArg("index", np.int32, shape=("n",)),
            lp.ValueArg("n", np.int32),
        ],
        name="gather",
        assumptions="n >= 1 and n mod 128 = 0",
        lang_version=(2018, 2),
    )
    return pm.Kernel(lp.split_iname(program, "i", 128, outer_tag="g.0", inner_tag="l.0"))


def seconds(predictor: Predictor, *kernels: pm.Kernel) -> list[float | None]:
    return [estimate.seconds for estimate in predictor.predict(kernels)]


def test_a_roofline_is_a_launch_and_the_slowest_resource(add: pm.Kernel, divide: pm.Kernel, both: pm.Kernel) -> None:
    n = 128_000
    roofline = Roofline.fit([add.at(n=n), divide.at(n=n), add.at(n=128)], [1e-3, 4e-3, 1e-5])
    # Highest rates: 12 n bytes, n additions and n / 128 groups in 1 ms; n divisions in 4 ms.
    assert roofline.launch_s == 1e-5
    assert roofline.peaks == pytest.approx(
        {
            "distinct global bytes": 12 * n / 1e-3,
            "work-groups": 1000 / 1e-3,
            "float32 add": n / 1e-3,
            "float32 div": n / 4e-3,
        }
    )
    found = seconds(roofline, add.at(n=2 * n), divide.at(n=2 * n), both.at(n=2 * n))
    # Operations share one resource: two additions' time and two divisions' together; memory alone would take 2 ms.
    assert found == pytest.approx([1e-5 + 2e-3, 1e-5 + 8e-3, 1e-5 + 10e-3])


def test_a_roofline_takes_memory_where_that_is_slower(add: pm.Kernel, divide: pm.Kernel) -> None:
    roofline = Roofline.fit([add.at(n=1280), divide.at(n=12800)], [1e-3, 1e-3])
    # 12800 * 8 bytes a millisecond at best, and 100 groups; 1280 additions.
    assert seconds(roofline, add.at(n=12800)) == pytest.approx([1e-3 + 10e-3])
    assert seconds(roofline, divide.at(n=25600)) == pytest.approx([1e-3 + 2e-3])


def test_local_accesses_are_a_resource(collection: pm.KernelCollection) -> None:
    (tiled,) = collection.generate_kernels(["matmul_sq", "tiled_prefetch:True", "n:64"])
    roofline = Roofline.fit([tiled], [1e-3])
    accesses = pm.feature("f_mem_access_local").eval(tiled)
    assert roofline.peaks["local accesses"] == pytest.approx(accesses / 1e-3)
    # Local accesses, operations and work-items grow with n to the third power.
    assert seconds(roofline, tiled.at(n=128)) == pytest.approx([1e-3 + 8e-3])


def test_kernels_that_cannot_be_counted_are_left_out(add: pm.Kernel, gather: pm.Kernel) -> None:
    n = 12800
    roofline = Roofline.fit([add.at(n=n), gather.at(n=n)], [1e-3, 1e-6])
    assert roofline.peaks["work-groups"] == pytest.approx(100 / 1e-3)
    assert seconds(roofline, gather.at(n=n), add.at(n=n)) == [None, pytest.approx(1e-6 + 1e-3)]


def test_operations_that_were_never_measured_cost_nothing(add: pm.Kernel, both: pm.Kernel) -> None:
    roofline = Roofline.fit([add.at(n=1280)], [1e-3])
    assert seconds(roofline, both.at(n=1280)) == pytest.approx([1e-3 + 1e-3])
    assert any(line.startswith("float32 add") and line.endswith("/s") for line in roofline.parameter_lines())


def measured(kernel: pm.Kernel, sizes: Sequence[int]) -> tuple[list[pm.Kernel], list[float]]:
    return [kernel.at(n=n) for n in sizes], [1e-9 * n for n in sizes]


def test_a_forest_is_the_same_every_time_and_stays_within_what_it_saw(add: pm.Kernel) -> None:
    kernels, times = measured(add, [128 * 2**k for k in range(12)])
    features = {"f_thread_groups": pm.feature("f_thread_groups")}
    first, again = (RandomForest.fit(kernels, times, features) for _ in range(2))
    unseen = [add.at(n=128 * n) for n in (1, 3, 700, 10**6)]
    assert first.predict(unseen) == again.predict(unseen)
    predicted = np.array(seconds(first, *unseen), dtype=float)
    assert (np.diff(predicted) >= 0).all()
    assert times[0] <= predicted.min() <= predicted.max() <= times[-1]
    assert predicted[1] == pytest.approx(3 * times[0], rel=0.5)
    assert first.predict([]) == []
    assert first.parameter_lines() == ["300 trees, 8 features, 12 measurements"]


def test_a_forest_sees_the_models_features_and_the_totals(add: pm.Kernel, divide: pm.Kernel) -> None:
    """All totals of the two kernels are equal but one access; what the model sees apart, so does the forest."""
    kernels = [k.at(n=128 * 2**i) for i in range(6) for k in (add, divide)]
    times = [1e-6 * (1 if kernel.name == "add" else 50) for kernel in kernels]
    forest = RandomForest.fit(kernels, times, {"f_op_float32_div": pm.feature("f_op_float32_div")})
    assert {"f_op_float32_div", "f_op", "f_thread_groups"} <= set(forest.features)
    short, long = seconds(forest, add.at(n=128 * 24), divide.at(n=128 * 24))
    assert short is not None
    assert long is not None
    assert short < 2e-6 < 25e-6 < long


def test_without_scikit_learn_there_is_a_roofline_and_a_hint(add: pm.Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels, times = measured(add, [128, 256])
    assert [p.name for p in fit_baselines(kernels, times, {})[0]] == ["roofline", "random-forest"]
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    found, notes = fit_baselines(kernels, times, {})
    assert [predictor.name for predictor in found] == ["roofline"]
    assert len(notes) == 1
    assert "pip install perfmodel[baselines]" in notes[0]
