"""An outcome as text tables, as wide as needed and no wider; the same on a terminal and in a file."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.recipe import Outcome, Row

Line = Sequence[str]


def grid(header: Line, lines: Sequence[Line]) -> str:
    """Columns aligned: the first to the left, the others to the right."""
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]

    def shown(line: Line) -> str:
        cells = [
            line[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([shown(header), "  ".join("-" * width for width in widths), *map(shown, lines)])


def seconds(value: float | None) -> str:
    """Three to four significant digits with a unit that people read: 12.3 us, 1.234 ms."""
    if value is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns"


def short_variants(rows: Sequence[Row]) -> dict[str, str]:
    """Each variant by the tags in which the variants differ, or by its kernel's name if they don't."""
    split = {row.variant: row.variant.split() for row in rows}
    common = set.intersection(*(set(tags) for tags in split.values())) if split else set()
    kernels = {row.variant: row.kernel for row in rows}
    return {v: " ".join(t for t in tags if t not in common) or kernels[v] for v, tags in split.items()}


def comparison(outcome: Outcome) -> str:
    """Measured and predicted times side by side, a line for each kernel that no fit has seen."""
    models = list(outcome.calibrations)
    by_model = {name: outcome.evaluation(name) for name in models}
    names = short_variants(by_model[models[0]])
    header = ["kernel", "size", "measured"]
    for name in models:
        header += [f"{name}", "error"]
    lines = []
    for rows in zip(*by_model.values(), strict=True):
        first = rows[0]
        line = [names[first.variant], _sizes(first), seconds(first.measured_s)]
        for row in rows:
            line += [seconds(row.predicted_s), _percent(row.error)]
        lines.append(line)
    return grid(header, lines)


def error_table(outcome: Outcome) -> str:
    """Geometric mean, mean and maximum error of each model on each variant."""
    lines = []
    for model in outcome.calibrations:
        names = short_variants(outcome.evaluation(model))
        for variant, errors in outcome.summary[model]["errors"].items():
            label = next(short for full, short in names.items() if variant.endswith(full))
            shown = [_percent(errors[key]) for key in ("geometric_mean", "mean", "maximum")]
            lines.append([f"{model}: {label}", *shown, str(errors["count"])])
    return grid(["error on held-out sizes", "geometric mean", "mean", "maximum", "sizes"], lines)


def verdict(outcome: Outcome) -> str:
    """The errors, and for each model how often it named the fastest variant."""
    names = short_variants(outcome.evaluation(next(iter(outcome.calibrations))))
    lines = [error_table(outcome), ""]
    for model in outcome.calibrations:
        choices = outcome.summary[model]["fastest"]
        if not choices:
            continue
        measured = _tally([names[c["measured"]] for c in choices])
        if all(c["predicted"] is None for c in choices):
            lines.append(f"{model}: predicts the same time for all variants; measured fastest: {measured}")
            continue
        predicted = _tally([names.get(c["predicted"], "a tie") for c in choices])
        right = sum(c["right"] for c in choices)
        lines.append(
            f"{model}: predicted fastest: {predicted}; measured fastest: {measured}; "
            f"right at {right} of {len(choices)} sizes"
        )
    return "\n".join(lines)


def _tally(names: Sequence[str]) -> str:
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    if len(counts) == 1:
        return names[0]
    return ", ".join(f"{name} ({count} of {len(names)})" for name, count in counts.items())


def _sizes(row: Row) -> str:
    return " ".join(f"{name}={value}" for name, value in row.sizes.items())


def _percent(error: float) -> str:
    return f"{error:.1%}" if error == error else "-"
