"""Machine code is what its listing says, checked by hand where a listing is small enough."""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path

import pytest

from perfmodel.basics.errors import SourceError
from perfmodel.sass.loops import loops_of
from perfmodel.sass.machine_code import MachineCode, Piece, machine_code, of_listing
from perfmodel.sass.pipes import pipe_of
from perfmodel.sass.reading import NONE, Instruction, read
from perfmodel.sass.toolchain import Assembled, is_installed, target_of
from perfmodel.sass.waiting import GLOBAL, LOCAL, Waiting, waiting, waits_of_trip

FOLDER = Path(__file__).parent / "listings"


@cache
def code(name: str) -> MachineCode:
    """Returns a kernel as ptxas 13.5 assembled it for sm_90, from what was printed then."""
    told = json.loads(lzma.decompress((FOLDER / f"{name}.json.xz").read_bytes()))
    return of_listing(Assembled(told["log"], told["listing"]), told["entry"], told["target"])


def loop(name: str, first: int) -> Piece:
    return next(piece for piece in code(name).pieces if piece.loop and piece.loop.first == first)


def at(code: MachineCode, place: int) -> Instruction:
    return next(each for each in code.instructions if each.place == place)


# --- reading, by hand from the listing of the column sum


def test_control_bits() -> None:
    column_sum = code("column_sum")
    load = at(column_sum, 0x1D0)  # 0x000ea2000c1e1900
    assert (load.name, load.operands, load.sets, load.waits, load.stall) == (
        "LDG.E",
        "R7, desc[UR6][R20.64]",
        2,
        (),
        1,
    )
    test = at(column_sum, 0x30)  # 0x001fda0003f04270
    assert (test.opcode, test.sets, test.waits, test.stall) == ("ISETP", NONE, (0,), 13)
    branch = at(column_sum, 0x50)
    assert (branch.guard, branch.opcode, branch.target) == ("@!P0", "BRA", 0x8D0)


def test_what_the_assembler_says() -> None:
    column_sum, product, spilling = (code(name) for name in ("column_sum", "tiled_product", "spilling"))
    assert (column_sum.registers, column_sum.shared_bytes, column_sum.code_bytes) == (32, 0, 2560)
    assert (product.registers, product.shared_bytes, product.barriers) == (32, 2048, 1)
    assert (spilling.registers, spilling.stack_bytes) == (32, 328)
    assert (spilling.spill_store_bytes, spilling.spill_load_bytes) == (596, 660)
    assert column_sum.spill_load_bytes == product.stack_bytes == 0


# --- loads in flight


def test_a_column_sum_has_16_loads_in_flight() -> None:
    """Its loop has 16 LDG before the first FADD, of which the source shows one and PTX four."""
    main = loop("column_sum", 0x1C0)
    assert main.loop is not None
    names = [each.opcode for each in main.loop.own if each.opcode in ("LDG", "FADD")]
    assert names == ["LDG"] * 16 + ["FADD"] * 16
    assert main.memory == Waiting(loads=16, in_flight=16, rounds=1)
    assert [piece.memory.in_flight for piece in code("column_sum").pieces if piece.loop] == [16, 4, 1]
    assert code("column_sum").loads_in_flight == 16


def test_a_tiled_product_has_two_loads_a_tile() -> None:
    """Four tiles are unrolled: two loads each, then 16 fused multiply-adds from 20 loads of shared memory."""
    main = loop("tiled_product", 0x260)
    assert main.loop is not None
    assert main.memory == Waiting(loads=8, in_flight=2, rounds=4)
    assert main.shared.loads == 80
    assert sum(each.opcode == "FFMA" for each in main.loop.own) == 64
    assert sum(each.opcode == "BAR" for each in main.loop.own) == 8
    assert code("tiled_product").loads_in_flight == 2


def test_a_spilling_kernel_loads_and_stores_its_own_memory() -> None:
    names = [each.opcode for each in code("spilling").instructions]
    assert (names.count("STL") * 4, names.count("LDL") * 4) == (596, 660)
    assert code("spilling").mix["memory"] == names.count("STL") + names.count("LDL") + 64 + 1


def made(*lines: str) -> tuple[Instruction, ...]:
    """Returns code of lines such as ``LDG 2``, which sets barrier 2, and ``FADD wait 2``."""
    found = []
    for place, line in enumerate(lines):
        opcode, *words = line.split()
        waits = tuple(int(each) for each in words[1:]) if words[:1] == ["wait"] else ()
        sets = int(words[0]) if words and not waits else NONE
        found.append(
            Instruction(
                place=16 * place, name=opcode, operands="", guard="", target=None, stall=1, sets=sets, waits=waits
            )
        )
    return tuple(found)


