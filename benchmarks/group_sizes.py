"""Shows how times of the unified model's test kernels depend on the size of their work-groups (2016, section 5).

    python -m benchmarks.group_sizes --device h200 \
        --store docs/results/unified-plus-nvidia-h200-e38dd1/measurements.sqlite.xz

The model is that of the recipe `unified`, calibrated with its nine classes. It has no term for occupancy, so that its
predictions for one problem differ with the work-group as far as counts do.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import perfmodel as pm
from perfmodel.basics.statistics import BAND, geometric_mean
from perfmodel.basics.tables import grid, percent
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.rows import CALIBRATION, EVALUATION
from perfmodel.models.unified import LABELS, Unified, evaluation_kernels
from perfmodel.recipes.recipe import TagFilter
from perfmodel.recipes.running import kernels_of

warnings.simplefilter("ignore")
GROUPS = {"lsizes:16x16": "lsizes:2-D_Large", "lsizes:256": "lsizes:1-D_Large"}
"""The three work-groups of the measurement kernels, for those that the recipe judges by."""


class GroupSizes(Unified):
    """The recipe with its test kernels in three work-groups each."""

    def evaluation_tags(self, seconds_of: object) -> Sequence[TagFilter]:
        from perfmodel.models.unified import sizes_for

        found = evaluation_kernels(sizes_for(seconds_of)).values()  # type: ignore[arg-type]
        return [tuple(GROUPS.get(word, word) for word in tags) for tags in found]


@dataclass(frozen=True)
class Case:
    """One test kernel at one size in one work-group."""

    label: str
    items: int
    size: int
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        return abs(self.predicted / self.measured - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device")
    parser.add_argument("--store")
    parsed = parser.parse_args()
    chosen = GroupSizes()
    (expression,) = chosen.models.values()
    model = pm.Model(chosen.output, expression)
    conditions = {"device": parsed.device, "store": parsed.store, "protocol": chosen.protocol}
    notes: list[str] = []
    kernels = kernels_of(chosen, [model], conditions, notes)
    calibration = model.fit(pm.measure(kernels[CALIBRATION], model, **conditions), nonnegative=False)
    table = pm.measure(kernels[EVALUATION], model, **conditions)
    print(f"unified on {table.attrs['device']['name']}: its test kernels in three work-groups each\n")
    cases = [
        Case(
            label=LABELS[kernel.name],
            items=_items(kernel),
            size=min(kernel.sizes.values()),
            measured=float(time),
            predicted=float(calibration.predict(kernel)),
        )
        for kernel, time in zip(kernels[EVALUATION], table[chosen.output], strict=True)
        if np.isfinite(time)
    ]
    print(_table(cases))
    if missing := len(kernels[EVALUATION]) - len(cases):
        notes.append(
            f"{missing} of {len(kernels[EVALUATION])} kernels were left out, as the store has no times of them"
        )
    print("".join(f"\nnote: {note}" for note in notes))


def _items(kernel: Kernel) -> int:
    return int(kernel.tags["lsize_0"]) * int(kernel.tags.get("lsize_1", 1))


def _table(cases: Sequence[Case]) -> str:
    lines = []
    for label in dict.fromkeys(case.label for case in cases):
        own = [case for case in cases if case.label == label]
        for items in sorted({case.items for case in own}):
            errors = [case.error for case in own if case.items == items]
            lines.append([label, str(items), *_errors(errors), percent(_slower(own, items))])
    lines.append(["all", "", *_errors([case.error for case in cases]), ""])
    header = ["test kernel", "work-items", "geometric mean", "mean", "maximum", "within ±30 %", "times"]
    return grid([*header, "slower than the fastest"], lines)


def _errors(errors: Sequence[float]) -> list[str]:
    shown = (geometric_mean(errors), float(np.mean(errors)), max(errors), float(np.mean(np.asarray(errors) <= BAND)))
    return [*map(percent, shown), str(len(errors))]


def _slower(cases: Sequence[Case], items: int) -> float:
    """Returns the part by which groups of this size are slower than the best, a mean over sizes, per n squared or
    cubed, as sizes are moved to multiples of a work-group.

    Times of sizes that differ a little are compared at the same size by the power law between neighbouring sizes.
    """
    ratios = []
    groups = {each: sorted((c.size, c.measured) for c in cases if c.items == each) for each in {c.items for c in cases}}
    for size, measured in groups[items]:
        at_size = [
            float(np.exp(np.interp(np.log(size), *np.log(np.array(points)).T)))
            for points in groups.values()
            if points[0][0] <= size * 1.2 and points[-1][0] >= size / 1.2
        ]
        ratios.append(measured / min([measured, *at_size]) - 1)
    return float(np.mean(ratios))


if __name__ == "__main__":
    main()
