"""Calibrations: fitted on times with a known truth, saved, loaded, damaged, and asked for predictions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import CalibrationError, FeatureError, FitError, KernelError
from perfmodel.modelling.calibration import calibration_called
from perfmodel.modelling.fitting import FitWarning
from perfmodel.modelling.prediction import PredictionWarning
from tests.conftest import SimulatedTime

TRUTH = {"p_launch": 6e-6, "p_load": 2e-13, "p_madd": 6e-14, "p_lmem": 1.2e-13}
LOAD, MADD = "f_mem_access_global_float32_load", "f_op_float32_madd"
LMEM, LAUNCH = "f_mem_access_local_float32", "f_sync_kernel_launch"
OVERLAP = f"""
overhead = p_launch * {LAUNCH}
gmem     = p_load * {LOAD}
onchip   = p_madd * {MADD} + p_lmem * {LMEM}
overhead + smooth_max(gmem, onchip, p_edge)
"""


def true_time(count: object) -> float:
    assert callable(count)
    onchip = TRUTH["p_madd"] * count(MADD) + TRUTH["p_lmem"] * count(LMEM)
    return float(TRUTH["p_launch"] * count(LAUNCH) + max(TRUTH["p_load"] * count(LOAD), onchip))


def simulated(kernel: pm.Kernel) -> float:
    return SimulatedTime(true_time).eval(kernel)


@pytest.fixture(scope="module")
def calibration() -> pm.Calibration:
    """Returns the overlap model, fitted to a simulated device that hides the smaller of memory and arithmetic
    completely."""
    output = SimulatedTime(true_time)
    collection = pm.KernelCollection(pm.ALL_GENERATORS)
    kernels = [
        *collection.generate_kernels(["matmul_sq", "tiled_prefetch:*", "n:256,512,768"]),
        *collection.generate_kernels(["throughput", "op:madd", "n:65536,262144", "m:2048,4096"]),
        *collection.generate_kernels(["global_copy", "loads:1,2", "n:1048576,4194304"]),
        *collection.generate_kernels(["launch", "groups:4,256"]),
    ]
    model = pm.Model("f_sim", OVERLAP, features={"f_sim": output})
    return model.fit(pm.measure(kernels, model))


@pytest.fixture
def matmuls() -> list[pm.Kernel]:
    return pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "tiled_prefetch:*", "n:2048"])


def test_the_fit_recovers_what_the_device_does(calibration: pm.Calibration) -> None:
    for name, value in TRUTH.items():
        assert calibration.parameters[name] == pytest.approx(value, rel=0.05), name


def test_predictions_hold_at_sizes_far_beyond_the_fit(calibration: pm.Calibration, matmuls: list[pm.Kernel]) -> None:
    sizes = np.array([[1024, 2048], [4096, 8192]])
    for kernel in matmuls:
        predicted = calibration.predict(kernel, n=sizes)
        expected = [simulated(kernel.at(n=int(n))) for n in sizes.ravel()]
        assert predicted.shape == (2, 2)
        np.testing.assert_allclose(predicted.ravel(), expected, rtol=0.03)


def test_one_array_call_equals_many_single_ones(calibration: pm.Calibration, matmuls: list[pm.Kernel]) -> None:
    sizes = [512, 1024, 1536]
    together, deviations = calibration.predict(matmuls[0], return_std=True, n=sizes)
    for i, n in enumerate(sizes):
        alone, deviation = calibration.predict(matmuls[0].at(n=n), return_std=True)
        assert alone.shape == ()
        assert float(alone) == pytest.approx(together[i], rel=1e-12)
        assert float(deviation) == pytest.approx(deviations[i], rel=1e-9)
        assert deviation >= 0


def test_the_deviation_covers_noise_in_the_measurements() -> None:
    """A one-parameter model t = p n, 10 % noise: each prediction's deviation is about 10 %, parameter and scatter."""
    random = np.random.default_rng(3)
    noise = iter(random.normal(1, 0.1, 40))
    output = SimulatedTime(lambda count: 1e-9 * count("f_work_items") * next(noise))
    kernels = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(
        ["launch", "groups:" + ",".join(str(4 * i) for i in range(1, 41))]
    )
    model = pm.Model("f_sim", "p_item * f_work_items", features={"f_sim": output})
    calibration = model.fit(pm.measure(kernels, model))
    seconds, deviation = calibration.predict(kernels[0], return_std=True, groups=4000)
    assert 0.05 < float(deviation / seconds) < 0.2


