"""Writes what a projection study found as tables and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perfmodel.basics import files, json_values
from perfmodel.basics.tables import grid, seconds
from perfmodel.basics.version import VERSION
from perfmodel.models.projection_cases import ProjectionCase, crossover
from perfmodel.models.projection_plots import emulation_over_device, emulation_over_size
from perfmodel.models.projection_study import FIGURE_6, FIGURE_7, ProjectionFindings
from perfmodel.report import prepared
from perfmodel.report.tables import ERRORS, error_cells


def text(findings: ProjectionFindings, published: Mapping[str, Any]) -> str:
    """Returns the tables: choices with and without transfers, a summary beside the published one, Table III,
    crossovers."""
    parts = ["\n".join(f"{device}: {source}" for device, source in findings.profiles.items())]
    for transfers in (False, True):
        if cases := findings.of(transfers):
            parts.append(_choices(cases, "with transfers" if transfers else "without transfers"))
    parts += [
        _summary(findings, published),
        _time_errors(findings),
        _emulation(findings, published),
        _crossovers(findings),
    ]
    parts += [f"note: {note}" for note in findings.notes]
    return "\n\n".join(filter(None, parts))


def _choices(cases: Sequence[ProjectionCase], title: str) -> str:
    names = list(dict.fromkeys(name for case in cases for name in case.measured))
    rows = []
    for case in cases:
        row = [case.application, f"{case.size}{' *' if case.is_table else ''}"]
        for name in names:
            if name in case.measured:
                row += [seconds(case.measured[name]), f"{seconds(case.predicted[name])} {case.limits.get(name, '')}"]
            else:
                row += ["", ""]
        right = "=" if case.chosen == case.fastest else case.chosen
        rows.append([*row, case.fastest, right, f"{case.penalty:.1%}", f"{case.relative_error:.1%}"])
    header = ["application", "size", *(column for name in names for column in (name, "projected"))]
    return f"{title}; * is Table II\n\n" + grid([*header, "fastest", "chosen", "penalty", "error"], rows)


def _summary(findings: ProjectionFindings, published: Mapping[str, Any]) -> str:
    rows: list[list[str]] = []
    for name, found in findings.summary().items():
        if "cases" in found:
            rows.append(
                [
                    name,
                    f"{found['fastest_chosen']} of {found['cases']}",
                    f"{found['largest_penalty']:.1%}",
                    f"{found['mean_penalty']:.1%}",
                    f"{found['mean_relative_error']:.1%}",
                    f"{found['largest_relative_error']:.1%}",
                    seconds(found["mean_cost_s"]),
                ]
            )
            rows += [
                [
                    f"  always {device}",
                    f"{other['fastest_chosen']} of {other['cases']}",
                    f"{other['largest_penalty']:.1%}",
                    f"{other['mean_penalty']:.1%}",
                    *[""] * 3,
                ]
                for device, other in found["always"].items()
            ]
    rows.append(
        [
            "published, four GPUs",
            f"{published['chosen'][0]} of {published['chosen'][1]}",
            f"{published['penalty']:.1%}",
            "",
            f"{published['relative_error_one_group']:.1%}",
            "40.0%",
            "",
        ]
    )
    header = ["cases", "fastest chosen", "largest penalty", "mean penalty", "mean relative error", "largest"]
    return grid([*header, "cost of a choice"], rows)


def _time_errors(findings: ProjectionFindings) -> str:
    """Returns the errors of the projected times themselves, a line a device and set of cases."""
    rows = [
        [f"{name}: {device}", *error_cells(errors), str(int(errors["count"]) if errors else 0)]
        for name, found in findings.summary().items()
        if "cases" in found
        for device, errors in found["time_errors"].items()
    ]
    return grid(["error of the projected time", *ERRORS, "times"], rows)


def _emulation(findings: ProjectionFindings, published: Mapping[str, Any]) -> str:
    rows: list[list[str]] = []
    for each in findings.emulated:
        mark = "≈" if each.is_estimate else ""
        ratios = published["emulation_ratio"].get(each.application, ())
        rows.append(
            [
                each.application,
                str(each.size),
                str(each.work_groups),
                seconds(each.one_s),
                f"{mark}{seconds(each.all_s)}",
                f"{mark}{each.all_s / each.one_s:.0f}",
                f"{min(ratios):.0f} to {max(ratios):.0f}" if ratios else "",
                str(each.error_size),
                f"{each.error_one:.1%}",
                f"{each.error_all:.1%}",
            ]
        )
    if not rows:
        return ""
    header = ["application", "size", "groups", "one group", "all", "ratio", "published", "at size"]
    header += ["error by one", "by all"]
    return grid(header, rows)


def _crossovers(findings: ProjectionFindings) -> str:
    """Returns the sizes from which on each GPU is faster than the largest processor."""
    kinds = {name: each["kind"] for name, each in findings.devices.items()}
    gpus = [name for name, kind in kinds.items() if kind == "gpu"]
    cpus = [name for name, kind in kinds.items() if kind == "cpu"]
    if not gpus or not cpus:
        return ""
    cpu = max(cpus, key=lambda name: int(findings.devices[name]["compute_units"]))
    rows: list[list[str]] = []
    for gpu in gpus:
        for application in dict.fromkeys(case.application for case in findings.cases):
            row = [application, gpu]
            for transfers in (False, True):
                own = [
                    case
                    for case in findings.of(transfers)
                    if case.application == application and {gpu, cpu} <= case.measured.keys()
                ]
                row += [str(crossover(own, gpu, cpu, predicted) or "never") for predicted in (True, False)]
            rows.append(row)
    header = ["faster than " + cpu, "device", "predicted from", "measured", "with transfers, predicted", "measured"]
    return grid(header, rows)


def write(
    findings: ProjectionFindings, published: Mapping[str, Any], command: str, protocol: str, folder: Path, shown: str
) -> list[Path]:
    """Writes results.json, table.txt and the plots."""
    target = prepared(folder)
    rows: list[dict[str, Any]] = [
        {
            "model": "projection",
            "kernel": case.application,
            "variant": "transfers=True" if case.transfers else "",
            "sizes": {"n": case.size},
            "role": "evaluation",
            "device": device,
            "measured_s": case.measured[device],
            "predicted_s": case.predicted[device],
            "predicted_std_s": case.predicted_std[device],
            "limit": case.limits[device],
            "flags": [],
            "label": case.application,
        }
        for case in findings.cases
        for device in case.measured
    ]
    results = {
        "recipe": "projection",
        "perfmodel": VERSION,
        "command": command,
        "devices": findings.devices,
        "profiles": findings.profiles,
        "protocol": {"name": protocol},
        "rows": rows,
        "emulation": [asdict(each) for each in findings.emulated],
        "emulation_costs": findings.costs,
        "summary": findings.summary(),
        "published": published,
        "notes": findings.notes,
    }
    written = []
    contents: dict[str, bytes] = {
        "results.json": json_values.document(results).encode(),
        "table.txt": f"{shown}\n".encode(),
        "figure-6.png": emulation_over_size({n: findings.costs[n] for n in FIGURE_6 if n in findings.costs}),
    }
    if FIGURE_7 in findings.costs:
        on_devices = {
            device: [
                (case.size, case.measured[device])
                for case in findings.of(False)
                if case.application == FIGURE_7 and device in case.measured
            ]
            for device in findings.devices
        }
        contents["figure-7.png"] = emulation_over_device(FIGURE_7, findings.costs[FIGURE_7], on_devices)
    for name, content in contents.items():
        written.append(target / name)
        files.write(written[-1], content)
    return written
