"""Basic blocks of machine code are executed as often as the PTX that they come from, by hand on small listings."""

from __future__ import annotations

from perfmodel.sass.origins import OriginatedBlock, originated
from perfmodel.sass.reading import NONE, Instruction

FIRST, LOOP, LAST = (frozenset([number]) for number in range(3))
BLOCKS = {
    **dict.fromkeys(range(1, 10), FIRST),
    **dict.fromkeys(range(10, 20), LOOP),
    **dict.fromkeys(range(20, 30), LAST),
}


def code(text: str) -> tuple[Instruction, ...]:
    """Returns code of lines such as ``10 @P0 BRA 3``: the line of PTX, a guard, a name, and the number of the
    instruction that it branches to, or the name and number of a function that it calls."""
    found = []
    for place, line in enumerate(filter(None, map(str.strip, text.splitlines()))):
        number, *words = line.split()
        guard = words.pop(0) if words[0].startswith("@") else ""
        name, *rest = words
        found.append(
            Instruction(
                place=16 * place,
                name=name,
                operands=f"{'UR4, ' if name.endswith('.DIV') else ''}`(.L)" if rest else "",
                guard=guard,
                target=16 * int(rest[-1]) if rest else None,
                stall=1,
                sets=NONE,
                waits=(),
                calls=rest[0] if len(rest) > 1 else "",
                line=int(number),
            )
        )
    return tuple(found)


