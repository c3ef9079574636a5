"""Reads what ``--arg NAME=VALUE`` and options like it say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perfmodel.basics import json_values
from perfmodel.basics.errors import KernelError, nearest
from perfmodel.kernels.array_contents import ArrayContents, number_said, said_of_array

if TYPE_CHECKING:
    from perfmodel.kernels.arguments import Array


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


def array_said(name: str, text: str) -> ArrayContents:
    """Returns what ``--arg`` says of an array."""
    return said_of_array(f"--arg {name}", text)


def check_dtype(array: Array, said: ArrayContents, kernel: str) -> None:
    """Refuses numbers of another type than an argument's; bytes, structs and void may be of any."""
    if said.dtype is not None and said.dtype.name != array.dtype and array.dtype not in ("int8", "uint8"):
        raise KernelError(
            f"--arg {array.name} is an array of {said.dtype}, but argument {array.name!r} of kernel {kernel!r} is one "
            f"of {array.dtype}; write that"
        )


def check_launch(path: str, options: Mapping[str, str | None], what: str) -> None:
    """Refuses a launch without all its options, each of them with an example."""
    missing = [example for example, given in options.items() if not given]
    if missing:
        names = " and ".join(example.partition(" ")[0] for example in missing)
        raise KernelError(f"{path} needs {names}; write {what} by axis, as {' '.join(missing)}")
