"""Building lowered kernels by hand."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.syntax import Place
from perfmodel.opencl_c.types import BOOL, INT, ULONG, Pointer, Scalar, Type, Vector

HERE = Place("built.cl", 1, 1)


class Builder:
    """Makes statements and numbers them."""

    def __init__(self) -> None:
        self.parameters: list[low.Parameter] = []
        self.registers: list[low.Register] = []
        self.objects: list[low.MemoryObject] = []
        self.accesses: list[low.Access] = []
        self.branches = self.blocks = self.barriers = 0

    def register(self, name: str, type_: Type = INT) -> low.Register:
        self.registers.append(low.Register(name, type_))
        return self.registers[-1]

    def parameter(self, name: str, type_: Type) -> low.Register:
        self.parameters.append(low.Parameter(name, type_))
        self.registers.append(low.Register(name, type_, len(self.parameters) - 1))
        return self.registers[-1]

    def array(self, name: str, element: Type = INT) -> low.Register:
        return self.parameter(name, Pointer(element, "global"))

    def at(self, pointer: low.Register, index: low.Expression) -> low.Expression:
        assert isinstance(pointer.type, Pointer)
        return low.Offset(pointer.type, read(pointer), index, pointer.type.target.size)

    def access(self, direction: str, pointer: low.Register, type_: Type) -> low.Access:
        text = f"{pointer.name}[...]"
        made = low.Access(
            number=len(self.accesses),
            direction=direction,
            space="global",
            type=type_,
            variable=pointer.name,
            alignment=type_.alignment,
            text=text,
            place=HERE,
        )
        self.accesses.append(made)
        return made

    def load(self, pointer: low.Register, index: low.Expression) -> low.Expression:
        assert isinstance(pointer.type, Pointer)
        target = pointer.type.target
        return low.Load(target, self.at(pointer, index), self.access("load", pointer, target))

    def store(self, pointer: low.Register, index: low.Expression, value: low.Expression) -> low.Store:
        return low.Store(self.at(pointer, index), value, self.access("store", pointer, value.type))

    def straight(self, *statements: low.Assign | low.Store | low.Atomic | low.Barrier) -> low.Straight:
        self.blocks += 1
        return low.Straight(self.blocks - 1, statements, HERE)

    def if_(
        self, condition: low.Register, then: Sequence[low.Statement], otherwise: Sequence[low.Statement] = ()
    ) -> low.If:
        self.branches += 1
        return low.If(
            number=self.branches - 1, condition=condition, then=tuple(then), otherwise=tuple(otherwise), place=HERE
        )

    def loop(
        self,
        label: str,
        condition: tuple[low.Register, low.Expression],
        body: Sequence[low.Statement],
        step: Sequence[low.Statement] = (),
        is_do: bool = False,
    ) -> low.Loop:
        self.branches += 1
        test = (self.straight(low.Assign(*condition)),)
        return low.Loop(
            number=self.branches - 1,
            label=label,
            test=test,
            condition=condition[0],
            body=tuple(body),
            step=tuple(step),
            is_do=is_do,
            name=label,
            unroll=None,
            place=HERE,
        )

    def kernel(self, *body: low.Statement) -> low.LoweredKernel:
        return low.LoweredKernel(
            name="built",
            parameters=tuple(self.parameters),
            body=body,
            registers=tuple(self.registers),
            objects=tuple(self.objects),
            private_bytes=0,
            local_bytes=0,
            constant_bytes=0,
            accesses=tuple(self.accesses),
            branches=self.branches,
            blocks=self.blocks,
            barriers=self.barriers,
        )


def read(register: low.Register) -> low.Read:
    return low.Read(register.type, register)


def number(value: int | float, type_: Type = INT) -> low.Constant:
    return low.Constant(type_, value)


def binary(left: low.Expression, operator: str, right: low.Expression | int) -> low.Binary:
    other = number(right, left.type) if isinstance(right, int) else right
    is_comparison = operator in ("<", "<=", ">", ">=", "==", "!=")
    return low.Binary(BOOL if is_comparison else left.type, operator, left, other)


def item(function: str = "get_global_id", axis: int = 0, type_: Scalar | Vector = INT) -> low.Expression:
    return low.Convert(type_, low.WorkItem(ULONG, function, number(axis)))