def told(blocks: list[OriginatedBlock]) -> list[tuple[int, set[int], int]]:
    """Returns of each basic block its first instruction's number, its origin, and its copies."""
    return [(each.instructions[0].place // 16, set(each.origin), each.copies) for each in blocks]


def test_a_loop_that_was_copied_is_executed_by_its_copies_and_what_is_left_hardly_ever() -> None:
    text = """
        1 IADD3
        2 @P0 BRA 8
        10 LDG
        10 LDG
        11 FADD
        11 FADD
        12 IADD3
        13 @P0 BRA 2
        20 ISETP
        10 LDG
        11 FADD
        13 @P1 BRA 9
        21 STG
        22 EXIT
    """
    blocks = originated(code(text), BLOCKS, {1: (1,)})
    assert told(blocks) == [(0, {0}, 1), (2, {1}, 2), (8, {2}, 1), (9, set(), 1), (12, {2}, 1)]
    assert [each.loop is not None for each in blocks] == [False, True, False, True, False]


def test_accesses_say_how_many_copies_a_loop_has_where_other_instructions_became_several() -> None:
    text = """
        1 IADD3
        2 IADD3
        2 IADD3
        10 LDG
        11 SEL
        11 MOV
        11 PRMT
        10 LDG
        11 LOP3
        12 ISETP
        13 @P0 BRA 3
        22 EXIT
    """
    assert told(originated(code(text), BLOCKS, {1: (1,)})) == [(0, {0}, 1), (3, {1}, 2), (11, {2}, 1)]


def test_what_is_in_no_loop_has_no_copies() -> None:
    text = """
        1 FSETP
        1 FSETP
        2 EXIT
    """
    assert told(originated(code(text), BLOCKS, {1: (1,)})) == [(0, {0}, 1)]


def test_what_is_left_of_a_loop_may_stand_behind_it_without_one() -> None:
    text = """
        1 IADD3
        10 LDG
        11 FADD
        12 @P0 BRA 1
        10 LDG
        10 LDG
        11 FADD
        11 FADD
        21 STG
        22 EXIT
    """
    assert told(originated(code(text), BLOCKS, {1: (1,)})) == [(0, {0}, 1), (1, {1}, 1), (4, {2}, 1)]


def test_an_operation_that_becomes_several_instructions_is_no_copy() -> None:
    text = """
        1 MUFU
        1 FFMA
        1 FFMA
        1 FFMA
        1 FCHK
        1 @P0 BRA 8
        1 MOV
        1 CALL $__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath 10
        1 FADD
        22 EXIT
        22 SHF
        22 RET 8
    """
    expected = [(0, {0}, 1), (6, set(), 1), (8, {0}, 1), (10, set(), 1)]
    assert told(originated(code(text), BLOCKS, {1: (1,)})) == expected  # the slow way, and its function


def test_a_function_that_is_always_called_is_executed_as_often_as_its_call() -> None:
    text = """
        1 MOV
        1 @P0 BRA 4
        11 MOV
        11 CALL $__internal_0_$__cuda_sm20_div_u64 5
        22 EXIT
        22 SHF
        22 RET 4
    """
    assert told(originated(code(text), BLOCKS, {1: (1,)})) == [(0, {0}, 1), (2, {1}, 1), (4, {2}, 1), (5, {1}, 1)]


def test_lanes_that_part_are_rare() -> None:
    text = """
        1 MOV
        1 BRA.DIV 5
        10 SHFL
        11 @P0 BRA 2
        22 EXIT
        10 WARPSYNC
        10 SHFL
        11 BRA 2
    """
    assert told(originated(code(text), BLOCKS, {1: (1,)})) == [(0, {0}, 1), (2, {1}, 1), (4, {2}, 1), (5, set(), 1)]


def test_code_without_lines_has_no_origin() -> None:
    assert [each.origin for each in originated(code("0 MOV\n0 EXIT"), {}, {})] == [frozenset()]


def test_what_is_guarded_does_not_say_how_often_a_block_is_executed() -> None:
    """The block of PTX behind a condition became instructions under a guard, which the loop goes through each time."""
    text = """
        1 IADD3
        10 LDG
        10 ISETP
        20 @P1 LDG
        20 @P1 LDG
        21 @P1 IADD3
        22 @P1 SEL
        13 @P0 BRA 1
        2 EXIT
    """
    blocks = originated(code(text), BLOCKS, {1: (1,), 2: (1,)})
    assert told(blocks) == [(0, {0}, 1), (1, {1}, 1), (8, {0}, 1)]


def test_lanes_meet_as_often_as_they_part() -> None:
    """The place where they meet has the line of what a part of them did before; the next branch has its own."""
    text = """
        10 BSSY 5
        10 @P0 BRA 4
        20 FFMA
        21 FFMA
        21 BSYNC
        21 BSSY 8
        11 @P1 BRA 8
        20 FFMA
        12 @P2 BRA 0
    """
    blocks = originated(code(text), BLOCKS, {1: (1,), 2: (1,)})
    assert told(blocks) == [(0, {1}, 1), (2, {2}, 1), (4, {1}, 1), (5, {1}, 1), (7, {2}, 1), (8, {1}, 1)]


def test_moves_of_several_words_do_not_say_how_many_copies_there_are() -> None:
    text = """
        1 IADD3
        10 DADD
        11 MOV
        11 MOV
        12 IMAD.MOV.U32
        12 IMAD.MOV.U32
        13 @P0 BRA 1
        2 EXIT
    """
    assert told(originated(code(text), BLOCKS, {1: (1,)})) == [(0, {0}, 1), (1, {1}, 1), (7, {0}, 1)]


def test_a_loop_within_another_that_is_written_out_has_no_loop_of_its_own() -> None:
    around = {1: (1,), 2: (1, 2)}
    written = """
        1 IADD3
        10 LDG
        20 LOP3
        21 IMAD
        20 LOP3
        21 IMAD
        20 @P1 BRA 9
        20 LOP3
        21 IMAD
        11 FADD
        12 FADD
        13 @P0 BRA 1
        2 EXIT
    """
    within = """
        1 IADD3
        10 LDG
        20 LOP3
        21 IMAD
        22 @P1 BRA 2
        11 FADD
        12 FADD
        13 @P0 BRA 1
        2 EXIT
    """
    for text, expected in ((written, {0: None, 1: None, 2: 2}), (within, {0: None, 1: None, 2: None})):
        blocks = originated(code(text), BLOCKS, around)
        assert {number: each.written_out for each in blocks for number in each.origin} == expected


def test_what_stands_before_a_loop_and_is_computed_in_it_makes_it_no_loop_that_is_written_out() -> None:
    text = """
        10 LDG
        1 IADD3
        2 IADD3
        11 FADD
        13 @P0 BRA 0
        22 EXIT
    """
    assert [each.written_out for each in originated(code(text), BLOCKS, {1: (1,)})] == [None, None]
