"""Turns what a store keeps, measurements and failures, into texts and numbers, and checks them whenever they are
read."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from operator import index
from typing import Any, TypeVar

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import PerfmodelError
from perfmodel.device import Device
from perfmodel.measuring.protocol import Protocol, reduced


@dataclass(frozen=True)
class Measurement:
    """One launch's times and all that is needed to know what they are of.

    Attributes:
        key: as `measurement_key` makes it.
        kernel: the kernel's name, for people.
        content: hash of the program.
        device: the device's fingerprint.
        trials: seconds, all of them; the first `dropped` do not count.
        created: UTC, ISO 8601.
        versions: of the packages that took part.
        conditions: what held while it was measured, such as the host and what it cost.
    """

    key: str
    kernel: str
    content: str
    sizes: dict[str, int]
    tags: dict[str, str]
    device: dict[str, Any]
    protocol: dict[str, Any]
    trials: tuple[float, ...]
    dropped: int
    statistic: str
    flags: tuple[str, ...]
    created: str
    versions: dict[str, str]
    conditions: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return reduced(self.trials, self.dropped, self.statistic)

    def __repr__(self) -> str:
        at = " ".join(f"{name}={size}" for name, size in self.sizes.items())
        return brief(self, f"{self.kernel} {at}".strip(), f"{self.seconds:.4g} s", str(self.device.get("key", "")))


@dataclass(frozen=True)
class Failure:
    """A kernel that could not be measured; all but `reason` is as in `Measurement`.

    Attributes:
        reason: why, for people; never empty.
    """

    key: str
    kernel: str
    content: str
    sizes: dict[str, int]
    tags: dict[str, str]
    device: dict[str, Any]
    protocol: dict[str, Any]
    reason: str
    created: str
    versions: dict[str, str]
    conditions: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        at = " ".join(f"{name}={size}" for name, size in self.sizes.items())
        return brief(self, f"{self.kernel} {at}".strip(), self.reason)


Row = TypeVar("Row", bound=Measurement | Failure)

SHARED = ("device", "protocol", "versions")
"""Fields that are kept as a document's number."""
COLUMNS: dict[type, tuple[str, ...]] = {
    kind: tuple(each.name for each in fields(kind)) for kind in (Measurement, Failure)
}
NESTED: dict[str, type] = {
    "sizes": dict,
    "tags": dict,
    "device": dict,
    "protocol": dict,
    "versions": dict,
    "conditions": dict,
    "trials": list,
    "flags": list,
}
"""Fields that are stored as JSON, and what it holds."""
VALUES: dict[str, type] = {"sizes": int, "tags": str, "versions": str}
"""The type of a mapping's values, for fields whose values are all of one type."""
DEVICE_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "int | None": (int, type(None)),
    "tuple[int, ...]": (list,),
}


