"""Puts the functions that a kernel calls into it, so that a kernel is one body with registers of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from perfmodel.basics.errors import SourceError, nearest
from perfmodel.ptx.asynchronous import Copies
from perfmodel.ptx.names import own_name
from perfmodel.ptx.syntax import (
    Address,
    Both,
    Function,
    Guard,
    Instruction,
    Label,
    Module,
    Negated,
    Operand,
    Register,
    Symbol,
    Variable,
    Vector,
)
from perfmodel.ptx.types import Type

MOST_INSTRUCTIONS = 500_000
DEEPEST_CALL = 64
_PRINTING = frozenset(("vprintf",))
_ALLOCATING = re.compile(r"malloc$|calloc$|realloc$|free$|_Zn[wa]|_Zd[la]")
_FAILING = frozenset(("__assertfail", "__assert_fail"))


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel with all that it calls in its body.

    Attributes:
        variables: by name: the module's, its own, and the parameters of calls (of space ``stack``).
        targets: labels that a ``brx`` chooses from.
        is_of_tiles: as the module's.
    """

    name: str
    parameters: tuple[Variable, ...]
    registers: Mapping[str, Type]
    variables: Mapping[str, Variable]
    body: tuple[Instruction | Label, ...]
    targets: Mapping[str, tuple[str, ...]]
    is_of_tiles: bool = False


def kernel_of(module: Module, entry: str) -> Kernel:
    """Returns a module's kernel of this name.

    Raises:
        SourceError: where there is none, or it calls what has no body, or itself.
    """
    function = module.functions.get(entry)
    if function is None or not function.is_entry:
        known = module.entries
        raise SourceError(
            f"the PTX text has no kernel {entry!r}{nearest(entry, known)} (it has {', '.join(known) or 'none'})"
        )
    inliner = _Inliner(module)
    inliner.inline(function, {}, "", 0)
    return Kernel(
        name=entry,
        parameters=function.parameters,
        registers={**inliner.registers, **inliner.copies.registers},
        variables={**module.variables, **inliner.variables},
        body=tuple(inliner.body),
        targets=inliner.targets,
        is_of_tiles=module.is_of_tiles,
    )


def _without_body(name: str) -> str:
    """Returns what is wrong with a call of a function that has no body."""
    called = own_name(name)
    if _ALLOCATING.match(name):
        return f"memory that threads allocate ({called!r}) is not emulated; give the kernel an array"
    if name.startswith("cuda"):
        return f"{called!r} is called by threads, which is not emulated; leave it to the host"
    return (
        f"function {called!r} has no body in the text; give one that has it, as by an #include of the file that "
        "defines it"
    )


