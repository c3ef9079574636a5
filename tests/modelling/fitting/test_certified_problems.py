"""NIST's Statistical Reference Datasets (public domain): certified values and standard deviations, from both starts.

Only the residual sum of squares, the estimates and their standard deviations are certified; the linear problems also
check columns that differ by many orders of magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from perfmodel.expression import parse
from perfmodel.modelling.fitting import FitResult, fit

Row = tuple[float, ...]


@dataclass(frozen=True)
class Certified:
    """Parameters are p_1, p_2, … in the order of `values`; the predictor is f_x."""

    source: str
    x: Row
    y: Row
    starts: tuple[Row, ...]
    values: Row
    deviations: Row
    squares: float


PROBLEMS = {
    "Misra1a": Certified(
        source="p_1 * (1 - exp(-p_2 * f_x))",
        x=(77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0),
        y=(10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78),
        starts=((500, 1e-4), (250, 5e-4)),
        values=(2.3894212918e02, 5.5015643181e-04),
        deviations=(2.7070075241e00, 7.2668688436e-06),
        squares=1.2455138894e-01,
    ),
    "DanWood": Certified(
        source="p_1 * f_x ** p_2",
        x=(1.309, 1.471, 1.490, 1.565, 1.611, 1.680),
        y=(2.138, 3.421, 3.597, 4.340, 4.882, 5.660),
        starts=((1, 5), (0.7, 4)),
        values=(7.6886226176e-01, 3.8604055871e00),
        deviations=(1.8281973860e-02, 5.1726610913e-02),
        squares=4.3173084083e-03,
    ),
    "MGH17": Certified(
        source="p_1 + p_2 * exp(-f_x * p_4) + p_3 * exp(-f_x * p_5)",
        x=tuple(10.0 * i for i in range(33)),
        y=(
            *(0.844, 0.908, 0.932, 0.936, 0.925, 0.908, 0.881, 0.850, 0.818, 0.784, 0.751, 0.718, 0.685, 0.658, 0.628),
            *(0.603, 0.580, 0.558, 0.538, 0.522, 0.506, 0.490, 0.478, 0.467, 0.457, 0.448, 0.438, 0.431, 0.424, 0.420),
            *(0.414, 0.411, 0.406),
        ),
        starts=((50, 150, -100, 1, 2), (0.5, 1.5, -1, 0.01, 0.02)),
        values=(3.7541005211e-01, 1.9358469127e00, -1.4646871366e00, 1.2867534640e-02, 2.2122699662e-02),
        deviations=(2.0723153551e-03, 2.2031669222e-01, 2.2175707739e-01, 4.4861358114e-04, 8.9471996575e-04),
        squares=5.4648946975e-05,
    ),
    "MGH09": Certified(
        source="p_1 * (f_x**2 + f_x * p_2) / (f_x**2 + f_x * p_3 + p_4)",
        x=(4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625),
        y=(0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246),
        starts=((25, 39, 41.5, 39), (0.25, 0.39, 0.415, 0.39)),
        values=(1.9280693458e-01, 1.9128232873e-01, 1.2305650693e-01, 1.3606233068e-01),
        deviations=(1.1435312227e-02, 1.9633220911e-01, 8.0842031232e-02, 9.0025542308e-02),
        squares=3.0750560385e-04,
    ),
    "MGH10": Certified(
        source="p_1 * exp(p_2 / (f_x + p_3))",
        x=tuple(50.0 + 5 * i for i in range(16)),
        y=(34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872),
        starts=((2, 400000, 25000), (0.02, 4000, 250)),
        values=(5.6096364710e-03, 6.1813463463e03, 3.4522363462e02),
        deviations=(1.5687892471e-04, 2.3309021107e01, 7.8486103508e-01),
        squares=8.7945855171e01,
    ),
    "Thurber": Certified(
        source="(p_1 + p_2 * f_x + p_3 * f_x**2 + p_4 * f_x**3) / (1 + p_5 * f_x + p_6 * f_x**2 + p_7 * f_x**3)",
        x=(
            *(-3.067, -2.981, -2.921, -2.912, -2.840, -2.797, -2.702, -2.699, -2.633, -2.481, -2.363, -2.322, -1.501),
            *(-1.460, -1.274, -1.212, -1.100, -1.046, -0.915, -0.714, -0.566, -0.545, -0.400, -0.309, -0.109, -0.103),
            *(0.010, 0.119, 0.377, 0.790, 0.963, 1.006, 1.115, 1.572, 1.841, 2.047, 2.200),
        ),
        y=(
            *(80.574, 84.248, 87.264, 87.195, 89.076, 89.608, 89.868, 90.101, 92.405, 95.854, 100.696, 101.060),
            *(401.672, 390.724, 567.534, 635.316, 733.054, 759.087, 894.206, 990.785, 1090.109, 1080.914, 1122.643),
            *(1178.351, 1260.531, 1273.514, 1288.339, 1327.543, 1353.863, 1414.509, 1425.208, 1421.384, 1442.962),
            *(1464.350, 1468.705, 1447.894, 1457.628),
        ),
        starts=((1000, 1000, 400, 40, 0.7, 0.3, 0.03), (1300, 1500, 500, 75, 1, 0.4, 0.05)),
        values=(
            *(1.2881396800e03, 1.4910792535e03, 5.8323836877e02, 7.5416644291e01),
            *(9.6629502864e-01, 3.9797285797e-01, 4.9727297349e-02),
        ),
        deviations=(
            *(4.6647963344e00, 3.9571156086e01, 2.8698696102e01, 5.5675370270e00),
            *(3.1333340687e-02, 1.4984928198e-02, 6.5842344623e-03),
        ),
        squares=5.6427082397e03,
    ),
    "BoxBOD": Certified(
        source="p_1 * (1 - exp(-p_2 * f_x))",
        x=(1, 2, 3, 5, 7, 10),
        y=(109, 149, 149, 191, 213, 224),
        starts=((1, 1), (100, 0.75)),
        values=(2.1380940889e02, 5.4723748542e-01),
        deviations=(1.2354515176e01, 1.0455993237e-01),
        squares=1.1680088766e03,
    ),
}


# The sum of exponentials of MGH17 is the same with its terms in the other order, and either may be found.
OTHER_ORDER = {"MGH17": (1, 3, 2, 5, 4)}


def assert_certified(result: FitResult, values: Row, deviations: Row, tolerance: float, other: Row = ()) -> None:
    order = tuple(range(1, len(values) + 1))
    if other and abs(result.parameters["p_2"] / values[1] - 1) > 0.1:
        order = tuple(map(int, other))
    for i, value, deviation in zip(order, values, deviations, strict=True):
        assert result.parameters[f"p_{i}"] == pytest.approx(value, rel=tolerance)
        assert result.stderr[f"p_{i}"] == pytest.approx(deviation, rel=tolerance)


@pytest.mark.parametrize("start", [0, 1, None], ids=["far start", "near start", "no start"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_nonlinear_problems(name: str, start: int | None) -> None:
    problem = PROBLEMS[name]
    values = () if start is None else problem.starts[start]

    result = fit(
        parse(problem.source),
        {"f_x": np.array(problem.x)},
        np.array(problem.y, dtype=float),
        residuals="absolute",
        nonnegative=False,
        parameters={f"p_{i}": {"value": float(value)} for i, value in enumerate(values, start=1)},
    )

    assert result.method == "nonlinear"
    assert result.chi_square == pytest.approx(problem.squares, rel=1e-9)
    assert_certified(result, problem.values, problem.deviations, 5e-6, OTHER_ORDER.get(name, ()))


def test_pontius_a_quadratic_with_coefficients_twelve_orders_apart() -> None:
    x = np.tile(np.arange(1.0, 21.0) * 150000, 2)
    y = [
        *(0.11019, 0.21956, 0.32949, 0.43899, 0.54803, 0.65694, 0.76562, 0.87487, 0.98292, 1.09146),
        *(1.20001, 1.30822, 1.41599, 1.52399, 1.63194, 1.73947, 1.84646, 1.95392, 2.06128, 2.16844),
        *(0.11052, 0.22018, 0.32939, 0.43886, 0.54798, 0.65739, 0.76596, 0.87474, 0.98300, 1.09150),
        *(1.20004, 1.30818, 1.41613, 1.52408, 1.63159, 1.73965, 1.84696, 1.95445, 2.06177, 2.16829),
    ]
    model = parse("p_1 + p_2 * f_x + p_3 * f_x**2")

    result = fit(model, {"f_x": x}, np.array(y), residuals="absolute", nonnegative=False)

    assert result.method == "linear"
    values = (0.673565789473684e-03, 0.732059160401003e-06, -0.316081871345029e-14)
    deviations = (0.107938612033077e-03, 0.157817399981659e-09, 0.486652849992036e-16)
    assert_certified(result, values, deviations, 1e-9)
    assert result.reduced_chi_square**0.5 == pytest.approx(0.205177424076185e-03, rel=1e-9)


def test_longley_nearly_collinear_columns() -> None:
    table = np.array(
        [
            (60323, 83.0, 234289, 2356, 1590, 107608, 1947),
            (61122, 88.5, 259426, 2325, 1456, 108632, 1948),
            (60171, 88.2, 258054, 3682, 1616, 109773, 1949),
            (61187, 89.5, 284599, 3351, 1650, 110929, 1950),
            (63221, 96.2, 328975, 2099, 3099, 112075, 1951),
            (63639, 98.1, 346999, 1932, 3594, 113270, 1952),
            (64989, 99.0, 365385, 1870, 3547, 115094, 1953),
            (63761, 100.0, 363112, 3578, 3350, 116219, 1954),
            (66019, 101.2, 397469, 2904, 3048, 117388, 1955),
            (67857, 104.6, 419180, 2822, 2857, 118734, 1956),
            (68169, 108.4, 442769, 2936, 2798, 120445, 1957),
            (66513, 110.8, 444546, 4681, 2637, 121950, 1958),
            (68655, 112.6, 482704, 3813, 2552, 123366, 1959),
            (69564, 114.2, 502601, 3931, 2514, 125368, 1960),
            (69331, 115.7, 518173, 4806, 2572, 127852, 1961),
            (70551, 116.9, 554894, 4007, 2827, 130081, 1962),
        ]
    )
    model = parse("p_1 + " + " + ".join(f"p_{i} * f_{i}" for i in range(2, 8)))
    columns = {f"f_{i}": table[:, i - 1] for i in range(2, 8)}

    result = fit(model, columns, table[:, 0], residuals="absolute", nonnegative=False)

    values = (
        *(-3482258.63459582, 15.0618722713733, -0.358191792925910e-01, -2.02022980381683),
        *(-1.03322686717359, -0.511041056535807e-01, 1829.15146461355),
    )
    deviations = (
        *(890420.383607373, 84.9149257747669, 0.334910077722432e-01, 0.488399681651699),
        *(0.214274163161675, 0.226073200069370, 455.478499142212),
    )
    assert_certified(result, values, deviations, 1e-8)
