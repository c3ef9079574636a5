"""A kernel becomes Python code: one function, of which each statement works on all lanes at once.

Masks are variables: each list of statements has one, None when nobody is left in it. `Emulator` supplies what the
function refers to (``branch3`` of an `If`, ``load5`` of an access).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.emulation.expression_code import Expressions, LoopFrame
from perfmodel.opencl_c.emulation.loop_plans import Plan, plan_of, rough_plan_of
from perfmodel.opencl_c.emulation.register_homes import ROOT, ListKey, homes
from perfmodel.opencl_c.emulation.waiting import deciding
from perfmodel.opencl_c.syntax import Place
from perfmodel.opencl_c.types import element_of
from perfmodel.opencl_c.visitor import Dispatch


@dataclass(frozen=True)
class Code:
    """Holds the code of a kernel.

    Attributes:
        text: to read. build: makes the function for a batch (see `batch`), which takes the steps allowed, and returns
            what is left of these and of the work.
        once: the work outside of loops, which the function does not count.
        accesses, work_items, divisions: see `Expressions`. plans: of loops whose iterations may be left out, by number;
            rough_plans: of those of which some may stand for others; can_be_cut: whether that is all loops.
    """

    text: str
    build: Callable[[dict[str, Any]], Callable[[int], tuple[int, float]]]
    once: int
    accesses: tuple[tuple[low.Access, int], ...]
    work_items: dict[tuple[str, int | None], str]
    divisions: tuple[Place, ...]
    plans: tuple[Plan, ...]
    rough_plans: tuple[Plan, ...]
    can_be_cut: bool


_MADE: WeakKeyDictionary[low.LoweredKernel, Code] = WeakKeyDictionary()


def code_of(kernel: low.LoweredKernel) -> Code:
    """Returns the code of a kernel, made once."""
    found = _MADE.get(kernel)
    if found is None:
        found = _MADE[kernel] = _Generator(kernel).code()
    return found


class _Generator:
    def __init__(self, kernel: low.LoweredKernel) -> None:
        self.kernel = kernel
        self.names = {
            register: f"r{number}_{re.sub(r'[^A-Za-z0-9]', '_', register.name)}"
            for number, register in enumerate(kernel.registers)
        }
        self.expressions = Expressions(self.names)
        self.homes = homes(kernel)
        self.mask_of: dict[ListKey, str] = {ROOT: "m0"}
        self.lines: list[str] = []
        self.depth = 1
        self.masks = 0
        self.left: dict[str, str] = {}
        self.plans: list[Plan] = []
        self.rough_plans: list[Plan] = []

    def code(self) -> Code:
        self.body(self.kernel.body, "m0")
        lines, self.lines, self.depth = self.lines, [], 0
        self.emit("def run(steps):")
        self.depth = 1
        self.emit("m0, pause, work = full, steps and max(steps - soon, 0), most_work")
        for number, register in enumerate(self.kernel.registers):
            self.emit(f"{self.names[register]} = start_{number}")
        for (name, axis), text in self.expressions.work_items.items():
            self.emit(f"{text} = work_item({name!r}, {axis})")
        text = "\n".join(self.lines + lines) + "\n    return steps, work\n"
        compiled = compile(text, f"<emulation of {self.kernel.name}>", "exec")
        constants = self.expressions.namespace

        def build(namespace: dict[str, Any]) -> Callable[[int], tuple[int, float]]:
            names = {**constants, **namespace}
            exec(compiled, names)
            return names["run"]  # type: ignore[no-any-return]

        return Code(
            text=text,
            build=build,
            once=_own_work(self.kernel.body, self.kernel.body),
            accesses=tuple(self.expressions.accesses),
            work_items=self.expressions.work_items,
            divisions=tuple(self.expressions.divisions),
            plans=tuple(self.plans),
            rough_plans=tuple(self.rough_plans),
            can_be_cut=len(self.rough_plans) == sum(1 for _ in walks.loops(self.kernel.body)),
        )

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def new_mask(self) -> str:
        self.masks += 1
        return f"m{self.masks}"

    # --- statements

    def body(self, statements: tuple[low.Statement, ...], mask: str) -> bool:
        """Makes the code of a list, and returns whether lanes may have left it for something outside."""
        depth, narrowed, left = self.depth, False, False
        for statement in statements:
            if left:
                self.emit(f"if {mask} is not None:")
                self.depth += 1
            left = self.statement(statement, mask)
            narrowed |= left
        if not statements:
            self.emit("pass")
        self.depth = depth
        return narrowed

    statement = Dispatch[[str], bool](low.Statement)
    """Makes the code of one statement, and returns whether lanes may have left its list for something outside."""

    @statement.on(low.Leave)
    def leave(self, statement: low.Leave, mask: str) -> bool:
        left = self.left[statement.label]
        self.emit(f"{left}, {mask} = union({left}, {mask}), None")
        return True

    @statement.on(low.If)
    def branch(self, statement: low.If, mask: str) -> bool:
        then, otherwise = self.new_mask(), self.new_mask()
        condition = self.names[statement.condition]
        self.emit(f"{then}, {otherwise} = branch({mask}, {condition}, {statement.number})  # {statement.place}")
        left = False
        for name, slot, body in ((then, "then", statement.then), (otherwise, "otherwise", statement.otherwise)):
            self.mask_of[id(statement), slot] = name
            if body:
                self.emit(f"if {name} is not None:")
                self.depth += 1
                left |= self.body(body, name)
                self.depth -= 1
        if left:
            self.emit(f"{mask} = union({then}, {otherwise})")
        return left

    @statement.on(low.Scope)
    def scope(self, statement: low.Scope, mask: str) -> bool:
        inner = self.new_mask()
        self.mask_of[id(statement), "body"] = inner
        left = self.left[statement.label] = f"left_{inner}"
        self.emit(f"{inner}, {left} = {mask}, None")
        narrowed = self.body(statement.body, inner)
        if narrowed:
            self.emit(f"{mask} = union({inner}, {left})")
        return bool(walks.labels_left((statement,)))

    @statement.on(low.Loop)
    def loop(self, statement: low.Loop, mask: str) -> bool:
        inner = self.new_mask()
        for slot in ("test", "body", "step"):
            self.mask_of[id(statement), slot] = inner
        left, done, out = f"left_{inner}", f"done_{inner}", f"out_{inner}"
        self.left[statement.label] = left
        leaves = bool(walks.labels_left((statement,)))
        before, self.lines = self.lines, []
        frame = LoopFrame(walks.registers_set((statement,)))
        self.expressions.loops.append(frame)
        self.depth += 1
        plan, rough_plan = plan_of(statement, self.homes), rough_plan_of(statement, self.homes)

        def before_test() -> None:
            if plan is not None:
                self.watched(plan, inner)
            if rough_plan is not None:
                self.thinned(rough_plan, inner, "if" if plan is None else "elif")

        self.iteration(statement, inner, f"{done} = union({done}, {out})" if leaves else "", out, before_test)
        self.depth -= 1
        self.expressions.loops.pop()
        inside, self.lines = self.lines, before
        for line in frame.lines:
            self.emit(line)
        self.emit(f"{inner} = {mask}")
        self.emit(f"{left} = {done} = None" if leaves else f"{left} = None")
        if plan is not None:
            self.emit(f"watch_{inner} = watch({len(self.plans) - 1})")
        if rough_plan is not None:
            self.emit(f"turn_{inner} = None")
        self.emit(f"while True:  # {statement.place}")
        self.lines += inside
        if leaves:
            self.emit(f"{mask} = union({done}, {left})")
        return leaves

    def watched(self, plan: Plan, mask: str) -> None:
        """Makes the end of an iteration of a loop of which iterations may be left out."""
        self.plans.append(plan)
        registers = "".join(f"{self.names[register]}, " for register in plan.carried)
        self.emit(f"if watch_{mask} is not None:")
        bound = self.expressions.text(plan.bound)
        self.emit(f"    watch_{mask}, jump = watch_{mask}.iteration({mask}, {bound}, ({registers}))")
        self.emit("    if jump is not None:")
        self.emit(f"        {registers}= jump")

    def thinned(self, plan: Plan, mask: str, word: str) -> None:
        """Makes the end of an iteration of a loop of which some stand for others once there was much work."""
        self.rough_plans.append(plan)
        registers = "".join(f"{self.names[register]}, " for register in plan.carried)
        self.emit(f"{word} work < {'late_work' if plan.depends_on_state else '0'}:")
        known = f"{len(self.rough_plans) - 1}, turn_{mask}, {mask}, {self.expressions.text(plan.bound)}, ({registers})"
        self.depth += 1
        self.emit(f"turn_{mask}, jump = thin({known}, work)")
        self.emit("if jump is not None:")
        self.depth += 1
        for number, register in enumerate(plan.carried):
            self.set(register, f"jump[{number}]", mask)
        self.depth -= 2

    def iteration(self, loop: low.Loop, mask: str, note_done: str, out: str, before_test: Callable[[], None]) -> None:
        """Makes the code of one iteration of a loop; what comes before the next one's test makes the code of that."""
        self.emit(f"steps -= {max(len(list(walks.straights((loop,)))), 1)}")
        self.emit(f"work -= {_own_work((loop,), (*loop.test, *loop.body, *loop.step))}")
        registers = "".join(f"{self.names[register]}, " for register in deciding(loop))
        self.emit("if steps < pause or work < least_work or len(log) > most_logged:")
        self.emit(f"    pause = turned(steps, work, {loop.number}, {mask}, ({registers}))")

        def part(statements: tuple[low.Statement, ...]) -> None:
            if statements and self.body(statements, mask):
                self.emit(f"if {mask} is None:")
                self.emit("    break")

        def test() -> None:
            part(loop.test)
            condition = self.names[loop.condition]
            self.emit(f"{mask}, {out} = branch({mask}, {condition}, {loop.number})")
            if note_done:
                self.emit(note_done)
            self.emit(f"if {mask} is None:")
            self.emit("    break")

        if not loop.is_do:
            test()
        part(loop.body)
        part(loop.step)
        before_test()
        if loop.is_do:
            test()

    @statement.on(low.Straight)
    def straight(self, block: low.Straight, mask: str) -> bool:
        self.expressions.mask, self.expressions.place = mask, block.place
        self.emit(f"block_{block.number}[{mask}] += 1  # {block.place}")
        for statement in block.statements:
            self.simple(statement, mask)
        return False

    simple = Dispatch[[str], None](low.Simple)

    @simple.on(low.Barrier)
    def barrier(self, statement: low.Barrier, mask: str) -> None:
        self.emit(f"barrier({mask}, {statement.number})" if statement.is_of_group else f"ordered({mask})")

    @simple.on(low.Collective)
    def collective(self, statement: low.Collective, mask: str) -> None:
        dtype = element_of(statement.result.type).dtype
        operands = "".join(f", {self.expressions.text(operand)}" for operand in statement.operands)
        how = f"{statement.operation!r}, {statement.by!r}, {statement.is_of_group}, {dtype!r}"
        self.set(statement.result, f"collective({mask}, {how}{operands})", mask)

    @simple.on(low.Store)
    def store(self, statement: low.Store, mask: str) -> None:
        value = self.expressions.text(statement.value)
        self.emit(self.expressions.access("store", statement.access, statement.pointer, mask, value))

    @simple.on(low.WriteImage)
    def write_image(self, statement: low.WriteImage, mask: str) -> None:
        value, coordinates = self.expressions.text(statement.value), self.expressions.text(statement.coordinates)
        self.emit(self.expressions.image("store", statement.access, mask, value, coordinates))

    @simple.on(low.Assign)
    def assign(self, statement: low.Assign, mask: str) -> None:
        value = self.expressions.text(statement.value)
        name = self.names[statement.register]
        if statement.components is not None:
            value = f"put({name}, {value}, {list(statement.components)})"
        self.set(statement.register, value, mask)

    @simple.on(low.Atomic)
    def atomic(self, statement: low.Atomic, mask: str) -> None:
        operands = "".join(f"{self.expressions.text(operand)}, " for operand in statement.operands)
        call = self.expressions.access(
            "atomic",
            statement.access,
            statement.pointer,
            mask,
            repr(statement.operation),
            f"({operands})",
            str(statement.result is not None),
        )
        if statement.result is None:
            self.emit(call)
        else:
            self.set(statement.result, call, mask)

    def set(self, register: low.Register, value: str, mask: str) -> None:
        name = self.names[register]
        home = self.mask_of[self.homes[register]]
        if home == mask:
            self.emit(f"{name} = {value}")
        else:
            self.emit(f"v = {value}")
            self.emit(f"{name} = v if {mask} is {home} else where({mask}.bits, v, {name})")


def _own_work(whole: Sequence[low.Statement], parts: Sequence[low.Statement]) -> int:
    """Returns how many statements and accesses a list of statements has, those of loops in its parts left out."""
    within = {id(block) for each in walks.loops(parts) for block in walks.straights((each,))}
    own = [block for block in walks.straights(whole) if id(block) not in within]
    accesses = (node for block in own for each in block.statements for node in walks.accesses_of(each))
    return sum(1 + len(block.statements) for block in own) + sum(1 for _ in accesses)