class _Inliner:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.registers: dict[str, Type] = {}
        self.variables: dict[str, Variable] = {}
        self.targets: dict[str, tuple[str, ...]] = {}
        self.body: list[Instruction | Label] = []
        self.calls = 0
        self.copies = Copies()

    def inline(self, function: Function, symbols: Mapping[str, str], suffix: str, depth: int) -> None:
        """Puts a function's body here.

        Args:
            symbols: what its parameters and results are called where it is called.
            suffix: makes its own names different from those of other calls.
        """
        if depth > DEEPEST_CALL:
            raise SourceError(
                f"function {own_name(function.name)!r} calls itself, in PTX; write it as a loop", "", 0, 1
            )
        own = {variable.name for variable in function.variables}
        names = {**{name: name + suffix for name in own}, **symbols}
        renaming = _Renaming(suffix, names)
        self.registers |= {name + suffix: type_ for name, type_ in function.registers.items()}
        for variable in function.variables:
            name = variable.name + suffix
            space = "stack" if variable.space == "param" else variable.space
            before = self.variables.get(name)
            n_bytes = max(variable.n_bytes, before.n_bytes if before else 0)
            self.variables[name] = replace(variable, name=name, space=space, n_bytes=n_bytes)
        for name, targets in function.targets.items():
            self.targets[name + suffix] = tuple(label + suffix for label in targets)
        end = f"$end{suffix}"
        for statement in function.body:
            if isinstance(statement, Label):
                self.body.append(Label(statement.name + suffix))
                continue
            renamed = renaming.instruction(statement)
            if statement.opcode == "call":
                self.call(statement, renaming, depth)
            elif statement.opcode == "cp":
                self.body += self.copies.lowered(renamed, self.registers)
            elif statement.opcode == "ret" and suffix:
                self.body.append(replace(renamed, opcode="bra", modifiers=(), operands=(Symbol(end),)))
            else:
                self.body.append(renamed)
            if len(self.body) > MOST_INSTRUCTIONS:
                raise SourceError(
                    f"the kernel has more than {MOST_INSTRUCTIONS} instructions with those that it calls; give one "
                    "that calls fewer functions, or calls them in loops"
                )
        if suffix:
            self.body.append(Label(end))

    def call(self, call: Instruction, renaming: _Renaming, depth: int) -> None:
        operands = list(call.operands)
        results = _vector(operands)
        target = operands.pop(0) if operands else None
        given = _vector(operands)
        if not isinstance(target, Symbol):
            raise SourceError(
                "a call of a function that is not known before it runs is not supported", "", call.line, 1
            )
        guard = renaming.guard(call.guard)
        after = f"$after{self.calls}"
        self.calls += 1
        if guard is not None:
            otherwise = Guard(guard.register, not guard.is_negated)
            self.body.append(Instruction("bra", operands=(Symbol(after),), line=call.line, guard=otherwise))
        function = self.module.functions.get(target.name)
        if target.name in _FAILING:
            self.body.append(Instruction("trap", line=call.line, source=call.source))
        elif target.name not in _PRINTING:
            if function is None or not function.body:
                raise SourceError(_without_body(target.name), "", call.line, 1)
            names = {
                variable.name: renaming.symbols.get(symbol.name, symbol.name)
                for variables, symbols in ((function.results, results), (function.parameters, given))
                for variable, symbol in zip(variables, (s for s in symbols.items), strict=False)
                if isinstance(symbol, Symbol)
            }
            if len(names) != len(results.items) + len(given.items):
                raise SourceError(
                    f"the call of {target.name!r} doesn't pass its parameters in memory", "", call.line, 1
                )
            self.inline(function, names, f"@{self.calls}", depth + 1)
        if guard is not None:
            self.body.append(Label(after))


def _vector(operands: list[Operand]) -> Vector:
    """Takes a vector from the front of operands; an empty one where none stands there."""
    if operands and isinstance(operands[0], Vector):
        found = operands.pop(0)
        assert isinstance(found, Vector)
        return found
    return Vector(())


@dataclass(frozen=True)
class _Renaming:
    suffix: str
    symbols: Mapping[str, str]

    def instruction(self, found: Instruction) -> Instruction:
        if not self.suffix and not self.symbols:
            return found
        if found.opcode in ("bra", "brx", "call"):
            operands = tuple(
                Symbol(each.name + self.suffix) if isinstance(each, Symbol) else self.operand(each)
                for each in found.operands
            )
        else:
            operands = tuple(map(self.operand, found.operands))
        return replace(found, operands=operands, guard=self.guard(found.guard))

    def guard(self, guard: Guard | None) -> Guard | None:
        return None if guard is None else replace(guard, register=self.register(guard.register))

    def register(self, register: Register) -> Register:
        return Register(register.name + self.suffix)

    def operand(self, operand: Operand) -> Operand:
        match operand:
            case Register():
                return self.register(operand)
            case Symbol():
                return replace(operand, name=self.symbols.get(operand.name, operand.name))
            case Address(base=base):
                coordinates = tuple(map(self.operand, operand.coordinates))
                if isinstance(base, Register):
                    return replace(operand, base=self.register(base), coordinates=coordinates)
                if isinstance(base, Symbol):
                    own = Symbol(self.symbols.get(base.name, base.name), base.offset)
                    return replace(operand, base=own, coordinates=coordinates)
            case Vector():
                return Vector(tuple(map(self.operand, operand.items)))
            case Negated():
                return Negated(self.register(operand.operand))
            case Both():
                return Both(self.operand(operand.first), self.operand(operand.second))
        return operand
