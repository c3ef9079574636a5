"""The reader makes a typed syntax tree of OpenCL C, before anything is executed or counted.

Every expression knows its type, every implicit conversion is a `Convert`, names are resolved to the very `Variable`
or `Function` that they mean. Arrays decay to pointers by `Decay`. Lvalues are `Name`, `Dereference`, `Member` and
`Swizzle` of such.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from perfmodel.opencl_c.types import Record, Type
from perfmodel.opencl_c.visitor import Tree

CHAIN = 64
"""So many operators in a row (``a + b + c``) are as deep as they look; of longer rows, lowering makes parts."""


class Place(NamedTuple):
    """A place tells where something stands in the user's source."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(eq=False)
class Variable:
    """A variable or parameter is equal only to itself.

    Attributes:
        space: ``private``, ``local``, ``constant`` (tables in constant memory), or ``global`` (of the program).
        initial: of a variable of the program, or an initialized variable.
        is_restrict: whether it is a parameter declared so: a pointer to what no other pointer leads to.
    """

    name: str
    type: Type
    space: str
    place: Place
    initial: Expression | InitializerList | None = None
    is_restrict: bool = False


# --- expressions


class Node(Tree):
    type: Type
    place: Place


class Constant(Node):
    """A constant is a number (of enums, sizeof and character literals too)."""

    value: int | float


class Name(Node):
    variable: Variable


class Dereference(Node):
    """This node is ``*p``, and ``p[i]`` of a `Shift`."""

    pointer: Expression


class Shift(Node):
    """A shift is ``p + i``, in elements of what the pointer points to; ``p - i`` has a negated index."""

    pointer: Expression
    index: Expression


class PointerDifference(Node):
    """The difference ``p - q`` counts elements; it is a long."""

    left: Expression
    right: Expression


class Member(Node):
    """A member is ``s.f``; ``p->f`` is a member of a `Dereference`."""

    record: Expression
    name: str


class Swizzle(Node):
    """A swizzle picks components of a vector by numbers: ``v.zx`` has (2, 0). ``v[i]`` with a constant is one too."""

    vector: Expression
    components: tuple[int, ...]


class AddressOf(Node):
    target: Expression


class Decay(Node):
    """An array lvalue decays to a pointer to its first element."""

    array: Expression


class Unary(Node):
    """This node is ``-``, ``~`` or ``!``; ``!`` gives an int, or a vector of 0 and -1."""

    operator: str
    operand: Expression


class Binary(Node):
    """This node is ``+ - * / % & | ^ << >>`` or a comparison ``< <= > >= == !=``.

    Operands have one type (shifts: the left one's type is the result's). Comparisons give an int, or for vectors a
    vector of signed integers, 0 or -1. Pointers can be compared.
    """

    operator: str
    left: Expression
    right: Expression


class Logical(Node):
    """This node is ``&&`` or ``||``; of scalars the right side is evaluated only if needed."""

    operator: str
    left: Expression
    right: Expression


class Conditional(Node):
    """This node is ``c ? a : b``; with a vector as condition, it goes by component and without a branch."""

    condition: Expression
    then: Expression
    otherwise: Expression


class Convert(Node):
    """A conversion leads to `type`, implicit or cast: between numbers, of a scalar to a vector (splat), of pointers."""

    operand: Expression


class VectorLiteral(Node):
    """A vector literal ``(float4)(a, b, c.xy)`` has scalars and vectors one after the other."""

    parts: tuple[Expression, ...]


class Call(Node):
    """One of the program's own functions is called."""

    function: Function
    arguments: tuple[Expression, ...]


class BuiltinCall(Node):
    """A built-in function is called by its name, e.g. ``convert_int4_sat_rte``, ``vload4``, ``get_global_id``."""

    name: str
    arguments: tuple[Expression, ...]


class Block(Node):
    """Statements in braces, ``({ … })``, come before the expression at their end, whose value it is."""

    statements: tuple[Statement, ...]
    value: Expression