def test_explain_names_the_bottleneck_and_what_hides_behind_it(
    calibration: pm.Calibration, matmuls: list[pm.Kernel]
) -> None:
    prefetch, direct = (calibration.explain(kernel) for kernel in matmuls)
    assert prefetch.bottleneck == "onchip"
    assert direct.bottleneck == "gmem"
    for explanation in (prefetch, direct):
        assert sum(cost.share for cost in explanation.costs) == pytest.approx(1)
        shares = {cost.name: cost.share for cost in explanation.costs}
        hidden = "gmem" if explanation is prefetch else "onchip"
        assert shares[hidden] < 0.01
        assert explanation.terms[hidden] > 0.01 * explanation.seconds
        assert explanation.seconds == pytest.approx(
            sum(explanation.terms[t] for t in ("overhead", explanation.bottleneck)), rel=0.01
        )
    assert prefetch.extrapolation["f_mem_access_local_float32"] == pytest.approx((2048 / 768) ** 3, rel=0.01)
    assert "limited by onchip" in str(prefetch)


def test_rank_orders_the_variants(calibration: pm.Calibration, matmuls: list[pm.Kernel]) -> None:
    table = calibration.rank(matmuls, n=1024).to_frame()
    times = [simulated(kernel.at(n=1024)) for kernel in matmuls]
    assert list(table["variant"]) == [matmuls[i].variant for i in np.argsort(times)]
    assert table["times_best"].iloc[0] == 1
    assert table["sizes"].iloc[0] == {"n": 1024}
    with pytest.raises(KernelError, match="no kernel to rank"):
        calibration.rank([])


def test_saved_and_loaded_it_predicts_the_same(
    calibration: pm.Calibration, matmuls: list[pm.Kernel], tmp_path: Path
) -> None:
    features = {"f_sim": SimulatedTime(true_time)}
    calibration.save(tmp_path / "cal.json")
    loaded = pm.Calibration.load(tmp_path / "cal.json", features)
    before, after = (c.predict(matmuls[0], n=[512, 4096], return_std=True) for c in (calibration, loaded))
    np.testing.assert_array_equal(before, after)
    assert loaded.rows == calibration.rows
    assert loaded.units == calibration.units
    assert str(loaded) == str(calibration)


def test_it_predicts_without_any_opencl_driver(tmp_path: Path, calibration: pm.Calibration) -> None:
    content = json.loads(_saved(calibration, tmp_path).read_text())
    content["model"]["output"] = "f_cl_wall_time"
    (tmp_path / "cal.json").write_text(json.dumps(content))
    (tmp_path / "no_drivers").mkdir()
    program = """
import sys, perfmodel as pm
knl, = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "n:1024"])
print(float(pm.Calibration.load(sys.argv[1]).predict(knl)))
"""
    environment = {**os.environ, "OCL_ICD_VENDORS": str(tmp_path / "no_drivers")}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "cal.json")],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) > 0


def _saved(calibration: pm.Calibration, folder: Path) -> Path:
    calibration.save(folder / "cal.json")
    return folder / "cal.json"


