"""Compares two predictions: where the difference between two kernels' times comes from, cost by cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import KernelError
from perfmodel.basics.json_values import plain
from perfmodel.basics.notebook import table
from perfmodel.basics.tables import grid
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling import notebook_plots
from perfmodel.modelling.explanation import LEAST_NOTABLE, Explanation, columns_of, explain
from perfmodel.modelling.fitted import Fitted
from perfmodel.modelling.growing import times_as_long

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


HEADER = ("cost", "first", "second", "difference")


@dataclass(frozen=True)
class Difference:
    """One cost of two predictions: what it adds to each, in seconds."""

    name: str
    first_s: float
    second_s: float

    @property
    def seconds(self) -> float:
        """The seconds that the cost adds to the second time over the first."""
        return self.second_s - self.first_s


@dataclass(frozen=True)
class Comparison:
    """Holds where the difference between two predictions comes from.

    Attributes:
        differences: by cost, the largest first; they add up to the difference of the two times.
    """

    first: Explanation
    second: Explanation
    differences: tuple[Difference, ...]

    @property
    def notable(self) -> tuple[Difference, ...]:
        """The differences without costs that are next to nothing in both; those are summed up as one."""
        least = LEAST_NOTABLE * min(self.first.seconds, self.second.seconds)
        small = [each for each in self.differences if max(abs(each.first_s), abs(each.second_s)) < least]
        if len(small) < 2:
            return self.differences
        others = Difference("others", sum(each.first_s for each in small), sum(each.second_s for each in small))
        return (*(each for each in self.differences if each not in small), others)

    @property
    def ratio(self) -> float:
        """The second time over the first."""
        return self.second.seconds / self.first.seconds

    def as_json(self) -> dict[str, Any]:
        """Returns the comparison as values that JSON can hold."""
        return {
            "first": self.first.as_json(),
            "second": self.second.as_json(),
            "ratio": plain(self.ratio),
            "differences": [asdict(each) | {"seconds": each.seconds} for each in self.differences],
        }

    def to_frame(self) -> pd.DataFrame:
        """Returns the differences as a DataFrame: columns ``cost``, ``first_s``, ``second_s``, ``seconds``, a row a
        cost."""
        import pandas as pd  # slow to import

        names = {"cost": [each.name for each in self.differences]}
        return pd.DataFrame(names | columns_of(self.differences, "first_s", "second_s", "seconds"))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plots two stacked bars, on matplotlib axes, new ones if none are given."""
        titles = [each.title for each in (self.first, self.second)]
        totals = (self.first.seconds, self.second.seconds)
        costs = {each.name: (each.first_s, each.second_s) for each in self.notable}
        return notebook_plots.comparison(titles, totals, costs, self.ratio, ax)

    def _repr_html_(self) -> str:
        first, second = escape(self.first.title), escape(self.second.title)
        return (
            f"<p>first: {first}<br>second: {second}, which takes {self.ratio:.3g} times as long</p>\n"
            f"{table(HEADER, self._rows)}"
        )

    @property
    def _rows(self) -> list[list[str]]:
        every = (*self.notable, Difference("all", self.first.seconds, self.second.seconds))
        return [
            [each.name, f"{each.first_s:.4g} s", f"{each.second_s:.4g} s", f"{each.seconds:+.4g} s"] for each in every
        ]

    def __repr__(self) -> str:
        return brief(self, f"{self.ratio:.3g} times as long", f"{self.second.title} as {self.first.title}")

    def __str__(self) -> str:
        return "\n".join(
            [
                f"first:  {self.first.title}, limited by {self.first.bottleneck}",
                f"second: {self.second.title}, limited by {self.second.bottleneck}",
                f"the second takes {times_as_long(self.ratio)} the first",
                "",
                grid(HEADER, self._rows),
            ]
        )


def compare(calibration: Fitted, first: Kernel, second: Kernel, sizes: Mapping[str, int]) -> Comparison:
    """Compares two predictions; see `Calibration.compare`."""
    found = []
    for kernel in (first, second):
        known = {name: size for name, size in sizes.items() if name in kernel.program.sizes}
        found.append(explain(calibration, kernel, known))
    if unknown := set(sizes) - {name for kernel in (first, second) for name in kernel.program.sizes}:
        raise KernelError(f"no kernel has a size {min(unknown)!r}; give one that they have")
    one, other = ({cost.name: cost.share * each.seconds for cost in each.costs} for each in found)
    differences = [Difference(name, one.get(name, 0.0), other.get(name, 0.0)) for name in {**one, **other}]
    return Comparison(found[0], found[1], tuple(sorted(differences, key=lambda each: -abs(each.seconds))))
