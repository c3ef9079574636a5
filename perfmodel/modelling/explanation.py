"""Explains predictions: where a kernel's time goes, how it grows, and how far to trust it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.basics.json_values import plain
from perfmodel.basics.notebook import table
from perfmodel.basics.side_by_side import Deadline
from perfmodel.basics.tables import grid
from perfmodel.counting.usual_budget import GIVEN_MORE
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling import notebook_plots
from perfmodel.modelling.attribution import attribute
from perfmodel.modelling.fitted import Fitted
from perfmodel.modelling.growing import FOLLOWED, Growth, Point, growth
from perfmodel.modelling.mechanism import MOST_PRICE, Mechanism, mechanism
from perfmodel.modelling.prediction import LEVEL, Floats, Prediction, feature_values, predicted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


# Features on which less of the time depends are not worth a word.
LEAST_DEPENDENCE = 0.01
# Costs that are a smaller part of both times are not listed one by one.
LEAST_NOTABLE = 0.005
# From this distance on, no measured kernel's time depends on the same things.
UNLIKE = 0.5
# Up to so many doublings beyond the measurements, a prediction is nearly one between them.
NEARLY_WITHIN = 0.25
# After so many seconds no other size is predicted, with a larger budget of counting after so many times as long.
GROWTH_S = 1.5


@dataclass(frozen=True)
class CostShare:
    """One cost of a prediction.

    Attributes:
        seconds: what it would take by itself.
        share: its part of the predicted time; small for a cost that hides behind a larger one.
        words: what it stands for, where the model says so.
    """

    name: str
    seconds: float
    share: float
    words: str = ""


@dataclass(frozen=True)
class Item:
    """An amount of something that a kernel has and a parameter is the price of (Pöppl and Herz, "Qualitative
    Evaluation").

    Attributes:
        unit: of what is counted, such as ``operation``; empty where the model string does not tell it.
        seconds: the number times the price, before anything hides it.
        cost: the cost that it is a part of; empty for none.
    """

    parameter: str
    number: float
    unit: str
    seconds: float
    cost: str = ""


@dataclass(frozen=True)
class Trust:
    """Holds how far a prediction can be trusted, and why.

    Attributes:
        parameter_std: relative standard deviation that the parameters' covariance gives; NaN where it is not known.
        residual_std: that which the model left unexplained in its own measurements; NaN where it is not known.
        doubtful: the parameter that gives most of the first; empty if none gives any.
        extrapolation: features outside their range in the fit, with the factor by which they are outside.
        dependence: of these features, what part of the time depends on each: its elasticity.
        unpriced: features that the kernel has and that cost nothing here, as they were zero in every measurement.
        novelty: how unlike all measured kernels it is, see `perfmodel.modelling.intervals.Neighbourhood`; 0 for one
            of them, NaN where it is not known.
    """

    parameter_std: float
    residual_std: float
    doubtful: str
    extrapolation: dict[str, float]
    dependence: dict[str, float]
    unpriced: tuple[str, ...]
    novelty: float = math.nan

    @property
    def distance(self) -> float:
        """The number of doublings of work by which the prediction is beyond the measurements: zero between them.

        The sum of log2 of the factors by which features are outside, weighted by the part of the time that depends on
        them.
        """
        return sum(abs(self.dependence[name]) * math.log2(factor) for name, factor in self.extrapolation.items())

    @property
    def verdict(self) -> str:
        """The trust in one sentence."""
        if self.unpriced:
            return f"the measurements had nothing of {', '.join(self.unpriced)}, which therefore costs nothing here"
        if self.distance > NEARLY_WITHIN:
            return f"it lies {self.distance:.1f} doublings of work beyond the measurements"
        if self.novelty > UNLIKE:
            return f"no measured kernel's time depends on the same things (distance {self.novelty:.2g})"
        return "it lies within what was measured"


@dataclass(frozen=True)
class Explanation:
    """Holds where the time of one kernel at one size goes.

    Attributes:
        seconds, std: the prediction.
        interval: seconds between which the measured time lies with a probability of 90 %, see `Calibration.interval`.
        costs: largest share first: the innermost named terms, and what stands outside of any.
        terms: seconds of every named term, as written in the model string.
        items: a line for each parameter that is a price, a time in seconds for one of something that the kernel has;
            the dearest first.
        bottleneck: the name of the cost with the largest share.
        mechanism: what that is, in words; None where the model does not say.
        growth: what twice each size changes; sizes that can't be doubled are left out.
        hurried: the sizes of which not all was looked at, as it took too long.
    """

    kernel: str
    sizes: dict[str, int]
    seconds: float
    std: float
    interval: tuple[float, float]
    costs: tuple[CostShare, ...]
    terms: dict[str, float]
    items: tuple[Item, ...]
    bottleneck: str
    mechanism: Mechanism | None
    growth: tuple[Growth, ...]
    hurried: tuple[str, ...]
    trust: Trust

    @property
    def extrapolation(self) -> dict[str, float]:
        """Features outside their range in the fit, with the factor by which they are outside."""
        return self.trust.extrapolation | dict.fromkeys(self.trust.unpriced, math.inf)

    @property
    def notable(self) -> tuple[CostShare, ...]:
        """The costs that are, or add, more than next to nothing."""
        least = LEAST_NOTABLE * self.seconds
        return tuple(cost for cost in self.costs if max(cost.seconds, cost.share * self.seconds) >= least)

    def as_json(self) -> dict[str, Any]:
        """Returns the explanation as values that JSON can hold: seconds and numbers; None for what is not known or not
        finite."""
        found: dict[str, Any] = plain(asdict(self))
        for grown, each in zip(found["growth"], self.growth, strict=True):
            grown["exponent"] = plain(each.exponent)
        found["trust"] |= {"distance": plain(self.trust.distance), "verdict": self.trust.verdict}
        return found

    def to_frame(self) -> pd.DataFrame:
        """Returns the costs as a DataFrame: columns ``cost``, ``seconds``, ``share``."""
        import pandas as pd  # slow to import

        return pd.DataFrame({"cost": [c.name for c in self.costs]} | columns_of(self.costs, "seconds", "share"))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plots bars of what each cost adds to the time, on matplotlib axes, new ones if none are given."""
        shown = [notebook_plots.CostBar(each.name, each.seconds, each.share * self.seconds) for each in self.notable]
        return notebook_plots.costs(self.title, self.seconds, shown, ax)

    def _repr_html_(self) -> str:
        rows = [[cost.name, f"{cost.seconds:.4g} s", f"{cost.share:.1%}", cost.words] for cost in self.notable]
        header = ["cost", "by itself", "share", "what it is"]
        if not self.mechanism:
            rows, header = [row[:-1] for row in rows], header[:-1]
        said = f": {escape(str(self.mechanism))}" if self.mechanism else ""
        sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.sentences())
        return (
            f"<p><b>{escape(self.title)}</b>: {self.seconds:.4g} s{self.sureness}, limited by "
            f"<b>{escape(self.bottleneck)}</b>{said}</p>\n{table(header, rows)}\n<ul>{sentences}</ul>"
        )

    def __repr__(self) -> str:
        return brief(self, f"{self.seconds:.4g} s", f"limited by {self.bottleneck}", self.title)

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.seconds:.4g} s{self.sureness}, limited by {self.bottleneck}"]
        if self.mechanism:
            said = (self.mechanism.state, self.mechanism.advice)
            lines = [f"{lines[0]}:", "  " + ";\n  ".join(filter(None, said))]
        width = max((len(cost.name) for cost in self.notable), default=0)
        lines += [f"  {c.name:<{width}}  {c.seconds:10.4g} s  {c.share:7.1%}  {c.words}".rstrip() for c in self.notable]
        if hidden := len(self.costs) - len(self.notable):
            lines.append(f"  {hidden} others are next to nothing")
        lines += [f"  {sentence}" for sentence in self.sentences()]
        if self.items:
            rows = [[item.parameter, f"{item.number:.4g}", item.unit, f"{item.seconds:.4g} s"] for item in self.items]
            lines += ["", grid(["cost type", "number", "of", "time by itself"], rows)]
        return "\n".join(lines)

    @property
    def sureness(self) -> str:
        """The interval in brackets, as text; empty where it is not known."""
        low, high = self.interval
        if not high > 0 or (low == 0 and math.isinf(high)):
            return ""
        most = f"and {high:.3g} s" if math.isfinite(high) else "and no known limit"
        return f" (90 % between {low:.3g} {most})"

    def sentences(self) -> list[str]:
        """Returns what changes with each size, and how far the prediction can be trusted, a sentence each."""
        staying = [each.size for each in self.growth if each.stays(self.bottleneck)]
        growing = (each for each in self.growth if each.size not in staying)
        found = [sentence for each in growing for sentence in each.sentences(self.bottleneck)]
        if staying:
            found.append(f"twice {' or '.join(staying)} takes as long, however often it is doubled")
        if self.hurried:
            found.append(
                f"how it grows with {', '.join(self.hurried)} is known only in part, to save time {GIVEN_MORE}"
            )
        found += [
            f"{name} is {factor:.3g} times outside its range in the fit; {abs(self.trust.dependence[name]):.0%} of the "
            "time depends on it"
            for name, factor in self.trust.extrapolation.items()
            if abs(self.trust.dependence[name]) >= LEAST_DEPENDENCE
        ]
        known = [
            f"{std:.2g} {what}"
            for std, what in (
                (100 * self.trust.parameter_std, f"% from the parameters (most from {self.trust.doubtful})"),
                (100 * self.trust.residual_std, "% that the model leaves unexplained"),
            )
            if math.isfinite(std) and std > 0
        ]
        return [*found, f"trust: {self.trust.verdict}" + (f"; {' and '.join(known)}" if known else "")]

    @property
    def title(self) -> str:
        """The kernel and its sizes, as text."""
        at = ", ".join(f"{name}={value}" for name, value in self.sizes.items())
        return f"{self.kernel} at {at}" if at else self.kernel


