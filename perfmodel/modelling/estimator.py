"""A model as an estimator of scikit-learn, for its cross-validation, its searches and its pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfmodel.basics.errors import FitError
from perfmodel.expression import ModelString
from perfmodel.modelling.calibration import Model
from perfmodel.modelling.fitting import fit

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError:  # the name is at perfmodel's top level, and has to be there all the same

    class RegressorMixin:  # type: ignore[no-redef]
        """Takes the place of scikit-learn's."""

    class BaseEstimator:  # type: ignore[no-redef]
        """Takes the place of scikit-learn's, and says what is missing."""

        def __new__(cls, *_: Any, **__: Any) -> Any:
            raise FitError("estimators need scikit-learn; `pip install 'perfmodel[baselines]'`")


class ModelRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Fits a model string to a table of features, and predicts seconds for others.

    Args:
        expression: the model string, or that of a `Model`.
        output: name of the output feature; only for messages, as `fit` is given times.
        parameters, nonnegative, residuals: of `perfmodel.modelling.fitting.fit`.

    Attributes:
        parameters_: fitted values by name.
        stderr_: their standard errors, NaN where not known.
        feature_names_in_: names of the features, in the order of the columns of an array.
        n_features_in_: how many.
        result_: all that the fit tells.

    >>> cross_val_score(ModelRegressor("p_madd * f_op_float32_madd"), table, table["f_cl_wall_time"], cv=5)
    """

    def __init__(
        self,
        expression: str | ModelString = "",
        output: str = "f_cl_wall_time",
        parameters: Mapping[str, Any] | None = None,
        nonnegative: bool = True,
        residuals: str = "relative",
    ) -> None:
        self.expression = expression
        self.output = output
        self.parameters = parameters
        self.nonnegative = nonnegative
        self.residuals = residuals

    def fit(self, X: Any, y: ArrayLike) -> ModelRegressor:  # noqa: N803, scikit-learn's name
        """Fits the parameters to features and times.

        Args:
            X: features of N kernels: a DataFrame with a column a feature of the model (others are ignored), such as
                `perfmodel.measure` gives; or an array of shape (N, F) in the order of the model's features.
            y: seconds, shape (N,); all positive.

        Raises:
            FitError: columns are missing, or the measurements can't serve; see `perfmodel.modelling.fitting.fit`.
        """
        model = Model(self.output, self.expression)
        columns = _columns(X, model.columns)
        times = np.asarray(y, dtype=np.float64)
        if times.ndim != 1 or any(len(column) != len(times) for column in columns.values()):
            raise FitError(f"times have the shape {times.shape}, which does not go with the features; give one a row")
        self.result_ = fit(
            model.string,
            columns,
            times,
            parameters=self.parameters,
            nonnegative=self.nonnegative,
            residuals=self.residuals,  # type: ignore[arg-type]
        )
        self.parameters_ = self.result_.parameters
        self.stderr_ = self.result_.stderr
        self.feature_names_in_ = np.array(list(model.columns.values()), dtype=object)
        self.n_features_in_ = len(model.features)
        self._table_columns = model.columns
        self._compiled = model.string.compile()
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Predicts seconds for each row of features, shape (N,).

        Raises:
            FitError: columns are missing.
            sklearn.exceptions.NotFittedError: before `fit`.
        """
        check_is_fitted(self, "parameters_")
        columns = _columns(X, self._table_columns)
        rows = len(X)
        return np.array(np.broadcast_to(self._compiled(self.parameters_, columns), (rows,)))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:  # noqa: N803
        """Returns minus the mean of ``|predicted - measured| / measured``: zero is perfect, and larger is better.

        Times of kernels span many powers of ten, of which R² would see the longest only.
        """
        times = np.asarray(y, dtype=np.float64)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return -float(np.average(np.abs(self.predict(X) - times) / times, weights=weights))


def _columns(table: Any, names: Mapping[str, str]) -> dict[str, NDArray[np.float64]]:
    """Returns the features of a DataFrame, by the columns that `names` gives, or of an array in the features' order."""
    if hasattr(table, "columns"):
        if missing := [column for column in names.values() if column not in table.columns]:
            raise FitError(f"the table has no column {', '.join(missing)}; measure with the model that names them")
        return {name: np.asarray(table[column], dtype=np.float64) for name, column in names.items()}
    array = np.asarray(table, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != len(names):
        raise FitError(f"the array has the shape {array.shape}; give a column for each of {', '.join(names)}")
    return dict(zip(names, array.T, strict=True))
