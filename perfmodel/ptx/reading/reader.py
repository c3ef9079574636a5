"""Reads the text of a PTX module: its variables, kernels and functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from perfmodel.basics.errors import SourceError
from perfmodel.ptx.reading.cursor import Cursor
from perfmodel.ptx.reading.declarations import SPACES, read_registers, read_variable
from perfmodel.ptx.reading.instructions import read_instruction
from perfmodel.ptx.syntax import Function, Instruction, Label, Module, Operand, Source, Symbol, Variable
from perfmodel.ptx.types import Type

_LINKING = (".visible", ".extern", ".weak", ".common")
_LIMITS = (
    *(".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".reqnctapercluster", ".maxclusterrank"),
    *(".explicitcluster", ".noreturn", ".unique", ".blocksareclusters"),
)


@lru_cache(maxsize=64)
def read(text: str) -> Module:
    """Reads PTX text.

    Raises:
        SourceError: for what is no PTX, or not supported, with its line.
    """
    try:
        return _Reader(text).module()
    except (ValueError, OverflowError, RecursionError) as error:
        raise SourceError(f"the PTX text cannot be read ({error}); give it as its compiler wrote it") from error


class _Reader:
    def __init__(self, text: str) -> None:
        self.cursor = Cursor(text)
        self.variables: dict[str, Variable] = {}
        self.functions: dict[str, Function] = {}
        self.version = self.target = ""
        self.is_of_python = self.has_fixed_blocks = False

    def module(self) -> Module:
        cursor = self.cursor
        while cursor.now.kind != "end":
            match cursor.now.text:
                case ".version":
                    cursor.next()
                    self.version = cursor.next().text
                case ".target":
                    cursor.next()
                    self.target = cursor.word("a target")
                    while cursor.takes(","):
                        cursor.word("a target")
                case ".address_size":
                    cursor.next()
                    if cursor.whole("an address size") != 64:
                        cursor.fail("addresses have not 64 bits; compile for 64")
                case ".file":
                    self._file()
                case ".section":
                    cursor.next()
                    cursor.word("a section")
                    cursor.skip_braces()
                case ".pragma":
                    cursor.skip_statement()
                case ";":
                    cursor.next()
                case _:
                    self._defined()
        if not self.version:
            raise SourceError("the text has no .version; give PTX as its compiler wrote it")
        is_of_tiles = self.is_of_python and self.has_fixed_blocks
        return Module(
            version=self.version,
            target=self.target,
            variables=self.variables,
            functions=self.functions,
            is_of_tiles=is_of_tiles,
        )

    def _file(self) -> None:
        cursor = self.cursor
        cursor.next()
        cursor.whole("a file's number")
        self.is_of_python |= cursor.next().text.strip('"').endswith(".py")
        while cursor.takes(","):
            cursor.next()

    def _defined(self) -> None:
        cursor = self.cursor
        is_extern = False
        while cursor.now.text in _LINKING:
            is_extern |= cursor.next().text == ".extern"
        word = cursor.word("a declaration")
        if word in SPACES:
            self._keep(read_variable(cursor, word))
            while cursor.takes(","):
                cursor.fail("several variables in one declaration are not understood")
            cursor.expects(";")
        elif word in (".entry", ".func"):
            self._function(word == ".entry", is_extern)
        else:
            cursor.fail(f"{word!r} is not understood")

    def _keep(self, variable: Variable) -> None:
        self.variables[variable.name] = variable

    def _function(self, is_entry: bool, is_extern: bool) -> None:
        cursor = self.cursor
        results = self._parameters("result") if cursor.sees("(") else ()
        name = cursor.word("a function's name")
        parameters = self._parameters(name) if cursor.sees("(") else ()
        while cursor.now.text in _LIMITS or cursor.now.text == ".pragma":
            limit = cursor.next().text
            if limit == ".pragma":
                cursor.skip_statement()
                continue
            self.has_fixed_blocks |= limit == ".reqntid"
            while cursor.now.kind == "number" or cursor.sees(","):
                cursor.next()
        if cursor.takes(";"):  # the function is only declared
            if is_extern or name not in self.functions:
                self.functions.setdefault(name, Function(name, is_entry, results, parameters))
            return
        body = _Body(cursor)
        body.read()
        self.functions[name] = Function(
            name=name,
            is_entry=is_entry,
            results=results,
            parameters=parameters,
            registers=body.registers,
            variables=tuple(body.variables),
            body=tuple(body.statements),
            targets=body.targets,
        )

    def _parameters(self, function: str) -> tuple[Variable, ...]:
        cursor = self.cursor
        cursor.expects("(")
        found: list[Variable] = []
        while not cursor.takes(")"):
            cursor.expects(".param") if not cursor.sees(".reg") else cursor.fail(
                f"function {function!r} has registers for parameters"
            )
            found.append(read_variable(cursor, ".param", f"{function}_{len(found)}"))
            cursor.takes(",")
        return tuple(found)


class _Body:
    """Reads what stands between a function's braces."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.registers: dict[str, Type] = {}
        self.names: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.statements: list[Instruction | Label] = []
        self.targets: dict[str, tuple[str, ...]] = {}
        self.source: Source | None = None
        self.scopes = 0

    def read(self) -> None:
        cursor = self.cursor
        cursor.expects("{")
        depth = 1
        starts: list[int] = []
        outside: list[dict[str, str]] = []
        while depth:
            token = cursor.now
            if token.kind == "end":
                cursor.fail("the text ends within a function")
            elif cursor.takes("{"):
                depth += 1
                starts.append(len(self.statements))
                outside.append(dict(self.names))
            elif cursor.takes("}"):
                depth -= 1
                if starts:
                    self._close(starts.pop())
                    self.names = outside.pop()
            elif token.text.startswith("."):
                self._directive(cursor.next().text)
            elif cursor.takes(";"):
                continue
            else:
                self._statement()

    def _close(self, start: int) -> None:
        """Gives labels that are known in braces only, and branches to them, names of their own."""
        own = {each.name for each in self.statements[start:] if isinstance(each, Label)}
        if not own:
            return
        self.scopes += 1

        def renamed(operand: Operand) -> Operand:
            is_own = isinstance(operand, Symbol) and operand.name in own
            return Symbol(f"{operand.name}%{self.scopes}") if is_own and isinstance(operand, Symbol) else operand

        for place in range(start, len(self.statements)):
            each = self.statements[place]
            if isinstance(each, Label):
                self.statements[place] = Label(f"{each.name}%{self.scopes}")
            elif each.opcode in ("bra", "brx"):
                self.statements[place] = replace(each, operands=tuple(map(renamed, each.operands)))

    def _directive(self, word: str) -> None:
        cursor = self.cursor
        if word == ".reg" or word.startswith(".reg."):  # as headers write it in one word: .reg.b32
            self._registers(read_registers(cursor, word.removeprefix(".reg")))
        elif word in SPACES:
            self.variables.append(read_variable(cursor, word))
            cursor.expects(";")
        elif word == ".loc":
            self._location()
        elif word == ".pragma":
            cursor.skip_statement()
        else:
            cursor.fail(f"{word!r} is not understood")

    def _registers(self, declared: Mapping[str, Type]) -> None:
        """Keeps registers that are declared; those that other braces have by the same name get names of their own."""
        for name, type_ in declared.items():
            own = f"{name}%{len(self.registers)}" if name in self.registers else name
            self.registers[own] = type_
            self.names[name] = own

    def _location(self) -> None:
        cursor = self.cursor
        place = (cursor.whole("a file"), cursor.whole("a line"), cursor.whole("a column"))
        calls: list[tuple[int, int, int]] = []
        while cursor.takes(","):
            cursor.expects("function_name")
            cursor.word("a name")
            if cursor.takes("+"):
                cursor.whole("an offset")
            cursor.expects(",")
            cursor.expects("inlined_at")
            calls.append((cursor.whole("a file"), cursor.whole("a line"), cursor.whole("a column")))
        before = (*calls, *(self.source.calls if calls and self.source else ()))
        self.source = Source(*place, before[:4])

    def _statement(self) -> None:
        cursor = self.cursor
        token = cursor.now
        if token.kind == "word" and not cursor.sees("@"):
            cursor.next()
            if cursor.takes(":"):
                if cursor.now.text in (".branchtargets", ".calltargets", ".callprototype"):
                    self._targets(token.text)
                else:
                    self.statements.append(Label(token.text))
                return
            cursor.back()
        self.statements.append(read_instruction(cursor, self.names, self.source))

    def _targets(self, name: str) -> None:
        cursor = self.cursor
        if cursor.next().text != ".branchtargets":
            cursor.skip_statement()
            return
        found = [cursor.word("a label")]
        while cursor.takes(","):
            found.append(cursor.word("a label"))
        cursor.expects(";")
        self.targets[name] = tuple(found)