def explain(calibration: Fitted, kernel: Kernel, sizes: Mapping[str, int]) -> Explanation:
    """Explains a prediction; see `Calibration.explain`.

    See `perfmodel.modelling.attribution` for what a share is.
    """
    features = _of_one_size(calibration, kernel, sizes)
    found = predicted(calibration, kernel, sizes, features)
    string, parameters = calibration.model.string, calibration.parameters
    seconds = float(found.seconds)
    costs = _costs(calibration, features, seconds)
    terms = {name: float(value) for name, value in string.compile().terms(parameters, features).items()}
    bound = {name: int(value) for name, value in kernel.bind(sizes).items()}
    items = _items(calibration, features, terms, costs, seconds)
    bottleneck = costs[0].name if costs else ""
    deadline = Deadline(GROWTH_S * kernel.program.budget)
    growth, hurried = _growths(calibration, kernel, bound, Point(0, seconds, _alone(costs)), deadline)
    return Explanation(
        kernel=" ".join(filter(None, [kernel.name, kernel.variant])),
        sizes=bound,
        seconds=seconds,
        std=float(found.std),
        interval=tuple(float(end) for end in found.interval(LEVEL)),  # type: ignore[arg-type]
        costs=costs,
        terms=terms,
        items=items,
        bottleneck=bottleneck,
        mechanism=mechanism(calibration, kernel, sizes, features, bottleneck),
        growth=growth,
        hurried=hurried,
        trust=_trust(calibration, features, seconds, found),
    )


