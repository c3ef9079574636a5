"""Model strings as estimators: clones, pipelines, cross-validation and searches of scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import perfmodel as pm
from perfmodel.basics.errors import FitError, ModelStringError

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from perfmodel.modelling.estimator import ModelRegressor

MADD, LOAD, LAUNCH = "f_op_float32_madd", "f_mem_access_global_float32_load", "f_sync_kernel_launch"
LINEAR = f"p_launch * {LAUNCH} + p_madd * {MADD} + p_load * {LOAD}"


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    madds, loads = (10 ** random.uniform(4, 9, 60) for _ in range(2))
    seconds = 5e-6 + 1e-11 * madds + 4e-11 * loads
    columns = {MADD: madds, LOAD: loads, LAUNCH: np.ones(60), "other": random.uniform(size=60)}
    return pd.DataFrame({**columns, "f_cl_wall_time": seconds * random.normal(1, 0.01, 60)})


def test_it_fits_as_the_model_does_and_predicts(table: pd.DataFrame) -> None:
    model = pm.Model("f_cl_wall_time", LINEAR)
    fitted = ModelRegressor(LINEAR).fit(table, table["f_cl_wall_time"])
    assert fitted.parameters_ == model.fit(table).parameters
    assert fitted.parameters_["p_madd"] == pytest.approx(1e-11, rel=0.05)
    expected = sum(
        fitted.parameters_[p] * table[f] for p, f in (("p_launch", LAUNCH), ("p_madd", MADD), ("p_load", LOAD))
    )
    np.testing.assert_allclose(fitted.predict(table), expected)
    errors = np.abs(expected - table["f_cl_wall_time"]) / table["f_cl_wall_time"]
    assert fitted.score(table, table["f_cl_wall_time"]) == pytest.approx(-errors.mean())
    assert list(fitted.feature_names_in_) == [LAUNCH, MADD, LOAD]


def test_an_array_has_the_columns_of_the_features_in_their_order(table: pd.DataFrame) -> None:
    array = table[[LAUNCH, MADD, LOAD]].to_numpy()
    of_array = ModelRegressor(LINEAR).fit(array, table["f_cl_wall_time"].to_numpy())
    of_frame = ModelRegressor(LINEAR).fit(table, table["f_cl_wall_time"])
    assert of_array.parameters_ == of_frame.parameters_
    np.testing.assert_array_equal(of_array.predict(array), of_frame.predict(table))


def test_a_clone_is_unfitted_and_equal(table: pd.DataFrame) -> None:
    fitted = ModelRegressor(LINEAR, residuals="logarithmic", parameters={"p_launch": (1e-6, 1e-5)})
    fitted.fit(table, table["f_cl_wall_time"])
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(table)


def test_cross_validation_by_groups_in_a_pipeline(table: pd.DataFrame) -> None:
    doubled = make_pipeline(FunctionTransformer(lambda frame: frame * [1, 2, 1]), ModelRegressor(LINEAR))
    frame, times = table[[LAUNCH, MADD, LOAD]], table["f_cl_wall_time"]
    groups = np.arange(len(table)) % 6
    scores = cross_val_score(doubled, frame, times, cv=GroupKFold(3), groups=groups)
    assert len(scores) == 3
    assert (scores > -0.03).all()


def test_a_search_over_model_strings_finds_the_better_one(table: pd.DataFrame) -> None:
    strings = [f"p_madd * {MADD}", LINEAR, f"p_launch * {LAUNCH} + p_load * {LOAD}"]
    search = GridSearchCV(ModelRegressor(), {"expression": strings}, cv=3)
    search.fit(table, table["f_cl_wall_time"])
    assert search.best_params_ == {"expression": LINEAR}
    assert search.best_score_ > -0.03


def test_errors_are_sentences(table: pd.DataFrame) -> None:
    times = table["f_cl_wall_time"]
    with pytest.raises(FitError, match=f"the table has no column {LOAD}; measure with the model that names them"):
        ModelRegressor(LINEAR).fit(table.drop(columns=LOAD), times)
    with pytest.raises(FitError, match=r"the array has the shape \(60, 2\); give a column for each of f_sync"):
        ModelRegressor(LINEAR).fit(table[[MADD, LOAD]].to_numpy(), times)
    with pytest.raises(FitError, match=r"times have the shape \(59,\)"):
        ModelRegressor(LINEAR).fit(table, times[1:])
    with pytest.raises(ModelStringError):
        ModelRegressor("p_madd * ").fit(table, times)
