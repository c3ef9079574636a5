"""Reads what ``--arg NAME=VALUE`` and options like it say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from perfmodel.basics import json_values
from perfmodel.basics.errors import KernelError, nearest
from perfmodel.kernels.array_contents import number_said


def pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """Returns the values that an option gives, by name."""
    found: dict[str, str] = {}
    for pair in given:
        name, mark, value = re.split("([=:]|$)", pair, maxsplit=1)
        name = re.sub(r"[.\[]", "_", name).replace("]", "")  # image.dims[0] is image_dims_0
        if not mark or not value or not name.isidentifier():
            raise KernelError(f"{option} {pair!r} gives no value; write {option} NAME=VALUE")
        if name in found:
            raise KernelError(f"{option} {name} is given twice; give it once")
        found[name] = value
    return found


def by_value(what: str, text: str) -> Any:
    """Returns a number, or what JSON says of a struct or vector."""
    if text[:1] not in "[{":
        return number_said(what, text)
    try:
        return json_values.parse(text)
    except ValueError as error:
        raise KernelError(f'{what}={text} is no JSON; write a struct as {{"dims": [64, 48]}}') from error


def no_such_argument(argument: str, kernel: str, known: Iterable[str]) -> KernelError:
    return KernelError(
        f"--arg {argument}: kernel {kernel!r} has no such argument{nearest(argument, known)} (it has "
        f"{', '.join(known) or 'none'})"
    )
