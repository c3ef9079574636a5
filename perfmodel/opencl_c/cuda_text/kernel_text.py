"""Statements of a lowered kernel become CUDA C++."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfmodel.basics.errors import SourceError
from perfmodel.basics.image_sampling import Pixels
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.cuda_text.functions import FUNCTIONS
from perfmodel.opencl_c.cuda_text.images import Images
from perfmodel.opencl_c.cuda_text.numbers_read import numbers_read
from perfmodel.opencl_c.cuda_text.types import NAMES, literal, name_of, number_at, pieces
from perfmodel.opencl_c.cuda_text.values import Numbers, Values
from perfmodel.opencl_c.operations import KernelOperations
from perfmodel.opencl_c.origins import Origins
from perfmodel.opencl_c.static.constant_tables import bytes_of
from perfmodel.opencl_c.static.unrolling import STAYS, Unrolling
from perfmodel.opencl_c.syntax import Place
from perfmodel.opencl_c.types import (
    BOOL,
    CHAR,
    HALF,
    Image,
    Pointer,
    Sampler,
    Scalar,
    Type,
    Vector,
    element_of,
    numbers_within,
    width_of,
)
from perfmodel.opencl_c.visitor import Dispatch

_PLACE = re.compile(r"(\.loc\s+1|inlined_at 1) (\d+) (\d+)")
_NOT_COPIED = '.pragma "nounroll";'
"""Keeps the assembler, too, from copying a loop."""


@dataclass(frozen=True)
class CudaText:
    """Holds a kernel as CUDA C++.

    Attributes:
        name: of the kernel there.
        lines: of the kernel's source, by those of the text.
        parameters: positions of the kernel's parameters that it has there, too; those in local memory are variables.
        is_left: whether the compiler is to leave loops as they are which the assembler may copy.
        samplers: the sampler by which each image is read first: its flags, or the name of a parameter.
    """

    text: str
    name: str
    parameters: tuple[int, ...]
    lines: Mapping[int, int]
    is_left: bool
    samplers: Mapping[str, int | str]

    def with_places(self, ptx: str) -> str:
        """Returns PTX of the text with lines of the kernel's source; a column is then the line of the text."""
        return _PLACE.sub(self._place, ptx.replace(_NOT_COPIED, "") if self.is_left else ptx)

    def _place(self, found: re.Match[str]) -> str:
        line = int(found[2])
        return f"{found[1]} {self.lines[line]} {line}" if line in self.lines else found[0]


def cuda_text(
    kernel: low.LoweredKernel, n_bytes: Mapping[str, int], images: Mapping[str, Pixels], axes: int, is_relaxed: bool
) -> CudaText:
    """Prints a kernel as CUDA C++.

    Args:
        n_bytes: how large what a parameter points to in local memory is, by its name.
        images: the forms of those that are parameters, by name.
        axes: of the launch.
        is_relaxed: whether it is built with ``-cl-fast-relaxed-math``.

    Raises:
        SourceError: for what has no form in it: functions of sub-groups and work-groups.
    """
    return _Printer(kernel, n_bytes, images, axes, is_relaxed).printed()


