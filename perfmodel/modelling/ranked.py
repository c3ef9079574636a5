"""Ranks kernels by their predicted times, and says how sure the order is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.errors import KernelError, nearest
from perfmodel.basics.json_values import plain
from perfmodel.basics.notebook import table
from perfmodel.basics.tables import grid, kernel_text, seconds, told_apart
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.telling_apart import variants
from perfmodel.modelling.choosing import places, probabilities_first
from perfmodel.modelling.fitted import Fitted
from perfmodel.modelling.prediction import LEVEL, predict

if TYPE_CHECKING:
    import pandas as pd

HEADER = ("place", "kernel", "predicted", "90 % from", "to", "times the best", "fastest")


@dataclass(frozen=True)
class Ranked:
    """One of several kernels in the order of their predicted times.

    Attributes:
        variant: the kernel's, with what tells it from the others of the ranking where its tags do not.
        low_s, high_s: ends of the 90 % interval.
        times_best: the predicted time over the shortest.
        place: from 1; predictions that are equal share it.
        probability_first: that of being the fastest; NaN where the calibration does not know how far it is off.
    """

    kernel: Kernel
    variant: str
    seconds: float
    std: float
    low_s: float
    high_s: float
    times_best: float
    place: int
    probability_first: float

    @property
    def label(self) -> str:
        """The kernel in one line: its name, what tells it from the others, and its sizes."""
        return kernel_text(self.kernel.name, self.variant, self.kernel.sizes)

    def values(self) -> dict[str, Any]:
        """Returns the columns of `Ranking.to_frame`."""
        return {
            "kernel": self.kernel.name,
            "variant": self.variant,
            "sizes": self.kernel.sizes,
            "predicted_s": self.seconds,
            "predicted_std_s": self.std,
            "low_s": self.low_s,
            "high_s": self.high_s,
            "times_best": self.times_best,
            "place": self.place,
            "probability_first": self.probability_first,
        }


@dataclass(frozen=True)
class Ranking:
    """Holds kernels from the fastest predicted to the slowest: ``for each in ranking``, ``ranking[0].kernel``."""

    ranked: tuple[Ranked, ...]

    @property
    def best(self) -> Kernel:
        """The kernel that is predicted to be the fastest."""
        return self.ranked[0].kernel

    def __len__(self) -> int:
        return len(self.ranked)

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.ranked)

    def __getitem__(self, place: int) -> Ranked:
        return self.ranked[place]

    def as_json(self) -> list[dict[str, Any]]:
        """Returns the ranking as values that JSON can hold."""
        return [plain(each.values()) for each in self.ranked]

    def to_frame(self) -> pd.DataFrame:
        """Returns the ranking as a DataFrame: columns ``kernel``, ``variant``, ``sizes``, ``predicted_s``,
        ``predicted_std_s``, ``low_s``, ``high_s``, ``times_best``, ``place`` and ``probability_first``."""
        import pandas as pd  # slow to import

        return pd.DataFrame([each.values() for each in self.ranked])

    @property
    def _rows(self) -> list[list[str]]:
        _, names = told_apart([each.label for each in self.ranked])
        return [
            [
                str(each.place),
                names[each.label],
                seconds(each.seconds),
                *_interval(each),
                f"{each.times_best:.2f}",
                "" if math.isnan(each.probability_first) else f"{each.probability_first:.0%}",
            ]
            for each in self.ranked
        ]

    def _repr_html_(self) -> str:
        return table(HEADER, self._rows)

    def __repr__(self) -> str:
        return brief(self, number_of(len(self), "kernel"), f"the first {self.ranked[0].label}")

    def __str__(self) -> str:
        return "\n\n".join(filter(None, [told_apart([each.label for each in self])[0], grid(HEADER, self._rows)]))


def _interval(each: Ranked) -> list[str]:
    if not each.high_s > each.low_s:
        return ["", ""]
    return [seconds(each.low_s), seconds(each.high_s) if math.isfinite(each.high_s) else "unknown"]


def rank(calibration: Fitted, kernels: Sequence[Kernel], sizes: Mapping[str, int]) -> Ranking:
    """Ranks kernels by their predicted times; see `Calibration.rank`.

    Raises:
        KernelError: for no kernels, and for sizes that none of them has.
    """
    if not kernels:
        raise KernelError("there is no kernel to rank; the list is empty")
    known_sizes = {name for kernel in kernels for name in kernel.program.sizes}
    for name, size in sizes.items():
        if name not in known_sizes:
            raise KernelError(f"no kernel has a size {name!r}{nearest(name, known_sizes)}; give one that they have")
        if isinstance(size, list | tuple) or (isinstance(size, np.ndarray) and size.ndim):
            raise KernelError(f"rank takes one number for each size, not several of {name!r}; call it for each")
    bound = [
        kernel.at(**{name: size for name, size in sizes.items() if name in kernel.program.sizes}) for kernel in kernels
    ]
    found = sorted(
        zip(bound, variants(bound), (predict(calibration, kernel, {}) for kernel in bound), strict=True),
        key=lambda each: float(each[2].seconds),
    )
    times = [float(prediction.seconds) for *_, prediction in found]
    scales = [float(prediction.scale) for *_, prediction in found]
    chances = _probabilities(calibration, times, scales, [kernel.name for kernel, *_ in found])
    ranked = []
    for (kernel, variant, prediction), place, chance in zip(found, places(times), chances, strict=True):
        low, high = map(float, prediction.interval(LEVEL))
        ratio = float(prediction.seconds) / times[0] if times[0] else math.nan
        ranked.append(
            Ranked(
                kernel=kernel,
                variant=variant,
                seconds=float(prediction.seconds),
                std=float(prediction.std),
                low_s=low,
                high_s=high,
                times_best=ratio,
                place=place,
                probability_first=chance,
            )
        )
    return Ranking(tuple(ranked))


def _probabilities(
    calibration: Fitted, times: Sequence[float], scales: Sequence[float], families: Sequence[str]
) -> list[float]:
    known = calibration.held_out
    if len(times) == 1:
        return [1.0]
    if known is None or min(times) <= 0 or not np.isfinite(scales).all():
        return [math.nan] * len(times)
    return [float(each) for each in probabilities_first(times, scales, families, known)]
