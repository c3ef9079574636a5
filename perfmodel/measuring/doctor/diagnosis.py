"""A diagnosis says what an examination found: findings with their numbers, and the verdict that follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.tables import seconds
from perfmodel.device import Device

BEST_PRECISION, COMMON_PRECISION = 1e-3, 1e-2
"""The precisions that are promised. None is better than the first: a few seconds of watching say nothing of the next
hour. The second is enough for most, and shorter times have it."""
NEAR = 3
"""Times under so many launches are flagged by `measurement`, so none of them is promised."""


class Severity(StrEnum):
    """The weight of a finding against the device's times."""

    OK = "ok"
    DOUBTFUL = "doubtful"
    BAD = "bad"

    @classmethod
    def of(cls, value: float, doubtful: float, bad: float = float("inf")) -> Severity:
        """Returns the severity of a value by the limits that it exceeds."""
        return cls.BAD if value > bad else cls.DOUBTFUL if value > doubtful else cls.OK


@dataclass(frozen=True)
class Quantity:
    """One number of a finding.

    Attributes:
        value: None where it can't be known here.
        unit: ``"s"``, ``"MHz"``; ``"part"`` of a whole; empty for a number without one.
    """

    name: str
    value: float | None
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.name} {amount(self.value, self.unit)}"


def amount(value: float | None, unit: str) -> str:
    """Returns a number with its unit as people read it, three digits at most."""
    if value is None:
        return "not known"
    if unit == "s":
        return seconds(float(f"{value:.3g}")) if value else "0 s"
    if unit == "part":
        return f"{100 * value:.3g} %"
    return f"{value:.4g} {unit}".rstrip()


@dataclass(frozen=True)
class Finding:
    """Holds what one check measured.

    Attributes:
        fault: what is wrong, in words that follow "because"; empty if nothing is.
        remedy: what to do about it.
    """

    name: str
    severity: Severity
    measured: tuple[Quantity, ...]
    fault: str = ""
    remedy: str = ""

    @classmethod
    def judged(cls, name: str, severity: Severity, measured: tuple[Quantity, ...], fault: str, remedy: str) -> Finding:
        """Returns a finding whose fault counts if its severity is none to pass over."""
        return cls(name, severity, measured, *((fault, remedy) if severity != Severity.OK else ()))

    @classmethod
    def doubtful(cls, name: str, measured: tuple[Quantity, ...], wrong: Mapping[str, str]) -> Finding:
        """Returns a finding that is doubtful if there are any faults, each with its remedy."""
        severity = Severity.DOUBTFUL if wrong else Severity.OK
        return cls(name, severity, measured, " and ".join(wrong), " and ".join(wrong.values()))

    @property
    def advice(self) -> str:
        """Fault and remedy in one sentence, empty if nothing is wrong."""
        return f"{self.fault}; {self.remedy}" if self.fault else ""

    def value(self, quantity: str) -> float | None:
        """Returns one of the numbers by its name, None where it can't be known; KeyError if there is none of that
        name."""
        return {each.name: each.value for each in self.measured}[quantity]

    def as_json(self) -> dict[str, Any]:
        """Returns the finding as values that JSON can hold."""
        measured = {each.name: {"value": each.value, "unit": each.unit} for each in self.measured}
        return {"name": self.name, "severity": str(self.severity), "measured": measured, "advice": self.advice}


@dataclass(frozen=True)
class Promise:
    """Says that times of so many seconds and more differ by no more than this part when they are measured again."""

    precision: float
    from_s: float


@dataclass(frozen=True)
class Diagnosis:
    """All findings on a device, and what is promised of its times if it is trusted: the finest promise last."""

    device: Device
    findings: tuple[Finding, ...]
    promises: tuple[Promise, ...]

    @property
    def trusted(self) -> bool:
        return all(finding.severity != Severity.BAD for finding in self.findings)

    @property
    def verdict(self) -> str:
        """The verdict for people, in one or two sentences."""
        if not self.trusted:
            faults = [finding.fault for finding in self.findings if finding.severity == Severity.BAD]
            return f"Times of this device can't be trusted now: {'; '.join(faults)}."
        first, *finer = [(amount(each.from_s, "s"), f"{100 * each.precision:.2g} %") for each in self.promises]
        sentence = f"Times above {first[0]} can be trusted to about {first[1]}"
        sentence = "".join([sentence, *(f", above {from_s} to {precision}" for from_s, precision in finer), "."])
        doubtful = [finding.name for finding in self.findings if finding.severity == Severity.DOUBTFUL]
        return f"{sentence} Look at what is doubtful: {', '.join(doubtful)}." if doubtful else sentence

    def finding(self, name: str) -> Finding:
        """Returns the finding of that name; KeyError if there is none."""
        return {finding.name: finding for finding in self.findings}[name]

    def as_json(self) -> dict[str, Any]:
        """Returns the diagnosis as values that JSON can hold."""
        return {
            "device": {"key": self.device.key, "name": self.device.name, "driver": self.device.driver},
            "trusted": self.trusted,
            "verdict": self.verdict,
            "promises": [asdict(promise) for promise in self.promises] if self.trusted else [],
            "findings": [finding.as_json() for finding in self.findings],
        }

    def __repr__(self) -> str:
        return brief(
            self,
            self.device.name,
            "trusted" if self.trusted else "not trusted",
            number_of(len(self.findings), "finding"),
        )


def promised(spread: float, step_s: float, overhead_s: float, overhead_spread_s: float) -> tuple[Promise, ...]:
    """Returns the precision that times of a millisecond have, and before it one per cent for those of shorter times.

    Each from where on the clock's step and the launch's spread add no more than that again.

    Args:
        spread: by how much of themselves times of a millisecond differ.
        step_s, overhead_s, overhead_spread_s: seconds of the clock's step, of a launch, and by which launches vary.
    """
    finest = max(spread, BEST_PRECISION)
    promises = {}  # by where they begin: of those that begin together, the finer one
    for precision in (max(finest, COMMON_PRECISION), finest):
        from_s = max(NEAR * overhead_s, (step_s + overhead_spread_s) / precision)
        promises[from_s] = Promise(precision, from_s)
    return tuple(promises.values())