class Assign(Node):
    """An assignment is ``target = value``."""

    target: Expression
    value: Expression


class CompoundAssign(Node):
    """``target op= value`` is computed in `computed` (``c += 1.5f`` of a char is computed in float).

    For a pointer target the operator is ``+`` or ``-`` and the value a number of elements.
    """

    operator: str
    target: Expression
    value: Expression
    computed: Type


class Increment(Node):
    """An increment is ``++x``, ``x++``, ``--x`` or ``x--``; its value is the old one if postfix."""

    target: Expression
    step: int
    is_postfix: bool


class Comma(Node):
    first: Expression
    second: Expression


class InitializerList(Node):
    """An initializer ``{…}`` of an array, struct or union gives (byte offset, value) of leaves; the rest is zero."""

    leaves: tuple[tuple[int, Expression], ...]


class CompoundLiteral(Node):
    """A compound literal is ``(struct s){…}``, an lvalue."""

    initial: InitializerList


Expression: TypeAlias = (
    Constant
    | Name
    | Dereference
    | Shift
    | PointerDifference
    | Member
    | Swizzle
    | AddressOf
    | Decay
    | Unary
    | Binary
    | Logical
    | Conditional
    | Convert
    | VectorLiteral
    | Call
    | BuiltinCall
    | Assign
    | CompoundAssign
    | Increment
    | Comma
    | CompoundLiteral
    | Block
)


# --- statements


class Compound(Tree):
    statements: tuple[Statement, ...]
    place: Place


class Declare(Tree):
    """A variable comes to life, with `variable.initial` if it has one; a local one has none."""

    variable: Variable
    place: Place


class Evaluate(Tree):
    expression: Expression
    place: Place


class If(Tree):
    condition: Expression
    then: Statement
    otherwise: Statement | None
    place: Place


class Loop(Tree):
    """A loop is a ``for``, a ``while`` or a ``do``.

    Attributes:
        initial: statement before the loop, in its scope.
        condition: None is always true.
        is_do: the first iteration comes before the first test.
        unroll: of ``#pragma unroll`` or ``opencl_unroll_hint``: a number, 0 for all, None if not given.
    """

    initial: Statement | None
    condition: Expression | None
    step: Expression | None
    body: Statement
    is_do: bool
    unroll: int | None
    place: Place


class Case(Tree):
    """A case has ``case 1: case 2:`` (values), ``default:`` (None among them), and what follows up to the next."""

    values: tuple[int | None, ...]
    body: tuple[Statement, ...]


class Switch(Tree):
    """Control falls from one case through to the next, unless there is a `Break`."""

    value: Expression
    cases: tuple[Case, ...]
    place: Place


class Break(Tree):
    place: Place


class Continue(Tree):
    place: Place


class Return(Tree):
    value: Expression | None
    place: Place


class Label(Tree):
    """A label stands before the statement that follows it in its list."""

    name: str
    place: Place


class Goto(Tree):
    name: str
    place: Place


Statement: TypeAlias = Compound | Declare | Evaluate | If | Loop | Switch | Break | Continue | Return | Label | Goto


@dataclass(eq=False)
class Function:
    """A function has its body.

    Attributes:
        work_group, subgroup_size: of ``reqd_work_group_size`` and ``intel_reqd_sub_group_size``.
    """

    name: str
    result: Type
    parameters: tuple[Variable, ...]
    is_kernel: bool
    place: Place
    body: Compound | None = None
    work_group: tuple[int, int, int] | None = None
    subgroup_size: int | None = None


@dataclass(frozen=True, eq=False)
class Unit:
    """A unit is a source read: its functions, its tables in constant memory, its structs.

    Attributes:
        kernels: the names of all, whether they were read or not.
        length: of the text, in characters.
        takes_constants: whether a kernel takes a pointer to constant memory.
    """

    functions: dict[str, Function]
    kernels: tuple[str, ...]
    tables: tuple[Variable, ...] = ()
    records: dict[str, Record] = field(default_factory=dict)
    length: int = 0
    takes_constants: bool = False