@pytest.mark.parametrize(
    ("damage", "words"),
    {
        "truncated": (lambda text: text[: len(text) // 2], "is damaged"),
        "not json": (lambda text: "x" + text, "is damaged"),
        "something else": (lambda text: '{"a": 1}', "is not a calibration"),
        "a list": (lambda text: "[]", "is not a calibration"),
        "newer": (lambda text: text.replace('"version": 1', '"version": 9'), "format version 9"),
        "no parameters": (lambda text: text.replace('"parameters"', '"parametres"'), "is damaged"),
        "parameter is text": (lambda text: text.replace('"p_launch": ', '"p_launch": "x", "p_x": '), "is damaged"),
        "infinite": (lambda text: text.replace('"residual_std": ', '"residual_std": Infinity, "x": '), "is damaged"),
        "covariance of another size": (
            lambda text: text.replace('"covariance": [', '"covariance": [[1.0],'),
            "is damaged",
        ),
        "binary": (lambda text: "\x00\x01", "is damaged"),
    }.values(),
)
def test_damaged_files_are_refused_in_one_sentence(
    damage: object, words: str, calibration: pm.Calibration, tmp_path: Path
) -> None:
    assert callable(damage)
    path = _saved(calibration, tmp_path)
    path.write_text(damage(path.read_text()))
    with pytest.raises(CalibrationError, match=words) as caught:
        pm.Calibration.load(path, {"f_sim": SimulatedTime(true_time)})
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_model_whose_parameters_are_not_those_saved_is_damaged(calibration: pm.Calibration, tmp_path: Path) -> None:
    path = _saved(calibration, tmp_path)
    content = json.loads(path.read_text())
    content["model"]["expression"] = "p_other * f_work_items"
    path.write_text(json.dumps(content))
    with pytest.raises(CalibrationError, match="p_other"):
        pm.Calibration.load(path, {"f_sim": SimulatedTime(true_time)})


def test_a_calibration_by_features_of_ones_own_says_what_it_lacks(calibration: pm.Calibration, tmp_path: Path) -> None:
    calibration.save(tmp_path / "own.json")
    text = (tmp_path / "own.json").read_text()
    name = next(iter(calibration.model.features))
    (tmp_path / "own.json").write_text(text.replace(name, "f_of_my_own"))
    with pytest.raises(CalibrationError, match=r"own.json cannot be read, .* \(--load FILE\): no feature family knows"):
        pm.Calibration.load(tmp_path / "own.json")


def test_missing_and_unwritable_files(calibration: pm.Calibration, tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="cannot be read"):
        pm.Calibration.load(tmp_path / "none.json")
    with pytest.raises(CalibrationError, match="cannot be written"):
        calibration.save(tmp_path / "no" / "folder" / "cal.json")


def test_a_failed_save_keeps_the_old_file(calibration: pm.Calibration, tmp_path: Path) -> None:
    path = _saved(calibration, tmp_path)
    before = path.read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["cal.json"]
    calibration.save(path)
    assert path.read_text() == before


def test_flagged_rows_stay_out_of_the_fit_and_are_listed(tmp_path: Path) -> None:
    output = SimulatedTime(lambda count: 1e-9 * count("f_work_items"))
    model = pm.Model("f_sim", "p_item * f_work_items", features={"f_sim": output})
    table = pm.measure(pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["launch", "groups:4,16,64,256"]), model)
    table.loc[table.index[0], "f_sim"] = 1.0
    table["flags"] = [("noisy",), *table["flags"].iloc[1:]]
    calibration = model.fit(table)
    assert calibration.parameters["p_item"] == pytest.approx(1e-9)
    assert [row.flags for row in calibration.rows if row.predicted_s is None] == [("noisy",)]
    assert "left out: launch" in str(calibration)


def test_where_most_times_are_restless_all_take_part_with_a_warning() -> None:
    output = SimulatedTime(lambda count: 1e-9 * count("f_work_items"))
    model = pm.Model("f_sim", "p_item * f_work_items", features={"f_sim": output})
    table = pm.measure(pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["launch", "groups:4,16,64,256"]), model)
    table["flags"] = [("noisy",), ("disturbed",), ("noisy", "near-launch-overhead"), ()]
    with pytest.warns(FitWarning, match="2 of 4 times are noisy or disturbed"):
        calibration = model.fit(table)
    assert [row.flags for row in calibration.left_out] == [("noisy", "near-launch-overhead")]


