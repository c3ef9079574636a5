"""Prediction intervals: they hold what they promise on families that no fit has seen, and say when they can't."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import CalibrationError, PerfmodelError
from perfmodel.expression import parse
from perfmodel.modelling.fitting import fit
from perfmodel.modelling.intervals import HeldOutErrors, between, held_out_errors, left_out_errors, sensitivities
from tests.conftest import SimulatedTime

Columns = dict[str, np.ndarray]
MODEL = parse("p_a * f_x + p_b * f_y")
TRUTH = {"p_a": 2e-9, "p_b": 7e-9}


def families(count: int, of_each: int, spread: float, noise: float, seed: int) -> tuple[Columns, np.ndarray, list[str]]:
    """Returns kernels whose times differ from the model's by what is common to a family, and by noise."""
    random = np.random.default_rng(seed)
    total = count * of_each
    columns = {"f_x": 10 ** random.uniform(4, 7, total), "f_y": 10 ** random.uniform(4, 7, total)}
    own = np.repeat(random.standard_normal(count) * spread, of_each)
    times = (TRUTH["p_a"] * columns["f_x"] + TRUTH["p_b"] * columns["f_y"]) * np.exp(
        own + noise * random.standard_normal(total)
    )
    return columns, times, [f"family {i // of_each}" for i in range(total)]


def of_families(columns: Columns, times: np.ndarray, names: list[str]) -> tuple[HeldOutErrors, dict[str, float]]:
    result = fit(MODEL, columns, times, residuals="logarithmic")
    options = {"parameters": {}, "nonnegative": True, "residuals": "logarithmic"}
    found = left_out_errors(MODEL, columns, times, names, [""] * len(names), result.parameters, **options)
    errors = held_out_errors(found)
    assert errors is not None
    return errors, result.parameters


@pytest.mark.parametrize(("spread", "noise"), [(0.1, 0.02), (0.02, 0.1), (0.3, 0.1)])
def test_they_cover_what_they_promise_of_other_families(spread: float, noise: float) -> None:
    """Calibrated on 24 families, 200 times of 40 others; the mean of eight such experiments."""
    covered: dict[float, list[float]] = {0.68: [], 0.9: []}
    for seed in range(8):
        errors, parameters = of_families(*families(24, 8, spread, noise, seed))
        columns, times, _ = families(40, 5, spread, noise, 1000 + seed)
        seconds = MODEL.compile()(parameters, columns)
        scale = errors.scale(sensitivities(MODEL, parameters, columns, len(times)))
        for level, shares in covered.items():
            low, high = between(seconds, scale, errors.quantile, level)
            shares.append(float(np.mean((low <= times) & (times <= high))))
    assert {level: np.mean(shares) for level, shares in covered.items()} == pytest.approx(
        {level: level for level in covered}, abs=0.06
    )


def test_errors_of_one_family_are_known_to_be_alike() -> None:
    alike, _ = of_families(*families(24, 8, 0.3, 0.02, 1))
    unlike, _ = of_families(*families(24, 8, 0.0, 0.3, 1))
    assert alike.shared > 0.9
    assert unlike.shared < 0.2


def test_a_kernel_unlike_all_others_is_far_away() -> None:
    """One half of what was measured is f_x, and never more than a tenth f_y; then comes a kernel that is all f_y."""
    columns, times, names = families(8, 6, 0.05, 0.02, 2)
    columns["f_y"] = columns["f_x"] * 0.01
    times = TRUTH["p_a"] * columns["f_x"] + TRUTH["p_b"] * columns["f_y"]
    errors, parameters = of_families(columns, times, names)
    near, far = (
        errors.neighbourhood.distance(sensitivities(MODEL, parameters, other, 1))[0]
        for other in (
            {"f_x": np.array([1e5]), "f_y": np.array([1e3])},
            {"f_x": np.array([1.0]), "f_y": np.array([1e5])},
        )
    )
    assert near < 0.01
    assert far > 0.2


