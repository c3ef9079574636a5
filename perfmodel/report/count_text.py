"""Shows tables of a program's counts as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfmodel.basics.tables import grid, wrapped
from perfmodel.report.count_table import Quantity, Table

GRANULARITIES = {"workitem": "work-item", "subgroup": "sub-group", "workgroup": "work-group"}
LONGEST = 40
"""A symbolic count of more characters than these moves below the table."""
NOTE_WIDTH = 78
"""Characters of a line below the table; one that is longer is cut, and JSON has all of it."""
MOST_PIECES = 3
"""A symbolic count of more pieces than these, each under conditions of its own, is cut likewise."""


def as_text(table: Table) -> str:
    """Returns the table for people: a block of lines for each kind of count, and one with the longest symbolic
    counts."""
    return _Text(table).text()


class _Text:
    def __init__(self, table: Table) -> None:
        self.table = table
        self.points = [" ".join(f"{name}={value}" for name, value in point.items()) for point in table["points"]]
        self.notes: dict[str, str] = {}

    def text(self) -> str:
        blocks = [self.title(), self.operations(), self.chains(), self.accesses(), self.footprints()]
        blocks += [self.branches(), self.launch(), self.resources()]
        blocks.append("\n".join(_note(note, count) for count, note in self.notes.items()))
        return "\n\n".join(filter(None, blocks))

    def title(self) -> str:
        table = self.table
        sizes = f"sizes {', '.join(table['sizes'])}" if table["sizes"] else "no sizes"
        lines = [
            wrapped(f"{table['kernel']} {table['variant']}"),
            f"{sizes}; sub-groups of {table['subgroup_size']} work-items",
        ]
        if not table["exact"]:
            lines.append("upper bounds: the installed isl library cannot count all of them exactly")
        if table["sampled"]:
            lines.append("from samples: some work-groups were emulated, as counting all of them takes too long")
        return "\n".join(lines)

    def operations(self) -> str:
        lines = [
            [row["kind"], row["dtype"], words, *self.cells(row["count"][name])]
            for row in self.table["operations"]
            for name, words in GRANULARITIES.items()
        ]
        return grid(["operation", "type", "per", "count", *self.points], lines) if lines else ""

    def chains(self) -> str:
        lines = [
            [row["kind"], row["dtype"], ", ".join(row["loops"]), *self.cells(row["count"])]
            for row in self.table["chains"]
        ]
        return grid(["carried operation", "type", "loops", "count", *self.points], lines) if lines else ""

    def accesses(self) -> str:
        header = ["access", "space", "direction", "type", "bits", "local strides", "group strides", "loop strides"]
        header += ["class", "count", *self.points, "footprint", *(f"afr {point}".rstrip() for point in self.points)]
        lines = []
        for row in self.table["accesses"]:
            afr = [f"{ratio:.4g}" for ratio in row["afr"]] if row["afr"] is not None else ["?"] * len(self.points)
            strides = [self.strides(s) for s in (row["local_strides"], row["group_strides"], row["loop_strides"])]
            footprint = self.short(row["footprint"])
            line = [
                row["text"],
                row["space"],
                row["direction"],
                row["dtype"],
                str(row["bits"]),
                *strides,
                row["pattern"] or "-",
            ]
            lines.append([*line, *self.cells(row["count"]["workitem"]), footprint, *afr])
        return grid(header, lines) if lines else ""

    def footprints(self) -> str:
        lines = []
        for row in self.table["footprints"]:
            names = [row["variable"], row["space"], row["dtype"]]
            lines.append([*names, row["direction"], *self.cells(row["bytes"])])
            if row["filled_bytes"] is not None:
                lines.append([*names, f"{row['direction']}, gaps filled", *self.cells(row["filled_bytes"])])
        return grid(["footprint", "space", "type", "direction", "bytes", *self.points], lines) if lines else ""

    def branches(self) -> str:
        lines = []
        for row in self.table["branches"]:
            names = [row["kind"], row["text"], row["divergence"]]
            lines.append([*names, "met by work-items", *self.cells(row["met"]["workitem"])])
            lines.append([*names, "taken by work-items", *self.cells(row["taken"] and row["taken"]["workitem"])])
            lines.append([*names, "met by sub-groups", *self.cells(row["met"]["subgroup"])])
            lines.append([*names, "sub-groups parted", *self.cells(row["divergent"])])
        return grid(["branch", "condition", "divergence", "", "count", *self.points], lines) if lines else ""

    def resources(self) -> str:
        found = self.table["resources"]
        if found is None:
            return ""
        numbers = {
            "registers of a work-item": found["registers"],
            "private bytes of a work-item": found["private_bytes"],
            "bytes spilled": found["spilled_bytes"],
            "bytes of machine code": found["code_bytes"],
            "loads in flight": found["loads_in_flight"],
        }
        lines = [[label, str(n), *[f"{n:,}"] * len(self.points)] for label, n in numbers.items() if n is not None]
        lines.append(["local bytes of a work-group", *self.cells(found["local_bytes"])])
        title = "estimated resources" if found["source"] == "estimate" else "resources by the assembler"
        return grid([title, "count", *self.points], lines)

    def launch(self) -> str:
        table = self.table
        lines = [
            [f"barriers by {words}", *self.cells(table["barriers"][name])] for name, words in GRANULARITIES.items()
        ]
        for label, count in (
            ("launches", table["launches"]),
            ("work-groups", table["work_groups"]),
            ("work-items", table["work_items"]),
        ):
            lines.append([label, *self.cells(count)])
        return grid(["launch", "count", *self.points], lines)

    def cells(self, quantity: Quantity | None) -> list[str]:
        values = [f"{value:,}" for value in quantity["at"]] if quantity else ["?"] * len(self.points)
        return [self.short(quantity), *values]

    def strides(self, strides: Mapping[Any, Quantity | None]) -> str:
        """Returns strides as names of features write them: ``{0:1;1:n}``."""
        parts = [f"{axis}:{self.short(stride)}" for axis, stride in strides.items()]
        return f"{{{';'.join(parts)}}}" if parts else "-"

    def short(self, quantity: Quantity | None) -> str:
        """Returns the symbolic count, or the number of the note that has it."""
        if quantity is None:
            return "?"
        if len(quantity["symbolic"]) <= LONGEST:
            return str(quantity["symbolic"])
        return self.notes.setdefault(quantity["symbolic"], f"[{len(self.notes) + 1}]")


def _note(note: str, count: str) -> str:
    """Returns a long symbolic count, a line for each of its pieces."""
    pieces = count.split("; ")
    left_out = [f"and {len(pieces) - MOST_PIECES} more; --json has all"] * (len(pieces) > MOST_PIECES)
    lines = [f"{note} {pieces[0]}", *(f"{' ' * len(note)} {each}" for each in [*pieces[1:MOST_PIECES], *left_out])]
    return "\n".join(line if len(line) <= NOTE_WIDTH else f"{line[: NOTE_WIDTH - 2]} …" for line in lines)