@pytest.mark.parametrize(("value", "words"), [(np.nan, "nan"), (0.0, "0"), (-1.0, "-1"), (np.inf, "inf")])
def test_times_that_mean_nothing_are_refused_by_name(value: float, words: str) -> None:
    output = SimulatedTime(lambda count: 1e-9 * count("f_work_items"))
    model = pm.Model("f_sim", "p_item * f_work_items", features={"f_sim": output})
    table = pm.measure(pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["launch", "groups:4,16,64,256"]), model)
    table.loc[table.index[1], "f_sim"] = value
    with pytest.raises(FitError) as caught:
        model.fit(table)
    assert str(table.index[1]) in str(caught.value)
    assert words in str(caught.value)


def test_residuals_of_another_name_and_columns_of_words_are_refused(
    calibration: pm.Calibration, matmuls: list[pm.Kernel]
) -> None:
    table = pm.measure(matmuls, calibration.model)
    with pytest.raises(FitError, match="no residuals 'log'; give 'relative', 'absolute', 'logarithmic'"):
        calibration.model.fit(table, residuals="log")
    column = next(iter(calibration.model.columns.values()))
    with pytest.raises(FitError, match="has values that are no numbers; measure the kernels again"):
        calibration.model.fit(table.assign(**{column: "many"}))


def test_a_table_of_another_model_is_refused() -> None:
    output = SimulatedTime(lambda count: 1e-9 * count("f_work_items"))
    kernels = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["launch", "groups:4,16,64,256"])
    table = pm.measure(kernels, pm.Model("f_sim", "p_item * f_work_items", features={"f_sim": output}))
    with pytest.raises(FitError, match="no column 'f_thread_groups'"):
        pm.Model("f_sim", "p_group * f_thread_groups", features={"f_sim": output}).fit(table)
    table["flags"] = [("failed: no memory",)] * len(table)
    with pytest.raises(FitError, match="none of the 4 measurements can be used"):
        pm.Model("f_sim", "p_item * f_work_items", features={"f_sim": output}).fit(table)


def test_rows_of_one_label_keep_their_own_values() -> None:
    """Two kernels of one name and size, of which the second is left out."""
    output = SimulatedTime(lambda count: 1e-9 * count("f_work_items"))
    model = pm.Model("f_sim", "p_item * f_work_items", features={"f_sim": output})
    table = pm.measure(pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["launch", "groups:4,16,64,256"]), model)
    table.index = ["same"] * len(table)
    table["flags"] = [(), ("noisy",), (), ()]
    calibration = model.fit(table)
    assert [row.predicted_s is None for row in calibration.rows] == [False, True, False, False]
    for row in calibration.rows:
        assert row.predicted_s is None or row.predicted_s == pytest.approx(row.measured_s)


def test_a_table_survives_a_file(tmp_path: Path) -> None:
    import pandas as pd

    output = SimulatedTime(lambda count: 1e-9 * count("f_work_items"))
    model = pm.Model("f_sim", "p_item * f_work_items", features={"f_sim": output})
    table = pm.measure(pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["launch", "groups:4,16,64,256"]), model)
    table["flags"] = [(), ("noisy", "disturbed"), (), ()]
    table.to_csv(tmp_path / "table.csv")
    again = model.fit(pd.read_csv(tmp_path / "table.csv", index_col=0))
    assert [row.flags for row in again.left_out] == [("noisy", "disturbed")]
    with pytest.raises(FitError, match="a dict is no feature table"):
        model.fit({})
    table["f_sim"] = table["f_sim"].astype(str)
    with pytest.raises(FitError, match="which is no number"):
        model.fit(table)


