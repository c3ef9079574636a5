"""Says how often each block of machine code is executed, by the lines of the source that it comes from.

A driver copies loops' bodies, writes loops out, and moves instructions out of loops. So a block is executed as often as
the block of the source that most of its instructions come from, shared out over its copies; one that each iteration of
a loop executes, as often as the loop goes round.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import ceil, floor, prod

from perfmodel.x86.copies import Copies
from perfmodel.x86.instructions import FRAMES
from perfmodel.x86.lane_tests import chain_from, lane_tests, spread
from perfmodel.x86.matching import FEW, Part, Turn

SHARE = 0.2
"""A block is executed as often as the most frequent of the source's blocks that so many of its instructions come from:
what conditions decide is often done under masks, or for nothing."""

SEVERAL = 1.5
"""Nothing tells ways apart that exclude each other, and yet seem taken so much more often than what leads to them."""


class Executed:
    """Finds out how often each block of a function is executed in a work-group, on average.

    Args:
        once: how often the function is entered.
        by_default: how code goes that lies in no loop over work-items.
        lanes: work-items of a vector.

    Attributes:
        times: by the numbers of the blocks.
    """

    def __init__(self, part: Part, turns: Mapping[int, Turn], once: float, by_default: Turn, lanes: int) -> None:
        self.part, self.turns, self.once, self.by_default, self.lanes = part, turns, once, by_default, lanes
        self.copies = Copies(part)
        self.times: dict[int, float] = {}
        last: dict[int | None, int] = {}
        for number in sorted(part.flow.blocks):
            self.times[number] = self._times(number, last)
        chances = {head: self._chance(head) for head in part.flow.loops}
        for number, around in part.flow.around.items():
            self.times[number] *= prod(chances[head] for head in around)
        for number in sorted(part.flow.blocks):
            self._share_out(number)
        for number in sorted(part.flow.blocks):
            self._share_in(number)
        for head in (None, *part.flow.loops):
            self._ask_lanes(head)
        for head in part.flow.loops:
            if self._has_nothing_to_do(head):
                self.times |= dict.fromkeys(part.flow.only_with(head), 0.0)
        if not part.is_kernel and (entered := self.times[min(self.times)]):
            # The source has what a function does once for each place that calls it.
            self.times = {number: times * once / entered for number, times in self.times.items()}

    def turn(self, number: int) -> Turn:
        """Returns how the loop over work-items goes that a block lies in."""
        over = self.part.turn(number)
        return self.by_default if over is None else self.turns.get(over, self.by_default)

    def _times(self, number: int, last: dict[int | None, int]) -> float:
        part, flow, source = self.part, self.part.flow, self.part.source
        inner, over = flow.innermost(number), part.turn(number)
        loop = None if inner is None or inner in part.over_items else part.matches[inner]
        if part.is_kernel and not part.meets and loop is None and self._leads_to_nothing(number):
            return 0.0
        if over is None and part.is_kernel and loop is None:
            return self.once
        if over is not None and not part.meets and (level := part.level(over)) > 0:
            sizes = (*source.local_size, 1, 1)
            return float(sizes[1] * sizes[2] if level == 1 else sizes[2])
        turn = self.turn(number)
        is_always = flow.is_always_executed(number)
        if loop is not None and inner is not None:
            if longer := self._longer(inner, loop, over, turn):
                return self._left(loop, longer, inner, turn)
            if is_always and loop in source.tests:
                return self._of_source(source.tests[loop], inner, loop, turn)
        elif is_always and inner is not None and inner == over and not part.meets:
            return self._unknown(number, inner, loop, turn)
        alike = flow.always(inner) if is_always and inner is not None else [number]
        votes: Counter[int] = Counter()
        for among in self._stored(number) or [among for each in alike for among in part.candidates[each]]:
            told = source.most_executed(among, loop)
            if told is not None:
                votes[told] += 1
        if votes:
            enough = min(SHARE * votes.total(), max(votes.values()))
            told_by = [block for block, count in votes.items() if count >= enough]
            last[inner] = max(told_by, key=lambda block: (self._of_source(block, inner, loop, turn), votes[block]))
        if inner not in last:
            return self._unknown(number, inner, loop, turn)
        times = self._of_source(last[inner], inner, loop, turn)
        return times / self._row(number, turn) if part.meets and inner is not None and inner == over else times

    def _stored(self, number: int) -> list[tuple[int, ...]]:
        """Returns the blocks of the source that a block's stores come from, of one that is not always executed: no
        compiler stores what the source does not, but under masks, which may be empty."""
        part = self.part
        if part.flow.is_always_executed(number):
            return []
        pairs = zip(part.flow.blocks[number].instructions, part.candidates[number], strict=True)
        found = (
            tuple(n for n in among if part.source.stores_at(n, each.file, each.line))
            for each, among in pairs
            if each.stores and not each.is_masked and not set(FRAMES).intersection(each.addressed)
        )
        return [among for among in found if among]

    def _ask_lanes(self, head: int | None) -> None:
        """Makes blocks as frequent as lanes take part that a loop's vectors ask one by one, outside of any loop if
        there is none."""
        flow, part = self.part.flow, self.part
        own = flow.own(head)
        tests = lane_tests(own)
        loop = None if head is None or head in part.over_items else part.matches[head]
        among, done = {block.number for block in own}, set[int]()
        for first in sorted(tests):
            turn = self.turn(first)
            if first in done or not turn.is_vector or not self.times[first]:
                continue
            chain = chain_from(first, tests, flow, among)
            votes = Counter(
                block
                for number in chain
                for candidates in part.candidates[number]
                if (block := part.source.most_executed(candidates, loop)) is not None
            )
            if not votes:
                continue
            told = max(votes, key=lambda block: (votes[block], block))
            items, vectors = part.source.blocks[told].executions
            often = self._of_source(told, head, loop, turn) * items / max(vectors * self.lanes, 1e-9)
            chance = min(1.0, often / self.times[first])
            self.times |= spread(first, chain, tests, flow, self.times[first], chance)
            done.update(chain)

    def _row(self, number: int, turn: Turn) -> float:
        """Returns how many vectors a loop between barriers goes over before it comes to a block, if that goes on to the
        next row of work-items or to the next plane; 1 for all others."""
        part, flow = self.part, self.part.flow

        def goes_on(block: int) -> bool:
            code = [each for each in flow.blocks[block].instructions if each.line]
            meets = bool(code) and all(part.source.is_meeting(each.file, each.line) for each in code)
            return meets and not flow.is_always_executed(block)

        if not goes_on(number):
            return 1.0
        own = [block.number for block in flow.own(flow.around[number][0])]
        axes = sum(flow.dominates(block, number) for block in own if goes_on(block))
        return prod(part.source.local_size[:axes]) / (self.lanes if turn.is_vector else 1)

    def _share_out(self, number: int) -> None:
        """Makes ways that one block leads to as frequent as the block is, all together.

        Where the source does not tell them apart, as within built-in functions, each was taken to be executed as often
        as the block.
        """
        flow = self.part.flow
        sides = flow.sides(number)
        total = sum(self.times[side] for side in sides)
        if not sides or total <= SEVERAL * self.times[number]:
            return
        behind = [block for block in flow.blocks if any(flow.dominates(side, block) for side in sides)]
        if all(flow.around[block] == flow.around[number] for block in behind):
            for block in behind:
                self.times[block] *= self.times[number] / total

    def _share_in(self, number: int) -> None:
        """Makes ways that come together in a block, and lead nowhere else, as frequent as the block is, all together:
        those with statements that others lack are as frequent as these, and the others are for all other cases."""
        flow, times = self.part.flow, self.times
        ways = flow.before(number)
        total = sum(times[way] for way in ways)
        if len(ways) < 2 or total <= SEVERAL * times[number]:
            return
        if any(flow.blocks[way].following != (number,) or flow.around[way] != flow.around[number] for way in ways):
            return
        done = {way: self._statements_in([way], None) for way in ways}
        in_all = set.intersection(*done.values())
        others = [way for way in ways if done[way] == in_all]
        left = times[number] - sum(times[way] for way in ways if way not in others)
        for way in others:
            times[way] = min(times[way], max(0.0, left) / len(others))

    def _chance(self, head: int) -> float:
        """Returns how often control comes to a loop rather than to other versions of it, which a compiler makes where a
        condition is the same in all iterations.

        A version is taken as often as the statements are executed that it has and another one does not; one without
        such statements is for all other cases. Those that come one after the other and have the same are no versions:
        each goes round as often as the loop does.
        """
        part, flow = self.part, self.part.flow
        loop, outer = part.matches[head], flow.outer(head)
        if loop is None or outer is None:
            return 1.0
        turn = self.turn(head)
        alike = [
            other
            for other, match in part.matches.items()
            if match == loop
            and flow.outer(other) == outer
            and self.copies.of(other, turn) == self.copies.of(head, turn)
        ]
        done = {other: self._statements_in(part.flow.loops[other].blocks, loop) for other in alike}
        in_all = set.intersection(*done.values())
        if in_all == set.union(*done.values()):
            done = {
                other: of for other, of in done.items() if other == head or not flow.is_on_one_way(head, other, outer)
            }
        blocks, iterations = part.source.blocks, part.source.loops[loop].iterations.of(turn.is_vector)
        often = {
            other: max((blocks[n].executions.of(turn.is_vector) for n in of - in_all), default=-1.0)
            for other, of in done.items()
        }
        others = max(0.0, iterations - sum(each for each in often.values() if each > 0))
        for other, each in often.items():
            if each < 0:
                often[other] = others / list(often.values()).count(-1.0)
        total = sum(often.values())
        return often[head] / total if total else 1 / len(done)

    def _has_nothing_to_do(self, head: int) -> bool:
        """Returns whether a loop does several iterations of the source's at once, of which there are fewer, so that
        another one does them."""
        matches, times = self.part.matches, self.times
        others = (other for other, match in matches.items() if other != head and match == matches[head])
        is_of_several = matches[head] is not None and self.copies.of(head, self.turn(head)) > 1
        return is_of_several and not times[head] and any(times[other] for other in others)

    def _statements_in(self, numbers: Iterable[int], loop: int | None) -> set[int]:
        """Returns the source's blocks that some instructions of blocks come from, in a loop of the source."""
        told: Counter[int] = Counter()
        for number in numbers:
            for among in self.part.candidates[number]:
                if (block := self.part.source.most_executed(among, loop)) is not None:
                    told[block] += 1
        return {block for block, count in told.items() if count >= FEW}

    def _leads_to_nothing(self, number: int) -> bool:
        """Returns whether all loops over work-items that only a block leads to, or that it lies outside of, have
        nothing to do."""
        part, around = self.part, self.part.turn(number)
        inside = [head for head in part.innermost if around is None or head in part.flow.loops[around].blocks]
        to_do = [head for head in inside if self.turns[head].share]
        led = [head for head in inside if head != around and part.flow.dominates(number, head)]
        return bool(inside and not to_do) or bool(led and not set(led).intersection(to_do))

    def _of_source(self, block: int, inner: int | None, loop: int | None, turn: Turn) -> float:
        """Returns how often code of a block of the source is executed in a loop, the loops written out in there
        once."""
        source, told = self.part.source, self.part.source.blocks[block]
        times, outside = told.executions.of(turn.is_vector), told.loops
        if told.tests in told.loops:  # at the end of each iteration, or once before all of them
            tested = source.loops[told.tests]
            if loop == told.tests:
                times = tested.iterations.of(turn.is_vector)
            else:
                times, outside = tested.begun.of(turn.is_vector), told.loops[: told.loops.index(told.tests)]
        if self.part.is_kernel and told.meets_in is not None:
            times /= self._pieces[told.meets_in]
        for written_out in outside[outside.index(loop) + 1 :] if loop in outside else outside:
            times /= source.loops[written_out].trips(turn.is_vector)
        if loop is not None and inner is not None:
            times /= self._outside(inner, loop, turn)
            copies = self.copies.of(inner, turn)
            trips = source.loops[loop].trips(turn.is_vector)
            if copies > 1:
                times *= 1 / copies if self._ends_between(inner, copies) else floor(trips / copies) / trips
        return times * turn.share

    def _ends_between(self, head: int, copies: int) -> bool:
        """Returns whether a loop asks after each of several iterations whether it goes on."""
        inside = self.part.flow.loops[head].blocks
        return sum(not inside.issuperset(block.following) for block in self.part.flow.own(head)) >= copies

    def _unknown(self, number: int, inner: int | None, loop: int | None, turn: Turn) -> float:
        """Returns how often code is executed of which no instruction has a place."""
        if inner is not None and inner not in self.part.over_items and loop is None:
            return self.times.get(number - 1, 0.0)
        if inner is None:
            return self.once
        return ceil(prod(self.part.source.local_size) / (self.lanes if turn.is_vector else 1)) * turn.share

    @cached_property
    def _pieces(self) -> dict[int, int]:
        """The number of pieces of code between barriers that most lines of each loop with barriers are in: several
        where the loop was written out."""
        source = self.part.source
        spread: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
        for number, candidates in self.part.candidates.items():
            over = self.part.turn(number)
            for each, among in zip(self.part.flow.blocks[number].instructions, candidates, strict=True):
                likely = source.most_executed(among)
                if likely is not None and over is not None and not source.is_meeting(each.file, each.line):
                    spread[likely, each.line][over] += 1
        votes: dict[int, Counter[int]] = defaultdict(Counter)
        for (block, _), by_piece in spread.items():
            told = source.blocks[block]
            if told.meets_in is not None and told.tests is None:  # which may stand before the loop as well
                pieces = sum(2 * count >= max(by_piece.values()) for count in by_piece.values())
                votes[told.meets_in][pieces] += by_piece.total()
        return defaultdict(lambda: 1, {loop: numbers.most_common(1)[0][0] for loop, numbers in votes.items()})

    def _longer(self, inner: int, loop: int, over: int | None, turn: Turn) -> list[int]:
        """Returns how many iterations at once the other loops do that are made of the same one of the source, neither
        lie in this one nor around it, and do more at once: this one does what they leave. Longest ones come first."""
        part, around = self.part, self.part.flow.around
        rivals = [
            head
            for head, match in part.matches.items()
            if match == loop and part.turn(head) == over and head not in around[inner] and inner not in around[head]
        ]
        own = self.copies.of(inner, turn)
        return sorted({copies for head in rivals if (copies := self.copies.of(head, turn)) > own}, reverse=True)

    def _left(self, loop: int, longer: Iterable[int], inner: int, turn: Turn) -> float:
        """Returns how often the body of a loop is executed that does what others have left."""
        told, copies = self.part.source.loops[loop], self.copies.of(inner, turn)
        left = told.trips(turn.is_vector)
        for each in longer:
            left -= floor(left / each) * each
        begun = told.begun.of(turn.is_vector) / self._outside(inner, loop, turn)
        return begun * turn.share * (floor(left / copies) if copies > 1 else left)

    def _outside(self, inner: int, loop: int, turn: Turn) -> float:
        """Returns the iterations of the source's loops that were written out around a loop: it is there once for
        each."""
        outside = self.part.source.loops[loop].outer
        for head in self.part.flow.around[inner][1:]:
            around = self.part.matches.get(head)
            if around in outside:
                outside = outside[outside.index(around) + 1 :]
                break
        return prod(self.part.source.loops[each].trips(turn.is_vector) for each in outside)
