"""Finds branches that ask whether one lane of a vector takes part, and how often what stands behind them is executed.

AVX2 has no stores of lanes apart, and none of narrow numbers under a mask: compilers put the mask into a register, and
ask bit by bit whether the lane is to be stored, or loaded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from perfmodel.x86.flow import Block, Flow

_INTO_BITS = re.compile("vp?movmsk.*|kmov.*")
_SET = ("jne", "jnz", "jb", "jc", "js")
_CLEAR = ("je", "jz", "jae", "jnc", "jns")
"""Jumps that are taken where the bit is set, and where it is not."""
ALL = 0.999
"""Ways have met again where so much of what leads to them comes by."""


def lane_tests(blocks: Collection[Block]) -> dict[int, int]:
    """Returns the blocks that end with a question for a lane, each with the block that a lane that takes part leads
    to."""
    masks = {
        name
        for block in blocks
        for each in block.instructions
        if _INTO_BITS.fullmatch(each.name)
        for name in each.writes
    }
    found: dict[int, int] = {}
    for block in blocks:
        if len(block.following) != 2 or len(block.deciding) != 2:
            continue
        jump, asked = (block.instructions[place] for place in block.deciding)
        is_of_bit = asked.name == "bt" or (asked.name == "test" and _is_bit(asked.constant))
        if is_of_bit and masks.intersection(asked.reads) and jump.name in (*_SET, *_CLEAR):
            beside, target = block.following
            found[block.number] = target if jump.name in _SET else beside
    return found


def _is_bit(constant: int | None) -> bool:
    """Returns whether a number has one bit; a register that is asked by itself is asked for its sign."""
    return constant is None or (constant > 0 and constant & (constant - 1) == 0)


def chain_from(first: int, tests: Collection[int], flow: Flow, among: Collection[int]) -> list[int]:
    """Returns the blocks that only questions for lanes lead to, from a first one on, each behind all that lead to it.

    Args:
        tests: the blocks with such questions.
        among: the blocks of the loop that they lie in.
    """
    found: list[int] = []
    waiting = [number for number in flow.blocks[first].following if number in among]
    while waiting:
        number = waiting.pop(0)
        before = flow.before(number)
        if number in found or number == first or not all(each == first or each in found for each in before):
            continue
        found.append(number)
        if number in tests or len(flow.blocks[number].following) == 1:
            waiting += [each for each in flow.blocks[number].following if each in among]
    return found


def spread(
    first: int, chain: Collection[int], tests: Mapping[int, int], flow: Flow, often: float, chance: float
) -> dict[int, float]:
    """Returns how often each block of a chain is executed, up to where its ways meet again.

    Args:
        often: how often the first block is.
        chance: how often a lane takes part.
    """
    found = {first: often}
    for number in chain:
        total = 0.0
        for before in flow.before(number):
            if before not in found:
                break
            following = flow.blocks[before].following
            share = 1.0 if len(following) == 1 else chance if tests[before] == number else 1 - chance
            total += found[before] * share
        else:
            found[number] = total
    return {number: times for number, times in found.items() if number in tests or times < ALL * often}