def test_calibrations_compare_by_value(calibration: pm.Calibration, tmp_path: Path) -> None:
    calibration.save(tmp_path / "cal.json")
    features = {"f_sim": calibration.model.output}
    loaded = pm.Calibration.load(tmp_path / "cal.json", features)
    assert loaded == calibration
    assert hash(loaded) == hash(calibration)


def test_sizes_that_no_kernel_has_are_refused_in_a_ranking(
    calibration: pm.Calibration, matmuls: list[pm.Kernel]
) -> None:
    with pytest.raises(KernelError, match="no kernel has a size 'N'"):
        calibration.rank(matmuls, N=512)
    with pytest.raises(KernelError, match="one number for each size"):
        calibration.rank(matmuls, n=[512, 1024])  # type: ignore[arg-type]


def test_work_that_the_model_does_not_count_is_said(calibration: pm.Calibration) -> None:
    (double,) = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["matmul_sq", "dtype:float64", "n:512"])
    with pytest.warns(PredictionWarning, match="does nothing that the model counts as work"):
        calibration.predict(double)


@pytest.mark.parametrize("result", [None, "many", [1.0, 2.0], True])
def test_a_feature_that_gives_no_number_is_named(result: object) -> None:
    class Odd:
        def eval(self, knl: pm.Kernel) -> float:
            return result  # type: ignore[return-value]

    model = pm.Model("f_cl_wall_time", "p_a * f_odd", features={"f_odd": Odd()})
    with pytest.raises(FeatureError, match=r"feature 'f_odd' \(Odd\) gives .* for Kernel\(launch"):
        pm.measure(pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["launch", "groups:4"]), model, device="cpu")


def test_sizes_that_do_not_broadcast_are_named(calibration: pm.Calibration) -> None:
    (kernel,) = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["throughput", "n:256", "m:64"])
    with pytest.raises(KernelError, match=r"do not go together: n has \(2,\), m has \(3,\)"):
        calibration.predict(kernel, n=[256, 512], m=[8, 16, 24])


def test_shipped_calibrations_predict_at_once(collection: pm.KernelCollection) -> None:
    shipped = pm.Calibration.shipped("unified-plus", device="NVIDIA H200")
    (kernel,) = collection.generate_kernels(["matmul_sq", "n:1024"])
    seconds = shipped.predict(kernel, n=[1024, 2048])
    assert seconds.shape == (2,)
    assert 6 < seconds[1] / seconds[0] < 9
    assert shipped.explain(kernel).bottleneck == "l1"


def test_a_shipped_calibration_is_found_by_name_key_or_kind() -> None:
    of_cpu = pm.Calibration.shipped("unified-plus", device="cpu")
    assert of_cpu.device["kind"] == "cpu"
    assert of_cpu == pm.Calibration.shipped("unified-plus", device="AMD EPYC")
    of_gpu = pm.Calibration.shipped("unified-plus", device="nvidia-h200-e38dd1")
    assert of_gpu == pm.Calibration.shipped("unified-plus", device="gpu") != of_cpu


def test_without_a_model_the_default_of_the_device_is_taken() -> None:
    of_gpu = pm.Calibration.shipped(device="H200")
    assert of_gpu == pm.Calibration.shipped("gpu", device="H200") == calibration_called("@h200")
    of_cpu = pm.Calibration.shipped(device="intel-xeon")
    assert of_cpu == pm.Calibration.shipped("cpu", device="Intel(R) Xeon(R) Processor")
    with pytest.raises(CalibrationError, match=r"no calibration for 'MI300' is shipped.*'perfmodel reproduce gpu'"):
        calibration_called("@MI300")
    with pytest.raises(
        CalibrationError, match=r"a calibration is of one device; name it, as in cpu@intel-xeon.*, gpu@nvidia"
    ):
        pm.Calibration.shipped("gpu")
    with pytest.raises(CalibrationError, match="a calibration is of one device"):
        calibration_called("@")