def _of_one_size(calibration: Fitted, kernel: Kernel, sizes: Mapping[str, int]) -> dict[str, Floats]:
    features = feature_values(calibration, kernel, sizes)
    if any(f.ndim for f in features.values()):
        raise KernelError("explain takes one number for each size; call it for each size by itself")
    return features


def _costs(calibration: Fitted, features: Mapping[str, Floats], seconds: float) -> tuple[CostShare, ...]:
    parts = attribute(calibration.model.string, calibration.parameters, features)
    words = {name: meaning.words for name, meaning in calibration.model.meanings.items()}
    return tuple(
        CostShare(part.name, part.value, part.contribution / (seconds or 1.0), words.get(part.name, ""))
        for part in parts
    )


def _growths(
    calibration: Fitted, kernel: Kernel, sizes: Mapping[str, int], here: Point, deadline: Deadline
) -> tuple[tuple[Growth, ...], tuple[str, ...]]:
    """Returns how the time grows with each size that can be doubled and counted, and the sizes of which more would be
    known after the deadline."""
    compiled = calibration.model.string.compile()
    known: dict[tuple[str, int], Point | None] = {}
    hurried: dict[str, None] = {}

    def at(size: tuple[str, int]) -> Point | None:
        name, value = size
        with warnings.catch_warnings(), suppress(PerfmodelError):
            warnings.simplefilter("ignore")  # the kernel's own sizes have said what there is to say
            features = _of_one_size(calibration, kernel, {**sizes, name: value})
            then = float(compiled(calibration.parameters, features))
            return Point(value, then, _alone(_costs(calibration, features, then)))
        return None

    def look_at(wanted: Sequence[tuple[str, int]]) -> None:
        known.update(deadline.done(at, [size for size in wanted if size not in known]))
        hurried.update((name, None) for name, value in wanted if (name, value) not in known)

    def look(name: str, values: Sequence[int]) -> list[Point | None]:
        look_at([(name, value) for value in values])
        return [known.get((name, value)) for value in values]

    # What each size does first, and then how it goes on.
    look_at([(name, value * 2**times) for times in FOLLOWED for name, value in sizes.items() if value > 0])
    found = (growth(replace(here, value=value), name, partial(look, name)) for name, value in sizes.items())
    return tuple(filter(None, found)), tuple(hurried)


