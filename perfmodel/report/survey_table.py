"""A survey as text: a table by group, the kernels' times, what took how long, and what failed and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import grid, percent, seconds
from perfmodel.surveying import Survey
from perfmodel.surveying.survey import CaseOutcome


def as_text(survey: Survey, failures: int = 40) -> str:
    """Returns the tables of a survey.

    Args:
        failures: at most so many reasons are listed, the most frequent first.
    """
    stages = list(survey.stages)
    lines = [[group or "(no group)", *_numbers(outcomes, stages)] for group, outcomes in survey.groups.items()]
    lines.append(["all", *_numbers(survey.outcomes, stages)])
    parts = [grid(["group", "cases", *stages], lines)]
    if kernels := _kernels(survey):
        parts.append(grid(["case", "predicted", "90 % between", "measured", "ratio"], kernels))
    parts.append(grid(["stage", "median s", "95 % s", "maximum s", "slowest"], _times(survey)))
    if errors := Errors.of(error for each in survey.outcomes if (error := each.error) is not None):
        parts.append(
            f"predicted against measured, {errors.count} kernels: {percent(errors.within_30_percent)} within "
            f"30 %, error {percent(errors.geometric_mean)} (geometric mean), {percent(errors.mean)} (mean), "
            f"{percent(errors.maximum)} (maximum); {_covered(survey)}"
        )
    reasons = Counter((stage.name, stage.failure) for _, stage in survey.failures)
    cases: dict[tuple[str, str], list[str]] = {}
    for case, stage in survey.failures:
        cases.setdefault((stage.name, stage.failure), []).append(case.name)
    chosen = reasons.most_common(failures)
    if chosen:
        listed = [[stage, _few(cases[stage, why]), why] for (stage, why), _ in chosen]
        parts.append(grid(["failed in", "cases", "because"], listed))
    if left_out := Counter((stage.name, stage.left_out) for _, stage in survey.left_out):
        listed = [[stage, str(count), why] for (stage, why), count in left_out.items()]
        parts.append(grid(["left out", "cases", "because"], listed))
    if len(reasons) > len(chosen):
        parts.append(f"and {len(reasons) - len(chosen)} other reasons; --json has all")
    return "\n\n".join(parts)


def _numbers(outcomes: Sequence[CaseOutcome], stages: Sequence[str]) -> list[str]:
    return [str(len(outcomes)), *(str(sum(each.succeeded(stage) for each in outcomes)) for stage in stages)]


def _kernels(survey: Survey) -> list[list[str]]:
    """Returns the times of each kernel that was predicted or measured."""
    lines = []
    for each in survey.outcomes:
        times = each.times
        if times.predicted is not None or times.measured is not None:
            between = "-" if times.predicted is None else f"{seconds(times.low)} and {seconds(times.high)}"
            ratio = "-" if times.ratio is None else f"{times.ratio:.2f}"
            lines.append([each.case.name, seconds(times.predicted), between, seconds(times.measured), ratio])
    return lines


def _times(survey: Survey) -> list[list[str]]:
    """Returns the times of each stage, of the cases in which it succeeded."""
    lines = []
    for name in survey.stages:
        found = [
            (stage.seconds, each.case.name)
            for each in survey.outcomes
            if (stage := each.stage(name)) is not None and stage.succeeded
        ]
        if found:
            seconds = [time for time, _ in found]
            most, slowest = max(found)
            lines.append([name, *(f"{np.quantile(seconds, q):.3g}" for q in (0.5, 0.95)), f"{most:.3g}", slowest])
    return lines


def _covered(survey: Survey) -> str:
    """Returns how many measured times lie in the intervals of their predictions."""
    inside = [each.times.is_covered for each in survey.outcomes if each.times.ratio is not None]
    return f"{percent(float(np.mean(inside)))} of the measured times in the 90 % intervals"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