def test_what_is_shipped_predicts_the_same_without_its_measurements(calibration: pm.Calibration) -> None:
    (kernel,) = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["throughput", "n:256", "m:64"])
    shipped = calibration.to_ship()
    assert calibration.rows
    assert not shipped.rows
    assert shipped.predict(kernel, return_std=True) == calibration.predict(kernel, return_std=True)
    assert f"{len(calibration.rows)} measurements" in str(shipped)


@pytest.mark.parametrize(("model", "device"), [("unified-pluss", "H200"), ("unified-plus", "MI300")])
def test_what_is_not_shipped_is_said(model: str, device: str) -> None:
    with pytest.raises(CalibrationError, match=f"no calibration of '{model}' for '{device}' is shipped") as caught:
        pm.Calibration.shipped(model, device=device)
    assert "unified-plus@nvidia-h200-e38dd1" in str(caught.value)
    assert ("did you mean 'unified-plus'" in str(caught.value)) == (model == "unified-pluss")
    assert "pluss'" not in str(caught.value).partition("perfmodel reproduce")[2]


def test_a_model_whose_name_begins_like_anothers_is_told_apart() -> None:
    assert len(pm.Calibration.shipped("unified", device="H200").parameters) > 50


@pytest.mark.parametrize("value", [-1.0, -1e-30])
def test_a_file_with_a_price_below_zero_is_damaged(value: float, tmp_path: Path) -> None:
    shipped = pm.Calibration.shipped("gpu", device="H200")
    edited = shipped.as_json()
    edited["parameters"]["p_f32"] = value
    (tmp_path / "edited.json").write_text(json.dumps(edited))
    words = rf"edited\.json is damaged \(p_f32 is {value:g}, less than nothing\); calibrate again or restore the file"
    with pytest.raises(CalibrationError, match=words):
        pm.Calibration.load(tmp_path / "edited.json")
    del edited["nonnegative"]  # as in files of an earlier perfmodel, which did not keep what the fit was told
    (tmp_path / "edited.json").write_text(json.dumps(edited))
    assert pm.Calibration.load(tmp_path / "edited.json").parameters["p_f32"] == value


def test_prices_may_be_negative_where_the_fit_or_a_declaration_lets_them(tmp_path: Path) -> None:
    output = SimulatedTime(lambda count: 1e-3 - 1e-9 * count("f_work_items"))
    kernels = pm.KernelCollection(pm.ALL_GENERATORS).generate_kernels(["launch", "groups:4,8,16,32,64"])
    features: dict[str, Any] = {"f_sim": output}
    free = pm.Model("f_sim", "p_launch + p_item * f_work_items", features=features)
    declared = pm.Model("f_sim", free.string.written, features=features, parameters={"p_item": (-1, None)})
    tied = pm.Model("f_sim", free.string.written, features=features, parameters={"p_item": "-1e-6 * p_launch"})
    table = pm.measure(kernels, free)
    fits = [free.fit(table, nonnegative=False), declared.fit(table), tied.fit(table)]
    assert [fit.nonnegative for fit in fits] == [False, True, True]
    for fit in fits:
        assert fit.parameters["p_item"] < 0
        fit.save(tmp_path / "saved.json")
        assert pm.Calibration.load(tmp_path / "saved.json", features) == fit


def test_a_calibration_that_comes_along_was_fitted_freely(tmp_path: Path) -> None:
    shipped = pm.Calibration.shipped("unified", device="H200")
    assert min(shipped.parameters.values()) < 0
    shipped.save(tmp_path / "saved.json")
    (file,) = (Path(__file__).parents[2] / "models").glob("unified@nvidia-h200*.json")
    (tmp_path / "copied.json").write_bytes(file.read_bytes())
    for name in ("saved.json", "copied.json"):
        assert pm.Calibration.load(tmp_path / name) == shipped
