"""Judges predictions by the times of a store, and these times by those that were published of other devices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr

import perfmodel as pm
from benchmarks.published_searches import FIRST, by_chance, error, reached
from benchmarks.tuned_on_device.programs import Values
from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import grid, percent, seconds
from perfmodel.modelling.prediction import Prediction
from perfmodel.tuning.foreseeing import foresight

Floats = NDArray[np.float64]
OWN = "here"
C = TypeVar("C", bound=Hashable)


def predictions(
    times: Mapping[C, float], kernel: Callable[[C], pm.Kernel], calibration: pm.Calibration, jobs: int | None
) -> tuple[str, list[str]]:
    """Returns a table of what predictions of some programs are worth, and the reasons of those that have none.

    Args:
        times: seconds of each program.
        kernel: gives the kernel of a program.
    """
    programs = list(times)
    known = foresight(programs, kernel, calibration, jobs)
    there = np.flatnonzero(np.isfinite(known.seconds)).tolist()
    measured = np.array([times[programs[place]] for place in there])
    predicted = known.seconds[there]
    features = {
        name: np.array([known.every[place].features[name] for place in there]) for name in calibration.model.features
    }
    low, high = Prediction(
        calibration=calibration, features=features, seconds=predicted, kernel=kernel(programs[there[0]]), sizes={}
    ).interval(0.9)
    errors = Errors.of(np.abs(predicted / measured - 1))
    assert errors is not None
    figures = {
        "programs": str(len(there)),
        "best": seconds(float(measured.min())),
        "median": seconds(float(np.median(measured))),
        "error, geometric mean": percent(errors.geometric_mean),
        "after one scale": percent(error(predicted / np.median(predicted / measured), measured)),
        "mean": percent(errors.mean),
        "maximum": percent(errors.maximum),
        "within 30 %": percent(errors.within_30_percent),
        "predicted / measured, median": f"{np.median(predicted / measured):.2f}",
        "rank correlation": f"{_rank(predicted, measured):.3f}",
        f"best of the first {FIRST}": f"{reached(predicted, measured):.3f}",
        f"best of {FIRST} by chance": f"{by_chance(measured, min(FIRST, len(measured))):.3f}",
        "in 90 % interval": percent(float(np.mean((low <= measured) & (measured <= high)))),
    }
    return grid(["figure", "value"], [list(each) for each in figures.items()]), [
        each.refused for each in known.every if each.refused
    ]


def likeness(times: Mapping[Values, float], published: pd.DataFrame) -> str:
    """Returns tables of how the times of each device go with those of all others.

    Args:
        times: of programs on this device.
        published: a row a program, a column a device.
    """
    programs = [each for each in published.index if each in times]
    every = published.loc[programs].assign(**{OWN: [times[each] for each in programs]})
    columns = {str(name): every[name].to_numpy(float) for name in every}
    ranks = [
        [name, *(f"{_rank(own, other):.2f}" if name != to else "" for to, other in columns.items())]
        for name, own in columns.items()
    ]
    own = columns[OWN]
    ratios = []
    for name, other in columns.items():
        if name == OWN:
            continue
        ratio = other / own
        low, middle, high = np.quantile(ratio, [0.05, 0.5, 0.95])
        scaled = error(other / middle, own)
        fastest = reached(other, own)
        ratios.append([name, f"{middle:.2f}", f"{low:.2f} to {high:.2f}", percent(scaled), f"{fastest:.3f}"])
    head = [
        "device",
        f"its times / {OWN}",
        "90 % of them",
        "error after that scale",
        f"best {OWN} of its first {FIRST}",
    ]
    return (
        f"rank correlations of {len(programs)} programs:\n\n{grid(['device', *columns], ranks)}\n\n{grid(head, ratios)}"
    )


def _rank(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float:
    return float(spearmanr(first, second).statistic)
