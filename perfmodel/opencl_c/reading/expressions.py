"""Expressions of clang's tree become those of `perfmodel.opencl_c.syntax`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from perfmodel.opencl_c import syntax as sx
from perfmodel.opencl_c import types as ts
from perfmodel.opencl_c.arithmetic import rounded
from perfmodel.opencl_c.reading import clang_tree as ct
from perfmodel.opencl_c.reading.clang_tree import Item
from perfmodel.opencl_c.reading.header import is_builtin
from perfmodel.opencl_c.reading.initializers import Initializers, Leaf
from perfmodel.opencl_c.reading.integer_expressions import character, integer
from perfmodel.opencl_c.reading.reading_context import ReadingContext

# clang's numbers of the operators.
_ARITHMETIC = ["*", "/", "%", "+", "-", "<<", ">>"]
_BINARY = dict(enumerate([*_ARITHMETIC, "<=>", "<", ">", "<=", ">=", "==", "!=", "&", "^", "|"], 3))
_OPERATIONS = {kind for kind, sign in _BINARY.items() if sign in (*_ARITHMETIC, "&", "^", "|")}
_LOGICAL = {20: "&&", 21: "||"}
_ASSIGN, _COMMA = 22, 33
_COMPOUND = dict(enumerate([*_ARITHMETIC, "&", "^", "|"], 23))
_STEPS = {1: (1, True), 2: (-1, True), 3: (1, False), 4: (-1, False)}
_ADDRESS, _DEREFERENCE, _PLUS = 5, 6, 7
_UNARY = {8: "-", 9: "~", 10: "!"}

_SPECIAL_VALUES = {"nan": float("nan"), "inf": float("inf"), "huge_val": float("inf")}
_SPECIAL = re.compile(r"__builtin_(nan|inf|huge_val)[fl]?")

_WIDENING = frozenset(["min", "max", "clamp", "mix", "step", "smoothstep", "fmin", "fmax", "ldexp"])
"""These built-ins take a scalar for any vector's every component."""

