"""Pointers in structs by value that a kernel follows, and that nobody gave an array for, are told with the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perfmodel.kernels.arguments import ADDRESS_BYTES, WORD_BYTES, Argument, Derived, Struct

if TYPE_CHECKING:
    from perfmodel.ptx.parameters import Parameter


def no_arrays(kernel: str, names: Sequence[str]) -> str:
    """Returns that arrays are missing for these words of structs."""
    pointers = "a pointer in a struct" if len(names) == 1 else "pointers in structs"
    return f"kernel {kernel!r} follows {pointers} ({', '.join(names)}); give an array for each: {how_to_give(names)}"


def unfollowed(arguments: Sequence[Argument | Derived], parameters: Sequence[Parameter]) -> str:
    """Returns what to do where a kernel follows a pointer in a struct to where no array lies; empty without structs."""
    named = pointers_without_arrays(arguments, parameters)
    structs = [each for each in arguments if isinstance(each, Struct) and each.n_bytes >= ADDRESS_BYTES]
    if named:
        return f"one for each pointer in a struct, at its first word: {how_to_give(named)}"
    if structs:
        begin = [f"{each.name}_0" for each in structs]
        return f"those of pointers in structs at the words where these begin: {how_to_give(begin)} if one begins there"
    return ""


def pointers_without_arrays(
    arguments: Sequence[Argument | Derived], parameters: Sequence[Parameter]
) -> tuple[str, ...]:
    """Returns the first words of pointers that a kernel's code follows, of those that no array is given for."""
    return tuple(
        f"{argument.name}_{pointer.offset // WORD_BYTES}"
        for argument, parameter in zip(arguments, parameters, strict=True)
        if isinstance(argument, Struct)
        for pointer in parameter.held
        if pointer.offset not in argument.places
    )


def how_to_give(names: Sequence[str]) -> str:
    """Returns how arrays are given to words of structs, in Python and on the command line."""
    given = ", ".join(f"{name!r}: …" for name in names)
    return f"args={{{given}}}, --arg {names[0]}=…"
