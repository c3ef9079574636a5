"""Proposes configurations to measure, learns from each time, and says when nothing better is likely to be left."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import PerfmodelError
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.calibration import Calibration
from perfmodel.tuning.correction import Corrected, Correction, Floats
from perfmodel.tuning.foreseeing import Foresight, foresight
from perfmodel.tuning.pruning import C, Configuration

BETTER, DOUBT = 0.03, 0.05
NEAREST = 300
"""So many unmeasured configurations, the likeliest to be fast, decide how probable it is that a better one is left."""
DRAWS = 2000
EXPLORING, DOUBTING = 8, 4
"""One of so many measurements is of the configuration that least is known of: those expected to be fast say little of
all others, and hide where the predictions are wrong. They are more at first, and where times do not rank as predicted;
where they do, every second measurement is of the next one in the order of the predictions, which no learning has
changed."""
FEWEST = 3
"""So many times say whether times rank as predicted."""
UNKNOWN = 0.5
"""Standard deviation of the logarithms of times before anything was measured."""
LEVEL = 1.645
"""Standard deviations on both sides that hold 90 % of a normal distribution."""


class Tuner(Generic[C]):
    """A search through configurations whose times are predicted: ask for some, measure them, and tell their times.

    >>> tuner = perfmodel.tune(configs, kernel, calibration)
    >>> while not tuner.is_done:
    ...     for config in tuner.ask(4):
    ...         tuner.tell(config, measured(config))
    >>> tuner.best

    Args:
        configurations: each with its predicted seconds, or the reason why there are none.
        elasticities: relative change of each predicted time by relative change of each of the model's parameters, shape
            (configurations, parameters); none if left out.
        further: numbers of each configuration beside its own that tell how like two are, such as registers, shape
            (configurations, numbers).
        better, doubt: the search is done when the probability that a configuration is left that is faster than the best
            by more than `better` (0.03: 3 %) is below `doubt`.

    Raises:
        PerfmodelError: if nothing can be measured, or for limits that are none.
    """

    def __init__(
        self,
        configurations: Iterable[Configuration[C]],
        elasticities: Floats | None = None,
        *,
        further: Floats | None = None,
        better: float = BETTER,
        doubt: float = DOUBT,
    ) -> None:
        if not 0 <= better < 1 or not 0 < doubt < 1:
            raise PerfmodelError(f"better={better!r} and doubt={doubt!r} are parts of one; give such as 0.03 and 0.05")
        self._all = list(configurations)
        self._open = np.array([not each.unpredicted for each in self._all], dtype=bool)
        if not self._open.any():
            why = self._all[0].unpredicted if self._all else "the list is empty"
            raise PerfmodelError(f"there is no configuration to measure: {why}")
        self.better, self.doubt = better, doubt
        self._places = np.flatnonzero(self._open)
        logs = np.log([self._all[place].seconds for place in self._places])
        shared = np.zeros((len(self._all), 1)) if elasticities is None else np.asarray(elasticities, float)
        descriptors = _descriptors([self._all[place].config for place in self._places])
        if further is not None:
            descriptors = np.hstack([descriptors, np.asarray(further, float)[self._places]])
        self._correction = Correction(logs, descriptors, shared[self._places])
        self._told: dict[int, float] = {}
        self._asked: dict[int, None] = {}
        self._known: Corrected | None = None

    def ask(self, count: int = 1) -> list[C]:
        """Returns the next configurations to measure, the most promising first; fewer where no more are left.

        Some are those that least is known of, and, where times rank as predicted, every second is the next one that was
        predicted to be the fastest. Those that were asked for and not told yet are taken to be as fast as expected.
        """
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise PerfmodelError(f"count={count!r} is no number of configurations to measure; give 1 or more")
        chosen: list[int] = []
        for _ in range(int(count)):
            taken = {*self._told, *self._asked}
            if len(taken) == len(self._places):
                break
            place = self._most_promising(taken) if taken else int(np.argmin(self._correction.logs))
            self._asked[place] = None
            chosen.append(place)
        return [self._all[self._places[place]].config for place in chosen]

    def tell(self, config: C, seconds: float | None) -> None:
        """Learns the measured time of a configuration, in seconds; None, NaN or infinity where it failed.

        Raises:
            PerfmodelError: for a configuration that there is none of, or a time that is none.
        """
        place = self._place(config)
        is_time = seconds is None or (isinstance(seconds, Real) and not isinstance(seconds, bool))
        taken = math.inf if not is_time or seconds is None or math.isnan(seconds) else float(seconds)
        if not is_time or not taken > 0:
            raise PerfmodelError(
                f"{seconds!r} s is no time of {str(config)[:100]}; give seconds, or None for a failure"
            )
        self._told[place] = taken
        self._asked.pop(place, None)
        self._known = None

    @property
    def measured(self) -> list[tuple[C, float]]:
        """Every configuration that was told, with its seconds, infinite where it failed; in the order of telling."""
        return [(self._all[self._places[place]].config, seconds) for place, seconds in self._told.items()]

    @property
    def best(self) -> tuple[C, float] | None:
        """The fastest configuration that was measured, and its seconds; None where none is."""
        found = min(self.measured, key=lambda pair: pair[1], default=None)
        return None if found is None or math.isinf(found[1]) else found

    @property
    def predicted(self) -> list[Configuration[C]]:
        """All configurations with what is expected of each by now; in their own order.

        Those that need no measurement say so in `pruned`: they cannot be launched, or are most likely slower than what
        is known, which may be because their registers spill.
        """
        corrected = self._corrected()
        best = math.log(self.best[1]) if self.best else float(corrected.mean.min())
        found = list(self._all)
        for place, whole in enumerate(self._places):
            mean, std = float(corrected.mean[place]), float(corrected.std[place])
            now = replace(self._all[whole], seconds=math.exp(mean), std_s=math.exp(mean) * std)
            if place not in self._told and mean - LEVEL * std > best + math.log1p(-self.better):
                low, high = (math.exp(mean + sign * LEVEL * std - best) for sign in (-1, 1))
                slower = f"it is predicted to take {low:.2g} to {high:.2g} times the best"
                now = replace(now, pruned=f"{now.spills}; {slower}" if now.spills else slower)
            found[whole] = now
        return [replace(each, pruned=each.unpredicted) if each.unpredicted else each for each in found]

    @property
    def probability_of_better(self) -> float:
        """The probability that a configuration that was not measured is faster than the best by more than `better`."""
        if not self.best:
            return 1.0
        corrected = self._corrected()
        left = np.setdiff1d(np.arange(len(self._places)), list(self._told))
        if not len(left):
            return 0.0
        goal = math.log(self.best[1]) + math.log1p(-self.better)
        hope = (goal - corrected.mean[left]) / corrected.std[left]
        likeliest = left[np.argsort(-hope)[:NEAREST]]
        drawn = self._correction.draws(corrected, likeliest, DRAWS, seed=len(self._told))
        return float((drawn.min(axis=1) < goal).mean())

    @property
    def is_done(self) -> bool:
        """True where nothing better is likely to be left, or nothing at all."""
        return len(self._told) == len(self._places) or self.probability_of_better < self.doubt

    def _corrected(self) -> Corrected:
        """Returns what is expected by the times that are known; failures tell nothing."""
        if self._known is None:
            known = {place: seconds for place, seconds in self._told.items() if math.isfinite(seconds)}
            if known:
                self._known = self._correction.corrected(list(known), np.log(list(known.values())))
            else:
                logs = self._correction.logs
                self._known = Corrected(logs, np.full(len(logs), UNKNOWN), np.empty(0, np.intp), ())
        return self._known

    def _most_promising(self, taken: set[int]) -> int:
        """Returns the place with the highest expected improvement, or the least known, or the next by prediction;
        configurations under way are as fast as expected."""
        from scipy.special import ndtr  # slow to import

        corrected = self._corrected()
        mean, std = corrected.mean, corrected.std
        known = {place: math.log(seconds) for place, seconds in self._told.items() if math.isfinite(seconds)}
        under_way = {place: float(mean[place]) for place in self._asked}
        if under_way:
            believed = {**known, **under_way}
            after = self._correction.corrected(list(believed), np.array(list(believed.values())))
            std = after.std
        is_open = ~np.isin(np.arange(len(mean)), list(taken))
        is_trusted, count = self._ranks_as_predicted(known), len(taken)
        is_doubted = count < EXPLORING or not is_trusted
        if count % EXPLORING == FEWEST or (is_doubted and count % DOUBTING == DOUBTING - 1):
            return int(np.argmax(np.where(is_open, std, -np.inf)))
        if is_trusted and count % 2:
            return int(np.argmin(np.where(is_open, self._correction.logs, np.inf)))
        best = min([*known.values(), *under_way.values()], default=float(mean.min()))
        margin = (best - mean) / std
        gain = std * (margin * ndtr(margin) + np.exp(-(margin**2) / 2) / math.sqrt(2 * math.pi))
        if not gain[is_open].max() > 0:  # nothing promises anything: the best expected one
            gain = -mean
        return int(np.argmax(np.where(is_open, gain, -np.inf)))

    def _ranks_as_predicted(self, known: Mapping[int, float]) -> bool:
        """Returns whether measured times, logarithms by place, are in the order of the predictions rather than not."""
        if len(known) < FEWEST:
            return True
        measured, predicted = np.array([*known.values()]), self._correction.logs[[*known]]
        first, second = (np.argsort(np.argsort(each)) - (len(known) - 1) / 2 for each in (measured, predicted))
        return bool(first @ second >= 0)

    def _place(self, config: C) -> int:
        for place, whole in enumerate(self._places):
            if self._all[whole].config is config or self._all[whole].config == config:
                return place
        raise PerfmodelError(f"{str(config)[:100]} is none of the configurations that can be measured")

    def __repr__(self) -> str:
        best = f"best {self.best[1]:.4g} s" if self.best else ""
        return brief(self, f"{len(self._told)} of {len(self._all)} configurations measured", best)


def tune(
    configs: Iterable[C],
    kernel: Callable[[C], Kernel],
    calibration: Calibration,
    *,
    better: float = BETTER,
    doubt: float = DOUBT,
    workers: int | None = None,
) -> Tuner[C]:
    """Returns a tuner of a kernel's configurations, which are predicted, and left out where they cannot be launched.

    Args:
        configs: anything that `kernel` takes. The numbers in mappings and sequences say how like two of them are.
        kernel: gives the kernel of a configuration.
        calibration: of the device.
        better, doubt: see `Tuner`.
        workers: processes that predict at the same time; as many as there are processors, if left out. They are
            forked, and use no device; 1 predicts in this process.

    Raises:
        PerfmodelError: as `Tuner`.
    """
    if not isinstance(calibration, Calibration):
        raise PerfmodelError(f"{calibration!r:.60} is no calibration; give one, as Calibration.shipped(device='H200')")
    if not callable(kernel):
        raise PerfmodelError(f"kernel={kernel!r:.60} is no function; give one that makes the kernel of a configuration")
    every = list(configs)
    return tuner_of(every, foresight(every, kernel, calibration, workers), better=better, doubt=doubt)


def tuner_of(configs: Sequence[C], known: Foresight, *, better: float = BETTER, doubt: float = DOUBT) -> Tuner[C]:
    """Returns a tuner of configurations of which all is known that can be without running them; see `tune`."""
    found = [
        Configuration(config, float(seconds), unpredicted=each.refused or _no_time(seconds), spills=each.spills)
        for config, each, seconds in zip(configs, known.every, known.seconds, strict=True)
    ]
    return Tuner(found, known.elasticities, further=known.words, better=better, doubt=doubt)


def _no_time(seconds: float) -> str:
    return "" if 0 < seconds < math.inf else f"{seconds:g} s is no time"


def _descriptors(configs: Sequence[Any]) -> NDArray[np.float64]:
    """Returns numbers of configurations, shape (configurations, parameters): logarithms where all are above 0; of what
    is no number, which of its values it is."""
    rows = [list(each.values()) if isinstance(each, Mapping) else each for each in configs]
    if not all(isinstance(row, list | tuple) for row in rows) or len({len(row) for row in rows}) != 1:
        rows = [[row] for row in rows]
    columns = []
    for values in zip(*rows, strict=True):
        if all(isinstance(value, int | float | np.number) for value in values):
            numbers = np.array(values, float)
            columns.append(np.log(numbers) if (numbers > 0).all() else numbers)
        else:
            known = {value: place for place, value in enumerate(dict.fromkeys(map(str, values)))}
            columns += [np.array([str(value) == each for value in values], float) for each in known]
    return np.array(columns).T.reshape(len(configs), -1)