_SWIZZLE = re.compile(r"\s*(?:\.|->)\s*(\w+)\s*")
_HALVES: dict[str, Callable[[int], tuple[int, ...]]] = {
    "lo": lambda width: tuple(range(width // 2)),
    "hi": lambda width: tuple(range(width // 2, width)),
    "even": lambda width: tuple(range(0, width, 2)),
    "odd": lambda width: tuple(range(1, width, 2)),
}


class Expressions:
    """Reads expressions; every conversion that clang makes silently becomes a `Convert`."""

    def __init__(self, context: ReadingContext) -> None:
        self.context = context
        self.initializers = Initializers(context)
        self.callees: dict[int, sx.Function | str] = {}
        self.readers: dict[int, Callable[[Item], sx.Expression]] = {
            ct.KIND.UNEXPOSED_EXPR: self.implicit,
            ct.KIND.PAREN_EXPR: self.inner,
            ct.KIND.DECL_REF_EXPR: self.name,
            ct.KIND.INTEGER_LITERAL: self.integer,
            ct.KIND.FLOATING_LITERAL: self.floating,
            ct.KIND.CHARACTER_LITERAL: self.character,
            ct.KIND.STRING_LITERAL: self.string,
            ct.KIND.CXX_BOOL_LITERAL_EXPR: self.truth,
            ct.KIND.CXX_UNARY_EXPR: self.size,
            ct.KIND.UNARY_OPERATOR: self.unary,
            ct.KIND.BINARY_OPERATOR: self.binary,
            ct.KIND.COMPOUND_ASSIGNMENT_OPERATOR: self.compound_assignment,
            ct.KIND.CONDITIONAL_OPERATOR: self.conditional,
            ct.KIND.CSTYLE_CAST_EXPR: self.cast,
            ct.KIND.MEMBER_REF_EXPR: self.member,
            ct.KIND.ARRAY_SUBSCRIPT_EXPR: self.subscript,
            ct.KIND.CALL_EXPR: self.call,
            ct.KIND.COMPOUND_LITERAL_EXPR: self.compound_literal,
            ct.KIND.INIT_LIST_EXPR: self.braced,
        }

    def read(self, item: Item) -> sx.Expression:
        context = self.context
        context.enter(item.start)
        children = item.children
        while len(children) == 1 and children[0].kind == item.kind != ct.KIND.UNEXPOSED_EXPR:
            # clang wraps constants of cases and enums in an expression of the same kind and extent.
            if (children[0].start, children[0].end) != (item.start, item.end):
                break
            item = children[0]
            children = item.children
        reader = self.readers.get(item.kind)
        if reader is None:
            raise context.unreadable(item)
        expression = reader(item)
        context.depth -= 1
        return expression

    def converted(self, expression: sx.Expression, type_: ts.Type, place: sx.Place | None = None) -> sx.Expression:
        if expression.type == type_:
            return expression
        return sx.Convert(type_, place or expression.place, expression)

    # --- names and numbers

    def name(self, item: Item) -> sx.Expression:
        context = self.context
        referenced = context.tree.library.clang_getCursorReferenced(item.cursor)
        if referenced.kind == ct.KIND.ENUM_CONSTANT_DECL:
            value = context.tree.library.clang_getEnumConstantDeclValue(referenced)
            return sx.Constant(context.type(item), context.place(item), value)
        if referenced.kind == ct.KIND.FUNCTION_DECL:
            name = context.tree.spelling(referenced)
            raise context.fault(f"the kernel uses the function {name} as a value; call it by its name instead", item)
        variable = context.variable(referenced, item.start)
        return sx.Name(variable.type, context.place(item), variable)

    def integer(self, item: Item) -> sx.Expression:
        return sx.Constant(self.context.type(item), self.context.place(item), integer(self.context.slice(item)))

    def floating(self, item: Item) -> sx.Expression:
        type_ = self.context.type(item)
        text = self.context.slice(item).lower()
        is_hexadecimal = text.startswith("0x")
        digits = text.rstrip("lh" if is_hexadecimal and "p" not in text else "flh")
        try:
            value = float.fromhex(digits) if is_hexadecimal else float(digits)
        except OverflowError:
            value = float("inf")
        return sx.Constant(type_, self.context.place(item), rounded(value, ts.element_of(type_)))

    def character(self, item: Item) -> sx.Expression:
        text = self.context.slice(item)
        try:
            value = character(text)
        except ValueError:
            raise self.context.fault(f"{text} is no single character; write its number", item) from None
        return sx.Constant(self.context.type(item), self.context.place(item), value)

    def string(self, item: Item) -> sx.Expression:
        """Reads a string as a table in constant memory."""
        context, place, type_ = self.context, self.context.place(item), self.context.type(item)
        if not isinstance(type_, ts.Array):
            raise context.unreadable(item)
        table = sx.Variable(
            name=f"string_{len(context.tables)}",
            type=type_,
            space="constant",
            place=place,
            initial=self.initial(type_, item),
        )
        context.tables.append(table)
        return sx.Name(type_, place, table)

    def truth(self, item: Item) -> sx.Expression:
        return sx.Constant(self.context.type(item), self.context.place(item), int(self.context.slice(item) == "true"))

    def size(self, item: Item) -> sx.Expression:
        value = self.context.tree.integer(item.cursor)
        if value is None:
            raise self.context.unreadable(item)
        return sx.Constant(self.context.type(item), self.context.place(item), value)

    # --- conversions, vectors

    def inner(self, item: Item) -> sx.Expression:
        return self.read(item.children[-1])

    def implicit(self, item: Item) -> sx.Expression:
        """Reads a conversion, unless more text belongs to it than to its operand: then it is components of a vector."""
        if len(item.children) != 1:
            raise self.context.unreadable(item)
        child = item.children[0]
        if child.start == item.start and child.end < item.end:
            found = _SWIZZLE.fullmatch(self.context.text.text, child.end, item.end)
            if found:
                return self.swizzle(item, found.group(1))
        expression = self.read(child)
        type_ = self.context.type(item)
        if isinstance(expression.type, ts.Array) and isinstance(type_, ts.Pointer):
            return sx.Decay(type_, expression.place, expression)
        if isinstance(type_, ts.Array):
            # An array that is a parameter: libclang shows it as it was written, but it is a pointer.
            return expression
        return self.converted(expression, type_)

    def swizzle(self, item: Item, letters: str) -> sx.Expression:
        place = self.context.place(item)
        vector = self.read(item.children[0])
        if isinstance(vector.type, ts.Pointer):
            vector = sx.Dereference(vector.type.target, place, vector)
        if not isinstance(vector.type, ts.Vector):
            raise self.context.unreadable(item)
        return sx.Swizzle(self.context.type(item), place, vector, _components(letters, vector.type.width))

    def cast(self, item: Item) -> sx.Expression:
        expression = self.read(item.children[-1])
        type_ = self.context.type(item)
        return expression if type_ == ts.VOID else self.converted(expression, type_, self.context.place(item))

    def compound_literal(self, item: Item) -> sx.Expression:
        type_, place, braces = self.context.type(item), self.context.place(item), item.children[-1]
        if isinstance(type_, ts.Vector):
            return self.vector(type_, braces.children, place)
        if isinstance(type_, ts.Array | ts.Record):
            return sx.CompoundLiteral(type_, place, self.initial(type_, braces))
        return self.converted(self.read(braces), type_)

    def braced(self, item: Item) -> sx.Expression:
        """Reads ``{…}`` of a vector or of a single number."""
        type_, place = self.context.type(item), self.context.place(item)
        if isinstance(type_, ts.Vector):
            return self.vector(type_, item.children, place)
        if len(item.children) == 1 and isinstance(type_, ts.Scalar | ts.Pointer):
            return self.converted(self.read(item.children[0]), type_)
        raise self.context.unreadable(item)

    def initial(self, type_: ts.Array | ts.Record, item: Item) -> sx.InitializerList:
        """Reads initial values between braces, or a string."""
        leaves = tuple((leaf.offset, self.leaf(leaf)) for leaf in self.initializers.leaves(type_, item))
        return sx.InitializerList(type_, self.context.place(item), leaves)

    def leaf(self, leaf: Leaf) -> sx.Expression:
        if isinstance(leaf.value, sx.Constant):
            return self.converted(leaf.value, leaf.type)
        if isinstance(leaf.type, ts.Vector):
            return self.vector(leaf.type, leaf.value, self.context.place(leaf.value[0]))
        return self.converted(self.read(leaf.value[0]), leaf.type)

    def vector(self, type_: ts.Vector, items: Sequence[Item], place: sx.Place) -> sx.Expression:
        parts = [self.read(child) for child in items]
        if len(parts) == 1 and parts[0].type == type_:
            return parts[0]
        parts = [self.converted(part, ts.like(part.type, type_.element)) for part in parts]
        missing = type_.width - sum(ts.width_of(part.type) for part in parts)
        parts += [sx.Constant(type_.element, place, 0)] * missing
        return sx.VectorLiteral(type_, place, tuple(parts))

    # --- operators

    def unary(self, item: Item) -> sx.Expression:
        context = self.context
        kind = context.tree.library.clang_getCursorUnaryOperatorKind(item.cursor)
        operand = self.read(item.children[0])
        if kind == _PLUS:
            return operand
        type_, place = context.type(item), context.place(item)
        if kind in _STEPS:
            return sx.Increment(operand.type, place, operand, *_STEPS[kind])
        if kind == _ADDRESS:
            return sx.AddressOf(type_, place, operand)
        if kind == _DEREFERENCE:
            return sx.Dereference(type_, place, operand)
        if kind not in _UNARY:
            raise context.unreadable(item)
        return sx.Unary(type_, place, _UNARY[kind], operand)

    def binary(self, item: Item) -> sx.Expression:
        """Reads operators in a row (``a + b + c``), of which lowering makes parts, as one after the other."""
        context, depth, chain = self.context, self.context.depth, [item]
        while self.is_operation(chain[-1].children[0]):
            chain.append(chain[-1].children[0])
        context.set_depth(depth + min(len(chain) - 1, sx.CHAIN), item.start)
        value = self.read(chain[-1].children[0])
        for above, each in reversed(list(enumerate(chain))):
            context.set_depth(depth + min(above, sx.CHAIN), each.start)
            value = self.joined(each, value, self.read(each.children[1]))
        context.depth = depth
        return value

    def is_operation(self, item: Item) -> bool:
        """Returns whether an item is an operation on numbers whose result is one of their kind."""
        context = self.context
        return (
            item.kind == ct.KIND.BINARY_OPERATOR
            and context.tree.library.clang_getCursorBinaryOperatorKind(item.cursor) in _OPERATIONS
            and not isinstance(context.type(item), ts.Pointer)
        )

    def joined(self, item: Item, left: sx.Expression, right: sx.Expression) -> sx.Expression:
        context = self.context
        kind = context.tree.library.clang_getCursorBinaryOperatorKind(item.cursor)
        type_, place = context.type(item), context.place(item)
        if kind == _ASSIGN:
            return sx.Assign(left.type, place, left, right)
        if kind == _COMMA:
            return sx.Comma(right.type, place, left, right)
        if kind in _LOGICAL:
            return sx.Logical(type=type_, place=place, operator=_LOGICAL[kind], left=left, right=right)
        sign = _BINARY.get(kind)
        if sign is None or sign == "<=>":
            raise context.unreadable(item)
        if sign in ("+", "-") and (isinstance(left.type, ts.Pointer) or isinstance(right.type, ts.Pointer)):
            return self.pointer_arithmetic(sign, left, right, place)
        return sx.Binary(type=type_, place=place, operator=sign, left=left, right=right)

    def pointer_arithmetic(
        self, sign: str, left: sx.Expression, right: sx.Expression, place: sx.Place
    ) -> sx.Expression:
        if not isinstance(left.type, ts.Pointer):
            left, right = right, left
        elif isinstance(right.type, ts.Pointer):
            return sx.PointerDifference(ts.LONG, place, left, right)
        if sign == "-":
            right = sx.Unary(ts.LONG, right.place, "-", self.converted(right, ts.LONG))
        return sx.Shift(left.type, place, left, right)

    def compound_assignment(self, item: Item) -> sx.Expression:
        context = self.context
        sign = _COMPOUND[context.tree.library.clang_getCursorBinaryOperatorKind(item.cursor)]
        target, value = self.read(item.children[0]), self.read(item.children[1])
        computed = value.type
        if isinstance(target.type, ts.Pointer | ts.Vector):
            computed = target.type
        elif sign in ("<<", ">>"):
            is_promoted = isinstance(target.type, ts.Scalar) and not target.type.is_float and target.type.size < 4
            computed = ts.INT if is_promoted else target.type
        return sx.CompoundAssign(
            type=target.type, place=context.place(item), operator=sign, target=target, value=value, computed=computed
        )

    def conditional(self, item: Item) -> sx.Expression:
        condition, then, otherwise = (self.read(child) for child in item.children)
        return sx.Conditional(
            type=then.type, place=self.context.place(item), condition=condition, then=then, otherwise=otherwise
        )

    # --- memory

    def member(self, item: Item) -> sx.Expression:
        place = self.context.place(item)
        record = self.read(item.children[0])
        if isinstance(record.type, ts.Pointer):
            record = sx.Dereference(record.type.target, place, record)
        return sx.Member(self.context.type(item), place, record, self.context.tree.spelling(item.cursor))

    def subscript(self, item: Item) -> sx.Expression:
        context, place = self.context, self.context.place(item)
        base, index = self.read(item.children[0]), self.read(item.children[1])
        if isinstance(index.type, ts.Pointer | ts.Vector):
            base, index = index, base
        if isinstance(base.type, ts.Pointer):
            return sx.Dereference(base.type.target, place, sx.Shift(base.type, place, base, index))
        value = context.tree.integer(item.children[1].cursor)
        if not isinstance(base.type, ts.Vector):
            raise context.fault("what an index is of is neither array nor vector", item)
        if value is None:
            first = self._first_component(base, item)
            return sx.Dereference(base.type.element, place, sx.Shift(first.type, place, first, index))
        if not 0 <= value < base.type.width:
            raise context.fault(f"a {base.type} has no component {value}", item)
        return sx.Swizzle(base.type.element, place, base, (value,))

    def _first_component(self, vector: sx.Expression, item: Item) -> sx.Expression:
        """Returns the address of a vector's first component, of which a variable says another."""
        assert isinstance(vector.type, ts.Vector)
        place = self.context.place(item)
        match vector:
            case sx.Name():
                whole: sx.Expression = sx.AddressOf(ts.Pointer(vector.type, vector.variable.space), place, vector)
            case sx.Dereference():
                whole = vector.pointer
            case _:
                raise self.context.fault(
                    "a component of a vector that has no place of its own is chosen by a variable; give the vector a "
                    "variable",
                    item,
                )
        assert isinstance(whole.type, ts.Pointer)
        return sx.Convert(ts.Pointer(vector.type.element, whole.type.space), place, whole)

    # --- calls

    def call(self, item: Item) -> sx.Expression:
        context, place = self.context, self.context.place(item)
        referenced = context.tree.library.clang_getCursorReferenced(item.cursor)
        key = ct.key_of(referenced)
        callee = self.callees.get(key)
        if callee is None:
            callee = self.callees[key] = self.callee(item, referenced)
        type_ = context.type(item)
        special = _SPECIAL.fullmatch(callee) if isinstance(callee, str) else None
        if special:
            return sx.Constant(type_, place, _SPECIAL_VALUES[special.group(1)])
        given = item.children[1:]
        if callee == "printf":
            given = [child for child in given if not _is_string(child)]
        arguments = [self.read(child) for child in given]
        if isinstance(callee, sx.Function):
            context.calls.setdefault(context.function, {}).setdefault(callee.name, item.start)
            return sx.Call(type_, place, callee, tuple(arguments))
        if callee == "work_group_barrier":
            callee, arguments = "barrier", arguments[:1]
        if callee.startswith("as_") and item.children[1].kind == ct.KIND.UNEXPOSED_EXPR:
            value = arguments[0]
            if isinstance(value, sx.Convert) and value.operand.type.size != type_.size:
                raise context.fault(f"{callee} needs a value of {type_.size} bytes, not {value.operand.type}", item)
        if callee in _WIDENING and isinstance(type_, ts.Vector):
            arguments = [self.widened(argument, type_) for argument in arguments]
        return sx.BuiltinCall(type_, place, callee, tuple(arguments))

    def widened(self, argument: sx.Expression, type_: ts.Vector) -> sx.Expression:
        if not isinstance(argument.type, ts.Scalar):
            return argument
        return self.converted(argument, ts.Vector(argument.type, type_.width))

    def callee(self, item: Item, referenced: ct.RawCursor) -> sx.Function | str:
        context = self.context
        if referenced.kind != ct.KIND.FUNCTION_DECL:
            raise context.fault("a function is called through a pointer; call it by its name instead", item)
        definition = context.tree.library.clang_getCursorDefinition(referenced)
        context.declared(ct.key_of(definition))
        function = context.functions.get(ct.key_of(definition))
        if function is not None:
            return function
        name = context.tree.spelling(referenced)
        if name in context.refused:
            raise context.refused[name]
        if is_builtin(name) or _SPECIAL.fullmatch(name):
            return name
        if context.tree.extent(referenced)[0] >= 0:
            raise context.fault(f"the function {name} is declared, but nothing defines it", item)
        raise context.fault(f"the kernel calls {name}, which perfmodel does not support", item)


def _is_string(item: Item) -> bool:
    while item.kind in (ct.KIND.UNEXPOSED_EXPR, ct.KIND.PAREN_EXPR) and len(item.children) == 1:
        item = item.children[0]
    return bool(item.kind == ct.KIND.STRING_LITERAL)


def _components(letters: str, width: int) -> tuple[int, ...]:
    if letters in _HALVES:
        # The upper half and the odd components of three are those of four.
        return _HALVES[letters](4 if width == 3 else width)
    if letters[0] in "sS" and len(letters) > 1:
        return tuple(int(letter, 16) for letter in letters[1:])
    return tuple("xyzw".index(letter) if letter in "xyzw" else "rgba".index(letter) for letter in letters)
