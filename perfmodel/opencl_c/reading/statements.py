"""Statements of clang's tree become those of `perfmodel.opencl_c.syntax`."""

from __future__ import annotations

import re
from collections.abc import Callable

from perfmodel.opencl_c import syntax as sx
from perfmodel.opencl_c import types as ts
from perfmodel.opencl_c.reading import clang_tree as ct
from perfmodel.opencl_c.reading.clang_tree import Item
from perfmodel.opencl_c.reading.constant_folding import fold
from perfmodel.opencl_c.reading.expressions import Expressions
from perfmodel.opencl_c.reading.reading_context import ReadingContext

LARGEST = 1 << 24
"""No variable may take more bytes; work-items have some kilobytes of memory of their own."""

_HEADER = re.compile(r"""[();]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")


class Statements:
    """Reads statements; `unrolls` are the factors of loops by their offsets."""

    def __init__(self, context: ReadingContext, expressions: Expressions, unrolls: dict[int, int]) -> None:
        self.context, self.expressions, self.unrolls = context, expressions, unrolls
        self.readers: dict[int, Callable[[Item], list[sx.Statement]]] = {
            ct.KIND.COMPOUND_STMT: lambda item: [self.compound(item)],
            ct.KIND.StmtExpr: lambda item: [self.compound(item.children[0])],  # whose value nobody wants
            ct.KIND.DECL_STMT: self.declarations,
            ct.KIND.NULL_STMT: lambda _: [],
            ct.KIND.IF_STMT: self.branch,
            ct.KIND.FOR_STMT: self.for_loop,
            ct.KIND.WHILE_STMT: self.while_loop,
            ct.KIND.DO_STMT: self.do_loop,
            ct.KIND.SWITCH_STMT: self.switch,
            ct.KIND.BREAK_STMT: lambda item: [sx.Break(self.context.place(item))],
            ct.KIND.CONTINUE_STMT: lambda item: [sx.Continue(self.context.place(item))],
            ct.KIND.RETURN_STMT: self.return_,
            ct.KIND.LABEL_STMT: self.label,
            ct.KIND.GOTO_STMT: self.goto,
        }
        expressions.readers[ct.KIND.StmtExpr] = self.block

    def read(self, item: Item) -> list[sx.Statement]:
        """Returns the statements that an item stands for: none of ``;``, several of ``int i, j;``."""
        context = self.context
        context.enter(item.start)
        context.count(item.start)
        reader = self.readers.get(item.kind)
        if reader is not None:
            statements = reader(item)
        elif item.kind in ct.EXPRESSIONS:
            statements = [sx.Evaluate(self.expressions.read(item), context.place(item))]
        else:
            raise context.fault(self.refusal(item), item)
        context.depth -= 1
        return statements

    def one(self, item: Item) -> sx.Statement:
        statements = self.read(item)
        return statements[0] if len(statements) == 1 else sx.Compound(tuple(statements), self.context.place(item))

    def compound(self, item: Item) -> sx.Compound:
        return sx.Compound(self.all(item.children), self.context.place(item))

    def block(self, item: Item) -> sx.Block:
        """Reads statements in braces as an expression."""
        context = self.context
        inside = item.children[0].children
        if not inside or inside[-1].kind not in ct.EXPRESSIONS:
            raise context.fault("statements in braces have no value at their end; write an expression there", item)
        statements = self.all(inside[:-1])
        return sx.Block(context.type(item), context.place(item), statements, self.expressions.read(inside[-1]))

    def all(self, items: list[Item]) -> tuple[sx.Statement, ...]:
        return tuple(statement for item in items for statement in self.read(item))

    def refusal(self, item: Item) -> str:
        if item.kind in (ct.KIND.CASE_STMT, ct.KIND.DEFAULT_STMT):
            return "a case stands inside another statement of its switch; put it directly between the switch's braces"
        text = self.context.slice(item).split("\n")[0]
        return f"perfmodel cannot read the statement {text[:60]!r}; use loops, branches and assignments"

    # --- declarations

    def declarations(self, item: Item) -> list[sx.Statement]:
        made: list[sx.Statement] = []
        for child in item.children:
            if child.kind == ct.KIND.VAR_DECL:
                variable = self.variable(child)
                if variable.space in ("constant", "global"):
                    self.context.tables.append(variable)
                else:
                    made.append(sx.Declare(variable, variable.place))
            elif child.kind == ct.KIND.FUNCTION_DECL:
                raise self.context.fault("a function is declared inside another; declare it before", child)
        return made

    def variable(self, item: Item) -> sx.Variable:
        """Reads a variable with its initial value, of a function or of the whole program."""
        context = self.context
        context.count(item.start)
        library = context.tree.library
        raw = library.clang_getCursorType(item.cursor)
        name, type_, space = (
            context.tree.spelling(item.cursor),
            context.types.of(raw, item.start),
            context.types.space_of(raw),
        )
        place = context.text.place(_name_offset(context.slice(item), name) + item.start)
        if space == "global" and context.types.is_const(raw):
            space = "constant"  # nobody can tell the difference
        if type_.size > LARGEST:
            raise context.fault(f"the variable {name} takes {type_.size} bytes; use an argument in global memory", item)
        variable = sx.Variable(name, type_, space, place)
        context.variables[ct.key_of(item.cursor)] = variable
        initial = library.clang_Cursor_getVarDeclInitializer(item.cursor)
        if ct.key_of_expression(initial):
            with context.starting(variable):
                variable.initial = self.initial(
                    type_, next(child for child in reversed(item.children) if child.kind == initial.kind)
                )
        elif space == "constant" and type_ != ts.SAMPLER:
            raise context.fault(f"the table {name} in constant memory has no initial value; give it one", item)
        if (space in ("constant", "global") or type_ == ts.SAMPLER) and variable.initial is not None:
            variable.initial = fold(variable.initial)
        return variable

    def initial(self, type_: ts.Type, item: Item) -> sx.Expression | sx.InitializerList:
        is_list = item.kind in (ct.KIND.INIT_LIST_EXPR, ct.KIND.STRING_LITERAL)
        if isinstance(type_, ts.Array | ts.Record) and is_list:
            return self.expressions.initial(type_, item)
        return self.expressions.converted(self.expressions.read(item), type_)

    # --- branches

    def branch(self, item: Item) -> list[sx.Statement]:
        condition, then, *rest = item.children
        otherwise = self.one(rest[0]) if rest else None
        return [sx.If(self.expressions.read(condition), self.one(then), otherwise, self.context.place(item))]

    def switch(self, item: Item) -> list[sx.Statement]:
        context = self.context
        value, body = item.children
        if body.kind != ct.KIND.COMPOUND_STMT:
            raise context.fault("the switch has no braces; put its cases between { and }", item)
        cases: list[sx.Case] = []
        for child in body.children:
            if child.kind in (ct.KIND.CASE_STMT, ct.KIND.DEFAULT_STMT):
                values: list[int | None] = []
                while child.kind in (ct.KIND.CASE_STMT, ct.KIND.DEFAULT_STMT):
                    values.append(self.case_value(child) if child.kind == ct.KIND.CASE_STMT else None)
                    child = child.children[-1]
                cases.append(sx.Case(tuple(values), tuple(self.read(child))))
            elif cases:
                cases[-1] = sx.Case(cases[-1].values, cases[-1].body + tuple(self.read(child)))
            else:
                raise context.fault("a statement stands before the first case of its switch; put it outside", child)
        return [sx.Switch(self.expressions.read(value), tuple(cases), context.place(item))]

    def case_value(self, item: Item) -> int:
        if len(item.children) != 2:
            raise self.context.fault("a case has a range of values; write them one by one", item)
        value = self.context.tree.integer(item.children[0].cursor)
        if value is None:
            raise self.context.fault("the value of the case is not a constant", item)
        return value

    def return_(self, item: Item) -> list[sx.Statement]:
        value = self.expressions.read(item.children[0]) if item.children else None
        return [sx.Return(value, self.context.place(item))]

    # --- jumps

    def label(self, item: Item) -> list[sx.Statement]:
        label = sx.Label(self.context.tree.spelling(item.cursor), self.context.place(item))
        return [label, *(statement for child in item.children for statement in self.read(child))]

    def goto(self, item: Item) -> list[sx.Statement]:
        return [sx.Goto(self.context.tree.spelling(item.children[0].cursor), self.context.place(item))]

    # --- loops

    def for_loop(self, item: Item) -> list[sx.Statement]:
        *header, body = item.children
        first, second = self.semicolons(item)
        slots: list[Item | None] = [None, None, None]
        for child in header:
            slots[(child.start > first) + (child.start > second)] = child
        initial, condition, step = slots
        return [self.loop(item, condition, body, initial=initial, step=step)]

    def semicolons(self, item: Item) -> tuple[int, int]:
        """Returns where a ``for`` parts its header: clang does not say which parts are missing."""
        found: list[int] = []
        depth = 0
        for match in _HEADER.finditer(self.context.text.text, item.start, item.end):
            sign = match.group()
            depth += (sign == "(") - (sign == ")")
            if sign == ";" and depth == 1:
                found.append(match.start())
                if len(found) == 2:
                    return found[0], found[1]
        raise self.context.fault("the header of this for cannot be read", item)

    def while_loop(self, item: Item) -> list[sx.Statement]:
        condition, body = item.children
        return [self.loop(item, condition, body)]

    def do_loop(self, item: Item) -> list[sx.Statement]:
        body, condition = item.children
        return [self.loop(item, condition, body, is_do=True)]

    def loop(
        self,
        item: Item,
        condition: Item | None,
        body: Item,
        is_do: bool = False,
        initial: Item | None = None,
        step: Item | None = None,
    ) -> sx.Loop:
        return sx.Loop(
            initial=self.one(initial) if initial else None,
            condition=self.expressions.read(condition) if condition else None,
            step=self.expressions.read(step) if step else None,
            body=self.one(body),
            is_do=is_do,
            unroll=self.unrolls.get(item.start),
            place=self.context.place(item),
        )


def _name_offset(text: str, name: str) -> int:
    found = re.search(rf"\b{re.escape(name)}\b", text) if name else None
    return found.start() if found else 0
