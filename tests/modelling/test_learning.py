"""Calibrations that learn from measured times, against times of known parameters."""

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import CalibrationError

SHIPPED = pm.Calibration.shipped("gpu", device="H200")
SOURCE = """__kernel void work(__global const float *x, __global float *y, const int m, const float a)
{
    const int i = get_global_id(0);
    float s = x[i];
    for (int k = 0; k < m; k++) { s = s * a + LOADED; }
    y[i] = s;
}"""
SIZES = [(2**16, 1), (2**20, 1), (2**24, 1), (2**20, 256), (2**22, 1024), (2**12, 4096)]


def kernels(loaded: str = "1.0f") -> list[pm.Kernel]:
    return [
        pm.Kernel.from_opencl(SOURCE, "work", n, 256, {"x": f"{n}", "y": f"{n}"}, [f"-DLOADED={loaded}"], m=m, a=0.5)
        for n, m in SIZES
    ]


def errors(calibration: pm.Calibration, truth: pm.Calibration, these: list[pm.Kernel]) -> np.ndarray:
    return np.array([abs(np.log(float(calibration.predict(k)) / float(truth.predict(k)))) for k in these])


def test_a_few_times_make_predictions_of_other_kernels_better() -> None:
    """A device that is a third slower than its specification says, and twice as slow in memory."""
    there = SHIPPED.on("rtx_3090")
    slower = {name: value * (1.35 if name.startswith("p_") else 1) for name, value in there.parameters.items()}
    fixed = {name: there.parameters[name] for name in ("p_units", "p_chip", "p_overlap", "p_cache")}
    truth = SHIPPED.on("rtx_3090")
    truth.parameters.update(slower | fixed | {"p_dram": 2 * there.parameters["p_dram"]})
    seen, unseen = kernels()[:5], [*kernels()[5:], *kernels("x[(i+k)&1023]")]
    learned = there.update(seen, [float(truth.predict(kernel)) for kernel in seen])
    assert errors(learned, truth, seen).mean() < 0.5 * errors(there, truth, seen).mean()
    assert errors(learned, truth, unseen).mean() < 0.7 * errors(there, truth, unseen).mean()
    assert [row.flags for row in learned.rows] == [("learned",)] * 5
    one_by_one = there
    for kernel in seen:
        one_by_one = one_by_one.update(kernel, float(truth.predict(kernel)))
    assert errors(one_by_one, truth, seen).mean() < 0.6 * errors(there, truth, seen).mean()
    assert len(one_by_one.rows) == 5


def test_uncertainty_falls_with_what_is_learned() -> None:
    there, kernel = SHIPPED.on("rtx_3090"), kernels()[3]
    learned = there.update(kernel, float(there.predict(kernel)))
    low, high = there.interval(kernel)
    nearer = learned.interval(kernel)
    assert low < nearer[0] < nearer[1] < high
    assert learned.parameters == pytest.approx(there.parameters)


def test_a_parameter_of_next_to_nothing_does_no_harm() -> None:
    kernel, there = kernels()[3], pm.Calibration.shipped("gpu", device="H200")
    place = list(there.parameters).index("p_f32")
    there.parameters["p_f32"] = 1e-54
    there.covariance[place, place] = 1e-24
    learned = there
    for _ in range(3):
        learned = learned.update([kernel, kernel], [1.1 * float(there.predict(kernel))] * 2)
    assert np.all(np.linalg.eigvalsh(learned.covariance / np.abs(learned.covariance).max()) > -1e-9)
    assert learned.parameters["p_f32"] < 1e-50
    assert float(learned.predict(kernel)) == pytest.approx(1.1 * float(there.predict(kernel)), rel=0.1)


def test_a_calibration_of_many_times_learns_little_from_one() -> None:
    kernel = kernels()[3]
    before = float(SHIPPED.predict(kernel))
    after = float(SHIPPED.update(kernel, 2 * before).predict(kernel))
    assert before < after < 1.5 * before


def test_learned_calibrations_are_saved(tmp_path: pytest.TempPathFactory) -> None:
    kernel = kernels()[1]
    learned = SHIPPED.on("v100").update(kernel, 1e-4)
    learned.save(f"{tmp_path}/v100.json")
    assert pm.Calibration.load(f"{tmp_path}/v100.json") == learned


@pytest.mark.parametrize("seconds", [0.0, -1.0, np.nan, np.inf, [1e-3, 1e-3], []])
def test_times_are_checked(seconds: object) -> None:
    with pytest.raises(CalibrationError, match=r"positive number of seconds|give one for each"):
        SHIPPED.update(kernels()[0], seconds)  # type: ignore[arg-type]