def measurement_key(
    content: str, sizes: Mapping[str, int], device: Mapping[str, Any], protocol: Protocol | Mapping[str, Any]
) -> str:
    """Returns the key that equal measurements share: program, sizes, device with its driver, and how the time was
    taken.

    Args:
        device: a fingerprint; its ``key`` and ``driver`` count.
        protocol: everything but its name counts.

    Returns:
        64 hexadecimal digits, the same in every process and for every order of the mappings.
    """
    how = dict(asdict(protocol) if isinstance(protocol, Protocol) else protocol)
    how.pop("name", None)
    identity = {
        "content": content,
        "sizes": {name: int(size) for name, size in sizes.items()},
        "device": [device["key"], device["driver"]],
        "protocol": how,
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def encoded(row: Measurement | Failure) -> list[Any]:
    """Returns the row's values as they are stored, in the order of its fields.

    Raises:
        ValueError: for what `decoded` would refuse, beginning with the field's name.
    """
    stored = []
    for name in COLUMNS[type(row)]:
        value = getattr(row, name)
        try:
            if name in NESTED:
                value = json.dumps(value, sort_keys=True, default=_plain)
            elif name == "dropped":
                value = index(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(f"{name}: {error}") from error
        stored.append(value)
    decoded(type(row), stored)
    return stored


def decoded(kind: type[Row], stored: Sequence[Any]) -> Row:
    """Returns the row of values as `encoded` gives them.

    Raises:
        ValueError: for what is no such row, beginning with the field's name.
    """
    values = {}
    for name, value in zip(COLUMNS[kind], stored, strict=True):
        try:
            values[name] = _value(name, value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(f"{name}: {error}") from error
    row = kind(**values)
    if isinstance(row, Measurement):
        _check_times(row)
    elif not row.reason:
        raise ValueError("reason: a failure says why")
    return row


def checksum(kind: type, stored: Sequence[Any]) -> str:
    """Returns 16 hexadecimal digits that tell stored values from any others that damage could make of them."""
    return hashlib.sha256(json.dumps([kind.__name__, *stored]).encode()).hexdigest()[:16]


def document(name: str, stored: Any) -> dict[str, Any]:
    """Reads a document that many rows share, such as a device's fingerprint; rows of one text share the result.

    Raises:
        ValueError: it is no text of JSON, or another one.
    """
    if not isinstance(stored, str):
        raise ValueError("not a str")
    try:
        return _document(name, stored)
    except RecursionError as error:
        raise ValueError(str(error)) from error


@lru_cache(maxsize=64)
def _document(name: str, stored: str) -> dict[str, Any]:
    found: dict[str, Any] = _mapping(name, stored)
    if name == "device":
        _check_device(found)
    return found


def _value(name: str, stored: Any) -> Any:
    expected = int if name == "dropped" else str
    if not isinstance(stored, expected):
        raise ValueError(f"not a {expected.__name__}")
    if isinstance(stored, str):
        stored.encode()  # bytes that are no text come out of SQLite as what can't be encoded
    if name in SHARED:
        return document(name, stored)
    if name not in NESTED:
        return stored
    if NESTED[name] is dict:
        return _mapping(name, str(stored))
    value = _nested(str(stored), list)
    if name == "trials":
        if not all(type(seconds) in (int, float) for seconds in value):
            raise ValueError("not all are numbers")
        return tuple(map(float, value))
    if not all(isinstance(flag, str) for flag in value):
        raise ValueError("not all are texts")
    return tuple(value)


def _mapping(name: str, stored: str) -> Any:
    value = _nested(stored, dict)
    if name in VALUES and not all(type(each) is VALUES[name] for each in value.values()):
        raise ValueError(f"not all are of type {VALUES[name].__name__}")
    return value


def _nested(text: str, kind: type) -> Any:
    value = json.loads(text)
    if not isinstance(value, kind):
        raise ValueError(f"not a {kind.__name__}")
    if "\\ud" in text.lower():  # half of a character, which JSON can hold and no file or terminal can
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _check_device(fingerprint: Mapping[str, Any]) -> None:
    """Checks that the fields which a device is made of again have the types of `Device`."""
    for each in fields(Device):
        if each.name in fingerprint and not isinstance(fingerprint[each.name], DEVICE_TYPES[str(each.type)]):
            raise ValueError(f"its {each.name} is not of type {each.type}")


def _check_times(measurement: Measurement) -> None:
    if measurement.dropped < 0:
        raise ValueError("dropped: less than none")
    try:
        times = (*measurement.trials, measurement.seconds)
    except PerfmodelError as error:
        raise ValueError(f"trials: {error}") from error
    if not all(0 < seconds < math.inf for seconds in times):
        raise ValueError("trials: not all positive times")


def _plain(value: Any) -> Any:
    """Returns numpy's numbers as Python's."""
    if not hasattr(value, "item"):
        raise TypeError(f"a {type(value).__name__} cannot be stored")
    return value.item()