def _alone(costs: Sequence[CostShare]) -> dict[str, float]:
    return {cost.name: cost.seconds for cost in costs}


def _trust(calibration: Fitted, features: Mapping[str, Floats], seconds: float, found: Prediction) -> Trust:
    string, parameters = calibration.model.string, calibration.parameters
    compiled = string.compile()
    jacobian = compiled.jacobian(parameters, features).reshape(len(parameters))
    with np.errstate(all="ignore"):
        variance = float(jacobian @ calibration.covariance @ jacobian)
        parts = jacobian**2 * np.diag(calibration.covariance)
    by_parameter = dict(zip(parameters, np.nan_to_num(parts).tolist(), strict=True))
    doubtful = max(by_parameter, key=lambda name: by_parameter[name], default="")

    def elasticity(name: str) -> float:
        step = 1e-4
        up, down = (
            float(compiled(parameters, {**features, name: np.asarray(features[name] * factor)}))
            for factor in (1 + step, 1 - step)
        )
        rise, fall = up - seconds, seconds - down
        gain = up - down
        if not 0.5 < rise / (fall or math.inf) < 2:  # a work-group more or less: a step, and no slope
            gain = 2 * min(rise, fall, key=abs)
        return gain / (2 * step * seconds) if seconds else 0.0

    outside = _outside(calibration.ranges, features)
    return Trust(
        parameter_std=math.sqrt(max(variance, 0.0)) / seconds if seconds and math.isfinite(variance) else math.nan,
        residual_std=calibration.residual_std,
        doubtful=doubtful if by_parameter.get(doubtful, 0.0) > 0 else "",
        extrapolation=outside,
        dependence={name: elasticity(name) for name in outside},
        unpriced=tuple(found.unpriced),
        novelty=float(found.distance),
    )


def _items(
    calibration: Fitted,
    features: Mapping[str, Floats],
    terms: Mapping[str, float],
    costs: Sequence[CostShare],
    seconds: float,
) -> tuple[Item, ...]:
    """Returns what the kernel has in proportion to each price of its first cost that has one, or else of the whole
    time."""
    compiled, found = calibration.model.string.compile(), []
    alone = {cost.name: cost.seconds for cost in costs}
    times = [name for name in terms if name in alone]
    # In two columns for each parameter, it is zero and twice its value, and all others are as they are.
    changed = {name: np.full(2 * len(calibration.parameters), value) for name, value in calibration.parameters.items()}
    for place, (name, value) in enumerate(calibration.parameters.items()):
        changed[name][2 * place : 2 * place + 2] = 0.0, 2 * value
    with np.errstate(all="ignore"):  # a capacity of zero has no meaning, and is no price
        known, whole = compiled.terms(changed, features), compiled(changed, features)
        for place, (parameter, value) in enumerate(calibration.parameters.items()):
            without, twice = 2 * place, 2 * place + 1
            own_terms = [
                name for name in times if not np.isclose(known[name][without], terms[name], rtol=1e-12, atol=0)
            ]
            cost, own, (less, more) = "", seconds, whole[[without, twice]].tolist()
            if own_terms:
                cost, own = own_terms[0], terms[own_terms[0]]
                less, more = known[cost][[without, twice]].tolist()
            if parameter in alone:  # of a term that is no time by itself
                cost, own, less, more = parameter, alone[parameter], 0.0, 2 * alone[parameter]
            is_price = np.isfinite([less, more]).all() and np.isclose(more - own, own - less, rtol=1e-6, atol=0)
            if is_price and own > less and value < MOST_PRICE:
                unit = calibration.units.get(parameter, "").partition("s/")[2]
                found.append(
                    Item(parameter=parameter, number=(own - less) / value, unit=unit, seconds=own - less, cost=cost)
                )
    return tuple(sorted(found, key=lambda item: -item.seconds))


def _outside(ranges: Mapping[str, tuple[float, float]], features: Mapping[str, Floats]) -> dict[str, float]:
    """Returns features outside their range in the fit, with the factor; none of those that were zero in all of it."""
    outside = {}
    for name, value in features.items():
        low, high = ranges.get(name, (-np.inf, np.inf))
        if high > 0 and float(value) > high:
            outside[name] = float(value) / high
        elif float(value) > 0 and float(value) < low:
            outside[name] = low / float(value)
    return outside


def columns_of(rows: Sequence[object], *names: str) -> dict[str, list[Any]]:
    """Returns attributes of rows as columns, by their names."""
    return {name: [getattr(row, name) for row in rows] for name in names}