def test_kernels_like_those_that_were_hard_to_predict_have_wider_intervals() -> None:
    """Families whose time is all f_x are a factor of 1.5 off, those that are all f_y by a hundredth."""
    columns, times, names = families(40, 6, 0.01, 0.005, 3)
    hard = np.array([int(name.split()[1]) % 2 == 0 for name in names])
    random = np.random.default_rng(4)
    columns["f_x"], columns["f_y"] = columns["f_x"] * hard, columns["f_y"] * ~hard
    off = np.exp(np.repeat(0.4 * random.choice([-1, 1], 40), 6) * hard)
    times = (TRUTH["p_a"] * columns["f_x"] + TRUTH["p_b"] * columns["f_y"]) * off
    errors, parameters = of_families(columns, times, names)
    widths = []
    for x, y in ((1e5, 0.0), (0.0, 1e5)):
        kernel = {"f_x": np.array([x]), "f_y": np.array([y])}
        seconds = MODEL.compile()(parameters, kernel)
        scale = errors.scale(sensitivities(MODEL, parameters, kernel, 1))
        low, high = between(seconds, scale, errors.quantile, 0.9)
        widths.append(float(np.log(high / low)[0]))
    assert widths[0] > 0.7
    assert widths[1] < widths[0] / 5


@pytest.fixture(scope="module")
def calibration() -> pm.Calibration:
    """Returns a calibration of several families, with times that a formula gives, and an error of each family."""
    wrong = {"matmul_sq": 1.1, "throughput": 0.9, "global_copy": 1.2, "launch": 1.0, "transpose": 0.8}

    class Time(SimulatedTime):
        def eval(self, knl: pm.Kernel) -> float:
            return super().eval(knl) * wrong[knl.name]

    time = Time(
        lambda count: 5e-6 + 2e-13 * count("f_mem_access_global_float32_load") + 6e-14 * count("f_op_float32_madd")
    )
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    kernels = [
        *collection.generate_kernels(["matmul_sq", "tiled_prefetch:*", "n:256,512,768"]),
        *collection.generate_kernels(["throughput", "op:madd", "n:65536,262144", "m:2048,4096"]),
        *collection.generate_kernels(["global_copy", "loads:1,2", "n:1048576,4194304"]),
        *collection.generate_kernels(["transpose", "access:*", "n:1024,2048"]),
        *collection.generate_kernels(["launch", "groups:4,256"]),
    ]
    model = pm.Model(
        "f_sim",
        "p_launch*f_sync_kernel_launch + p_load*f_mem_access_global_float32_load"
        " + p_madd*(f_op_float32_madd + f_op_float64_madd)"
        " + p_local*f_mem_access_local_float64",
        features={"f_sim": time},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(pm.measure(kernels, model))


@pytest.fixture(scope="module")
def product() -> pm.Kernel:
    kernels = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "tiled_prefetch:True", "n:1024"])
    return kernels[0]


def test_an_interval_holds_the_prediction_and_grows_with_its_level(
    calibration: pm.Calibration, product: pm.Kernel
) -> None:
    sizes = np.array([[256, 512], [1024, 2048]])
    seconds = calibration.predict(product, n=sizes)
    widths = []
    for level in (0.5, 0.68, 0.9, 0.99):
        low, high = calibration.interval(product, level, n=sizes)
        assert low.shape == high.shape == sizes.shape
        assert np.all((low > 0) & (low < high))
        widths.append(high / low)
    assert np.all(np.diff(widths, axis=0) > 0)
    low, high = calibration.interval(product, n=sizes)
    np.testing.assert_array_equal(high / low, widths[2])
    assert np.all((low < 1.25 * seconds) & (0.75 * seconds < high))


def test_the_standard_deviation_is_half_of_the_68_per_cent_interval(
    calibration: pm.Calibration, product: pm.Kernel
) -> None:
    low, high = calibration.interval(product, 0.6827)
    assert calibration.predict(product, return_std=True)[1] == pytest.approx(float(high - low) / 2)


@pytest.mark.parametrize("level", [0, 1, 90, -0.5, math.nan, "much", True])
def test_a_level_is_a_probability(level: object, calibration: pm.Calibration, product: pm.Kernel) -> None:
    with pytest.raises(PerfmodelError, match="is no probability; give one between 0 and 1"):
        calibration.interval(product, level)  # type: ignore[arg-type]


