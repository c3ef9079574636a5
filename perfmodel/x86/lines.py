"""Reads debugging information: which line of the source an address comes from, and by which calls."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from perfmodel.x86.source import Calls, Place

NOWHERE: Place = "", 0, 0
"""The place of an instruction that no line of the source tells."""


class Lines:
    """Says which line of the source each address comes from, and by which calls control comes there."""

    def __init__(self, elf: Any) -> None:
        places: dict[int, Place] = {}
        inlined: list[tuple[int, int, Calls]] = []
        for unit in elf.get_dwarf_info().iter_CUs() if elf.has_dwarf_info() else ():
            program = unit.dwarfinfo.line_program_for_CU(unit)
            if program is None:
                continue
            first = 0 if program["version"] >= 5 else 1
            files = [PurePosixPath(each.name.decode(errors="replace")).name for each in program["file_entry"]]
            names = dict(enumerate(files, first))
            for entry in program.get_entries():
                if (state := entry.state) is not None:
                    places[state.address] = names.get(state.file, ""), state.line, state.column
            for function in unit.get_top_DIE().iter_children():
                inlined += _inlined(function, names, _named(function), ())
        self._starts = sorted(places)
        self._places = [places[start] for start in self._starts]
        self._edges = sorted({edge for low, high, _ in inlined for edge in (low, high)})
        self._calls: list[Calls] = [() for _ in self._edges]
        for low, high, calls in inlined:  # those that others lie in come first
            for place in range(bisect_left(self._edges, low), bisect_left(self._edges, high)):
                self._calls[place] = calls

    def at(self, address: int) -> Place:
        number = bisect_right(self._starts, address) - 1
        return self._places[number] if number >= 0 else NOWHERE

    def calls_at(self, address: int) -> Calls:
        number = bisect_right(self._edges, address) - 1
        return self._calls[number] if number >= 0 else ()


def _inlined(entry: Any, files: Mapping[int, str], kernel: str, calls: Calls) -> Iterator[tuple[int, int, Calls]]:
    """Iterates over the ranges of addresses of functions that were inlined, outer ones first.

    Args:
        kernel: the function that all lies in, whose own call in what the driver puts around it is none.
    """
    for each in entry.iter_children():
        inner = calls
        if each.tag == "DW_TAG_inlined_subroutine" and _named(each) != kernel:
            told = (each.attributes.get(f"DW_AT_call_{name}") for name in ("file", "line", "column"))
            file, line, column = (0 if found is None else int(found.value) for found in told)
            inner = (files.get(file, ""), line, column), *calls
            for low, high in _ranges(each):
                yield low, high, inner
        yield from _inlined(each, files, kernel, inner)


def _named(entry: Any) -> str:
    """Returns the name of a function, or of the one that was inlined."""
    while "DW_AT_name" not in entry.attributes and "DW_AT_abstract_origin" in entry.attributes:
        entry = entry.get_DIE_from_attribute("DW_AT_abstract_origin")
    name = entry.attributes.get("DW_AT_name")
    return "" if name is None else str(name.value.decode(errors="replace"))


def _ranges(entry: Any) -> Iterator[tuple[int, int]]:
    """Iterates over the addresses of an entry of debugging information, beginnings and ends."""
    told = entry.attributes
    if "DW_AT_ranges" in told:
        start = entry.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
        base = 0 if start is None else start.value
        lists = entry.cu.dwarfinfo.range_lists()
        for each in lists.get_range_list_at_offset(told["DW_AT_ranges"].value, cu=entry.cu):
            if hasattr(each, "base_address"):
                base = each.base_address
            elif each.is_absolute:
                yield each.begin_offset, each.end_offset
            else:
                yield base + each.begin_offset, base + each.end_offset
    elif "DW_AT_low_pc" in told and "DW_AT_high_pc" in told:
        low, high = told["DW_AT_low_pc"].value, told["DW_AT_high_pc"]
        yield low, high.value if high.form == "DW_FORM_addr" else low + high.value
