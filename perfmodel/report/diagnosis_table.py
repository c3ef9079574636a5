"""Writes a diagnosis as text: a line a check, what to do, the verdict."""

from __future__ import annotations

from textwrap import fill

from perfmodel.measuring.doctor import Diagnosis, Severity

WIDTH = 100


def as_text(diagnosis: Diagnosis) -> str:
    """Returns the findings aligned, advice below, the verdict last; no line longer than WIDTH."""
    device = diagnosis.device
    names = max(len(finding.name) for finding in diagnosis.findings)
    severities = max(map(len, Severity))
    blank = " " * (names + severities + 4)
    parts = [fill(f"{device.key}: {device.name}, driver {device.driver}", WIDTH), ""]
    for finding in diagnosis.findings:
        begin = f"{finding.name:<{names}}  {finding.severity:<{severities}}  "
        # A quantity stays on its line.
        measured = ", ".join(str(quantity).replace(" ", "\N{NO-BREAK SPACE}") for quantity in finding.measured)
        line = fill(measured, WIDTH, initial_indent=begin, subsequent_indent=blank)
        parts.append(line.replace("\N{NO-BREAK SPACE}", " "))
    advice = [finding for finding in diagnosis.findings if finding.advice]
    if advice:
        parts.append("")
    parts += [fill(f"- {finding.name}: {finding.advice}.", WIDTH, subsequent_indent="  ") for finding in advice]
    return "\n".join([*parts, "", fill(diagnosis.verdict, WIDTH)])
