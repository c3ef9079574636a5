"""Writes an outcome as text tables, as wide as needed and no wider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perfmodel.basics.statistics import geometric_mean
from perfmodel.basics.tables import Line, grid, percent, seconds, short_labels, sizes_text
from perfmodel.modelling.rows import Row
from perfmodel.recipes.outcome import Cost, Outcome

MOST_LINES = 500
"""People read a table of single kernels if it has no more lines than these."""


Names = Mapping[tuple[str, str], str]


def kernel_names(rows: Sequence[Row]) -> Names:
    """Returns each kernel and variant by its label, and where a label has several, by the tags in which these
    differ."""
    by_label: dict[str, dict[str, tuple[str, str]]] = {}
    for row in rows:
        by_label.setdefault(row.label, {})[f"{row.kernel} {row.variant}".strip()] = (row.kernel, row.variant)
    names = {}
    for label, short in short_labels(by_label).items():
        variants = short_labels(by_label[label])
        for text, key in by_label[label].items():
            names[key] = short if len(variants) == 1 else f"{short}: {variants[text]}"
    return names


def text(outcome: Outcome) -> str:
    """Returns all tables, the notes last."""
    parts = [comparison(outcome), verdict(outcome)]
    if intervals := interval_table(outcome):
        parts.append(grid(*intervals))
    if is_compared(outcome):
        parts.append(grid(*label_table(outcome)))
        if outcome.recipe.published:
            parts[-1] += f"\n{PUBLISHED_NOTE}"
        if contests := contest_table(outcome):
            parts += [grid(*contests), grid(*ranking_table(outcome))]
    if outcome.notes:
        parts.append("\n".join(f"note: {note}" for note in outcome.notes))
    return "\n\n".join(parts)


def weights(outcome: Outcome) -> str:
    """Returns each model with its fitted parameters, and what the baselines are made of."""
    parts: dict[str, list[str]] = {}
    for name, calibration in outcome.calibrations.items():
        source = calibration.model.string.source.strip().splitlines()
        parts[f"model {name}:"] = [*source, "", *calibration.parameter_lines()]
    for name, baseline in outcome.baselines.items():
        parts[f"baseline {name}:"] = baseline.parameter_lines()
    return "\n\n".join(
        "\n".join([title, *(f"    {line}".rstrip() for line in lines)]) for title, lines in parts.items()
    )


def is_compared(outcome: Outcome) -> bool:
    """Returns True if there is something that the recipe's own models are compared with."""
    return bool(outcome.baselines or outcome.recipe.published)


def comparison(outcome: Outcome) -> str:
    """Returns measured and predicted times side by side, a line a kernel that no fit has seen, unless there are too
    many."""
    by_model = {name: outcome.evaluation(name) for name in outcome.models}
    if (count := len(by_model[outcome.models[0]])) > MOST_LINES:
        return f"times of {count} kernels: see results.json"
    names = kernel_names(by_model[outcome.models[0]])
    header = ["kernel", "size", "measured"]
    for name in outcome.models:
        header += [f"{name}", "error"]
    lines = []
    for rows in zip(*by_model.values(), strict=True):
        first = rows[0]
        line = [names[first.kernel, first.variant], sizes_text(first.sizes), seconds(first.measured_s)]
        for row in rows:
            line += [seconds(row.predicted_s), percent(row.error)]
        lines.append(line)
    return grid(header, lines)


def error_table(outcome: Outcome) -> str:
    """Returns the errors of each model on each line of the recipe's table."""
    lines = []
    for model in outcome.models:
        names = short_labels(dict.fromkeys(row.label for row in outcome.evaluation(model)))
        for label, errors in outcome.summary[model]["errors"].items():
            lines.append([f"{model}: {names[label]}", *error_cells(errors), str(errors["count"])])
    return grid(["error on kernels held out", *ERRORS, "times"], lines)


ERRORS = ("geometric mean", "mean", "maximum", "within ±30 %")
"""The columns of a table of errors: the geometric mean, as the papers have it, and what it hides."""


def error_cells(errors: Mapping[str, float] | None) -> list[str]:
    """Returns a cell for each of `ERRORS`, of what `perfmodel.basics.statistics.Errors.figures` gives."""
    if errors is None:
        return ["-"] * len(ERRORS)
    return [percent(errors[key]) for key in ("geometric_mean", "mean", "maximum", "within_30_percent")]


def interval_table(outcome: Outcome) -> tuple[Line, Sequence[Line]] | None:
    """Returns how many times lie in their intervals, of kernels left out of the fit and of those that it is judged
    by."""
    lines: list[Line] = []
    for model, calibration in outcome.calibrations.items():
        known, judged = calibration.held_out, outcome.summary[model]["covered"]
        if known is None:
            continue
        lines.append(
            [
                model,
                f"{known.groups} {known.held_out}",
                str(known.count),
                *(percent(known.covered[level]) for level in ("68", "90")),
                *(percent(judged[level]) if judged else "-" for level in ("68", "90")),
            ]
        )
    header = ["within intervals", "left out", "times", "68 %", "90 %", "held out: 68 %", "90 %"]
    return (header, lines) if lines else None