def test_what_has_no_price_may_take_any_time(calibration: pm.Calibration) -> None:
    kernels = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "dtype:float64", "n:256"])
    (kernel,) = [each for each in kernels if pm.feature("f_mem_access_local_float64").eval(each) > 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        low, high = calibration.interval(kernel)
        explained = calibration.explain(kernel)
    assert low > 0
    assert math.isinf(high)
    assert "no known limit" in str(explained)
    assert json.loads(json.dumps(explained.as_json(), allow_nan=False))["interval"][1] is None


def test_what_no_measurement_had_is_priced_by_what_shares_its_parameter(calibration: pm.Calibration) -> None:
    """No kernel with multiply-adds in double precision was measured, but they share the price of the others."""
    kernels = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(
        ["matmul_sq", "dtype:float64", "tiled_prefetch:False", "n:256"]
    )
    assert calibration.ranges["f_op_float64_madd"] == (0, 0)
    explained = calibration.explain(kernels[0])
    assert explained.seconds > 256**3 * calibration.parameters["p_madd"]
    assert math.isfinite(explained.interval[1])
    assert explained.trust.unpriced == ()


def test_a_calibration_that_knows_nothing_of_its_errors_says_so(
    calibration: pm.Calibration, product: pm.Kernel
) -> None:
    blind = replace(calibration, held_out=None, residual_std=math.nan)
    assert tuple(map(float, blind.interval(product))) == (0, math.inf)
    assert np.isnan(blind.predict(product, return_std=True)[1])
    assert "nan" not in str(blind.explain(product))
    assert np.isnan(blind.rank([product, product.at(n=64)]).to_frame()["probability_first"]).all()


def test_saved_and_loaded_they_are_the_same(calibration: pm.Calibration, product: pm.Kernel, tmp_path: Path) -> None:
    calibration.save(tmp_path / "cal.json")
    loaded = pm.Calibration.load(tmp_path / "cal.json", {"f_sim": SimulatedTime(lambda count: 1.0)})
    assert loaded.held_out == replace(calibration.held_out, neighbourhood=loaded.held_out.neighbourhood)  # type: ignore[type-var, union-attr]
    np.testing.assert_array_equal(
        loaded.interval(product, 0.9, n=[64, 4096]), calibration.interval(product, 0.9, n=[64, 4096])
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scores", []),
        ("scores", [2.0, 1.0]),
        ("scores", [0.0, 1e400]),
        ("usual", -1.0),
        ("counts", [1.0]),
        ("errors", [-1.0]),
        ("elasticities", [[1.0]]),
        ("elasticities", []),
        ("covered", {}),
    ],
)
def test_damaged_errors_are_refused(field: str, value: object, calibration: pm.Calibration, tmp_path: Path) -> None:
    path = tmp_path / "cal.json"
    calibration.save(path)
    content = json.loads(path.read_text())
    content["held_out_errors"][field] = value
    path.write_text(json.dumps(content))
    with pytest.raises(CalibrationError, match="is damaged"):
        pm.Calibration.load(path, {"f_sim": SimulatedTime(lambda count: 1.0)})


def test_a_calibration_of_an_earlier_perfmodel_has_what_its_fit_left(
    calibration: pm.Calibration, product: pm.Kernel, tmp_path: Path
) -> None:
    path = tmp_path / "cal.json"
    calibration.save(path)
    content = json.loads(path.read_text())
    del content["held_out_errors"], content["marks"]
    path.write_text(json.dumps(content))
    loaded = pm.Calibration.load(path, {"f_sim": SimulatedTime(lambda count: 1.0)})
    low, high = loaded.interval(product, 0.6827)
    assert math.log(high / low) / 2 >= 0.99 * calibration.residual_std


def test_ranking_says_how_sure_the_first_is_and_which_are_equal(
    calibration: pm.Calibration, product: pm.Kernel
) -> None:
    table = calibration.rank([product.at(n=n) for n in (512, 512, 528, 4096)]).to_frame()
    assert table["place"].tolist() == [1, 1, 3, 4]
    probabilities = table["probability_first"]
    assert probabilities.sum() == pytest.approx(1)
    assert probabilities[0] == pytest.approx(probabilities[1], abs=0.05)
    assert probabilities[1] > probabilities[2] > probabilities[3]
    assert probabilities[3] < 0.01


def test_a_model_without_features_has_intervals(product: pm.Kernel) -> None:
    """The time is the same for all kernels, but for what the model does not know."""
    kernels = [product.at(n=n) for n in (64, 128, 192, 256, 320, 384)]
    time = SimulatedTime(lambda count: 1e-3 * (1 + 0.1 * (count("f_work_items") % 5)))
    model = pm.Model("f_sim", "p_time", features={"f_sim": time})
    calibration = model.fit(pm.measure(kernels, model))
    low, high = calibration.interval(product)
    assert low < calibration.parameters["p_time"] < high