@pytest.mark.parametrize(
    ("lines", "is_loop", "expected"),
    [
        (["LDG 0", "FADD wait 0", "LDG 0", "FADD wait 0"], False, Waiting(2, 1, 2)),
        (["LDG 0", "LDG 1", "FADD wait 0", "FADD wait 1"], False, Waiting(2, 2, 1)),
        (["LDG 0", "LDG 0", "LDG 0", "FADD wait 0"], False, Waiting(3, 3, 1)),
        (["LDG 0", "FADD wait 1", "LDG 1", "FADD wait 0"], False, Waiting(2, 2, 1)),
        (["FADD wait 0", "LDG 0"], False, Waiting(1, 1, 0)),
        (["FADD wait 0", "LDG 0"], True, Waiting(1, 1, 1)),  # the next turn waits
        (["LDG 0", "FADD wait 1", "LDG 1", "FADD wait 0"], True, Waiting(2, 2, 2)),
        (["LDS 0", "FADD wait 0"], True, Waiting(0, 0, 0)),
    ],
)
def test_waiting_by_hand(lines: list[str], is_loop: bool, expected: Waiting) -> None:
    assert waiting(made(*lines), GLOBAL, is_loop) == expected
    swapped = [line.replace("LDS", "X").replace("LDG", "LDS") for line in lines]
    assert waiting(made(*swapped), LOCAL, is_loop) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["LDG 0", "FADD wait 0"], 1),
        (["LDG 0", "FADD wait 0", "LDG 1", "FADD wait 1"], 2),  # one after the other
        (["LDG 0", "LDG 1", "FADD wait 0", "FADD wait 1"], 1),
        (["FADD wait 0", "LDG 0"], 1),  # the next turn waits
        (["LDG 0", "FADD"], 0),  # nobody waits
        (["FADD", "FADD"], 0),
    ],
)
def test_a_warp_alone_waits_for_loads_that_come_one_after_the_other(lines: list[str], expected: int) -> None:
    assert waits_of_trip(made(*lines), GLOBAL) == pytest.approx(expected, abs=0.01)
    assert waits_of_trip(made(*lines), LOCAL) == 0


def test_sixteen_loads_of_a_column_are_one_wait() -> None:
    main = loop("column_sum", 0x1C0).loop
    assert main is not None
    assert waits_of_trip(main.own, GLOBAL) == pytest.approx(1, abs=0.05)


# --- loops and pipes


def test_loops_lie_in_each_other() -> None:
    def branch(place: int, target: int) -> Instruction:
        return Instruction(place=place, name="BRA", operands="", guard="", target=target, stall=1, sets=NONE, waits=())

    inner, outer, end = branch(48, 32), branch(80, 16), branch(128, 128)
    listed = list(made(*["FADD"] * 9))
    for each in (inner, outer, end):
        listed[each.place // 16] = each
    first, second = loops_of(listed)
    assert (first.first, first.last, first.depth, first.is_innermost) == (16, 80, 1, False)
    assert (second.first, second.last, second.depth, second.is_innermost) == (32, 48, 2, True)
    assert [each.place for each in first.own] == [16, 64, 80]


def test_every_instruction_goes_to_a_pipe() -> None:
    by_name = {"FFMA": "fma", "IADD3": "alu", "LDS": "memory", "MUFU": "special", "DFMA": "fp64", "LDC": "constant"}
    by_name |= {"HMMA": "tensor", "HGMMA": "tensor", "ULDC": "constant", "UIADD3": "uniform", "BAR": "control"}
    assert {name: pipe_of(made(name)[0]) for name in by_name} == by_name
    assert sum(code("spilling").mix.values()) == len(code("spilling").instructions) - 13  # which are NOP


# --- what is no machine code, and the programs themselves


def test_what_says_nothing_is_refused() -> None:
    told = json.loads(lzma.decompress((FOLDER / "column_sum.json.xz").read_bytes()))
    with pytest.raises(SourceError, match="log says nothing of kernel 'other'"):
        of_listing(Assembled(told["log"], told["listing"]), "other", "sm_90")
    with pytest.raises(SourceError, match="no machine code of kernel 'twin'; give that of nvdisasm -c -hex"):
        of_listing(Assembled(told["log"], "twin:\n  /*0000*/  EXIT ;\n"), "twin", "sm_90")


@pytest.mark.skipif(not is_installed(), reason="the programs of the extra sass are not installed")
def test_the_programs_say_what_they_said() -> None:
    text = (FOLDER.parent.parent / "ptx" / "texts" / "called.ptx").read_text()
    found = machine_code(text, "_Z6calledPKfPfPi")
    assert 8 <= found.registers <= 64
    assert found.target == target_of(text)
    assert "CALL" in {each.opcode for each in found.instructions}
    with pytest.raises(SourceError, match="ptxas does not take the kernel"):
        machine_code(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry f() { nonsense; }", "f")


# --- conversions, as newer assemblers choose them


@pytest.mark.parametrize(
    ("load", "conversion", "name"),
    [
        ("LDG.E.U8.CONSTANT R4, [R2]", "I2F.U16 R5, R4.reuse", "I2FP.F32.U32"),
        ("LDS.U16 R4, [R2]", "I2F.U16 R5, R4", "I2FP.F32.U32"),
        ("LDG.E R4, [R2]", "I2F.U8 R5, R4.B1", "I2FP.F32.U32"),
        ("LOP3.LUT R4, R2, 0x7, RZ, 0xc0, !PT", "I2F.U16 R5, R4", "I2F.U16"),
        ("LDG.E.S16 R4, [R2]", "I2F.S16 R5, R4", "I2F.S16"),
    ],
)
def test_short_numbers_are_converted_as_by_drivers(load: str, conversion: str, name: str) -> None:
    """These were looked at in what ptxas 12.9 and 13.5 make of it."""
    lines = [".section .text.k,"]
    for place, text in enumerate((load, conversion)):
        lines += [f"/*{16 * place:04x}*/ {text} ; /* 0x{0:016x} */", f"/* 0x{0:016x} */"]
    assert read("\n".join(lines), "k")[1].name == name