def verdict(outcome: Outcome) -> str:
    """Returns the errors, and for each model how often it named the fastest variant."""
    names = kernel_names(outcome.evaluation(outcome.models[0]))
    lines = [error_table(outcome), ""]
    for model in outcome.models:
        choices = outcome.summary[model]["fastest"]
        if not choices:
            continue
        measured = _tally([names[c["kernel"], c["measured"]] for c in choices])
        if all(c["tied"] == c["variants"] for c in choices):
            lines.append(f"{model}: predicts the same time for all variants; measured fastest: {measured}")
            continue
        predicted = _tally([_predicted(c, names) for c in choices])
        right = sum(c["right"] for c in choices)
        lines.append(
            f"{model}: predicted fastest: {predicted}; measured fastest: {measured}; "
            f"right at {right} of {len(choices)} sizes"
        )
    return "\n".join(lines).rstrip()


PUBLISHED_NOTE = "in brackets: geometric means published for these devices"


def label_table(outcome: Outcome) -> tuple[Line, Sequence[Line]]:
    """Returns geometric mean errors, a line a label: published ones, those of the models, those of the baselines."""
    published = outcome.recipe.published
    measured = (row.label for row in outcome.evaluation(outcome.models[0]))
    labels = dict.fromkeys([*measured, *(label for column in published.values() for label in column)])
    summaries = [outcome.summary[model] for model in outcome.models]

    def line(name: str, values: Iterable[float | None]) -> Line:
        return [name, *("-" if value is None else percent(value) for value in values)]

    def over_all(key: str) -> list[float | None]:
        return [(summary["over_all"] or {}).get(key) for summary in summaries]

    lines = [
        line(
            name,
            [column.get(label) for column in published.values()]
            + [summary["errors"].get(label, {}).get("geometric_mean") for summary in summaries],
        )
        for label, name in short_labels(labels).items()
    ]
    none = [None] * len(published)
    theirs = [geometric_mean(list(column.values())) if column else None for column in published.values()]
    lines.append(line("all, geometric mean", theirs + over_all("geometric_mean")))
    lines.append(line("all, mean", none + over_all("mean")))
    lines.append(line("maximum", none + over_all("maximum")))
    lines.append(line("part within ±30 %", none + over_all("within_30_percent")))
    return ["geometric mean error", *(f"[{device}]" for device in published), *outcome.models], lines


def contest_table(outcome: Outcome) -> tuple[Line, Sequence[Line]] | None:
    """Returns, a line a size, the fastest variant measured, the one each model names, and what its choice costs."""
    names = kernel_names(outcome.evaluation(outcome.models[0]))
    choices: dict[tuple[str, str], dict[str, Any]] = {}
    for model in outcome.models:
        for choice in outcome.summary[model]["fastest"]:
            choices.setdefault((choice["kernel"], sizes_text(choice["sizes"])), {})[model] = choice
    if not choices:
        return None
    lines: list[Line] = []
    for (_, size), by_model in choices.items():
        first = next(iter(by_model.values()))
        line = [size, str(first["variants"]), names[first["kernel"], first["measured"]]]
        for model in outcome.models:
            choice = by_model.get(model)
            line += [_predicted(choice, names), f"{choice['cost_of_choice']:.3f}"] if choice else ["-", "-"]
        lines.append(line)
    header = ["size", "variants", "measured fastest"]
    for model in outcome.models:
        header += [model, "÷ best"]
    return header, lines


def ranking_table(outcome: Outcome) -> tuple[Line, Sequence[Line]]:
    """Returns how well each model ranks variants at each size, and what that takes against measuring them."""
    lines: list[Line] = []
    for model in outcome.models:
        found = outcome.summary[model]["ranking"]
        if not found:
            continue
        known = found["rank_correlation"]
        lines.append(
            [
                model,
                f"{percent(found['right'])} of {found['contests']}",
                f"{found['worst_cost']:.3f}",
                "-" if known is None else f"{known['median']:.2f}, {known['mean']:.2f} of {known['sizes']}",
                *_costs(outcome.cost, model),
            ]
        )
    header = ["ranking", "named rightly", "worst ÷ best", "rank correlation at a size: median, mean"]
    return [*header, "predicting took", "measuring took"], lines


def _costs(cost: Cost | None, model: str) -> Line:
    return [seconds(cost.counting + cost.predicting[model]), seconds(cost.measuring)] if cost else ["-", "-"]


def _predicted(choice: Mapping[str, Any], names: Names) -> str:
    return names[choice["kernel"], choice["predicted"]] if choice["predicted"] is not None else "a tie"


def _tally(names: Sequence[str]) -> str:
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    if len(counts) == 1:
        return names[0]
    return ", ".join(f"{name} ({count} of {len(names)})" for name, count in counts.items())
