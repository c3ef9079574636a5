"""Says in words what a model's terms and parameters stand for: declared beside the model string, with numbers in it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from perfmodel.basics.errors import FitError, ModelStringError, nearest
from perfmodel.expression import ModelString
from perfmodel.expression.parser import ParsedModel

_PLACE = re.compile(r"\{(?::(\.\d[fg]|si))?\}")
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


class Physical(NamedTuple):
    """The range that a device's own value lies in, in the unit that a parameter reads in, and who says so."""

    low: float
    high: float
    source: str


@dataclass(frozen=True)
class Meaning:
    """Says what a named term or a parameter of a model stands for.

    >>> Meaning(
    ...     "waits for loads that come one after another",
    ...     {"{:.3g} rounds a work-item": "f_mem_rounds_global_granularity:longest / f_work_items"},
    ...     "more work-items, or several independent loads in each, would help",
    ... )

    Numbers stand in braces: ``{:.3g}`` and ``{:.0f}`` as in Python, ``{:si}`` with a prefix (4.2 M), ``{}`` with four
    digits; a number that is not finite is left out with its text. What they are is an expression in the language of
    model strings, which may name the model's terms too.

    Args:
        words: what takes the time, or what the parameter is the price or the measure of; a phrase without a verb.
        figures: numbers worth saying of a kernel, as texts with a place for one, and what each number is. Features
            that the model has not are counted by an explanation only.
        advice: what to change in a kernel that this limits; or several, each with an expression, of which the first
            that is above zero, or empty, is taken.
        reads: of a parameter: its value in a unit that people know, a text with its expression over parameters.
        physical: of a parameter: the range of what a device has, in that unit, by a part of the device's name, with
            the source.
        lacks: of a parameter: which mechanism the model has not, should the value be outside of that range.
        scales: of a parameter: what of a device it is proportional to, an expression over the facts of
            `perfmodel.device.facts` (``1 / (f_device_units * f_device_clock)``); empty where it is the same on all.

    Raises:
        FitError: for what is no text or number where one belongs.
    """

    words: str
    figures: Mapping[str, str] = field(default_factory=dict)
    advice: str | Mapping[str, str] = ""
    reads: Mapping[str, str] = field(default_factory=dict)
    physical: Mapping[str, Physical | tuple[float, float, str]] = field(default_factory=dict)
    lacks: str = ""
    scales: str = ""

    def __post_init__(self) -> None:
        if (
            not isinstance(self.words, str)
            or not self.words.strip()
            or not all(isinstance(text, str) for text in (self.lacks, self.scales))
        ):
            raise FitError(f"a meaning's words are {self.words!r:.60}; give a text")
        for name, texts in (("figures", self.figures), ("reads", self.reads), ("advice", self.advice)):
            if name == "advice" and isinstance(texts, str):
                continue
            if not isinstance(texts, Mapping) or not all(isinstance(t, str) for pair in texts.items() for t in pair):
                raise FitError(f"the {name} of meaning {self.words!r:.60} are no texts with an expression each")
        for template in (*self.figures, *self.reads):
            if len(_PLACE.findall(template)) != 1 or set(_PLACE.sub("", template)) & set("{}"):
                raise FitError(f"{template!r:.60} has no one place for a number; write it as in '{{:.3g}} bytes'")
        if len(self.reads) > 1 or (self.physical and not self.reads):
            raise FitError(f"meaning {self.words!r:.60} needs one unit to be read in; give one text in reads")
        if not isinstance(self.physical, Mapping):
            raise FitError(f"the physical values of {self.words!r:.60} are no ranges by devices")
        ranges = {device: _physical(self.words, found) for device, found in self.physical.items()}
        object.__setattr__(self, "physical", ranges)

    def advised(self) -> Iterator[tuple[str, str]]:
        """Yields what can be advised, with the expression that has to be above zero; empty where nothing has to be."""
        if isinstance(self.advice, str):
            if self.advice:
                yield self.advice, ""
        else:
            yield from self.advice.items()

    def expressions(self) -> tuple[str, ...]:
        """Returns the expressions of its figures, and of the conditions of its advice."""
        return (*self.figures.values(), *(condition for _, condition in self.advised() if condition))

    def physical_on(self, device: Mapping[str, Any]) -> Physical | None:
        """Returns the range of a device, by its description; None where none is declared."""
        name = str(device.get("name", "")).lower()
        for part, found in self.physical.items():
            if name and part.lower() in name:
                return Physical(*found)
        return None

    def as_json(self) -> dict[str, Any]:
        """Returns the arguments that are given, as JSON can hold them."""
        found = {
            "words": self.words,
            "figures": dict(self.figures),
            "advice": self.advice if isinstance(self.advice, str) else dict(self.advice),
            "reads": dict(self.reads),
            "physical": {device: list(each) for device, each in self.physical.items()},
            "lacks": self.lacks,
            "scales": self.scales,
        }
        return {name: value for name, value in found.items() if value}


