"""Prepares what the charts of a report page are drawn from, as plain values that JSON can hold; times in seconds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.tables import sizes_text
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.baselines import Work
from perfmodel.modelling.calibration import Calibration
from perfmodel.modelling.rows import CALIBRATION, Row
from perfmodel.report.ceilings import Ceiling, ceilings, flops
from perfmodel.report.reported import ReportedModel
from perfmodel.report.sample import ReportedSample
from perfmodel.vocabulary.named_features import feature

DIGITS = 5
MOST_TERMS = 8
"""So many terms of a breakdown are drawn; smaller ones are drawn as one."""
SEEN = 0.005
"""A term with a smaller share than this over all bars would not be seen in any."""
MOST_CORRELATED = 40
POINTS_OF_A_CURVE = 33
OTHERS = "others"


@dataclass(frozen=True)
class SizeLine:
    """The times of one variant as one of its sizes grows.

    Attributes:
        points: the size, the measured and the predicted time, its standard deviation, and whether the fit had it.
        curve: sizes between the measured ones, predicted times and their standard deviations; empty where the kernel
            could not be generated again.
    """

    kernel: str
    variant: str
    size: str
    points: tuple[tuple[int, float, float | None, float | None, bool], ...]
    curve: tuple[tuple[int, float, float | None], ...]


@dataclass(frozen=True)
class Breakdown:
    """Holds the terms of one prediction.

    Attributes:
        parts: seconds of each by itself, and its share of the time; the largest share first.
        mechanism: what limits the kernel, in words, and what would help; empty where the model does not say.
    """

    kernel: str
    variant: str
    sizes: dict[str, int]
    seconds: float
    parts: tuple[tuple[str, float, float], ...]
    mechanism: str = ""


@dataclass(frozen=True)
class RooflineChart:
    """The rows' FLOP a byte and FLOP a second, a multiply-add being two, below the ceilings that parameters are."""

    points: tuple[tuple[Row, float, float], ...]
    bandwidths: Sequence[Ceiling]
    rates: Sequence[Ceiling]


@dataclass(frozen=True)
class Charts:
    """All that is drawn of one model, and tabulated behind its charts.

    Attributes:
        correlations: names of parameters, and their coefficients; empty where none are known.
    """

    model: ReportedModel
    sample: ReportedSample
    lines: Sequence[SizeLine]
    breakdowns: Sequence[Breakdown]
    correlations: tuple[Sequence[str], Sequence[Sequence[float]]]
    roofline: RooflineChart | None

    @classmethod
    def of(cls, model: ReportedModel, sample: ReportedSample) -> Charts:
        return cls(
            model,
            sample,
            lines(model, sample),
            breakdowns(model, sample),
            correlations(model.calibration) if model.calibration else ([], []),
            roofline(model, sample),
        )


def complete(rows: Iterable[Row]) -> list[Row]:
    """Returns the rows with both times, measured and predicted."""
    return [row for row in rows if row.measured_s and row.predicted_s and row.predicted_s > 0]


def lines(model: ReportedModel, sample: ReportedSample) -> list[SizeLine]:
    """Returns a line for each variant and size that vary, of the longest first; other sizes stay as they are along a
    line."""
    by_variant: dict[tuple[str, str, tuple[str, ...]], list[Row]] = {}
    for row in complete(model.rows):
        if min(row.sizes.values(), default=0) > 0:  # axes are logarithmic
            by_variant.setdefault((row.kernel, row.variant, tuple(sorted(row.sizes))), []).append(row)
    found = [
        line
        for (kernel, variant, _), rows in by_variant.items()
        for line in _lines_of(model, rows, sample.kernels.get((kernel, variant)))
        if len({point[0] for point in line.points}) > 1
    ]
    return sorted(found, key=lambda line: (-len(line.points), line.kernel, line.variant))