class _Printer:
    def __init__(
        self,
        kernel: low.LoweredKernel,
        n_bytes: Mapping[str, int],
        images: Mapping[str, Pixels],
        axes: int,
        is_relaxed: bool,
    ) -> None:
        self.kernel, self.n_bytes = kernel, n_bytes
        self.lines: list[str] = []
        self.depth = 1
        self.registers = {
            register: [
                f"r{number}" if width_of(register.type) == 1 else f"r{number}_{place}"
                for place in range(width_of(register.type))
            ]
            for number, register in enumerate(kernel.registers)
        }
        self.objects = {each: f"o{number}" for number, each in enumerate(kernel.objects)}
        self.labels: dict[str, str] = {}
        operations = KernelOperations(kernel)
        self.unrolling = Unrolling(operations, Origins(kernel.body), ())
        self.is_left = False
        self.line = 0
        self.sources: list[int] = []
        of_images = Images(kernel, images, self.emit)
        constants = {
            register: value
            for register, (value, *others) in operations.assigned.items()
            if register.parameter is None
            and not others
            and isinstance(value, low.Constant)
            and value.type == register.type
        }
        self.asked = numbers_read(kernel)
        self.values = Values(self.emit, self.registers, self.objects, constants, of_images, axes, is_relaxed)

    def emit(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)
        self.sources.append(self.line)

    def printed(self) -> CudaText:
        self.declared()
        self.body(self.kernel.body)
        before: list[str] = []
        inside: list[str] = []
        given: list[str] = []
        positions: list[int] = []
        for position, parameter in enumerate(self.kernel.parameters):
            name, type_ = f"p{position}", parameter.type
            if isinstance(type_, Sampler):
                continue
            if isinstance(type_, Pointer) and type_.space == "local":
                size, alignment = max(self.n_bytes[parameter.name], 1), type_.target.alignment
                inside.append(f"  __shared__ __align__({alignment}) char {name}[{size}];")
                continue
            positions.append(position)
            if isinstance(type_, Pointer):
                given.append(f"char *{'__restrict__ ' if parameter.is_restrict else ''}{name}")
            elif isinstance(type_, Image):
                given.append(f"{name_of(type_)} {name}")
            elif isinstance(type_, Scalar):
                given.append(f"{NAMES[type_.dtype]} {name}")
            else:
                size = min(_sizes_within(type_), default=1)
                numbers = f"cl_unsigned<{size}>::type numbers[{type_.size // size}]"
                before.append(f"struct s{position} {{ __align__({type_.alignment}) {numbers}; }};")
                given.append(f"const s{position} {name}")
        before += [self.constant(each) for each in self.kernel.objects if each.is_of_program]
        group = self.kernel.work_group
        bounds = f" __launch_bounds__({math.prod(group)})" if group else ""
        head = f'extern "C" __global__ void{bounds} printed({", ".join(given)}) {{'
        top = "\n".join([FUNCTIONS, *before, head, *inside])
        text = "\n".join([top, *self.lines, "}"]) + "\n"
        lines = dict(enumerate(self.sources, start=top.count("\n") + 2))
        is_asked = any(loop.unroll == STAYS for loop in walks.loops(self.kernel.body))
        return CudaText(
            text=text,
            name="printed",
            parameters=tuple(positions),
            lines=lines,
            is_left=self.is_left and not is_asked,
            samplers=self.values.images.samplers,
        )

    # --- declarations

    def declared(self) -> None:
        for each in self.kernel.objects:
            if each.is_of_program:
                continue
            word = "__shared__ " if each.space == "local" else ""
            element, count = self.room(each)
            name = f"{NAMES[element.dtype]} {self.objects[each]}[{count}]"
            self.emit(f"{word}__align__({each.type.alignment}) {name};")
            if each.parameter is not None:
                self.emit(f"memcpy({self.objects[each]}, p{each.parameter}.numbers, {each.type.size});")
        for register, names in self.registers.items():
            starts = self.starts(register, names)
            for name, start in zip(names, starts, strict=True):
                self.emit(f"{name_of(register.type)} {name}{start};")

    def room(self, each: low.MemoryObject) -> tuple[Scalar, int]:
        """Returns the type and number of what an object in memory consists of: bytes where types differ."""
        leaves = {type_ for _, _, type_ in numbers_within(each.type)}
        elements = {element_of(leaf) if isinstance(leaf, Scalar | Vector) else CHAR for leaf in leaves}
        element = elements.pop() if len(elements) == 1 else CHAR
        element = CHAR if element in (HALF, BOOL) else element
        return element, max(each.type.size // element.size, 1)

    def starts(self, register: low.Register, names: Numbers) -> list[str]:
        """Returns what a register's numbers are set to at first."""
        if register.parameter is None:
            return [""] * len(names)
        parameter = f"p{register.parameter}"
        type_ = self.kernel.parameters[register.parameter].type
        is_restrict = self.kernel.parameters[register.parameter].is_restrict
        if isinstance(type_, Sampler):
            return [""]
        if isinstance(type_, Image):
            return [f" = ({name_of(register.type)}){parameter}"]
        if isinstance(type_, Pointer) and type_.space != "local" and not is_restrict:  # which would be lost
            return [f" = (char *)__builtin_assume_aligned({parameter}, {type_.target.alignment})"]
        if isinstance(type_, Pointer | Scalar):
            return [f" = {parameter}"]
        element = element_of(register.type) if isinstance(register.type, Scalar | Vector) else register.type
        name, first = name_of(register.type), register.offset or 0
        held = f"(char *){parameter}.numbers"
        return [f" = *({name} *)({held} + {first + place * element.size})" for place in range(len(names))]

    def constant(self, each: low.MemoryObject) -> str:
        """Returns the declaration of a variable of the program, with its contents.

        NVIDIA's assembler loads from constant memory as from global memory where a kernel of the source takes a pointer
        to it, which may lead to any of its variables.
        """
        held = bytes_of(each)
        if held is None:
            raise SourceError("addresses in variables of the program have no form in CUDA C++ here")
        element, count = self.room(each)
        numbers = np.frombuffer(held.ljust(element.size * count, b"\0"), element.numpy, count)
        contents = ", ".join(literal(element, number) for number in numbers.tolist())
        name = f"{NAMES[element.dtype]} {self.objects[each]}[{count}]"
        is_apart = each.space == "constant" and not self.kernel.takes_constants
        words = ("__constant__" if is_apart else "__device__", "const " if each.space == "constant" else "")
        return f"{words[0]} __align__({each.type.alignment}) {words[1]}{name} = {{{contents}}};"

    # --- statements

    def body(self, statements: Iterable[low.Statement]) -> None:
        self.depth += 1
        for statement in statements:
            self.statement(statement)
        self.depth -= 1

    def braced(self, statements: Iterable[low.Statement], head: str = "") -> None:
        self.emit(f"{head}{{")
        self.body(statements)
        self.emit("}")

    statement = Dispatch[[], None](low.Statement)

    def at(self, place: Place) -> None:
        """Notes from which line of the source what follows is."""
        self.line = place.line

    @statement.on(low.Straight)
    def straight(self, block: low.Straight) -> None:
        self.emit("{")
        self.depth += 1
        self.at(block.place)
        for each in block.statements:
            self.simple(each)
        self.values.forget()
        self.depth -= 1
        self.emit("}")

    @statement.on(low.If)
    def branch(self, statement: low.If) -> None:
        (condition,) = self.registers[statement.condition]
        around, self.values.is_conditional = self.values.is_conditional, True
        self.braced(statement.then, f"if ({condition}) ")
        if statement.otherwise:
            self.braced(statement.otherwise, "else ")
        self.values.is_conditional = around

    @statement.on(low.Scope)
    def scope(self, statement: low.Scope) -> None:
        label = self.new_label(statement.label)
        self.braced(statement.body)
        if statement.label in walks.labels_left(statement.body):
            self.emit(f"{label}: ;")

    @statement.on(low.Loop)
    def loop(self, loop: low.Loop) -> None:
        label = self.new_label(loop.label)
        self.at(loop.place)
        if self.unrolling.stays(loop):
            self.is_left = True
            self.emit("#pragma unroll 1")
        elif loop.unroll is not None:
            self.emit(f"#pragma unroll {loop.unroll or ''}".rstrip())
        around, self.values.is_conditional = self.values.is_conditional, False
        if loop.is_do:
            (condition,) = self.registers[loop.condition]
            self.emit("do {")
            self.body((*loop.body, *loop.step, *loop.test))
            self.emit(f"}} while ({condition});")
        else:
            self.emit("for (;;) {")
            self.depth += 1
            self.test(loop.test, loop.condition)
            self.depth -= 1
            self.body((*loop.body, *loop.step))
            self.emit("}")
        self.values.is_conditional = around
        if loop.label in walks.labels_left((*loop.test, *loop.body, *loop.step)):
            self.emit(f"{label}: ;")

    def test(self, statements: Sequence[low.Statement], condition: low.Register) -> None:
        """Prints what ends a loop unless it holds: each part of a conjunction does so by itself, as only then compilers
        see how often a loop goes round at most."""
        first, decision, rest = _conjunction(statements, condition)
        for statement in first:
            self.statement(statement)
        if decision is not None:
            self.emit(f"if (!{self.registers[decision.condition][0]}) break;")
            self.test((*decision.then, *rest), condition)
        else:
            self.emit(f"if (!{self.registers[condition][0]}) break;")

    def new_label(self, label: str) -> str:
        self.labels[label] = f"l{len(self.labels)}"
        return self.labels[label]

    @statement.on(low.Leave)
    def leave(self, statement: low.Leave) -> None:
        self.emit(f"goto {self.labels[statement.label]};")

    simple = Dispatch[[], None](low.Simple)

    @simple.on(low.Assign)
    def assign(self, statement: low.Assign) -> None:
        names, value = self.registers[statement.register], statement.value
        if statement.components is None:
            numbers = self.values.asked_for(value, self.asked.get(statement.register, frozenset()))
        else:
            numbers = self.values.of(value)
        places = list(statement.components if statement.components is not None else range(len(names)))
        if len(names) > 1 and set(names) & set(numbers):  # which are set one after the other
            numbers = self.values.each(statement.value.type, numbers)
        for place, number in zip(places, numbers, strict=True):
            self.emit(f"{names[place]} = {number};")
        self.values.forget(names)

    @simple.on(low.Store)
    def store(self, statement: low.Store) -> None:
        pointer, numbers = self.values.one(statement.pointer), self.values.of(statement.value)
        is_half = isinstance(statement.access.type, Vector) and element_of(statement.access.type) == HALF
        for place, type_, width in pieces(statement.access, is_stored=True):
            at = self.values.place_of(pointer, statement.access, place)
            own = numbers[place : place + width]
            if width == 1:
                self.emit(f"{number_at(statement.access, type_, at)} = {own[0]};")
                continue
            held = [f"__half_as_ushort({each})" for each in own] if is_half else own
            self.emit(f"*({type_} *)({at}) = make_{type_}({', '.join(held)});")

    @simple.on(low.Atomic)
    def atomic(self, statement: low.Atomic) -> None:
        name = name_of(statement.access.type)
        pointer = self.values.one(statement.pointer)
        given = "".join(f", {self.values.one(each)}" for each in statement.operands)
        call = f"cl_atomic_{statement.operation}(({name} *)({pointer}){given})"
        if statement.result is None:
            self.emit(f"{call};")
        else:
            (result,) = self.registers[statement.result]
            self.emit(f"{result} = {call};")

    @simple.on(low.Barrier)
    def barrier(self, statement: low.Barrier) -> None:
        self.emit("__syncthreads();" if statement.is_of_group else "__syncwarp();")

    @simple.on(low.Collective)
    def collective(self, statement: low.Collective) -> None:
        raise SourceError(f"{statement.operation} of work-items together has no form in CUDA C++ here")

    @simple.on(low.WriteImage)
    def write_image(self, statement: low.WriteImage) -> None:
        self.values.images.write(statement, self.values.of(statement.coordinates), self.values.of(statement.value))


def _sizes_within(type_: Type) -> set[int]:
    """Returns the sizes of the numbers and pointers of a struct, in bytes."""
    leaves = (leaf for _, _, leaf in numbers_within(type_))
    return {element_of(leaf).size if isinstance(leaf, Scalar | Vector) else leaf.size for leaf in leaves}


def _conjunction(
    statements: Sequence[low.Statement], condition: low.Register
) -> tuple[Sequence[low.Statement], low.If | None, Sequence[low.Statement]]:
    """Returns what comes before the second part of a conjunction that ends in a condition, the decision whether that is
    asked for, and what comes behind; all and None where there is none."""
    rest = statements[-1:]
    match rest:
        case (low.Straight(statements=(low.Assign(value=low.Read(register=asked), components=None) as last,)),):
            before = statements[:-1] if last.register is condition else statements
        case _:
            asked, before, rest = condition, statements, ()
    match before[-1:]:
        case (low.If(is_choice=True, otherwise=()) as decision,) if decision.condition is asked:
            return before[:-1], decision, rest
    return statements, None, ()