def declared_meanings(given: Mapping[str, Meaning | str] | None, model: ModelString) -> dict[str, Meaning]:
    """Returns what is said of a model's terms and parameters, checked, in the model's order.

    Raises:
        FitError: for a name that is neither a term nor a parameter, and what is no meaning.
        ModelStringError: for an expression that cannot be read.
    """
    if given is not None and not isinstance(given, Mapping):
        raise FitError(f"meanings are a dictionary by terms and parameters, not {type(given).__name__}")
    names, found = (*model.terms, *model.parameters), {}
    for name, said in (given or {}).items():
        if name not in names:
            raise FitError(
                f"a meaning is given to {name!r}, which is no term or parameter of the model"
                f"{nearest(str(name), names) or '; they are ' + ', '.join(names)}"
            )
        if not isinstance(said, Meaning | str):
            raise FitError(f"the meaning of {name!r} is {said!r:.60}; give a text or a Meaning")
        meaning = Meaning(said) if isinstance(said, str) else said
        if (meaning.reads or meaning.physical or meaning.scales) and name not in model.parameters:
            raise FitError(f"{name!r} is a term, which has no physical value; say that of a parameter")
        if meaning.scales and (parameters := parsed(name, meaning.scales, model).parameters):
            raise FitError(f"what {name!r} scales with names {min(parameters)!r}; a device has facts, f_device_…, only")
        for expression in meaning.reads.values():
            if features := parsed(name, expression, model).features:
                raise FitError(f"what {name!r} reads names the feature {min(features)!r}; a value is of parameters")
        found[name] = meaning
    return {name: found[name] for name in names if name in found}


def features_of(meanings: Mapping[str, Meaning], model: ModelString) -> dict[str, tuple[str, str, int]]:
    """Returns the features that figures and conditions name: of each, who names it, in what text, and where."""
    found: dict[str, tuple[str, str, int]] = {}
    for name, meaning in meanings.items():
        for expression in meaning.expressions():
            for feature, position in parsed(name, expression, model).features.items():
                found.setdefault(feature, (name, expression, position))
    return found


def parsed(name: str, expression: str, model: ModelString) -> ParsedModel:
    """Returns an expression of the meaning of a name, over the model's terms.

    Raises:
        ModelStringError: it cannot be read.
    """
    try:
        return model.parsed(expression)
    except ModelStringError as error:
        before = expression.split("\n")[: error.line - 1]
        position = sum(len(line) + 1 for line in before) + error.column - 1
        message = f"the meaning of {name!r} cannot be read: {error.reason}"
        raise ModelStringError(message, expression, position) from error


def filled(template: str, value: float) -> str:
    """Returns a text with a number in its place."""

    def shown(place: re.Match[str]) -> str:
        kind = place[1] or ".4g"
        if kind != "si":
            return _plain(value, kind)
        scale, prefix = next(((s, p) for s, p in _PREFIXES if abs(value) >= s), (1.0, ""))
        is_unit = template[place.end() : place.end() + 1].isalpha()
        return f"{value / scale:.3g}{' ' * (is_unit or bool(prefix))}{prefix}"

    return _PLACE.sub(shown, template)


def place_of(template: str) -> str:
    """Returns the place for the number in a text, by itself."""
    found = _PLACE.search(template)
    assert found, "a meaning's texts have one"
    return found[0]


def _plain(value: float, kind: str) -> str:
    """Returns a number without an exponent where it has up to six digits."""
    if kind.endswith("g") and abs(value) >= 10 ** int(kind[1]) and abs(value) < 1e6:
        return f"{value:.0f}"
    return format(value, kind)


def _physical(words: str, found: Any) -> Physical:
    try:
        low, high, source = found
        if not isinstance(source, str) or not math.isfinite(low) or not low <= high:
            raise ValueError
    except (TypeError, ValueError, OverflowError) as error:
        raise FitError(
            f"the physical value of {words!r:.60} is {found!r:.60}; give its lowest and highest, and the source"
        ) from error
    return Physical(float(low), float(high), source)
