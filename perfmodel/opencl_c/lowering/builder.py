"""A lowered kernel is filled into lists of statements here, with its registers, objects and labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.lowering.memory_layout import aligned
from perfmodel.opencl_c.lowering.points_to import space_of
from perfmodel.opencl_c.types import BOOL, Pointer, Type

MOST_BLOCKS = 20_000
"""No kernel may have more basic blocks after inlining, and one for every ten characters of its source: one that has
doubles itself by calls."""

Storage: TypeAlias = low.Register | low.MemoryObject


@dataclass(frozen=True)
class Target:
    """A target is a label of the source.

    Attributes:
        leaves: the scope that a jump to it leaves.
        sets: what a jump sets, for who tests it behind that scope: registers, each with its value.
    """

    leaves: str
    sets: tuple[tuple[low.Register, int], ...] = ()


@dataclass
class Frame:
    """A frame is one inlined call: where `return`, `break`, `continue` and `goto` lead to, what the variables are."""

    function: syn.Function
    variables: dict[syn.Variable, Storage]
    end: str
    result: Storage | None
    breaks: list[str] = field(default_factory=list)
    continues: list[str] = field(default_factory=list)
    labels: dict[str, Target] = field(default_factory=dict)


class Emission:
    """Holds the state of one kernel's lowering.

    Attributes:
        body, simple: the list that is being filled, and the simple statements that will become its next block.
        places, calls: of these statements, see `perfmodel.opencl_c.lowered.Straight`.
        place, called: of the statement that is being lowered.
        most_blocks: more are refused.
        frame: of the function that is.
    """

    frame: Frame

    def __init__(self, length: int) -> None:
        self.most_blocks = MOST_BLOCKS + length // 10
        self.registers: list[low.Register] = []
        self.objects: list[low.MemoryObject] = []
        self.accesses: list[low.Access] = []
        self.bytes = {"private": 0, "local": 0, "constant": 0}
        self.blocks = self.branches = self.barriers = self.labels = 0
        self.left: set[str] = set()
        self.loop_names: dict[str, int] = {}
        self.body: list[low.Statement] = []
        self.simple: list[low.Simple] = []
        self.places: list[syn.Place] = []
        self.calls: list[tuple[syn.Place, ...]] = []
        self.place = syn.Place("", 0, 0)
        self.called: tuple[syn.Place, ...] = ()

    # --- storage

    def register(self, name: str, type_: Type, parameter: int | None = None) -> low.Register:
        register = low.Register(name, type_, parameter)
        self.registers.append(register)
        return register

    def memory_object(
        self,
        variable: syn.Variable,
        space: str,
        parameter: int | None = None,
        initial: tuple[tuple[int, Type, low.Number | tuple[low.Number, ...]], ...] = (),
    ) -> low.MemoryObject:
        frame = "constant" if space == "global" else space
        offset = aligned(self.bytes[frame], variable.type.alignment)
        self.bytes[frame] = offset + variable.type.size
        found = low.MemoryObject(
            name=variable.name, type=variable.type, space=space, offset=offset, initial=initial, parameter=parameter
        )
        self.objects.append(found)
        return found

    def label(self, stem: str) -> str:
        self.labels += 1
        return f"{stem}{self.labels}"

    # --- blocks

    def emit(self, statement: low.Simple) -> None:
        self.simple.append(statement)
        self.places.append(self.place)
        self.calls.append(self.called)

    def assign(self, register: low.Register, value: low.Expression) -> None:
        self.emit(low.Assign(register, value))

    def held(self, value: low.Expression, name: str) -> low.Read:
        type_ = value.type
        if isinstance(type_, Pointer) and type_.space == "generic":
            type_ = Pointer(type_.target, space_of(value))
        register = self.register(name, type_)
        self.assign(register, value)
        return low.Read(type_, register)

    def branch(self) -> int:
        self.branches += 1
        return self.branches - 1

    def flush(self) -> None:
        if self.simple:
            if self.blocks >= self.most_blocks:
                raise SourceError(
                    f"kernel {self.frame.function.name!r} has more than {self.most_blocks} blocks of statements once "
                    "its calls are inlined; call fewer functions from functions",
                    *self.place,
                )
            self.body.append(
                low.Straight(
                    number=self.blocks,
                    statements=tuple(self.simple),
                    place=self.place,
                    places=tuple(dict.fromkeys(self.places)),
                    calls=tuple(dict.fromkeys(self.calls)),
                )
            )
            self.blocks += 1
            self.simple, self.places, self.calls = [], [], []

    def reopen(self) -> None:
        """Goes on with the basic block before, if nothing came between."""
        if self.body and isinstance(last := self.body[-1], low.Straight) and last.number == self.blocks - 1:
            self.body.pop()
            self.simple, self.places = [*last.statements, *self.simple], [*last.places, *self.places]
            self.calls = [*last.calls, *self.calls]
            self.blocks -= 1

    def structured(self, statement: low.If | low.Loop | low.Scope) -> None:
        self.flush()
        self.body.append(statement)

    def loop_name(self, stem: str) -> str:
        """Returns a loop's name, which no other has."""
        times = self.loop_names[stem] = self.loop_names.get(stem, 0) + 1
        return stem if times == 1 else f"{stem}__{times}"

    def loop(
        self,
        stem: str,
        goes_on: Callable[[], low.Expression],
        iteration: Callable[[str], object],
        step: Callable[[], object],
        place: syn.Place,
        is_do: bool = False,
        unroll: int | None = None,
    ) -> None:
        """Emits a loop.

        Args:
            stem: of its name.
            goes_on: emits what its condition needs, and returns that.
            iteration: emits an iteration; it gets the label that leaves the loop.
            step: emits what comes between two iterations.
        """
        number, label, condition = self.branch(), self.label("loop"), self.register("_go", BOOL)
        name = self.loop_name(stem)

        def tested() -> tuple[low.Statement, ...]:
            return self.nested(lambda: self.assign(condition, goes_on()))

        test = () if is_do else tested()
        body, stepped = self.nested(lambda: iteration(label)), self.nested(step)
        test = tested() if is_do else test
        self.structured(
            low.Loop(
                number=number,
                label=label,
                test=test,
                condition=condition,
                body=body,
                step=stepped,
                is_do=is_do,
                name=name,
                unroll=unroll,
                place=place,
            )
        )

    def leave(self, label: str) -> None:
        self.flush()
        self.left.add(label)
        self.body.append(low.Leave(label))

    @property
    def is_dead(self) -> bool:
        """Returns whether control never comes here: after a jump."""
        return bool(self.body) and isinstance(self.body[-1], low.Leave) and not self.simple

    def choice(self, statement: low.If) -> None:
        """Emits what a condition chooses, if there is anything to do."""
        if statement.then or statement.otherwise:
            self.structured(statement)

    def nested(self, fill: Callable[[], object]) -> tuple[low.Statement, ...]:
        """Returns what a function emits, as a list of its own."""
        self.flush()
        outer, self.body = self.body, []
        fill()
        self.flush()
        inner, self.body = self.body, outer
        return tuple(inner)

    def scoped(self, label: str, fill: Callable[[], object]) -> tuple[low.Statement, ...]:
        """Returns what a function emits, in a scope that can be left if anything leaves it before its end."""
        body = self.nested(fill)
        if body and isinstance(body[-1], low.Leave) and body[-1].label == label:
            body = body[:-1]
            if not any(isinstance(inner, low.Leave) and inner.label == label for inner in walks.statements(body)):
                return body
        elif label not in self.left:
            return body
        return (low.Scope(label, body),)