def _lines_of(model: ReportedModel, rows: Sequence[Row], kernel: Kernel | None) -> list[SizeLine]:
    values = {name: {row.sizes[name] for row in rows} for name in rows[0].sizes}
    along = max(values, key=lambda name: len(values[name]))
    tied = len(values[along]) == len(rows)  # the others follow from it, or do not vary
    groups: dict[tuple[tuple[str, int], ...], list[Row]] = {}
    for row in rows:
        fixed = () if tied else tuple((name, size) for name, size in row.sizes.items() if name != along)
        groups.setdefault(fixed, []).append(row)
    result = []
    for fixed, group in groups.items():
        group.sort(key=lambda row: row.sizes[along])
        at = sizes_text(dict(fixed))
        points = tuple(
            (r.sizes[along], r.measured_s or 0.0, r.predicted_s, model.std(r), r.role == CALIBRATION) for r in group
        )
        varied = [name for name in values if len({row.sizes[name] for row in group}) > 1]
        curve = _curve(model.calibration, kernel, group, along) if kernel and varied == [along] else ()
        result.append(
            SizeLine(
                kernel=rows[0].kernel, variant=f"{rows[0].variant} {at}".strip(), size=along, points=points, curve=curve
            )
        )
    return result


def _curve(
    calibration: Calibration | None, kernel: Kernel, rows: Sequence[Row], along: str
) -> tuple[tuple[int, float, float | None], ...]:
    """Returns predictions at multiples of what all measured sizes are multiples of: those the kernel is made for."""
    if calibration is None:
        return ()
    step = math.gcd(*(row.sizes[along] for row in rows))
    wanted = np.geomspace(rows[0].sizes[along], rows[-1].sizes[along], POINTS_OF_A_CURVE)
    sizes = np.unique(np.maximum(np.round(wanted / step), 1).astype(np.int64) * step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            seconds, std = calibration.predict(kernel.at(**rows[0].sizes), return_std=True, **{along: sizes})
        except PerfmodelError:
            return ()
    return tuple(
        (int(n), float(s), float(e) if math.isfinite(e) else None) for n, s, e in zip(sizes, seconds, std, strict=True)
    )


def breakdowns(model: ReportedModel, sample: ReportedSample) -> list[Breakdown]:
    """Returns a breakdown for each variant that could be generated again, at its longest time; the longest first."""
    if model.calibration is None:
        return []
    longest: dict[tuple[str, str], Row] = {}
    for row in complete(model.rows):
        variant = (row.kernel, row.variant)
        if variant in sample.kernels:
            longest[variant] = max(longest.get(variant, row), row, key=lambda each: each.measured_s or 0.0)
    found = []
    for variant, row in longest.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                kernel = sample.kernels[variant].at(**row.sizes)
                explained = model.calibration.explain(kernel)
            except PerfmodelError:  # a size or a feature that this kernel has not
                continue
        parts = tuple((cost.name, cost.seconds, cost.share) for cost in explained.costs)
        if all(map(math.isfinite, (explained.seconds, *(number for _, *numbers in parts for number in numbers)))):
            said = str(explained.mechanism or "")
            found.append(
                Breakdown(
                    kernel=kernel.name,
                    variant=kernel.variant,
                    sizes=kernel.sizes,
                    seconds=explained.seconds,
                    parts=parts,
                    mechanism=said,
                )
            )
    return sorted(found, key=lambda breakdown: -breakdown.seconds)


def correlations(calibration: Calibration) -> tuple[list[str], list[list[float]]]:
    """Returns names and correlation coefficients of the parameters whose variance is known; not more than
    MOST_CORRELATED."""
    deviations = np.sqrt(np.diag(calibration.covariance))
    known = [i for i, deviation in enumerate(deviations) if math.isfinite(deviation) and deviation > 0]
    known = known[:MOST_CORRELATED]
    names = list(calibration.parameters)
    block = calibration.covariance[np.ix_(known, known)]
    scaled = block / np.outer(deviations[known], deviations[known])
    return [names[i] for i in known], np.clip(np.nan_to_num(scaled), -1, 1).tolist()


def roofline(model: ReportedModel, sample: ReportedSample) -> RooflineChart | None:
    """Returns a roofline; None where the calibration has no bandwidth of global memory or no rate of operations among
    its parameters."""
    if model.calibration is None:
        return None
    bandwidths, rates = ceilings(model.calibration)
    if not bandwidths or not rates:
        return None
    points = []
    for row in complete(model.rows):
        if kernel := sample.kernels.get((row.kernel, row.variant)):
            intensity = _intensity(kernel, row)
            points += [(row, *intensity)] if intensity else []
    return RooflineChart(tuple(points), bandwidths, rates)


def _intensity(kernel: Kernel, row: Row) -> tuple[float, float] | None:
    """Returns floating-point operations a byte of global accesses, and a second, a multiply-add being two of them; None
    where there are none."""
    try:
        kernel = kernel.at(**row.sizes)
        work, n_bytes = Work.of(kernel), feature("f_mem_bytes_global").eval(kernel)
    except PerfmodelError:
        return None
    operations = sum(n * flops(name) for name, n in work.operations.items()) if work else 0.0
    if not row.measured_s or operations <= 0 or n_bytes <= 0:
        return None
    return operations / n_bytes, operations / row.measured_s


def as_json(charts: Charts) -> dict[str, Any]:
    """Returns what the page's script reads."""
    model, roofs = charts.model, charts.roofline
    families = list(dict.fromkeys(row.kernel for row in model.rows))
    variants: dict[str, int] = {}

    def index(variant: str) -> int:
        return variants.setdefault(variant, len(variants))

    points = [
        [
            families.index(row.kernel),
            index(row.variant),
            sizes_text(row.sizes),
            _short(row.measured_s),
            _short(row.predicted_s),
            int(row.role == CALIBRATION),
            " ".join(row.flags),
        ]
        for row in complete(model.rows)
    ]
    series = [
        {
            "family": families.index(line.kernel),
            "variant": line.variant,
            "size": line.size,
            "points": [[n, *map(_short, times), int(fitted)] for n, *times, fitted in line.points],
            "curve": [[n, *map(_short, times)] for n, *times in line.curve],
        }
        for line in charts.lines
    ]
    names, values = charts.correlations
    return {
        "name": model.name,
        "families": families,
        "points": points,
        "variants": list(variants),
        "series": series,
        "costs": _costs(charts.breakdowns),
        "correlations": {"names": names, "values": [[round(value, 3) for value in row] for row in values]},
        "roofline": None if roofs is None or not roofs.points else _roofs(roofs, families),
    }


def terms(found: Sequence[Breakdown]) -> list[str]:
    """Returns the terms that are drawn: those with the largest share over all, the last of them for all others."""
    total: dict[str, float] = {}
    for breakdown in found:
        for name, _, share in breakdown.parts:
            total[name] = total.get(name, 0.0) + max(share, 0.0)
    ordered = [name for name in sorted(total, key=lambda name: -total[name]) if total[name] > SEEN]
    return ordered if len(ordered) <= MOST_TERMS else [*ordered[: MOST_TERMS - 1], OTHERS]


def _costs(found: Sequence[Breakdown]) -> dict[str, Any]:
    drawn = terms(found)
    rows = []
    for breakdown in found:
        shares = dict.fromkeys(drawn, 0.0)
        for name, _, share in breakdown.parts:
            if (drawn_as := name if name in shares else OTHERS) in shares:
                shares[drawn_as] += max(share, 0.0)
        rows.append(
            {
                "kernel": breakdown.kernel,
                "variant": breakdown.variant,
                "sizes": sizes_text(breakdown.sizes),
                "seconds": _short(breakdown.seconds),
                "shares": [round(share, 4) for share in shares.values()],
            }
        )
    return {"terms": drawn, "rows": rows}


def _roofs(found: RooflineChart, families: Sequence[str]) -> dict[str, Any]:
    return {
        "points": [
            [families.index(row.kernel), row.variant, sizes_text(row.sizes), _short(intensity), _short(rate)]
            for row, intensity, rate in found.points
        ],
        "bandwidths": [[ceiling.parameter, _short(ceiling.rate)] for ceiling in found.bandwidths],
        "rates": [[ceiling.parameter, _short(ceiling.rate)] for ceiling in found.rates],
    }


def _short(value: float | None) -> float | None:
    """Returns a number with the digits that a chart can show; the tables have the rest."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")
