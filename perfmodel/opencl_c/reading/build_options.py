"""This module reads build options as ``clBuildProgram`` takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfmodel.basics.errors import SourceError, nearest
from perfmodel.opencl_c.reading.header import STANDARDS
from perfmodel.opencl_c.reading.macros import Macro, macro_of_option

_KNOWN = ("-D", "-U", "-I", "-cl-std=CL1.2", "-cl-fast-relaxed-math", "-cl-mad-enable", "-w", "-Werror")


@dataclass
class BuildOptions:
    """Holds what the options mean; `definitions` are in their order, with None for a macro taken away."""

    standard: str = "CL1.2"
    definitions: list[tuple[str, Macro | None]] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    has_single_constants: bool = False

    @classmethod
    def of(cls, options: Sequence[str]) -> BuildOptions:
        made = cls()
        waiting = [word for option in options for word in _words(option)][::-1]
        while waiting:
            made._take(waiting.pop(), waiting)
        return made

    def macros(self, predefined: Mapping[str, Macro]) -> dict[str, Macro]:
        macros = dict(predefined)
        for name, macro in self.definitions:
            if macro is None:
                macros.pop(name, None)
            else:
                macros[name] = macro
        return macros

    def _take(self, option: str, waiting: list[str]) -> None:
        kind = option[:2]
        if kind in ("-D", "-U", "-I"):
            value = option[2:].strip() or (waiting.pop() if waiting else "")
            if not value:
                raise SourceError(f"the build option {kind} needs a value; write it as {kind}NAME")
            if kind == "-I":
                self.folders.append(Path(value))
            elif kind == "-U":
                self.definitions.append((value, None))
            else:
                macro = macro_of_option(value)
                self.definitions.append((macro.name, macro))
        elif option.startswith("-cl-std="):
            self.standard = option.removeprefix("-cl-std=")
            if self.standard not in STANDARDS:
                known = ", ".join(STANDARDS)
                raise SourceError(f"there is no standard {self.standard!r} for -cl-std; use one of {known}")
        elif option == "-cl-fast-relaxed-math":
            self.definitions.append(("__FAST_RELAXED_MATH__", macro_of_option("__FAST_RELAXED_MATH__")))
        elif option == "-cl-single-precision-constant":
            self.has_single_constants = True
        elif option not in ("-w", "-Werror", "-g") and not option.startswith("-cl-"):
            hint = nearest(option, _KNOWN) or "; use -D, -U, -I, -w or an option of -cl-"
            raise SourceError(f"the build option {option!r} is not known{hint}")


def _words(option: str) -> list[str]:
    """Splits one string of options; an option may come with others, and a definition's value may have spaces."""
    option = option.strip()
    if option[:2] in ("-D", "-I", "-U") or not option:
        return [option] if option else []
    return option.split() if option.startswith("-") else [option]
