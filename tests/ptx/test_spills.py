"""Registers that the assembler keeps in memory are counted, by words and as often as their block is executed."""

from __future__ import annotations

from perfmodel.ptx.counting.spills import spill
from perfmodel.sass.reading import Instruction


def instruction(name: str, operands: str, line: int = 1) -> Instruction:
    return Instruction(
        place=0, name=name, operands=operands, guard="", target=None, stall=1, sets=7, waits=(), line=line
    )


MARKED = '(*"SpillRefill"*)'
STORED = (instruction("STL", f"[R1+0x8], R4 {MARKED}"), instruction("STL.64", f"[R1+0x10], R6 {MARKED}"))
LOADED = (
    instruction("LDL", f"R4, [R1+0x8] {MARKED}"),
    instruction("LDL.LU.128", f"R8, [R1+0x20] {MARKED}"),
    instruction("FFMA", "R4, R4, R4, R4"),
)


def test_words_are_counted_as_often_as_their_block_is_executed() -> None:
    found = spill([(STORED, 10.0, 1.0), (LOADED, 40.0, 4.0)], of_shorts=())
    assert found is not None
    assert found.words == {"store": (30.0, 3.0), "load": (200.0, 20.0)}
    assert found.n_bytes == 4 + 8 + 16  # places that are stored to and loaded from count once


def test_arrays_of_the_text_are_no_spills_nor_are_short_numbers_counted() -> None:
    own = (instruction("LDL", "R4, [R1+0x8]"), instruction("STL", "[R1], R4"))
    short = (instruction("LDL", f"R4, [R1+0x8] {MARKED}", line=7),)
    assert spill([(own, 10.0, 1.0), (short, 10.0, 1.0)], of_shorts={7}) is None


def test_spills_in_blocks_that_are_never_executed_are_none() -> None:
    assert spill([(LOADED, 0.0, 0.0)], of_shorts=()) is None
